/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler.pml - the lock protocol, as each scheduler follows it.
 *
 * Each atomic step is one request with its answer, or one decision.  A scheduler may stop
 * for good after any of them: it goes to idle and knows nothing any more, whereas what it
 * sent is still on its way.  Idle schedulers allocate, collect, preempt and build at will:
 * nothing here depends on who leads, on a clock, or on a guess about who is dead.
 *
 * The #ifdefs of FAILS in check.py each leave out one rule.
 */

#define JOB job[s]
#define MEMBER job[s].pod
#define GPU job[s].gpu[job[s].pod]
#define READ job[s].read[job[s].pod]
#define CRASH :: true -> goto idle

/* As read from the Lease, of a pod read thereafter. */
#define DEAD_ENTRY (entry[GPU].age == OLD || entry[GPU].age == STALE)
#if defined(CACHE_MISS)
#define DEAD (entry[GPU].age != NONE)
#elif defined(TAKE_EARLY)
#define DEAD (DEAD_ENTRY || (entry[GPU].age == HELD && pod[entry[GPU].pod].state == LEAVING))
#else
#define DEAD DEAD_ENTRY
#endif

#if defined(NO_BIND_VERSION)
#define BIND_ACCEPTED (READ != OLD && pod[MEMBER].state == PENDING)
#elif defined(NO_BIND_UID)
#define BIND_ACCEPTED ((READ == FRESH || READ == OLD) && pod[MEMBER].state == PENDING)
#else
#define BIND_ACCEPTED (READ == FRESH)
#endif

#if defined(NO_PUT_VERSION)
#define PUT_ACCEPTED (!missing(LEASE(GPU)))
#else
#define PUT_ACCEPTED (JOB.lease == FRESH)
#endif

/* Where an entry may be added.  With the finalizer also to a Lease that is missing, by making it
 * without further ado: it had no entry that still counts. */
#if defined(ADD_TO_CLOSED)
#define USABLE(l) true
#elif defined(FINALIZER)
#define USABLE(l) (life[l] != CLOSED)
#else
#define USABLE(l) (!missing(l))
#endif
#define EMPTY (entry[0].age == NONE && (LEASES > 1 || entry[1].age == NONE))

inline put_entry()
{
	m = MEMBER;
	g = GPU;
	k = READ;
	lease_put(g, k, m);
	JOB.mine[g] = true;
	JOB.lease = NONE
}

#ifdef FINALIZER
inline post_entry()
{
	put_entry();
	k = LEASE(g);
	lease_created(k)
}
#endif

inline bind_member()
{
	m = MEMBER;
	g = GPU;
	k = JOB.mine[g] && entry[g].age != OLD;
	pod_bind(m, g, k)
}

/* One that is not answered: whether its attempt is in the entry decides what it is later. */
inline bind_late()
{
	m = MEMBER;
	g = GPU;
	printf("scheduler %d: Binding of pod %d to GPU %d, not answered\n", s, m, g);
	if
	:: JOB.mine[g] && entry[g].age != OLD -> late_bind[g] = true
	:: else -> stray[m * GPUS + g] = true
	fi
}

inline lease_build()
{
	for (i : 0 .. PODS - 1) {
		if
		:: JOB.seen[i] ->
			entry[pod[i].gpu].age = HELD;
			entry[pod[i].gpu].pod = i
		:: else
		fi
	}
	lease_created(0)
}

/* A status patch that really changes something. */
inline fence(fp)
{
#ifndef NOOP_FENCE
	pod_moved(fp)
#else
	skip
#endif
}

/* Allocate: pods are read, unbound; a Lease is read, and a GPU of it chosen. */
inline allocate()
{
#ifdef GANG
	JOB.read[0] = (pod[0].state == PENDING -> FRESH : NONE);
	JOB.read[1] = (pod[1].state == PENDING -> FRESH : NONE);
	MEMBER = (JOB.read[0] -> 0 : 1)
#else
	if
	:: pod[0].state == PENDING
	:: pod[1].state == PENDING -> MEMBER = 1
	fi;
	if
	:: READ = FRESH
#ifndef LEASES_GO
	:: READ = STALE		/* a cache that lags behind */
#endif
	fi
#endif
}

proctype scheduler(byte s)
{
idle:
	/* A crash, or the end of an attempt: what was sent is still on its way. */
	atomic {
		if
		:: JOB.sent -> STEP(m = MEMBER; g = GPU; k = READ; put_late(k, m, g))
		:: !JOB.sent || late_put[LEASE(GPU)].age
		fi;
		printf("scheduler %d: idle\n", s);
		STEP(forget(s))
	};
	if
	:: atomic { pod[0].state == PENDING || pod[1].state == PENDING -> allocate(); goto choose }
#ifdef POD_FIRST
	:: atomic { pod[0].state == PENDING -> READ = FRESH }
	:: atomic { pod[1].state == PENDING -> MEMBER = 1; READ = FRESH }
#else
	:: atomic { entry[0].age -> goto collect }
	:: atomic { entry[1].age -> GPU = 1; goto collect }
#endif
#ifdef LOSS
	:: atomic { missing(0) -> goto build }
#endif
#ifdef FINALIZER
	:: atomic { life[0] == DELETING && EMPTY -> JOB.lease = FRESH; goto close }
	:: atomic { life[0] == CLOSED -> JOB.lease = FRESH; goto free }
#endif
	fi;

#ifdef POD_FIRST
	atomic {
		if
		:: entry[0].age == FRESH && entry[0].pod == MEMBER && READ != FRESH
		:: entry[1].age == FRESH && entry[1].pod == MEMBER && READ != FRESH -> GPU = 1
		CRASH
		fi;
		READ = NONE;
		JOB.lease = FRESH;
		goto drop
	};
#endif

	/* A GPU without an entry, or with a dead one, or with a victim. */
choose:
	atomic {
		if
		:: USABLE(LEASE(0))
		:: USABLE(LEASE(1)) -> GPU = 1
		CRASH
		fi;
		if
		:: entry[GPU].age == NONE
#ifndef GANG
		:: entry[GPU].age != NONE && DEAD
#ifndef LEASES_GO
		:: entry[GPU].age == HELD && pod[entry[GPU].pod].state == BOUND -> goto preempt
#endif
		:: else -> goto idle
#else
		/* It cannot complete: what it has locked is released.  No Binding of this attempt
		 * was sent, so there is none to fence off. */
		:: entry[GPU].age != NONE && MEMBER == 1 && JOB.read[0] && JOB.mine[JOB.gpu[0]] ->
			MEMBER = 0;
			JOB.lease = FRESH;
			goto drop
		:: entry[GPU].age != NONE -> goto idle
#endif
		fi;
		JOB.lease = (missing(LEASE(GPU)) -> NONE : FRESH);
		printf("scheduler %d: pod %d, read at age %d, is to get GPU %d\n", s, MEMBER, READ, GPU)
	};

	/* One PUT drops what is dead there and adds the entry.  Unanswered: look; the same
	 * version is sent again, one that moved without our attempt is lost. */
lock:
	atomic {
		if
		:: !JOB.mine[GPU] && PUT_ACCEPTED -> STEP(put_entry())
#ifdef NO_PUT_UID
		:: !JOB.mine[GPU] && missing(LEASE(GPU)) ->
			STEP(put_entry(); k = LEASE(g); lease_created(k))
#endif
#ifdef FINALIZER
		:: JOB.lease == NONE && missing(LEASE(GPU)) -> STEP(post_entry())
#endif
		:: JOB.lease == FRESH && !JOB.sent ->
			printf("scheduler %d: PUT for GPU %d, not answered\n", s, GPU);
			JOB.sent = true;
			goto lock
		:: JOB.mine[GPU]
#if defined(ASSUME_WON)
		:: JOB.lease != FRESH
#elif defined(ANY_ATTEMPT)
		:: JOB.lease != FRESH && entry[GPU].age == FRESH && entry[GPU].pod == MEMBER
#elif defined(BLIND_RETRY)
		:: !JOB.mine[GPU] && JOB.lease != FRESH -> JOB.lease = FRESH; goto lock
#endif
		:: !JOB.mine[GPU] && JOB.lease != FRESH -> goto idle
		CRASH
		fi;
		JOB.lease = NONE;
		JOB.sent = false;
#if defined(GANG) && !defined(GANG_EARLY)
		if
		:: MEMBER == 0 && JOB.read[1] -> MEMBER = 1; goto choose
		:: else -> MEMBER = (JOB.read[0] -> 0 : 1)
		fi
#endif
	};

	/* Binding with uid and resourceVersion.  Unanswered: look; unbound at the same version,
	 * the same is sent again; at another, it is over. */
binding:
	atomic {
		if
		:: BIND_ACCEPTED -> STEP(bind_member())
		:: BIND_ACCEPTED ->
			STEP(bind_late());
#ifdef FREE_UNREAD
			JOB.lease = FRESH;
			goto drop
#else
			goto binding
#endif
		:: READ != FRESH && JOB.mine[GPU] && entry[GPU].age == HELD
#ifdef NO_RENEWAL
		:: READ == STALE && pod[MEMBER].state == PENDING -> READ = FRESH; goto binding
#endif
		:: READ != FRESH && !(JOB.mine[GPU] && entry[GPU].age == HELD) -> goto idle
		CRASH
		fi;
#ifdef GANG
		if
		:: MEMBER == 0 && JOB.read[1] ->
			MEMBER = 1;
#ifdef GANG_EARLY
			goto choose
#else
			goto binding
#endif
		:: else
		fi;
#endif
		goto idle
	};

#if !defined(GANG) && !defined(LEASES_GO)
	/* Preempt: delete the victim, by uid.  Its GPU can be taken when it is gone. */
preempt:
	atomic { STEP(m = entry[GPU].pod + 1; forget(s); JOB.victim = m) };
	atomic {
		if
		:: JOB.victim <= PODS && pod[JOB.victim - 1].state == BOUND ->
			STEP(m = JOB.victim - 1; pod_moved(m); pod[m].state = LEAVING)
#ifdef NO_DELETE_UID
		:: JOB.victim > PODS ->
			assert(pod[JOB.victim - PODS - 1].state == GONE)	/* it is another's */
#endif
		:: else
		fi;
		goto idle
	};
#endif

	/* Collect: the Lease is read, then the pod of one of its entries. */
collect:
	atomic {
		printf("scheduler %d: collects the entry of GPU %d\n", s, GPU);
		JOB.lease = FRESH;
		if
		:: DEAD
		:: !DEAD && entry[GPU].age == HELD -> goto idle
		:: !DEAD && entry[GPU].age == FRESH ->
			/* Alive and unbound: it is fenced, and seen to be still unbound. */
#ifndef NO_FENCE
			STEP(m = entry[GPU].pod; fence(m))
#endif
		fi;
#if defined(GANG) && !defined(FENCE_ONE)
		/* And before one of a gang loses its entry, the other: its Binding may be under way. */
		STEP(m = 1 - entry[GPU].pod;
			if
			:: pod[m].state == PENDING -> fence(m)
			:: else
			fi)
#endif
	};
drop:
	atomic {
		if
		:: PUT_ACCEPTED -> STEP(g = GPU; lease_put(g, DROP, 0))
		:: JOB.lease == FRESH -> STEP(g = GPU; put_late(DROP, 0, g))
		:: JOB.lease != FRESH
		CRASH
		fi;
		goto idle
	};

#ifdef FINALIZER
	/* Remove: a Lease that somebody deletes, once it is empty.  Who has read it before it was
	 * closed is refused, and who reads it closed adds nothing; so nothing can be in it when
	 * the finalizer has gone. */
close:
#ifdef ONE_WRITE
	goto free;
#endif
	atomic {
		if
		:: JOB.lease == FRESH -> STEP(lease_write(0, CLOSE, 0))
		:: JOB.lease == FRESH -> STEP(put_late(CLOSE, 0, 0))
		:: JOB.lease != FRESH
		CRASH
		fi;
		goto idle
	};
free:
	atomic {
		if
		:: JOB.lease == FRESH -> STEP(freeing = true)
		:: JOB.lease != FRESH
		CRASH
		fi;
		goto idle
	};
#endif

#ifdef LOSS
	/* Recover: a missing Lease is built from the pods of its node. */
build:
#ifndef BUILD_UNFENCED
	atomic {
		if
		:: pod[0].state == PENDING -> STEP(fence(0))
		:: else
		fi
	};
	atomic {
		if
		:: pod[1].state == PENDING -> STEP(fence(1))
		:: else
		fi
	};
#endif
#ifndef BUILD_EMPTY
	atomic {
		JOB.seen[0] = alive(0) && LEASE(pod[0].gpu) == 0;
		JOB.seen[1] = alive(1) && LEASE(pod[1].gpu) == 0
	};
#endif
	atomic {
		if
		:: missing(0) -> STEP(lease_build())
		:: else
		fi;
		goto idle
	}
#endif
}
