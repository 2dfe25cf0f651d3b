/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/object.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/keep.h"
#include "kube/packed.h"
#include "wire/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A field of metadata: "" if it is not there. */
static int read_field(const struct json *metadata, const char *field, size_t max, const char **ret,
		      struct err *err)
{
	const struct json *value = json_get(metadata, field);
	const char *text = json_str(value);
	if (!text && json_type(value) > JSON_NULL)
		return err_set(err, EINVAL, "an object whose metadata.%s is no string", field);
	*ret = text ? text : "";
	if (strlen(*ret) > max)
		return err_set(err, EINVAL, "an object whose metadata.%s has more than %zu bytes",
			       field, max);
	return 0;
}

int kube_meta_read(const struct json *object, struct kube_meta *ret, struct err *err)
{
	const struct json *metadata = json_get(object, "metadata");
	struct kube_meta meta = { "", "", "", "" };
	int rc;
	if ((rc = read_field(metadata, "namespace", KUBE_NAMESPACE_MAX, &meta.namespace, err)) <
		    0 ||
	    (rc = read_field(metadata, "name", KUBE_NAME_MAX, &meta.name, err)) < 0 ||
	    (rc = read_field(metadata, "uid", KUBE_UID_MAX, &meta.uid, err)) < 0 ||
	    (rc = read_field(metadata, "resourceVersion", KUBE_VERSION_MAX, &meta.version, err)) <
		    0)
		return rc;
	if (!*meta.name)
		return err_set(err, EINVAL, "an object without metadata.name");
	if (!*meta.version)
		return err_set(err, EINVAL, "%s: an object without metadata.resourceVersion",
			       meta.name);
	*ret = meta;
	return 0;
}

/* Appends a string with its NUL. */
static void add_string(struct strbuf *out, const char *s)
{
	strbuf_add(out, s, strlen(s) + 1);
}

/* A buffer that need not grow for an object of the usual size. */
static struct strbuf buffer_of(size_t cap, size_t max)
{
	struct strbuf buffer = { .s = malloc(cap), .cap = cap, .max = max };
	if (!buffer.s)
		return (struct strbuf)STRBUF_INIT_MAX(max); /* tries again when it is used */
	buffer.s[0] = '\0';
	return buffer;
}

/* Of strings that are in memory: the sum fits into a size_t. */
static uint32_t annotations_bytes(const struct json *object)
{
	struct json_iter iter = json_members(object, "metadata", "annotations");
	struct json_member member;
	size_t bytes = 0, len;
	while (json_next_member(&iter, &member)) {
		bytes += member.key_len;
		if (json_strn(member.value, &len))
			bytes += len;
	}
	return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

/* The strings lie one after the other behind the struct. */
static void point_into(struct kube_object *object, size_t bytes)
{
	const char *at = (const char *)(object + 1);
	object->namespace = at;
	object->name = at += strlen(at) + 1;
	object->uid = at += strlen(at) + 1;
	object->version = at += strlen(at) + 1;
	object->packed = at += strlen(at) + 1;
	object->packed_len = (uint32_t)(bytes - (size_t)(at - (const char *)object));
	object->bytes = (uint32_t)bytes;
}

int kube_object_new(const struct json *object, const struct keep *keep, struct kube_object **ret,
		    struct err *err)
{
	static const struct kube_object empty;
	struct kube_meta meta = { "", "", "", "" };
	int rc = kube_meta_read(object, &meta, err);
	if (rc < 0)
		return rc;
	/* The output is the memory of the object itself: nothing is copied at the end. */
	struct strbuf out CLEANUP(strbuf_done) = buffer_of(1024, KUBE_KEPT_MAX);
	errno = 0; /* tells a buffer that is full from one that could not grow */
	strbuf_add(&out, (const char *)&empty, sizeof(empty));
	add_string(&out, meta.namespace);
	add_string(&out, meta.name);
	add_string(&out, meta.uid);
	add_string(&out, meta.version);
	keep_pack(keep, object, &meta, &out);
	if (out.failed && errno == ENOMEM)
		return err_set(err, ENOMEM, "out of memory");
	if (out.failed)
		return err_set(err, E2BIG, "%s: more than %zu bytes of it would be kept",
			       meta.name, KUBE_KEPT_MAX);
	struct kube_object *made = realloc(out.s, out.len);
	if (!made)
		return err_set(err, ENOMEM, "out of memory");
	point_into(made, out.len);
	made->annotations_bytes = annotations_bytes(object);
	out = (struct strbuf)STRBUF_INIT; /* not ours any more */
	*ret = made;
	return 0;
}

void kube_object_free(struct kube_object *object)
{
	free(object);
}

void kube_object_freep(struct kube_object **object)
{
	kube_object_free(*object);
}

void kube_object_write_json(const struct kube_object *object, struct strbuf *out)
{
	struct packed_names names = { object->name, object->namespace, object->uid };
	packed_write_json(object->packed, object->packed_len, &names, out);
}

int kube_object_parse(const struct kube_object *object, struct json_doc **ret)
{
	size_t guess = (size_t)object->packed_len * 5 + 256;
	struct strbuf text CLEANUP(strbuf_done) = buffer_of(guess, STRBUF_MAX_DEFAULT);
	kube_object_write_json(object, &text);
	if (text.failed)
		return -ENOMEM;
	return json_parse(object->name, text.s, text.len, NULL, ret, NULL) < 0 ? -ENOMEM : 0;
}
