/* SPDX-License-Identifier: Apache-2.0 */
/* script.h - the rules by which faults come: a text of one rule on each line.
 *
 *	on verb=watch resource=pods p=0.02 cut after=events:3
 *	on resource=pods/binding nth=7 cut before-write
 *	on any p=0.1 delay=5..200ms
 *	limit max=20
 *
 * README.md beside this file is the manual of the language; every word of it is a row of
 * a table in script_words.c.  A script is read-only once it is parsed.
 */
#ifndef GS_TESTS_KUBE_PROXY_SCRIPT_H
#define GS_TESTS_KUBE_PROXY_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fault.h"

struct err;
struct target;

#define SCRIPT_MAX	 ((size_t)256 << 10) /* bytes */
#define SCRIPT_RULES_MAX 256
#define SCRIPT_P_ALWAYS	 UINT32_C(1000000000) /* p is in billionths */
#define SCRIPT_HOLD_MS	 5000		      /* longest hold where the rule says none */

/* Conditions that take a list of patterns; the value of each is matched against them. */
enum script_match {
	MATCH_VERB,
	MATCH_METHOD,
	MATCH_RESOURCE,
	MATCH_NAMESPACE,
	MATCH_NAME,
	MATCH_PATH,
	SCRIPT_MATCHES,
};

struct script_range {
	uint64_t min, max;
};

struct script_limits {
	uint64_t max;		 /* faults; UINT64_MAX: any number */
	uint64_t gap_ms;	 /* between two of them, at least */
	uint64_t after_requests; /* that match, none of them with a fault */
};

struct script_rule {
	size_t line;
	char *match[SCRIPT_MATCHES]; /* "get,list"; NULL: any */
	bool watch_only;	     /* the fault needs the events of a watch */
	uint32_t p_billionths;
	uint64_t nth, every; /* 0: not asked for */
	struct script_limits limits;
	struct fault fault; /* with what is not drawn */
	struct script_range ms, count;
};

struct script {
	struct script_rule *rules;
	size_t count;
	struct script_limits limits; /* of all rules together */
};

/* Reads a script; `name` is its file's.  0, -EINVAL ("name:line: what to write"),
 * -E2BIG, -ENOMEM. */
int script_parse(const char *name, const char *text, size_t len, struct script *ret,
		 struct err *err);
void script_done(struct script *script);

/* Whether the rule's conditions on the request itself hold. */
bool script_rule_matches(const struct script_rule *rule, const struct target *target);

/* Whether s, of n bytes, is matched by one of the patterns between commas, in which * is
 * any number of any bytes and ? is one of them. */
bool script_glob_any(const char *patterns, const char *s, size_t n);

#endif
