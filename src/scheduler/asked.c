/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/asked.h"

#include <stdlib.h>

#include "engine/rules.h"
#include "engine/soft.h"

void asked_init(struct asked_set *set, struct cluster *cluster, uint64_t seed)
{
	set->cluster = cluster;
	set->seed = seed;
	map_init(&set->by_hash, seed);
}

static void forget(struct asked_set *set, struct asked *asked)
{
	subject_release(set->cluster, asked->request.subject);
	rules_release(set->cluster, asked->request.rules);
	soft_release(set->cluster, asked->request.soft);
	free(asked);
}

void asked_done(struct asked_set *set)
{
	struct map_entry entry;

	for (uint32_t at = 0; map_next(&set->by_hash, &at, &entry);)
		forget(set, entry.value);
	map_done(&set->by_hash);
}

uint64_t asked_hash(const struct asked_set *set, const struct request *r)
{
	uint64_t hash = request_hash(r, set->seed);

	return hash ? hash : 1;
}

struct asked *asked_take(struct asked_set *set, const struct request *r)
{
	uint64_t hash = asked_hash(set, r);
	struct asked *asked = map_get(&set->by_hash, (const char *)&hash, sizeof(hash));

	if (asked) {
		asked->users++;
		return asked;
	}
	asked = malloc(sizeof(*asked));
	if (!asked)
		return NULL;
	*asked = (struct asked){ *r, hash, 1 };
	if (map_put(&set->by_hash, (const char *)&asked->hash, sizeof(asked->hash), asked) < 0) {
		free(asked);
		return NULL;
	}
	subject_hold(set->cluster, r->subject);
	rules_hold(set->cluster, r->rules);
	soft_hold(set->cluster, r->soft);
	return asked;
}

void asked_release(struct asked_set *set, struct asked *asked)
{
	if (!asked || --asked->users)
		return;
	map_del(&set->by_hash, (const char *)&asked->hash, sizeof(asked->hash));
	forget(set, asked);
}
