/* SPDX-License-Identifier: Apache-2.0 */
/* Claims and owners for reviews; the caches are the test's own. */
#include "scheduler_bench.h"

#include "base/strbuf.h"
#include "dialect/dialect.h"
#include "webhook/lookup.h"

static bool synced;

struct kube_caches *kube_caches_new(struct kube_client *client)
{
	(void)client;
	return &bench.caches;
}

void kube_caches_free(struct kube_caches *caches)
{
	CHECK(!caches || caches == &bench.caches);
}

bool kube_caches_synced(const struct kube_caches *caches)
{
	CHECK(caches == &bench.caches);
	return synced;
}

void kube_caches_measure(const struct kube_caches *caches)
{
	CHECK(caches == &bench.caches);
}

bool kube_caches_ready(const struct kube_caches *caches, struct strbuf *why)
{
	CHECK(caches == &bench.caches);
	strbuf_puts(why, "jobs: the list is not whole yet");
	return false;
}

const struct kube_kind *kube_cache_kind(const struct kube_cache *cache)
{
	return cache->kind;
}

static struct webhook_lookup *open_lookup(bool claims, bool owners)
{
	struct webhook_lookup_options options = { .log = &bench.log,
						  .claims = claims,
						  .owners = owners };
	struct webhook_lookup *lookup = NULL;
	struct err err = ERR_INIT;

	bench_open();
	CHECKF(webhook_lookup_new(&options, &lookup, &err) == 0, "%s", err.text);
	return lookup;
}

static void close_lookup(struct webhook_lookup *lookup)
{
	webhook_lookup_free(lookup);
	bench_close();
}

static const char *find(struct webhook_lookup *lookup, const char *kind, const char *namespace,
			const char *name)
{
	const struct dialect_lookup *d = webhook_lookup_dialect(lookup);

	return json_str(d->find(d->context, kind, namespace, name), "metadata", "uid");
}

#define META(name) \
	"metadata: {name: " name ", namespace: ml, uid: u-" name ", resourceVersion: RV}\n"

TEST(claims_and_owners_are_found_by_kind_namespace_and_name)
{
	static const struct {
		enum kube_kind_id id;
		const char *kind;
	} rows[] = {
		{ KUBE_GPU_CLAIM, "GpuClaim" },	      { KUBE_JOB, "Job" },
		{ KUBE_REPLICA_SET, "ReplicaSet" },   { KUBE_DEPLOYMENT, "Deployment" },
		{ KUBE_STATEFUL_SET, "StatefulSet" },
	};
	struct webhook_lookup *lookup = open_lookup(true, true);

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		CHECK(!find(lookup, rows[i].kind, "ml", "x"));
		bench_put(rows[i].id, META("x"));
		CHECK_STR(find(lookup, rows[i].kind, "ml", "x"), "u-x");
		CHECK(!find(lookup, rows[i].kind, "other", "x"));
		CHECK(!find(lookup, rows[i].kind, "ml", "y"));
	}
	CHECK(!find(lookup, "Secret", "ml", "x"));
	webhook_lookup_reset(lookup);
	CHECK_STR(find(lookup, "Job", "ml", "x"), "u-x");
	close_lookup(lookup);
}

TEST(only_what_is_wanted_is_followed)
{
	struct webhook_lookup *lookup = open_lookup(true, false);

	CHECK_INT(bench.caches.count, 1);
	CHECK(!find(lookup, "Job", "ml", "x"));
	close_lookup(lookup);
	lookup = open_lookup(false, true);
	CHECK_INT(bench.caches.count, 4);
	CHECK(!find(lookup, "GpuClaim", "ml", "x"));
	close_lookup(lookup);
}

TEST(it_is_ready_when_all_has_been_read_once)
{
	struct strbuf why CLEANUP(strbuf_done) = STRBUF_INIT;
	struct webhook_lookup *lookup = open_lookup(true, true);

	synced = false;
	CHECK(!webhook_lookup_ready(lookup, &why));
	CHECK_STR(why.s, "jobs: the list is not whole yet");
	synced = true;
	strbuf_reset(&why);
	CHECK(webhook_lookup_ready(lookup, &why));
	CHECK_STR(why.s, "");
	close_lookup(lookup);
}

TEST_MAIN()
