/* SPDX-License-Identifier: Apache-2.0 */
/* fit.c - on which nodes a pod may run, for tests/kube/parity: one line of JSON in,
 * {"nodes": [...], "bound": [...], "objects": [...], "pod": {...}}, one line out,
 * ["node-1","node-4"].
 *
 * The same code decides as in the scheduler: nodes and pods are read by dialect/, pods that
 * are there are adopted, and fit_node() says yes or no. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "dialect/dialect.h"
#include "dialect/node.h"
#include "dialect/volumes.h"
#include "engine/adopt.h"
#include "wire/json.h"
#include "wire/json_write.h"

#define ARENA_MAX ((size_t)64 << 20)

struct world {
	struct cluster *cluster;
	struct arena arena;
	const struct json *objects;
	struct dialect_lookup lookup;
};

static bool is(const struct json *object, const char *kind)
{
	const char *said = json_str(object, "kind");

	return said && strcmp(said, kind) == 0;
}

static const struct json *find_object(void *context, const char *kind, const char *namespace,
				      const char *name)
{
	const struct world *w = context;
	struct json_iter iter = json_items(w->objects);

	(void)namespace;
	for (const struct json *object; (object = json_next(&iter));) {
		const char *said = json_str(object, "metadata", "name");

		if (is(object, kind) && said && strcmp(said, name) == 0)
			return object;
	}
	return NULL;
}

static bool index_free(void *context, const char *workload, uint32_t index)
{
	(void)context, (void)workload, (void)index;
	return false;
}

static void each_object(void *context, const char *kind, const char *class,
			void (*visit)(void *visitor, const struct json *object), void *visitor)
{
	const struct world *w = context;
	struct json_iter iter = json_items(w->objects);

	(void)class;
	for (const struct json *object; (object = json_next(&iter));)
		if (is(object, kind))
			visit(visitor, object);
}

static int add_node(struct world *w, const struct json *node, struct err *err)
{
	struct node_options options = { 0 };
	struct node_spec spec = { 0 };
	uint32_t number;
	int rc = node_read(w->cluster, node, NULL, &options, &w->arena, &spec, err);

	return rc < 0 ? rc : cluster_node_add(w->cluster, &spec, &number, err);
}

static int add_pod(struct world *w, const struct json *pod, struct err *err)
{
	const char *node = json_str(pod, "spec", "nodeName");
	struct pod_source source;
	struct wish wish;
	uint32_t number;
	int rc = pod_source_read(pod, &w->lookup, &source, err);

	if (rc == 0)
		rc = dialect_read_resident(w->cluster, &w->lookup, &source, &w->arena, &wish, err);
	if (rc < 0)
		return rc;
	rc = adopt_pod(w->cluster, &(struct pod_spec){ .uid = wish.name }, &wish.request,
		       cluster_node_find(w->cluster, node ? node : ""), NULL, &number);
	wish_release(w->cluster, &wish);
	return rc < 0 ? err_set(err, -rc, "pod %s cannot be adopted", wish.name) : 0;
}

static int add_object(struct world *w, const struct json *object, struct err *err)
{
	const char *name = json_str(object, "metadata", "name");
	int rc = 0;

	if (is(object, "CSINode"))
		rc = volumes_node_changed(w->cluster, name, object, &w->arena);
	else if (is(object, "VolumeAttachment"))
		rc = volumes_attachment_changed(w->cluster, &w->lookup, name, object);
	return rc < 0 ? err_set(err, -rc, "%s cannot be added", name) : 0;
}

static int add_all(struct world *w, const struct json *list,
		   int (*add)(struct world *, const struct json *, struct err *), struct err *err)
{
	struct json_iter iter = json_items(list);
	const struct json *item;
	int rc = 0;

	while (rc == 0 && (item = json_next(&iter)))
		rc = add(w, item, err);
	return rc;
}

static int answer(struct world *w, const struct json *pod, struct err *err)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_writer writer = JSON_WRITER_INIT(&out);
	struct pod_source source;
	struct wish wish;
	int rc = pod_source_read(pod, &w->lookup, &source, err);

	if (rc == 0)
		rc = dialect_read(w->cluster, &w->lookup, &source, &w->arena, &wish, err);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	json_open_array(&writer);
	for (uint32_t i = 0; rc == 0 && i < cluster_nodes_end(w->cluster); i++)
		if (fit_node(w->cluster, &wish.request, i) == FITS)
			json_add_str(&writer, cluster_node(w->cluster, i)->name);
	json_close_array(&writer);
	if (rc == 0)
		wish_release(w->cluster, &wish);
	return puts(out.s) < 0 || fflush(stdout) != 0 ? err_set(err, EIO, "cannot write") : 0;
}

static int one_case(const struct json *question, struct err *err)
{
	struct world w = { .cluster = cluster_new(&(struct cluster_config){ 0 }),
			   .objects = json_get(question, "objects"),
			   .lookup = { .context = &w,
				       .find = find_object,
				       .index_taken = index_free,
				       .each = each_object } };
	int rc;

	if (!w.cluster)
		return err_set(err, ENOMEM, "out of memory");
	arena_init(&w.arena, ARENA_MAX);
	rc = add_all(&w, json_get(question, "nodes"), add_node, err);
	if (rc == 0)
		rc = add_all(&w, w.objects, add_object, err);
	if (rc == 0)
		rc = add_all(&w, json_get(question, "bound"), add_pod, err);
	if (rc == 0)
		rc = answer(&w, json_get(question, "pod"), err);
	cluster_free(w.cluster);
	arena_done(&w.arena);
	return rc;
}

int main(void)
{
	struct err err = ERR_INIT;
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	int rc = 0;

	while (rc == 0 && (len = getline(&line, &room, stdin)) > 0) {
		struct json_doc *doc CLEANUP(json_doc_freep) = NULL;

		rc = json_parse("stdin", line, (size_t)len, NULL, &doc, &err);
		if (rc == 0)
			rc = one_case(json_root(doc), &err);
	}
	free(line);
	if (rc < 0)
		fprintf(stderr, "fit: %s\n", err.text);
	return rc < 0;
}
