/* SPDX-License-Identifier: Apache-2.0 */
/* story_private.h - between story.c (steps) and story_expect.c (expectations). */
#ifndef GS_SIM_STORY_PRIVATE_H
#define GS_SIM_STORY_PRIVATE_H

#include "sim/story.h"

struct json;
struct world;

struct story {
	const char *name;
	struct world *world;
	struct strbuf *out;
	struct story_result *result;
	size_t step; /* counted from 1 */
};

/* Checks one `expect` step.  -EINVAL for a word that is unknown. */
int story_expect(struct story *s, const struct json *expect, struct err *err);

#endif
