/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - what all views have in common.
 *
 * A view is a plain struct read from a document, at the event or from what a cache keeps
 * alike: status and identity; what pods ask for is read by dialect/.  Strings and JSON
 * values are borrowed from the document.  Unknown fields are ignored, missing ones have
 * the defaults that each header names.  A field of the wrong type is an error where a
 * guess could do harm (a bound pod taken for a free one), and one sentence says which:
 * "Pod ml/train-0: spec.nodeName is no string".
 */
#ifndef GS_KUBE_VIEWS_VIEW_H
#define GS_KUBE_VIEWS_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct json;

#define VIEW_TIME_NONE INT64_MIN

/* Nanoseconds since 1970 are signed: a time that is not there is VIEW_TIME_NONE. */
struct view_meta {
	const char *namespace, *name, *uid; /* "" if not there */
	const char *version; /* "" in what a cache keeps: kube_object.version has it */
	int64_t created_ns;
	int64_t deleted_ns; /* when its deletion was asked for, plus grace; or none */
	int64_t generation; /* 0 if not there */
	bool deleting;
};

/* The owner that has `controller: true`; all "" without one. */
struct view_controller {
	const char *api_version, *kind, *name, *uid;
};

/* Status of a condition. */
enum view_condition { VIEW_ABSENT, VIEW_FALSE, VIEW_TRUE, VIEW_UNKNOWN };

/* -EINVAL without a name. */
int view_meta_read(const struct json *object, const char *kind, struct view_meta *ret,
		   struct err *err);
void view_controller_read(const struct json *object, struct view_controller *ret);

/* For the views: a field of an object that errors can name. */
struct view_field {
	const struct json *object;
	const char *kind;
	const char *parent; /* "spec", NULL: the field stands at the top */
	const char *name;
};

/* The value, NULL if it is not there or null. */
const struct json *view_get(const struct view_field *field);

/* All return 0 with the value, or with the default if the field is not there or null;
 * -EINVAL if it is of another type or out of bounds. */
int view_str(const struct view_field *field, const char **ret, struct err *err); /* "" */
int view_bool(const struct view_field *field, bool *ret, struct err *err);	 /* false */
int view_i64(const struct view_field *field, int64_t min, int64_t max, int64_t otherwise,
	     int64_t *ret, struct err *err);
int view_time(const struct view_field *field, int64_t *ret_ns, struct err *err);
int view_quantity(const struct view_field *field, int64_t otherwise, int64_t *ret,
		  struct err *err); /* in whole units */

/* The place of the string among the words (ending with NULL), counted from 1; 0 if it is
 * not there or none of them. */
int view_word(const struct view_field *field, const char *const *words, int *ret, struct err *err);

/* The condition of that type; *reason (may be NULL) "" if there is none. */
enum view_condition view_condition(const struct json *object, const char *type,
				   const char **reason);

/* What all errors of a field look like.  Returns -EINVAL. */
int view_wrong(const struct view_field *field, const char *what, struct err *err);

#endif
