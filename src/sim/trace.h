/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h - nodes, pods and their order of arrival, from CSV files.
 *
 * The format of the public openb trace.  Nodes: sn, cpu_milli, memory_mib, gpu, model.
 * Pods: name, cpu_milli, memory_mib, num_gpu, gpu_milli and, optionally, gpu_spec: the
 * models that will do, joined by '|'; empty: any.  Other columns are passed over;
 * columns are found by name.  The order is a text file with one pod name a line, a name
 * may come again; without one the pods arrive as they stand in the file.
 *
 * At most TRACE_NAME_MAX characters a node's name and MODEL_MAX models.  What a pod
 * without GPUs has as gpu_milli is not looked at.
 *
 * Everything is read and checked before anything is done: an error names file and line,
 * and there is no half-read trace.  A model that no node has is an error.
 */
#ifndef GS_SIM_TRACE_H
#define GS_SIM_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct err;

#define TRACE_FILE_MAX ((size_t)256 << 20)
#define TRACE_NAME_MAX 128 /* of a node */

struct trace_node {
	const char *name;
	const char *model; /* "" without GPUs */
	int64_t cpu_milli, mem_mib;
	uint32_t gpus;
};

/* What a pod asks for; pods that ask for the same share it. */
struct trace_class {
	int64_t cpu_milli, mem_mib;
	uint32_t gpus;
	uint32_t gpu_milli; /* on each; 1000 is the whole card */
	const char *models; /* as written: "A|B"; "" any */
};

struct trace_pod {
	const char *name;
	uint32_t class_index;
};

struct trace {
	struct arena arena; /* holds all of it */
	struct trace_node *nodes;
	uint32_t nodes_count;
	struct trace_class *classes;
	uint32_t classes_count;
	struct trace_pod *pods;
	uint32_t pods_count;
	uint32_t *order; /* indexes into pods */
	uint32_t order_count;
};

/* Texts with the names that errors call them by.  They are changed in reading. */
struct trace_text {
	const char *name;
	char *text;
	size_t len;
};

/* `order` may be NULL.  0, -EINVAL, -ENOMEM. */
int trace_parse(const struct trace_text *nodes, const struct trace_text *pods,
		const struct trace_text *order, struct trace *ret, struct err *err);

/* The same from files; `order` may be NULL. */
int trace_read(const char *nodes, const char *pods, const char *order, struct trace *ret,
	       struct err *err);

void trace_done(struct trace *t);

/* The first model of a list such as "A|B" and what is left of it; NULL at the end.
 *	for (const char *m; (m = trace_model(&list, &len));) */
const char *trace_model(const char **list, size_t *len);

#endif
