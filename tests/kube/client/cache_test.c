/* SPDX-License-Identifier: Apache-2.0 */
/* Caches of a real API server: lists in pages and as streams, watches, selectors, kinds.
 *
 * cluster: --nodes 0
 */
#include "live.h"

#include "test.h"

#include "base/attr.h"
#include "base/err.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "kube/ready.h"
#include "wire/json.h"

struct follower {
	struct live live;
	struct kube_cache *cache;
	unsigned added, modified, deleted, gone, synced;
	unsigned wanted;
	char last_n[16];
};

static void on_changed(void *context, enum kube_change change, const struct kube_object *before,
		       struct kube_object *now, const struct json *object)
{
	struct follower *follower = context;
	const char *n = json_str(object, "data", "n");
	follower->added += change == KUBE_ADDED;
	follower->modified += change == KUBE_MODIFIED;
	follower->deleted += change == KUBE_DELETED;
	follower->gone += change == KUBE_GONE;
	CHECK((change == KUBE_ADDED) == (before == NULL));
	CHECK((change == KUBE_ADDED || change == KUBE_MODIFIED) == (now != NULL));
	if (n)
		snprintf(follower->last_n, sizeof(follower->last_n), "%s", n);
}

static void on_synced(void *context)
{
	((struct follower *)context)->synced++;
}

static bool is_synced(void *context)
{
	return ((const struct follower *)context)->synced > 0;
}

static bool has_count(void *context)
{
	const struct follower *follower = context;
	return kube_cache_count(follower->cache) == follower->wanted;
}

/* Of ConfigMaps with the label; other options as given. */
static void follow(struct follower *follower, struct kube_cache_options options)
{
	struct err err = ERR_INIT;
	*follower = (struct follower){ 0 };
	live_open(&follower->live, NULL);
	options.kind = options.kind ? options.kind : &kube_kinds[KUBE_CONFIG_MAP];
	options.changed = on_changed;
	options.synced = on_synced;
	options.context = follower;
	CHECKF(kube_cache_new(follower->live.client, &options, &follower->cache, &err) == 0, "%s",
	       err.text);
}

static void unfollow(struct follower *follower)
{
	kube_cache_free(follower->cache);
	live_close(&follower->live);
}

static void wait_for_count(struct follower *follower, unsigned count)
{
	follower->wanted = count;
	live_until(&follower->live, has_count, follower, "that many objects in the cache");
}

static struct kube_cache_status status_of(const struct follower *follower)
{
	struct kube_cache_status status;
	kube_cache_status(follower->cache, &status);
	return status;
}

static const char *list_path(const struct follower *follower, const char *app)
{
	static char path[256];
	snprintf(path, sizeof(path), "/api/v1/namespaces/%s/configmaps?labelSelector=app%%3D%s",
		 follower->live.namespace, app);
	return path;
}

TEST(a_cache_follows_what_is_made_changed_and_deleted)
{
	for (int streams = 0; streams < 2; streams++) {
		struct follower f;
		follow(&f, (struct kube_cache_options){ .label_selector = "app=simple",
							.no_streaming = !streams });
		live_until(&f.live, is_synced, &f, "the first list");
		CHECK_INT(kube_cache_count(f.cache), 0);
		live_put(&f.live, "simple-a", "simple", 1);
		live_put(&f.live, "simple-b", "simple", 2);
		wait_for_count(&f, 2);
		live_put(&f.live, "simple-a", "simple", 3);
		live_equal(&f.live, f.cache, list_path(&f, "simple"));
		CHECK_STR(f.last_n, "3");
		CHECK_INT(f.added, 2);
		CHECK_INT(f.modified, 1);
		struct kube_object *object = kube_cache_get(f.cache, f.live.namespace, "simple-a");
		CHECK(object && object->uid[0]);
		live_delete(&f.live, "simple-a");
		wait_for_count(&f, 1);
		CHECK_INT(f.deleted, 1);
		live_put(&f.live, "simple-b", "other", 4); /* leaves the selector */
		wait_for_count(&f, 0);
		CHECK_INT(f.deleted, 2);
		CHECK_INT(f.gone, 0);
		CHECK_INT(f.synced, 1);
		CHECK(status_of(&f).live);
		live_delete(&f.live, "simple-b");
		unfollow(&f);
	}
}

TEST(lists_in_pages_and_as_streams_have_everything)
{
	struct live live;
	live_open(&live, NULL);
	live_put_many(&live, "many", "many", 1200, 1);
	for (uint32_t page = 0; page <= 100; page += 50) {
		struct follower f;
		follow(&f, (struct kube_cache_options){ .label_selector = "app=many",
							.no_streaming = page > 0,
							.page = page });
		live_until(&f.live, is_synced, &f, "the list");
		CHECK_INT(kube_cache_count(f.cache), 1200);
		CHECK_INT(f.added, 1200);
		CHECK_INT(status_of(&f).lists, 1);
		CHECK_INT(status_of(&f).failures, 0);
		live_equal(&f.live, f.cache, list_path(&f, "many"));
		unfollow(&f);
	}
	live_delete_all(&live, "many");
	live_close(&live);
}

TEST(a_flood_of_changes_ends_in_the_servers_state)
{
	struct follower f;
	follow(&f, (struct kube_cache_options){ .label_selector = "app=flood" });
	live_until(&f.live, is_synced, &f, "the first list");
	for (unsigned n = 0; n < 5; n++)
		live_put_many(&f.live, "flood", "flood", 200, n);
	live_equal(&f.live, f.cache, list_path(&f, "flood"));
	CHECK_INT(kube_cache_count(f.cache), 200);
	CHECK_INT(f.added + f.modified, 1000);
	live_delete_all(&f.live, "flood");
	wait_for_count(&f, 0);
	CHECK_INT(f.deleted, 200);
	unfollow(&f);
}

TEST(names_are_selected_by_field)
{
	struct follower f;
	follow(&f, (struct kube_cache_options){ .field_selector = "metadata.name=chosen",
						.namespace = "default" });
	live_until(&f.live, is_synced, &f, "the first list");
	CHECK_STR(f.live.namespace, "default");
	live_put(&f.live, "unchosen", "field", 1);
	live_put(&f.live, "chosen", "field", 1);
	wait_for_count(&f, 1);
	CHECK(kube_cache_get(f.cache, "default", "chosen"));
	live_delete_all(&f.live, "field");
	wait_for_count(&f, 0);
	unfollow(&f);
}

TEST(who_takes_a_name_over_is_another)
{
	struct follower f;
	follow(&f, (struct kube_cache_options){ .label_selector = "app=again" });
	live_until(&f.live, is_synced, &f, "the first list");
	for (unsigned i = 0; i < 20; i++) {
		live_put(&f.live, "again", "again", i);
		live_delete(&f.live, "again");
	}
	live_put(&f.live, "again", "again", 20);
	live_equal(&f.live, f.cache, list_path(&f, "again"));
	CHECK_INT(f.added, 21);
	CHECK_INT(f.deleted + f.gone, 20);
	live_delete(&f.live, "again");
	unfollow(&f);
}

TEST(a_cache_that_is_freed_in_the_middle_leaves_nothing)
{
	for (uint64_t ms = 0; ms < 40; ms += 4) {
		struct follower f;
		follow(&f, (struct kube_cache_options){ .kind = &kube_kinds[KUBE_CONFIG_MAP],
							.page = 1,
							.no_streaming = ms % 8 == 0 });
		live_for(&f.live, ms);
		unfollow(&f);
	}
}

static bool are_ready(void *context)
{
	return kube_caches_ready(context, NULL);
}

TEST(every_kind_can_be_followed)
{
	for (int streams = 0; streams < 2; streams++) {
		struct strbuf why CLEANUP(strbuf_done) = STRBUF_INIT;
		struct err err = ERR_INIT;
		struct live live;
		live_open(&live, NULL);
		struct kube_caches *caches = kube_caches_new(live.client);
		CHECK(caches);
		for (size_t i = 0; i < KUBE_KINDS; i++) {
			struct kube_cache_options options = { .kind = &kube_kinds[i],
							      .no_streaming = !streams };
			CHECKF(kube_caches_add(caches, &options, NULL, &err) == 0, "%s", err.text);
		}
		CHECK(!kube_caches_ready(caches, &why));
		CHECK(strstr(why.s, "pods: the list is not whole yet"));
		live_until(&live, are_ready, caches, "all caches");
		CHECK(kube_caches_synced(caches));
		for (size_t i = 0; i < KUBE_KINDS; i++) {
			struct kube_cache_status status;
			kube_cache_status(kube_caches_at(caches, i), &status);
			bool absent = strncmp(status.trouble, "the server has no", 17) == 0;
			CHECKF(status.failures == 0, "%s: %s", kube_kinds[i].plural,
			       status.trouble);
			CHECKF(!absent || kube_kinds[i].optional, "%s", kube_kinds[i].plural);
			CHECKF(status.malformed == 0, "%s", kube_kinds[i].plural);
		}
		CHECK(!kube_caches_at(caches, KUBE_KINDS));
		kube_caches_free(caches);
		live_close(&live);
	}
}

TEST_MAIN()
