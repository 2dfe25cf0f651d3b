/* SPDX-License-Identifier: Apache-2.0 */
/* How well the policies pack the public openb trace (tests/openb.h says where it lies).
 * Figures are percent of the cluster's GPU allocated at a load; see sim/replay.h. */
#include "openb.h"
#include "test.h"

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/policy/policy.h"

#define TIE_ORDERS 8 /* for published policies, whose ties are random */

static void need_data(void)
{
	if (!openb_folder())
		SKIP("set OPENB to the folder of the openb trace");
}

/* The mean over the published orders that are here, or one of our own. */
static struct openb_mean measure(const char *trace, const struct policy *policy, unsigned ties)
{
	struct openb_mean mean = { 0 };
	unsigned seeds[10] = { 7 }, orders = openb_orders(trace, seeds);

	for (unsigned i = 0; i < (orders ? orders : 1) * ties; i++) {
		struct err err = ERR_INIT;
		struct trace t = { 0 };
		struct replay r = { 0 };
		struct replay_config config = { .policy = policy,
						.seed = i % ties + 1,
						.clock = &clock_system };
		double at = 0;

		if (openb_read(trace, seeds[i / ties], &t, &err) < 0 ||
		    replay_run(&t, &config, &r, &err) < 0)
			fail_msg("%s", err.text);
		CHECK(replay_at(&r, 80, &at));
		mean.at_80 += at;
		CHECK(replay_at(&r, 95, &at));
		mean.at_95 += at;
		CHECK(replay_at(&r, 100, &at));
		mean.at_100 += at;
		mean.runs++;
		replay_done(&r);
		trace_done(&t);
	}
	mean.at_80 /= mean.runs;
	mean.at_95 /= mean.runs;
	mean.at_100 /= mean.runs;
	printf("# %-12s %-8s at 80: %.2f, at 95: %.2f, at 100: %.2f\n", trace, policy->name,
	       mean.at_80, mean.at_95, mean.at_100);
	return mean;
}

TEST(the_default_trace_packs_better_than_anything_published)
{
	need_data();
	CHECK(measure("default", &policy_default, 1).at_100 >= 95.4);
}

TEST(scarce_models_are_kept_for_the_work_that_needs_them)
{
	struct openb_mean mean;

	need_data();
	mean = measure("gpuspec33", &policy_default, 1);
	CHECK(mean.at_100 >= 93.5);
	CHECK(mean.at_80 >= 79.0);
}

TEST(no_trace_packs_worse_than_with_fgd)
{
	need_data();
	for (size_t i = 0; i < OPENB_TRACES; i++) {
		struct openb_mean ours = measure(openb_traces[i], &policy_default, 1);
		struct openb_mean fgd = openb_published(openb_traces[i], "FGD");

		if (!fgd.runs)
			fgd = measure(openb_traces[i], &policy_fgd, 1);
		CHECK(ours.at_95 >= fgd.at_95 - 0.05);
		CHECK(ours.at_100 >= fgd.at_100 - 0.05);
	}
}

/* Against the published mean of the same orders. */
static void check_reproduced(const char *trace, const char *published, const struct policy *policy,
			     const double *figures, unsigned count)
{
	struct openb_mean mean = measure(trace, policy, TIE_ORDERS);
	double sum = 0;

	for (unsigned i = 0; i < count; i++)
		sum += figures[i];
	printf("# %s %s: published %.2f\n", trace, published, sum / count);
	CHECK(mean.at_100 > sum / count - 0.1);
	CHECK(mean.at_100 < sum / count + 0.1);
}

TEST(the_published_policies_give_their_published_figures)
{
	need_data();
	check_reproduced("default", "FGD", &policy_fgd, (double[]){ 95.14, 95.06, 95.29 }, 3);
	check_reproduced("gpuspec33", "FGD", &policy_fgd, (double[]){ 87.87, 87.89 }, 2);
	check_reproduced("default", "BestFit", &policy_bestfit, (double[]){ 92.94, 92.97, 92.89 },
			 3);
	check_reproduced("gpuspec33", "BestFit", &policy_bestfit, (double[]){ 80.23, 80.04 }, 2);
}

TEST_MAIN()
