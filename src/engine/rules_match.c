/* SPDX-License-Identifier: Apache-2.0 */
/* rules_match.c - does a selector match a pod, do node terms match a node.
 *
 * Pods are matched by their strings, once for each pair of selector and subject.  Nodes are
 * matched often, so their terms are translated into the cluster's numbers first; a string
 * that no node has has no number yet, and the translation is made again once new strings
 * have come.
 */
#include "base/num.h"
#include "engine/cluster_private.h"
#include "engine/rules_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN UINT32_MAX /* a string that nothing in the cluster has */
#define FEW	8	   /* values that are compared one after the other */

/* The value of a label in the bytes of a subject (its namespace already passed), or NULL. */
static const char *label_of(struct cursor labels, const char *key)
{
	while (labels.at < labels.end) {
		const char *name = cursor_str(&labels), *value = cursor_str(&labels);

		if (strcmp(name, key) == 0)
			return value;
	}
	return NULL;
}

/* Reads one match and applies it to labels. */
static bool match_labels(struct cursor *c, struct cursor labels)
{
	uint32_t op = cursor_u32(c);
	const char *value = label_of(labels, cursor_str(c));
	uint32_t count = cursor_u32(c);
	bool among = false;

	while (count--) {
		const char *wanted = cursor_str(c);

		among |= value && strcmp(value, wanted) == 0;
	}
	switch (op) {
	case MATCH_IN:
		return among;
	case MATCH_NOT_IN:
		return !among;
	case MATCH_EXISTS:
		return value;
	case MATCH_NOT_EXISTS:
		return !value;
	default:
		return false;
	}
}

/* Reads a whole list of matches: do all hold? */
static bool match_all(struct cursor *c, struct cursor labels)
{
	bool all = true;

	for (uint32_t count = cursor_u32(c); count; count--)
		all &= match_labels(c, labels);
	return all;
}

static struct cursor namespace_labels(const struct cluster *c, const char *namespace)
{
	const struct namespace_labels *n =
		map_get(&c->rules.namespaces, namespace, strlen(namespace));

	if (!n)
		return (struct cursor){ "", "" };
	return (struct cursor){ n->bytes, n->bytes + n->len };
}

static bool match_selector(const struct cluster *c, struct cursor *at, const char *namespace,
			   struct cursor labels)
{
	bool nobody = cursor_u32(at), inside = false;

	for (uint32_t count = cursor_u32(at); count; count--)
		inside |= strcmp(cursor_str(at), namespace) == 0;
	if (cursor_u32(at))
		inside |= match_all(at, namespace_labels(c, namespace));
	return match_all(at, labels) && inside && !nobody;
}

bool selector_matches(const struct cluster *c, const struct selector *s,
		      const struct subject *subject)
{
	struct cursor at = { s->record.bytes, s->record.bytes + s->record.len };
	struct cursor labels = { subject->record.bytes,
				 subject->record.bytes + subject->record.len };
	const char *namespace = cursor_str(&labels);

	for (uint32_t count = cursor_u32(&at); count; count--)
		if (!match_selector(c, &at, namespace, labels))
			return false;
	return true;
}

static uint32_t number_of(const struct cluster *c, const char *s)
{
	uint32_t id;

	return map_get_u32(&c->string_ids, s, strlen(s), &id) ? id : UNKNOWN;
}

static int emit(struct rules *r, uint32_t word)
{
	return vec_push(&r->program, word);
}

/* A whole number in two words, or nothing that any label could pass. */
static int emit_number(struct rules *r, const char *text)
{
	int64_t number;
	bool good = parse_i64(text, strlen(text), &number) == 0;

	if (!good)
		number = 0;
	return emit(r, good) < 0 || emit(r, (uint32_t)((uint64_t)number >> 32)) < 0
		       ? -ENOMEM
		       : emit(r, (uint32_t)number);
}

static int compare_words(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Operator, key, number of values, values in order.  Names of nodes stay strings: their place
 * in the bytes is kept. */
static int compile_match(const struct cluster *c, struct rules *r, struct cursor *at)
{
	uint32_t op = cursor_u32(at);
	uint32_t key = number_of(c, cursor_str(at)), count = cursor_u32(at);
	bool by_name = op == MATCH_NAME_IN || op == MATCH_NAME_NOT_IN;
	size_t values;
	int rc;

	r->unknown |= key == UNKNOWN && !by_name;
	if (emit(r, op) < 0 || emit(r, key) < 0 || emit(r, count) < 0)
		return -ENOMEM;
	if (op == MATCH_GREATER || op == MATCH_LESS)
		return emit_number(r, cursor_str(at));
	values = r->program.len;
	for (rc = 0; count && rc == 0; count--) {
		uint32_t place = (uint32_t)(at->at - r->record.bytes);
		uint32_t value = number_of(c, cursor_str(at));

		r->unknown |= value == UNKNOWN && !by_name;
		rc = emit(r, by_name ? place : value);
	}
	if (!by_name && r->program.len - values > FEW)
		qsort(r->program.items + values, r->program.len - values, sizeof(uint32_t),
		      compare_words);
	return rc;
}

int program_compile(const struct cluster *c, struct rules *r)
{
	struct cursor at = { r->record.bytes, r->record.bytes + r->record.len };
	int rc = 0;

	r->program.len = 0;
	r->unknown = false;
	r->strings_seen = (uint32_t)c->strings.len;
	r->groups = cursor_u32(&at);
	for (uint32_t g = 0; g < r->groups && rc == 0; g++) {
		uint32_t refusal = cursor_u32(&at), terms = cursor_u32(&at);

		if (emit(r, refusal) < 0 || emit(r, terms) < 0)
			return -ENOMEM;
		for (; terms && rc == 0; terms--) {
			uint32_t matches = cursor_u32(&at);

			rc = emit(r, matches);
			for (; matches && rc == 0; matches--)
				rc = compile_match(c, r, &at);
		}
	}
	return rc;
}

/* The program has as many words as before. */
void program_refresh(const struct cluster *c, struct rules *r)
{
	if (program_compile(c, r) < 0)
		abort();
}

static const struct label *label_find(const struct node *n, uint32_t key)
{
	size_t low = 0, high = n->labels_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (n->labels[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n->labels_count && n->labels[low].key == key ? &n->labels[low] : NULL;
}

static bool match_number(const struct cluster *c, const uint32_t *words, uint32_t op,
			 const struct label *label)
{
	int64_t limit = (int64_t)((uint64_t)words[1] << 32 | words[2]), number;
	const char *text;

	if (!label || !words[0])
		return false;
	text = cluster_string(c, label->value);
	if (parse_i64(text, strlen(text), &number) < 0)
		return false;
	return op == MATCH_GREATER ? number > limit : number < limit;
}

static bool match_name(const struct rules *r, const uint32_t *words, uint32_t count,
		       const struct node *n)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(r->record.bytes + words[i], n->name) == 0)
			return true;
	return false;
}

static bool match_value(const uint32_t *words, uint32_t count, const struct label *label)
{
	if (label && count > FEW)
		return bsearch(&label->value, words, count, sizeof(*words), compare_words);
	for (uint32_t i = 0; label && i < count; i++)
		if (words[i] == label->value)
			return true;
	return false;
}

static bool match_node(const struct cluster *c, const struct rules *r, const uint32_t *words,
		       const struct node *n)
{
	const struct label *label = label_find(n, words[1]);

	switch (words[0]) {
	case MATCH_IN:
		return match_value(words + 3, words[2], label);
	case MATCH_NOT_IN:
		return !match_value(words + 3, words[2], label);
	case MATCH_EXISTS:
		return label;
	case MATCH_NOT_EXISTS:
		return !label;
	case MATCH_NAME_IN:
		return match_name(r, words + 3, words[2], n);
	case MATCH_NAME_NOT_IN:
		return !match_name(r, words + 3, words[2], n);
	default:
		return match_number(c, words + 3, words[0], label);
	}
}

static uint32_t match_words(const uint32_t *words)
{
	return 3 + (words[0] == MATCH_GREATER || words[0] == MATCH_LESS ? 3 : words[2]);
}

enum verdict program_fit(const struct cluster *c, const struct rules *r, const struct node *n,
			 bool own_only)
{
	const uint32_t *at = r->program.items;

	for (uint32_t g = 0; g < r->groups; g++) {
		enum verdict refusal = *at++;
		bool any = false;

		for (uint32_t terms = *at++; terms; terms--) {
			uint32_t matches = *at++;
			bool all = matches;

			for (; matches; matches--, at += match_words(at))
				all = all && match_node(c, r, at, n);
			any |= all;
		}
		if (!any && !(own_only && refusal != WRONG_LABELS))
			return refusal;
	}
	return FITS;
}
