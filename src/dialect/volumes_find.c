/* SPDX-License-Identifier: Apache-2.0 */
/* volumes_find.c - claims that wait for their first consumer: which volumes would do, where one
 * could be made, and what that asks of a node. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "dialect/around.h"
#include "dialect/volumes_private.h"
#include "wire/json.h"
#include "wire/quantity.h"

/* A look at all objects of a class. */
struct visit {
	struct volumes *volumes;
	const char *class;
	const struct want *want; /* capacities: whose */
	struct node_term *terms; /* capacities: nodes that have enough */
	uint32_t terms_count, terms_room;
	bool always; /* capacities: every node has */
	int rc;
	struct err *err;
};

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static int64_t bytes_of(const struct json *amount)
{
	struct quantity q;

	return quantity_from_json(amount, &q, NULL) == 0 ? quantity_value(q) : 0;
}

static bool among(const struct json *list, const char *value)
{
	struct json_iter iter = json_items(list);

	for (const struct json *item; (item = json_next(&iter));)
		if (json_str(item) && strcmp(json_str(item), value) == 0)
			return true;
	return false;
}

static bool expression_holds(const struct json *expression, const struct json *labels)
{
	const char *op = or_empty(json_str(expression, "operator"));
	const char *value = json_str(labels, or_empty(json_str(expression, "key")));
	const struct json *values = json_get(expression, "values");

	if (strcmp(op, "In") == 0)
		return value && among(values, value);
	if (strcmp(op, "NotIn") == 0)
		return !value || !among(values, value);
	if (strcmp(op, "Exists") == 0)
		return value;
	return strcmp(op, "DoesNotExist") == 0 && !value;
}

static bool selector_holds(const struct json *selector, const struct json *labels)
{
	struct json_iter pairs = json_members(selector, "matchLabels");
	struct json_iter list = json_items(selector, "matchExpressions");
	struct json_member m;

	while (json_next_member(&pairs, &m))
		if (strcmp(or_empty(json_str(labels, m.key)), or_empty(json_str(m.value))) != 0 ||
		    !json_str(labels, m.key))
			return false;
	for (const struct json *expression; (expression = json_next(&list));)
		if (!expression_holds(expression, labels))
			return false;
	return true;
}

/* Whose the volume is, by what it says or by what was promised. */
enum owner { OWNER_NONE, OWNER_SELF, OWNER_OTHER };

static enum owner owner_of(const struct volumes *v, const struct json *volume, const char *name,
			   const struct want *w)
{
	const struct dialect_lookup *l = v->draft->lookup;
	const struct json *reference = json_get(volume, "spec", "claimRef");
	const char *namespace = v->draft->source->namespace;
	const char *promised =
		l->promised ? l->promised(l->context, "PersistentVolume", "", name) : NULL;
	const char *uid = or_empty(json_str(reference, "uid"));
	size_t len = strlen(namespace);

	if (promised)
		return strncmp(promised, namespace, len) == 0 && promised[len] == '/' &&
				       strcmp(promised + len + 1, w->name) == 0
			       ? OWNER_SELF
			       : OWNER_OTHER;
	if (json_type(reference) != JSON_OBJECT)
		return OWNER_NONE;
	return strcmp(or_empty(json_str(reference, "name")), w->name) == 0 &&
			       strcmp(or_empty(json_str(reference, "namespace")), namespace) ==
				       0 &&
			       (!*uid || strcmp(uid, w->uid) == 0)
		       ? OWNER_SELF
		       : OWNER_OTHER;
}

/* In size and kind. */
static bool is_big_enough(const struct json *volume, int64_t bytes, const struct want *w)
{
	const char *attributes = or_empty(json_str(volume, "spec", "volumeAttributesClassName"));

	return bytes >= w->bytes && volumes_is_block(volume) == w->block &&
	       strcmp(attributes, w->attributes) == 0;
}

static bool is_free_for(const struct json *volume, const struct want *w)
{
	const struct json *labels = json_get(volume, "metadata", "labels");

	return strcmp(or_empty(json_str(volume, "status", "phase")), "Available") == 0 &&
	       (w->modes & ~volumes_modes(volume)) == 0 &&
	       (json_type(w->selector) != JSON_OBJECT || selector_holds(w->selector, labels));
}

static struct candidate *candidate_new(struct volumes *v)
{
	if (v->candidates_count == v->candidates_room) {
		uint32_t room = v->candidates_room ? 2 * v->candidates_room : 16;
		struct candidate *grown = arena_array(v->draft->arena, room, sizeof(*grown));

		if (!grown)
			return NULL;
		if (v->candidates_count)
			memcpy(grown, v->candidates, v->candidates_count * sizeof(*grown));
		v->candidates = grown;
		v->candidates_room = room;
	}
	v->candidates[v->candidates_count] = (struct candidate){ 0 };
	return &v->candidates[v->candidates_count++];
}

static int add_candidate(struct volumes *v, const struct json *volume, int64_t bytes,
			 uint32_t wants, uint32_t keeps, struct err *err)
{
	struct candidate *c = candidate_new(v);
	const char *name = json_str(volume, "metadata", "name");
	int rc;

	if (c)
		c->name = arena_strndup(v->draft->arena, name, strlen(name));
	if (!c || !c->name)
		return err_set(err, ENOMEM, "out of memory");
	c->bytes = bytes;
	c->wants = wants;
	rc = volumes_where(v->draft, volume, &c->where, NULL);
	if (rc == -EINVAL) { /* such a volume is for no node */
		v->candidates_count--;
		return 0;
	}
	if (rc < 0)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < v->wants_count; i++)
		if (keeps >> i & 1 && !v->wants[i].reserved)
			v->wants[i].reserved = c->name;
	return 0;
}

static void visit_volume(void *visitor, const struct json *volume)
{
	struct visit *visit = visitor;
	struct volumes *v = visit->volumes;
	const char *name = json_str(volume, "metadata", "name");
	int64_t bytes = bytes_of(json_get(volume, "spec", "capacity", "storage"));
	uint32_t wants = 0, keeps = 0;

	if (visit->rc < 0 || !name || strcmp(volumes_class(volume), visit->class) != 0 ||
	    json_str(volume, "metadata", "deletionTimestamp") ||
	    v->candidates_count == CANDIDATES_MAX)
		return;
	for (uint32_t i = 0; i < v->wants_count; i++) {
		const struct want *w = &v->wants[i];
		enum owner owner;

		if (w->node || strcmp(w->class_name, visit->class) != 0 ||
		    !is_big_enough(volume, bytes, w))
			continue;
		owner = owner_of(v, volume, name, w);
		if (owner == OWNER_SELF)
			keeps |= 1U << i;
		else if (owner == OWNER_NONE && is_free_for(volume, w))
			wants |= 1U << i;
	}
	if (wants | keeps)
		visit->rc = add_candidate(v, volume, bytes, wants, keeps, visit->err);
}

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return strcmp(x->name, y->name);
}

static bool is_first_of_class(const struct volumes *v, uint32_t want)
{
	for (uint32_t i = 0; i < want; i++)
		if (!v->wants[i].node &&
		    strcmp(v->wants[i].class_name, v->wants[want].class_name) == 0)
			return false;
	return !v->wants[want].node;
}

int volumes_find(struct volumes *v, struct err *err)
{
	const struct dialect_lookup *l = v->draft->lookup;
	struct visit visit = { .volumes = v, .err = err };

	for (uint32_t i = 0; visit.rc == 0 && i < v->wants_count; i++) {
		if (!is_first_of_class(v, i))
			continue;
		visit.class = v->wants[i].class_name;
		l->each(l->context, "PersistentVolume", visit.class, visit_volume, &visit);
	}
	if (v->candidates_count)
		qsort(v->candidates, v->candidates_count, sizeof(*v->candidates),
		      compare_candidates);
	return visit.rc;
}

static struct node_term *term_new(struct visit *visit)
{
	if (visit->terms_count == visit->terms_room) {
		uint32_t room = visit->terms_room ? 2 * visit->terms_room : 16;
		struct node_term *grown =
			arena_array(visit->volumes->draft->arena, room, sizeof(*grown));

		if (!grown)
			return NULL;
		if (visit->terms_count)
			memcpy(grown, visit->terms, visit->terms_count * sizeof(*grown));
		visit->terms = grown;
		visit->terms_room = room;
	}
	return &visit->terms[visit->terms_count];
}

/* A label selector over nodes; one that is empty holds for all of them. */
static int add_topology(struct visit *visit, const struct json *selector)
{
	struct draft *d = visit->volumes->draft;
	const struct json *pairs = json_get(selector, "matchLabels");
	const struct json *list = json_get(selector, "matchExpressions");
	size_t len = json_len(pairs) + json_len(list);
	struct match *matches = arena_array(d->arena, len + 1, sizeof(*matches));
	struct node_term *term = term_new(visit);
	uint32_t count = 0;
	int rc;

	if (!matches || !term)
		return err_set(visit->err, ENOMEM, "out of memory");
	if (len > RULES_ITEMS_MAX)
		return 0;
	rc = around_pairs(d, pairs, "nodeTopology", matches, &count, NULL);
	if (rc == 0)
		rc = around_matches(d, list, "nodeTopology", false, false, matches, &count, NULL);
	if (rc == 0)
		rc = volumes_own(d, matches, count);
	if (rc == -EINVAL) /* one that cannot be read holds for none */
		return 0;
	if (rc < 0)
		return err_set(visit->err, ENOMEM, "out of memory");
	*term = (struct node_term){ matches, count };
	visit->terms_count += count > 0;
	visit->always |= !count;
	return 0;
}

static void visit_capacity(void *visitor, const struct json *capacity)
{
	struct visit *visit = visitor;
	const struct json *most = json_get(capacity, "maximumVolumeSize");
	const struct json *topology = json_get(capacity, "nodeTopology");
	struct quantity q;

	if (json_type(most) <= JSON_NULL)
		most = json_get(capacity, "capacity");
	if (visit->rc < 0 ||
	    strcmp(or_empty(json_str(capacity, "storageClassName")), visit->class) != 0 ||
	    quantity_from_json(most, &q, NULL) < 0 || quantity_value(q) < visit->want->bytes ||
	    json_type(topology) != JSON_OBJECT)
		return;
	visit->rc = add_topology(visit, topology);
}

/* The class's allowedTopologies: none means every node. */
static int read_topologies(struct visit *visit)
{
	struct draft *d = visit->volumes->draft;
	struct json_iter iter = json_items(visit->want->class, "allowedTopologies");
	int rc = 0;

	visit->always = !json_len(visit->want->class, "allowedTopologies");
	for (const struct json *item; rc == 0 && (item = json_next(&iter));) {
		struct json_iter list = json_items(item, "matchLabelExpressions");
		size_t len = json_len(item, "matchLabelExpressions");
		struct match *matches = arena_array(d->arena, len + 1, sizeof(*matches));
		struct node_term *term = term_new(visit);

		if (!matches || !term)
			return err_set(visit->err, ENOMEM, "out of memory");
		if (len > RULES_ITEMS_MAX)
			continue;
		*term = (struct node_term){ matches, 0 };
		visit->terms_count++;
		for (const struct json *m; rc == 0 && (m = json_next(&list));) {
			struct match *match = &matches[term->count++];

			match->key = or_empty(json_str(m, "key"));
			rc = around_strings(d, json_get(m, "values"), "allowedTopologies",
					    &match->values, &match->values_count, visit->err);
		}
	}
	return rc;
}

/* `existing` or what the visit has found: one of them must hold. */
static int add_demand(const struct visit *visit, const struct node_term *existing, uint32_t count,
		      enum verdict refusal)
{
	struct volumes *v = visit->volumes;
	uint32_t sum = count + visit->terms_count;
	struct node_term *terms = arena_array(v->draft->arena, sum + 1, sizeof(*terms));
	struct node_group *group;

	if (visit->always)
		return 0;
	group = volumes_group(v, refusal);
	if (!terms || !group)
		return err_set(visit->err, ENOMEM, "out of memory");
	if (count)
		memcpy(terms, existing, count * sizeof(*terms));
	if (visit->terms_count)
		memcpy(terms + count, visit->terms, visit->terms_count * sizeof(*terms));
	group->terms = terms;
	group->count = sum;
	return 0;
}

static int demand_node(struct volumes *v, const struct want *w, struct err *err)
{
	struct match *match = arena_alloc(v->draft->arena, sizeof(*match));
	const char **name = arena_alloc(v->draft->arena, sizeof(*name));
	struct visit visit = { .volumes = v, .terms_count = 1, .err = err };

	visit.terms = arena_alloc(v->draft->arena, sizeof(*visit.terms));
	if (!match || !name || !visit.terms)
		return err_set(err, ENOMEM, "out of memory");
	*name = w->node;
	*match = (struct match){ .op = MATCH_NAME_IN, .values = name, .values_count = 1 };
	*visit.terms = (struct node_term){ match, 1 };
	return add_demand(&visit, NULL, 0, NO_VOLUME);
}

static bool can_be_made(const struct want *w)
{
	const char *provisioner = or_empty(json_str(w->class, "provisioner"));

	return *provisioner && strcmp(provisioner, "kubernetes.io/no-provisioner") != 0;
}

/* Whether the driver tells how much storage is left where. */
static bool tells_capacity(const struct volumes *v, const struct want *w)
{
	const struct dialect_lookup *l = v->draft->lookup;
	const struct json *driver =
		l->find(l->context, "CSIDriver", "", or_empty(json_str(w->class, "provisioner")));
	bool tells = false;

	return w->sized && json_bool(driver, &tells, "spec", "storageCapacity") == 0 && tells;
}

int volumes_demand_want(struct volumes *v, uint32_t i, bool existing, struct err *err)
{
	const struct dialect_lookup *l = v->draft->lookup;
	const struct want *w = &v->wants[i];
	const struct node_term *terms = NULL;
	struct visit place = { .volumes = v, .class = w->class_name, .want = w, .err = err };
	struct visit room = place;
	uint32_t count = 0;
	bool always = false;
	int rc = 0;

	if (w->node)
		rc = demand_node(v, w, err);
	else if (existing)
		rc = volumes_terms(v, i, &terms, &count, &always, err);
	if (rc < 0 || always)
		return rc;
	if (can_be_made(w))
		rc = read_topologies(&place);
	if (rc == 0)
		rc = add_demand(&place, terms, count, NO_VOLUME);
	if (rc < 0 || !can_be_made(w) || !tells_capacity(v, w))
		return rc;
	l->each(l->context, "CSIStorageCapacity", w->class_name, visit_capacity, &room);
	return room.rc < 0 ? room.rc : add_demand(&room, terms, count, NO_VOLUME_ROOM);
}

int volumes_demand(struct volumes *v, struct err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < v->wants_count; i++)
		rc = volumes_demand_want(v, i, true, err);
	return rc;
}
