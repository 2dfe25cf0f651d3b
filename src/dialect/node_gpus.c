/* SPDX-License-Identifier: Apache-2.0 */
/* node_gpus.c - the GPUs of a node: as its agent reports them, or as far as its labels tell. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "dialect/keys.h"
#include "dialect/node_private.h"
#include "engine/links.h"
#include "engine/machine.h"
#include "wire/json.h"
#include "wire/quantity.h"

#define LABEL_GPU_MEMORY "nvidia.com/gpu.memory"
#define MODEL_UNKNOWN	 "unknown"
#define UUID_MAX	 320 /* GPU-<node>-<index> */

/* Links as they are being read. */
static int bad_device(const struct node_reader *r, int64_t id, const char *what, struct err *err)
{
	return err_set(err, EINVAL, "GpuNodeStatus %s: device %lld %s", r->spec->name,
		       (long long)id, what);
}

static int64_t number_or(const struct json *object, const char *key, int64_t otherwise)
{
	int64_t n;

	return json_i64(object, &n, key) == 0 ? n : otherwise;
}

static int read_peers(const struct node_reader *r, const struct json *device, int64_t id,
		      uint32_t count, struct machine_matrix *m, struct err *err)
{
	struct json_iter iter = json_items(device, "nvlinkPeers");
	const struct json *peer;

	while ((peer = json_next(&iter))) {
		int64_t other = -1;

		if (json_i64_path(peer, &other, JSON_PATH_END) < 0 || other < 0 ||
		    other >= count || other == id)
			return bad_device(r, id, "names an NVLink peer that is not there", err);
		m->nvlink[id] |= gpuset_one((unsigned)other);
	}
	return 0;
}

/* Devices may come in any order; each id from 0 on is there once. */
static int read_device(struct node_reader *r, const struct json *device, struct gpu_spec *gpus,
		       struct machine_matrix *m, uint32_t count, struct err *err)
{
	const char *health = json_str(device, "health");
	int64_t id = number_or(device, "id", -1), mem = number_or(device, "memoryMiB", 0);
	int64_t numa = number_or(device, "numaNode", -1);
	bool mig = false;

	if (id < 0 || id >= count)
		return bad_device(r, id, "has no id below the number of devices", err);
	if (gpus[id].uuid)
		return bad_device(r, id, "is there twice", err);
	gpus[id].uuid = json_str(device, "uuid");
	gpus[id].model = json_str(device, "model");
	if (!gpus[id].uuid || !*gpus[id].uuid)
		return bad_device(r, id, "has no uuid", err);
	if (!gpus[id].model || !*gpus[id].model)
		gpus[id].model = MODEL_UNKNOWN;
	if (mem < 0 || mem > INT32_MAX)
		return bad_device(r, id, "has an impossible memoryMiB", err);
	json_bool(device, &mig, "migEnabled");
	gpus[id].mem_mib = (uint32_t)mem;
	gpus[id].numa = (uint8_t)(numa >= 0 && numa < UINT8_MAX ? numa : 0);
	m->numa[id] = (int8_t)(numa >= 0 && numa <= INT8_MAX ? numa : -1);
	gpus[id].unhealthy = health && strcmp(health, "Healthy") != 0;
	gpus[id].load_percent = (uint8_t)MIN(MAX(number_or(device, "loadPercent", 0), 0), 100);
	gpus[id].mig_mode = mig ? MIG_ANY : MIG_OFF;
	return read_peers(r, device, id, count, m, err);
}

static int read_matrix(const struct node_reader *r, struct machine_matrix *m, uint32_t count,
		       struct err *err)
{
	struct json_iter rows = json_items(r->status, "status", "linksGBps");
	const struct json *row, *cell;

	for (uint32_t i = 0; (row = json_next(&rows)); i++) {
		struct json_iter cells = json_items(row);

		for (uint32_t j = 0; (cell = json_next(&cells)); j++) {
			int64_t gbps = -1;

			if (i >= count || j >= count ||
			    json_i64_path(cell, &gbps, JSON_PATH_END) < 0 || gbps < 0 ||
			    gbps > UINT16_MAX)
				return err_set(err, EINVAL,
					       "GpuNodeStatus %s: linksGBps must be %u rows of %u "
					       "numbers",
					       r->spec->name, count, count);
			m->gbps[i * count + j] = (uint16_t)gbps;
		}
	}
	return 0;
}

static void find_links(struct node_reader *r, const struct machine_matrix *m, uint32_t count)
{
	struct links_input input = {
		.count = count, .gbps = m->gbps, .nvlink = m->nvlink, .numa = m->numa
	};

	if (r->options->links && count)
		r->spec->links = r->options->links(r->options->context, &input);
}

/* Slices of a profile that the model lacks, or whose place is not told, are nobody's. */
static void read_slices(const struct json *device, const struct mig_geometry *mig,
			struct gpu_spec *gpu)
{
	struct json_iter slices = json_items(device, "migDevices");
	const struct json *slice;

	while ((slice = json_next(&slices))) {
		const char *name = json_str(slice, "profile");
		int64_t start = number_or(slice, "start", -1);
		int profile = name ? mig_profile_find(mig, name, strlen(name)) : -1;

		if (profile >= 0 && start >= 0 && start < MIG_SLICES_MAX)
			gpu->mig_made[start] = (uint8_t)(profile + 1);
	}
}

/* Where the agent makes slices when somebody is given them, those that are there now do not
 * matter. */
static void read_mig(struct node_reader *r, const struct json *devices, struct gpu_spec *gpus)
{
	struct json_iter iter = json_items(devices);
	const struct json *device;
	bool dynamic = false;

	json_bool(r->status, &dynamic, "status", "migDynamic");
	while (!dynamic && r->spec->mig && (device = json_next(&iter))) {
		struct gpu_spec *gpu = &gpus[number_or(device, "id", 0)];

		if (!gpu->mig_mode)
			continue;
		gpu->mig_mode = MIG_MADE;
		read_slices(device, r->spec->mig, gpu);
	}
}

static int read_devices(struct node_reader *r, struct err *err)
{
	const struct json *devices = json_get(r->status, "status", "devices");
	uint32_t count = (uint32_t)MIN(json_len(devices), UINT32_MAX);
	struct gpu_spec *gpus = arena_array(r->arena, GPU_MAX, sizeof(*gpus));
	struct machine_matrix *m = arena_alloc(r->arena, sizeof(*m));
	struct json_iter iter = json_items(devices);
	const struct json *device;
	int rc = 0;

	if (!gpus || !m)
		return err_set(err, ENOMEM, "out of memory");
	if (count > GPU_MAX)
		return err_set(err, EINVAL, "GpuNodeStatus %s has %u devices, and %d are the most",
			       r->spec->name, count, GPU_MAX);
	while (rc == 0 && (device = json_next(&iter)))
		rc = read_device(r, device, gpus, m, count, err);
	if (rc == 0)
		rc = read_matrix(r, m, count, err);
	if (rc < 0)
		return rc;
	r->spec->gpus = gpus;
	r->spec->gpus_count = count;
	if (count)
		r->spec->mig = mig_geometry_of_model(gpus[0].model);
	read_mig(r, devices, gpus);
	if (json_len(r->status, "status", "linksGBps"))
		find_links(r, m, count);
	return 0;
}

/* How many GPUs the kubelet has: those of a device plugin, or what our agent advertises. */
static uint32_t allocatable_gpus(const struct node_reader *r)
{
	static const struct {
		const char *resource;
		int64_t per_card;
	} names[] = { { RESOURCE_GPU, 1 }, { RESOURCE_PGPU, 1 }, { RESOURCE_CORE, 100 } };

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		const struct json *value =
			json_get(r->node, "status", "allocatable", names[i].resource);
		struct quantity q;

		if (quantity_from_json(value, &q, NULL) < 0 || q.nano <= 0)
			continue;
		return (uint32_t)MIN(quantity_value(q) / names[i].per_card, GPU_MAX);
	}
	return 0;
}

static uint32_t label_memory(const struct node_reader *r, const struct machine *machine)
{
	const char *text = json_str(r->node, "metadata", "labels", LABEL_GPU_MEMORY);
	uint32_t mem;

	if (text && parse_u32(text, strlen(text), &mem) == 0)
		return mem;
	return machine ? machine->gpu_mem_mib : 0;
}

/* A whole machine of a kind that is known. */
static int invent_links(struct node_reader *r, const struct machine *machine, struct err *err)
{
	struct machine_matrix *m = arena_alloc(r->arena, sizeof(*m));

	if (!m)
		return err_set(err, ENOMEM, "out of memory");
	machine_matrix(machine, m);
	find_links(r, m, machine->gpu_count);
	return 0;
}

/* Without a report: so many cards, all alike. */
static int invent_gpus(struct node_reader *r, struct err *err)
{
	const char *model = json_str(r->node, "metadata", "labels", LABEL_PRODUCT);
	const struct machine *machine = model ? machine_of_model(model) : NULL;
	uint32_t count = allocatable_gpus(r), mem = label_memory(r, machine);
	struct gpu_spec *gpus = arena_array(r->arena, count + 1, sizeof(*gpus));

	if (!gpus)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < count; i++) {
		char *uuid = arena_alloc(r->arena, UUID_MAX);

		if (!uuid)
			return err_set(err, ENOMEM, "out of memory");
		snprintf(uuid, UUID_MAX, "GPU-%s-%u", r->spec->name, i);
		gpus[i] = (struct gpu_spec){ .uuid = uuid,
					     .model = model ? model : MODEL_UNKNOWN,
					     .mem_mib = mem };
		if (machine && machine->gpus_per_numa)
			gpus[i].numa = (uint8_t)(i / machine->gpus_per_numa);
	}
	r->spec->gpus = gpus;
	r->spec->gpus_count = count;
	r->spec->mig = machine ? machine->mig : NULL;
	return machine && machine->gpu_count == count ? invent_links(r, machine, err) : 0;
}

int node_read_gpus(struct node_reader *r, struct err *err)
{
	if (json_type(r->status, "status", "devices") == JSON_ARRAY)
		return read_devices(r, err);
	return invent_gpus(r, err);
}
