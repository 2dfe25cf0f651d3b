/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/patch.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const struct patch_path PATCH_ROOT = { 0, "" };

void patch_done(struct patch *patch)
{
	strbuf_done(&patch->text);
}

static void path_putc(struct patch_path *path, char c)
{
	assert(path->len + 1 < sizeof(path->text));
	path->text[path->len++] = c;
	path->text[path->len] = '\0';
}

struct patch_path patch_key(struct patch_path path, const char *key)
{
	path_putc(&path, '/');
	for (; *key; key++) {
		if (*key == '/' || *key == '~')
			path_putc(&path, '~');
		path_putc(&path, (char)(*key == '/' ? '1' : *key == '~' ? '0' : *key));
	}
	return path;
}

struct patch_path patch_index(struct patch_path path, size_t index)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%zu", index);
	return patch_key(path, digits);
}

static void put_guard(struct patch *patch)
{
	const char *value = patch->guard;

	patch->guard = NULL;
	if (value)
		patch_test(patch, patch->guard_path, value);
}

/* The beginning of an operation, up to and without its value. */
static void begin(struct patch *patch, const char *operation, const struct patch_path *path)
{
	struct json_writer *w = &patch->writer;

	assert(!patch->open);
	put_guard(patch);
	if (patch_is_empty(patch)) {
		w->out = &patch->text;
		json_open_array(w);
	}
	json_open_object(w);
	json_add_key(w, "op");
	json_add_str(w, operation);
	json_add_key(w, "path");
	json_add_strn(w, path->text, path->len);
	patch->open = true;
}

void patch_end(struct patch *patch)
{
	assert(patch->open);
	json_close_object(&patch->writer);
	patch->open = false;
}

static struct json_writer *begin_value(struct patch *patch, const char *operation,
				       const struct patch_path *path)
{
	begin(patch, operation, path);
	json_add_key(&patch->writer, "value");
	return &patch->writer;
}

struct json_writer *patch_add(struct patch *patch, struct patch_path path)
{
	return begin_value(patch, "add", &path);
}

struct json_writer *patch_replace(struct patch *patch, struct patch_path path)
{
	return begin_value(patch, "replace", &path);
}

struct json_writer *patch_set(struct patch *patch, struct patch_path path,
			      const struct json *before)
{
	return begin_value(patch, before ? "replace" : "add", &path);
}

void patch_remove(struct patch *patch, struct patch_path path)
{
	begin(patch, "remove", &path);
	patch_end(patch);
}

void patch_test(struct patch *patch, struct patch_path path, const char *value)
{
	json_add_str(begin_value(patch, "test", &path), value);
	patch_end(patch);
}

void patch_guard(struct patch *patch, struct patch_path path, const char *value)
{
	patch->guard_path = path;
	patch->guard = value;
}

bool patch_is_empty(const struct patch *patch)
{
	return !patch->writer.out;
}

bool patch_is_full(const struct patch *patch)
{
	return patch->text.failed;
}

const char *patch_text(struct patch *patch, size_t *len)
{
	assert(!patch_is_empty(patch) && !patch->open);
	json_close_array(&patch->writer);
	*len = patch->text.len;
	return patch->text.failed ? NULL : patch->text.s;
}
