/* SPDX-License-Identifier: Apache-2.0 */
/* volumes_plan.c - which volume each claim of a pod gets on the node that was chosen. */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "dialect/volumes.h"
#include "dialect/volumes_private.h"
#include "engine/cluster.h"

/* Whether the groups hold for the node: FITS, or what they say. */
static enum verdict judge(struct cluster *c, const struct node_group *groups, uint32_t count,
			  uint32_t node)
{
	struct rules_spec spec = { .groups = groups, .groups_count = count };
	enum verdict v;
	uint32_t rules;

	if (rules_take(c, &spec, &rules) < 0)
		return NO_VOLUME;
	v = rules_fit_node(c, rules, node);
	rules_release(c, rules);
	return v;
}

/* Candidates that are for the node, by number. */
static uint32_t *candidates_there(const struct volumes *v, uint32_t node, uint32_t *count)
{
	uint32_t *list =
		arena_array(v->draft->arena, (size_t)v->candidates_count + 1, sizeof(*list));

	*count = 0;
	for (uint32_t i = 0; list && i < v->candidates_count; i++)
		if (!v->candidates[i].where ||
		    judge(v->draft->cluster, v->candidates[i].where, 1, node) == FITS)
			list[(*count)++] = i;
	return list;
}

static int choose(struct volumes *v, uint32_t node, struct volume_plan *ret, struct err *err)
{
	const struct candidate *given[CLAIMS_MAX];
	struct volume_choice *choices =
		arena_array(v->draft->arena, v->wants_count + 1, sizeof(*choices));
	uint32_t count, wants = 0, *list = candidates_there(v, node, &count);
	int rc = 0;

	if (!choices || !list)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < v->wants_count; i++)
		wants |= v->wants[i].node ? 0 : 1U << i;
	volumes_pair(v, wants, list, count, given);
	for (uint32_t i = 0; rc == 0 && i < v->wants_count; i++) {
		const char *name = v->wants[i].name;

		choices[i].claim = arena_strndup(v->draft->arena, name, strlen(name));
		if (!choices[i].claim)
			return err_set(err, ENOMEM, "out of memory");
		if (given[i])
			choices[i].volume = given[i]->name;
		else if (!v->wants[i].promised)
			rc = volumes_demand_want(v, i, false, err);
	}
	ret->choices = choices;
	ret->count = v->wants_count;
	return rc;
}

int volumes_plan(struct cluster *cluster, const struct dialect_lookup *lookup,
		 const struct pod_source *source, uint32_t node, struct arena *arena,
		 struct volume_plan *ret, struct err *err)
{
	struct draft d = {
		.cluster = cluster, .lookup = lookup, .source = source, .arena = arena
	};
	struct volumes *v = arena_alloc(arena, sizeof(*v));
	enum verdict verdict;
	char text[256];
	int rc;

	*ret = (struct volume_plan){ 0 };
	if (!v)
		return err_set(err, ENOMEM, "out of memory");
	if (!lookup->each)
		return 0;
	rc = volumes_read_wants(&d, v, err);
	if (rc < 0 || !v->wants_count)
		return rc;
	rc = choose(v, node, ret, err);
	if (rc < 0)
		return rc;
	verdict = judge(cluster, v->groups, v->groups_count, node);
	if (verdict == FITS)
		return 0;
	verdict_text(verdict, NULL, text, sizeof(text));
	return err_set(err, ENOENT, "%s: %s", cluster_node(cluster, node)->name, text);
}

bool volumes_match(struct cluster *cluster, const struct json *volume, uint32_t node,
		   struct arena *arena)
{
	struct draft d = { .cluster = cluster, .arena = arena };
	const struct node_group *where;

	if (volumes_where(&d, volume, &where, NULL) < 0)
		return false;
	return !where || judge(cluster, where, 1, node) == FITS;
}
