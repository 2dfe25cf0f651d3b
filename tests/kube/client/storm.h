/* SPDX-License-Identifier: Apache-2.0 */
/* storm.h - many writers and caches behind a proxy that breaks every third request.
 *
 * What a writer does can be judged at the end, because of what it writes into the object:
 *
 *	counters	several writers replace one Lease: each success that is believed is
 *			one step of a number, and each writer's last success is written there
 *	binders		two bind the same pod to different nodes: one of them believes it,
 *			and that is whose node and attempt the pod has
 *	cycles		a ConfigMap is made, patched in every way, deleted by uid, made again
 *
 * A write whose outcome is in doubt is resolved by reading: ours is in it: done;
 * the version has moved without it: lost; same version: the identical write again.
 *
 * Writers end by themselves once `ending` is set, each with its last write resolved.
 */
#ifndef GS_TESTS_KUBE_CLIENT_STORM_H
#define GS_TESTS_KUBE_CLIENT_STORM_H

#include "faults.h"
#include "live.h"

#include "base/rng.h"
#include "kube/write.h"

struct json;
struct storm_caches;

#define STORM_NAMESPACE	  "storm"
#define STORM_COUNTERS	  8    /* Leases */
#define STORM_COUNTING	  4    /* writers of each */
#define STORM_PAIRS	  24   /* of binders */
#define STORM_PODS_MAX	  2000 /* of each pair */
#define STORM_CYCLES	  48
#define STORM_DEADLINE_MS 5000 /* of one try: less than the longest silence */

/* What every writer has. */
struct storm_writer {
	struct storm *storm;
	unsigned number;
	char version[32], uid[64]; /* of the object as it was read */
	struct strbuf body;	   /* of the write on its way */
};

struct storm_counter {
	char name[32];
	uint64_t won; /* by all who count */
};

struct storm_counting {
	struct storm_writer writer;
	struct storm_counter *counter;
	unsigned attempt; /* on its way */
	unsigned last;	  /* that was won; 0: none */
};

struct storm_pod {
	char attempt[48]; /* of who believes that it is bound; "" : nobody */
	char node[16];
};

struct storm_pair {
	unsigned number;
	struct storm_pod pods[STORM_PODS_MAX];
};

struct storm_binder {
	struct storm_writer writer;
	struct storm_pair *pair;
	unsigned side;
	unsigned pod;	  /* which one, from 0 */
	unsigned tries;	  /* so far, for the attempt's name */
	char attempt[48]; /* for `version` */
	char node[16], name[32];
};

struct storm_cycle {
	struct storm_writer writer;
	char name[32];
	unsigned generation; /* the attempt id of the object */
	unsigned n;	     /* data.n, as believed */
	unsigned until;	     /* n at which it is deleted */
	bool deletes;	     /* now */
	uint64_t deleted;
};

struct storm {
	struct live live;   /* through the proxy */
	struct live direct; /* past it, on the same loop */
	struct faults faults;
	struct rng rng;
	bool ending;
	unsigned busy;	  /* writers that have not ended */
	uint32_t peak;	  /* most requests that were in flight */
	uint64_t doubted; /* writes that were read again */
	struct storm_counter counters[STORM_COUNTERS];
	struct storm_counting counting[STORM_COUNTERS * STORM_COUNTING];
	struct storm_pair pairs[STORM_PAIRS];
	struct storm_binder binders[2 * STORM_PAIRS];
	struct storm_cycle cycles[STORM_CYCLES];
	struct storm_caches *caches;
};

/* Each begins all of its kind, and checks all of them at the end, against the server. */
void storm_count_begin(struct storm *storm);
void storm_count_check(struct storm *storm);
void storm_bind_begin(struct storm *storm);
void storm_bind_check(struct storm *storm);
void storm_cycle_begin(struct storm *storm);
void storm_cycle_check(struct storm *storm);

/* Caches of the same kinds, in lists and as streams. */
void storm_caches_begin(struct storm *storm);
/* Waits until each has just what the server has, content included. */
void storm_caches_check(struct storm *storm);
void storm_caches_end(struct storm *storm);

/* For the writers. */
void storm_writer_begin(struct storm_writer *writer, struct storm *storm, unsigned number);
void storm_writer_end(struct storm_writer *writer);
/* Sends it, in the namespace, with a deadline; the answer comes to done(). */
void storm_write(struct storm_writer *writer, struct kube_write write);
/* Notes version and uid of an object. */
void storm_note(struct storm_writer *writer, const struct json *object);
/* The object as a result shows it, NULL if it shows none. */
const struct json *storm_shown(const struct kube_write_result *result);
/* What a list of the server past the proxy has. */
struct json_doc *storm_list(struct storm *storm, const char *path);

#endif
