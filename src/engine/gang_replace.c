/* SPDX-License-Identifier: Apache-2.0 */
/* gang_replace.c - new places for members whose node or GPU failed; nothing else moves. */
#include "engine/gang_private.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"

/* How far a leaf is from where the member was; less is better. */
enum nearness {
	SAME_LEAF,
	LEAF_OF_GANG,
	ADJACENT_LEAF, /* to the one where it was */
	ADJACENT_TO_GANG,
	ELSEWHERE, /* and then by the smallest common domain */
};

struct repair {
	struct gang_planner *g;
	const struct gang_repair *spec;
	const struct gang_failed *failed; /* the one that is being placed */
	uint32_t common;		  /* of the gang; DOMAIN_NONE: none of it is left */
};

/* Where one member may go. */
struct option {
	uint32_t node;
	uint32_t nearness;
	uint32_t height; /* levels to climb until it is inside the gang's domain */
	uint64_t leaf_free_milli;
	uint32_t idle_gpus;
	bool fresh;    /* the gang does not use the node yet */
	bool unlikely; /* fresh, or for a gang that is to be spread the contrary */
	uint64_t rank;
};

static struct gang_leaf *leaf_of_gang(const struct gang_planner *g, uint32_t domain)
{
	for (size_t i = 0; i < g->leaves.len; i++)
		if (g->leaves.items[i].place == domain)
			return &g->leaves.items[i];
	return NULL;
}

/* Notes that the gang uses the node, with that much GPU. */
static int use_node(struct repair *r, uint32_t node, uint64_t milli)
{
	struct gang_planner *g = r->g;
	uint32_t domain = cluster_node(g->cluster, node)->domain;
	struct gang_leaf *leaf = leaf_of_gang(g, domain);

	if (!leaf) {
		struct gang_leaf fresh = { .place = domain };

		if (vec_push(&g->leaves, fresh) < 0)
			return -ENOMEM;
		leaf = &g->leaves.items[g->leaves.len - 1];
	}
	leaf->used_milli += milli;
	leaf->nodes += g->node_stamp.items[node] != g->node_stamp_now;
	g->node_stamp.items[node] = g->node_stamp_now;
	r->common = r->common == DOMAIN_NONE ? domain
					     : gang_domain_common(g->cluster, r->common, domain);
	return 0;
}

static uint64_t pod_milli(const struct pod *pod)
{
	uint64_t milli = 0;

	for (uint32_t i = 0; i < pod->holds_count; i++)
		if (pod->holds[i].kind == ASK_WHOLE)
			milli += CORE_WHOLE;
		else if (pod->holds[i].kind == ASK_SHARE)
			milli += pod->holds[i].core_milli;
	return milli;
}

static bool adjacent(const struct cluster *c, uint32_t a, uint32_t b)
{
	const struct domain *x = cluster_domain(c, a), *y = cluster_domain(c, b);

	return x->parent == y->parent &&
	       (x->position + 1 == y->position || y->position + 1 == x->position);
}

/* It is to lie on as many leaves as possible. */
static bool is_spread(const struct repair *r)
{
	return r->failed->request->strategy == STRATEGY_DISTRIBUTED;
}

static uint32_t nearness_of(const struct repair *r, uint32_t leaf)
{
	const struct gang_planner *g = r->g;
	const struct gang_leaf *own = leaf_of_gang(g, leaf);

	if (leaf == r->failed->leaf)
		return SAME_LEAF;
	if (is_spread(r)) /* the fewer of the gang are there the better */
		return SAME_LEAF + 1 + (own ? own->nodes : 0);
	if (own)
		return LEAF_OF_GANG;
	if (r->failed->leaf != DOMAIN_NONE && adjacent(g->cluster, leaf, r->failed->leaf))
		return ADJACENT_LEAF;
	for (size_t i = 0; i < g->leaves.len; i++)
		if (adjacent(g->cluster, leaf, g->leaves.items[i].place))
			return ADJACENT_TO_GANG;
	return ELSEWHERE;
}

/* Levels above the gang's smallest domain at which the leaf joins it; less is better. */
static uint32_t height_of(const struct repair *r, uint32_t leaf)
{
	uint32_t common, height;

	if (r->common == DOMAIN_NONE)
		return 0;
	common = gang_domain_common(r->g->cluster, r->common, leaf);
	height = cluster_domain(r->g->cluster, r->common)->level -
		 cluster_domain(r->g->cluster, common)->level;
	return is_spread(r) ? DOMAIN_LEVELS_MAX - height : height;
}

/* A required level stays kept with this leaf in the gang. */
static bool level_kept(const struct repair *r, uint32_t leaf)
{
	uint32_t common = leaf;

	if (r->spec->level_mode != GANG_REQUIRED || !r->spec->level)
		return true;
	if (r->common != DOMAIN_NONE)
		common = gang_domain_common(r->g->cluster, r->common, leaf);
	return cluster_domain(r->g->cluster, common)->level >= r->spec->level;
}

static bool option_better(const struct option *a, const struct option *b)
{
	if (b->node == NODE_NONE)
		return true;
	if (a->nearness != b->nearness)
		return a->nearness < b->nearness;
	if (a->height != b->height)
		return a->height < b->height;
	if (a->unlikely != b->unlikely)
		return b->unlikely;
	if (a->leaf_free_milli != b->leaf_free_milli)
		return a->leaf_free_milli < b->leaf_free_milli;
	if (a->idle_gpus != b->idle_gpus)
		return a->idle_gpus < b->idle_gpus;
	return a->rank < b->rank;
}

/* Whether the gang may take one more member in this leaf, on a used or a fresh node. */
static bool leaf_open(const struct repair *r, uint32_t domain, bool fresh)
{
	const struct gang_planner *g = r->g;
	const struct gang_leaf *leaf = leaf_of_gang(g, domain);
	uint64_t used = leaf ? leaf->used_milli : 0,
		 milli = gang_request_milli(r->failed->request);

	if (used + milli > g->leaf_milli_max)
		return false;
	return !fresh || (leaf ? leaf->nodes : 0) < g->leaf_nodes_max;
}

static void option_node(const struct repair *r, uint32_t node, struct option option,
			struct option *best)
{
	const struct gang_planner *g = r->g;
	const struct node *n = cluster_node(g->cluster, node);

	option.node = node;
	option.fresh = g->node_stamp.items[node] != g->node_stamp_now;
	option.unlikely = option.fresh != is_spread(r);
	option.idle_gpus = n->idle_gpus;
	option.rank = n->rank;
	if (n->idle_gpus >= g->whole_gpus && leaf_open(r, n->domain, option.fresh) &&
	    option_better(&option, best) && fit_node(g->cluster, r->failed->request, node) == FITS)
		*best = option;
}

/* The nodes directly in a domain, unless it is farther than the best so far. */
static void option_domain(const struct repair *r, uint32_t domain, struct option *best)
{
	const struct cluster *c = r->g->cluster;
	const struct domain *d = cluster_domain(c, domain);
	struct option option = {
		.nearness = nearness_of(r, domain),
		.height = height_of(r, domain),
		.leaf_free_milli = d->free_milli,
	};

	if (!d->blocks_count || !level_kept(r, domain) ||
	    (best->node != NODE_NONE &&
	     (option.nearness > best->nearness ||
	      (option.nearness == best->nearness && option.height > best->height))))
		return;
	for (uint32_t i = 0; i < d->blocks_count * BLOCK_NODES; i++) {
		uint32_t node = cluster_block_node(c, d->blocks[i / BLOCK_NODES], i % BLOCK_NODES);

		if (node != NODE_NONE)
			option_node(r, node, option, best);
	}
}

static void whole_gpus(struct gang_planner *g, const struct request *request)
{
	g->whole_gpus = 0;
	for (uint32_t i = 0; i < request->asks_count; i++)
		if (request->asks[i].kind == ASK_WHOLE)
			g->whole_gpus += request->asks[i].count;
}

/* Near leaves first, so that most others need no visit; figures rule out the rest. */
static struct option option_find(const struct repair *r)
{
	struct gang_planner *g = r->g;
	struct option best = { .node = NODE_NONE };
	uint32_t d = 0;

	whole_gpus(g, r->failed->request);
	if (r->failed->leaf != DOMAIN_NONE)
		option_domain(r, r->failed->leaf, &best);
	if (best.node != NODE_NONE)
		return best;
	while (d != DOMAIN_NONE) {
		bool may = cluster_nodes_with(g->cluster, d, g->whole_gpus) > 0;

		if (may)
			option_domain(r, d, &best);
		d = gang_domain_next(g->cluster, d, 0, may);
	}
	return best;
}

static void say_no_replacement(const struct repair *r)
{
	struct gang_result *ret = r->g->result;
	const struct gang_repair *spec = r->spec;
	bool held = spec->level_mode == GANG_REQUIRED && spec->level;

	if (!held)
		snprintf(ret->reason, sizeof(ret->reason),
			 "no node has room for gang member %s, whose place failed",
			 r->failed->pod->uid);
	else if (spec->level_name)
		snprintf(
			ret->reason, sizeof(ret->reason),
			"no node in the %s of its gang has room for member %s, whose place failed",
			spec->level_name, r->failed->pod->uid);
	else
		snprintf(ret->reason, sizeof(ret->reason),
			 "no node in the gang's domain of level %u has room for member %s, whose "
			 "place failed",
			 spec->level, r->failed->pod->uid);
}

static bool replace_one(struct repair *r, uint32_t index)
{
	struct gang_planner *g = r->g;
	struct gang_member *ret = &g->result->members[index];
	struct option option;
	int rc;

	r->failed = &r->spec->failed[index];
	option = option_find(r);
	if (option.node == NODE_NONE) {
		say_no_replacement(r);
		return false;
	}
	ret->class_index = 0;
	ret->index = index;
	rc = gang_place_member(g, r->failed->pod, r->failed->request, option.node, ret);
	if (rc == 0)
		rc = use_node(r, option.node, gang_request_milli(r->failed->request));
	if (rc < 0)
		g->failure = rc;
	return rc == 0;
}

static bool replace_all(struct repair *r)
{
	struct gang_planner *g = r->g;

	g->leaves.len = 0;
	g->node_stamp_now++;
	for (uint32_t i = 0; i < r->spec->kept_count && !g->failure; i++) {
		const struct pod *pod = cluster_pod(g->cluster, r->spec->kept[i]);

		g->failure = use_node(r, pod->node, pod_milli(pod));
	}
	g->plan = plan_begin(g->engine);
	if (!g->plan)
		g->failure = -ENOMEM;
	for (uint32_t i = 0; i < r->spec->failed_count && !g->failure; i++)
		if (!replace_one(r, i))
			return false;
	return !g->failure;
}

static int repair_check(const struct gang_planner *g, const struct gang_repair *repair,
			struct err *err)
{
	if (!repair->failed_count || repair->failed_count > GANG_MEMBERS_MAX ||
	    repair->kept_count > GANG_MEMBERS_MAX)
		return err_set(err, EINVAL, "1 to %d members of a gang can be replaced",
			       GANG_MEMBERS_MAX);
	for (uint32_t i = 0; i < repair->failed_count; i++)
		if (cluster_pod_find(g->cluster, repair->failed[i].pod->uid) != POD_NONE)
			return err_set(err, EEXIST, "gang member %s is still placed",
				       repair->failed[i].pod->uid);
	return 0;
}

int gang_replace(struct gang_planner *g, const struct gang_repair *repair, struct gang_result *ret,
		 struct err *err)
{
	struct gang_class class = { .count = repair->failed_count };
	struct gang_spec spec = { .classes = &class, .classes_count = 1 };
	struct repair r = { .g = g, .spec = repair, .common = DOMAIN_NONE };
	int rc;

	gang_result_clear(g, ret);
	rc = repair_check(g, repair, err);
	if (rc < 0)
		return rc;
	class.request = repair->failed[0].request;
	class.pods = repair->failed[0].pod;
	if (gang_begin(g, &spec, ret) < 0)
		return err_set(err, ENOMEM, "out of memory for a gang of %u",
			       repair->failed_count);
	ret->placed = replace_all(&r);
	if (ret->placed) {
		ret->members_count = repair->failed_count;
		g->failure = gang_result_finish(g, repair->kept, repair->kept_count);
	} else {
		plan_rollback(g->plan);
		g->plan = NULL;
	}
	return gang_result_end(g, err);
}
