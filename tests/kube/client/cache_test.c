/* SPDX-License-Identifier: Apache-2.0 */
/* Caches of a real API server: lists in pages and as streams, watches, selectors, kinds.
 *
 * cluster: --nodes 0
 */
#include "follower.h"

#include "test.h"

#include "base/attr.h"
#include "base/err.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "kube/ready.h"

TEST(a_cache_follows_what_is_made_changed_and_deleted)
{
	for (int streams = 0; streams < 2; streams++) {
		struct follower f;
		follow(&f, NULL,
		       (struct kube_cache_options){ .label_selector = "app=simple",
						    .no_streaming = !streams });
		follower_wait_synced(&f);
		CHECK_INT(kube_cache_count(f.cache), 0);
		live_put(&f.live, "simple-a", "simple", 1);
		live_put(&f.live, "simple-b", "simple", 2);
		follower_wait_count(&f, 2);
		live_put(&f.live, "simple-a", "simple", 3);
		live_equal(&f.live, f.cache, follower_path(&f, "simple"));
		CHECK_STR(f.last_n, "3");
		CHECK_INT(f.added, 2);
		CHECK_INT(f.modified, 1);
		struct kube_object *object = kube_cache_get(f.cache, f.live.namespace, "simple-a");
		CHECK(object && object->uid[0]);
		live_delete(&f.live, "simple-a");
		follower_wait_count(&f, 1);
		CHECK_INT(f.deleted, 1);
		live_put(&f.live, "simple-b", "other", 4); /* leaves the selector */
		follower_wait_count(&f, 0);
		CHECK_INT(f.deleted, 2);
		CHECK_INT(f.gone, 0);
		CHECK_INT(f.synced, 1);
		CHECK(follower_status(&f).live);
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
		follow(&f, NULL,
		       (struct kube_cache_options){ .label_selector = "app=many",
						    .no_streaming = page > 0,
						    .page = page });
		follower_wait_synced(&f);
		CHECK_INT(kube_cache_count(f.cache), 1200);
		CHECK_INT(f.added, 1200);
		CHECK_INT(follower_status(&f).lists, 1);
		CHECK_INT(follower_status(&f).failures, 0);
		live_equal(&f.live, f.cache, follower_path(&f, "many"));
		unfollow(&f);
	}
	live_delete_all(&live, "many");
	live_close(&live);
}

TEST(a_flood_of_changes_ends_in_the_servers_state)
{
	struct follower f;
	follow(&f, NULL, (struct kube_cache_options){ .label_selector = "app=flood" });
	follower_wait_synced(&f);
	for (unsigned n = 0; n < 5; n++)
		live_put_many(&f.live, "flood", "flood", 200, n);
	live_equal(&f.live, f.cache, follower_path(&f, "flood"));
	CHECK_INT(kube_cache_count(f.cache), 200);
	CHECK_INT(f.added + f.modified, 1000);
	live_delete_all(&f.live, "flood");
	follower_wait_count(&f, 0);
	CHECK_INT(f.deleted, 200);
	unfollow(&f);
}

TEST(names_are_selected_by_field)
{
	struct follower f;
	follow(&f, NULL,
	       (struct kube_cache_options){ .field_selector = "metadata.name=chosen",
					    .namespace = "default" });
	follower_wait_synced(&f);
	CHECK_STR(f.live.namespace, "default");
	live_put(&f.live, "unchosen", "field", 1);
	live_put(&f.live, "chosen", "field", 1);
	follower_wait_count(&f, 1);
	CHECK(kube_cache_get(f.cache, "default", "chosen"));
	live_delete_all(&f.live, "field");
	follower_wait_count(&f, 0);
	unfollow(&f);
}

TEST(who_takes_a_name_over_is_another)
{
	struct follower f;
	follow(&f, NULL, (struct kube_cache_options){ .label_selector = "app=again" });
	follower_wait_synced(&f);
	for (unsigned i = 0; i < 20; i++) {
		live_put(&f.live, "again", "again", i);
		live_delete(&f.live, "again");
	}
	live_put(&f.live, "again", "again", 20);
	live_equal(&f.live, f.cache, follower_path(&f, "again"));
	CHECK_INT(f.added, 21);
	CHECK_INT(f.deleted + f.gone, 20);
	live_delete(&f.live, "again");
	unfollow(&f);
}

TEST(a_cache_that_is_freed_in_the_middle_leaves_nothing)
{
	for (uint64_t ms = 0; ms < 40; ms += 4) {
		struct follower f;
		follow(&f, NULL,
		       (struct kube_cache_options){ .kind = &kube_kinds[KUBE_CONFIG_MAP],
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
