/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "engine/links.h"
#include "engine/machine.h"
#include "engine/mig.h"

static struct links *links_of(const char *name)
{
	const struct machine *machine = machine_find(name);
	struct links *links = NULL;

	CHECK(machine != NULL);
	CHECK(machine_links(machine, &links, NULL) == 0);
	return links;
}

TEST(names_are_found_in_any_case)
{
	CHECK_STR(machine_find("DGX-H100")->model, "NVIDIA-H100-80GB-HBM3");
	CHECK_STR(machine_find("dgx-1v")->name, "dgx-1v");
	CHECK(machine_find("dgx") == NULL && machine_find("") == NULL);
	CHECK_STR(machine_of_model("nvidia-l40s")->name, "l40s");
	CHECK_STR(machine_of_model("NVIDIA-A100-SXM4-40GB")->name, "dgx-a100-40");
	CHECK(machine_of_model("NVIDIA-RIVA-128") == NULL);
}

TEST(every_preset_is_complete)
{
	const struct machine *m;
	size_t count = 0;

	for (; (m = machine_at(count)); count++) {
		struct links *links CLEANUP(links_freep) = links_of(m->name);
		CHECKF(machine_find(m->name) == m, "%s is there twice", m->name);
		CHECK_INT(links->count, m->gpu_count);
		CHECKF(links->state_count > 0, "%s has no table", m->name);
		CHECK(m->gpu_mem_mib && m->cpu_milli && m->mem_mib && m->nvlink_domain_nodes);
		CHECKF(m->switch_gbps > m->numa_gbps && m->numa_gbps > m->far_gbps,
		       "%s: nearer is not faster", m->name);
		CHECKF(mig_geometry_of_model(m->model) == m->mig, "%s: MIG", m->name);
		for (unsigned i = 0; i < m->pair_count; i++)
			CHECK(m->pairs[i].a < m->pairs[i].b && m->pairs[i].b < m->gpu_count);
	}
	CHECK(count >= 20);
	CHECK(machine_at(count) == NULL && machine_at(SIZE_MAX) == NULL);
}

TEST(machines_have_their_true_links)
{
	static const struct {
		const char *name;
		unsigned a, b;
		uint16_t gbps;
		bool nvlink;
	} rows[] = {
		{ "dgx-1p", 0, 3, 40, true },	     { "dgx-1p", 0, 5, 12, false },
		{ "dgx-1v", 0, 3, 100, true },	     { "dgx-1v", 0, 4, 100, true },
		{ "dgx-1v", 0, 1, 50, true },	     { "dgx-1v", 0, 7, 12, false },
		{ "dgx-1v", 5, 6, 100, true },	     { "dgx-2", 0, 15, 300, true },
		{ "dgx-a100", 0, 7, 600, true },     { "dgx-h100", 3, 4, 900, true },
		{ "dgx-h200", 3, 4, 900, true },     { "dgx-b200", 0, 1, 1800, true },
		{ "gb200-nvl72", 0, 3, 1800, true }, { "hgx-a100-4", 0, 3, 200, true },
		{ "hgx-h100-4", 0, 3, 300, true },   { "l40s", 0, 3, 48, false },
		{ "l40s", 3, 4, 32, false },	     { "t4", 0, 1, 24, false },
		{ "t4", 1, 2, 20, false },	     { "h100-nvl", 2, 3, 600, true },
		{ "h100-nvl", 1, 2, 96, false },     { "h200-nvl", 4, 7, 300, true },
		{ "a30", 2, 3, 200, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct links *links CLEANUP(links_freep) = links_of(rows[i].name);
		CHECKF(links->gbps[rows[i].a][rows[i].b] == rows[i].gbps, "row %zu: %u", i,
		       links->gbps[rows[i].a][rows[i].b]);
		CHECKF(gpuset_has(links->nvlink[rows[i].b], rows[i].a) == rows[i].nvlink,
		       "row %zu", i);
	}
}

TEST(a_cube_mesh_uses_every_link_of_its_gpus)
{
	struct links *pascal CLEANUP(links_freep) = links_of("dgx-1p");
	struct links *volta CLEANUP(links_freep) = links_of("dgx-1v");

	for (unsigned a = 0; a < 8; a++) {
		unsigned pascal_links = 0, volta_links = 0;
		gpuset_each(b, pascal->nvlink[a])
			pascal_links += pascal->gbps[a][b] / 40;
		gpuset_each(b, volta->nvlink[a])
			volta_links += volta->gbps[a][b] / 50;
		CHECK_INT(pascal_links, 4);
		CHECK_INT(volta_links, 6);
	}
}

TEST(islands_are_nvlink_or_sockets)
{
	static const struct {
		const char *name;
		unsigned islands;
		uint32_t first;
	} rows[] = {
		{ "dgx-1v", 1, 0xff },	{ "dgx-2", 1, 0xffff },	 { "dgx-h100", 1, 0xff },
		{ "l40s", 2, 0x0f },	{ "t4", 2, 0x03 },	 { "t4-1", 1, 0x01 },
		{ "h100-nvl", 4, 0x3 }, { "h200-nvl", 2, 0x0f },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct links *links CLEANUP(links_freep) = links_of(rows[i].name);
		CHECK_INT(links->island_count, rows[i].islands);
		CHECK_INT(links->island_gpus[0], rows[i].first);
	}
	CHECK_INT(machine_find("gb200-nvl72")->nvlink_domain_nodes, 18);
	CHECK_INT(machine_find("dgx-h100")->nvlink_domain_nodes, 1);
}

TEST_MAIN()
