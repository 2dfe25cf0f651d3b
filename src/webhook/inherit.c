/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/inherit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "dialect/dialect.h"
#include "dialect/keys.h"
#include "dialect/owner.h"
#include "webhook/admission.h"
#include "wire/json.h"

#define COUNT_DIGITS_MAX 24

struct owners {
	uint32_t count;
	const struct json *items[POD_OWNERS_MAX];
	const struct json *missing; /* the reference to the next one, or NULL */
};

/* For those who may not read owners. */
static const struct json *find_none(void *context, const char *kind, const char *namespace,
				    const char *name)
{
	(void)context;
	(void)kind;
	(void)namespace;
	(void)name;
	return NULL;
}

static struct owners owners_of(const struct admission *a, const struct dialect_lookup *lookup)
{
	static const struct dialect_lookup blind = { .find = find_none };
	struct owners owners = { 0 };

	owners.count = pod_owners(a->object, a->namespace, lookup ? lookup : &blind, owners.items,
				  &owners.missing);
	return owners;
}

/* The nearest owner that has the annotation, and its value; NULL: none, or the pod has it. */
static const struct json *nearest(const struct admission *a, const struct owners *owners,
				  const char *key, const char **value)
{
	if (json_get(a->object, "metadata", "annotations", key))
		return NULL;
	for (uint32_t i = 0; i < owners->count; i++) {
		*value = json_str(owners->items[i], "metadata", "annotations", key);
		if (*value)
			return owners->items[i];
	}
	return NULL;
}

bool inherits(const struct admission *a, const struct dialect_lookup *lookup, const char *key)
{
	struct owners owners = owners_of(a, lookup);
	const char *value;

	return nearest(a, &owners, key, &value) != NULL;
}

bool may_inherit(const struct admission *a, const struct dialect_lookup *lookup, bool *unknown)
{
	struct owners owners = owners_of(a, lookup);

	*unknown = owners.missing != NULL;
	return owners.count || owners.missing;
}

/* The pod's part of its Job's GPUs.  False: there is no such number. */
static bool part_of(const struct json *job, const char *total, char *part)
{
	int64_t pods = 0;
	uint32_t count;

	if (parse_u32(total, strlen(total), &count) < 0 || owner_size(job, &pods, NULL) < 0 ||
	    pods < 1 || count % pods != 0)
		return false;
	snprintf(part, COUNT_DIGITS_MAX, "%" PRId64, count / pods);
	return true;
}

static void add_annotation(const struct admission *a, struct ruling *ruling, const char *key,
			   const char *value, bool *made)
{
	struct patch_path at = patch_key(patch_key(PATCH_ROOT, "metadata"), "annotations");
	struct json_writer *w;

	if (!*made && json_type(a->object, "metadata", "annotations") != JSON_OBJECT) {
		w = patch_set(&ruling->patch, at, json_get(a->object, "metadata", "annotations"));
		json_open_object(w);
		json_close_object(w);
		patch_end(&ruling->patch);
	}
	*made = true;
	json_add_str(patch_add(&ruling->patch, patch_key(at, key)), value);
	patch_end(&ruling->patch);
}

bool inherit_annotations(const struct admission *a, const struct dialect_lookup *lookup,
			 struct ruling *ruling)
{
	static const char *const keys[] = { KEY_GPU_COUNT, KEY_PREFERRED_DOMAIN,
					    KEY_NETWORK_BANDWIDTH, KEY_LATENCY_SENSITIVE,
					    KEY_STRATEGY };
	struct owners owners = owners_of(a, lookup);
	bool made = false, asks = false;

	for (unsigned i = 0; i < ARRAY_SIZE(keys); i++) {
		char part[COUNT_DIGITS_MAX];
		const char *value;
		const struct json *owner = nearest(a, &owners, keys[i], &value);
		bool count = strcmp(keys[i], KEY_GPU_COUNT) == 0;

		if (!owner)
			continue;
		asks |= count;
		if (count && owner_is(owner, "Job")) {
			if (!part_of(owner, value, part)) {
				ruling_warn(ruling,
					    "%s of the Job does not divide evenly among its pods",
					    keys[i]);
				continue;
			}
			value = part;
		}
		add_annotation(a, ruling, keys[i], value, &made);
	}
	return asks;
}
