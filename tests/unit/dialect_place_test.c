/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect_bench.h"

#include "engine/assign.h"

#define POD(spec) "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}], " spec "}\n"
#define AFFINITY(terms)                                                                   \
	POD("affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {" \
	    "nodeSelectorTerms: [" terms "]}}}")

/* The node that the pod would go to, or how it is refused there. */
static enum verdict fits(struct bench *b, const char *pod, const char *node)
{
	CHECK(bench_read(b, pod) == 0);
	return fit_place(b->cluster, &b->wish.request, cluster_node_find(b->cluster, node));
}

TEST(labels_and_names_of_nodes_decide)
{
	struct bench b;

	bench_init(&b);
	CHECK_INT(fits(&b, POD("nodeSelector: {kubernetes.io/hostname: alpha}"), "alpha"), FITS);
	CHECK_INT(fits(&b, POD("nodeSelector: {kubernetes.io/hostname: alpha}"), "beta"),
		  WRONG_LABELS);
	CHECK_INT(fits(&b,
		       AFFINITY("{matchExpressions: [{key: kubernetes.io/hostname, operator: "
				"NotIn, values: [alpha]}]}"),
		       "alpha"),
		  WRONG_LABELS);
	CHECK_INT(fits(&b,
		       AFFINITY("{matchFields: [{key: metadata.name, operator: In, values: "
				"[beta]}]}"),
		       "alpha"),
		  WRONG_LABELS);
	/* Terms are alternatives; an empty one matches nothing. */
	CHECK_INT(fits(&b,
		       AFFINITY("{}, {matchFields: [{key: metadata.name, operator: In, values: "
				"[beta]}]}"),
		       "beta"),
		  FITS);
	CHECK_INT(fits(&b, AFFINITY("{}"), "beta"), WRONG_LABELS);
	CHECK(bench_read(&b, POD("nodeName: alpha")) == 0);
	CHECK_INT(b.wish.request.node, cluster_node_find(b.cluster, "alpha"));
	bench_done(&b);
}

TEST(tolerations_are_read)
{
	struct bench b;

	bench_init(&b);
	CHECK(cluster_intern(b.cluster, "k") && cluster_intern(b.cluster, "v"));
	CHECK(bench_read(&b, POD("tolerations: [{operator: Exists}, {key: k, value: v, effect: "
				 "NoSchedule},"
				 " {key: k, operator: Gt, value: '3'}]")) == 0);
	CHECK_INT(b.wish.request.tolerations_count, 2);
	CHECK_INT(b.wish.request.tolerations[0].key, 0);
	CHECK_INT(b.wish.request.tolerations[0].op, TOLERATE_EXISTS);
	CHECK_INT(b.wish.request.tolerations[1].effect, EFFECT_NO_SCHEDULE);
	bench_done(&b);
}

TEST(words_that_no_node_has_are_not_remembered)
{
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(&b, POD("tolerations: [{key: nobody, value: nothing}], nodeSelector: "
				 "{nowhere: never, nor: there}")) == 0);
	CHECK_INT(b.wish.request.tolerations_count, 0);
	CHECK_INT(cluster_find(b.cluster, "nobody"), UINT32_MAX);
	CHECK_INT(cluster_find(b.cluster, "never"), UINT32_MAX);
	CHECK_INT(fit_place(b.cluster, &b.wish.request, cluster_node_find(b.cluster, "alpha")),
		  WRONG_LABELS);
	bench_done(&b);
}

TEST(priority_comes_from_the_pod_or_its_class)
{
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(&b, POD("priority: -5")) == 0);
	CHECK_INT(b.wish.priority, -5);
	CHECK(b.wish.preempts);
	CHECK(bench_read(&b, POD("priorityClassName: system-node-critical")) == 0);
	CHECK_INT(b.wish.priority, 2000001000);
	CHECK(bench_read(&b, POD("priorityClassName: batch") "---\nkind: PriorityClass\nmetadata: "
							     "{name: batch}\nvalue: 7\n"
							     "preemptionPolicy: Never\n") == 0);
	CHECK_INT(b.wish.priority, 7);
	CHECK(!b.wish.preempts);
	CHECK(bench_read(&b, POD("schedulerName: gpu-scheduler, preemptionPolicy: Never")) == 0);
	CHECK(!b.wish.preempts);
	CHECK_STR(b.wish.scheduler, "gpu-scheduler");
	bench_done(&b);
}

TEST(malformed_rules_are_refused)
{
	static const struct bad_pod rows[] = {
		{ POD("nodeName: nowhere"), "nodeName: node nowhere does not exist", ENOENT },
		{ POD("nodeSelector: {zone: 5}"), "nodeSelector zone: the value is no string", 0 },
		{ AFFINITY("{matchExpressions: [{key: zone, operator: Near, values: [a]}]}"),
		  "nodeAffinity: the operator Near of zone is unknown", 0 },
		{ AFFINITY("{matchExpressions: [{key: zone, operator: Gt, values: [a, b]}]}"),
		  "nodeAffinity: Gt of zone needs exactly one value", 0 },
		{ AFFINITY("{matchExpressions: [{operator: Exists}]}"),
		  "nodeAffinity: an expression has no key", 0 },
		{ AFFINITY("{matchExpressions: [{key: zone, operator: In, values: [1]}]}"),
		  "nodeAffinity: a value is no string", 0 },
		{ AFFINITY("{matchFields: [{key: metadata.uid, operator: In, values: [a]}]}"),
		  "nodeAffinity: matchFields knows metadata.name only, not metadata.uid", 0 },
		{ POD("affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
		      "[{}]}}"),
		  "podAffinity: a term has no topologyKey", 0 },
		{ POD("affinity: {podAntiAffinity: "
		      "{requiredDuringSchedulingIgnoredDuringExecution:"
		      " [{topologyKey: zone, labelSelector: {matchLabels: {a: 5}}}]}}"),
		  "podAntiAffinity: the value of a is no string", 0 },
		{ POD("topologySpreadConstraints: [{maxSkew: 1}]"),
		  "topologySpreadConstraints: an entry has no topologyKey", 0 },
		{ POD("topologySpreadConstraints: [{topologyKey: zone}]"),
		  "topologySpreadConstraints: maxSkew must be a whole number from 1", 0 },
		{ "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, ports:"
		  " [{hostPort: 80000}]}]}\n",
		  "a hostPort is no port number", 0 },
		{ POD("tolerations: [{key: k, operator: Maybe}]"),
		  "toleration: operator Maybe is unknown", 0 },
		{ POD("tolerations: [{value: v}]"),
		  "a toleration without key needs operator Exists", 0 },
		{ POD("tolerations: [{key: k, effect: Sometimes}]"),
		  "toleration: effect Sometimes is unknown", 0 },
		{ POD("schedulingGates: [{name: g}]"), "the pod waits for its scheduling gates",
		  EAGAIN },
		{ POD("resourceClaims: [{name: gpu, resourceClaimName: gpu}]"),
		  "spec.resourceClaims (dynamic resource allocation) is not supported: ask for "
		  "GPUs by limits or by a GpuClaim",
		  ENOTSUP },
		{ POD("priorityClassName: none"), "PriorityClass none does not exist", ENOENT },
		{ POD("priority: high"), "spec.priority is no whole number", 0 },
		{ POD("priority: 3000000000"), "the priority 3000000000 is out of range", 0 },
		{ "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, resources: "
		  "{requests:"
		  " {cpu: -1}}}]}\n",
		  "container c: cpu is negative", 0 },
	};

	bench_check_bad(rows, ARRAY_SIZE(rows));
}

TEST_MAIN()
