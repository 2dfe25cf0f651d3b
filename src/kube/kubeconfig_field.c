/* SPDX-License-Identifier: Apache-2.0 */
/* kubeconfig_field.c - fields of an entry, by type. */
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/base64.h"
#include "kube/kubeconfig.h"
#include "wire/json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int kubeconfig_wrong(const struct kubeconfig_entry *entry, struct err *err, const char *format,
		     ...)
{
	char text[ERR_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return err_set(err, EINVAL, "%s: %s \"%s\": %s", entry->file->path, entry->kind,
		       entry->name, text);
}

int kubeconfig_wrong_field(const struct kubeconfig_entry *entry, const char *key, struct err *err)
{
	return err_prefix(err, "%s: %s \"%s\": %s", entry->file->path, entry->kind, entry->name,
			  key);
}

static int out_of_memory(const struct kubeconfig_entry *entry, struct err *err)
{
	return err_set(err, ENOMEM, "%s: %s \"%s\" is too big to be read", entry->file->path,
		       entry->kind, entry->name);
}

/* JSON_NONE also for null, which says as much. */
static enum json_type type_of(const struct json *object, const char *key)
{
	enum json_type type = json_type(object, key);
	return type == JSON_NULL ? JSON_NONE : type;
}

int kubeconfig_str(const struct kubeconfig_entry *entry, const struct json *object,
		   const char *key, const char **ret, struct err *err)
{
	size_t len = 0;
	const char *s = json_strn(object, &len, key);
	*ret = NULL;
	if (type_of(object, key) == JSON_NONE || (s && len == 0))
		return 0;
	if (!s)
		return kubeconfig_wrong(entry, err, "%s must be a string (put it in quotes)", key);
	if (memchr(s, '\0', len))
		return kubeconfig_wrong(entry, err, "%s has a NUL character in it", key);
	*ret = arena_strndup(entry->arena, s, len);
	return *ret ? 0 : out_of_memory(entry, err);
}

int kubeconfig_bool(const struct kubeconfig_entry *entry, const struct json *object,
		    const char *key, bool *ret, struct err *err)
{
	*ret = false;
	if (json_bool(object, ret, key) == -EINVAL)
		return kubeconfig_wrong(entry, err, "%s must be true or false", key);
	return 0;
}

static int container(const struct kubeconfig_entry *entry, const struct json *object,
		     const char *key, enum json_type type, const struct json **ret,
		     struct err *err)
{
	enum json_type actual = type_of(object, key);
	*ret = NULL;
	if (actual == JSON_NONE)
		return 0;
	if (actual != type)
		return kubeconfig_wrong(entry, err, "%s must be a %s", key,
					type == JSON_ARRAY ? "list" : "mapping");
	*ret = json_get(object, key);
	if (json_len(*ret) > KUBE_CONFIG_MAX_ITEMS)
		return kubeconfig_wrong(entry, err, "%s has more than %d items", key,
					KUBE_CONFIG_MAX_ITEMS);
	return 0;
}

int kubeconfig_object(const struct kubeconfig_entry *entry, const struct json *object,
		      const char *key, const struct json **ret, struct err *err)
{
	return container(entry, object, key, JSON_OBJECT, ret, err);
}

int kubeconfig_array(const struct kubeconfig_entry *entry, const struct json *object,
		     const char *key, const struct json **ret, struct err *err)
{
	return container(entry, object, key, JSON_ARRAY, ret, err);
}

int kubeconfig_strings(const struct kubeconfig_entry *entry, const struct json *object,
		       const char *key, const char *const **ret, size_t *count, struct err *err)
{
	const struct json *list, *item;
	*ret = NULL;
	*count = 0;
	int result = kubeconfig_array(entry, object, key, &list, err);
	if (result < 0 || !list)
		return result;
	const char **strings = arena_array(entry->arena, json_len(list) + 1, sizeof(*strings));
	if (!strings)
		return out_of_memory(entry, err);
	struct json_iter items = json_items(list);
	for (size_t n = 0; (item = json_next(&items)); n++) {
		const char *s = json_str(item);
		if (!s)
			return kubeconfig_wrong(entry, err, "%s[%zu] must be a string", key, n);
		strings[n] = arena_strndup(entry->arena, s, strlen(s));
		if (!strings[n])
			return out_of_memory(entry, err);
	}
	*ret = strings;
	*count = json_len(list);
	return 0;
}

int kubeconfig_header(const struct kubeconfig_entry *entry, const struct json *object,
		      const char *key, const char **ret, struct err *err)
{
	int result = kubeconfig_str(entry, object, key, ret, err);
	if (result < 0 || !*ret)
		return result;
	if (strlen(*ret) > KUBE_TOKEN_MAX_BYTES)
		return kubeconfig_wrong(entry, err, "%s has more than %zu bytes", key,
					KUBE_TOKEN_MAX_BYTES);
	for (const char *c = *ret; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return kubeconfig_wrong(
				entry, err, "%s has a control character or line end in it", key);
	return 0;
}

int kubeconfig_path(const struct kubeconfig_entry *entry, const struct json *object,
		    const char *key, const char **ret, struct err *err)
{
	int result = kubeconfig_str(entry, object, key, ret, err);
	if (result < 0 || !*ret || **ret == '/')
		return result;
	struct strbuf path CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_addf(&path, "%s/%s", entry->file->folder, *ret);
	*ret = path.failed ? NULL : arena_strndup(entry->arena, path.s, path.len);
	return *ret ? 0 : out_of_memory(entry, err);
}

int kubeconfig_data(const struct kubeconfig_entry *entry, const struct json *object,
		    const char *key, int (*check)(const char *text, size_t len, struct err *err),
		    const char **ret, struct err *err)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT_MAX(KUBE_PEM_MAX_BYTES);
	const char *base64;
	*ret = NULL;
	int result = kubeconfig_str(entry, object, key, &base64, err);
	if (result < 0 || !base64)
		return result;
	result = base64_decode(&text, base64, strlen(base64));
	if (result == -EINVAL && strstr(base64, "-----BEGIN"))
		return kubeconfig_wrong(entry, err, "%s must be the base64 of PEM, not PEM itself",
					key);
	if (result == -EINVAL)
		return kubeconfig_wrong(entry, err, "%s is not proper base64", key);
	if (result < 0)
		return kubeconfig_wrong(entry, err, "%s has more than %zu bytes", key,
					KUBE_PEM_MAX_BYTES);
	if ((result = check(text.s, text.len, err)) < 0) {
		kubeconfig_wrong_field(entry, key, err);
		return result;
	}
	*ret = arena_strndup(entry->arena, text.s, text.len);
	return *ret ? 0 : out_of_memory(entry, err);
}
