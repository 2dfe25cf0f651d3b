/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/keep.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/keep_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_BYTES_MAX ((size_t)1 << 20)

static int malformed(const char *path, const char *reason, struct err *err)
{
	return err_set(err, EINVAL, "the path \"%s\" %s", path, reason);
}

static int no_memory(struct err *err)
{
	return err_set(err, ENOMEM, "out of memory");
}

/* Adds a word to the list of the step; "gpu.*" is a beginning. */
static int add_word(struct keep *keep, struct keep_step *step, const char *text, size_t len)
{
	struct keep_word *word = arena_alloc(&keep->arena, sizeof(*word));
	if (!word)
		return -ENOMEM;
	word->prefix = len > 0 && text[len - 1] == '*';
	word->len = word->prefix ? len - 1 : len;
	word->text = arena_strndup(&keep->arena, text, word->len);
	word->next = step->words;
	step->words = word;
	return word->text ? 0 : -ENOMEM;
}

static int add_words(struct keep *keep, struct keep_step *step, const char *text, size_t len,
		     char separator)
{
	const char *end = text + len;
	for (;;) {
		const char *stop = memchr(text, separator, (size_t)(end - text));
		stop = stop ? stop : end;
		if (stop == text)
			return -EINVAL;
		int rc = add_word(keep, step, text, (size_t)(stop - text));
		if (rc < 0 || stop == end)
			return rc;
		text = stop + 1;
	}
}

/* "{a,b*}" and "{!a,!b*}": all or none of the words have the mark. */
static int read_members(struct keep *keep, struct keep_step *step, const char *text, size_t len)
{
	int rc = add_words(keep, step, text, len, ',');
	if (rc < 0)
		return rc;
	step->members = true;
	step->except = step->words->text[0] == '!';
	for (struct keep_word *word = step->words; word; word = word->next) {
		if ((word->len > 0 && word->text[0] == '!') != step->except)
			return -EINVAL;
		word->text += step->except;
		word->len -= step->except;
	}
	return 0;
}

/* "[]", "[@resized]", "[a|b]" and "[key=a|b]". */
static int read_items(struct keep *keep, struct keep_step *step, const char *text, size_t len)
{
	const char *equals = memchr(text, '=', len);

	step->list = true;
	if (len == 0)
		return 0;
	if (text[0] == '@') {
		step->test = KEEP_RESIZED;
		return len == 8 && memcmp(text, "@resized", 8) == 0 ? 0 : -EINVAL;
	}
	if (!equals) {
		step->test = KEEP_HAS;
		return add_words(keep, step, text, len, '|');
	}
	step->test = KEEP_IS;
	step->test_key = arena_strndup(&keep->arena, text, (size_t)(equals - text));
	if (!step->test_key)
		return -ENOMEM;
	return add_words(keep, step, equals + 1, len - (size_t)(equals + 1 - text), '|');
}

static int read_shape(struct keep *keep, struct keep_step *step)
{
	if (step->shape_len == 0)
		return 0;
	const char *inside = step->shape + 1;
	size_t len = step->shape_len - 2;
	return step->shape[0] == '[' ? read_items(keep, step, inside, len)
				     : read_members(keep, step, inside, len);
}

/* One name of a path with what stands behind it, up to the dot. */
struct name {
	const char *text, *shape, *next; /* next: NULL at the end */
	size_t len, shape_len;
};

static int cut_name(const char *path, const char *at, struct name *ret, struct err *err)
{
	*ret = (struct name){ .text = at, .len = strcspn(at, ".[{") };
	ret->shape = at + ret->len;
	if (ret->len == 0)
		return malformed(path, "has an empty name", err);
	const char *end = ret->shape;
	if (*end == '[' || *end == '{') {
		end = strchr(end, *end == '[' ? ']' : '}');
		if (!end)
			return malformed(path, "has no closing bracket", err);
		end++;
	}
	ret->shape_len = (size_t)(end - ret->shape);
	if (*end != '\0' && *end != '.')
		return malformed(path, "goes on after a bracket", err);
	ret->next = *end == '.' ? end + 1 : NULL;
	if (ret->next && *ret->shape == '{')
		return malformed(path, "goes on after {}", err);
	return 0;
}

static struct keep_step *find_step(const struct keep_step *parent, const struct name *name)
{
	for (struct keep_step *step = parent->first; step; step = step->next)
		if (step->len == name->len && memcmp(step->name, name->text, name->len) == 0)
			return step;
	return NULL;
}

static int pack_name(struct keep *keep, struct keep_step *step)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT_MAX(1024);
	packed_add_string(&out, &keep->words, step->name, step->len);
	step->packed = arena_strndup(&keep->arena, out.s, out.len);
	step->packed_len = out.len;
	return step->packed && !out.failed ? 0 : -ENOMEM;
}

/* The step below `parent` of that name, made if it is new. */
static int step_below(struct keep *keep, const char *path, struct keep_step *parent,
		      const struct name *name, struct keep_step **ret, struct err *err)
{
	struct keep_step *step = find_step(parent, name);
	if (step) {
		*ret = step;
		if (step->shape_len == name->shape_len &&
		    memcmp(step->shape, name->shape, name->shape_len) == 0)
			return 0;
		return malformed(path, "has another bracket than a path before it", err);
	}
	step = arena_alloc(&keep->arena, sizeof(*step));
	char *text = arena_strndup(&keep->arena, name->text, name->len + name->shape_len);
	if (!step || !text)
		return no_memory(err);
	*step = (struct keep_step){ .name = text,
				    .len = name->len,
				    .shape = text + name->len,
				    .shape_len = name->shape_len,
				    .next = parent->first };
	parent->first = step;
	parent->names |= keep_name_bit(step->name, step->len);
	int rc = pack_name(keep, step);
	if (rc == 0)
		rc = read_shape(keep, step);
	if (rc == -ENOMEM)
		return no_memory(err);
	*ret = step;
	return rc < 0 ? malformed(path, "has a bracket that makes no sense", err) : 0;
}

static int add_path(struct keep *keep, const char *path, struct err *err)
{
	struct keep_step *step = &keep->root;
	const char *at = path;
	for (unsigned depth = 0; at; depth++) {
		struct name name;
		if (depth == KEEP_DEPTH_MAX)
			return malformed(path, "is too deep", err);
		int rc = cut_name(path, at, &name, err);
		if (rc < 0 || (rc = step_below(keep, path, step, &name, &step, err)) < 0)
			return rc;
		at = name.next;
	}
	step->whole = !step->members;
	return 0;
}

/* "kind=Job": an equals sign before anything else. */
static const char *constant_value(const char *path)
{
	size_t len = strcspn(path, "=.[{");
	return len > 0 && path[len] == '=' ? path + len + 1 : NULL;
}

static void add_constant(const struct keep *keep, struct strbuf *out, const char *path,
			 const char *value)
{
	packed_add_string(out, &keep->words, path, (size_t)(value - 1 - path));
	packed_add_string(out, &keep->words, value, strlen(value));
}

static int compile(struct keep *keep, const char *const *paths, struct err *err)
{
	struct strbuf constants CLEANUP(strbuf_done) = STRBUF_INIT_MAX(4096);
	for (; *paths; paths++) {
		const char *value = constant_value(*paths);
		int rc = value ? 0 : add_path(keep, *paths, err);
		if (rc < 0)
			return rc;
		if (value)
			add_constant(keep, &constants, *paths, value);
	}
	keep->constants = arena_strndup(&keep->arena, constants.s, constants.len);
	keep->constants_len = constants.len;
	return keep->constants && !constants.failed ? 0 : no_memory(err);
}

int keep_new(const char *const *paths, struct keep **ret, struct err *err)
{
	struct keep *keep = calloc(1, sizeof(*keep));
	if (!keep)
		return no_memory(err);
	arena_init(&keep->arena, KEEP_BYTES_MAX);
	packed_words_init(&keep->words);
	int rc = compile(keep, paths, err);
	if (rc < 0) {
		keep_free(keep);
		return rc;
	}
	*ret = keep;
	return 0;
}

void keep_free(struct keep *keep)
{
	if (!keep)
		return;
	arena_done(&keep->arena);
	free(keep);
}

void keep_freep(struct keep **keep)
{
	keep_free(*keep);
}
