/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/residents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "dialect/dialect.h"
#include "dialect/keys.h"
#include "engine/adopt.h"
#include "engine/engine.h"
#include "kube/object.h"
#include "scheduler/budgets.h"
#include "scheduler/inventory.h"
#include "scheduler/lookup.h"
#include "scheduler/residents_private.h"
#include "wire/json.h"

#define ARENA_MAX ((size_t)16 << 20)

int residents_new(const struct residents_options *options, struct residents **ret, struct err *err)
{
	struct residents *residents = calloc(1, sizeof(*residents));

	if (!residents)
		return err_set(err, ENOMEM, "out of memory");
	residents->options = *options;
	residents->cluster = engine_cluster(options->engine);
	map_init(&residents->by_uid, options->seed);
	map_init(&residents->hosts, options->seed);
	arena_init(&residents->arena, ARENA_MAX);
	*ret = residents;
	return 0;
}

void residents_free(struct residents *residents)
{
	struct map_entry entry;

	if (!residents)
		return;
	for (uint32_t at = 0; map_next(&residents->by_uid, &at, &entry);) {
		struct resident *r = entry.value;

		guest_free(r->guest);
		free(r);
	}
	for (uint32_t at = 0; map_next(&residents->hosts, &at, &entry);)
		free(entry.value);
	map_done(&residents->by_uid);
	map_done(&residents->hosts);
	arena_done(&residents->arena);
	free(residents);
}

struct resident *resident_find(const struct residents *residents, const char *uid)
{
	return map_get(&residents->by_uid, uid, strlen(uid));
}

const struct kube_object *residents_find(const struct residents *residents, const char *uid)
{
	const struct resident *r = resident_find(residents, uid);

	return r ? r->pod : NULL;
}

static struct host *host_get(struct residents *residents, const char *name)
{
	size_t len = strlen(name);
	struct host *host = map_get(&residents->hosts, name, len);

	if (host)
		return host;
	host = calloc(1, sizeof(*host) + len + 1);
	if (!host)
		return NULL;
	memcpy(host->name, name, len);
	if (map_put(&residents->hosts, host->name, len, host) == 0)
		return host;
	free(host);
	return NULL;
}

static void host_forget(struct residents *residents, struct host *host)
{
	if (host->first)
		return;
	map_del(&residents->hosts, host->name, strlen(host->name));
	free(host);
}

static void host_add(struct host *host, struct resident *r)
{
	r->host = host;
	r->previous = NULL;
	r->next = host->first;
	if (r->next)
		r->next->previous = r;
	host->first = r;
}

static void host_remove(struct residents *residents, struct resident *r)
{
	if (r->previous)
		r->previous->next = r->next;
	else
		r->host->first = r->next;
	if (r->next)
		r->next->previous = r->previous;
	host_forget(residents, r->host);
}

static bool unbook(struct residents *residents, const char *uid, uint32_t *node)
{
	uint32_t number = cluster_pod_find(residents->cluster, uid);

	if (number == POD_NONE)
		return false;
	*node = cluster_pod(residents->cluster, number)->node;
	cluster_pod_remove(residents->cluster, number);
	return true;
}

struct resident *resident_get(struct residents *residents, const char *uid, const char *node)
{
	struct resident *r = resident_find(residents, uid);
	struct host *host = host_get(residents, node);
	size_t len = strlen(uid);
	uint32_t was;

	if (!host || (r && r->host == host))
		return host ? r : NULL;
	if (r) {
		/* No pod ever moves: what was known of it was wrong. */
		unbook(residents, uid, &was);
		host_remove(residents, r);
		host_add(host, r);
		return r;
	}
	r = calloc(1, sizeof(*r) + len + 1);
	if (r)
		memcpy(r->uid, uid, len);
	if (!r || map_put(&residents->by_uid, r->uid, len, r) < 0) {
		free(r);
		host_forget(residents, host);
		return NULL;
	}
	host_add(host, r);
	return r;
}

void resident_forget(struct residents *residents, struct resident *r)
{
	host_remove(residents, r);
	map_del(&residents->by_uid, r->uid, strlen(r->uid));
	guest_free(r->guest);
	free(r);
}

void resident_lacks(const struct residents *residents, struct resident *r, uint32_t holds)
{
	uint32_t number = cluster_pod_find(residents->cluster, r->uid);

	r->lacks =
		number != POD_NONE && cluster_pod(residents->cluster, number)->holds_count < holds;
	r->host->lacks = r->host->lacks || r->lacks;
}

static bool same_resources(const struct pod *pod, const struct request *r)
{
	if (memcmp(&pod->needs, &r->needs, sizeof(pod->needs)) != 0 ||
	    pod->extended_count != r->extended_count)
		return false;
	for (unsigned i = 0; i < r->extended_count; i++)
		if (pod->extended[i].resource != r->extended[i].resource ||
		    pod->extended[i].amount != r->extended[i].amount)
			return false;
	return true;
}

/* What it is, whatever it holds. */
static bool same_identity(const struct pod *pod, const struct residence *now)
{
	return pod->subject == now->wish.request.subject &&
	       pod->rules == now->wish.request.rules && pod->soft == now->wish.request.soft &&
	       pod->priority == now->spec.priority && pod->gang == now->spec.gang;
}

/* Facts that cost the engine nothing; whether one of them matters to others. */
static bool update_facts(struct residents *residents, uint32_t number, const struct residence *now)
{
	struct cluster *c = residents->cluster;
	bool was_ending = cluster_pod(c, number)->ending;

	cluster_pod_started(c, number, now->spec.started);
	cluster_pod_budget(c, number, now->spec.budget);
	cluster_pod_endless(c, number, now->spec.endless);
	if (now->spec.ending)
		cluster_pod_ending(c, number);
	return now->spec.ending && !was_ending;
}

static int book(struct residents *residents, uint32_t node, const struct residence *now,
		const struct assignment *known)
{
	uint32_t number;

	return adopt_pod(residents->cluster, &now->spec, &now->wish.request, node, known, &number);
}

/* The parts of cards that it has, to be kept. */
static void holds_kept(const struct pod *pod, struct assignment *ret)
{
	*ret = (struct assignment){ .weakest_gbps = UINT32_MAX };
	for (uint16_t i = 0; i < pod->holds_count && i < HOLD_MAX; i++) {
		ret->holds[ret->count++] = pod->holds[i];
		ret->gpus |= gpuset_one(pod->holds[i].gpu);
	}
}

/* Brings the record of a pod that the engine has up to date. */
static int rebook(struct residents *residents, struct resident *r, uint32_t number, uint32_t node,
		  struct residence *now, enum resident_change *ret)
{
	const struct pod *pod = cluster_pod(residents->cluster, number);
	bool same_node = pod->node == node;
	bool same_holds =
		same_node && (now->has_known ? holds_equal(pod, &now->known) : !r->lacks);
	bool same_needs = same_resources(pod, &now->wish.request);
	struct assignment kept;

	*ret = RESIDENT_SAME;
	/* Assumed by us before it was seen here: that was read from the same pod. */
	if (same_holds && (!r->seen || (same_needs && same_identity(pod, now)))) {
		if (update_facts(residents, number, now))
			*ret = RESIDENT_CHANGED;
		return 0;
	}
	holds_kept(pod, &kept);
	cluster_pod_remove(residents->cluster, number);
	*ret = same_holds && same_needs ? RESIDENT_CHANGED : RESIDENT_SHRANK;
	if (same_holds)
		return book(residents, node, now, &kept);
	return book(residents, node, now, now->has_known ? &now->known : NULL);
}

/* How many parts of cards it holds, or must have been given by whoever bound it. */
static uint32_t holds_of(const struct residence *now)
{
	const struct request *r = &now->wish.request;
	uint32_t holds = 0;

	if (now->has_known)
		return now->known.count;
	for (unsigned i = 0; i < r->asks_count; i++)
		holds += r->asks[i].count;
	return holds;
}

/* Books the pod as its document says, if its node is there. */
static int settle(struct residents *residents, struct resident *r, const struct json *object,
		  enum resident_change *ret, bool *is_short)
{
	struct cluster *c = residents->cluster;
	uint32_t node = cluster_node_find(c, r->host->name), number;
	struct residence now;
	int rc;

	*ret = RESIDENT_SAME;
	*is_short = false;
	if (node == NODE_NONE)
		return 0;
	rc = residence_read(residents, r, node, object, &now);
	if (rc < 0)
		return rc;
	number = cluster_pod_find(c, r->uid);
	if (number != POD_NONE) {
		rc = rebook(residents, r, number, node, &now, ret);
	} else {
		rc = book(residents, node, &now, now.has_known ? &now.known : NULL);
		*ret = RESIDENT_CAME;
	}
	number = cluster_pod_find(c, r->uid);
	*is_short = number != POD_NONE && cluster_pod(c, number)->holds_count < now.holds_said;
	resident_lacks(residents, r, holds_of(&now));
	r->unclear = now.unclear;
	r->guessed = !r->decided && (now.has_known || now.wish.request.asks_count);
	wish_release(c, &now.wish);
	r->seen = 1;
	return rc;
}

static void failed(const struct residents *residents, struct resident *r)
{
	/* Whatever is said of it next is news. */
	r->hash = 0;
	if (residents->options.log)
		log_error(residents->options.log, "out of memory for a pod on a node",
			  LOG_STR("pod", r->uid), LOG_STR("node", r->host->name));
}

/* From what the cache keeps of it. */
static void settle_kept(struct residents *residents, struct resident *r)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	enum resident_change change;
	bool is_short;

	if (r->guest ? guest_book(residents, r) < 0
		     : kube_object_parse(r->pod, &doc) < 0 ||
			       settle(residents, r, json_root(doc), &change, &is_short) < 0)
		failed(residents, r);
}

/* Who has no decision, nor a lock of its own. */
static bool is_others(const struct resident *r)
{
	return !r->guest && !r->decided;
}

/* Whether it has to be looked at when the GPUs of its node, or who is seen on them, change. */
static bool is_concerned(const struct residents *residents, const struct resident *r)
{
	return r->guessed || cluster_pod_find(residents->cluster, r->uid) == POD_NONE ||
	       inventory_in_use(residents->options.inventory, r->host->name, r->uid);
}

/* All pods of the node: those whose GPUs are known first, then the others on what is left. */
static void settle_host(struct residents *residents, const struct host *host)
{
	uint32_t node;

	for (const struct resident *r = host->first; r; r = r->next)
		if (r->guessed)
			unbook(residents, r->uid, &node);
	for (struct resident *r = host->first; r; r = r->next)
		if (!is_others(r))
			settle_kept(residents, r);
	for (struct resident *r = host->first; r; r = r->next)
		if (is_others(r) && is_concerned(residents, r))
			settle_kept(residents, r);
}

static bool has_guessed(const struct host *host)
{
	for (const struct resident *r = host->first; r; r = r->next)
		if (r->guessed)
			return true;
	return false;
}

static enum resident_change put(struct residents *residents, struct resident *r,
				const struct json *object)
{
	bool is_new = !r->seen && r->hash == 0, is_short;
	enum resident_change change;

	r->decided = json_type(object, "metadata", "annotations", KEY_DECISION) == JSON_STRING;
	r->hash = hash_bytes(r->pod->packed, r->pod->packed_len, residents->options.seed) | 1;
	if (settle(residents, r, object, &change, &is_short) < 0) {
		failed(residents, r);
		return RESIDENT_SAME;
	}
	/* A pod whose GPUs were guessed may have been given those of this one. */
	if (is_short && has_guessed(r->host))
		settle_host(residents, r->host);
	if (change == RESIDENT_SAME && is_new &&
	    cluster_pod_find(residents->cluster, r->uid) == POD_NONE)
		return RESIDENT_CAME;
	return change;
}

enum resident_change residents_put(struct residents *residents, const struct kube_object *pod,
				   const struct json *object)
{
	const char *node = json_str(object, "spec", "nodeName");
	struct resident *r = resident_find(residents, pod->uid);

	if (!node || !*node)
		return RESIDENT_SAME;
	if (r && r->guest)
		residents_remove_guest(residents, pod->uid);
	r = resident_get(residents, pod->uid, node);
	if (!r) {
		if (residents->options.log)
			log_error(residents->options.log, "out of memory for a pod on a node",
				  LOG_STR("pod", pod->name), LOG_STR("node", node));
		return RESIDENT_SAME;
	}
	r->pod = pod;
	if (r->hash == (hash_bytes(pod->packed, pod->packed_len, residents->options.seed) | 1))
		return RESIDENT_SAME;
	return put(residents, r, object);
}

bool residents_remove(struct residents *residents, const char *uid, uint32_t *node)
{
	struct resident *r = resident_find(residents, uid);
	bool booked;

	if (!r)
		return false;
	booked = unbook(residents, uid, node);
	lookup_drop_index(residents->options.lookup, uid);
	resident_forget(residents, r);
	return booked;
}

void residents_node(struct residents *residents, const char *name, uint32_t changes)
{
	struct host *host = map_get(&residents->hosts, name, strlen(name));

	if (!host || (changes & INVENTORY_NODE_WENT))
		return;
	if (changes & (INVENTORY_NODE_CAME | INVENTORY_GPUS | INVENTORY_IN_USE))
		settle_host(residents, host);
}

void residents_again(struct residents *residents, const char *node)
{
	struct host *host = map_get(&residents->hosts, node, strlen(node));

	if (!host || !host->lacks)
		return;
	host->lacks = false;
	for (struct resident *r = host->first; r; r = r->next)
		if (r->lacks)
			settle_kept(residents, r);
}

static uint32_t booked(const struct cluster *c, const char *uid)
{
	uint32_t number = cluster_pod_find(c, uid), gpus = 0;
	const struct pod *pod = number == POD_NONE ? NULL : cluster_pod(c, number);

	for (uint16_t i = 0; pod && i < pod->holds_count; i++)
		gpus |= gpuset_one(pod->holds[i].gpu);
	return gpus;
}

uint32_t residents_unbooked(const struct residents *residents, const char *node)
{
	const struct host *host = map_get(&residents->hosts, node, strlen(node));
	uint32_t gpus = 0;

	if (!host || !host->lacks)
		return 0;
	for (const struct resident *r = host->first; r; r = r->next)
		if (r->lacks)
			gpus |= inventory_in_use(residents->options.inventory, node, r->uid) &
				~booked(residents->cluster, r->uid);
	return gpus;
}

void residents_know(struct residents *residents)
{
	struct map_entry entry;

	for (uint32_t at = 0; map_next(&residents->by_uid, &at, &entry);) {
		struct resident *r = entry.value;
		uint32_t node;

		if (!r->unclear)
			continue;
		if (is_others(r)) /* its GPUs are guessed anew, by what it asks for after all */
			unbook(residents, r->uid, &node);
		settle_kept(residents, r);
	}
}

static void guard(struct residents *residents, const struct resident *r)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	uint32_t number = cluster_pod_find(residents->cluster, r->uid);

	if (number == POD_NONE || kube_object_parse(r->pod, &doc) < 0)
		return;
	cluster_pod_budget(residents->cluster, number,
			   budgets_of(residents->options.budgets, r->pod->namespace, r->pod->name,
				      json_get(json_root(doc), "metadata", "labels")));
}

void residents_guard(struct residents *residents)
{
	struct budgets *budgets = residents->options.budgets;
	struct map_entry entry;

	/* Of one that there is no memory for, none may go. */
	for (uint32_t i = 1; budgets && i <= budgets_last(budgets); i++)
		cluster_budget_allow(residents->cluster, i, budgets_allowed(budgets, i));
	if (!budgets || !budgets_has_news(budgets))
		return;
	for (uint32_t at = 0; map_next(&residents->by_uid, &at, &entry);) {
		const struct resident *r = entry.value;

		if (!r->guest && budgets_is_news(budgets, r->pod->namespace))
			guard(residents, r);
	}
	budgets_told(budgets);
}
