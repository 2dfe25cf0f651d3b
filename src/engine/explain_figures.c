/* SPDX-License-Identifier: Apache-2.0 */
/* explain_figures.c - how much GPU was asked for, and the most that a node has of it.
 *
 * Only where one figure says it: several containers that ask for shares or slices, or for
 * whole cards of different models, have no such.
 */
#include "base/attr.h"
#include "base/strbuf.h"
#include "engine/explain_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MODELS_NAMED 2

/* Cards that are asked for, whole ones or one after the other for shares; 0: no such figure. */
static uint32_t cards_asked(const struct request *r)
{
	uint32_t cards = 0;

	for (uint32_t i = 0; i < r->asks_count; i++) {
		const struct ask *a = &r->asks[i];

		if (a->pinned || a->kind == ASK_MIG ||
		    (a->kind == ASK_SHARE && r->asks_count > 1) ||
		    memcmp(&a->models, &r->asks[0].models, sizeof(a->models)) != 0)
			return 0;
		cards += a->count;
	}
	return cards;
}

static int64_t count_model(const struct request *r, const struct node *n, uint32_t among)
{
	int64_t count = 0;

	for (uint32_t i = 0; i < n->gpus_count; i++)
		count +=
			gpuset_has(among, i) && modelset_has(&r->asks[0].models, n->gpus[i].model);
	return count;
}

static int64_t most_of_share(const struct cluster *c, const struct request *r, uint32_t node,
			     enum verdict v)
{
	struct explain_miss miss = { .verdict = v };

	if (r->asks_count != 1 || r->asks[0].mem_milli || !explain_shortage(c, r, node, &miss))
		return EXPLAIN_UNKNOWN;
	return miss.asked - miss.lacks;
}

int64_t explain_has(const struct cluster *c, const struct request *r, uint32_t node,
		    enum verdict v)
{
	const struct node *n = cluster_node(c, node);

	if (v == NO_GPU_CORE || v == NO_GPU_MEMORY)
		return most_of_share(c, r, node, v);
	if (!cards_asked(r))
		return EXPLAIN_UNKNOWN;
	if (v == NO_GPU)
		return n->gpus_count;
	if (v == WRONG_MODEL)
		return count_model(r, n, gpuset_range(0, n->gpus_count));
	if ((v == NO_FREE_GPU || v == UNHEALTHY_GPU) && r->asks[0].kind == ASK_WHOLE)
		return count_model(r, n, n->idle);
	return EXPLAIN_UNKNOWN;
}

/* " of NVIDIA-A100 or NVIDIA-H100"; nothing where any will do, or too many would. */
static void models_text(const struct cluster *c, const struct request *r, struct strbuf *out)
{
	const struct modelset *models = &r->asks[0].models;
	uint32_t count = 0;

	if (modelset_any(models))
		return;
	for (uint32_t m = 0; m < cluster_models(c); m++)
		count += modelset_has(models, (uint16_t)m);
	if (!count || count > MODELS_NAMED)
		return;
	count = 0;
	for (uint32_t m = 0; m < cluster_models(c); m++)
		if (modelset_has(models, (uint16_t)m))
			strbuf_addf(out, "%s%s", count++ ? " or " : " of ",
				    cluster_model_name(c, (uint16_t)m));
}

static void share_text(const struct request *r, enum verdict v, int64_t most, struct strbuf *out)
{
	const struct ask *a = &r->asks[0];

	if (v == NO_GPU_CORE)
		strbuf_addf(out, " (asked for %g%%, at most %g%% free on one GPU)",
			    a->core_milli / 10.0, (double)most / 10);
	else
		strbuf_addf(out,
			    " (asked for %" PRIu32 " MiB, at most %" PRId64
			    " MiB free on one GPU)",
			    a->mem_mib, most);
}

void explain_figures(const struct cluster *c, const struct request *r, enum verdict v,
		     int64_t most, struct strbuf *out)
{
	bool whole = v == NO_GPU || v == WRONG_MODEL;
	uint32_t cards = cards_asked(r);

	if (most == EXPLAIN_UNKNOWN)
		return;
	if (v == NO_GPU_CORE || v == NO_GPU_MEMORY) {
		share_text(r, v, most, out);
		return;
	}
	strbuf_addf(out, " (asked for %" PRIu32, cards);
	if (v != NO_GPU)
		models_text(c, r, out);
	if (most)
		strbuf_addf(out, ", at most %" PRId64 "%s on one node)", most,
			    whole ? "" : " free");
	else
		strbuf_puts(out, whole ? ", none there)" : ", none free)");
}
