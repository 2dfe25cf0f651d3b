/* SPDX-License-Identifier: Apache-2.0 */
/* certs_keep.h - one round of keeping the webhook's certificate.
 *
 * Reads what is there (a Secret, or files), plans what should be (certs.h), and if that is
 * something else: first tells the API server to trust the new authority beside the old one,
 * in the configurations of the webhook, waits until it surely does, then writes the new
 * certificate.  At no moment does the webhook show one that is not trusted.
 *
 * Broken off anywhere, the next round begins anew and mends it: what is stored is trusted.
 * Any number may do so at once: authorities that a configuration names and nobody has stored
 * stay in it, for they may be those of somebody else who renews, until the overlap of a
 * renewal is over.
 *
 * On the loop's thread.
 */
#ifndef GS_WEBHOOK_CERTS_KEEP_H
#define GS_WEBHOOK_CERTS_KEEP_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "webhook/certs.h"

struct certs_keep;
struct clock;
struct err;
struct kube_client;

#define CERTS_SETTLE_MS 10000 /* API servers have read a configuration by then */

struct certs_kept {
	bool renewed;	 /* there is a new certificate */
	bool stored;	 /* something was written */
	bool theirs;	 /* somebody else made it, and has to renew it */
	unsigned found;	 /* configurations that call whom it is for; all of them trust it now */
	unsigned told;	 /* of these, the ones that did not before */
	int64_t until_s; /* the end of the certificate */
	const char *why; /* of the renewal, or why they should; empty: all is well */
};

/* Strings are borrowed. */
struct certs_keep_options {
	uv_loop_t *loop;
	const struct clock *clock;
	struct kube_client *client; /* NULL if there is neither Secret nor configuration */
	struct certs_order order;
	const char *folder;	   /* files; NULL: the Secret */
	const char *namespace;	   /* of the Secret */
	const char *secret;	   /* its name, where there is no folder */
	const char *configuration; /* of both kinds, by that name; NULL: none */
	uint32_t settle_ms;
	/* Called once, from the loop or from certs_keep_start().  0 and what has been done, or
	 * an error. */
	void (*done)(void *context, int rc, const struct certs_kept *kept, const struct err *err);
	void *context;
};

/* 0, or -ENOMEM, -EINVAL: done() is not called. */
int certs_keep_start(const struct certs_keep_options *options, struct certs_keep **ret,
		     struct err *err);

/* To be called after done() and not inside it; before done(), nothing more is begun. */
void certs_keep_free(struct certs_keep *keep);

#endif
