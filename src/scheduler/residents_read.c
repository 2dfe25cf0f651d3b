/* SPDX-License-Identifier: Apache-2.0 */
/* residents_read.c - what a pod that is there takes of its node, read from its document. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "dialect/dialect.h"
#include "dialect/keys.h"
#include "kube/object.h"
#include "kube/views/pod.h"
#include "scheduler/budgets.h"
#include "scheduler/inventory.h"
#include "scheduler/lookup.h"
#include "scheduler/residents_private.h"
#include "wire/json.h"

/* One that has not started is younger than all that have. */
#define NOT_STARTED ((uint64_t)INT64_MAX)

static void complain(const struct residents *residents, const struct resident *r,
		     const struct err *err)
{
	/* The same pod changes its status many times. */
	if (!err->code || r->seen || !residents->options.log)
		return;
	log_warn(residents->options.log, "not all that a pod on a node takes can be read",
		 LOG_STR("namespace", r->pod->namespace), LOG_STR("pod", r->pod->name),
		 LOG_STR("node", r->host->name), LOG_STR("why", err->text));
}

static uint32_t gang_of(const struct residents *residents, const struct wish *wish)
{
	const char *slash = wish->gang.name ? strchr(wish->gang.name, '/') : NULL;

	if (!slash || !residents->options.gang)
		return 0;
	return residents->options.gang(residents->options.context, wish->namespace, slash + 1);
}

/* A pod of a Job ends when its work is done; one that is always started again does not. */
static bool is_endless(const struct json *pod)
{
	const char *restart = json_str(pod, "spec", "restartPolicy");

	return !restart || strcmp(restart, "Always") == 0;
}

static void read_spec(const struct residents *residents, const struct resident *r,
		      const struct json *object, struct residence *ret)
{
	const struct budgets *budgets = residents->options.budgets;
	const struct kube_object *pod = r->pod;
	struct pod_view view;
	int64_t started = -1;

	if (pod_view_read(object, &view, NULL) == 0)
		started = view.started_ns;
	ret->spec = (struct pod_spec){
		.uid = r->uid,
		.name = pod->name,
		.priority = ret->wish.priority,
		.gang = gang_of(residents, &ret->wish),
		.started = started >= 0 ? (uint64_t)started : NOT_STARTED,
		.budget = budgets ? budgets_of(budgets, pod->namespace, pod->name,
					       json_get(object, "metadata", "labels"))
				  : 0,
		.endless = is_endless(object),
		.ending = json_type(object, "metadata", "deletionTimestamp") == JSON_STRING,
	};
}

/* Its index of a map is taken as long as it lives. */
static int keep_index(const struct residents *residents, const struct resident *r,
		      const struct wish *wish)
{
	if (!wish->workload || wish->index == WISH_INDEX_NONE)
		return 0;
	return lookup_take_index(residents->options.lookup, wish->workload, wish->index, r->uid);
}

static int read_wish(struct residents *residents, const struct resident *r,
		     const struct json *object, const struct decided *decided,
		     struct residence *ret)
{
	const struct dialect_lookup *lookup = lookup_dialect(residents->options.lookup);
	struct pod_source source;
	struct err err = ERR_INIT;
	int rc = pod_source_read(object, lookup, &source, &err);

	/* Without so much as a name there is nothing to be read. */
	if (rc < 0)
		source = (struct pod_source){ .object = object,
					      .namespace = r->pod->namespace,
					      .name = r->pod->name,
					      .index = POD_INDEX_NONE };
	source.uid = r->uid;
	if (decided && decided->index != DECIDED_INDEX_NONE)
		source.index = decided->index;
	rc = dialect_read_resident(residents->cluster, lookup, &source, &residents->arena,
				   &ret->wish, &err);
	ret->unclear = source.owner_missing || err.code == ENOENT;
	lookup_reset(residents->options.lookup);
	if (rc == 0)
		complain(residents, r, &err);
	return rc;
}

/* The cards that it has.  Where somebody else hands them out, what it was given counts, not what
 * was decided. */
static void read_holds(const struct residents *residents, const struct resident *r, uint32_t node,
		       const struct decided *decided, struct residence *ret)
{
	const struct inventory *inventory = residents->options.inventory;
	uint32_t used = inventory_in_use(inventory, r->host->name, r->uid);
	const struct request *request = &ret->wish.request;

	ret->has_known = decided || used;
	ret->holds_said = decided ? decided->holds_count : 0;
	if (decided)
		holds_of_decision(residents->cluster, node, decided, request, &ret->known);
	if (!used || (decided && ret->known.gpus == used) ||
	    (decided && inventory_injection(inventory, r->host->name) != INJECTION_EXTERNAL))
		return;
	holds_of_use(residents->cluster, node, request, used, &ret->known);
	ret->holds_said = 0;
}

int residence_read(struct residents *residents, const struct resident *r, uint32_t node,
		   const struct json *object, struct residence *ret)
{
	struct cluster *c = residents->cluster;
	struct decided decided;
	struct err err = ERR_INIT;
	int rc;

	arena_reset(&residents->arena);
	rc = decided_read(object, &residents->arena, &decided, &err);
	if (rc == -ENOMEM)
		return rc;
	if (rc == -EINVAL)
		complain(residents, r, &err);
	bool is_decided = rc == 0;
	rc = read_wish(residents, r, object, is_decided ? &decided : NULL, ret);
	if (rc < 0)
		return rc;
	rc = is_decided ? keep_index(residents, r, &ret->wish) : 0;
	if (rc < 0) {
		wish_release(c, &ret->wish);
		return rc;
	}
	read_spec(residents, r, object, ret);
	read_holds(residents, r, node, is_decided ? &decided : NULL, ret);
	return 0;
}
