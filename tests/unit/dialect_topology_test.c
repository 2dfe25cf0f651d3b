/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect_bench.h"

#define T "topology.scheduler/"
#define POD(annotations, spec) \
	"kind: Pod\nmetadata: {name: p, annotations: {" annotations "}}\nspec: " spec "\n"
#define PLAIN(annotations) POD(annotations, "{containers: [{name: a}]}")
#define OWNED(kind)                                                       \
	"kind: Pod\nmetadata: {name: p-0, ownerReferences: [{kind: " kind \
	", name: own, controller: true}]}\nspec: {containers: [{name: a}]}\n---\n"
#define OWNER(kind, annotations, spec) \
	"kind: " kind "\nmetadata: {name: own, annotations: {" annotations "}}\nspec: " spec "\n"

TEST(annotations_of_a_pod_are_read)
{
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(&b,
			 PLAIN(T "gpu-count: '4', " T "preferred-domain: leaf-1, " T
				 "network-bandwidth: 100Gbps, " T "latency-sensitive: 'true', " T
				 "placement-strategy: balanced")) == 0);
	CHECK_INT(b.wish.request.asks[0].kind, ASK_WHOLE);
	CHECK_INT(b.wish.request.asks[0].count, 4);
	CHECK_INT(b.wish.request.prefer_domain, cluster_domain_named(b.cluster, "leaf-1"));
	CHECK_INT(b.wish.request.min_network_gbps, 100);
	CHECK_INT(b.wish.request.latency_sensitive, 1);
	CHECK_INT(b.wish.request.strategy, STRATEGY_BALANCED);
	CHECK(b.wish.gang.name == NULL);
	CHECK(bench_read(&b, PLAIN(T "gpu-count: '1', " T "preferred-domain: spine-0/leaf-0")) ==
	      0);
	CHECK_INT(b.wish.request.prefer_domain, cluster_domain_named(b.cluster, "leaf-0"));
	CHECK(bench_read(&b, PLAIN(T "gpu-count: '1', " T "preferred-domain: nowhere")) == 0);
	CHECK_INT(b.wish.request.prefer_domain, DOMAIN_NONE);
	bench_done(&b);
}

TEST(owners_hand_their_annotations_down)
{
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(&b, OWNED("Job") OWNER("Job", T "gpu-count: '16'", "{parallelism: 4}")) ==
	      0);
	CHECK_INT(b.wish.request.asks[0].count, 4);
	CHECK_STR(b.wish.gang.name, "default/job/own");
	CHECK_INT(b.wish.gang.members, 4);
	CHECK_INT(b.wish.gang.leaves, LEAVES_REQUIRED);
	/* Never more pods than are to complete. */
	CHECK(bench_read(&b, OWNED("Job") OWNER("Job", T "gpu-count: '16'",
						"{parallelism: 4, completions: 2}")) == 0);
	CHECK_INT(b.wish.request.asks[0].count, 8);
	CHECK(bench_read(&b, OWNED("StatefulSet") OWNER("StatefulSet", T "gpu-count: '2'",
							"{replicas: 8}")) == 0);
	CHECK_INT(b.wish.request.asks[0].count, 2);
	CHECK(b.wish.gang.name == NULL);
	/* A ReplicaSet's own owner counts too. */
	CHECK(bench_read(&b, OWNED("ReplicaSet") "kind: ReplicaSet\nmetadata: {name: own, "
						 "ownerReferences: [{kind: Deployment,"
						 " name: own, controller: true}]}\n---\n" OWNER(
							 "Deployment", T "gpu-count: '3'",
							 "{replicas: 2}")) == 0);
	CHECK_INT(b.wish.request.asks[0].count, 3);
	bench_done(&b);
}

TEST(pods_of_a_job_that_have_succeeded_are_not_waited_for)
{
	static const struct {
		const char *spec;
		uint32_t members; /* 0: no gang any more */
	} cases[] = {
		{ "{parallelism: 4, completions: 4}\nstatus: {succeeded: 1}", 3 },
		{ "{parallelism: 4, completions: 4}\nstatus: {succeeded: 3}", 0 },
		{ "{parallelism: 4, completions: 4}\nstatus: {succeeded: 9}", 0 },
		{ "{parallelism: 4, completions: 4}\nstatus: {succeeded: -1}", 4 },
		{ "{parallelism: 4, completions: 10}\nstatus: {succeeded: 6}", 4 },
		{ "{parallelism: 4, completions: 10}\nstatus: {succeeded: 8}", 2 },
		{ "{parallelism: 4}\nstatus: {succeeded: 2}", 4 },
	};
	struct bench b;

	bench_init(&b);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[1024];

		snprintf(text, sizeof(text),
			 OWNED("Job") "kind: Job\nmetadata: {name: own, annotations: {" T
				      "gpu-count: '16'}}\nspec: %s\n",
			 cases[i].spec);
		CHECK(bench_read(&b, text) == 0);
		CHECK_INT(b.wish.gang.members, cases[i].members);
		CHECK_INT(b.wish.request.asks[0].count, 4); /* what each gets is as before */
	}
	bench_done(&b);
}

TEST(a_group_may_have_others_beside_the_pods_of_a_job)
{
	static const char text[] =
		"kind: Pod\nmetadata: {name: p-0, labels: {scheduling.x-k8s.io/pod-group: g}, "
		"ownerReferences: [{kind: Job, name: own, controller: true}]}\n"
		"spec: {containers: [{name: a}]}\n---\n"
		"kind: PodGroup\nmetadata: {name: g}\nspec: {minMember: 5}\n---\n"
		"kind: Job\nmetadata: {name: own}\nspec: {parallelism: 4, completions: 4}\n"
		"status: {succeeded: 1}\n";
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(&b, text) == 0);
	CHECK_INT(b.wish.gang.members, 4);
	bench_done(&b);
}

#define REF(version, kind, name, uid)                                                           \
	"ownerReferences: [{apiVersion: " version ", kind: " kind ", name: " name ", uid: " uid \
	", controller: true}]"
#define CHILD(version, kind, uid)                                                                \
	"kind: Pod\nmetadata: {name: p-x, namespace: ml, " REF(version, kind, "own",             \
							       uid) "}\nspec: {containers: [{na" \
								    "me: a}]}\n---\n"
#define SET(uid, more)                                                                 \
	"apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: own, namespace: ml, " \
	"uid: " uid more "}\n---\n"
#define TOP(uid)                                                                       \
	"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: top, namespace: ml, " \
	"uid: " uid ", annotations: {" T "gpu-count: '2'}}\n"
#define NOTHING "kind: Namespace\nmetadata: {name: ml}\n"
#define OR_DELETE                             \
	"if it was deleted, delete the pod, " \
	"or remove it from the pod's metadata.ownerReferences"

TEST(an_owner_that_is_still_to_come_is_waited_for_where_one_may_come)
{
	static const struct {
		const char *yaml;
		const char *complaint; /* NULL: it is read */
		uint32_t gpus;	       /* then, or if nobody comes */
	} rows[] = {
		{ CHILD("apps/v1", "ReplicaSet", "r") NOTHING,
		  "its ReplicaSet ml/own is not there (yet): " OR_DELETE, 0 },
		{ CHILD("apps/v1", "StatefulSet", "r") NOTHING,
		  "its StatefulSet ml/own is not there (yet): " OR_DELETE, 0 },
		{ CHILD("apps/v1", "Deployment", "r") NOTHING,
		  "its Deployment ml/own is not there (yet): " OR_DELETE, 0 },
		{ CHILD("batch/v1", "Job", "r") NOTHING,
		  "its Job ml/own is not there (yet): " OR_DELETE, 0 },
		{ CHILD("v1", "ReplicationController", "r") NOTHING,
		  "its ReplicationController ml/own is not there (yet): " OR_DELETE, 0 },
		/* Nobody looks for these. */
		{ CHILD("batch/v1", "CronJob", "r") NOTHING, NULL, 0 },
		{ CHILD("x.io/v1", "Job", "r") NOTHING, NULL, 0 },
		{ CHILD("x.io/v1", "ReplicationController", "r") NOTHING, NULL, 0 },
		{ CHILD("v1", "Node", "r") NOTHING, NULL, 0 },
		{ "kind: Pod\nmetadata: {name: p, ownerReferences: [{apiVersion: batch/v1, kind: "
		  "Job, name: own, uid: r}]}\nspec: {containers: [{name: a}]}\n",
		  NULL, 0 }, /* not its controller */
		/* One of the same name. */
		{ CHILD("apps/v1", "ReplicaSet", "r")
			  SET("s", ", annotations: {" T "gpu-count: '2'}") NOTHING,
		  "its ReplicaSet ml/own is not there (yet), only another one of that "
		  "name: " OR_DELETE,
		  0 },
		/* What owns that. */
		{ CHILD("apps/v1", "ReplicaSet", "r")
			  SET("r", ", " REF("apps/v1", "Deployment", "top", "t")) NOTHING,
		  "Deployment ml/top, which owns its ReplicaSet own, is not there (yet): if it "
		  "was "
		  "deleted, remove it from metadata.ownerReferences of that ReplicaSet",
		  0 },
		{ CHILD("apps/v1", "ReplicaSet", "r")
			  SET("r", ", " REF("apps/v1", "Deployment", "top", "t")) TOP("u"),
		  "Deployment ml/top, which owns its ReplicaSet own, is not there (yet), only "
		  "another one of that name: if it was deleted, remove it from "
		  "metadata.ownerReferences of that ReplicaSet",
		  0 },
		{ CHILD("apps/v1", "ReplicaSet", "r")
			  SET("r", ", " REF("apps/v1", "Deployment", "top", "t")) TOP("t"),
		  NULL, 2 },
		{ CHILD("apps/v1", "ReplicaSet", "r")
			  SET("r", ", " REF("x.io/v1", "Rollout", "top", "t")) NOTHING,
		  NULL, 0 },
	};
	struct bench b;

	bench_init(&b);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		for (unsigned come = 0; come < 2; come++) {
			b.lookup.owners_come = come;
			int rc = bench_read(&b, rows[i].yaml);

			if (come && rows[i].complaint) {
				CHECKF(rc == -ESRCH, "row %zu: %d", i, rc);
				CHECK_STR(b.err.text, rows[i].complaint);
				continue;
			}
			CHECKF(rc == 0, "row %zu: %s", i, b.err.text);
			CHECKF(b.wish.request.asks_count == (rows[i].gpus > 0), "row %zu", i);
			if (rows[i].gpus)
				CHECK_INT(b.wish.request.asks[0].count, rows[i].gpus);
		}
	}
	bench_done(&b);
}

#define GROUPED(kind, version)                                                         \
	"kind: Pod\nmetadata: {name: p-0, labels: {scheduling.x-k8s.io/pod-group: g}," \
	" ownerReferences: [{apiVersion: " version ", kind: " kind                     \
	", name: j, controller: true}]}\nspec: {containers: [{name: a}]}\n---\n"
#define UNKNOWN_SIZE \
	"the size of gang g is not known: there is no PodGroup g, no gangMinMembers and no owner"
#define OF_NO_KIND UNKNOWN_SIZE " that is a Job, Deployment, ReplicaSet or StatefulSet"

TEST(gangs_have_the_size_of_their_group_claim_or_owner)
{
	static const struct {
		const char *yaml;
		const char *gang;
		uint32_t members;
	} rows[] = {
		{ "kind: Pod\nmetadata: {name: p, labels: {scheduling.x-k8s.io/pod-group: g}}\n"
		  "spec: {containers: [{name: a}]}\n"
		  "---\nkind: PodGroup\nmetadata: {name: g}\nspec: {minMember: 3}\n",
		  "default/g", 3 },
		{ "kind: Pod\nmetadata: {name: p, namespace: x}\nspec: {schedulingGroup: "
		  "{podGroupName: g},"
		  " containers: [{name: a}]}\n---\nkind: PodGroup\nmetadata: {name: g}\n"
		  "spec: {schedulingPolicy: {gang: {minCount: 5}}}\n",
		  "x/g", 5 },
		{ "kind: Pod\nmetadata: {name: p}\nspec: {schedulingGroup: {podGroupName: g},"
		  " containers: [{name: a}]}\n---\nkind: PodGroup\nmetadata: {name: g}\n"
		  "spec: {schedulingPolicy: {basic: {}}}\n",
		  NULL, 0 },
		{ "kind: Pod\nmetadata: {name: p, annotations: {gpu.scheduling/claim: c}}\n"
		  "spec: {containers: [{name: a}]}\n---\nkind: GpuClaim\nmetadata: {name: c}\n"
		  "spec: {devices: {count: 1}, gangRef: {name: g}, gangMinMembers: 6}\n",
		  "default/g", 6 },
		{ "kind: Pod\nmetadata: {name: p-0, labels: {scheduling.x-k8s.io/pod-group: g},"
		  " ownerReferences: [{kind: Job, name: j, controller: true}]}\n"
		  "spec: {containers: [{name: a}]}\n---\nkind: Job\nmetadata: {name: j}\n"
		  "spec: {parallelism: 7}\n",
		  "default/g", 7 },
		/* The nearest owner whose size is known counts. */
		{ GROUPED("Other", "x.io/v1") "kind: Other\nmetadata: {name: j, ownerReferences:"
					      " [{kind: Job, name: k, controller: "
					      "true}]}\n---\nkind: Job\napiVersion:"
					      " batch/v1\nmetadata: {name: k, ownerReferences: "
					      "[{kind: JobSet, name: s,"
					      " controller: true}]}\nspec: {parallelism: "
					      "3}\n---\nkind: JobSet\n"
					      "metadata: {name: s}\nspec: {replicas: 9}\n",
		  "default/g", 3 },
		{ GROUPED("StatefulSet", "apps/v1") "kind: StatefulSet\napiVersion: apps/v1\n"
						    "metadata: {name: j}\nspec: {replicas: 2}\n",
		  "default/g", 2 },
	};
	struct bench b;

	bench_init(&b);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CHECKF(bench_read(&b, rows[i].yaml) == 0, "row %zu: %s", i, b.err.text);
		CHECK_STR(b.wish.gang.name, rows[i].gang);
		CHECK_INT(b.wish.gang.members, rows[i].members);
		CHECK_INT(b.wish.gang.leaves, LEAVES_PREFERRED);
	}
	bench_done(&b);
}

TEST(annotations_that_make_no_sense_are_refused)
{
	static const struct bad_pod rows[] = {
		{ PLAIN(T "gpu-count: '0'"),
		  T "gpu-count is \"0\", it must be a whole number, 1 or more", 0 },
		{ PLAIN(T "gpu-count: many"),
		  T "gpu-count is \"many\", it must be a whole number, 1 or more", 0 },
		{ PLAIN(T "gpu-count: '33'"),
		  T "gpu-count comes to 33 GPUs a pod, no node has more than 32", 0 },
		{ PLAIN(T "placement-strategy: far"),
		  T "placement-strategy is \"far\", which is none of consolidated, distributed or "
		    "balanced",
		  0 },
		{ PLAIN(T "network-bandwidth: fast"),
		  T "network-bandwidth is \"fast\", it must be a number of Gbit/s such as 100 or "
		    "100Gbps",
		  0 },
		{ PLAIN(T "latency-sensitive: maybe"),
		  T "latency-sensitive is \"maybe\", it must be true or false", 0 },
		{ OWNED("Job") OWNER("Job", T "gpu-count: '7'", "{parallelism: 2}"),
		  T "gpu-count of the Job is 7, which does not divide evenly among 2 pods", 0 },
		{ OWNED("Job") OWNER("Job", T "gpu-count: '7'", "{parallelism: -2}"),
		  "Job own: spec.parallelism must be a whole number from 0 to 1000000", 0 },
		{ POD(T "gpu-count: '4'",
		      "{containers: [{name: a, resources: {limits: {nvidia.com/gpu: 2}}}]}"),
		  T "gpu-count comes to 4 GPUs a pod, but the limits of its containers ask for 2",
		  0 },
		{ POD(T "gpu-count: '1'", "{containers: [{name: a, resources: {limits: "
					  "{elasticgpu.io/gpu-core: 20}}}]}"),
		  T
		  "gpu-count asks for whole GPUs, but the limits of its containers for shares of "
		  "GPUs",
		  0 },
		{ "kind: Pod\nmetadata: {name: p, labels: {scheduling.x-k8s.io/pod-group: g}}\n"
		  "spec: {containers: [{name: a}]}\n",
		  UNKNOWN_SIZE, ENOENT },
		{ GROUPED("PyTorchJob",
			  "kubeflow.org/v1") "kind: PyTorchJob\napiVersion:"
					     " kubeflow.org/v1\nmetadata: {name: j}\nspec: {}\n",
		  OF_NO_KIND, ENOENT },
		{ GROUPED("Job",
			  "batch.volcano.sh/v1alpha1") "kind: Job\napiVersion:"
						       " batch.volcano.sh/v1alpha1\nmetadata: "
						       "{name: j}\nspec: {parallelism: 4}\n",
		  OF_NO_KIND, ENOENT },
		/* Another Job of the same name is not the owner. */
		{ GROUPED("Job", "batch.volcano.sh/v1alpha1") "kind: Job\napiVersion: batch/v1\n"
							      "metadata: {name: j}\nspec: "
							      "{parallelism: 4}\n",
		  UNKNOWN_SIZE, ENOENT },
		{ "kind: Pod\nmetadata: {name: p, annotations: {gpu.scheduling/claim: two, " T
		  "gpu-count: '3'}}\nspec: {containers: [{name: a}]}\n---\nkind: GpuClaim\n"
		  "metadata: {name: two}\nspec: {devices: {count: 2}}\n",
		  T "gpu-count comes to 3 GPUs a pod, but GpuClaim two asks for 2", 0 },
		{ "kind: Pod\nmetadata: {name: p, labels: {scheduling.x-k8s.io/pod-group: g}}\n"
		  "spec: {schedulingGroup: {podGroupName: h}, containers: [{name: a}]}\n",
		  "schedulingGroup puts the pod into gang h, but label "
		  "scheduling.x-k8s.io/pod-group into gang g",
		  0 },
		{ "kind: Pod\nmetadata: {name: p, labels: {scheduling.x-k8s.io/pod-group: g}}\n"
		  "spec: {containers: [{name: a}]}\n"
		  "---\nkind: PodGroup\nmetadata: {name: g}\nspec: {minMember: 0}\n",
		  "PodGroup g: its size must be a whole number, 1 or more", 0 },
	};

	bench_check_bad(rows, ARRAY_SIZE(rows));
}

TEST_MAIN()
