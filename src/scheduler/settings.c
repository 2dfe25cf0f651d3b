/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/settings.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/suggest.h"
#include "engine/policy/policy.h"
#include "kube/check.h"
#include "wire/json.h"
#include "wire/yaml.h"

#define WEIGHT_MAX    1e6
#define WEIGHTS_SUM   1000000
#define LEAF_MAX      1000000
#define SEATS_MAX     1000
#define GANG_S_MAX    86400
#define BACKOFF_S_MAX 3600

/* Names of the fields that a mapping may have; those after NULL mean nothing here. */
struct fields {
	const char *of; /* "" or "scoringWeights." */
	const char *const *known;
	const char *const *ignored;
};

static bool among(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (strcmp(*names, name) == 0)
			return true;
	return false;
}

static size_t count_of(const char *const *names)
{
	size_t count = 0;

	while (names[count])
		count++;
	return count;
}

static int check_fields(const struct json *object, const struct fields *fields, struct err *err)
{
	struct json_iter iter = json_members(object);
	struct json_member m;

	while (json_next_member(&iter, &m)) {
		const char *near;

		if (among(fields->known, m.key) || among(fields->ignored, m.key))
			continue;
		near = suggest(m.key, fields->known, count_of(fields->known));
		return err_set(err, EINVAL, "%s%.64s is unknown%s%s%s", fields->of, m.key,
			       near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
	}
	return 0;
}

/* A mapping with these fields, or nothing. */
static int check_mapping(const struct json *spec, const char *name, const struct fields *fields,
			 struct err *err)
{
	enum json_type type = json_type(spec, name);

	if (type == JSON_NONE || type == JSON_NULL)
		return 0;
	if (type != JSON_OBJECT)
		return err_set(err, EINVAL, "%s is no mapping", name);
	return check_fields(json_get(spec, name), fields, err);
}

/* A whole number; *ret stays as it is where there is none. */
static int read_number(const struct json *object, const char *of, const char *field, int64_t min,
		       int64_t max, uint32_t *ret, struct err *err)
{
	int64_t number;
	int rc = json_i64(object, &number, field);

	if (rc == -ENOENT)
		return 0;
	if (rc < 0 || number < min || number > max)
		return err_set(err, EINVAL, "%s%s must be a whole number from %lld to %lld", of,
			       field, (long long)min, (long long)max);
	*ret = (uint32_t)number;
	return 0;
}

static int read_weight(const struct json *weights, const char *field, double *ret, struct err *err)
{
	double weight;
	int rc = json_double(weights, &weight, field);

	if (rc == -ENOENT)
		return 0;
	if (rc < 0 || !(weight >= 0 && weight <= WEIGHT_MAX))
		return err_set(err, EINVAL, "scoringWeights.%s must be a number from 0 to %.0f",
			       field, WEIGHT_MAX);
	*ret = weight;
	return 0;
}

static int read_weights(const struct json *spec, struct scheduler_settings *s, struct err *err)
{
	static const char *const names[] = { "resourceAvailability", "topologyAlignment",
					     "domainUtilization", "historicalPerformance", NULL };
	static const struct fields fields = { "scoringWeights.", names, names };
	const struct json *weights = json_get(spec, "scoringWeights");
	double each[4] = { 0.4, 0.3, 0.2, 0.1 }, sum = 0;
	int rc = check_mapping(spec, "scoringWeights", &fields, err);

	for (unsigned i = 0; i < 4 && rc == 0; i++) {
		rc = read_weight(weights, names[i], &each[i], err);
		sum += each[i];
	}
	if (rc < 0)
		return rc;
	if (!(sum > 0))
		return err_set(err, EINVAL, "scoringWeights are all 0");
	s->weights.availability = (uint32_t)lround(each[0] / sum * WEIGHTS_SUM);
	s->weights.alignment = (uint32_t)lround(each[1] / sum * WEIGHTS_SUM);
	s->weights.utilization = (uint32_t)lround(each[2] / sum * WEIGHTS_SUM);
	s->weights.performance = (uint32_t)lround(each[3] / sum * WEIGHTS_SUM);
	return 0;
}

/* A limit has two names, of which at most one, or the same number twice, is given. */
static int read_limit(const struct json *limits, const char *field, const char *older,
		      uint32_t *ret, struct err *err)
{
	uint32_t now = UINT32_MAX, before = UINT32_MAX;
	int rc = read_number(limits, "topologyConstraints.", field, 0, LEAF_MAX, &now, err);

	if (rc == 0)
		rc = read_number(limits, "topologyConstraints.", older, 0, LEAF_MAX, &before, err);
	if (rc < 0)
		return rc;
	if (now != UINT32_MAX && before != UINT32_MAX && now != before)
		return err_set(err, EINVAL, "topologyConstraints: %s and %s differ", field, older);
	if (now == UINT32_MAX)
		now = before;
	*ret = now == UINT32_MAX ? 0 : now;
	return 0;
}

static int read_limits(const struct json *spec, struct scheduler_settings *s, struct err *err)
{
	static const char *const names[] = { "maxNodesPerLeaf", "maxGPUsPerLeaf",
					     "maxNodesPerDomain", "maxGPUsPerDomain", NULL };
	static const char *const ignored[] = { "minDomainsPerSpine", "maxDomainsPerSpine",
					       "allowCrossDomainScheduling", NULL };
	static const struct fields fields = { "topologyConstraints.", names, ignored };
	const struct json *limits = json_get(spec, "topologyConstraints");
	int rc = check_mapping(spec, "topologyConstraints", &fields, err);

	if (rc < 0 ||
	    (rc = read_limit(limits, names[0], names[2], &s->max_nodes_per_leaf, err)) < 0)
		return rc;
	return read_limit(limits, names[1], names[3], &s->max_gpus_per_leaf, err);
}

/* Only those that can come and go while pods run: see engine_configure(). */
static int read_policy(const struct json *spec, struct scheduler_settings *s, struct err *err)
{
	const char *name = json_str(spec, "policy");
	const struct policy *policy = name ? policy_find(name) : NULL;
	enum json_type type = json_type(spec, "policy");
	char list[128] = "";

	if (type == JSON_NONE || type == JSON_NULL)
		return 0;
	if (policy && !policy->shuffled && !policy->knows_mix) {
		s->policy = policy;
		return 0;
	}
	for (size_t i = 0; (policy = policy_at(i)); i++) {
		size_t used = strlen(list);

		if (!policy->shuffled && !policy->knows_mix)
			snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "",
				 policy->name);
	}
	return err_set(err, EINVAL, "policy is \"%.64s\", which is none of %s", name ? name : "",
		       list);
}

/* Well-known labels, the nearest first. */
static const struct preset {
	const char *name;
	const char *keys[NODE_DOMAIN_KEYS_MAX];
} presets[] = {
	{ "topology.scheduler", { "topology.scheduler/leaf", "topology.scheduler/spine" } },
	{ "topograph-0.1",
	  { "network.topology.nvidia.com/accelerator", "network.topology.nvidia.com/block",
	    "network.topology.nvidia.com/spine", "network.topology.nvidia.com/datacenter" } },
	{ "topograph-0.3",
	  { "network.topology.nvidia.com/accelerator", "network.topology.nvidia.com/leaf",
	    "network.topology.nvidia.com/spine", "network.topology.nvidia.com/core" } },
	{ "topograph-1.0",
	  { "accelerator.topograph.run/sub-domain", "accelerator.topograph.run/domain",
	    "fabric.topograph.run/tier-0", "fabric.topograph.run/tier-1",
	    "fabric.topograph.run/tier-2" } },
	{ "kubernetes",
	  { "topology.kubernetes.io/rack", "topology.kubernetes.io/zone",
	    "topology.kubernetes.io/region" } },
};

static void put_domains(struct scheduler_settings *s, const char *const *nearest_first,
			uint32_t count)
{
	memset(s->domain_keys, 0, sizeof(s->domain_keys));
	s->domain_keys_count = count;
	for (uint32_t i = 0; i < count; i++)
		snprintf(s->domain_keys[count - 1 - i], SETTINGS_LABEL_MAX, "%s",
			 nearest_first[i]);
}

static int read_preset(const char *name, struct scheduler_settings *s, struct err *err)
{
	char list[128] = "";

	for (size_t i = 0; i < ARRAY_SIZE(presets); i++) {
		const struct preset *preset = &presets[i];
		uint32_t count = 0;
		size_t used = strlen(list);

		snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "", preset->name);
		if (!name || strcmp(name, preset->name) != 0)
			continue;
		while (count < NODE_DOMAIN_KEYS_MAX && preset->keys[count])
			count++;
		put_domains(s, preset->keys, count);
		return 0;
	}
	return err_set(err, EINVAL, "domainPreset is \"%.64s\", which is none of %s",
		       name ? name : "", list);
}

static int read_labels(const struct json *list, struct scheduler_settings *s, struct err *err)
{
	const char *keys[NODE_DOMAIN_KEYS_MAX];
	struct json_iter iter = json_items(list);
	const struct json *item;
	uint32_t count = 0;

	if (json_type(list) != JSON_ARRAY || !json_len(list) ||
	    json_len(list) > NODE_DOMAIN_KEYS_MAX)
		return err_set(err, EINVAL, "domainLabels must be a list of 1 to %d labels",
			       NODE_DOMAIN_KEYS_MAX);
	while ((item = json_next(&iter))) {
		const char *key = json_str(item);

		if (!key)
			return err_set(err, EINVAL, "domainLabels: an entry is no string");
		if (kube_check_label_key("domainLabels", key, err) < 0)
			return -EINVAL;
		for (uint32_t i = 0; i < count; i++)
			if (strcmp(keys[i], key) == 0)
				return err_set(err, EINVAL, "domainLabels: %s is there twice",
					       key);
		keys[count++] = key;
	}
	put_domains(s, keys, count);
	return 0;
}

static int read_domains(const struct json *spec, struct scheduler_settings *s, struct err *err)
{
	const struct json *labels = json_get(spec, "domainLabels");
	const struct json *preset = json_get(spec, "domainPreset");
	bool by_label = labels && json_type(labels) != JSON_NULL;
	bool by_preset = preset && json_type(preset) != JSON_NULL;

	if (by_label && by_preset)
		return err_set(err, EINVAL, "domainLabels and domainPreset exclude each other");
	if (by_label)
		return read_labels(labels, s, err);
	return by_preset ? read_preset(json_str(preset), s, err) : 0;
}

static int read_times(const struct json *spec, struct scheduler_settings *s, struct err *err)
{
	uint32_t gang_s = SETTINGS_GANG_MS / 1000, first_s = SETTINGS_BACKOFF_MS / 1000;
	uint32_t longest_s = 10 * first_s;
	int rc;

	if ((rc = read_number(spec, "", "gangReservationSeconds", 1, GANG_S_MAX, &gang_s, err)) <
		    0 ||
	    (rc = read_number(spec, "", "podInitialBackoffSeconds", 1, BACKOFF_S_MAX, &first_s,
			      err)) < 0 ||
	    (rc = read_number(spec, "", "podMaxBackoffSeconds", 1, BACKOFF_S_MAX, &longest_s,
			      err)) < 0)
		return rc;
	if (longest_s < first_s)
		return err_set(err, EINVAL,
			       "podMaxBackoffSeconds is less than podInitialBackoffSeconds");
	s->gang_wait_ms = gang_s * 1000;
	s->backoff_ms = first_s * 1000;
	s->backoff_max_ms = longest_s * 1000;
	return 0;
}

static int read_spec(const struct json *spec, struct scheduler_settings *s, struct err *err)
{
	static const char *const names[] = { "scoringWeights",
					     "topologyConstraints",
					     "policy",
					     "maxPodsPerSharedGpu",
					     "domainLabels",
					     "domainPreset",
					     "gangReservationSeconds",
					     "podInitialBackoffSeconds",
					     "podMaxBackoffSeconds",
					     NULL };
	static const char *const ignored[] = { "domainConfigs", "enableMetrics", "updateInterval",
					       NULL };
	static const struct fields fields = { "", names, ignored };
	uint32_t seats = SEATS_DEFAULT;
	int rc;

	if ((rc = check_fields(spec, &fields, err)) < 0 || (rc = read_weights(spec, s, err)) < 0 ||
	    (rc = read_limits(spec, s, err)) < 0 || (rc = read_policy(spec, s, err)) < 0 ||
	    (rc = read_domains(spec, s, err)) < 0 || (rc = read_times(spec, s, err)) < 0 ||
	    (rc = read_number(spec, "", "maxPodsPerSharedGpu", 1, SEATS_MAX, &seats, err)) < 0)
		return rc;
	s->seats = (uint16_t)seats;
	return 0;
}

/* Of a whole object: its spec. */
static int check_object(const struct json *object, const struct json **spec, struct err *err)
{
	const char *api = json_str(object, "apiVersion"), *kind = json_str(object, "kind");
	enum json_type type = json_type(object, "spec");

	if (!kind ||
	    (strcmp(kind, "SchedulerConfig") != 0 && strcmp(kind, "TopologySchedulerConfig") != 0))
		return err_set(err, EINVAL,
			       "kind is \"%.64s\", it must be SchedulerConfig or "
			       "TopologySchedulerConfig",
			       kind ? kind : "");
	if (!api || strcmp(api, SETTINGS_API) != 0)
		return err_set(err, EINVAL, "apiVersion is \"%.64s\", it must be " SETTINGS_API,
			       api ? api : "");
	if (type != JSON_NONE && type != JSON_NULL && type != JSON_OBJECT)
		return err_set(err, EINVAL, "spec is no mapping");
	*spec = json_get(object, "spec");
	return 0;
}

void settings_default(struct scheduler_settings *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->policy = &policy_default;
	/* Nothing is said: all is well. */
	(void)read_weights(NULL, ret, NULL);
	(void)read_times(NULL, ret, NULL);
	ret->seats = SEATS_DEFAULT;
	(void)read_preset(presets[0].name, ret, NULL);
}

static bool same_domains(const struct scheduler_settings *a, const struct scheduler_settings *b)
{
	return a->domain_keys_count == b->domain_keys_count &&
	       memcmp(a->domain_keys, b->domain_keys, sizeof(a->domain_keys)) == 0;
}

bool settings_equal(const struct scheduler_settings *a, const struct scheduler_settings *b)
{
	return memcmp(&a->weights, &b->weights, sizeof(a->weights)) == 0 &&
	       a->policy == b->policy && a->max_nodes_per_leaf == b->max_nodes_per_leaf &&
	       a->max_gpus_per_leaf == b->max_gpus_per_leaf && a->seats == b->seats &&
	       a->gang_wait_ms == b->gang_wait_ms && a->backoff_ms == b->backoff_ms &&
	       a->backoff_max_ms == b->backoff_max_ms && same_domains(a, b);
}

void settings_domains(const struct scheduler_settings *settings,
		      const char *ret[static NODE_DOMAIN_KEYS_MAX])
{
	for (uint32_t i = 0; i < settings->domain_keys_count; i++)
		ret[i] = settings->domain_keys[i];
}

void settings_engine(const struct scheduler_settings *settings, struct engine_config *ret)
{
	ret->weights = settings->weights;
	ret->policy = settings->policy;
	ret->max_nodes_per_leaf = settings->max_nodes_per_leaf;
	ret->max_gpus_per_leaf = settings->max_gpus_per_leaf;
	ret->cluster.seats = settings->seats;
}

int settings_read(const char *name, const struct json *object, struct scheduler_settings *ret,
		  struct err *err)
{
	struct scheduler_settings s;
	enum json_type type = json_type(object);
	const struct json *spec = object;
	int rc = 0;

	settings_default(&s);
	if (type != JSON_NONE && type != JSON_NULL && type != JSON_OBJECT)
		rc = err_set(err, EINVAL, "it is no mapping");
	else if (json_get(object, "kind") || json_get(object, "apiVersion"))
		rc = check_object(object, &spec, err);
	if (rc == 0)
		rc = read_spec(spec, &s, err);
	if (rc < 0) {
		err_prefix(err, "%s", name);
		return rc;
	}
	*ret = s;
	return 0;
}

int settings_parse(const char *name, const char *text, size_t len, struct scheduler_settings *ret,
		   struct err *err)
{
	struct json_limits limits = { .max_bytes = SETTINGS_BYTES_MAX };
	struct yaml yaml CLEANUP(yaml_done) = YAML_INIT;
	int rc = yaml_parse(name, text, len, &limits, &yaml, err);

	if (rc < 0)
		return rc;
	if (yaml.len > 1)
		return err_set(err, EINVAL, "%s: a configuration is one document, this has %zu",
			       name, yaml.len);
	return settings_read(name, yaml.len ? json_root(yaml.items[0].doc) : NULL, ret, err);
}
