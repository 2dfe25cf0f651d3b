/* SPDX-License-Identifier: Apache-2.0 */
/* Who is of which disruption budget, what that allows, and when it has to be asked again. */
#include "scheduler_bench.h"

#include "scheduler/budgets.h"

static struct budgets *budgets;

static void open(void)
{
	struct err err = ERR_INIT;

	bench_open();
	struct budgets_options options = { .caches = &bench.caches, .log = &bench.log, .seed = 1 };
	CHECKF(budgets_new(&options, &budgets, &err) == 0, "%s", err.text);
}

static void close_all(void)
{
	bench_close();
	budgets_free(budgets);
}

#define BUDGET(name, selector, status)                                                      \
	"metadata: {name: " name ", namespace: ml, uid: u-" name ", resourceVersion: RV}\n" \
	"spec: {" selector "}\nstatus: {" status "}\n"

static uint32_t number(const char *namespace, const char *name, const char *labels)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = bench_parse(labels);

	return budgets_of(budgets, namespace, name, json_get(json_root(doc), "labels"));
}

/* Whether removing the pod alone violates its budget. */
static bool violated(const char *namespace, const char *name, const char *labels)
{
	uint32_t budget = number(namespace, name, labels);

	return budget && !budgets_allowed(budgets, budget);
}

/* Whether there was any since the last call. */
static bool news(void)
{
	bool any = budgets_has_news(budgets);

	CHECK_INT(budgets_is_news(budgets, "ml"), any);
	CHECK(!budgets_is_news(budgets, "other"));
	budgets_told(budgets);
	CHECK(!budgets_is_news(budgets, "ml"));
	return any;
}

TEST(a_budget_guards_those_that_it_selects_while_it_allows_nothing)
{
	open();
	CHECK(!violated("ml", "p", "labels: {app: web}"));
	bench_put(KUBE_POD_DISRUPTION_BUDGET,
		  BUDGET("b", "selector: {matchLabels: {app: web}}", "disruptionsAllowed: 0"));
	CHECK(violated("ml", "p", "labels: {app: web, x: y}"));
	CHECK(!violated("ml", "p", "labels: {app: db}"));
	CHECK(!violated("ml", "p", "labels: {}"));
	CHECK(!violated("ml", "p", "nothing: 1"));
	CHECK(!violated("other", "p", "labels: {app: web}"));
	bench_put(KUBE_POD_DISRUPTION_BUDGET,
		  BUDGET("b", "selector: {matchLabels: {app: web}}", "disruptionsAllowed: 1"));
	CHECK(!violated("ml", "p", "labels: {app: web}"));
	bench_put(KUBE_POD_DISRUPTION_BUDGET,
		  BUDGET("b", "selector: {matchLabels: {app: web}}",
			 "disruptionsAllowed: 0, disruptedPods: {p: \"2026-01-01T00:00:00Z\"}"));
	CHECK(!violated("ml", "p", "labels: {app: web}"));
	CHECK(violated("ml", "q", "labels: {app: web}"));
	bench_delete(KUBE_POD_DISRUPTION_BUDGET, BUDGET("b", "", ""));
	CHECK(!violated("ml", "q", "labels: {app: web}"));
	close_all();
}

TEST(selectors_are_those_of_kubernetes)
{
	static const struct {
		const char *selector;
		bool web, db;
	} rows[] = {
		{ "selector: {}", false, false },
		{ "x: y", false, false },
		{ "selector: {matchLabels: {app: web, tier: front}}", true, false },
		{ "selector: {matchLabels: {app: web, tier: back}}", false, false },
		{ "selector: {matchExpressions: [{key: app, operator: In, values: [web, db]}]}",
		  true, true },
		{ "selector: {matchExpressions: [{key: app, operator: NotIn, values: [web]}]}",
		  false, true },
		{ "selector: {matchExpressions: [{key: zone, operator: NotIn, values: [web]}]}",
		  true, true },
		{ "selector: {matchExpressions: [{key: tier, operator: Exists}]}", true, false },
		{ "selector: {matchExpressions: [{key: tier, operator: DoesNotExist}]}", false,
		  true },
		{ "selector: {matchExpressions: [{key: tier, operator: Perhaps}]}", false, false },
		{ "selector: {matchLabels: {app: db}, matchExpressions: [{key: tier, operator: "
		  "Exists}]}",
		  false, false },
	};

	open();
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		char yaml[1024];

		snprintf(yaml, sizeof(yaml), BUDGET("b", "%s", ""), rows[i].selector);
		bench_put(KUBE_POD_DISRUPTION_BUDGET, yaml);
		CHECKF(violated("ml", "p", "labels: {app: web, tier: front}") == rows[i].web, "%s",
		       rows[i].selector);
		CHECKF(violated("ml", "p", "labels: {app: db}") == rows[i].db, "%s",
		       rows[i].selector);
	}
	close_all();
}

TEST(one_of_several_is_enough)
{
	open();
	bench_put(KUBE_POD_DISRUPTION_BUDGET,
		  BUDGET("a", "selector: {matchLabels: {app: web}}", "disruptionsAllowed: 3"));
	bench_put(KUBE_POD_DISRUPTION_BUDGET,
		  BUDGET("b", "selector: {matchLabels: {app: web}}", "disruptionsAllowed: 0"));
	bench_put(KUBE_POD_DISRUPTION_BUDGET,
		  BUDGET("c", "selector: {matchLabels: {app: web}}", "disruptionsAllowed: 3"));
	CHECK(violated("ml", "p", "labels: {app: web}"));
	bench_delete(KUBE_POD_DISRUPTION_BUDGET, BUDGET("b", "", ""));
	CHECK(!violated("ml", "p", "labels: {app: web}"));
	close_all();
}

TEST(numbers_stay_and_are_given_again)
{
	open();
	bench_put(KUBE_POD_DISRUPTION_BUDGET,
		  BUDGET("a", "selector: {matchLabels: {app: web}}", "disruptionsAllowed: 3"));
	bench_put(KUBE_POD_DISRUPTION_BUDGET,
		  BUDGET("b", "selector: {matchLabels: {app: db}}", "disruptionsAllowed: 0"));
	CHECK_INT(number("ml", "p", "labels: {app: web}"), 1);
	CHECK_INT(number("ml", "p", "labels: {app: db}"), 2);
	CHECK_INT(budgets_allowed(budgets, 1), 3);
	CHECK_INT(budgets_allowed(budgets, 2), 0);
	bench_put(KUBE_POD_DISRUPTION_BUDGET,
		  BUDGET("a", "selector: {matchLabels: {app: web}}", "disruptionsAllowed: 5"));
	CHECK_INT(number("ml", "p", "labels: {app: web}"), 1);
	CHECK_INT(budgets_allowed(budgets, 1), 5);
	bench_delete(KUBE_POD_DISRUPTION_BUDGET, BUDGET("a", "", ""));
	CHECK_INT(budgets_allowed(budgets, 1), 0);
	bench_put(KUBE_POD_DISRUPTION_BUDGET,
		  BUDGET("c", "selector: {matchLabels: {app: new}}", "disruptionsAllowed: 7"));
	CHECK_INT(number("ml", "p", "labels: {app: new}"), 1);
	CHECK_INT(budgets_allowed(budgets, 1), 7);
	CHECK_INT(budgets_last(budgets), 2);
	close_all();
}

TEST(counts_that_change_no_answer_are_no_news)
{
#define WEB "selector: {matchLabels: {app: web}}"
	open();
	CHECK(!news());
	bench_put(KUBE_POD_DISRUPTION_BUDGET, BUDGET("b", WEB, "disruptionsAllowed: 3"));
	CHECK(news());
	bench_put(KUBE_POD_DISRUPTION_BUDGET,
		  BUDGET("b", WEB, "disruptionsAllowed: 1, currentHealthy: 9"));
	CHECK(!news());
	bench_put(KUBE_POD_DISRUPTION_BUDGET, BUDGET("b", WEB, "disruptionsAllowed: 0"));
	CHECK(news());
	bench_put(KUBE_POD_DISRUPTION_BUDGET,
		  BUDGET("b", WEB, "disruptionsAllowed: 0, disruptedPods: {p: x}"));
	CHECK(news());
	bench_put(KUBE_POD_DISRUPTION_BUDGET,
		  BUDGET("b", "selector: {matchLabels: {app: db}}",
			 "disruptionsAllowed: 0, disruptedPods: {p: x}"));
	CHECK(news());
	bench_delete(KUBE_POD_DISRUPTION_BUDGET, BUDGET("b", WEB, ""));
	CHECK(news());
	close_all();
}

TEST(a_budget_that_cannot_be_read_stays_as_it_was)
{
	open();
	bench_put(KUBE_POD_DISRUPTION_BUDGET, BUDGET("b", WEB, "disruptionsAllowed: 0"));
	bench_put(KUBE_POD_DISRUPTION_BUDGET, BUDGET("b", WEB, "disruptionsAllowed: many"));
	CHECK(violated("ml", "p", "labels: {app: web}"));
	CHECK_INT(bench_logged("stays as it was"), 1);
	close_all();
}

TEST_MAIN()
