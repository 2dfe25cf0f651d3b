/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/retry.h"

#include "base/attr.h"
#include "base/rng.h"
#include "wire/http.h"

/* Never earlier than the server said; up to a quarter later, lest all come at once.  A
 * second if it says nothing (-1). */
static uint32_t wait_as_told(int64_t seconds, struct rng *rng)
{
	int64_t told_s = seconds < 0 ? 1 : MIN(seconds, RETRY_AFTER_MAX_MS / 1000);
	uint32_t told_ms = MAX((uint32_t)told_s * 1000, RETRY_PAUSE_MIN_MS);
	return told_ms + rng_below(rng, told_ms / 4);
}

/* Between half of the pause and all of it. */
static uint32_t wait_doubling(struct retry *retry, struct rng *rng)
{
	uint32_t pause_ms = RETRY_PAUSE_MAX_MS;
	if (retry->pauses < 16)
		pause_ms = MIN((uint32_t)RETRY_PAUSE_MIN_MS << retry->pauses, RETRY_PAUSE_MAX_MS);
	retry->pauses++;
	return pause_ms / 2 + rng_below(rng, pause_ms / 2 + 1);
}

static bool judge_answer(struct retry *retry, const struct http_reply *reply, struct rng *rng,
			 uint32_t *wait_ms)
{
	bool server_error = reply->status >= 500;
	if (server_error && !retry->reads)
		retry->maybe_done = true;
	if (reply->status != 429 && !server_error)
		return false;
	if (reply->retry_after_s >= 0 || reply->status == 429) {
		*wait_ms = wait_as_told(reply->retry_after_s, rng);
		return true;
	}
	if (!retry->reads)
		return false;
	*wait_ms = wait_doubling(retry, rng);
	return true;
}

/* A server that refuses a write before it has read all of it may break the stream behind
 * the status, so that the body is lost; these say all by themselves. */
static enum http_result result_of(const struct http_reply *reply)
{
	bool told = reply->status == 401 || reply->status == 429;
	return told && reply->result == HTTP_LOST ? HTTP_ANSWERED : reply->result;
}

enum retry_verdict retry_judge(struct retry *retry, const struct http_reply *reply,
			       struct rng *rng, uint32_t *wait_ms)
{
	retry->tries++;
	bool again = false;
	switch (result_of(reply)) {
	case HTTP_ANSWERED:
		if (reply->status == 401 && !retry->credentials_fresh) {
			retry->credentials_fresh = true;
			retry->tries--;
			return RETRY_CREDENTIALS;
		}
		again = judge_answer(retry, reply, rng, wait_ms);
		break;
	case HTTP_REFUSED:
		if (retry->tls_fresh && !retry->timed)
			break;
		if (retry->tls_fresh) {
			retry->tls_fresh = false; /* they are read again after the pause */
			*wait_ms = wait_doubling(retry, rng);
			again = true;
			break;
		}
		retry->tls_fresh = true;
		retry->tries--;
		return RETRY_TLS;
	case HTTP_NOT_SENT:
		*wait_ms = wait_doubling(retry, rng);
		again = true;
		break;
	case HTTP_LOST:
	case HTTP_DEADLINE:
		if (retry->reads) {
			*wait_ms = wait_doubling(retry, rng);
			again = true;
		} else {
			retry->maybe_done = true;
		}
		break;
	case HTTP_TOO_BIG:
	case HTTP_STOPPED:
		break;
	}
	return again && retry->tries < retry->max_tries ? RETRY_LATER : RETRY_NO;
}
