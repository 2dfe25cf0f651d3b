/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/linkset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "engine/links.h"

#define INPUT_BYTES_MAX \
	(1 + GPU_MAX * GPU_MAX * sizeof(uint16_t) + GPU_MAX * (sizeof(uint32_t) + 1))

struct kept_links {
	struct links *links;
	uint32_t uses;
	uint32_t len;
	char input[];
};

void linkset_init(struct linkset *set, uint64_t seed)
{
	map_init(&set->by_input, seed);
	map_init(&set->by_links, seed);
}

void linkset_done(struct linkset *set)
{
	struct map_entry entry;

	for (uint32_t at = 0; map_next(&set->by_input, &at, &entry);) {
		struct kept_links *kept = entry.value;

		links_free(kept->links);
		free(kept);
	}
	map_done(&set->by_input);
	map_done(&set->by_links);
}

static char *put(char *at, const void *bytes, size_t len)
{
	memcpy(at, bytes, len);
	return at + len;
}

/* All of the input, in the same bytes for the same machine. */
static size_t input_bytes(const struct links_input *in, char bytes[INPUT_BYTES_MAX])
{
	static const uint32_t no_nvlink[GPU_MAX];
	static const int8_t no_numa[GPU_MAX] = { -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
						 -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
						 -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 };
	size_t n = in->count;
	char *at = bytes;

	*at++ = (char)n;
	at = put(at, in->gbps, n * n * sizeof(*in->gbps));
	at = put(at, in->nvlink ? in->nvlink : no_nvlink, n * sizeof(*in->nvlink));
	at = put(at, in->numa ? in->numa : no_numa, n * sizeof(*in->numa));
	return (size_t)(at - bytes);
}

static struct kept_links *kept_new(struct linkset *set, const struct links_input *input,
				   const char *bytes, size_t len, struct err *err)
{
	struct kept_links *kept = calloc(1, sizeof(*kept) + len);

	if (!kept) {
		err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	if (links_new(input, &kept->links, err) < 0) {
		free(kept);
		return NULL;
	}
	kept->len = (uint32_t)len;
	memcpy(kept->input, bytes, len);
	if (map_reserve(&set->by_links, set->by_links.len + 1) == 0 &&
	    map_put(&set->by_input, kept->input, len, kept) == 0 &&
	    map_put(&set->by_links, (const char *)&kept->links, sizeof(kept->links), kept) == 0)
		return kept;
	links_free(kept->links);
	free(kept);
	err_set(err, ENOMEM, "out of memory");
	return NULL;
}

const struct links *linkset_get(struct linkset *set, const struct links_input *input,
				struct err *err)
{
	char bytes[INPUT_BYTES_MAX];
	struct kept_links *kept;
	size_t len;

	if (!input->count || input->count > GPU_MAX) {
		err_set(err, EINVAL, "links for %u GPUs", input->count);
		return NULL;
	}
	len = input_bytes(input, bytes);
	kept = map_get(&set->by_input, bytes, len);
	if (!kept)
		kept = kept_new(set, input, bytes, len, err);
	if (!kept)
		return NULL;
	kept->uses++;
	return kept->links;
}

static struct kept_links *kept_of(const struct linkset *set, const struct links *links)
{
	return map_get(&set->by_links, (const char *)&links, sizeof(links));
}

void linkset_hold(struct linkset *set, const struct links *links)
{
	struct kept_links *kept = links ? kept_of(set, links) : NULL;

	if (kept)
		kept->uses++;
}

void linkset_release(struct linkset *set, const struct links *links)
{
	struct kept_links *kept = links ? kept_of(set, links) : NULL;

	if (!kept || --kept->uses)
		return;
	map_del(&set->by_input, kept->input, kept->len);
	map_del(&set->by_links, (const char *)&kept->links, sizeof(kept->links));
	links_free(kept->links);
	free(kept);
}
