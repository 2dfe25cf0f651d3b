/* SPDX-License-Identifier: Apache-2.0 */
/* Any document becomes a record whose kept fields can be read, or one sentence; and what is
 * kept whole comes back as it was.  The first byte chooses the kind; 255: the rest are paths,
 * one a line. */
#include "fuzz.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/keep.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "wire/json.h"

#include <errno.h>
#include <string.h>

#define PATHS_MAX 64

static void try_paths(const char *text, size_t size)
{
	struct strbuf lines CLEANUP(strbuf_done) = STRBUF_INIT;
	struct keep *keep CLEANUP(keep_freep) = NULL;
	const char *paths[PATHS_MAX + 1] = { NULL };
	size_t count = 0;

	strbuf_add(&lines, text, size);
	strbuf_putc(&lines, '\n'); /* its own memory, also if there is nothing */
	char *at = lines.s;
	for (char *line; count < PATHS_MAX && (line = strsep(&at, "\n"));)
		paths[count++] = line;
	int rc = keep_new(paths, &keep, NULL);
	REQUIRE(rc == 0 || rc == -EINVAL || rc == -ENOMEM);
	REQUIRE((rc == 0) == (keep != NULL));
}

static void check_names(const struct kube_object *object)
{
	REQUIRE(strlen(object->name) > 0 && strlen(object->name) <= KUBE_NAME_MAX);
	REQUIRE(strlen(object->namespace) <= KUBE_NAMESPACE_MAX);
	REQUIRE(strlen(object->uid) <= KUBE_UID_MAX);
	REQUIRE(strlen(object->version) > 0 && strlen(object->version) <= KUBE_VERSION_MAX);
	REQUIRE(object->packed + object->packed_len == (const char *)object + object->bytes);
}

/* The record of the document, and its kept fields read again; NULL if it is refused. */
static struct json_doc *keep_some(const struct json *document, const char *const *paths)
{
	struct kube_object *object CLEANUP(kube_object_freep) = NULL;
	struct keep *keep CLEANUP(keep_freep) = NULL;
	struct json_doc *doc = NULL;
	struct err err = ERR_INIT;

	REQUIRE(keep_new(paths, &keep, NULL) == 0);
	int rc = kube_object_new(document, keep, &object, &err);
	REQUIRE(rc == 0 || (rc == -EINVAL && err.text[0]));
	if (rc < 0)
		return NULL;
	check_names(object);
	REQUIRE(kube_object_parse(object, &doc) == 0);
	REQUIRE(json_type(json_root(doc)) == JSON_OBJECT);
	return doc;
}

/* Objects with a key twice are equal to nothing, not even to themselves. */
static void check_whole(const struct json *document)
{
	static const char *const fields[] = { "metadata", "spec", "status", "data", NULL };
	struct json_doc *doc CLEANUP(json_doc_freep) = keep_some(document, fields);

	for (size_t i = 0; doc && fields[i]; i++) {
		const struct json *before = json_get(document, fields[i]);
		const struct json *after = json_get(json_root(doc), fields[i]);

		REQUIRE(json_type(before) == json_type(after));
		if (before && json_equal(before, before))
			REQUIRE(json_equal(before, after));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;

	if (size < 1)
		return 0;
	const char *text = (const char *)data + 1;
	if (data[0] == 255) {
		try_paths(text, size - 1);
		return 0;
	}
	if (json_parse("fuzz", text, size - 1, NULL, &doc, NULL) < 0)
		return 0;
	json_doc_free(keep_some(json_root(doc), kube_kinds[data[0] % KUBE_KINDS].keep));
	check_whole(json_root(doc));
	return 0;
}
