/* SPDX-License-Identifier: Apache-2.0 */
/* keep_pack.c - walks an object along the tree of keep.c.
 *
 * No recursion: the containers that are open form a stack.  What turns out to be empty
 * is taken back by cutting the output to where it began. */
#include "base/attr.h"
#include "base/strbuf.h"
#include "kube/keep.h"
#include "kube/keep_private.h"
#include "kube/object.h"
#include "kube/packed.h"
#include "wire/json.h"
#include "wire/json_write.h"

#include <assert.h>
#include <string.h>

#define CONTAINERS_MAX 64 /* of a pod; with more, all statuses are kept */

struct level {
	struct json_iter iter;
	const struct keep_step *step;
	size_t start;  /* of the output: before the key */
	bool object;   /* or an array */
	bool in_whole; /* of a value that is kept whole */
	bool filled;   /* something is in it */
};

struct walk {
	struct strbuf *out;
	const struct packed_words *words;
	const struct kube_meta *meta;
	const struct json *root;
	struct level levels[PACKED_DEPTH_MAX];
	unsigned depth;
};

static const struct keep_step everything = { .whole = true };

static bool has_word(const struct keep_step *step, const char *text, size_t len)
{
	for (const struct keep_word *word = step->words; word; word = word->next)
		if ((word->prefix ? len >= word->len : len == word->len) &&
		    memcmp(text, word->text, word->len) == 0)
			return true;
	return false;
}

/* The spec of the container of that name, of either list. */
static const struct json *container_of(const struct json *pod, const char *name)
{
	static const char *const lists[] = { "containers", "initContainers" };
	for (unsigned i = 0; i < 2; i++) {
		struct json_iter iter = json_items(pod, "spec", lists[i]);
		for (const struct json *item; (item = json_next(&iter));) {
			const char *own = json_str(item, "name");
			if (own && strcmp(own, name) == 0)
				return item;
		}
	}
	return NULL;
}

/* The kubelet tells what it has set aside and what runs with; mostly the same as the
 * spec.  Amounts are in the one form in which the server writes them. */
static bool is_resized(const struct json *pod, const struct json *status)
{
	const char *name = json_str(status, "name");
	const struct json *allocated = json_get(status, "allocatedResources");
	const struct json *actual = json_get(status, "resources", "requests");
	if (!allocated && !actual)
		return false;
	if (!name ||
	    json_len(pod, "spec", "containers") + json_len(pod, "spec", "initContainers") >
		    CONTAINERS_MAX)
		return true;
	const struct json *asked = json_get(container_of(pod, name), "resources", "requests");
	return (allocated && !(asked && json_equal(allocated, asked))) ||
	       (actual && !(asked && json_equal(actual, asked)));
}

static bool has_member(const struct keep_step *step, const struct json *item)
{
	for (const struct keep_word *word = step->words; word; word = word->next)
		if (json_get(item, word->text))
			return true;
	return false;
}

static bool item_counts(const struct walk *w, const struct keep_step *step,
			const struct json *item)
{
	const char *text;
	size_t len;
	if (json_type(item) != JSON_OBJECT)
		return true;
	switch ((enum keep_test)step->test) {
	case KEEP_HAS:
		return has_member(step, item);
	case KEEP_IS:
		text = json_strn(item, &len, step->test_key);
		return text && has_word(step, text, len);
	case KEEP_RESIZED:
		return is_resized(w->root, item);
	case KEEP_EACH:
		break;
	}
	return true;
}

/* What is to be done with a member of an object at this step; NULL: it is dropped. */
static const struct keep_step *step_of_member(const struct keep_step *step,
					      const struct json_member *member)
{
	if (step->members)
		return has_word(step, member->key, member->key_len) != step->except ? &everything
										    : NULL;
	if (!(step->names & keep_name_bit(member->key, member->key_len)))
		return NULL;
	for (const struct keep_step *at = step->first; at; at = at->next)
		if (at->len == member->key_len && memcmp(at->name, member->key, at->len) == 0)
			return at;
	return NULL;
}

/* A whole number by hand, any other by the JSON writer. */
static void pack_number(struct strbuf *out, const struct json *value)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT_MAX(255);
	struct json_writer writer = JSON_WRITER_INIT(&text);
	char digits[24];
	size_t at = sizeof(digits);
	int64_t number;
	if (json_i64(value, &number) < 0 || number < 0) {
		json_add_value(&writer, value);
		packed_add_number(out, text.s, text.len);
		return;
	}
	do
		digits[--at] = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	packed_add_number(out, digits + at, sizeof(digits) - at);
}

/* Names that the object has beside the packed text are the very same strings. */
static void pack_string(struct walk *w, const char *text, size_t len)
{
	if (text == w->meta->name)
		packed_put(w->out, PACKED_NAME);
	else if (text == w->meta->namespace)
		packed_put(w->out, PACKED_NAMESPACE);
	else if (text == w->meta->uid)
		packed_put(w->out, PACKED_UID);
	else
		packed_add_string(w->out, w->words, text, len);
}

static void pack_scalar(struct walk *w, const struct json *value)
{
	const char *text;
	size_t len;
	bool yes;
	if ((text = json_strn(value, &len)))
		pack_string(w, text, len);
	else if (json_bool(value, &yes) == 0)
		packed_put(w->out, yes ? PACKED_TRUE : PACKED_FALSE);
	else if (json_type(value) == JSON_NUMBER)
		pack_number(w->out, value);
	else
		packed_put(w->out, PACKED_NULL);
}

static void open_level(struct walk *w, const struct json *value, const struct keep_step *step,
		       bool whole, size_t start)
{
	bool object = json_type(value) == JSON_OBJECT;
	w->levels[w->depth++] = (struct level){
		.iter = object ? json_members(value) : json_items(value),
		.step = step,
		.start = start,
		.object = object,
		.in_whole = whole,
	};
	packed_put(w->out, object ? PACKED_OBJECT : PACKED_ARRAY);
}

/* Packs the value behind its key, or opens it.  `item`: the value is an item of the list
 * that the step is about. */
static void add_value(struct walk *w, const struct json *value, const struct keep_step *step,
		      bool item, size_t start)
{
	enum json_type type = json_type(value);
	bool as_expected = type == (step->list && !item ? JSON_ARRAY : JSON_OBJECT);
	bool whole = (step->whole && (!step->list || item)) || !as_expected;
	if (type < JSON_ARRAY) {
		pack_scalar(w, value);
		w->levels[w->depth - 1].filled = true;
	} else if (w->depth < PACKED_DEPTH_MAX) {
		open_level(w, value, whole ? &everything : step, whole, start);
	} else {
		w->out->failed = true; /* deeper than JSON_MAX_DEPTH: not one of our documents */
	}
}

static void add_key(struct walk *w, const struct keep_step *step, const struct json_member *member)
{
	if (step->packed)
		packed_add(w->out, step->packed, step->packed_len);
	else
		packed_add_string(w->out, w->words, member->key, member->key_len);
}

/* The next member or item that counts; false at the end. */
static bool add_next(struct walk *w)
{
	struct level *at = &w->levels[w->depth - 1];
	size_t start = w->out->len;
	struct json_member member;
	const struct json *item;
	while (at->object && json_next_member(&at->iter, &member)) {
		const struct keep_step *step =
			at->in_whole ? &everything : step_of_member(at->step, &member);
		if (!step)
			continue;
		add_key(w, step, &member);
		add_value(w, member.value, step, false, start);
		return true;
	}
	while (!at->object && (item = json_next(&at->iter))) {
		if (!item_counts(w, at->step, item))
			continue;
		add_value(w, item, at->step, true, start);
		return true;
	}
	return false;
}

static void close_level(struct walk *w)
{
	const struct level *level = &w->levels[--w->depth];
	if (w->depth > 0 && !level->filled && !level->in_whole) {
		strbuf_truncate(w->out, level->start);
		return;
	}
	packed_put(w->out, PACKED_END);
	if (w->depth > 0)
		w->levels[w->depth - 1].filled = true;
}

void keep_pack(const struct keep *keep, const struct json *object, const struct kube_meta *meta,
	       struct strbuf *out)
{
	struct walk w; /* the levels are set when they are opened */
	w.out = out;
	w.words = &keep->words;
	w.meta = meta;
	w.root = object;
	w.depth = 0;
	assert(json_type(object) == JSON_OBJECT);
	open_level(&w, object, &keep->root, false, out->len);
	strbuf_add(out, keep->constants, keep->constants_len);
	while (w.depth > 0 && !out->failed)
		if (!add_next(&w))
			close_level(&w);
	packed_close(out);
}
