/* SPDX-License-Identifier: Apache-2.0 */
/* explain_miss.c - how much is missing, and where the least. */
#include "base/attr.h"
#include "base/strbuf.h"
#include "engine/explain_private.h"
#include "engine/pick.h"

#include <inttypes.h>

#define MIB (INT64_C(1) << 20)

uint32_t explain_short_extended(const struct request *r, const struct node *n)
{
	for (uint32_t i = 0; i < r->extended_count; i++) {
		int64_t left = 0;

		for (uint32_t j = 0; j < n->extended_count; j++)
			if (n->extended[j].resource == r->extended[i].resource)
				left = n->extended[j].amount;
		if (r->extended[i].amount > left)
			return i;
	}
	return EXTENDED_MAX;
}

static bool short_of(struct explain_miss *m, int64_t asked, int64_t left)
{
	m->asked = asked;
	m->lacks = asked - MAX(left, 0);
	return m->lacks > 0;
}

static bool extended_shortage(const struct request *r, const struct node *n,
			      struct explain_miss *m)
{
	uint32_t at = explain_short_extended(r, n);

	if (at == EXTENDED_MAX)
		return false;
	m->resource = r->extended[at].resource;
	for (uint32_t j = 0; j < n->extended_count; j++)
		if (n->extended[j].resource == m->resource)
			return short_of(m, r->extended[at].amount, n->extended[j].amount);
	return short_of(m, r->extended[at].amount, 0);
}

/* The GPUs of an acceptable model. */
static uint32_t acceptable(const struct ask *ask, const struct node *n)
{
	uint32_t gpus = 0;

	for (uint32_t i = 0; i < n->gpus_count; i++)
		if (modelset_has(&ask->models, n->gpus[i].model))
			gpus |= gpuset_one(i);
	return gpus;
}

static bool takes_share(const struct ask *ask, const struct gpu *g)
{
	return g->healthy && !g->mig_mode &&
	       (g->use == GPU_IDLE || (g->use == GPU_SHARED && g->group == ask->group));
}

static int64_t share_mib(const struct ask *ask, const struct gpu *g)
{
	return ask->mem_milli ? (int64_t)g->mem_mib * ask->mem_milli / CORE_WHOLE : ask->mem_mib;
}

/* Core on the card that has most of it; memory on the card, of those with core enough,
 * that misses least. */
static bool share_shortage(const struct ask *ask, const struct node *n, struct explain_miss *m)
{
	bool found = false;

	gpuset_each(gpu, acceptable(ask, n)) {
		const struct gpu *g = &n->gpus[gpu];
		struct explain_miss here = *m;

		if (!takes_share(ask, g))
			continue;
		if (m->verdict == NO_GPU_CORE)
			short_of(&here, ask->core_milli, g->core_free_milli);
		else if (g->core_free_milli >= ask->core_milli)
			short_of(&here, share_mib(ask, g), g->mem_free_mib);
		else
			continue;
		if (here.lacks > 0 && (!found || here.lacks < m->lacks)) {
			*m = here;
			found = true;
		}
	}
	return found;
}

/* The fastest minimum that the free GPUs do reach. */
static bool bandwidth_shortage(const struct cluster *c, const struct request *r, uint32_t node,
			       struct explain_miss *m)
{
	struct request trial = *r;
	uint16_t low = 0, high = r->asks[0].min_gbps;

	while (high - low > 1) {
		uint16_t middle = (uint16_t)((low + high) / 2);

		trial.asks[0].min_gbps = middle;
		if (fit_node(c, &trial, node) == FITS)
			low = middle;
		else
			high = middle;
	}
	return short_of(m, r->asks[0].min_gbps, low);
}

static bool gpu_shortage(const struct cluster *c, const struct request *r, uint32_t node,
			 struct explain_miss *m)
{
	const struct node *n = cluster_node(c, node);
	const struct ask *ask = &r->asks[0];

	/* With several asks it depends on where the others went. */
	if (r->asks_count != 1 || ask->pinned)
		return false;
	if (m->verdict == NO_FREE_GPU && ask->kind == ASK_WHOLE)
		return short_of(m, ask->count, gpuset_count(n->idle & acceptable(ask, n)));
	if ((m->verdict == NO_GPU_CORE || m->verdict == NO_GPU_MEMORY) && ask->count == 1)
		return share_shortage(ask, n, m);
	if (m->verdict == NO_BANDWIDTH)
		return bandwidth_shortage(c, r, node, m);
	return false;
}

bool explain_shortage(const struct cluster *c, const struct request *r, uint32_t node,
		      struct explain_miss *m)
{
	const struct node *n = cluster_node(c, node);

	switch (m->verdict) {
	case NO_CPU:
		return short_of(m, r->needs.cpu_milli, n->free.cpu_milli);
	case NO_MEMORY:
		return short_of(m, r->needs.mem_bytes, n->free.mem_bytes);
	case NO_EPHEMERAL:
		return short_of(m, r->needs.ephemeral_bytes, n->free.ephemeral_bytes);
	case TOO_MANY_PODS:
		return short_of(m, r->needs.pods, n->free.pods);
	case NO_NETWORK:
		return short_of(m, r->min_network_gbps, n->network_gbps);
	case NO_RDMA:
		return short_of(m, r->min_rdma_ports, n->rdma_ports);
	case NO_EXTENDED:
		return extended_shortage(r, n, m);
	default:
		return gpu_shortage(c, r, node, m);
	}
}

/* Asks for what there is instead. */
static void ask_less(struct request *r, const struct explain_miss *m)
{
	struct ask *ask = &r->asks[0];
	int64_t left = m->asked - m->lacks;

	switch (m->verdict) {
	case NO_CPU:
		r->needs.cpu_milli = left;
		break;
	case NO_MEMORY:
		r->needs.mem_bytes = left;
		break;
	case NO_EPHEMERAL:
		r->needs.ephemeral_bytes = left;
		break;
	case TOO_MANY_PODS:
		r->needs.pods = left;
		break;
	case NO_NETWORK:
		r->min_network_gbps = (uint32_t)left;
		break;
	case NO_RDMA:
		r->min_rdma_ports = (uint16_t)left;
		break;
	case NO_EXTENDED:
		for (uint32_t i = 0; i < r->extended_count; i++)
			if (r->extended[i].resource == m->resource)
				r->extended[i].amount = left;
		break;
	case NO_FREE_GPU:
		ask->count = (uint8_t)left;
		r->asks_count = left > 0;
		break;
	case NO_GPU_CORE:
		ask->core_milli = (uint16_t)left;
		break;
	case NO_GPU_MEMORY:
		ask->mem_milli = 0;
		ask->mem_mib = (uint32_t)left;
		break;
	default:
		ask->min_gbps = (uint16_t)left;
		break;
	}
}

/* Drops a rule that is no matter of quantity; false if that cannot be done. */
static bool drop_rule(struct request *r, enum verdict v)
{
	switch (v) {
	case WRONG_LABELS:
		r->selector_count = 0;
		return true;
	case WRONG_DOMAIN:
		r->domain = DOMAIN_NONE;
		return true;
	case NO_CUFILE:
		r->cufile = 0;
		return true;
	case TAINTED:
		r->tolerations[0] = (struct toleration){ .op = TOLERATE_EXISTS };
		r->tolerations_count = 1;
		return true;
	case WRONG_MODEL:
		for (uint32_t i = 0; i < r->asks_count; i++)
			r->asks[i].models = (struct modelset){ 0 };
		return true;
	default:
		return false;
	}
}

bool explain_near(const struct cluster *c, const struct request *r, uint32_t node,
		  struct explain_miss *m)
{
	struct request trial = *r;

	m->node = node;
	m->lacks = 0;
	m->asked = 0;
	m->resource = 0;
	m->distance_milli = 1000;
	if (explain_shortage(c, r, node, m)) {
		m->distance_milli = (uint32_t)(1000.0 * (double)m->lacks / (double)m->asked);
		ask_less(&trial, m);
	} else if (!drop_rule(&trial, m->verdict)) {
		return false;
	}
	return fit_node(c, &trial, node) == FITS;
}

static int64_t round_mib(int64_t bytes)
{
	return bytes / MIB + (bytes % MIB > 0);
}

/* ", with 8 of its 8 GPUs in MIG mode": they look free to whoever sees no pods on them. */
static void mig_text(const struct node *n, struct strbuf *out)
{
	unsigned sliced = 0;

	for (uint32_t i = 0; i < n->gpus_count; i++)
		sliced += n->gpus[i].mig_mode;
	if (sliced)
		strbuf_addf(out, ", with %u of its %u GPUs in MIG mode", sliced, n->gpus_count);
}

static void free_gpus_text(struct engine *e, const struct explain_miss *m, struct strbuf *out)
{
	strbuf_addf(out, "lacks %" PRId64 " free GPU%s", m->lacks, m->lacks > 1 ? "s" : "");
	mig_text(cluster_node(engine_cluster(e), m->node), out);
}

static void bandwidth_text(const struct explain_miss *m, struct strbuf *out)
{
	int64_t left = m->asked - m->lacks;

	if (m->verdict == NO_NETWORK && !left)
		strbuf_puts(out, "does not say its network bandwidth");
	else if (m->verdict == NO_NETWORK)
		strbuf_addf(out,
			    "has a network of %" PRId64 " Gbit/s where %" PRId64 " are asked for",
			    left, m->asked);
	else
		strbuf_addf(out,
			    "has free GPUs with links of %" PRId64 " GB/s where %" PRId64
			    " are asked for",
			    left, m->asked);
}

static void quantity_text(struct engine *e, const struct explain_miss *m, struct strbuf *out)
{
	if (m->verdict == NO_CPU)
		strbuf_addf(out, "lacks %" PRId64 " milli CPU", m->lacks);
	else if (m->verdict == NO_MEMORY)
		strbuf_addf(out, "lacks %" PRId64 " MiB of memory", round_mib(m->lacks));
	else if (m->verdict == NO_EPHEMERAL)
		strbuf_addf(out, "lacks %" PRId64 " MiB of ephemeral-storage",
			    round_mib(m->lacks));
	else if (m->verdict == TOO_MANY_PODS)
		strbuf_puts(out, "has no place for another pod");
	else if (m->verdict == NO_EXTENDED)
		strbuf_addf(out, "lacks %" PRId64 " of %s", m->lacks,
			    cluster_string(engine_cluster(e), m->resource));
	else if (m->verdict == NO_RDMA)
		strbuf_addf(out, "lacks %" PRId64 " RDMA port%s", m->lacks,
			    m->lacks > 1 ? "s" : "");
	else if (m->verdict == NO_FREE_GPU)
		free_gpus_text(e, m, out);
	else if (m->verdict == NO_GPU_CORE)
		strbuf_addf(out, "lacks %g%% of a GPU", (double)m->lacks / 10);
	else if (m->verdict == NO_GPU_MEMORY)
		strbuf_addf(out, "lacks %" PRId64 " MiB of GPU memory", m->lacks);
	else
		bandwidth_text(m, out);
}

void explain_miss(struct engine *e, const struct explanation *x, struct strbuf *out)
{
	const struct explain_miss *m = &x->miss;
	const struct node *n;

	if (x->top_count || m->node == NODE_NONE)
		return;
	n = cluster_node(engine_cluster(e), m->node);
	strbuf_addf(out, "%s ", n->name);
	if (m->lacks > 0)
		quantity_text(e, m, out);
	else if (m->verdict == WRONG_LABELS)
		strbuf_puts(out, "would fit but for its labels");
	else if (m->verdict == WRONG_DOMAIN)
		strbuf_puts(out, "would fit but for its place in the fabric");
	else if (m->verdict == NO_CUFILE)
		strbuf_puts(out, "would fit but for GPUDirect Storage");
	else if (m->verdict == WRONG_MODEL)
		strbuf_puts(out, "would fit but for the model of its GPUs");
	else
		strbuf_puts(out, "would fit but for its taints");
}
