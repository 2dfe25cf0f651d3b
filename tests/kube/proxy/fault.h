/* SPDX-License-Identifier: Apache-2.0 */
/* fault.h - what can be done to a request, with every number of it decided.
 *
 * A plain value.  Rules give ranges (script.h); a decision draws from them (decide.h) and
 * is written to the log as it is, so that a replay needs nothing else.
 */
#ifndef GS_TESTS_KUBE_PROXY_FAULT_H
#define GS_TESTS_KUBE_PROXY_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct json;
struct json_writer;

enum fault_kind {
	FAULT_NONE,
	FAULT_DELAY,	 /* the request waits `ms`; another fault may follow */
	FAULT_CUT,	 /* the connection ends, at `point` */
	FAULT_ANSWER,	 /* by us instead of the server */
	FAULT_SILENCE,	 /* bytes are held back for `ms`, after `point` */
	FAULT_RESET,	 /* TCP RST instead of an answer; the server sees nothing */
	FAULT_GOAWAY,	 /* HTTP/2: the connection is given up in good order */
	FAULT_HALF_BODY, /* the reply ends in its middle; the connection may live on */
	FAULT_SLOW,	 /* the reply comes at `bytes_per_s` */
	FAULT_HOLD,	 /* until a later request of another connection has gone before */
	FAULT_STOP,	 /* from here on no more faults */
	FAULT_KINDS,
};

enum fault_point {
	POINT_NONE,
	POINT_BEFORE_WRITE, /* the server never sees the request */
	POINT_AFTER_WRITE,  /* the server has answered, the client learns nothing of it */
	POINT_EVENTS,	    /* after `count` events of a watch */
	POINT_BYTES,	    /* after `count` bytes of the body */
	POINT_MID_EVENT,    /* inside the event after the first `count` ones */
	FAULT_POINTS,
};

enum fault_form {
	FORM_STATUS, /* a Status as the API server writes it */
	FORM_EVENT,  /* the same as an ERROR event in a reply 200 */
	FORM_HTML,   /* what a proxy that knows no Kubernetes says */
	FAULT_FORMS,
};

#define FAULT_FOREVER UINT32_MAX /* ms */

struct fault {
	enum fault_kind kind;
	enum fault_point point;
	enum fault_form form;
	uint64_t count;		/* of events or bytes */
	uint32_t ms;		/* FAULT_FOREVER: for ever; FAULT_HOLD: at most */
	uint32_t permille;	/* where in the event or body the cut is, 1..999 */
	uint32_t status;	/* of an answer */
	uint32_t retry_after_s; /* of an answer; 0: none */
	uint64_t bytes_per_s;
	bool refuse; /* FAULT_GOAWAY: the request itself is not done */
	bool whole;  /* FAULT_SILENCE: of the whole connection */
};

/* As in the script: "half-body". */
const char *fault_kind_name(enum fault_kind kind);

/* The members of an object that is open. */
void fault_write(const struct fault *fault, struct json_writer *w);

/* What fault_write() has written: 0 or -EINVAL. */
int fault_read(const struct json *object, struct fault *ret, struct err *err);

#endif
