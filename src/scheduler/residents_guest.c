/* SPDX-License-Identifier: Apache-2.0 */
/* residents_guest.c - what locks of others hold for pods that are not bound yet; and the lock
 * that a bound pod must have. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "dialect/dialect.h"
#include "engine/adopt.h"
#include "engine/engine.h"
#include "kube/object.h"
#include "scheduler/lookup.h"
#include "scheduler/residents_private.h"
#include "wire/json.h"

/* An entry, kept until its node comes: one piece of memory with its strings. */
struct guest {
	const char *namespace, *name;
	int64_t index; /* that it was given of a map, or POD_INDEX_NONE */
	uint32_t holds_count;
	struct decided_hold holds[];
};

void guest_free(struct guest *guest)
{
	free(guest);
}

static size_t guest_size(const struct lock_entry *entry)
{
	size_t size = sizeof(struct guest) + strlen(entry->namespace) + strlen(entry->name) + 2;

	for (uint32_t i = 0; i < entry->holds_count; i++) {
		const struct lock_hold *hold = &entry->holds[i];

		size += sizeof(struct decided_hold) + strlen(hold->uuid) + 1;
		size += hold->mig_profile ? strlen(hold->mig_profile) + 1 : 0;
	}
	return size;
}

static char *put(char **at, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = memcpy(*at, text, size);

	*at += size;
	return copy;
}

static struct guest *guest_new(const struct lock_entry *entry)
{
	struct guest *guest = calloc(1, guest_size(entry));
	char *text = guest ? (char *)&guest->holds[entry->holds_count] : NULL;

	if (!guest)
		return NULL;
	guest->namespace = put(&text, entry->namespace);
	guest->name = put(&text, entry->name);
	guest->index = entry->map ? (int64_t)entry->map_index : POD_INDEX_NONE;
	guest->holds_count = entry->holds_count;
	for (uint32_t i = 0; i < entry->holds_count; i++) {
		const struct lock_hold *from = &entry->holds[i];
		struct decided_hold *to = &guest->holds[i];

		to->uuid = put(&text, from->uuid);
		to->core_milli = from->core_milli;
		to->mem_mib = from->mem_mib;
		if (from->mig_profile)
			to->mig_profile = put(&text, from->mig_profile);
		to->mig_start = from->mig_start;
	}
	return guest;
}

/* What the pod asks for, as the cache has it, to be released.  False: nobody knows. */
static bool guest_wish(struct residents *residents, const struct resident *r, struct wish *ret)
{
	const struct residents_options *o = &residents->options;
	const struct kube_object *pod =
		o->pod ? o->pod(o->context, r->guest->namespace, r->guest->name) : NULL;
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct pod_source source;

	if (!pod || strcmp(pod->uid, r->uid) != 0 || kube_object_parse(pod, &doc) < 0)
		return false;
	const struct dialect_lookup *lookup = lookup_dialect(o->lookup);
	int rc = pod_source_read(json_root(doc), lookup, &source, NULL);

	if (rc == 0 && r->guest->index != POD_INDEX_NONE)
		source.index = r->guest->index;
	arena_reset(&residents->arena);
	if (rc == 0)
		rc = dialect_read_resident(residents->cluster, lookup, &source, &residents->arena,
					   ret, NULL);
	lookup_reset(o->lookup);
	return rc == 0;
}

/* A lock does not say with whom its cards are shared: the pod's line of a map does. */
static void find_groups(struct residents *residents, const struct resident *r,
			struct assignment *known)
{
	struct wish wish;
	bool shares = false;

	for (uint16_t i = 0; i < known->count; i++)
		shares |= known->holds[i].kind == ASK_SHARE;
	if (!shares || !guest_wish(residents, r, &wish))
		return;
	for (uint16_t i = 0; i < known->count; i++) {
		struct hold *hold = &known->holds[i];

		for (unsigned j = 0; j < wish.request.asks_count; j++) {
			const struct ask *ask = &wish.request.asks[j];

			if (hold->kind == ASK_SHARE && ask->kind == ASK_SHARE &&
			    (ask->pinned & gpuset_one(hold->gpu)))
				hold->group = ask->group;
		}
	}
	wish_release(residents->cluster, &wish);
}

int guest_book(struct residents *residents, struct resident *r)
{
	struct cluster *c = residents->cluster;
	uint32_t node = cluster_node_find(c, r->host->name), number;
	struct decided decided = { .holds = r->guest->holds,
				   .holds_count = r->guest->holds_count };
	/* Nobody can evict it: there is no pod on the node to be removed. */
	struct pod_spec spec = { .uid = r->uid, .name = r->guest->name, .priority = INT32_MAX };
	struct assignment known;
	struct request request;
	int rc;

	if (node == NODE_NONE)
		return 0;
	request_init(&request);
	holds_of_decision(c, node, &decided, NULL, &known);
	find_groups(residents, r, &known);
	number = cluster_pod_find(c, r->uid);
	if (number != POD_NONE && holds_equal(cluster_pod(c, number), &known))
		return 0;
	if (number != POD_NONE)
		cluster_pod_remove(c, number);
	rc = adopt_pod(c, &spec, &request, node, &known, &number);
	resident_lacks(residents, r, known.count);
	return rc == -ENOMEM ? rc : 0;
}

int residents_put_guest(struct residents *residents, const char *node,
			const struct lock_entry *entry)
{
	struct resident *r = resident_find(residents, entry->uid);
	struct guest *guest;

	if (r && r->guest)
		residents_remove_guest(residents, entry->uid);
	else if (r || cluster_pod_find(residents->cluster, entry->uid) != POD_NONE)
		return 0;
	guest = guest_new(entry);
	r = guest ? resident_get(residents, entry->uid, node) : NULL;
	if (!r) {
		guest_free(guest);
		return -ENOMEM;
	}
	r->guest = guest;
	/* Its cards are taken, whatever memory there is for the rest. */
	int rc = guest_book(residents, r);
	if (entry->map && lookup_take_locked(residents->options.lookup, entry->map,
					     entry->map_index, entry->uid) < 0)
		rc = -ENOMEM;
	return rc;
}

void residents_remove_guest(struct residents *residents, const char *uid)
{
	struct resident *r = resident_find(residents, uid);
	uint32_t number = cluster_pod_find(residents->cluster, uid);

	if (!r || !r->guest)
		return;
	if (number != POD_NONE)
		cluster_pod_remove(residents->cluster, number);
	lookup_drop_index(residents->options.lookup, uid);
	resident_forget(residents, r);
}

static const char *copy(struct arena *arena, const char *text)
{
	return arena_strndup(arena, text, strlen(text));
}

/* Who it is.  A pod that is bound was read unbound at a version that nobody knows any more.
 * Its entry needs none: as long as the pod is bound it is judged by the attempt, and no
 * Binding can carry the version of a bound pod, nor 0, which no object ever has. */
static int entry_identity(const struct json *pod, struct arena *arena, struct lock_entry *ret,
			  struct err *err)
{
	const char *uid = json_str(pod, "metadata", "uid");
	const char *namespace = json_str(pod, "metadata", "namespace");
	const char *name = json_str(pod, "metadata", "name");
	const char *version = json_str(pod, "metadata", "resourceVersion");

	if (!uid || !*uid || !namespace || !*namespace || !name || !*name)
		return err_set(err, EINVAL, "a pod has no uid, namespace or name");
	ret->uid = copy(arena, uid);
	ret->namespace = copy(arena, namespace);
	ret->name = copy(arena, name);
	ret->version = copy(arena, version && *version ? version : "0");
	if (!ret->uid || !ret->namespace || !ret->name || !ret->version)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

int resident_entry(const struct json *pod, struct arena *arena, struct lock_entry *ret,
		   struct err *err)
{
	struct decided decided;
	struct lock_hold *holds;
	int rc = decided_read(pod, arena, &decided, err);

	if (rc == 0 && !decided.holds_count)
		rc = err_set(err, ENOENT, "the pod holds no GPU");
	if (rc < 0)
		return rc;
	*ret = (struct lock_entry){ .attempt = decided.attempt };
	rc = entry_identity(pod, arena, ret, err);
	if (rc < 0)
		return rc;
	holds = arena_array(arena, decided.holds_count, sizeof(*holds));
	if (!holds)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < decided.holds_count; i++)
		holds[i] = (struct lock_hold){ .uuid = decided.holds[i].uuid,
					       .core_milli = decided.holds[i].core_milli,
					       .mem_mib = decided.holds[i].mem_mib,
					       .mig_profile = decided.holds[i].mig_profile,
					       .mig_start = decided.holds[i].mig_start };
	ret->holds = holds;
	ret->holds_count = decided.holds_count;
	return 0;
}
