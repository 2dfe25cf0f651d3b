/* SPDX-License-Identifier: Apache-2.0 */
/* resources.c - the resources dialect: GPUs in the limits of containers.
 *
 *	nvidia.com/gpu            whole cards
 *	nvidia.com/mig-<profile>  slices
 *	elasticgpu.io/gpu-core    percent of a card; 100 and its multiples are whole cards
 *	elasticgpu.io/gpu-memory  MiB of a card
 *	elasticgpu.io/qgpu-core, qgpu-memory   the same under their other names
 *	elasticgpu.io/pgpu        whole cards
 *
 * Each container has cards of its own.  A container that asks in two of these ways for
 * the same thing is fine; MIG slices come in addition to cards.  Memory beside whole
 * cards says nothing more: they have all of theirs.
 *
 * Init containers run before the others and use their cards (init.c).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "dialect/draft.h"
#include "dialect/keys.h"
#include "dialect/want.h"
#include "wire/json.h"
#include "wire/quantity.h"

#define PERCENT_MILLI 10
#define NANO	      1000000000
#define CARD_MIB_MAX  (1 << 24) /* 16 TiB: nobody means that in MiB */
#define MIB	      (1 << 20)

struct container {
	const char *name;
	const struct json *resources;
	struct wish_container *box;
	uint16_t beside; /* asks of the sidecars that run already, if it is an init container */
};

/* The limit of that name as a whole number, 0 if there is none. */
static int limit_of(const struct container *c, const char *resource, int64_t max, int64_t *ret,
		    struct err *err)
{
	const struct json *limit = json_get(c->resources, "limits", resource);
	const struct json *request = json_get(c->resources, "requests", resource);
	struct quantity q, requested;
	struct err inner = ERR_INIT;

	*ret = 0;
	if (!limit && request)
		return err_set(err, EINVAL, "container %s: %s needs a limit, not only a request",
			       c->name, resource);
	if (!limit)
		return 0;
	if (quantity_from_json(limit, &q, &inner) < 0)
		return err_set(err, EINVAL, "container %s: %s: %s", c->name, resource,
			       *inner.text ? inner.text : "is empty");
	if (q.nano < 0 || q.nano % NANO != 0)
		return err_set(err, EINVAL, "container %s: %s must be a whole number, 0 or more",
			       c->name, resource);
	if (request &&
	    (quantity_from_json(request, &requested, &inner) < 0 || requested.nano != q.nano))
		return err_set(err, EINVAL, "container %s: request and limit of %s differ",
			       c->name, resource);
	*ret = quantity_value(q);
	if (*ret > max)
		return err_set(err, EINVAL, "container %s: %s is above %lld", c->name, resource,
			       (long long)max);
	return 0;
}

static int want_whole(const struct container *c, const char *resource, struct want *ret,
		      struct err *err)
{
	int64_t count;
	int rc = limit_of(c, resource, GPU_MAX, &count, err);

	if (rc < 0 || count == 0)
		return rc;
	*ret = (struct want){ .kind = ASK_WHOLE, .count = (uint8_t)count, .named = resource };
	return 0;
}

/* Memory in bytes, as Kubernetes has it everywhere else: a binary suffix gives it away,
 * or a number that no card has.  Decimal suffixes prove nothing: the API server writes
 * 8000 as 8k. */
static int check_unit(const struct container *c, const char *resource, int64_t value,
		      struct err *err)
{
	const struct json *limit = json_get(c->resources, "limits", resource);
	const char *text = json_str(limit);
	int64_t mib = value / MIB + (value % MIB != 0);

	if (value <= CARD_MIB_MAX && !(text && strchr(text, 'i')))
		return 0;
	return err_set(err, EINVAL,
		       "container %s: %s counts in MiB, not in bytes: for %lld bytes write %lld",
		       c->name, resource, (long long)value, (long long)mib);
}

static int want_share(const struct container *c, const char *core_name, const char *mem_name,
		      struct want *ret, struct err *err)
{
	int64_t core, mem;
	int rc;

	if ((rc = limit_of(c, core_name, GPU_MAX * 100, &core, err)) < 0 ||
	    (rc = limit_of(c, mem_name, INT64_MAX, &mem, err)) < 0 ||
	    (rc = check_unit(c, mem_name, mem, err)) < 0)
		return rc;
	if (core > 100 && core % 100 != 0)
		return err_set(err, EINVAL,
			       "container %s: %s is %lld: above 100 it must be a "
			       "multiple of 100",
			       c->name, core_name, (long long)core);
	if (core == 0 && mem == 0)
		return 0;
	*ret = (struct want){ .kind = ASK_SHARE,
			      .count = 1,
			      .core_milli = (uint16_t)(core < 100 ? core * PERCENT_MILLI : 0),
			      .mem_mib = (uint32_t)mem,
			      .named = core ? core_name : mem_name };
	if (core >= 100)
		*ret = (struct want){ .kind = ASK_WHOLE,
				      .count = (uint8_t)(core / 100),
				      .named = core_name };
	return 0;
}

/* Two ways to say it must say the same. */
static int agree(const struct container *c, struct want *known, const struct want *more,
		 struct err *err)
{
	if (!more->kind)
		return 0;
	if (!known->kind) {
		*known = *more;
		return 0;
	}
	if (known->kind == more->kind && known->count == more->count &&
	    known->core_milli == more->core_milli && known->mem_mib == more->mem_mib)
		return 0;
	return err_set(err, EINVAL, "container %s: %s and %s ask for different GPUs", c->name,
		       known->named, more->named);
}

static int want_of(const struct container *c, struct want *ret, struct err *err)
{
	struct want wants[4] = { 0 };
	int rc;

	if ((rc = want_whole(c, RESOURCE_GPU, &wants[0], err)) < 0 ||
	    (rc = want_whole(c, RESOURCE_PGPU, &wants[1], err)) < 0 ||
	    (rc = want_share(c, RESOURCE_CORE, RESOURCE_MEMORY, &wants[2], err)) < 0 ||
	    (rc = want_share(c, RESOURCE_QGPU_CORE, RESOURCE_QGPU_MEMORY, &wants[3], err)) < 0)
		return rc;
	for (unsigned i = 1; i < ARRAY_SIZE(wants) && rc == 0; i++)
		rc = agree(c, &wants[0], &wants[i], err);
	*ret = wants[0];
	return rc;
}

static int add_want(struct draft *d, const struct container *c, const struct want *want,
		    struct err *err)
{
	if (c->box->init)
		return init_want(d, c->box, c->beside, want, err);
	return want_add(d, c->box, want, err);
}

static int read_slices(struct draft *d, const struct container *c, struct err *err)
{
	struct json_iter iter = json_members(c->resources, "limits");
	const size_t prefix = sizeof(RESOURCE_MIG_PREFIX) - 1;
	struct json_member m;
	int rc = 0;

	while (rc == 0 && json_next_member(&iter, &m)) {
		const char *profile = m.key + prefix;
		int64_t count;

		if (strncmp(m.key, RESOURCE_MIG_PREFIX, prefix) != 0)
			continue;
		if (!*profile || strlen(profile) >= sizeof(d->request->asks[0].mig_profile))
			return err_set(err, EINVAL, "container %s: %s names no MIG profile",
				       c->name, m.key);
		if ((rc = limit_of(c, m.key, 64, &count, err)) < 0 || count == 0)
			continue;
		struct want want = { .kind = ASK_MIG,
				     .count = (uint8_t)count,
				     .profile = profile,
				     .named = m.key };
		rc = add_want(d, c, &want, err);
	}
	return rc;
}

/* A GPU resource whose name we do not know would be passed over silently. */
static int check_names(const struct container *c, struct err *err)
{
	static const char *const known[] = { RESOURCE_GPU,	   RESOURCE_CORE,
					     RESOURCE_MEMORY,	   RESOURCE_QGPU_CORE,
					     RESOURCE_QGPU_MEMORY, RESOURCE_PGPU };
	struct json_iter iter = json_members(c->resources, "limits");
	const size_t prefix = sizeof(RESOURCE_MIG_PREFIX) - 1;
	struct json_member m;

	while (json_next_member(&iter, &m)) {
		bool found = !dialect_is_gpu_resource(m.key) ||
			     strncmp(m.key, RESOURCE_MIG_PREFIX, prefix) == 0;

		for (unsigned i = 0; i < ARRAY_SIZE(known) && !found; i++)
			found = strcmp(known[i], m.key) == 0;
		if (found)
			continue;
		const char *near = draft_nearest_key(m.key, known, ARRAY_SIZE(known));
		return err_set(err, EINVAL, "container %s: resource %s is unknown%s%s%s", c->name,
			       m.key, near ? ", did you mean " : "", near ? near : "",
			       near ? "?" : "");
	}
	return 0;
}

static int read_container(struct draft *d, const struct container *c, struct err *err)
{
	struct want want = { .kind = 0 };
	int rc;

	if ((rc = check_names(c, err)) < 0 || (rc = want_of(c, &want, err)) < 0)
		return rc;
	if (want.kind && (rc = add_want(d, c, &want, err)) < 0)
		return rc;
	c->box->core_milli = want.core_milli;
	c->box->mem_mib = want.mem_mib;
	return read_slices(d, c, err);
}

static bool is_sidecar(const struct json *container)
{
	const char *restart = json_str(container, "restartPolicy");

	return restart && strcmp(restart, "Always") == 0;
}

/* The container's place in the wish; its name is good (form.c), but is it the only one? */
static int add_box(struct draft *d, const char *name, struct wish_container **ret, struct err *err)
{
	struct wish *w = d->wish;

	for (unsigned i = 0; i < w->containers_count; i++)
		if (strcmp(w->containers[i].name, name) == 0)
			return err_set(err, EINVAL, "two containers are named %s", name);
	if (w->containers_count == WISH_CONTAINERS_MAX)
		return err_set(err, EINVAL, "the pod has more than %d containers",
			       WISH_CONTAINERS_MAX);
	*ret = &w->containers[w->containers_count];
	(*ret)->name = draft_printf(d, "%s", name);
	if (!(*ret)->name)
		return err_set(err, ENOMEM, "out of memory");
	w->containers_count++;
	return 0;
}

/* Reads either the init containers that come and go, or all others. */
static int read_list(struct draft *d, const char *list, bool init, struct err *err)
{
	struct json_iter iter = json_items(d->source->object, "spec", list);
	const struct json *object;
	unsigned sidecars = 0;
	uint16_t beside = 0;
	int rc = 0;

	while (rc == 0 && (object = json_next(&iter))) {
		if (strcmp(list, "initContainers") == 0 && is_sidecar(object) == init) {
			/* Sidecars were read first, in this order. */
			beside |= init ? d->wish->containers[sidecars++].asks : 0;
			continue;
		}
		struct container c = { .resources = json_get(object, "resources"),
				       .beside = beside };
		rc = add_box(d, json_str(object, "name"), &c.box, err);
		if (rc < 0 || !c.box)
			return rc;
		c.name = c.box->name;
		c.box->init = init;
		rc = read_container(d, &c, err);
		if (rc == -EINVAL && d->resident)
			rc = 0;
	}
	return rc;
}

int read_limits(struct draft *d, struct err *err)
{
	int rc;

	if ((rc = read_list(d, "initContainers", false, err)) < 0 ||
	    (rc = read_list(d, "containers", false, err)) < 0 ||
	    (rc = read_list(d, "initContainers", true, err)) < 0)
		return rc;
	if (d->request->asks_count)
		d->asked_by = "the limits of its containers";
	d->asked_by_many = d->asked_by != NULL;
	return 0;
}
