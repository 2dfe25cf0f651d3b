/* SPDX-License-Identifier: Apache-2.0 */
/* Claims that wait for their first consumer, on random nodes with random volumes: a node is
 * found to fit just where volumes are found for all claims, and those are different ones,
 * large enough, and for that node. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "dialect/dialect.h"
#include "dialect/volumes.h"
#include "engine/assign.h"
#include "engine/cluster.h"
#include "engine/rules.h"
#include "wire/json.h"

#define NODES	7
#define VOLUMES 9
#define CLAIMS	4
#define WORLDS	1500

struct world {
	struct rng rng;
	struct cluster *cluster;
	struct arena arena;
	struct json_doc *doc;
	const char *labels[NODES][2]; /* of the host and of the zone; NULL: none */
	uint32_t seed, fits, refused;
};

static uint32_t below(struct world *w, uint32_t n)
{
	return rng_below(&w->rng, n);
}

static const struct json *find(void *context, const char *kind, const char *namespace,
			       const char *name)
{
	const struct world *w = context;
	struct json_iter iter = json_items(json_root(w->doc), "objects");

	(void)namespace;
	for (const struct json *object; (object = json_next(&iter));)
		if (strcmp(json_str(object, "kind"), kind) == 0 &&
		    strcmp(json_str(object, "metadata", "name"), name) == 0)
			return object;
	return NULL;
}

static bool taken(void *context, const char *workload, uint32_t index)
{
	(void)context, (void)workload, (void)index;
	return false;
}

static void each(void *context, const char *kind, const char *class,
		 void (*visit)(void *visitor, const struct json *object), void *visitor)
{
	const struct world *w = context;
	struct json_iter iter = json_items(json_root(w->doc), "objects");

	(void)class;
	for (const struct json *object; (object = json_next(&iter));)
		if (strcmp(json_str(object, "kind"), kind) == 0)
			visit(visitor, object);
}

static void add_nodes(struct world *w)
{
	static const char *const hosts[NODES] = { "n0", "n1", "n2", "n3", "n4", "n5", "n6" };
	static const char *const zones[] = { "a", "b", NULL };

	for (uint32_t i = 0; i < NODES; i++) {
		struct label labels[2];
		struct node_spec spec = { .name = hosts[i],
					  .allocatable.pods = 9,
					  .labels = labels,
					  .labels_count = 1 };
		uint32_t node;

		w->labels[i][0] = hosts[i];
		w->labels[i][1] = zones[below(w, 3)];
		labels[0] = (struct label){ cluster_intern(w->cluster, "host"),
					    cluster_intern(w->cluster, hosts[i]) };
		if (w->labels[i][1])
			labels[spec.labels_count++] =
				(struct label){ cluster_intern(w->cluster, "zone"),
						cluster_intern(w->cluster, w->labels[i][1]) };
		CHECK_INT(cluster_node_add(w->cluster, &spec, &node, NULL), 0);
		CHECK_INT(node, i);
	}
}

/* One expression; plain ones only, of one label, in some worlds. */
static void write_expression(struct world *w, struct strbuf *out, bool plain)
{
	uint32_t kind = plain ? 0 : below(w, 4);

	if (kind == 0)
		strbuf_addf(out,
			    "{\"key\":\"host\",\"operator\":\"In\",\"values\":[\"n%u\",\"n%u\"]}",
			    below(w, NODES), below(w, NODES));
	else if (kind == 1)
		strbuf_addf(out, "{\"key\":\"host\",\"operator\":\"NotIn\",\"values\":[\"n%u\"]}",
			    below(w, NODES));
	else if (kind == 2)
		strbuf_addf(out, "{\"key\":\"zone\",\"operator\":\"In\",\"values\":[\"%s\"]}",
			    below(w, 2) ? "a" : "b");
	else
		strbuf_puts(out, "{\"key\":\"zone\",\"operator\":\"Exists\"}");
}

static void write_volume(struct world *w, struct strbuf *out, uint32_t i, bool plain)
{
	strbuf_addf(out,
		    ",{\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"v%u\",\"labels\":{"
		    "\"disk\":\"%s\"}},\"status\":{\"phase\":\"%s\"},\"spec\":{\"capacity\":{"
		    "\"storage\":\"%u\"},\"storageClassName\":\"c%u\"",
		    i, below(w, 3) ? "ssd" : "hdd", below(w, 9) ? "Available" : "Released",
		    2 + below(w, 8), below(w, 4) == 0);
	if (below(w, 8) == 0)
		strbuf_addf(out, ",\"claimRef\":{\"namespace\":\"ns\",\"name\":\"k%u\"}",
			    below(w, CLAIMS + 1));
	if (below(w, 6)) {
		strbuf_puts(out, ",\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":[");
		for (uint32_t terms = plain ? 1 : 1 + below(w, 2); terms; terms--) {
			strbuf_puts(out, "{\"matchExpressions\":[");
			write_expression(w, out, plain);
			if (!plain && below(w, 3) == 0) {
				strbuf_putc(out, ',');
				write_expression(w, out, plain);
			}
			strbuf_puts(out, terms > 1 ? "]}," : "]}");
		}
		strbuf_puts(out, "]}}");
	}
	strbuf_puts(out, "}}");
}

static void write_claim(struct world *w, struct strbuf *out, uint32_t i)
{
	strbuf_addf(
		out,
		",{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"k%u\"},\"spec\":{"
		"\"storageClassName\":\"c%u\",\"resources\":{\"requests\":{\"storage\":\"%u\"}}",
		i, below(w, 4) == 0, 1 + below(w, 8));
	if (below(w, 4) == 0)
		strbuf_puts(out, ",\"selector\":{\"matchLabels\":{\"disk\":\"ssd\"}}");
	strbuf_puts(out, "}}");
}

/* Volumes can be made in some zone, of one class. */
static void write_world(struct world *w, struct strbuf *out, uint32_t claims)
{
	bool plain = below(w, 2);

	strbuf_puts(out, "{\"pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\"},\"spec\":{"
			 "\"containers\":[{\"name\":\"c\"}],\"volumes\":[");
	for (uint32_t i = 0; i < claims; i++)
		strbuf_addf(
			out,
			"%s{\"name\":\"x%u\",\"persistentVolumeClaim\":{\"claimName\":\"k%u\"}}",
			i ? "," : "", i, i);
	strbuf_puts(out,
		    "]}},\"objects\":[{\"kind\":\"StorageClass\",\"metadata\":{\"name\":\"c0\"},"
		    "\"provisioner\":\"kubernetes.io/no-provisioner\",\"volumeBindingMode\":"
		    "\"WaitForFirstConsumer\"},{\"kind\":\"StorageClass\",\"metadata\":{"
		    "\"name\":\"c1\"},\"provisioner\":\"d\",\"volumeBindingMode\":"
		    "\"WaitForFirstConsumer\",\"allowedTopologies\":[{"
		    "\"matchLabelExpressions\":[{\"key\":\"zone\",\"values\":[\"a\"]}]}]}");
	for (uint32_t i = 0; i < VOLUMES; i++)
		write_volume(w, out, i, plain);
	for (uint32_t i = 0; i < claims; i++)
		write_claim(w, out, i);
	strbuf_puts(out, "]}");
}

static int64_t amount(const struct json *value)
{
	return value ? atoll(json_str(value)) : -1;
}

/* What was chosen can be. */
static void check_plan(struct world *w, const struct volume_plan *plan, uint32_t node,
		       uint32_t claims)
{
	CHECK_INT(plan->count, claims);
	for (uint32_t i = 0; i < plan->count; i++) {
		const struct volume_choice *c = &plan->choices[i];
		const struct json *claim = find(w, "PersistentVolumeClaim", "", c->claim);
		const struct json *volume =
			c->volume ? find(w, "PersistentVolume", "", c->volume) : NULL;

		for (uint32_t j = 0; j < i && c->volume; j++)
			CHECK(!plan->choices[j].volume ||
			      strcmp(plan->choices[j].volume, c->volume) != 0);
		if (!volume) {
			CHECK_STR(json_str(claim, "spec", "storageClassName"), "c1");
			CHECK(w->labels[node][1] && strcmp(w->labels[node][1], "a") == 0);
			continue;
		}
		CHECK(amount(json_get(volume, "spec", "capacity", "storage")) >=
		      amount(json_get(claim, "spec", "resources", "requests", "storage")));
		CHECK(volumes_match(w->cluster, volume, node, &w->arena));
	}
}

static void check_world(struct world *w, uint32_t claims)
{
	struct dialect_lookup lookup = {
		.context = w, .find = find, .index_taken = taken, .each = each
	};
	struct err err = ERR_INIT;
	struct pod_source source;
	struct wish wish;

	CHECKF(pod_source_read(json_get(json_root(w->doc), "pod"), &lookup, &source, &err) == 0 &&
		       dialect_read(w->cluster, &lookup, &source, &w->arena, &wish, &err) == 0,
	       "%s", err.text);
	CHECK(wish.volumes_wait);
	for (uint32_t node = 0; node < NODES; node++) {
		enum verdict v = fit_place(w->cluster, &wish.request, node);
		struct volume_plan plan;
		int rc = volumes_plan(w->cluster, &lookup, &source, node, &w->arena, &plan, &err);

		CHECKF(v == FITS || v == NO_VOLUME, "%s", verdict_name(v));
		CHECKF((v == FITS) == (rc == 0), "seed %u, node %u: %s, but %d: %s", w->seed, node,
		       verdict_name(v), rc, err.text);
		if (rc == 0)
			check_plan(w, &plan, node, claims);
		w->fits += rc == 0;
		w->refused += rc != 0;
	}
	wish_release(w->cluster, &wish);
}

TEST(a_node_fits_where_all_claims_get_volumes)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct world w = { 0 };

	for (w.seed = 1; w.seed <= WORLDS; w.seed++) {
		struct err err = ERR_INIT;
		uint32_t claims;

		rng_seed(&w.rng, w.seed);
		claims = 1 + below(&w, CLAIMS);
		w.cluster = cluster_new(&(struct cluster_config){ .seed = 1 });
		arena_init(&w.arena, 64 << 20);
		add_nodes(&w);
		strbuf_reset(&text);
		write_world(&w, &text, claims);
		CHECKF(json_parse("world", text.s, text.len, NULL, &w.doc, &err) == 0, "%s",
		       err.text);
		check_world(&w, claims);
		json_doc_free(w.doc);
		arena_done(&w.arena);
		cluster_free(w.cluster);
	}
	/* Both happen often. */
	CHECKF(w.fits > WORLDS && w.refused > WORLDS, "%u fit, %u do not", w.fits, w.refused);
}

TEST_MAIN()
