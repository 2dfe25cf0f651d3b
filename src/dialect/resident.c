/* SPDX-License-Identifier: Apache-2.0 */
/* resident.c - what a pod that is on a node already takes of it.
 *
 * Nobody asks whether it should be there: what it says about itself that cannot be
 * understood must not hide what can.
 */
#include <errno.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "dialect/draft.h"
#include "wire/json.h"

/* Many pods with the greatest amounts may lie on one node, and their sum must be a number. */
#define AMOUNT_MAX (INT64_C(1) << 48)

typedef int (*reader_fn)(struct draft *d, struct err *err);

/* What they read stays, even if there is something that they cannot. */
static const reader_fn plain[] = { read_facts, read_place, read_needs, read_around, read_limits };

/* What they say about GPUs counts whole or not at all. */
static const reader_fn dialects[] = { read_claim, read_topology, read_map, read_gang };

static void clamp(struct request *r)
{
	r->needs.cpu_milli = MIN(r->needs.cpu_milli, AMOUNT_MAX);
	r->needs.mem_bytes = MIN(r->needs.mem_bytes, AMOUNT_MAX);
	r->needs.ephemeral_bytes = MIN(r->needs.ephemeral_bytes, AMOUNT_MAX);
	for (unsigned i = 0; i < r->extended_count; i++)
		r->extended[i].amount = MIN(r->extended[i].amount, AMOUNT_MAX);
}

/* The first complaint is the one to show. */
static void complain(struct err *err, const struct err *complaint)
{
	if (err && !err->code)
		*err = *complaint;
}

static int read_plain(struct draft *d, struct err *err)
{
	for (unsigned i = 0; i < ARRAY_SIZE(plain); i++) {
		struct err complaint = ERR_INIT;

		if (plain[i](d, &complaint) == -ENOMEM)
			return -ENOMEM;
		if (complaint.code)
			complain(err, &complaint);
	}
	return 0;
}

static int read_dialects(struct draft *d, struct err *err)
{
	for (unsigned i = 0; i < ARRAY_SIZE(dialects); i++) {
		const struct wish wish = *d->wish;
		const struct draft draft = *d;
		struct err complaint = ERR_INIT;
		int rc = dialects[i](d, &complaint);

		if (rc == -ENOMEM)
			return -ENOMEM;
		if (rc == 0)
			continue;
		complain(err, &complaint);
		*d->wish = wish;
		*d = draft;
	}
	return 0;
}

int dialect_read_resident(struct cluster *cluster, const struct dialect_lookup *lookup,
			  const struct pod_source *source, struct arena *arena, struct wish *ret,
			  struct err *err)
{
	struct draft d = { .cluster = cluster,
			   .lookup = lookup,
			   .source = source,
			   .arena = arena,
			   .wish = ret,
			   .request = &ret->request,
			   .resident = true };
	int rc;

	memset(ret, 0, sizeof(*ret));
	request_init(&ret->request);
	ret->index = WISH_INDEX_NONE;
	if (err)
		*err = (struct err)ERR_INIT;
	rc = read_plain(&d, err);
	if (rc == 0)
		rc = read_dialects(&d, err);
	if (rc < 0) {
		wish_release(cluster, ret);
		return err_set(err, ENOMEM, "out of memory");
	}
	clamp(&ret->request);
	if (err && err->code)
		draft_make_plain(err->text);
	return 0;
}
