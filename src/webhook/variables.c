/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/variables.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "dialect/keys.h"
#include "webhook/asks.h"
#include "webhook/review.h"
#include "wire/json.h"
#include "wire/quantity.h"

#define CORE_PERCENT_MAX 100

char *variable_field_path(const char *container, char path[FIELD_PATH_MAX])
{
	char key[ANNOTATION_KEY_MAX];

	snprintf(path, FIELD_PATH_MAX, "metadata.annotations['%s']",
		 annotation_container_key(container, key));
	return path;
}

bool variable_is(const struct variable *variable, const struct json *entry)
{
	const struct json *ref = json_get(entry, "valueFrom", "fieldRef");
	const char *path = json_str(ref, "fieldPath"), *version = json_str(ref, "apiVersion");
	const char *value = json_str(entry, "value");

	if (variable->field)
		return path && strcmp(path, variable->value) == 0 &&
		       (!version || strcmp(version, "v1") == 0);
	return value && strcmp(value, variable->value) == 0 && !json_get(entry, "valueFrom");
}

static struct variable *add(struct variables *list, const char *name, bool forced)
{
	struct variable *v = &list->items[list->count++];

	assert(list->count <= VARIABLES_MAX);
	*v = (struct variable){ .name = name, .forced = forced };
	return v;
}

static void add_text(struct variables *list, const char *name, bool forced, const char *value)
{
	snprintf(add(list, name, forced)->value, VARIABLE_VALUE_MAX, "%s", value);
}

/* From the annotation that the scheduler writes with the Binding. */
static void add_field(struct variables *list, const char *name, const struct json *container)
{
	const char *own = json_str(container, "name");
	struct variable *v = add(list, name, true);
	char path[FIELD_PATH_MAX];

	v->field = true;
	snprintf(v->value, VARIABLE_VALUE_MAX, "%s", variable_field_path(own ? own : "", path));
}

static void add_visible(const struct variables_input *in, const struct json *container,
			struct variables *list)
{
	if (in->literal)
		add_text(list, VARIABLE_CUDA, true, in->literal);
	else
		add_field(list, VARIABLE_CUDA, container);
	/* Ids are those of the PCI bus; CUDA's own order is by speed. */
	add_text(list, VARIABLE_ORDER, true, "PCI_BUS_ID");
	if (in->options->injection == INJECTION_ENV)
		add_field(list, VARIABLE_NVIDIA, container);
	else if (in->options->inject & INJECT_NVIDIA)
		add_text(list, VARIABLE_NVIDIA, true, VALUE_NOTHING);
}

/* A limit under either of its names; 0 if there is none, or if it makes no sense. */
static int64_t limit_of(const struct json *container, const char *name, const char *other)
{
	const struct json *limits = json_get(container, "resources", "limits");
	struct quantity q = { 0 };

	if (quantity_from_json(json_get(limits, name), &q, NULL) < 0 &&
	    quantity_from_json(json_get(limits, other), &q, NULL) < 0)
		return 0;
	return MAX(quantity_value(q), 0);
}

static int64_t claim_number(const struct json *claim, const char *field)
{
	int64_t number;

	if (json_i64(claim, &number, "spec", "devices", field) < 0)
		return 0;
	return MAX(number, 0);
}

/* The limits of a share, as MPS keeps them.  A container has one card then, number 0. */
static void add_mps(const struct variables_input *in, const struct json *container,
		    struct variables *list)
{
	int64_t core = limit_of(container, RESOURCE_CORE, RESOURCE_QGPU_CORE);
	int64_t mem_mib = limit_of(container, RESOURCE_MEMORY, RESOURCE_QGPU_MEMORY);

	if (!container_asks(container)) {
		core = claim_number(in->claim, "core");
		mem_mib = claim_number(in->claim, "memoryMiB");
	}
	if ((!core && !mem_mib) || core >= CORE_PERCENT_MAX)
		return;
	add_text(list, "CUDA_MPS_PIPE_DIRECTORY", true, in->options->mps_directory);
	if (core)
		snprintf(add(list, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", true)->value,
			 VARIABLE_VALUE_MAX, "%" PRId64, core);
	if (mem_mib)
		snprintf(add(list, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", true)->value,
			 VARIABLE_VALUE_MAX, "0=%" PRId64 "M", mem_mib);
}

/* "mlx5_0,mlx5_1"; as many as there is room for. */
static bool join_hcas(const struct json *claim, char *text)
{
	struct json_iter iter = json_items(claim, "spec", "network", "preferredHcas");
	size_t used = 0;

	*text = '\0';
	for (const struct json *item; (item = json_next(&iter));) {
		const char *name = json_str(item);
		size_t len = name ? strlen(name) : 0;

		if (!len || used + len + 2 > VARIABLE_VALUE_MAX)
			continue;
		used += (size_t)snprintf(text + used, VARIABLE_VALUE_MAX - used, "%s%s",
					 used ? "," : "", name);
	}
	return used > 0;
}

/* For the network and the storage that the claim needs; users know their own better. */
static void add_fabric(const struct variables_input *in, struct variables *list)
{
	bool rdma = false, cufile = false;
	int64_t ports = 0;
	char hcas[VARIABLE_VALUE_MAX];
	bool preferred = join_hcas(in->claim, hcas);

	json_bool(in->claim, &rdma, "spec", "network", "rdmaRequired");
	json_i64(in->claim, &ports, "spec", "network", "minPorts");
	json_bool(in->claim, &cufile, "spec", "storage", "cuFile");
	if (preferred)
		add_text(list, "NCCL_IB_HCA", false, hcas);
	if (rdma || preferred || ports > 0)
		add_text(list, "NCCL_NET_GDR_LEVEL", false, in->options->gdr_level);
	if (cufile) {
		add_text(list, "CUFILE_ENV_PATH", false, in->options->cufile_path);
		add_text(list, "CUFILE_ENV_PATH_JSON", false, in->options->cufile_path);
	}
}

void variables_make(const struct variables_input *input, const struct json *container,
		    struct variables *ret)
{
	ret->count = 0;
	add_visible(input, container, ret);
	if (input->options->inject & INJECT_MPS)
		add_mps(input, container, ret);
	add_fabric(input, ret);
}

/* Whether we have given it ids, before another webhook added a container with limits. */
static bool has_former(const struct variables_input *input, const struct json *container)
{
	struct json_iter iter = json_items(container, "env");

	for (const struct json *entry; input->former && (entry = json_next(&iter));) {
		const char *name = json_str(entry, "name"), *value = json_str(entry, "value");

		if (name && value && strcmp(name, VARIABLE_CUDA) == 0 &&
		    strcmp(value, input->former) == 0)
			return true;
	}
	return false;
}

void variables_make_none(const struct variables_input *input, const struct json *container,
			 struct variables *ret)
{
	const struct webhook_options *options = input->options;

	ret->count = 0;
	if (has_former(input, container))
		add_field(ret, VARIABLE_CUDA, container); /* nobody fills it in: it sees none */
	if (options->injection == INJECTION_ENV || (options->inject & INJECT_NVIDIA))
		add_text(ret, VARIABLE_NVIDIA, true, VALUE_NOTHING);
}
