/* SPDX-License-Identifier: Apache-2.0 */
/* rules_namespace.c - labels of namespaces, and what it means when they change: selectors by
 * namespace labels match other pods than before. */
#include "engine/cluster_private.h"
#include "engine/rules_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* All pods of the subject into the selector's counters (sign 1) or out of them. */
static int recount(struct cluster *c, uint32_t subject, uint32_t selector, int sign)
{
	for (uint32_t i = 0; i < c->pods.len; i++) {
		const struct pod *pod = c->pods.items[i];

		if (pod && pod->subject == subject && rules_pod_count(c, pod, selector, sign) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void subject_drop(struct subject *s, uint32_t selector)
{
	for (size_t i = 0; i < s->selectors.len; i++)
		if (s->selectors.items[i] == selector)
			s->selectors.items[i--] = s->selectors.items[--s->selectors.len];
}

/* Brings one pair up to date. */
static int rematch(struct cluster *c, uint32_t subject, uint32_t selector)
{
	struct subject *s = &c->rules.subjects.items[subject];
	bool before = subject_has(c, subject, selector);
	bool now = selector_matches(c, &c->rules.selectors.items[selector], s);

	if (before == now)
		return 0;
	if (before) {
		recount(c, subject, selector, -1);
		subject_drop(s, selector);
		return 0;
	}
	return vec_push(&s->selectors, selector) < 0 ? -ENOMEM : recount(c, subject, selector, 1);
}

static int rematch_namespace(struct cluster *c, const char *namespace)
{
	int rc = 0;

	for (uint32_t i = 1; i < c->rules.subjects.len; i++) {
		const char *bytes = c->rules.subjects.items[i].record.bytes;

		if (!bytes || strcmp(bytes, namespace) != 0)
			continue;
		for (uint32_t j = 1; rc == 0 && j < c->rules.selectors.len; j++)
			if (c->rules.selectors.items[j].record.bytes)
				rc = rematch(c, i, j);
	}
	c->rules.loosened++;
	return rc;
}

/* The labels as the bytes of a subject without its namespace. */
static int labels_fill(struct cluster *c, struct namespace_labels *n,
		       const struct pod_label *labels, uint32_t count)
{
	struct strbuf *scratch = &c->rules.scratch;
	char *bytes;
	int rc;

	strbuf_reset(scratch);
	rc = bytes_subject(scratch, "", labels, count);
	if (rc < 0)
		return rc;
	bytes = malloc(scratch->len + 1);
	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, scratch->s + 1, scratch->len); /* after the empty name's NUL */
	free(n->bytes);
	n->bytes = bytes;
	n->len = (uint32_t)scratch->len - 1;
	return 0;
}

static struct namespace_labels *namespace_get(struct cluster *c, const char *name)
{
	struct namespace_labels *n = map_get(&c->rules.namespaces, name, strlen(name));

	if (n)
		return n;
	n = calloc(1, sizeof(*n));
	if (n)
		n->name = strdup(name);
	if (n && n->name && map_put(&c->rules.namespaces, n->name, strlen(name), n) == 0)
		return n;
	if (n)
		free(n->name);
	free(n);
	return NULL;
}

int rules_namespace(struct cluster *c, const char *namespace, const struct pod_label *labels,
		    uint32_t labels_count)
{
	struct namespace_labels *n = namespace_get(c, namespace);
	int rc;

	if (!n)
		return -ENOMEM;
	rc = labels_fill(c, n, labels, labels_count);
	return rc < 0 ? rc : rematch_namespace(c, namespace);
}

void rules_namespace_gone(struct cluster *c, const char *namespace)
{
	struct namespace_labels *n = map_get(&c->rules.namespaces, namespace, strlen(namespace));

	if (!n)
		return;
	n->len = 0;
	rematch_namespace(c, namespace);
	map_del(&c->rules.namespaces, n->name, strlen(n->name));
	namespace_free(n);
}

void namespace_free(struct namespace_labels *n)
{
	if (!n)
		return;
	free(n->name);
	free(n->bytes);
	free(n);
}
