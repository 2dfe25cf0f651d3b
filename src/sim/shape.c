/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/shape.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/suggest.h"
#include "wire/json.h"

#define KEYS_MAX  64
#define TYPES_MAX 5

static const struct {
	enum json_type json;
	const char *name;
} types[TYPES_MAX] = {
	{ JSON_BOOL, "true or false" }, { JSON_NUMBER, "a number" },  { JSON_STRING, "a string" },
	{ JSON_ARRAY, "a list" },	{ JSON_OBJECT, "an object" },
};

static unsigned type_of(const struct json *value)
{
	for (unsigned i = 0; i < TYPES_MAX; i++)
		if (types[i].json == json_type(value))
			return i;
	return TYPES_MAX;
}

const char *shape_name(const struct json *value)
{
	unsigned type = type_of(value);

	return type == TYPES_MAX ? "nothing" : types[type].name;
}

static int refuse_key(const char *key, const struct shape_key *keys, struct err *err)
{
	const char *names[KEYS_MAX];
	size_t count = 0;

	for (; keys->name && count < KEYS_MAX; keys++)
		names[count++] = keys->name;
	const char *near = suggest(key, names, count);
	return err_set(err, EINVAL, "%.60s is unknown%s%s%s", key, near ? ", did you mean " : "",
		       near ? near : "", near ? "?" : "");
}

static int refuse_type(const struct shape_key *key, const struct json *value, struct err *err)
{
	const char *text = json_str(value);
	char wanted[128] = "";
	size_t n = 0;

	for (unsigned i = 0; i < TYPES_MAX; i++)
		if (key->types >> i & 1)
			n += (size_t)snprintf(wanted + n, sizeof(wanted) - n, "%s%s",
					      n ? " or " : "", types[i].name);
	return err_set(err, EINVAL, "%s must be %s, not %s%s%.40s%s", key->name, wanted,
		       shape_name(value), text ? " (\"" : "", text ? text : "", text ? "\")" : "");
}

int shape_check(const struct json *object, const struct shape_key *keys, struct err *err)
{
	struct json_iter iter = json_members(object);
	struct json_member m;

	while (json_next_member(&iter, &m)) {
		const struct shape_key *key = keys;

		while (key->name && strcmp(key->name, m.key) != 0)
			key++;
		if (!key->name)
			return refuse_key(m.key, keys, err);
		if (json_type(m.value) != JSON_NULL && !(key->types >> type_of(m.value) & 1))
			return refuse_type(key, m.value, err);
	}
	return 0;
}
