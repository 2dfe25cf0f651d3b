/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "engine/pick.h"
#include "engine/request.h"
#include "engine/verdict.h"

static const char *text(enum verdict v, const struct request *r)
{
	static char buf[128];

	verdict_text(v, r, buf, sizeof(buf));
	return buf;
}

TEST(every_verdict_has_a_name_and_a_text_of_its_own)
{
	for (int i = 0; i < VERDICT_COUNT; i++) {
		char words[128];

		CHECK(verdict_name((enum verdict)i) != NULL);
		verdict_text((enum verdict)i, NULL, words, sizeof(words));
		CHECKF(words[0] != '\0', "verdict %d", i);
		for (int j = 0; j < i; j++) {
			CHECK(strcmp(verdict_name((enum verdict)i),
				     verdict_name((enum verdict)j)) != 0);
			CHECK(strcmp(words, text((enum verdict)j, NULL)) != 0);
		}
	}
}

TEST(known_refusals_keep_the_words_that_people_search_for)
{
	static const struct {
		enum verdict v;
		const char *words;
	} known[] = {
		{ UNSCHEDULABLE, "node(s) were unschedulable" },
		{ WRONG_NODE, "node(s) didn't match the requested node name" },
		{ WRONG_LABELS, "node(s) didn't match Pod's node affinity/selector" },
		{ TAINTED, "node(s) had untolerated taint(s)" },
		{ TOO_MANY_PODS, "Too many pods" },
		{ NO_CPU, "Insufficient cpu" },
		{ NO_MEMORY, "Insufficient memory" },
		{ NO_EPHEMERAL, "Insufficient ephemeral-storage" },
		{ NO_GPU_MEMORY, "Insufficient GPU memory" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		CHECK_STR(text(known[i].v, NULL), known[i].words);
}

TEST(a_text_carries_the_figure_of_the_request)
{
	struct request r;
	struct ask *ask;

	request_init(&r);
	r.min_network_gbps = 100;
	ask = request_add_ask(&r, ASK_WHOLE, 4);
	ask->min_gbps = 400;
	ask->bandwidth_mode = PICK_REQUIRED;
	CHECK_STR(text(NO_BANDWIDTH, &r), "NVLink bandwidth below 400 GB/s");
	CHECK_STR(text(NO_BANDWIDTH, NULL), "Insufficient NVLink bandwidth");
	CHECK_STR(text(NO_NETWORK, &r), "network bandwidth unknown or below 100 Gbit/s "
					"(label topology.scheduler/network-bandwidth)");
	CHECK_STR(text(NO_NETWORK, NULL), "network bandwidth unknown or too low "
					  "(label topology.scheduler/network-bandwidth)");
	r.min_rdma_ports = 2;
	CHECK_STR(text(NO_RDMA, &r), "fewer than 2 RDMA port(s), or not reported "
				     "(label gpu.scheduling/rdma-ports)");
	CHECK_STR(text(NO_RDMA, NULL), "too few RDMA ports, or not reported "
				       "(label gpu.scheduling/rdma-ports)");
	/* What is merely preferred refuses nothing. */
	ask->bandwidth_mode = PICK_PREFERRED;
	CHECK_STR(text(NO_BANDWIDTH, &r), "Insufficient NVLink bandwidth");
}

TEST(a_mig_refusal_names_the_profile_if_there_is_one)
{
	struct request r;

	request_init(&r);
	strcpy(request_add_ask(&r, ASK_MIG, 1)->mig_profile, "3g.40gb");
	CHECK_STR(text(NO_MIG_SLICE, &r), "Insufficient MIG slices of 3g.40gb");
	CHECK_STR(text(NO_MIG_PROFILE, &r), "node(s) didn't support MIG profile 3g.40gb");
	strcpy(request_add_ask(&r, ASK_MIG, 1)->mig_profile, "1g.10gb");
	CHECK_STR(text(NO_MIG_SLICE, &r), "Insufficient MIG slices");
	CHECK_STR(text(NO_MIG_PROFILE, &r), "node(s) didn't support the MIG profile");
}

TEST(a_text_is_cut_to_the_buffer)
{
	char buf[8];

	verdict_text(NO_CPU, NULL, buf, sizeof(buf));
	CHECK_STR(buf, "Insuffi");
}

TEST(only_what_pods_hold_can_be_cured_by_removing_them)
{
	static const enum verdict lasting[] = {
		FITS,
		NODE_GONE,
		UNSCHEDULABLE,
		WRONG_NODE,
		WRONG_LABELS,
		TAINTED,
		NO_GPU,
		WRONG_MODEL,
		NO_SUCH_GPU,
		NO_MIG_PROFILE,
		NO_NETWORK,
		WRONG_DOMAIN,
		NO_SPREAD_LABEL,
		NOT_NEAR,
		WRONG_VOLUME_NODE,
		WRONG_VOLUME_ZONE,
		NO_VOLUME,
		NO_VOLUME_ROOM,
		NO_RDMA,
		NO_CUFILE,
		NO_LOCK,
	};
	bool expect[VERDICT_COUNT];

	for (int i = 0; i < VERDICT_COUNT; i++)
		expect[i] = true;
	for (size_t i = 0; i < sizeof(lasting) / sizeof(lasting[0]); i++)
		expect[lasting[i]] = false;
	for (int i = 0; i < VERDICT_COUNT; i++)
		CHECKF(verdict_curable((enum verdict)i) == expect[i], "%s",
		       verdict_name((enum verdict)i));
}

TEST_MAIN()
