/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "engine/gpuset.h"
#include "engine/request.h"
#include "wire/csv.h"
#include "wire/file.h"

#define MEM_MIB_MAX (INT64_MAX >> 20) /* so that bytes fit too */
#define NAME_SHOWN  80
#define ARENA_MAX   ((size_t)2 << 30)

/* A trace while it is being read. */
struct reader {
	struct trace *trace;
	struct map nodes, models, pods, classes;
	VEC(struct trace_node) node_list;
	VEC(struct trace_class) class_list;
	VEC(struct trace_pod) pod_list;
	VEC(uint32_t) order_list;
};

static void reader_done(struct reader *r)
{
	map_done(&r->nodes);
	map_done(&r->models);
	map_done(&r->pods);
	map_done(&r->classes);
	vec_done(&r->node_list);
	vec_done(&r->class_list);
	vec_done(&r->pod_list);
	vec_done(&r->order_list);
}

static int no_memory(struct err *err)
{
	return err_set(err, ENOMEM, "out of memory");
}

/* A field as a string of its own. */
static int text_of(struct reader *r, const struct csv *csv, size_t column, const char **ret,
		   struct err *err)
{
	const struct csv_field *field = &csv->fields[column];

	if (memchr(field->s, 0, field->len))
		return err_set(err, EINVAL, "%s:%zu: a NUL character", csv->name, csv->line);
	*ret = arena_strndup(&r->trace->arena, field->s, field->len);
	return *ret ? 0 : no_memory(err);
}

/* The name in a row, which must be there and must be new. */
static int name_of(struct reader *r, const struct csv *csv, size_t column, const char *what,
		   struct map *seen, uint32_t number, const char **ret, struct err *err)
{
	uint32_t other;
	int rc = text_of(r, csv, column, ret, err);

	if (rc < 0)
		return rc;
	if (!**ret)
		return err_set(err, EINVAL, "%s:%zu: a %s without name", csv->name, csv->line,
			       what);
	if (map_get_u32(seen, *ret, strlen(*ret), &other))
		return err_set(err, EINVAL, "%s:%zu: %s %.*s is there twice", csv->name, csv->line,
			       what, NAME_SHOWN, *ret);
	return map_put_u32(seen, *ret, strlen(*ret), number) < 0 ? no_memory(err) : 0;
}

struct node_columns {
	size_t name, cpu, mem, gpus, model;
};

static int read_node(struct reader *r, const struct csv *csv, const struct node_columns *at,
		     struct err *err)
{
	struct trace_node n = { .gpus = 0 };
	int64_t gpus;
	int rc;

	if ((rc = name_of(r, csv, at->name, "node", &r->nodes, (uint32_t)r->node_list.len, &n.name,
			  err)) < 0 ||
	    (rc = csv_i64(csv, at->cpu, 0, INT64_MAX, &n.cpu_milli, err)) < 0 ||
	    (rc = csv_i64(csv, at->mem, 0, MEM_MIB_MAX, &n.mem_mib, err)) < 0 ||
	    (rc = csv_i64(csv, at->gpus, 0, GPU_MAX, &gpus, err)) < 0 ||
	    (rc = text_of(r, csv, at->model, &n.model, err)) < 0)
		return rc;
	n.gpus = (uint32_t)gpus;
	if (strlen(n.name) > TRACE_NAME_MAX)
		return err_set(err, EINVAL, "%s:%zu: node %.40s...: its name is longer than %d",
			       csv->name, csv->line, n.name, TRACE_NAME_MAX);
	if (n.gpus && !*n.model)
		return err_set(err, EINVAL, "%s:%zu: node %.*s has GPUs but no model", csv->name,
			       csv->line, NAME_SHOWN, n.name);
	if ((n.gpus && map_put_u32(&r->models, n.model, strlen(n.model), 0) < 0) ||
	    vec_push(&r->node_list, n) < 0)
		return no_memory(err);
	if (r->models.len > MODEL_MAX)
		return err_set(err, EINVAL, "%s:%zu: there are more than %d GPU models", csv->name,
			       csv->line, MODEL_MAX);
	return 0;
}

static int read_nodes(struct reader *r, const struct trace_text *t, struct err *err)
{
	struct csv csv;
	struct node_columns at;
	int rc;

	if ((rc = csv_open(&csv, t->name, t->text, t->len, err)) < 0 ||
	    (rc = csv_column(&csv, "sn", &at.name, err)) < 0 ||
	    (rc = csv_column(&csv, "cpu_milli", &at.cpu, err)) < 0 ||
	    (rc = csv_column(&csv, "memory_mib", &at.mem, err)) < 0 ||
	    (rc = csv_column(&csv, "gpu", &at.gpus, err)) < 0 ||
	    (rc = csv_column(&csv, "model", &at.model, err)) < 0)
		return rc;
	while ((rc = csv_next(&csv, err)) > 0)
		if ((rc = read_node(r, &csv, &at, err)) < 0)
			return rc;
	if (rc == 0 && !r->models.len)
		return err_set(err, EINVAL, "%s: no node has a GPU", t->name);
	return rc;
}

const char *trace_model(const char **list, size_t *len)
{
	const char *model = *list;

	if (!*model)
		return NULL;
	*len = strcspn(model, "|");
	*list = model + *len + (model[*len] == '|');
	return model;
}

static int check_models(const struct reader *r, const struct csv *csv, const char *models,
			struct err *err)
{
	size_t len;

	for (const char *m; (m = trace_model(&models, &len));) {
		uint32_t unused;

		if (!map_get_u32(&r->models, m, len, &unused))
			return err_set(err, EINVAL,
				       "%s:%zu: gpu_spec names model \"%.*s\", which no "
				       "node has",
				       csv->name, csv->line, (int)MIN(len, NAME_SHOWN), m);
	}
	return 0;
}

/* The number of the class; new ones are added. */
static int class_of(struct reader *r, const struct trace_class *class, uint32_t *ret,
		    struct err *err)
{
	char key[512];
	int n = snprintf(key, sizeof(key), "%lld/%lld/%u/%u/%s", (long long)class->cpu_milli,
			 (long long)class->mem_mib, class->gpus, class->gpu_milli, class->models);
	size_t len = MIN((size_t)n, sizeof(key) - 1);

	/* Two lists of models that are too long to compare are two classes. */
	if ((size_t)n < sizeof(key) && map_get_u32(&r->classes, key, len, ret))
		return 0;
	*ret = (uint32_t)r->class_list.len;
	const char *kept = arena_strndup(&r->trace->arena, key, len);
	if (!kept || vec_push(&r->class_list, *class) < 0 ||
	    ((size_t)n < sizeof(key) && map_put_u32(&r->classes, kept, len, *ret) < 0))
		return no_memory(err);
	return 0;
}

struct pod_columns {
	size_t name, cpu, mem, gpus, milli, spec;
	bool has_spec;
};

static int read_class(struct reader *r, const struct csv *csv, const struct pod_columns *at,
		      struct trace_class *ret, struct err *err)
{
	int64_t gpus, milli = 0;
	int rc;

	ret->models = "";
	if ((rc = csv_i64(csv, at->cpu, 0, INT64_MAX, &ret->cpu_milli, err)) < 0 ||
	    (rc = csv_i64(csv, at->mem, 0, MEM_MIB_MAX, &ret->mem_mib, err)) < 0 ||
	    (rc = csv_i64(csv, at->gpus, 0, GPU_MAX, &gpus, err)) < 0 ||
	    (gpus && (rc = csv_i64(csv, at->milli, 1, 1000, &milli, err)) < 0))
		return rc;
	ret->gpus = (uint32_t)gpus;
	ret->gpu_milli = (uint32_t)milli;
	if (!at->has_spec || !gpus)
		return 0;
	rc = text_of(r, csv, at->spec, &ret->models, err);
	return rc < 0 ? rc : check_models(r, csv, ret->models, err);
}

static int read_pod(struct reader *r, const struct csv *csv, const struct pod_columns *at,
		    struct err *err)
{
	struct trace_class class;
	struct trace_pod pod;
	int rc;

	if ((rc = name_of(r, csv, at->name, "pod", &r->pods, (uint32_t)r->pod_list.len, &pod.name,
			  err)) < 0 ||
	    (rc = read_class(r, csv, at, &class, err)) < 0 ||
	    (rc = class_of(r, &class, &pod.class_index, err)) < 0)
		return rc;
	return vec_push(&r->pod_list, pod) < 0 ? no_memory(err) : 0;
}

static int read_pods(struct reader *r, const struct trace_text *t, struct err *err)
{
	struct csv csv;
	struct pod_columns at = { .has_spec = false };
	int rc;

	if ((rc = csv_open(&csv, t->name, t->text, t->len, err)) < 0 ||
	    (rc = csv_column(&csv, "name", &at.name, err)) < 0 ||
	    (rc = csv_column(&csv, "cpu_milli", &at.cpu, err)) < 0 ||
	    (rc = csv_column(&csv, "memory_mib", &at.mem, err)) < 0 ||
	    (rc = csv_column(&csv, "num_gpu", &at.gpus, err)) < 0 ||
	    (rc = csv_column(&csv, "gpu_milli", &at.milli, err)) < 0)
		return rc;
	at.has_spec = csv_column(&csv, "gpu_spec", &at.spec, NULL) == 0;
	while ((rc = csv_next(&csv, err)) > 0)
		if ((rc = read_pod(r, &csv, &at, err)) < 0)
			return rc;
	if (rc == 0 && !r->pod_list.len)
		return err_set(err, EINVAL, "%s: there is no pod in it", t->name);
	return rc;
}

static int read_order(struct reader *r, const struct trace_text *t, struct err *err)
{
	const char *at = t->text, *end = t->text + t->len;

	for (size_t line = 1; at < end; line++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((newline ? newline : end) - at);
		uint32_t pod;

		if (len && at[len - 1] == '\r')
			len--;
		if (len && !map_get_u32(&r->pods, at, len, &pod))
			return err_set(err, EINVAL, "%s:%zu: there is no pod \"%.*s\"", t->name,
				       line, (int)MIN(len, NAME_SHOWN), at);
		if (len && vec_push(&r->order_list, pod) < 0)
			return no_memory(err);
		at = newline ? newline + 1 : end;
	}
	if (!r->order_list.len)
		return err_set(err, EINVAL, "%s: there is no pod in it", t->name);
	return 0;
}

static int order_of_file(struct reader *r, struct err *err)
{
	for (uint32_t i = 0; i < r->pod_list.len; i++)
		if (vec_push(&r->order_list, i) < 0)
			return no_memory(err);
	return 0;
}

/* The lists become the trace's, which owns them from here on. */
static void hand_over(struct reader *r)
{
	struct trace *t = r->trace;

	t->nodes = r->node_list.items;
	t->nodes_count = (uint32_t)r->node_list.len;
	t->classes = r->class_list.items;
	t->classes_count = (uint32_t)r->class_list.len;
	t->pods = r->pod_list.items;
	t->pods_count = (uint32_t)r->pod_list.len;
	t->order = r->order_list.items;
	t->order_count = (uint32_t)r->order_list.len;
	r->node_list.items = NULL;
	r->class_list.items = NULL;
	r->pod_list.items = NULL;
	r->order_list.items = NULL;
}

int trace_parse(const struct trace_text *nodes, const struct trace_text *pods,
		const struct trace_text *order, struct trace *ret, struct err *err)
{
	struct reader r CLEANUP(reader_done) = { .trace = ret };
	int rc;

	*ret = (struct trace){ .nodes = NULL };
	arena_init(&ret->arena, ARENA_MAX);
	if ((rc = read_nodes(&r, nodes, err)) == 0 && (rc = read_pods(&r, pods, err)) == 0)
		rc = order ? read_order(&r, order, err) : order_of_file(&r, err);
	if (rc == 0)
		hand_over(&r);
	else
		trace_done(ret);
	return rc;
}

int trace_read(const char *nodes, const char *pods, const char *order, struct trace *ret,
	       struct err *err)
{
	struct strbuf node_text CLEANUP(strbuf_done) = STRBUF_INIT_MAX(TRACE_FILE_MAX);
	struct strbuf pod_text CLEANUP(strbuf_done) = STRBUF_INIT_MAX(TRACE_FILE_MAX);
	struct strbuf order_text CLEANUP(strbuf_done) = STRBUF_INIT_MAX(TRACE_FILE_MAX);
	int rc;

	*ret = (struct trace){ .nodes = NULL };
	if ((rc = file_read(nodes, TRACE_FILE_MAX, &node_text, err)) < 0 ||
	    (rc = file_read(pods, TRACE_FILE_MAX, &pod_text, err)) < 0 ||
	    (order && (rc = file_read(order, TRACE_FILE_MAX, &order_text, err)) < 0))
		return rc;
	struct trace_text n = { nodes, node_text.s, node_text.len };
	struct trace_text p = { pods, pod_text.s, pod_text.len };
	struct trace_text o = { order, order_text.s, order_text.len };
	return trace_parse(&n, &p, order ? &o : NULL, ret, err);
}

void trace_done(struct trace *t)
{
	if (!t)
		return;
	free(t->nodes);
	free(t->classes);
	free(t->pods);
	free(t->order);
	arena_done(&t->arena);
	*t = (struct trace){ .nodes = NULL };
}
