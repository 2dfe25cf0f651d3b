/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/literal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/num.h"
#include "dialect/dialect.h"
#include "dialect/map.h"
#include "dialect/owner.h"

#define MAP_BYTES_MAX ((size_t)2 << 20) /* MAP_LINES_MAX lines of the longest annotation */

int literal_gpus(const struct json *pod, const char *text, uint32_t *ret)
{
	struct arena arena CLEANUP(arena_done) = { .max_bytes = MAP_BYTES_MAX };
	int64_t index = pod_index(pod);
	struct placement_map map;

	if (index == POD_INDEX_NONE)
		return -ENOENT;
	int rc = placement_map_parse(text, &arena, &map, NULL);
	if (rc < 0)
		return rc;
	const struct map_line *line = placement_map_find(&map, (uint32_t)index);
	if (!line)
		return -ENOENT;
	*ret = line->gpus;
	return 0;
}

int literal_ids(const struct json *pod, const char *map, char ids[LITERAL_MAX])
{
	uint32_t gpus = 0;
	int used = 0, rc = literal_gpus(pod, map, &gpus);

	if (rc < 0)
		return rc;
	for (; gpus; gpus &= gpus - 1)
		used += snprintf(ids + used, LITERAL_MAX - (size_t)used, "%s%u", used ? "," : "",
				 gpuset_first(gpus));
	return 0;
}

/* Ids with commas between them, each once. */
static bool parse_ids(const char *text, uint32_t *ret)
{
	uint32_t id;

	*ret = 0;
	for (;;) {
		size_t n = strcspn(text, ",");

		if (parse_u32(text, n, &id) < 0 || id >= GPU_MAX || gpuset_has(*ret, id))
			return false;
		*ret |= gpuset_one(id);
		if (!text[n])
			return true;
		text += n + 1;
	}
}

bool literal_is(uint32_t gpus, const char *value)
{
	uint32_t wanted;

	return parse_ids(value, &wanted) && wanted == gpus;
}
