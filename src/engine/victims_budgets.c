/* SPDX-License-Identifier: Apache-2.0 */
/* victims_budgets.c - how many of a set of pods are more than their disruption budgets allow.
 *
 * What is spent of each budget is counted up for a set, and down again. */
#include "engine/victims.h"

#include "base/attr.h"

/* Where pods are awaited, those that never end are of a budget that allows none. */
#define BUDGET_ENDLESS 1

uint32_t victims_budget_of(const struct victims *v, const struct pod *pod)
{
	if (pod->ending)
		return 0;
	if (v->priority == PREEMPT_AWAITS)
		return pod->endless ? BUDGET_ENDLESS : 0;
	return pod->budget;
}

int victims_budgets_init(struct victims *v)
{
	uint32_t last = BUDGET_ENDLESS;

	for (uint32_t i = 0; i < cluster_pods_end(v->cluster); i++)
		if (cluster_pod(v->cluster, i))
			last = MAX(last, cluster_pod(v->cluster, i)->budget);
	while (v->spent.len <= last)
		if (vec_push(&v->spent, 0) < 0)
			return -ENOMEM;
	return 0;
}

static uint32_t allowed(const struct victims *v, uint32_t budget)
{
	return v->priority == PREEMPT_AWAITS ? 0 : cluster_budget_allowed(v->cluster, budget);
}

/* 1 if the budget does not allow one more. */
static uint32_t spend(struct victims *v, uint32_t budget)
{
	return budget && ++v->spent.items[budget] > allowed(v, budget);
}

static void unspend(struct victims *v, uint32_t budget)
{
	if (budget)
		v->spent.items[budget]--;
}

uint32_t victims_spend(struct victims *v, const struct victims_unit *unit)
{
	uint32_t violations = spend(v, unit->budget);

	for (const struct victims_spent *s = unit->gang ? unit->gang->spent : NULL; s; s = s->next)
		violations += spend(v, s->budget);
	return violations;
}

void victims_unspend(struct victims *v, const struct victims_unit *unit)
{
	unspend(v, unit->budget);
	for (const struct victims_spent *s = unit->gang ? unit->gang->spent : NULL; s; s = s->next)
		unspend(v, s->budget);
}

uint32_t victims_violations(struct victims *v, const uint32_t *pods, size_t count)
{
	uint32_t violations = 0;

	for (size_t i = 0; i < count; i++)
		violations += spend(v, victims_budget_of(v, cluster_pod(v->cluster, pods[i])));
	for (size_t i = 0; i < count; i++)
		unspend(v, victims_budget_of(v, cluster_pod(v->cluster, pods[i])));
	return violations;
}

/* Whether all units of the node together are too much for a budget of this one. */
static bool is_short(const struct victims *v, uint32_t budget)
{
	return budget && v->spent.items[budget] > allowed(v, budget);
}

bool victims_guard(struct victims *v)
{
	bool any = false;

	for (size_t i = 0; i < v->units.len; i++)
		victims_spend(v, &v->units.items[i]);
	for (size_t i = 0; i < v->units.len; i++) {
		struct victims_unit *unit = &v->units.items[i];
		bool guarded = is_short(v, unit->budget);

		for (const struct victims_spent *s = unit->gang ? unit->gang->spent : NULL; s;
		     s = s->next)
			guarded = guarded || is_short(v, s->budget);
		any = any || (guarded && !unit->guarded);
		unit->guarded = unit->guarded || guarded;
	}
	for (size_t i = 0; i < v->units.len; i++)
		victims_unspend(v, &v->units.items[i]);
	return any;
}
