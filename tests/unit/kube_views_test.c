/* SPDX-License-Identifier: Apache-2.0 */
#include "samples.h"
#include "test.h"

#include "base/attr.h"
#include "kube/keep.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "kube/views/gpu.h"
#include "kube/views/lease.h"
#include "kube/views/node.h"
#include "kube/views/pod.h"
#include "kube/views/volume.h"
#include "kube/views/workload.h"
#include "wire/json.h"
#include "wire/yaml.h"

#include <errno.h>

#define SECOND INT64_C(1000000000)

/* An object from YAML, and what a cache would keep of it. */
struct sample {
	struct yaml yaml;
	struct kube_object *object;
	struct json_doc *doc;
};

static const struct json *sample_full(struct sample *s, const char *text)
{
	struct err err = ERR_INIT;
	s->yaml = (struct yaml)YAML_INIT;
	CHECKF(yaml_parse("test", text, strlen(text), NULL, &s->yaml, &err) == 0, "%s", err.text);
	CHECK_INT(s->yaml.len, 1);
	return json_root(s->yaml.items[0].doc);
}

static const struct json *sample_kept(struct sample *s, const char *text, enum kube_kind_id kind)
{
	struct keep *keep CLEANUP(keep_freep) = NULL;
	struct err err = ERR_INIT;
	const struct json *full = sample_full(s, text);
	CHECK_INT(keep_new(kube_kinds[kind].keep, &keep, NULL), 0);
	CHECKF(kube_object_new(full, keep, &s->object, &err) == 0, "%s", err.text);
	CHECK_INT(kube_object_parse(s->object, &s->doc), 0);
	return json_root(s->doc);
}

static void sample_done(struct sample *s)
{
	kube_object_free(s->object);
	json_doc_free(s->doc);
	yaml_done(&s->yaml);
}

/* Everything below is read from what a cache keeps: so that the fields are kept is
 * proven along with how they are read. */
#define KEPT(kind, text)                                   \
	struct sample sample CLEANUP(sample_done) = { 0 }; \
	const struct json *object = sample_kept(&sample, (text), (kind))

/* Metadata in the manner of the server. */
#define META "uid: u-1, resourceVersion: '7', creationTimestamp: '2026-01-31T08:05:09Z'"

TEST(a_bound_pod)
{
	KEPT(KUBE_POD,
	     "metadata: {name: a, namespace: ml, " META ", generation: 3, ownerReferences: ["
	     "{kind: X, name: x}, {apiVersion: apps/v1, kind: ReplicaSet, name: rs, uid: u-2, "
	     "controller: true}]}\n"
	     "spec: {nodeName: nn, schedulerName: gpu-scheduler, priority: -5, "
	     "preemptionPolicy: Never, priorityClassName: low, hostNetwork: true, "
	     "terminationGracePeriodSeconds: 60}\n"
	     "status: {phase: Running, startTime: '1970-01-01T00:00:07Z', conditions: ["
	     "{type: Ready, status: 'False'}, {type: PodScheduled, status: 'True'}]}\n");
	struct pod_view pod;
	CHECK_INT(pod_view_read(object, &pod, NULL), 0);
	CHECK_STR(pod.meta.name, "a");
	CHECK_STR(pod.meta.namespace, "ml");
	CHECK_STR(pod.meta.uid, "u-1");
	CHECK_INT(pod.meta.generation, 3);
	CHECK(pod.meta.created_ns == 1769846709 * SECOND);
	CHECK(!pod.meta.deleting && pod.meta.deleted_ns == VIEW_TIME_NONE);
	CHECK_STR(pod.controller.api_version, "apps/v1");
	CHECK_STR(pod.controller.kind, "ReplicaSet");
	CHECK_STR(pod.controller.name, "rs");
	CHECK_STR(pod.controller.uid, "u-2");
	CHECK_STR(pod.node, "nn");
	CHECK_STR(pod.scheduler, "gpu-scheduler");
	CHECK_STR(pod.priority_class, "low");
	CHECK_INT(pod.priority, -5);
	CHECK(!pod.preempts && !pod.gated && pod.host_network);
	CHECK_INT(pod.grace_s, 60);
	CHECK(pod.started_ns == 7 * SECOND);
	CHECK_INT(pod.phase, POD_RUNNING);
	CHECK_INT(pod.ready, VIEW_FALSE);
	CHECK_INT(pod.scheduled, VIEW_TRUE);
	CHECK_INT(pod.disrupted, VIEW_ABSENT);
	CHECK(!pod_view_is_finished(&pod));
}

TEST(a_pending_pod_that_says_little)
{
	KEPT(KUBE_POD, "metadata: {name: a, " META "}\nspec: {}\n");
	struct pod_view pod;
	CHECK_INT(pod_view_read(object, &pod, NULL), 0);
	CHECK_STR(pod.node, "");
	CHECK_STR(pod.nominated, "");
	CHECK_STR(pod.scheduler, "");
	CHECK_STR(pod.controller.name, "");
	CHECK_STR(pod.scheduled_reason, "");
	CHECK_INT(pod.phase, POD_UNKNOWN);
	CHECK_INT(pod.priority, 0);
	CHECK_INT(pod.grace_s, 30);
	CHECK(pod.preempts && !pod.gated && !pod.host_network);
	CHECK(pod.started_ns == VIEW_TIME_NONE);
}

TEST(a_pod_that_waits_and_one_that_goes)
{
	KEPT(KUBE_POD,
	     "metadata: {name: a, " META ", deletionTimestamp: '2026-01-31T08:05:10+00:00'}\n"
	     "spec: {schedulingGates: [{name: g}], nodeName: null}\n"
	     "status: {phase: Failed, nominatedNodeName: m, conditions: [{type: PodScheduled, "
	     "status: 'False', reason: SchedulingGated}, {type: DisruptionTarget, status: 'True', "
	     "reason: PreemptionByScheduler}, {type: Ready, status: x}]}\n");
	struct pod_view pod;
	CHECK_INT(pod_view_read(object, &pod, NULL), 0);
	CHECK(pod.meta.deleting && pod.meta.deleted_ns == 1769846710 * SECOND);
	CHECK(pod.gated && pod_view_is_finished(&pod));
	CHECK_STR(pod.node, "");
	CHECK_STR(pod.nominated, "m");
	CHECK_INT(pod.scheduled, VIEW_FALSE);
	CHECK_STR(pod.scheduled_reason, "SchedulingGated");
	CHECK_INT(pod.disrupted, VIEW_TRUE);
	CHECK_STR(pod.disrupted_reason, "PreemptionByScheduler");
	CHECK_INT(pod.ready, VIEW_UNKNOWN);
}

TEST(pods_of_the_server)
{
	struct strbuf line CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct pod_view pod;
	sample_read("pod_running.json", &line);
	CHECK_INT(json_parse("test", line.s, line.len, NULL, &doc, NULL), 0);
	CHECK_INT(pod_view_read(json_get(json_root(doc), "object"), &pod, NULL), 0);
	CHECK_STR(pod.node, "gpu-0");
	CHECK_STR(pod.controller.kind, "ReplicaSet");
	CHECK_INT(pod.phase, POD_RUNNING);
	CHECK_INT(pod.ready, VIEW_TRUE);
}

TEST(a_node)
{
	KEPT(KUBE_NODE,
	     "metadata: {name: nn, " META "}\n"
	     "spec: {unschedulable: true, taints: [{key: a, effect: NoSchedule}, {key: b, "
	     "effect: NoExecute}]}\n"
	     "status: {conditions: [{type: MemoryPressure, status: 'False'}, {type: Ready, "
	     "status: Unknown, reason: NodeStatusUnknown, "
	     "lastTransitionTime: '1970-01-01T00:00:05Z'}]}\n");
	struct node_view node;
	CHECK_INT(node_view_read(object, &node, NULL), 0);
	CHECK(node.unschedulable);
	CHECK_INT(node.taints, 2);
	CHECK_INT(node.ready, VIEW_UNKNOWN);
	CHECK_STR(node.ready_reason, "NodeStatusUnknown");
	CHECK(node.ready_since_ns == 5 * SECOND);
}

TEST(a_lease)
{
	KEPT(KUBE_LEASE,
	     "metadata: {name: gpus-n, namespace: locks, " META ", labels: "
	     "{gpu.scheduling/managed: 'true'}, annotations: {gpu.scheduling/x: z}}\n"
	     "spec: {holderIdentity: me, leaseDurationSeconds: 15, leaseTransitions: 4, "
	     "acquireTime: '1970-01-01T00:00:01.000001Z', renewTime: '1970-01-01T00:00:02.5Z'}\n");
	struct lease_view lease;
	CHECK_INT(lease_view_read(object, &lease, NULL), 0);
	CHECK_STR(lease.holder, "me");
	CHECK_INT(lease.duration_s, 15);
	CHECK_INT(lease.transitions, 4);
	CHECK(lease.acquire_ns == SECOND + 1000 && lease.renew_ns == 5 * SECOND / 2);
	CHECK(lease.managed);
	CHECK_STR(json_str(lease.annotations, "gpu.scheduling/x"), "z");
	CHECK_INT(json_len(lease.labels), 1);
}

TEST(a_lease_that_nobody_holds)
{
	KEPT(KUBE_LEASE, "metadata: {name: a, " META "}\nspec: {holderIdentity: null}\n");
	struct lease_view lease;
	CHECK_INT(lease_view_read(object, &lease, NULL), 0);
	CHECK_STR(lease.holder, "");
	CHECK(lease.duration_s == 0 && !lease.managed && !lease.labels && !lease.annotations);
	CHECK(lease.renew_ns == VIEW_TIME_NONE);
}

TEST(a_claim_for_gpus)
{
	KEPT(KUBE_GPU_CLAIM,
	     "metadata: {name: c, " META ", generation: 2}\nspec: {devices: {count: 2}}\n"
	     "status: {phase: Bound, nodeName: nn, allocated: 'n:0,1', message: fine, "
	     "observedGeneration: 2, allocations: [{pod: a}]}\n");
	struct claim_view claim;
	CHECK_INT(claim_view_read(object, &claim, NULL), 0);
	CHECK_INT(claim.phase, CLAIM_BOUND);
	CHECK_INT(claim.meta.generation, 2);
	CHECK_INT(claim.observed_generation, 2);
	CHECK_STR(claim.node, "nn");
	CHECK_STR(claim.allocated, "n:0,1");
	CHECK_STR(claim.message, "fine");
	CHECK_INT(json_len(claim.allocations), 1);
}

TEST(what_an_agent_reports)
{
	KEPT(KUBE_GPU_NODE_STATUS,
	     "metadata: {name: nn, " META "}\n"
	     "status: {injectionMode: external, devices: [{id: 0}, {id: 1}]}");
	struct node_status_view status;
	CHECK_INT(node_status_view_read(object, &status, NULL), 0);
	CHECK_INT(status.injection, INJECTION_EXTERNAL);
	CHECK_INT(status.devices, 2);
}

TEST(configurations)
{
	KEPT(KUBE_SCHEDULER_CONFIG, "metadata: {name: c, " META "}\nspec: {weights: {a: 1}}\n");
	struct sample map CLEANUP(sample_done) = { 0 };
	const struct json *text =
		sample_kept(&map, "metadata: {name: c, " META "}\ndata: {config.yaml: 'a: 1'}",
			    KUBE_CONFIG_MAP);
	struct config_view config;
	CHECK_INT(config_view_read(object, "SchedulerConfig", &config, NULL), 0);
	CHECK_INT(json_len(config.spec, "weights"), 1);
	CHECK_STR(config_map_text(text, "config.yaml"), "a: 1");
	CHECK(config_map_text(text, "other") == NULL);
}

TEST(owners)
{
	KEPT(KUBE_JOB, "metadata: {name: j, " META "}\nspec: {parallelism: 4, completions: 8, "
		       "suspend: true, completionMode: Indexed}\n"
		       "status: {succeeded: 3, active: 1}\n");
	int64_t succeeded;
	struct sample set CLEANUP(sample_done) = { 0 };
	const struct json *replica_set = sample_kept(
		&set,
		"metadata: {name: r, " META ", ownerReferences: [{kind: Deployment, name: d, "
		"controller: true}]}\nspec: {replicas: 0, selector: {matchLabels: {a: b}}}\n",
		KUBE_REPLICA_SET);
	struct owner_view owner;
	CHECK_INT(owner_view_read(object, "Job", &owner, NULL), 0);
	CHECK_INT(owner.parallelism, 4);
	CHECK_INT(owner.completions, 8);
	CHECK(owner.suspended && owner.indexed && !owner.selector);
	CHECK_INT(json_i64(object, &succeeded, "status", "succeeded"), 0);
	CHECK_INT(succeeded, 3);
	CHECK(json_get(object, "status", "active") == NULL);
	CHECK_INT(owner_view_read(replica_set, "ReplicaSet", &owner, NULL), 0);
	CHECK_INT(owner.replicas, 0);
	CHECK_INT(owner.parallelism, 1);
	CHECK_INT(owner.completions, -1);
	CHECK_STR(owner.controller.name, "d");
	CHECK(json_get(owner.selector, "matchLabels") != NULL);
	CHECK_STR(json_str(replica_set, "kind"), "ReplicaSet");
}

TEST(groups_of_both_kinds)
{
	KEPT(KUBE_POD_GROUP, "metadata: {name: g, " META "}\nspec: {minMember: 3}\n");
	struct sample other CLEANUP(sample_done) = { 0 };
	const struct json *upstream = sample_kept(
		&other,
		"metadata: {name: g, " META "}\nspec: {schedulingPolicy: {gang: {minCount: 5}}}\n",
		KUBE_UPSTREAM_POD_GROUP);
	struct group_view group;
	CHECK_INT(group_view_read(object, &group, NULL), 0);
	CHECK_INT(group.min_members, 3);
	CHECK_INT(group_view_read(upstream, &group, NULL), 0);
	CHECK_INT(group.min_members, 5);
}

TEST(a_priority_class)
{
	KEPT(KUBE_PRIORITY_CLASS, "metadata: {name: p, " META "}\nvalue: 1000\n"
				  "preemptionPolicy: Never\nglobalDefault: true\n");
	struct priority_view class;
	CHECK_INT(priority_view_read(object, &class, NULL), 0);
	CHECK_INT(class.value, 1000);
	CHECK(!class.preempts && class.global_default);
}

TEST(a_disruption_budget)
{
	KEPT(KUBE_POD_DISRUPTION_BUDGET,
	     "metadata: {name: b, " META "}\nspec: {selector: {}}\n"
	     "status: {disruptionsAllowed: 2, currentHealthy: 5, desiredHealthy: 3, "
	     "expectedPods: 6, disruptedPods: {gone: '2026-01-31T08:05:09Z'}}\n");
	struct budget_view budget;
	CHECK_INT(budget_view_read(object, &budget, NULL), 0);
	CHECK_INT(budget.disruptions_allowed, 2);
	CHECK_INT(budget.current_healthy, 5);
	CHECK_INT(budget.desired_healthy, 3);
	CHECK_INT(budget.expected_pods, 6);
	CHECK(budget.selector && json_len(budget.selector) == 0);
	CHECK(budget_view_has_disrupted(&budget, "gone"));
	CHECK(!budget_view_has_disrupted(&budget, "here"));
}

TEST(a_namespace)
{
	KEPT(KUBE_NAMESPACE, "metadata: {name: ml, " META ", labels: {a: b}}\n");
	struct namespace_view namespace;
	CHECK_INT(namespace_view_read(object, &namespace, NULL), 0);
	CHECK_STR(json_str(namespace.labels, "a"), "b");
}

TEST(a_claim_for_a_volume)
{
	KEPT(KUBE_PERSISTENT_VOLUME_CLAIM,
	     "metadata: {name: c, namespace: ml, " META ", annotations: {"
	     "volume.kubernetes.io/selected-node: nn, pv.kubernetes.io/bind-completed: 'yes'}}\n"
	     "spec: {volumeName: v, storageClassName: '', volumeMode: Block, "
	     "accessModes: [ReadWriteOncePod, ReadOnlyMany, Other], "
	     "resources: {requests: {storage: 1Gi}}, selector: {matchLabels: {a: b}}}\n"
	     "status: {phase: Bound}\n");
	struct volume_claim_view claim;
	CHECK_INT(volume_claim_view_read(object, &claim, NULL), 0);
	CHECK_INT(claim.phase, VOLUME_CLAIM_BOUND);
	CHECK_STR(claim.volume, "v");
	CHECK_STR(claim.class, "");
	CHECK(claim.has_class && claim.block && claim.bind_completed && claim.selector);
	CHECK_INT(claim.access, ACCESS_READ_WRITE_ONCE_POD | ACCESS_READ_ONLY_MANY);
	CHECK(claim.requested_bytes == INT64_C(1) << 30);
	CHECK_STR(claim.selected_node, "nn");
}

TEST(a_volume)
{
	KEPT(KUBE_PERSISTENT_VOLUME,
	     "metadata: {name: v, " META "}\n"
	     "spec: {capacity: {storage: 10G}, accessModes: [ReadWriteOnce], "
	     "storageClassName: fast, claimRef: {namespace: ml, name: c, uid: u-9}, "
	     "csi: {driver: d, volumeHandle: h, secret: x}, "
	     "nodeAffinity: {required: {nodeSelectorTerms: []}}}\nstatus: {phase: Released}\n");
	struct volume_view volume;
	CHECK_INT(volume_view_read(object, &volume, NULL), 0);
	CHECK_INT(volume.phase, VOLUME_RELEASED);
	CHECK_STR(volume.class, "fast");
	CHECK(!volume.block && volume.access == ACCESS_READ_WRITE_ONCE);
	CHECK(volume.capacity_bytes == 10 * SECOND);
	CHECK_STR(volume.claim_namespace, "ml");
	CHECK_STR(volume.claim_name, "c");
	CHECK_STR(volume.claim_uid, "u-9");
	CHECK_STR(volume.driver, "d");
	CHECK_STR(volume.handle, "h");
	CHECK(volume.node_affinity != NULL);
	CHECK(!json_get(object, "spec", "csi", "secret"));
}

TEST(a_storage_class)
{
	KEPT(KUBE_STORAGE_CLASS, "metadata: {name: s, " META ", annotations: "
				 "{storageclass.kubernetes.io/is-default-class: 'true'}}\n"
				 "provisioner: p\nvolumeBindingMode: WaitForFirstConsumer\n"
				 "allowedTopologies: [{matchLabelExpressions: []}]\n");
	struct storage_class_view class;
	CHECK_INT(storage_class_view_read(object, &class, NULL), 0);
	CHECK_STR(class.provisioner, "p");
	CHECK(class.waits && class.is_default);
	CHECK_INT(json_len(class.topologies), 1);
}

TEST(drivers_and_their_limits)
{
	KEPT(KUBE_CSI_DRIVER, "metadata: {name: d, " META "}\nspec: {storageCapacity: true}\n");
	struct sample other CLEANUP(sample_done) = { 0 };
	const struct json *node = sample_kept(
		&other,
		"metadata: {name: nn, " META "}\nspec: {drivers: [{name: a, nodeID: x}, {name: b, "
		"allocatable: {count: 24}}]}\n",
		KUBE_CSI_NODE);
	struct csi_driver_view driver;
	int64_t limit;
	CHECK_INT(csi_driver_view_read(object, &driver, NULL), 0);
	CHECK(driver.attaches && driver.capacities);
	CHECK(csi_node_limit(node, "a", &limit, NULL) == 0 && limit == -1);
	CHECK(csi_node_limit(node, "b", &limit, NULL) == 0 && limit == 24);
	CHECK(csi_node_limit(node, "c", &limit, NULL) == 0 && limit == -1);
}

TEST(capacities_and_attachments)
{
	KEPT(KUBE_CSI_STORAGE_CAPACITY,
	     "metadata: {name: c, namespace: s, " META "}\nstorageClassName: fast\n"
	     "capacity: 100Gi\nmaximumVolumeSize: 10Gi\nnodeTopology: {matchLabels: {a: b}}\n");
	struct sample other CLEANUP(sample_done) = { 0 };
	const struct json *attachment =
		sample_kept(&other,
			    "metadata: {name: a, " META "}\nspec: {attacher: d, nodeName: nn, "
			    "source: {persistentVolumeName: v}}\nstatus: {attached: true}\n",
			    KUBE_VOLUME_ATTACHMENT);
	struct csi_capacity_view capacity;
	struct attachment_view view;
	CHECK_INT(csi_capacity_view_read(object, &capacity, NULL), 0);
	CHECK_STR(capacity.class, "fast");
	CHECK(capacity.volume_bytes == INT64_C(10) << 30 && capacity.topology);
	CHECK_INT(attachment_view_read(attachment, &view, NULL), 0);
	CHECK_STR(view.attacher, "d");
	CHECK_STR(view.node, "nn");
	CHECK_STR(view.volume, "v");
	CHECK(view.attached);
}

static int read_pod(const struct json *object, struct err *err)
{
	struct pod_view view;
	return pod_view_read(object, &view, err);
}

static int read_node(const struct json *object, struct err *err)
{
	struct node_view view;
	return node_view_read(object, &view, err);
}

static int read_lease(const struct json *object, struct err *err)
{
	struct lease_view view;
	return lease_view_read(object, &view, err);
}

static int read_budget(const struct json *object, struct err *err)
{
	struct budget_view view;
	return budget_view_read(object, &view, err);
}

static int read_volume(const struct json *object, struct err *err)
{
	struct volume_view view;
	return volume_view_read(object, &view, err);
}

static int read_group(const struct json *object, struct err *err)
{
	struct group_view view;
	return group_view_read(object, &view, err);
}

static int read_priority(const struct json *object, struct err *err)
{
	struct priority_view view;
	return priority_view_read(object, &view, err);
}

TEST(what_would_be_guessed_wrongly_is_an_error)
{
	static const struct {
		int (*read)(const struct json *object, struct err *err);
		const char *text, *complaint;
	} rows[] = {
		{ read_pod, "metadata: {}", "a Pod has no metadata.name" },
		{ read_pod, "metadata: {name: [a]}", "Pod : metadata.name is no string" },
		{ read_pod, "{metadata: {name: a, namespace: ml}, spec: {nodeName: 7}}",
		  "Pod ml/a: spec.nodeName is no string" },
		{ read_pod, "{metadata: {name: a}, spec: {schedulingGates: {}}}",
		  "Pod a: spec.schedulingGates is no list" },
		{ read_pod, "{metadata: {name: a}, spec: {priority: high}}",
		  "Pod a: spec.priority is no whole number" },
		{ read_pod, "{metadata: {name: a}, spec: {priority: 3000000000}}",
		  "Pod a: spec.priority is 3000000000, which is not between -2147483648 and "
		  "2147483647" },
		{ read_pod, "{metadata: {name: a}, status: {phase: 1}}",
		  "Pod a: status.phase is no string" },
		{ read_pod, "{metadata: {name: a, deletionTimestamp: soon}}",
		  "Pod a: metadata.deletionTimestamp is no time that we can read" },
		{ read_node, "{metadata: {name: nn}, spec: {unschedulable: 'no!'}}",
		  "Node nn: spec.unschedulable is neither true nor false" },
		{ read_node, "{metadata: {name: nn}, spec: {taints: {}}}",
		  "Node nn: spec.taints is no list" },
		{ read_lease, "{metadata: {name: l}, spec: {holderIdentity: 1}}",
		  "Lease l: spec.holderIdentity is no string" },
		{ read_lease, "{metadata: {name: l}, spec: {renewTime: '12:00'}}",
		  "Lease l: spec.renewTime is no time that we can read" },
		{ read_budget, "{metadata: {name: b}, spec: {selector: all}}",
		  "PodDisruptionBudget b: spec.selector is no object" },
		{ read_budget, "{metadata: {name: b}, status: {disruptionsAllowed: -1}}",
		  "PodDisruptionBudget b: status.disruptionsAllowed is -1, which is not between 0 "
		  "and 2147483647" },
		{ read_volume, "{metadata: {name: v}, spec: {nodeAffinity: []}}",
		  "PersistentVolume v: spec.nodeAffinity is no object" },
		{ read_volume, "{metadata: {name: v}, spec: {capacity: {storage: much}}}",
		  "PersistentVolume v: storage is no quantity" },
		{ read_group,
		  "{metadata: {name: g}, spec: {schedulingPolicy: {gang: {minCount: 0}}}}",
		  "PodGroup g: spec.schedulingPolicy is without a sensible gang.minCount" },
		{ read_priority, "metadata: {name: p}", "PriorityClass p: value is missing" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sample sample CLEANUP(sample_done) = { 0 };
		struct err err = ERR_INIT;
		CHECKF(rows[i].read(sample_full(&sample, rows[i].text), &err) == -EINVAL, "%s",
		       rows[i].text);
		CHECK_STR(err.text, rows[i].complaint);
	}
}

TEST_MAIN()
