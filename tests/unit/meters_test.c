/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet.h"

#include "base/attr.h"
#include "base/strbuf.h"
#include "scheduler/meters.h"
#include "scheduler/pending.h"
#include "wire/metrics.h"

#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

/* A registry, a cluster and its meters. */
struct stage {
	struct metrics *metrics;
	struct engine *engine;
	struct meters *meters;
};

static void stage_done(struct stage *s)
{
	meters_free(s->meters);
	engine_free(s->engine);
	metrics_free(s->metrics);
}

static struct stage stage_new(void)
{
	struct stage s = { .metrics = metrics_new(), .engine = fleet_new() };

	s.meters = meters_new(s.metrics, s.engine);
	CHECK(s.meters);
	return s;
}

static double value(const struct stage *s, const char *name, const char *const *labels)
{
	struct metric *metric = metrics_find(s->metrics, name);

	CHECKF(metric != NULL, "%s", name);
	return metric_value(metric, labels);
}

static void check_near(double actual, double expected)
{
	CHECKF(fabs(actual - expected) < 1e-9, "%f, expected %f", actual, expected);
}

static double utilization(const struct stage *s, const char *domain)
{
	return value(s, "topology_domain_utilization_ratio", METRIC_LABELS(domain));
}

static double fragmentation(const struct stage *s, const char *domain)
{
	return value(s, "topology_scheduler_domain_fragmentation_ratio", METRIC_LABELS(domain));
}

static bool is_written(const struct stage *s, const char *text)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;

	metrics_write(s->metrics, &out);
	return strstr(out.s, text) != NULL;
}

static uint32_t node_on_path(struct engine *e, const char *name, const char *const *path,
			     uint32_t levels)
{
	char uuid[64];
	struct gpu_spec gpu = { .uuid = uuid, .model = "model", .mem_mib = 1024 };
	struct node_spec spec = { .name = name,
				  .allocatable = { 1000, 1 << 30, 1 << 30, 10 },
				  .gpus = &gpu,
				  .gpus_count = 1,
				  .domains = path,
				  .domains_count = levels };
	struct err err = ERR_INIT;
	uint32_t node;

	snprintf(uuid, sizeof(uuid), "gpu-of-%s", name);
	CHECKF(cluster_node_add(engine_cluster(e), &spec, &node, &err) == 0, "%s", err.text);
	return node;
}

TEST(nothing_has_happened_at_first)
{
	struct stage s CLEANUP(stage_done) = stage_new();

	meters_refresh(s.meters, NULL);
	CHECK(is_written(&s, "gpu_scheduler_attempts_total{result=\"scheduled\"} 0\n"));
	CHECK(is_written(&s, "gpu_scheduler_gangs_total{result=\"unschedulable\"} 0\n"));
	CHECK(is_written(&s, "topology_gpu_allocation_ratio 0\n"));
	CHECK(is_written(&s, "topology_scheduler_latency_seconds_count 0\n"));
	CHECK(is_written(&s, "gpu_scheduler_leader 0\n"));
}

TEST(a_decision_is_counted_by_strategy_result_and_domain)
{
	struct stage s CLEANUP(stage_done) = stage_new();
	uint32_t a = fleet_node(s.engine, "a", (struct fleet_node){ .gpus = 4, .leaf = "leaf-1" });
	const char *name = "topology_placement_decisions_total";

	meters_decided(s.meters, NULL, METERS_SCHEDULED, a, .0001);
	meters_decided(s.meters, NULL, METERS_SCHEDULED, a, .0001);
	meters_decided(s.meters, "gang", METERS_UNSCHEDULABLE, NODE_NONE, .0001);
	meters_decided(s.meters, "gang", METERS_ERROR, 12345, .0001);
	CHECK_INT(value(&s, name, METRIC_LABELS("default", "scheduled", "leaf-1")), 2);
	CHECK_INT(value(&s, name, METRIC_LABELS("gang", "unschedulable", "")), 1);
	CHECK_INT(value(&s, name, METRIC_LABELS("gang", "error", "")), 1);
	CHECK_INT(value(&s, "gpu_scheduler_attempts_total", METRIC_LABELS("scheduled")), 2);
	CHECK_INT(value(&s, "gpu_scheduler_attempts_total", METRIC_LABELS("error")), 1);
	meters_wrong(s.meters, METERS_ERROR);
	CHECK_INT(value(&s, "gpu_scheduler_attempts_total", METRIC_LABELS("error")), 2);
	CHECK_INT(value(&s, "topology_scheduler_placement_duration_seconds", METRIC_NO_LABELS), 4);
}

TEST(what_happens_is_counted)
{
	struct stage s CLEANUP(stage_done) = stage_new();

	meters_gang(s.meters, METERS_SCHEDULED);
	meters_binding(s.meters, "done", .01);
	meters_binding(s.meters, "moved", .01);
	meters_bound(s.meters, .05);
	meters_victims(s.meters, 3);
	meters_read(s.meters);
	meters_recovered(s.meters, 2);
	meters_leader(s.meters, true);
	CHECK_INT(value(&s, "gpu_scheduler_gangs_total", METRIC_LABELS("scheduled")), 1);
	CHECK_INT(value(&s, "gpu_scheduler_bind_total", METRIC_LABELS("moved")), 1);
	CHECK_INT(value(&s, "gpu_scheduler_bind_duration_seconds", METRIC_NO_LABELS), 2);
	CHECK_INT(value(&s, "topology_scheduler_latency_seconds", METRIC_NO_LABELS), 1);
	CHECK_INT(value(&s, "gpu_scheduler_preemption_victims_total", METRIC_NO_LABELS), 3);
	CHECK_INT(value(&s, "gpu_scheduler_pod_readings_total", METRIC_NO_LABELS), 1);
	CHECK_INT(value(&s, "topology_scheduler_recovery_duration_seconds", METRIC_NO_LABELS), 1);
	CHECK_INT(value(&s, "gpu_scheduler_leader", METRIC_NO_LABELS), 1);
	meters_leader(s.meters, false);
	CHECK_INT(value(&s, "gpu_scheduler_leader", METRIC_NO_LABELS), 0);
	CHECK(is_written(&s, "topology_scheduler_latency_seconds_bucket{le=\"0.05\"} 1\n"));
	CHECK(is_written(&s, "topology_scheduler_latency_seconds_bucket{le=\"0.02\"} 0\n"));
}

TEST(the_queue_is_counted_by_place)
{
	struct stage s CLEANUP(stage_done) = stage_new();
	struct pending *q = pending_new(&(struct pending_options){ 0 });
	struct pending_item items[4] = { 0 };

	for (uint32_t i = 0; i < 4; i++)
		CHECK_INT(pending_add(q, &items[i], 0), 0);
	CHECK_INT(pending_refused(q, pending_pop(q, 0), 1, WAKE_NODE, 0), 0);
	meters_refresh(s.meters, q);
	CHECK_INT(value(&s, "gpu_scheduler_queue_pods", METRIC_LABELS("ready")), 3);
	CHECK_INT(value(&s, "gpu_scheduler_queue_pods", METRIC_LABELS("parked")), 1);
	CHECK_INT(value(&s, "gpu_scheduler_queue_pods", METRIC_LABELS("backoff")), 0);
	CHECK_INT(value(&s, "gpu_scheduler_queue_pods", METRIC_LABELS("out")), 0);
	pending_free(q);
}

TEST(utilization_is_the_share_taken_in_each_domain)
{
	struct stage s CLEANUP(stage_done) = stage_new();

	fleet_node(s.engine, "a",
		   (struct fleet_node){ .gpus = 4, .leaf = "leaf-1", .model = "A100" });
	fleet_node(s.engine, "b",
		   (struct fleet_node){ .gpus = 8, .leaf = "leaf-2", .model = "H100" });
	fleet_pod(s.engine, "p", "a", whole(3), (struct pod_spec){ 0 });
	fleet_pod(s.engine, "q", "b", share(500, 0), (struct pod_spec){ 0 });
	meters_refresh(s.meters, NULL);
	check_near(utilization(&s, "leaf-1"), 3. / 4);
	check_near(utilization(&s, "leaf-2"), .5 / 8);
	check_near(utilization(&s, "cluster"), 3.5 / 12);
	check_near(value(&s, "topology_gpu_allocation_ratio", METRIC_NO_LABELS), 3.5 / 12);
	check_near(value(&s, "gpu_scheduler_model_allocation_ratio", METRIC_LABELS("A100")), .75);
	CHECK_INT(value(&s, "gpu_scheduler_model_gpus", METRIC_LABELS("H100")), 8);
}

TEST(an_unhealthy_gpu_does_not_count)
{
	struct stage s CLEANUP(stage_done) = stage_new();
	uint32_t a = fleet_node(s.engine, "a", (struct fleet_node){ .gpus = 4 });

	fleet_pod(s.engine, "p", "a", on_gpus(whole(1), 1), (struct pod_spec){ 0 });
	cluster_gpu_health(engine_cluster(s.engine), a, 3, false);
	meters_refresh(s.meters, NULL);
	check_near(utilization(&s, "cluster"), 1. / 3);
	CHECK_INT(value(&s, "gpu_scheduler_model_gpus", METRIC_LABELS("model")), 3);
}

TEST(fragmentation_is_what_whole_gpus_cannot_use)
{
	struct stage s CLEANUP(stage_done) = stage_new();

	/* Idle, and full: nothing that is free is lost. */
	fleet_node(s.engine, "a", (struct fleet_node){ .gpus = 8, .leaf = "idle" });
	fleet_node(s.engine, "b", (struct fleet_node){ .gpus = 2, .leaf = "full" });
	fleet_pod(s.engine, "all", "b", whole(2), (struct pod_spec){ 0 });
	/* 7 idle of 8: 0 lost to 1, 1 to 2, 3 to 4, 7 to 8. */
	fleet_node(s.engine, "c", (struct fleet_node){ .gpus = 8, .leaf = "seven" });
	fleet_pod(s.engine, "one", "c", whole(1), (struct pod_spec){ 0 });
	/* 4 cards, half of each of two: 3 free, of which 2 are whole; no 8 anywhere. */
	fleet_node(s.engine, "d", (struct fleet_node){ .gpus = 4, .leaf = "crumbs" });
	fleet_pod(s.engine, "half", "d", on_gpus(share(500, 0), 1), (struct pod_spec){ 0 });
	fleet_pod(s.engine, "another", "d", on_gpus(share(500, 0), 2), (struct pod_spec){ 0 });
	/* What is free on a closed node is of no use. */
	fleet_node(s.engine, "e",
		   (struct fleet_node){ .gpus = 4, .leaf = "closed", .unschedulable = true });
	fleet_node(s.engine, "f", (struct fleet_node){ .gpus = 0, .leaf = "none" });
	meters_refresh(s.meters, NULL);
	check_near(fragmentation(&s, "idle"), 0);
	check_near(fragmentation(&s, "full"), 0);
	check_near(fragmentation(&s, "seven"), (0 + 1. / 7 + 3. / 7 + 7. / 7) / 4);
	check_near(fragmentation(&s, "crumbs"), (1. / 3 + 1. / 3 + 1) / 3);
	check_near(fragmentation(&s, "closed"), 1);
	check_near(fragmentation(&s, "none"), 0);
	/* 22 free: 17, 16, 12 and 8 of them are of use. */
	check_near(fragmentation(&s, "cluster"), (5. / 22 + 6. / 22 + 10. / 22 + 14. / 22) / 4);
}

TEST(domains_are_named_by_their_path)
{
	struct stage s CLEANUP(stage_done) = stage_new();

	node_on_path(s.engine, "a", (const char *[]){ "spine-1", "leaf-1" }, 2);
	node_on_path(s.engine, "b", (const char *[]){ "spine-2", "leaf-1" }, 2);
	fleet_pod(s.engine, "p", "b", whole(1), (struct pod_spec){ 0 });
	meters_refresh(s.meters, NULL);
	check_near(utilization(&s, "spine-1/leaf-1"), 0);
	check_near(utilization(&s, "spine-2/leaf-1"), 1);
	check_near(utilization(&s, "spine-2"), 1);
	check_near(utilization(&s, "cluster"), .5);
}

TEST(a_domain_without_nodes_is_no_longer_shown)
{
	struct stage s CLEANUP(stage_done) = stage_new();
	uint32_t a = fleet_node(s.engine, "a", (struct fleet_node){ .gpus = 1, .leaf = "leaf-1" });

	fleet_node(s.engine, "b", (struct fleet_node){ .gpus = 1, .leaf = "leaf-2" });
	meters_refresh(s.meters, NULL);
	CHECK(is_written(&s, "topology_domain_utilization_ratio{domain=\"leaf-1\"} 0\n"));
	cluster_node_remove(engine_cluster(s.engine), a);
	meters_refresh(s.meters, NULL);
	CHECK(!is_written(&s, "leaf-1"));
	CHECK(is_written(&s, "topology_domain_utilization_ratio{domain=\"leaf-2\"} 0\n"));
	fleet_node(s.engine, "a", (struct fleet_node){ .gpus = 1, .leaf = "leaf-1" });
	meters_refresh(s.meters, NULL);
	CHECK(is_written(&s, "topology_scheduler_domain_fragmentation_ratio{domain=\"leaf-1\"}"));
}

TEST(only_whole_levels_of_few_domains_are_shown)
{
	struct stage s CLEANUP(stage_done) = stage_new();
	char name[32], leaf[32];
	uint32_t last = NODE_NONE;

	/* The root, one spine and METERS_DOMAINS - 2 leaves: just so many. */
	for (uint32_t i = 0; i < METERS_DOMAINS - 2; i++) {
		snprintf(name, sizeof(name), "n%u", (unsigned)i);
		snprintf(leaf, sizeof(leaf), "leaf-%u", (unsigned)i);
		node_on_path(s.engine, name, (const char *[]){ "spine", leaf }, 2);
	}
	meters_refresh(s.meters, NULL);
	CHECK(is_written(&s, "topology_domain_utilization_ratio{domain=\"spine/leaf-253\"}"));
	CHECK(!is_written(&s, "\"other\""));
	last = node_on_path(s.engine, "more", (const char *[]){ "spine", "more" }, 2);
	meters_refresh(s.meters, NULL);
	CHECK(!is_written(&s, "spine/"));
	CHECK(is_written(&s, "topology_domain_utilization_ratio{domain=\"spine\"}"));
	cluster_node_remove(engine_cluster(s.engine), last);
	meters_refresh(s.meters, NULL);
	CHECK(is_written(&s, "topology_domain_utilization_ratio{domain=\"spine/leaf-0\"}"));
	CHECK(!is_written(&s, "\"other\""));
}

TEST(decisions_are_bounded)
{
	struct stage s CLEANUP(stage_done) = stage_new();
	char strategy[32];

	for (uint32_t i = 0; i < METERS_DECISIONS + 10; i++) {
		snprintf(strategy, sizeof(strategy), "s%u", (unsigned)i);
		meters_decided(s.meters, strategy, METERS_ERROR, NODE_NONE, 0);
	}
	CHECK(value(&s, "topology_placement_decisions_total",
		    METRIC_LABELS("other", "other", "other")) >= 10);
}

TEST(nobody_needs_meters)
{
	meters_decided(NULL, NULL, METERS_ERROR, NODE_NONE, 0);
	meters_wrong(NULL, METERS_ERROR);
	meters_gang(NULL, METERS_ERROR);
	meters_binding(NULL, "done", 0);
	meters_bound(NULL, 0);
	meters_victims(NULL, 1);
	meters_recovered(NULL, 0);
	meters_leader(NULL, true);
	meters_refresh(NULL, NULL);
	meters_free(NULL);
}

TEST(two_on_one_registry_share_their_figures)
{
	struct stage s CLEANUP(stage_done) = stage_new();
	struct meters *other = meters_new(s.metrics, s.engine);

	CHECK(other);
	meters_victims(other, 1);
	meters_victims(s.meters, 1);
	CHECK_INT(value(&s, "gpu_scheduler_preemption_victims_total", METRIC_NO_LABELS), 2);
	meters_free(other);
}

TEST(promtool_finds_nothing_to_complain_of)
{
	if (system("command -v promtool >/dev/null 2>&1") != 0)
		SKIP("promtool is not installed"); /* leaves without cleaning up */
	struct stage s CLEANUP(stage_done) = stage_new();
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	struct pending *q = pending_new(&(struct pending_options){ 0 });
	uint32_t a =
		fleet_node(s.engine, "a", (struct fleet_node){ .gpus = 4, .leaf = "l\"\\\n" });

	meters_decided(s.meters, NULL, METERS_SCHEDULED, a, .0001);
	meters_binding(s.meters, "same version", .01);
	meters_bound(s.meters, .05);
	meters_refresh(s.meters, q);
	pending_free(q);
	metrics_write(s.metrics, &out);
	FILE *promtool = popen("promtool check metrics", "w");
	CHECK(promtool && fwrite(out.s, 1, out.len, promtool) == out.len);
	int status = pclose(promtool);
	CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == 0, "promtool says %d", status);
}

TEST_MAIN()
