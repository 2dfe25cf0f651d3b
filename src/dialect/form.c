/* SPDX-License-Identifier: Apache-2.0 */
/* form.c - is it written as Kubernetes wants it?
 *
 * What has the wrong type or a name that nobody knows would read as "not there", and the
 * pod would run without its GPUs.  The API server lets only well-formed pods in; manifests
 * that come from files have nobody else to look.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "dialect/draft.h"
#include "dialect/keys.h"
#include "wire/json.h"

#define CONTAINER_NAME_MAX 63

/* Names that may stand in one place. */
struct names {
	const char *const *items;
	size_t count;
};

static const char *const pod_fields[] = {
	"activeDeadlineSeconds",
	"affinity",
	"automountServiceAccountToken",
	"containers",
	"dnsConfig",
	"dnsPolicy",
	"enableServiceLinks",
	"ephemeralContainers",
	"hostAliases",
	"hostIPC",
	"hostNetwork",
	"hostPID",
	"hostUsers",
	"hostname",
	"hostnameOverride",
	"imagePullSecrets",
	"initContainers",
	"nodeName",
	"nodeSelector",
	"os",
	"overhead",
	"preemptionPolicy",
	"priority",
	"priorityClassName",
	"readinessGates",
	"resourceClaims",
	"resources",
	"restartPolicy",
	"runtimeClassName",
	"schedulerName",
	"schedulingGates",
	"schedulingGroup",
	"securityContext",
	"serviceAccount",
	"serviceAccountName",
	"setHostnameAsFQDN",
	"shareProcessNamespace",
	"subdomain",
	"terminationGracePeriodSeconds",
	"tolerations",
	"topologySpreadConstraints",
	"volumes",
	"workloadRef",
};

static const char *const container_fields[] = {
	"args",
	"command",
	"env",
	"envFrom",
	"image",
	"imagePullPolicy",
	"lifecycle",
	"livenessProbe",
	"name",
	"ports",
	"readinessProbe",
	"resizePolicy",
	"resources",
	"restartPolicy",
	"restartPolicyRules",
	"securityContext",
	"startupProbe",
	"stdin",
	"stdinOnce",
	"terminationMessagePath",
	"terminationMessagePolicy",
	"tty",
	"volumeDevices",
	"volumeMounts",
	"workingDir",
};

static const char *const resource_fields[] = { "claims", "limits", "requests" };

static const char *const topology_keys[] = { KEY_GPU_COUNT, KEY_PREFERRED_DOMAIN,
					     KEY_NETWORK_BANDWIDTH, KEY_LATENCY_SENSITIVE,
					     KEY_STRATEGY };
static const char *const claim_keys[] = { KEY_CLAIM, KEY_ALLOCATED, KEY_VISIBLE_DEVICES,
					  KEY_DECISION };
static const char *const elastic_keys[] = { KEY_ASSUMED };

#define NAMES(array)                     \
	{                                \
		array, ARRAY_SIZE(array) \
	}

/* Annotations that are ours: others under these prefixes are slips. */
static const struct {
	const char *prefix;
	struct names known;
} families[] = {
	{ PREFIX_TOPOLOGY, NAMES(topology_keys) },
	{ PREFIX_SCHEDULING, NAMES(claim_keys) },
	{ PREFIX_ELASTIC, NAMES(elastic_keys) },
};

static bool has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_known(const struct names *known, const char *name)
{
	for (size_t i = 0; i < known->count; i++)
		if (strcmp(known->items[i], name) == 0)
			return true;
	return false;
}

static bool is_absent(const struct json *value)
{
	return json_type(value) == JSON_NONE || json_type(value) == JSON_NULL;
}

static int check_annotation_key(const char *key, struct err *err)
{
	for (unsigned i = 0; i < ARRAY_SIZE(families); i++) {
		const struct names *known = &families[i].known;

		if (!has_prefix(key, families[i].prefix) ||
		    has_prefix(key, KEY_CONTAINER_PREFIX) || is_known(known, key))
			continue;
		const char *near = draft_nearest_key(key, known->items, known->count);
		if (near)
			return err_set(err, EINVAL, "metadata.annotations %s: did you mean %s?",
				       key, near);
		return err_set(err, EINVAL, "metadata.annotations %s is unknown", key);
	}
	return 0;
}

static bool is_ours(const char *key)
{
	bool ours = strcmp(key, KEY_MAP) == 0 || strcmp(key, KEY_POD_GROUP) == 0;

	for (unsigned i = 0; i < ARRAY_SIZE(families); i++)
		ours |= has_prefix(key, families[i].prefix);
	return ours;
}

/* Labels or annotations.  The API takes null for an empty string; among our own keys it
 * is somebody who forgot the value. */
static int check_strings(const struct json *object, const char *field, struct err *err)
{
	const struct json *values = json_get(object, "metadata", field);
	struct json_iter iter = json_members(values);
	struct json_member m;

	if (!is_absent(values) && json_type(values) != JSON_OBJECT)
		return err_set(err, EINVAL, "metadata.%s must be a mapping", field);
	while (json_next_member(&iter, &m)) {
		enum json_type type = json_type(m.value);

		if (type == JSON_STRING || (type == JSON_NULL && !is_ours(m.key)))
			continue;
		return err_set(err, EINVAL, "metadata.%s %s must be a string: put it in quotes",
			       field, m.key);
	}
	return 0;
}

static int check_metadata(const struct json *object, struct err *err)
{
	struct json_iter iter = json_members(object, "metadata", "annotations");
	struct json_member m;
	int rc = check_strings(object, "annotations", err);

	while (rc == 0 && json_next_member(&iter, &m))
		rc = check_annotation_key(m.key, err);
	return rc < 0 ? rc : check_strings(object, "labels", err);
}

static int check_owners(const struct draft *d, struct err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < d->source->owners_count && rc == 0; i++) {
		const struct json *owner = d->source->owners[i];
		const char *kind = json_str(owner, "kind");
		const char *name = json_str(owner, "metadata", "name");

		rc = check_metadata(owner, err);
		if (rc < 0)
			err_prefix(err, "%s %s", kind ? kind : "owner", name ? name : "");
	}
	return rc;
}

/* What the API server has taken (it has a uid) may have fields of a later release. */
static bool is_strict(const struct draft *d)
{
	return !json_str(d->source->object, "metadata", "uid");
}

static int check_fields(const struct draft *d, const struct json *object,
			const struct names *known, const char *where, struct err *err)
{
	struct json_iter iter = json_members(object);
	struct json_member m;

	while (is_strict(d) && json_next_member(&iter, &m)) {
		if (is_known(known, m.key))
			continue;
		const char *near = suggest(m.key, known->items, known->count);
		if (near)
			return err_set(err, EINVAL, "%s: unknown field %s, did you mean %s?",
				       where, m.key, near);
		return err_set(err, EINVAL, "%s: unknown field %s", where, m.key);
	}
	return 0;
}

static int check_mapping(const struct json *value, const char *where, const char *what,
			 struct err *err)
{
	if (is_absent(value) || json_type(value) == JSON_OBJECT)
		return 0;
	return err_set(err, EINVAL, "%s: %s must be a mapping", where, what);
}

static int check_resources(const struct draft *d, const struct json *resources, const char *where,
			   struct err *err)
{
	static const struct names known = NAMES(resource_fields);
	int rc;

	if ((rc = check_mapping(resources, where, "resources", err)) < 0 ||
	    (rc = check_mapping(json_get(resources, "limits"), where, "limits", err)) < 0 ||
	    (rc = check_mapping(json_get(resources, "requests"), where, "requests", err)) < 0)
		return rc;
	return check_fields(d, resources, &known, where, err);
}

/* A label of the DNS: lower-case letters and digits, between them also '-'. */
static bool is_container_name(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	size_t length = strlen(name);

	return length > 0 && length <= CONTAINER_NAME_MAX && strspn(name, allowed) == length &&
	       name[0] != '-' && name[length - 1] != '-';
}

static int check_name(const struct json *container, const char *list, size_t i, struct err *err)
{
	const struct json *value = json_get(container, "name");
	const char *name = json_str(value);
	char shown[UTF8_SHOW_MAX];

	if (is_absent(value) || (name && !*name))
		return err_set(err, EINVAL, "a container has no name");
	if (!name)
		return err_set(err, EINVAL, "spec.%s[%zu].name must be a string: put it in quotes",
			       list, i);
	if (!is_container_name(name))
		return err_set(
			err, EINVAL,
			"container %s: a name has at most %d lower-case letters, digits and "
			"'-', none of these at either end",
			utf8_show(name, strlen(name), shown), CONTAINER_NAME_MAX);
	return 0;
}

static int check_container(const struct draft *d, const struct json *container, const char *list,
			   size_t i, struct err *err)
{
	static const struct names known = NAMES(container_fields);
	char where[CONTAINER_NAME_MAX + sizeof("container ")] = "container ";
	int rc;

	if (json_type(container) != JSON_OBJECT)
		return err_set(err, EINVAL, "spec.%s[%zu] must be a mapping", list, i);
	if ((rc = check_name(container, list, i, err)) < 0)
		return rc;
	strncat(where, json_str(container, "name"), CONTAINER_NAME_MAX);
	if ((rc = check_fields(d, container, &known, where, err)) < 0)
		return rc;
	return check_resources(d, json_get(container, "resources"), where, err);
}

static int check_containers(const struct draft *d, const char *list, struct err *err)
{
	const struct json *value = json_get(d->source->object, "spec", list), *container;
	struct json_iter iter = json_items(value);
	int rc = 0;

	if (!is_absent(value) && json_type(value) != JSON_ARRAY)
		return err_set(err, EINVAL, "spec.%s must be a list", list);
	for (size_t i = 0; rc == 0 && (container = json_next(&iter)); i++)
		rc = check_container(d, container, list, i, err);
	return rc;
}

int read_form(struct draft *d, struct err *err)
{
	static const struct names known = NAMES(pod_fields);
	const struct json *spec = json_get(d->source->object, "spec");
	int rc;

	if ((rc = check_metadata(d->source->object, err)) < 0 || (rc = check_owners(d, err)) < 0 ||
	    (rc = check_fields(d, spec, &known, "spec", err)) < 0 ||
	    (rc = check_containers(d, "initContainers", err)) < 0 ||
	    (rc = check_containers(d, "containers", err)) < 0)
		return rc;
	if (!json_len(spec, "containers"))
		return err_set(err, EINVAL, "the pod has no containers");
	if ((rc = check_mapping(json_get(spec, "overhead"), "spec", "overhead", err)) < 0)
		return rc;
	return check_resources(d, json_get(spec, "resources"), "spec", err);
}
