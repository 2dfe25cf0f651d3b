/* SPDX-License-Identifier: Apache-2.0 */
/* certs_objects.h - certificates in objects of Kubernetes: the Secret that the webhook
 * mounts, and the configurations that say whom to trust. */
#ifndef GS_WEBHOOK_CERTS_OBJECTS_H
#define GS_WEBHOOK_CERTS_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct certs;
struct certs_order;
struct err;
struct json;
struct strbuf;

/* tls.crt, tls.key and ca.crt of the Secret; what is missing or broken is empty.  -EEXIST if
 * cert-manager keeps it, -ENOMEM. */
int certs_secret_read(const struct json *secret, struct certs *ret, struct err *err);

/* The Secret with these in it, as JSON: the stored one (len 0: there is none) with all else
 * that it has. */
int certs_secret_write(struct strbuf *out, const char *stored, size_t len, const char *namespace,
		       const char *name, const struct certs *certs, struct err *err);

/* Whom the webhooks of a configuration are to trust. */
struct certs_trust {
	const struct certs_order *order; /* whom the certificate is for */
	const struct strbuf *bundle;
	/* Nobody else; otherwise beside those that they trust now and that are valid at that
	 * moment: somebody else may be about to use one of these. */
	bool alone;
	int64_t at_s;
};

/* A JSON patch that sets the caBundle of every webhook of the configuration that calls one of
 * the names of the order, `calls` of them; nothing if all have it.  One that calls somebody else
 * must go on trusting that one.  It applies to that version of the configuration only: otherwise
 * a conflict. */
int certs_configuration_patch(struct strbuf *out, const struct json *configuration,
			      const struct certs_trust *trust, unsigned *calls, struct err *err);

#endif
