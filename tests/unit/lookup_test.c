/* SPDX-License-Identifier: Apache-2.0 */
/* The objects around a pod, and who has which index of a map. */
#include "scheduler_bench.h"

#include "engine/rules.h"
#include "scheduler/indexes.h"
#include "scheduler/lookup.h"

static struct lookup *lookup;

static void saw(void *context, const char *kind, const char *namespace, const char *name)
{
	(void)context;
	bench_saw("%s%s %s/%s", bench.seen[0] ? ", " : "", kind, namespace, name);
}

static void open(void)
{
	struct err err = ERR_INIT;

	bench_open();
	struct lookup_options options = { .caches = &bench.caches,
					  .cluster = bench.cluster,
					  .log = &bench.log,
					  .seed = 1,
					  .changed = saw };
	CHECKF(lookup_new(&options, &lookup, &err) == 0, "%s", err.text);
}

static void close_all(void)
{
	bench_close();
	lookup_free(lookup);
}

static const struct json *find(const char *kind, const char *namespace, const char *name)
{
	const struct dialect_lookup *d = lookup_dialect(lookup);

	return d->find(d->context, kind, namespace, name);
}

static bool taken(const char *workload, uint32_t index)
{
	const struct dialect_lookup *d = lookup_dialect(lookup);

	return d->index_taken(d->context, workload, index);
}

#define META(name) \
	"metadata: {name: " name ", namespace: ml, uid: u-" name ", resourceVersion: RV}\n"
#define GLOBAL(name) "metadata: {name: " name ", uid: u-" name ", resourceVersion: RV}\n"

TEST(every_kind_that_is_asked_for_is_found)
{
	static const struct {
		enum kube_kind_id id;
		const char *kind, *yaml, *namespace;
	} rows[] = {
		{ KUBE_GPU_CLAIM, "GpuClaim", META("x") "spec: {devices: {count: 2}}\n", "ml" },
		{ KUBE_POD_GROUP, "PodGroup", META("x") "spec: {minMember: 2}\n", "ml" },
		{ KUBE_PRIORITY_CLASS, "PriorityClass", GLOBAL("x") "value: 7\n", "" },
		{ KUBE_JOB, "Job", META("x") "spec: {parallelism: 2}\n", "ml" },
		{ KUBE_REPLICA_SET, "ReplicaSet", META("x") "spec: {replicas: 2}\n", "ml" },
		{ KUBE_STATEFUL_SET, "StatefulSet", META("x") "spec: {replicas: 2}\n", "ml" },
		{ KUBE_DEPLOYMENT, "Deployment", META("x"), "ml" },
		{ KUBE_REPLICATION_CONTROLLER, "ReplicationController", META("x"), "ml" },
		{ KUBE_NAMESPACE, "Namespace", GLOBAL("x"), "" },
	};

	open();
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		char word[128];

		CHECK(find(rows[i].kind, rows[i].namespace, "x") == NULL);
		bench_put(rows[i].id, rows[i].yaml);
		snprintf(word, sizeof(word), "%s %s/x", rows[i].kind, rows[i].namespace);
		CHECK_STR(bench_seen(), word);
		CHECK_STR(json_str(find(rows[i].kind, rows[i].namespace, "x"), "metadata", "uid"),
			  "u-x");
		CHECK(find(rows[i].kind, rows[i].namespace, "y") == NULL);
		bench_delete(rows[i].id, rows[i].yaml);
		CHECK_STR(bench_seen(), word);
		CHECK(find(rows[i].kind, rows[i].namespace, "x") == NULL);
	}
	CHECK(find("CronJob", "ml", "x") == NULL);
	lookup_reset(lookup);
	close_all();
}

TEST(an_owner_is_waited_for_and_its_coming_is_heard_of)
{
	static const char *const pod =
		"metadata: {name: p, namespace: ml, uid: u-p, resourceVersion: RV, "
		"ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: u-r, "
		"controller: true}]}\nspec: {containers: [{name: a}]}\n";
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct pod_source source;

	open();
	doc = bench_parse(pod);
	CHECK(pod_source_read(json_root(doc), lookup_dialect(lookup), &source, NULL) == 0);
	CHECK(source.owner_missing != NULL);
	CHECK((lookup_met(lookup) & lookup_bit("ReplicaSet", "r")) != 0);
	bench_seen();
	bench_put(KUBE_REPLICA_SET, META("r") "spec: {replicas: 2}\n");
	CHECK_STR(bench_seen(), "ReplicaSet ml/r");
	CHECK(pod_source_read(json_root(doc), lookup_dialect(lookup), &source, NULL) == 0);
	CHECK(source.owner_missing == NULL);
	CHECK_INT(source.owners_count, 1);
	lookup_reset(lookup);
	close_all();
}

TEST(a_group_of_the_plugin_goes_before_an_upstream_one)
{
	open();
	bench_put(KUBE_UPSTREAM_POD_GROUP,
		  META("g") "spec: {schedulingPolicy: {gang: {minCount: 3}}}\n");
	CHECK(json_get(find("PodGroup", "ml", "g"), "spec", "schedulingPolicy") != NULL);
	bench_put(KUBE_POD_GROUP, META("g") "spec: {minMember: 2}\n");
	CHECK(json_get(find("PodGroup", "ml", "g"), "spec", "minMember") != NULL);
	close_all();
}

TEST(what_was_found_stays_until_the_reset_also_if_the_object_changes)
{
	open();
	bench_put(KUBE_JOB, META("j") "spec: {parallelism: 2}\n");
	const struct json *before = find("Job", "ml", "j");
	bench_put(KUBE_JOB, META("j") "spec: {parallelism: 3}\n");
	int64_t parallelism;
	CHECK(json_i64(before, &parallelism, "spec", "parallelism") == 0 && parallelism == 2);
	CHECK(json_i64(find("Job", "ml", "j"), &parallelism, "spec", "parallelism") == 0);
	CHECK_INT(parallelism, 3);
	lookup_reset(lookup);
	close_all();
}

TEST(only_what_pods_are_read_with_is_told)
{
	open();
	bench_put(KUBE_JOB, META("j") "spec: {parallelism: 2}\n");
	bench_put(KUBE_GPU_CLAIM, META("c") "spec: {devices: {count: 2}}\n");
	bench_seen();
	bench_put(KUBE_JOB, META("j") "spec: {parallelism: 2}\nstatus: {active: 2}\n");
	bench_put(KUBE_GPU_CLAIM,
		  META("c") "spec: {devices: {count: 2}}\nstatus: {phase: Bound}\n");
	CHECK_STR(bench_seen(), "");
	bench_put(KUBE_GPU_CLAIM,
		  META("c") "spec: {devices: {count: 1}}\nstatus: {phase: Bound}\n");
	CHECK_STR(bench_seen(), "GpuClaim ml/c");
	CHECK_STR(lookup_claim(lookup, "ml", "c")->uid, "u-c");
	CHECK(lookup_claim(lookup, "ml", "d") == NULL);
	CHECK(lookup_claim(lookup, "lm", "c") == NULL);
	close_all();
}

/* Whether a pod of ml may be on a node beside one of namespace `x`, from which it keeps
 * those of namespaces labelled team=a away. */
static bool is_apart(uint32_t node)
{
	const char *const values[] = { "a" };
	const struct match team = { .key = "team", .values = values, .values_count = 1 };
	const struct pod_term term = { .pods = { .namespace_labels = &team,
						 .namespace_labels_count = 1,
						 .by_namespace_labels = true },
				       .topology_key = "host" };
	const struct rules_spec spec = { .apart = &term, .apart_count = 1, .namespace = "ml" };
	uint32_t rules, subject;

	CHECK(rules_take(bench.cluster, &spec, &rules) == 0);
	CHECK(subject_take(bench.cluster, "ml", NULL, 0, &subject) == 0);
	bool apart = rules_fit_pods(bench.cluster, rules, subject, node, NULL, 0) != FITS;
	rules_release(bench.cluster, rules);
	subject_release(bench.cluster, subject);
	return apart;
}

TEST(labels_of_namespaces_reach_the_rules_about_pods)
{
	uint32_t node, number;
	struct request r;

	open();
	struct label host = { cluster_intern(bench.cluster, "host"),
			      cluster_intern(bench.cluster, "n") };
	struct node_spec n = {
		.name = "n", .labels = &host, .labels_count = 1, .allocatable = { .pods = 10 }
	};
	CHECK(cluster_node_add(bench.cluster, &n, &node, NULL) == 0);
	request_init(&r);
	CHECK(subject_take(bench.cluster, "x", NULL, 0, &r.subject) == 0);
	CHECK(cluster_pod_place(bench.cluster, &(struct pod_spec){ .uid = "p" }, &r, node,
				&(struct assignment){ 0 }, &number) == 0);
	CHECK(!is_apart(node));
	bench_put(KUBE_NAMESPACE, "metadata: {name: x, uid: u, resourceVersion: RV, labels: "
				  "{team: a}}\n");
	CHECK(is_apart(node));
	bench_put(KUBE_NAMESPACE, "metadata: {name: x, uid: u, resourceVersion: RV, labels: "
				  "{team: b}}\n");
	CHECK(!is_apart(node));
	bench_put(KUBE_NAMESPACE, "metadata: {name: x, uid: u, resourceVersion: RV, labels: "
				  "{team: a}}\n");
	CHECK(is_apart(node));
	bench_delete(KUBE_NAMESPACE, "metadata: {name: x, uid: u, resourceVersion: RV}\n");
	CHECK(!is_apart(node));
	subject_release(bench.cluster, r.subject);
	close_all();
}

TEST(an_index_is_taken_until_its_last_pod_drops_it)
{
	open();
	CHECK(!taken("web", 0));
	CHECK(lookup_take_index(lookup, "web", 0, "a") == 0);
	CHECK(lookup_take_index(lookup, "web", 0, "a") == 0);
	CHECK(lookup_take_index(lookup, "web", 1, "b") == 0);
	CHECK(lookup_take_index(lookup, "web", 0, "c") == 0);
	CHECK(lookup_take_index(lookup, "web", 0, "d") == 0);
	CHECK(taken("web", 0) && taken("web", 1) && !taken("web", 2) && !taken("we", 0));
	lookup_drop_index(lookup, "c");
	CHECK(taken("web", 0));
	lookup_drop_index(lookup, "a");
	CHECK(taken("web", 0));
	lookup_drop_index(lookup, "d");
	CHECK(!taken("web", 0) && taken("web", 1));
	lookup_drop_index(lookup, "nobody");
	close_all();
}

TEST(a_pod_has_one_index_at_most)
{
	struct indexes set;

	indexes_init(&set, 1);
	CHECK(indexes_take(&set, "a", 1, "q") == 0);
	for (uint32_t i = 0; i < 100; i++) {
		CHECK(indexes_take(&set, i % 2 ? "a" : "b", i, "p") == 0);
		for (uint32_t j = 0; j < 100; j++) {
			CHECK_INT(indexes_taken(&set, "a", j, NULL), j == 1 || (i % 2 && i == j));
			CHECK_INT(indexes_taken(&set, "b", j, NULL), i % 2 == 0 && i == j);
		}
	}
	indexes_drop(&set, "p");
	CHECK(!indexes_taken(&set, "a", 99, NULL));
	indexes_done(&set);
}

TEST(the_index_of_a_pod_is_not_taken_to_itself)
{
	const struct dialect_lookup *d;

	open();
	CHECK(lookup_take_index(lookup, "web", 0, "a") == 0);
	CHECK(lookup_take_index(lookup, "web", 1, "b") == 0);
	d = lookup_dialect_of(lookup, "a");
	CHECK(!d->index_taken(d->context, "web", 0) && d->index_taken(d->context, "web", 1));
	/* ... unless another has it, too. */
	CHECK(lookup_take_index(lookup, "web", 0, "c") == 0);
	CHECK(d->index_taken(d->context, "web", 0));
	lookup_drop_index(lookup, "c");
	CHECK(!d->index_taken(d->context, "web", 0));
	lookup_reset(lookup);
	CHECK(taken("web", 0));
	close_all();
}

static void saw_freed(void *context, const char *map, uint32_t index)
{
	(void)context;
	bench_saw("%s%s %u", bench.seen[0] ? ", " : "", map, index);
}

TEST(who_may_have_another_index_now_is_told)
{
	struct indexes set;

	open();
	indexes_init(&set, 1);
	set.freed = saw_freed;
	for (uint32_t i = 0; i < 3; i++)
		CHECK(indexes_take(&set, "web", i, (const char *[]){ "a", "b", "c" }[i]) == 0);
	CHECK(indexes_take(&set, "web", 1, "b") == 0);
	CHECK_STR(bench_seen(), "");
	indexes_drop(&set, "a");
	CHECK_STR(bench_seen(), "web 0");
	CHECK(indexes_take(&set, "web", 0, "c") == 0);
	CHECK_STR(bench_seen(), "web 2");
	CHECK(indexes_take(&set, "web", 0, "other") == 0);
	CHECK_STR(bench_seen(), "");
	CHECK_INT(indexes_of(&set, "web", "c"), 0);
	CHECK_INT(indexes_of(&set, "web", "b"), 1);
	CHECK_INT(indexes_of(&set, "we", "b"), INDEXES_NONE);
	CHECK_INT(indexes_of(&set, "web", "nobody"), INDEXES_NONE);
	indexes_done(&set);
	close_all();
}

TEST_MAIN()
