/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/guard.h"

#include <errno.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/utf8.h"
#include "dialect/annotations.h"
#include "dialect/keys.h"
#include "webhook/literal.h"
#include "webhook/variables.h"
#include "wire/json.h"

#define FIELD_BEGIN "metadata.annotations['" KEY_CONTAINER_PREFIX
#define FIELD_END   "']"

/* Keys for names past NAME_MAX: so much of the name, '-', and a hash (annotations.h). */
#define NAME_MAX_PLAIN 53
#define NAME_KEPT      36
#define HASH_DIGITS    16

bool guard_is_decision(const char *key)
{
	return annotation_is_decision(key);
}

/* The first decision of `one` that the other has not, or has otherwise. */
static const char *first_missing(const struct json *one, const struct json *other)
{
	struct json_iter iter = json_members(one);
	struct json_member m;

	while (json_next_member(&iter, &m))
		if (guard_is_decision(m.key) && !json_equal(m.value, json_get(other, m.key)))
			return m.key;
	return NULL;
}

const char *guard_decision_changed(const struct json *old, const struct json *object)
{
	const struct json *before = json_get(old, "metadata", "annotations");
	const struct json *after = json_get(object, "metadata", "annotations");
	const char *key = first_missing(after, before);

	return key ? key : first_missing(before, after);
}

static bool is_device_variable(const char *name)
{
	return name && (strcmp(name, VARIABLE_CUDA) == 0 || strcmp(name, VARIABLE_NVIDIA) == 0);
}

static bool hides_all(const char *value)
{
	static const char *const words[] = { "", "-1", "none", VALUE_NOTHING };

	for (unsigned i = 0; i < ARRAY_SIZE(words); i++)
		if (strcmp(words[i], value) == 0)
			return true;
	return false;
}

/* The hash itself is not computed: a policy of the API server could not, and the worst is
 * that one container of the pod sees what another of the same long name does. */
static bool is_long_field(const char *name, const char *path)
{
	const size_t begin = sizeof(FIELD_BEGIN) - 1;
	const char *rest = path + begin;

	return strncmp(path, FIELD_BEGIN, begin) == 0 && strncmp(rest, name, NAME_KEPT) == 0 &&
	       rest[NAME_KEPT] == '-' &&
	       strspn(rest + NAME_KEPT + 1, "0123456789abcdef") == HASH_DIGITS &&
	       strcmp(rest + NAME_KEPT + 1 + HASH_DIGITS, FIELD_END) == 0;
}

static bool is_own_field(const char *name, const char *path)
{
	char own[FIELD_PATH_MAX];

	if (!name || !path)
		return false;
	if (strlen(name) > NAME_MAX_PLAIN)
		return is_long_field(name, path);
	return strcmp(variable_field_path(name, own), path) == 0;
}

static bool is_allowed(const struct json *entry, const struct json *container,
		       const struct guard_allows *allows)
{
	const char *value = json_str(entry, "value");
	const struct json *source = json_get(entry, "valueFrom");
	bool cuda = strcmp(json_str(entry, "name"), VARIABLE_CUDA) == 0;

	if (json_type(source) == JSON_OBJECT)
		return (cuda || allows->nvidia) &&
		       is_own_field(json_str(container, "name"),
				    json_str(source, "fieldRef", "fieldPath"));
	if (json_type(entry, "value") <= JSON_NULL)
		return true;
	if (!value)
		return false;
	return hides_all(value) || (cuda && allows->given && literal_is(*allows->given, value));
}

int guard_variables(const struct json *container, const struct guard_allows *allows,
		    struct err *err)
{
	struct json_iter iter = json_items(container, "env");
	const struct json *entry;
	char shown[UTF8_SHOW_MAX];

	while ((entry = json_next(&iter))) {
		const char *name = json_str(entry, "name");
		const char *own = json_str(container, "name");

		if (!is_device_variable(name) || is_allowed(entry, container, allows))
			continue;
		return err_set(err, EINVAL,
			       "container %s: %s is not for users to set, the scheduler decides "
			       "which GPUs it sees: leave it out",
			       utf8_show(own ? own : "", own ? strlen(own) : 0, shown), name);
	}
	return 0;
}

bool guard_is_told(const struct json *container)
{
	struct json_iter iter = json_items(container, "env");

	for (const struct json *entry; (entry = json_next(&iter));) {
		const char *name = json_str(entry, "name");

		if (name && strcmp(name, VARIABLE_CUDA) == 0)
			return true;
	}
	return false;
}

bool guard_asks_anew(const struct json *old, const struct json *object)
{
	static const char *const keys[] = { KEY_CLAIM, KEY_MAP, KEY_GPU_COUNT };

	for (unsigned i = 0; i < ARRAY_SIZE(keys); i++)
		if (json_get(object, "metadata", "annotations", keys[i]) &&
		    !json_get(old, "metadata", "annotations", keys[i]))
			return true;
	return false;
}

/* Both there and the same, or neither. */
static bool is_same(const struct json *a, const struct json *b)
{
	return a && b ? json_equal(a, b) : a == b;
}

/* The next owner whose kind says how the pod is named; NULL: none is left. */
static const char *next_kind(struct json_iter *iter)
{
	for (const struct json *owner; (owner = json_next(iter));) {
		const char *kind = json_str(owner, "kind");

		if (kind && (strcmp(kind, "StatefulSet") == 0 || strcmp(kind, "ReplicaSet") == 0 ||
			     strcmp(kind, "Job") == 0))
			return kind;
	}
	return NULL;
}

static bool same_owners(const struct json *old, const struct json *object)
{
	struct json_iter before = json_items(old, "metadata", "ownerReferences");
	struct json_iter after = json_items(object, "metadata", "ownerReferences");

	for (;;) {
		const char *one = next_kind(&before), *other = next_kind(&after);

		if (!one || !other)
			return one == other;
		if (strcmp(one, other) != 0)
			return false;
	}
}

bool guard_ids_moved(const struct json *old, const struct json *object)
{
	static const struct {
		const char *part, *key;
	} sources[] = {
		{ "annotations", KEY_MAP },
		{ "annotations", KEY_CLAIM },
		{ "annotations", KEY_COMPLETION_INDEX },
		{ "labels", KEY_POD_INDEX },
		{ "labels", KEY_COMPLETION_INDEX },
		{ "labels", KEY_TEMPLATE_HASH },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(sources); i++)
		if (!is_same(json_get(old, "metadata", sources[i].part, sources[i].key),
			     json_get(object, "metadata", sources[i].part, sources[i].key)))
			return true;
	return !is_same(json_get(old, "metadata", "generateName"),
			json_get(object, "metadata", "generateName")) ||
	       !same_owners(old, object);
}
