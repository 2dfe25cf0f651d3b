/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - a journal of placements and removals that can be played backwards. */
#include "engine/plan.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>

struct step {
	struct pod *removed; /* NULL: the step placed `pod` */
	uint32_t pod;
};

struct plan {
	struct engine *engine;
	VEC(struct step) steps;
};

struct plan *plan_begin(struct engine *e)
{
	struct plan *p = calloc(1, sizeof(*p));

	if (p)
		p->engine = e;
	return p;
}

int plan_place(struct plan *p, const struct pod_spec *pod, const struct request *r,
	       const struct decision *d, uint32_t *ret)
{
	int rc;

	if (vec_reserve(&p->steps, p->steps.len + 1) < 0)
		return -ENOMEM;
	rc = engine_place(p->engine, pod, r, d, ret);
	if (rc < 0)
		return rc;
	p->steps.items[p->steps.len++] = (struct step){ .pod = *ret };
	return 0;
}

int plan_remove(struct plan *p, uint32_t pod)
{
	if (vec_reserve(&p->steps, p->steps.len + 1) < 0)
		return -ENOMEM;
	p->steps.items[p->steps.len++] = (struct step){
		.removed = cluster_pod_detach(engine_cluster(p->engine), pod),
		.pod = pod,
	};
	return 0;
}

void plan_rollback(struct plan *p)
{
	struct cluster *c;

	if (!p)
		return;
	c = engine_cluster(p->engine);
	while (p->steps.len) {
		const struct step *s = &p->steps.items[--p->steps.len];
		uint32_t number;

		if (!s->removed)
			cluster_pod_remove(c, s->pod);
		else if (cluster_pod_attach(c, s->removed, &number) < 0)
			abort(); /* its place was free and its memory is there */
	}
	vec_done(&p->steps);
	free(p);
}

void plan_commit(struct plan *p)
{
	struct cluster *c;

	if (!p)
		return;
	c = engine_cluster(p->engine);
	for (size_t i = 0; i < p->steps.len; i++)
		if (p->steps.items[i].removed)
			cluster_pod_discard(c, p->steps.items[i].removed);
	vec_done(&p->steps);
	free(p);
}
