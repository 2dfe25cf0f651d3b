/* SPDX-License-Identifier: Apache-2.0 */
/* Locks by GPU: several Leases for one pod, all or none, each about its own card. */
#include "locks_stage.h"

#define ENTRY(pod, rv, attempt, gpu)                                                     \
	"{\"pod\":\"u-" pod "\",\"ns\":\"ml\",\"name\":\"" pod "\",\"rv\":\"" rv         \
	"\",\"attempt\":" attempt ",\"gpus\":[{\"uuid\":\"" gpu "\",\"coreMilli\":1000," \
	"\"memoryMiB\":1000}]}"

static void put_card(const char *name, const char *uuid, const char *entries)
{
	struct fake_lease *lease = fake_put(name, "n1", entries);
	snprintf(lease->gpu, sizeof(lease->gpu), "%s", uuid);
	lease->version = ++fake.version;
	fake_event("MODIFIED", lease);
}

/* As a node that was used before. */
static void put_cards(void)
{
	put_card("gpu-n1-0", "GPU-0", "[]");
	put_card("gpu-n1-1", "GPU-1", "[]");
	put_card("gpu-n1-2", "GPU-2", "[]");
	put_card("gpu-n1-3", "GPU-3", "[]");
}

static void open_with_cards(void)
{
	fake_start();
	put_cards();
	stage_run(LOCKS_BY_GPU);
	stage_begin();
	strbuf_reset(&fake.lines);
}

TEST(every_card_of_the_node_has_its_lease_before_one_is_locked)
{
	stage_open(LOCKS_BY_GPU);
	struct taken *a = stage_take("n1", "a", "GPU-1");
	stage_wait(a);
	CHECK_INT(a->outcome, LOCK_TAKEN);
	for (int i = 0; i < STAGE_CARDS; i++) {
		char name[32], card[32];
		snprintf(name, sizeof(name), "gpu-n1-%d", i);
		snprintf(card, sizeof(card), "GPU-%d", i);
		CHECK(fake_lease(name));
		CHECK_STR(fake_lease(name)->gpu, card);
		CHECK(fake_lease(name)->finalizer);
	}
	/* They were read again after the last had been made. */
	const char *last = strstr(fake.lines.s, "GET gpu-n1-0");
	CHECK(last && !strstr(last, "POST"));
	CHECK(strstr(last, "PUT gpu-n1-1"));
	stage_close();
}

TEST(a_pod_with_several_cards_has_an_entry_in_each_lease)
{
	open_with_cards();
	struct taken *a = stage_take("n1", "a", "GPU-2,GPU-0,GPU-3");
	stage_wait(a);
	CHECK_INT(a->outcome, LOCK_TAKEN);
	CHECK(strncmp(fake.lines.s, "PUT gpu-n1-0 ", 13) == 0);
	CHECK_INT(fake_count(fake.lines.s, "PUT"), 3);
	static const char *const names[] = { "gpu-n1-0", "gpu-n1-2", "gpu-n1-3" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CHECK_INT(fake_count(stage_entries(names[i]), "\"uuid\""), 1);
		CHECK(strstr(stage_entries(names[i]), fake_lease(names[i])->gpu));
		CHECK_STR(fake_lease(names[i])->holder, "u-a");
	}
	CHECK_STR(fake_lease("gpu-n1-1")->holder, "");
	lock_bound(a->lock);
	locks_pod_over(stage.locks, "u-a");
	stage_settle();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		CHECK_STR(stage_entries(names[i]), "[]");
	stage_close();
}

static void rival_takes_2(void)
{
	put_card("gpu-n1-2", "GPU-2", "[" ENTRY("x", "9", "77", "GPU-2") "]");
}

static void first_goes_then_rival(void)
{
	fake.before_put = rival_takes_2;
}

TEST(who_loses_one_card_gives_up_the_others_after_a_fence)
{
	open_with_cards();
	fake_pod_add("x", 9);
	fake.before_put = first_goes_then_rival;
	struct taken *a = stage_take("n1", "a", "GPU-0,GPU-2");
	stage_wait(a);
	CHECK_INT(a->outcome, LOCK_LOST);
	CHECK(strstr(a->why, "ml/x"));
	stage_settle();
	CHECK_STR(stage_entries("gpu-n1-0"), "[]");
	CHECK(!strstr(stage_entries("gpu-n1-2"), "u-a"));
	CHECK(fake_pod("a")->version != 7);
	CHECK(!locks_has(stage.locks, "u-a"));
	stage_close();
}

TEST(several_entries_of_one_pod_are_one_guest)
{
	fake_start();
	put_cards();
	struct fake_pod *pod = fake_pod_add("a", 8);
	snprintf(pod->node, sizeof(pod->node), "n1");
	pod->attempt = 5;
	put_card("gpu-n1-0", "GPU-0", "[" ENTRY("a", "7", "5", "GPU-0") "]");
	put_card("gpu-n1-2", "GPU-2", "[" ENTRY("a", "7", "5", "GPU-2") "]");
	stage_run(LOCKS_BY_GPU);
	stage_begin();
	stage_until(&stage.guests, "+n1/u-a:2 ");
	CHECK_STR(stage.guests.s, "+n1/u-a:1 -n1/u-a +n1/u-a:2 ");
	put_card("gpu-n1-2", "GPU-2", "[]");
	put_card("gpu-n1-0", "GPU-0", "[]");
	stage_until(&stage.guests, "+n1/u-a:2 -n1/u-a ");
	CHECK_STR(stage.guests.s, "+n1/u-a:1 -n1/u-a +n1/u-a:2 -n1/u-a ");
	stage_close();
}

static const char *swapped(uint32_t index)
{
	static const char *const names[] = { "GPU-1", "GPU-0", "GPU-2", "GPU-3" };
	return names[index];
}

TEST(a_card_with_another_index_is_locked_where_it_is_now)
{
	open_with_cards();
	stage.uuid_at = swapped;
	struct taken *a = stage_take("n1", "a", "GPU-0");
	stage_wait(a);
	CHECK_INT(a->outcome, LOCK_TAKEN);
	CHECK_STR(fake_lease("gpu-n1-0")->gpu, "GPU-1");
	CHECK_STR(fake_lease("gpu-n1-1")->gpu, "GPU-0");
	CHECK(strstr(stage_entries("gpu-n1-1"), "u-a"));
	CHECK_STR(stage_entries("gpu-n1-0"), "[]");
	stage_close();
}

TEST(a_lease_that_holds_something_stays_about_its_card)
{
	open_with_cards();
	struct taken *a = stage_take("n1", "a", "GPU-0");
	stage_wait(a);
	stage.uuid_at = swapped;
	struct taken *b = stage_take("n1", "b", "GPU-1");
	stage_wait(b);
	CHECK_INT(b->outcome, LOCK_CLOSED);
	CHECK_STR(fake_lease("gpu-n1-0")->gpu, "GPU-0");
	stage_close();
}

TEST(a_node_is_closed_until_no_lease_holds_something_for_another_card)
{
	open_with_cards();
	CHECK(locks_can_take(stage.locks, "n1"));
	CHECK(locks_can_take(stage.locks, "n2"));
	struct taken *a = stage_take("n1", "a", "GPU-0");
	stage_wait(a);
	lock_bound(a->lock);
	CHECK(locks_can_take(stage.locks, "n1"));
	stage.uuid_at = swapped;
	CHECK(!locks_can_take(stage.locks, "n1"));
	locks_pod_over(stage.locks, "u-a");
	stage_settle();
	CHECK(locks_can_take(stage.locks, "n1"));
	struct taken *b = stage_take("n1", "b", "GPU-0");
	stage_wait(b);
	CHECK_INT(b->outcome, LOCK_TAKEN);
	stage_close();
}

TEST(a_lease_loses_its_last_entry_before_it_is_about_another_card)
{
	open_with_cards();
	struct taken *a = stage_take("n1", "a", "GPU-0");
	stage_wait(a);
	stage.uuid_at = swapped;
	fake_pod("a")->exists = false;
	locks_pod_over(stage.locks, "u-a");
	struct taken *b = stage_take("n1", "b", "GPU-1");
	stage_wait(b);
	CHECK_INT(b->outcome, LOCK_TAKEN);
	CHECK_STR(fake_lease("gpu-n1-0")->gpu, "GPU-1");
	CHECK(strstr(stage_entries("gpu-n1-0"), "u-b"));
	CHECK(!fake.renamed);
	stage_close();
}

TEST(a_bound_pod_without_entries_gets_one_for_each_card)
{
	open_with_cards();
	struct fake_pod *pod = fake_pod_add("r", 8);
	snprintf(pod->node, sizeof(pod->node), "n1");
	pod->attempt = 5;
	stage.states[0] = LOCK_POD_BOUND;
	struct lock_hold holds[] = { { .uuid = "GPU-0", .core_milli = 1000, .mem_mib = 1000 },
				     { .uuid = "GPU-1", .core_milli = 500, .mem_mib = 10 } };
	struct lock_entry entry = { .uid = "u-r",
				    .namespace = "ml",
				    .name = "r",
				    .version = "7",
				    .attempt = 5,
				    .holds = holds,
				    .holds_count = 2 };
	CHECK_INT(locks_require(stage.locks, "n1", &entry, NULL), 0);
	CHECK_INT(locks_require(stage.locks, "n1", &entry, NULL), 0);
	stage_settle();
	CHECK(strstr(stage_entries("gpu-n1-0"), "u-r") &&
	      strstr(stage_entries("gpu-n1-1"), "u-r"));
	CHECK_INT(fake_count(fake.lines.s, "PUT"), 2);
	CHECK_STR(fake_lease("gpu-n1-0")->holder, "u-r");
	CHECK_STR(fake_lease("gpu-n1-1")->holder, "");
	stage_close();
}

TEST(who_waits_for_the_leases_of_a_node_is_told_when_the_mode_cannot_be_recorded_any_more)
{
	stage_open(LOCKS_BY_GPU);
	fake.fault = FAKE_TERMINATING;
	struct taken *a = stage_take("n1", "a", "GPU-0");
	stage_until(&fake.lines, "POST gpu-n1-0 ");
	CHECK(!a->done);
	fake_remove(fake_lease("lock-mode"));
	stage_wait(a);
	CHECK_INT(a->outcome, LOCK_REFUSED);
	stage_close();
}

TEST(a_card_that_nobody_knows_cannot_be_locked)
{
	open_with_cards();
	struct lock_hold hold = { .uuid = "GPU-9", .core_milli = 1 };
	struct lock_entry entry = { .uid = "u",
				    .namespace = "ml",
				    .name = "a",
				    .version = "1",
				    .attempt = 1,
				    .holds = &hold,
				    .holds_count = 1 };
	struct lock *lock;
	CHECK_INT(locks_take(stage.locks, "n1", &entry, stage_done, NULL, &lock, NULL), -EINVAL);
	stage_close();
}

TEST_MAIN()
