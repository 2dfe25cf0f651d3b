/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/closed.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "scheduler/inventory.h"
#include "scheduler/locks.h"
#include "scheduler/scheduler_private.h"

#define LOOK_MS 1000

static bool is_closed(const struct scheduler *s, const char *node)
{
	for (size_t i = 0; i < s->closed.len; i++)
		if (strcmp(s->closed.items[i], node) == 0)
			return true;
	return false;
}

void closed_add(struct scheduler *s, const char *node, const char *why)
{
	char *name = is_closed(s, node) ? NULL : strdup(node);

	if (name && vec_push(&s->closed, name) < 0) {
		free(name);
		return; /* without an entry it would never be opened again */
	}
	if (name)
		log_warn(s->log, "no GPU of a node can be locked", LOG_STR("node", node),
			 LOG_STR("why", why));
	/* Also where it is known: a node that was deleted and made again is open. */
	if (name || is_closed(s, node))
		inventory_close(s->inventory, node, true);
}

void closed_tick(struct scheduler *s, uint64_t now)
{
	size_t kept = 0;

	if (!s->closed.len || now < s->closed_ms)
		return;
	s->closed_ms = now + LOOK_MS;
	for (size_t i = 0; i < s->closed.len; i++) {
		char *node = s->closed.items[i];

		if (!locks_can_take(s->locks, node)) {
			s->closed.items[kept++] = node;
			continue;
		}
		log_info(s->log, "GPUs of a node can be locked again", LOG_STR("node", node));
		inventory_close(s->inventory, node, false);
		free(node);
	}
	s->closed.len = kept;
}

void closed_done(struct scheduler *s)
{
	for (size_t i = 0; i < s->closed.len; i++)
		free(s->closed.items[i]);
	vec_done(&s->closed);
}
