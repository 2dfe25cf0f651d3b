/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/admission.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wire/json.h"

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static const struct json *object_or_null(const struct json *value)
{
	return json_type(value) == JSON_OBJECT ? value : NULL;
}

int admission_read(const struct json *review, struct admission *ret, struct err *err)
{
	const char *version = or_empty(json_str(review, "apiVersion"));
	const char *kind = or_empty(json_str(review, "kind"));
	const struct json *request = json_get(review, "request");

	if (strcmp(kind, "AdmissionReview") != 0)
		return err_set(err, EINVAL, "this is no AdmissionReview");
	if (strcmp(version, "admission.k8s.io/v1") != 0)
		return err_set(err, EINVAL,
			       "only AdmissionReviews of admission.k8s.io/v1 are understood");
	if (!json_str(request, "uid") || !*json_str(request, "uid"))
		return err_set(err, EINVAL, "the AdmissionReview has no request.uid");
	*ret = (struct admission){
		.uid = json_str(request, "uid"),
		.operation = or_empty(json_str(request, "operation")),
		.namespace = or_empty(json_str(request, "namespace")),
		.username = or_empty(json_str(request, "userInfo", "username")),
		.group = or_empty(json_str(request, "resource", "group")),
		.resource = or_empty(json_str(request, "resource", "resource")),
		.subresource = or_empty(json_str(request, "subResource")),
		.object = object_or_null(json_get(request, "object")),
		.old = object_or_null(json_get(request, "oldObject")),
	};
	return 0;
}

bool admission_is(const struct admission *a, const char *operation, const char *group,
		  const char *resource, const char *subresource)
{
	return strcmp(a->resource, resource) == 0 && strcmp(a->operation, operation) == 0 &&
	       strcmp(a->subresource, subresource) == 0 && strcmp(a->group, group) == 0;
}

void ruling_done(struct ruling *ruling)
{
	patch_done(&ruling->patch);
}

void ruling_warn(struct ruling *ruling, const char *format, ...)
{
	va_list arguments;

	if (ruling->warnings_count == WARNINGS_MAX)
		return;
	va_start(arguments, format);
	vsnprintf(ruling->warnings[ruling->warnings_count++], WARNING_MAX, format, arguments);
	va_end(arguments);
}
