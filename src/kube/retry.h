/* SPDX-License-Identifier: Apache-2.0 */
/* retry.h - whether a request is sent again, and after how long.
 *
 *	429, 5xx with Retry-After	after that time (at most 60 s), and up to a quarter more
 *	certainly not sent		after a pause that doubles from 0.1 to 5 s
 *	5xx or lost, only reads		the same
 *	401				once, at once, with fresh credentials
 *	certificates refused		once, at once, with certificates read again; who was
 *					given a time instead of a number does so after pauses
 *	all else			not: a write may have been done
 *
 * No clock, no memory: the state of one request is a plain value.
 */
#ifndef GS_KUBE_RETRY_H
#define GS_KUBE_RETRY_H

#include <stdbool.h>
#include <stdint.h>

struct http_reply;
struct rng;

#define RETRY_TRIES	   11
#define RETRY_AFTER_MAX_MS 60000
#define RETRY_PAUSE_MIN_MS 100
#define RETRY_PAUSE_MAX_MS 5000

struct retry {
	uint32_t max_tries;	/* 401 and certificates do not count */
	uint32_t tries;		/* that have ended */
	uint32_t pauses;	/* doubled so far */
	bool timed;		/* ends at a moment: certificates may come right until then */
	bool reads;		/* changes nothing at the server, so any try may be repeated */
	bool credentials_fresh; /* read again after a 401 */
	bool tls_fresh;
	bool maybe_done; /* a write of which one try has ended in a 5xx */
};

enum retry_verdict {
	RETRY_NO,
	RETRY_LATER,	   /* after *wait_ms */
	RETRY_CREDENTIALS, /* at once; what was used before is refused */
	RETRY_TLS,
};

/* Takes note of how a try has ended.  `wait_ms` is written for RETRY_LATER. */
enum retry_verdict retry_judge(struct retry *retry, const struct http_reply *reply,
			       struct rng *rng, uint32_t *wait_ms);

#endif
