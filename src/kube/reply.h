/* SPDX-License-Identifier: Apache-2.0 */
/* reply.h - what the API server said, or that it did not.
 *
 * A failure is a Status object; a proxy in between may answer anything.  Switch on the
 * reason, not on the code: AlreadyExists and Conflict are both 409.
 */
#ifndef GS_KUBE_REPLY_H
#define GS_KUBE_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;
struct strbuf;

enum kube_reason {
	KUBE_OK,		/* 2xx */
	KUBE_ALREADY_EXISTS,	/* 409 */
	KUBE_CONFLICT,		/* 409: another uid or resourceVersion */
	KUBE_NOT_FOUND,		/* 404 */
	KUBE_EXPIRED,		/* 410: list again */
	KUBE_INVALID,		/* 422 */
	KUBE_BAD_REQUEST,	/* 400 and other 4xx: sending it again does not help */
	KUBE_UNAUTHORIZED,	/* 401, also after fresh credentials */
	KUBE_FORBIDDEN,		/* 403: RBAC, quota or admission */
	KUBE_TOO_MANY_REQUESTS, /* 429, after all tries */
	KUBE_VERSION_TOO_LARGE, /* 504: that resourceVersion has not happened yet */
	KUBE_SERVER_ERROR,	/* 5xx or a lost answer to what only reads: nothing was changed */
	KUBE_UNREACHABLE,	/* certainly not sent */
	KUBE_UNKNOWN,		/* may have been done or not: read before anything else.  Also a
				 * refusal of a second try, if a former one ended in a 5xx */
	KUBE_MALFORMED,		/* 2xx with a body that is not what was asked for */
	KUBE_NO_CREDENTIALS,	/* none could be had; not sent */
	KUBE_REASONS,
};

struct kube_reply {
	enum kube_reason reason;
	int code;		 /* HTTP; 0: none came */
	const struct json *body; /* of a 2xx; NULL otherwise or if it has none */
	const char *bytes;	 /* the same, as it came */
	size_t len;
	const char *message;   /* one sentence with what was asked, by verb and name */
	int64_t retry_after_s; /* -1: not said */
	uint32_t tries;
};

/* "Conflict" and so on: the server's own word where there is one. */
const char *kube_reason_name(enum kube_reason reason);

/* Reads the reason out of code and Status (NULL: the body is none).  A reason of another
 * class than the code (Conflict with 500) does not count.  Code 0: the Status alone tells,
 * as in an ERROR event of a watch; nothing that it could be is KUBE_SERVER_ERROR. */
enum kube_reason kube_reason_of(int code, const struct json *status);

/* Seconds that a Status asks to wait, -1 if it does not say. */
int64_t kube_status_retry_after_s(const struct json *status);

#define KUBE_SAID_MAX 1024

/* Appends what a failed reply says: the message of the Status, else the beginning of the
 * body if it is text, else the code alone.  One line, at most KUBE_SAID_MAX bytes. */
void kube_reply_say(struct strbuf *out, int code, const struct json *status, const char *bytes,
		    size_t len);

#endif
