/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "dialect/keys.h"

#define SHOWN_MAX 60 /* of a line that is quoted in a message */

/* A piece of the annotation. */
struct span {
	const char *p;
	size_t n;
};

static struct span trim(struct span s)
{
	while (s.n && strchr(" \t\r", s.p[0]))
		s.p++, s.n--;
	while (s.n && strchr(" \t\r", s.p[s.n - 1]))
		s.n--;
	return s;
}

/* Cuts what is before `c` off the front of `s`; false if there is no `c` in it. */
static bool cut(struct span *s, char c, struct span *before)
{
	const char *at = memchr(s->p, c, s->n);

	if (!at)
		return false;
	*before = trim((struct span){ s->p, (size_t)(at - s->p) });
	s->n -= (size_t)(at + 1 - s->p);
	s->p = at + 1;
	return true;
}

static int malformed(uint32_t line, struct span text, struct err *err)
{
	return err_set(err, EINVAL,
		       KEY_MAP " line %u: expected <pod-index>=<node>:<gpu,gpu>, found \"%.*s\"",
		       line, (int)(text.n < SHOWN_MAX ? text.n : SHOWN_MAX), text.p);
}

static int parse_gpu(struct map_line *ret, struct span text, struct span id, struct err *err)
{
	uint32_t gpu;

	if (parse_u32(id.p, id.n, &gpu) < 0)
		return malformed(ret->line, text, err);
	if (gpu >= GPU_MAX)
		return err_set(err, EINVAL, KEY_MAP " line %u: GPU %u: ids go from 0 to %d",
			       ret->line, gpu, GPU_MAX - 1);
	if (gpuset_has(ret->gpus, gpu))
		return err_set(err, EINVAL, KEY_MAP " line %u: GPU %u is there twice", ret->line,
			       gpu);
	ret->gpus |= gpuset_one(gpu);
	return 0;
}

static int parse_gpus(struct map_line *ret, struct span text, struct span ids, struct err *err)
{
	struct span id;
	int rc = 0;

	while (rc == 0 && cut(&ids, ',', &id))
		rc = parse_gpu(ret, text, id, err);
	return rc < 0 ? rc : parse_gpu(ret, text, trim(ids), err);
}

static int parse_line(struct map_line *ret, struct span text, struct arena *arena, struct err *err)
{
	struct span rest = text, index, node;

	if (!cut(&rest, '=', &index) || !cut(&rest, ':', &node) || node.n == 0 ||
	    parse_u32(index.p, index.n, &ret->index) < 0)
		return malformed(ret->line, text, err);
	int rc = parse_gpus(ret, text, rest, err);
	if (rc < 0)
		return rc;
	ret->node = arena_strndup(arena, node.p, node.n);
	return ret->node ? 0 : err_set(err, ENOMEM, "out of memory");
}

/* An order in which lines of one node stand together. */
static int by_node(const void *a, const void *b)
{
	const struct map_line *const *x = a, *const *y = b;

	return strcmp((*x)->node, (*y)->node);
}

static void count_on_node(struct map_line **lines, uint32_t count)
{
	uint16_t named[GPU_MAX] = { 0 };

	for (uint32_t i = 0; i < count; i++)
		for (uint32_t left = lines[i]->gpus; left; left &= left - 1)
			named[gpuset_first(left)]++;
	for (uint32_t i = 0; i < count; i++)
		memcpy(lines[i]->sharers, named, sizeof(named));
}

static int count_sharers(struct placement_map *map, struct arena *arena, struct err *err)
{
	struct map_line **sorted = arena_array(arena, map->count, sizeof(*sorted));
	uint32_t from = 0;

	if (!sorted)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < map->count; i++)
		sorted[i] = &map->lines[i];
	qsort(sorted, map->count, sizeof(*sorted), by_node);
	for (uint32_t i = 1; i <= map->count; i++) {
		if (i < map->count && strcmp(sorted[i]->node, sorted[from]->node) == 0)
			continue;
		count_on_node(sorted + from, i - from);
		from = i;
	}
	return 0;
}

static int by_index(const void *a, const void *b)
{
	const struct map_line *x = a, *y = b;

	if (x->index != y->index)
		return x->index < y->index ? -1 : 1;
	return x->line < y->line ? -1 : 1;
}

static int check_indexes(const struct placement_map *map, struct err *err)
{
	for (uint32_t i = 1; i < map->count; i++)
		if (map->lines[i].index == map->lines[i - 1].index)
			return err_set(
				err, EINVAL, KEY_MAP " line %u: index %u is on line %u already",
				map->lines[i].line, map->lines[i].index, map->lines[i - 1].line);
	return 0;
}

static int parse_lines(struct span text, struct arena *arena, struct placement_map *map,
		       struct err *err)
{
	struct span line;

	for (uint32_t number = 1; text.n; number++) {
		if (!cut(&text, '\n', &line)) {
			line = trim(text);
			text.n = 0;
		}
		if (line.n == 0 || line.p[0] == '#')
			continue;
		if (map->count == MAP_LINES_MAX)
			return err_set(err, EINVAL, KEY_MAP " has more than %d lines",
				       MAP_LINES_MAX);
		map->lines[map->count].line = number;
		int rc = parse_line(&map->lines[map->count], line, arena, err);
		if (rc < 0)
			return rc;
		map->count++;
	}
	return map->count ? 0 : err_set(err, EINVAL, KEY_MAP " is empty");
}

static size_t lines_of(const char *text)
{
	size_t lines = 1;

	for (; (text = strchr(text, '\n')); text++)
		lines++;
	return lines < MAP_LINES_MAX ? lines : MAP_LINES_MAX;
}

int placement_map_parse(const char *text, struct arena *arena, struct placement_map *ret,
			struct err *err)
{
	struct placement_map map = { 0 };

	map.lines = arena_array(arena, lines_of(text), sizeof(*map.lines));
	if (!map.lines)
		return err_set(err, ENOMEM, "out of memory");
	int rc = parse_lines((struct span){ text, strlen(text) }, arena, &map, err);
	if (rc < 0)
		return rc;
	qsort(map.lines, map.count, sizeof(*map.lines), by_index);
	if ((rc = check_indexes(&map, err)) < 0 || (rc = count_sharers(&map, arena, err)) < 0)
		return rc;
	*ret = map;
	return 0;
}

const struct map_line *placement_map_find(const struct placement_map *map, uint32_t index)
{
	uint32_t low = 0, high = map->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (map->lines[middle].index < index)
			low = middle + 1;
		else
			high = middle;
	}
	return low < map->count && map->lines[low].index == index ? &map->lines[low] : NULL;
}
