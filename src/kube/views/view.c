/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/views/view.h"

#include "base/err.h"
#include "kube/timestamp.h"
#include "wire/json.h"
#include "wire/quantity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

int view_wrong(const struct view_field *field, const char *what, struct err *err)
{
	const char *namespace = or_empty(json_str(field->object, "metadata", "namespace"));
	const char *name = or_empty(json_str(field->object, "metadata", "name"));
	return err_set(err, EINVAL, "%s %.63s%s%.253s: %s%s%s is %s", field->kind, namespace,
		       *namespace ? "/" : "", name, field->parent ? field->parent : "",
		       field->parent ? "." : "", field->name, what);
}

const struct json *view_get(const struct view_field *field)
{
	const struct json *value = field->parent
					   ? json_get(field->object, field->parent, field->name)
					   : json_get(field->object, field->name);
	return json_type(value) == JSON_NULL ? NULL : value;
}

int view_str(const struct view_field *field, const char **ret, struct err *err)
{
	const struct json *value = view_get(field);
	const char *text = json_str(value);
	if (value && !text)
		return view_wrong(field, "no string", err);
	*ret = or_empty(text);
	return 0;
}

int view_bool(const struct view_field *field, bool *ret, struct err *err)
{
	*ret = false;
	if (json_bool(view_get(field), ret) == -EINVAL)
		return view_wrong(field, "neither true nor false", err);
	return 0;
}

int view_i64(const struct view_field *field, int64_t min, int64_t max, int64_t otherwise,
	     int64_t *ret, struct err *err)
{
	int64_t number = otherwise;
	char what[96];
	int rc = json_i64(view_get(field), &number);
	if (rc == -EINVAL)
		return view_wrong(field, "no whole number", err);
	if (rc == 0 && (number < min || number > max)) {
		snprintf(what, sizeof(what), "%lld, which is not between %lld and %lld",
			 (long long)number, (long long)min, (long long)max);
		return view_wrong(field, what, err);
	}
	*ret = number;
	return 0;
}

int view_time(const struct view_field *field, int64_t *ret_ns, struct err *err)
{
	const char *text = "";
	int64_t ns = VIEW_TIME_NONE;
	int rc = view_str(field, &text, err);
	if (rc < 0)
		return rc;
	if (*text && timestamp_parse(text, strlen(text), &ns) < 0)
		return view_wrong(field, "no time that we can read", err);
	*ret_ns = ns;
	return 0;
}

int view_quantity(const struct view_field *field, int64_t otherwise, int64_t *ret, struct err *err)
{
	const struct json *value = view_get(field);
	struct quantity quantity;
	if (value && quantity_from_json(value, &quantity, NULL) < 0)
		return view_wrong(field, "no quantity", err);
	*ret = value ? quantity_value(quantity) : otherwise;
	return 0;
}

int view_word(const struct view_field *field, const char *const *words, int *ret, struct err *err)
{
	const char *text = "";
	int rc = view_str(field, &text, err);
	*ret = 0;
	for (int i = 0; rc == 0 && words[i]; i++)
		if (strcmp(words[i], text) == 0)
			*ret = i + 1;
	return rc;
}

enum view_condition view_condition(const struct json *object, const char *type,
				   const char **reason)
{
	struct json_iter iter = json_items(object, "status", "conditions");
	if (reason)
		*reason = "";
	for (const struct json *item; (item = json_next(&iter));) {
		const char *own = json_str(item, "type"), *status = json_str(item, "status");
		if (!own || strcmp(own, type) != 0)
			continue;
		if (reason)
			*reason = or_empty(json_str(item, "reason"));
		if (status && strcmp(status, "True") == 0)
			return VIEW_TRUE;
		return status && strcmp(status, "False") == 0 ? VIEW_FALSE : VIEW_UNKNOWN;
	}
	return VIEW_ABSENT;
}

int view_meta_read(const struct json *object, const char *kind, struct view_meta *ret,
		   struct err *err)
{
	struct view_field field = { object, kind, "metadata", "name" };
	struct view_meta meta = { .name = "" };
	int rc = view_str(&field, &meta.name, err);
	if (rc < 0)
		return rc;
	if (!*meta.name)
		return err_set(err, EINVAL, "a %s has no metadata.name", kind);
	meta.namespace = or_empty(json_str(object, "metadata", "namespace"));
	meta.version = or_empty(json_str(object, "metadata", "resourceVersion"));
	field.name = "uid";
	if ((rc = view_str(&field, &meta.uid, err)) < 0)
		return rc;
	field.name = "generation";
	if ((rc = view_i64(&field, 0, INT64_MAX, 0, &meta.generation, err)) < 0)
		return rc;
	field.name = "creationTimestamp";
	if ((rc = view_time(&field, &meta.created_ns, err)) < 0)
		return rc;
	field.name = "deletionTimestamp";
	meta.deleting = view_get(&field) != NULL;
	if ((rc = view_time(&field, &meta.deleted_ns, err)) < 0)
		return rc;
	*ret = meta;
	return 0;
}

void view_controller_read(const struct json *object, struct view_controller *ret)
{
	struct json_iter iter = json_items(object, "metadata", "ownerReferences");
	*ret = (struct view_controller){ "", "", "", "" };
	for (const struct json *item; (item = json_next(&iter));) {
		bool controller = false;
		if (json_bool(item, &controller, "controller") < 0 || !controller)
			continue;
		ret->api_version = or_empty(json_str(item, "apiVersion"));
		ret->kind = or_empty(json_str(item, "kind"));
		ret->name = or_empty(json_str(item, "name"));
		ret->uid = or_empty(json_str(item, "uid"));
		return;
	}
}
