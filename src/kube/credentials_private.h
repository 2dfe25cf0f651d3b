/* SPDX-License-Identifier: Apache-2.0 */
/* credentials_private.h - inside credentials (used by credentials*.c alone).
 *
 *	credentials.c		who waits, and when what is made fresh
 *	credentials_files.c	tokens and certificates in files
 *	credentials_exec.c	what a plugin gives
 *	credentials_headers.c	how it looks in a request
 */
#ifndef GS_KUBE_CREDENTIALS_PRIVATE_H
#define GS_KUBE_CREDENTIALS_PRIVATE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/credentials.h"
#include "kube/exec_credential.h"
#include "kube/secret.h"

#define RETIRED_MAX 24 /* former files in memory that stay open: eight changes of all three */

/* A piece of PEM: where it is from, what it says, and the file in memory with it. */
struct pem_slot {
	const char *name;	 /* "ca", for the file in memory */
	const char *field;	 /* what it is in a message */
	const char *path, *data; /* one of them at most; neither: there is none, or a plugin's */
	struct secret_identity identity; /* of what was last read, whether it was good or not */
	struct strbuf text;		 /* empty: none yet */
	int fd;				 /* -1: none */
	char fd_path[32];
};

struct exec_state {
	struct exec_plugin *running;	/* NULL: none */
	struct exec_credential current; /* doc NULL: none yet */
	bool refused;			/* the server did not like it */
	int64_t refresh_wall_ns;	/* from then on a new one is wanted */
	uint64_t since_ms;		/* when it was given */
	uint64_t retry_ms;		/* no run before this */
	uint32_t failures, refusals;	/* in a row */
	struct err failure;		/* of the last run; code 0: it was good */
};

struct kube_credentials {
	uv_loop_t *loop;
	const struct kube_config *config;
	const struct clock *clock;

	struct pem_slot ca, cert, key;
	int retired[RETIRED_MAX]; /* -1: free */
	size_t retired_next;
	struct strbuf token; /* of the file; empty: not read yet */
	struct secret_identity token_identity;
	uint64_t look_ms;   /* when the files are next looked at */
	struct err problem; /* of the last look */
	struct exec_state exec;

	struct arena arena; /* of the impersonation headers */
	struct strbuf authorization;
	struct kube_auth auth;
	bool stale, tls_stale; /* something, certificates too, are newer than `auth` */

	struct kube_auth_wait *waiting, *serving; /* first come first */
	uv_timer_t closer;			  /* closed last */
	bool closing;
	void (*closed)(void *context);
	void *closed_context;
};

/* --- credentials_files.c --- */

void credentials_files_init(struct kube_credentials *credentials);
void credentials_files_done(struct kube_credentials *credentials);

/* Reads all that has changed (all, if forced) and adopts what makes sense; the rest is
 * told by credentials->problem. */
void credentials_files_look(struct kube_credentials *credentials, bool force);

/* A plugin's pair into cert and key.  0 or -errno. */
int credentials_files_set_pair(struct kube_credentials *credentials, const char *certificate,
			       const char *key, struct err *err);

/* --- credentials_exec.c --- */

/* What is to be done with who asks now. */
enum exec_answer {
	EXEC_GIVE, /* what is there */
	EXEC_WAIT, /* for the run that goes on */
	EXEC_FAIL, /* with exec.failure */
};

enum exec_answer credentials_exec_ask(struct kube_credentials *credentials);
void credentials_exec_refused(struct kube_credentials *credentials);

/* --- credentials_headers.c --- */

/* The lines "Impersonate-...: ..." of the config.  0 or -ENOMEM. */
int credentials_headers_impersonate(struct kube_credentials *credentials, struct err *err);

/* Renews credentials->auth from all the rest.  0, or -ENOMEM and nothing has changed: it
 * is still stale. */
int credentials_headers_renew(struct kube_credentials *credentials, struct err *err);

/* --- credentials.c --- */

/* Answers all who wait: with the credentials, or with the error if there is one. */
void credentials_serve(struct kube_credentials *credentials, const struct err *err);

/* After exec.running has ended; frees everything if that was what closing waited for. */
void credentials_closing(struct kube_credentials *credentials);

#endif
