/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/write_check.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/vec.h"
#include "kube/check.h"
#include "kube/kind.h"
#include "kube/write.h"
#include "wire/json.h"

#include <errno.h>
#include <string.h>

static int check_address(const struct kube_write *write, struct err *err)
{
	const struct kube_kind *kind = write->kind;
	int result = kube_check_subdomain("name", write->name, err);
	if (result < 0)
		return result;
	if (kind->namespaced)
		return kube_check_label_name("namespace", write->namespace, err);
	if (write->namespace && write->namespace[0])
		return err_set(err, EINVAL, "a %s has no namespace", kind->kind);
	return 0;
}

/* The pairs of an object; a patch may delete by null, which says nothing of the value. */
static int check_pairs(const struct json *object, const char *which, bool labels, struct err *err)
{
	VEC(struct kube_pair) pairs CLEANUP(vec_cleanup) = { 0 };
	struct json_iter members = json_members(object, "metadata", which);
	for (struct json_member member; json_next_member(&members, &member);) {
		const char *value = json_str(member.value);
		if (json_type(member.value) == JSON_NULL)
			value = "";
		if (!value)
			return err_set(err, EINVAL, "%s: the value of %.100s is no string", which,
				       member.key);
		if (vec_push(&pairs, ((struct kube_pair){ member.key, value })) < 0)
			return err_set(err, ENOMEM, "out of memory");
	}
	return labels ? kube_check_labels(which, pairs.items, pairs.len, err)
		      : kube_check_annotations(which, pairs.items, pairs.len, err);
}

static bool is_equal(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

/* That the body is of the object that is addressed. */
static int check_identity(const struct kube_write *write, const struct json *object,
			  struct err *err)
{
	const char *name = json_str(object, "metadata", "name");
	const char *namespace = json_str(object, "metadata", "namespace");
	bool whole = write->verb == KUBE_CREATE || write->verb == KUBE_REPLACE;
	if (json_type(object) != JSON_OBJECT)
		return err_set(err, EINVAL, "the body is no object");
	if (whole && !write->subresource && !is_equal(json_str(object, "kind"), write->kind->kind))
		return err_set(err, EINVAL, "the body is of another kind");
	if ((name || whole) && !is_equal(name, write->name))
		return err_set(err, EINVAL, "the body has another name");
	if (namespace && !is_equal(namespace, write->namespace))
		return err_set(err, EINVAL, "the body has another namespace");
	if (write->verb != KUBE_REPLACE)
		return 0;
	int result = kube_check_uid("metadata.uid", json_str(object, "metadata", "uid"), err);
	if (result < 0)
		return result;
	return kube_check_version("metadata.resourceVersion",
				  json_str(object, "metadata", "resourceVersion"), err);
}

static int check_object(const struct kube_write *write, const struct json *object, struct err *err)
{
	int result = check_identity(write, object, err);
	if (result == 0)
		result = check_pairs(object, "labels", true, err);
	if (result == 0)
		result = check_pairs(object, "annotations", false, err);
	return result;
}

/* Groups of the server itself have no dot, or are <word>.k8s.io. */
static bool is_custom(const struct kube_kind *kind)
{
	const char *dot = strchr(kind->group, '.');
	return dot && strcmp(dot, ".k8s.io") != 0;
}

/* A patch of a pod says which pod of that name is meant. */
static bool json_patch_tests_uid(const struct json *patch)
{
	struct json_iter items = json_items(patch);
	for (const struct json *item; (item = json_next(&items));) {
		if (is_equal(json_str(item, "op"), "test") &&
		    is_equal(json_str(item, "path"), "/metadata/uid"))
			return true;
	}
	return false;
}

static int check_patch(const struct kube_write *write, const struct json *patch, struct err *err)
{
	bool pod = write->kind == &kube_kinds[KUBE_POD];
	if (write->verb == KUBE_STRATEGIC_PATCH && is_custom(write->kind))
		return err_set(err, EINVAL, "custom resources take no strategic merge patch");
	if (write->verb == KUBE_JSON_PATCH) {
		if (json_type(patch) != JSON_ARRAY)
			return err_set(err, EINVAL, "a JSON patch is a list");
		if (pod && !json_patch_tests_uid(patch))
			return err_set(err, EINVAL, "the patch of a pod does not test its uid");
		return 0;
	}
	int result = check_object(write, patch, err);
	if (result == 0 && pod)
		result = kube_check_uid("metadata.uid", json_str(patch, "metadata", "uid"), err);
	return result;
}

static int check_body(const struct kube_write *write, struct err *err)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	bool whole = write->verb == KUBE_CREATE || write->verb == KUBE_REPLACE;
	if (!write->body)
		return err_set(err, EINVAL, "the body is missing");
	int result = whole ? kube_check_object_size("the body", write->body_len, err)
			   : kube_check_request_size("the body", write->body_len, err);
	if (result == 0)
		result = json_parse("body", write->body, write->body_len, NULL, &doc, err);
	if (result < 0)
		return result;
	return whole ? check_object(write, json_root(doc), err)
		     : check_patch(write, json_root(doc), err);
}

int kube_write_check(const struct kube_write *write, struct err *err)
{
	int result = check_address(write, err);
	if (result < 0 || write->verb == KUBE_GET)
		return result;
	if (write->verb != KUBE_DELETE)
		return check_body(write, err);
	if (write->body)
		return err_set(err, EINVAL, "a delete makes its own body");
	result = kube_check_uid("uid", write->uid, err);
	if (result == 0 && write->version)
		result = kube_check_version("resourceVersion", write->version, err);
	return result;
}
