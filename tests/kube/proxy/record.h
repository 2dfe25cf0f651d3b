/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - the log: what was decided and what came of it, as lines of JSON.
 *
 *	{"seq":1,"at_ms":20,"conn":2,"stream":5,"method":"GET","path":"/api/v1/pods?watch=1",
 *	 "identity":"GET /api/v1/pods?watch","n":1,"rule":1,"fault":"cut","point":"events","count":3}
 *	{"seq":2,"at_ms":95,"of":1,"effect":"cut","bytes":4117,"events":3}
 *
 * The first kind is all that a replay reads (decide.h); the second says when and at which
 * byte of the body it happened.  `at_ms` counts from the start of the program.
 */
#ifndef GS_TESTS_KUBE_PROXY_RECORD_H
#define GS_TESTS_KUBE_PROXY_RECORD_H

#include <stddef.h>
#include <stdint.h>

struct decision;
struct err;
struct record;
struct target;

/* Who asks, for the line. */
struct record_origin {
	uint64_t conn, stream;
	const char *path; /* with its query */
};

/* NULL path: nothing is written.  0 or why it cannot be. */
int record_open(const char *path, uint64_t seed, struct record **ret, struct err *err);
void record_close(struct record *record);

/* One line for each part.  Returns the number of the last. */
uint64_t record_decision(struct record *record, uint64_t ms, const struct record_origin *origin,
			 const struct target *target, const struct decision *decision);

/* What came of decision `of`: a word, and how much of the body was passed on before. */
void record_effect(struct record *record, uint64_t ms, uint64_t of, const char *effect,
		   uint64_t bytes, uint64_t events);

/* The server did not answer. */
void record_trouble(struct record *record, uint64_t ms, const struct record_origin *origin,
		    const char *reason);

#endif
