/* SPDX-License-Identifier: Apache-2.0 */
/* dialect_bench.h - for the tests of dialects: objects from YAML, pods translated on a small
 * cluster of two nodes (alpha with 8 H100, beta with 2 GPUs) in two leaves. */
#ifndef GS_TESTS_UNIT_DIALECT_BENCH_H
#define GS_TESTS_UNIT_DIALECT_BENCH_H

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "dialect/dialect.h"
#include "engine/cluster.h"
#include "test.h"
#include "wire/json.h"
#include "wire/yaml.h"

struct bench {
	struct cluster *cluster;
	struct arena arena;
	struct yaml objects; /* found by kind and name; the first is the pod */
	struct dialect_lookup lookup;
	uint32_t taken; /* indexes below this are held by siblings */
	struct wish wish;
	struct err err;
};

static inline const struct json *bench_find(void *context, const char *kind, const char *namespace,
					    const char *name)
{
	const struct bench *b = context;

	(void)namespace;
	for (size_t i = 0; i < b->objects.len; i++) {
		const struct json *object = json_root(b->objects.items[i].doc);
		const char *own_kind = json_str(object, "kind");
		const char *own_name = json_str(object, "metadata", "name");

		if (own_kind && own_name && strcmp(own_kind, kind) == 0 &&
		    strcmp(own_name, name) == 0)
			return object;
	}
	return NULL;
}

static inline bool bench_taken(void *context, const char *workload, uint32_t index)
{
	const struct bench *b = context;

	return workload && index < b->taken;
}

static inline void bench_node(struct bench *b, const char *name, const char *leaf, uint32_t gpus)
{
	struct gpu_spec specs[8];
	char uuids[8][32];
	const char *domains[] = { "spine-0", leaf };
	struct label host = { cluster_intern(b->cluster, "kubernetes.io/hostname"),
			      cluster_intern(b->cluster, name) };
	struct node_spec spec = { .name = name,
				  .labels = &host,
				  .labels_count = 1,
				  .allocatable = { 64000, INT64_C(1) << 40, INT64_C(1) << 40,
						   110 },
				  .gpus = specs,
				  .gpus_count = gpus,
				  .domains = domains,
				  .domains_count = 2,
				  .mig = mig_geometry_of_model("NVIDIA-H100-80GB-HBM3") };
	uint32_t number;

	for (uint32_t i = 0; i < gpus; i++) {
		snprintf(uuids[i], sizeof(uuids[i]), "GPU-%s-%u", name, i);
		specs[i] =
			(struct gpu_spec){ .uuid = uuids[i], .model = "H100", .mem_mib = 80000 };
	}
	CHECK(cluster_node_add(b->cluster, &spec, &number, NULL) == 0);
}

static inline void bench_init(struct bench *b)
{
	memset(b, 0, sizeof(*b));
	arena_init(&b->arena, 16 << 20);
	b->cluster = cluster_new(&(struct cluster_config){ .seed = 1 });
	CHECK(b->cluster != NULL);
	b->lookup = (struct dialect_lookup){ .context = b,
					     .find = bench_find,
					     .index_taken = bench_taken };
	bench_node(b, "alpha", "leaf-0", 8);
	bench_node(b, "beta", "leaf-1", 2);
}

static inline void bench_done(struct bench *b)
{
	cluster_free(b->cluster);
	arena_done(&b->arena);
	yaml_done(&b->objects);
	b->objects = (struct yaml)YAML_INIT;
}

/* Translates the first of the documents, which is a pod. */
static inline int bench_read(struct bench *b, const char *yaml)
{
	struct pod_source source;
	struct err err = ERR_INIT;

	yaml_done(&b->objects);
	b->objects = (struct yaml)YAML_INIT;
	b->err = (struct err)ERR_INIT;
	CHECKF(yaml_parse("test", yaml, strlen(yaml), NULL, &b->objects, &err) == 0, "%s\n%s",
	       err.text, yaml);
	int rc = pod_source_read(json_root(b->objects.items[0].doc), &b->lookup, &source, &b->err);
	return rc < 0 ? rc
		      : dialect_read(b->cluster, &b->lookup, &source, &b->arena, &b->wish,
				     &b->err);
}

/* One row of a table: what is written, and a part of the complaint. */
struct bad_pod {
	const char *yaml;
	const char *complaint;
	int code; /* 0: EINVAL */
};

static inline void bench_check_bad(const struct bad_pod *rows, size_t count)
{
	struct bench b;

	bench_init(&b);
	for (size_t i = 0; i < count; i++) {
		int code = rows[i].code ? rows[i].code : EINVAL;
		int rc = bench_read(&b, rows[i].yaml);

		CHECKF(rc == -code, "row %zu: %d: %s", i, rc, b.err.text);
		CHECKF(strcmp(b.err.text, rows[i].complaint) == 0, "row %zu says \"%s\"", i,
		       b.err.text);
	}
	bench_done(&b);
}

#endif
