/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect_bench.h"

#define POD(spec) "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}], " spec "}\n"
#define AFFINITY(terms)                                                                   \
	POD("affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {" \
	    "nodeSelectorTerms: [" terms "]}}}")

TEST(selectors_and_simple_affinity_are_the_same)
{
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(&b, POD("nodeSelector: {zone: a}")) == 0);
	struct request by_selector = b.wish.request;
	CHECK(bench_read(
		      &b,
		      AFFINITY("{matchExpressions: [{key: zone, operator: In, values: [a]}]}")) ==
	      0);
	CHECK(request_equal(&by_selector, &b.wish.request));
	CHECK(bench_read(&b, AFFINITY("{matchFields: [{key: metadata.name, operator: In, values: "
				      "[beta]}]}")) == 0);
	CHECK_INT(b.wish.request.node, cluster_node_find(b.cluster, "beta"));
	CHECK(bench_read(&b, POD("nodeName: alpha")) == 0);
	CHECK_INT(b.wish.request.node, cluster_node_find(b.cluster, "alpha"));
	bench_done(&b);
}

TEST(tolerations_are_read)
{
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(&b, POD("tolerations: [{operator: Exists}, {key: k, value: v, effect: "
				 "NoSchedule},"
				 " {key: k, operator: Gt, value: '3'}]")) == 0);
	CHECK_INT(b.wish.request.tolerations_count, 2);
	CHECK_INT(b.wish.request.tolerations[0].key, 0);
	CHECK_INT(b.wish.request.tolerations[0].op, TOLERATE_EXISTS);
	CHECK_INT(b.wish.request.tolerations[1].effect, EFFECT_NO_SCHEDULE);
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

TEST(rules_that_are_not_understood_are_refused)
{
	static const struct bad_pod rows[] = {
		{ POD("nodeName: nowhere"), "nodeName: node nowhere does not exist", ENOENT },
		{ POD("nodeSelector: {zone: 5}"), "nodeSelector zone: the value is no string", 0 },
		{ AFFINITY("{matchExpressions: [{key: zone, operator: NotIn, values: [a]}]}"),
		  "node affinity other than In with one value is not supported yet", ENOTSUP },
		{ AFFINITY("{matchExpressions: [{key: zone, operator: In, values: [a, b]}]}"),
		  "node affinity other than In with one value is not supported yet", ENOTSUP },
		{ AFFINITY("{matchFields: [{key: metadata.uid, operator: In, values: [a]}]}"),
		  "node affinity by fields other than metadata.name In is not supported yet",
		  ENOTSUP },
		{ AFFINITY("{}, {}"),
		  "node affinity with other than one term is not supported yet", ENOTSUP },
		{ AFFINITY("{}"), "an empty node affinity term matches no node", 0 },
		{ POD("nodeSelector: {zone: a}, affinity: {nodeAffinity:"
		      " {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms:"
		      " [{matchExpressions: [{key: zone, operator: In, values: [b]}]}]}}}"),
		  "the node label zone is to be both \"a\" and \"b\"", 0 },
		{ POD("affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
		      "[{}]}}"),
		  "required pod affinity is not supported yet", ENOTSUP },
		{ POD("affinity: {podAntiAffinity: "
		      "{requiredDuringSchedulingIgnoredDuringExecution:"
		      " [{}]}}"),
		  "required pod anti-affinity is not supported yet", ENOTSUP },
		{ POD("topologySpreadConstraints: [{maxSkew: 1}]"),
		  "a topology spread constraint with DoNotSchedule is not supported yet",
		  ENOTSUP },
		{ "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, ports:"
		  " [{hostPort: 80}]}]}\n",
		  "a host port is not supported yet", ENOTSUP },
		{ POD("tolerations: [{key: k, operator: Maybe}]"),
		  "toleration: operator Maybe is unknown", 0 },
		{ POD("tolerations: [{value: v}]"),
		  "a toleration without key needs operator Exists", 0 },
		{ POD("tolerations: [{key: k, effect: Sometimes}]"),
		  "toleration: effect Sometimes is unknown", 0 },
		{ POD("schedulingGates: [{name: g}]"), "the pod waits for its scheduling gates",
		  EAGAIN },
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
