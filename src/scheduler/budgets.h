/* SPDX-License-Identifier: Apache-2.0 */
/* budgets.h - PodDisruptionBudgets: of whom too many must not be removed.
 *
 * Owns the cache of budgets.  A pod is of a budget of its namespace that selects it, unless the
 * budget has counted its disruption already.  As in kube-scheduler an empty selector matches no
 * pod, and neither does any selector one without labels.  Of several it is of one that allows no
 * disruption, or else of the first.  All this is a matter of rank between victims, never a bar.
 *
 * Budgets have numbers, small and from 1 on; that of one that is gone is given to another.  Which
 * pod is of which changes rarely while counts change all the time: only namespaces in which that
 * may have changed are news.  Used by the loop's thread alone.
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

/* The budget that the pod is of; 0: none.  `labels`: its metadata.labels, or NULL. */
uint32_t budgets_of(const struct budgets *budgets, const char *namespace, const char *name,
		    const struct json *labels);
/* Numbers go up to this; how many pods of a budget may be removed now. */
uint32_t budgets_last(const struct budgets *budgets);
uint32_t budgets_allowed(const struct budgets *budgets, uint32_t number);

/* Whether an answer may have changed since budgets_told(): anywhere, or in that namespace. */
bool budgets_has_news(const struct budgets *budgets);
bool budgets_is_news(const struct budgets *budgets, const char *namespace);
void budgets_told(struct budgets *budgets);

#endif
