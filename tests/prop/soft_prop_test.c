/* SPDX-License-Identifier: Apache-2.0 */
/* Preferences against an oracle that looks at every node and every pod anew and compares all
 * nodes that fit, in clusters small enough for the engine to compare them all; and in greater
 * ones the engine's answer from its index against the one computed afresh, and that what can be
 * had of a single preference is had. */
#include "test.h"

#include <math.h>

#include "base/attr.h"
#include "base/rng.h"
#include "engine/adopt.h"
#include "engine/assign.h"
#include "engine/engine.h"
#include "engine/prefer.h"
#include "engine/soft.h"

#define NODES_MAX 96
#define PODS	  64
#define KINDS	  8
#define TERMS	  3 /* of each kind */
#define NO_POD	  UINT32_MAX

static const char *const keys[] = { "zone", "host", "rack" };
static const char *const apps[] = { "web", "db", "batch" };
static const char *const zones[] = { "a", "b", "c", "d" };
static const char *const racks[] = { "1", "2", "3", "4", "5", "6" };
static const char *const taints[] = { "slow", "old" };
static const char *const space = "one";

struct pods_term {
	const char *app, *key;
	uint8_t weight;
};

struct kind {
	const char *app;
	const char *not_zone; /* required, or NULL */
	bool tolerates[2];
	struct {
		const char *key, *value;
		uint8_t weight;
	} nodes[TERMS];
	struct pods_term near[TERMS], apart[TERMS], drawn[1];
	struct {
		const char *app, *key;
		uint32_t skew;
	} spread[2];
	uint32_t nodes_count, near_count, apart_count, drawn_count, spread_count;
};

struct node_state {
	char name[16];
	const char *zone, *rack; /* NULL: it has no such label */
	bool tainted[2];
	uint32_t number;
};

struct world {
	struct rng rng;
	struct engine *engine;
	struct cluster *cluster;
	uint32_t nodes_count;
	struct node_state nodes[NODES_MAX];
	struct kind kinds[KINDS];
	struct request requests[KINDS];
	struct {
		uint32_t number, node, kind;
		bool ending;
	} pods[PODS];
	uint32_t made;
};

/* Making */

static const char *one_of(struct world *w, const char *const *list, uint32_t count)
{
	return list[rng_below(&w->rng, count)];
}

static void random_pods_terms(struct world *w, struct pods_term *terms, uint32_t *count,
			      uint32_t max)
{
	for (*count = 0; *count < max && rng_chance(&w->rng, 1, 4); (*count)++)
		terms[*count] = (struct pods_term){ one_of(w, apps, 3), one_of(w, keys, 3),
						    (uint8_t)(1 + rng_below(&w->rng, 100)) };
}

static void random_kind(struct world *w, struct kind *k)
{
	*k = (struct kind){ .app = one_of(w, apps, 3) };
	if (rng_chance(&w->rng, 1, 4))
		k->not_zone = one_of(w, zones, 4);
	k->tolerates[0] = rng_chance(&w->rng, 1, 3);
	k->tolerates[1] = rng_chance(&w->rng, 1, 3);
	while (k->nodes_count < TERMS && rng_chance(&w->rng, 1, 3)) {
		bool zone = rng_chance(&w->rng, 1, 2);

		k->nodes[k->nodes_count].key = zone ? "zone" : "rack";
		k->nodes[k->nodes_count].value = zone ? one_of(w, zones, 4) : one_of(w, racks, 6);
		k->nodes[k->nodes_count++].weight = (uint8_t)(1 + rng_below(&w->rng, 100));
	}
	random_pods_terms(w, k->near, &k->near_count, TERMS);
	random_pods_terms(w, k->apart, &k->apart_count, TERMS);
	random_pods_terms(w, k->drawn, &k->drawn_count, 1);
	while (k->spread_count < 2 && rng_chance(&w->rng, 1, 4)) {
		k->spread[k->spread_count].app = one_of(w, apps, 3);
		k->spread[k->spread_count].key = one_of(w, keys, 3);
		k->spread[k->spread_count++].skew = 1 + rng_below(&w->rng, 3);
	}
}

static void put_label(struct world *w, struct node_spec *spec, struct label *labels,
		      const char *key, const char *value)
{
	if (!value)
		return;
	labels[spec->labels_count++] = (struct label){ cluster_intern(w->cluster, key),
						       cluster_intern(w->cluster, value) };
}

/* New, or changed. */
static void random_node(struct world *w, uint32_t i)
{
	struct node_state *n = &w->nodes[i];
	struct gpu_spec gpus[4];
	char uuids[4][16];
	struct label labels[3];
	struct taint list[2];
	struct node_spec spec = { .name = n->name,
				  .allocatable = { 64000, INT64_C(1) << 40, INT64_C(1) << 40,
						   110 },
				  .gpus = gpus,
				  .gpus_count = 1 + i % 4,
				  .labels = labels,
				  .taints = list };

	n->zone = rng_chance(&w->rng, 1, 8) ? NULL : one_of(w, zones, 4);
	n->rack = rng_chance(&w->rng, 1, 8) ? NULL : one_of(w, racks, 6);
	put_label(w, &spec, labels, "host", n->name);
	put_label(w, &spec, labels, "zone", n->zone);
	put_label(w, &spec, labels, "rack", n->rack);
	for (uint32_t t = 0; t < 2; t++) {
		n->tainted[t] = rng_chance(&w->rng, 1, 5);
		if (n->tainted[t])
			list[spec.taints_count++] =
				(struct taint){ .key = cluster_intern(w->cluster, taints[t]),
						.effect = EFFECT_PREFER_NO_SCHEDULE };
	}
	for (uint32_t g = 0; g < spec.gpus_count; g++) {
		snprintf(uuids[g], sizeof(uuids[g]), "%s-%u", n->name, g);
		gpus[g] = (struct gpu_spec){ .uuid = uuids[g], .model = "m", .mem_mib = 16384 };
	}
	if (n->number != NODE_NONE)
		CHECK(cluster_node_change(w->cluster, n->number, &spec, NULL) == 0);
	else
		CHECK(cluster_node_add(w->cluster, &spec, &n->number, NULL) == 0);
}

/* The kind as the engine wants it; what it points to lives until it is taken. */

struct building {
	struct soft_term_spec terms[SOFT_TERMS_MAX];
	uint32_t count;
	struct match matches[SOFT_TERMS_MAX], zone;
	struct node_term node_terms[SOFT_TERMS_MAX], zone_term;
	struct node_group groups[SOFT_TERMS_MAX], zone_group;
	struct pod_term pods[SOFT_TERMS_MAX];
	struct spread_rule spread[2];
};

static struct match *equal(struct match *m, const char *key, const char *const *value)
{
	*m = (struct match){ .key = key, .values = value, .values_count = 1, .op = MATCH_IN };
	return m;
}

static void build_nodes(struct building *b, const struct kind *k)
{
	for (uint32_t i = 0; i < k->nodes_count; i++) {
		uint32_t at = b->count++;

		b->node_terms[at] = (struct node_term){
			equal(&b->matches[at], k->nodes[i].key, &k->nodes[i].value), 1
		};
		b->groups[at] = (struct node_group){ .terms = &b->node_terms[at], .count = 1 };
		b->terms[at] = (struct soft_term_spec){ .kind = SOFT_NODE,
							.weight = k->nodes[i].weight,
							.rules = { .groups = &b->groups[at],
								   .groups_count = 1 } };
	}
}

static void build_pods(struct building *b, const struct pods_term *terms, uint32_t count,
		       enum soft_kind kind)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = b->count++;
		struct rules_spec *r = &b->terms[at].rules;

		b->pods[at] = (struct pod_term){
			.pods = { .namespaces = &space,
				  .namespaces_count = 1,
				  .labels = equal(&b->matches[at], "app", &terms[i].app),
				  .labels_count = 1 },
			.topology_key = terms[i].key,
		};
		b->terms[at].kind = (uint8_t)kind;
		b->terms[at].weight = kind == SOFT_DRAWN ? 1 : terms[i].weight;
		*(kind == SOFT_APART ? &r->apart : &r->near) = &b->pods[at];
		*(kind == SOFT_APART ? &r->apart_count : &r->near_count) = 1;
	}
}

static void build_spread(struct building *b, const struct kind *k)
{
	uint32_t at = b->count;

	if (!k->spread_count)
		return;
	b->count++;
	b->terms[at].kind = SOFT_SPREAD;
	b->terms[at].weight = 1;
	for (uint32_t i = 0; i < k->spread_count; i++)
		b->spread[i] = (struct spread_rule){
			.labels = equal(&b->matches[SOFT_TERMS_MAX - 1 - i], "app",
					&k->spread[i].app),
			.labels_count = 1,
			.topology_key = k->spread[i].key,
			.max_skew = k->spread[i].skew,
		};
	b->terms[at].rules = (struct rules_spec){ .spread = b->spread,
						  .spread_count = k->spread_count,
						  .namespace = space,
						  .groups = &b->zone_group,
						  .groups_count = k->not_zone != NULL };
}

static void take_request(struct world *w, uint32_t i)
{
	const struct kind *k = &w->kinds[i];
	struct request *r = &w->requests[i];
	struct building b = { 0 };
	struct pod_label app = { "app", k->app };
	struct rules_spec required = { .groups = &b.zone_group,
				       .groups_count = k->not_zone != NULL };

	request_init(r);
	request_add_ask(r, ASK_SHARE, 1)->core_milli = (uint16_t)(100 * (1 + i % 5));
	for (uint32_t t = 0; t < 2; t++)
		if (k->tolerates[t])
			r->tolerations[r->tolerations_count++] =
				(struct toleration){ .key = cluster_intern(w->cluster, taints[t]),
						     .op = TOLERATE_EXISTS };
	equal(&b.zone, "zone", &k->not_zone)->op = MATCH_NOT_IN;
	b.zone_term = (struct node_term){ &b.zone, 1 };
	b.zone_group = (struct node_group){ .terms = &b.zone_term, .count = 1 };
	build_nodes(&b, k);
	build_pods(&b, k->near, k->near_count, SOFT_NEAR);
	build_pods(&b, k->apart, k->apart_count, SOFT_APART);
	build_spread(&b, k);
	build_pods(&b, k->drawn, k->drawn_count, SOFT_DRAWN);
	CHECK(subject_take(w->cluster, space, &app, 1, &r->subject) == 0);
	CHECK(rules_take(w->cluster, &required, &r->rules) == 0);
	CHECK(soft_take(w->cluster, b.terms, b.count, &r->soft) == 0);
}

static void drop_request(struct world *w, uint32_t i)
{
	subject_release(w->cluster, w->requests[i].subject);
	rules_release(w->cluster, w->requests[i].rules);
	soft_release(w->cluster, w->requests[i].soft);
}

/* The oracle */

static const char *label(const struct node_state *n, const char *key)
{
	return strcmp(key, "zone") == 0 ? n->zone : strcmp(key, "rack") == 0 ? n->rack : n->name;
}

static bool alike(const struct node_state *a, const struct node_state *b, const char *key)
{
	const char *x = label(a, key), *y = label(b, key);

	return x && y && strcmp(x, y) == 0;
}

/* Pods of the app in the node's domain, each with its weight in the other's terms or 1. */
static int64_t pods_in(const struct world *w, const struct node_state *n, const char *app,
		       const char *key)
{
	int64_t count = 0;

	for (uint32_t p = 0; p < PODS; p++)
		if (w->pods[p].number != NO_POD && strcmp(w->kinds[w->pods[p].kind].app, app) == 0)
			count += alike(n, &w->nodes[w->pods[p].node], key);
	return count;
}

static int64_t terms_about(const struct pods_term *terms, uint32_t count, const char *app,
			   const struct node_state *here, const struct node_state *there)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		if (strcmp(terms[i].app, app) == 0 && alike(here, there, terms[i].key))
			sum += terms[i].weight;
	return sum;
}

static int64_t oracle_pods(const struct world *w, const struct kind *k, const struct node_state *n)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < k->near_count; i++)
		sum += k->near[i].weight * pods_in(w, n, k->near[i].app, k->near[i].key);
	for (uint32_t i = 0; i < k->apart_count; i++)
		sum -= k->apart[i].weight * pods_in(w, n, k->apart[i].app, k->apart[i].key);
	for (uint32_t p = 0; p < PODS; p++) {
		const struct kind *other = &w->kinds[w->pods[p].kind];
		const struct node_state *there = &w->nodes[w->pods[p].node];

		if (w->pods[p].number == NO_POD)
			continue;
		sum += terms_about(other->near, other->near_count, k->app, n, there);
		sum -= terms_about(other->apart, other->apart_count, k->app, n, there);
		if (other->drawn_count && strcmp(other->drawn[0].app, k->app) == 0)
			sum += alike(n, there, other->drawn[0].key);
	}
	return sum;
}

static bool counts(const struct kind *k, const struct node_state *n)
{
	if (n->number == NODE_NONE)
		return false;
	for (uint32_t i = 0; i < k->spread_count; i++)
		if (!label(n, k->spread[i].key))
			return false;
	return !k->not_zone || !n->zone || strcmp(n->zone, k->not_zone) != 0;
}

static uint32_t domains_of(const struct world *w, const struct kind *k, const char *key)
{
	uint32_t domains = 0;

	for (uint32_t i = 0; i < w->nodes_count; i++) {
		bool first = counts(k, &w->nodes[i]);

		for (uint32_t j = 0; first && j < i; j++)
			first = !(counts(k, &w->nodes[j]) &&
				  alike(&w->nodes[i], &w->nodes[j], key));
		domains += first;
	}
	return domains;
}

/* -1: the node lacks a label. */
static int64_t oracle_spread(const struct world *w, const struct kind *k,
			     const struct node_state *n)
{
	double sum = 0;

	for (uint32_t i = 0; i < k->spread_count; i++) {
		uint32_t pods = 0;

		if (!label(n, k->spread[i].key))
			return -1;
		for (uint32_t p = 0; p < PODS; p++)
			pods += w->pods[p].number != NO_POD && !w->pods[p].ending &&
				strcmp(w->kinds[w->pods[p].kind].app, k->spread[i].app) == 0 &&
				counts(k, &w->nodes[w->pods[p].node]) &&
				alike(n, &w->nodes[w->pods[p].node], k->spread[i].key);
		sum += pods * log(domains_of(w, k, k->spread[i].key) + 2.0) +
		       (k->spread[i].skew - 1);
	}
	return llround(sum);
}

static void oracle_mark(const struct world *w, const struct kind *k, const struct node_state *n,
			struct soft_mark *ret)
{
	*ret = (struct soft_mark){ .pods = oracle_pods(w, k, n),
				   .spread = oracle_spread(w, k, n) };
	for (uint32_t t = 0; t < 2; t++)
		ret->taints += n->tainted[t] && !k->tolerates[t];
	for (uint32_t i = 0; i < k->nodes_count; i++) {
		const char *value = label(n, k->nodes[i].key);

		if (value && strcmp(value, k->nodes[i].value) == 0)
			ret->affinity += k->nodes[i].weight;
	}
}

/* The formulas once more, a plugin at a time over all nodes that fit. */
static void oracle_points(const struct kind *k, const struct soft_mark *m, uint32_t count,
			  int64_t *points)
{
	int64_t taint = 0, affinity = 0, most = 0, least = INT64_MAX;
	int64_t near = INT64_MIN, far = INT64_MAX;

	for (uint32_t i = 0; i < count; i++) {
		taint = MAX(taint, (int64_t)m[i].taints);
		affinity = MAX(affinity, (int64_t)m[i].affinity);
		near = MAX(near, m[i].pods);
		far = MIN(far, m[i].pods);
		if (m[i].spread >= 0) {
			most = MAX(most, m[i].spread);
			least = MIN(least, m[i].spread);
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		points[i] = 3 * (100 - (taint ? 100 * m[i].taints / taint : 0));
		points[i] += 2 * (affinity ? 100 * m[i].affinity / affinity : 0);
		points[i] += 2 * (near > far ? 100 * (m[i].pods - far) / (near - far) : 0);
		if (k->spread_count && m[i].spread >= 0)
			points[i] += 2 * (most ? 100 * (most + least - m[i].spread) / most : 100);
	}
}

/* The node that is best of all that fit, or NODE_NONE. */
static uint32_t oracle(struct world *w, uint32_t kind)
{
	struct soft_mark marks[NODES_MAX];
	int64_t points[NODES_MAX];
	int32_t scores[NODES_MAX];
	uint32_t nodes[NODES_MAX], count = 0, best = 0;

	for (uint32_t i = 0; i < w->nodes_count; i++) {
		struct decision d;

		if (w->nodes[i].number == NODE_NONE ||
		    engine_score(w->engine, &w->requests[kind], w->nodes[i].number, &d, NULL) !=
			    FITS)
			continue;
		oracle_mark(w, &w->kinds[kind], &w->nodes[i], &marks[count]);
		scores[count] = d.score;
		nodes[count++] = i;
	}
	oracle_points(&w->kinds[kind], marks, count, points);
	for (uint32_t i = 1; i < count; i++)
		if (points[i] > points[best] ||
		    (points[i] == points[best] && scores[i] > scores[best]))
			best = i;
	return count ? w->nodes[nodes[best]].number : NODE_NONE;
}

/* Steps */

static void step_place(struct world *w)
{
	uint32_t slot = rng_below(&w->rng, PODS), kind = rng_below(&w->rng, KINDS);
	char uid[16];
	struct decision d;
	uint32_t i = rng_below(&w->rng, w->nodes_count);

	if (w->pods[slot].number != NO_POD || w->nodes[i].number == NODE_NONE ||
	    engine_score(w->engine, &w->requests[kind], w->nodes[i].number, &d, NULL) != FITS)
		return;
	snprintf(uid, sizeof(uid), "p%u", w->made++);
	CHECK(engine_place(w->engine, &(struct pod_spec){ .uid = uid }, &w->requests[kind], &d,
			   &w->pods[slot].number) == 0);
	w->pods[slot].node = i;
	w->pods[slot].kind = kind;
	w->pods[slot].ending = false;
}

static void step_remove(struct world *w)
{
	uint32_t slot = rng_below(&w->rng, PODS);

	if (w->pods[slot].number == NO_POD)
		return;
	if (!w->pods[slot].ending && rng_chance(&w->rng, 1, 3)) {
		cluster_pod_ending(w->cluster, w->pods[slot].number);
		w->pods[slot].ending = true;
		return;
	}
	engine_remove(w->engine, w->pods[slot].number);
	w->pods[slot].number = NO_POD;
}

static void step_node(struct world *w)
{
	uint32_t i = rng_below(&w->rng, w->nodes_count);

	if (w->nodes[i].number == NODE_NONE || rng_chance(&w->rng, 2, 3)) {
		random_node(w, i);
		return;
	}
	cluster_node_remove(w->cluster, w->nodes[i].number);
	w->nodes[i].number = NODE_NONE;
	for (uint32_t p = 0; p < PODS; p++)
		if (w->pods[p].number != NO_POD && w->pods[p].node == i)
			w->pods[p].number = NO_POD;
}

/* A kind whose pods are all gone becomes another: numbers are used again. */
static void step_kind(struct world *w)
{
	uint32_t i = rng_below(&w->rng, KINDS);

	for (uint32_t p = 0; p < PODS; p++)
		if (w->pods[p].number != NO_POD && w->pods[p].kind == i)
			return;
	drop_request(w, i);
	random_kind(w, &w->kinds[i]);
	take_request(w, i);
}

static void step(struct world *w)
{
	uint32_t what = rng_below(&w->rng, 20);

	if (what < 9)
		step_place(w);
	else if (what < 14)
		step_remove(w);
	else if (what < 17)
		step_node(w);
	else
		step_kind(w);
}

static void world_begin(struct world *w, uint64_t seed, uint32_t nodes)
{
	*w = (struct world){ .nodes_count = nodes };
	rng_seed(&w->rng, seed);
	w->engine = engine_new(&(struct engine_config){ 0 });
	CHECK(w->engine);
	w->cluster = engine_cluster(w->engine);
	for (uint32_t i = 0; i < nodes; i++) {
		snprintf(w->nodes[i].name, sizeof(w->nodes[i].name), "n%02u", i);
		w->nodes[i].number = NODE_NONE;
		random_node(w, i);
	}
	for (uint32_t i = 0; i < PODS; i++)
		w->pods[i].number = NO_POD;
	for (uint32_t i = 0; i < KINDS; i++) {
		random_kind(w, &w->kinds[i]);
		take_request(w, i);
	}
}

static void world_end(struct world *w)
{
	for (uint32_t i = 0; i < KINDS; i++)
		drop_request(w, i);
	CHECKF(!cluster_check(w->cluster), "%s", cluster_check(w->cluster));
	engine_free(w->engine);
}

static void check_against_afresh(struct world *w, uint32_t kind, uint64_t seed, uint32_t at)
{
	struct decision d, afresh;
	enum verdict v = engine_decide(w->engine, &w->requests[kind], &d);

	CHECKF(v == engine_decide_afresh(w->engine, &w->requests[kind], &afresh),
	       "seed %" PRIu64 " step %u: kind %u", seed, at, kind);
	if (v == FITS)
		CHECKF(d.node == afresh.node && d.score == afresh.score,
		       "seed %" PRIu64 " step %u: kind %u", seed, at, kind);
}

TEST(of_few_nodes_the_one_is_chosen_that_a_look_at_everything_prefers)
{
	uint32_t decided = 0;

	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct world w;

		world_begin(&w, seed, 14);
		for (uint32_t at = 0; at < 250; at++) {
			uint32_t kind = rng_below(&w.rng, KINDS), best;
			struct decision d;

			step(&w);
			best = oracle(&w, kind);
			if (engine_decide(w.engine, &w.requests[kind], &d) != FITS)
				d.node = NODE_NONE;
			decided += best != NODE_NONE;
			CHECKF(d.node == best,
			       "seed %" PRIu64 " step %u: kind %u: node %u, not %u", seed, at,
			       kind, d.node, best);
			check_against_afresh(&w, kind, seed, at);
		}
		world_end(&w);
	}
	CHECK(decided > 10000);
}

TEST(among_many_nodes_the_answer_is_the_one_computed_afresh)
{
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct world w;

		world_begin(&w, seed, NODES_MAX);
		for (uint32_t at = 0; at < 200; at++) {
			for (uint32_t i = 0; i < 3; i++)
				step(&w);
			check_against_afresh(&w, rng_below(&w.rng, KINDS), seed, at);
		}
		world_end(&w);
	}
}

/* However many nodes are better by score: with one preference alone, one that keeps it is
 * taken if there is any. */
TEST(a_single_preference_is_kept_where_it_can_be)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct world w;
		struct decision d;
		uint32_t kept = 0, wanted = 0;

		world_begin(&w, seed, NODES_MAX);
		for (uint32_t i = 0; i < NODES_MAX; i++)
			w.nodes[i].tainted[0] = w.nodes[i].tainted[1] = false;
		drop_request(&w, 0);
		w.kinds[0] = (struct kind){ .app = "web",
					    .tolerates = { true, true },
					    .nodes = { { "rack", one_of(&w, racks, 6), 1 } },
					    .nodes_count = 1 };
		take_request(&w, 0);
		for (uint32_t i = 0; i < NODES_MAX; i++) {
			const char *rack = w.nodes[i].rack;

			wanted += rack && strcmp(rack, w.kinds[0].nodes[0].value) == 0;
		}
		for (uint32_t i = 0; i < 40; i++) {
			char uid[16];
			uint32_t number;

			snprintf(uid, sizeof(uid), "s%u", i);
			CHECK(engine_decide(w.engine, &w.requests[0], &d) == FITS);
			CHECK(engine_place(w.engine, &(struct pod_spec){ .uid = uid },
					   &w.requests[0], &d, &number) == 0);
			for (uint32_t n = 0; n < NODES_MAX; n++)
				if (w.nodes[n].number == d.node && w.nodes[n].rack)
					kept += strcmp(w.nodes[n].rack,
						       w.kinds[0].nodes[0].value) == 0;
		}
		/* Each card takes ten tenths. */
		CHECKF(kept == 40 || kept >= 10 * wanted, "seed %" PRIu64 ": %u of %u nodes", seed,
		       kept, wanted);
		world_end(&w);
	}
}

TEST_MAIN()
