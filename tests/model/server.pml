/* SPDX-License-Identifier: Apache-2.0 */
/* server.pml - the API server, its objects, and the messages that are still on their way.
 *
 * A resourceVersion is only ever compared for equality with the present one.  So instead
 * of a number, every copy of one (in an entry, in a message, in a scheduler's memory)
 * has an age, and each write to the object ages all copies.  That loses nothing, and the
 * model is finite without a bound on the number of writes, attempts, crashes, deletions
 * and pods that come back under an old name.
 *
 * Attempts are told apart in the same way: mine[gpu] says that the entry there is that of
 * the attempt this scheduler is on, late_bind[gpu] that a Binding of the entry's own
 * attempt is on its way, stray that one is whose entry is not there.
 *
 * A request that is answered takes one step: nothing its sender could do in between is
 * lost by that.  One that is not answered stays here and lands at any time, or never.
 */

#define PODS 2
#define GPUS 2
#define SCHEDULERS 2
#define LEASE(g) ((g) * LEASES / GPUS)

/* Age of a copy of a resourceVersion. */
#define NONE 0	/* there is no copy */
#define FRESH 1	/* the present one */
#define OLD 2	/* of an object that is gone */
#define HELD 3	/* in an entry: its pod is bound, on this GPU and by this attempt */
#define DROP 5	/* in a PUT: it writes no entry */
#define CLOSE 6	/* in a PUT: it closes the Lease */
/* The object was written since.  Where nothing can come of it any more, that is the same
 * as OLD, and most states fall together. */
#if defined(GANG) || defined(NO_BIND_VERSION) || defined(NO_BIND_UID) || defined(NO_RENEWAL)
#define STALE 4
#else
#define STALE OLD
#endif

/* Where Leases come and go there is no preemption, and no cache lags behind: there would be too
 * many states. */
#if defined(LOSS) || defined(FINALIZER)
#define LEASES_GO
#endif

/* Life of a Lease.  What somebody deletes is used as before while it has entries, for its
 * finalizer keeps it.  Emptied, it is closed by one write, and by the next one freed of the
 * finalizer: which the server compares with the version, and then deletes by uid alone. */
#define KEPT 0
#define DELETING 1
#define CLOSED 2 /* nobody adds to it any more */
#define MISSING 3
#define missing(l) (life[l] == MISSING)
/* Without a finalizer it goes with what is in it, which does not count until it is made anew. */
#if defined(LOSS) || defined(NO_FINALIZER)
#define VANISHES true
#else
#define VANISHES false
#endif

/* State of a pod.  A finished one is GONE: neither holds anything nor comes back. */
#define GONE 0
#define PENDING 1
#define BOUND 2
#define LEAVING 3 /* deleted, its grace not over */

typedef Pod {
	byte state;
	byte gpu
}

typedef Entry {
	byte age;
	byte pod
}

/* The PUT of an attempt that is over, on the present version of a Lease: what it writes for
 * which GPU.  Of several at most one can land, for it moves the version; so one is kept,
 * any of them. */
typedef Put {
	byte age;	/* NONE: there is no such PUT */
	byte pod;
	byte gpu
}

/* What a scheduler knows; a crash clears it. */
typedef Job {
	byte pod;	 /* the member it is at */
	byte lease;	 /* its copy of the Lease of gpu[pod]: FRESH, or STALE */
	bool sent;	 /* a PUT for gpu[pod] is on its way */
	byte read[PODS]; /* its copy of the pod */
	byte gpu[PODS];	 /* decided */
	bool mine[GPUS]; /* its attempt is in the entry */
	byte victim;	 /* to be deleted: pod + 1, and PODS more when it has gone */
	bool seen[PODS]	 /* bound, by the LIST */
}

Pod pod[PODS];
Entry entry[GPUS];
Put late_put[LEASES];
bool late_bind[GPUS];
bool stray[PODS * GPUS];
byte life[LEASES];
Job job[SCHEDULERS];
#ifdef LOSS
bool lost;
#endif
#ifdef FINALIZER
bool freeing; /* Lease 0 as it is now is about to be deleted by its uid */
#endif

/* Scratch, zero between steps: one state must not count as many. */
byte i;
byte g;
byte k;
byte m;
#define STEP(body) d_step { body; i = 0; g = 0; k = 0; m = 0 }

#define alive(p) (pod[p].state == BOUND || pod[p].state == LEAVING)
#define locked(p) (alive(p) || pod[p].state == GONE || \
	((entry[0].age == FRESH || entry[0].age == STALE) && entry[0].pod == p) || \
	((entry[1].age == FRESH || entry[1].age == STALE) && entry[1].pod == p))

/* Every write to a pod. */
inline pod_moved(mp)
{
	printf("server: the version of pod %d moves\n", mp);
	for (i : 0 .. GPUS - 1) {
#ifndef NO_BIND_VERSION
		late_bind[i] = late_bind[i] && entry[i].pod != mp;
		stray[mp * GPUS + i] = false;
#endif
		if
		:: entry[i].age == FRESH && entry[i].pod == mp ->
			entry[i].age = STALE;
			entry[i].pod = (STALE == OLD -> 0 : mp)
		:: else
		fi
	}
	for (i : 0 .. LEASES - 1) {
		if
		:: late_put[i].age == FRESH && late_put[i].pod == mp ->
			late_put[i].age = STALE;
			late_put[i].pod = (STALE == OLD -> 0 : mp)
		:: else
		fi
	}
	for (i : 0 .. SCHEDULERS - 1) {
		if
		:: job[i].read[mp] == FRESH -> job[i].read[mp] = STALE
		:: else
		fi
	}
	skip
}

inline pod_gone(gp)
{
	printf("server: pod %d is gone\n", gp);
	pod_moved(gp);
	pod[gp].state = GONE;
	pod[gp].gpu = 0;
	for (i : 0 .. GPUS - 1) {
#ifndef NO_BIND_UID
		late_bind[i] = late_bind[i] && entry[i].pod != gp;
		stray[gp * GPUS + i] = false;
#endif
		if
		:: entry[i].pod == gp && (entry[i].age == HELD || entry[i].age == STALE) ->
			entry[i].age = OLD;
			entry[i].pod = 0;
			stray[gp * GPUS + i] = stray[gp * GPUS + i] || late_bind[i];
			late_bind[i] = false
		:: else
		fi
	}
	for (i : 0 .. LEASES - 1) {
		if
		:: late_put[i].age == STALE && late_put[i].pod == gp ->
			late_put[i].age = OLD;
			late_put[i].pod = 0
		:: else
		fi
	}
	for (i : 0 .. SCHEDULERS - 1) {
		if
		:: job[i].read[gp] == STALE -> job[i].read[gp] = OLD
		:: else
		fi;
		job[i].seen[gp] = false;
		job[i].victim = (job[i].victim == gp + 1 -> gp + 1 + PODS : job[i].victim)
	}
	skip
}

/* A Binding that lands.  own: its attempt is in the entry. */
inline pod_bind(bp, bg, own)
{
	printf("server: pod %d is bound to GPU %d (entry of this attempt: %d)\n", bp, bg, own);
	pod_moved(bp);
	assert(!(pod[1 - bp].gpu == bg && alive(1 - bp)));	/* no GPU is booked twice */
	assert(own || (VANISHES && missing(LEASE(bg))));	/* a bound pod has its entry */
#ifdef GANG
	assert(locked(1 - bp));					/* all of the gang is locked */
#endif
	pod[bp].state = BOUND;
	pod[bp].gpu = bg;
	if
	:: own ->
		entry[bg].age = HELD;
		entry[bg].pod = bp
	:: else
	fi
}

/* Every write to a Lease, and its end. */
inline lease_moved(ml)
{
	late_put[ml].age = NONE;
	late_put[ml].pod = 0;
	late_put[ml].gpu = 0;
	for (i : 0 .. SCHEDULERS - 1) {
		if
		:: job[i].lease && LEASE(job[i].gpu[job[i].pod]) == ml ->
			job[i].lease = STALE;
			job[i].sent = false
		:: else
		fi
	}
	skip
}

/* The entry of a GPU is no more. */
inline entry_gone(eg)
{
	if
	:: late_bind[eg] ->
		late_bind[eg] = false;
		stray[entry[eg].pod * GPUS + eg] = true
	:: else
	fi;
	entry[eg].age = NONE;
	entry[eg].pod = 0;
	for (i : 0 .. SCHEDULERS - 1) {
		job[i].mine[eg] = false
	}
	skip
}

/* A PUT that lands: in the Lease of this GPU, this entry for it, the others as they were. */
inline lease_put(pg, page, ppod)
{
	printf("server: the Lease gets for GPU %d pod %d, age %d\n", pg, ppod, page);
	assert(entry[pg].age != HELD);	/* the entry of a live pod is never dropped */
	lease_moved(LEASE(pg));
	entry_gone(pg);
	if
	:: page != DROP ->
		entry[pg].age = page;
		entry[pg].pod = (page == OLD -> 0 : ppod)
	:: else
	fi
}

/* Whatever a PUT has in it. */
inline lease_write(wg, wage, wpod)
{
	if
	:: wage == CLOSE ->
		printf("server: Lease %d is closed\n", LEASE(wg));
		life[LEASE(wg)] = CLOSED;
		lease_moved(LEASE(wg))
	:: else -> lease_put(wg, wage, wpod)
	fi
}

/* A Lease that has just been created holds all the pods that are bound there. */
inline lease_created(cl)
{
	printf("server: Lease %d is created\n", cl);
	life[cl] = KEPT;
	for (i : 0 .. PODS - 1) {
		assert(!alive(i) || LEASE(pod[i].gpu) != cl ||
			(entry[pod[i].gpu].age == HELD && entry[pod[i].gpu].pod == i))
	}
	skip
}

/* A Lease is gone, with whatever is in it. */
inline lease_gone(l)
{
	printf("server: Lease %d is gone\n", l);
	life[l] = MISSING;
	lease_moved(l);
#ifdef FINALIZER
	freeing = false;
#endif
	for (k : 0 .. GPUS - 1) {
		if
		:: LEASE(k) == l ->
			assert(VANISHES || entry[k].age != HELD);	/* it stays while its pod lives */
			entry_gone(k)
		:: else
		fi
	}
	skip
}

/* A PUT that nobody waits for any more. */
inline put_late(page, ppod, pg)
{
	late_put[LEASE(pg)].age = page;
	late_put[LEASE(pg)].pod = (page == OLD -> 0 : ppod);
	late_put[LEASE(pg)].gpu = pg
}

inline forget(s)
{
	job[s].pod = 0;
	job[s].lease = NONE;
	job[s].sent = false;
	job[s].victim = 0;
	for (i : 0 .. 1) {
		job[s].read[i] = NONE;
		job[s].gpu[i] = 0;
		job[s].mine[i] = false;
		job[s].seen[i] = false
	}
	skip
}
