/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/draft.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/suggest.h"
#include "engine/cluster.h"
#include "wire/json.h"

struct ask *draft_ask(struct draft *d, enum ask_kind kind, uint8_t count, struct err *err)
{
	struct ask *ask = request_add_ask(d->request, kind, count);

	if (!ask)
		err_set(err, EINVAL, "more than %d containers of the pod ask for GPUs", ASK_MAX);
	return ask;
}

struct ask *draft_ask_for_all(struct draft *d, enum ask_kind kind, uint8_t count, struct err *err)
{
	uint16_t bit = (uint16_t)(1u << d->request->asks_count);
	struct ask *ask = draft_ask(d, kind, count, err);

	for (unsigned i = 0; ask && i < d->wish->containers_count; i++)
		d->wish->containers[i].asks |= bit;
	return ask;
}

void draft_merge_last(struct draft *d, unsigned into)
{
	struct request *r = d->request;
	unsigned last = --r->asks_count;
	struct ask *ask = &r->asks[into];

	ask->core_milli = (uint16_t)(ask->core_milli + r->asks[last].core_milli);
	ask->mem_mib += r->asks[last].mem_mib;
	/* Requests are compared byte by byte. */
	memset(&r->asks[last], 0, sizeof(*ask));
	for (unsigned i = 0; i < d->wish->containers_count; i++) {
		struct wish_container *box = &d->wish->containers[i];

		if (!(box->asks >> last & 1))
			continue;
		box->asks &= (uint16_t) ~(1u << last);
		box->asks |= (uint16_t)(1u << into);
	}
}

uint32_t draft_cards(const struct draft *d)
{
	uint32_t cards = 0;

	for (unsigned i = 0; i < d->request->asks_count; i++)
		cards += d->request->asks[i].count;
	return cards;
}

enum ask_kind draft_other_kind(const struct draft *d, enum ask_kind kind)
{
	for (unsigned i = 0; i < d->request->asks_count; i++)
		if (d->request->asks[i].kind != kind)
			return d->request->asks[i].kind;
	return 0;
}

const char *draft_kind_name(enum ask_kind kind)
{
	switch (kind) {
	case ASK_WHOLE:
		return "whole GPUs";
	case ASK_SHARE:
		return "shares of GPUs";
	case ASK_MIG:
		return "MIG slices";
	}
	return "GPUs";
}

const char *draft_ask_verb(const struct draft *d)
{
	return d->asked_by_many ? "ask" : "asks";
}

/* What the pod itself wants the label to be: a value that no node has is known nowhere else. */
static const char *selected(const struct draft *d, const struct label *label, const char *key)
{
	const char *value = json_str(d->source->object, "spec", "nodeSelector", key);

	return value ? value : cluster_string(d->cluster, label->value);
}

int draft_select(struct draft *d, const char *key, const char *value, struct err *err)
{
	struct request *r = d->request;
	/* What no node has is not remembered for the pod's sake: it matches nothing now. */
	struct label label = { cluster_find(d->cluster, key), cluster_find(d->cluster, value) };

	for (unsigned i = 0; i < r->selector_count; i++) {
		if (r->selector[i].key != label.key)
			continue;
		if (r->selector[i].value == label.value || label.key == UINT32_MAX)
			return 0;
		return err_set(err, EINVAL, "the node label %s is to be both \"%s\" and \"%s\"",
			       key, selected(d, &r->selector[i], key), value);
	}
	if (r->selector_count == SELECTOR_MAX)
		return err_set(err, EINVAL, "the pod selects nodes by more than %d labels",
			       SELECTOR_MAX);
	r->selector[r->selector_count++] = label;
	return 0;
}

int draft_pin_node(struct draft *d, const char *node, const char *who, struct err *err)
{
	uint32_t number = cluster_node_find(d->cluster, node);

	if (number == NODE_NONE)
		return err_set(err, ENOENT, "%s: node %s does not exist", who, node);
	if (d->request->node != NODE_NONE && d->request->node != number)
		return err_set(err, EINVAL, "%s names node %s, but the pod is bound to node %s",
			       who, node, cluster_node(d->cluster, d->request->node)->name);
	d->request->node = number;
	return 0;
}

const char *draft_nearest_key(const char *key, const char *const *known, size_t count)
{
	const char *names[DRAFT_KEYS_MAX];
	size_t prefix = strcspn(key, "/") + 1, n = 0;

	/* What they have in common would make every key near. */
	for (size_t i = 0; i < count && n < DRAFT_KEYS_MAX; i++)
		if (strncmp(known[i], key, prefix) == 0)
			names[n++] = known[i] + prefix;
	const char *near = n ? suggest(key + prefix, names, n) : NULL;
	return near ? near - prefix : NULL;
}

const char *draft_annotation(const struct draft *d, const char *key)
{
	return json_str(d->source->object, "metadata", "annotations", key);
}

char *draft_printf(const struct draft *d, const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	int n = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (n < 0)
		return NULL;
	return arena_strndup(d->arena, text, MIN((size_t)n, sizeof(text) - 1));
}
