/* SPDX-License-Identifier: Apache-2.0 */
/* world_claims.c - claims that nobody uses are read too. */
#include <errno.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "dialect/keys.h"
#include "sim/manifest.h"
#include "sim/world_private.h"
#include "wire/json.h"
#include "wire/json_write.h"

/* "namespace/claim" of all pods that name one. */
static int note_claims(struct world *w, struct map *named, struct err *err)
{
	for (size_t i = 0; i < w->pods.len; i++) {
		const struct pod_source *s = &w->pods.items[i]->source;
		const char *claim = json_str(s->object, "metadata", "annotations", KEY_CLAIM);

		for (uint32_t o = 0; !claim && o < s->owners_count; o++)
			claim = json_str(s->owners[o], "metadata", "annotations", KEY_CLAIM);
		if (!claim)
			continue;
		const char *key = world_printf(w, "%s/%s", s->namespace, claim);
		if (!key || map_put_u32(named, key, strlen(key), 1) < 0)
			return err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

/* A pod that has nothing but the claim. */
static int make_pod(const struct manifest *claim, struct json_doc **ret, struct err *err)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_writer j = JSON_WRITER_INIT(&text);

	json_open_object(&j);
	json_add_key(&j, "metadata");
	json_open_object(&j);
	json_add_key(&j, "annotations");
	json_open_object(&j);
	json_add_key(&j, KEY_CLAIM);
	json_add_str(&j, claim->name);
	json_close_object(&j);
	json_close_object(&j);
	json_add_key(&j, "spec");
	json_open_object(&j);
	json_add_key(&j, "containers");
	json_open_array(&j);
	json_open_object(&j);
	json_add_key(&j, "name");
	json_add_str(&j, "main");
	json_close_object(&j);
	json_close_array(&j);
	json_close_object(&j);
	json_close_object(&j);
	return json_parse("claim", text.s, text.len, NULL, ret, err);
}

static int check_claim(struct world *w, const struct manifest *claim, struct err *err)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct wish *wish = arena_alloc(&w->arena, sizeof(*wish));
	int rc = wish ? make_pod(claim, &doc, err) : err_set(err, ENOMEM, "out of memory");

	if (rc < 0)
		return rc;
	struct pod_source source = { .object = json_root(doc),
				     .namespace = claim->namespace,
				     .name = claim->name,
				     .uid = "",
				     .index = POD_INDEX_NONE };
	rc = dialect_read(world_cluster(w), &w->lookup, &source, &w->arena, wish, err);
	/* What it refers to may still come. */
	return rc == -EINVAL || rc == -ENOMEM ? rc : 0;
}

int world_check_claims(struct world *w, const struct manifests *m, struct err *err)
{
	struct map named CLEANUP(map_done) = { 0 };
	int rc = note_claims(w, &named, err);

	for (size_t i = 0; i < m->items.len && rc == 0; i++) {
		const struct manifest *claim = &m->items.items[i];
		uint32_t unused;

		if (strcmp(claim->kind, "GpuClaim") != 0)
			continue;
		const char *key = world_printf(w, "%s/%s", claim->namespace, claim->name);
		if (!key)
			return err_set(err, ENOMEM, "out of memory");
		if (map_get_u32(&named, key, strlen(key), &unused))
			continue;
		rc = check_claim(w, claim, err);
		if (rc < 0)
			manifest_prefix(claim, err);
	}
	return rc;
}
