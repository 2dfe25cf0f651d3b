/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/lines.h"

#include <stdbool.h>
#include <string.h>
#include <yaml.h>

#include "base/attr.h"
#include "base/strbuf.h"
#include "sim/manifest.h"
#include "wire/file.h"

#define DEPTH_MAX 64

/* A walk over the document.  At each depth it is in a list or in an object; `here` says
 * whether the keys that led there are those that are looked for. */
struct walk {
	const char *parent, *key;
	size_t index;
	unsigned depth;
	struct {
		bool object, is_value; /* of an object: the next scalar is no key */
		char name;	       /* '/' the top, 'p' the parent, 'k' the list, '-' else */
		char next;	       /* what the value of the last key is */
		size_t items;
	} at[DEPTH_MAX];
};

/* What the value of the key is, in an object that is `name`. */
static char name_of(const struct walk *w, char name, const char *key)
{
	if ((name == '/' || name == 'p') && strcmp(key, w->key) == 0)
		return 'k';
	return name == '/' && strcmp(key, w->parent) == 0 ? 'p' : '-';
}

/* A value begins; whether it is the item. */
static bool begin_value(struct walk *w, const yaml_event_t *e, char *name)
{
	*name = w->depth ? '-' : '/';
	if (!w->depth)
		return false;
	unsigned d = w->depth - 1;
	if (!w->at[d].object)
		return w->at[d].name == 'k' && w->at[d].items++ == w->index;
	if (!w->at[d].is_value && e->type == YAML_SCALAR_EVENT)
		w->at[d].next = name_of(w, w->at[d].name, (const char *)e->data.scalar.value);
	else
		*name = w->at[d].next;
	w->at[d].is_value = !w->at[d].is_value;
	return false;
}

/* True at the item; sets *over where there can be none any more. */
static bool step(struct walk *w, const yaml_event_t *e, bool *over)
{
	bool opens = e->type == YAML_MAPPING_START_EVENT || e->type == YAML_SEQUENCE_START_EVENT;
	char name;

	*over = e->type == YAML_DOCUMENT_END_EVENT || e->type == YAML_STREAM_END_EVENT ||
		(opens && w->depth == DEPTH_MAX);
	if (e->type == YAML_MAPPING_END_EVENT || e->type == YAML_SEQUENCE_END_EVENT)
		w->depth--;
	if (!opens && e->type != YAML_SCALAR_EVENT && e->type != YAML_ALIAS_EVENT)
		return false;
	if (*over || begin_value(w, e, &name))
		return !*over;
	if (!opens)
		return false;
	w->at[w->depth].object = e->type == YAML_MAPPING_START_EVENT;
	w->at[w->depth].is_value = false;
	w->at[w->depth].name = name;
	w->at[w->depth].items = 0;
	w->depth++;
	return false;
}

size_t lines_of_item(const char *path, const char *parent, const char *key, size_t index)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT_MAX(MANIFEST_FILE_MAX);
	struct walk w = { .parent = parent, .key = key, .index = index };
	yaml_parser_t parser;
	bool found = false, over = false;
	size_t line = 0;

	/* The standard input is read already. */
	if (strcmp(path, "-") == 0 || file_read(path, MANIFEST_FILE_MAX, &text, NULL) < 0 ||
	    !yaml_parser_initialize(&parser))
		return 0;
	yaml_parser_set_input_string(&parser, (const unsigned char *)text.s, text.len);
	while (!found && !over) {
		yaml_event_t event;

		if (!yaml_parser_parse(&parser, &event))
			break;
		found = step(&w, &event, &over);
		line = found ? event.start_mark.line + 1 : 0;
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return line;
}
