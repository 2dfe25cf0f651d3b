/* SPDX-License-Identifier: Apache-2.0 */
/* gang.c - the entry, and what is told of a gang that was placed. */
#include "engine/gang_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"

struct gang_planner *gang_planner_new(struct engine *e)
{
	struct gang_planner *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->engine = e;
	g->cluster = engine_cluster(e);
	return g;
}

void gang_planner_free(struct gang_planner *g)
{
	if (!g)
		return;
	vec_done(&g->rooms);
	vec_done(&g->spots);
	vec_done(&g->picks);
	vec_done(&g->others);
	vec_done(&g->parents);
	vec_done(&g->units);
	vec_done(&g->bans);
	vec_done(&g->leaves);
	vec_done(&g->nodes_by_room);
	vec_done(&g->node_stamp);
	free(g);
}

void gang_result_done(struct gang_result *result)
{
	if (!result)
		return;
	free(result->members);
	free(result->leaves);
	memset(result, 0, sizeof(*result));
}

static int members_reserve(struct gang_result *ret, uint32_t members)
{
	if (members > ret->members_room) {
		struct gang_member *more = realloc(ret->members, members * sizeof(*ret->members));

		if (!more)
			return -ENOMEM;
		ret->members = more;
		ret->members_room = members;
	}
	return 0;
}

static int leaves_reserve(struct gang_result *ret, uint32_t leaves)
{
	if (leaves > ret->leaves_room) {
		uint32_t *more = realloc(ret->leaves, leaves * sizeof(*ret->leaves));

		if (!more)
			return -ENOMEM;
		ret->leaves = more;
		ret->leaves_room = leaves;
	}
	return 0;
}

static int domain_compare(const void *a, const void *b, void *cluster)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (x == y)
		return 0;
	return gang_domain_before(cluster, x, y) ? -1 : 1;
}

/* Counts the node of a member, and notes its leaf; leaves come repeated. */
static void finish_node(struct gang_planner *g, uint32_t node)
{
	struct gang_result *ret = g->result;
	uint32_t leaf = cluster_node(g->cluster, node)->domain;

	if (g->node_stamp.items[node] != g->node_stamp_now)
		ret->nodes_count++;
	g->node_stamp.items[node] = g->node_stamp_now;
	if (!ret->leaves_count || ret->leaves[ret->leaves_count - 1] != leaf)
		ret->leaves[ret->leaves_count++] = leaf;
}

static void leaves_unique(struct gang_result *ret, struct cluster *c)
{
	uint32_t kept = 0;

	qsort_r(ret->leaves, ret->leaves_count, sizeof(*ret->leaves), domain_compare, c);
	for (uint32_t i = 0; i < ret->leaves_count; i++)
		if (!kept || ret->leaves[kept - 1] != ret->leaves[i])
			ret->leaves[kept++] = ret->leaves[i];
	ret->leaves_count = kept;
}

static bool leaves_adjacent(const struct gang_result *ret, const struct cluster *c)
{
	for (uint32_t i = 0; i < ret->leaves_count; i++) {
		const struct domain *d = cluster_domain(c, ret->leaves[i]), *before;

		if (d->first_child != DOMAIN_NONE)
			return false;
		if (!i)
			continue;
		before = cluster_domain(c, ret->leaves[i - 1]);
		if (d->parent != before->parent || d->position != before->position + 1)
			return false;
	}
	return true;
}

int gang_result_finish(struct gang_planner *g, const uint32_t *kept, uint32_t kept_count)
{
	struct gang_result *ret = g->result;

	if (leaves_reserve(ret, ret->members_count + kept_count) < 0)
		return -ENOMEM;
	g->node_stamp_now++;
	ret->leaves_count = 0;
	ret->nodes_count = 0;
	for (uint32_t i = 0; i < ret->members_count; i++)
		finish_node(g, ret->members[i].decision.node);
	for (uint32_t i = 0; i < kept_count; i++)
		finish_node(g, cluster_pod(g->cluster, kept[i])->node);
	leaves_unique(ret, g->cluster);
	ret->adjacent = leaves_adjacent(ret, g->cluster);
	ret->common = ret->leaves[0];
	for (uint32_t i = 1; i < ret->leaves_count; i++)
		ret->common = gang_domain_common(g->cluster, ret->common, ret->leaves[i]);
	return 0;
}

static int spec_check(const struct gang_planner *g, const struct gang_spec *spec, struct err *err)
{
	uint64_t members = 0;

	if (!spec->classes_count || spec->classes_count > GANG_CLASSES_MAX)
		return err_set(err, EINVAL, "a gang has 1 to %d kinds of members, not %u",
			       GANG_CLASSES_MAX, spec->classes_count);
	for (uint32_t i = 0; i < spec->classes_count; i++) {
		const struct gang_class *class = &spec->classes[i];

		members += class->count;
		if (!class->count || members > GANG_MEMBERS_MAX)
			return err_set(err, EINVAL, "a gang has 1 to %d members",
				       GANG_MEMBERS_MAX);
		for (uint32_t j = 0; j < class->count; j++)
			if (cluster_pod_find(g->cluster, class->pods[j].uid) != POD_NONE)
				return err_set(err, EEXIST, "gang member %s is placed already",
					       class->pods[j].uid);
	}
	return 0;
}

static bool class_larger(const struct gang_class *a, const struct gang_class *b)
{
	uint32_t a_milli = request_gpu_milli(a->request), b_milli = request_gpu_milli(b->request);

	if (a_milli != b_milli)
		return a_milli > b_milli;
	if (a->request->needs.cpu_milli != b->request->needs.cpu_milli)
		return a->request->needs.cpu_milli > b->request->needs.cpu_milli;
	return a->count > b->count;
}

/* Large members first, for they have fewer choices. */
static void classes_sort(struct gang_planner *g)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < g->spec->classes_count; i++) {
		const struct gang_class *class = &g->spec->classes[i];
		uint32_t at = i;

		g->class_first[i] = first;
		first += class->count;
		for (; at && class_larger(class, &g->spec->classes[g->class_order[at - 1]]); at--)
			g->class_order[at] = g->class_order[at - 1];
		g->class_order[at] = i;
	}
	g->all_members = first;
}

static void class_enter(struct gang_planner *g, uint32_t class)
{
	g->main_class = class;
	g->request = g->spec->classes[class].request;
	g->members = g->spec->classes[class].count;
	g->whole_gpus = 0;
	for (uint32_t i = 0; i < g->request->asks_count; i++)
		if (g->request->asks[i].kind == ASK_WHOLE)
			g->whole_gpus += g->request->asks[i].count;
}

static void volume_sum(struct gang_planner *g)
{
	uint64_t milli = 0;

	g->member_milli = gang_request_milli(g->request);
	g->volume_milli = 0;
	g->empty_need = g->members;
	if (g->spec->classes_count == 1)
		return;
	for (uint32_t i = 0; i < g->spec->classes_count; i++)
		milli += (uint64_t)g->spec->classes[i].count *
			 gang_request_milli(g->spec->classes[i].request);
	g->volume_milli = milli;
	if (g->member_milli)
		g->empty_need = (uint32_t)((milli + g->member_milli - 1) / g->member_milli);
}

static void limits_read(struct gang_planner *g)
{
	const struct engine_config *config = engine_config(g->engine);
	uint64_t milli = (uint64_t)config->max_gpus_per_leaf * CORE_WHOLE;

	g->leaf_nodes_max = config->max_nodes_per_leaf ? config->max_nodes_per_leaf : UINT32_MAX;
	g->leaf_milli_max = milli ? milli : UINT64_MAX;
	g->leaf_members_max = UINT32_MAX;
	if (milli && g->member_milli)
		g->leaf_members_max = (uint32_t)MIN(milli / g->member_milli, UINT32_MAX);
}

/* Grows an array of numbers or figures to n items, the new ones zeroed. */
static int grow_zeroed(void *items, size_t *len, size_t *cap, size_t n, size_t item_size)
{
	char *array;

	if (n <= *len)
		return 0;
	if (vec_grow(items, cap, n, item_size) < 0)
		return -ENOMEM;
	memcpy(&array, items, sizeof(array));
	memset(array + *len * item_size, 0, (n - *len) * item_size);
	*len = n;
	return 0;
}

#define ZEROED(v, n) grow_zeroed(&(v)->items, &(v)->len, &(v)->cap, (n), sizeof((v)->items[0]))

/* Figures so far are of another call or class. */
static void figures_forget(struct gang_planner *g)
{
	g->spots.len = 0;
	if (++g->stamp == 0) { /* those of 2^32 calls ago look like today's */
		memset(g->memo, 0, sizeof(g->memo));
		for (size_t i = 0; i < g->rooms.len; i++)
			g->rooms.items[i].stamp = 0;
		g->stamp = 1;
	}
}

static int scratch_begin(struct gang_planner *g)
{
	figures_forget(g);
	g->bans.len = 0;
	g->tries = 0;
	g->tries_max =
		MAX(MIN(GANG_WORK_MAX / MAX(g->all_members, 1), GANG_TRIES_MAX), GANG_TRIES_MIN);
	g->failure = 0;
	g->plan = NULL;
	if (g->node_stamp_now > UINT32_MAX / 2) {
		g->node_stamp.len = 0;
		g->node_stamp_now = 0;
	}
	if (ZEROED(&g->rooms, 2 * (size_t)cluster_domains(g->cluster)) < 0 ||
	    ZEROED(&g->node_stamp, (size_t)cluster_nodes_end(g->cluster)) < 0 ||
	    ZEROED(&g->nodes_by_room, (size_t)g->members + 1) < 0)
		return -ENOMEM;
	return 0;
}

int gang_begin(struct gang_planner *g, const struct gang_spec *spec, struct gang_result *ret)
{
	g->result = ret;
	g->spec = spec;
	classes_sort(g);
	class_enter(g, g->class_order[0]);
	volume_sum(g);
	limits_read(g);
	g->scope = g->request->domain == DOMAIN_NONE ? 0 : g->request->domain;
	g->prefer = g->request->prefer_domain;
	g->level = spec->level_mode == GANG_REQUIRED ? spec->level : 0;
	g->rules_required = spec->leaf_rules == GANG_REQUIRED;
	return scratch_begin(g) < 0 ? -ENOMEM : members_reserve(ret, g->all_members);
}

void gang_result_clear(struct gang_planner *g, struct gang_result *ret)
{
	g->result = ret;
	ret->placed = false;
	ret->plan = NULL;
	ret->reason[0] = '\0';
	ret->members_count = ret->leaves_count = ret->nodes_count = 0;
	memset(ret->by_verdict, 0, sizeof(ret->by_verdict));
}

int gang_result_end(struct gang_planner *g, struct err *err)
{
	struct plan *plan = g->plan;

	if (!g->failure) {
		g->result->plan = plan;
		return 0;
	}
	gang_result_clear(g, g->result);
	plan_rollback(plan);
	return err_set(err, -g->failure, "cannot place a gang of %u: %s", g->all_members,
		       strerror(-g->failure));
}

/* The rules for leaves are those of the gang's main class. */
static void scope_unbounded(struct gang_planner *g)
{
	g->scope = g->request->domain == DOMAIN_NONE ? 0 : g->request->domain;
	g->leaf_nodes_max = UINT32_MAX;
	g->leaf_members_max = UINT32_MAX;
	g->leaf_milli_max = UINT64_MAX;
}

/* Whether each other class would fit if it were alone.  One that would not is the main
 * class from here on, for it is the one to speak of: no set of leaves need be tried. */
static bool others_fit(struct gang_planner *g)
{
	uint32_t main_class = g->main_class;

	for (uint32_t i = 0; i < g->spec->classes_count; i++) {
		if (i == main_class)
			continue;
		class_enter(g, i);
		figures_forget(g);
		if (!gang_class_fits(g)) {
			scope_unbounded(g);
			return false;
		}
	}
	if (g->spec->classes_count > 1)
		figures_forget(g);
	class_enter(g, main_class);
	return true;
}

int gang_plan(struct gang_planner *g, const struct gang_spec *spec, struct gang_result *ret,
	      struct err *err)
{
	int rc;

	gang_result_clear(g, ret);
	rc = spec_check(g, spec, err);
	if (rc < 0)
		return rc;
	if (gang_begin(g, spec, ret) < 0)
		return err_set(err, ENOMEM, "out of memory for a gang of %u", g->all_members);
	ret->placed = others_fit(g) && gang_choose(g);
	if (ret->placed) {
		ret->members_count = g->all_members;
		g->failure = gang_result_finish(g, NULL, 0);
	} else if (!g->failure) {
		gang_say_why(g);
	}
	return gang_result_end(g, err);
}
