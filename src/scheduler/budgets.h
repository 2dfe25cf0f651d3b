/* SPDX-License-Identifier: Apache-2.0 */
/* budgets.h - PodDisruptionBudgets: whose removal would violate one.
 *
 * Owns the cache of budgets.  A pod is guarded while a budget of its namespace selects it and
 * allows no disruption, unless the budget has counted that pod's already.  As in
 * kube-scheduler an empty selector matches no pod, and neither does any selector one without
 * labels.  How many of several may go is not told apart: it is a matter of rank between
 * victims, never a bar.
 *
 * Answers change rarely while counts change all the time: only namespaces in which one may
 * have changed are news.  Used by the loop's thread alone.
 */
#ifndef GS_SCHEDULER_BUDGETS_H
#define GS_SCHEDULER_BUDGETS_H

#include <stdbool.h>
#include <stdint.h>

struct budgets;
struct err;
struct json;
struct kube_caches;
struct log;

struct budgets_options {
	struct kube_caches *caches;
	const struct log *log;
	uint64_t seed;
};

int budgets_new(const struct budgets_options *options, struct budgets **ret, struct err *err);
/* After its caches are gone.  NULL is fine. */
void budgets_free(struct budgets *budgets);

/* Whether removing that pod violates a budget.  `labels`: its metadata.labels, or NULL. */
bool budgets_violated(const struct budgets *budgets, const char *namespace, const char *name,
		      const struct json *labels);

/* Whether an answer may have changed since budgets_told(): anywhere, or in that namespace. */
bool budgets_has_news(const struct budgets *budgets);
bool budgets_is_news(const struct budgets *budgets, const char *namespace);
void budgets_told(struct budgets *budgets);

#endif
