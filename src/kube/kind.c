/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kind.h"

#include "base/attr.h"
#include "base/strbuf.h"

#include <string.h>

/* Paths are put together from parts. */
/* NOLINTBEGIN(bugprone-suspicious-missing-comma) */

/* Who it is.  The version is kept beside the text (object.h). */
#define IDENTITY "metadata.name", "metadata.namespace", "metadata.uid"

#define LIFE "metadata.creationTimestamp", "metadata.deletionTimestamp"

#define OWNERS                                                                       \
	"metadata.ownerReferences[].apiVersion", "metadata.ownerReferences[].kind",  \
		"metadata.ownerReferences[].name", "metadata.ownerReferences[].uid", \
		"metadata.ownerReferences[].controller"

/* Annotations that people write for us and that we write: those of dialect/keys.h. */
#define OUR_ANNOTATIONS                                                             \
	"gpu.scheduling/*,gpu-scheduling-map,topology.scheduler/*,elasticgpu.io/*," \
	"scheduling.x-k8s.io/*,scheduling.k8s.io/*"

/* Annotations that are not for us and may be large. */
#define ALL_BUT_NOISE "metadata.annotations{!kubectl.kubernetes.io/last-applied-configuration}"

/* Small objects that are ours: all of it but managedFields. */
#define OURS                                                                             \
	IDENTITY, LIFE, OWNERS, "metadata.labels", "metadata.generation", ALL_BUT_NOISE, \
		"metadata.finalizers", "spec", "status"

#define CONTAINERS(list)                                                                        \
	"spec." list "[].name", "spec." list "[].restartPolicy",                                \
		"spec." list "[].resources.limits", "spec." list "[].resources.requests",       \
		"spec." list "[].resources.claims", "spec." list "[].ports[hostPort].hostPort", \
		"spec." list "[].ports[hostPort].hostIP",                                       \
		"spec." list "[].ports[hostPort].protocol"

#define STATUSES(list)                                                                    \
	"status." list "[@resized].name", "status." list "[@resized].allocatedResources", \
		"status." list "[@resized].resources.requests"

/* The volumes whose node matters: claims, and those that a node can attach only so many
 * of or that only one pod may write. */
#define VOLUMES                                                               \
	"spec.volumes[persistentVolumeClaim|ephemeral|csi|gcePersistentDisk|" \
	"awsElasticBlockStore|azureDisk|cinder|vsphereVolume|rbd|iscsi]"

static const char *const pod_keep[] = {
	IDENTITY,
	LIFE,
	OWNERS,
	"metadata.generateName",
	"metadata.generation",
	"metadata.labels",
	"metadata.deletionGracePeriodSeconds",
	"metadata.annotations{" OUR_ANNOTATIONS ",batch.kubernetes.io/job-completion-index}",
	"spec.nodeName",
	"spec.schedulerName",
	"spec.priority",
	"spec.priorityClassName",
	"spec.preemptionPolicy",
	"spec.nodeSelector",
	"spec.affinity",
	"spec.tolerations[].key",
	"spec.tolerations[].operator",
	"spec.tolerations[].value",
	"spec.tolerations[].effect",
	"spec.topologySpreadConstraints",
	"spec.overhead",
	"spec.resources",
	"spec.schedulingGates",
	"spec.schedulingGroup",
	"spec.hostNetwork",
	"spec.restartPolicy",
	"spec.terminationGracePeriodSeconds",
	"spec.resourceClaims",
	CONTAINERS("initContainers"),
	CONTAINERS("containers"),
	VOLUMES ".name",
	VOLUMES ".persistentVolumeClaim",
	VOLUMES ".ephemeral.volumeClaimTemplate.spec",
	VOLUMES ".csi.driver",
	VOLUMES ".gcePersistentDisk",
	VOLUMES ".awsElasticBlockStore",
	VOLUMES ".azureDisk",
	VOLUMES ".cinder",
	VOLUMES ".vsphereVolume",
	VOLUMES ".rbd",
	VOLUMES ".iscsi",
	"status.phase",
	"status.startTime",
	"status.nominatedNodeName",
	"status.conditions[type=PodScheduled|Ready|DisruptionTarget|PodResizePending].type",
	"status.conditions[type=PodScheduled|Ready|DisruptionTarget|PodResizePending].status",
	"status.conditions[type=PodScheduled|Ready|DisruptionTarget|PodResizePending].reason",
	"status.resourceClaimStatuses",
	"status.allocatedResources",
	"status.resources.requests",
	STATUSES("initContainerStatuses"),
	STATUSES("containerStatuses"),
	NULL,
};

static const char *const node_keep[] = {
	IDENTITY,
	LIFE,
	"metadata.labels",
	"metadata.annotations{" OUR_ANNOTATIONS "}",
	"spec.unschedulable",
	"spec.taints[].key",
	"spec.taints[].value",
	"spec.taints[].effect",
	"status.allocatable",
	"status.capacity",
	"status.declaredFeatures",
	"status.conditions[type=Ready].type",
	"status.conditions[type=Ready].status",
	"status.conditions[type=Ready].reason",
	"status.conditions[type=Ready].lastTransitionTime",
	NULL,
};

/* What a pod inherits from its owner, and how many pods the owner runs. */
#define OWNER \
	IDENTITY, LIFE, OWNERS, "metadata.labels", "metadata.annotations{" OUR_ANNOTATIONS "}"

static const char *const replica_set_keep[] = { "apiVersion=apps/v1", "kind=ReplicaSet", OWNER,
						"spec.replicas",      "spec.selector",	 NULL };
static const char *const stateful_set_keep[] = { "apiVersion=apps/v1", "kind=StatefulSet", OWNER,
						 "spec.replicas",      "spec.selector",	   NULL };
static const char *const deployment_keep[] = { "apiVersion=apps/v1", "kind=Deployment", OWNER,
					       NULL };
static const char *const job_keep[] = {
	"apiVersion=batch/v1", "kind=Job",	   OWNER,
	"spec.parallelism",    "spec.completions", "spec.completionMode",
	"spec.suspend",	       "status.succeeded", NULL
};
static const char *const replication_controller_keep[] = {
	"apiVersion=v1", "kind=ReplicationController",
	OWNER,		 "spec.replicas",
	"spec.selector", NULL
};

static const char *const namespace_keep[] = { IDENTITY, LIFE, "metadata.labels", NULL };
static const char *const service_keep[] = { IDENTITY, "spec.selector", NULL };
static const char *const lease_keep[] = { IDENTITY,	 LIFE,	 OWNERS, "metadata.labels",
					  ALL_BUT_NOISE, "spec", NULL };
static const char *const ours_keep[] = { OURS, NULL };
static const char *const config_map_keep[] = { IDENTITY, LIFE, "metadata.labels", "data", NULL };
static const char *const priority_class_keep[] = { IDENTITY, "value", "globalDefault",
						   "preemptionPolicy", NULL };

static const char *const budget_keep[] = { IDENTITY,
					   LIFE,
					   "spec.selector",
					   "status.disruptionsAllowed",
					   "status.disruptedPods",
					   "status.currentHealthy",
					   "status.desiredHealthy",
					   "status.expectedPods",
					   NULL };

/* A volume is replaced whole when it is bound (claimRef): that reads it anew. */
static const char *const volume_keep[] = { IDENTITY,
					   LIFE,
					   "metadata.labels",
					   "metadata.annotations{pv.kubernetes.io/*,"
					   "volume.beta.kubernetes.io/*}",
					   "spec.capacity",
					   "spec.accessModes",
					   "spec.volumeMode",
					   "spec.storageClassName",
					   "spec.volumeAttributesClassName",
					   "spec.nodeAffinity",
					   "spec.claimRef.namespace",
					   "spec.claimRef.name",
					   "spec.claimRef.uid",
					   "spec.csi.driver",
					   "spec.csi.volumeHandle",
					   "spec.gcePersistentDisk",
					   "spec.awsElasticBlockStore",
					   "spec.azureDisk",
					   "spec.cinder",
					   "spec.vsphereVolume",
					   "spec.rbd",
					   "spec.iscsi",
					   "status.phase",
					   NULL };

static const char *const volume_claim_keep[] = {
	IDENTITY,
	LIFE,
	OWNERS,
	"metadata.annotations{volume.kubernetes.io/*,volume.beta.kubernetes.io/*,pv.kubernetes.io/"
	"*}",
	"spec.accessModes",
	"spec.selector",
	"spec.resources.requests",
	"spec.volumeName",
	"spec.storageClassName",
	"spec.volumeAttributesClassName",
	"spec.volumeMode",
	"status.phase",
	NULL,
};

static const char *const storage_class_keep[] = {
	IDENTITY,
	LIFE,
	"metadata.annotations{storageclass.kubernetes.io/*,storageclass.beta.kubernetes.io/*}",
	"provisioner",
	"volumeBindingMode",
	"allowedTopologies",
	NULL,
};

static const char *const csi_node_keep[] = {
	IDENTITY,
	"metadata.annotations{storage.alpha.kubernetes.io/*}", /* drivers migrated to CSI */
	"spec.drivers[].name",
	"spec.drivers[].topologyKeys",
	"spec.drivers[].allocatable.count",
	NULL,
};

static const char *const csi_driver_keep[] = { IDENTITY, "spec.attachRequired",
					       "spec.storageCapacity", NULL };
static const char *const csi_capacity_keep[] = {
	IDENTITY, "nodeTopology", "storageClassName", "capacity", "maximumVolumeSize", NULL
};
static const char *const attachment_keep[] = { IDENTITY,
					       LIFE,
					       "spec.attacher",
					       "spec.nodeName",
					       "spec.source.persistentVolumeName",
					       "status.attached",
					       NULL };

static const char *const pod_group_keep[] = {
	IDENTITY, LIFE, OWNERS, "metadata.labels", "metadata.annotations{" OUR_ANNOTATIONS "}",
	"spec",	  NULL
};
static const char *const event_keep[] = { IDENTITY, NULL };

/* NOLINTEND(bugprone-suspicious-missing-comma) */

/* clang-format off */
const struct kube_kind kube_kinds[KUBE_KINDS] = {
	[KUBE_POD] = { "Pod", "", "v1", "pods", .namespaced = true, .keep = pod_keep },
	[KUBE_NODE] = { "Node", "", "v1", "nodes", .keep = node_keep },
	[KUBE_NAMESPACE] = { "Namespace", "", "v1", "namespaces", .metadata_only = true,
			     .keep = namespace_keep },
	[KUBE_LEASE] = { "Lease", "coordination.k8s.io", "v1", "leases", .namespaced = true,
			 .keep = lease_keep },
	[KUBE_GPU_CLAIM] = { "GpuClaim", "gpu.scheduling", "v1", "gpuclaims", .namespaced = true,
			     .optional = true, .keep = ours_keep },
	[KUBE_GPU_NODE_STATUS] = { "GpuNodeStatus", "gpu.scheduling", "v1", "gpunodestatuses",
				   .optional = true, .keep = ours_keep },
	[KUBE_SCHEDULER_CONFIG] = { "SchedulerConfig", "topology.scheduler", "v1alpha1",
				    "schedulerconfigs", .namespaced = true, .optional = true,
				    .keep = ours_keep },
	[KUBE_TOPOLOGY_SCHEDULER_CONFIG] = { "TopologySchedulerConfig", "topology.scheduler",
					     "v1alpha1", "topologyschedulerconfigs",
					     .namespaced = true, .optional = true,
					     .keep = ours_keep },
	[KUBE_CONFIG_MAP] = { "ConfigMap", "", "v1", "configmaps", .namespaced = true,
			      .keep = config_map_keep },
	[KUBE_SERVICE] = { "Service", "", "v1", "services", .namespaced = true,
			   .keep = service_keep },
	[KUBE_REPLICATION_CONTROLLER] = { "ReplicationController", "", "v1",
					  "replicationcontrollers", .namespaced = true,
					  .keep = replication_controller_keep },
	[KUBE_REPLICA_SET] = { "ReplicaSet", "apps", "v1", "replicasets", .namespaced = true,
			       .keep = replica_set_keep },
	[KUBE_STATEFUL_SET] = { "StatefulSet", "apps", "v1", "statefulsets", .namespaced = true,
				.keep = stateful_set_keep },
	/* Between a Deployment and its pods there is a ReplicaSet, which says how many. */
	[KUBE_DEPLOYMENT] = { "Deployment", "apps", "v1", "deployments", .namespaced = true,
			      .metadata_only = true, .keep = deployment_keep },
	[KUBE_JOB] = { "Job", "batch", "v1", "jobs", .namespaced = true, .keep = job_keep },
	[KUBE_POD_DISRUPTION_BUDGET] = { "PodDisruptionBudget", "policy", "v1",
					 "poddisruptionbudgets", .namespaced = true,
					 .keep = budget_keep },
	[KUBE_PERSISTENT_VOLUME] = { "PersistentVolume", "", "v1", "persistentvolumes",
				     .keep = volume_keep },
	[KUBE_PERSISTENT_VOLUME_CLAIM] = { "PersistentVolumeClaim", "", "v1",
					   "persistentvolumeclaims", .namespaced = true,
					   .keep = volume_claim_keep },
	[KUBE_STORAGE_CLASS] = { "StorageClass", "storage.k8s.io", "v1", "storageclasses",
				 .keep = storage_class_keep },
	[KUBE_CSI_NODE] = { "CSINode", "storage.k8s.io", "v1", "csinodes",
			    .keep = csi_node_keep },
	[KUBE_CSI_DRIVER] = { "CSIDriver", "storage.k8s.io", "v1", "csidrivers",
			      .keep = csi_driver_keep },
	[KUBE_CSI_STORAGE_CAPACITY] = { "CSIStorageCapacity", "storage.k8s.io", "v1",
					"csistoragecapacities", .namespaced = true,
					.keep = csi_capacity_keep },
	[KUBE_VOLUME_ATTACHMENT] = { "VolumeAttachment", "storage.k8s.io", "v1",
				     "volumeattachments", .keep = attachment_keep },
	[KUBE_PRIORITY_CLASS] = { "PriorityClass", "scheduling.k8s.io", "v1", "priorityclasses",
				  .keep = priority_class_keep },
	[KUBE_POD_GROUP] = { "PodGroup", "scheduling.x-k8s.io", "v1alpha1", "podgroups",
			     .namespaced = true, .optional = true, .keep = pod_group_keep },
	[KUBE_UPSTREAM_POD_GROUP] = { "PodGroup", "scheduling.k8s.io", "v1alpha2", "podgroups",
				      .namespaced = true, .optional = true,
				      .keep = pod_group_keep },
	[KUBE_EVENT] = { "Event", "events.k8s.io", "v1", "events", .namespaced = true,
			 .keep = event_keep },
};
/* clang-format on */

const struct kube_kind *kube_kind_find(const char *group, const char *kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(kube_kinds); i++)
		if (strcmp(kube_kinds[i].kind, kind) == 0 &&
		    strcmp(kube_kinds[i].group, group) == 0)
			return &kube_kinds[i];
	return NULL;
}

static bool is_unreserved(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~", c));
}

void kube_escape(struct strbuf *out, const char *s, size_t len)
{
	static const char digits[] = "0123456789ABCDEF";
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];
		if (is_unreserved(c))
			strbuf_putc(out, (char)c);
		else
			strbuf_add(out, (char[]){ '%', digits[c >> 4], digits[c & 15] }, 3);
	}
}

/* "/" and the name.  A name of dots only would be taken for a step up. */
static void add_part(struct strbuf *out, const char *name)
{
	strbuf_putc(out, '/');
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		strbuf_puts(out, name[1] ? "%2E%2E" : "%2E");
	else
		kube_escape(out, name, strlen(name));
}

void kube_path(struct strbuf *out, const struct kube_kind *kind, const char *namespace,
	       const char *name, const char *subresource)
{
	if (*kind->group)
		strbuf_addf(out, "/apis/%s/%s", kind->group, kind->version);
	else
		strbuf_addf(out, "/api/%s", kind->version);
	if (kind->namespaced && namespace && *namespace) {
		strbuf_puts(out, "/namespaces");
		add_part(out, namespace);
	}
	add_part(out, kind->plural);
	if (name)
		add_part(out, name);
	if (name && subresource) /* "proxy/x" has parts of its own: ours never do */
		add_part(out, subresource);
}
