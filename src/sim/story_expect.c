/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "dialect/annotations.h"
#include "sim/report.h"
#include "sim/story_private.h"
#include "sim/world.h"
#include "wire/json.h"

#define ARENA_MAX ((size_t)1 << 20)
#define IDS_MAX	  128

/* The pods that one expectation is about. */
struct cast {
	struct story *story;
	const char *name;
	VEC(const struct world_pod *) pods;
};

static void cast_done(struct cast *c)
{
	vec_done(&c->pods);
}

PRINTF(2, 3) static int miss(const struct cast *c, const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	c->story->result->failed++;
	strbuf_addf(c->story->out, "step %zu: %s: %s\n", c->story->step, c->name, text);
	return 0;
}

static const struct cluster *cluster_of(const struct cast *c)
{
	return world_cluster(c->story->world);
}

static const struct node *node_of(const struct cast *c, const struct world_pod *pod)
{
	return cluster_node(cluster_of(c), pod->decision.node);
}

static const struct domain *domain_of(const struct cast *c, const struct world_pod *pod,
				      bool spine)
{
	const struct domain *leaf = cluster_domain(cluster_of(c), node_of(c, pod)->domain);

	return spine && leaf->parent != DOMAIN_NONE ? cluster_domain(cluster_of(c), leaf->parent)
						    : leaf;
}

static void ids_text(uint32_t gpus, char text[IDS_MAX])
{
	size_t n = 0;

	text[0] = 0;
	for (; gpus; gpus &= gpus - 1)
		n += (size_t)snprintf(text + n, IDS_MAX - n, "%s%u", n ? "," : "",
				      gpuset_first(gpus));
}

static uint32_t count_state(const struct cast *c, enum world_state state)
{
	uint32_t count = 0;

	for (size_t i = 0; i < c->pods.len; i++)
		count += c->pods.items[i]->state == state;
	return count;
}

/* What each placed pod must have, as text. */
static int check_each(const struct cast *c, const char *field, const char *wanted)
{
	for (size_t i = 0; i < c->pods.len; i++) {
		const struct world_pod *pod = c->pods.items[i];
		char ids[IDS_MAX];
		const char *is = NULL;

		if (pod->state != WORLD_PLACED)
			return miss(c, "%s is not placed: %s", pod->name, pod->text);
		ids_text(pod->decision.assignment.gpus, ids);
		if (strcmp(field, "node") == 0)
			is = node_of(c, pod)->name;
		else if (strcmp(field, "gpus") == 0)
			is = ids;
		else
			is = domain_of(c, pod, strcmp(field, "spine") == 0)->name;
		if (strcmp(is, wanted) != 0)
			return miss(c, "%s: %s is %s, expected %s", pod->name, field, is, wanted);
	}
	return 0;
}

static int check_text(const struct cast *c, enum world_state state, const char *part)
{
	for (size_t i = 0; i < c->pods.len; i++) {
		const struct world_pod *pod = c->pods.items[i];

		if (pod->state != state)
			return miss(c, "%s is %s: %s", pod->name,
				    state == WORLD_PLACED ? "not placed" : "not pending",
				    pod->text);
		if (!pod->text || !strstr(pod->text, part))
			return miss(c, "%s says \"%s\", expected \"%s\" in it", pod->name,
				    pod->text, part);
	}
	return 0;
}

/* Different nodes, leaves or spines of the placed pods. */
static uint32_t count_different(const struct cast *c, const char *field)
{
	VEC(const void *) seen CLEANUP(vec_cleanup) = { 0 };

	for (size_t i = 0; i < c->pods.len; i++) {
		const struct world_pod *pod = c->pods.items[i];
		const void *place;
		bool found = false;

		if (pod->state != WORLD_PLACED)
			continue;
		if (strcmp(field, "nodes") == 0)
			place = node_of(c, pod);
		else
			place = domain_of(c, pod, strcmp(field, "spines") == 0);
		for (size_t k = 0; k < seen.len && !found; k++)
			found = seen.items[k] == place;
		if (!found && vec_push(&seen, place) < 0)
			return UINT32_MAX;
	}
	return (uint32_t)seen.len;
}

static bool are_adjacent(const struct cast *c)
{
	uint32_t low = UINT32_MAX, high = 0, parent = 0;

	for (size_t i = 0; i < c->pods.len; i++) {
		const struct world_pod *pod = c->pods.items[i];

		if (pod->state != WORLD_PLACED)
			continue;
		const struct domain *leaf = domain_of(c, pod, false);
		if (low != UINT32_MAX && leaf->parent != parent)
			return false;
		parent = leaf->parent;
		low = MIN(low, leaf->position);
		high = MAX(high, leaf->position);
	}
	return high - low + 1 == count_different(c, "leaves");
}

static int check_number(const struct cast *c, const char *field, int64_t wanted)
{
	int64_t is = 0;

	if (strcmp(field, "pods") == 0)
		is = (int64_t)c->pods.len;
	else if (strcmp(field, "placed") == 0)
		is = count_state(c, WORLD_PLACED);
	else if (strcmp(field, "pending") == 0)
		is = count_state(c, WORLD_PENDING);
	else
		is = count_different(c, field);
	return is == wanted ? 0
			    : miss(c, "%s is %lld, expected %lld%s%s", field, (long long)is,
				   (long long)wanted, c->pods.len ? "; the first says: " : "",
				   c->pods.len ? c->pods.items[0]->text : "");
}

static int check_gpu_numbers(const struct cast *c, const char *field, int64_t wanted)
{
	for (size_t i = 0; i < c->pods.len; i++) {
		const struct assignment *a = &c->pods.items[i]->decision.assignment;

		if (c->pods.items[i]->state != WORLD_PLACED)
			return miss(c, "%s is not placed: %s", c->pods.items[i]->name,
				    c->pods.items[i]->text);
		if (strcmp(field, "gpuCount") == 0 && gpuset_count(a->gpus) != wanted)
			return miss(c, "%s has %u GPUs, expected %lld", c->pods.items[i]->name,
				    gpuset_count(a->gpus), (long long)wanted);
		if (strcmp(field, "minGbps") == 0 && a->weakest_gbps < wanted)
			return miss(c, "%s: the slowest pair has %u GB/s, expected %lld",
				    c->pods.items[i]->name, a->weakest_gbps, (long long)wanted);
	}
	return 0;
}

static int gather(struct cast *c, struct err *err)
{
	struct world *w = c->story->world;

	for (uint32_t i = 0; i < world_pods(w); i++) {
		const struct world_pod *pod = world_pod(w, i);

		if (pod->state != WORLD_GONE &&
		    (strcmp(pod->name, c->name) == 0 || strcmp(pod->key, c->name) == 0 ||
		     strcmp(pod->workload, c->name) == 0) &&
		    vec_push(&c->pods, pod) < 0)
			return err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

static int check_other(const struct cast *c, const char *field, const char *name, struct err *err)
{
	struct cast other CLEANUP(cast_done) = { .story = c->story, .name = name };
	bool together = strcmp(field, "sameGpuAs") == 0, found = false;
	int rc = gather(&other, err);

	if (rc < 0)
		return rc;
	if (!other.pods.len)
		return miss(c, "%s names %s, and there is no such pod or workload", field, name);
	if (count_state(c, WORLD_PLACED) < c->pods.len)
		return miss(c, "%s: it is not placed itself", field);
	if (!count_state(&other, WORLD_PLACED))
		return miss(c, "%s names %s, which is not placed", field, name);
	for (size_t i = 0; i < c->pods.len; i++) {
		const struct world_pod *a = c->pods.items[i];

		for (size_t k = 0; k < other.pods.len; k++) {
			const struct world_pod *b = other.pods.items[k];

			found |= a != b && a->state == WORLD_PLACED && b->state == WORLD_PLACED &&
				 a->decision.node == b->decision.node &&
				 (a->decision.assignment.gpus & b->decision.assignment.gpus);
		}
	}
	if (found != together)
		miss(c, "%s a GPU with %s", found ? "shares" : "does not share", name);
	return 0;
}

static int check_annotations_of(const struct cast *c, const struct world_pod *pod,
				const struct json *wanted, struct arena *arena)
{
	struct json_iter iter = json_members(wanted);
	struct json_member m;
	struct annotations list;
	struct err err = ERR_INIT;

	if (pod->state != WORLD_PLACED)
		return miss(c, "%s is not placed: %s", pod->name, pod->text);
	if (report_annotations(c->story->world, pod, arena, &list, &err) < 0)
		return miss(c, "%s: %s", pod->name, err.text);
	while (json_next_member(&iter, &m)) {
		const char *value = annotations_find(&list, m.key), *expected = json_str(m.value);

		if (!value && !expected)
			continue;
		if (!value || !expected || strcmp(value, expected) != 0)
			miss(c, "%s: annotation %s is \"%s\", expected \"%s\"", pod->name, m.key,
			     value ? value : "(none)", expected ? expected : "(none)");
	}
	return 0;
}

static int check_annotations(const struct cast *c, const struct json *wanted)
{
	struct arena arena CLEANUP(arena_done);

	arena_init(&arena, ARENA_MAX);
	for (size_t i = 0; i < c->pods.len; i++)
		check_annotations_of(c, c->pods.items[i], wanted, &arena);
	return 0;
}

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(*words, word) == 0)
			return true;
	return false;
}

static int check(const struct cast *c, const struct json_member *m, struct err *err)
{
	static const char *const each[] = { "node", "gpus", "leaf", "spine", NULL };
	static const char *const counts[] = { "pods",	"placed", "pending", "nodes",
					      "leaves", "spines", NULL };
	static const char *const of_gpus[] = { "gpuCount", "minGbps", NULL };
	static const char *const others[] = { "sameGpuAs", "apartFrom", NULL };
	const char *text = json_str(m->value);
	int64_t number;
	bool yes;

	c->story->result->checked++;
	if (text && strcmp(m->key, "pending") == 0)
		return check_text(c, WORLD_PENDING, text);
	if (text && strcmp(m->key, "why") == 0)
		return check_text(c, WORLD_PLACED, text);
	if (text && is_one_of(m->key, each))
		return check_each(c, m->key, text);
	if (text && is_one_of(m->key, others))
		return check_other(c, m->key, text, err);
	if (json_i64_path(m->value, &number, JSON_PATH_END) == 0) {
		if (is_one_of(m->key, counts))
			return check_number(c, m->key, number);
		if (is_one_of(m->key, of_gpus))
			return check_gpu_numbers(c, m->key, number);
	}
	if (strcmp(m->key, "adjacent") == 0 && json_bool_path(m->value, &yes, JSON_PATH_END) == 0)
		return are_adjacent(c) == yes ? 0
					      : miss(c, "adjacent is %s", yes ? "false" : "true");
	if (strcmp(m->key, "annotations") == 0 && json_type(m->value) == JSON_OBJECT)
		return check_annotations(c, m->value);
	return err_set(err, EINVAL, "expectation %.40s is unknown, or its value of the wrong type",
		       m->key);
}

int story_expect(struct story *s, const struct json *expect, struct err *err)
{
	struct json_iter names = json_members(expect);
	struct json_member name, wanted;
	int rc = 0;

	if (json_type(expect) != JSON_OBJECT)
		return err_set(err, EINVAL, "expect needs names of pods or workloads");
	while (rc == 0 && json_next_member(&names, &name)) {
		struct cast c CLEANUP(cast_done) = { .story = s, .name = name.key };
		struct json_iter iter = json_members(name.value);

		rc = gather(&c, err);
		if (rc == 0 && !c.pods.len && !json_get(name.value, "pods"))
			miss(&c, "there is no such pod or workload");
		while (rc == 0 && (c.pods.len || json_get(name.value, "pods")) &&
		       json_next_member(&iter, &wanted))
			rc = check(&c, &wanted, err);
	}
	return rc;
}
