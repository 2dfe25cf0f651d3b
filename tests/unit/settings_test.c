/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "base/attr.h"
#include "base/err.h"
#include "engine/policy/policy.h"
#include "scheduler/settings.h"

static struct err err;

static int parse(const char *text, struct scheduler_settings *ret)
{
	err = (struct err)ERR_INIT;
	return settings_parse("file", text, strlen(text), ret, &err);
}

static struct scheduler_settings parsed(const char *text)
{
	struct scheduler_settings s;

	CHECKF(parse(text, &s) == 0, "%s: %s", text, err.text);
	return s;
}

TEST(nothing_said_is_the_defaults)
{
	static const char *const texts[] = {
		"",
		"# nothing\n",
		"{}",
		"null",
		"scoringWeights:\npolicy:\ndomainLabels: null\n",
		"apiVersion: topology.scheduler/v1alpha1\nkind: SchedulerConfig\n",
		"apiVersion: topology.scheduler/v1alpha1\nkind: SchedulerConfig\nspec:\n",
	};
	struct scheduler_settings expected;
	const char *keys[NODE_DOMAIN_KEYS_MAX];

	settings_default(&expected);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct scheduler_settings s = parsed(texts[i]);

		CHECKF(settings_equal(&s, &expected), "row %zu", i);
	}
	CHECK_INT(expected.weights.availability, 400000);
	CHECK_INT(expected.weights.performance, 100000);
	CHECK(expected.policy == &policy_default);
	CHECK_INT(expected.seats, SEATS_DEFAULT);
	CHECK_INT(expected.gang_wait_ms, 60000);
	CHECK_INT(expected.backoff_ms, 1000);
	CHECK_INT(expected.backoff_max_ms, 10000);
	CHECK_INT(expected.domain_keys_count, node_domain_keys_count);
	settings_domains(&expected, keys);
	for (size_t i = 0; i < node_domain_keys_count; i++)
		CHECK_STR(keys[i], node_domain_keys[i]);
}

#define SPEC                                                                         \
	"scoringWeights: {resourceAvailability: 1, topologyAlignment: 2, "           \
	"domainUtilization: 0.5, historicalPerformance: 0.5}\n"                      \
	"topologyConstraints: {maxNodesPerLeaf: 4, maxGPUsPerLeaf: 32}\n"            \
	"policy: binpack\nmaxPodsPerSharedGpu: 3\ndomainLabels: [rack, x.org/row]\n" \
	"gangReservationSeconds: 30\npodInitialBackoffSeconds: 2\npodMaxBackoffSeconds: 40\n"

TEST(every_field_is_read)
{
	struct scheduler_settings s = parsed(SPEC);
	struct engine_config config = { .seed = 7, .index_bytes = 9 };

	CHECK_INT(s.weights.availability, 250000);
	CHECK_INT(s.weights.alignment, 500000);
	CHECK_INT(s.weights.utilization, 125000);
	CHECK_INT(s.weights.performance, 125000);
	CHECK_INT(s.max_nodes_per_leaf, 4);
	CHECK_INT(s.max_gpus_per_leaf, 32);
	CHECK(s.policy == &policy_binpack);
	CHECK_INT(s.seats, 3);
	CHECK_INT(s.gang_wait_ms, 30000);
	CHECK_INT(s.backoff_ms, 2000);
	CHECK_INT(s.backoff_max_ms, 40000);
	/* Written from the nearest on, read from the outermost on. */
	CHECK_INT(s.domain_keys_count, 2);
	CHECK_STR(s.domain_keys[0], "x.org/row");
	CHECK_STR(s.domain_keys[1], "rack");
	settings_engine(&s, &config);
	CHECK_INT(config.weights.alignment, 500000);
	CHECK_INT(config.max_gpus_per_leaf, 32);
	CHECK_INT(config.cluster.seats, 3);
	CHECK(config.policy == &policy_binpack && config.seed == 7 && config.index_bytes == 9);
}

TEST(the_whole_object_of_either_kind_and_json_say_the_same)
{
	struct scheduler_settings one = parsed("policy: spread\nmaxPodsPerSharedGpu: 2\n");
	static const char *const texts[] = {
		"apiVersion: topology.scheduler/v1alpha1\nkind: SchedulerConfig\n"
		"metadata: {name: any}\nspec: {policy: spread, maxPodsPerSharedGpu: 2}\n",
		"apiVersion: topology.scheduler/v1alpha1\nkind: TopologySchedulerConfig\n"
		"spec: {policy: Spread, maxPodsPerSharedGpu: 2}\nstatus: {conditions: []}\n",
		"{\"policy\":\"spread\",\"maxPodsPerSharedGpu\":2}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct scheduler_settings s = parsed(texts[i]);

		CHECKF(settings_equal(&s, &one), "row %zu", i);
	}
}

TEST(a_weight_that_is_not_given_keeps_its_own)
{
	struct scheduler_settings s = parsed("scoringWeights: {resourceAvailability: 0}");

	CHECK_INT(s.weights.availability, 0);
	CHECK_INT(s.weights.alignment, 500000);
	CHECK_INT(s.weights.utilization, 333333);
	CHECK_INT(s.weights.performance, 166667);
}

TEST(limits_have_older_names)
{
	struct scheduler_settings s =
		parsed("topologyConstraints: {maxNodesPerDomain: 4, maxGPUsPerDomain: 16,"
		       " maxGPUsPerLeaf: 16, minDomainsPerSpine: 1}\nenableMetrics: true\n"
		       "updateInterval: 30s\n");

	CHECK_INT(s.max_nodes_per_leaf, 4);
	CHECK_INT(s.max_gpus_per_leaf, 16);
}

TEST(well_known_labels_have_names)
{
	static const struct {
		const char *text, *outermost, *nearest;
		unsigned count;
	} rows[] = {
		{ "domainPreset: topology.scheduler", "topology.scheduler/spine",
		  "topology.scheduler/leaf", 2 },
		{ "domainPreset: topograph-0.1", "network.topology.nvidia.com/datacenter",
		  "network.topology.nvidia.com/accelerator", 4 },
		{ "domainPreset: topograph-0.3", "network.topology.nvidia.com/core",
		  "network.topology.nvidia.com/accelerator", 4 },
		{ "domainPreset: topograph-1.0", "fabric.topograph.run/tier-2",
		  "accelerator.topograph.run/sub-domain", 5 },
		{ "domainPreset: kubernetes", "topology.kubernetes.io/region",
		  "topology.kubernetes.io/rack", 3 },
		{ "domainLabels: [a, b, c, d, e, f, g, h]", "h", "a", 8 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct scheduler_settings s = parsed(rows[i].text);

		CHECK_INT(s.domain_keys_count, rows[i].count);
		CHECK_STR(s.domain_keys[0], rows[i].outermost);
		CHECK_STR(s.domain_keys[rows[i].count - 1], rows[i].nearest);
	}
}

TEST(what_cannot_be_is_said_in_one_sentence_and_changes_nothing)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "- a", "file: it is no mapping" },
		{ "a: [", "file:2:1: " },
		{ "{}\n---\n{}\n", "file: a configuration is one document, this has 2" },
		{ "weights: {}", "file: weights is unknown" },
		{ "polcy: default", "file: polcy is unknown, did you mean policy?" },
		{ "scoringWeights: 3", "file: scoringWeights is no mapping" },
		{ "scoringWeights: {topologyAlignement: 1}",
		  "file: scoringWeights.topologyAlignement is unknown, did you mean "
		  "topologyAlignment?" },
		{ "scoringWeights: {topologyAlignment: -1}",
		  "file: scoringWeights.topologyAlignment must be a number from 0 to 1000000" },
		{ "scoringWeights: {topologyAlignment: much}",
		  "file: scoringWeights.topologyAlignment must be a number from 0 to 1000000" },
		{ "scoringWeights: {resourceAvailability: 0, topologyAlignment: 0,"
		  " domainUtilization: 0, historicalPerformance: 0}",
		  "file: scoringWeights are all 0" },
		{ "topologyConstraints: {maxNodesPerLeaf: -1}",
		  "file: topologyConstraints.maxNodesPerLeaf must be a whole number from 0 to "
		  "1000000" },
		{ "topologyConstraints: {maxNodesPerLeaf: 4, maxNodesPerDomain: 5}",
		  "file: topologyConstraints: maxNodesPerLeaf and maxNodesPerDomain differ" },
		{ "policy: best",
		  "file: policy is \"best\", which is none of default, binpack, spread" },
		{ "policy: fgd",
		  "file: policy is \"fgd\", which is none of default, binpack, spread" },
		{ "policy: 3", "file: policy is \"\", which is none of default, binpack, spread" },
		{ "maxPodsPerSharedGpu: 0",
		  "file: maxPodsPerSharedGpu must be a whole number from 1 to 1000" },
		{ "domainLabels: []", "file: domainLabels must be a list of 1 to 8 labels" },
		{ "domainLabels: [a, b, c, d, e, f, g, h, i]",
		  "file: domainLabels must be a list of 1 to 8 labels" },
		{ "domainLabels: [a, 3]", "file: domainLabels: an entry is no string" },
		{ "domainLabels: [a, a]", "file: domainLabels: a is there twice" },
		{ "domainLabels: ['a b']", "file: domainLabels " },
		{ "domainLabels: [a]\ndomainPreset: kubernetes",
		  "file: domainLabels and domainPreset exclude each other" },
		{ "domainPreset: mine",
		  "file: domainPreset is \"mine\", which is none of topology.scheduler, "
		  "topograph-0.1, topograph-0.3, topograph-1.0, kubernetes" },
		{ "gangReservationSeconds: 0",
		  "file: gangReservationSeconds must be a whole number from 1 to 86400" },
		{ "podInitialBackoffSeconds: 20",
		  "file: podMaxBackoffSeconds is less than podInitialBackoffSeconds" },
		{ "kind: Pod", "file: kind is \"Pod\", it must be SchedulerConfig or "
			       "TopologySchedulerConfig" },
		{ "kind: SchedulerConfig\napiVersion: v1",
		  "file: apiVersion is \"v1\", it must be topology.scheduler/v1alpha1" },
		{ "kind: SchedulerConfig\napiVersion: topology.scheduler/v1alpha1\nspec: [1]",
		  "file: spec is no mapping" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct scheduler_settings s = { .seats = 42 };

		CHECKF(parse(rows[i].text, &s) < 0, "%s is accepted", rows[i].text);
		CHECKF(strncmp(err.text, rows[i].says, strlen(rows[i].says)) == 0, "%s: %s",
		       rows[i].text, err.text);
		CHECK_INT(s.seats, 42);
	}
}

TEST(settings_are_equal_or_differ_in_one_of_all_fields)
{
	static const char *const texts[] = {
		"{}",
		"scoringWeights: {topologyAlignment: 1}",
		"topologyConstraints: {maxNodesPerLeaf: 1}",
		"topologyConstraints: {maxGPUsPerLeaf: 1}",
		"policy: spread",
		"maxPodsPerSharedGpu: 1",
		"domainLabels: [a]",
		"domainLabels: [a, b]",
		"domainLabels: [b, a]",
		"gangReservationSeconds: 1",
		"podInitialBackoffSeconds: 2",
		"podMaxBackoffSeconds: 11",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(texts); j++) {
			struct scheduler_settings a = parsed(texts[i]), b = parsed(texts[j]);

			CHECKF(settings_equal(&a, &b) == (i == j), "%zu and %zu", i, j);
		}
	}
}

TEST_MAIN()
