/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/budgets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/vec.h"
#include "kube/cache.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "kube/ready.h"
#include "kube/views/workload.h"
#include "wire/json.h"

struct budget {
	struct budget *next; /* in its namespace */
	struct json_doc *doc;
	struct budget_view view; /* of the document */
	uint32_t number;
	char name[];
};

struct budget_space {
	struct budget *first;
	bool news;
	char name[];
};

struct budgets {
	struct budgets_options options;
	struct map spaces; /* by namespace; kept once there was a budget */
	uint32_t news;	   /* spaces with some */
	/* The budget of each number from 1 on; NULL: the number is free. */
	VEC(struct budget *) numbers;
};

static struct budget_space *space_find(const struct budgets *budgets, const char *namespace)
{
	return map_get(&budgets->spaces, namespace, strlen(namespace));
}

static struct budget_space *space_get(struct budgets *budgets, const char *namespace)
{
	struct budget_space *space = space_find(budgets, namespace);
	size_t len = strlen(namespace);

	if (space)
		return space;
	space = calloc(1, sizeof(*space) + len + 1);
	if (!space)
		return NULL;
	memcpy(space->name, namespace, len);
	if (map_put(&budgets->spaces, space->name, len, space) == 0)
		return space;
	free(space);
	return NULL;
}

static void budget_free(struct budget *budget)
{
	if (!budget)
		return;
	json_doc_free(budget->doc);
	free(budget);
}

/* The place that points to the budget of that name, or to the end. */
static struct budget **budget_at(struct budget_space *space, const char *name)
{
	struct budget **at = &space->first;

	while (*at && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	return at;
}

static int budget_read(const struct kube_object *object, struct budget **ret, struct err *err)
{
	size_t len = strlen(object->name);
	struct budget *budget = calloc(1, sizeof(*budget) + len + 1);
	int rc = budget ? kube_object_parse(object, &budget->doc) : -ENOMEM;

	if (rc < 0)
		err_set(err, ENOMEM, "out of memory");
	else
		rc = budget_view_read(json_root(budget->doc), &budget->view, err);
	if (rc < 0) {
		budget_free(budget);
		return rc;
	}
	memcpy(budget->name, object->name, len);
	*ret = budget;
	return 0;
}

static bool is_same(const struct json *a, const struct json *b)
{
	return a && b ? json_equal(a, b) : a == b;
}

/* Whether both answer alike for every pod, if they have the same number. */
static bool same_answers(const struct budget *a, const struct budget *b)
{
	if (!a || !b)
		return false;
	return (a->view.disruptions_allowed > 0) == (b->view.disruptions_allowed > 0) &&
	       is_same(a->view.selector, b->view.selector) &&
	       is_same(a->view.disrupted, b->view.disrupted);
}

/* The number of the one before; else the first that is free. */
static int set_number(struct budgets *budgets, struct budget *budget, const struct budget *before)
{
	uint32_t number = before ? before->number : 1;

	while (!before && number <= budgets->numbers.len && budgets->numbers.items[number - 1])
		number++;
	if (number > budgets->numbers.len && vec_push(&budgets->numbers, NULL) < 0)
		return -ENOMEM;
	budget->number = number;
	budgets->numbers.items[number - 1] = budget;
	return 0;
}

static void set_news(struct budgets *budgets, struct budget_space *space)
{
	budgets->news += !space->news;
	space->news = true;
}

static void unreadable(const struct budgets *budgets, const struct kube_object *object,
		       const char *why)
{
	if (budgets->options.log)
		log_warn(budgets->options.log,
			 "a disruption budget cannot be read, and stays as it was",
			 LOG_STR("namespace", object->namespace), LOG_STR("name", object->name),
			 LOG_STR("why", *why ? why : "out of memory"));
}

static void changed(void *context, enum kube_change change, const struct kube_object *before,
		    struct kube_object *now, const struct json *object)
{
	struct budgets *budgets = context;
	const struct kube_object *it = now ? now : before;
	struct budget_space *space = space_get(budgets, it->namespace);
	struct budget *fresh = NULL;
	struct err err = ERR_INIT;

	(void)change, (void)object;
	if (!space || (now && budget_read(now, &fresh, &err) < 0)) {
		unreadable(budgets, it, err.text);
		return;
	}
	struct budget **at = budget_at(space, it->name), *old = *at;
	if (fresh && set_number(budgets, fresh, old) < 0) {
		unreadable(budgets, it, "");
		budget_free(fresh);
		return;
	}
	if (old && !fresh)
		budgets->numbers.items[old->number - 1] = NULL;
	if ((old || fresh) && !same_answers(old, fresh))
		set_news(budgets, space);
	if (fresh)
		fresh->next = old ? old->next : NULL;
	*at = fresh ? fresh : old ? old->next : NULL;
	budget_free(old);
}

/* Whether one of the expression's values is that. */
static bool has_value(const struct json *expression, const char *value)
{
	struct json_iter iter = json_items(expression, "values");
	const struct json *item;

	while ((item = json_next(&iter))) {
		const char *text = json_str(item);

		if (text && strcmp(text, value) == 0)
			return true;
	}
	return false;
}

static bool expression_matches(const struct json *expression, const struct json *labels)
{
	const char *key = json_str(expression, "key"), *op = json_str(expression, "operator");
	const char *value = key ? json_str(labels, key) : NULL;

	if (!key || !op)
		return false;
	if (strcmp(op, "In") == 0)
		return value && has_value(expression, value);
	if (strcmp(op, "NotIn") == 0)
		return !value || !has_value(expression, value);
	if (strcmp(op, "Exists") == 0)
		return value != NULL;
	return strcmp(op, "DoesNotExist") == 0 && !value;
}

static bool selector_matches(const struct json *selector, const struct json *labels)
{
	struct json_iter pairs = json_members(selector, "matchLabels");
	struct json_iter list = json_items(selector, "matchExpressions");
	const struct json *expression;
	struct json_member m;

	if (!json_len(labels) ||
	    !(json_len(selector, "matchLabels") + json_len(selector, "matchExpressions")))
		return false;
	while (json_next_member(&pairs, &m)) {
		const char *wanted = json_str(m.value), *value = json_str(labels, m.key);

		if (!wanted || !value || strcmp(wanted, value) != 0)
			return false;
	}
	while ((expression = json_next(&list)))
		if (!expression_matches(expression, labels))
			return false;
	return true;
}

uint32_t budgets_of(const struct budgets *budgets, const char *namespace, const char *name,
		    const struct json *labels)
{
	const struct budget_space *space = space_find(budgets, namespace);
	uint32_t number = 0;

	for (const struct budget *b = space ? space->first : NULL; b; b = b->next) {
		if (!selector_matches(b->view.selector, labels) ||
		    budget_view_has_disrupted(&b->view, name))
			continue;
		if (b->view.disruptions_allowed <= 0)
			return b->number;
		number = number ? number : b->number;
	}
	return number;
}

uint32_t budgets_last(const struct budgets *budgets)
{
	return (uint32_t)budgets->numbers.len;
}

uint32_t budgets_allowed(const struct budgets *budgets, uint32_t number)
{
	const struct budget *budget = budgets->numbers.items[number - 1];
	int64_t allowed = budget ? budget->view.disruptions_allowed : 0;

	return (uint32_t)MIN(MAX(allowed, 0), INT32_MAX);
}

bool budgets_has_news(const struct budgets *budgets)
{
	return budgets->news > 0;
}

bool budgets_is_news(const struct budgets *budgets, const char *namespace)
{
	const struct budget_space *space = space_find(budgets, namespace);

	return space && space->news;
}

void budgets_told(struct budgets *budgets)
{
	struct map_entry entry;

	for (uint32_t at = 0; budgets->news && map_next(&budgets->spaces, &at, &entry);)
		((struct budget_space *)entry.value)->news = false;
	budgets->news = 0;
}

int budgets_new(const struct budgets_options *options, struct budgets **ret, struct err *err)
{
	struct budgets *budgets = calloc(1, sizeof(*budgets));
	int rc;

	if (!budgets)
		return err_set(err, ENOMEM, "out of memory");
	budgets->options = *options;
	map_init(&budgets->spaces, options->seed);
	struct kube_cache_options cache = {
		.kind = &kube_kinds[KUBE_POD_DISRUPTION_BUDGET],
		.log = options->log,
		.changed = changed,
		.context = budgets,
	};
	rc = kube_caches_add(options->caches, &cache, NULL, err);
	if (rc < 0) {
		budgets_free(budgets);
		return rc;
	}
	*ret = budgets;
	return 0;
}

void budgets_free(struct budgets *budgets)
{
	struct map_entry entry;

	if (!budgets)
		return;
	for (uint32_t at = 0; map_next(&budgets->spaces, &at, &entry);) {
		struct budget_space *space = entry.value;

		while (space->first) {
			struct budget *budget = space->first;

			space->first = budget->next;
			budget_free(budget);
		}
		free(space);
	}
	map_done(&budgets->spaces);
	vec_done(&budgets->numbers);
	free(budgets);
}
