/* SPDX-License-Identifier: Apache-2.0 */
/* certs_objects.h - certificates in objects of Kubernetes: the Secret that the webhook
 * mounts, and the configurations that say whom to trust. */
#ifndef GS_WEBHOOK_CERTS_OBJECTS_H
#define GS_WEBHOOK_CERTS_OBJECTS_H

#include <stddef.h>

struct certs;
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

/* A JSON patch that sets the caBundle of every webhook of the configuration; nothing if all
 * have it. */
int certs_configuration_patch(struct strbuf *out, const struct json *configuration,
			      const struct strbuf *bundle, struct err *err);

#endif
