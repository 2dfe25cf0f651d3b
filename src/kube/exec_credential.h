/* SPDX-License-Identifier: Apache-2.0 */
/* exec_credential.h - what a credential plugin is told and what it answers.
 *
 * Both are an ExecCredential in JSON, one in the variable KUBERNETES_EXEC_INFO, the other
 * on the plugin's standard output.
 */
#ifndef GS_KUBE_EXEC_CREDENTIAL_H
#define GS_KUBE_EXEC_CREDENTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct json_doc;
struct kube_config;
struct strbuf;

#define EXEC_CREDENTIAL_V1	"client.authentication.k8s.io/v1"
#define EXEC_CREDENTIAL_V1BETA1 "client.authentication.k8s.io/v1beta1"

#define EXEC_REPLY_MAX_BYTES ((size_t)1 << 20)

/* The plugin's task.  `ca` is the cluster's CA as PEM, NULL for none; it and all about
 * the cluster is left out unless the plugin asked for it.  What does not fit sets
 * out->failed. */
void exec_info_write(struct strbuf *out, const struct kube_config *config, const char *ca);

/* A plugin's answer.  Zero is empty. */
struct exec_credential {
	struct json_doc *doc;	 /* owns the strings */
	const char *token;	 /* NULL: none */
	const char *certificate; /* PEM, both or none */
	const char *key;
	bool expires;
	int64_t expires_wall_ns;
};

/* 0, -EINVAL with a phrase that goes behind the plugin's name (not JSON, another
 * apiVersion, nothing in it, half a pair, a token that no header can carry, ...), -E2BIG,
 * -ENOMEM.  `ret` is written on success only. */
int exec_credential_parse(const char *text, size_t len, const char *api_version,
			  struct exec_credential *ret, struct err *err);

void exec_credential_done(struct exec_credential *credential);

#endif
