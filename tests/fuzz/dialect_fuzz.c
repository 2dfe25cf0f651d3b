/* SPDX-License-Identifier: Apache-2.0 */
/* Any pod, with any objects around it, becomes a request that the engine can take, or one
 * sentence.  The same text gives the same answer, and a request that fits is placed. */
#include "fuzz.h"

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "dialect/annotations.h"
#include "dialect/dialect.h"
#include "dialect/volumes.h"
#include "engine/engine.h"
#include "engine/rules.h"
#include "wire/json.h"
#include "wire/yaml.h"

#include <errno.h>
#include <string.h>

static const struct json *find(void *context, const char *kind, const char *namespace,
			       const char *name)
{
	const struct yaml *yaml = context;

	(void)namespace;
	for (size_t i = 0; i < yaml->len; i++) {
		const struct json *object = json_root(yaml->items[i].doc);
		const char *own_kind = json_str(object, "kind");
		const char *own_name = json_str(object, "metadata", "name");

		if (own_kind && own_name && strcmp(own_kind, kind) == 0 &&
		    strcmp(own_name, name) == 0)
			return object;
	}
	return NULL;
}

static void each(void *context, const char *kind, const char *class,
		 void (*visit)(void *visitor, const struct json *object), void *visitor)
{
	const struct yaml *yaml = context;

	(void)class;
	for (size_t i = 0; i < yaml->len; i++) {
		const struct json *object = json_root(yaml->items[i].doc);
		const char *own_kind = json_str(object, "kind");

		if (own_kind && strcmp(own_kind, kind) == 0)
			visit(visitor, object);
	}
}

static bool taken(void *context, const char *workload, uint32_t index)
{
	(void)context;
	return workload[0] && index < 2;
}

/* One node with four GPUs, one of them for slices, in zone a. */
static struct engine *make_engine(void)
{
	struct engine *e = engine_new(&(struct engine_config){ .seed = 1 });
	struct gpu_spec gpus[] = {
		{ .uuid = "g0", .model = "M", .mem_mib = 1000 },
		{ .uuid = "g1", .model = "M", .mem_mib = 1000 },
		{ .uuid = "g2", .model = "M", .mem_mib = 1000 },
		{ .uuid = "g3", .model = "M", .mem_mib = 1000, .mig_mode = 1 },
	};
	const char *domains[] = { "s", "l" };
	struct label zone = { 0 };
	struct node_spec spec = { .name = "n",
				  .labels = &zone,
				  .labels_count = 1,
				  .allocatable = { 64000, INT64_C(1) << 40, INT64_C(1) << 40, 10 },
				  .gpus = gpus,
				  .gpus_count = ARRAY_SIZE(gpus),
				  .domains = domains,
				  .domains_count = ARRAY_SIZE(domains),
				  .mig = mig_geometry_at(0) };
	uint32_t node;

	if (!e)
		return NULL;
	zone.key = cluster_intern(engine_cluster(e), "topology.kubernetes.io/zone");
	zone.value = cluster_intern(engine_cluster(e), "a");
	REQUIRE(cluster_node_add(engine_cluster(e), &spec, &node, NULL) == 0);
	return e;
}

static const char *slice_uuid(void *context, uint32_t node, const struct hold *hold)
{
	(void)context;
	(void)node;
	(void)hold;
	return "MIG-0";
}

/* Every GPU that is asked for is some container's, and nobody takes more than there is. */
static void check_boxes(const struct wish *wish)
{
	uint32_t used = 0, all = (UINT32_C(1) << wish->request.asks_count) - 1;

	for (unsigned i = 0; i < wish->containers_count; i++) {
		const struct wish_container *box = &wish->containers[i];

		used |= box->asks;
		for (unsigned j = 0; j < ASK_MAX; j++)
			REQUIRE(!box->take[j] || (box->asks >> j & 1 &&
						  box->take[j] < wish->request.asks[j].count));
	}
	REQUIRE(used == all);
}

static void place(struct engine *e, const struct wish *wish, struct arena *arena)
{
	struct pod_spec pod = { .uid = "u", .name = wish->name };
	struct annotations list;
	struct decision d;
	uint32_t number;

	engine_arrived(e, &wish->request);
	if (engine_decide(e, &wish->request, &d) != FITS)
		return;
	REQUIRE(engine_place(e, &pod, &wish->request, &d, &number) == 0);
	REQUIRE(cluster_check(engine_cluster(e)) == NULL);
	struct annotations_input input = { .cluster = engine_cluster(e),
					   .wish = wish,
					   .decision = &d,
					   .scheduler = "s",
					   .visibility = VISIBLE_DECIDED,
					   .slice_uuid = slice_uuid };
	REQUIRE(annotations_make(&input, arena, &list, NULL) == 0);
	for (uint32_t i = 0; i < list.count; i++) {
		REQUIRE(annotation_key_check(list.items[i].key, NULL) == 0);
		REQUIRE(list.items[i].value[0] || !d.assignment.count);
	}
	engine_remove(e, number);
	REQUIRE(cluster_check(engine_cluster(e)) == NULL);
}

/* Where volumes refuse the node, no volumes are found for it; else they are. */
static void plan(struct engine *e, const struct dialect_lookup *lookup,
		 const struct pod_source *source, const struct wish *wish, struct arena *arena)
{
	enum verdict v = rules_fit_node(engine_cluster(e), wish->request.rules, 0);
	struct volume_plan volumes;
	int rc = volumes_plan(engine_cluster(e), lookup, source, 0, arena, &volumes, NULL);

	REQUIRE(rc == 0 || rc == -ENOENT);
	REQUIRE(v == WRONG_LABELS || (v == FITS) == (rc == 0));
}

static void translate(struct engine *e, struct yaml *yaml)
{
	static struct wish first, second;
	struct dialect_lookup lookup = {
		.context = yaml, .find = find, .index_taken = taken, .each = each
	};
	struct pod_source source;
	struct arena arena CLEANUP(arena_done);
	struct err err = ERR_INIT, again = ERR_INIT;

	arena_init(&arena, 4 << 20);
	if (!yaml->len ||
	    pod_source_read(json_root(yaml->items[0].doc), &lookup, &source, &err) < 0)
		return;
	int rc = dialect_read(engine_cluster(e), &lookup, &source, &arena, &first, &err);
	REQUIRE(rc <= 0 && (rc == 0) == (err.text[0] == 0));
	REQUIRE(dialect_read(engine_cluster(e), &lookup, &source, &arena, &second, &again) == rc);
	REQUIRE(strcmp(err.text, again.text) == 0);
	for (const char *c = err.text; *c; c++)
		REQUIRE((unsigned char)*c >= ' ' && *c != 0x7f);
	if (rc < 0)
		return;
	REQUIRE(request_equal(&first.request, &second.request));
	check_boxes(&first);
	if (first.volumes_wait)
		plan(e, &lookup, &source, &first, &arena);
	place(e, &first, &arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_limits limits = { .max_bytes = 1 << 16, .max_nodes = 1 << 12 };
	struct yaml yaml = YAML_INIT;
	struct engine *e = make_engine();

	if (e && yaml_parse("fuzz", (const char *)data, size, &limits, &yaml, NULL) == 0)
		translate(e, &yaml);
	yaml_done(&yaml);
	engine_free(e);
	return 0;
}
