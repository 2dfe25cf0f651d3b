/* SPDX-License-Identifier: Apache-2.0 */
/* needs.c - what the pod takes of its node besides GPUs.
 *
 * The rule of Kubernetes, per resource: containers and sidecars (init containers that
 * restart always) run together; each other init container runs beside the sidecars
 * that started before it; the pod needs the greater of both.  Requests of the pod as a
 * whole replace that for CPU, memory and huge pages.  Overhead comes on top.
 *
 * A pod that is there may be in the middle of a resize: what it asks for, what the kubelet
 * has granted and what it has then differ, and it takes the most of them.  What it asks for
 * does not count while the kubelet says that it can never be.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "dialect/draft.h"
#include "dialect/keys.h"
#include "engine/cluster.h"
#include "wire/json.h"
#include "wire/quantity.h"

#define TALLY_MAX (3 + EXTENDED_MAX)

/* One resource, summed up. */
struct tally {
	const char *name;
	int64_t together; /* containers and sidecars */
	int64_t sidecars; /* of those seen so far */
	int64_t starting; /* the most while init containers run */
};

struct tallies {
	struct tally items[TALLY_MAX];
	unsigned count;
	bool lenient;	 /* what cannot be read is left out */
	bool infeasible; /* the resize that the pod asks for */
};

enum role { ROLE_CONTAINER, ROLE_SIDECAR, ROLE_INIT, ROLE_POD, ROLE_OVERHEAD };

bool dialect_is_gpu_resource(const char *name)
{
	return strncmp(name, RESOURCE_MIG_PREFIX, sizeof(RESOURCE_MIG_PREFIX) - 1) == 0 ||
	       strcmp(name, RESOURCE_GPU) == 0 ||
	       strncmp(name, PREFIX_ELASTIC, sizeof(PREFIX_ELASTIC) - 1) == 0;
}

/* Only these count; others (requests.*, unknown plain words) have no meaning for a node. */
static bool is_counted(const char *name)
{
	if (dialect_is_gpu_resource(name))
		return false;
	return strcmp(name, "cpu") == 0 || strcmp(name, "memory") == 0 ||
	       strcmp(name, "ephemeral-storage") == 0 || strncmp(name, "hugepages-", 10) == 0 ||
	       (strchr(name, '/') && strncmp(name, "requests.", 9) != 0);
}

static bool is_pod_level(const char *name)
{
	return strcmp(name, "cpu") == 0 || strcmp(name, "memory") == 0 ||
	       strncmp(name, "hugepages-", 10) == 0;
}

static struct tally *tally_of(struct tallies *t, const char *name, struct err *err)
{
	for (unsigned i = 0; i < t->count; i++)
		if (strcmp(t->items[i].name, name) == 0)
			return &t->items[i];
	if (t->count == TALLY_MAX) {
		err_set(err, EINVAL, "the pod asks for more than %d kinds of resources",
			TALLY_MAX);
		return NULL;
	}
	t->items[t->count] = (struct tally){ .name = name };
	return &t->items[t->count++];
}

/* The sum of two amounts, neither negative; the greatest number if it is more. */
static int64_t plus(int64_t a, int64_t b)
{
	int64_t sum;

	return ADD_OVERFLOW(a, b, &sum) ? INT64_MAX : sum;
}

static void tally_add(struct tally *t, enum role role, int64_t amount)
{
	switch (role) {
	case ROLE_CONTAINER:
		t->together = plus(t->together, amount);
		break;
	case ROLE_SIDECAR:
		t->together = plus(t->together, amount);
		t->sidecars = plus(t->sidecars, amount);
		break;
	case ROLE_INIT:
		t->starting = MAX(t->starting, plus(t->sidecars, amount));
		break;
	case ROLE_POD:
		t->together = amount;
		t->starting = 0;
		break;
	case ROLE_OVERHEAD:
		t->together = plus(MAX(t->together, t->starting), amount);
		t->starting = 0;
		break;
	}
}

static int amount_of(const struct json *value, const char *resource, const char *where,
		     int64_t *ret, struct err *err)
{
	struct quantity q;
	struct err inner = ERR_INIT;
	int rc = quantity_from_json(value, &q, &inner);

	if (rc < 0)
		return err_set(err, EINVAL, "%s: %s: %s", where, resource,
			       rc == -ENOENT ? "is empty" : inner.text);
	if (q.nano < 0)
		return err_set(err, EINVAL, "%s: %s is negative", where, resource);
	*ret = strcmp(resource, "cpu") == 0 ? quantity_milli(q) : quantity_value(q);
	return 0;
}

static int add_member(struct tallies *t, const struct json_member *m, enum role role,
		      const char *where, struct err *err)
{
	int64_t amount = 0;

	if (!is_counted(m->key) || (role == ROLE_POD && !is_pod_level(m->key)))
		return 0;
	int rc = amount_of(m->value, m->key, where, &amount, err);
	struct tally *tally = rc < 0 ? NULL : tally_of(t, m->key, err);
	if (!tally)
		return t->lenient ? 0 : -EINVAL;
	tally_add(tally, role, amount);
	return 0;
}

/* Requests, and limits where there is no request of that name: the API server would
 * have copied them. */
static int add_resources(struct tallies *t, const struct json *resources, enum role role,
			 const char *where, struct err *err)
{
	const struct json *requests = json_get(resources, "requests");
	struct json_iter iter = json_members(requests);
	struct json_member m;
	int rc = 0;

	while (rc == 0 && json_next_member(&iter, &m))
		rc = add_member(t, &m, role, where, err);
	iter = json_members(resources, "limits");
	while (rc == 0 && json_next_member(&iter, &m))
		if (!json_get(requests, m.key))
			rc = add_member(t, &m, role, where, err);
	return rc;
}

static bool is_more(const struct json *a, const struct json *b)
{
	struct quantity x, y;

	if (quantity_from_json(a, &x, NULL) < 0)
		return false;
	return quantity_from_json(b, &y, NULL) < 0 || x.nano > y.nano;
}

/* Of each resource the most that one of the maps says. */
static int add_most(struct tallies *t, const struct json *const *maps, unsigned count,
		    enum role role, const char *where, struct err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < count; i++) {
		struct json_iter iter = json_members(maps[i]);
		struct json_member m;

		while (rc == 0 && json_next_member(&iter, &m)) {
			const char *key = m.key;
			bool seen = false;

			for (unsigned j = 0; j < i; j++)
				seen |= json_get(maps[j], key) != NULL;
			for (unsigned j = i + 1; j < count; j++)
				if (is_more(json_get(maps[j], key), m.value))
					m.value = json_get(maps[j], key);
			if (!seen)
				rc = add_member(t, &m, role, where, err);
		}
	}
	return rc;
}

/* What a container, or the pod as a whole, asks for; with what its status says of it (NULL:
 * nothing). */
static int add_actual(struct tallies *t, const struct json *resources, const struct json *status,
		      enum role role, const char *where, struct err *err)
{
	const struct json *maps[3] = { json_get(status, "resources", "requests"),
				       json_get(status, "allocatedResources") };
	unsigned count = 2;

	if (!maps[0] && !maps[1])
		return add_resources(t, resources, role, where, err);
	if (!t->infeasible)
		maps[count++] = json_get(resources, "requests");
	return add_most(t, maps, count, role, where, err);
}

/* The status of that container, or NULL. */
static const struct json *status_of(const struct json *statuses, const char *name)
{
	struct json_iter iter = json_items(statuses);
	const struct json *status;

	while (name && (status = json_next(&iter))) {
		const char *own = json_str(status, "name");

		if (own && strcmp(own, name) == 0)
			return status;
	}
	return NULL;
}

static int add_containers(struct tallies *t, struct json_iter list, const struct json *statuses,
			  bool init, struct err *err)
{
	const struct json *c;
	int rc = 0;

	while (rc == 0 && (c = json_next(&list))) {
		const char *restart = json_str(c, "restartPolicy");
		const char *name = json_str(c, "name");
		enum role role = !init ? ROLE_CONTAINER : ROLE_INIT;
		char where[96];

		if (init && restart && strcmp(restart, "Always") == 0)
			role = ROLE_SIDECAR;
		snprintf(where, sizeof(where), "container %.64s", name ? name : "without a name");
		rc = add_actual(t, json_get(c, "resources"), status_of(statuses, name), role,
				where, err);
	}
	return rc;
}

static int add_overhead(struct tallies *t, const struct json *spec, struct err *err)
{
	struct json_iter iter = json_members(spec, "overhead");
	struct json_member m;
	int rc = 0;

	while (rc == 0 && json_next_member(&iter, &m))
		rc = add_member(t, &m, ROLE_OVERHEAD, "overhead", err);
	return rc;
}

static int add_extended(struct draft *d, const char *name, int64_t amount, struct err *err)
{
	struct request *r = d->request;
	uint32_t resource = cluster_resource_asked(d->cluster, name);

	if (resource == UINT32_MAX)
		return err_set(err, ENOMEM, "out of memory");
	if (r->extended_count == EXTENDED_MAX)
		return err_set(err, EINVAL, "the pod asks for more than %d extended resources",
			       EXTENDED_MAX);
	r->extended[r->extended_count++] =
		(struct extended){ .resource = resource, .amount = amount };
	return 0;
}

static int settle(struct draft *d, const struct tally *t, struct err *err)
{
	struct resources *needs = &d->request->needs;
	int64_t amount = MAX(t->together, t->starting);

	if (strcmp(t->name, "cpu") == 0)
		needs->cpu_milli = amount;
	else if (strcmp(t->name, "memory") == 0)
		needs->mem_bytes = amount;
	else if (strcmp(t->name, "ephemeral-storage") == 0)
		needs->ephemeral_bytes = amount;
	else if (amount > 0)
		return add_extended(d, t->name, amount, err);
	return 0;
}

static bool is_infeasible(const struct json *status)
{
	struct json_iter iter = json_items(status, "conditions");
	const struct json *condition;

	while ((condition = json_next(&iter))) {
		const char *type = json_str(condition, "type");
		const char *reason = json_str(condition, "reason");

		if (type && reason && strcmp(type, "PodResizePending") == 0 &&
		    strcmp(reason, "Infeasible") == 0)
			return true;
	}
	return false;
}

int read_needs(struct draft *d, struct err *err)
{
	const struct json *spec = json_get(d->source->object, "spec");
	/* Of one that is not there yet the status says nothing about what it takes. */
	const struct json *status = d->resident ? json_get(d->source->object, "status") : NULL;
	const struct json *whole = json_get(spec, "resources", "requests") ? status : NULL;
	struct tallies t = { .lenient = d->resident, .infeasible = is_infeasible(status) };
	int rc;

	/* Sidecars before the containers: an init container counts those before it only. */
	if ((rc = add_containers(&t, json_items(spec, "initContainers"),
				 json_get(status, "initContainerStatuses"), true, err)) < 0 ||
	    (rc = add_containers(&t, json_items(spec, "containers"),
				 json_get(status, "containerStatuses"), false, err)) < 0 ||
	    (rc = add_actual(&t, json_get(spec, "resources"), whole, ROLE_POD, "the pod", err)) <
		    0 ||
	    (rc = add_overhead(&t, spec, err)) < 0)
		return rc;
	for (unsigned i = 0; i < t.count && rc == 0; i++) {
		rc = settle(d, &t.items[i], err);
		if (rc == -EINVAL && d->resident)
			rc = 0;
	}
	return rc;
}
