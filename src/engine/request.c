/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - requests as values: empty, grown, compared, hashed.
 *
 * Only the used entries of the arrays count, and of an ask only its fields, not the
 * gap between them: a caller may assign a whole struct ask, which copies the gap's
 * bytes or does not.
 */
#include "engine/request.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "engine/mig.h"

/* The fields of an ask but for its models, which lie side by side. */
#define ASK_PLAIN_BYTES \
	(offsetof(struct ask, mig_profile) + sizeof(((struct ask *)0)->mig_profile))
/* The request from its counts to its end, but for who asks and what it prefers. */
#define TAIL_OFFSET offsetof(struct request, asks_count)
#define TAIL_BYTES  (offsetof(struct request, subject) - TAIL_OFFSET)

/* Bytes that no field owns would make equal requests differ. */
static_assert(ASK_PLAIN_BYTES == 4 + 2 * 2 + 4 + 2 + 2 + 3 * 4 + 1 + GPU_MAX + 23,
	      "a gap among the plain fields of struct ask");
static_assert(TAIL_BYTES == 6 + 2 + 8 + 8 * 4, "a gap in the tail of struct request");
static_assert(sizeof(struct resources) == 4 * 8, "a gap in struct resources");
static_assert(sizeof(struct extended) == 16, "a gap in struct extended");
static_assert(sizeof(struct label) == 8, "a gap in struct label");
static_assert(sizeof(struct toleration) == 12, "a gap in struct toleration");

void request_init(struct request *r)
{
	memset(r, 0, sizeof(*r));
	r->needs.pods = 1;
	r->node = NODE_NONE;
	r->domain = DOMAIN_NONE;
	r->prefer_domain = DOMAIN_NONE;
}

struct ask *request_add_ask(struct request *r, enum ask_kind kind, uint8_t count)
{
	struct ask *ask;

	if (r->asks_count >= ASK_MAX)
		return NULL;
	ask = &r->asks[r->asks_count++];
	memset(ask, 0, sizeof(*ask));
	ask->kind = (uint8_t)kind;
	ask->count = count;
	return ask;
}

static uint32_t slice_milli(const struct ask *ask)
{
	size_t len = strnlen(ask->mig_profile, sizeof(ask->mig_profile));
	const struct mig_geometry *geometry;

	for (size_t i = 0; (geometry = mig_geometry_at(i)); i++) {
		int profile = mig_profile_find(geometry, ask->mig_profile, len);

		if (profile >= 0)
			return (uint32_t)geometry->profiles[profile].compute * CORE_WHOLE /
			       geometry->compute;
	}
	return 0;
}

static uint32_t ask_milli(const struct ask *ask)
{
	switch ((enum ask_kind)ask->kind) {
	case ASK_WHOLE:
		return CORE_WHOLE;
	case ASK_SHARE:
		return ask->core_milli;
	case ASK_MIG:
		return slice_milli(ask);
	}
	return 0;
}

uint32_t request_gpu_milli(const struct request *r)
{
	uint32_t milli = 0;

	for (unsigned i = 0; i < r->asks_count; i++)
		milli += r->asks[i].count * ask_milli(&r->asks[i]);
	return milli;
}

static bool ask_equal(const struct ask *a, const struct ask *b)
{
	return memcmp(a, b, ASK_PLAIN_BYTES) == 0 &&
	       memcmp(&a->models, &b->models, sizeof(a->models)) == 0;
}

bool request_equal(const struct request *a, const struct request *b)
{
	/* The tail holds the counts, so past it they are the same in both. */
	if (memcmp((const char *)a + TAIL_OFFSET, (const char *)b + TAIL_OFFSET, TAIL_BYTES) !=
		    0 ||
	    memcmp(&a->needs, &b->needs, sizeof(a->needs)) != 0)
		return false;
	for (unsigned i = 0; i < a->asks_count; i++)
		if (!ask_equal(&a->asks[i], &b->asks[i]))
			return false;
	return memcmp(a->extended, b->extended, a->extended_count * sizeof(a->extended[0])) == 0 &&
	       memcmp(a->selector, b->selector, a->selector_count * sizeof(a->selector[0])) == 0 &&
	       memcmp(a->tolerations, b->tolerations,
		      a->tolerations_count * sizeof(a->tolerations[0])) == 0;
}

uint64_t request_hash(const struct request *r, uint64_t seed)
{
	uint64_t hash = hash_bytes((const char *)r + TAIL_OFFSET, TAIL_BYTES, seed);

	hash = hash_bytes(&r->needs, sizeof(r->needs), hash);
	for (unsigned i = 0; i < r->asks_count; i++) {
		hash = hash_bytes(&r->asks[i], ASK_PLAIN_BYTES, hash);
		if (!modelset_any(&r->asks[i].models))
			hash = hash_bytes(&r->asks[i].models, sizeof(r->asks[i].models), hash);
	}
	if (r->extended_count)
		hash = hash_bytes(r->extended, r->extended_count * sizeof(r->extended[0]), hash);
	if (r->selector_count)
		hash = hash_bytes(r->selector, r->selector_count * sizeof(r->selector[0]), hash);
	if (r->tolerations_count)
		hash = hash_bytes(r->tolerations, r->tolerations_count * sizeof(r->tolerations[0]),
				  hash);
	return hash;
}
