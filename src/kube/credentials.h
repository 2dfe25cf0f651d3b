/* SPDX-License-Identifier: Apache-2.0 */
/* credentials.h - what a request to the API server has to carry, kept fresh.
 *
 * Tokens, certificates and CAs in files are looked at once a minute, and at once after a
 * 401 or a failed handshake; if a file cannot be read, is empty or makes no sense, what
 * was read before stays.  Credential plugins run as child processes and never block the
 * loop; what they give is kept until shortly before it expires, or until a 401.
 *
 * libcurl with GnuTLS takes certificates from files alone, so all PEM is handed out as
 * /proc/self/fd/N of a memfd.  Certificate and key of one generation belong together.
 * New content has a new path; the former one stays readable for the next few changes.
 *
 * One loop, one thread.
 */
#ifndef GS_KUBE_CREDENTIALS_H
#define GS_KUBE_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct clock;
struct err;
struct kube_config;
struct kube_credentials;

/* What a request needs now.  Valid while it is handed over: copy what is kept. */
struct kube_auth {
	uint64_t generation;	   /* changes with every change below, and with every plugin run */
	const char *authorization; /* value of the header, "Bearer ...", or NULL */
	const char *const *impersonate; /* whole lines, "Impersonate-User: ..." */
	size_t impersonate_count;
	const char *ca_file, *cert_file, *key_file; /* NULL: none */
	uint64_t tls_generation; /* of the three files; when it changes, connect anew */
};

/* Somebody who waits for credentials; owned by them, zero but for the first two. */
struct kube_auth_wait {
	/* Exactly one of auth and err is there, for the length of the call. */
	void (*ready)(void *context, const struct kube_auth *auth, const struct err *err);
	void *context;
	struct kube_auth_wait *next, **link; /* link NULL: not waiting */
};

/* Reads the files.  0, or why there can be no credentials: a file that cannot be read,
 * PEM that is none, a key of another certificate, -ENOMEM.  The config and the clock are
 * borrowed and outlive it. */
int kube_credentials_new(uv_loop_t *loop, const struct kube_config *config,
			 const struct clock *clock, struct kube_credentials **ret,
			 struct err *err);

/* Calls back at once, from inside, if credentials are there or cannot be had now (a plugin
 * has just failed: it is tried again with backoff); else when the plugin has ended.  All
 * who wait share one run. */
void kube_credentials_get(struct kube_credentials *credentials, struct kube_auth_wait *wait);
void kube_auth_cancel(struct kube_auth_wait *wait); /* fine if it does not wait */

/* The server said 401 to credentials of that generation: the token is read again, the
 * plugin runs again when credentials are next asked for.  Nothing happens if there are
 * newer ones already.  A plugin whose credentials are refused again and again runs with
 * backoff; meanwhile the refused ones are given. */
void kube_credentials_refused(struct kube_credentials *credentials, uint64_t generation);

/* A handshake failed over certificates, ours or theirs: all are read again. */
void kube_credentials_tls_failed(struct kube_credentials *credentials);

/* Why something could not be made fresh while the former still serves, to be logged when
 * it changes; NULL if all is well. */
const char *kube_credentials_problem(const struct kube_credentials *credentials);

/* Who waits is called with ECANCELED, a running plugin is killed; closed() is called from
 * the loop when all is freed.  NULL is fine: closed() is called at once. */
void kube_credentials_close(struct kube_credentials *credentials, void (*closed)(void *context),
			    void *context);

#endif
