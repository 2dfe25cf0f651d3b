/* SPDX-License-Identifier: Apache-2.0 */
/* client_private.h - what the files of the client share.
 *
 *	client.c	the client itself, its connections, opening and closing
 *	client_queue.c	places and pauses: which call goes when
 *	client_call.c	the life of one call: credentials, the try, its end, another try
 *	client_reply.c	from an HTTP reply to a kube_reply
 *
 * A call is in exactly one list: a lane (waits for a place), `active` (has a place: waits
 * for credentials or is on its way) or `paused`; streams are never in a lane.  It is also
 * in the heap of what is due, for ever, so that waiting never needs memory: with the end
 * of its pause, or the moment to give up, or NEVER_MS.  Whoever calls back to the user has
 * taken it out of both before.
 */
#ifndef GS_KUBE_CLIENT_PRIVATE_H
#define GS_KUBE_CLIENT_PRIVATE_H

#include "base/err.h"
#include "base/heap.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "kube/client.h"
#include "kube/credentials.h"
#include "kube/retry.h"

#define CLIENT_IN_FLIGHT       64
#define CLIENT_DEADLINE_MS     30000
#define CLIENT_URGENT_EXTRA    4
#define CLIENT_WARNINGS	       256   /* of the server, remembered as said already */
#define CLIENT_UNREACHED_MS    10000 /* between two reasons why it cannot be reached */
#define CLIENT_NAME_MAX	       63    /* of a verb or resource in messages */
#define CLIENT_WRITE_REPLY_MAX ((size_t)8 << 20)

struct http;
struct http_call;
struct http_reply;

enum lane { LANE_URGENT, LANE_USUAL, LANE_BACKGROUND, LANES };

enum call_state {
	CALL_QUEUED, /* in its lane */
	CALL_ASKING, /* for credentials; active */
	CALL_FLYING, /* active */
	CALL_PAUSED,
};

#define NEVER_MS UINT64_MAX

struct call_list {
	struct kube_call *first, *last;
	uint32_t len;
};

/* One TLS identity; when it changes, the former ones end with their last request. */
struct connections {
	struct kube_client *client;
	struct connections *next;
	struct http *watch, *rest; /* NULL: closed */
	uint64_t tls_generation;
	bool retired;
};

struct kube_client {
	struct kube_client_options options;
	char *user_agent;
	struct kube_credentials *credentials;
	struct connections *connections; /* the newest first */
	struct kube_telemetry *telemetry;

	struct call_list lanes[LANES], active, paused;
	uint32_t in_flight;	/* places that are taken; streams have none */
	uint32_t in_background; /* of these */
	struct heap due;	/* all calls, by due_ms */
	uv_timer_t timer;
	uint64_t alarm_ms; /* when it rings, if it is active */
	struct rng rng;
	uint64_t writes; /* that the server has confirmed */

	uint64_t warnings[CLIENT_WARNINGS]; /* hashes, a ring */
	uint32_t warnings_next;
	uint64_t problem;      /* hash of the last trouble with credentials; 0: none */
	uint64_t unreached;    /* likewise, of why the server is out of reach */
	uint64_t unreached_ms; /* when that was said */

	bool closing;
	unsigned closes; /* callbacks still to come */
	void (*closed)(void *context);
	void *closed_context;
};

/* What is made of a call's request is in one piece of memory behind the struct. */
struct kube_call {
	struct kube_client *client;
	struct kube_call *next, *prev;
	enum call_state state;
	enum lane lane;
	bool stream, raw, gzip;

	const char *method, *path, *content_type, *accept, *what, *verb, *resource;
	const char *body;
	size_t body_len;
	uint32_t deadline_ms, idle_ms;
	uint64_t give_up_ms; /* of the loop's time, or NEVER_MS */
	int (*data)(void *context, const char *bytes, size_t len);
	void (*done)(void *context, const struct kube_reply *reply);
	void (*dropped)(void *context); /* NULL: nothing */
	void *context;

	struct retry retry;
	struct kube_auth_wait wait;
	uint64_t auth_generation; /* of the credentials that this try has used */
	struct http_call *http;
	uint64_t sent_ns;

	uint64_t due_ms;
	uint32_t position; /* in the heap */
	/* Why it could not even be begun; handled when the pause has ended, because nobody
	 * is called back from inside kube_send(). */
	struct err *failure;
	bool no_credentials; /* ... and whether it was for that */
};

/* client.c */
struct connections *client_connect(struct kube_client *client, const struct kube_auth *auth,
				   struct err *err);
void client_note_problem(struct kube_client *client);
void client_note_warnings(struct kube_client *client, const struct http_reply *reply);
/* A try has ended so; bytes of an answer have come. */
void client_note_reach(struct kube_client *client, const struct http_reply *reply);
void client_note_answer(struct kube_client *client);

/* client_queue.c */
void call_list_add(struct call_list *list, struct kube_call *call);
void call_list_add_first(struct call_list *list, struct kube_call *call);
void call_list_remove(struct call_list *list, struct kube_call *call);
void client_queue_init(struct kube_client *client);
void client_pump(struct kube_client *client); /* starts what has a place; calls nobody back */
void client_requeue(struct kube_call *call);  /* before the others of its lane */
void client_pause(struct kube_call *call, uint32_t wait_ms);
void client_take_out(struct kube_call *call); /* of its list, its place given back */
void client_set_due(struct kube_call *call, uint64_t due_ms);
uint64_t client_now_ms(struct kube_client *client);

/* client_call.c */
void call_start(struct kube_call *call);  /* it has its place */
void call_is_due(struct kube_call *call); /* its pause or its time has ended */
void call_free(struct kube_call *call);	  /* it has been taken out */

/* client_reply.c: makes the reply and calls done(); the caller frees the call. */
void call_report(struct kube_call *call, const struct http_reply *reply);
bool call_version_is_too_large(const struct http_reply *reply);

#endif
