/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

void record_table_init(struct record_table *t, uint64_t seed, uint64_t *serials)
{
	map_init(&t->ids, seed);
	t->serials = serials;
}

void record_table_done(struct record_table *t)
{
	vec_done(&t->free);
	map_done(&t->ids);
}

uint32_t record_find(const struct record_table *t, const struct strbuf *bytes)
{
	uint32_t id;

	return map_get_u32(&t->ids, bytes->s, bytes->len, &id) ? id : 0;
}

int record_enter(struct record_table *t, struct record *r, uint32_t id, const struct strbuf *bytes)
{
	r->bytes = malloc(bytes->len + 1);
	if (r->bytes) {
		memcpy(r->bytes, bytes->s, bytes->len + 1);
		r->len = (uint32_t)bytes->len;
		r->refs = 1;
		r->serial = ++*t->serials;
		if (map_put_u32(&t->ids, r->bytes, r->len, id) == 0)
			return 0;
	}
	free(r->bytes);
	r->bytes = NULL;
	t->free.items[t->free.len++] = id;
	return -ENOMEM;
}

void record_leave(struct record_table *t, struct record *r, uint32_t id)
{
	map_del(&t->ids, r->bytes, r->len);
	free(r->bytes);
	t->free.items[t->free.len++] = id;
}
