/* SPDX-License-Identifier: Apache-2.0 */
/* kubeconfig.c - several files, and which entries of them count. */
#include "kube/kubeconfig.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "kube/check.h"
#include "wire/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct json_limits limits = {
	.max_bytes = KUBE_CONFIG_MAX_BYTES,
	.max_nodes = (size_t)1 << 18,
};

/* The folder of the file, absolute: the program may go elsewhere later. */
static const char *folder_of(struct arena *arena, const char *path)
{
	struct strbuf folder CLEANUP(strbuf_done) = STRBUF_INIT;
	const char *slash = strrchr(path, '/');
	if (*path != '/') {
		char *here = getcwd(NULL, 0);
		if (!here)
			return NULL;
		strbuf_puts(&folder, here);
		free(here);
		if (slash)
			strbuf_putc(&folder, '/');
	}
	if (slash)
		strbuf_add(&folder, path, (size_t)(slash - path));
	return folder.failed ? NULL : arena_strndup(arena, folder.s, folder.len);
}

/* Something else than a kubeconfig is told as such, not by its missing fields. */
static int check_frame(const struct kubeconfig_file *file, struct err *err)
{
	const struct json *root = file->root;
	const char *kind = json_str(root, "kind"), *version = json_str(root, "apiVersion");
	static const char *const lists[] = { "clusters", "users", "contexts" };
	char shown[UTF8_SHOW_MAX];
	if (json_type(root) != JSON_OBJECT)
		return err_set(err, EINVAL, "%s is not a kubeconfig: it must be a mapping",
			       file->path);
	if (kind && *kind && strcmp(kind, "Config") != 0)
		return err_set(err, EINVAL, "%s is not a kubeconfig: kind is \"%s\", not Config",
			       file->path, utf8_show(kind, strlen(kind), shown));
	if (version && *version && strcmp(version, "v1") != 0)
		return err_set(err, EINVAL, "%s: apiVersion is \"%s\"; only v1 is known",
			       file->path, utf8_show(version, strlen(version), shown));
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		enum json_type type = json_type(root, lists[i]);
		if (type != JSON_NONE && type != JSON_NULL && type != JSON_ARRAY)
			return err_set(err, EINVAL, "%s: %s must be a list", file->path, lists[i]);
	}
	enum json_type current = json_type(root, "current-context");
	if (current != JSON_NONE && current != JSON_NULL && !json_str(root, "current-context"))
		return err_set(err, EINVAL, "%s: current-context must be a string", file->path);
	return 0;
}

int kubeconfig_add(struct kubeconfig *all, const char *path, const char *text, size_t len,
		   struct err *err)
{
	struct arena *arena = &all->config->arena;
	if (all->count == KUBE_CONFIG_MAX_FILES)
		return err_set(err, E2BIG, "KUBECONFIG names more than %d files",
			       KUBE_CONFIG_MAX_FILES);
	struct kubeconfig_file *file = &all->files[all->count];
	*file = (struct kubeconfig_file){ .path = arena_strndup(arena, path, strlen(path)),
					  .folder = folder_of(arena, path) };
	if (!file->path || !file->folder)
		return err_set(err, ENOMEM, "cannot read %s: out of memory", path);
	int result = yaml_parse(path, text, len, &limits, &file->yaml, err);
	if (result < 0)
		return result;
	all->count++;
	if (file->yaml.len > 1)
		return err_set(err, EINVAL, "%s has %zu YAML documents; a kubeconfig is one", path,
			       file->yaml.len);
	if (file->yaml.len == 0)
		return 0;
	file->root = json_root(file->yaml.items[0].doc);
	return check_frame(file, err);
}

static const char *current_context(const struct kubeconfig_file *file)
{
	const char *name = json_str(file->root, "current-context");
	return name && *name ? name : NULL;
}

bool kubeconfig_is_empty(const struct kubeconfig *all)
{
	for (size_t i = 0; i < all->count; i++) {
		const struct json *root = all->files[i].root;
		if (json_len(root, "clusters") || json_len(root, "users") ||
		    json_len(root, "contexts") || current_context(&all->files[i]))
			return false;
	}
	return true;
}

void kubeconfig_done(struct kubeconfig *all)
{
	for (size_t i = 0; i < all->count; i++)
		yaml_done(&all->files[i].yaml);
	all->count = 0;
}

/* --- Finding entries --- */

/* 1 and the entry's item, 0 if this file does not have it, -EINVAL. */
static int find_in_file(const struct kubeconfig_file *file, const char *list, const char *name,
			const struct json **ret, struct err *err)
{
	const struct json *item;
	struct json_iter items = json_items(file->root, list);
	*ret = NULL;
	for (size_t n = 0; (item = json_next(&items)); n++) {
		const char *own = json_str(item, "name");
		if (!own || !*own)
			return err_set(err, EINVAL, "%s: %s[%zu] has no name", file->path, list,
				       n);
		if (strcmp(own, name) != 0)
			continue;
		if (*ret)
			return err_set(err, EINVAL, "%s: %s has two entries \"%s\"", file->path,
				       list, name);
		*ret = item;
	}
	return *ret ? 1 : 0;
}

static const char *nearest(const struct kubeconfig *all, const char *list, const char *name)
{
	VEC(const char *) names CLEANUP(vec_cleanup) = { 0 };
	for (size_t i = 0; i < all->count; i++) {
		const struct json *item;
		struct json_iter items = json_items(all->files[i].root, list);
		while ((item = json_next(&items)) && names.len < KUBE_CONFIG_MAX_ITEMS) {
			const char *own = json_str(item, "name");
			if (own && vec_push(&names, own) < 0)
				return NULL;
		}
	}
	return suggest(name, names.items, names.len);
}

static int not_found(const struct kubeconfig *all, const char *list, const char *kind,
		     const char *name, struct err *err)
{
	struct strbuf where CLEANUP(strbuf_done) = STRBUF_INIT_MAX(200);
	char shown[UTF8_SHOW_MAX];
	const char *near = nearest(all, list, name);
	for (size_t i = 0; i < all->count; i++)
		strbuf_addf(&where, "%s%s", i ? ", " : "", all->files[i].path);
	utf8_show(name, strlen(name), shown);
	if (near)
		err_set(err, EINVAL, "%s: there is no %s \"%s\"; is it \"%s\"?", where.s, kind,
			shown, near);
	else
		err_set(err, EINVAL, "%s: there is no %s \"%s\"", where.s, kind, shown);
	return -EINVAL;
}

/* The entry of that name in the first file that has one. */
static int find(const struct kubeconfig *all, const char *list, const char *kind, const char *name,
		struct kubeconfig_entry *ret, struct err *err)
{
	for (size_t i = 0; i < all->count; i++) {
		const struct json *item;
		int found = find_in_file(&all->files[i], list, name, &item, err);
		if (found < 0)
			return found;
		if (!found)
			continue;
		*ret = (struct kubeconfig_entry){ .file = &all->files[i],
						  .kind = kind,
						  .name = json_str(item, "name"),
						  .arena = &all->config->arena };
		return kubeconfig_object(ret, item, kind, &ret->value, err);
	}
	return not_found(all, list, kind, name, err);
}

static int origin_of(const struct kubeconfig_entry *entry, const char **ret, struct err *err)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_addf(&text, "%s \"%s\" of %s", entry->kind, entry->name, entry->file->path);
	*ret = text.failed ? NULL : arena_strndup(entry->arena, text.s, text.len);
	return *ret ? 0 : err_set(err, ENOMEM, "out of memory");
}

/* --- The whole --- */

static int find_context(const struct kubeconfig *all, const char *name,
			struct kubeconfig_entry *ret, struct err *err)
{
	for (size_t i = 0; !name && i < all->count; i++)
		name = current_context(&all->files[i]);
	if (!name) {
		err_set(err, EINVAL,
			"%s: current-context is not set; set it or name a context with --context",
			all->count ? all->files[0].path : "kubeconfig");
		return -EINVAL;
	}
	return find(all, "contexts", "context", name, ret, err);
}

static int read_namespace(const struct kubeconfig_entry *entry, struct kube_config *config,
			  struct err *err)
{
	int result = kubeconfig_str(entry, entry->value, "namespace", &config->namespace, err);
	if (result < 0)
		return result;
	if (!config->namespace)
		config->namespace = "default";
	if ((result = kube_check_label_name("namespace", config->namespace, err)) < 0)
		err_prefix(err, "%s: %s \"%s\"", entry->file->path, entry->kind, entry->name);
	return result;
}

static int read_context_user(const struct kubeconfig *all, const struct kubeconfig_entry *context,
			     struct err *err)
{
	struct kubeconfig_entry user;
	const char *name;
	int result = kubeconfig_str(context, context->value, "user", &name, err);
	if (result < 0)
		return result;
	if (!name) { /* anonymous, say to kubectl proxy */
		all->config->user_origin = "nobody (the context names no user)";
		return 0;
	}
	if ((result = find(all, "users", "user", name, &user, err)) < 0 ||
	    (result = origin_of(&user, &all->config->user_origin, err)) < 0)
		return result;
	return kubeconfig_read_user(&user, all->config, err);
}

int kubeconfig_read(struct kubeconfig *all, const char *context_name, const char *master,
		    struct err *err)
{
	struct kube_config *config = all->config;
	struct kubeconfig_entry context, cluster;
	const char *name;
	int result;
	if ((result = find_context(all, context_name, &context, err)) < 0 ||
	    (result = kubeconfig_str(&context, context.value, "cluster", &name, err)) < 0)
		return result;
	if (!name)
		return kubeconfig_wrong(&context, err, "cluster is missing");
	if ((result = find(all, "clusters", "cluster", name, &cluster, err)) < 0 ||
	    (result = origin_of(&cluster, &config->cluster_origin, err)) < 0 ||
	    (result = kubeconfig_read_cluster(&cluster, master, config, err)) < 0 ||
	    (result = read_namespace(&context, config, err)) < 0 ||
	    (result = read_context_user(all, &context, err)) < 0)
		return result;
	if (config->exec && config->exec->provide_cluster_info)
		return kubeconfig_read_extension(&cluster, config, err);
	return 0;
}
