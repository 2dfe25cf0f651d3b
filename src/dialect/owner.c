/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/owner.h"

#include <errno.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/num.h"
#include "dialect/dialect.h"
#include "dialect/keys.h"
#include "wire/json.h"

#define OWNER_SIZE_MAX 1000000

/* Whether it is of that API group ("batch" of "batch/v1"), as far as it says. */
static bool is_of_group(const struct json *object, const char *group, size_t length)
{
	const char *version = json_str(object, "apiVersion");

	if (!version)
		return true;
	return strncmp(version, group, length) == 0 && version[length] == '/';
}

bool owner_is(const struct json *owner, const char *kind)
{
	const char *own = json_str(owner, "kind");
	const char *group = strcmp(kind, "Job") == 0 ? "batch" : "apps";

	return own && strcmp(own, kind) == 0 && is_of_group(owner, group, strlen(group));
}

bool owner_is_known(const struct json *owner)
{
	return owner_is(owner, "Job") || owner_is(owner, "Deployment") ||
	       owner_is(owner, "ReplicaSet") || owner_is(owner, "StatefulSet");
}

/* Whether one that is referred to so may be found.  Other kinds are nobody's to look for. */
static bool is_followed(const struct json *reference)
{
	const char *kind = json_str(reference, "kind");
	const char *version = json_str(reference, "apiVersion");

	if (kind && strcmp(kind, "ReplicationController") == 0)
		return !version || strcmp(version, "v1") == 0;
	return owner_is_known(reference);
}

static int size_of(const struct json *owner, const char *field, int64_t otherwise, int64_t *ret,
		   struct err *err)
{
	int rc = json_i64(owner, ret, "spec", field);

	if (rc == -ENOENT) {
		*ret = otherwise;
		return 0;
	}
	if (rc < 0 || *ret < 0 || *ret > OWNER_SIZE_MAX)
		return err_set(err, EINVAL, "%s %s: spec.%s must be a whole number from 0 to %d",
			       json_str(owner, "kind"), json_str(owner, "metadata", "name"), field,
			       OWNER_SIZE_MAX);
	return 0;
}

int owner_size(const struct json *owner, int64_t *ret, struct err *err)
{
	int64_t completions;
	int rc;

	if (!owner_is(owner, "Job"))
		return size_of(owner, "replicas", 1, ret, err);
	if ((rc = size_of(owner, "parallelism", 1, ret, err)) < 0 ||
	    (rc = size_of(owner, "completions", OWNER_SIZE_MAX, &completions, err)) < 0)
		return rc;
	*ret = MIN(*ret, completions);
	return 0;
}

int owner_left(const struct json *owner, int64_t members, int64_t *ret, struct err *err)
{
	int64_t all, succeeded;
	int rc = size_of(owner, "completions", 0, &all, err);

	if (!owner_is(owner, "Job") || (rc == 0 && all == 0)) {
		*ret = members;
		return 0;
	}
	if (rc < 0)
		return rc;
	if (json_i64(owner, &succeeded, "status", "succeeded") < 0 || succeeded < 0)
		succeeded = 0;
	all = MAX(all, members); /* there may be others beside its own */
	*ret = MIN(members, all - MIN(succeeded, all));
	return 0;
}

/* An object of that kind and name may be of another group than the one referred to, or have been
 * made in the place of it. */
static bool is_meant(const struct json *reference, const struct json *object)
{
	const char *uid = json_str(reference, "uid"), *own = json_str(object, "metadata", "uid");
	const char *version = json_str(reference, "apiVersion");
	const char *slash = version ? strchr(version, '/') : NULL;

	if (uid && own && strcmp(uid, own) != 0)
		return false;
	return !slash || is_of_group(object, version, (size_t)(slash - version));
}

/* The controller among the owner references of an object, looked up. */
static const struct json *controller_of(const struct json *object, const char *namespace,
					const struct dialect_lookup *lookup,
					const struct json **missing)
{
	struct json_iter iter = json_items(object, "metadata", "ownerReferences");
	const struct json *reference;

	while ((reference = json_next(&iter))) {
		const char *kind = json_str(reference, "kind");
		const char *name = json_str(reference, "name");
		const struct json *found;
		bool controller;

		if (json_bool(reference, &controller, "controller") < 0 || !controller || !kind ||
		    !name)
			continue;
		found = lookup->find(lookup->context, kind, namespace, name);
		if (found && is_meant(reference, found))
			return found;
		if (is_followed(reference))
			*missing = reference;
		if (found)
			return NULL;
	}
	return NULL;
}

/* Names that end in random characters, even if these are all digits.  A StatefulSet sets
 * generateName too, and numbers its pods. */
static bool has_random_name(const struct json *pod)
{
	struct json_iter iter = json_items(pod, "metadata", "ownerReferences");
	const struct json *reference;

	while ((reference = json_next(&iter))) {
		const char *kind = json_str(reference, "kind");

		if (kind && strcmp(kind, "StatefulSet") == 0)
			return false;
		if (kind && (strcmp(kind, "ReplicaSet") == 0 || strcmp(kind, "Job") == 0))
			return true;
	}
	return json_str(pod, "metadata", "labels", KEY_TEMPLATE_HASH) != NULL ||
	       json_str(pod, "metadata", "generateName") != NULL;
}

static bool number_in(const char *text, int64_t *ret)
{
	uint32_t number;

	if (!text || parse_u32(text, strlen(text), &number) < 0)
		return false;
	*ret = number;
	return true;
}

int64_t pod_index(const struct json *pod)
{
	const char *name = json_str(pod, "metadata", "name");
	const char *dash = name ? strrchr(name, '-') : NULL;
	int64_t index;

	if (number_in(json_str(pod, "metadata", "labels", KEY_POD_INDEX), &index) ||
	    number_in(json_str(pod, "metadata", "annotations", KEY_COMPLETION_INDEX), &index) ||
	    number_in(json_str(pod, "metadata", "labels", KEY_COMPLETION_INDEX), &index))
		return index;
	if (dash && !has_random_name(pod) && number_in(dash + 1, &index))
		return index;
	return POD_INDEX_NONE;
}

uint32_t pod_owners(const struct json *pod, const char *namespace,
		    const struct dialect_lookup *lookup, const struct json **ret,
		    const struct json **missing)
{
	const struct json *reference = NULL;
	uint32_t count = 0;

	for (const struct json *at = pod; count < POD_OWNERS_MAX;) {
		at = controller_of(at, namespace, lookup, &reference);
		if (!at)
			break;
		reference = NULL;
		ret[count++] = at;
	}
	if (missing)
		*missing = reference;
	return count;
}

int pod_source_read(const struct json *pod, const struct dialect_lookup *lookup,
		    struct pod_source *ret, struct err *err)
{
	const char *name = json_str(pod, "metadata", "name");
	const char *namespace = json_str(pod, "metadata", "namespace");
	const char *uid = json_str(pod, "metadata", "uid");

	if (!name && json_type(pod, "metadata", "name") > JSON_NULL)
		return err_set(err, EINVAL, "metadata.name must be a string: put it in quotes");
	if (!name || !*name)
		return err_set(err, EINVAL, "a pod has no metadata.name");
	*ret = (struct pod_source){ .object = pod,
				    .name = name,
				    .uid = uid ? uid : "",
				    .namespace = namespace ? namespace : "default",
				    .index = pod_index(pod) };
	ret->owners_count =
		pod_owners(pod, ret->namespace, lookup, ret->owners, &ret->owner_missing);
	if (!lookup->owners_come)
		ret->owner_missing = NULL;
	return 0;
}
