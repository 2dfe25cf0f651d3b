/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/fleet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/map.h"
#include "base/num.h"
#include "base/suggest.h"
#include "base/vec.h"
#include "engine/links.h"
#include "engine/machine.h"
#include "sim/fleet_private.h"
#include "sim/lines.h"
#include "sim/shape.h"
#include "wire/json.h"

#define ARENA_MAX    ((size_t)1 << 30)
#define NAME_MAX_LEN 100
#define MACHINES_MAX 64

static int no_memory(struct err *err)
{
	return err_set(err, ENOMEM, "out of memory");
}

int fleet_number(const struct json *group, const char *field, int64_t min, int64_t max,
		 int64_t otherwise, int64_t *ret, struct err *err)
{
	int rc = json_i64(group, ret, field);

	if (rc == -ENOENT) {
		*ret = otherwise;
		return 0;
	}
	if (rc < 0 || *ret < min || *ret > max)
		return err_set(err, EINVAL, "%s must be a whole number from %lld to %lld", field,
			       (long long)min, (long long)max);
	return 0;
}

/* The links of a machine, made once. */
static int links_of(struct fleet *f, const struct machine *machine, const struct links **ret,
		    struct err *err)
{
	for (size_t i = 0; i < f->machines.len; i++) {
		if (f->machines.items[i].machine == machine) {
			*ret = f->machines.items[i].links;
			return 0;
		}
	}
	struct fleet_machine made = { .machine = machine };
	int rc = machine_links(machine, &made.links, err);
	if (rc < 0)
		return rc;
	*ret = made.links;
	if (vec_push(&f->machines, made) < 0) {
		links_free(made.links);
		return no_memory(err);
	}
	return 0;
}

/* Writes the i-th name: "%d" and "%03d" in the pattern stand for i. */
static int make_name(const char *pattern, int64_t i, char name[NAME_MAX_LEN], struct err *err)
{
	const char *percent = strchr(pattern, '%');
	const char *end = percent ? percent + 1 + strspn(percent + 1, "0123456789") : NULL;
	uint32_t width = 0;
	int n;

	if (percent && (*end != 'd' || end - percent > 3 || strchr(end, '%')))
		return err_set(err, EINVAL, "name \"%s\": only one %%d or %%03d may be in it",
			       pattern);
	if (percent && end > percent + 1)
		parse_u32(percent + 1, (size_t)(end - percent - 1), &width);
	if (!percent)
		n = snprintf(name, NAME_MAX_LEN, "%s", pattern);
	else
		n = snprintf(name, NAME_MAX_LEN, "%.*s%0*lld%s", (int)(percent - pattern), pattern,
			     (int)width, (long long)i, end + 1);
	if (n >= NAME_MAX_LEN || n == 0)
		return err_set(err, EINVAL, "name \"%.60s\" is empty or too long", pattern);
	return 0;
}

static int pattern_of(struct fleet_group *g, char pattern[NAME_MAX_LEN], struct err *err)
{
	const char *name = json_str(g->json, "name");

	if (!name && json_get(g->json, "name"))
		return err_set(err, EINVAL,
			       "name is no string; YAML takes some words, such as n "
			       "and on, for booleans: put it in quotes");
	if (!name && !g->machine)
		return err_set(err, EINVAL, "a node without a machine needs a name");
	int width = snprintf(NULL, 0, "%lld", (long long)(g->count - 1));
	if (!name)
		snprintf(pattern, NAME_MAX_LEN, "%s-%%0%dd", g->machine->name, width);
	else if (g->count > 1 && !strchr(name, '%'))
		snprintf(pattern, NAME_MAX_LEN, "%.80s-%%0%dd", name, width);
	else
		snprintf(pattern, NAME_MAX_LEN, "%.90s", name);
	return 0;
}

static const char *machine_nearest(const char *name)
{
	const char *names[MACHINES_MAX];
	size_t count = 0;

	while (count < MACHINES_MAX && machine_at(count)) {
		names[count] = machine_at(count)->name;
		count++;
	}
	return suggest(name, names, count);
}

static int group_machine(struct fleet_group *g, struct err *err)
{
	const char *name = json_str(g->json, "machine");

	if (!name)
		return 0;
	g->machine = machine_find(name);
	if (g->machine)
		return 0;
	const char *near = machine_nearest(name);
	return err_set(err, EINVAL,
		       "machine %.40s is unknown%s%s%s (gpu-scheduler simulate --machines lists "
		       "all)",
		       name, near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
}

static int group_domain(struct fleet *f, struct fleet_group *g, struct err *err)
{
	struct json_iter iter = json_items(g->json, "domain");
	int64_t nvlink = g->machine ? g->machine->nvlink_domain_nodes : 1;
	const struct json *item;
	int rc;

	while ((item = json_next(&iter))) {
		const char *name = json_str(item);

		if (!name || !*name || g->domain_count == FLEET_DOMAINS_MAX)
			return err_set(err, EINVAL, "domain must be a list of at most %d names",
				       FLEET_DOMAINS_MAX);
		g->domain[g->domain_count++] = name;
	}
	if ((rc = fleet_number(g->json, "perLeaf", 1, FLEET_NODES_MAX,
			       nvlink > 1 ? nvlink : g->count, &g->per_leaf, err)) < 0 ||
	    (rc = fleet_number(g->json, "leavesPerSpine", 1, FLEET_NODES_MAX, FLEET_NODES_MAX,
			       &g->leaves_per_spine, err)) < 0)
		return rc;
	g->first_leaf = f->leaves;
	g->first_spine = f->spines;
	if (g->domain_count)
		return 0;
	int64_t leaves = (g->count + g->per_leaf - 1) / g->per_leaf;
	f->leaves += leaves;
	f->spines += (leaves + g->leaves_per_spine - 1) / g->leaves_per_spine;
	return 0;
}

static int add_node(struct fleet *f, uint32_t group, int64_t i, const char *pattern,
		    struct err *err)
{
	char name[NAME_MAX_LEN];
	struct fleet_node node = { .group = group, .position = (uint32_t)i };
	int rc = make_name(pattern, i, name, err);

	if (rc < 0)
		return rc;
	node.name = arena_strndup(&f->arena, name, strlen(name));
	if (!node.name)
		return no_memory(err);
	if (fleet_find(f, name) != UINT32_MAX)
		return err_set(err, EINVAL, "node %s is there twice", name);
	if (map_put_u32(&f->names, node.name, strlen(name), (uint32_t)f->nodes.len) < 0 ||
	    vec_push(&f->nodes, node) < 0)
		return no_memory(err);
	return 0;
}

static int add_group(struct fleet *f, const struct json *json, struct err *err)
{
	struct fleet_group g = { .json = json };
	char pattern[NAME_MAX_LEN];
	int rc;

	if (json_type(json) != JSON_OBJECT)
		return err_set(err, EINVAL, "is no description of nodes");
	if ((rc = fleet_check_keys(json, err)) < 0 || (rc = group_machine(&g, err)) < 0 ||
	    (rc = fleet_number(json, "count", 1, FLEET_NODES_MAX, 1, &g.count, err)) < 0 ||
	    (rc = group_domain(f, &g, err)) < 0 || (rc = pattern_of(&g, pattern, err)) < 0)
		return rc;
	if (g.machine && !json_get(json, "gpus") &&
	    (rc = links_of(f, g.machine, &g.links, err)) < 0)
		return rc;
	if (vec_push(&f->groups, g) < 0)
		return no_memory(err);
	for (int64_t i = 0; i < g.count && rc == 0; i++)
		rc = add_node(f, (uint32_t)f->groups.len - 1, i, pattern, err);
	return rc;
}

void fleet_prefix(const struct fleet *f, size_t group, const char *node, struct err *err)
{
	size_t line = lines_of_item(f->file, "cluster", "nodes", group);
	char place[24] = "";

	if (line)
		snprintf(place, sizeof(place), ":%zu", line);
	if (node)
		err_prefix(err, "%s%s: nodes[%zu] (%s)", f->file, place, group, node);
	else
		err_prefix(err, "%s%s: nodes[%zu]", f->file, place, group);
}

static int read_limits(struct fleet *f, const struct json *limits, struct err *err)
{
	static const struct shape_key keys[] = { { "maxNodesPerLeaf", SHAPE_NUMBER },
						 { "maxGPUsPerLeaf", SHAPE_NUMBER },
						 { "maxPodsPerSharedGpu", SHAPE_NUMBER },
						 { NULL, 0 } };
	int64_t nodes, gpus, seats;
	int rc;

	if ((rc = shape_check(limits, keys, err)) < 0 ||
	    (rc = fleet_number(limits, "maxNodesPerLeaf", 0, 1000000, 0, &nodes, err)) < 0 ||
	    (rc = fleet_number(limits, "maxGPUsPerLeaf", 0, 1000000, 0, &gpus, err)) < 0 ||
	    (rc = fleet_number(limits, "maxPodsPerSharedGpu", 0, 1000, 0, &seats, err)) < 0)
		return rc;
	f->limits = (struct fleet_limits){ (uint32_t)nodes, (uint32_t)gpus, (uint32_t)seats };
	return 0;
}

static int read_all(struct fleet *f, const struct json *root, struct err *err)
{
	static const struct shape_key keys[] = { { "nodes", SHAPE_LIST },
						 { "limits", SHAPE_OBJECT },
						 { NULL, 0 } };
	struct json_iter iter = json_items(root, "nodes");
	const struct json *group;
	int rc = shape_check(root, keys, err);

	if (rc == 0 && !json_len(root, "nodes"))
		rc = err_set(err, EINVAL, "there is no list of nodes");
	if (rc < 0) {
		err_prefix(err, "%s", f->file);
		return rc;
	}
	for (size_t i = 0; rc == 0 && (group = json_next(&iter)); i++) {
		rc = add_group(f, group, err);
		if (rc == 0 && f->nodes.len > FLEET_NODES_MAX)
			rc = err_set(err, EINVAL, "there are more than %d nodes", FLEET_NODES_MAX);
		if (rc < 0)
			fleet_prefix(f, i, NULL, err);
	}
	if (rc < 0 || (rc = read_limits(f, json_get(root, "limits"), err)) == 0)
		return rc;
	err_prefix(err, "%s: limits", f->file);
	return rc;
}

int fleet_new(const char *file, const struct json *root, struct fleet **ret, struct err *err)
{
	struct fleet *f = calloc(1, sizeof(*f));

	if (!f)
		return no_memory(err);
	arena_init(&f->arena, ARENA_MAX);
	f->file = arena_strndup(&f->arena, file, strlen(file));
	int rc = f->file ? read_all(f, root, err) : no_memory(err);
	if (rc < 0) {
		fleet_free(f);
		return rc;
	}
	*ret = f;
	return 0;
}

void fleet_free(struct fleet *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->machines.len; i++)
		links_free(f->machines.items[i].links);
	vec_done(&f->machines);
	vec_done(&f->groups);
	vec_done(&f->nodes);
	map_done(&f->names);
	arena_done(&f->arena);
	free(f);
}

void fleet_freep(struct fleet **f)
{
	fleet_free(*f);
}

const struct fleet_limits *fleet_limits(const struct fleet *f)
{
	return &f->limits;
}

uint32_t fleet_count(const struct fleet *f)
{
	return (uint32_t)f->nodes.len;
}

const char *fleet_node_name(const struct fleet *f, uint32_t i)
{
	return f->nodes.items[i].name;
}

uint32_t fleet_find(const struct fleet *f, const char *name)
{
	uint32_t i;

	return map_get_u32(&f->names, name, strlen(name), &i) ? i : UINT32_MAX;
}
