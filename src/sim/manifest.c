/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/manifest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "sim/description.h"
#include "wire/file.h"
#include "wire/json.h"
#include "wire/yaml.h"

/* Kinds that lie in no namespace and that somebody looks up. */
static bool is_cluster_wide(const char *kind)
{
	return strcmp(kind, "PriorityClass") == 0 || strcmp(kind, "Node") == 0;
}

static int add_one(struct manifests *m, const struct json *object, struct err *err)
{
	const char *namespace = json_str(object, "metadata", "namespace");
	struct manifest item = { .kind = json_str(object, "kind"),
				 .name = json_str(object, "metadata", "name"),
				 .object = object };

	if (!item.kind || !*item.kind)
		return err_set(err, EINVAL, "an object without kind");
	if (!item.name || !*item.name)
		return err_set(err, EINVAL, "a %.60s without metadata.name", item.kind);
	item.namespace = namespace && *namespace ? namespace : "default";
	if (is_cluster_wide(item.kind))
		item.namespace = "";
	if (vec_push(&m->items, item) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

int manifests_add(struct manifests *m, const struct json *object, struct err *err)
{
	const char *kind = json_str(object, "kind");
	struct json_iter iter = json_items(object, "items");
	size_t before = m->items.len, kind_len = kind ? strlen(kind) : 0;
	const struct json *item;
	int rc = 0;

	if (kind_len < 4 || strcmp(kind + kind_len - 4, "List") != 0)
		return add_one(m, object, err);
	while (rc == 0 && (item = json_next(&iter)))
		rc = add_one(m, item, err);
	if (rc < 0)
		m->items.len = before;
	return rc;
}

void manifest_prefix(const struct manifest *m, struct err *err)
{
	if (m->file)
		err_prefix(err, "%s:%zu", m->file, m->line);
}

/* The file's name, kept as long as the list. */
static const char *keep_name(struct manifests *m, const char *name)
{
	char *copy = strdup(name);

	if (copy && vec_push(&m->files, copy) < 0) {
		free(copy);
		return NULL;
	}
	return copy;
}

/* The objects of one document. */
static int add_document(struct manifests *m, const char *file, const struct yaml_document *d,
			struct err *err)
{
	size_t before = m->items.len;
	int rc = manifests_add(m, json_root(d->doc), err);

	if (rc < 0)
		err_prefix(err, "%s:%zu", file, d->line);
	for (size_t i = before; i < m->items.len; i++) {
		m->items.items[i].file = file;
		m->items.items[i].line = d->line;
	}
	return rc;
}

int manifests_parse(struct manifests *m, const char *name, const char *text, size_t len,
		    struct err *err)
{
	struct yaml yaml CLEANUP(description_done) = YAML_INIT;
	size_t before = m->items.len;
	const char *file = keep_name(m, name);
	int rc = file ? yaml_parse(name, text, len, NULL, &yaml, err)
		      : err_set(err, ENOMEM, "out of memory");

	for (size_t i = 0; i < yaml.len && rc == 0; i++)
		rc = add_document(m, file, &yaml.items[i], err);
	if (rc == 0 && vec_reserve(&m->docs, m->docs.len + yaml.len) < 0)
		rc = err_set(err, ENOMEM, "out of memory");
	if (rc < 0) {
		m->items.len = before;
		return rc;
	}
	for (size_t i = 0; i < yaml.len; i++) {
		m->docs.items[m->docs.len++] = yaml.items[i].doc;
		yaml.items[i].doc = NULL; /* the list owns it now */
	}
	return 0;
}

int manifests_read(struct manifests *m, const char *path, struct err *err)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT_MAX(MANIFEST_FILE_MAX);
	size_t before = m->items.len;
	int rc = file_read(path, MANIFEST_FILE_MAX, &text, err);

	if (rc < 0 || (rc = manifests_parse(m, path, text.s, text.len, err)) < 0)
		return rc;
	return m->items.len > before ? 0
				     : err_set(err, EINVAL, "%s: there is no object in it", path);
}

void manifests_done(struct manifests *m)
{
	for (size_t i = 0; i < m->docs.len; i++)
		json_doc_free(m->docs.items[i]);
	for (size_t i = 0; i < m->files.len; i++)
		free(m->files.items[i]);
	vec_done(&m->docs);
	vec_done(&m->files);
	vec_done(&m->items);
}
