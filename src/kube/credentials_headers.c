/* SPDX-License-Identifier: Apache-2.0 */
/* credentials_headers.c - how credentials look in a request. */
#include "kube/base64.h"
#include "kube/config.h"
#include "kube/credentials_private.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* --- Impersonation --- */

/* The key of an extra in the name of a header: what cannot stand there, and '%', is
 * written %XX, which the API server takes apart. */
static void add_key(struct strbuf *line, const char *key)
{
	for (; *key; key++) {
		if (isalnum((unsigned char)*key) || strchr("!#$&'*+-.^_`|~", *key))
			strbuf_putc(line, *key);
		else
			strbuf_addf(line, "%%%02X", (unsigned char)*key);
	}
}

struct lines {
	struct arena *arena;
	const char **items;
	size_t count;
	struct strbuf line;
	bool failed;
};

static void add_line(struct lines *lines, const char *name, const char *key, const char *value)
{
	struct strbuf *line = &lines->line;
	if (!value)
		return;
	strbuf_reset(line);
	strbuf_puts(line, name);
	add_key(line, key);
	strbuf_addf(line, ": %s", value);
	const char *copy = arena_strndup(lines->arena, line->s, line->len);
	lines->failed = lines->failed || line->failed || !copy;
	lines->items[lines->count++] = copy;
}

int credentials_headers_impersonate(struct kube_credentials *credentials, struct err *err)
{
	const struct kube_impersonation *as = &credentials->config->as;
	struct lines lines = { .arena = &credentials->arena, .line = STRBUF_INIT };
	size_t max = 2 + as->groups_count;
	for (size_t i = 0; i < as->extra_count; i++)
		max += as->extra[i].values_count;
	lines.items = arena_array(lines.arena, max, sizeof(*lines.items));
	if (!lines.items)
		return err_set(err, ENOMEM, "the impersonation headers are too big");
	add_line(&lines, "Impersonate-User", "", as->user);
	add_line(&lines, "Impersonate-Uid", "", as->uid);
	for (size_t i = 0; i < as->groups_count; i++)
		add_line(&lines, "Impersonate-Group", "", as->groups[i]);
	for (size_t i = 0; i < as->extra_count; i++)
		for (size_t k = 0; k < as->extra[i].values_count; k++)
			add_line(&lines, "Impersonate-Extra-", as->extra[i].key,
				 as->extra[i].values[k]);
	strbuf_done(&lines.line);
	if (lines.failed)
		return err_set(err, ENOMEM, "the impersonation headers are too big");
	credentials->auth.impersonate = lines.items;
	credentials->auth.impersonate_count = lines.count;
	return 0;
}

/* --- The rest --- */

static void add_basic(struct strbuf *out, const struct kube_config *config)
{
	struct strbuf plain CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_addf(&plain, "%s:%s", config->username, config->password ? config->password : "");
	strbuf_puts(out, "Basic ");
	base64_encode(out, plain.s, plain.len);
	out->failed |= plain.failed;
}

static void add_authorization(struct strbuf *out, const struct kube_credentials *credentials)
{
	const struct kube_config *config = credentials->config;
	const char *token = credentials->exec.current.token;
	if (!token && credentials->token.len > 0)
		token = credentials->token.s;
	if (!token)
		token = config->token;
	if (token)
		strbuf_addf(out, "Bearer %s", token);
	else if (config->username)
		add_basic(out, config);
}

static const char *path_of(const struct pem_slot *slot)
{
	return slot->fd >= 0 ? slot->fd_path : NULL;
}

int credentials_headers_renew(struct kube_credentials *credentials, struct err *err)
{
	struct strbuf fresh = STRBUF_INIT;
	struct kube_auth *auth = &credentials->auth;
	add_authorization(&fresh, credentials);
	if (fresh.failed) {
		strbuf_done(&fresh);
		return err_set(err, ENOMEM, "the credentials are too big");
	}
	strbuf_done(&credentials->authorization);
	credentials->authorization = fresh;
	auth->authorization = fresh.len > 0 ? fresh.s : NULL;
	auth->ca_file = path_of(&credentials->ca);
	auth->cert_file = path_of(&credentials->cert);
	auth->key_file = path_of(&credentials->key);
	auth->generation++;
	auth->tls_generation += credentials->tls_stale;
	credentials->stale = credentials->tls_stale = false;
	return 0;
}
