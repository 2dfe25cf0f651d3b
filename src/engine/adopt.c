/* SPDX-License-Identifier: Apache-2.0 */
/* adopt.c - what is there is there. */
#include "engine/adopt.h"
#include "engine/cluster_private.h"

#include <errno.h>
#include <string.h>

void adopt_guess(const struct cluster *c, const struct request *r, uint32_t node,
		 struct assignment *ret)
{
	const struct node *n = cluster_node(c, node);
	struct request trial = *r;

	*ret = (struct assignment){ .weakest_gbps = UINT32_MAX };
	if (assign_gpus(c, NULL, r, n, ret) == FITS)
		return;
	/* Ask by ask, each with as much of its number as can be had beside the earlier ones. */
	trial.asks_count = 0;
	for (uint8_t i = 0; i < r->asks_count; i++) {
		struct ask *ask = &trial.asks[trial.asks_count++];

		*ask = r->asks[i];
		ask->pinned = 0;
		ask->bandwidth_mode = 0;
		while (ask->count && assign_gpus(c, NULL, &trial, n, ret) != FITS)
			ask->count--;
		if (!ask->count)
			trial.asks_count--;
	}
	if (!trial.asks_count || assign_gpus(c, NULL, &trial, n, ret) != FITS)
		*ret = (struct assignment){ .weakest_gbps = UINT32_MAX };
}

int adopt_pod(struct cluster *c, const struct pod_spec *spec, const struct request *r,
	      uint32_t node, const struct assignment *known, uint32_t *ret)
{
	struct assignment a, one = { .count = 1 };
	int rc;

	if (node >= cluster_nodes_end(c) || !cluster_node(c, node)->name)
		return -ENOENT;
	if (!known) {
		adopt_guess(c, r, node, &a);
		return cluster_pod_place(c, spec, r, node, &a, ret);
	}
	rc = cluster_pod_place(c, spec, r, node, known, ret);
	if (rc != -ENOSPC)
		return rc;
	/* Some of it cannot be: each hold is tried by itself. */
	a = (struct assignment){ .weakest_gbps = UINT32_MAX };
	for (uint16_t i = 0; i < known->count; i++) {
		one.holds[0] = known->holds[i];
		rc = cluster_pod_place(c, spec, r, node, &one, ret);
		if (rc < 0 && rc != -ENOSPC)
			return rc;
		if (rc == 0) {
			cluster_pod_remove(c, *ret);
			a.holds[a.count++] = known->holds[i];
		}
	}
	while ((rc = cluster_pod_place(c, spec, r, node, &a, ret)) == -ENOSPC && a.count)
		a.count--;
	return rc;
}
