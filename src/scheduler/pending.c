/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/pending.h"

#include "base/heap.h"
#include "base/map.h"
#include "base/vec.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* Items that ask for the same.  It lives as long as an item is parked in it or woken from it. */
struct pending_class {
	uint64_t id; /* 0: of one item only, and not in the map */
	struct heap parked;
	uint32_t items;	     /* parked here, or woken from here */
	uint32_t wakes;	     /* of all who were parked since it was last empty */
	uint32_t at[WAKES];  /* position in pending.waiting of that kind */
	uint64_t last_event; /* that was judged */
	struct pending_class *next, *previous;
};

struct class_list {
	struct pending_class **classes;
	uint32_t len;
	size_t cap;
};

struct pending {
	struct pending_options options;
	struct heap ready; /* by priority, then arrival */
	struct heap due;   /* what backs off, by time */
	struct heap early; /* what of it may come early, by priority, then arrival */
	struct map classes;
	struct pending_class *first_class;
	struct class_list waiting[WAKES];
	struct pending_item *parked_first, *parked_last; /* by time */
	uint64_t events;
	uint64_t happened[WAKES]; /* number of the last event of each kind */
	uint32_t counts[PENDING_PARKED + 1];
};

/* The first of all who are awake or parked in a class. */
static bool goes_before(const struct pending_item *a, const struct pending_item *b)
{
	if (a->priority != b->priority)
		return a->priority > b->priority;
	return a->arrival < b->arrival;
}

static bool urgent_first(union heap_item a, union heap_item b, void *context)
{
	(void)context;
	return goes_before(a.ptr, b.ptr);
}

static bool due_first(union heap_item a, union heap_item b, void *context)
{
	const struct pending_item *one = a.ptr, *other = b.ptr;

	(void)context;
	return one->until_ms < other->until_ms;
}

static void set_position(union heap_item item, uint32_t position, void *context)
{
	(void)context;
	((struct pending_item *)item.ptr)->position = position;
}

static void set_early(union heap_item item, uint32_t position, void *context)
{
	(void)context;
	((struct pending_item *)item.ptr)->early = position;
}

void pending_set_backoff(struct pending *q, uint32_t backoff_ms, uint32_t backoff_max_ms)
{
	q->options.backoff_ms = backoff_ms ? backoff_ms : 1000;
	q->options.backoff_max_ms = backoff_max_ms ? backoff_max_ms : 10000;
}

struct pending *pending_new(const struct pending_options *options)
{
	struct pending *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->options = *options;
	if (!q->options.max_items)
		q->options.max_items = 1000000;
	pending_set_backoff(q, options->backoff_ms, options->backoff_max_ms);
	if (!q->options.patience_ms)
		q->options.patience_ms = 300000;
	heap_init(&q->ready, urgent_first, set_position, NULL);
	heap_init(&q->due, due_first, set_position, NULL);
	heap_init(&q->early, urgent_first, set_early, NULL);
	map_init(&q->classes, options->seed);
	return q;
}

void pending_free(struct pending *q)
{
	if (!q)
		return;
	for (struct pending_class *c = q->first_class, *next; c; c = next) {
		next = c->next;
		heap_done(&c->parked);
		free(c);
	}
	for (uint32_t kind = 0; kind < WAKES; kind++)
		free(q->waiting[kind].classes);
	map_done(&q->classes);
	heap_done(&q->early);
	heap_done(&q->due);
	heap_done(&q->ready);
	free(q);
}

/* Classes */

static struct pending_class *class_new(struct pending *q, uint64_t id)
{
	struct pending_class *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->id = id;
	heap_init(&c->parked, urgent_first, set_position, NULL);
	if (id && map_put(&q->classes, (const char *)&c->id, sizeof(c->id), c) < 0) {
		free(c);
		return NULL;
	}
	c->next = q->first_class;
	if (c->next)
		c->next->previous = c;
	q->first_class = c;
	return c;
}

static void class_leave(struct pending *q, struct pending_class *c)
{
	if (--c->items > 0)
		return;
	if (c->id)
		map_del(&q->classes, (const char *)&c->id, sizeof(c->id));
	if (c->next)
		c->next->previous = c->previous;
	*(c->previous ? &c->previous->next : &q->first_class) = c->next;
	heap_done(&c->parked);
	free(c);
}

/* Has events of these kinds find the class.  0, or -ENOMEM: then some of them do. */
static int class_wait(struct pending *q, struct pending_class *c, uint32_t wakes)
{
	for (uint32_t kind = 0; kind < WAKES; kind++) {
		struct class_list *list = &q->waiting[kind];

		if (!(wakes & ~c->wakes & 1u << kind))
			continue;
		if (vec_grow(&list->classes, &list->cap, (size_t)list->len + 1,
			     sizeof(struct pending_class *)) < 0)
			return -ENOMEM;
		c->at[kind] = list->len;
		list->classes[list->len++] = c;
		c->wakes |= 1u << kind;
	}
	return 0;
}

static void class_sleep(struct pending *q, struct pending_class *c)
{
	for (uint32_t kind = 0; kind < WAKES; kind++) {
		struct class_list *list = &q->waiting[kind];

		if (!(c->wakes & 1u << kind))
			continue;
		struct pending_class *last = list->classes[--list->len];
		list->classes[c->at[kind]] = last;
		last->at[kind] = c->at[kind];
	}
	c->wakes = 0;
}

/* Places */

static void set_place(struct pending *q, struct pending_item *item, enum pending_place place)
{
	q->counts[item->place]--;
	q->counts[place]++;
	item->place = (uint8_t)place;
}

/* There is room in ready, due and early for every item: see reserve(). */
static void push(struct heap *heap, struct pending_item *item)
{
	int r = heap_push(heap, (union heap_item){ .ptr = item });

	assert(r == 0);
	(void)r;
}

static void become_ready(struct pending *q, struct pending_item *item)
{
	push(&q->ready, item);
	set_place(q, item, PENDING_READY);
}

static void unpark(struct pending *q, struct pending_item *item)
{
	struct pending_class *c = item->class;

	heap_remove(&c->parked, item->position);
	if (c->parked.len == 0)
		class_sleep(q, c);
	*(item->previous ? &item->previous->next : &q->parked_first) = item->next;
	*(item->next ? &item->next->previous : &q->parked_last) = item->previous;
	item->next = item->previous = NULL;
}

/* From wherever it is to out.  It still belongs to the class that it was parked in. */
static void take(struct pending *q, struct pending_item *item)
{
	if (item->place == PENDING_READY)
		heap_remove(&q->ready, item->position);
	if (item->place == PENDING_BACKOFF) {
		heap_remove(&q->due, item->position);
		if (item->early != HEAP_NONE)
			heap_remove(&q->early, item->early);
	}
	if (item->place == PENDING_PARKED)
		unpark(q, item);
	set_place(q, item, PENDING_OUT);
}

static void wake_up(struct pending *q, struct pending_item *item)
{
	take(q, item);
	become_ready(q, item);
}

static void wake_first(struct pending *q, struct pending_class *c)
{
	union heap_item first;

	if (heap_peek(&c->parked, &first))
		wake_up(q, first.ptr);
}

/* The item no longer speaks for its class, though something happened that may help: let the
 * next one find out. */
static void pass_on(struct pending *q, struct pending_item *item)
{
	struct pending_class *c = item->class;

	if (!c)
		return;
	item->class = NULL;
	wake_first(q, c);
	class_leave(q, c);
}

/* Backoff */

static uint64_t root(uint64_t square)
{
	uint64_t result = 0;

	for (uint64_t bit = 1ull << 31; bit; bit >>= 1) {
		if ((result | bit) * (result | bit) <= square)
			result |= bit;
	}
	return result;
}

static uint64_t backoff_max(const struct pending *q, const struct pending_item *item)
{
	uint64_t max = q->options.backoff_max_ms, square;

	if (item->members < 2)
		return max;
	/* The root of the whole product, so that a gang of 2 has 1.41 times, not once. */
	return root(__builtin_mul_overflow(max * max, item->members, &square) ? UINT64_MAX
									      : square);
}

static void back_off(struct pending *q, struct pending_item *item, uint64_t now_ms)
{
	uint32_t times = item->failures ? item->failures : item->refusals;
	uint64_t max = backoff_max(q, item), wait = q->options.backoff_ms;

	while (--times > 0 && wait < max)
		wait *= 2;
	item->until_ms = now_ms + (wait < max ? wait : max);
	item->early = HEAP_NONE;
	push(&q->due, item);
	if (!item->failures)
		push(&q->early, item);
	set_place(q, item, PENDING_BACKOFF);
}

/* What the caller does */

/* Room for one item more wherever an item goes without being asked. */
static int reserve(struct pending *q, uint32_t items)
{
	struct heap *heaps[] = { &q->ready, &q->due, &q->early };

	for (uint32_t i = 0; i < sizeof(heaps) / sizeof(heaps[0]); i++) {
		size_t cap = heaps[i]->cap;
		if (vec_grow(&heaps[i]->items, &cap, items, sizeof(union heap_item)) < 0)
			return -ENOMEM;
		heaps[i]->cap = (uint32_t)cap;
	}
	return 0;
}

static uint32_t items_of(const struct pending *q)
{
	uint32_t items = 0;

	for (uint32_t place = 0; place <= PENDING_PARKED; place++)
		items += q->counts[place];
	return items;
}

/* A place in the queue, for an item that is out then. */
static int enter(struct pending *q, struct pending_item *item)
{
	uint32_t items = items_of(q);

	if (items >= q->options.max_items)
		return -ENOSPC;
	if (reserve(q, items + 1) < 0)
		return -ENOMEM;
	item->added = 1;
	item->placed = 0;
	item->place = PENDING_OUT;
	q->counts[PENDING_OUT]++;
	return 0;
}

int pending_add(struct pending *q, struct pending_item *item, uint64_t now_ms)
{
	(void)now_ms; /* no backoff yet */
	if (item->added)
		return -EEXIST;
	*item = (struct pending_item){ .priority = item->priority,
				       .arrival = item->arrival,
				       .members = item->members };
	int r = enter(q, item);

	if (r == 0)
		become_ready(q, item);
	return r;
}

void pending_remove(struct pending *q, struct pending_item *item)
{
	item->placed = 0;
	if (!item->added)
		return;
	bool woken = item->place != PENDING_PARKED;

	take(q, item);
	item->added = 0;
	q->counts[PENDING_OUT]--;
	if (woken) {
		pass_on(q, item);
		return;
	}
	class_leave(q, item->class);
	item->class = NULL;
}

struct pending_item *pending_pop(struct pending *q, uint64_t now_ms)
{
	union heap_item first;

	pending_tick(q, now_ms);
	if (!heap_peek(&q->ready, &first) && !heap_peek(&q->early, &first))
		return NULL;
	struct pending_item *item = first.ptr;

	take(q, item);
	item->popped = q->events;
	item->changed = 0;
	return item;
}

void pending_follow(struct pending *q, struct pending_item *item)
{
	if (item->added)
		pass_on(q, item);
}

void pending_placed(struct pending *q, struct pending_item *item)
{
	if (!item->added)
		return;
	assert(item->place == PENDING_OUT);
	pending_remove(q, item);
	item->placed = 1;
}

/* Whether the decision may be another one by now. */
static bool happened_since(const struct pending *q, const struct pending_item *item)
{
	for (uint32_t kind = 0; kind < WAKES; kind++) {
		if (item->wakes & 1u << kind && q->happened[kind] > item->popped)
			return true;
	}
	return item->changed;
}

static struct pending_class *class_of(struct pending *q, uint64_t id)
{
	struct pending_class *c = id ? map_get(&q->classes, (const char *)&id, sizeof(id)) : NULL;

	return c ? c : class_new(q, id);
}

static int park(struct pending *q, struct pending_item *item, uint64_t id, uint64_t now_ms)
{
	struct pending_class *c = class_of(q, id);

	if (!c)
		return -ENOMEM;
	if (c != item->class) {
		pass_on(q, item);
		item->class = c;
		c->items++;
	}
	if (class_wait(q, c, item->wakes) < 0 ||
	    heap_push(&c->parked, (union heap_item){ .ptr = item }) < 0) {
		if (c->parked.len == 0)
			class_sleep(q, c);
		return -ENOMEM;
	}
	item->parked_ms = now_ms;
	item->next = NULL;
	item->previous = q->parked_last;
	*(q->parked_last ? &q->parked_last->next : &q->parked_first) = item;
	q->parked_last = item;
	set_place(q, item, PENDING_PARKED);
	return 0;
}

static void count(uint32_t *number)
{
	if (*number < UINT32_MAX)
		(*number)++;
}

int pending_refused(struct pending *q, struct pending_item *item, uint64_t class, uint32_t wakes,
		    uint64_t now_ms)
{
	if (!item->added)
		return 0;
	assert(item->place == PENDING_OUT);
	count(&item->refusals);
	item->failures = 0;
	item->wakes = wakes & WAKE_ALL;
	if (happened_since(q, item)) {
		back_off(q, item, now_ms);
		return 0;
	}
	int r = park(q, item, class, now_ms);

	if (r < 0)
		pending_failed(q, item, now_ms);
	return r;
}

int pending_failed(struct pending *q, struct pending_item *item, uint64_t now_ms)
{
	int r = item->placed ? enter(q, item) : 0;

	if (r < 0 || !item->added || item->place == PENDING_BACKOFF ||
	    item->place == PENDING_PARKED)
		return r;
	take(q, item);
	count(&item->failures);
	if (item->failures == 2)
		pass_on(q, item);
	back_off(q, item, now_ms);
	return 0;
}

void pending_again(struct pending *q, struct pending_item *item)
{
	if (!item->added)
		return;
	assert(item->place == PENDING_OUT);
	become_ready(q, item);
}

void pending_moved(struct pending *q, struct pending_item *item)
{
	if (!item->added)
		return;
	if (item->place == PENDING_READY)
		heap_fix(&q->ready, item->position);
	if (item->place == PENDING_PARKED)
		heap_fix(&item->class->parked, item->position);
	if (item->place == PENDING_BACKOFF && item->early != HEAP_NONE)
		heap_fix(&q->early, item->early);
}

void pending_wake_item(struct pending *q, struct pending_item *item, uint64_t now_ms)
{
	(void)now_ms; /* whatever it waited for */
	if (!item->added)
		return;
	item->refusals = item->failures = 0;
	item->changed = item->place == PENDING_OUT;
	if (item->place == PENDING_READY)
		heap_fix(&q->ready, item->position);
	else if (item->place != PENDING_OUT)
		wake_up(q, item);
}

/* Backwards: a class that is empty afterwards leaves its place to one that was judged. */
static void judge(struct pending *q, struct class_list *list,
		  bool (*helps)(void *context, struct pending_item *item), void *context)
{
	for (uint32_t i = list->len; i > 0; i--) {
		struct pending_class *c = list->classes[i - 1];
		struct pending_item *first = c->parked.items[0].ptr;

		if (c->last_event == q->events)
			continue;
		c->last_event = q->events;
		if (!helps || helps(context, first))
			wake_up(q, first);
	}
}

void pending_event(struct pending *q, enum pending_wake wake, uint64_t now_ms,
		   bool (*helps)(void *context, struct pending_item *item), void *context)
{
	(void)now_ms; /* an event ends a wait at once: the order of what is ready is fair */
	q->events++;
	for (uint32_t kind = 0; kind < WAKES; kind++) {
		if (!((uint32_t)wake & 1u << kind))
			continue;
		q->happened[kind] = q->events;
		judge(q, &q->waiting[kind], helps, context);
	}
}

void pending_each(const struct pending *q, enum pending_wake wake,
		  void (*each)(void *context, struct pending_item *item), void *context)
{
	for (uint32_t kind = 0; kind < WAKES; kind++) {
		const struct class_list *list = &q->waiting[kind];

		for (uint32_t i = 0; (uint32_t)wake & 1u << kind && i < list->len; i++)
			each(context, list->classes[i]->parked.items[0].ptr);
	}
}

uint64_t pending_tick(struct pending *q, uint64_t now_ms)
{
	uint64_t next_ms = UINT64_MAX;
	union heap_item first;

	while (heap_peek(&q->due, &first)) {
		struct pending_item *item = first.ptr;
		if (item->until_ms > now_ms) {
			next_ms = item->until_ms - now_ms;
			break;
		}
		wake_up(q, item);
	}
	for (struct pending_item *item; (item = q->parked_first);) {
		uint64_t until_ms = item->parked_ms + q->options.patience_ms;
		if (until_ms > now_ms)
			return until_ms - now_ms < next_ms ? until_ms - now_ms : next_ms;
		wake_up(q, item);
	}
	return next_ms;
}

uint32_t pending_count(const struct pending *q, enum pending_place place)
{
	return q->counts[place];
}

bool pending_has_ready(const struct pending *q)
{
	return q->ready.len > 0 || q->early.len > 0;
}
