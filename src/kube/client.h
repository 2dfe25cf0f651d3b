/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - requests to the API server, with what every request needs: who we are, a
 * bound on how many are on their way, another try when that is safe (retry.h), and the
 * server's answer as one struct.
 *
 * One loop, one thread.  Two sets of connections: one for watches, one for all else, so
 * that a small write never waits behind a flood of events.  When certificates change,
 * new connections are made and the old ones end with their last request.
 *
 * What is tried again by itself: what certainly did not reach the server; 429; 5xx with
 * Retry-After; any 5xx and lost answers to requests that only read; 401 once, with fresh
 * credentials.  A write whose answer is lost is never sent again here: its reply says
 * KUBE_UNKNOWN, and who sent it reads the object and decides (write.h does the reading).
 */
#ifndef GS_KUBE_CLIENT_H
#define GS_KUBE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "kube/reply.h"

struct clock;
struct err;
struct json;
struct kube_call;
struct kube_client;
struct kube_config;
struct kube_telemetry;
struct log;
struct metrics;

struct kube_client_options {
	uv_loop_t *loop;		  /* outlives the client */
	const struct kube_config *config; /* borrowed */
	const struct clock *clock;
	const struct log *log;	/* server's warnings, failed credentials, no connection */
	const char *user_agent; /* NULL: gpu-scheduler/<version> */
	uint32_t max_in_flight; /* requests other than watches; 0: 64 */
	uint32_t deadline_ms;	/* of one try of a request; 0: 30 s */
	uint64_t seed;		/* of the jitter */
	/* For tests: the process ends like one that crashes when the server has confirmed so
	 * many writes, before anybody hears of the last.  0: never. */
	uint64_t stop_after_writes;
	/* Where telemetry.h counts; outlives the client.  NULL: nobody asks. */
	struct metrics *metrics;
};

int kube_client_new(const struct kube_client_options *options, struct kube_client **ret,
		    struct err *err);

/* Cancels everything (no done() is called, but dropped() is), closes all; then closed(). */
void kube_client_close(struct kube_client *client, void (*closed)(void *context), void *context);

#define KUBE_BODY_MAX ((size_t)64 << 20) /* of a reply: a page of a list */
#define KUBE_PATH_MAX ((size_t)64 << 10) /* with its query: long selectors */

struct kube_request {
	const char *method;	  /* "GET", "POST", "PUT", "PATCH", "DELETE" */
	const char *path;	  /* below the server's URL, with its query; copied */
	const char *content_type; /* of the body; NULL: application/json */
	const char *accept;	  /* NULL: application/json */
	const char *body;	  /* copied, since tries may come later; NULL: none */
	size_t body_len;
	uint32_t deadline_ms; /* of one try; 0: the client's */
	uint32_t tries;	      /* at most; 0: 11, the first and ten more */
	uint32_t within_ms;   /* all tries and pauses together; 0: only their number counts */
	bool urgent;	      /* goes before others that wait for a place, and has four of its
				* own when all are taken (a lease) */
	bool background;  /* goes when nobody else waits, in an eighth of the places (events) */
	bool harmless;	  /* changes nothing whatever its method (a dry run): like a GET */
	bool raw;	  /* the reply's body is not parsed as JSON */
	const char *what; /* for messages: "Lease ml/gpus-n1"; NULL: the path */
	/* For telemetry, both bounded in their values. */
	const char *verb;     /* "bind"; NULL: by the method */
	const char *resource; /* "pods/binding"; NULL: "other" */
	void (*done)(void *context, const struct kube_reply *reply);
	/* Instead of done() when the client closes, to free the context; NULL: nothing. */
	void (*dropped)(void *context);
	void *context;
};

/* Queues the request; done() comes later, from the loop.  0, -ENOMEM, -EINVAL.
 * `ret` (may be NULL) is valid until done() or kube_cancel(). */
int kube_send(struct kube_client *client, const struct kube_request *request,
	      struct kube_call **ret, struct err *err);

/* done() is not called any more.  What was on its way may have been done. */
void kube_cancel(struct kube_call *call);

/* A watch, or a list of any size: the body is handed on as it comes, no second try, no
 * place in the queue.  After a 401 the next one has fresh credentials. */
struct kube_stream {
	const char *path;
	const char *verb;     /* for telemetry; NULL: "watch" */
	const char *resource; /* likewise */
	const char *accept;   /* NULL: application/json */
	uint32_t idle_ms;     /* longest silence before it counts as dead */
	int (*data)(void *context, const char *bytes, size_t len); /* 0, else stops */
	/* Code 200 and KUBE_OK if it has ended in good order; else why not.  KUBE_MALFORMED
	 * if data() has stopped it. */
	void (*done)(void *context, const struct kube_reply *reply);
	void *context;
};

int kube_stream(struct kube_client *client, const struct kube_stream *stream,
		struct kube_call **ret, struct err *err);

uint32_t kube_in_flight(const struct kube_client *client); /* on their way */
uint32_t kube_waiting(const struct kube_client *client);   /* for a place or a moment */

/* Whether the last that was tried did not reach the server, or it does not know who we are. */
bool kube_is_unreached(const struct kube_client *client);

uv_loop_t *kube_loop(const struct kube_client *client);
const struct clock *kube_clock(const struct kube_client *client);
struct kube_telemetry *kube_telemetry(struct kube_client *client);

#endif
