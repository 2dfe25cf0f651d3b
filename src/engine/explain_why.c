/* SPDX-License-Identifier: Apache-2.0 */
/* explain_why.c - why the winner won. */
#include "base/attr.h"
#include "base/strbuf.h"
#include "engine/explain.h"
#include "engine/links.h"
#include "engine/policy/policy.h"

#define PARTS 4

static const char *const part_names[PARTS] = { "availability", "alignment", "utilization",
					       "performance" };

/* The parts as they entered the score. */
static void parts_weighed(const struct weights *w, const struct parts *p, int64_t ret[PARTS])
{
	ret[0] = (int64_t)p->availability * w->availability / 1000;
	ret[1] = (int64_t)p->alignment * w->alignment / 1000;
	ret[2] = (int64_t)p->utilization * w->utilization / 1000;
	ret[3] = (int64_t)p->performance * w->performance / 1000;
}

static bool all_nvlink(const struct links *links, uint32_t gpus)
{
	gpuset_each(gpu, gpus) if ((links->nvlink[gpu] | gpuset_one(gpu)) !=
				   (links->nvlink[gpu] | gpus)) return false;
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

static void place_text(const struct cluster *c, const struct node *n, const struct assignment *a,
		       struct strbuf *out)
{
	const struct domain *leaf = cluster_domain(c, n->domain);
	unsigned left = gpuset_count(n->idle & ~a->gpus);

	if (leaf->level > 0)
		strbuf_addf(out, "; in %s", leaf->name);
	if (a->count)
		strbuf_addf(out, "; leaves %u of %u GPUs idle", left, n->gpus_count);
}

/* How far ahead, and by which parts: those in which they differ, in their order. */
static void lead_text(struct engine *e, const struct explanation *x, struct strbuf *out)
{
	const struct explain_choice *first = &x->top[0], *second = &x->top[1];
	const char *name = cluster_node(engine_cluster(e), second->decision.node)->name;
	int64_t mine[PARTS], theirs[PARTS];
	const char *comma = "";

	if (first->decision.score == second->decision.score) {
		strbuf_addf(out, "; as good as %s and before it in order", name);
		return;
	}
	strbuf_addf(out, "; ahead of %s by %lld", name,
		    (long long)first->decision.score - second->decision.score);
	if (engine_config(e)->policy->bare)
		return;
	parts_weighed(&engine_config(e)->weights, &first->parts, mine);
	parts_weighed(&engine_config(e)->weights, &second->parts, theirs);
	for (int i = 0; i < PARTS; i++) {
		if (mine[i] == theirs[i])
			continue;
		strbuf_addf(out, "%s%s %+lld", *comma ? comma : " (", part_names[i],
			    (long long)(mine[i] - theirs[i]));
		comma = ", ";
	}
	if (*comma)
		strbuf_putc(out, ')');
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
	if (x->by_verdict[FITS] == 1)
		strbuf_addf(out, ": the only one of %u nodes that fits", (unsigned)x->nodes);
	else
		strbuf_addf(out, ": best of %u nodes that fit", (unsigned)x->by_verdict[FITS]);
	links_text(n, r, &d->assignment, out);
	place_text(c, n, &d->assignment, out);
	if (x->top_count > 1)
		lead_text(e, x, out);
}

static void choice_text(struct engine *e, const struct explain_choice *choice, struct strbuf *out)
{
	const struct weights *w = &engine_config(e)->weights;
	const struct parts full = { PART_MAX, PART_MAX, PART_MAX, PART_MAX };
	int64_t parts[PARTS], most[PARTS];

	parts_weighed(w, &choice->parts, parts);
	parts_weighed(w, &full, most);
	strbuf_addf(out, "%s, ", cluster_node(engine_cluster(e), choice->decision.node)->name);
	explain_assignment(e, choice->decision.node, &choice->decision.assignment, out);
	strbuf_addf(out, ": score %d", (int)choice->decision.score);
	/* The published policies have one figure, and it is that one. */
	for (int i = 0; i < PARTS && !engine_config(e)->policy->bare; i++)
		strbuf_addf(out, "%s %s %lld of %lld", i ? "," : " =", part_names[i],
			    (long long)parts[i], (long long)most[i]);
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
		choice_text(e, &x->top[i], out);
	}
}
