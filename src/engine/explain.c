/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - verdicts counted, the best nodes compared, and the words for both. */
#include "engine/explain.h"
#include "base/attr.h"
#include "base/strbuf.h"
#include "engine/explain_private.h"
#include "engine/links.h"
#include "engine/prefer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMO_SIZE 256 /* states of nodes that are remembered */

/* What a state of nodes (a bucket) answered, so that like nodes are asked once. */
struct memo {
	uint32_t bucket; /* 0: nothing is remembered here */
	bool near;
	enum verdict verdict;
	int64_t has; /* explain_has() */
	struct explain_miss miss;
};

struct walk {
	struct engine *engine;
	const struct cluster *cluster;
	const struct request *request;
	struct explanation *ret;
	uint32_t winner; /* NODE_NONE: it fits nowhere */
	struct preferred few[PREFER_FEW];
	uint32_t few_count; /* 0: preferences do not matter */
	struct memo memo[MEMO_SIZE];
};

static bool miss_better(const struct cluster *c, const struct explain_miss *a,
			const struct explain_miss *b)
{
	if (b->node == NODE_NONE)
		return true;
	if (a->distance_milli != b->distance_milli)
		return a->distance_milli < b->distance_milli;
	/* A rule is somebody's will; what is lacking there is rather what to see to. */
	if ((a->lacks > 0) != (b->lacks > 0))
		return a->lacks > 0;
	if (a->lacks != b->lacks && a->verdict == b->verdict)
		return a->lacks < b->lacks;
	return cluster_node(c, a->node)->rank < cluster_node(c, b->node)->rank;
}

static void consider_miss(struct walk *w, uint32_t node, const struct explain_miss *miss)
{
	struct explain_miss here = *miss;

	here.node = node;
	if (miss_better(w->cluster, &here, &w->ret->miss))
		w->ret->miss = here;
}

/* The verdict of the node, which is that of its state if its identity is no obstacle. */
static enum verdict walk_verdict(struct walk *w, uint32_t node)
{
	enum verdict v = fit_identity(w->cluster, w->request, node);
	uint32_t bucket = cluster_node(w->cluster, node)->bucket;
	struct memo fresh = { 0 }, *memo = v == FITS ? &w->memo[bucket % MEMO_SIZE] : &fresh;

	if (!memo->bucket || memo->bucket != bucket) {
		memo->bucket = bucket;
		memo->verdict = fit_node(w->cluster, w->request, node);
		memo->has = explain_has(w->cluster, w->request, node, memo->verdict);
		memo->miss.verdict = memo->verdict;
		memo->near = w->winner == NODE_NONE && memo->verdict != FITS &&
			     explain_near(w->cluster, w->request, node, &memo->miss);
	}
	if (memo->near)
		consider_miss(w, node, &memo->miss);
	w->ret->most[memo->verdict] = MAX(w->ret->most[memo->verdict], memo->has);
	return memo->verdict;
}

static bool choice_better(const struct walk *w, const struct explain_choice *a,
			  const struct explain_choice *b)
{
	uint32_t x = a->decision.node, y = b->decision.node;

	if (x == w->winner || y == w->winner)
		return x == w->winner;
	if (a->points != b->points)
		return a->points > b->points;
	if (a->decision.score != b->decision.score)
		return a->decision.score > b->decision.score;
	return cluster_node(w->cluster, x)->rank < cluster_node(w->cluster, y)->rank;
}

/* Those that were compared come before those that were not, and then none has any. */
static int32_t walk_points(const struct walk *w, uint32_t node)
{
	for (uint32_t i = 0; i < w->few_count; i++)
		if (w->few[i].node == node)
			return w->few[i].points;
	return w->few_count ? -1 : 0;
}

static void walk_choice(struct walk *w, uint32_t node)
{
	struct explanation *x = w->ret;
	struct explain_choice choice;
	uint32_t at = x->top_count;

	if (engine_score(w->engine, w->request, node, &choice.decision, &choice.parts) != FITS)
		return;
	choice.points = walk_points(w, node);
	while (at && choice_better(w, &choice, &x->top[at - 1]))
		at--;
	if (at == EXPLAIN_TOP)
		return;
	x->top_count += x->top_count < EXPLAIN_TOP;
	memmove(&x->top[at + 1], &x->top[at], (x->top_count - at - 1) * sizeof(choice));
	x->top[at] = choice;
}

static void walk_node(struct walk *w, uint32_t node)
{
	enum verdict v = walk_verdict(w, node);
	uint32_t at;

	w->ret->nodes++;
	w->ret->by_verdict[v]++;
	if (v == FITS)
		walk_choice(w, node);
	if (v != NO_EXTENDED)
		return;
	at = explain_short_extended(w->request, cluster_node(w->cluster, node));
	if (at < EXTENDED_MAX)
		w->ret->by_extended[at]++;
}

enum verdict explain_request(struct engine *e, const struct request *r, struct explanation *ret)
{
	struct walk w = {
		.engine = e,
		.cluster = engine_cluster(e),
		.request = r,
		.ret = ret,
		.winner = NODE_NONE,
	};
	struct decision decision;
	enum verdict v = engine_decide(e, r, &decision);

	memset(ret, 0, sizeof(*ret));
	ret->miss.node = NODE_NONE;
	for (unsigned i = 0; i < VERDICT_COUNT; i++)
		ret->most[i] = EXPLAIN_UNKNOWN;
	if (v == FITS) {
		w.winner = decision.node;
		w.few_count = engine_preferred(e, r, w.few);
	}
	for (uint32_t i = 1; i < w.few_count; i++)
		ret->preferred |= w.few[i].points != w.few[0].points;
	for (uint32_t i = 0; i < cluster_nodes_end(w.cluster); i++)
		if (cluster_node(w.cluster, i)->name)
			walk_node(&w, i);
	return v;
}

/* Like kube-scheduler: by "count reason" as text, so 10 comes before 9. */
static int reason_compare(const void *a, const void *b)
{
	const struct explain_reason *x = a, *y = b;
	char first[EXPLAIN_TEXT_MAX + 16], second[EXPLAIN_TEXT_MAX + 16];

	snprintf(first, sizeof(first), "%u %s", (unsigned)x->nodes, x->text);
	snprintf(second, sizeof(second), "%u %s", (unsigned)y->nodes, y->text);
	return strcmp(first, second);
}

static void reason_text(struct engine *e, const struct request *r, const struct explanation *x,
			struct explain_reason *reason)
{
	struct strbuf figures CLEANUP(strbuf_done) = STRBUF_INIT;
	size_t len;

	verdict_text(reason->verdict, r, reason->text, EXPLAIN_TEXT_MAX);
	explain_figures(engine_cluster(e), r, reason->verdict, x->most[reason->verdict], &figures);
	len = strlen(reason->text);
	if (figures.len < EXPLAIN_TEXT_MAX - len)
		snprintf(reason->text + len, EXPLAIN_TEXT_MAX - len, "%s", figures.s);
}

uint32_t explain_reasons(struct engine *e, const struct request *r, const struct explanation *x,
			 struct explain_reason ret[EXPLAIN_REASONS_MAX])
{
	uint32_t count = 0, named = 0;

	for (uint32_t i = 0; i < r->extended_count; i++) {
		if (!x->by_extended[i])
			continue;
		named += x->by_extended[i];
		ret[count].nodes = x->by_extended[i];
		ret[count].verdict = NO_EXTENDED;
		snprintf(ret[count++].text, EXPLAIN_TEXT_MAX, "Insufficient %s",
			 cluster_string(engine_cluster(e), r->extended[i].resource));
	}
	for (int v = FITS + 1; v < VERDICT_COUNT; v++) {
		uint32_t nodes = x->by_verdict[v] - (v == NO_EXTENDED ? named : 0);

		if (!nodes)
			continue;
		ret[count].nodes = nodes;
		ret[count].verdict = (enum verdict)v;
		reason_text(e, r, x, &ret[count++]);
	}
	qsort(ret, count, sizeof(*ret), reason_compare);
	return count;
}

void explain_refusal(struct engine *e, const struct request *r, const struct explanation *x,
		     struct strbuf *out)
{
	struct explain_reason reasons[EXPLAIN_REASONS_MAX];
	uint32_t count = explain_reasons(e, r, x, reasons);

	if (!x->nodes) {
		strbuf_puts(out, "no nodes available to schedule pods");
		return;
	}
	strbuf_addf(out, "%u/%u nodes are available", (unsigned)x->by_verdict[FITS],
		    (unsigned)x->nodes);
	for (uint32_t i = 0; i < count; i++)
		strbuf_addf(out, "%s %u %s", i ? "," : ":", (unsigned)reasons[i].nodes,
			    reasons[i].text);
	strbuf_putc(out, '.');
}

enum verdict explain_node(struct engine *e, const struct request *r, uint32_t node,
			  struct strbuf *out)
{
	const struct cluster *c = engine_cluster(e);
	struct explain_miss miss = { .verdict = fit_node(c, r, node) };
	char text[EXPLAIN_TEXT_MAX];

	if (miss.verdict == FITS) {
		strbuf_puts(out, "fits");
		return FITS;
	}
	verdict_text(miss.verdict, r, text, sizeof(text));
	if (miss.verdict == NODE_GONE || !explain_shortage(c, r, node, &miss))
		strbuf_puts(out, text);
	else if (miss.verdict == NO_EXTENDED)
		strbuf_addf(out, "Insufficient %s (asked for %lld, lacks %lld)",
			    cluster_string(c, miss.resource), (long long)miss.asked,
			    (long long)miss.lacks);
	else
		strbuf_addf(out, "%s (asked for %lld, lacks %lld)", text, (long long)miss.asked,
			    (long long)miss.lacks);
	return miss.verdict;
}

/* "0-3,6" */
static void gpus_text(uint32_t gpus, struct strbuf *out)
{
	const char *comma = "";

	while (gpus) {
		unsigned first = gpuset_first(gpus), last = first;

		while (gpuset_has(gpus, last + 1))
			last++;
		strbuf_addf(out, last > first ? "%s%u-%u" : "%s%u", comma, first, last);
		gpus &= ~gpuset_range(first, last - first + 1);
		comma = ",";
	}
}

static void hold_text(const struct node *n, const struct hold *h, struct strbuf *out)
{
	if (h->kind == ASK_MIG)
		strbuf_addf(out, "%s of GPU %u at slice %u", n->mig->profiles[h->mig_profile].name,
			    h->gpu, h->mig_start);
	else if (h->core_milli && h->mem_mib)
		strbuf_addf(out, "%g%% and %u MiB of GPU %u", h->core_milli / 10.0,
			    (unsigned)h->mem_mib, h->gpu);
	else if (h->core_milli)
		strbuf_addf(out, "%g%% of GPU %u", h->core_milli / 10.0, h->gpu);
	else if (h->mem_mib)
		strbuf_addf(out, "%u MiB of GPU %u", (unsigned)h->mem_mib, h->gpu);
	else
		strbuf_addf(out, "a place on GPU %u", h->gpu);
}

void explain_assignment(struct engine *e, uint32_t node, const struct assignment *a,
			struct strbuf *out)
{
	const struct node *n = cluster_node(engine_cluster(e), node);
	uint32_t whole = 0;
	const char *comma = "";

	for (uint32_t i = 0; i < a->count; i++)
		if (a->holds[i].kind == ASK_WHOLE)
			whole |= gpuset_one(a->holds[i].gpu);
	if (whole) {
		strbuf_puts(out, gpuset_count(whole) > 1 ? "GPUs " : "GPU ");
		gpus_text(whole, out);
		comma = ", ";
	}
	for (uint32_t i = 0; i < a->count; i++) {
		if (a->holds[i].kind == ASK_WHOLE)
			continue;
		strbuf_puts(out, comma);
		hold_text(n, &a->holds[i], out);
		comma = ", ";
	}
	if (!a->count)
		strbuf_puts(out, "no GPU");
}
