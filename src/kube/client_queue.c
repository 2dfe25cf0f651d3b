/* SPDX-License-Identifier: Apache-2.0 */
/* Places and pauses: which call goes when. */
#include "kube/client_private.h"

#include "base/attr.h"
#include "kube/telemetry.h"

void call_list_add(struct call_list *list, struct kube_call *call)
{
	call->next = NULL;
	call->prev = list->last;
	if (list->last)
		list->last->next = call;
	else
		list->first = call;
	list->last = call;
	list->len++;
}

void call_list_add_first(struct call_list *list, struct kube_call *call)
{
	call->prev = NULL;
	call->next = list->first;
	if (list->first)
		list->first->prev = call;
	else
		list->last = call;
	list->first = call;
	list->len++;
}

void call_list_remove(struct call_list *list, struct kube_call *call)
{
	if (call->prev)
		call->prev->next = call->next;
	else
		list->first = call->next;
	if (call->next)
		call->next->prev = call->prev;
	else
		list->last = call->prev;
	call->next = call->prev = NULL;
	list->len--;
}

static bool lane_may_start(const struct kube_client *client, enum lane lane)
{
	uint32_t max = client->options.max_in_flight;
	switch (lane) {
	case LANE_URGENT:
		return client->in_flight < max + CLIENT_URGENT_EXTRA;
	case LANE_USUAL:
		return client->in_flight < max;
	default: /* nobody waits, and room is left for who comes next */
		return !client->lanes[LANE_USUAL].len && client->in_background < MAX(max / 8, 1) &&
		       (client->in_flight == 0 || client->in_flight < max - max / 4);
	}
}

static void take_place(struct kube_call *call)
{
	struct kube_client *client = call->client;
	call_list_remove(&client->lanes[call->lane], call);
	call_list_add(&client->active, call);
	client->in_flight++;
	client->in_background += call->lane == LANE_BACKGROUND;
	kube_telemetry_in_flight(client->telemetry, client->in_flight);
}

void client_pump(struct kube_client *client)
{
	for (unsigned lane = 0; lane < LANES && !client->closing; lane++) {
		struct call_list *list = &client->lanes[lane];
		while (list->first && lane_may_start(client, (enum lane)lane)) {
			struct kube_call *call = list->first;
			take_place(call);
			call_start(call);
		}
	}
}

void client_requeue(struct kube_call *call)
{
	client_take_out(call);
	client_set_due(call, call->give_up_ms);
	if (call->stream) {
		call_list_add(&call->client->active, call);
		call_start(call);
		return;
	}
	call->state = CALL_QUEUED;
	call_list_add_first(&call->client->lanes[call->lane], call);
}

static void give_place_back(struct kube_call *call)
{
	struct kube_client *client = call->client;
	call_list_remove(&client->active, call);
	if (call->stream)
		return;
	client->in_flight--;
	client->in_background -= call->lane == LANE_BACKGROUND;
	kube_telemetry_in_flight(client->telemetry, client->in_flight);
}

void client_take_out(struct kube_call *call)
{
	struct kube_client *client = call->client;
	switch (call->state) {
	case CALL_QUEUED:
		call_list_remove(&client->lanes[call->lane], call);
		break;
	case CALL_ASKING:
	case CALL_FLYING:
		give_place_back(call);
		break;
	case CALL_PAUSED:
		call_list_remove(&client->paused, call);
		break;
	}
}

static bool due_before(union heap_item a, union heap_item b, void *context)
{
	(void)context;
	return ((struct kube_call *)a.ptr)->due_ms < ((struct kube_call *)b.ptr)->due_ms;
}

static void due_moved(union heap_item item, uint32_t position, void *context)
{
	(void)context;
	((struct kube_call *)item.ptr)->position = position;
}

static void alarm_rang(uv_timer_t *timer);

/* The alarm may ring early, for a call that has been put off: then it is set again. */
static void set_alarm(struct kube_client *client)
{
	union heap_item item;
	if (!heap_peek(&client->due, &item))
		return;
	uint64_t due_ms = ((struct kube_call *)item.ptr)->due_ms;
	if (due_ms == NEVER_MS ||
	    (uv_is_active((uv_handle_t *)&client->timer) && due_ms >= client->alarm_ms))
		return;
	uint64_t now_ms = uv_now(client->options.loop);
	client->alarm_ms = due_ms;
	uv_timer_start(&client->timer, alarm_rang, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

/* At most as many as there are when it begins: a call that fails at once again and again
 * would keep the loop here. */
static void alarm_rang(uv_timer_t *timer)
{
	struct kube_client *client = timer->data;
	union heap_item item;
	uint64_t now_ms = uv_now(client->options.loop);
	for (uint32_t left = client->due.len; left && !client->closing; left--) {
		if (!heap_peek(&client->due, &item))
			break;
		struct kube_call *call = item.ptr;
		if (call->due_ms > now_ms)
			break;
		call_is_due(call);
	}
	if (client->closing)
		return;
	set_alarm(client);
	client_pump(client);
}

void client_queue_init(struct kube_client *client)
{
	heap_init(&client->due, due_before, due_moved, NULL);
	uv_timer_init(client->options.loop, &client->timer); /* cannot fail */
	client->timer.data = client;
}

void client_set_due(struct kube_call *call, uint64_t due_ms)
{
	call->due_ms = due_ms;
	heap_fix(&call->client->due, call->position);
	set_alarm(call->client);
}

void client_pause(struct kube_call *call, uint32_t wait_ms)
{
	struct kube_client *client = call->client;
	client_take_out(call);
	call->state = CALL_PAUSED;
	call_list_add(&client->paused, call);
	client_set_due(call, client_now_ms(client) + wait_ms);
}

/* The loop's time stands still while it works; what is measured from it would be short. */
uint64_t client_now_ms(struct kube_client *client)
{
	uv_update_time(client->options.loop);
	return uv_now(client->options.loop);
}
