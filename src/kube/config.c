/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - where to look, and in which order. */
#include "kube/config.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "kube/endpoint.h"
#include "kube/kubeconfig.h"
#include "wire/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_MAX_BYTES	   ((size_t)32 << 20)
#define SERVICEACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

static const char *environment(const struct kube_config_source *source, const char *name)
{
	const char *value = source->getenv ? source->getenv(source->env, name) : getenv(name);
	return value && *value ? value : NULL;
}

void kube_config_free(struct kube_config *config)
{
	if (!config)
		return;
	arena_done(&config->arena);
	free(config);
}

void kube_config_freep(struct kube_config **config)
{
	kube_config_free(*config);
}

static int read_file(struct kubeconfig *all, const char *path, struct err *err)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	int result = file_read(path, KUBE_CONFIG_MAX_BYTES, &text, err);
	if (result < 0)
		return result;
	return kubeconfig_add(all, path, text.s, text.len, err);
}

/* A file that need not be there. */
static int read_if_there(struct kubeconfig *all, const char *path, struct err *err)
{
	int result = read_file(all, path, err);
	return result == -ENOENT ? 0 : result;
}

/* The files of $KUBECONFIG; empty names and names that come again are skipped. */
static int read_listed(struct kubeconfig *all, const char *list, struct err *err)
{
	for (const char *at = list; *at;) {
		size_t len = strcspn(at, ":");
		char *path = strndup(at, len);
		if (!path)
			return err_set(err, ENOMEM, "cannot read KUBECONFIG: out of memory");
		bool again = len == 0;
		for (size_t i = 0; i < all->count; i++)
			again = again || strcmp(all->files[i].path, path) == 0;
		int result = again ? 0 : read_if_there(all, path, err);
		free(path);
		if (result < 0)
			return result;
		at += len + (at[len] == ':');
	}
	return 0;
}

static int read_home(struct kubeconfig *all, const char *home, struct err *err)
{
	struct strbuf path CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_addf(&path, "%s/.kube/config", home);
	return path.failed ? err_set(err, ENOMEM, "out of memory")
			   : read_if_there(all, path.s, err);
}

static int read_files(struct kubeconfig *all, const struct kube_config_source *source,
		      struct err *err)
{
	const char *list = environment(source, "KUBECONFIG"), *home = environment(source, "HOME");
	if (source->path)
		return read_file(all, source->path, err);
	if (list)
		return read_listed(all, list, err);
	return home ? read_home(all, home, err) : 0;
}

static int nothing_found(const struct kube_config_source *source, struct err *err)
{
	const char *list = environment(source, "KUBECONFIG");
	if (source->context)
		return err_set(err, ENOENT,
			       "--context needs a kubeconfig, and there is none; name one with "
			       "--kubeconfig");
	return err_set(err, ENOENT,
		       "there is no cluster to talk to: %s, and this is not a pod; name a "
		       "kubeconfig with --kubeconfig",
		       list ? "KUBECONFIG names no file with a cluster in it"
			    : "KUBECONFIG is not set, there is no ~/.kube/config");
}

/* Only --master: a server that wants no credentials, such as kubectl proxy. */
static int read_master(const char *master, struct kube_config *config, struct err *err)
{
	int result = endpoint_server(&config->arena, master, &config->server, err);
	if (result < 0)
		return err_prefix(err, "--master");
	config->namespace = "default";
	config->cluster_origin = "--master";
	config->user_origin = "nobody (only --master was given)";
	return 0;
}

static int read_elsewhere(const struct kube_config_source *source, struct kube_config *config,
			  struct err *err)
{
	const char *host = environment(source, "KUBERNETES_SERVICE_HOST");
	const char *folder = source->serviceaccount_dir;
	if (source->context)
		return nothing_found(source, err);
	if (host)
		return incluster_read(host, environment(source, "KUBERNETES_SERVICE_PORT"),
				      folder ? folder : SERVICEACCOUNT_DIR, source->master, config,
				      err);
	if (source->master)
		return read_master(source->master, config, err);
	return nothing_found(source, err);
}

static int read_all(struct kubeconfig *all, const struct kube_config_source *source,
		    struct err *err)
{
	int result = read_files(all, source, err);
	if (result < 0)
		return result;
	if (!kubeconfig_is_empty(all))
		return kubeconfig_read(all, source->context, source->master, err);
	if (source->path)
		return err_set(err, EINVAL, "%s has no cluster in it; it is empty", source->path);
	return read_elsewhere(source, all->config, err);
}

/* From the text, or, if that is NULL, from wherever there is something. */
static int load(const struct kube_config_source *source, const char *name, const char *text,
		size_t len, struct kube_config **ret, struct err *err)
{
	struct err ignored = ERR_INIT;
	struct kubeconfig *all = calloc(1, sizeof(*all)); /* too big for a stack */
	struct kube_config *config = calloc(1, sizeof(*config));
	int result;
	err = err ? err : &ignored;
	if (!all || !config) {
		free(all);
		free(config);
		return err_set(err, ENOMEM, "cannot read the configuration: out of memory");
	}
	arena_init(&config->arena, ARENA_MAX_BYTES);
	all->config = config;
	if (!text)
		result = read_all(all, source, err);
	else if ((result = kubeconfig_add(all, name, text, len, err)) == 0)
		result = kubeconfig_read(all, source->context, source->master, err);
	kubeconfig_done(all);
	free(all);
	if (result < 0) {
		kube_config_free(config);
		return result;
	}
	*ret = config;
	return 0;
}

int kube_config_load(const struct kube_config_source *source, struct kube_config **ret,
		     struct err *err)
{
	return load(source, NULL, NULL, 0, ret, err);
}

int kube_config_parse(const char *name, const char *text, size_t len,
		      const struct kube_config_source *source, struct kube_config **ret,
		      struct err *err)
{
	return load(source, name, text ? text : "", len, ret, err);
}
