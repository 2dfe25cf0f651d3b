/* SPDX-License-Identifier: Apache-2.0 */
/* The queue against a model that keeps every item in an array and looks at all of them for
 * every question: random operations, after each of which every item is where the model has it. */
#include "test.h"

#include "base/attr.h"
#include "base/rng.h"
#include "scheduler/pending.h"

#define ITEMS	    40
#define CLASSES	    4 /* besides "like no other" */
#define STEPS	    2000
#define SEEDS	    60
#define BACKOFF_MS  100
#define LONGEST_MS  1000
#define PATIENCE_MS 5000

enum { ABSENT = PENDING_PARKED + 1 };

struct model_item {
	int place; /* enum pending_place, or ABSENT */
	int32_t priority;
	uint64_t arrival;
	uint32_t class; /* it is parked in, or woken from; 0: none */
	uint32_t refusals, failures;
	uint64_t until_ms, parked_ms;
	uint32_t since; /* kinds of events since it was popped */
	bool changed;
};

struct world {
	struct rng rng;
	uint64_t seed, now_ms, arrivals;
	struct pending *q;
	struct pending_item items[ITEMS];
	struct model_item model[ITEMS];
	uint32_t wakes[CLASSES + 1 + ITEMS]; /* of each class, and of each item's own */
};

static bool before(const struct world *w, int a, int b)
{
	const struct model_item *one = &w->model[a], *other = &w->model[b];

	if (one->priority != other->priority)
		return one->priority > other->priority;
	return one->arrival < other->arrival;
}

/* The first in that place, of that class (0: any); -1: none. */
static int first_of(const struct world *w, int place, uint32_t class)
{
	int first = -1;

	for (int i = 0; i < ITEMS; i++) {
		const struct model_item *m = &w->model[i];
		if (m->place != place || (class && m->class != class) ||
		    (place == PENDING_BACKOFF && m->failures))
			continue;
		if (first < 0 || before(w, i, first))
			first = i;
	}
	return first;
}

static void unpark(struct world *w, int i)
{
	uint32_t class = w->model[i].class;

	w->model[i].place = PENDING_READY;
	if (first_of(w, PENDING_PARKED, class) < 0)
		w->wakes[class] = 0;
}

static void pass_on(struct world *w, int i)
{
	uint32_t class = w->model[i].class;
	int next = class ? first_of(w, PENDING_PARKED, class) : -1;

	w->model[i].class = 0;
	if (next >= 0)
		unpark(w, next);
}

static void model_remove(struct world *w, int i)
{
	bool parked = w->model[i].place == PENDING_PARKED;

	if (parked)
		unpark(w, i);
	w->model[i].place = ABSENT;
	if (!parked)
		pass_on(w, i);
	w->model[i] = (struct model_item){ .place = ABSENT };
}

static void model_back_off(struct world *w, int i)
{
	struct model_item *m = &w->model[i];
	uint32_t times = m->failures ? m->failures : m->refusals;
	uint64_t wait_ms = BACKOFF_MS;

	for (uint32_t n = 1; n < times; n++)
		wait_ms = MIN(wait_ms * 2, LONGEST_MS);
	m->until_ms = w->now_ms + wait_ms;
	m->place = PENDING_BACKOFF;
}

static void model_tick(struct world *w)
{
	for (int i = 0; i < ITEMS; i++) {
		struct model_item *m = &w->model[i];
		if (m->place == PENDING_BACKOFF && m->until_ms <= w->now_ms)
			m->place = PENDING_READY;
		if (m->place == PENDING_PARKED && m->parked_ms + PATIENCE_MS <= w->now_ms)
			unpark(w, i);
	}
}

static int model_pop(struct world *w)
{
	model_tick(w);
	int i = first_of(w, PENDING_READY, 0);

	if (i < 0)
		i = first_of(w, PENDING_BACKOFF, 0);
	if (i < 0)
		return -1;
	w->model[i].place = PENDING_OUT;
	w->model[i].since = 0;
	w->model[i].changed = false;
	return i;
}

static void model_refused(struct world *w, int i, uint32_t class, uint32_t wakes)
{
	struct model_item *m = &w->model[i];
	uint32_t own = CLASSES + 1 + (uint32_t)i;

	m->refusals++;
	m->failures = 0;
	if (m->changed || m->since & wakes) {
		model_back_off(w, i);
		return;
	}
	class = class ? class : own;
	if (m->class != class)
		pass_on(w, i);
	m->class = class;
	w->wakes[class] |= wakes;
	m->parked_ms = w->now_ms;
	m->place = PENDING_PARKED;
}

/* Which classes an event helps is decided by this: not by their first item alone. */
static bool helps(void *context, struct pending_item *item)
{
	return (item->arrival + *(const uint64_t *)context) % 3 != 0;
}

static void model_event(struct world *w, uint32_t kinds, uint64_t salt)
{
	for (int i = 0; i < ITEMS; i++)
		w->model[i].since |= kinds;
	for (uint32_t class = 1; class < ARRAY_SIZE(w->wakes); class ++) {
		int first = first_of(w, PENDING_PARKED, class);
		if (first >= 0 && w->wakes[class] & kinds && helps(&salt, &w->items[first]))
			unpark(w, first);
	}
}

/* Operations */

static int random_in(struct world *w, int place)
{
	int start = (int)rng_below(&w->rng, ITEMS);

	for (int n = 0; n < ITEMS; n++) {
		int i = (start + n) % ITEMS;
		if (w->model[i].place == place)
			return i;
	}
	return -1;
}

static void order_anew(struct world *w, int i)
{
	w->items[i].priority = w->model[i].priority = (int32_t)rng_below(&w->rng, 4) - 1;
	w->items[i].arrival = w->model[i].arrival = ++w->arrivals;
}

static void add(struct world *w)
{
	int i = random_in(w, ABSENT);

	if (i < 0)
		return;
	order_anew(w, i);
	CHECKF(pending_add(w->q, &w->items[i], w->now_ms) == 0, "seed %" PRIu64, w->seed);
	w->model[i].place = PENDING_READY;
}

static void pop(struct world *w)
{
	int expected = model_pop(w);
	struct pending_item *item = pending_pop(w->q, w->now_ms);

	CHECKF(item == (expected < 0 ? NULL : &w->items[expected]),
	       "seed %" PRIu64 ": popped %d, expected %d", w->seed,
	       item ? (int)(item - w->items) : -1, expected);
}

static void refuse(struct world *w, int i)
{
	uint32_t class = rng_below(&w->rng, CLASSES + 1);
	uint32_t wakes = rng_below(&w->rng, WAKE_ALL + 1);

	if (rng_chance(&w->rng, 1, 2) && w->model[i].class && w->model[i].class <= CLASSES)
		class = w->model[i].class;
	wakes &= rng_below(&w->rng, WAKE_ALL + 1); /* few, mostly */
	model_refused(w, i, class, wakes);
	CHECK_INT(pending_refused(w->q, &w->items[i], class, wakes, w->now_ms), 0);
}

static void lose(struct world *w, int i)
{
	if (++w->model[i].failures == 2)
		pass_on(w, i);
	model_back_off(w, i);
	pending_failed(w->q, &w->items[i], w->now_ms);
}

/* Placed; and then it may come back. */
static void land(struct world *w, int i)
{
	struct model_item *m = &w->model[i], kept = *m;

	model_remove(w, i);
	pending_placed(w->q, &w->items[i]);
	if (rng_chance(&w->rng, 1, 2))
		return;
	*m = kept;
	m->class = 0;
	lose(w, i);
}

/* What is out gets its answer. */
static void answer(struct world *w)
{
	int i = random_in(w, PENDING_OUT);
	uint32_t what = rng_below(&w->rng, 10);

	if (i < 0)
		return;
	if (what < 6) {
		refuse(w, i);
	} else if (what == 6) {
		lose(w, i);
	} else if (what == 7) {
		w->model[i].place = PENDING_READY;
		pending_again(w->q, &w->items[i]);
	} else if (what == 8) {
		pass_on(w, i);
		pending_follow(w->q, &w->items[i]);
	} else {
		land(w, i);
	}
}

static void disturb(struct world *w)
{
	int i = (int)rng_below(&w->rng, ITEMS);
	struct model_item *m = &w->model[i];

	if (m->place == ABSENT) {
		pending_remove(w->q, &w->items[i]);
	} else if (rng_chance(&w->rng, 1, 3)) {
		pending_remove(w->q, &w->items[i]);
		model_remove(w, i);
	} else if (rng_chance(&w->rng, 1, 2)) {
		order_anew(w, i);
		pending_moved(w->q, &w->items[i]);
	} else {
		if (rng_chance(&w->rng, 1, 2))
			order_anew(w, i);
		m->refusals = m->failures = 0;
		m->changed = m->place == PENDING_OUT;
		if (m->place == PENDING_PARKED)
			unpark(w, i);
		else if (m->place == PENDING_BACKOFF)
			m->place = PENDING_READY;
		pending_wake_item(w->q, &w->items[i], w->now_ms);
	}
}

static void event(struct world *w)
{
	uint32_t kinds = 1u << rng_below(&w->rng, WAKES);
	uint64_t salt = rng_next(&w->rng) % 3;

	if (rng_chance(&w->rng, 1, 4))
		kinds |= 1u << rng_below(&w->rng, WAKES);
	model_event(w, kinds, salt);
	pending_event(w->q, (enum pending_wake)kinds, w->now_ms, helps, &salt);
}

static void tick(struct world *w)
{
	uint64_t next_ms = UINT64_MAX;

	w->now_ms += rng_below(&w->rng, rng_chance(&w->rng, 1, 50) ? 2 * PATIENCE_MS : BACKOFF_MS);
	model_tick(w);
	for (int i = 0; i < ITEMS; i++) {
		const struct model_item *m = &w->model[i];
		if (m->place == PENDING_BACKOFF)
			next_ms = MIN(next_ms, m->until_ms - w->now_ms);
		if (m->place == PENDING_PARKED)
			next_ms = MIN(next_ms, m->parked_ms + PATIENCE_MS - w->now_ms);
	}
	CHECKF(pending_tick(w->q, w->now_ms) == next_ms, "seed %" PRIu64, w->seed);
}

static void compare(const struct world *w, int step)
{
	uint32_t counts[ABSENT + 1] = { 0 };

	for (int i = 0; i < ITEMS; i++) {
		const struct pending_item *item = &w->items[i];
		int place = item->added ? item->place : ABSENT;
		CHECKF(place == w->model[i].place,
		       "seed %" PRIu64 " step %d: item %d is in place %d, expected %d", w->seed,
		       step, i, place, w->model[i].place);
		counts[place]++;
	}
	for (int place = 0; place < ABSENT; place++)
		CHECKF(pending_count(w->q, place) == counts[place],
		       "seed %" PRIu64 " step %d: place %d", w->seed, step, place);
	CHECKF(pending_has_ready(w->q) == (first_of(w, PENDING_READY, 0) >= 0 ||
					   first_of(w, PENDING_BACKOFF, 0) >= 0),
	       "seed %" PRIu64 " step %d", w->seed, step);
}

static void step(struct world *w)
{
	uint32_t what = rng_below(&w->rng, 100);

	if (what < 15)
		add(w);
	else if (what < 45)
		pop(w);
	else if (what < 75)
		answer(w);
	else if (what < 82)
		disturb(w);
	else if (what < 93)
		event(w);
	else
		tick(w);
}

/* Nothing is lost: in the end all come out, once, in their order. */
static void drain(struct world *w)
{
	uint32_t left = 0;

	w->now_ms += 2 * PATIENCE_MS;
	for (int i = 0; i < ITEMS; i++) {
		left += w->model[i].place != ABSENT;
		if (w->model[i].place == PENDING_OUT)
			lose(w, i);
	}
	w->now_ms += 2 * PATIENCE_MS;
	for (; left > 0; left--) {
		struct pending_item *item = pending_pop(w->q, w->now_ms);
		int expected = model_pop(w);
		CHECKF(item && item - w->items == expected, "seed %" PRIu64, w->seed);
		model_remove(w, (int)(item - w->items));
		pending_placed(w->q, item);
	}
	CHECK(pending_pop(w->q, w->now_ms) == NULL);
}

TEST(the_queue_does_what_its_model_does)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct world w;

		w = (struct world){ .seed = seed };
		rng_seed(&w.rng, seed);
		w.q = pending_new(&(struct pending_options){ .backoff_ms = BACKOFF_MS,
							     .backoff_max_ms = LONGEST_MS,
							     .patience_ms = PATIENCE_MS,
							     .seed = seed });
		CHECK(w.q);
		for (int i = 0; i < ITEMS; i++)
			w.model[i].place = ABSENT;
		for (int n = 0; n < STEPS; n++) {
			step(&w);
			compare(&w, n);
		}
		drain(&w);
		pending_free(w.q);
	}
}

TEST_MAIN()
