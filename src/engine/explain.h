/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h - why here, and why not there, in words.
 *
 * Events, the command line and the dashboard all say what is said here:
 *
 *	0/12 nodes are available: 3 node(s) had untolerated taint(s), 4 NVLink bandwidth
 *	below 400 GB/s, 5 Insufficient free GPUs (asked for 6, at most 3 free on one node).
 *
 * is kube-scheduler's own form: each "count reason", in the order of these strings.
 *
 * explain_request() visits every node, but asks nodes in the same state once (100,000
 * nodes: some milliseconds if they are alike, tens if not), so it is for refusals and for
 * people, not for each decision.  It changes nothing and allocates nothing; the texts go
 * into the caller's buffer.
 */
#ifndef GS_ENGINE_EXPLAIN_H
#define GS_ENGINE_EXPLAIN_H

#include "engine/engine.h"

#define EXPLAIN_TOP	    4 /* the winner and its runners-up */
#define EXPLAIN_REASONS_MAX (VERDICT_COUNT + EXTENDED_MAX)
#define EXPLAIN_TEXT_MAX    352 /* a resource may have a name of 317 */

#define EXPLAIN_UNKNOWN (-1) /* there is no such figure */

struct strbuf;

/* A node that the request could go to. */
struct explain_choice {
	struct decision decision;
	struct parts parts; /* before weighing */
	int32_t points;	    /* for what the pod would rather have, of SOFT_POINTS_MAX */
};

/* The node that would fit if it had a little more, or asked a little less. */
struct explain_miss {
	uint32_t node;		 /* NODE_NONE: no node misses by one thing alone */
	enum verdict verdict;	 /* what is in the way there */
	uint32_t resource;	 /* NO_EXTENDED: which */
	uint32_t distance_milli; /* the part of what was asked that is missing */
	int64_t lacks; /* in the unit of the request; NO_BANDWIDTH: GB/s, NO_NETWORK: Gbit/s */
	int64_t asked;
};

struct explanation {
	uint32_t nodes;			    /* in the cluster */
	uint32_t by_verdict[VERDICT_COUNT]; /* each as fit_node() says; sum is `nodes` */
	uint32_t by_extended[EXTENDED_MAX]; /* NO_EXTENDED by entry of the request */
	int64_t most[VERDICT_COUNT];	    /* explain_has() of those nodes, or EXPLAIN_UNKNOWN */
	bool preferred;			    /* points for preferences tell nodes apart */
	uint32_t top_count;		    /* 0: it fits nowhere */
	struct explain_choice top[EXPLAIN_TOP]; /* [0] is what engine_decide() chose */
	struct explain_miss miss;		/* only if it fits nowhere */
};

/* One reason of the list, and the nodes that share it. */
struct explain_reason {
	uint32_t nodes;
	enum verdict verdict;
	char text[EXPLAIN_TEXT_MAX]; /* "Insufficient GPU memory" */
};

/* FITS, or the verdict of engine_decide(). */
enum verdict explain_request(struct engine *e, const struct request *r, struct explanation *ret);

/* The refusals in kube-scheduler's order; how many there are. */
uint32_t explain_reasons(struct engine *e, const struct request *r, const struct explanation *x,
			 struct explain_reason ret[EXPLAIN_REASONS_MAX]);

/* "0/12 nodes are available: ....", or "no nodes available to schedule pods". */
void explain_refusal(struct engine *e, const struct request *r, const struct explanation *x,
		     struct strbuf *out);
/* "node-7 lacks 2000 milli CPU", or nothing if there is no near miss. */
void explain_miss(struct engine *e, const struct explanation *x, struct strbuf *out);

/* What the node, which refused with `v`, has of the GPU that is asked for; EXPLAIN_UNKNOWN
 * where that is no single figure. */
int64_t explain_has(const struct cluster *c, const struct request *r, uint32_t node,
		    enum verdict v);

/* " (asked for 6, at most 3 free on one node)", for the largest of explain_has(). */
void explain_figures(const struct cluster *c, const struct request *r, enum verdict v,
		     int64_t most, struct strbuf *out);

/* One sentence why the winner won: "node-3, GPUs 0-3: best of 128 nodes, ...". */
void explain_why(struct engine *e, const struct request *r, const struct explanation *x,
		 struct strbuf *out);
/* That sentence, the parts of the score, and the runners-up with theirs; some lines. */
void explain_choices(struct engine *e, const struct request *r, const struct explanation *x,
		     struct strbuf *out);

/* The reason of one node, with the figures behind it: "Insufficient cpu (asked for
 * 4000 milli CPU, lacks 500)".  Returns the verdict; FITS adds "fits". */
enum verdict explain_node(struct engine *e, const struct request *r, uint32_t node,
			  struct strbuf *out);

/* What an assignment holds: "GPUs 0-3", "500/1000 of GPU 2", "1g.10gb of GPU 4 at 6". */
void explain_assignment(struct engine *e, uint32_t node, const struct assignment *a,
			struct strbuf *out);

#endif
