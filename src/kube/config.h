/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - where the API server is and who we are to it.
 *
 * Looked for in this order, and the first that is there counts:
 *
 *   1. the file that was named (--kubeconfig); it must be there
 *   2. the files of $KUBECONFIG, separated by ':'; those that are missing are skipped,
 *      and for each named entry and for current-context the first file that has it wins
 *   3. $HOME/.kube/config
 *   4. the service account of the pod we run in
 *   5. the server that was named (--master), without credentials
 *
 * Files without any cluster, user and context count as missing in 2 and 3.  --master
 * replaces the server in all of them.
 *
 * Unknown fields are ignored.  Whatever is used and does not make sense (a field of the
 * wrong type, half a key pair, a contradiction, a legacy form) is an error that names
 * file, entry and field; entries that are not used are not looked at.
 *
 * This is what is written there.  credentials.h keeps what it points to (files, plugins)
 * fresh.
 */
#ifndef GS_KUBE_CONFIG_H
#define GS_KUBE_CONFIG_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define KUBE_CONFIG_MAX_BYTES ((size_t)4 << 20)	 /* of one kubeconfig */
#define KUBE_CONFIG_MAX_FILES 64		 /* in $KUBECONFIG */
#define KUBE_CONFIG_MAX_ITEMS 1024		 /* of any list: groups, args, env, ... */
#define KUBE_PEM_MAX_BYTES    ((size_t)1 << 20)	 /* of certificates, of a key */
#define KUBE_TOKEN_MAX_BYTES  ((size_t)64 << 10) /* of a token, of a header's value */

struct kube_env {
	const char *name, *value;
};

/* A program that gives credentials (KEP 541). */
struct kube_exec {
	const char *api_version; /* client.authentication.k8s.io/v1 or /v1beta1 */
	const char *command;	 /* an absolute path, or a name to look for in $PATH */
	const char *const *args;
	size_t args_count;
	const struct kube_env *env; /* added to ours */
	size_t env_count;
	const char *install_hint; /* what to say if it cannot be started, or NULL */
	bool provide_cluster_info;
	const char
		*cluster_config; /* JSON for the plugin from the cluster's extensions, or NULL */
	uint32_t timeout_ms;	 /* 0: 60 s */
};

struct kube_extra {
	const char *key;
	const char *const *values;
	size_t values_count;
};

struct kube_impersonation {
	const char *user, *uid; /* NULL: none */
	const char *const *groups;
	size_t groups_count;
	const struct kube_extra *extra;
	size_t extra_count;
};

/* Strings are NULL where nothing is said.  Paths are absolute. */
struct kube_config {
	const char *server;    /* http(s)://host[:port][/prefix], no '/' at the end */
	const char *namespace; /* "default" if nothing else is said */

	const char *ca_file, *ca_data; /* one of them at most; data is PEM, decoded */
	bool insecure;		       /* whatever certificate the server shows */
	const char *tls_server_name;   /* for SNI and for verification */
	const char *proxy_url;	       /* NULL: HTTPS_PROXY and NO_PROXY decide */
	bool disable_compression;

	const char *cert_file, *cert_data; /* one of them at most, and then a key too */
	const char *key_file, *key_data;
	const char *token, *token_file; /* with both, the file counts once it can be read */
	const char *username, *password;
	struct kube_impersonation as;
	const struct kube_exec *exec;
	const char *exec_extension; /* JSON that the cluster has for the plugin */

	bool in_cluster;
	const char *cluster_origin; /* for messages: `cluster "a" of /home/b/.kube/config` */
	const char *user_origin;    /* `user "c" of ...`, `the service account in ...` */

	struct arena arena; /* owns all of the above */
};

/* Where to look.  Zero is the usual. */
struct kube_config_source {
	const char *path;				    /* --kubeconfig, NULL: not given */
	const char *context;				    /* --context, NULL: current-context */
	const char *master;				    /* --master, NULL: not given */
	const char *(*getenv)(void *env, const char *name); /* NULL: the process's */
	void *env;
	const char *serviceaccount_dir; /* NULL: /var/run/secrets/kubernetes.io/serviceaccount */
};

/* 0, -ENOENT if there is no configuration at all, -EINVAL for one that is wrong,
 * -E2BIG, -ENOMEM, or why a file cannot be read. */
int kube_config_load(const struct kube_config_source *source, struct kube_config **ret,
		     struct err *err);

/* The same from the text of one kubeconfig; `name` is its path, for messages and for
 * relative paths. */
int kube_config_parse(const char *name, const char *text, size_t len,
		      const struct kube_config_source *source, struct kube_config **ret,
		      struct err *err);

void kube_config_free(struct kube_config *config);
void kube_config_freep(struct kube_config **config); /* for CLEANUP() */

#endif
