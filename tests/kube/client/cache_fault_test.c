/* SPDX-License-Identifier: Apache-2.0 */
/* Caches through the fault proxy: whatever happens to lists and watches, nothing is lost,
 * nothing is reported twice, and what does not exist any more is reported as gone.
 *
 * cluster: --nodes 0
 */
#include "faults.h"
#include "follower.h"

#include "test.h"

#include "kube/kind.h"

/* The test changes things past the proxy; the cache sees them through it. */
struct scene {
	struct faults faults;
	struct live direct;
	struct follower f;
};

static void scene_open(struct scene *scene, const char *script, struct kube_cache_options options)
{
	live_open(&scene->direct, NULL);
	faults_start(&scene->faults, script);
	follow(&scene->f, scene->faults.kubeconfig, options);
}

/* The number of faults. */
static unsigned scene_close(struct scene *scene, const char *app)
{
	live_delete_all(&scene->direct, app);
	unfollow(&scene->f);
	live_close(&scene->direct);
	return faults_end(&scene->faults);
}

TEST(a_watch_that_is_cut_goes_on_where_it_was)
{
	static const char *const scripts[] = {
		"on verb=watch resource=configmaps cut after=events:7\n",
		"on verb=watch resource=configmaps cut mid-event after=events:7\n",
	};
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		struct scene s;
		scene_open(&s, scripts[i],
			   (struct kube_cache_options){ .label_selector = "app=cut",
							.no_streaming = true });
		follower_wait_synced(&s.f);
		for (unsigned n = 0; n < 10; n++)
			live_put_many(&s.direct, "cut", "cut", 10, n);
		live_equal(&s.f.live, s.f.cache, follower_path(&s.f, "cut"));
		struct kube_cache_status status = follower_status(&s.f);
		/* each change exactly once, and no second list */
		CHECK_INT(s.f.added, 10);
		CHECK_INT(s.f.modified, 90);
		CHECK_INT(s.f.gone, 0);
		CHECK_INT(status.lists, 1);
		CHECK(status.watches >= 10);
		CHECK(scene_close(&s, "cut") >= 10);
	}
}

TEST(forgotten_history_is_made_up_for_by_a_list)
{
	static const char *const scripts[] = {
		"on verb=watch resource=configmaps nth=1 cut after=events:1\n"
		"on verb=watch resource=configmaps nth=2 answer=429 retry-after=3\n"
		"on verb=watch resource=configmaps nth=3 answer=410-event\n",
		"on verb=watch resource=configmaps nth=1 cut after=events:1\n"
		"on verb=watch resource=configmaps nth=2 answer=429 retry-after=3\n"
		"on verb=watch resource=configmaps nth=3 answer=410\n",
	};
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		struct scene s;
		struct live *direct = &s.direct;
		scene_open(&s, scripts[i],
			   (struct kube_cache_options){ .label_selector = "app=old",
							.no_streaming = true });
		follower_wait_synced(&s.f);
		live_put(direct, "old-same", "old", 1); /* after which the watch is cut */
		follower_wait_count(&s.f, 1);
		/* What happens now is seen in the list only. */
		live_put(direct, "old-new", "old", 1);
		live_delete(direct, "old-same");
		live_put(direct, "old-same", "old", 2);
		live_equal(&s.f.live, s.f.cache, follower_path(&s.f, "old"));
		CHECK_INT(s.f.gone, 1); /* the first old-same */
		CHECK_INT(s.f.added, 3);
		CHECK_INT(s.f.deleted + s.f.modified, 0);
		CHECK_INT(s.f.synced, 2);
		CHECK_INT(follower_status(&s.f).lists, 2);
		CHECK_INT(scene_close(&s, "old"), 3);
	}
}

TEST(a_list_that_breaks_is_read_to_its_end)
{
	static const char *const scripts[] = {
		"on verb=list resource=configmaps nth=2 half-body\n",
		"on verb=list resource=configmaps nth=3 cut after=bytes:5000\n",
		"on verb=list resource=configmaps nth=1 answer=500\n",
		"on verb=list resource=configmaps nth=2 answer=502-html\n",
		"on verb=list resource=configmaps nth=3 answer=429 retry-after=1\n",
		"on verb=list resource=configmaps nth=2 reset\n",
		"on verb=list resource=configmaps nth=2 answer=410\n",
	};
	struct live live;
	live_open(&live, NULL);
	live_put_many(&live, "page", "page", 300, 1);
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		struct scene s;
		scene_open(&s, scripts[i],
			   (struct kube_cache_options){ .label_selector = "app=page",
							.no_streaming = true,
							.page = 100 });
		follower_wait_synced(&s.f);
		CHECK_INT(s.f.added, 300);
		CHECK_INT(s.f.synced, 1);
		live_equal(&s.f.live, s.f.cache, follower_path(&s.f, "page"));
		unfollow(&s.f);
		live_close(&s.direct);
		CHECKF(faults_end(&s.faults) == 1, "%s", scripts[i]);
	}
	live_delete_all(&live, "page");
	live_close(&live);
}

TEST(a_stream_that_is_cut_before_its_end_begins_again)
{
	struct live live;
	live_open(&live, NULL);
	live_put_many(&live, "stream", "stream", 300, 1);
	struct scene s;
	scene_open(&s, "on verb=watch resource=configmaps max=2 cut after=events:100\n",
		   (struct kube_cache_options){ .label_selector = "app=stream" });
	follower_wait_synced(&s.f);
	CHECK_INT(s.f.added, 300);
	CHECK_INT(follower_status(&s.f).lists, 3);
	CHECK_INT(follower_status(&s.f).watches, 3);
	live_equal(&s.f.live, s.f.cache, follower_path(&s.f, "stream"));
	CHECK_INT(s.f.added, 300);
	CHECK_INT(scene_close(&s, "stream"), 2);
	live_close(&live);
}

TEST(a_server_that_refuses_streams_is_listed)
{
	struct scene s;
	scene_open(&s, "on verb=watch resource=configmaps nth=1 answer=422\n",
		   (struct kube_cache_options){ .label_selector = "app=refused" });
	follower_wait_synced(&s.f);
	live_put(&s.direct, "refused", "refused", 1);
	follower_wait_count(&s.f, 1);
	CHECK_INT(follower_status(&s.f).lists, 2);
	CHECK_INT(follower_status(&s.f).failures, 0);
	CHECK_INT(scene_close(&s, "refused"), 1);
}

TEST(a_storm_of_faults_ends_in_the_servers_state)
{
	static const char script[] = "on any p=0.1 delay=5..200ms\n"
				     "on verb=watch p=0.5 cut after=events:1..40\n"
				     "on verb=watch p=0.2 cut mid-event after=events:1..40\n"
				     "on verb=watch p=0.2 answer=410-event\n"
				     "on verb=watch p=0.05 answer=410\n"
				     "on verb=watch p=0.05 answer=429\n"
				     "on verb=watch p=0.05 answer=500\n"
				     "on verb=watch p=0.05 answer=502-html\n"
				     "on verb=watch p=0.05 silence=1..3s after=events:1..9\n"
				     "on verb=list p=0.1 half-body\n"
				     "on verb=list p=0.1 answer=500\n"
				     "on verb=list p=0.1 answer=410\n"
				     "on any p=0.05 reset\n"
				     "on any p=0.02 goaway\n";
	for (int streams = 0; streams < 2; streams++) {
		struct scene s;
		scene_open(&s, script,
			   (struct kube_cache_options){ .label_selector = "app=storm",
							.no_streaming = !streams,
							.page = 30 });
		for (unsigned n = 0; n < 20; n++) {
			live_put_many(&s.direct, "storm", "storm", 100, n);
			if (n % 5 == 4)
				live_delete_all(&s.direct, "storm");
			live_for(&s.f.live, 500);
		}
		live_put_many(&s.direct, "storm", "storm", 60, 1000);
		faults_toggle(&s.faults);
		live_equal(&s.f.live, s.f.cache, follower_path(&s.f, "storm"));
		CHECK_INT(s.f.added - s.f.deleted - s.f.gone, 60);
		CHECK_INT(follower_status(&s.f).malformed, 0);
		CHECK(scene_close(&s, "storm") > 5);
	}
}

TEST_MAIN()
