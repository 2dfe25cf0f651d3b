/* SPDX-License-Identifier: Apache-2.0 */
/* write.h - reading and writing one object.
 *
 * What is sent is checked first (check.h): names, labels, annotations, sizes, and that the
 * object is the one that is meant:
 *
 *	create		metadata.name is there (never generateName: what became of a lost
 *			answer could not be found out)
 *	replace		metadata.uid and metadata.resourceVersion: a PUT without them would
 *			overwrite blindly, and bring a deleted Lease back
 *	patch		of a pod: metadata.uid, for names are reused
 *	delete		uid, for the same reason
 *
 * A write whose outcome is in doubt (KUBE_UNKNOWN, KUBE_MALFORMED) is followed by a GET
 * before done() is called; the caller gets both and decides.  Nothing in doubt is sent
 * again here.
 */
#ifndef GS_KUBE_WRITE_H
#define GS_KUBE_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kube/reply.h"

struct err;
struct kube_client;
struct kube_kind;
struct kube_write_result;
struct kube_writing; /* one that is on its way */

#define KUBE_REREAD_MS	   60000
#define KUBE_FIELD_MANAGER "gpu-scheduler"

enum kube_write_verb {
	KUBE_GET,
	KUBE_CREATE,
	KUBE_REPLACE,
	KUBE_MERGE_PATCH,     /* RFC 7386: null deletes, lists are replaced whole */
	KUBE_STRATEGIC_PATCH, /* lists merge by key; not for custom resources */
	KUBE_JSON_PATCH,      /* RFC 6902; a failed `test` is KUBE_INVALID */
	KUBE_APPLY,	      /* server-side apply; creates what is not there */
	KUBE_DELETE,
};

/* Everything is copied.  Zero is the usual. */
struct kube_write {
	enum kube_write_verb verb;
	const struct kube_kind *kind;
	const char *namespace; /* NULL for kinds without */
	const char *name;
	const char *subresource; /* "status", "binding"; NULL: the object itself */
	const char *body;	 /* JSON; not for get and delete */
	size_t body_len;

	/* Of a delete. */
	const char *uid, *version; /* preconditions; version NULL: any */
	bool has_grace;		   /* else the object's own */
	uint32_t grace_s;
	const char *propagation; /* "Background", "Foreground", "Orphan"; NULL: the kind's */

	bool dry_run;
	bool force;		      /* an apply takes fields over from other managers */
	const char *field_manager;    /* NULL: KUBE_FIELD_MANAGER */
	const char *field_validation; /* "Strict", "Warn", "Ignore"; NULL: the server's */
	const char *what;	      /* for messages; NULL: "Lease locks/gpus-n1" */
	uint32_t deadline_ms, tries;  /* as in kube_request */
	bool urgent, background;      /* the same */
	bool reread_refused;	      /* also GET after Conflict, AlreadyExists, NotFound */
	uint32_t reread_ms;	      /* how long that GET is tried; 0: KUBE_REREAD_MS */
	void (*done)(void *context, const struct kube_write_result *result);
	void (*dropped)(void *context); /* as in kube_request */
	void *context;
};

struct kube_write_result {
	const struct kube_reply *reply; /* to what was sent; without body if it was reread */
	bool reread;			/* the object was asked for afterwards */
	/* What the server said then, KUBE_OK or KUBE_NOT_FOUND; NULL: it did not say, and
	 * nothing is known. */
	const struct kube_reply *current;
};

/* 0 (done() comes later, from the loop), -EINVAL, -E2BIG for what would be refused,
 * -ENOMEM.  `ret` (may be NULL) is valid until done() or kube_write_cancel(). */
int kube_write(struct kube_client *client, const struct kube_write *write,
	       struct kube_writing **ret, struct err *err);

/* done() is not called any more.  What was on its way may have been done. */
void kube_write_cancel(struct kube_writing *writing);

#endif
