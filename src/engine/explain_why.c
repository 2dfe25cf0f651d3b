/* SPDX-License-Identifier: Apache-2.0 */
/* explain_why.c - why the winner won. */
#include "base/attr.h"
#include "base/strbuf.h"
#include "engine/explain.h"
#include "engine/links.h"
#include "engine/policy/policy.h"
#include "engine/soft.h"

#define PARTS 4

static const char *const part_names[PARTS] = { "availability", "alignment", "utilization",
					       "performance" };

/* People read points: 100 is a node that is perfect in every part. */
static double points(struct engine *e, double score)
{
	const struct weights *w = &engine_config(e)->weights;
	double sum = (double)w->availability + w->alignment + w->utilization + w->performance;

	if (engine_config(e)->policy->bare)
		sum = 1000;
	return score * 100 * 1000 / sum / PART_MAX;
}

/* The parts as they entered the score, in points. */
static void parts_weighed(struct engine *e, const struct parts *p, double ret[PARTS])
{
	const struct weights *w = &engine_config(e)->weights;

	ret[0] = points(e, ((double)p->availability - p->price) * w->availability / 1000);
	ret[1] = points(e, (double)p->alignment * w->alignment / 1000);
	ret[2] = points(e, (double)p->utilization * w->utilization / 1000);
	ret[3] = points(e, (double)p->performance * w->performance / 1000);
}

static bool all_nvlink(const struct links *links, uint32_t gpus)
{
	gpuset_each(gpu, gpus)
		if ((links->nvlink[gpu] | gpuset_one(gpu)) != (links->nvlink[gpu] | gpus))
			return false;
	return true;
}

/* "; 4 GPUs joined by NVLink at 900 GB/s", of the first ask with more than one card. */
static void links_text(const struct node *n, const struct request *r, const struct assignment *a,
		       struct strbuf *out)
{
	for (uint8_t i = 0; n->links && i < r->asks_count; i++) {
		uint32_t gpus = assignment_gpus(a, i);

		if (r->asks[i].kind != ASK_WHOLE || gpuset_count(gpus) < 2)
			continue;
		strbuf_addf(out, "; %u GPUs %s %u GB/s", gpuset_count(gpus),
			    all_nvlink(n->links, gpus) ? "joined by NVLink at"
						       : "with links of at least",
			    (unsigned)links_weakest(n->links, gpus));
		return;
	}
}

/* "; leaves 4 of 8 GPUs idle".  Cards in MIG mode are neither idle nor busy. */
static void idle_text(const struct node *n, const struct assignment *a, struct strbuf *out)
{
	unsigned whole = 0;

	for (uint32_t i = 0; i < n->gpus_count; i++)
		whole += !n->gpus[i].mig_mode;
	if (a->count && whole)
		strbuf_addf(out, "; leaves %u of %u %sGPUs idle", gpuset_count(n->idle & ~a->gpus),
			    whole, whole < n->gpus_count ? "whole " : "");
}

static void place_text(const struct cluster *c, const struct node *n, const struct assignment *a,
		       struct strbuf *out)
{
	const struct domain *leaf = cluster_domain(c, n->domain);

	if (leaf->level > 0)
		strbuf_addf(out, "; in %s", leaf->name);
	idle_text(n, a, out);
}

/* How far ahead, and by which parts: those in which they differ, in their order. */
static void lead_text(struct engine *e, const struct explanation *x, struct strbuf *out)
{
	const struct explain_choice *first = &x->top[0], *second = &x->top[1];
	const char *name = cluster_node(engine_cluster(e), second->decision.node)->name;
	double mine[PARTS], theirs[PARTS];
	double lead = points(e, (double)first->decision.score - second->decision.score);
	const char *comma = " (";

	if (first->points > second->points) {
		strbuf_addf(out, "; preferred to %s: %d points for preferences against %d", name,
			    (int)first->points, (int)second->points);
		return;
	}
	if (first->decision.score == second->decision.score) {
		strbuf_addf(out, "; as good as %s and before it in order", name);
		return;
	}
	if (lead < 0.005) {
		strbuf_addf(out, "; equal to %s to a hundredth of a point", name);
		return;
	}
	strbuf_addf(out, "; %.2f points ahead of %s", lead, name);
	parts_weighed(e, &first->parts, mine);
	parts_weighed(e, &second->parts, theirs);
	for (int i = 0; i < PARTS && !engine_config(e)->policy->bare; i++) {
		double ahead = mine[i] - theirs[i];

		if (ahead < 0.005 && ahead > -0.005)
			continue;
		strbuf_addf(out, "%s%s %+.2f", comma, part_names[i], ahead);
		comma = ", ";
	}
	if (*comma == ',')
		strbuf_putc(out, ')');
}

static void rivals_text(const struct request *r, const struct explanation *x, struct strbuf *out)
{
	if (r->node != NODE_NONE)
		strbuf_puts(out, ": pinned to this node");
	else if (x->nodes == 1)
		strbuf_puts(out, ": the only node");
	else if (x->by_verdict[FITS] == 1)
		strbuf_addf(out, ": the only one of %u nodes that fits", (unsigned)x->nodes);
	else
		strbuf_addf(out, ": best of %u nodes that fit", (unsigned)x->by_verdict[FITS]);
}

void explain_why(struct engine *e, const struct request *r, const struct explanation *x,
		 struct strbuf *out)
{
	const struct cluster *c = engine_cluster(e);
	const struct decision *d = &x->top[0].decision;
	const struct node *n;

	if (!x->top_count)
		return;
	n = cluster_node(c, d->node);
	strbuf_addf(out, "%s, ", n->name);
	explain_assignment(e, d->node, &d->assignment, out);
	rivals_text(r, x, out);
	links_text(n, r, &d->assignment, out);
	place_text(c, n, &d->assignment, out);
	if (x->top_count > 1)
		lead_text(e, x, out);
}

static void choice_text(struct engine *e, const struct explanation *x,
			const struct explain_choice *choice, struct strbuf *out)
{
	const struct parts full = {
		.availability = PART_MAX,
		.alignment = PART_MAX,
		.utilization = PART_MAX,
		.performance = PART_MAX,
	};
	double parts[PARTS], most[PARTS];

	parts_weighed(e, &choice->parts, parts);
	parts_weighed(e, &full, most);
	strbuf_addf(out, "%s, ", cluster_node(engine_cluster(e), choice->decision.node)->name);
	explain_assignment(e, choice->decision.node, &choice->decision.assignment, out);
	/* The published policies have one figure. */
	if (engine_config(e)->policy->bare)
		strbuf_addf(out, ": %.2f points", points(e, choice->decision.score));
	for (int i = 0; i < PARTS && !engine_config(e)->policy->bare; i++)
		strbuf_addf(out, "%s %s %.2f of %.0f", i ? "," : ":", part_names[i], parts[i],
			    most[i]);
	if (x->preferred)
		strbuf_addf(out, ", preferences %d of %d", (int)choice->points, SOFT_POINTS_MAX);
	strbuf_putc(out, '\n');
}

void explain_choices(struct engine *e, const struct request *r, const struct explanation *x,
		     struct strbuf *out)
{
	if (!x->top_count)
		return;
	explain_why(e, r, x, out);
	strbuf_putc(out, '\n');
	for (uint32_t i = 0; i < x->top_count; i++) {
		strbuf_addf(out, "%u. ", (unsigned)i + 1);
		choice_text(e, x, &x->top[i], out);
	}
}
