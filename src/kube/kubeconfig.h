/* SPDX-License-Identifier: Apache-2.0 */
/* kubeconfig.h - from the texts of kubeconfigs to a struct kube_config (used by config.c
 * and the kubeconfig_*.c alone).
 *
 * Texts are added in order of precedence; then kubeconfig_read() takes the context, its
 * cluster and its user, each from the first file that has it.
 */
#ifndef GS_KUBE_KUBECONFIG_H
#define GS_KUBE_KUBECONFIG_H

#include "base/attr.h"
#include "kube/config.h"
#include "wire/yaml.h"

struct json;

struct kubeconfig_file {
	const char *path;   /* as it was named */
	const char *folder; /* absolute: relative paths in the file begin here */
	struct yaml yaml;
	const struct json *root; /* NULL: the file is empty */
};

struct kubeconfig {
	struct kubeconfig_file files[KUBE_CONFIG_MAX_FILES];
	size_t count;
	struct kube_config *config; /* what is being made; its arena owns all strings */
};

/* Parses and checks the frame.  0, -EINVAL, -E2BIG, -ENOMEM. */
int kubeconfig_add(struct kubeconfig *all, const char *path, const char *text, size_t len,
		   struct err *err);

/* No file has a cluster, a user, a context or a current-context. */
bool kubeconfig_is_empty(const struct kubeconfig *all);

/* Fills all->config.  `context` NULL: current-context.  `master` NULL: the cluster's. */
int kubeconfig_read(struct kubeconfig *all, const char *context, const char *master,
		    struct err *err);

void kubeconfig_done(struct kubeconfig *all);

/* --- One entry that is being read: a cluster, a user or a context. --- */

struct kubeconfig_entry {
	const struct kubeconfig_file *file;
	const char *kind, *name;
	const struct json *value; /* NULL: the entry says nothing */
	struct arena *arena;
};

/* "FILE: KIND "NAME": ..." with EINVAL. */
int kubeconfig_wrong(const struct kubeconfig_entry *entry, struct err *err, const char *format,
		     ...) PRINTF(3, 4);

/* Puts "FILE: KIND "NAME": KEY: " in front of the error; returns its code. */
int kubeconfig_wrong_field(const struct kubeconfig_entry *entry, const char *key, struct err *err);

/* Fields of `object`, which is entry->value or inside it.  A field that is missing, null
 * or "" gives NULL (false, no items).  0, -EINVAL for another type, -ENOMEM. */
int kubeconfig_str(const struct kubeconfig_entry *entry, const struct json *object,
		   const char *key, const char **ret, struct err *err);
int kubeconfig_bool(const struct kubeconfig_entry *entry, const struct json *object,
		    const char *key, bool *ret, struct err *err);
int kubeconfig_strings(const struct kubeconfig_entry *entry, const struct json *object,
		       const char *key, const char *const **ret, size_t *count, struct err *err);

/* A string that may stand in a header: no control characters, of bounded length. */
int kubeconfig_header(const struct kubeconfig_entry *entry, const struct json *object,
		      const char *key, const char **ret, struct err *err);

/* A path, made absolute. */
int kubeconfig_path(const struct kubeconfig_entry *entry, const struct json *object,
		    const char *key, const char **ret, struct err *err);

/* PEM in base64, decoded and checked by check(). */
int kubeconfig_data(const struct kubeconfig_entry *entry, const struct json *object,
		    const char *key, int (*check)(const char *text, size_t len, struct err *err),
		    const char **ret, struct err *err);

/* An object or an array; NULL if it is missing or null. */
int kubeconfig_object(const struct kubeconfig_entry *entry, const struct json *object,
		      const char *key, const struct json **ret, struct err *err);
int kubeconfig_array(const struct kubeconfig_entry *entry, const struct json *object,
		     const char *key, const struct json **ret, struct err *err);

/* --- The parts. --- */

int kubeconfig_read_cluster(const struct kubeconfig_entry *entry, const char *master,
			    struct kube_config *config, struct err *err);
/* What the cluster's extensions say to credential plugins. */
int kubeconfig_read_extension(const struct kubeconfig_entry *entry, struct kube_config *config,
			      struct err *err);
int kubeconfig_read_user(const struct kubeconfig_entry *entry, struct kube_config *config,
			 struct err *err);
int kubeconfig_read_exec(const struct kubeconfig_entry *entry, const struct json *exec,
			 struct kube_config *config, struct err *err);
int kubeconfig_read_impersonation(const struct kubeconfig_entry *entry, struct kube_config *config,
				  struct err *err);

/* The service account of the pod; 0, or why not. */
int incluster_read(const char *host, const char *port, const char *folder, const char *master,
		   struct kube_config *config, struct err *err);

#endif
