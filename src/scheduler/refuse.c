/* SPDX-License-Identifier: Apache-2.0 */
/* refuse.c - what cannot be placed now: why, and what would help.
 *
 * Reasons are looked for once for all pods that ask for the same, as long as nothing in the
 * cluster changes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/hash.h"
#include "engine/explain.h"
#include "scheduler/scheduler_private.h"

/* Whatever it waits for, it is looked at again when it is changed itself, and when what it
 * names or how we decide changes. */
#define WAKES_ALWAYS ((uint32_t)(WAKE_SELF | WAKE_OBJECT | WAKE_CONFIG))
#define WAKES_WRONG  (WAKES_ALWAYS | (uint32_t)(WAKE_NODE | WAKE_GPU | WAKE_VOLUME))
#define WAKES_ROOM   ((uint32_t)(WAKE_POD_LEFT | WAKE_NODE))
#define WAKES_CARD   ((uint32_t)(WAKE_POD_LEFT | WAKE_NODE | WAKE_GPU | WAKE_LOCK))

uint32_t refuse_wakes(enum verdict verdict)
{
	switch (verdict) {
	case NODE_GONE:
	case UNSCHEDULABLE:
	case WRONG_NODE:
	case WRONG_LABELS:
	case WRONG_DOMAIN:
	case NO_SPREAD_LABEL:
	case TAINTED:
		return WAKE_NODE;
	case WRONG_VOLUME_NODE:
	case WRONG_VOLUME_ZONE:
	case NO_VOLUME:
	case NO_VOLUME_ROOM:
		return WAKE_NODE | WAKE_VOLUME;
	case DISK_IN_USE:
	case CLAIM_IN_USE:
	case TOO_MANY_VOLUMES:
		return WAKES_ROOM | WAKE_VOLUME;
	case NO_NETWORK:
	case NO_RDMA:
	case NO_CUFILE:
		return WAKE_NODE | WAKE_GPU;
	case NOT_NEAR:
	case UNEVEN:
	case NOT_APART:
	case KEPT_AWAY:
		return WAKE_POD_CAME | WAKES_ROOM;
	case TOO_MANY_PODS:
	case NO_PORT:
	case NO_CPU:
	case NO_MEMORY:
	case NO_EPHEMERAL:
	case NO_EXTENDED:
		return WAKES_ROOM;
	default:
		return WAKES_CARD;
	}
}

static uint32_t wakes_of(const uint32_t by_verdict[VERDICT_COUNT])
{
	uint32_t wakes = WAKES_ALWAYS | WAKE_NODE;

	for (unsigned v = FITS + 1; v < VERDICT_COUNT; v++)
		if (by_verdict[v])
			wakes |= refuse_wakes(v);
	return wakes;
}

static void set_asked(struct scheduler *s, struct task *task, const struct request *r)
{
	struct asked *asked = r ? asked_take(&s->asked, r) : NULL;

	asked_release(&s->asked, task->asked);
	task->asked = asked;
}

/* Which reasons there are, of however many nodes: all else in the message is figures, and the
 * name of the node that is nearest. */
static uint64_t gist_of(const struct explanation *x)
{
	uint8_t reasons[VERDICT_COUNT + EXTENDED_MAX];

	for (unsigned v = 0; v < VERDICT_COUNT; v++)
		reasons[v] = x->by_verdict[v] > 0;
	for (unsigned i = 0; i < EXTENDED_MAX; i++)
		reasons[VERDICT_COUNT + i] = x->by_extended[i] > 0;
	return hash_bytes(reasons, sizeof(reasons), 1);
}

/* What kube-scheduler adds when nobody can be evicted: nodes where that could help, and others. */
static void put_preemption(const uint32_t by_verdict[VERDICT_COUNT], bool preempts,
			   struct strbuf *out)
{
	uint32_t helps = by_verdict[FITS], helps_not = 0;
	char reasons[2][64];

	if (!preempts) {
		strbuf_puts(out, " preemption: not eligible due to preemptionPolicy=Never.");
		return;
	}
	for (unsigned v = FITS + 1; v < VERDICT_COUNT; v++)
		*(verdict_curable(v) ? &helps : &helps_not) += by_verdict[v];
	if (!helps && !helps_not)
		return;
	snprintf(reasons[0], sizeof(reasons[0]), "%u No preemption victims found for incoming pod",
		 (unsigned)helps);
	snprintf(reasons[1], sizeof(reasons[1]), "%u Preemption is not helpful for scheduling",
		 (unsigned)helps_not);
	bool both = helps && helps_not;
	unsigned first = both ? strcmp(reasons[0], reasons[1]) > 0 : !helps;

	strbuf_addf(out, " preemption: 0/%u nodes are available: %s%s%s.",
		    (unsigned)(helps + helps_not), reasons[first], both ? ", " : "",
		    both ? reasons[!first] : "");
}

/* The message for such a request, found anew if anything has changed since the last one. */
static void explain(struct scheduler *s, const struct request *r, uint64_t hash)
{
	struct refusal *refusal = &s->refusal;
	struct strbuf miss CLEANUP(strbuf_done) = STRBUF_INIT;
	struct explanation x;

	if (refusal->hash == hash && refusal->epoch == s->epoch)
		return;
	explain_request(s->engine, r, &x);
	strbuf_reset(&refusal->message);
	explain_refusal(s->engine, r, &x, &refusal->message);
	explain_miss(s->engine, &x, &miss);
	if (miss.len)
		strbuf_addf(&refusal->message, " Nearest: %s.", miss.s);
	memcpy(refusal->by_verdict, x.by_verdict, sizeof(refusal->by_verdict));
	refusal->wakes = wakes_of(x.by_verdict);
	refusal->gist = gist_of(&x);
	refusal->hash = hash;
	refusal->epoch = s->epoch;
}

/* Those of another priority could have other victims, those of another map other lines. */
static uint64_t class_of(const struct wish *wish, uint64_t hash)
{
	hash ^= (uint64_t)(uint32_t)wish->priority << 1 | wish->preempts;
	if (wish->index_chosen)
		hash ^= hash_bytes(wish->workload, strlen(wish->workload), 0);
	return hash ? hash : 1;
}

void refuse_request(struct scheduler *s, struct task *task, const struct wish *wish)
{
	struct strbuf message CLEANUP(strbuf_done) = STRBUF_INIT;
	uint64_t hash = asked_hash(&s->asked, &wish->request);

	explain(s, &wish->request, hash);
	set_asked(s, task, &wish->request);
	pending_refused(s->pending, &task->unit.item, class_of(wish, hash),
			s->refusal.wakes | (wish->index_chosen ? WAKE_INDEX : 0), now_ms(s));
	strbuf_puts(&message, s->refusal.message.s);
	put_preemption(s->refusal.by_verdict, wish->preempts, &message);
	report_refused(s, task, message.s,
		       hash_bytes(&wish->preempts, sizeof(bool), s->refusal.gist));
}

/* A pod that is wrong in itself, or names what is not there: what can mend it is some object,
 * a node, or the pod.  Others' comings and goings do not, unless they have what it lacks. */
void refuse_wrong(struct scheduler *s, struct task *task, int rc, const struct err *err,
		  bool index_chosen)
{
	uint32_t wakes = WAKES_WRONG;

	if (index_chosen)
		wakes |= WAKE_INDEX;
	if (rc == -E2BIG) /* it is booked and taken back, which frees volumes too */
		wakes &= ~(uint32_t)WAKE_VOLUME;
	set_asked(s, task, NULL);
	unit_waits_no_more(s, &task->unit); /* it is not for room that it waits */
	if (rc == -ENOMEM)
		pending_failed(s->pending, &task->unit.item, now_ms(s));
	else
		pending_refused(s->pending, &task->unit.item, 0, wakes, now_ms(s));
	report_wrong(s, task, rc, err->text);
}

static void park_gang(struct scheduler *s, struct gang *gang, const struct request *r,
		      uint32_t wakes)
{
	struct asked *asked = r ? asked_take(&s->asked, r) : NULL;

	if (gang->wrong)
		wakes |= WAKES_WRONG | WAKE_POD_LEFT;
	asked_release(&s->asked, gang->asked);
	gang->asked = asked;
	pending_refused(s->pending, &gang->unit.item, 0, wakes | WAKES_ALWAYS, now_ms(s));
}

/* Whether it is told why its gang waits; not if it is wrong itself. */
static bool hears(const struct task *task)
{
	return !task->flight && !task->wrong;
}

/* The reason is one sentence, with a full stop or without. */
static void put_gang_reason(const char *reason, const uint32_t *by_verdict, bool preempts,
			    struct strbuf *out)
{
	size_t len = strlen(reason);

	strbuf_puts(out, reason);
	if (!by_verdict)
		return;
	if (!len || reason[len - 1] != '.')
		strbuf_putc(out, '.');
	put_preemption(by_verdict, preempts, out);
}

void refuse_gang(struct scheduler *s, struct gang *gang, const struct request *r,
		 const uint32_t *by_verdict, bool preempts, const char *reason)
{
	struct strbuf why CLEANUP(strbuf_done) = STRBUF_INIT;

	put_gang_reason(reason, by_verdict, preempts, &why);
	park_gang(s, gang, r, by_verdict ? wakes_of(by_verdict) | WAKES_CARD : 0);
	for (size_t i = 0; *reason && i < gang->tasks.len; i++)
		if (hears(gang->tasks.items[i]))
			report_waits(s, gang->tasks.items[i], why.s, false);
}

void refuse_extra(struct scheduler *s, struct gang *gang, const struct request *r, bool preempts)
{
	struct strbuf message CLEANUP(strbuf_done) = STRBUF_INIT;

	explain(s, r, asked_hash(&s->asked, r));
	park_gang(s, gang, gang->kinds.len == 1 ? r : NULL, s->refusal.wakes);
	strbuf_addf(&message, "%s There is no room for a further member of its gang.",
		    s->refusal.message.s);
	put_preemption(s->refusal.by_verdict, preempts, &message);
	/* The nearest node is another with every try, but no news. */
	for (size_t i = 0; i < gang->tasks.len; i++)
		if (hears(gang->tasks.items[i]))
			report_refused(s, gang->tasks.items[i], message.s,
				       hash_bytes("extra", 5, s->refusal.gist));
}
