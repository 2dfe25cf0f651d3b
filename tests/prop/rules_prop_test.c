/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about nodes and pods against an oracle that looks at every node and every pod anew,
 * while pods come, end and go, nodes change and namespaces are labelled.  And the engine's
 * answer from its index against the one computed afresh. */
#include "test.h"

#include "base/attr.h"
#include "base/rng.h"
#include "engine/engine.h"
#include "engine/rules.h"

#define NODES  9
#define PODS   24
#define STEPS  300
#define SEEDS  40
#define KINDS  12 /* of pods, each with its own labels and rules */
#define NO_POD UINT32_MAX

static const char *const keys[] = { "zone", "host", "rack", "absent" };
static const char *const apps[] = { "web", "db", "batch" };
static const char *const zones[] = { "a", "b", "c" };
static const char *const racks[] = { "1", "2", "30", "x" };
static const char *const spaces[] = { "one", "two" };

struct kind {
	const char *namespace;
	struct pod_label labels[2];
	uint32_t labels_count;
	/* what its specification points to */
	const char *values[16];
	struct match matches[16];
	struct node_term terms[4];
	struct node_group groups[2];
	struct host_port ports[1];
	struct pod_term near[2], apart[2];
	struct spread_rule spread[2];
	struct rules_spec spec;
	uint32_t values_used, matches_used, terms_used;
};

struct world {
	struct rng rng;
	struct engine *engine;
	struct cluster *cluster;
	struct kind kinds[KINDS];
	struct request requests[KINDS];
	struct {
		char name[8];
		const char *zone, *rack; /* NULL: it has no such label */
		bool tainted;
		uint32_t number;
	} nodes[NODES];
	struct {
		uint32_t number, node, kind;
		bool ending;
	} pods[PODS];
	uint32_t made;
	const char *space_labels[2]; /* value of the label "team", or NULL */
};

/* Making */

static const char *one_of(struct world *w, const char *const *list, uint32_t count)
{
	return list[rng_below(&w->rng, count)];
}

static const struct match *random_match(struct world *w, struct kind *k, bool of_node)
{
	struct match *m = &k->matches[k->matches_used++];
	uint32_t count = 1 + rng_below(&w->rng, 2);

	m->op = (uint8_t)rng_below(&w->rng, of_node ? 8 : 4);
	m->key = of_node ? one_of(w, keys, 4) : rng_chance(&w->rng, 1, 6) ? "absent" : "app";
	m->values = &k->values[k->values_used];
	if (m->op == MATCH_EXISTS || m->op == MATCH_NOT_EXISTS)
		return m;
	if (m->op == MATCH_GREATER || m->op == MATCH_LESS) {
		count = 1;
		m->key = "rack";
	}
	for (; count; count--, m->values_count++)
		k->values[k->values_used++] = !of_node ? one_of(w, apps, 3)
					      : m->op >= MATCH_NAME_IN
						      ? w->nodes[rng_below(&w->rng, NODES)].name
					      : m->op >= MATCH_GREATER ? one_of(w, racks, 4)
								       : one_of(w, zones, 3);
	return m;
}

static void random_groups(struct world *w, struct kind *k)
{
	k->spec.groups = k->groups;
	k->spec.groups_count = rng_below(&w->rng, 2);
	for (uint32_t i = 0; i < k->spec.groups_count; i++) {
		struct node_group *g = &k->groups[i];

		g->terms = &k->terms[k->terms_used];
		g->refusal = rng_chance(&w->rng, 1, 3) ? WRONG_VOLUME_NODE : 0;
		for (g->count = 0; g->count < 1 + rng_below(&w->rng, 2); g->count++) {
			struct node_term *t = &k->terms[k->terms_used++];

			t->matches = random_match(w, k, true);
			t->count = 1;
		}
	}
}

static struct pod_term random_term(struct world *w, struct kind *k)
{
	struct pod_term t = { .topology_key = one_of(w, keys, 4) };
	static const struct match team = { .key = "team", .op = MATCH_EXISTS };

	t.pods.namespaces = &k->namespace;
	t.pods.namespaces_count = rng_below(&w->rng, 4) > 0;
	t.pods.by_namespace_labels = rng_chance(&w->rng, 1, 3);
	t.pods.namespace_labels = &team;
	t.pods.namespace_labels_count = rng_below(&w->rng, 2);
	t.pods.labels = random_match(w, k, false);
	t.pods.labels_count = rng_below(&w->rng, 4) > 0;
	t.pods.nobody = rng_chance(&w->rng, 1, 12);
	return t;
}

static void random_kind(struct world *w, struct kind *k)
{
	k->namespace = one_of(w, spaces, 2);
	k->labels[0] = (struct pod_label){ "app", one_of(w, apps, 3) };
	k->labels_count = rng_below(&w->rng, 6) > 0;
	if (rng_chance(&w->rng, 1, 3))
		random_groups(w, k);
	k->spec.ports_count = rng_chance(&w->rng, 1, 4);
	k->ports[0] = (struct host_port){ .port = 80, .protocol = (uint8_t)rng_below(&w->rng, 2) };
	snprintf(k->ports[0].ip, sizeof(k->ports[0].ip), "%s",
		 rng_chance(&w->rng, 1, 3)   ? "0.0.0.0"
		 : rng_chance(&w->rng, 1, 2) ? "10.0.0.1"
					     : "10.0.0.2");
	k->spec.ports = k->ports;
	k->spec.near = k->near;
	for (; k->spec.near_count < 2 && rng_chance(&w->rng, 1, 4); k->spec.near_count++)
		k->near[k->spec.near_count] = random_term(w, k);
	k->spec.apart = k->apart;
	for (; k->spec.apart_count < 2 && rng_chance(&w->rng, 1, 3); k->spec.apart_count++)
		k->apart[k->spec.apart_count] = random_term(w, k);
	k->spec.spread = k->spread;
	for (; k->spec.spread_count < 2 && rng_chance(&w->rng, 1, 3); k->spec.spread_count++)
		k->spread[k->spec.spread_count] = (struct spread_rule){
			.labels = random_match(w, k, false),
			.labels_count = rng_below(&w->rng, 4) > 0,
			.nobody = rng_chance(&w->rng, 1, 12),
			.topology_key = one_of(w, keys, 3),
			.max_skew = 1 + rng_below(&w->rng, 2),
			.min_domains = rng_below(&w->rng, 4),
			.ignore_affinity = rng_chance(&w->rng, 1, 3),
			.honor_taints = rng_chance(&w->rng, 1, 3),
		};
	k->spec.namespace = k->namespace;
}

static struct node_spec node_spec(struct world *w, uint32_t i, struct label *labels,
				  struct taint *taint)
{
	struct node_spec spec = { .name = w->nodes[i].name,
				  .labels = labels,
				  .taints = taint,
				  .taints_count = w->nodes[i].tainted,
				  .allocatable = { 8000, INT64_C(1) << 34, 0, 110 } };
	struct cluster *c = w->cluster;

	labels[spec.labels_count++] =
		(struct label){ cluster_intern(c, "host"), cluster_intern(c, w->nodes[i].name) };
	if (w->nodes[i].zone)
		labels[spec.labels_count++] =
			(struct label){ cluster_intern(c, "zone"),
					cluster_intern(c, w->nodes[i].zone) };
	if (w->nodes[i].rack)
		labels[spec.labels_count++] =
			(struct label){ cluster_intern(c, "rack"),
					cluster_intern(c, w->nodes[i].rack) };
	*taint = (struct taint){ .key = cluster_intern(c, "hot"), .effect = EFFECT_NO_SCHEDULE };
	return spec;
}

static void random_node(struct world *w, uint32_t i)
{
	struct label labels[3];
	struct taint taint;
	struct node_spec spec;

	w->nodes[i].zone = rng_chance(&w->rng, 1, 6) ? NULL : one_of(w, zones, 3);
	w->nodes[i].rack = rng_chance(&w->rng, 1, 3) ? NULL : one_of(w, racks, 4);
	w->nodes[i].tainted = rng_chance(&w->rng, 1, 5);
	spec = node_spec(w, i, labels, &taint);
	if (w->nodes[i].number == NODE_NONE)
		CHECK(cluster_node_add(w->cluster, &spec, &w->nodes[i].number, NULL) == 0);
	else
		CHECK(cluster_node_change(w->cluster, w->nodes[i].number, &spec, NULL) == 0);
}

/* The oracle */

static const char *node_label(const struct world *w, uint32_t node, const char *key)
{
	if (strcmp(key, "host") == 0)
		return w->nodes[node].name;
	return strcmp(key, "zone") == 0	  ? w->nodes[node].zone
	       : strcmp(key, "rack") == 0 ? w->nodes[node].rack
					  : NULL;
}

static bool among(const struct match *m, const char *value)
{
	for (uint32_t i = 0; value && i < m->values_count; i++)
		if (strcmp(m->values[i], value) == 0)
			return true;
	return false;
}

static bool matches(const struct match *m, const char *value, const char *name)
{
	char *end;

	switch (m->op) {
	case MATCH_IN:
		return among(m, value);
	case MATCH_NOT_IN:
		return !among(m, value);
	case MATCH_EXISTS:
		return value;
	case MATCH_NOT_EXISTS:
		return !value;
	case MATCH_NAME_IN:
		return among(m, name);
	case MATCH_NAME_NOT_IN:
		return !among(m, name);
	default:
		if (!value || !*value || (strtol(value, &end, 10), *end) ||
		    (strtol(m->values[0], &end, 10), *end))
			return false;
		return m->op == MATCH_GREATER
			       ? strtol(value, NULL, 10) > strtol(m->values[0], NULL, 10)
			       : strtol(value, NULL, 10) < strtol(m->values[0], NULL, 10);
	}
}

static bool groups_match(const struct world *w, const struct kind *k, uint32_t node, bool own)
{
	for (uint32_t g = 0; g < k->spec.groups_count; g++) {
		bool any = own && k->groups[g].refusal;

		for (uint32_t t = 0; t < k->groups[g].count; t++) {
			const struct match *m = k->groups[g].terms[t].matches;

			any |= matches(m, node_label(w, node, m->key), w->nodes[node].name);
		}
		if (!any)
			return false;
	}
	return true;
}

static const char *pod_label(const struct kind *k, const char *key)
{
	for (uint32_t i = 0; i < k->labels_count; i++)
		if (strcmp(k->labels[i].key, key) == 0)
			return k->labels[i].value;
	return NULL;
}

static bool selects(const struct world *w, const struct pod_selector *s, const struct kind *k)
{
	bool inside = s->namespaces_count && strcmp(s->namespaces[0], k->namespace) == 0;

	if (s->by_namespace_labels)
		inside |= !s->namespace_labels_count ||
			  w->space_labels[strcmp(k->namespace, spaces[0]) != 0];
	for (uint32_t i = 0; i < s->labels_count; i++)
		inside &= matches(&s->labels[i], pod_label(k, s->labels[i].key), "");
	return inside && !s->nobody;
}

static bool same_domain(const struct world *w, uint32_t a, uint32_t b, const char *key)
{
	const char *x = node_label(w, a, key), *y = node_label(w, b, key);

	return x && y && strcmp(x, y) == 0;
}

static bool selects_all(const struct world *w, const struct kind *k, const struct kind *other)
{
	for (uint32_t i = 0; i < k->spec.near_count; i++)
		if (!selects(w, &k->near[i].pods, other))
			return false;
	return true;
}

static bool oracle_near(const struct world *w, const struct kind *k, uint32_t node)
{
	bool all = true, anywhere = false;

	for (uint32_t i = 0; i < k->spec.near_count; i++) {
		bool found = false;

		if (!node_label(w, node, k->near[i].topology_key))
			return false;
		for (uint32_t p = 0; p < PODS; p++) {
			if (w->pods[p].number == NO_POD ||
			    !selects_all(w, k, &w->kinds[w->pods[p].kind]))
				continue;
			anywhere |=
				node_label(w, w->pods[p].node, k->near[i].topology_key) != NULL;
			found |= same_domain(w, node, w->pods[p].node, k->near[i].topology_key);
		}
		all &= found;
	}
	return all || (!anywhere && selects_all(w, k, k));
}

static bool spread_selects(const struct spread_rule *s, const struct kind *k,
			   const struct kind *other)
{
	return !s->nobody && strcmp(k->namespace, other->namespace) == 0 &&
	       (!s->labels_count ||
		matches(&s->labels[0], pod_label(other, s->labels[0].key), ""));
}

static bool counts_for(const struct world *w, const struct kind *k, const struct spread_rule *s,
		       uint32_t node)
{
	if (w->nodes[node].number == NODE_NONE)
		return false;
	for (uint32_t i = 0; i < k->spec.spread_count; i++)
		if (!node_label(w, node, k->spread[i].topology_key))
			return false;
	return (s->ignore_affinity || groups_match(w, k, node, true)) &&
	       (!s->honor_taints || !w->nodes[node].tainted);
}

static uint32_t spread_count(const struct world *w, const struct kind *k,
			     const struct spread_rule *s, uint32_t node)
{
	uint32_t count = 0;

	for (uint32_t p = 0; s->labels_count && p < PODS; p++)
		count += w->pods[p].number != NO_POD && !w->pods[p].ending &&
			 counts_for(w, k, s, w->pods[p].node) &&
			 same_domain(w, node, w->pods[p].node, s->topology_key) &&
			 spread_selects(s, k, &w->kinds[w->pods[p].kind]);
	return count;
}

static enum verdict oracle_spread(const struct world *w, const struct kind *k, uint32_t node)
{
	for (uint32_t i = 0; i < k->spec.spread_count; i++) {
		const struct spread_rule *s = &k->spread[i];
		uint32_t least = UINT32_MAX, domains = 0;

		if (!node_label(w, node, s->topology_key))
			return NO_SPREAD_LABEL;
		for (uint32_t n = 0; n < NODES; n++) {
			bool first = counts_for(w, k, s, n);

			for (uint32_t m = 0; m < n; m++)
				first &= !(counts_for(w, k, s, m) &&
					   same_domain(w, m, n, s->topology_key));
			domains += first;
			if (first)
				least = MIN(least, spread_count(w, k, s, n));
		}
		if (domains < MAX(s->min_domains, 1))
			least = 0;
		if (spread_count(w, k, s, node) + spread_selects(s, k, k) > least + s->max_skew)
			return UNEVEN;
	}
	return FITS;
}

static bool ports_clash(const struct kind *a, const struct kind *b)
{
	return a->spec.ports_count && b->spec.ports_count &&
	       a->ports[0].protocol == b->ports[0].protocol &&
	       (strcmp(a->ports[0].ip, b->ports[0].ip) == 0 ||
		strcmp(a->ports[0].ip, "0.0.0.0") == 0 || strcmp(b->ports[0].ip, "0.0.0.0") == 0);
}

static enum verdict oracle(const struct world *w, const struct kind *k, uint32_t node)
{
	enum verdict v = FITS;

	for (uint32_t p = 0; p < PODS; p++)
		if (w->pods[p].number != NO_POD && w->pods[p].node == node &&
		    ports_clash(k, &w->kinds[w->pods[p].kind]))
			return NO_PORT;
	v = oracle_spread(w, k, node);
	if (v != FITS)
		return v;
	if (!oracle_near(w, k, node))
		return NOT_NEAR;
	for (uint32_t i = 0; i < k->spec.apart_count; i++)
		for (uint32_t p = 0; p < PODS; p++)
			if (w->pods[p].number != NO_POD &&
			    same_domain(w, node, w->pods[p].node, k->apart[i].topology_key) &&
			    selects(w, &k->apart[i].pods, &w->kinds[w->pods[p].kind]))
				return NOT_APART;
	for (uint32_t p = 0; p < PODS; p++) {
		const struct kind *other = &w->kinds[w->pods[p].kind];

		for (uint32_t i = 0; w->pods[p].number != NO_POD && i < other->spec.apart_count;
		     i++)
			if (same_domain(w, node, w->pods[p].node, other->apart[i].topology_key) &&
			    selects(w, &other->apart[i].pods, k))
				return KEPT_AWAY;
	}
	return FITS;
}

/* Steps */

static void step_place(struct world *w)
{
	uint32_t slot = rng_below(&w->rng, PODS), kind = rng_below(&w->rng, KINDS);
	uint32_t node = rng_below(&w->rng, NODES);
	struct decision d = { .assignment = { .count = 0 } };
	char uid[16];

	if (w->pods[slot].number != NO_POD || w->nodes[node].number == NODE_NONE)
		return;
	snprintf(uid, sizeof(uid), "u%u", w->made++);
	d.node = w->nodes[node].number;
	CHECK(engine_place(w->engine, &(struct pod_spec){ .uid = uid }, &w->requests[kind], &d,
			   &w->pods[slot].number) == 0);
	w->pods[slot].node = node;
	w->pods[slot].kind = kind;
	w->pods[slot].ending = false;
}

static void step_remove(struct world *w)
{
	uint32_t slot = rng_below(&w->rng, PODS);

	if (w->pods[slot].number == NO_POD)
		return;
	if (!w->pods[slot].ending && rng_chance(&w->rng, 1, 2)) {
		cluster_pod_ending(w->cluster, w->pods[slot].number);
		w->pods[slot].ending = true;
		return;
	}
	engine_remove(w->engine, w->pods[slot].number);
	w->pods[slot].number = NO_POD;
}

static void step_node(struct world *w)
{
	uint32_t i = rng_below(&w->rng, NODES);

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

static void step_namespace(struct world *w)
{
	uint32_t i = rng_below(&w->rng, 2);
	struct pod_label team = { "team", "x" };

	w->space_labels[i] = w->space_labels[i] ? NULL : "x";
	if (w->space_labels[i])
		CHECK(rules_namespace(w->cluster, spaces[i], &team, 1) == 0);
	else
		rules_namespace_gone(w->cluster, spaces[i]);
}

static void take_request(struct world *w, uint32_t i)
{
	struct kind *k = &w->kinds[i];
	struct request *r = &w->requests[i];

	request_init(r);
	r->needs.cpu_milli = 100 * rng_below(&w->rng, 20);
	r->tolerations[0] = (struct toleration){ .op = TOLERATE_EXISTS };
	r->tolerations_count = 1;
	CHECK(subject_take(w->cluster, k->namespace, k->labels, k->labels_count, &r->subject) ==
	      0);
	CHECK(rules_take(w->cluster, &k->spec, &r->rules) == 0);
}

static void drop_request(struct world *w, uint32_t i)
{
	subject_release(w->cluster, w->requests[i].subject);
	rules_release(w->cluster, w->requests[i].rules);
}

/* A kind whose pods are all gone becomes another. */
static void step_kind(struct world *w)
{
	uint32_t i = rng_below(&w->rng, KINDS);

	for (uint32_t p = 0; p < PODS; p++)
		if (w->pods[p].number != NO_POD && w->pods[p].kind == i)
			return;
	drop_request(w, i);
	w->kinds[i] = (struct kind){ 0 };
	random_kind(w, &w->kinds[i]);
	take_request(w, i);
}

static void check_all(struct world *w, uint64_t seed, uint32_t step)
{
	uint32_t kind = rng_below(&w->rng, KINDS);
	const struct kind *k = &w->kinds[kind];
	const struct request *r = &w->requests[kind];
	struct decision d, afresh;
	enum verdict v;

	for (uint32_t n = 0; n < NODES; n++) {
		uint32_t number = w->nodes[n].number;

		if (number == NODE_NONE)
			continue;
		CHECKF((rules_fit_node(w->cluster, r->rules, number) == FITS) ==
			       groups_match(w, k, n, false),
		       "seed %" PRIu64 " step %u: labels of node %u for kind %u", seed, step, n,
		       kind);
		v = rules_fit_pods(w->cluster, r->rules, r->subject, number, NULL, 0);
		CHECKF(v == oracle(w, k, n),
		       "seed %" PRIu64 " step %u: node %u, kind %u: %s, not %s", seed, step, n,
		       kind, verdict_name(v), verdict_name(oracle(w, k, n)));
	}
	v = engine_decide(w->engine, r, &d);
	CHECKF(v == engine_decide_afresh(w->engine, r, &afresh),
	       "seed %" PRIu64 " step %u: kind %u", seed, step, kind);
	if (v == FITS)
		CHECKF(d.node == afresh.node, "seed %" PRIu64 " step %u: kind %u", seed, step,
		       kind);
}

static void world_begin(struct world *w, uint64_t seed)
{
	rng_seed(&w->rng, seed);
	w->engine = engine_new(&(struct engine_config){ 0 });
	CHECK(w->engine);
	w->cluster = engine_cluster(w->engine);
	for (uint32_t i = 0; i < NODES; i++) {
		snprintf(w->nodes[i].name, sizeof(w->nodes[i].name), "n%u", i);
		w->nodes[i].number = NODE_NONE;
	}
	for (uint32_t i = 0; i < PODS; i++)
		w->pods[i].number = NO_POD;
	for (uint32_t i = 0; i < KINDS; i++) {
		random_kind(w, &w->kinds[i]);
		take_request(w, i);
	}
}

TEST(rules_hold_where_a_look_at_everything_says_so)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct world w = { 0 };

		world_begin(&w, seed);
		for (uint32_t step = 0; step < STEPS; step++) {
			uint32_t what = rng_below(&w.rng, 20);

			if (what < 9)
				step_place(&w);
			else if (what < 14)
				step_remove(&w);
			else if (what < 17)
				step_node(&w);
			else if (what < 18)
				step_namespace(&w);
			else
				step_kind(&w);
			check_all(&w, seed, step);
			CHECKF(!cluster_check(w.cluster), "seed %" PRIu64 " step %u: %s", seed,
			       step, cluster_check(w.cluster));
		}
		for (uint32_t i = 0; i < KINDS; i++)
			drop_request(&w, i);
		engine_free(w.engine);
	}
}

TEST_MAIN()
