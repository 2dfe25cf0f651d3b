/* SPDX-License-Identifier: Apache-2.0 */
/* pin.c - the map dialect, applied: the pod goes to the node and GPUs of its line.
 *
 * Where limits or a claim ask for GPUs too, the ids of the line are dealt out to them
 * in their order.  A GPU that several lines name is shared by just these pods, an equal
 * part each, from the first one on.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "dialect/draft.h"
#include "dialect/keys.h"
#include "dialect/map.h"
#include "dialect/pack.h"
#include "engine/cluster.h"
#include "wire/json.h"

/* A name for the pods of which no two may have the same index: those of one workload, which of
 * a Deployment has the pods of several ReplicaSets and perhaps several maps while it rolls; else
 * those that carry the same text. */
static const char *workload_name(const struct draft *d, const char *text)
{
	uint32_t count = d->source->owners_count;
	const struct json *owner = count ? d->source->owners[count - 1] : NULL;
	const char *kind = json_str(owner, "kind"), *name = json_str(owner, "metadata", "name");

	if (kind && name)
		return draft_printf(d, "map/%s/%s/%s", d->source->namespace, kind, name);
	return draft_printf(d, "map/%s/%016" PRIx64, d->source->namespace,
			    hash_bytes(text, strlen(text), 0));
}

/* Those of them that share the GPUs of one map. */
static uint32_t group_of(const struct draft *d, const char *text)
{
	const char *workload = d->wish->workload;
	uint64_t hash = hash_bytes(workload, strlen(workload), 0);

	return cluster_group(d->cluster, hash_bytes(text, strlen(text), hash));
}

/* The pod's own index, else the lowest that nobody holds; one past the map's last when all
 * are held. */
static uint32_t index_in(const struct draft *d, const struct placement_map *map,
			 const char *workload)
{
	uint32_t index = 0, last = MIN(map->lines[map->count - 1].index, MAP_LINES_MAX);

	if (d->source->index != POD_INDEX_NONE)
		return (uint32_t)d->source->index;
	while (index <= last && d->lookup->index_taken(d->lookup->context, workload, index))
		index++;
	return index;
}

static int check_ids(const struct draft *d, const struct map_line *line, struct err *err)
{
	const struct node *node = cluster_node(d->cluster, d->request->node);
	uint32_t missing = line->gpus & ~gpuset_range(0, node->gpus_count);

	if (!missing)
		return 0;
	return err_set(err, ENOENT, KEY_MAP " line %u: node %s has no GPU %u, it has %u GPUs",
		       line->line, line->node, gpuset_first(missing), node->gpus_count);
}

/* The GPUs of `gpus` that as many lines name as the first of them. */
static uint32_t alike(const struct map_line *line, uint32_t gpus)
{
	uint16_t sharers = line->sharers[gpuset_first(gpus)];
	uint32_t same = 0;

	for (uint32_t left = gpus; left; left &= left - 1)
		if (line->sharers[gpuset_first(left)] == sharers)
			same |= gpuset_one(gpuset_first(left));
	return same;
}

/* The pods that share the card must all have room for as much as this one. */
static int check_part(const struct draft *d, const struct ask *ask, const struct map_line *line,
		      uint32_t gpus, struct err *err)
{
	const struct node *node = cluster_node(d->cluster, d->request->node);

	for (uint32_t left = gpus; left; left &= left - 1) {
		unsigned id = gpuset_first(left), sharers = line->sharers[id];

		if ((uint32_t)ask->core_milli * sharers > CORE_WHOLE)
			return err_set(err, EINVAL,
				       KEY_MAP " line %u: %u pods share GPU %u, which is less "
					       "than the pod's limits ask for",
				       line->line, sharers, id);
		if ((uint64_t)ask->mem_mib * sharers > node->gpus[id].mem_mib)
			return err_set(err, EINVAL,
				       KEY_MAP " line %u: %u pods share the %u MiB of GPU %u, "
					       "which is less than the %u MiB that each asks for",
				       line->line, sharers, node->gpus[id].mem_mib, id,
				       ask->mem_mib);
	}
	return 0;
}

static int pin_ask(const struct draft *d, struct ask *ask, const struct map_line *line,
		   uint32_t gpus, uint32_t group, struct err *err)
{
	uint16_t sharers = line->sharers[gpuset_first(gpus)];

	ask->pinned = gpus;
	ask->count = (uint8_t)gpuset_count(gpus);
	if (sharers == 1)
		return 0;
	if (ask->kind == ASK_SHARE) {
		ask->group = group;
		return check_part(d, ask, line, gpus, err);
	}
	ask->kind = ASK_SHARE;
	ask->core_milli = (uint16_t)(CORE_WHOLE / sharers);
	ask->mem_milli = (uint16_t)(CORE_WHOLE / sharers);
	ask->group = group;
	return 0;
}

/* A second ask for those who have the first: its GPUs are not all shared alike. */
static struct ask *split(struct draft *d, unsigned from, struct err *err)
{
	unsigned number = d->request->asks_count;
	struct ask *ask = draft_ask(d, d->request->asks[from].kind, 1, err);

	if (!ask)
		return NULL;
	*ask = d->request->asks[from];
	for (unsigned i = 0; i < d->wish->containers_count; i++)
		if (d->wish->containers[i].asks >> from & 1)
			d->wish->containers[i].asks |= (uint16_t)(1u << number);
	return ask;
}

/* Who takes only the first GPUs of an ask takes them from its parts, in their order. */
static void split_takes(struct draft *d, unsigned from, unsigned parts)
{
	for (unsigned i = 0; i < d->wish->containers_count; i++) {
		struct wish_container *box = &d->wish->containers[i];
		uint8_t left = box->take[from];

		if (!(box->asks >> from & 1) || !left)
			continue;
		for (unsigned j = 0, part = from; j < parts; j++) {
			uint8_t count = d->request->asks[part].count;

			if (!left)
				box->asks &= (uint16_t) ~(1u << part);
			box->take[part] = left < count ? left : 0;
			left = (uint8_t)(left - MIN(left, count));
			part = d->request->asks_count - (parts - 1) + j;
		}
	}
}

/* Pins one ask to these GPUs, by as many asks as there are ways to share them. */
static int deal(struct draft *d, unsigned number, const struct map_line *line, uint32_t gpus,
		uint32_t group, struct err *err)
{
	const struct ask original = d->request->asks[number];
	uint32_t same = alike(line, gpus);
	unsigned parts = 1;
	int rc = pin_ask(d, &d->request->asks[number], line, same, group, err);

	while (rc == 0 && (gpus &= ~same)) {
		struct ask *ask = split(d, number, err);

		if (!ask)
			return -EINVAL;
		*ask = original;
		same = alike(line, gpus);
		rc = pin_ask(d, ask, line, same, group, err);
		parts++;
	}
	split_takes(d, number, parts);
	return rc;
}

/* The part of each card of the line that is this pod's. */
static unsigned line_cards(const struct draft *d, const struct map_line *line, uint32_t gpus,
			   struct pack_card *cards)
{
	const struct node *node = cluster_node(d->cluster, d->request->node);
	unsigned count = 0;

	for (; gpus; gpus &= gpus - 1) {
		unsigned id = gpuset_first(gpus);

		cards[count++] = (struct pack_card){
			.core_milli = CORE_WHOLE / line->sharers[id],
			.mem_mib = node->gpus[id].mem_mib / line->sharers[id],
		};
	}
	return count;
}

static uint32_t nth_gpu(uint32_t gpus, unsigned n)
{
	return gpuset_lowest(gpus, n + 1) & ~gpuset_lowest(gpus, n);
}

/* More shares than cards: they lie together on what whole cards leave. */
static int deal_shares(const struct draft *d, const struct map_line *line, uint32_t gpus,
		       uint32_t *dealt, struct err *err)
{
	struct pack_card cards[GPU_MAX];
	unsigned count = line_cards(d, line, gpus, cards);

	for (unsigned i = 0; i < d->request->asks_count; i++) {
		const struct ask *ask = &d->request->asks[i];

		if (ask->kind != ASK_SHARE)
			continue;
		int card = pack_share(cards, count, ask);
		if (card < 0)
			return err_set(err, EINVAL,
				       KEY_MAP " line %u: the shares that %s %s for have no room "
					       "together on its GPUs",
				       line->line, d->asked_by, draft_ask_verb(d));
		dealt[i] = nth_gpu(gpus, (unsigned)card);
	}
	return 0;
}

/* Which of the line's GPUs each ask gets, in their order. */
static int deal_ids(const struct draft *d, const struct map_line *line, uint32_t *dealt,
		    struct err *err)
{
	bool together = draft_cards(d) > gpuset_count(line->gpus);
	uint32_t left = line->gpus;

	for (unsigned i = 0; i < d->request->asks_count; i++) {
		if (together && d->request->asks[i].kind == ASK_SHARE)
			continue;
		dealt[i] = gpuset_lowest(left, d->request->asks[i].count);
		left &= ~dealt[i];
	}
	return together ? deal_shares(d, line, left, dealt, err) : 0;
}

static int deal_all(struct draft *d, const struct map_line *line, uint32_t group, struct err *err)
{
	unsigned asks = d->request->asks_count;
	uint32_t dealt[ASK_MAX] = { 0 };
	int rc = deal_ids(d, line, dealt, err);

	for (unsigned i = 0; i < asks && rc == 0; i++)
		rc = deal(d, i, line, dealt[i], group, err);
	return rc;
}

/* Cards that the asks need at least: shares may lie together. */
static unsigned least_cards(const struct draft *d)
{
	unsigned whole = 0, shares = 0;

	for (unsigned i = 0; i < d->request->asks_count; i++) {
		const struct ask *ask = &d->request->asks[i];

		if (ask->kind == ASK_SHARE)
			shares = MAX(shares, ask->count);
		else
			whole += ask->count;
	}
	return whole + shares;
}

static int check_asks(struct draft *d, const struct map_line *line, struct err *err)
{
	unsigned count = gpuset_count(line->gpus);

	for (unsigned i = 0; i < d->request->asks_count; i++)
		if (d->request->asks[i].kind == ASK_MIG)
			return err_set(err, EINVAL,
				       KEY_MAP " pins whole GPUs, but %s %s for MIG slices",
				       d->asked_by, draft_ask_verb(d));
	if (count < least_cards(d) || count > draft_cards(d))
		return err_set(err, EINVAL, KEY_MAP " line %u gives %u GPU%s, but %s %s for %u",
			       line->line, count, count == 1 ? "" : "s", d->asked_by,
			       draft_ask_verb(d), draft_cards(d));
	return 0;
}

static int apply(struct draft *d, const struct map_line *line, uint32_t group, struct err *err)
{
	char who[64];
	int rc;

	snprintf(who, sizeof(who), KEY_MAP " line %u", line->line);
	if ((rc = draft_pin_node(d, line->node, who, err)) < 0 ||
	    (rc = check_ids(d, line, err)) < 0)
		return rc;
	if (d->asked_by)
		rc = check_asks(d, line, err);
	else if (!draft_ask_for_all(d, ASK_WHOLE, (uint8_t)gpuset_count(line->gpus), err))
		rc = -EINVAL;
	if (rc < 0)
		return rc;
	rc = deal_all(d, line, group, err);
	d->asked_by = KEY_MAP;
	d->asked_by_many = false;
	return rc;
}

/* The map may stand on what owns the pod, as other annotations of workloads do. */
static const char *map_text(const struct draft *d)
{
	const char *text = draft_annotation(d, KEY_MAP);

	for (uint32_t i = 0; !text && i < d->source->owners_count; i++)
		text = json_str(d->source->owners[i], "metadata", "annotations", KEY_MAP);
	return text;
}

int read_map(struct draft *d, struct err *err)
{
	const char *text = map_text(d);
	struct placement_map map;

	if (!text)
		return 0;
	int rc = placement_map_parse(text, d->arena, &map, err);
	if (rc < 0)
		return rc;
	d->wish->workload = workload_name(d, text);
	if (!d->wish->workload)
		return err_set(err, ENOMEM, "out of memory");
	/* Which index one that is there has, its decision says; a free one is not its own. */
	if (d->resident && d->source->index == POD_INDEX_NONE)
		return 0;
	d->wish->index = index_in(d, &map, d->wish->workload);
	d->wish->index_chosen = d->source->index == POD_INDEX_NONE;
	const struct map_line *line = placement_map_find(&map, d->wish->index);
	if (!line) /* one whose index is not its own may have another's when that is gone */
		return err_set(err, d->source->index == POD_INDEX_NONE ? ENOSPC : EINVAL,
			       KEY_MAP " has no line for pod index %u", d->wish->index);
	return apply(d, line, group_of(d, text), err);
}
