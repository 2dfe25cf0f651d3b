/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect_bench.h"

#include "engine/adopt.h"
#include "engine/soft.h"

#define POD(spec) POD_OF("web", spec)
#define POD_OF(app, spec)                                                \
	"kind: Pod\nmetadata: {name: p, labels: {app: " app "}}\nspec: " \
	"{containers: [{name: c}], " spec "}\n"
#define PREFERRED	 "preferredDuringSchedulingIgnoredDuringExecution"
#define NODES(terms)	 POD("affinity: {nodeAffinity: {" PREFERRED ": [" terms "]}}")
#define PODS(what, term) "affinity: {" what ": {" PREFERRED ": [" term "]}}"
#define ON_HOST(app)                                                             \
	"podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: " \
	"{matchLabels: {app: " app "}}}"

static struct soft_mark mark(struct bench *b, const char *pod, const char *node)
{
	struct soft_mark m;

	CHECKF(bench_read(b, pod) == 0, "%s", b->err.text);
	soft_mark(b->cluster, &b->wish.request, cluster_node_find(b->cluster, node), &m);
	wish_release(b->cluster, &b->wish);
	return m;
}

/* A pod that is on the node. */
static void put(struct bench *b, const char *pod, const char *node)
{
	struct request *r = &b->wish.request;
	uint32_t number;

	CHECKF(bench_read(b, pod) == 0, "%s", b->err.text);
	CHECK_INT(adopt_pod(b->cluster, &(struct pod_spec){ .uid = "there" }, r,
			    cluster_node_find(b->cluster, node), NULL, &number),
		  0);
	wish_release(b->cluster, &b->wish);
}

TEST(preferred_node_terms_have_their_weights)
{
	static const char pod[] = NODES(
		"{weight: 7, preference: {matchExpressions: [{key: kubernetes.io/hostname, "
		"operator: In, values: [alpha]}]}},"
		"{weight: 100, preference: {matchFields: [{key: metadata.name, operator: In, "
		"values: [beta]}]}},"
		"{weight: 30, preference: {matchExpressions: [{key: kubernetes.io/hostname, "
		"operator: Exists}]}},"
		"{weight: 50, preference: {}}");
	struct bench b;

	bench_init(&b);
	CHECK_INT(mark(&b, pod, "alpha").affinity, 37);
	CHECK_INT(mark(&b, pod, "beta").affinity, 130);
	CHECK(bench_read(&b, NODES("{weight: 50, preference: {}}")) == 0);
	CHECK_INT(b.wish.request.soft, 0);
	CHECK(bench_read(&b, NODES("")) == 0);
	CHECK_INT(b.wish.request.soft, 0);
	bench_done(&b);
}

TEST(pods_are_preferred_both_ways)
{
	struct bench b;

	bench_init(&b);
	put(&b, POD_OF("db", PODS("podAntiAffinity", "{weight: 8, " ON_HOST("web") "}")), "alpha");
	CHECK_INT(mark(&b, POD("hostNetwork: false"), "alpha").pods, -8);
	CHECK_INT(mark(&b, POD("hostNetwork: false"), "beta").pods, 0);
	CHECK_INT(mark(&b, POD_OF("other", "hostNetwork: false"), "alpha").pods, 0);
	CHECK_INT(mark(&b, POD(PODS("podAffinity", "{weight: 50, " ON_HOST("db") "}")), "alpha")
			  .pods,
		  42);
	CHECK_INT(
		mark(&b, POD(PODS("podAntiAffinity", "{weight: 50, " ON_HOST("db") "}")), "alpha")
			.pods,
		-58);
	bench_done(&b);
}

TEST(required_affinity_draws_those_who_come_later)
{
	struct bench b;

	bench_init(&b);
	put(&b,
	    POD("affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: ["
		"{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: "
		"web}}}]}}"),
	    "beta");
	CHECK_INT(mark(&b, POD("hostNetwork: false"), "alpha").pods, 0);
	CHECK_INT(mark(&b, POD("hostNetwork: false"), "beta").pods, 1);
	bench_done(&b);
}

TEST(a_spread_that_is_not_required_is_a_preference)
{
	static const char pod[] = POD(
		"topologySpreadConstraints: [{maxSkew: 2, topologyKey: kubernetes.io/hostname, "
		"whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}]");
	struct bench b;

	bench_init(&b);
	put(&b, POD("hostNetwork: false"), "alpha");
	/* One pod times ln(2 domains + 2), and maxSkew - 1. */
	CHECK_INT(mark(&b, pod, "alpha").spread, 2);
	CHECK_INT(mark(&b, pod, "beta").spread, 1);
	CHECK(bench_read(&b, pod) == 0);
	CHECK_INT(b.wish.request.rules, 0);
	bench_done(&b);
}

TEST(preferences_that_make_no_sense_are_refused)
{
	static const struct bad_pod rows[] = {
		{ NODES("{preference: {matchFields: []}}"),
		  "nodeAffinity: a preferred term needs a weight, a whole number from 1 to 100",
		  0 },
		{ NODES("{weight: many, preference: {}}"),
		  "nodeAffinity: a preferred term needs a weight, a whole number from 1 to 100",
		  0 },
		{ NODES("{weight: 0, preference: {}}"),
		  "nodeAffinity: the weight 0 of a preferred term is not from 1 to 100", 0 },
		{ NODES("{weight: 101, preference: {}}"),
		  "nodeAffinity: the weight 101 of a preferred term is not from 1 to 100", 0 },
		{ NODES("{weight: 1, preference: {matchExpressions: [{key: a, operator: Near}]}}"),
		  "nodeAffinity: the operator Near of a is unknown", 0 },
		{ POD(PODS("podAffinity", "{weight: -1, podAffinityTerm: {topologyKey: zone}}")),
		  "podAffinity: the weight -1 of a preferred term is not from 1 to 100", 0 },
		{ POD(PODS("podAntiAffinity", "{weight: 1, podAffinityTerm: {}}")),
		  "podAntiAffinity: a term has no topologyKey", 0 },
		{ POD("topologySpreadConstraints: [{topologyKey: zone, whenUnsatisfiable: "
		      "ScheduleAnyway}]"),
		  "topologySpreadConstraints: maxSkew must be a whole number from 1", 0 },
	};

	bench_check_bad(rows, ARRAY_SIZE(rows));
}

TEST(more_terms_than_are_looked_at_are_refused)
{
	char pod[16384] = "kind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: c}]\n"
			  "  affinity:\n    nodeAffinity:\n      " PREFERRED ":\n";
	size_t len = strlen(pod);
	struct bench b;

	bench_init(&b);
	for (unsigned i = 0; i <= SOFT_TERMS_MAX; i++)
		len += (size_t)snprintf(
			pod + len, sizeof(pod) - len,
			"      - {weight: 1, preference: {matchExpressions: [{key: "
			"k%u, operator: Exists}]}}\n",
			i);
	CHECK_INT(bench_read(&b, pod), -EINVAL);
	CHECK_STR(b.err.text, "the pod has more than 64 preferred terms");
	bench_done(&b);
}

/* What it prefers cannot be read: what it demands and takes counts all the same. */
TEST(a_pod_that_is_there_keeps_its_rules_when_its_preferences_are_bad)
{
	static const char pod[] = POD(
		"affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: ["
		"{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}],"
		" " PREFERRED ": [{weight: 0}]}}");
	struct pod_source source;
	struct bench b;

	bench_init(&b);
	CHECK_INT(bench_read(&b, pod), -EINVAL);
	CHECK(pod_source_read(json_root(b.objects.items[0].doc), &b.lookup, &source, &b.err) == 0);
	CHECK(dialect_read_resident(b.cluster, &b.lookup, &source, &b.arena, &b.wish, &b.err) ==
	      0);
	CHECK_STR(b.err.text,
		  "podAntiAffinity: the weight 0 of a preferred term is not from 1 to 100");
	CHECK(b.wish.request.rules);
	CHECK_INT(b.wish.request.soft, 0);
	wish_release(b.cluster, &b.wish);
	bench_done(&b);
}

TEST_MAIN()
