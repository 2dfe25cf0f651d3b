/* SPDX-License-Identifier: Apache-2.0 */
/* random_cluster.h - clusters and requests from a seed, with a bit of everything.
 *
 * Small on purpose: collisions between the rules are what properties are after.
 */
#ifndef GS_TESTS_PROP_RANDOM_CLUSTER_H
#define GS_TESTS_PROP_RANDOM_CLUSTER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/rng.h"
#include "engine/engine.h"
#include "engine/links.h"
#include "engine/machine.h"
#include "engine/pick.h"

static const char *const random_machines[] = {
	"dgx-1v", "dgx-a100", "dgx-h100", "l40s-4", "t4", "a30", "hgx-h100-4",
};
#define RANDOM_MACHINES ARRAY_SIZE(random_machines)

/* Made at first use, freed by random_links_free(). */
static struct links *random_links[RANDOM_MACHINES];

static inline const struct links *random_links_of(uint32_t machine)
{
	if (!random_links[machine] && machine_links(machine_find(random_machines[machine]),
						    &random_links[machine], NULL) < 0)
		abort();
	return random_links[machine];
}

static inline void random_links_free(void)
{
	for (size_t i = 0; i < RANDOM_MACHINES; i++) {
		links_free(random_links[i]);
		random_links[i] = NULL;
	}
}

/* Bytes that describe one node; everything a spec points to lies in here. */
struct random_node {
	char name[32];
	char uuids[GPU_MAX][48];
	struct gpu_spec gpus[GPU_MAX];
	const char *domains[2];
	char spine[16], leaf[16];
	struct label labels[2];
	struct taint taints[2];
	struct extended extended;
	struct node_spec spec;
};

static const char *const random_teams[] = { "train", "serve" };

/* One of several keys, values and effects, so that nodes differ in nothing else. */
static inline struct taint random_taint(struct cluster *c, struct rng *rng)
{
	static const uint8_t effects[] = { EFFECT_NO_SCHEDULE, EFFECT_NO_EXECUTE,
					   EFFECT_PREFER_NO_SCHEDULE };

	return (struct taint){
		.key = cluster_intern(c, rng_chance(rng, 2, 3) ? "dedicated" : "broken"),
		.value = cluster_intern(c, random_teams[rng_below(rng, 2)]),
		.effect = effects[rng_below(rng, ARRAY_SIZE(effects))],
	};
}

static inline struct toleration random_toleration(struct cluster *c, struct rng *rng)
{
	struct toleration t = { .effect = (uint8_t)rng_below(rng, EFFECT_NO_EXECUTE + 1) };

	if (rng_chance(rng, 1, 2))
		t.effect = EFFECT_ANY;
	if (rng_chance(rng, 1, 6)) {
		t.op = TOLERATE_EXISTS;
		return t;
	}
	t.key = cluster_intern(c, rng_chance(rng, 2, 3) ? "dedicated" : "broken");
	t.op = rng_chance(rng, 1, 2) ? TOLERATE_EXISTS : TOLERATE_EQUAL;
	if (t.op == TOLERATE_EQUAL)
		t.value = cluster_intern(c, random_teams[rng_below(rng, 2)]);
	return t;
}

/* Slices side by side, as somebody may have made them. */
static inline void random_slices(struct rng *rng, const struct mig_geometry *mig, uint8_t *made)
{
	struct mig_state state = { 0 };

	for (int i = 0; i < 8; i++) {
		unsigned profile = rng_below(rng, mig->profile_count);
		unsigned start = rng_below(rng, MIG_SLICES_MAX);

		if (!mig_fits_at(mig, state, profile, start))
			continue;
		mig_place(mig, &state, profile, start);
		made[start] = (uint8_t)(profile + 1);
	}
}

static inline void random_node(struct cluster *c, struct rng *rng, uint32_t number,
			       struct random_node *n)
{
	uint32_t kind = rng_below(rng, RANDOM_MACHINES);
	const struct machine *m = machine_find(random_machines[kind]);
	bool mig = m->mig && rng_chance(rng, 1, 2), linked = rng_chance(rng, 2, 3);

	memset(n, 0, sizeof(*n));
	snprintf(n->name, sizeof(n->name), "node-%u", number);
	snprintf(n->spine, sizeof(n->spine), "spine-%u", rng_below(rng, 2));
	snprintf(n->leaf, sizeof(n->leaf), "leaf-%u", rng_below(rng, 3));
	n->domains[0] = n->spine;
	n->domains[1] = n->leaf;
	for (uint32_t i = 0; i < m->gpu_count; i++) {
		snprintf(n->uuids[i], sizeof(n->uuids[i]), "GPU-%u-%u", number, i);
		n->gpus[i] = (struct gpu_spec){
			.uuid = n->uuids[i],
			.model = m->model,
			.mem_mib = rng_chance(rng, 1, 8) ? 0 : m->gpu_mem_mib,
			.unhealthy = rng_chance(rng, 1, 12),
			.mig_mode = mig ? MIG_ANY : MIG_OFF,
		};
		if (mig && rng_chance(rng, 1, 2)) {
			n->gpus[i].mig_mode = MIG_MADE;
			random_slices(rng, m->mig, n->gpus[i].mig_made);
		}
	}
	n->labels[0] = (struct label){ cluster_intern(c, "disk"),
				       cluster_intern(c, rng_chance(rng, 1, 2) ? "ssd" : "hdd") };
	n->labels[1] = (struct label){ cluster_intern(c, "kubernetes.io/hostname"),
				       cluster_intern(c, n->name) };
	n->taints[0] = random_taint(c, rng);
	n->taints[1] = random_taint(c, rng);
	n->extended = (struct extended){ .resource = cluster_resource(c, "rdma/hca"),
					 .amount = rng_below(rng, 4) };
	n->spec = (struct node_spec){
		.name = n->name,
		.allocatable = { .cpu_milli = 1000 * (8 + rng_below(rng, 60)),
				 .mem_bytes = INT64_C(1) << (33 + rng_below(rng, 5)),
				 .ephemeral_bytes = INT64_C(1) << 36,
				 .pods = 4 + rng_below(rng, 20) },
		.extended = &n->extended,
		.extended_count = 1,
		.gpus = n->gpus,
		.gpus_count = m->gpu_count,
		.links = linked ? random_links_of(kind) : NULL,
		.mig = m->mig,
		.domains = n->domains,
		.domains_count = rng_below(rng, 3),
		.labels = n->labels,
		.labels_count = 2,
		.taints = n->taints,
		.taints_count = rng_chance(rng, 1, 3) ? 1 + rng_below(rng, 2) : 0,
		.network_gbps = rng_below(rng, 4) * 200,
		.rdma_ports = (uint16_t)rng_below(rng, 4),
		.hcas = rng_below(rng, 4),
		.cufile = rng_chance(rng, 1, 2),
		.performance_milli = (uint16_t)(700 + rng_below(rng, 400)),
		.unschedulable = rng_chance(rng, 1, 15),
		.gpus_closed = rng_chance(rng, 1, 20),
	};
}

static inline void random_ask(struct cluster *c, struct rng *rng, struct request *r)
{
	static const uint16_t shares[] = { 50, 100, 250, 330, 500, 700, 900, 1000 };
	static const char *const profiles[] = {
		"1g.10gb", "2g.20gb", "3g.40gb", "1g.6gb", "2g.12gb", "1g.10gb+me", "1g.6gb+me",
	};
	enum ask_kind kind = (enum ask_kind)(1 + rng_below(rng, 3));
	struct ask *a =
		request_add_ask(r, kind, (uint8_t)(1 + rng_below(rng, kind == ASK_WHOLE ? 8 : 2)));

	if (!a)
		return;
	if (rng_chance(rng, 1, 6)) {
		const struct machine *m =
			machine_find(random_machines[rng_below(rng, RANDOM_MACHINES)]);
		modelset_add(&a->models, cluster_model(c, m->model));
	}
	a->policy = (uint8_t)rng_below(rng, 4);
	a->bandwidth_mode = (uint8_t)rng_below(rng, 3);
	a->min_gbps = (uint16_t)(rng_below(rng, 3) * 100);
	a->apart = rng_chance(rng, 1, 8);
	for (uint32_t i = rng_below(rng, 3); i; i--)
		a->prefer[a->prefer_count++] = (uint8_t)rng_below(rng, 8);
	if (rng_chance(rng, 1, 15) && kind != ASK_MIG) {
		a->pinned = gpuset_range(rng_below(rng, 4), a->count);
	}
	if (kind == ASK_SHARE) {
		a->core_milli =
			rng_chance(rng, 1, 6) ? 0 : shares[rng_below(rng, ARRAY_SIZE(shares))];
		a->mem_mib = rng_chance(rng, 1, 3) ? 1000 * rng_below(rng, 12) : 0;
		a->share_policy = (uint8_t)rng_below(rng, 4);
		if (rng_chance(rng, 1, 5))
			a->group = cluster_intern(c, random_teams[rng_below(rng, 2)]);
	}
	if (kind == ASK_MIG)
		snprintf(a->mig_profile, sizeof(a->mig_profile), "%s",
			 profiles[rng_below(rng, ARRAY_SIZE(profiles))]);
}

static inline void random_request(struct cluster *c, struct rng *rng, struct request *r)
{
	request_init(r);
	r->needs.cpu_milli = 500 * rng_below(rng, 30);
	r->needs.mem_bytes = (INT64_C(1) << 28) * rng_below(rng, 30);
	for (uint32_t i = rng_chance(rng, 1, 6)
				  ? 0
				  : 1 + (rng_chance(rng, 1, 4) ? rng_below(rng, 3) : 0);
	     i; i--)
		random_ask(c, rng, r);
	if (rng_chance(rng, 1, 6)) {
		r->selector[r->selector_count++] =
			(struct label){ cluster_intern(c, "disk"), cluster_intern(c, "ssd") };
	}
	for (uint32_t i = rng_below(rng, 3); i; i--)
		r->tolerations[r->tolerations_count++] = random_toleration(c, rng);
	if (rng_chance(rng, 1, 8)) {
		r->extended[r->extended_count++] =
			(struct extended){ .resource = cluster_resource(c, "rdma/hca"),
					   .amount = 1 };
	}
	r->strategy = (uint8_t)rng_below(rng, 3);
	if (rng_chance(rng, 1, 8))
		r->min_network_gbps = 200 * (1 + rng_below(rng, 3));
	if (rng_chance(rng, 1, 12))
		r->min_rdma_ports = (uint16_t)(1 + rng_below(rng, 3));
	if (rng_chance(rng, 1, 8))
		r->prefer_hcas = 1 + rng_below(rng, 3);
	r->cufile = rng_chance(rng, 1, 12);
	if (rng_chance(rng, 1, 20) && cluster_nodes_end(c))
		r->node = rng_below(rng, cluster_nodes_end(c));
	if (rng_chance(rng, 1, 15))
		r->domain = rng_below(rng, cluster_domains(c));
	if (rng_chance(rng, 1, 15))
		r->prefer_domain = rng_below(rng, cluster_domains(c));
}

#endif
