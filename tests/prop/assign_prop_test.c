/* SPDX-License-Identifier: Apache-2.0 */
/* What assign_node() says of pods with several containers, against trying every way. */
#include "random_cluster.h"
#include "test.h"

#include "engine/cluster_private.h"

#define NODES 1500

struct oracle {
	const struct request *request;
	struct node node;
	struct gpu gpus[GPU_MAX];
	struct hold holds[HOLD_MAX];
	uint16_t count;
};

static bool oracle_allows(const struct oracle *o, const struct ask *a, uint8_t ask, uint32_t gpu)
{
	if (!o->gpus[gpu].healthy || !modelset_has(&a->models, o->gpus[gpu].model))
		return false;
	if (a->pinned && !gpuset_has(a->pinned, gpu))
		return false;
	for (uint16_t i = 0; i < o->count; i++) {
		const struct hold *h = &o->holds[i];

		if (h->gpu != gpu)
			continue;
		if (h->ask == ask || a->apart || o->request->asks[h->ask].apart)
			return false;
	}
	return true;
}

/* Whether the units from (ask, unit) on can all be placed. */
static bool oracle_fits(struct oracle *o, uint8_t ask, uint8_t unit)
{
	const struct ask *a = &o->request->asks[ask];

	if (ask == o->request->asks_count)
		return true;
	if (unit == a->count)
		return oracle_fits(o, (uint8_t)(ask + 1), 0);
	for (uint32_t gpu = 0; gpu < o->node.gpus_count; gpu++) {
		struct hold h = { .gpu = (uint8_t)gpu,
				  .ask = ask,
				  .kind = a->kind,
				  .core_milli = a->core_milli,
				  .group = a->group };
		bool fits;

		if (a->kind == ASK_WHOLE)
			h.core_milli = 0;
		else
			h.mem_mib = ask_mem_mib(a, &o->gpus[gpu]);
		if (!oracle_allows(o, a, ask, gpu) || !hold_book(&o->node, &h, SEATS_DEFAULT))
			continue;
		o->holds[o->count++] = h;
		fits = oracle_fits(o, ask, (uint8_t)(unit + 1));
		o->count--;
		hold_release(&o->node, &h);
		if (fits)
			return true;
	}
	return false;
}

/* Up to four containers with whole cards or shares; no slices and no bandwidth, whose
 * exactness pick and mig are tested for. */
static void small_request(struct cluster *c, struct rng *rng, struct request *r)
{
	uint32_t asks = 1 + rng_below(rng, 4);

	request_init(r);
	for (uint32_t i = 0; i < asks; i++) {
		random_ask(c, rng, r);
		r->asks[i].bandwidth_mode = PICK_IGNORE;
		r->asks[i].count = (uint8_t)(1 + rng_below(rng, 2));
		r->asks[i].pinned = rng_chance(rng, 1, 8)
					    ? gpuset_range(rng_below(rng, 3), r->asks[i].count)
					    : 0;
		if (r->asks[i].kind == ASK_MIG) {
			r->asks[i].kind = ASK_SHARE;
			r->asks[i].core_milli = (uint16_t)(50 * rng_below(rng, 21));
		}
	}
}

static void occupy(struct rng *rng, struct cluster *c, struct engine *e, uint32_t pods)
{
	for (uint32_t i = 0; i < pods; i++) {
		struct request r;
		struct decision d;
		char uid[32];
		uint32_t pod;

		small_request(c, rng, &r);
		snprintf(uid, sizeof(uid), "pod-%u", i);
		if (engine_decide(e, &r, &d) == FITS)
			engine_place(e, &(struct pod_spec){ .uid = uid }, &r, &d, &pod);
	}
}

static void check_node(uint64_t seed, struct rng *rng)
{
	struct engine *e = engine_new(&(struct engine_config){ .seed = seed });
	struct cluster *c = engine_cluster(e);
	struct random_node n;
	uint32_t node;

	random_node(c, rng, 0, &n);
	n.spec.gpus_count = MIN(n.spec.gpus_count, 4);
	n.spec.links = NULL;
	n.spec.unschedulable = false;
	n.spec.gpus_closed = false;
	n.spec.taints_count = 0;
	for (uint32_t i = 0; i < n.spec.gpus_count; i++)
		n.gpus[i].mig_mode = 0;
	CHECK(cluster_node_add(c, &n.spec, &node, NULL) == 0);
	occupy(rng, c, e, rng_below(rng, 5));
	for (uint32_t i = 0; i < 8; i++) {
		struct oracle o = { .node = *cluster_node(c, node) };
		struct assignment a;
		struct request r;
		bool fits, expected;

		small_request(c, rng, &r);
		r.needs = (struct resources){ 0 };
		memcpy(o.gpus, o.node.gpus, o.node.gpus_count * sizeof(*o.gpus));
		o.node.gpus = o.gpus;
		o.request = &r;
		fits = assign_node(c, engine_scorer(e), &r, node, &a) == FITS;
		expected = oracle_fits(&o, 0, 0);
		if (fits != expected)
			fail_msg("seed %llu: assign says %d, trying every way says %d",
				 (unsigned long long)seed, fits, expected);
	}
	engine_free(e);
	random_links_free();
}

TEST(a_pod_of_several_containers_is_refused_only_if_no_way_fits)
{
	struct rng rng;

	for (uint64_t seed = 1; seed <= NODES; seed++) {
		rng_seed(&rng, seed);
		check_node(seed, &rng);
	}
}

/* Slices of the profile that are made on cards that are well, and held by nobody. */
static uint32_t free_slices(const struct node *n, unsigned profile)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < n->gpus_count; i++)
		for (unsigned start = 0; start < MIG_SLICES_MAX; start++)
			count += n->gpus[i].healthy && n->gpus[i].mig_made[start] == profile + 1 &&
				 mig_fits_at(n->mig, n->gpus[i].mig, profile, start);
	return count;
}

static void check_made(uint64_t seed, struct rng *rng, uint32_t *given)
{
	struct engine *e = engine_new(&(struct engine_config){ .seed = seed });
	struct cluster *c = engine_cluster(e);
	struct gpu_spec gpus[4] = { 0 };
	struct node_spec spec = { .name = "n",
				  .allocatable = { .pods = 1000 },
				  .gpus = gpus,
				  .gpus_count = 4,
				  .mig = &mig_h100_80gb };
	static const char *const uuids[] = { "a", "b", "c", "d" };
	uint32_t node, pod;

	for (uint32_t i = 0; i < 4; i++) {
		gpus[i] = (struct gpu_spec){ .uuid = uuids[i],
					     .model = "H100",
					     .unhealthy = rng_chance(rng, 1, 6),
					     .mig_mode = MIG_MADE };
		random_slices(rng, spec.mig, gpus[i].mig_made);
	}
	CHECK(cluster_node_add(c, &spec, &node, NULL) == 0);
	for (uint32_t i = 0; i < 24; i++) {
		unsigned profile = rng_below(rng, spec.mig->profile_count);
		uint8_t count = (uint8_t)(1 + rng_below(rng, 3));
		char uid[16];
		struct decision d;
		struct request r;

		request_init(&r);
		snprintf(request_add_ask(&r, ASK_MIG, count)->mig_profile,
			 sizeof(r.asks[0].mig_profile), "%s", spec.mig->profiles[profile].name);
		snprintf(uid, sizeof(uid), "%u", i);
		bool fits = engine_decide(e, &r, &d) == FITS;

		CHECKF(fits == (free_slices(cluster_node(c, node), profile) >= count),
		       "seed %" PRIu64, seed);
		for (uint32_t h = 0; fits && h < d.assignment.count; h++) {
			const struct hold *hold = &d.assignment.holds[h];

			CHECKF(gpus[hold->gpu].mig_made[hold->mig_start] == profile + 1,
			       "seed %" PRIu64, seed);
		}
		if (fits)
			CHECK(engine_place(e, &(struct pod_spec){ .uid = uid }, &r, &d, &pod) ==
			      0);
		*given += fits;
	}
	CHECK(cluster_check(c) == NULL);
	engine_free(e);
}

TEST(slices_are_given_if_and_only_if_they_are_made_and_free)
{
	uint32_t given = 0;
	struct rng rng;

	for (uint64_t seed = 1; seed <= NODES; seed++) {
		rng_seed(&rng, seed);
		check_made(seed, &rng, &given);
	}
	CHECKF(given > NODES, "only %u requests fitted", (unsigned)given);
}

TEST_MAIN()
