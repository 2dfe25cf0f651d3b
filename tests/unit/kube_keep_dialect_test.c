/* SPDX-License-Identifier: Apache-2.0 */
/* What a cache keeps of a pod and of the objects around it is enough: the translation of
 * every pod in our examples and scenarios is the same as that of the whole documents. */
#include "test.h"

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "dialect/dialect.h"
#include "engine/cluster.h"
#include "kube/keep.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "wire/file.h"
#include "wire/json.h"
#include "wire/json_write.h"
#include "wire/yaml.h"

#include <glob.h>

#define OBJECTS_MAX 4096

/* Every object twice: as the server has it, and as the cache keeps it. */
struct world {
	struct json_doc *full[OBJECTS_MAX], *kept[OBJECTS_MAX];
	const struct kube_kind *kinds[OBJECTS_MAX];
	size_t count;
	struct keep *keeps[KUBE_KINDS];
	struct cluster *cluster;
	struct arena arena;
	unsigned translated, refused;
};

struct side {
	const struct world *world;
	struct json_doc **docs; /* full or kept */
};

static const struct json *find(void *context, const char *kind, const char *namespace,
			       const char *name)
{
	const struct side *side = context;
	(void)namespace;
	for (size_t i = 0; i < side->world->count; i++) {
		const struct json *object = json_root(side->docs[i]);
		const char *own = json_str(object, "metadata", "name");
		if (own && strcmp(side->world->kinds[i]->kind, kind) == 0 &&
		    strcmp(own, name) == 0)
			return object;
	}
	return NULL;
}

static bool taken(void *context, const char *workload, uint32_t index)
{
	(void)context;
	return workload[0] && index < 1;
}

static const struct kube_kind *kind_named(const char *name)
{
	for (size_t i = 0; i < KUBE_KINDS; i++)
		if (strcmp(kube_kinds[i].kind, name) == 0)
			return &kube_kinds[i];
	return NULL;
}

static void add_members(struct json_writer *w, const struct json *object, const char *const *but)
{
	struct json_iter iter = json_members(object);
	for (struct json_member m; json_next_member(&iter, &m);) {
		bool skip = false;
		for (size_t i = 0; but[i]; i++)
			skip |= strcmp(but[i], m.key) == 0;
		if (skip)
			continue;
		json_add_key(w, m.key);
		json_add_value(w, m.value);
	}
}

static void add_pair(struct json_writer *w, const char *key, const char *value)
{
	json_add_key(w, key);
	json_add_str(w, value);
}

/* Metadata as the server fills it in, with an owner if there is one. */
static void add_metadata(struct json_writer *w, const struct json *metadata, const char *name,
			 const char *owner_kind, const char *owner)
{
	static const char *const but[] = { "name", "uid", "resourceVersion", NULL };
	json_add_key(w, "metadata");
	json_open_object(w);
	add_pair(w, "name", name);
	add_members(w, metadata, but);
	add_pair(w, "uid", "35ef8954-6455-4013-9481-b531bf2d17cf");
	add_pair(w, "resourceVersion", "7");
	if (owner) {
		json_add_key(w, "ownerReferences");
		json_open_array(w);
		json_open_object(w);
		add_pair(w, "kind", owner_kind);
		add_pair(w, "name", owner);
		json_add_key(w, "controller");
		json_add_bool(w, true);
		json_close_object(w);
		json_close_array(w);
	}
	json_add_key(w, "managedFields");
	json_open_array(w);
	json_close_array(w);
	json_close_object(w);
}

/* Takes the text in as the object of a kind; false if no server would have it. */
static bool take_text(struct world *w, const struct kube_kind *kind, const struct strbuf *text)
{
	struct kube_object *object CLEANUP(kube_object_freep) = NULL;
	struct keep **keep = &w->keeps[kind - kube_kinds];
	struct json_doc *doc = NULL;
	CHECK(w->count < OBJECTS_MAX && !text->failed);
	CHECK_INT(json_parse("test", text->s, text->len, NULL, &doc, NULL), 0);
	if (!*keep)
		CHECK_INT(keep_new(kind->keep, keep, NULL), 0);
	if (kube_object_new(json_root(doc), *keep, &object, NULL) < 0) {
		json_doc_free(doc);
		return false;
	}
	w->full[w->count] = doc;
	w->kinds[w->count] = kind;
	CHECK_INT(kube_object_parse(object, &w->kept[w->count]), 0);
	w->count++;
	return true;
}

static bool take_object(struct world *w, const struct json *object, const char *name,
			const char *owner_kind, const char *owner)
{
	static const char *const but[] = { "metadata", "apiVersion", NULL };
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_writer writer = JSON_WRITER_INIT(&text);
	const struct kube_kind *kind = kind_named(json_str(object, "kind"));
	if (!kind)
		return false;
	json_open_object(&writer);
	add_metadata(&writer, json_get(object, "metadata"), name, owner_kind, owner);
	add_members(&writer, object, but);
	json_close_object(&writer);
	return take_text(w, kind, &text);
}

/* A pod of the template, as its controller makes it. */
static void take_pod_of(struct world *w, const char *kind, const char *owner,
			const struct json *template)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_writer writer = JSON_WRITER_INIT(&text);
	char name[300];
	snprintf(name, sizeof(name), "%.200s-1", owner);
	json_open_object(&writer);
	add_metadata(&writer, json_get(template, "metadata"), name, kind, owner);
	json_add_key(&writer, "spec");
	json_add_value(&writer, json_get(template, "spec"));
	json_close_object(&writer);
	take_text(w, &kube_kinds[KUBE_POD], &text);
}

static void take_replica_set(struct world *w, const char *deployment, const struct json *object)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_writer writer = JSON_WRITER_INIT(&text);
	char name[300];
	snprintf(name, sizeof(name), "%.200s-5d8f", deployment);
	json_open_object(&writer);
	add_pair(&writer, "kind", "ReplicaSet");
	add_metadata(&writer, NULL, name, "Deployment", deployment);
	json_add_key(&writer, "spec");
	json_add_value(&writer, json_get(object, "spec"));
	json_close_object(&writer);
	if (take_text(w, &kube_kinds[KUBE_REPLICA_SET], &text))
		take_pod_of(w, "ReplicaSet", name, json_get(object, "spec", "template"));
}

/* Takes in the object, if it is one, and what its controller would make of it. */
static void take_any(struct world *w, const struct json *value)
{
	const char *kind = json_str(value, "kind"), *name = json_str(value, "metadata", "name");
	const struct json *template = json_get(value, "spec", "template");
	if (!kind || !name || !take_object(w, value, name, NULL, NULL) || !template)
		return;
	if (strcmp(kind, "Deployment") == 0)
		take_replica_set(w, name, value);
	else
		take_pod_of(w, kind, name, template);
}

/* Objects may stand anywhere in a scenario. */
static void take_all(struct world *w, const struct json *value)
{
	struct json_iter items = json_items(value), members = json_members(value);
	take_any(w, value);
	for (const struct json *item; (item = json_next(&items));)
		take_all(w, item);
	for (struct json_member m; json_next_member(&members, &m);)
		take_all(w, m.value);
}

static bool same_text(const char *a, const char *b)
{
	return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

static void check_same(const struct wish *a, const struct wish *b, const char *pod)
{
	bool same = request_equal(&a->request, &b->request) && same_text(a->name, b->name) &&
		    same_text(a->namespace, b->namespace) && same_text(a->uid, b->uid) &&
		    same_text(a->scheduler, b->scheduler) && a->priority == b->priority &&
		    a->preempts == b->preempts && same_text(a->gang.name, b->gang.name) &&
		    a->gang.members == b->gang.members && a->gang.leaves == b->gang.leaves &&
		    same_text(a->workload, b->workload) && a->index == b->index &&
		    a->containers_count == b->containers_count;
	for (unsigned i = 0; same && i < a->containers_count; i++) {
		const struct wish_container *x = &a->containers[i], *y = &b->containers[i];
		same = same_text(x->name, y->name) && x->asks == y->asks && x->init == y->init &&
		       memcmp(x->take, y->take, sizeof(x->take)) == 0 &&
		       x->core_milli == y->core_milli && x->mem_mib == y->mem_mib;
	}
	CHECKF(same, "%s is translated differently", pod);
}

static int translate(struct world *w, struct json_doc **docs, size_t pod, struct wish *wish,
		     struct err *err)
{
	struct side side = { w, docs };
	struct dialect_lookup lookup = { .context = &side, .find = find, .index_taken = taken };
	struct pod_source source;
	int rc = pod_source_read(json_root(docs[pod]), &lookup, &source, err);
	return rc < 0 ? rc : dialect_read(w->cluster, &lookup, &source, &w->arena, wish, err);
}

static void check_pod(struct world *w, size_t i, const char *file)
{
	static struct wish full, kept;
	struct err full_err = ERR_INIT, kept_err = ERR_INIT;
	const char *name = json_str(json_root(w->full[i]), "metadata", "name");
	int rc = translate(w, w->full, i, &full, &full_err);
	CHECKF(translate(w, w->kept, i, &kept, &kept_err) == rc, "%s: %s: \"%s\", kept \"%s\"",
	       file, name, full_err.text, kept_err.text);
	CHECKF(strcmp(full_err.text, kept_err.text) == 0, "%s: %s: \"%s\", kept \"%s\"", file,
	       name, full_err.text, kept_err.text);
	if (rc == 0)
		check_same(&full, &kept, name);
	*(rc == 0 ? &w->translated : &w->refused) += 1;
}

static void check_file(struct world *w, const char *path)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct yaml yaml CLEANUP(yaml_done) = YAML_INIT;
	CHECK_INT(file_read(path, 1 << 20, &text, NULL), 0);
	CHECK_INT(yaml_parse(path, text.s, text.len, NULL, &yaml, NULL), 0);
	for (size_t i = 0; i < yaml.len; i++)
		take_all(w, json_root(yaml.items[i].doc));
	for (size_t i = 0; i < w->count; i++)
		if (w->kinds[i] == &kube_kinds[KUBE_POD])
			check_pod(w, i, path);
	for (; w->count > 0; w->count--) {
		json_doc_free(w->full[w->count - 1]);
		json_doc_free(w->kept[w->count - 1]);
	}
	arena_reset(&w->arena);
}

static void add_node(struct cluster *cluster, const char *name)
{
	struct gpu_spec gpus[8];
	char uuids[8][32];
	uint32_t number;
	for (uint32_t i = 0; i < 8; i++) {
		snprintf(uuids[i], sizeof(uuids[i]), "GPU-%s-%u", name, i);
		gpus[i] = (struct gpu_spec){ .uuid = uuids[i], .model = "M", .mem_mib = 80000 };
	}
	struct node_spec spec = { .name = name,
				  .allocatable = { 64000, INT64_C(1) << 40, INT64_C(1) << 40,
						   110 },
				  .gpus = gpus,
				  .gpus_count = 8 };
	CHECK(cluster_node_add(cluster, &spec, &number, NULL) == 0);
}

TEST(pods_are_translated_the_same_from_what_is_kept)
{
	static struct world w;
	glob_t files;
	w.cluster = cluster_new(&(struct cluster_config){ .seed = 1 });
	CHECK(w.cluster != NULL);
	add_node(w.cluster, "n-0");
	add_node(w.cluster, "n-1");
	arena_init(&w.arena, 64 << 20);
	CHECK_INT(glob(SOURCE_ROOT "/examples/*.yaml", 0, NULL, &files), 0);
	CHECK_INT(glob(SOURCE_ROOT "/tests/scenario/*.yaml", GLOB_APPEND, NULL, &files), 0);
	for (size_t i = 0; i < files.gl_pathc; i++)
		check_file(&w, files.gl_pathv[i]);
	CHECKF(w.translated > 50 && w.refused > 10, "%u pods translated, %u refused", w.translated,
	       w.refused);
	globfree(&files);
	for (size_t i = 0; i < KUBE_KINDS; i++)
		keep_free(w.keeps[i]);
	cluster_free(w.cluster);
	arena_done(&w.arena);
}

TEST_MAIN()
