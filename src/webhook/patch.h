/* SPDX-License-Identifier: Apache-2.0 */
/* patch.h - writing a JSON patch (RFC 6902).
 *
 *	struct patch patch CLEANUP(patch_done) = PATCH_INIT;
 *	struct patch_path spec = patch_key(PATCH_ROOT, "spec");
 *	json_add_str(patch_add(&patch, patch_key(spec, "schedulerName")), "gpu-scheduler");
 *	patch_end(&patch);
 *
 * writes [{"op":"add","path":"/spec/schedulerName","value":"gpu-scheduler"}].  Operations
 * are applied in their order, so each path is that of the document as the ones before it
 * left it.
 */
#ifndef GS_WEBHOOK_PATCH_H
#define GS_WEBHOOK_PATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "wire/json_write.h"

struct json;

#define PATCH_PATH_MAX 192 /* our paths are short: fixed names, indexes, keys of ours */
#define PATCH_MAX      ((size_t)3 << 20) /* bytes of the whole */

/* A place in the document.  A plain value: longer ones are made from shorter ones. */
struct patch_path {
	size_t len;
	char text[PATCH_PATH_MAX];
};

extern const struct patch_path PATCH_ROOT;

struct patch {
	struct strbuf text;
	struct json_writer writer;
	bool open;
	struct patch_path guard_path;
	const char *guard; /* NULL: none is waiting */
};

#define PATCH_INIT                                 \
	{                                          \
		.text = STRBUF_INIT_MAX(PATCH_MAX) \
	}

void patch_done(struct patch *patch);

/* Below it; '/' and '~' are escaped.  What does not fit is our mistake and asserted. */
struct patch_path patch_key(struct patch_path path, const char *key);
struct patch_path patch_index(struct patch_path path, size_t index);

/* The caller writes the value, one, and calls patch_end().  Adding to a list inserts
 * before that index. */
struct json_writer *patch_add(struct patch *patch, struct patch_path path);
struct json_writer *patch_replace(struct patch *patch, struct patch_path path);
void patch_end(struct patch *patch);

/* Either of the two: `before` is the value that is there now, or NULL. */
struct json_writer *patch_set(struct patch *patch, struct patch_path path,
			      const struct json *before);

void patch_remove(struct patch *patch, struct patch_path path);

/* The patch fails as a whole if there is another string at the path. */
void patch_test(struct patch *patch, struct patch_path path, const char *value);

/* The same just before the next operation, if one comes before the next guard.  The value is
 * borrowed; NULL: no guard. */
void patch_guard(struct patch *patch, struct patch_path path, const char *value);

bool patch_is_empty(const struct patch *patch);

/* Whether something did not fit: patch_text() is going to be NULL. */
bool patch_is_full(const struct patch *patch);

/* The text, closed; nothing can be added any more.  NULL: it did not fit. */
const char *patch_text(struct patch *patch, size_t *len);

#endif
