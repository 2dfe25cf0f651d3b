/* SPDX-License-Identifier: Apache-2.0 */
/* What a cache says of its troubles, and how often. */
#include "test.h"

#include "kube_fixture.h"

#include "base/err.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "kube/kind.h"

#include <unistd.h>

#define STATUS(why) "{\"kind\":\"Status\",\"reason\":\"" why "\",\"message\":\"because\"}"
#define EMPTY	    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}"

static unsigned count_said(const char *words)
{
	char text[16384] = "";
	unsigned count = 0;

	CHECK(pread(s.log_fd, text, sizeof(text) - 1, 0) >= 0);
	for (const char *at = text; (at = strstr(at, words)); at++)
		count++;
	return count;
}

static struct kube_cache *follow(void)
{
	struct kube_cache_options options = { .kind = &kube_kinds[KUBE_POD],
					      .no_streaming = true,
					      .hint = "ask somebody",
					      .log = &s.log };
	struct kube_cache *cache = NULL;
	struct err err = ERR_INIT;

	CHECKF(kube_cache_new(s.client, &options, &cache, &err) == 0, "%s", err.text);
	return cache;
}

static void wait_requests(unsigned count)
{
	while (s.server.requests < count)
		uv_run(&s.loop, UV_RUN_ONCE);
}

TEST(a_refusal_is_told_once_and_says_what_to_do)
{
	setup();
	s.script[0] = (struct server_answer){ .code = 403, .body = STATUS("Forbidden") };
	struct kube_cache *cache = follow();
	wait_requests(3); /* the third may have been answered in the same turn of the loop */
	unsigned told = count_said("cannot follow the server");
	CHECK(told == 2 || told == 3);
	CHECK_INT(count_said("level=warn"), 1);
	CHECK_INT(count_said("Forbidden: because: ask somebody"), told);
	kube_cache_free(cache);
	teardown();
}

TEST(a_server_that_asks_for_a_moment_is_no_trouble)
{
	setup();
	s.script[0] = (struct server_answer){ .code = 429, .body = STATUS("TooManyRequests") };
	s.script[1] = (struct server_answer){ .code = 200, .body = EMPTY };
	struct kube_cache *cache = follow();
	wait_requests(2);
	CHECK_INT(count_said("TooManyRequests"), 1);
	CHECK_INT(count_said("level=warn"), 0);
	kube_cache_free(cache);
	teardown();
}

TEST_MAIN()
