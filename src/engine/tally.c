/* SPDX-License-Identifier: Apache-2.0 */
/* tally.c - counts by label value: open addressing, a cell stays once it is there. */
#include "engine/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void tally_done(struct tally *t)
{
	free(t->cells);
	free(t->values_by_pods);
	*t = (struct tally){ 0 };
}

static uint32_t spot(const struct tally *t, uint32_t value)
{
	uint32_t at = value * UINT32_C(2654435761) & (t->cap - 1);

	while (t->cells[at].used && t->cells[at].value != value)
		at = (at + 1) & (t->cap - 1);
	return at;
}

static const struct tally_cell *find(const struct tally *t, uint32_t value)
{
	const struct tally_cell *cell = t->cap ? &t->cells[spot(t, value)] : NULL;

	return cell && cell->used ? cell : NULL;
}

/* Cells without pods and nodes are left behind: values of nodes that are gone. */
static int grow(struct tally *t)
{
	struct tally next = *t;
	uint32_t alive = 0;

	for (uint32_t i = 0; i < t->cap; i++)
		alive += t->cells[i].pods || t->cells[i].nodes;
	for (next.cap = 8; next.cap < 2 * (alive + 1);)
		next.cap *= 2;
	next.cells = calloc(next.cap, sizeof(*next.cells));
	if (!next.cells)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->cap; i++)
		if (t->cells[i].pods || t->cells[i].nodes)
			next.cells[spot(&next, t->cells[i].value)] = t->cells[i];
	next.len = alive;
	free(t->cells);
	*t = next;
	return 0;
}

/* Room to count a value that has n pods. */
static int reserve(struct tally *t, uint32_t pods)
{
	uint32_t room = t->by_pods_room ? t->by_pods_room : 8;
	uint32_t *grown;

	if (pods < t->by_pods_room)
		return 0;
	while (room <= pods)
		room *= 2;
	grown = realloc(t->values_by_pods, room * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + t->by_pods_room, 0, (room - t->by_pods_room) * sizeof(*grown));
	t->values_by_pods = grown;
	t->by_pods_room = room;
	return 0;
}

int tally_add(struct tally *t, uint32_t value, int32_t pods, int32_t nodes)
{
	struct tally_cell *cell;
	uint32_t before;

	if (!find(t, value) && 4 * (t->len + 1) > 3 * t->cap && grow(t) < 0)
		return -ENOMEM;
	cell = &t->cells[spot(t, value)];
	before = cell->pods;
	if (reserve(t, before + (uint32_t)(pods > 0 ? pods : 0)) < 0)
		return -ENOMEM;
	t->len += !cell->used;
	cell->used = 1;
	if (cell->nodes) {
		t->values_by_pods[before]--;
		t->domains--;
	}
	cell->value = value;
	cell->pods += (uint32_t)pods;
	if (cell->pods > t->most)
		t->most = cell->pods;
	cell->nodes += (uint32_t)nodes;
	t->pods += (uint64_t)(int64_t)pods;
	if (cell->nodes) {
		t->values_by_pods[cell->pods]++;
		t->domains++;
		if (cell->pods < t->least)
			t->least = cell->pods;
	}
	return 0;
}

int tally_reserve(struct tally *t, uint32_t pods)
{
	if (4 * (t->len + 1) > 3 * t->cap && grow(t) < 0)
		return -ENOMEM;
	return reserve(t, t->most + pods);
}

uint32_t tally_pods(const struct tally *t, uint32_t value)
{
	const struct tally_cell *cell = find(t, value);

	return cell ? cell->pods : 0;
}

uint32_t tally_least(struct tally *t)
{
	if (!t->domains)
		return t->least = 0;
	while (!t->values_by_pods[t->least])
		t->least++;
	return t->least;
}
