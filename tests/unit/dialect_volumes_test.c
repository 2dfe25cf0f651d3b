/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect_bench.h"

#include "base/attr.h"
#include "base/strbuf.h"
#include "dialect/volumes.h"
#include "engine/adopt.h"
#include "engine/assign.h"

/* The pod p of the namespace default, uid u. */
#define POD(volumes)                                                   \
	"kind: Pod\nmetadata: {name: p, namespace: default, uid: u}\n" \
	"spec: {containers: [{name: c}], volumes: [" volumes "]}\n"
#define USE(claim)   "{name: " claim ", persistentVolumeClaim: {claimName: " claim "}}"
#define USES(claim)  POD(USE(claim))
#define NEXT	     "---\n"
#define HOST(values) "{key: kubernetes.io/hostname, operator: In, values: [" values "]}"
#define ON(values)                                                                                \
	"nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [" HOST(values) "]}]}}" \
											  ", "
/* Of the class local, which cannot make any. */
#define VOLUME(name, size, more)                                                           \
	NEXT "kind: PersistentVolume\nmetadata: {name: " name ", labels: {disk: ssd}}\n"   \
	     "spec: {" more "capacity: {storage: " size "}, accessModes: [ReadWriteOnce]," \
	     " storageClassName: local}\nstatus: {phase: Available}\n"
#define CLAIM(name, class, size, more)                                                          \
	NEXT "kind: PersistentVolumeClaim\nmetadata: {name: " name ", uid: u-" name "}\n"       \
	     "spec: {" more "storageClassName: " class ", accessModes: [ReadWriteOnce],"        \
						       " resources: {requests: {storage: " size \
						       "}}}\nstatus: {phase: Pending}\n"
#define BOUND(name, volume)                                               \
	NEXT "kind: PersistentVolumeClaim\nmetadata: {name: " name        \
	     ", annotations: {pv.kubernetes.io/bind-completed: 'yes'}}\n" \
	     "spec: {volumeName: " volume ", storageClassName: local}\n"
#define CLASS(name, provisioner, more)                                                        \
	NEXT "kind: StorageClass\nmetadata: {name: " name "}\nprovisioner: " provisioner "\n" \
	     "volumeBindingMode: WaitForFirstConsumer\n" more
#define LOCAL CLASS("local", "kubernetes.io/no-provisioner", "")

static void bench_each(void *context, const char *kind, const char *class,
		       void (*visit)(void *visitor, const struct json *object), void *visitor)
{
	const struct bench *b = context;

	(void)class;
	for (size_t i = 0; i < b->objects.len; i++) {
		const struct json *object = json_root(b->objects.items[i].doc);
		const char *said = json_str(object, "kind");

		if (said && strcmp(said, kind) == 0)
			visit(visitor, object);
	}
}

static void begin(struct bench *b)
{
	bench_init(b);
	b->lookup.each = bench_each;
}

static enum verdict on(struct bench *b, const char *yaml, const char *node)
{
	CHECKF(bench_read(b, yaml) == 0, "%s", b->err.text);
	return fit_place(b->cluster, &b->wish.request, cluster_node_find(b->cluster, node));
}

#define CHECK_ON(yaml, alpha, beta)                          \
	do {                                                 \
		CHECK_INT(on(&b, (yaml), "alpha"), (alpha)); \
		CHECK_INT(on(&b, (yaml), "beta"), (beta));   \
	} while (0)

TEST(claims_that_are_not_ready_are_waited_for)
{
	static const struct bad_pod rows[] = {
		{ USES("a"), "persistentvolumeclaim \"a\" not found", ENOENT },
		{ POD("{name: v, ephemeral: {}}"),
		  "waiting for ephemeral volume controller to create the persistentvolumeclaim "
		  "\"p-v\"",
		  ENOENT },
		{ POD("{name: v, ephemeral: {}}") CLAIM("p-v", "local", "1Gi", "") LOCAL,
		  "PVC default/p-v was not created for pod default/p (pod is not owner)", ENOENT },
		{ USES("a") NEXT "kind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: "
				 "{volumeName: v}\nstatus: {phase: Lost}\n",
		  "persistentvolumeclaim \"a\" bound to non-existent persistentvolume \"v\"",
		  ENOENT },
		{ USES("a") NEXT
		  "kind: PersistentVolumeClaim\nmetadata: {name: a, deletionTimestamp: "
		  "'2026-01-01T00:00:00Z'}\n",
		  "persistentvolumeclaim \"a\" is being deleted", ENOENT },
		{ USES("a") CLAIM("a", "nobody", "1Gi", ""),
		  "pod has unbound immediate PersistentVolumeClaims", ENOENT },
		{ USES("a") CLAIM("a", "local", "1Gi", "volumeName: v, ") LOCAL,
		  "pod has unbound immediate PersistentVolumeClaims", ENOENT },
		{ USES("a") BOUND("a", "v"), "persistentvolume \"v\" not found", ENOENT },
	};
	struct bench b;

	begin(&b);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECKF(bench_read(&b, rows[i].yaml) == -rows[i].code &&
			       strcmp(b.err.text, rows[i].complaint) == 0,
		       "row %zu says \"%s\"", i, b.err.text);
	bench_done(&b);
}

TEST(who_keeps_no_volumes_does_not_look_at_them)
{
	struct bench b;

	bench_init(&b);
	CHECK_INT(bench_read(&b, USES("a")), 0);
	CHECK_INT(b.wish.request.rules, 0);
	CHECK(!b.wish.volumes_wait);
	bench_done(&b);
}

TEST(a_bound_volume_is_for_its_nodes)
{
	struct bench b;

	begin(&b);
	CHECK_ON(USES("a") BOUND("a", "v") VOLUME("v", "1Gi", ON("alpha")), FITS,
		 WRONG_VOLUME_NODE);
	CHECK_ON(USES("a") BOUND("a", "v") VOLUME("v", "1Gi", ""), FITS, FITS);
	CHECK(!b.wish.volumes_wait);
	bench_done(&b);
}

/* Nodes of no zone at all take any volume. */
TEST(zones_of_volumes_are_labels_new_or_old)
{
	static const char yaml[] = USES("a") BOUND("a", "v") NEXT
		"kind: PersistentVolume\nmetadata: {name: v, labels: "
		"{failure-domain.beta.kubernetes.io/zone: a__b}}\n";
	struct label zone;
	struct node_spec spec = { .labels = &zone, .labels_count = 1, .allocatable.pods = 9 };
	uint32_t node;
	struct bench b;

	begin(&b);
	zone.key = cluster_intern(b.cluster, "topology.kubernetes.io/zone");
	zone.value = cluster_intern(b.cluster, "b");
	spec.name = "in-b";
	CHECK_INT(cluster_node_add(b.cluster, &spec, &node, NULL), 0);
	zone.value = cluster_intern(b.cluster, "c");
	spec.name = "in-c";
	CHECK_INT(cluster_node_add(b.cluster, &spec, &node, NULL), 0);
	CHECK_ON(yaml, FITS, FITS);
	CHECK_INT(on(&b, yaml, "in-b"), FITS);
	CHECK_INT(on(&b, yaml, "in-c"), WRONG_VOLUME_ZONE);
	bench_done(&b);
}

TEST(a_claim_that_waits_finds_a_volume_that_will_do)
{
	struct bench b;

	begin(&b);
	CHECK_ON(USES("a") CLAIM("a", "local", "2Gi", "") LOCAL VOLUME("v", "2Gi", ON("beta"))
			 VOLUME("w", "1Gi", ON("alpha")),
		 NO_VOLUME, FITS);
	CHECK(b.wish.volumes_wait);
	/* Of another mode, or without the labels it wants. */
	CHECK_ON(USES("a") CLAIM("a", "local", "1Gi", "")
			 LOCAL VOLUME("v", "2Gi", "volumeMode: Block, "),
		 NO_VOLUME, NO_VOLUME);
	CHECK_ON(USES("a") CLAIM("a", "local", "1Gi", "selector: {matchLabels: {disk: hdd}}, ")
			 LOCAL VOLUME("v", "2Gi", ""),
		 NO_VOLUME, NO_VOLUME);
	CHECK_ON(USES("a") CLAIM("a", "local", "1Gi", "selector: {matchLabels: {disk: ssd}}, ")
			 LOCAL VOLUME("v", "2Gi", ""),
		 FITS, FITS);
	/* Kept for somebody else, or for this claim and only elsewhere. */
	CHECK_ON(USES("a") CLAIM("a", "local", "1Gi", "")
			 LOCAL VOLUME("v", "2Gi", "claimRef: {namespace: default, name: b}, "),
		 NO_VOLUME, NO_VOLUME);
	CHECK_ON(USES("a") CLAIM("a", "local", "1Gi", "") LOCAL VOLUME(
			 "v", "2Gi", ON("beta") "claimRef: {namespace: default, name: a}, ")
			 VOLUME("w", "2Gi", ON("alpha")),
		 NO_VOLUME, FITS);
	bench_done(&b);
}

/* Alpha has one volume that will do for either, beta has two. */
TEST(two_claims_need_two_volumes)
{
	static const char two[] = POD(USE("a") ", " USE("b")) CLAIM("a", "local", "1Gi", "")
		CLAIM("b", "local", "2Gi", "") LOCAL VOLUME("v", "3Gi", ON("alpha"))
			VOLUME("w", "3Gi", ON("beta")) VOLUME("x", "4Gi", ON("beta"));
	/* The same, where the affinities are about several labels. */
	static const char sets[] = POD(USE("a") ", " USE("b")) CLAIM(
		"a", "local", "1Gi", "") CLAIM("b", "local", "2Gi", "")
		LOCAL VOLUME("v", "3Gi", ON("alpha")) VOLUME("w", "3Gi", ON("beta")) VOLUME(
			"x", "4Gi",
			"nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: ["
			"{key: kubernetes.io/hostname, operator: NotIn, values: [alpha]}]}]}}, ");
	/* What is for every node helps. */
	static const char any[] = POD(USE("a") ", " USE("b")) CLAIM("a", "local", "1Gi", "")
		CLAIM("b", "local", "2Gi", "") LOCAL VOLUME("v", "3Gi", ON("alpha"))
			VOLUME("w", "3Gi", "");
	struct bench b;

	begin(&b);
	CHECK_ON(two, NO_VOLUME, FITS);
	CHECK_ON(sets, NO_VOLUME, FITS);
	CHECK_ON(any, FITS, NO_VOLUME);
	bench_done(&b);
}

TEST(a_volume_can_be_made_where_the_class_allows_it)
{
	static const char class[] =
		CLASS("made", "csi.example",
		      "allowedTopologies: [{matchLabelExpressions: [{key: kubernetes.io/hostname, "
		      "values: [beta]}]}]\n");
	struct strbuf yaml CLEANUP(strbuf_done) = STRBUF_INIT;
	struct bench b;

	begin(&b);
	strbuf_addf(&yaml, "%s%s", USES("a") CLAIM("a", "made", "1Gi", ""), class);
	CHECK_ON(yaml.s, NO_VOLUME, FITS);
	CHECK_ON(USES("a") CLAIM("a", "made", "1Gi", "") CLASS("made", "csi.example", ""), FITS,
		 FITS);
	bench_done(&b);
}

#define TRACKED                          \
	CLASS("made", "csi.example", "") \
	NEXT "kind: CSIDriver\nmetadata: {name: csi.example}\nspec: {storageCapacity: true}\n"
#define CAPACITY(name, size, node)                                                            \
	NEXT "kind: CSIStorageCapacity\nmetadata: {name: " name "}\nstorageClassName: made\n" \
	     "capacity: " size "\nnodeTopology: {matchLabels: {kubernetes.io/hostname: " node \
	     "}}\n"

TEST(a_driver_that_tells_its_capacity_must_have_enough)
{
	struct bench b;

	begin(&b);
	CHECK_ON(USES("a") CLAIM("a", "made", "2Gi", "") TRACKED CAPACITY("c", "1Gi", "alpha")
			 CAPACITY("d", "2Gi", "beta"),
		 NO_VOLUME_ROOM, FITS);
	CHECK_ON(USES("a") CLAIM("a", "made", "2Gi", "") TRACKED, NO_VOLUME_ROOM, NO_VOLUME_ROOM);
	bench_done(&b);
}

TEST(a_node_that_was_selected_is_the_only_one)
{
	static const char yaml[] = USES("a") NEXT
		"kind: PersistentVolumeClaim\nmetadata: {name: a, annotations: "
		"{volume.kubernetes.io/selected-node: beta}}\nspec: {storageClassName: "
		"made}\n" CLASS("made", "csi.example", "");
	struct bench b;

	begin(&b);
	CHECK_ON(yaml, NO_VOLUME, FITS);
	bench_done(&b);
}

static const char *promise(void *context, const char *kind, const char *namespace,
			   const char *name)
{
	(void)context, (void)namespace;
	if (strcmp(kind, "PersistentVolume") == 0 && strcmp(name, "v") == 0)
		return "default/other";
	if (strcmp(kind, "PersistentVolumeClaim") == 0 && strcmp(name, "promised") == 0)
		return "beta";
	return NULL;
}

TEST(what_is_promised_is_gone)
{
	struct bench b;

	begin(&b);
	b.lookup.promised = promise;
	CHECK_ON(USES("a") CLAIM("a", "local", "1Gi", "") LOCAL VOLUME("v", "1Gi", ""), NO_VOLUME,
		 NO_VOLUME);
	CHECK_ON(USES("other") CLAIM("other", "local", "1Gi", "") LOCAL VOLUME("v", "1Gi", ""),
		 FITS, FITS);
	CHECK_ON(USES("promised") CLAIM("promised", "made", "1Gi", "")
			 CLASS("made", "csi.example", ""),
		 NO_VOLUME, FITS);
	bench_done(&b);
}

static int plan(struct bench *b, const char *yaml, const char *node, struct volume_plan *ret)
{
	struct pod_source source;

	CHECK_INT(bench_read(b, yaml), 0);
	CHECK_INT(pod_source_read(json_root(b->objects.items[0].doc), &b->lookup, &source, NULL),
		  0);
	b->err = (struct err)ERR_INIT;
	return volumes_plan(b->cluster, &b->lookup, &source, cluster_node_find(b->cluster, node),
			    &b->arena, ret, &b->err);
}

TEST(the_smallest_claim_gets_the_smallest_volume_of_the_node)
{
	static const char yaml[] = POD(USE("big") ", " USE("small") ", " USE("made"))
		CLAIM("big", "local", "2Gi", "") CLAIM("small", "local", "1Gi", "")
			CLAIM("made", "made", "1Gi", "") LOCAL CLASS("made", "csi.example", "")
				VOLUME("v", "5Gi", ON("beta")) VOLUME("w", "3Gi", ON("beta"))
					VOLUME("x", "1Gi", ON("alpha")) VOLUME("z", "9Gi", "");
	struct volume_plan p;
	struct bench b;

	begin(&b);
	CHECK_INT(plan(&b, yaml, "beta", &p), 0);
	CHECK_INT(p.count, 3);
	CHECK_STR(p.choices[0].claim, "made");
	CHECK(!p.choices[0].volume);
	CHECK_STR(p.choices[1].claim, "small");
	CHECK_STR(p.choices[1].volume, "w");
	CHECK_STR(p.choices[2].claim, "big");
	CHECK_STR(p.choices[2].volume, "v");
	CHECK_INT(plan(&b, yaml, "alpha", &p), 0);
	CHECK_STR(p.choices[1].volume, "x");
	CHECK_STR(p.choices[2].volume, "z");
	CHECK_INT(plan(&b,
		       USES("a") CLAIM("a", "local", "1Gi", "")
			       LOCAL VOLUME("v", "1Gi", ON("beta")),
		       "alpha", &p),
		  -ENOENT);
	CHECK_STR(b.err.text, "alpha: node(s) didn't find available persistent volumes to bind");
	CHECK_INT(plan(&b, USES("a") BOUND("a", "v") VOLUME("v", "1Gi", ""), "alpha", &p), 0);
	CHECK_INT(p.count, 0);
	bench_done(&b);
}

/* Reads the pod as one that is on alpha. */
static void settle(struct bench *b, const char *uid, const char *yaml)
{
	struct pod_source source;
	uint32_t number;

	CHECK_INT(bench_read(b, yaml), 0);
	wish_release(b->cluster, &b->wish);
	CHECK_INT(pod_source_read(json_root(b->objects.items[0].doc), &b->lookup, &source, NULL),
		  0);
	CHECK_INT(dialect_read_resident(b->cluster, &b->lookup, &source, &b->arena, &b->wish,
					&b->err),
		  0);
	CHECK_INT(adopt_pod(b->cluster, &(struct pod_spec){ .uid = uid }, &b->wish.request,
			    cluster_node_find(b->cluster, "alpha"), NULL, &number),
		  0);
	wish_release(b->cluster, &b->wish);
}

TEST(disks_that_cannot_be_shared_keep_pods_apart)
{
	static const struct {
		const char *there, *comes;
		enum verdict verdict;
	} rows[] = {
		{ "gcePersistentDisk: {pdName: d}", "gcePersistentDisk: {pdName: d}",
		  DISK_IN_USE },
		{ "gcePersistentDisk: {pdName: d, readOnly: true}",
		  "gcePersistentDisk: {pdName: d, readOnly: true}", FITS },
		{ "gcePersistentDisk: {pdName: d}", "gcePersistentDisk: {pdName: e}", FITS },
		{ "awsElasticBlockStore: {volumeID: d, readOnly: true}",
		  "awsElasticBlockStore: {volumeID: d, readOnly: true}", DISK_IN_USE },
		{ "iscsi: {iqn: d}", "iscsi: {iqn: d, readOnly: true}", DISK_IN_USE },
		{ "rbd: {monitors: [a, b], image: i}",
		  "rbd: {monitors: [b, c], pool: rbd, image: i}", DISK_IN_USE },
		{ "rbd: {monitors: [a, b], image: i}", "rbd: {monitors: [c], image: i}", FITS },
		{ "rbd: {monitors: [a], pool: p, image: i}", "rbd: {monitors: [a], image: i}",
		  FITS },
	};
	struct strbuf pod CLEANUP(strbuf_done) = STRBUF_INIT;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bench b;

		begin(&b);
		strbuf_reset(&pod);
		strbuf_addf(&pod, POD("{name: v, %s}"), rows[i].there);
		settle(&b, "there", pod.s);
		strbuf_reset(&pod);
		strbuf_addf(&pod, POD("{name: v, %s}"), rows[i].comes);
		CHECKF(on(&b, pod.s, "alpha") == rows[i].verdict, "row %zu", i);
		CHECK_INT(on(&b, pod.s, "beta"), FITS);
		bench_done(&b);
	}
}

TEST(a_claim_for_one_pod_is_not_given_twice)
{
	static const char yaml[] =
		USES("a") NEXT "kind: PersistentVolumeClaim\nmetadata: {name: a, annotations: "
			       "{pv.kubernetes.io/bind-completed: 'yes'}}\nspec: {volumeName: v, "
			       "accessModes: [ReadWriteOncePod]}\n" VOLUME("v", "1Gi", "");
	struct bench b;

	begin(&b);
	CHECK_ON(yaml, FITS, FITS);
	settle(&b, "there", yaml);
	CHECK_ON(yaml, CLAIM_IN_USE, CLAIM_IN_USE);
	bench_done(&b);
}

#define CSI(name) VOLUME(name, "1Gi", "csi: {driver: csi.example, volumeHandle: h-" name "}, ")

static void limit(struct bench *b, const char *yaml)
{
	struct yaml docs = YAML_INIT;

	CHECK_INT(yaml_parse("test", yaml, strlen(yaml), NULL, &docs, NULL), 0);
	CHECK_INT(
		volumes_node_changed(b->cluster, "alpha", json_root(docs.items[0].doc), &b->arena),
		0);
	yaml_done(&docs);
}

TEST(drivers_attach_so_many_disks)
{
	struct bench b;

	begin(&b);
	limit(&b, "spec: {drivers: [{name: csi.example, allocatable: {count: 1}}, "
		  "{name: ebs.csi.aws.com, allocatable: {count: 0}}, {name: other}]}\n");
	CHECK_ON(USES("a") BOUND("a", "v") CSI("v"), FITS, FITS);
	settle(&b, "there", USES("a") BOUND("a", "v") CSI("v"));
	CHECK_ON(USES("a") BOUND("a", "v") CSI("v"), FITS, FITS);
	CHECK_ON(USES("b") BOUND("b", "w") CSI("w"), TOO_MANY_VOLUMES, FITS);
	/* By its class, while it is still to be made. */
	CHECK_ON(USES("c") CLAIM("c", "made", "1Gi", "") CLASS("made", "csi.example", ""),
		 TOO_MANY_VOLUMES, FITS);
	/* Drivers that took over disks of Kubernetes. */
	CHECK_ON(POD("{name: v, awsElasticBlockStore: {volumeID: 'aws://zone/vol-1'}}"),
		 TOO_MANY_VOLUMES, FITS);
	CHECK_ON(USES("d") BOUND("d", "x")
			 VOLUME("x", "1Gi", "awsElasticBlockStore: {volumeID: vol-2}, "),
		 TOO_MANY_VOLUMES, FITS);
	CHECK_ON(USES("d") BOUND("d", "x") VOLUME("x", "1Gi", "nfs: {server: s}, "), FITS, FITS);
	limit(&b, "spec: {}\n");
	CHECK_ON(USES("b") BOUND("b", "w") CSI("w"), FITS, FITS);
	bench_done(&b);
}

TEST(a_claim_that_is_bound_meanwhile_is_another_disk)
{
	static const char later[] = USES("b") BOUND("b", "v") BOUND("a", "v") CSI("v");
	struct bench b;

	begin(&b);
	limit(&b, "spec: {drivers: [{name: csi.example, allocatable: {count: 1}}]}\n");
	settle(&b, "there",
	       USES("a") CLAIM("a", "made", "1Gi", "") CLASS("made", "csi.example", ""));
	CHECK_INT(on(&b, later, "alpha"), TOO_MANY_VOLUMES);
	CHECK_INT(volumes_claim_changed(b.cluster, &b.lookup, "default", "a", &b.arena), 0);
	CHECK_INT(on(&b, later, "alpha"), FITS);
	bench_done(&b);
}

TEST(attachments_count_by_their_volumes)
{
	static const char other[] = USES("b") BOUND("b", "w") CSI("w") CSI("v") NEXT
		"kind: VolumeAttachment\nmetadata: {name: x}\nspec: {attacher: csi.example, "
		"nodeName: alpha, source: {persistentVolumeName: v}}\n";
	struct bench b;

	begin(&b);
	limit(&b, "spec: {drivers: [{name: csi.example, allocatable: {count: 1}}]}\n");
	CHECK_INT(on(&b, other, "alpha"), FITS);
	CHECK_INT(volumes_attachment_changed(b.cluster, &b.lookup, "x",
					     bench_find(&b, "VolumeAttachment", "", "x")),
		  0);
	CHECK_INT(on(&b, other, "alpha"), TOO_MANY_VOLUMES);
	CHECK_INT(volumes_attachment_changed(b.cluster, &b.lookup, "x", NULL), 0);
	CHECK_INT(on(&b, other, "alpha"), FITS);
	bench_done(&b);
}

TEST_MAIN()
