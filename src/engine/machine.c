/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/machine.h"

#include <string.h>

#include "base/attr.h"
#include "engine/links.h"

#include <strings.h>

const struct machine *machine_find(const char *name)
{
	const struct machine *machine;

	for (size_t i = 0; (machine = machine_at(i)); i++)
		if (strcasecmp(machine->name, name) == 0)
			return machine;
	return NULL;
}

const struct machine *machine_of_model(const char *model)
{
	const struct machine *machine;

	for (size_t i = 0; (machine = machine_at(i)); i++)
		if (strcasecmp(machine->model, model) == 0)
			return machine;
	return NULL;
}

static uint16_t pcie_gbps(const struct machine *machine, unsigned a, unsigned b)
{
	if (a / machine->gpus_per_switch == b / machine->gpus_per_switch)
		return machine->switch_gbps;
	if (a / machine->gpus_per_numa == b / machine->gpus_per_numa)
		return machine->numa_gbps;
	return machine->far_gbps;
}

void machine_matrix(const struct machine *machine, struct machine_matrix *ret)
{
	unsigned count = machine->gpu_count;
	uint16_t *gbps = ret->gbps;
	uint32_t *nvlink = ret->nvlink;
	int8_t *numa = ret->numa;

	memset(ret, 0, sizeof(*ret));
	for (unsigned a = 0; a < count; a++) {
		uint32_t others = gpuset_range(0, count) & ~gpuset_one(a);
		numa[a] = (int8_t)(a / machine->gpus_per_numa);
		nvlink[a] = machine->nvlink_gbps ? others : 0;
		gpuset_each(b, others)
			gbps[a * count + b] = machine->nvlink_gbps ? machine->nvlink_gbps
								   : pcie_gbps(machine, a, b);
	}
	for (unsigned i = 0; i < machine->pair_count; i++) {
		const struct machine_pair *pair = &machine->pairs[i];
		gbps[pair->a * count + pair->b] = pair->gbps;
		gbps[pair->b * count + pair->a] = pair->gbps;
		nvlink[pair->a] |= gpuset_one(pair->b);
		nvlink[pair->b] |= gpuset_one(pair->a);
	}
}

int machine_links(const struct machine *machine, struct links **ret, struct err *err)
{
	struct machine_matrix m = { .numa = { 0 } };

	machine_matrix(machine, &m);
	struct links_input input = { machine->gpu_count, m.gbps, m.nvlink, m.numa };
	return links_new(&input, ret, err);
}
