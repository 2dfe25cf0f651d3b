/* SPDX-License-Identifier: Apache-2.0 */
/* preempt_await.c - who of those that are going anyway has to be gone first. */
#include "engine/victims.h"

#include <stdlib.h>

/* Pods of lower priority on the node that are being deleted. */
static int find_ending(const struct cluster *c, uint32_t node, int32_t priority,
		       struct preemption *p)
{
	uint32_t count = 0;

	for (uint32_t i = cluster_node(c, node)->first_pod; i != POD_NONE;
	     i = cluster_pod(c, i)->next)
		count += cluster_pod(c, i)->ending && cluster_pod(c, i)->priority < priority;
	if (!count)
		return -ENOENT;
	p->victims = calloc(count, sizeof(*p->victims));
	if (!p->victims)
		return -ENOMEM;
	for (uint32_t i = cluster_node(c, node)->first_pod; i != POD_NONE;
	     i = cluster_pod(c, i)->next)
		if (cluster_pod(c, i)->ending && cluster_pod(c, i)->priority < priority)
			p->victims[p->victims_count++] = i;
	return 0;
}

/* Leaves out whom the request fits beside; the order of the others stays. */
static int leave_out(struct engine *e, const struct request *r, uint32_t node,
		     struct preemption *p)
{
	int rc = 0;

	for (uint32_t i = 0; i < p->victims_count && p->victims_count > 1 && rc != -ENOMEM;) {
		uint32_t spared = p->victims[i], last = p->victims_count - 1;

		for (uint32_t j = i; j < last; j++)
			p->victims[j] = p->victims[j + 1];
		rc = preempt_decide_without(e, r, node, p->victims, last, p->decisions);
		if (rc == 0) {
			p->victims_count = last;
			continue;
		}
		for (uint32_t j = last; j > i; j--)
			p->victims[j] = p->victims[j - 1];
		p->victims[i++] = spared;
	}
	return rc == -ENOMEM ? rc : 0;
}

static void add_up(const struct cluster *c, struct preemption *p)
{
	p->cost = (struct preempt_cost)PREEMPT_COST_NONE;
	for (uint32_t i = 0; i < p->victims_count; i++) {
		const struct pod *pod = cluster_pod(c, p->victims[i]);
		struct preempt_cost cost = victims_pod_cost(pod);

		preempt_cost_add(&p->cost, &cost);
	}
}

int preempt_await(struct engine *e, const struct request *r, int32_t priority, uint32_t node,
		  struct preemption *ret)
{
	const struct cluster *c = engine_cluster(e);
	struct preemption p = { .decisions_count = 1 };
	int rc = find_ending(c, node, priority, &p);

	if (rc == 0 && !(p.decisions = calloc(1, sizeof(*p.decisions))))
		rc = -ENOMEM;
	if (rc == 0) {
		preempt_sort_pods(c, p.victims, p.victims_count);
		rc = preempt_decide_without(e, r, node, p.victims, p.victims_count, p.decisions);
	}
	if (rc == 0)
		rc = leave_out(e, r, node, &p);
	/* The last trial may have been one that failed. */
	if (rc == 0)
		rc = preempt_decide_without(e, r, node, p.victims, p.victims_count, p.decisions);
	if (rc < 0) {
		preemption_done(&p);
		return rc;
	}
	add_up(c, &p);
	*ret = p;
	return 0;
}
