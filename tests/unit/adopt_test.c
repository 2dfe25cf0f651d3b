/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "engine_fixture.h"

#include "engine/adopt.h"

static uint32_t adopt(struct engine *e, const char *uid, struct request r, uint32_t node,
		      const struct assignment *known)
{
	uint32_t pod = POD_NONE;

	CHECK(adopt_pod(engine_cluster(e), &(struct pod_spec){ .uid = uid }, &r, node, known,
			&pod) == 0);
	return pod;
}

TEST(what_is_there_is_booked_also_where_there_is_no_room)
{
	struct engine *e = engine_new(&(struct engine_config){ 0 });
	struct box b = BOX("a", 4);
	uint32_t a = box_add(e, &b);
	struct request six = whole(6);

	six.needs.cpu_milli = 100000; /* the node has 64 */
	CHECK_INT(cluster_pod(engine_cluster(e), adopt(e, "six", six, a, NULL))->holds_count, 4);
	CHECK(cluster_node(engine_cluster(e), a)->free.cpu_milli < 0);
	CHECK_VERDICT(verdict_on(e, whole(1), a), NO_FREE_GPU);
	CHECK_INT(cluster_pod(engine_cluster(e), adopt(e, "late", whole(1), a, NULL))->holds_count,
		  0);
	CHECK(!cluster_check(engine_cluster(e)));
	engine_free(e);
}

TEST(each_ask_gets_what_the_earlier_ones_left)
{
	struct engine *e = engine_new(&(struct engine_config){ 0 });
	struct box b = BOX("a", 3);
	uint32_t a = box_add(e, &b);
	uint32_t pod = adopt(e, "two", both(whole(2), whole(2)), a, NULL);

	CHECK_INT(cluster_pod(engine_cluster(e), pod)->holds_count, 3);
	engine_free(e);
}

TEST(of_known_ids_only_what_cannot_be_is_left_out)
{
	struct engine *e = engine_new(&(struct engine_config){ 0 });
	struct box b = BOX("a", 3);
	uint32_t a = box_add(e, &b);
	struct assignment known = { .count = 2,
				    .holds = { { .gpu = 1, .kind = ASK_WHOLE },
					       { .gpu = 2, .kind = ASK_WHOLE } } };

	CHECK_INT(cluster_pod(engine_cluster(e), adopt(e, "x", whole(2), a, &known))->holds_count,
		  2);
	known.holds[0].gpu = 0;
	known.holds[1].gpu = 1; /* held by x */
	CHECK_INT(cluster_pod(engine_cluster(e), adopt(e, "y", whole(2), a, &known))->holds_count,
		  1);
	CHECK_VERDICT(verdict_on(e, whole(1), a), NO_FREE_GPU);
	CHECK(!cluster_check(engine_cluster(e)));
	engine_free(e);
}

TEST(a_pod_is_adopted_once_and_on_a_node_that_is_there)
{
	struct engine *e = engine_new(&(struct engine_config){ 0 });
	struct box b = BOX("a", 1);
	uint32_t a = box_add(e, &b), pod;
	struct request one = whole(1);

	adopt(e, "x", one, a, NULL);
	CHECK_INT(adopt_pod(engine_cluster(e), &(struct pod_spec){ .uid = "x" }, &one, a, NULL,
			    &pod),
		  -EEXIST);
	CHECK_INT(adopt_pod(engine_cluster(e), &(struct pod_spec){ .uid = "y" }, &one, a + 1, NULL,
			    &pod),
		  -ENOENT);
	engine_free(e);
}

TEST_MAIN()
