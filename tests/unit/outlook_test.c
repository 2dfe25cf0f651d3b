/* SPDX-License-Identifier: Apache-2.0 */
/* U of nodes and the prices of models, worked out by hand from the formula of outlook.h.
 *
 * The cluster of most tests is one node of one GPU, 16 cores and 64 GiB: of the work that is
 * assumed before any has come there is then one pod that takes all of it. */
#include "engine_fixture.h"

#include <math.h>

#include "engine/mix.h"
#include "engine/policy/outlook.h"
#include "engine/score.h"

struct table {
	struct engine *engine;
	struct cluster *cluster;
	struct mix *mix;
	struct outlook *outlook;
};

static void table_init(struct table *t)
{
	t->engine = fleet_new();
	t->cluster = engine_cluster(t->engine);
	t->mix = mix_new();
	t->outlook = calloc(1, sizeof(*t->outlook));
	CHECK(t->mix && t->outlook);
}

static void table_done(struct table *t)
{
	engine_free(t->engine);
	mix_free(t->mix);
	free(t->outlook);
}

static uint32_t table_node(struct table *t, const char *name, uint32_t gpus, const char *model)
{
	struct box b = BOX(name, gpus);

	b.spec.allocatable = (struct resources){ 16000, 64 * GIB, 0, 110 };
	for (uint32_t i = 0; i < gpus; i++)
		b.gpus[i].model = model;
	return box_add(t->engine, &b);
}

static void come(struct table *t, int times, struct request r)
{
	while (times--)
		mix_add(t->mix, &r);
}

static struct request with(struct request r, int64_t cpu_milli, int64_t mem_bytes)
{
	r.needs.cpu_milli = cpu_milli;
	r.needs.mem_bytes = mem_bytes;
	return r;
}

/* U of a node of the first model with so much CPU and memory and these cards. */
static double usable(const struct table *t, double cpu_milli, double mem_bytes, uint16_t level,
		     uint8_t cards)
{
	struct outlook_view v = { .cpu_milli = cpu_milli, .mem_bytes = mem_bytes };

	if (cards) {
		v.count = 1;
		v.level[0] = level;
		v.cards[0] = cards;
	}
	return outlook_usable(t->outlook, &v);
}

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-6 * (1 + fabs(b));
}

TEST(one_kind_uses_the_room_that_its_cpu_can_feed)
{
	struct table t;
	static const struct {
		double cpu_milli;
		uint16_t level;
		uint8_t cards;
		double usable;
	} rows[] = {
		/* 3/4 of the pods are halves that need 4 cores, 1/4 takes a card and 16 cores. */
		{ 16000, 1000, 1, 0.75 * 1000 + 0.25 * 1000 },
		{ 16000, 500, 1, 0.75 * 500 },
		{ 16000, 499, 1, 0 },
		{ 15999, 1000, 1, 0.75 * 1000 }, /* the large one lacks CPU */
		{ 3999, 1000, 1, 0 },
		{ 4000, 1000, 1, 0.75 * 1000 }, /* 2 * 4000 / 4000 pods of 500 */
		{ 4000, 1000, 4, 0.75 * 1000 }, /* FEED limits what four cards offer */
		{ 8000, 1000, 4, 0.75 * 2000 },
		{ 12000, 700, 4, 0.75 * 2800 }, /* 2 * 3 * 500 = 3000 > 2800 */
		{ 16000, 0, 0, 0 },
	};

	table_init(&t);
	table_node(&t, "a", 1, "model");
	come(&t, 3, with(share(500, 0), 4000, 0));
	outlook_learn(t.outlook, t.cluster, t.mix);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		double u = usable(&t, rows[i].cpu_milli, 64.0 * GIB, rows[i].level, rows[i].cards);

		CHECKF(near(u, rows[i].usable), "row %zu: %g, expected %g", i, u, rows[i].usable);
	}
	table_done(&t);
}

TEST(two_kinds_of_one_shape_are_fed_each_by_its_own_cpu)
{
	struct table t;

	table_init(&t);
	table_node(&t, "a", 1, "model");
	come(&t, 2, with(share(500, 0), 2000, 0));
	come(&t, 1, with(share(500, 0), 8000, 0));
	outlook_learn(t.outlook, t.cluster, t.mix);
	/* The light ones could take 4000, the heavy ones 1000 of the 2000 that are there. */
	CHECK(near(usable(&t, 8000, 64.0 * GIB, 1000, 2), 0.5 * 2000 + 0.25 * 1000));
	CHECK(near(usable(&t, 7999, 64.0 * GIB, 1000, 2), 0.5 * 2000));
	CHECK(near(usable(&t, 2000, 64.0 * GIB, 1000, 2), 0.5 * 1000));
	CHECK(near(usable(&t, 64000, 256.0 * GIB, 1000, 2), 0.75 * 2000 + 0.25 * 2000));
	table_done(&t);
}

TEST(two_shapes_count_each_on_the_cards_that_are_large_enough)
{
	struct table t;
	struct outlook_view v = { .cpu_milli = 16000, .mem_bytes = 64.0 * GIB };

	table_init(&t);
	table_node(&t, "a", 1, "model");
	come(&t, 2, with(share(300, 0), 1000, 0));
	come(&t, 1, with(share(700, 0), 1000, 0));
	outlook_learn(t.outlook, t.cluster, t.mix);
	v.count = 3;
	v.level[0] = 200, v.cards[0] = 3;
	v.level[1] = 300, v.cards[1] = 2;
	v.level[2] = 900, v.cards[2] = 1;
	CHECK(near(outlook_usable(t.outlook, &v), 0.5 * 1500 + 0.25 * 900));
	table_done(&t);
}

TEST(memory_counts_as_the_cpu_that_comes_with_it)
{
	struct table t;

	table_init(&t);
	table_node(&t, "a", 1, "model");
	come(&t, 3, with(share(500, 0), 4000, 8 * GIB));
	outlook_learn(t.outlook, t.cluster, t.mix);
	CHECK(near(usable(&t, 16000, 8.0 * GIB, 1000, 4), 0.75 * 1000));
	CHECK(near(usable(&t, 16000, 16.0 * GIB, 1000, 4), 0.75 * 2000));
	CHECK(near(usable(&t, 16000, 7.0 * GIB, 1000, 4), 0));
	table_done(&t);
}

TEST(work_without_memory_can_use_a_node_without_memory)
{
	struct table t;

	table_init(&t);
	table_node(&t, "a", 1, "model");
	come(&t, 3, with(share(500, 0), 4000, 0));
	outlook_learn(t.outlook, t.cluster, t.mix);
	CHECK(near(usable(&t, 4000, 0, 1000, 1), 0.75 * 1000));
	CHECK(near(usable(&t, 4000, -1, 1000, 1), 0.75 * 1000));
	table_done(&t);
}

TEST(a_card_offers_the_lesser_of_core_and_memory)
{
	const struct gpu idle = {
		.mem_mib = 1000, .mem_free_mib = 1000, .core_free_milli = 1000, .healthy = 1
	};
	struct gpu g = idle;

	CHECK_INT(outlook_level(&g), 1000);
	g.use = GPU_SHARED;
	CHECK_INT(outlook_level(&g), 999); /* no whole card */
	g.mem_free_mib = 300;
	CHECK_INT(outlook_level(&g), 300);
	g.core_free_milli = 200;
	CHECK_INT(outlook_level(&g), 200);
	g.mem_mib = 0;
	g.mem_free_mib = 0;
	CHECK_INT(outlook_level(&g), 200);
	g.group = 1;
	CHECK_INT(outlook_level(&g), 0);
	g = idle, g.healthy = 0;
	CHECK_INT(outlook_level(&g), 0);
	g = idle, g.mig_mode = 1;
	CHECK_INT(outlook_level(&g), 0);
	CHECK_INT(outlook_level_after(&idle, &(struct hold){ .kind = ASK_WHOLE }), 0);
	CHECK_INT(outlook_level_after(
			  &idle,
			  &(struct hold){ .kind = ASK_SHARE, .core_milli = 400, .mem_mib = 100 }),
		  600);
	CHECK_INT(outlook_level_after(
			  &idle,
			  &(struct hold){ .kind = ASK_SHARE, .core_milli = 400, .mem_mib = 700 }),
		  300);
	CHECK_INT(outlook_level_after(&idle, &(struct hold){ .kind = ASK_SHARE }), 999);
	CHECK_INT(outlook_level_after(&idle, &(struct hold){ .kind = ASK_SHARE, .group = 3 }), 0);
}

TEST(a_view_keeps_cards_by_level_while_they_move)
{
	struct table t;
	struct outlook_view v;
	uint32_t node;

	table_init(&t);
	node = table_node(&t, "a", 4, "model");
	put(t.engine, "1", node, on_gpus(share(400, 0), 1));
	put(t.engine, "2", node, on_gpus(share(400, 0), 4));
	put(t.engine, "3", node, on_gpus(whole(1), 8));
	outlook_view(cluster_node(t.cluster, node), &v);
	CHECK_INT(v.count, 2);
	CHECK(v.level[0] == 600 && v.cards[0] == 2 && v.level[1] == 1000 && v.cards[1] == 1);
	outlook_move(&v, 600, 100);
	CHECK_INT(v.count, 3);
	CHECK(v.level[0] == 100 && v.level[1] == 600 && v.cards[1] == 1);
	outlook_move(&v, 1000, 0);
	outlook_move(&v, 600, 100);
	CHECK(v.count == 1 && v.level[0] == 100 && v.cards[0] == 2);
	outlook_move(&v, 0, 100);
	outlook_move(&v, 0, 700);
	CHECK(v.count == 2 && v.cards[0] == 3 && v.level[1] == 700);
	table_done(&t);
}

/* The chance that a pod of so many GPUs finds none: W of the kind that needs least CPU. */
static double scarcity_of(struct table *t, uint32_t gpus)
{
	const struct outlook_model *m = &t->outlook->model[0];

	outlook_learn(t->outlook, t->cluster, t->mix);
	for (uint32_t i = 0; i < m->shapes_count; i++)
		if (m->shapes[i].gpus == gpus)
			return m->kinds[m->shapes[i].first].weight;
	return -1;
}

static double scarcity_of_pairs(struct table *t)
{
	return scarcity_of(t, 2);
}

TEST(shares_on_several_cards_need_cards_of_their_size_only)
{
	struct table t;
	struct request r = with(share(500, 0), 100, 0);
	double w;

	table_init(&t);
	table_node(&t, "a", 2, "model");
	r.asks[0].count = 2;
	come(&t, 100, r);
	w = scarcity_of_pairs(&t);
	CHECK(w > 0);
	CHECK(near(usable(&t, 8000, 64.0 * GIB, 500, 2), w * 1000));
	CHECK(usable(&t, 8000, 64.0 * GIB, 500, 1) == 0);
	CHECK(usable(&t, 8000, 64.0 * GIB, 499, 2) == 0);
	table_done(&t);
}

TEST(what_a_state_offers_is_worked_out_anew_at_every_epoch)
{
	struct table t;
	const struct node *n;
	struct outlook_view v;
	double before;

	table_init(&t);
	n = cluster_node(t.cluster, table_node(&t, "a", 1, "model"));
	put(t.engine, "1", 0, share(500, 0));
	outlook_view(n, &v);
	outlook_learn(t.outlook, t.cluster, t.mix);
	before = outlook_look(t.outlook, n)->usable;
	come(&t, 3, with(share(500, 0), 4000, 0));
	CHECK(outlook_look(t.outlook, n)->usable == before);
	outlook_learn(t.outlook, t.cluster, t.mix);
	CHECK(near(outlook_look(t.outlook, n)->usable, 0.75 * 500));
	CHECK(outlook_look(t.outlook, n)->usable == outlook_usable(t.outlook, &v));
	table_done(&t);
}

/* The policy keeps what it found when it picked a card: for that request only. */
TEST(what_was_picked_for_one_pod_is_not_the_score_of_another)
{
	struct engine *e = fleet_new();
	struct request thin = share(500, 0), thick = share(500, 0);
	struct decision alone, after, other;
	uint32_t a = fleet_node(e, "a", (struct fleet_node){ .gpus = 2 });

	thick.needs.mem_bytes = 250 * GIB;
	thick.asks[0].share_policy = SHARE_BINPACK;
	for (int i = 0; i < 8; i++)
		engine_arrived(e, &thick);
	CHECK_VERDICT(engine_score(e, &thick, a, &alone, NULL), FITS);
	CHECK_VERDICT(engine_score(e, &thin, a, &other, NULL), FITS);
	CHECK_VERDICT(engine_score(e, &thick, a, &after, NULL), FITS);
	CHECK(other.score != alone.score);
	CHECK_INT(after.score, alone.score);
	engine_free(e);
}

TEST(smaller_work_does_not_compete_for_the_slots_of_larger)
{
	struct table t;
	double w;

	table_init(&t);
	put(t.engine, "1", table_node(&t, "a", 4, "model"), whole(1));
	come(&t, 500, with(whole(2), 1000, 0));
	come(&t, 500, with(whole(4), 1000, 0));
	w = scarcity_of(&t, 4);
	CHECKF(w > 0.97 && w <= 1, "%g", w);
	/* But the larger does for those of the smaller: two pairs each. */
	w = scarcity_of(&t, 2);
	CHECKF(w > 0.25 && w < 0.34, "%g", w);
	table_done(&t);
}

TEST(cards_without_cpu_are_no_slots)
{
	struct table t;
	double before, after;

	table_init(&t);
	for (int i = 0; i < 8; i++)
		table_node(&t, (const char *[]){ "a", "b", "c", "d", "e", "f", "g", "h" }[i], 2,
			   "model");
	come(&t, 90, with(whole(1), 100, 0));
	come(&t, 10, with(whole(2), 1000, 0));
	before = scarcity_of_pairs(&t);
	for (uint32_t i = 0; i < 8; i++)
		put(t.engine, (const char *[]){ "1", "2", "3", "4", "5", "6", "7", "8" }[i], i,
		    cpu(15500));
	after = scarcity_of_pairs(&t);
	CHECKF(before < 0.1 && after > 0.9, "%g, %g", before, after);
	table_done(&t);
}

TEST(pairs_are_scarce_when_there_are_hardly_more_of_them_than_pods)
{
	struct table plenty, even, gone;
	double w;

	/* A hundred pairs, and one pod in a thousand that needs one. */
	table_init(&plenty);
	for (int i = 0; i < 100; i++) {
		char name[24];

		snprintf(name, sizeof(name), "node-%d", i);
		table_node(&plenty, name, 2, "model");
	}
	come(&plenty, 999, with(share(100, 0), 100, 0));
	come(&plenty, 1, with(whole(2), 1000, 0));
	w = scarcity_of_pairs(&plenty);
	CHECKF(w >= 0 && w < 0.01, "%g", w);
	table_done(&plenty);

	/* All of them need pairs: as many as there are. */
	table_init(&even);
	table_node(&even, "a", 2, "model");
	come(&even, 1000, with(whole(2), 1000, 0));
	w = scarcity_of_pairs(&even);
	CHECKF(w > 0.97 && w <= 1, "%g", w);

	/* And none is left, while single cards are. */
	put(even.engine, "1", cluster_node_find(even.cluster, "a"), whole(1));
	w = scarcity_of_pairs(&even);
	CHECKF(w > 0.97 && w <= 1, "%g", w);
	table_done(&even);

	/* Nothing is left at all, so nobody can lose it. */
	table_init(&gone);
	table_node(&gone, "a", 2, "model");
	put(gone.engine, "1", 0, whole(2));
	come(&gone, 1000, with(whole(2), 1000, 0));
	CHECK(scarcity_of_pairs(&gone) == 0);
	table_done(&gone);
}

TEST(scarcity_grows_with_the_part_of_the_pods_that_need_pairs)
{
	double last = 0;

	for (int pairs = 10; pairs <= 100; pairs += 10) {
		struct table t;
		double w;

		table_init(&t);
		for (int i = 0; i < 8; i++)
			table_node(&t,
				   (const char *[]){ "a", "b", "c", "d", "e", "f", "g", "h" }[i],
				   2, "model");
		come(&t, 100 - pairs, with(whole(1), 1000, 0));
		come(&t, pairs, with(whole(2), 1000, 0));
		w = scarcity_of_pairs(&t);
		CHECKF(w > last, "%d %%: %g after %g", pairs, w, last);
		last = w;
		table_done(&t);
	}
}

/* Two models of eight free GPUs each. */
static void two_models(struct table *t)
{
	table_init(t);
	for (int i = 0; i < 4; i++) {
		table_node(t, (const char *[]){ "a", "b", "c", "d" }[i], 2, "plain");
		table_node(t, (const char *[]){ "e", "f", "g", "h" }[i], 2, "scarce");
	}
}

static double load_of(struct table *t, const char *model)
{
	return t->outlook->model[cluster_model_find(t->cluster, model)].load;
}

static bool reprice(struct table *t)
{
	outlook_learn(t->outlook, t->cluster, t->mix);
	return outlook_reprice(t->outlook, t->cluster, t->mix);
}

TEST(nobody_pays_where_nobody_is_particular)
{
	struct table t;
	struct request either;

	two_models(&t);
	CHECK(!reprice(&t));
	come(&t, 100, with(whole(1), 100, 0));
	come(&t, 100, cpu(100));
	either = with(of_model(t.engine, whole(1), "plain"), 100, 0);
	come(&t, 100, of_model(t.engine, either, "scarce"));
	CHECK(!reprice(&t));
	CHECK(load_of(&t, "plain") == 0 && load_of(&t, "scarce") == 0);
	table_done(&t);
}

TEST(a_model_costs_what_those_need_who_can_use_no_other)
{
	double last = 0;

	for (int particular = 0; particular <= 100; particular += 20) {
		struct table t;

		two_models(&t);
		come(&t, particular, with(of_model(t.engine, whole(1), "scarce"), 100, 0));
		come(&t, 100 - particular, with(whole(1), 100, 0));
		CHECK_INT(reprice(&t), particular != 0);
		CHECK(!outlook_reprice(t.outlook, t.cluster, t.mix));
		CHECKF(load_of(&t, "scarce") >= last, "%d %%", particular);
		CHECK(load_of(&t, "plain") <= load_of(&t, "scarce"));
		CHECK(load_of(&t, "plain") < 0.1);
		last = load_of(&t, "scarce");
		table_done(&t);
	}
	CHECK(near(last, 1));
}

TEST(the_price_rises_as_the_model_runs_out)
{
	struct table t;
	double before;

	two_models(&t);
	come(&t, 10, with(of_model(t.engine, whole(1), "scarce"), 100, 0));
	come(&t, 90, with(whole(1), 100, 0));
	CHECK(reprice(&t));
	before = load_of(&t, "scarce");
	/* 10 of 100 arrivals, and sqrt(10) and one more to be careful, of all 16 GPUs on 8. */
	CHECKF(fabs(before - (10 + sqrt(10) + 1) / 100 * 16 / 8) < 1e-4, "%g", before);
	CHECK(fabs(load_of(&t, "plain") - 1.0 / 100 * 16 / 8) < 1e-4);
	put(t.engine, "1", cluster_node_find(t.cluster, "e"), whole(2));
	put(t.engine, "2", cluster_node_find(t.cluster, "f"), whole(2));
	put(t.engine, "3", cluster_node_find(t.cluster, "g"), whole(2));
	CHECK(outlook_reprice(t.outlook, t.cluster, t.mix));
	CHECK(load_of(&t, "scarce") > before);
	table_done(&t);
}

TEST(work_that_accepts_two_models_burdens_the_one_that_has_more_left)
{
	struct table t;
	struct request scarce;

	two_models(&t);
	for (int i = 0; i < 6; i++) {
		char name[8] = { (char)('p' + i) };

		table_node(&t, name, 2, "third");
	}
	scarce = of_model(t.engine, with(whole(1), 100, 0), "scarce");
	come(&t, 50, scarce);
	come(&t, 50, of_model(t.engine, scarce, "third"));
	come(&t, 300, with(whole(1), 100, 0));
	CHECK(reprice(&t));
	/* 28 GPUs are free, an eighth of them for each: 3.5 of 8 and 3.5 of 12 and a little. */
	CHECKF(load_of(&t, "scarce") > 3.5 / 8 && load_of(&t, "scarce") < 0.6, "%g",
	       load_of(&t, "scarce"));
	CHECK(load_of(&t, "scarce") > load_of(&t, "third"));
	CHECK(load_of(&t, "third") > load_of(&t, "plain"));
	table_done(&t);
}

TEST(others_keep_off_the_model_that_is_needed)
{
	struct engine *e = fleet_new();
	struct request any = with(whole(1), 1000, GIB), particular;
	struct decision d;
	struct parts p, p2;

	/* By name alone the scarce one would come first. */
	for (int i = 1; i <= 4; i++) {
		char a[] = { 'a', (char)('0' + i), 0 }, b[] = { 'b', (char)('0' + i), 0 };
		struct box scarce = BOX(a, 2), plain = BOX(b, 2);

		scarce.gpus[0].model = scarce.gpus[1].model = "scarce";
		box_add(e, &scarce);
		box_add(e, &plain);
	}
	CHECK_STR(choice(e, any), "a1");
	particular = of_model(e, any, "scarce");
	for (int i = 0; i < 64; i++)
		engine_arrived(e, i % 2 ? &any : &particular);
	CHECK_STR(choice(e, any), "b1");
	CHECK_STR(choice(e, particular), "a1");
	/* The price is in the score: twice the GPUs pay twice. */
	CHECK_VERDICT(engine_score(e, &any, 0, &d, &p), FITS);
	CHECK(p.price > 0 && p.price <= PRICE_MAX);
	CHECK_INT(d.score, (int64_t)p.availability * 4 / 10 +
				   ((int64_t)PRICE_MAX - p.price) * 4 / 10 + PART_MAX / 10 * 4);
	any.asks[0].count = 2;
	CHECK_VERDICT(engine_score(e, &any, 0, &d, &p2), FITS);
	CHECK(abs(p2.price - 2 * p.price) <= 1);
	CHECK_VERDICT(engine_score(e, &any, 1, &d, &p), FITS);
	CHECK(p.price < p2.price / 100);
	engine_free(e);
}

TEST(prices_change_between_epochs)
{
	struct engine *e = fleet_new();
	struct request any = with(whole(1), 1000, GIB), particular;
	struct box scarce = BOX("a", 8), plain = BOX("b", 8);
	struct decision d;
	struct parts p;
	uint32_t epoch;

	for (int i = 0; i < 8; i++)
		scarce.gpus[i].model = "scarce";
	box_add(e, &scarce);
	box_add(e, &plain);
	particular = of_model(e, any, "scarce");
	for (int i = 0; i < 512; i++)
		engine_arrived(e, &any);
	choice(e, any);
	epoch = engine_scorer(e)->epoch;
	CHECK_VERDICT(engine_score(e, &any, 0, &d, &p), FITS);
	CHECK_INT(p.price, 0);
	for (int i = 0; i < MIX_PRICES; i++)
		engine_arrived(e, &particular);
	CHECK_STR(choice(e, any), "b");
	CHECK_INT(engine_scorer(e)->epoch, epoch);
	CHECK_VERDICT(engine_score(e, &any, 0, &d, &p), FITS);
	CHECK(p.price > 0);
	engine_free(e);
}

TEST_MAIN()
