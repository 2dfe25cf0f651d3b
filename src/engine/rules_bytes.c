/* SPDX-License-Identifier: Apache-2.0 */
/* rules_bytes.c - subjects, selectors and rules written down, so that equal ones are found.
 *
 * Numbers as four bytes, strings with their NUL.  What was written here is read here again,
 * so nothing is checked on the way back.
 */
#include "engine/rules_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void put_u32(struct strbuf *out, uint32_t n)
{
	strbuf_add(out, (const char *)&n, sizeof(n));
}

static void put_str(struct strbuf *out, const char *s)
{
	strbuf_add(out, s, strlen(s) + 1);
}

uint32_t cursor_u32(struct cursor *c)
{
	uint32_t n;

	memcpy(&n, c->at, sizeof(n));
	c->at += sizeof(n);
	return n;
}

const char *cursor_str(struct cursor *c)
{
	const char *s = c->at;

	c->at += strlen(s) + 1;
	return s;
}

static int finish_within(const struct strbuf *out, size_t max)
{
	if (out->len > max)
		return -E2BIG;
	return out->failed ? -ENOMEM : 0;
}

static int finish(const struct strbuf *out)
{
	return finish_within(out, RULES_BYTES_MAX);
}

static int compare_labels(const void *a, const void *b)
{
	return strcmp((*(const struct pod_label *const *)a)->key,
		      (*(const struct pod_label *const *)b)->key);
}

/* In order of the keys, whatever order they came in. */
int bytes_subject(struct strbuf *out, const char *namespace, const struct pod_label *labels,
		  uint32_t count)
{
	const struct pod_label *few[RULES_ITEMS_MAX], **sorted = few;

	if (count > RULES_ITEMS_MAX)
		sorted = calloc(count, sizeof(const struct pod_label *));
	if (!sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		sorted[i] = &labels[i];
	qsort(sorted, count, sizeof(*sorted), compare_labels);
	put_str(out, namespace);
	for (uint32_t i = 0; i < count; i++) {
		put_str(out, sorted[i]->key);
		put_str(out, sorted[i]->value);
	}
	if (sorted != few)
		free((void *)sorted);
	return finish(out);
}

static int put_matches(struct strbuf *out, const struct match *matches, uint32_t count)
{
	if (count > RULES_ITEMS_MAX)
		return -EINVAL;
	put_u32(out, count);
	for (uint32_t i = 0; i < count; i++) {
		const struct match *m = &matches[i];

		if ((m->op == MATCH_GREATER || m->op == MATCH_LESS) && m->values_count != 1)
			return -EINVAL;
		put_u32(out, m->op);
		put_str(out, m->key ? m->key : "");
		put_u32(out, m->values_count);
		for (uint32_t j = 0; j < m->values_count; j++)
			put_str(out, m->values[j]);
	}
	return 0;
}

static int put_selector(struct strbuf *out, const struct pod_selector *s)
{
	if (s->namespaces_count > RULES_BYTES_MAX)
		return -EINVAL;
	put_u32(out, s->nobody);
	put_u32(out, s->namespaces_count);
	for (uint32_t i = 0; i < s->namespaces_count; i++)
		put_str(out, s->namespaces[i]);
	put_u32(out, s->by_namespace_labels);
	if (s->by_namespace_labels &&
	    put_matches(out, s->namespace_labels, s->namespace_labels_count) < 0)
		return -EINVAL;
	return put_matches(out, s->labels, s->labels_count);
}

int bytes_selector(struct strbuf *out, const struct pod_term *terms, uint32_t count)
{
	int rc = 0;

	put_u32(out, count);
	for (uint32_t i = 0; rc == 0 && i < count; i++)
		rc = put_selector(out, &terms[i].pods);
	return rc < 0 ? rc : finish(out);
}

/* An empty selector counts nobody, though it matches the pod itself. */
int bytes_spread_selector(struct strbuf *out, const char *namespace,
			  const struct spread_rule *rule)
{
	struct pod_term term = { .pods = {
					 .namespaces = &namespace,
					 .namespaces_count = 1,
					 .labels = rule->labels,
					 .labels_count = rule->labels_count,
					 .nobody = rule->nobody || !rule->labels_count,
				 } };

	return bytes_selector(out, &term, 1);
}

static int put_groups(struct strbuf *out, const struct rules_spec *spec)
{
	int rc = 0;

	put_u32(out, spec->groups_count);
	for (uint32_t i = 0; rc == 0 && i < spec->groups_count; i++) {
		const struct node_group *g = &spec->groups[i];

		put_u32(out, g->refusal ? g->refusal : WRONG_LABELS);
		put_u32(out, g->count);
		for (uint32_t j = 0; rc == 0 && j < g->count; j++)
			rc = put_matches(out, g->terms[j].matches, g->terms[j].count);
	}
	return rc;
}

static int put_terms(struct strbuf *out, const struct pod_term *terms, uint32_t count)
{
	int rc = count > RULES_ITEMS_MAX ? -EINVAL : 0;

	put_u32(out, count);
	for (uint32_t i = 0; rc == 0 && i < count; i++) {
		put_str(out, terms[i].topology_key);
		rc = put_selector(out, &terms[i].pods);
	}
	return rc;
}

static int put_spread(struct strbuf *out, const struct rules_spec *spec)
{
	int rc = spec->spread_count > RULES_ITEMS_MAX ? -EINVAL : 0;

	put_u32(out, spec->spread_count);
	for (uint32_t i = 0; rc == 0 && i < spec->spread_count; i++) {
		const struct spread_rule *r = &spec->spread[i];

		put_str(out, r->topology_key);
		put_u32(out, r->max_skew);
		put_u32(out, r->min_domains);
		put_u32(out, (uint32_t)r->nobody | (uint32_t)r->ignore_affinity << 1 |
				     (uint32_t)r->honor_taints << 2);
		rc = put_matches(out, r->labels, r->labels_count);
	}
	if (rc == 0 && spec->spread_count) {
		put_str(out, spec->namespace);
		strbuf_add(out, (const char *)spec->tolerations,
			   spec->tolerations_count * sizeof(*spec->tolerations));
	}
	return rc;
}

static int put_volumes(struct strbuf *out, const struct rules_spec *spec)
{
	if (spec->volumes_count > RULES_ITEMS_MAX)
		return -EINVAL;
	put_u32(out, spec->volumes_count);
	for (uint32_t i = 0; i < spec->volumes_count; i++) {
		put_u32(out, spec->volumes[i].kind);
		put_str(out, spec->volumes[i].key);
	}
	return 0;
}

/* Where a volume can be is as long as there are nodes; its groups are the last. */
static bool has_volumes(const struct rules_spec *spec)
{
	uint32_t last = spec->groups_count;

	return spec->volumes_count || (last && spec->groups[last - 1].refusal > WRONG_LABELS);
}

/* The node groups come first: program_compile() reads them again. */
int bytes_rules(struct strbuf *out, const struct rules_spec *spec)
{
	int rc = put_groups(out, spec);

	if (spec->ports_count > RULES_ITEMS_MAX || spec->tolerations_count > RULES_BYTES_MAX)
		return -EINVAL;
	if (rc == 0)
		rc = put_terms(out, spec->near, spec->near_count);
	if (rc == 0)
		rc = put_terms(out, spec->apart, spec->apart_count);
	if (rc == 0)
		rc = put_spread(out, spec);
	if (rc == 0)
		rc = put_volumes(out, spec);
	if (rc < 0)
		return rc;
	put_u32(out, spec->ports_count);
	for (uint32_t i = 0; i < spec->ports_count; i++) {
		put_str(out, spec->ports[i].ip);
		put_u32(out, (uint32_t)spec->ports[i].port << 8 | spec->ports[i].protocol);
	}
	return finish_within(out, has_volumes(spec) ? VOLUME_BYTES_MAX : RULES_BYTES_MAX);
}
