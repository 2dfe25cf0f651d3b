/* SPDX-License-Identifier: Apache-2.0 */
/* gang_room.c - how many members a node, a leaf, a domain has room for.
 *
 * A node is probed on a copy: members are assigned and booked there until one is
 * refused.  The answer holds for every node in the same bucket.
 */
#include "engine/gang_private.h"

#include <string.h>

#include "base/attr.h"
#include "engine/cluster_private.h"

#define UNKNOWN UINT32_MAX

uint32_t gang_request_milli(const struct request *r)
{
	uint32_t milli = 0;

	for (uint32_t i = 0; i < r->asks_count; i++)
		if (r->asks[i].kind == ASK_WHOLE)
			milli += r->asks[i].count * CORE_WHOLE;
		else if (r->asks[i].kind == ASK_SHARE)
			milli += (uint32_t)r->asks[i].count * r->asks[i].core_milli;
	return milli;
}

/* `room` members at most if each needs `need` of what is left. */
static uint32_t limit(uint32_t room, int64_t need, int64_t left)
{
	if (need <= 0)
		return room;
	return left < need ? 0 : (uint32_t)MIN(left / need, (int64_t)room);
}

/* What everything but the GPUs allows. */
static uint32_t resources_room(const struct request *r, const struct node *n, uint32_t room)
{
	room = limit(room, r->needs.cpu_milli, n->free.cpu_milli);
	room = limit(room, r->needs.mem_bytes, n->free.mem_bytes);
	room = limit(room, r->needs.ephemeral_bytes, n->free.ephemeral_bytes);
	room = limit(room, r->needs.pods, n->free.pods);
	for (uint32_t i = 0; i < r->extended_count; i++) {
		int64_t left = 0;

		for (uint32_t j = 0; j < n->extended_count; j++)
			if (n->extended[j].resource == r->extended[i].resource)
				left = n->extended[j].amount;
		room = limit(room, r->extended[i].amount, left);
	}
	return room;
}

static bool trial_book(struct node *trial, const struct assignment *a, uint16_t seats)
{
	for (uint32_t i = 0; i < a->count; i++) {
		if (!hold_book(trial, &a->holds[i], seats))
			return false;
		trial->idle &= ~gpuset_one(a->holds[i].gpu);
	}
	trial->idle_gpus = (uint8_t)gpuset_count(trial->idle);
	return true;
}

/* `trial` is a copy with its own GPUs; its resources stay as they are. */
static uint32_t probe(const struct gang_planner *g, struct node *trial)
{
	uint32_t most = resources_room(g->request, trial, g->members), room = 0;
	struct assignment a;

	while (room < most && assign_state(g->cluster, NULL, g->request, trial, &a) == FITS &&
	       trial_book(trial, &a, g->cluster->config.seats)) {
		if (!a.count)
			return most;
		room++;
	}
	return room;
}

static uint32_t probe_now(const struct gang_planner *g, const struct node *n)
{
	struct gpu gpus[GPU_MAX];
	struct node trial = *n;

	memcpy(gpus, n->gpus, n->gpus_count * sizeof(*gpus));
	trial.gpus = gpus;
	return probe(g, &trial);
}

static void gpu_empty(struct gpu *gpu)
{
	gpu->core_free_milli = CORE_WHOLE;
	gpu->mem_free_mib = gpu->mem_mib;
	gpu->use = GPU_IDLE;
	gpu->group = 0;
	gpu->tenants = 0;
	memset(&gpu->mig, 0, sizeof(gpu->mig));
}

/* The node as if nothing ran there; its GPUs are copied into `gpus`. */
static struct node node_emptied(const struct node *n, struct gpu gpus[GPU_MAX])
{
	struct node trial = *n;

	memcpy(gpus, n->gpus, n->gpus_count * sizeof(*gpus));
	trial.gpus = gpus;
	trial.idle = 0;
	for (uint32_t i = 0; i < n->gpus_count; i++) {
		gpu_empty(&gpus[i]);
		if (gpus[i].healthy && !gpus[i].mig_mode)
			trial.idle |= gpuset_one(i);
	}
	trial.idle_gpus = (uint8_t)gpuset_count(trial.idle);
	trial.top_core_milli = CORE_WHOLE;
	trial.free_milli = trial.total_milli;
	trial.free = n->allocatable;
	trial.extended = n->extended_total;
	return trial;
}

static uint32_t probe_empty(const struct gang_planner *g, const struct node *n)
{
	struct gpu gpus[GPU_MAX];
	struct node trial = node_emptied(n, gpus);

	return probe(g, &trial);
}

static struct gang_memo *memo_of(struct gang_planner *g, uint32_t bucket)
{
	struct gang_memo *memo = &g->memo[bucket % GANG_MEMO];

	if (memo->stamp != g->stamp || memo->bucket != bucket)
		*memo = (struct gang_memo){
			.stamp = g->stamp,
			.bucket = bucket,
			.verdict = UNKNOWN,
			.empty_verdict = UNKNOWN,
			.room = UNKNOWN,
			.empty_room = UNKNOWN,
		};
	return memo;
}

uint32_t gang_node_room(struct gang_planner *g, uint32_t node)
{
	const struct node *n = cluster_node(g->cluster, node);
	struct gang_memo *memo;

	if (n->idle_gpus < g->whole_gpus || fit_place(g->cluster, g->request, node) != FITS)
		return 0;
	memo = memo_of(g, n->bucket);
	if (memo->room == UNKNOWN)
		memo->room = probe_now(g, n);
	return memo->room;
}

enum verdict gang_node_verdict(struct gang_planner *g, uint32_t node)
{
	const struct node *n = cluster_node(g->cluster, node);
	enum verdict v = fit_place(g->cluster, g->request, node);
	struct gang_memo *memo = memo_of(g, n->bucket);
	struct assignment a;

	if (v != FITS)
		return v;
	if (memo->verdict == UNKNOWN)
		memo->verdict = assign_state(g->cluster, NULL, g->request, n, &a);
	return (enum verdict)memo->verdict;
}

enum verdict gang_empty_verdict(struct gang_planner *g, uint32_t node)
{
	const struct node *n = cluster_node(g->cluster, node);
	enum verdict v = fit_identity(g->cluster, g->request, node);
	struct gang_memo *memo = memo_of(g, n->bucket);
	struct gpu gpus[GPU_MAX];
	struct assignment a;

	if (v != FITS)
		return v;
	if (memo->empty_verdict == UNKNOWN) {
		struct node trial = node_emptied(n, gpus);

		memo->empty_verdict = assign_state(g->cluster, NULL, g->request, &trial, &a);
	}
	return (enum verdict)memo->empty_verdict;
}

bool gang_class_fits(struct gang_planner *g)
{
	uint64_t sum = 0;

	for (uint32_t node = 0; node < cluster_nodes_end(g->cluster) && sum < g->members; node++)
		if (cluster_node(g->cluster, node)->name)
			sum += gang_node_room(g, node);
	return sum >= g->members;
}

static uint32_t node_empty_room(struct gang_planner *g, uint32_t node)
{
	const struct node *n = cluster_node(g->cluster, node);
	struct gang_memo *memo;

	if (n->gpus_count < g->whole_gpus || fit_identity(g->cluster, g->request, node) != FITS)
		return 0;
	memo = memo_of(g, n->bucket);
	if (memo->empty_room == UNKNOWN)
		memo->empty_room = probe_empty(g, n);
	return memo->empty_room;
}

/* Members on one node with that many idle GPUs, at most. */
static uint32_t idle_room(const struct gang_planner *g, uint32_t idle)
{
	return g->whole_gpus ? MIN(idle / g->whole_gpus, g->members) : g->members;
}

/* What the figures of a domain allow, without a visit to its nodes. */
static void room_bound(const struct gang_planner *g, uint32_t domain, struct gang_room *room)
{
	const struct domain *d = cluster_domain(g->cluster, domain);
	bool is_leaf = d->first_child == DOMAIN_NONE;
	uint64_t all = 0, bounded = 0, nodes_left = is_leaf ? g->leaf_nodes_max : UINT32_MAX;

	for (uint32_t idle = GPU_MAX + 1; idle-- > g->whole_gpus;) {
		uint64_t nodes = d->nodes_by_idle[idle];

		all += nodes * idle_room(g, idle);
		nodes = MIN(nodes, nodes_left);
		nodes_left -= nodes;
		bounded += nodes * idle_room(g, idle);
	}
	if (is_leaf)
		bounded = MIN(bounded, g->leaf_members_max);
	room->free_members = (uint32_t)MIN(all, UNKNOWN / 2);
	room->members = (uint32_t)MIN(bounded, UNKNOWN / 2);
}

struct gang_room *gang_room(struct gang_planner *g, uint32_t place)
{
	struct gang_room *room = &g->rooms.items[place];

	if (room->stamp == g->stamp)
		return room;
	*room = (struct gang_room){ .stamp = g->stamp, .empty_members = UNKNOWN };
	if (place < cluster_domains(g->cluster))
		room_bound(g, place, room);
	else
		gang_room_exact(g, place);
	return room;
}

static int spot_compare(const void *a, const void *b)
{
	const struct gang_spot *x = a, *y = b;

	if (x->room != y->room)
		return x->room > y->room ? -1 : 1;
	if (x->idle_gpus != y->idle_gpus)
		return x->idle_gpus < y->idle_gpus ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static void spot_add(struct gang_planner *g, uint32_t node)
{
	const struct node *n = cluster_node(g->cluster, node);
	struct gang_spot spot = {
		.rank = n->rank,
		.node = node,
		.room = gang_node_room(g, node),
		.idle_gpus = n->idle_gpus,
	};

	if (spot.room && vec_push(&g->spots, spot) < 0)
		g->failure = -ENOMEM;
}

/* The nodes directly in the domain, best first, and what they sum up to. */
static void place_visit(struct gang_planner *g, uint32_t place, struct gang_room *room)
{
	const struct domain *d = cluster_domain(g->cluster, gang_place_domain(g, place));
	uint64_t all = 0, bounded = 0;
	struct gang_spot *spots;

	room->first = (uint32_t)g->spots.len;
	for (uint32_t i = 0; i < d->blocks_count * BLOCK_NODES; i++) {
		uint32_t node = cluster_block_node(g->cluster, d->blocks[i / BLOCK_NODES],
						   i % BLOCK_NODES);

		if (node != NODE_NONE)
			spot_add(g, node);
	}
	room->count = (uint32_t)g->spots.len - room->first;
	room->members = room->free_members = 0;
	if (!room->count)
		return;
	spots = g->spots.items + room->first;
	qsort(spots, room->count, sizeof(*spots), spot_compare);
	for (uint32_t i = 0; i < room->count; i++) {
		all += spots[i].room;
		bounded += i < g->leaf_nodes_max ? spots[i].room : 0;
	}
	room->free_members = (uint32_t)MIN(all, UNKNOWN / 2);
	room->members = (uint32_t)MIN(MIN(bounded, g->leaf_members_max), UNKNOWN / 2);
}

/* A domain with others below it: the sum of its leaves, and of its own nodes. */
static void domain_visit(struct gang_planner *g, uint32_t domain, struct gang_room *room)
{
	uint32_t domains = cluster_domains(g->cluster);
	uint64_t all = 0, bounded = 0;

	for (uint32_t d = domain; d != DOMAIN_NONE;
	     d = gang_domain_next(g->cluster, d, domain, true)) {
		bool own = !gang_is_place(g, d);
		const struct gang_room *below = NULL;

		if (!own)
			below = gang_room_exact(g, d);
		else if (cluster_domain(g->cluster, d)->blocks_count)
			below = gang_room_exact(g, domains + d);
		all += below ? below->free_members : 0;
		bounded += below ? below->members : 0;
	}
	room->free_members = (uint32_t)MIN(all, UNKNOWN / 2);
	room->members = (uint32_t)MIN(bounded, UNKNOWN / 2);
}

struct gang_room *gang_room_exact(struct gang_planner *g, uint32_t place)
{
	struct gang_room *room = &g->rooms.items[place];

	if (room->stamp != g->stamp)
		*room = (struct gang_room){ .stamp = g->stamp, .empty_members = UNKNOWN };
	if (room->exact)
		return room;
	room->exact = true;
	if (gang_is_place(g, place))
		place_visit(g, place, room);
	else
		domain_visit(g, place, room);
	return room;
}

static int number_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x > y ? -1 : x < y;
}

/* Only the roomiest nodes count, as many as a gang may take of one leaf. */
static uint32_t place_empty(struct gang_planner *g, uint32_t place)
{
	const struct domain *d = cluster_domain(g->cluster, gang_place_domain(g, place));
	VEC(uint32_t) rooms CLEANUP(vec_cleanup) = { 0 };
	uint64_t sum = 0;

	for (uint32_t i = 0; i < d->blocks_count * BLOCK_NODES; i++) {
		uint32_t node = cluster_block_node(g->cluster, d->blocks[i / BLOCK_NODES],
						   i % BLOCK_NODES);

		if (node != NODE_NONE && vec_push(&rooms, node_empty_room(g, node)) < 0)
			g->failure = -ENOMEM;
	}
	if (rooms.len)
		qsort(rooms.items, rooms.len, sizeof(*rooms.items), number_compare);
	for (size_t i = 0; i < rooms.len && i < g->leaf_nodes_max; i++)
		sum += rooms.items[i];
	return (uint32_t)MIN(MIN(sum, g->leaf_members_max), UNKNOWN / 2);
}

uint32_t gang_room_empty(struct gang_planner *g, uint32_t place)
{
	struct gang_room *room = gang_room(g, place);
	uint64_t sum = 0;

	if (room->empty_members != UNKNOWN)
		return room->empty_members;
	if (gang_is_place(g, place))
		return room->empty_members = place_empty(g, place);
	for (uint32_t d = place; d != DOMAIN_NONE;
	     d = gang_domain_next(g->cluster, d, place, true))
		if (gang_is_place(g, d))
			sum += gang_room_empty(g, d);
	return room->empty_members = (uint32_t)MIN(sum, UNKNOWN / 2);
}

uint32_t gang_empty_node_room(struct gang_planner *g)
{
	uint32_t best = 0;

	for (uint32_t node = 0; node < cluster_nodes_end(g->cluster); node++)
		if (cluster_node(g->cluster, node)->name)
			best = MAX(best, node_empty_room(g, node));
	return best;
}

static void histogram_add(struct gang_planner *g, uint32_t room, uint64_t nodes, int sign)
{
	if (!room || !nodes)
		return;
	g->top_room = MAX(g->top_room, room);
	g->nodes_by_room.items[room] += (uint32_t)nodes * (uint32_t)sign;
}

/* Nodes of equal room, as far as the bounds of the leaf go. */
static void histogram_nodes(struct gang_planner *g, uint32_t room, uint64_t nodes, int sign,
			    uint64_t *nodes_left, uint64_t *members_left)
{
	uint64_t whole;

	if (!room)
		return;
	nodes = MIN(nodes, *nodes_left);
	whole = MIN(nodes, *members_left / room);
	histogram_add(g, room, whole, sign);
	*members_left -= whole * room;
	*nodes_left -= whole;
	if (whole == nodes)
		return;
	histogram_add(g, (uint32_t)*members_left, 1, sign);
	*members_left = 0;
	*nodes_left = 0;
}

static void histogram_place(struct gang_planner *g, uint32_t place, int sign)
{
	const struct gang_room *room = gang_room(g, place);
	uint64_t nodes_left = g->leaf_nodes_max, members_left = g->leaf_members_max;

	if (room->exact) {
		for (uint32_t i = 0; i < room->count && nodes_left; i++)
			histogram_nodes(g, g->spots.items[room->first + i].room, 1, sign,
					&nodes_left, &members_left);
		return;
	}
	for (uint32_t idle = GPU_MAX + 1; idle-- > g->whole_gpus && nodes_left;)
		histogram_nodes(g, idle_room(g, idle),
				cluster_domain(g->cluster, place)->nodes_by_idle[idle], sign,
				&nodes_left, &members_left);
}

void gang_histogram(struct gang_planner *g, uint32_t place, int sign)
{
	if (gang_is_place(g, place)) {
		histogram_place(g, place, sign);
		return;
	}
	for (uint32_t d = place; d != DOMAIN_NONE;
	     d = gang_domain_next(g->cluster, d, place, true))
		if (gang_is_place(g, d))
			histogram_place(g, d, sign);
}

uint32_t gang_fewest_nodes(const struct gang_planner *g)
{
	uint32_t left = g->members, nodes = 0;

	for (uint32_t room = g->top_room; room && left; room--) {
		uint64_t here = g->nodes_by_room.items[room];

		if (here * room >= left)
			return nodes + (left + room - 1) / room;
		nodes += (uint32_t)here;
		left -= (uint32_t)(here * room);
	}
	return nodes;
}

uint64_t gang_volume(const struct gang_planner *g, uint32_t place)
{
	uint64_t milli = cluster_domain(g->cluster, gang_place_domain(g, place))->free_milli;

	return gang_is_place(g, place) ? MIN(milli, g->leaf_milli_max) : milli;
}
