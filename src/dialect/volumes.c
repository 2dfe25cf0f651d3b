/* SPDX-License-Identifier: Apache-2.0 */
/* volumes.c - the claims of a pod: are they ready, and where do they let it run.
 *
 * The sentences are those of kube-scheduler, to the letter: people search for them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "dialect/around.h"
#include "dialect/volumes_private.h"
#include "engine/volumes.h"
#include "wire/json.h"
#include "wire/quantity.h"

#define KEY_BIND_COMPLETED "pv.kubernetes.io/bind-completed"
#define KEY_SELECTED_NODE  "volume.kubernetes.io/selected-node"
#define KEY_CLASS_BETA	   "volume.beta.kubernetes.io/storage-class"
#define LABEL_ZONE	   "topology.kubernetes.io/zone"
#define LABEL_REGION	   "topology.kubernetes.io/region"
#define LABEL_ZONE_BETA	   "failure-domain.beta.kubernetes.io/zone"
#define LABEL_REGION_BETA  "failure-domain.beta.kubernetes.io/region"
#define ZONES_MAX	   64

/* A claim as the pod names it. */
struct claim_use {
	const char *name;
	const struct json *object; /* or NULL */
	bool ephemeral;		   /* made for this pod alone */
};

static int no_memory(struct err *err)
{
	return err_set(err, ENOMEM, "out of memory");
}

const char *volumes_class(const struct json *object)
{
	const char *class = json_str(object, "metadata", "annotations", KEY_CLASS_BETA);

	if (!class)
		class = json_str(object, "spec", "storageClassName");
	return class ? class : "";
}

struct node_group *volumes_group(struct volumes *v, enum verdict refusal)
{
	if (v->groups_count == v->groups_room) {
		uint32_t room = v->groups_room ? 2 * v->groups_room : 8;
		struct node_group *grown = arena_array(v->draft->arena, room, sizeof(*v->groups));

		if (!grown)
			return NULL;
		if (v->groups_count)
			memcpy(grown, v->groups, v->groups_count * sizeof(*grown));
		v->groups = grown;
		v->groups_room = room;
	}
	v->groups[v->groups_count] = (struct node_group){ .refusal = (uint8_t)refusal };
	return &v->groups[v->groups_count++];
}

static char *copy(struct draft *d, const char *s)
{
	return arena_strndup(d->arena, s, strlen(s));
}

static int own_match(struct draft *d, struct match *m)
{
	const char **values = arena_array(d->arena, m->values_count + 1, sizeof(char *));

	m->key = copy(d, m->key);
	if (!m->key || !values)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->values_count; i++) {
		values[i] = copy(d, m->values[i]);
		if (!values[i])
			return -ENOMEM;
	}
	m->values = values;
	return 0;
}

int volumes_own(struct draft *d, struct match *matches, uint32_t count)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < count; i++)
		rc = own_match(d, &matches[i]);
	return rc;
}

/* Of a volume only labels count: the name of a node is taken for a label that none has, as
 * kube-scheduler does. */
static int where_term(struct draft *d, const struct json *term, struct node_term *ret,
		      struct err *err)
{
	static const char what[] = "a volume's nodeAffinity";
	const struct json *labels = json_get(term, "matchExpressions");
	const struct json *fields = json_get(term, "matchFields");
	size_t len = json_len(labels) + json_len(fields);
	struct match *matches = arena_array(d->arena, len + 1, sizeof(*matches));
	int rc;

	if (!matches)
		return no_memory(err);
	if (len > RULES_ITEMS_MAX)
		return err_set(err, EINVAL, "%s has too many expressions", what);
	ret->matches = matches;
	rc = around_matches(d, labels, what, true, false, matches, &ret->count, err);
	if (rc == 0)
		rc = around_matches(d, fields, what, true, false, matches, &ret->count, err);
	if (rc == 0 && volumes_own(d, matches, ret->count) < 0)
		rc = no_memory(err);
	return rc;
}

int volumes_where(struct draft *d, const struct json *volume, const struct node_group **ret,
		  struct err *err)
{
	const struct json *required = json_get(volume, "spec", "nodeAffinity", "required");
	const struct json *list = json_get(required, "nodeSelectorTerms");
	struct json_iter iter = json_items(list);
	struct node_term *terms;
	struct node_group *group;
	int rc = 0;

	*ret = NULL;
	if (json_type(required) != JSON_OBJECT)
		return 0;
	terms = arena_array(d->arena, json_len(list) + 1, sizeof(*terms));
	group = arena_alloc(d->arena, sizeof(*group));
	if (!terms || !group)
		return no_memory(err);
	group->terms = terms;
	for (const struct json *term; rc == 0 && (term = json_next(&iter));)
		rc = where_term(d, term, &terms[group->count++], err);
	*ret = group;
	return rc;
}

static bool has_label(const struct json *object, const char *key, const char **value)
{
	*value = json_str(object, "metadata", "labels", key);
	return *value;
}

/* "a__b": several; NULL if one of them is empty.  Room for ZONES_MAX. */
static const char **zones_of(struct draft *d, const char *text, uint32_t *count)
{
	const char **zones = arena_array(d->arena, ZONES_MAX, sizeof(char *));

	for (*count = 0; zones && *count < ZONES_MAX;) {
		const char *end = strstr(text, "__");
		size_t len = end ? (size_t)(end - text) : strlen(text);

		if (!len)
			return NULL;
		zones[*count] = arena_strndup(d->arena, text, len);
		if (!zones[(*count)++])
			return NULL;
		if (!end)
			return zones;
		text = end + 2;
	}
	return NULL;
}

/* The node has one of these values; or, of an older name of the label, the newer one has; or
 * the node says nothing about zones at all. */
static int add_zone(struct volumes *v, const char *key, const char *newer, const char *text,
		    struct err *err)
{
	static const char *const all[] = { LABEL_ZONE, LABEL_REGION, LABEL_ZONE_BETA,
					   LABEL_REGION_BETA };
	struct draft *d = v->draft;
	struct match *m = arena_array(d->arena, 3 + 4, sizeof(*m));
	struct node_term *terms = arena_array(d->arena, 3, sizeof(*terms));
	struct node_group *group = volumes_group(v, WRONG_VOLUME_ZONE);
	uint32_t count;
	const char **zones = zones_of(d, text, &count);

	if (!m || !terms || !group)
		return no_memory(err);
	if (!zones) { /* such a label says nothing */
		v->groups_count--;
		return 0;
	}
	m[0] = (struct match){ .key = key, .values = zones, .values_count = count };
	m[1] = (struct match){ .key = key, .op = MATCH_NOT_EXISTS };
	m[2] = (struct match){ .key = newer, .values = zones, .values_count = count };
	for (unsigned i = 0; i < 4; i++)
		m[3 + i] = (struct match){ .key = all[i], .op = MATCH_NOT_EXISTS };
	terms[0] = (struct node_term){ &m[0], 1 };
	terms[1] = (struct node_term){ &m[3], 4 };
	terms[2] = (struct node_term){ &m[1], 2 };
	group->terms = terms;
	group->count = key == newer ? 2 : 3;
	return 0;
}

static int add_zones(struct volumes *v, const struct json *volume, struct err *err)
{
	static const char *const keys[][2] = {
		{ LABEL_ZONE_BETA, LABEL_ZONE },
		{ LABEL_REGION_BETA, LABEL_REGION },
		{ LABEL_ZONE, LABEL_ZONE },
		{ LABEL_REGION, LABEL_REGION },
	};
	const char *text;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < ARRAY_SIZE(keys); i++)
		if (has_label(volume, keys[i][0], &text))
			rc = add_zone(v, keys[i][0],
				      strcmp(keys[i][0], keys[i][1]) ? keys[i][1] : keys[i][0],
				      text, err);
	return rc;
}

static int read_bound(struct volumes *v, const struct claim_use *use, const char *name,
		      struct err *err)
{
	struct draft *d = v->draft;
	const struct json *volume =
		d->lookup->find(d->lookup->context, "PersistentVolume", "", name);
	const struct node_group *where;
	struct node_group *group;
	int rc;

	if (!volume)
		return err_set(err, ENOENT, "persistentvolume \"%s\" not found", name);
	rc = volumes_where(d, volume, &where, err);
	if (rc == 0 && where) {
		group = volumes_group(v, WRONG_VOLUME_NODE);
		if (!group)
			return no_memory(err);
		group->terms = where->terms;
		group->count = where->count;
	}
	return rc < 0 || use->ephemeral ? rc : add_zones(v, volume, err);
}

unsigned volumes_modes(const struct json *object)
{
	static const char *const words[] = { "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany",
					     "ReadWriteOncePod" };
	struct json_iter iter = json_items(object, "spec", "accessModes");
	unsigned set = 0;

	for (const struct json *item; (item = json_next(&iter));)
		for (unsigned i = 0; json_str(item) && i < ARRAY_SIZE(words); i++)
			if (strcmp(json_str(item), words[i]) == 0)
				set |= 1U << i;
	return set;
}
#define MODE_ALONE (1U << 3)

bool volumes_is_block(const struct json *object)
{
	const char *mode = json_str(object, "spec", "volumeMode");

	return mode && strcmp(mode, "Block") == 0;
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static int add_want(struct volumes *v, const struct claim_use *use, const struct json *class,
		    struct err *err)
{
	const struct dialect_lookup *l = v->draft->lookup;
	const struct json *o = use->object;
	struct quantity bytes;
	struct want *w = &v->wants[v->wants_count];
	const char *promised = l->promised ? l->promised(l->context, "PersistentVolumeClaim",
							 v->draft->source->namespace, use->name)
					   : NULL;

	for (uint32_t i = 0; i < v->wants_count; i++)
		if (strcmp(v->wants[i].name, use->name) == 0)
			return 0;
	if (v->wants_count == CLAIMS_MAX)
		return err_set(err, EINVAL, "the pod has more than %d unbound claims", CLAIMS_MAX);
	*w = (struct want){
		.name = use->name,
		.class_name = volumes_class(o),
		.class = class,
		.selector = json_get(o, "spec", "selector"),
		.attributes = or_empty(json_str(o, "spec", "volumeAttributesClassName")),
		.uid = or_empty(json_str(o, "metadata", "uid")),
		.modes = volumes_modes(o),
		.block = volumes_is_block(o),
		.promised = promised,
		.node = promised ? promised
				 : json_str(o, "metadata", "annotations", KEY_SELECTED_NODE),
	};
	w->sized = quantity_from_json(json_get(o, "spec", "resources", "requests", "storage"),
				      &bytes, NULL) == 0;
	w->bytes = w->sized ? quantity_value(bytes) : 0;
	v->wants_count++;
	return 0;
}

static bool is_owned(const struct json *claim, const char *uid)
{
	struct json_iter iter = json_items(claim, "metadata", "ownerReferences");
	bool controls = false;

	for (const struct json *owner; (owner = json_next(&iter));)
		if (json_bool(owner, &controls, "controller") == 0 && controls &&
		    strcmp(or_empty(json_str(owner, "uid")), uid) == 0)
			return true;
	return false;
}

static int check_claim(struct volumes *v, const struct claim_use *use, struct err *err)
{
	const struct pod_source *s = v->draft->source;
	const char *phase = json_str(use->object, "status", "phase");

	if (!use->object && use->ephemeral)
		return err_set(err, ENOENT,
			       "waiting for ephemeral volume controller to create the "
			       "persistentvolumeclaim \"%s\"",
			       use->name);
	if (!use->object)
		return err_set(err, ENOENT, "persistentvolumeclaim \"%s\" not found", use->name);
	if (phase && strcmp(phase, "Lost") == 0)
		return err_set(err, ENOENT,
			       "persistentvolumeclaim \"%s\" bound to non-existent "
			       "persistentvolume \"%s\"",
			       use->name, or_empty(json_str(use->object, "spec", "volumeName")));
	if (json_str(use->object, "metadata", "deletionTimestamp"))
		return err_set(err, ENOENT, "persistentvolumeclaim \"%s\" is being deleted",
			       use->name);
	if (use->ephemeral && !is_owned(use->object, s->uid))
		return err_set(err, ENOENT,
			       "PVC %s/%s was not created for pod %s/%s (pod is not owner)",
			       s->namespace, use->name, s->namespace, s->name);
	return 0;
}

static int read_claim_use(struct volumes *v, const struct claim_use *use, struct err *err)
{
	const struct dialect_lookup *l = v->draft->lookup;
	const char *volume = or_empty(json_str(use->object, "spec", "volumeName")), *mode;
	const struct json *class;
	int rc = check_claim(v, use, err);

	if (rc < 0)
		return rc;
	if (*volume && json_get(use->object, "metadata", "annotations", KEY_BIND_COMPLETED))
		return read_bound(v, use, volume, err);
	class = l->find(l->context, "StorageClass", "", volumes_class(use->object));
	mode = json_str(class, "volumeBindingMode");
	if (*volume || !mode || strcmp(mode, "WaitForFirstConsumer") != 0)
		return err_set(err, ENOENT, "pod has unbound immediate PersistentVolumeClaims");
	return add_want(v, use, class, err);
}

/* False if the volume has no claim. */
static bool claim_of(const struct volumes *v, const struct json *volume, struct claim_use *ret)
{
	const struct draft *d = v->draft;

	ret->ephemeral = json_type(volume, "persistentVolumeClaim") != JSON_OBJECT;
	if (ret->ephemeral && json_type(volume, "ephemeral") != JSON_OBJECT)
		return false;
	ret->name = ret->ephemeral ? draft_printf(d, "%s-%s", d->source->name,
						  or_empty(json_str(volume, "name")))
				   : json_str(volume, "persistentVolumeClaim", "claimName");
	ret->name = or_empty(ret->name);
	ret->object = d->lookup->find(d->lookup->context, "PersistentVolumeClaim",
				      d->source->namespace, ret->name);
	return true;
}

static int add_use(struct volumes *v, struct volume_use use, struct disk_name disk,
		   struct err *err)
{
	if (!use.key || !disk.driver || !disk.handle)
		return no_memory(err);
	if (v->uses_count == RULES_ITEMS_MAX)
		return err_set(err, EINVAL, "the pod has more than %d volumes", RULES_ITEMS_MAX);
	v->uses[v->uses_count] = use;
	v->disks[v->uses_count++] = disk;
	return 0;
}

static int use_claim(struct volumes *v, const struct claim_use *use, struct err *err)
{
	struct draft *d = v->draft;
	bool alone = !use->ephemeral && volumes_modes(use->object) & MODE_ALONE;
	const char *key = draft_printf(d, "%s/%s", d->source->namespace, use->name);

	return add_use(v, (struct volume_use){ key, alone ? VOLUME_CLAIM_ALONE : VOLUME_CLAIM },
		       disk_of_claim(d->lookup, d->source->namespace, use->name, d->arena), err);
}

/* Disks that the pod names itself. */
static int use_disks(struct volumes *v, const struct json *volume, struct err *err)
{
	static const struct disk_name none = { "", "" };
	struct volume_use disks[RULES_ITEMS_MAX];
	struct draft *d = v->draft;
	struct disk_name attached = none;
	uint32_t count = disks_of_volume(d, volume, &attached, disks, RULES_ITEMS_MAX);
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < count; i++)
		rc = add_use(v, disks[i], none, err);
	if (rc == 0 && attached.driver && attached.handle && *attached.driver) {
		const char *key = draft_printf(d, "%s:%s", attached.driver, attached.handle);

		rc = add_use(v, (struct volume_use){ key, VOLUME_CLAIM }, attached, err);
	}
	return rc;
}

static int read_volume(struct volumes *v, const struct json *volume, struct err *err)
{
	struct claim_use use;
	int rc;

	if (!claim_of(v, volume, &use))
		return use_disks(v, volume, err);
	rc = use_claim(v, &use, err);
	return rc < 0 || v->draft->resident ? rc : read_claim_use(v, &use, err);
}

static int compare_wants(const void *a, const void *b)
{
	const struct want *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return strcmp(x->name, y->name);
}

int volumes_read_wants(struct draft *d, struct volumes *v, struct err *err)
{
	struct json_iter iter = json_items(d->source->object, "spec", "volumes");
	int rc = 0;

	v->draft = d;
	for (const struct json *volume; rc == 0 && (volume = json_next(&iter));)
		rc = read_volume(v, volume, err);
	if (rc == 0 && v->wants_count)
		qsort(v->wants, v->wants_count, sizeof(*v->wants), compare_wants);
	return rc < 0 || !v->wants_count ? rc : volumes_find(v, err);
}

/* The pod's own groups, then those of its volumes. */
static int join_groups(const struct volumes *v, struct rules_spec *rules, struct err *err)
{
	uint32_t own = rules->groups_count;
	struct node_group *all =
		arena_array(v->draft->arena, own + v->groups_count + 1, sizeof(*all));

	if (!all)
		return no_memory(err);
	if (own)
		memcpy(all, rules->groups, own * sizeof(*all));
	if (v->groups_count)
		memcpy(all + own, v->groups, v->groups_count * sizeof(*all));
	rules->groups = all;
	rules->groups_count = own + v->groups_count;
	rules->volumes = v->uses;
	rules->volumes_count = v->uses_count;
	return 0;
}

int read_volumes(struct draft *d, struct rules_spec *rules, struct err *err)
{
	struct volumes *v;
	int rc;

	if (!d->lookup->each || !json_len(d->source->object, "spec", "volumes"))
		return 0;
	v = arena_alloc(d->arena, sizeof(*v));
	if (!v)
		return no_memory(err);
	d->volumes = v;
	rc = volumes_read_wants(d, v, err);
	if (rc == 0 && v->wants_count)
		rc = volumes_demand(v, err);
	d->wish->volumes_wait = v->wants_count;
	return rc < 0 ? rc : join_groups(v, rules, err);
}

int tell_volumes(struct draft *d, struct err *err)
{
	const struct volumes *v = d->volumes;

	for (uint32_t i = 0; v && i < v->uses_count; i++)
		if (volumes_tell(d->cluster, v->uses[i].key, v->disks[i].driver,
				 v->disks[i].handle) < 0)
			return no_memory(err);
	return 0;
}
