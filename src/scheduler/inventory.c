/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/inventory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/num.h"
#include "engine/engine.h"
#include "kube/cache.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "kube/ready.h"
#include "scheduler/entries.h"
#include "scheduler/inventory_private.h"
#include "wire/json.h"

#define ARENA_MAX ((size_t)16 << 20)

static struct place *place_find(const struct inventory *inventory, const char *name)
{
	return map_get(&inventory->places, name, strlen(name));
}

static struct place *place_get(struct inventory *inventory, const char *name)
{
	struct place *place = place_find(inventory, name);
	size_t len = strlen(name);

	if (place)
		return place;
	place = calloc(1, sizeof(*place) + len + 1);
	if (!place)
		return NULL;
	place->node = NODE_NONE;
	memcpy(place->name, name, len);
	if (map_put(&inventory->places, place->name, len, place) < 0) {
		free(place);
		return NULL;
	}
	return place;
}

static void place_free(struct place *place)
{
	free(place->users);
	free(place);
}

static void set_untold(struct inventory *inventory, struct place *place, bool untold)
{
	inventory->untold += untold;
	inventory->untold -= place->untold;
	place->untold = untold;
}

static void tell(const struct inventory *inventory, const struct place *place, uint32_t changes)
{
	if (inventory->options.changed)
		inventory->options.changed(inventory->options.context, place->name, place->node,
					   changes);
}

/* The same complaint about the same node is made once. */
static void complain(struct inventory *inventory, struct place *place, const struct err *err)
{
	uint64_t hash = err->code ? inventory_hash(inventory, err->text) : 0;

	if (err->code && hash != place->said && inventory->options.log)
		log_warn(inventory->options.log, "a node cannot be read, and stays as it was",
			 LOG_STR("node", place->name), LOG_STR("why", err->text));
	place->said = hash;
}

static bool extended_grew(const struct node *old, const struct node_spec *spec)
{
	for (uint32_t i = 0; i < spec->extended_count; i++) {
		int64_t before = 0;

		for (uint32_t j = 0; j < old->extended_count; j++)
			if (old->extended_total[j].resource == spec->extended[i].resource)
				before = old->extended_total[j].amount;
		if (spec->extended[i].amount > before)
			return true;
	}
	return false;
}

static bool grew(const struct node *old, const struct node_spec *spec)
{
	const struct resources *a = &old->allocatable, *b = &spec->allocatable;

	return b->cpu_milli > a->cpu_milli || b->mem_bytes > a->mem_bytes ||
	       b->ephemeral_bytes > a->ephemeral_bytes || b->pods > a->pods ||
	       extended_grew(old, spec);
}

static uint32_t changes_of(const struct inventory *inventory, const struct place *place,
			   const struct reading *r)
{
	uint32_t changes = 0;

	if (place->node == NODE_NONE)
		return INVENTORY_NODE_CAME;
	if (r->hashes.resources != place->hashes.resources &&
	    grew(cluster_node(inventory->cluster, place->node), &r->spec))
		changes |= INVENTORY_MORE;
	if (r->hashes.labels != place->hashes.labels)
		changes |= INVENTORY_LABELS;
	if (r->hashes.gpus != place->hashes.gpus)
		changes |= INVENTORY_GPUS;
	return changes;
}

static bool is_same(const struct place *place, const struct reading *r)
{
	return place->node != NODE_NONE && r->hashes.resources == place->hashes.resources &&
	       r->hashes.labels == place->hashes.labels && r->hashes.gpus == place->hashes.gpus;
}

/* Who uses which GPUs now; whether that is news.  Without memory it stays as it was. */
static bool take_users(struct place *place, const struct reading *r)
{
	bool any = r->users_count || place->users_count;
	struct user *users;

	if (r->hashes.users == place->hashes.users)
		return false;
	users = calloc(r->users_count + 1, sizeof(*users));
	if (!users)
		return false;
	memcpy(users, r->users, r->users_count * sizeof(*users));
	free(place->users);
	place->users = users;
	place->users_count = r->users_count;
	place->hashes.users = r->hashes.users;
	return any;
}

/* Tells the engine.  The use of the links goes over to the place. */
static int place_apply(struct inventory *inventory, struct place *place, const struct reading *r,
		       struct err *err)
{
	int rc;

	if (place->node == NODE_NONE)
		rc = cluster_node_add(inventory->cluster, &r->spec, &place->node, err);
	else
		rc = cluster_node_change(inventory->cluster, place->node, &r->spec, err);
	if (rc < 0)
		return rc;
	linkset_release(&inventory->links, place->links);
	place->links = r->spec.links;
	place->hashes.resources = r->hashes.resources;
	place->hashes.labels = r->hashes.labels;
	place->hashes.gpus = r->hashes.gpus;
	return 0;
}

/* The engine like the reading: what has changed, or -errno. */
static int place_settle(struct inventory *inventory, struct place *place, const struct reading *r,
			uint32_t *changes, bool *touched, struct err *err)
{
	int rc = 0;

	*changes = 0;
	*touched = !is_same(place, r);
	if (*touched) {
		*changes = changes_of(inventory, place, r);
		rc = place_apply(inventory, place, r, err);
	}
	if (rc < 0 || !*touched)
		linkset_release(&inventory->links, r->spec.links);
	set_untold(inventory, place, rc == -EEXIST);
	if (rc < 0 || r->partly)
		return rc;
	/* Whether a decision counts or what was handed out. */
	if ((place->injection == INJECTION_EXTERNAL) != (r->injection == INJECTION_EXTERNAL) &&
	    r->users_count)
		*changes |= INVENTORY_IN_USE;
	place->injection = (uint8_t)r->injection;
	place->mps = r->mps;
	if (take_users(place, r))
		*changes |= INVENTORY_IN_USE;
	return 0;
}

static int parse(const struct kube_cache *cache, const char *name, struct json_doc **ret)
{
	const struct kube_object *object = kube_cache_get(cache, "", name);

	return object ? kube_object_parse(object, ret) : 0;
}

/* Reads the node anew; whether the engine was told something. */
static bool place_update(struct inventory *inventory, struct place *place)
{
	struct json_doc *node CLEANUP(json_doc_freep) = NULL;
	struct json_doc *status CLEANUP(json_doc_freep) = NULL;
	struct err err = ERR_INIT;
	struct reading reading;
	uint32_t changes = 0;
	bool touched = false;
	int rc = parse(inventory->nodes, place->name, &node);

	if (rc == 0)
		rc = parse(inventory->statuses, place->name, &status);
	if (rc < 0)
		err_set(&err, ENOMEM, "out of memory");
	else
		rc = place_read(inventory, place, json_root(node),
				status ? json_root(status) : NULL, &reading, &err);
	if (rc == 0)
		rc = place_settle(inventory, place, &reading, &changes, &touched, &err);
	complain(inventory, place, &err);
	if (rc == 0 && (touched || changes))
		tell(inventory, place, changes);
	return rc == 0 && touched;
}

bool inventory_has(const struct inventory *inventory, const char *node)
{
	return kube_cache_get(inventory->nodes, "", node) != NULL;
}

void inventory_close(struct inventory *inventory, const char *node, bool closed)
{
	struct place *place = place_find(inventory, node);

	if (!place || place->closed == closed)
		return;
	place->closed = closed;
	if (place->node != NODE_NONE)
		place_update(inventory, place);
}

/* What was refused because of another node may be possible now that this has changed. */
static void retry_untold(struct inventory *inventory)
{
	struct map_entry entry;
	bool again = true;

	while (again && inventory->untold) {
		again = false;
		for (uint32_t at = 0; map_next(&inventory->places, &at, &entry);) {
			struct place *place = entry.value;

			if (place->untold)
				again |= place_update(inventory, place);
		}
	}
}

/* Its Node is gone. */
static void place_leave(struct inventory *inventory, struct place *place)
{
	bool was_there = place->node != NODE_NONE;

	set_untold(inventory, place, false);
	if (was_there)
		cluster_node_remove(inventory->cluster, place->node);
	linkset_release(&inventory->links, place->links);
	free(place->users);
	place->links = NULL;
	place->users = NULL;
	place->users_count = 0;
	place->hashes = (struct place_hashes){ 0 };
	place->injection = INJECTION_UNKNOWN;
	place->mps = false;
	place->said = 0;
	if (was_there)
		tell(inventory, place, INVENTORY_NODE_WENT);
	place->node = NODE_NONE;
}

static void place_refresh(struct inventory *inventory, const char *name)
{
	bool there = kube_cache_get(inventory->nodes, "", name) != NULL;
	struct place *place = there ? place_get(inventory, name) : place_find(inventory, name);
	bool touched;

	if (!place) {
		if (there && inventory->options.log)
			log_error(inventory->options.log, "out of memory for a node",
				  LOG_STR("node", name));
		return;
	}
	if (there) {
		touched = place_update(inventory, place);
	} else {
		touched = place->node != NODE_NONE;
		place_leave(inventory, place);
		map_del(&inventory->places, place->name, strlen(place->name));
		place_free(place);
	}
	if (touched)
		retry_untold(inventory);
}

/* Of Nodes and of reports.  Of what is kept heartbeats are no part. */
static void changed(void *context, enum kube_change change, const struct kube_object *before,
		    struct kube_object *now, const struct json *object)
{
	(void)object;
	if (change == KUBE_MODIFIED && before->packed_len == now->packed_len &&
	    memcmp(before->packed, now->packed, now->packed_len) == 0)
		return;
	place_refresh(context, now ? now->name : before->name);
}

static void keys_free(char **keys, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(keys[i]);
}

static int copy_keys(struct inventory *inventory, const char *const *keys, size_t count,
		     struct err *err)
{
	char *copy[NODE_DOMAIN_KEYS_MAX] = { 0 };

	if (count > NODE_DOMAIN_KEYS_MAX)
		return err_set(err, EINVAL, "the fabric has more than %d levels",
			       NODE_DOMAIN_KEYS_MAX);
	for (size_t i = 0; i < count; i++) {
		copy[i] = strdup(keys[i]);
		if (!copy[i]) {
			keys_free(copy, count);
			return err_set(err, ENOMEM, "out of memory");
		}
	}
	keys_free(inventory->keys, inventory->keys_count);
	memcpy(inventory->keys, copy, sizeof(copy));
	inventory->keys_count = count;
	return 0;
}

static int add_cache(struct inventory *inventory, enum kube_kind_id kind, struct kube_cache **ret,
		     struct err *err)
{
	struct kube_cache_options options = {
		.kind = &kube_kinds[kind],
		.log = inventory->options.log,
		.changed = changed,
		.context = inventory,
	};

	return kube_caches_add(inventory->options.caches, &options, ret, err);
}

int inventory_new(const struct inventory_options *options, struct inventory **ret, struct err *err)
{
	struct inventory *inventory = calloc(1, sizeof(*inventory));
	int rc;

	if (!inventory)
		return err_set(err, ENOMEM, "out of memory");
	inventory->options = *options;
	inventory->cluster = engine_cluster(options->engine);
	inventory->seed = engine_config(options->engine)->cluster.seed;
	inventory->bytes = (struct strbuf)STRBUF_INIT;
	arena_init(&inventory->arena, ARENA_MAX);
	map_init(&inventory->places, inventory->seed);
	linkset_init(&inventory->links, inventory->seed);
	rc = options->domain_keys
		     ? copy_keys(inventory, options->domain_keys, options->domain_keys_count, err)
		     : 0;
	/* Reports first: with the nodes there they are complete at once. */
	if (rc == 0)
		rc = add_cache(inventory, KUBE_GPU_NODE_STATUS, &inventory->statuses, err);
	if (rc == 0)
		rc = add_cache(inventory, KUBE_NODE, &inventory->nodes, err);
	if (rc < 0) {
		inventory_free(inventory);
		return rc;
	}
	*ret = inventory;
	return 0;
}

void inventory_free(struct inventory *inventory)
{
	struct map_entry entry;

	if (!inventory)
		return;
	for (uint32_t at = 0; map_next(&inventory->places, &at, &entry);)
		place_free(entry.value);
	map_done(&inventory->places);
	linkset_done(&inventory->links);
	keys_free(inventory->keys, inventory->keys_count);
	arena_done(&inventory->arena);
	strbuf_done(&inventory->bytes);
	free(inventory);
}

static bool same_keys(const struct inventory *inventory, const char *const *keys, size_t count)
{
	if (count != inventory->keys_count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (strcmp(keys[i], inventory->keys[i]) != 0)
			return false;
	return true;
}

int inventory_set_domains(struct inventory *inventory, const char *const *keys, size_t count,
			  struct err *err)
{
	struct map_entry entry;
	int rc;

	if (same_keys(inventory, keys, count))
		return 0;
	rc = copy_keys(inventory, keys, count, err);
	for (uint32_t at = 0; rc == 0 && map_next(&inventory->places, &at, &entry);)
		place_update(inventory, entry.value);
	return rc;
}

enum injection_mode inventory_injection(const struct inventory *inventory, const char *node)
{
	const struct place *place = place_find(inventory, node);

	return place ? (enum injection_mode)place->injection : INJECTION_UNKNOWN;
}

enum visibility inventory_visibility(const struct inventory *inventory, const char *node)
{
	switch (inventory_injection(inventory, node)) {
	case INJECTION_CDI:
	case INJECTION_EXTERNAL:
		return VISIBLE_DECIDED;
	case INJECTION_ENV:
		return VISIBLE_NAMED;
	case INJECTION_UNKNOWN:
	case INJECTION_ALL:
		break;
	}
	return VISIBLE_ALL;
}

bool inventory_mps(const struct inventory *inventory, const char *node)
{
	const struct place *place = place_find(inventory, node);

	return place && place->mps;
}

/* "+me" may be written ".me". */
static bool is_profile(const struct mig_geometry *mig, const char *a, const char *b)
{
	int number = mig ? mig_profile_find(mig, a, strlen(a)) : -1;

	return strcmp(a, b) == 0 || (number >= 0 && number == mig_profile_find(mig, b, strlen(b)));
}

static bool is_slice(const struct mig_geometry *mig, const struct json *slice, const char *profile,
		     uint32_t start)
{
	const char *name = json_str(slice, "profile");
	int64_t from;

	return name && is_profile(mig, name, profile) && json_i64(slice, &from, "start") == 0 &&
	       from == start;
}

static const char *find_slice(const struct mig_geometry *mig, const struct json *status,
			      uint32_t gpu, const char *profile, uint32_t start)
{
	struct json_iter devices = json_items(status, "status", "devices");
	const struct json *device, *slice;

	while ((device = json_next(&devices))) {
		struct json_iter slices = json_items(device, "migDevices");
		int64_t id;

		if (json_i64(device, &id, "id") < 0 || id != gpu)
			continue;
		while ((slice = json_next(&slices)))
			if (is_slice(mig, slice, profile, start))
				return json_str(slice, "uuid");
	}
	return NULL;
}

const char *inventory_slice(const struct inventory *inventory, const char *node, uint32_t gpu,
			    const char *profile, uint32_t start, struct arena *arena)
{
	struct json_doc *status CLEANUP(json_doc_freep) = NULL;
	uint32_t number = cluster_node_find(inventory->cluster, node);
	const struct mig_geometry *mig =
		number == NODE_NONE ? NULL : cluster_node(inventory->cluster, number)->mig;
	const char *uuid = NULL;

	if (parse(inventory->statuses, node, &status) == 0 && status)
		uuid = find_slice(mig, json_root(status), gpu, profile, start);
	return uuid ? arena_strndup(arena, uuid, strlen(uuid)) : NULL;
}

bool inventory_card(const struct inventory *inventory, const char *node, const char *uuid,
		    struct lock_card *ret, uint32_t *index)
{
	uint32_t number = cluster_node_find(inventory->cluster, node), on = NODE_NONE, id = 0;
	const struct node *n =
		number != NODE_NONE ? cluster_node(inventory->cluster, number) : NULL;
	uint8_t gpu = 0;

	if (!n)
		return false;
	if (cluster_gpu_find(inventory->cluster, uuid, &on, &gpu))
		id = gpu;
	/* A card that nobody has reported a UUID of goes by its index. */
	else if (parse_u32(uuid, strlen(uuid), &id) == 0 && id < n->gpus_count)
		on = number;
	if (on != number)
		return false;
	*ret = (struct lock_card){ .mem_mib = n->gpus[id].mem_mib, .mig = n->mig };
	*index = id;
	return true;
}

uint32_t inventory_in_use(const struct inventory *inventory, const char *node, const char *uid)
{
	const struct place *place = place_find(inventory, node);
	uint64_t hash = inventory_hash(inventory, uid);
	uint32_t low = 0, high = place ? place->users_count : 0;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (place->users[middle].uid < hash)
			low = middle + 1;
		else
			high = middle;
	}
	return place && low < place->users_count && place->users[low].uid == hash
		       ? place->users[low].gpus
		       : 0;
}
