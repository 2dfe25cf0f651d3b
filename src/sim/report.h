/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - who went where and why, and who waits and for what. */
#ifndef GS_SIM_REPORT_H
#define GS_SIM_REPORT_H

struct annotations;
struct arena;
struct err;
struct strbuf;
struct world;
struct world_pod;

/* Lines for people, all pods in order of arrival. */
void report_table(const struct world *w, struct strbuf *out);
/* {"placed":[...],"pending":[...]} with the annotations each pod would get. */
void report_json(const struct world *w, struct strbuf *out);

/* "dgx-03, GPUs 0-3" */
void report_place(const struct world *w, const struct world_pod *pod, struct strbuf *out);

/* What the Binding of a placed pod would carry on a node where every GPU is visible.
 * Slices, which nobody has made here, get UUIDs that say what they are. */
int report_annotations(const struct world *w, const struct world_pod *pod, struct arena *arena,
		       struct annotations *ret, struct err *err);

#endif
