/* SPDX-License-Identifier: Apache-2.0 */
/* credentials_bench.h - credentials on a loop with a clock that stands, files to change
 * under them, and certificates that are made on the spot. */
#ifndef GS_TESTS_UNIT_CREDENTIALS_BENCH_H
#define GS_TESTS_UNIT_CREDENTIALS_BENCH_H

#include "kube_files.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/config.h"
#include "kube/credentials.h"
#include "wire/file.h"

#include <dirent.h>
#include <errno.h>
#include <gnutls/x509.h>

#define SECOND	 UINT64_C(1000000000)
#define NOW_WALL (INT64_C(1800000000) * 1000000000) /* 2027-01-15T08:00:00Z */

/* --- Certificates --- */

struct pair {
	char cert[2048], key[2048];
};

static inline void pair_export(struct pair *pair, gnutls_x509_crt_t cert,
			       gnutls_x509_privkey_t key)
{
	size_t cert_len = sizeof(pair->cert), key_len = sizeof(pair->key);
	CHECK(gnutls_x509_crt_export(cert, GNUTLS_X509_FMT_PEM, pair->cert, &cert_len) == 0);
	CHECK(gnutls_x509_privkey_export(key, GNUTLS_X509_FMT_PEM, pair->key, &key_len) == 0);
	pair->cert[cert_len] = '\0';
	pair->key[key_len] = '\0';
}

/* A certificate that signed itself, and its key; another one each time. */
static inline void pair_make(struct pair *pair)
{
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t cert;
	CHECK(gnutls_x509_privkey_init(&key) == 0 && gnutls_x509_crt_init(&cert) == 0);
	CHECK(gnutls_x509_privkey_generate(key, GNUTLS_PK_EC,
					   GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
					   0) == 0);
	CHECK(gnutls_x509_crt_set_version(cert, 3) == 0 &&
	      gnutls_x509_crt_set_dn(cert, "CN=test", NULL) == 0 &&
	      gnutls_x509_crt_set_serial(cert, "\1", 1) == 0 &&
	      gnutls_x509_crt_set_activation_time(cert, 1700000000) == 0 &&
	      gnutls_x509_crt_set_expiration_time(cert, 2000000000) == 0 &&
	      gnutls_x509_crt_set_key(cert, key) == 0 &&
	      gnutls_x509_crt_sign2(cert, cert, key, GNUTLS_DIG_SHA256, 0) == 0);
	pair_export(pair, cert, key);
	gnutls_x509_crt_deinit(cert);
	gnutls_x509_privkey_deinit(key);
}

/* --- The bench --- */

struct bench {
	struct files files;
	uv_loop_t loop;
	struct clock_manual clock;
	struct kube_config config;
	struct kube_exec exec;
	struct kube_credentials *credentials;
	bool closed;
};

static inline void bench_init(struct bench *bench)
{
	*bench = (struct bench){ 0 };
	files_init(&bench->files);
	clock_manual_init(&bench->clock, NOW_WALL);
	bench->config.server = "https://api:6443";
	bench->config.cluster_origin = "cluster \"c\" of config";
	bench->config.user_origin = "user \"u\" of config";
	CHECK(uv_loop_init(&bench->loop) == 0);
}

static inline void bench_open(struct bench *bench)
{
	struct err err = ERR_INIT;
	int result = kube_credentials_new(&bench->loop, &bench->config, &bench->clock.clock,
					  &bench->credentials, &err);
	CHECKF(result == 0, "%s", err.text);
}

static inline void bench_on_closed(void *bench)
{
	((struct bench *)bench)->closed = true;
}

static inline void bench_close(struct bench *bench)
{
	struct kube_credentials *credentials = bench->credentials;
	bench->credentials = NULL;
	if (credentials)
		kube_credentials_close(credentials, bench_on_closed, bench);
	uv_run(&bench->loop, UV_RUN_DEFAULT);
	CHECK(!credentials || bench->closed);
}

/* Nothing may be left on the loop. */
static inline void bench_done(struct bench *bench)
{
	bench_close(bench);
	CHECK_INT(uv_loop_close(&bench->loop), 0);
	files_done(&bench->files);
}

static inline void bench_wait(struct bench *bench, uint64_t seconds)
{
	clock_manual_advance(&bench->clock, seconds * SECOND);
}

/* --- Who asks --- */

struct asker {
	struct kube_auth_wait wait;
	int answers;
	int code; /* of the error */
	char text[ERR_TEXT_MAX];
	char authorization[256]; /* "" for none */
	char ca_file[64], cert_file[64], key_file[64];
	uint64_t generation, tls_generation;
	char impersonate[512]; /* lines, each with \n */
};

static inline void asker_copy(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from ? from : "");
}

static inline void asker_ready(void *context, const struct kube_auth *auth, const struct err *err)
{
	struct asker *asker = context;
	CHECK(!auth != !err);
	asker->answers++;
	asker->code = err ? err->code : 0;
	asker_copy(asker->text, sizeof(asker->text), err ? err->text : NULL);
	if (!auth)
		return;
	asker_copy(asker->authorization, sizeof(asker->authorization), auth->authorization);
	asker_copy(asker->ca_file, sizeof(asker->ca_file), auth->ca_file);
	asker_copy(asker->cert_file, sizeof(asker->cert_file), auth->cert_file);
	asker_copy(asker->key_file, sizeof(asker->key_file), auth->key_file);
	asker->generation = auth->generation;
	asker->tls_generation = auth->tls_generation;
	asker->impersonate[0] = '\0';
	for (size_t i = 0; i < auth->impersonate_count; i++) {
		strcat(asker->impersonate, auth->impersonate[i]);
		strcat(asker->impersonate, "\n");
	}
}

/* Asks and leaves. */
static inline void ask(struct bench *bench, struct asker *asker)
{
	*asker = (struct asker){ .wait = { .ready = asker_ready, .context = asker } };
	kube_credentials_get(bench->credentials, &asker->wait);
}

static inline void await(struct bench *bench, const struct asker *asker)
{
	while (asker->answers == 0)
		uv_run(&bench->loop, UV_RUN_ONCE);
}

/* Asks and waits for the answer. */
static inline struct asker asked(struct bench *bench)
{
	struct asker asker;
	ask(bench, &asker);
	await(bench, &asker);
	CHECK_INT(asker.answers, 1);
	return asker;
}

/* What a path of the answer leads to. */
static inline void check_content(const char *path, const char *expected)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct err err = ERR_INIT;
	int result = file_read(path, 1 << 20, &text, &err);
	CHECKF(result == 0, "%s", err.text);
	CHECK_STR(text.s, expected);
}

static inline size_t open_descriptors(void)
{
	size_t count = 0;
	DIR *folder = opendir("/proc/self/fd");
	CHECK(folder != NULL);
	/* cppcheck-suppress readdirCalled ; glibc's is safe, and there is one thread */
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

#endif
