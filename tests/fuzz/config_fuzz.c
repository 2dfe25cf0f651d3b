/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is settings that the engine and the queue can live with, or one sentence that
 * names the file. */
#include "fuzz.h"

#include <string.h>

#include "base/err.h"
#include "engine/policy/policy.h"
#include "scheduler/settings.h"

static void check_numbers(const struct scheduler_settings *s)
{
	uint64_t sum = (uint64_t)s->weights.availability + s->weights.alignment +
		       s->weights.utilization + s->weights.performance;

	/* But for what four roundings add or take. */
	REQUIRE(sum >= 1000000 - 2 && sum <= 1000000 + 2);
	REQUIRE(s->policy && !s->policy->shuffled && !s->policy->knows_mix);
	REQUIRE(s->max_nodes_per_leaf <= 1000000 && s->max_gpus_per_leaf <= 1000000);
	REQUIRE(s->seats >= 1 && s->seats <= 1000);
	REQUIRE(s->gang_wait_ms >= 1000 && s->gang_wait_ms <= 86400000);
	REQUIRE(s->backoff_ms >= 1000 && s->backoff_max_ms >= s->backoff_ms);
	REQUIRE(s->backoff_max_ms <= 3600000);
}

static void check_labels(const struct scheduler_settings *s)
{
	const char *keys[NODE_DOMAIN_KEYS_MAX];

	REQUIRE(s->domain_keys_count >= 1 && s->domain_keys_count <= NODE_DOMAIN_KEYS_MAX);
	settings_domains(s, keys);
	for (uint32_t i = 0; i < s->domain_keys_count; i++) {
		REQUIRE(*keys[i] && strlen(keys[i]) < SETTINGS_LABEL_MAX);
		for (uint32_t j = 0; j < i; j++)
			REQUIRE(strcmp(keys[i], keys[j]) != 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scheduler_settings s, again;
	struct err err = ERR_INIT;

	if (settings_parse("file", (const char *)data, size, &s, &err) < 0) {
		REQUIRE(strncmp(err.text, "file:", 5) == 0);
		return 0;
	}
	check_numbers(&s);
	check_labels(&s);
	REQUIRE(settings_parse("file", (const char *)data, size, &again, &err) == 0);
	REQUIRE(settings_equal(&s, &again));
	return 0;
}
