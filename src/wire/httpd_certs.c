/* SPDX-License-Identifier: Apache-2.0 */
/* httpd_certs.c - the certificate and its key, new ones in place of old ones.
 *
 * GnuTLS borrows a pair from its first look until the greeting is over, so a pair lives
 * while a link is open that may have been shown it.
 */
#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "wire/file.h"
#include "wire/httpd_parts.h"

#include <errno.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX  ((size_t)1 << 20)
#define CHAIN_MAX 16
#define ID_MAX	  64 /* bytes of a key's fingerprint */

struct httpd_pair {
	struct httpd_pair *newer;
	uint32_t links; /* that began when this one was the newest */
	gnutls_pcert_st certs[CHAIN_MAX];
	unsigned int certs_count;
	gnutls_privkey_t key;
};

/* What changes when a file is written or put in place of another; zero: not there. */
struct file_state {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec modified, changed;
};

struct state {
	struct file_state cert, key;
};

struct httpd_certs {
	char *cert_file, *key_file;
	struct httpd_pair *oldest, *newest;
	struct state used, refused;
	bool told; /* that `refused` cannot be used */
};

static struct file_state file_state(const char *path)
{
	struct file_state state;
	struct stat s;

	memset(&state, 0, sizeof(state));
	if (stat(path, &s) == 0) {
		state.dev = s.st_dev;
		state.ino = s.st_ino;
		state.size = s.st_size;
		state.modified = s.st_mtim;
		state.changed = s.st_ctim;
	}
	return state;
}

static void look(const struct httpd_certs *certs, struct state *ret)
{
	ret->cert = file_state(certs->cert_file);
	ret->key = file_state(certs->key_file);
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool same_file(const struct file_state *a, const struct file_state *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       same_time(a->modified, b->modified) && same_time(a->changed, b->changed);
}

static bool same(const struct state *a, const struct state *b)
{
	return same_file(&a->cert, &b->cert) && same_file(&a->key, &b->key);
}

static void pair_free(struct httpd_pair *pair)
{
	if (!pair)
		return;
	for (unsigned int i = 0; i < pair->certs_count; i++)
		gnutls_pcert_deinit(&pair->certs[i]);
	gnutls_privkey_deinit(pair->key);
	free(pair);
}

static void pair_freep(struct httpd_pair **pair)
{
	pair_free(*pair);
}

/* No key stays behind in freed memory. */
static void wipe(struct strbuf *text)
{
	if (text->cap)
		explicit_bzero(text->s, text->cap);
	strbuf_done(text);
}

static int load_certs(struct httpd_pair *pair, const char *path, struct err *err)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT_MAX(FILE_MAX);
	unsigned int count = CHAIN_MAX;
	int r = file_read(path, FILE_MAX, &text, err);

	if (r < 0)
		return r;
	gnutls_datum_t datum = { (unsigned char *)text.s, (unsigned int)text.len };
	r = gnutls_pcert_list_import_x509_raw(pair->certs, &count, &datum, GNUTLS_X509_FMT_PEM, 0);
	if (r < 0)
		return err_set(err, EINVAL, "certificate %s: %s", path, gnutls_strerror(r));
	pair->certs_count = count;
	return 0;
}

static int load_key(struct httpd_pair *pair, const char *path, struct err *err)
{
	struct strbuf text CLEANUP(wipe) = STRBUF_INIT_MAX(FILE_MAX);
	int r = file_read(path, FILE_MAX, &text, err);

	if (r < 0)
		return r;
	gnutls_datum_t datum = { (unsigned char *)text.s, (unsigned int)text.len };
	r = gnutls_privkey_import_x509_raw(pair->key, &datum, GNUTLS_X509_FMT_PEM, NULL, 0);
	return r < 0 ? err_set(err, EINVAL, "key %s: %s", path, gnutls_strerror(r)) : 0;
}

static size_t key_id(gnutls_pubkey_t key, unsigned char id[ID_MAX])
{
	size_t len = ID_MAX;

	return gnutls_pubkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, id, &len) < 0 ? 0 : len;
}

static bool fit_together(const struct httpd_pair *pair)
{
	unsigned char cert_id[ID_MAX], own_id[ID_MAX] = { 0 };
	gnutls_pubkey_t own;

	if (gnutls_pubkey_init(&own) < 0)
		return false;
	size_t cert_len = key_id(pair->certs[0].pubkey, cert_id), own_len = 0;
	if (gnutls_pubkey_import_privkey(own, pair->key, 0, 0) == 0)
		own_len = key_id(own, own_id);
	gnutls_pubkey_deinit(own);
	return cert_len && cert_len == own_len && memcmp(cert_id, own_id, own_len) == 0;
}

/* NULL, with an error, if there is none that can be used. */
static struct httpd_pair *pair_load(const struct httpd_certs *certs, struct err *err)
{
	struct httpd_pair *pair CLEANUP(pair_freep) = calloc(1, sizeof(*pair)), *loaded;

	if (!pair || gnutls_privkey_init(&pair->key) < 0) {
		err_set(err, ENOMEM, "no memory for certificates");
		return NULL;
	}
	if (load_certs(pair, certs->cert_file, err) < 0 ||
	    load_key(pair, certs->key_file, err) < 0)
		return NULL;
	if (!fit_together(pair)) {
		err_set(err, EINVAL, "the key %s is not that of the certificate %s",
			certs->key_file, certs->cert_file);
		return NULL;
	}
	loaded = pair;
	pair = NULL;
	return loaded;
}

/* In order, for a link that began with an old pair may use any newer one. */
static void drop_unused(struct httpd_certs *certs)
{
	while (certs->oldest != certs->newest && certs->oldest->links == 0) {
		struct httpd_pair *pair = certs->oldest;
		certs->oldest = pair->newer;
		pair_free(pair);
	}
}

static void use(struct httpd_certs *certs, struct httpd_pair *pair)
{
	if (certs->newest)
		certs->newest->newer = pair;
	else
		certs->oldest = pair;
	certs->newest = pair;
	drop_unused(certs);
}

static struct httpd_certs *certs_alloc(const char *cert_file, const char *key_file)
{
	struct httpd_certs *certs = calloc(1, sizeof(*certs));

	if (!certs)
		return NULL;
	certs->cert_file = strdup(cert_file);
	certs->key_file = strdup(key_file);
	if (certs->cert_file && certs->key_file)
		return certs;
	httpd_certs_free(certs);
	return NULL;
}

int httpd_certs_new(const char *cert_file, const char *key_file, struct httpd_certs **ret,
		    struct err *err)
{
	struct httpd_certs *certs = certs_alloc(cert_file, key_file);

	if (!certs)
		return err_set(err, ENOMEM, "no memory for certificates");
	look(certs, &certs->used); /* before: a change meanwhile is seen next time */
	struct httpd_pair *pair = pair_load(certs, err);
	if (!pair) {
		httpd_certs_free(certs);
		return -EINVAL;
	}
	use(certs, pair);
	*ret = certs;
	return 0;
}

void httpd_certs_free(struct httpd_certs *certs)
{
	if (!certs)
		return;
	while (certs->oldest) {
		struct httpd_pair *pair = certs->oldest;
		certs->oldest = pair->newer;
		pair_free(pair);
	}
	free(certs->cert_file);
	free(certs->key_file);
	free(certs);
}

/* Who writes two files writes one first: only what looks the same twice is a mistake. */
static int refuse(struct httpd_certs *certs, const struct state *now)
{
	if (!same(now, &certs->refused)) {
		certs->refused = *now;
		certs->told = false;
		return -EAGAIN;
	}
	certs->told = true;
	return -EINVAL;
}

int httpd_certs_check(struct httpd_certs *certs, struct err *err)
{
	struct state now;

	look(certs, &now);
	if (same(&now, &certs->used)) {
		memset(&certs->refused, 0, sizeof(certs->refused));
		certs->told = false;
		return 0;
	}
	if (certs->told && same(&now, &certs->refused))
		return 0;
	struct httpd_pair *pair = pair_load(certs, err);
	if (!pair)
		return refuse(certs, &now);
	certs->used = now;
	use(certs, pair);
	return 1;
}

struct httpd_pair *httpd_pair_get(struct httpd_certs *certs)
{
	certs->newest->links++;
	return certs->newest;
}

void httpd_pair_put(struct httpd_certs *certs, struct httpd_pair *pair)
{
	pair->links--;
	drop_unused(certs);
}

void httpd_pair_use(struct httpd_certs *certs, gnutls_pcert_st **ret_certs,
		    unsigned int *ret_count, gnutls_privkey_t *ret_key)
{
	*ret_certs = certs->newest->certs;
	*ret_count = certs->newest->certs_count;
	*ret_key = certs->newest->key;
}
