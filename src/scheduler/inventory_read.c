/* SPDX-License-Identifier: Apache-2.0 */
/* inventory_read.c - a Node and its report as the engine is told of them, and hashes of that,
 * by which an update that changes nothing is known. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/hash.h"
#include "engine/cluster.h"
#include "engine/links.h"
#include "scheduler/inventory_private.h"
#include "wire/json.h"

uint64_t inventory_hash(const struct inventory *inventory, const char *text)
{
	return hash_bytes(text, strlen(text), inventory->seed);
}

/* What dialect/ asks for while it reads. */
struct links_context {
	struct inventory *inventory;
	struct err *err;
};

static const struct links *find_links(void *context, const struct links_input *input)
{
	struct links_context *c = context;

	return linkset_get(&c->inventory->links, input, c->err);
}

static void put_number(struct strbuf *out, uint64_t number)
{
	strbuf_add(out, (const char *)&number, sizeof(number));
}

static void put_string(struct strbuf *out, const char *text)
{
	strbuf_add(out, text, strlen(text) + 1);
}

static void put_resources(struct strbuf *out, const struct node_spec *spec)
{
	put_number(out, (uint64_t)spec->allocatable.cpu_milli);
	put_number(out, (uint64_t)spec->allocatable.mem_bytes);
	put_number(out, (uint64_t)spec->allocatable.ephemeral_bytes);
	put_number(out, (uint64_t)spec->allocatable.pods);
	for (uint32_t i = 0; i < spec->extended_count; i++) {
		put_number(out, spec->extended[i].resource);
		put_number(out, (uint64_t)spec->extended[i].amount);
	}
}

static void put_labels(struct strbuf *out, const struct node_spec *spec)
{
	put_number(out, (uint64_t)spec->unschedulable << 1 | spec->gpus_closed);
	put_number(out, spec->network_gbps);
	put_number(out, spec->performance_milli);
	put_number(out, spec->rdma_ports);
	put_number(out, spec->hcas);
	put_number(out, spec->cufile);
	for (uint32_t i = 0; i < spec->labels_count; i++)
		put_number(out, (uint64_t)spec->labels[i].key << 32 | spec->labels[i].value);
	put_number(out, spec->taints_count);
	for (uint32_t i = 0; i < spec->taints_count; i++) {
		put_number(out, (uint64_t)spec->taints[i].key << 32 | spec->taints[i].value);
		put_number(out, spec->taints[i].effect);
	}
	for (uint32_t i = 0; i < spec->domains_count; i++)
		put_string(out, spec->domains[i]);
}

/* The measured load is left out: it changes with every report and decides nothing. */
static void put_gpus(struct strbuf *out, const struct node_spec *spec)
{
	put_number(out, (uintptr_t)spec->links);
	put_number(out, (uintptr_t)spec->mig);
	for (uint32_t i = 0; i < spec->gpus_count; i++) {
		const struct gpu_spec *gpu = &spec->gpus[i];

		put_string(out, gpu->uuid);
		put_string(out, gpu->model);
		put_number(out, gpu->mem_mib);
		put_number(out,
			   (uint64_t)gpu->numa << 16 | (gpu->unhealthy ? 256 : 0) | gpu->mig_mode);
		strbuf_add(out, (const char *)gpu->mig_made, sizeof(gpu->mig_made));
	}
}

static uint64_t hash_of(struct inventory *inventory, const struct node_spec *spec,
			void (*put)(struct strbuf *out, const struct node_spec *spec))
{
	strbuf_reset(&inventory->bytes);
	put(&inventory->bytes, spec);
	return hash_bytes(inventory->bytes.s, inventory->bytes.len, inventory->seed);
}

/* Their UUIDs, which the engine does not know, but who waits for one does. */
static uint64_t slices_hash(struct inventory *inventory, const struct json *status)
{
	struct json_iter devices = json_items(status, "status", "devices");
	const struct json *device, *slice;

	strbuf_reset(&inventory->bytes);
	for (uint64_t at = 0; (device = json_next(&devices)); at++) {
		struct json_iter slices = json_items(device, "migDevices");

		while ((slice = json_next(&slices))) {
			const char *uuid = json_str(slice, "uuid");
			const char *profile = json_str(slice, "profile");
			int64_t start = -1;

			json_i64(slice, &start, "start");
			put_number(&inventory->bytes, at << 32 | (uint32_t)start);
			put_string(&inventory->bytes, uuid ? uuid : "");
			put_string(&inventory->bytes, profile ? profile : "");
		}
	}
	if (!inventory->bytes.len)
		return 0;
	return hash_bytes(inventory->bytes.s, inventory->bytes.len, inventory->seed);
}

static void add_users(const struct inventory *inventory, const struct json *device,
		      struct reading *r)
{
	struct json_iter iter = json_items(device, "inUseBy");
	const struct json *pod;
	int64_t id;

	if (json_i64(device, &id, "id") < 0 || id < 0 || id >= GPU_MAX)
		return;
	while ((pod = json_next(&iter))) {
		const char *uid = json_str(pod, "uid");

		if (uid && *uid)
			r->users[r->users_count++] = (struct user){ inventory_hash(inventory, uid),
								    gpuset_one((uint32_t)id) };
	}
}

static int by_uid(const void *a, const void *b)
{
	const struct user *x = a, *y = b;

	return x->uid < y->uid ? -1 : x->uid > y->uid;
}

/* Each pod once, in the order of hashes. */
static void merge_users(struct reading *r)
{
	uint32_t kept = 0;

	qsort(r->users, r->users_count, sizeof(*r->users), by_uid);
	for (uint32_t i = 0; i < r->users_count; i++) {
		if (kept && r->users[kept - 1].uid == r->users[i].uid)
			r->users[kept - 1].gpus |= r->users[i].gpus;
		else
			r->users[kept++] = r->users[i];
	}
	r->users_count = kept;
}

static int read_users(struct inventory *inventory, const struct json *status, struct reading *r,
		      struct err *err)
{
	struct json_iter iter = json_items(status, "status", "devices");
	const struct json *device;
	size_t most = 0;

	while ((device = json_next(&iter)))
		most += json_len(device, "inUseBy");
	r->users = arena_array(&inventory->arena, most + 1, sizeof(*r->users));
	if (!r->users)
		return err_set(err, ENOMEM, "out of memory");
	iter = json_items(status, "status", "devices");
	while ((device = json_next(&iter)))
		add_users(inventory, device, r);
	merge_users(r);
	strbuf_reset(&inventory->bytes);
	for (uint32_t i = 0; i < r->users_count; i++) {
		put_number(&inventory->bytes, r->users[i].uid);
		put_number(&inventory->bytes, r->users[i].gpus);
	}
	r->hashes.users = hash_bytes(inventory->bytes.s, inventory->bytes.len, inventory->seed);
	return 0;
}

/* The GPUs that the engine has, said once more. */
static int gpus_as_they_are(struct inventory *inventory, const struct place *place,
			    struct node_spec *spec, struct err *err)
{
	const struct node *n = NULL;
	struct gpu_spec *gpus;

	spec->gpus_count = 0;
	spec->links = NULL;
	spec->mig = NULL;
	if (place->node == NODE_NONE)
		return 0;
	n = cluster_node(inventory->cluster, place->node);
	/* Cards behind those that are linked are missing ones, which the engine keeps itself. */
	spec->gpus_count = n->links ? n->links->count : n->gpus_count;
	gpus = arena_array(&inventory->arena, spec->gpus_count + 1, sizeof(*gpus));
	if (!gpus)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < spec->gpus_count; i++)
		gpus[i] = (struct gpu_spec){
			.uuid = cluster_string(inventory->cluster, n->gpus[i].uuid),
			.model = cluster_model_name(inventory->cluster, n->gpus[i].model),
			.mem_mib = n->gpus[i].mem_mib,
			.numa = n->gpus[i].numa,
			.unhealthy = !n->gpus[i].healthy,
			.load_percent = n->gpus[i].load_percent,
			.mig_mode = n->gpus[i].mig_mode,
		};
	for (uint32_t i = 0; i < spec->gpus_count; i++)
		memcpy(gpus[i].mig_made, n->gpus[i].mig_made, sizeof(gpus[i].mig_made));
	spec->gpus = gpus;
	spec->links = n->links;
	linkset_hold(&inventory->links, n->links);
	spec->mig = n->mig;
	if (!spec->network_gbps)
		spec->network_gbps = n->network_gbps;
	return 0;
}

static int read_spec(struct inventory *inventory, const struct json *node,
		     const struct json *status, struct node_spec *ret, struct err *err)
{
	struct err links_err = ERR_INIT;
	struct links_context context = { inventory, &links_err };
	struct node_options options = {
		.domain_keys = inventory->keys_count ? (const char *const *)inventory->keys : NULL,
		.domain_keys_count = inventory->keys_count,
		.links = find_links,
		.context = &context,
	};
	int rc =
		node_read(inventory->cluster, node, status, &options, &inventory->arena, ret, err);

	if (rc == 0 && links_err.code)
		rc = err_set(err, links_err.code, "GpuNodeStatus %s: %s", ret->name,
			     links_err.text);
	if (rc < 0) {
		linkset_release(&inventory->links, ret->links);
		ret->links = NULL;
	}
	return rc;
}

/* The Node without its report, which cannot be read: `err` says why, unless the Node cannot
 * be read either. */
static int read_partly(struct inventory *inventory, const struct place *place,
		       const struct json *node, struct reading *ret, struct err *err)
{
	struct err of_report = *err;
	int rc = read_spec(inventory, node, NULL, &ret->spec, err);

	if (rc < 0)
		return rc;
	ret->partly = true;
	linkset_release(&inventory->links, ret->spec.links);
	rc = gpus_as_they_are(inventory, place, &ret->spec, err);
	if (rc == 0)
		*err = of_report;
	return rc;
}

int place_read(struct inventory *inventory, const struct place *place, const struct json *node,
	       const struct json *status, struct reading *ret, struct err *err)
{
	struct node_status_view view = { .injection = INJECTION_UNKNOWN };
	int rc = 0;

	*ret = (struct reading){ .injection = INJECTION_UNKNOWN };
	arena_reset(&inventory->arena);
	if (status)
		rc = node_status_view_read(status, &view, err);
	if (rc == 0)
		rc = read_spec(inventory, node, status, &ret->spec, err);
	if (rc == -EINVAL && status)
		rc = read_partly(inventory, place, node, ret, err);
	if (rc < 0)
		return rc;
	ret->spec.gpus_closed = place->closed;
	ret->hashes.resources = hash_of(inventory, &ret->spec, put_resources);
	ret->hashes.labels = hash_of(inventory, &ret->spec, put_labels);
	if (ret->partly) {
		ret->hashes.gpus = place->hashes.gpus;
		ret->hashes.users = place->hashes.users;
		return 0;
	}
	ret->injection = view.injection;
	json_bool(status, &ret->mps, "status", "mps");
	ret->hashes.gpus = hash_of(inventory, &ret->spec, put_gpus);
	ret->hashes.gpus ^= slices_hash(inventory, status);
	rc = inventory->bytes.failed ? err_set(err, ENOMEM, "out of memory")
				     : read_users(inventory, status, ret, err);
	if (rc < 0)
		linkset_release(&inventory->links, ret->spec.links);
	return rc;
}
