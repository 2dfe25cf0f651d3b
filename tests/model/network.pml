/* SPDX-License-Identifier: Apache-2.0 */
/* network.pml - what was not answered lands late; and everything that others do. */

inline land_job(s)
{
	i = job[s].pod;
	g = job[s].gpu[i];
	k = job[s].read[i];
	m = i;
	lease_put(g, k, m);
	job[s].mine[g] = true
}

#define LATE_PUT(l) \
	:: STEP(late_put[l].age -> \
		g = late_put[l].gpu; k = late_put[l].age; m = late_put[l].pod; lease_write(g, k, m))

/* A POST has no version that could be too old: one of an attempt that is over lands whenever the
 * Lease is missing, with the entry of a pod as it is or as it was. */
#define LATE_POST(g) \
	:: STEP(missing(0) && pod[0].state == PENDING -> lease_put(g, FRESH, 0); lease_created(0)) \
	:: STEP(missing(0) && pod[1].state == PENDING -> lease_put(g, FRESH, 1); lease_created(0)) \
	:: STEP(missing(0) -> lease_put(g, OLD, 0); lease_created(0))

#define LATE_BIND(g) \
	:: STEP(late_bind[g] -> late_bind[g] = false; i = entry[g].pod; \
		if :: pod[i].state == PENDING -> m = i; pod_bind(m, g, true) :: else fi)

#define STRAY(p, g) \
	:: STEP(stray[p * GPUS + g] -> stray[p * GPUS + g] = false; \
		if :: pod[p].state == PENDING -> pod_bind(p, g, false) :: else fi)

proctype network()
{
	do
	:: STEP(job[0].sent -> land_job(0))
	:: STEP(job[1].sent -> land_job(1))
	LATE_PUT(0)
#if LEASES > 1
	LATE_PUT(1)
#endif
	LATE_BIND(0)
	LATE_BIND(1)
	STRAY(0, 0)
	STRAY(0, 1)
	STRAY(1, 0)
	STRAY(1, 1)
#ifdef FINALIZER
	:: STEP(freeing -> lease_gone(0))
	LATE_POST(0)
#if LEASES == 1
	LATE_POST(1)
#endif
#endif
	od
}

/* A pod's version moves by somebody's hand (or by a late fence); it is deleted, its grace
 * ends, another of the same name is created. */
#define WORLD(p) \
	:: STEP(pod[p].state != GONE -> pod_moved(p))
#define WORLD_DELETES(p) \
	:: STEP(pod[p].state == GONE -> pod[p].state = PENDING; printf("world: another pod %d\n", p)) \
	:: STEP(pod[p].state == PENDING -> pod_gone(p)) \
	:: STEP(pod[p].state == BOUND -> pod_moved(p); pod[p].state = LEAVING) \
	:: STEP(pod[p].state == LEAVING -> pod_gone(p))

#ifdef FINALIZER
inline lease_deleted(l)
{
	printf("world: Lease %d is deleted\n", l);
#ifdef NO_FINALIZER
	lease_gone(l)
#else
	life[l] = DELETING;
	lease_moved(l)
#endif
}
#endif

proctype world()
{
	do
	WORLD(0)
	WORLD(1)
#ifndef GANG
	WORLD_DELETES(0)
	WORLD_DELETES(1)
#endif
#ifdef LOSS
	:: STEP(!lost && !missing(0) -> lost = true; lease_gone(0))
#endif
#ifdef FINALIZER
	:: STEP(life[0] == KEPT -> lease_deleted(0))
#endif
	od
}
