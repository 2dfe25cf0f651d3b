/* SPDX-License-Identifier: Apache-2.0 */
/* credentials_files.c - tokens and certificates in files, kept as of one moment. */
#include "kube/config.h"
#include "kube/credentials_private.h"
#include "kube/pem.h"
#include "kube/token.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* How often a pair that changes while it is read is read again at once. */
#define PAIR_TRIES 4

static void slot_init(struct pem_slot *slot, const char *name, const char *field, const char *path,
		      const char *data)
{
	*slot = (struct pem_slot){ .name = name, .field = field, .fd = -1 };
	slot->path = data ? NULL : path;
	slot->data = data;
	slot->text = (struct strbuf)STRBUF_INIT_MAX(KUBE_PEM_MAX_BYTES);
}

void credentials_files_init(struct kube_credentials *credentials)
{
	const struct kube_config *config = credentials->config;
	slot_init(&credentials->ca, "kube-ca", "certificate-authority", config->ca_file,
		  config->ca_data);
	slot_init(&credentials->cert, "kube-certificate", "client-certificate", config->cert_file,
		  config->cert_data);
	slot_init(&credentials->key, "kube-key", "client-key", config->key_file, config->key_data);
	credentials->token = (struct strbuf)STRBUF_INIT_MAX(KUBE_TOKEN_MAX_BYTES + 64);
	for (size_t i = 0; i < RETIRED_MAX; i++)
		credentials->retired[i] = -1;
}

static void slot_done(struct pem_slot *slot)
{
	strbuf_done(&slot->text);
	if (slot->fd >= 0)
		close(slot->fd);
}

void credentials_files_done(struct kube_credentials *credentials)
{
	slot_done(&credentials->ca);
	slot_done(&credentials->cert);
	slot_done(&credentials->key);
	strbuf_done(&credentials->token);
	for (size_t i = 0; i < RETIRED_MAX; i++)
		if (credentials->retired[i] >= 0)
			close(credentials->retired[i]);
}

/* --- Files in memory --- */

/* A connection that is being made may still open it by its path. */
static void retire(struct kube_credentials *credentials, int fd)
{
	size_t at = credentials->retired_next++ % RETIRED_MAX;
	if (credentials->retired[at] >= 0)
		close(credentials->retired[at]);
	credentials->retired[at] = fd;
}

static void slot_adopt(struct kube_credentials *credentials, struct pem_slot *slot, int fd,
		       struct strbuf *text)
{
	if (slot->fd >= 0)
		retire(credentials, slot->fd);
	slot->fd = fd;
	snprintf(slot->fd_path, sizeof(slot->fd_path), "/proc/self/fd/%d", fd);
	struct strbuf former = slot->text;
	slot->text = *text;
	*text = former;
	credentials->stale = credentials->tls_stale = true;
}

static bool is_same_text(const struct pem_slot *slot, const struct strbuf *text)
{
	return slot->fd >= 0 && slot->text.len == text->len &&
	       memcmp(slot->text.s, text->s, text->len) == 0;
}

/* --- One file --- */

/* The first problem of a look is the one that is told. */
static void note(struct kube_credentials *credentials, const struct err *err)
{
	if (!credentials->problem.code)
		credentials->problem = *err;
}

/* Whether the path leads elsewhere than when it was last read.  -errno if nowhere. */
static int has_moved(const char *path, struct secret_identity *identity, struct err *err)
{
	struct secret_identity now;
	int result = secret_identify(path, &now, err);
	if (result < 0)
		return result;
	bool moved = !secret_same(&now, identity);
	*identity = now;
	return moved;
}

static int slot_text(const struct pem_slot *slot, struct strbuf *ret, struct err *err)
{
	if (slot->path)
		return secret_read(slot->path, KUBE_PEM_MAX_BYTES, ret, err);
	strbuf_reset(ret);
	strbuf_puts(ret, slot->data);
	return ret->failed ? err_set(err, ENOMEM, "%s: out of memory", slot->field) : 0;
}

/* In front of a phrase about the content. */
static const char *slot_where(const struct pem_slot *slot)
{
	return slot->path ? slot->path : slot->field;
}

static int renew_ca(struct kube_credentials *credentials, struct err *err)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT_MAX(KUBE_PEM_MAX_BYTES);
	struct pem_slot *slot = &credentials->ca;
	int result = slot_text(slot, &text, err);
	if (result < 0)
		return result;
	if (is_same_text(slot, &text))
		return 0;
	if ((result = pem_check_trust(text.s, text.len, err)) < 0) {
		err_prefix(err, "%s", slot_where(slot));
		return result;
	}
	int fd = secret_to_memory(slot->name, text.s, text.len, err);
	if (fd < 0)
		return fd;
	slot_adopt(credentials, slot, fd, &text);
	return 0;
}

static void look_at_ca(struct kube_credentials *credentials, bool force)
{
	struct err err = ERR_INIT;
	struct pem_slot *slot = &credentials->ca;
	if (!slot->path && (!slot->data || slot->fd >= 0))
		return;
	int result = slot->path ? has_moved(slot->path, &slot->identity, &err) : 1;
	if (result > 0 || (result == 0 && (force || slot->fd < 0)))
		result = renew_ca(credentials, &err);
	if (result < 0) {
		slot->identity = (struct secret_identity){ 0 }; /* read it next time anyway */
		note(credentials, &err);
	}
}

/* --- Certificate and key, which belong together --- */

static int adopt_pair(struct kube_credentials *credentials, struct strbuf *cert,
		      struct strbuf *key, struct err *err)
{
	int cert_fd = secret_to_memory(credentials->cert.name, cert->s, cert->len, err);
	if (cert_fd < 0)
		return cert_fd;
	int key_fd = secret_to_memory(credentials->key.name, key->s, key->len, err);
	if (key_fd < 0) {
		close(cert_fd);
		return key_fd;
	}
	slot_adopt(credentials, &credentials->cert, cert_fd, cert);
	slot_adopt(credentials, &credentials->key, key_fd, key);
	return 0;
}

/* Checks and adopts it, unless it is what we have. */
static int take_pair(struct kube_credentials *credentials, struct strbuf *cert, struct strbuf *key,
		     struct err *err)
{
	int result;
	if (is_same_text(&credentials->cert, cert) && is_same_text(&credentials->key, key))
		return 0;
	if ((result = pem_check_certificates(cert->s, cert->len, err)) < 0)
		err_prefix(err, "%s", slot_where(&credentials->cert));
	else if ((result = pem_check_key(key->s, key->len, err)) < 0)
		err_prefix(err, "%s", slot_where(&credentials->key));
	else if ((result = pem_check_pair(cert->s, cert->len, key->s, key->len, err)) < 0)
		err_prefix(err, "%s and %s", slot_where(&credentials->cert),
			   slot_where(&credentials->key));
	return result < 0 ? result : adopt_pair(credentials, cert, key, err);
}

int credentials_files_set_pair(struct kube_credentials *credentials, const char *certificate,
			       const char *key, struct err *err)
{
	struct strbuf cert_text CLEANUP(strbuf_done) = STRBUF_INIT_MAX(KUBE_PEM_MAX_BYTES);
	struct strbuf key_text CLEANUP(strbuf_done) = STRBUF_INIT_MAX(KUBE_PEM_MAX_BYTES);
	strbuf_puts(&cert_text, certificate);
	strbuf_puts(&key_text, key);
	if (cert_text.failed || key_text.failed)
		return err_set(err, ENOMEM, "the certificate is too big");
	return take_pair(credentials, &cert_text, &key_text, err);
}

static int pair_has_moved(struct kube_credentials *credentials, struct err *err)
{
	struct pem_slot *slots[] = { &credentials->cert, &credentials->key };
	bool moved = false;
	for (size_t i = 0; i < ARRAY_SIZE(slots); i++) {
		int result =
			slots[i]->path ? has_moved(slots[i]->path, &slots[i]->identity, err) : 0;
		if (result < 0)
			return result;
		moved = moved || result;
	}
	return moved;
}

/* The content of both as of one moment, or, after a few tries, whatever is there: whether
 * they belong together is checked in any case. */
static int read_pair(struct kube_credentials *credentials, struct strbuf *cert, struct strbuf *key,
		     struct err *err)
{
	for (int turn = 0; turn < PAIR_TRIES; turn++) {
		int result, moved;
		if ((result = slot_text(&credentials->cert, cert, err)) < 0 ||
		    (result = slot_text(&credentials->key, key, err)) < 0)
			return result;
		if ((moved = pair_has_moved(credentials, err)) < 0)
			return moved;
		if (!moved)
			break;
	}
	return 0;
}

static int renew_pair(struct kube_credentials *credentials, bool force, struct err *err)
{
	struct strbuf cert CLEANUP(strbuf_done) = STRBUF_INIT_MAX(KUBE_PEM_MAX_BYTES);
	struct strbuf key CLEANUP(strbuf_done) = STRBUF_INIT_MAX(KUBE_PEM_MAX_BYTES);
	int result = pair_has_moved(credentials, err);
	if (result < 0 || (result == 0 && !force && credentials->cert.fd >= 0))
		return result;
	if ((result = read_pair(credentials, &cert, &key, err)) < 0)
		return result;
	return take_pair(credentials, &cert, &key, err);
}

static void look_at_pair(struct kube_credentials *credentials, bool force)
{
	struct err err = ERR_INIT;
	struct pem_slot *cert = &credentials->cert, *key = &credentials->key;
	bool fixed = !cert->path && !key->path;
	if ((!cert->path && !cert->data) || (fixed && cert->fd >= 0))
		return;
	int result = renew_pair(credentials, force, &err);
	if (result < 0) {
		cert->identity = key->identity = (struct secret_identity){ 0 };
		note(credentials, &err);
	}
}

/* --- The token --- */

static int renew_token(struct kube_credentials *credentials, const char *path, struct err *err)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	int result = secret_read(path, KUBE_TOKEN_MAX_BYTES, &text, err);
	if (result < 0)
		return result;
	size_t len = text.len;
	const char *token = token_trim(text.s, &len);
	if ((result = token_check(token, len, err)) < 0) {
		err_prefix(err, "%s", path);
		return result;
	}
	struct strbuf *former = &credentials->token;
	if (former->len == len && memcmp(former->s, token, len) == 0)
		return 0;
	struct strbuf fresh = STRBUF_INIT;
	strbuf_add(&fresh, token, len);
	if (fresh.failed)
		return err_set(err, ENOMEM, "%s: out of memory", path);
	strbuf_done(former);
	*former = fresh;
	credentials->stale = true;
	return 0;
}

static void look_at_token(struct kube_credentials *credentials, bool force)
{
	struct err err = ERR_INIT;
	const char *path = credentials->config->token_file;
	if (!path)
		return;
	int result = has_moved(path, &credentials->token_identity, &err);
	if (result > 0 || (result == 0 && (force || credentials->token.len == 0)))
		result = renew_token(credentials, path, &err);
	if (result < 0) {
		credentials->token_identity = (struct secret_identity){ 0 };
		note(credentials, &err);
	}
}

/* What there can be no connection without comes first: that is told. */
void credentials_files_look(struct kube_credentials *credentials, bool force)
{
	credentials->problem = (struct err)ERR_INIT;
	look_at_ca(credentials, force);
	look_at_pair(credentials, force);
	look_at_token(credentials, force);
}
