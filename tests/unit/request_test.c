/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "engine/request.h"

/* Two GPUs, a selector, a toleration and another resource, from whatever was there. */
static void fill(struct request *r, int garbage)
{
	memset(r, garbage, sizeof(*r));
	request_init(r);
	r->needs.cpu_milli = 4000;
	request_add_ask(r, ASK_WHOLE, 2)->min_gbps = 300;
	r->extended[r->extended_count++] = (struct extended){ .resource = 7, .amount = 1 };
	r->selector[r->selector_count++] = (struct label){ .key = 1, .value = 2 };
	r->tolerations[r->tolerations_count++] = (struct toleration){ .key = 3 };
}

TEST(an_empty_request_is_one_pod_that_fits_anywhere)
{
	struct request r;

	memset(&r, 0xa5, sizeof(r));
	request_init(&r);
	CHECK_INT(r.needs.pods, 1);
	CHECK_INT(r.needs.cpu_milli, 0);
	CHECK_INT(r.asks_count, 0);
	CHECK(r.node == NODE_NONE && r.domain == DOMAIN_NONE && r.prefer_domain == DOMAIN_NONE);
	CHECK_INT(request_gpu_milli(&r), 0);
}

TEST(equal_requests_hash_alike_whatever_memory_held_before)
{
	struct request a, b;

	fill(&a, 0x00);
	fill(&b, 0xff);
	CHECK(request_equal(&a, &b));
	CHECK(request_hash(&a, 1) == request_hash(&b, 1));
	CHECK(request_hash(&a, 1) != request_hash(&a, 2));
}

TEST(entries_past_the_counts_do_not_matter)
{
	struct request a, b;

	fill(&a, 0);
	fill(&b, 0);
	b.asks[1].count = 3;
	b.extended[1].amount = 5;
	b.selector[1].key = 5;
	b.tolerations[1].key = 5;
	CHECK(request_equal(&a, &b));
	CHECK(request_hash(&a, 1) == request_hash(&b, 1));
}

TEST(bytes_between_fields_do_not_matter)
{
	struct request a, b;
	size_t gap = offsetof(struct ask, mig_profile) + sizeof(a.asks[0].mig_profile);

	fill(&a, 0);
	fill(&b, 0);
	for (; gap < offsetof(struct ask, models); gap++)
		((char *)&b.asks[0])[gap] = 0x55;
	CHECK(request_equal(&a, &b));
	CHECK(request_hash(&a, 1) == request_hash(&b, 1));
}

#define DIFFERS(statement)                                         \
	do {                                                       \
		struct request a, b;                               \
		fill(&a, 0);                                       \
		fill(&b, 0);                                       \
		statement;                                         \
		CHECK(!request_equal(&a, &b));                     \
		CHECK(request_hash(&a, 1) != request_hash(&b, 1)); \
	} while (0)

TEST(every_used_part_makes_a_difference)
{
	DIFFERS(b.needs.cpu_milli++);
	DIFFERS(b.needs.mem_bytes++);
	DIFFERS(b.needs.ephemeral_bytes++);
	DIFFERS(b.asks[0].count++);
	DIFFERS(b.asks[0].min_gbps++);
	DIFFERS(b.asks[0].prefer[GPU_MAX - 1]++);
	DIFFERS(b.asks[0].mig_profile[22]++);
	DIFFERS(modelset_add(&b.asks[0].models, 255));
	DIFFERS(request_add_ask(&b, ASK_WHOLE, 2));
	DIFFERS(b.extended[0].amount++);
	DIFFERS(b.extended_count++);
	DIFFERS(b.selector[0].value++);
	DIFFERS(b.selector_count = 0);
	DIFFERS(b.tolerations[0].effect++);
	DIFFERS(b.strategy = STRATEGY_BALANCED);
	DIFFERS(b.latency_sensitive = 1);
	DIFFERS(b.min_network_gbps++);
	DIFFERS(b.node = 0);
	DIFFERS(b.domain = 0);
	DIFFERS(b.prefer_domain = 0);
}

TEST(asks_end_at_the_maximum_and_begin_clean)
{
	struct request r;

	request_init(&r);
	memset(&r.asks[0], 0xff, sizeof(r.asks[0]));
	CHECK_INT(request_add_ask(&r, ASK_SHARE, 1)->core_milli, 0);
	for (int i = 1; i < ASK_MAX; i++)
		CHECK(request_add_ask(&r, ASK_SHARE, 1) != NULL);
	CHECK(request_add_ask(&r, ASK_SHARE, 1) == NULL);
	CHECK_INT(r.asks_count, ASK_MAX);
}

TEST(gpu_adds_up_over_cards_shares_and_slices)
{
	struct request r;

	request_init(&r);
	request_add_ask(&r, ASK_WHOLE, 2);
	request_add_ask(&r, ASK_SHARE, 3)->core_milli = 250;
	CHECK_INT(request_gpu_milli(&r), 2750);
	strcpy(request_add_ask(&r, ASK_MIG, 1)->mig_profile, "3g.20gb");
	CHECK_INT(request_gpu_milli(&r), 2750 + 3 * 1000 / 7);
	strcpy(request_add_ask(&r, ASK_MIG, 1)->mig_profile, "9g.999gb");
	CHECK_INT(request_gpu_milli(&r), 2750 + 3 * 1000 / 7);
}

TEST(an_empty_set_of_models_takes_any)
{
	struct modelset models = { 0 };

	CHECK(modelset_any(&models) && modelset_has(&models, 255));
	modelset_add(&models, 200);
	CHECK(!modelset_any(&models));
	CHECK(modelset_has(&models, 200) && !modelset_has(&models, 8) &&
	      !modelset_has(&models, 0));
}

TEST_MAIN()
