/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet.h"

#include "base/strbuf.h"
#include "engine/explain.h"
#include "engine/prefer.h"
#include "engine/soft.h"

#include <errno.h>

/* A node with a label, and at will a taint that discourages. */
static uint32_t add_node(struct engine *e, const char *name, uint32_t gpus, const char *key,
			 const char *value, const char *discouraged)
{
	struct cluster *c = engine_cluster(e);

	return fleet_node(e, name,
			  (struct fleet_node){ .gpus = gpus,
					       .label = { key ? cluster_intern(c, key) : 0,
							  value ? cluster_intern(c, value) : 0 },
					       .taint = discouraged,
					       .effect = EFFECT_PREFER_NO_SCHEDULE });
}

static struct soft_term_spec node_term(const struct node_group *group, uint8_t weight)
{
	return (struct soft_term_spec){ .kind = SOFT_NODE,
					.weight = weight,
					.rules = { .groups = group, .groups_count = 1 } };
}

#define GROUP(label_key, label_value)                                                            \
	&(struct node_group)                                                                     \
	{                                                                                        \
		.terms = &(struct node_term){ &(struct match){                                   \
						      .key = (label_key),                        \
						      .values = (const char *[]){ label_value }, \
						      .values_count = 1 },                       \
					      1 },                                               \
		.count = 1                                                                       \
	}

static const char *chosen(struct engine *e, const struct request *r)
{
	struct decision d, afresh;

	CHECK_INT(engine_decide(e, r, &d), FITS);
	CHECK_INT(engine_decide_afresh(e, r, &afresh), FITS);
	CHECK_INT(d.node, afresh.node);
	return cluster_node(engine_cluster(e), d.node)->name;
}

/* The preferred node is the last that the score would choose, behind more than are compared. */
TEST(a_preferred_node_is_found_behind_many_that_score_better)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	struct soft_term_spec terms[] = { node_term(GROUP("disk", "fast"), 1) };
	struct request r = whole(1);
	char name[8];

	for (uint32_t i = 0; i < 3 * PREFER_FEW; i++) {
		snprintf(name, sizeof(name), "n%02u", i);
		add_node(e, name, 1, NULL, NULL, NULL);
	}
	add_node(e, "wanted", 8, "disk", "fast", NULL);
	CHECK_STR(chosen(e, &r), "n00");
	CHECK_INT(soft_take(c, terms, 1, &r.soft), 0);
	CHECK_STR(chosen(e, &r), "wanted");
	/* When it has no room, it is as if nothing were preferred. */
	for (uint32_t i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "p%u", i);
		fleet_pod(e, name, "wanted", r, (struct pod_spec){ 0 });
	}
	CHECK_STR(chosen(e, &r), "n00");
	soft_release(c, r.soft);
	engine_free(e);
}

TEST(a_node_that_discourages_is_taken_last_unless_it_is_tolerated)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	struct request r = whole(1), tolerant = r;

	tolerant.tolerations[tolerant.tolerations_count++] =
		(struct toleration){ .key = cluster_intern(c, "old"),
				     .op = TOLERATE_EXISTS,
				     .effect = EFFECT_PREFER_NO_SCHEDULE };
	add_node(e, "a", 1, NULL, NULL, "old");
	add_node(e, "b", 8, NULL, NULL, NULL);
	CHECK_STR(chosen(e, &r), "b");
	CHECK_STR(chosen(e, &tolerant), "a");
	/* It decides between nodes that fit, not whether one does. */
	fleet_pod(e, "all", "b", whole(8), (struct pod_spec){ 0 });
	CHECK_STR(chosen(e, &r), "a");
	cluster_node_remove(c, cluster_node_find(c, "a"));
	CHECK(!soft_matters(c, &r));
	engine_free(e);
}

TEST(weights_add_up_and_a_heavy_term_may_lose_to_two)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	struct soft_term_spec terms[] = { node_term(GROUP("disk", "a"), 50),
					  node_term(GROUP("disk", "b"), 40),
					  node_term(GROUP("kubernetes.io/kind", "none"), 99) };
	struct request r = whole(1);

	add_node(e, "one", 8, "disk", "b", NULL);
	add_node(e, "two", 8, "disk", "a", NULL);
	CHECK_INT(soft_take(c, terms, 3, &r.soft), 0);
	CHECK_STR(chosen(e, &r), "two");
	soft_release(c, r.soft);
	terms[1].weight = 60;
	CHECK_INT(soft_take(c, terms, 3, &r.soft), 0);
	CHECK_STR(chosen(e, &r), "one");
	soft_release(c, r.soft);
	engine_free(e);
}

TEST(terms_that_cannot_be_are_refused)
{
	struct engine *e = fleet_new();
	const struct node_group *group = GROUP("disk", "a");
	struct soft_term_spec terms[SOFT_TERMS_MAX + 1];
	uint32_t soft = 7;

	for (uint32_t i = 0; i <= SOFT_TERMS_MAX; i++)
		terms[i] = node_term(group, 1);
	CHECK_INT(soft_take(engine_cluster(e), terms, SOFT_TERMS_MAX + 1, &soft), -EINVAL);
	terms[0].weight = 0;
	CHECK_INT(soft_take(engine_cluster(e), terms, 1, &soft), -EINVAL);
	terms[0].weight = SOFT_WEIGHT_MAX + 1;
	CHECK_INT(soft_take(engine_cluster(e), terms, 1, &soft), -EINVAL);
	CHECK_INT(soft_take(engine_cluster(e), terms, 0, &soft), 0);
	CHECK_INT(soft, 0);
	engine_free(e);
}

TEST(equal_preferences_are_one_record_and_go_with_the_last_user)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	struct soft_term_spec terms[] = { node_term(GROUP("disk", "a"), 5),
					  node_term(GROUP("disk", "b"), 9) };
	uint32_t a, b, other;
	uint64_t serial;

	CHECK_INT(soft_take(c, terms, 2, &a), 0);
	CHECK_INT(soft_take(c, terms, 2, &b), 0);
	CHECK_INT(a, b);
	serial = soft_serial(c, a);
	soft_release(c, a);
	CHECK_INT(soft_take(c, terms, 1, &other), 0);
	CHECK(other != b);
	soft_release(c, b);
	soft_release(c, other);
	CHECK_INT(soft_take(c, terms, 2, &a), 0);
	CHECK(soft_serial(c, a) != serial);
	soft_release(c, a);
	engine_free(e);
}

TEST(explain_says_that_preferences_decided)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	struct soft_term_spec terms[] = { node_term(GROUP("disk", "fast"), 1) };
	struct strbuf out = STRBUF_INIT;
	struct explanation x;
	struct request r = whole(1);

	add_node(e, "a", 1, NULL, NULL, NULL);
	add_node(e, "b", 8, "disk", "fast", NULL);
	CHECK_INT(soft_take(c, terms, 1, &r.soft), 0);
	CHECK_INT(explain_request(e, &r, &x), FITS);
	CHECK(x.preferred);
	explain_why(e, &r, &x, &out);
	CHECKF(strstr(out.s, "; preferred to a: 500 points for preferences against 300"), "%s",
	       out.s);
	strbuf_reset(&out);
	explain_choices(e, &r, &x, &out);
	CHECKF(strstr(out.s, ", preferences 500 of 900\n2. a"), "%s", out.s);
	strbuf_done(&out);
	soft_release(c, r.soft);
	engine_free(e);
}

TEST_MAIN()
