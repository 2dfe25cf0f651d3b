/* SPDX-License-Identifier: Apache-2.0 */
#include "events.h"

#include "base/attr.h"

#include <string.h>

#define PREFIX_BYTES 4

void events_init(struct events *events, const char *content_type)
{
	*events = (struct events){ .protobuf = content_type && strstr(content_type, "protobuf") };
}

static bool next_line(const char *bytes, size_t len, size_t *used)
{
	const char *end = memchr(bytes, '\n', len);
	*used = end ? (size_t)(end - bytes) + 1 : len;
	return end;
}

static bool next_framed(struct events *events, const char *bytes, size_t len, size_t *used)
{
	size_t at = 0;
	while (events->prefix_len < PREFIX_BYTES && at < len) {
		events->left = events->left << 8 | (unsigned char)bytes[at++];
		events->prefix_len++;
	}
	size_t n = events->prefix_len < PREFIX_BYTES ? 0 : (size_t)MIN(events->left, len - at);
	*used = at + n;
	if (events->prefix_len < PREFIX_BYTES)
		return false;
	events->left -= n;
	if (events->left > 0)
		return false;
	events->prefix_len = 0;
	return true;
}

bool events_next(struct events *events, const char *bytes, size_t len, size_t *used)
{
	bool ended = events->protobuf ? next_framed(events, bytes, len, used)
				      : next_line(bytes, len, used);
	events->count += ended;
	return ended;
}
