/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet.h"

#include "engine/adopt.h"
#include "engine/assign.h"
#include "engine/rules.h"
#include "engine/volumes.h"

static struct request with(struct engine *e, const struct volume_use *uses, uint32_t count)
{
	struct rules_spec spec = { .volumes = uses, .volumes_count = count };
	struct request r;

	request_init(&r);
	CHECK_INT(rules_take(engine_cluster(e), &spec, &r.rules), 0);
	return r;
}

static struct request with_claim(struct engine *e, const char *claim, uint8_t kind)
{
	return with(e, &(struct volume_use){ claim, kind }, 1);
}

static uint32_t put(struct engine *e, const char *uid, struct request r, uint32_t node)
{
	uint32_t pod = POD_NONE;

	CHECK_INT(adopt_pod(engine_cluster(e), &(struct pod_spec){ .uid = uid }, &r, node, NULL,
			    &pod),
		  0);
	return pod;
}

static enum verdict fits(struct engine *e, struct request r, uint32_t node)
{
	return fit_node(engine_cluster(e), &r, node);
}

TEST(a_disk_that_is_written_is_for_one_pod_of_a_node)
{
	struct engine *e = fleet_new();
	uint32_t a = fleet_node(e, "a", (struct fleet_node){ 0 });
	uint32_t b = fleet_node(e, "b", (struct fleet_node){ 0 });
	struct request writes = with_claim(e, "gce/data", VOLUME_DISK);
	struct request reads = with_claim(e, "gce/data", VOLUME_DISK_TO_READ);
	struct request other = with_claim(e, "gce/other", VOLUME_DISK);
	uint32_t reader = put(e, "reader", reads, a);

	CHECK_INT(fits(e, reads, a), FITS);
	CHECK_INT(fits(e, writes, a), DISK_IN_USE);
	CHECK_INT(fits(e, other, a), FITS);
	CHECK_INT(fits(e, writes, b), FITS);
	put(e, "writer", writes, b);
	CHECK_INT(fits(e, reads, b), DISK_IN_USE);
	cluster_pod_remove(engine_cluster(e), reader);
	CHECK_INT(fits(e, writes, a), FITS);
	engine_free(e);
}

TEST(a_claim_for_one_pod_alone_is_in_use_everywhere)
{
	struct engine *e = fleet_new();
	uint32_t a = fleet_node(e, "a", (struct fleet_node){ 0 });
	uint32_t b = fleet_node(e, "b", (struct fleet_node){ 0 });
	struct request alone = with_claim(e, "ns/alone", VOLUME_CLAIM_ALONE);
	/* One that was read before the claim said so. */
	uint32_t user = put(e, "user", with_claim(e, "ns/alone", VOLUME_CLAIM), a);

	CHECK_INT(fits(e, alone, a), CLAIM_IN_USE);
	CHECK_INT(fits(e, alone, b), CLAIM_IN_USE);
	CHECK_INT(fits(e, with_claim(e, "ns/free", VOLUME_CLAIM_ALONE), a), FITS);
	cluster_pod_remove(engine_cluster(e), user);
	CHECK_INT(fits(e, alone, b), FITS);
	engine_free(e);
}

TEST(a_claim_in_use_is_free_once_its_user_is_preempted)
{
	struct engine *e = fleet_new();
	uint32_t a = fleet_node(e, "a", (struct fleet_node){ 0 });
	struct request alone = with_claim(e, "ns/alone", VOLUME_CLAIM_ALONE);
	uint32_t user = put(e, "user", alone, a);

	CHECK_INT(rules_fit_pods(engine_cluster(e), alone.rules, 0, a, NULL, 0), CLAIM_IN_USE);
	CHECK_INT(rules_fit_pods(engine_cluster(e), alone.rules, 0, a, &user, 1), FITS);
	engine_free(e);
}

/* Two claims of the driver "csi" on a node that attaches two. */
static struct engine *two_of_two(uint32_t *node, uint32_t *pod)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	struct attach_limit limits[] = { { "csi", 2 }, { "other", 0 } };

	*node = fleet_node(e, "a", (struct fleet_node){ 0 });
	CHECK_INT(volumes_limit(c, "a", limits, 2), 0);
	*pod = put(e, "one", with_claim(e, "ns/one", VOLUME_CLAIM), *node);
	put(e, "two", with_claim(e, "ns/two", VOLUME_CLAIM), *node);
	CHECK_INT(volumes_tell(c, "ns/one", "csi", "h1"), 0);
	CHECK_INT(volumes_tell(c, "ns/two", "csi", "h2"), 0);
	return e;
}

TEST(a_node_attaches_so_many_disks_of_a_driver)
{
	uint32_t a, one;
	struct engine *e = two_of_two(&a, &one);
	struct cluster *c = engine_cluster(e);
	struct request more = with_claim(e, "ns/more", VOLUME_CLAIM);

	CHECK_INT(fits(e, more, a), FITS); /* nobody knows what it is */
	CHECK_INT(volumes_tell(c, "ns/more", "csi", "h3"), 0);
	CHECK_INT(fits(e, more, a), TOO_MANY_VOLUMES);
	CHECK_INT(rules_fit_pods(c, more.rules, 0, a, &one, 1), FITS);
	CHECK_INT(volumes_tell(c, "ns/more", "csi", "h2"), 0); /* the same disk */
	CHECK_INT(fits(e, more, a), FITS);
	CHECK_INT(volumes_tell(c, "ns/more", "other", "h3"), 0);
	CHECK_INT(fits(e, more, a), TOO_MANY_VOLUMES);
	CHECK_INT(volumes_tell(c, "ns/more", "third", "h3"), 0); /* has no limit */
	CHECK_INT(fits(e, more, a), FITS);
	CHECK_INT(volumes_tell(c, "ns/more", "csi", "h3"), 0);
	CHECK_INT(volumes_limit(c, "a", NULL, 0), 0);
	CHECK_INT(fits(e, more, a), FITS);
	engine_free(e);
}

TEST(what_is_attached_without_a_pod_counts_too)
{
	uint32_t a, one;
	struct engine *e = two_of_two(&a, &one);
	struct cluster *c = engine_cluster(e);
	struct request more = with_claim(e, "ns/more", VOLUME_CLAIM);

	CHECK_INT(volumes_tell(c, "ns/more", "csi", "h3"), 0);
	CHECK_INT(volumes_attach(c, "va1", "a", "csi", "h1"), 0); /* counted by its pod */
	cluster_pod_remove(c, one);
	CHECK_INT(fits(e, more, a), TOO_MANY_VOLUMES);
	volumes_detach(c, "va1");
	volumes_detach(c, "va1");
	CHECK_INT(fits(e, more, a), FITS);
	CHECK_INT(volumes_attach(c, "va2", "b", "csi", "h9"), 0); /* of a node to come */
	CHECK_INT(volumes_attach(c, "va2", "a", "csi", "h9"), 0);
	CHECK_INT(fits(e, more, a), TOO_MANY_VOLUMES);
	engine_free(e);
}

TEST(a_node_beyond_its_limit_takes_pods_that_need_no_more_disks)
{
	uint32_t a, one;
	struct engine *e = two_of_two(&a, &one);
	struct cluster *c = engine_cluster(e);
	struct attach_limit less = { "csi", 1 };
	struct volume_use both[] = { { "ns/one", VOLUME_CLAIM }, { "ns/two", VOLUME_CLAIM } };
	struct volume_use again[] = { { "ns/one", VOLUME_CLAIM }, { "ns/new", VOLUME_CLAIM } };

	CHECK_INT(volumes_limit(c, "a", &less, 1), 0);
	CHECK_INT(fits(e, with(e, both, 2), a), FITS);
	struct request r = with(e, again, 2);
	CHECK_INT(volumes_tell(c, "ns/new", "csi", "h3"), 0);
	CHECK_INT(fits(e, r, a), TOO_MANY_VOLUMES);
	engine_free(e);
}

/* The index remembers which nodes were barred. */
TEST(a_decision_follows_what_becomes_known_of_volumes)
{
	uint32_t a, one;
	struct engine *e = two_of_two(&a, &one);
	struct cluster *c = engine_cluster(e);
	struct request more = with_claim(e, "ns/more", VOLUME_CLAIM);
	struct attach_limit three = { "csi", 3 };
	struct decision d;

	CHECK_INT(volumes_tell(c, "ns/more", "csi", "h3"), 0);
	CHECK_INT(engine_decide(e, &more, &d), TOO_MANY_VOLUMES);
	CHECK_INT(volumes_limit(c, "a", &three, 1), 0);
	CHECK_INT(engine_decide(e, &more, &d), FITS);
	engine_free(e);
}

TEST(a_group_of_a_volume_says_what_is_wrong_with_the_node)
{
	struct engine *e = fleet_new();
	uint32_t a = fleet_node(e, "a", (struct fleet_node){ 0 });
	const char *name = "b";
	struct match match = { .op = MATCH_NAME_IN, .values = &name, .values_count = 1 };
	struct node_term term = { &match, 1 };
	struct node_group group = { .terms = &term, .count = 1, .refusal = WRONG_VOLUME_ZONE };
	struct rules_spec spec = { .groups = &group, .groups_count = 1 };
	struct request r;

	request_init(&r);
	CHECK_INT(rules_take(engine_cluster(e), &spec, &r.rules), 0);
	CHECK_INT(fits(e, r, a), WRONG_VOLUME_ZONE);
	engine_free(e);
}

/* More values than are compared one by one, known and unknown, in any order. */
TEST(long_lists_of_values_are_searched)
{
	static const char *const values[] = { "z", "c", "x", "a", "y", "w", "v", "u", "t", "s" };
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	struct label label = { cluster_intern(c, "key"), cluster_intern(c, "a") };
	struct label other = { cluster_intern(c, "key"), cluster_intern(c, "b") };
	uint32_t a = fleet_node(e, "a", (struct fleet_node){ .label = label });
	uint32_t b = fleet_node(e, "b", (struct fleet_node){ .label = other });
	struct match match = { .key = "key", .values = values, .values_count = 10 };
	struct node_term term = { &match, 1 };
	struct node_group group = { .terms = &term, .count = 1, .refusal = NO_VOLUME };
	struct rules_spec spec = { .groups = &group, .groups_count = 1 };
	struct request r;

	request_init(&r);
	CHECK_INT(rules_take(c, &spec, &r.rules), 0);
	CHECK_INT(fits(e, r, a), FITS);
	CHECK_INT(fits(e, r, b), NO_VOLUME);
	label.value = cluster_intern(c, "c");
	CHECK_INT(fits(e, r, fleet_node(e, "c", (struct fleet_node){ .label = label })), FITS);
	engine_free(e);
}

TEST_MAIN()
