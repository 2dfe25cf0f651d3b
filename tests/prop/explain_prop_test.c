/* SPDX-License-Identifier: Apache-2.0 */
/* What explain says of random clusters is what the engine does there. */
#include "random_cluster.h"
#include "test.h"

#include "base/strbuf.h"
#include "engine/explain.h"
#include "engine/policy/policy.h"

#define SEEDS 150
#define NODES 24
#define PODS  80
#define ASKED 24

struct world {
	struct engine *engine;
	struct cluster *cluster;
	struct rng rng;
	uint64_t seed;
};

static void world_open(struct world *w, uint64_t seed)
{
	struct engine_config config = {
		.seed = seed,
		.policy = seed % 2 ? &policy_default : &policy_binpack,
	};

	w->seed = seed;
	w->engine = engine_new(&config);
	CHECK(w->engine != NULL);
	w->cluster = engine_cluster(w->engine);
	rng_seed(&w->rng, seed);
	for (uint32_t i = 0; i < NODES; i++) {
		struct random_node n;
		uint32_t node;

		random_node(w->cluster, &w->rng, i, &n);
		CHECK(cluster_node_add(w->cluster, &n.spec, &node, NULL) == 0);
		if (rng_chance(&w->rng, 1, 10))
			cluster_node_remove(w->cluster, node);
	}
	for (uint32_t i = 0; i < PODS; i++) {
		struct request r;
		struct decision d;
		char uid[32];
		uint32_t pod;

		random_request(w->cluster, &w->rng, &r);
		snprintf(uid, sizeof(uid), "pod-%u", (unsigned)i);
		if (engine_decide(w->engine, &r, &d) == FITS)
			CHECK(engine_place(w->engine, &(struct pod_spec){ .uid = uid }, &r, &d,
					   &pod) == 0);
	}
}

/* Each count is the number of nodes for which fit_node() says so. */
static void check_counts(const struct world *w, const struct request *r,
			 const struct explanation *x)
{
	uint32_t counts[VERDICT_COUNT] = { 0 }, sum = 0, named = 0;

	for (uint32_t i = 0; i < cluster_nodes_end(w->cluster); i++)
		if (cluster_node(w->cluster, i)->name)
			counts[fit_node(w->cluster, r, i)]++;
	for (int v = 0; v < VERDICT_COUNT; v++) {
		CHECKF(counts[v] == x->by_verdict[v], "seed %" PRIu64 ": %s", w->seed,
		       verdict_name((enum verdict)v));
		sum += x->by_verdict[v];
	}
	for (int i = 0; i < EXTENDED_MAX; i++)
		named += x->by_extended[i];
	CHECK_INT(sum, cluster_nodes_count(w->cluster));
	CHECK_INT(x->nodes, cluster_nodes_count(w->cluster));
	CHECK_INT(named, x->by_verdict[NO_EXTENDED]);
}

static void check_text(const struct world *w, const struct request *r, const struct explanation *x)
{
	struct explain_reason reasons[EXPLAIN_REASONS_MAX];
	uint32_t count = explain_reasons(w->engine, r, x, reasons), sum = 0;
	struct strbuf buf = STRBUF_INIT;
	char expect[64];

	for (uint32_t i = 0; i < count; i++)
		sum += reasons[i].nodes;
	CHECK_INT(sum + x->by_verdict[FITS], x->nodes);
	explain_refusal(w->engine, r, x, &buf);
	snprintf(expect, sizeof(expect), "%u/%u nodes are available",
		 (unsigned)x->by_verdict[FITS], (unsigned)x->nodes);
	CHECK(strncmp(buf.s, expect, strlen(expect)) == 0);
	CHECK(buf.s[buf.len - 1] == '.');
	strbuf_reset(&buf);
	explain_choices(w->engine, r, x, &buf);
	CHECK((buf.len > 0) == (x->top_count > 0));
	explain_miss(w->engine, x, &buf);
	CHECK(!buf.failed);
	strbuf_done(&buf);
}

/* The first is what is decided; the rest are the best that remain. */
static void check_choices(const struct world *w, const struct request *r, enum verdict v,
			  const struct explanation *x)
{
	struct decision d;

	CHECK(engine_decide(w->engine, r, &d) == v);
	CHECK_INT(x->top_count, MIN(x->by_verdict[FITS], EXPLAIN_TOP));
	CHECK((v == FITS) == (x->top_count > 0));
	if (v != FITS)
		return;
	CHECK_INT(x->top[0].decision.node, d.node);
	CHECK_INT(x->top[0].decision.score, d.score);
	for (uint32_t i = 1; i < x->top_count; i++)
		CHECK(x->top[i].points < x->top[i - 1].points ||
		      (x->top[i].points == x->top[i - 1].points &&
		       x->top[i].decision.score <= x->top[i - 1].decision.score));
	for (uint32_t i = 0; i < cluster_nodes_end(w->cluster); i++) {
		bool listed = false;

		if (engine_score(w->engine, r, i, &d, NULL) != FITS)
			continue;
		for (uint32_t t = 0; t < x->top_count; t++)
			listed = listed || x->top[t].decision.node == i;
		CHECK(listed || x->preferred ||
		      d.score <= x->top[x->top_count - 1].decision.score);
	}
}

/* Where resources are said to be short by so much, so much less is enough, and one more
 * is not. */
static bool check_miss(const struct world *w, const struct request *r, const struct explanation *x)
{
	const struct explain_miss *m = &x->miss;
	struct request less = *r;
	int64_t *need = m->verdict == NO_CPU	  ? &less.needs.cpu_milli
			: m->verdict == NO_MEMORY ? &less.needs.mem_bytes
						  : NULL;

	if (m->node == NODE_NONE)
		return false;
	CHECK(fit_node(w->cluster, r, m->node) == m->verdict);
	if (!need)
		return true;
	*need -= m->lacks;
	CHECKF(fit_node(w->cluster, &less, m->node) == FITS, "seed %" PRIu64, w->seed);
	(*need)++;
	CHECKF(fit_node(w->cluster, &less, m->node) == m->verdict, "seed %" PRIu64, w->seed);
	return true;
}

TEST(counts_add_up_and_every_word_is_true)
{
	uint32_t refused = 0, misses = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct world w;
		uint64_t before;

		world_open(&w, seed);
		before = cluster_digest(w.cluster);
		for (int i = 0; i < ASKED; i++) {
			struct explanation x;
			struct request r;
			enum verdict v;

			random_request(w.cluster, &w.rng, &r);
			v = explain_request(w.engine, &r, &x);
			check_counts(&w, &r, &x);
			check_text(&w, &r, &x);
			check_choices(&w, &r, v, &x);
			refused += v != FITS;
			misses += v != FITS && check_miss(&w, &r, &x);
		}
		CHECK(cluster_digest(w.cluster) == before);
		engine_free(w.engine);
	}
	random_links_free();
	/* Else the property says little. */
	CHECKF(refused > SEEDS && misses > SEEDS / 4, "%u refused, %u misses", (unsigned)refused,
	       (unsigned)misses);
}

TEST_MAIN()
