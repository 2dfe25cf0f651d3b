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
		g = late_put[l].gpu; k = late_put[l].age; m = late_put[l].pod; lease_put(g, k, m))

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

inline lease_lost(l)
{
	printf("world: Lease %d is deleted\n", l);
	lost = true;
	missing[l] = true;
	lease_moved(l);
	for (k : 0 .. GPUS - 1) {
		if
		:: LEASE(k) == l -> entry_gone(k)
		:: else
		fi
	}
	skip
}

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
	:: STEP(!lost && !missing[0] -> lease_lost(0))
#endif
	od
}
