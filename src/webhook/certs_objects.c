/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/certs_objects.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "kube/base64.h"
#include "webhook/certs.h"
#include "webhook/certs_private.h"
#include "webhook/patch.h"
#include "wire/json.h"
#include "wire/json_write.h"

#define KEY_CA	   "ca.crt"
#define KEY_CERT   "tls.crt"
#define KEY_KEY	   "tls.key"
#define BUNDLE_MAX ((size_t)2 << 20) /* no object of the API server has more */
#define HOST_BYTES 256		     /* names have at most 253 characters */

static int decode(const struct json *secret, const char *key, struct strbuf *ret, struct err *err)
{
	const char *text = json_str(secret, "data", key);

	if (text && base64_decode(ret, text, strlen(text)) == -ENOMEM)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

int certs_secret_read(const struct json *secret, struct certs *ret, struct err *err)
{
	int rc;

	if (json_get(secret, "metadata", "annotations", "cert-manager.io/certificate-name"))
		return err_set(err, EEXIST, "Secret %s/%s is kept by cert-manager",
			       json_str(secret, "metadata", "namespace"),
			       json_str(secret, "metadata", "name"));
	if ((rc = decode(secret, KEY_CA, &ret->ca, err)) < 0 ||
	    (rc = decode(secret, KEY_CERT, &ret->cert, err)) < 0)
		return rc;
	return decode(secret, KEY_KEY, &ret->key, err);
}

static int add_encoded(struct json_writer *w, const char *key, const struct strbuf *text)
{
	struct strbuf encoded CLEANUP(strbuf_done) = STRBUF_INIT;

	base64_encode(&encoded, text->s, text->len);
	json_add_key(w, key);
	json_add_strn(w, encoded.s, encoded.len);
	explicit_bzero(encoded.s, encoded.len);
	return encoded.failed ? -ENOMEM : 0;
}

static int write_data(struct json_writer *w, const struct json *before, const struct certs *certs)
{
	struct json_iter iter = json_members(before);
	struct json_member m;
	int rc;

	json_open_object(w);
	while (json_next_member(&iter, &m)) {
		if (strcmp(m.key, KEY_CA) == 0 || strcmp(m.key, KEY_CERT) == 0 ||
		    strcmp(m.key, KEY_KEY) == 0)
			continue;
		json_add_key(w, m.key);
		json_add_value(w, m.value);
	}
	if ((rc = add_encoded(w, KEY_CA, &certs->ca)) == 0 &&
	    (rc = add_encoded(w, KEY_CERT, &certs->cert)) == 0)
		rc = add_encoded(w, KEY_KEY, &certs->key);
	json_close_object(w);
	return rc;
}

static void write_new_head(struct json_writer *w, const char *namespace, const char *name)
{
	json_add_key(w, "apiVersion");
	json_add_str(w, "v1");
	json_add_key(w, "kind");
	json_add_str(w, "Secret");
	json_add_key(w, "type");
	json_add_str(w, "kubernetes.io/tls");
	json_add_key(w, "metadata");
	json_open_object(w);
	json_add_key(w, "namespace");
	json_add_str(w, namespace);
	json_add_key(w, "name");
	json_add_str(w, name);
	json_add_key(w, "labels");
	json_open_object(w);
	json_add_key(w, "app.kubernetes.io/name");
	json_add_str(w, "gpu-scheduler");
	json_close_object(w);
	json_close_object(w);
}

static void write_old_head(struct json_writer *w, const struct json *secret)
{
	struct json_iter iter = json_members(secret);
	struct json_member m;

	while (json_next_member(&iter, &m)) {
		if (strcmp(m.key, "data") == 0)
			continue;
		json_add_key(w, m.key);
		json_add_value(w, m.value);
	}
}

int certs_secret_write(struct strbuf *out, const char *stored, size_t len, const char *namespace,
		       const char *name, const struct certs *certs, struct err *err)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct json_writer w = JSON_WRITER_INIT(out);
	int rc = len ? json_parse("Secret", stored, len, NULL, &doc, err) : 0;

	if (rc < 0)
		return rc;
	const struct json *secret = doc ? json_root(doc) : NULL;
	json_open_object(&w);
	if (secret)
		write_old_head(&w, secret);
	else
		write_new_head(&w, namespace, name);
	json_add_key(&w, "data");
	rc = write_data(&w, json_get(secret, "data"), certs);
	json_close_object(&w);
	if (rc < 0 || out->failed)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

/* Of a bundle in which something cannot be read, the API server trusts the rest, so all of it
 * stays, and ours goes before it, once. */
static void put_before(struct strbuf *ret, const struct strbuf *ours, const char *theirs)
{
	strbuf_reset(ret);
	if (!strstr(theirs, ours->s)) {
		strbuf_add(ret, ours->s, ours->len);
		strbuf_putc(ret, '\n');
	}
	strbuf_puts(ret, theirs);
}

/* What a webhook is to trust, given what it does, in base64. */
static int encode_bundle(const struct certs_trust *trust, const char *now, struct strbuf *encoded,
			 struct err *err)
{
	struct strbuf before CLEANUP(strbuf_done) = STRBUF_INIT_MAX(BUNDLE_MAX);
	struct strbuf joined CLEANUP(strbuf_done) = STRBUF_INIT_MAX(BUNDLE_MAX);
	int rc = 0;

	if (now && !trust->alone && base64_decode(&before, now, strlen(now)) == 0 && before.len &&
	    strcmp(before.s, trust->bundle->s) != 0)
		rc = certs_join(trust->bundle->s, before.s, trust->at_s, &joined, err);
	if (rc == -EINVAL)
		put_before(&joined, trust->bundle, before.s);
	else if (rc < 0)
		return rc;
	const struct strbuf *wanted = joined.len ? &joined : trust->bundle;
	base64_encode(encoded, wanted->s, wanted->len);
	if (joined.failed || encoded->failed)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

/* By which name the API server calls a webhook, and expects it in the certificate. */
static void called_name(const struct json *client, char ret[HOST_BYTES])
{
	const char *namespace = json_str(client, "service", "namespace");
	const char *service = json_str(client, "service", "name");
	const char *url = json_str(client, "url"), *host = url ? strstr(url, "://") : NULL;

	*ret = '\0';
	if (service && namespace) {
		snprintf(ret, HOST_BYTES, "%s.%s.svc", service, namespace);
	} else if (host) {
		bool bracket = host[3] == '[';

		host += bracket ? 4 : 3;
		int len = (int)MIN(strcspn(host, bracket ? "]" : ":/?#"), HOST_BYTES);
		snprintf(ret, HOST_BYTES, "%.*s", len, host);
	}
}

static bool same_name(const char *one, const char *other)
{
	unsigned char bytes[16], others[16];
	unsigned size = certs_address(one, bytes);

	return size ? certs_address(other, others) == size && memcmp(bytes, others, size) == 0
		    : strcasecmp(one, other) == 0;
}

static bool calls_us(const struct json *webhook, const struct certs_order *order)
{
	char name[HOST_BYTES];

	called_name(json_get(webhook, "clientConfig"), name);
	for (size_t i = 0; i < order->names_count; i++)
		if (same_name(order->names[i], name))
			return true;
	return false;
}

static int set_bundle(struct patch *patch, const struct json *webhook, size_t index,
		      const struct certs_trust *trust, struct err *err)
{
	struct strbuf encoded CLEANUP(strbuf_done) = STRBUF_INIT;
	struct patch_path at = patch_index(patch_key(PATCH_ROOT, "webhooks"), index);
	const struct json *client = json_get(webhook, "clientConfig");
	const char *now = json_str(client, "caBundle"), *name = json_str(webhook, "name");

	if (!name)
		return 0;
	int rc = encode_bundle(trust, now, &encoded, err);
	if (rc < 0 || (now && strcmp(now, encoded.s) == 0))
		return rc;
	patch_test(patch, patch_key(at, "name"), name);
	at = patch_key(patch_key(at, "clientConfig"), "caBundle");
	json_add_strn(patch_set(patch, at, json_get(client, "caBundle")), encoded.s, encoded.len);
	patch_end(patch);
	return 0;
}

/* Said in the patch, the version is a condition. */
static void set_version(struct patch *patch, const struct json *configuration)
{
	const char *version = json_str(configuration, "metadata", "resourceVersion");
	struct patch_path at = patch_key(PATCH_ROOT, "metadata");

	if (!version)
		return;
	json_add_str(patch_replace(patch, patch_key(at, "resourceVersion")), version);
	patch_end(patch);
}

int certs_configuration_patch(struct strbuf *out, const struct json *configuration,
			      const struct certs_trust *trust, unsigned *calls, struct err *err)
{
	struct patch patch CLEANUP(patch_done) = PATCH_INIT;
	struct json_iter iter = json_items(configuration, "webhooks");
	const struct json *webhook;
	size_t len = 0;
	int rc = 0;

	*calls = 0;
	for (size_t i = 0; rc == 0 && (webhook = json_next(&iter)); i++) {
		if (!calls_us(webhook, trust->order))
			continue;
		++*calls;
		rc = set_bundle(&patch, webhook, i, trust, err);
	}
	if (rc < 0 || patch_is_empty(&patch))
		return rc;
	set_version(&patch, configuration);
	const char *text = patch_text(&patch, &len);
	if (text)
		strbuf_add(out, text, len);
	return !text || out->failed ? err_set(err, ENOMEM, "out of memory") : 0;
}
