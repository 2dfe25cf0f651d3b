/* SPDX-License-Identifier: Apache-2.0 */
/* follow - caches that somebody else's test asks about, by lines of stdin:
 *
 *	equal	waits until each cache is what the server has, and says so in a line:
 *		equal OBJECTS LISTS WATCHES REQUESTS
 *	(end)	ends, in good order
 *
 * All the time it asks for something, again and again; a request that is refused or not
 * answered at all, after all tries, ends it with status 1.  See ../e2e/restart_test.py.
 */
#include "live.h"

#include "test.h"

#include "base/attr.h"
#include "base/err.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "kube/kind.h"

#include <unistd.h>

#define ASK_MS 200

static const struct {
	enum kube_kind_id kind;
	bool no_streaming;
	const char *path;
} follows[] = {
	{ KUBE_CONFIG_MAP, false, "/api/v1/namespaces/default/configmaps" },
	{ KUBE_CONFIG_MAP, true, "/api/v1/namespaces/default/configmaps" },
	{ KUBE_LEASE, false, "/apis/coordination.k8s.io/v1/namespaces/default/leases" },
};

struct follow {
	struct live live;
	struct kube_cache *caches[ARRAY_SIZE(follows)];
	uv_timer_t ask;
	uv_pipe_t in;
	char word[64];
	bool equal, ended, asking;
	unsigned asked, closed;
};

static void on_answer(void *context, const struct kube_reply *reply)
{
	struct follow *follow = context;
	follow->asking = false;
	follow->asked++;
	if (reply->reason == KUBE_OK)
		return;
	fprintf(stderr, "follow: %s\n", reply->message);
	exit(1);
}

/* Until it is answered: a server that starts takes longer than the usual tries. */
static void on_ask(uv_timer_t *timer)
{
	struct follow *follow = timer->data;
	struct err err = ERR_INIT;
	struct kube_request request = { .method = "GET",
					.path = "/api/v1/namespaces/default",
					.tries = UINT32_MAX,
					.within_ms = LIVE_PATIENCE_MS,
					.done = on_answer,
					.context = follow };
	if (follow->asking)
		return;
	follow->asking = true;
	CHECKF(kube_send(follow->live.client, &request, NULL, &err) == 0, "%s", err.text);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct follow *follow = handle->data;
	(void)suggested;
	*buf = uv_buf_init(follow->word, sizeof(follow->word));
}

static void on_word(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct follow *follow = stream->data;
	(void)buf;
	if (n > 0)
		follow->equal = true;
	else if (n < 0)
		follow->ended = true;
}

static void follow_open(struct follow *follow)
{
	live_open(&follow->live, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(follows); i++) {
		struct err err = ERR_INIT;
		struct kube_cache_options options = { .kind = &kube_kinds[follows[i].kind],
						      .namespace = "default",
						      .no_streaming = follows[i].no_streaming };
		CHECKF(kube_cache_new(follow->live.client, &options, &follow->caches[i], &err) ==
			       0,
		       "%s", err.text);
	}
	uv_timer_init(follow->live.loop, &follow->ask);
	follow->ask.data = follow;
	uv_timer_start(&follow->ask, on_ask, ASK_MS, ASK_MS);
	uv_pipe_init(follow->live.loop, &follow->in, 0);
	follow->in.data = follow;
	CHECK_INT(uv_pipe_open(&follow->in, STDIN_FILENO), 0);
	CHECK_INT(uv_read_start((uv_stream_t *)&follow->in, on_room, on_word), 0);
}

static void on_closed(uv_handle_t *handle)
{
	((struct follow *)handle->data)->closed++;
}

static bool are_closed(void *context)
{
	return ((const struct follow *)context)->closed == 2;
}

static void follow_close(struct follow *follow)
{
	uv_close((uv_handle_t *)&follow->ask, on_closed);
	uv_close((uv_handle_t *)&follow->in, on_closed);
	live_until(&follow->live, are_closed, follow, "handles to be closed");
	for (size_t i = 0; i < ARRAY_SIZE(follows); i++)
		kube_cache_free(follow->caches[i]);
	live_close(&follow->live);
}

static void say(struct follow *follow)
{
	uint64_t lists = 0, watches = 0, count = 0;
	for (size_t i = 0; i < ARRAY_SIZE(follows); i++) {
		struct kube_cache_status status;
		live_equal(&follow->live, follow->caches[i], follows[i].path);
		kube_cache_status(follow->caches[i], &status);
		CHECK_INT(status.malformed, 0);
		count += status.count;
		lists += status.lists;
		watches += status.watches;
	}
	printf("equal %" PRIu64 " %" PRIu64 " %" PRIu64 " %u\n", count, lists, watches,
	       follow->asked);
	fflush(stdout);
}

TEST(caches_follow)
{
	struct follow follow = { 0 };
	follow_open(&follow);
	while (!follow.ended) {
		uv_run(follow.live.loop, UV_RUN_ONCE);
		if (follow.equal) {
			follow.equal = false;
			say(&follow);
		}
	}
	follow_close(&follow);
}

TEST_MAIN()
