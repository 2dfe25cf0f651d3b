/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/pem.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/base64.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define BEGIN "-----BEGIN "
#define END   "-----END "
#define DASH  "-----"

struct text {
	const char *at, *end;
};

struct line {
	const char *s;
	size_t len; /* without the line end and blanks before it */
};

struct block {
	struct line label;
	bool encrypted;
};

static bool next_line(struct text *text, struct line *ret)
{
	if (text->at == text->end)
		return false;
	const char *newline = memchr(text->at, '\n', (size_t)(text->end - text->at));
	const char *stop = newline ? newline : text->end;
	ret->s = text->at;
	text->at = newline ? newline + 1 : text->end;
	while (stop > ret->s && (stop[-1] == '\r' || stop[-1] == ' ' || stop[-1] == '\t'))
		stop--;
	ret->len = (size_t)(stop - ret->s);
	return true;
}

static bool starts_with(struct line line, const char *prefix)
{
	size_t n = strlen(prefix);
	return line.len >= n && memcmp(line.s, prefix, n) == 0;
}

static bool ends_with(struct line line, const char *suffix)
{
	size_t n = strlen(suffix);
	return line.len >= n && memcmp(line.s + line.len - n, suffix, n) == 0;
}

/* The label between the dashes of "-----BEGIN label-----". */
static bool marker(struct line line, const char *prefix, struct line *ret)
{
	size_t n = strlen(prefix), around = n + strlen(DASH);
	if (line.len < around || !starts_with(line, prefix) || !ends_with(line, DASH))
		return false;
	*ret = (struct line){ line.s + n, line.len - around };
	return true;
}

static bool same(struct line a, struct line b)
{
	return a.len == b.len && memcmp(a.s, b.s, a.len) == 0;
}

/* The lines up to the end of the block into `body`, but for headers ("Proc-Type: ..."). */
static int read_body(struct text *text, struct block *block, struct strbuf *body, struct err *err)
{
	struct line line, label;
	while (next_line(text, &line)) {
		if (marker(line, END, &label) && same(label, block->label))
			return 0;
		if (starts_with(line, DASH))
			break;
		if (memchr(line.s, ':', line.len))
			block->encrypted |=
				starts_with(line, "Proc-Type:") && ends_with(line, "ENCRYPTED");
		else
			strbuf_add(body, line.s, line.len);
	}
	return err_set(err, EINVAL, "a PEM block has a beginning and no end");
}

/* 1 and the next block, 0 if there is none, -EINVAL if it is broken. */
static int next_block(struct text *text, struct block *ret, struct err *err)
{
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf bytes CLEANUP(strbuf_done) = STRBUF_INIT;
	struct line line;
	*ret = (struct block){ 0 };
	do {
		if (!next_line(text, &line))
			return 0;
	} while (!marker(line, BEGIN, &ret->label));
	int result = read_body(text, ret, &body, err);
	if (result < 0)
		return result;
	result = base64_decode(&bytes, body.s, body.len);
	if (body.failed || result == -ENOMEM)
		return err_set(err, ENOMEM, "out of memory");
	if (result < 0 || bytes.len == 0)
		return err_set(err, EINVAL, "a PEM block has no proper base64 inside");
	return 1;
}

static int check(const char *text, size_t len, const char *what,
		 bool (*wanted)(const struct block *block), struct err *err)
{
	struct text rest = { text, text + len };
	struct block block;
	size_t count = 0;
	int result;
	if (memchr(text, '\0', len))
		return err_set(err, EINVAL, "it is not PEM: there is a NUL byte in it");
	while ((result = next_block(&rest, &block, err)) > 0) {
		if (!wanted(&block))
			continue;
		if (block.encrypted || starts_with(block.label, "ENCRYPTED "))
			return err_set(err, EINVAL,
				       "the key is protected by a passphrase, which nobody is "
				       "there to type; store it without one");
		count++;
	}
	if (result < 0)
		return result;
	if (count == 0)
		return err_set(err, EINVAL, "there is no %s in PEM form in it", what);
	return 0;
}

static bool is_certificate(const struct block *block)
{
	return same(block->label, (struct line){ "CERTIFICATE", strlen("CERTIFICATE") });
}

static bool is_key(const struct block *block)
{
	return ends_with(block->label, "PRIVATE KEY");
}

int pem_check_certificates(const char *text, size_t len, struct err *err)
{
	return check(text, len, "certificate", is_certificate, err);
}

int pem_check_key(const char *text, size_t len, struct err *err)
{
	return check(text, len, "private key", is_key, err);
}

static int datum_of(const char *text, size_t len, gnutls_datum_t *ret, struct err *err)
{
	if (len > UINT_MAX)
		return err_set(err, EINVAL, "it is too big");
	*ret = (gnutls_datum_t){ (unsigned char *)(uintptr_t)text, (unsigned)len };
	return 0;
}

static void credentials_done(gnutls_certificate_credentials_t *credentials)
{
	if (*credentials)
		gnutls_certificate_free_credentials(*credentials);
}

int pem_check_trust(const char *certificates, size_t len, struct err *err)
{
	gnutls_certificate_credentials_t tls CLEANUP(credentials_done) = NULL;
	gnutls_datum_t datum;
	int result = pem_check_certificates(certificates, len, err);
	if (result < 0 || (result = datum_of(certificates, len, &datum, err)) < 0)
		return result;
	if (gnutls_certificate_allocate_credentials(&tls) < 0)
		return err_set(err, ENOMEM, "out of memory");
	result = gnutls_certificate_set_x509_trust_mem(tls, &datum, GNUTLS_X509_FMT_PEM);
	if (result <= 0)
		return err_set(err, EINVAL, "there is no certificate that TLS can use in it");
	return 0;
}

int pem_check_pair(const char *certificate, size_t certificate_len, const char *key,
		   size_t key_len, struct err *err)
{
	gnutls_certificate_credentials_t tls CLEANUP(credentials_done) = NULL;
	gnutls_datum_t certificate_datum, key_datum;
	int result = datum_of(certificate, certificate_len, &certificate_datum, err);
	if (result < 0 || (result = datum_of(key, key_len, &key_datum, err)) < 0)
		return result;
	if (gnutls_certificate_allocate_credentials(&tls) < 0)
		return err_set(err, ENOMEM, "out of memory");
	result = gnutls_certificate_set_x509_key_mem(tls, &certificate_datum, &key_datum,
						     GNUTLS_X509_FMT_PEM);
	if (result == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
		return err_set(err, EINVAL, "the key is that of another certificate");
	if (result < 0)
		return err_set(err, EINVAL, "TLS cannot use certificate and key: %s",
			       gnutls_strerror(result));
	return 0;
}
