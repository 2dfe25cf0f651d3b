/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes and claims from the caches: found, told to the engine, promised. */
#include "scheduler_bench.h"

#include "engine/assign.h"
#include "engine/rules.h"
#include "scheduler/lookup.h"
#include "scheduler/storage.h"

static struct lookup *lookup;
static uint32_t node;

static void saw(void *context, const char *kind, const char *namespace, const char *name)
{
	(void)context;
	bench_saw("%s%s %s/%s", bench.seen[0] ? ", " : "", kind, namespace, name);
}

static void open(void)
{
	struct node_spec spec = { .name = "host", .allocatable.pods = 9 };
	struct err err = ERR_INIT;

	bench_open();
	struct lookup_options options = { .caches = &bench.caches,
					  .cluster = bench.cluster,
					  .log = &bench.log,
					  .seed = 1,
					  .changed = saw };
	CHECKF(lookup_new(&options, &lookup, &err) == 0, "%s", err.text);
	CHECK_INT(cluster_node_add(bench.cluster, &spec, &node, NULL), 0);
}

static void close_all(void)
{
	bench_close();
	lookup_free(lookup);
}

#define GLOBAL(name) "metadata: {name: " name ", uid: u-" name ", resourceVersion: RV}\n"
#define META(name) \
	"metadata: {name: " name ", namespace: ml, uid: u-" name ", resourceVersion: RV}\n"
#define CLAIM(name) META(name) "spec: {storageClassName: fast}\n"
#define BOUND(name) META(name) "spec: {storageClassName: fast, volumeName: v-" name "}\n"
#define CLASS	    GLOBAL("fast") "provisioner: csi.example\n"
#define VOLUME(name, more)                                                 \
	GLOBAL("v-" name)                                                  \
	"spec: {storageClassName: fast, csi: {driver: csi.example, "       \
	"volumeHandle: h-" name "}, claimRef: {namespace: ml, name: " name \
	"}}\nstatus: {phase: " more "}\n"
#define LIMIT(count)                                                              \
	GLOBAL("host")                                                            \
	"spec: {drivers: [{name: csi.example, allocatable: {count: " count "}}]}" \
	"\n"
#define ATTACHMENT(name, volume)                                 \
	GLOBAL(name)                                             \
	"spec: {attacher: csi.example, nodeName: host, source: " \
	"{persistentVolumeName: " volume "}}\n"

TEST(every_kind_is_found_and_told)
{
	static const struct {
		enum kube_kind_id id;
		const char *kind, *yaml, *namespace;
	} rows[] = {
		{ KUBE_PERSISTENT_VOLUME_CLAIM, "PersistentVolumeClaim", META("x"), "ml" },
		{ KUBE_PERSISTENT_VOLUME, "PersistentVolume", GLOBAL("x"), "" },
		{ KUBE_STORAGE_CLASS, "StorageClass", GLOBAL("x"), "" },
		{ KUBE_CSI_NODE, "CSINode", GLOBAL("x"), "" },
		{ KUBE_CSI_DRIVER, "CSIDriver", GLOBAL("x"), "" },
		{ KUBE_CSI_STORAGE_CAPACITY, "CSIStorageCapacity", META("x"), "ml" },
		{ KUBE_VOLUME_ATTACHMENT, "VolumeAttachment", GLOBAL("x"), "" },
	};
	const struct dialect_lookup *d;

	open();
	d = lookup_dialect(lookup);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		char word[128];

		CHECK(storage_has(rows[i].kind));
		CHECK(!d->find(d->context, rows[i].kind, rows[i].namespace, "x"));
		bench_put(rows[i].id, rows[i].yaml);
		snprintf(word, sizeof(word), "%s %s/x", rows[i].kind, rows[i].namespace);
		CHECK_STR(bench_seen(), word);
		CHECK_STR(json_str(d->find(d->context, rows[i].kind, rows[i].namespace, "x"),
				   "metadata", "uid"),
			  "u-x");
		bench_put(rows[i].id, rows[i].yaml); /* another version, nothing else */
		CHECK_STR(bench_seen(), "");
		bench_delete(rows[i].id, rows[i].yaml);
		CHECK_STR(bench_seen(), word);
	}
	CHECK(!storage_has("Job"));
	lookup_reset(lookup);
	close_all();
}

static void gather(void *visitor, const struct json *object)
{
	char *names = visitor;

	strcat(names, json_str(object, "metadata", "name"));
}

TEST(volumes_that_are_bound_or_of_another_class_are_not_visited)
{
	const struct dialect_lookup *d;
	char names[64] = "";

	open();
	d = lookup_dialect(lookup);
	bench_put(KUBE_PERSISTENT_VOLUME, VOLUME("a", "Bound"));
	bench_put(KUBE_PERSISTENT_VOLUME, VOLUME("b", "Available"));
	bench_put(KUBE_PERSISTENT_VOLUME, GLOBAL("slow") "spec: {storageClassName: slow}\n");
	d->each(d->context, "PersistentVolume", "fast", gather, names);
	CHECK_STR(names, "v-b");
	bench_put(KUBE_PERSISTENT_VOLUME, VOLUME("b", "Bound"));
	names[0] = '\0';
	d->each(d->context, "PersistentVolume", "fast", gather, names);
	CHECK_STR(names, "");
	bench_put(KUBE_CSI_STORAGE_CAPACITY, META("c") "storageClassName: fast\n");
	d->each(d->context, "CSIStorageCapacity", "fast", gather, names);
	CHECK_STR(names, "c");
	close_all();
}

/* A pod that uses the claim, read before anything else was known. */
static void settle(const char *claim)
{
	struct volume_use use = { claim, VOLUME_CLAIM };
	struct rules_spec spec = { .volumes = &use, .volumes_count = 1 };
	struct request r;
	uint32_t pod;

	request_init(&r);
	CHECK_INT(rules_take(bench.cluster, &spec, &r.rules), 0);
	CHECK_INT(cluster_pod_place(bench.cluster, &(struct pod_spec){ .uid = claim }, &r, node,
				    &(struct assignment){ 0 }, &pod),
		  0);
}

TEST(a_claim_is_known_whatever_comes_last)
{
	struct volume_use use = { "ml/b", VOLUME_CLAIM };
	struct rules_spec spec = { .volumes = &use, .volumes_count = 1 };

	/* In every order of class, claim and limit. */
	for (unsigned order = 0; order < 6; order++) {
		unsigned first = order % 3, second = (first + 1 + order / 3) % 3;
		struct request r;

		open();
		request_init(&r);
		CHECK_INT(rules_take(bench.cluster, &spec, &r.rules), 0);
		settle("ml/a");
		bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("a"));
		for (unsigned i = 0; i < 3; i++) {
			unsigned what = i == 0 ? first : i == 1 ? second : 3 - first - second;

			CHECK_INT(fit_node(bench.cluster, &r, node), FITS);
			if (what == 0)
				bench_put(KUBE_STORAGE_CLASS, CLASS);
			else if (what == 1)
				bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("b"));
			else
				bench_put(KUBE_CSI_NODE, LIMIT("1"));
		}
		CHECK_INT(fit_node(bench.cluster, &r, node), TOO_MANY_VOLUMES);
		bench_delete(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("b"));
		CHECK_INT(fit_node(bench.cluster, &r, node), FITS);
		close_all();
	}
}

TEST(claims_of_one_volume_are_one_disk)
{
	open();
	bench_put(KUBE_CSI_NODE, LIMIT("1"));
	bench_put(KUBE_STORAGE_CLASS, CLASS);
	settle("ml/a");
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("a"));
	struct volume_use use = { "ml/b", VOLUME_CLAIM };
	struct rules_spec spec = { .volumes = &use, .volumes_count = 1 };
	struct request r;

	request_init(&r);
	CHECK_INT(rules_take(bench.cluster, &spec, &r.rules), 0);
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("b"));
	CHECK_INT(fit_node(bench.cluster, &r, node), TOO_MANY_VOLUMES);
	/* Both are bound to one volume, of which only the name is known first. */
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, META("b") "spec: {volumeName: v-a}\n");
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, BOUND("a"));
	bench_put(KUBE_PERSISTENT_VOLUME, VOLUME("a", "Bound"));
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM,
		  META("b") "spec: {volumeName: v-a, storageClassName: fast}\n");
	CHECK_INT(fit_node(bench.cluster, &r, node), FITS);
	bench_delete(KUBE_PERSISTENT_VOLUME, VOLUME("a", "Bound"));
	CHECK_INT(fit_node(bench.cluster, &r, node), TOO_MANY_VOLUMES);
	close_all();
}

TEST(an_attachment_may_come_before_its_volume)
{
	struct volume_use use = { "ml/a", VOLUME_CLAIM };
	struct rules_spec spec = { .volumes = &use, .volumes_count = 1 };
	struct request r;

	open();
	request_init(&r);
	CHECK_INT(rules_take(bench.cluster, &spec, &r.rules), 0);
	bench_put(KUBE_CSI_NODE, LIMIT("1"));
	bench_put(KUBE_STORAGE_CLASS, CLASS);
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("a"));
	bench_put(KUBE_VOLUME_ATTACHMENT, ATTACHMENT("x", "v-z"));
	lookup_dialect(lookup);
	CHECK_INT(fit_node(bench.cluster, &r, node), FITS);
	bench_put(KUBE_PERSISTENT_VOLUME, VOLUME("y", "Bound"));
	lookup_dialect(lookup);
	CHECK_INT(fit_node(bench.cluster, &r, node), FITS);
	bench_put(KUBE_PERSISTENT_VOLUME, VOLUME("z", "Bound"));
	lookup_dialect(lookup);
	CHECK_INT(fit_node(bench.cluster, &r, node), TOO_MANY_VOLUMES);
	bench_delete(KUBE_VOLUME_ATTACHMENT, ATTACHMENT("x", "v-z"));
	CHECK_INT(fit_node(bench.cluster, &r, node), FITS);
	bench_put(KUBE_CSI_NODE, LIMIT("0"));
	CHECK_INT(fit_node(bench.cluster, &r, node), TOO_MANY_VOLUMES);
	bench_delete(KUBE_CSI_NODE, LIMIT("0"));
	CHECK_INT(fit_node(bench.cluster, &r, node), FITS);
	close_all();
}

TEST(promises_are_kept_until_they_are_taken_back)
{
	const struct dialect_lookup *d;
	struct storage *s;

	open();
	d = lookup_dialect(lookup);
	s = lookup_storage(lookup);
	CHECK(!d->promised(d->context, "PersistentVolume", "", "v"));
	CHECK_INT(storage_promise(s, "PersistentVolume", "", "v", "ml/a"), 0);
	CHECK_INT(storage_promise(s, "PersistentVolume", "", "v", "ml/b"), -EEXIST);
	CHECK_INT(storage_promise(s, "PersistentVolume", "", "v", "ml/a"), 1);
	CHECK_INT(storage_promise(s, "PersistentVolumeClaim", "ml", "v", "n"), 0);
	CHECK_INT(storage_promise(s, "PersistentVolumeClaim", "ml", "v", "other"), 1);
	CHECK_STR(d->promised(d->context, "PersistentVolume", "", "v"), "ml/a");
	CHECK_STR(d->promised(d->context, "PersistentVolumeClaim", "ml", "v"), "n");
	storage_unpromise(s, "PersistentVolume", "", "v");
	CHECK_STR(d->promised(d->context, "PersistentVolume", "", "v"), "ml/a");
	storage_unpromise(s, "PersistentVolume", "", "v");
	storage_unpromise(s, "PersistentVolume", "", "v");
	CHECK(!d->promised(d->context, "PersistentVolume", "", "v"));
	close_all();
}

TEST_MAIN()
