/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and their reports, as the caches tell them, and what the engine then has. */
#include "scheduler_bench.h"

#include "engine/assign.h"
#include "engine/links.h"
#include "scheduler/entries.h"
#include "scheduler/inventory.h"

static struct inventory *inventory;

static void saw(void *context, const char *name, uint32_t node, uint32_t changes)
{
	static const char *const words[] = { "came", "went", "more", "labels", "gpus", "use" };

	(void)context;
	CHECK(node != NODE_NONE);
	bench_saw("%s%s:", bench.seen[0] ? " " : "", name);
	for (unsigned i = 0; i < ARRAY_SIZE(words); i++)
		if (changes >> i & 1)
			bench_saw("%s,", words[i]);
}

static void open_with(const char *const *keys, size_t count)
{
	struct err err = ERR_INIT;

	bench_open();
	struct inventory_options options = { .engine = bench.engine,
					     .caches = &bench.caches,
					     .log = &bench.log,
					     .domain_keys = keys,
					     .domain_keys_count = count,
					     .changed = saw };
	CHECKF(inventory_new(&options, &inventory, &err) == 0, "%s", err.text);
}

static void open(void)
{
	open_with(NULL, 0);
}

static void close_all(void)
{
	bench_close();
	inventory_free(inventory);
}

static const struct node *node(const char *name)
{
	uint32_t number = cluster_node_find(bench.cluster, name);

	return number == NODE_NONE ? NULL : cluster_node(bench.cluster, number);
}

#define NODE(name, more, allocatable)                                                            \
	"metadata: {name: " name ", uid: u-" name ", resourceVersion: RV" more "}\n"             \
	"status: {allocatable: {pods: 110, memory: 64Gi, " allocatable "}, conditions: [{type: " \
	"Ready, status: \"True\", reason: r}]}\n"
#define REPORT(name, status)                                                                     \
	"metadata: {name: " name ", uid: s-" name ", resourceVersion: RV}\nstatus: {" status "}" \
	"\n"
#define TWO_GPUS(name)                                                                   \
	"injectionMode: cdi, devices: ["                                                 \
	"{id: 0, uuid: GPU-" name "a, model: H100, memoryMiB: 80000, health: Healthy},"  \
	"{id: 1, uuid: GPU-" name "b, model: H100, memoryMiB: 80000, health: Healthy}]," \
	"linksGBps: [[0, 900], [900, 0]]"

TEST(a_node_comes_grows_is_cordoned_and_goes)
{
	open();
	bench_put(KUBE_NODE, NODE("a", "", "cpu: 4"));
	CHECK_STR(bench_seen(), "a:came,");
	CHECK_INT(node("a")->allocatable.cpu_milli, 4000);
	bench_put(KUBE_NODE, NODE("a", "", "cpu: 8"));
	CHECK_STR(bench_seen(), "a:more,");
	bench_put(KUBE_NODE, NODE("a", "", "cpu: 2"));
	CHECK_STR(bench_seen(), "a:");
	CHECK_INT(node("a")->allocatable.cpu_milli, 2000);
	bench_put(KUBE_NODE, NODE("a", "", "cpu: 2, example.com/x: 1"));
	CHECK_STR(bench_seen(), "a:more,");
	bench_put(KUBE_NODE, NODE("a", ", labels: {x: y}", "cpu: 2, example.com/x: 1"));
	CHECK_STR(bench_seen(), "a:labels,");
	bench_put(KUBE_NODE, NODE("a", ", labels: {x: y}",
				  "cpu: 2, example.com/x: 1") "spec: "
							      "{unschedulable: true}\n");
	CHECK_STR(bench_seen(), "a:labels,");
	CHECK(node("a")->unschedulable);
	bench_delete(KUBE_NODE, NODE("a", "", "cpu: 2"));
	CHECK_STR(bench_seen(), "a:went,");
	CHECK(node("a") == NULL);
	close_all();
}

TEST(a_node_that_cannot_be_locked_is_closed_whatever_else_changes)
{
	open();
	bench_put(KUBE_NODE, NODE("a", "", "cpu: 4"));
	bench_seen();
	inventory_close(inventory, "a", true);
	CHECK_STR(bench_seen(), "a:labels,");
	CHECK(node("a")->gpus_closed);
	inventory_close(inventory, "a", true);
	inventory_close(inventory, "missing", true);
	CHECK_STR(bench_seen(), "");
	bench_put(KUBE_NODE, NODE("a", "", "cpu: 8"));
	CHECK_STR(bench_seen(), "a:more,");
	CHECK(node("a")->gpus_closed);
	inventory_close(inventory, "a", false);
	CHECK_STR(bench_seen(), "a:labels,");
	CHECK(!node("a")->gpus_closed);
	close_all();
}

TEST(what_changes_nothing_does_not_reach_the_engine)
{
	open();
	bench_put(KUBE_NODE, NODE("a", "", "cpu: 4"));
	bench_put(KUBE_GPU_NODE_STATUS, REPORT("a", TWO_GPUS("a")));
	uint64_t digest = cluster_digest(bench.cluster);
	uint32_t state = node("a")->state;
	const char *name = node("a")->name;
	bench_seen();
	/* Not kept at all; kept, but of no interest; measured. */
	bench_put(KUBE_NODE, NODE("a", "", "cpu: 4") "spec: {podCIDR: x}\n");
	bench_put(KUBE_NODE, "metadata: {name: a, uid: u-a, resourceVersion: RV}\n"
			     "status: {allocatable: {pods: 110, memory: 64Gi, cpu: 4000m},"
			     " conditions: [{type: Ready, status: \"False\", reason: q}]}\n");
	bench_put(KUBE_GPU_NODE_STATUS,
		  REPORT("a", "heartbeat: x, injectionMode: cdi, devices: ["
			      "{id: 0, uuid: GPU-aa, model: H100, memoryMiB: 80000, health: "
			      "Healthy, loadPercent: 99},"
			      "{id: 1, uuid: GPU-ab, model: H100, memoryMiB: 80000, health: "
			      "Healthy, loadPercent: 7}],"
			      "linksGBps: [[0, 900], [900, 0]]"));
	CHECK_STR(bench_seen(), "");
	CHECK(cluster_digest(bench.cluster) == digest);
	CHECK_INT(node("a")->state, state);
	CHECK(node("a")->name == name); /* the record itself */
	close_all();
}

TEST(a_report_and_its_node_come_in_any_order)
{
	open();
	bench_put(KUBE_GPU_NODE_STATUS, REPORT("a", TWO_GPUS("a")));
	CHECK_STR(bench_seen(), "");
	CHECK(node("a") == NULL);
	bench_put(KUBE_NODE, NODE("a", "", "nvidia.com/gpu: 4"));
	CHECK_STR(bench_seen(), "a:came,");
	CHECK_INT(node("a")->gpus_count, 2);
	bench_put(KUBE_NODE, NODE("b", "", "nvidia.com/gpu: 4"));
	CHECK_INT(node("b")->gpus_count, 4); /* invented */
	bench_seen();
	bench_put(KUBE_GPU_NODE_STATUS, REPORT("b", TWO_GPUS("b")));
	CHECK_STR(bench_seen(), "b:gpus,");
	CHECK_INT(node("b")->gpus_count, 2);
	bench_delete(KUBE_GPU_NODE_STATUS, REPORT("b", ""));
	CHECK_STR(bench_seen(), "b:gpus,");
	CHECK_INT(node("b")->gpus_count, 4);
	close_all();
}

TEST(equal_machines_share_their_links_which_go_with_the_last)
{
	open();
	bench_put(KUBE_NODE, NODE("a", "", "cpu: 4"));
	bench_put(KUBE_NODE, NODE("b", "", "cpu: 4"));
	bench_put(KUBE_GPU_NODE_STATUS, REPORT("a", TWO_GPUS("a")));
	bench_put(KUBE_GPU_NODE_STATUS, REPORT("b", TWO_GPUS("b")));
	CHECK(node("a")->links != NULL && node("a")->links == node("b")->links);
	CHECK_INT(node("a")->links->gbps[0][1], 900);
	bench_delete(KUBE_NODE, NODE("a", "", "cpu: 4"));
	CHECK_INT(node("b")->links->gbps[0][1], 900);
	/* Other links, and the old ones have no user any more: the sanitizer sees them go. */
	bench_put(KUBE_GPU_NODE_STATUS,
		  REPORT("b", "devices: [{id: 0, uuid: GPU-ba}, {id: 1, uuid: GPU-bb}],"
			      "linksGBps: [[0, 50], [50, 0]]"));
	CHECK_INT(node("b")->links->gbps[0][1], 50);
	close_all();
}

TEST(what_cannot_be_read_stays_as_it_was_and_is_told_once)
{
	open();
	bench_put(KUBE_NODE, NODE("a", "", "cpu: 4"));
	bench_put(KUBE_GPU_NODE_STATUS, REPORT("a", TWO_GPUS("a") ", mps: true"));
	bench_seen();
	bench_put(KUBE_GPU_NODE_STATUS, REPORT("a", "devices: [{id: 7, uuid: x}]"));
	CHECK_STR(bench_seen(), "");
	CHECK_INT(node("a")->gpus_count, 2);
	CHECK(inventory_mps(inventory, "a"));
	CHECK_INT(bench_logged("stays as it was"), 1);
	/* The Node is read all the same. */
	bench_put(KUBE_NODE, NODE("a", ", labels: {x: y}", "cpu: 9"));
	CHECK_STR(bench_seen(), "a:more,labels,");
	CHECK_INT(node("a")->allocatable.cpu_milli, 9000);
	CHECK_INT(node("a")->gpus_count, 2);
	CHECK(node("a")->links != NULL);
	CHECK_INT(bench_logged("stays as it was"), 1);
	/* A Node that is wrong itself. */
	bench_put(KUBE_NODE,
		  NODE("a", ", labels: {topology.scheduler/network-bandwidth: fast}", "cpu: 1"));
	CHECK_STR(bench_seen(), "");
	CHECK_INT(node("a")->allocatable.cpu_milli, 9000);
	CHECK_INT(bench_logged("network-bandwidth"), 1);
	bench_put(KUBE_GPU_NODE_STATUS, REPORT("a", TWO_GPUS("a")));
	bench_put(KUBE_NODE, NODE("a", "", "cpu: 1"));
	CHECK_INT(node("a")->allocatable.cpu_milli, 1000);
	CHECK(!inventory_mps(inventory, "a"));
	close_all();
}

TEST(a_gpu_that_two_nodes_report_is_the_others_once_the_first_has_let_go)
{
	open();
	bench_put(KUBE_NODE, NODE("a", "", "cpu: 4"));
	bench_put(KUBE_NODE, NODE("b", "", "cpu: 4"));
	bench_put(KUBE_GPU_NODE_STATUS, REPORT("a", TWO_GPUS("x")));
	bench_seen();
	bench_put(KUBE_GPU_NODE_STATUS, REPORT("b", TWO_GPUS("x")));
	CHECK_STR(bench_seen(), "");
	CHECK_INT(node("b")->gpus_count, 0);
	CHECK_INT(bench_logged("is reported by nodes"), 1);
	bench_delete(KUBE_NODE, NODE("a", "", "cpu: 4"));
	CHECK_STR(bench_seen(), "a:went, b:gpus,");
	CHECK_INT(node("b")->gpus_count, 2);
	close_all();
}

TEST(the_agent_says_what_containers_see)
{
	static const struct {
		const char *status;
		enum injection_mode mode;
		enum visibility visibility;
	} rows[] = {
		{ REPORT("a", "injectionMode: cdi"), INJECTION_CDI, VISIBLE_DECIDED },
		{ REPORT("a", "injectionMode: env"), INJECTION_ENV, VISIBLE_NAMED },
		{ REPORT("a", "injectionMode: external"), INJECTION_EXTERNAL, VISIBLE_DECIDED },
		{ REPORT("a", "injectionMode: all"), INJECTION_ALL, VISIBLE_ALL },
		{ REPORT("a", "injectionMode: magic"), INJECTION_UNKNOWN, VISIBLE_ALL },
		{ REPORT("a", "mps: true"), INJECTION_UNKNOWN, VISIBLE_ALL },
	};

	open();
	bench_put(KUBE_NODE, NODE("a", "", "cpu: 4"));
	CHECK_INT(inventory_visibility(inventory, "a"), VISIBLE_ALL);
	CHECK_INT(inventory_visibility(inventory, "nowhere"), VISIBLE_ALL);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		bench_put(KUBE_GPU_NODE_STATUS, rows[i].status);
		CHECK_INT(inventory_injection(inventory, "a"), rows[i].mode);
		CHECK_INT(inventory_visibility(inventory, "a"), rows[i].visibility);
	}
	CHECK(inventory_mps(inventory, "a"));
	CHECK(!inventory_mps(inventory, "nowhere"));
	close_all();
}

#define USED(by0, by1)                                                    \
	REPORT("a", "devices: [{id: 0, uuid: GPU-a, inUseBy: [" by0 "]}," \
		    "{id: 1, uuid: GPU-b, inUseBy: [" by1 "]}, {id: 2, uuid: GPU-c}]")

#define SLICED(slices)                                                                           \
	REPORT("a", "devices: [{id: 0, uuid: GPU-a, migEnabled: true, migDevices: [" slices "]}" \
		    "]")

TEST(slices_are_known_by_card_profile_and_start)
{
	struct arena arena CLEANUP(arena_done);

	arena_init(&arena, 4096);
	open();
	bench_put(KUBE_NODE, NODE("a", "", "cpu: 4"));
	CHECK(!inventory_slice(inventory, "a", 0, "1g.10gb", 4, &arena));
	bench_put(KUBE_GPU_NODE_STATUS, SLICED(""));
	bench_seen();
	bench_put(KUBE_GPU_NODE_STATUS, SLICED("{uuid: MIG-1, profile: 1g.10gb, start: 4}"));
	CHECK_STR(bench_seen(), "a:gpus,"); /* who waits for one hears of it */
	CHECK_STR(inventory_slice(inventory, "a", 0, "1g.10gb", 4, &arena), "MIG-1");
	CHECK(!inventory_slice(inventory, "a", 0, "1g.10gb", 5, &arena));
	CHECK(!inventory_slice(inventory, "a", 0, "2g.20gb", 4, &arena));
	CHECK(!inventory_slice(inventory, "a", 1, "1g.10gb", 4, &arena));
	CHECK(!inventory_slice(inventory, "b", 0, "1g.10gb", 4, &arena));
	bench_put(KUBE_GPU_NODE_STATUS, SLICED("{uuid: MIG-2, profile: 1g.10gb, start: 4}"));
	CHECK_STR(bench_seen(), "a:gpus,");
	CHECK_STR(inventory_slice(inventory, "a", 0, "1g.10gb", 4, &arena), "MIG-2");
	bench_put(KUBE_GPU_NODE_STATUS,
		  REPORT("a", "devices: [{id: 0, uuid: GPU-a, model: NVIDIA-H100-80GB-HBM3, "
			      "migEnabled: true, migDevices: [{uuid: MIG-3, profile: 1g.10gb.me, "
			      "start: 6}]}]"));
	CHECK_INT(node("a")->gpus[0].mig_mode, MIG_MADE);
	CHECK(node("a")->gpus[0].mig_made[6] != 0);
	CHECK_STR(inventory_slice(inventory, "a", 0, "1g.10gb+me", 6, &arena), "MIG-3");
	CHECK(!inventory_slice(inventory, "a", 0, "1g.10gb", 6, &arena));
	close_all();
}

TEST(who_is_seen_on_which_gpus)
{
	open();
	bench_put(KUBE_NODE, NODE("a", "", "cpu: 4"));
	bench_put(KUBE_GPU_NODE_STATUS, USED("", ""));
	bench_seen();
	bench_put(KUBE_GPU_NODE_STATUS, USED("{uid: p}, {uid: q}", "{uid: p}"));
	CHECK_STR(bench_seen(), "a:use,");
	CHECK_INT(inventory_in_use(inventory, "a", "p"), 3);
	CHECK_INT(inventory_in_use(inventory, "a", "q"), 1);
	CHECK_INT(inventory_in_use(inventory, "a", "r"), 0);
	CHECK_INT(inventory_in_use(inventory, "b", "p"), 0);
	bench_put(KUBE_GPU_NODE_STATUS, USED("{uid: q}, {uid: p}, {name: none}", "{uid: p}"));
	CHECK_STR(bench_seen(), ""); /* the same in another order */
	bench_put(KUBE_GPU_NODE_STATUS, USED("", "{uid: p}"));
	CHECK_STR(bench_seen(), "a:use,");
	CHECK_INT(inventory_in_use(inventory, "a", "p"), 2);
	bench_delete(KUBE_NODE, NODE("a", "", "cpu: 4"));
	CHECK_INT(inventory_in_use(inventory, "a", "p"), 0);
	close_all();
}

TEST(cards_are_known_by_uuid_or_by_index)
{
	struct lock_card card;
	uint32_t index = 9;

	open();
	bench_put(KUBE_NODE, NODE("a", "", "cpu: 4"));
	bench_put(KUBE_NODE, NODE("b", "", "nvidia.com/gpu: 4"));
	bench_put(KUBE_GPU_NODE_STATUS,
		  REPORT("a", "devices: [{id: 0, uuid: GPU-0}, {id: 1, uuid: GPU-1, model: "
			      "NVIDIA-A100-SXM4-40GB, memoryMiB: 40960}]"));
	CHECK(inventory_card(inventory, "a", "GPU-1", &card, &index));
	CHECK_INT(index, 1);
	CHECK_INT(card.mem_mib, 40960);
	CHECK(!inventory_card(inventory, "b", "GPU-1", &card, &index));
	CHECK(!inventory_card(inventory, "c", "GPU-1", &card, &index));
	CHECK(inventory_card(inventory, "b", "3", &card, &index));
	CHECK_INT(index, 3);
	CHECK(!inventory_card(inventory, "b", "4", &card, &index));
	close_all();
}

TEST(the_fabric_can_be_read_from_other_labels)
{
	static const char *const rack[] = { "rack" }, *const many[] = { "1", "2", "3", "4", "5",
									"6", "7", "8", "9" };
	struct err err = ERR_INIT;

	open();
	bench_put(KUBE_NODE,
		  NODE("a", ", labels: {rack: r1, topology.scheduler/leaf: l1}", "cpu: 4"));
	bench_seen();
	CHECK_STR(cluster_domain(bench.cluster, node("a")->domain)->name, "l1");
	CHECK(inventory_set_domains(inventory, rack, 1, &err) == 0);
	CHECK_STR(bench_seen(), "a:labels,");
	CHECK_STR(cluster_domain(bench.cluster, node("a")->domain)->name, "r1");
	CHECK(inventory_set_domains(inventory, many, 9, &err) == -EINVAL);
	close_all();
	open_with(rack, 1);
	bench_put(KUBE_NODE, NODE("a", ", labels: {rack: r1}", "cpu: 4"));
	CHECK_STR(cluster_domain(bench.cluster, node("a")->domain)->name, "r1");
	close_all();
}

TEST_MAIN()
