/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, reports, pods, budgets and what is around pods: from a real server into the engine, with
 * the scheduler's own rights.
 *
 * cluster: --nodes 0
 */
#include "live.h"

#include "test.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "engine/engine.h"
#include "kube/cache.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "kube/ready.h"
#include "scheduler/budgets.h"
#include "scheduler/inventory.h"
#include "scheduler/lookup.h"
#include "scheduler/residents.h"
#include "wire/json.h"

#include <unistd.h>

#define NODES	 "/api/v1/nodes"
#define REPORTS	 "/apis/gpu.scheduling/v1/gpunodestatuses"
#define PODS	 "/api/v1/namespaces/default/pods"
#define BUDGETS	 "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
#define JOBS	 "/apis/batch/v1/namespaces/default/jobs"
#define CLAIMS	 "/apis/gpu.scheduling/v1/namespaces/default/gpuclaims"
#define DECISION "gpu.scheduling/decision"

struct scene {
	struct live admin, live;
	struct kube_caches *caches;
	struct engine *engine;
	struct cluster *cluster;
	struct inventory *inventory;
	struct lookup *lookup;
	struct budgets *budgets;
	struct residents *residents;
	struct log log;
	unsigned told; /* changes of nodes */
	uint32_t gpus; /* wanted: of the node, of the pod */
	const char *pod;
	const char *kind;
	bool guarded;
};

static void node_changed(void *context, const char *name, uint32_t node, uint32_t changes)
{
	struct scene *s = context;
	(void)node;
	s->told++;
	residents_node(s->residents, name, changes);
}

static void pod_changed(void *context, enum kube_change change, const struct kube_object *before,
			struct kube_object *now, const struct json *object)
{
	const struct scene *s = context;
	uint32_t node;
	(void)change;
	if (now && json_str(object, "spec", "nodeName"))
		residents_put(s->residents, now, object);
	else if (!now)
		residents_remove(s->residents, before->uid, &node);
}

static bool is_ready(void *context)
{
	const struct scene *s = context;
	return kube_caches_ready(s->caches, NULL);
}

static void fill(struct scene *s)
{
	struct err err = ERR_INIT;
	struct lookup_options lookup = {
		.caches = s->caches, .cluster = s->cluster, .log = &s->log, .seed = 1
	};
	struct budgets_options budgets = { .caches = s->caches, .log = &s->log, .seed = 1 };
	struct inventory_options inventory = { .engine = s->engine,
					       .caches = s->caches,
					       .log = &s->log,
					       .changed = node_changed,
					       .context = s };
	struct kube_cache_options pods = { .kind = &kube_kinds[KUBE_POD],
					   .changed = pod_changed,
					   .context = s };
	CHECKF(lookup_new(&lookup, &s->lookup, &err) == 0, "%s", err.text);
	CHECKF(budgets_new(&budgets, &s->budgets, &err) == 0, "%s", err.text);
	CHECKF(inventory_new(&inventory, &s->inventory, &err) == 0, "%s", err.text);
	CHECKF(kube_caches_add(s->caches, &pods, NULL, &err) == 0, "%s", err.text);
	struct residents_options residents = { .engine = s->engine,
					       .inventory = s->inventory,
					       .lookup = s->lookup,
					       .budgets = s->budgets,
					       .log = &s->log,
					       .seed = 1 };
	CHECKF(residents_new(&residents, &s->residents, &err) == 0, "%s", err.text);
}

static void scene_open(struct scene *s)
{
	char kubeconfig[256];
	*s = (struct scene){ .told = 0 };
	snprintf(kubeconfig, sizeof(kubeconfig), "%s/scheduler.kubeconfig", getenv("KUBE_DIR"));
	live_open(&s->admin, NULL);
	live_open_beside(&s->live, &s->admin, kubeconfig);
	s->log = (struct log){ STDERR_FILENO, LOG_WARN, LOG_LOGFMT, &clock_system };
	s->engine = engine_new(&(struct engine_config){ .cluster.seed = 1 });
	CHECK(s->engine);
	s->cluster = engine_cluster(s->engine);
	s->caches = kube_caches_new(s->live.client);
	fill(s);
	live_until(&s->live, is_ready, s, "the caches to be live");
}

static void scene_close(struct scene *s)
{
	kube_caches_free(s->caches);
	residents_free(s->residents);
	CHECK(cluster_check(s->cluster) == NULL);
	engine_free(s->engine);
	inventory_free(s->inventory);
	lookup_free(s->lookup);
	budgets_free(s->budgets);
	live_close(&s->live);
	live_close(&s->admin);
}

static void post(struct scene *s, const char *path, const char *body)
{
	int code = live_call(&s->admin, "POST", path, body);
	CHECKF(code == 201, "%s: %d %s", path, code, s->admin.text.s);
}

static void patch(struct scene *s, const char *path, const char *body)
{
	int code = live_call(&s->admin, "PATCH", path, body);
	CHECKF(code == 200, "%s: %d %s", path, code, s->admin.text.s);
}

static const struct node *node(const struct scene *s)
{
	uint32_t number = cluster_node_find(s->cluster, "dgx");
	return number == NODE_NONE ? NULL : cluster_node(s->cluster, number);
}

static const struct pod *pod(const struct scene *s)
{
	for (uint32_t i = 0; i < cluster_pods_end(s->cluster); i++) {
		const struct pod *p = cluster_pod(s->cluster, i);
		if (p && strcmp(p->name, s->pod) == 0)
			return p;
	}
	return NULL;
}

static bool node_has(void *context)
{
	const struct scene *s = context;
	return node(s) && node(s)->gpus_count == s->gpus;
}

/* Between two kinds there is no order. */
static bool node_is_sized(void *context)
{
	const struct scene *s = context;
	return node(s) && node(s)->allocatable.cpu_milli == 64000;
}

static bool node_is_gone(void *context)
{
	return !node(context);
}

static bool pod_has(void *context)
{
	const struct scene *s = context;
	const struct pod *p = pod(s);
	uint32_t set = 0;
	for (uint16_t i = 0; p && i < p->holds_count; i++)
		set |= gpuset_one(p->holds[i].gpu);
	return p && set == s->gpus;
}

static bool pod_is_gone(void *context)
{
	return !pod(context);
}

static bool pod_is_guarded(void *context)
{
	const struct scene *s = context;
	residents_guard(s->residents);
	uint32_t budget = pod(s) ? pod(s)->budget : 0;
	return budget && (cluster_budget_allowed(s->cluster, budget) == 0) == s->guarded;
}

static bool is_found(void *context)
{
	const struct scene *s = context;
	const struct dialect_lookup *d = lookup_dialect(s->lookup);
	bool found = d->find(d->context, s->kind, "default", "x");
	lookup_reset(s->lookup);
	return found;
}

static void wait_pod(struct scene *s, const char *name, uint32_t gpus)
{
	s->pod = name;
	s->gpus = gpus;
	live_until(&s->live, pod_has, s, name);
}

#define DEVICE(id) \
	"{\"id\":" #id ",\"uuid\":\"GPU-" #id "\",\"model\":\"H100\",\"memoryMiB\":80000}"
#define POD(name, meta, limits)                                                                 \
	"{\"metadata\":{\"name\":\"" name "\",\"labels\":{\"app\":\"web\"}" meta "},\"spec\":{" \
	"\"nodeName\":\"dgx\",\"terminationGracePeriodSeconds\":0,\"containers\":[{\"name\":"   \
	"\"c\",\"image\":\"i\",\"resources\":{\"requests\":{\"cpu\":\"1\"},\"limits\":{" limits \
	"}}}]}}"

static bool are_served(void *context)
{
	struct scene *s = context;
	return live_call(&s->admin, "GET", REPORTS, NULL) == 200 &&
	       live_call(&s->admin, "GET", CLAIMS, NULL) == 200;
}

TEST(a_server_without_our_kinds_is_in_order)
{
	struct scene s;
	scene_open(&s);
	post(&s, NODES, "{\"metadata\":{\"name\":\"dgx\"}}");
	s.gpus = 0;
	live_until(&s.live, node_has, &s, "the node");
	scene_close(&s);
	/* NOLINTNEXTLINE(cert-env33-c): ours */
	CHECK_INT(system("kubectl create -f " SOURCE_ROOT "/deploy/crds >/dev/null"), 0);
	live_open(&s.admin, NULL);
	live_until(&s.admin, are_served, &s, "the kinds to be served");
	live_close(&s.admin);
}

TEST(what_agents_report_and_pods_hold_reaches_the_engine)
{
	struct scene s;
	scene_open(&s);
	patch(&s, NODES "/dgx/status",
	      "{\"status\":{\"allocatable\":{\"cpu\":\"64\",\"pods\":\"110\"}}}");
	post(&s, REPORTS,
	     "{\"apiVersion\":\"gpu.scheduling/v1\",\"kind\":\"GpuNodeStatus\",\"metadata\":{"
	     "\"name\":\"dgx\"}}");
	patch(&s, REPORTS "/dgx/status",
	      "{\"status\":{\"injectionMode\":\"cdi\",\"devices\":[" DEVICE(0) "," DEVICE(
		      1) "," DEVICE(2) "," DEVICE(3) "]}}");
	s.gpus = 4;
	live_until(&s.live, node_has, &s, "four GPUs");
	live_until(&s.live, node_is_sized, &s, "its CPUs");
	CHECK_INT(inventory_visibility(s.inventory, "dgx"), VISIBLE_DECIDED);
	post(&s, PODS,
	     POD("ours",
		 ",\"annotations\":{\"" DECISION "\":\"{\\\"node\\\":\\\"dgx\\\","
		 "\\\"attempt\\\":7,\\\"gpus\\\":[{\\\"uuid\\\":\\\"GPU-2\\\","
		 "\\\"coreMilli\\\":1000,\\\"memoryMiB\\\":80000}]}\"}",
		 ""));
	wait_pod(&s, "ours", 1 << 2);
	CHECK_INT(node(&s)->free.cpu_milli, 63000);
	/* A heartbeat is no news. */
	unsigned told = s.told;
	patch(&s, REPORTS "/dgx/status", "{\"status\":{\"heartbeat\":\"2026-01-01T00:00:00Z\"}}");
	/* Somebody else's, first guessed, then seen. */
	post(&s, PODS, POD("other", "", "\"nvidia.com/gpu\":\"3\""));
	wait_pod(&s, "other", 1 << 0 | 1 << 1 | 1 << 3);
	CHECK_INT(s.told, told);
	CHECK_INT(live_call(&s.admin, "DELETE", PODS "/other", NULL), 200);
	live_until(&s.live, pod_is_gone, &s, "the pod to be gone");
	scene_close(&s);
	/* The same after a restart; the caches are live, so all of it is there. */
	scene_open(&s);
	wait_pod(&s, "ours", 1 << 2);
	CHECK_INT(node(&s)->free.cpu_milli, 63000);
	scene_close(&s);
}

TEST(budgets_are_followed)
{
	struct scene s;
	scene_open(&s);
	wait_pod(&s, "ours", 1 << 2);
	post(&s, BUDGETS,
	     "{\"metadata\":{\"name\":\"b\"},\"spec\":{\"minAvailable\":1,\"selector\":{"
	     "\"matchLabels\":{\"app\":\"web\"}}}}");
	s.guarded = true;
	live_until(&s.live, pod_is_guarded, &s, "the pod to be guarded");
	patch(&s, BUDGETS "/b/status",
	      "{\"status\":{\"disruptionsAllowed\":1,\"currentHealthy\":2,\"desiredHealthy\":1,"
	      "\"expectedPods\":2}}");
	s.guarded = false;
	live_until(&s.live, pod_is_guarded, &s, "the pod to be free");
	scene_close(&s);
}

TEST(what_is_around_pods_is_found)
{
	struct scene s;
	scene_open(&s);
	post(&s, JOBS,
	     "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"template\":{\"spec\":{\"restartPolicy\":"
	     "\"Never\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}");
	post(&s, CLAIMS,
	     "{\"apiVersion\":\"gpu.scheduling/v1\",\"kind\":\"GpuClaim\",\"metadata\":{\"name\":"
	     "\"x\"},\"spec\":{\"devices\":{\"count\":1}}}");
	post(&s, "/apis/scheduling.k8s.io/v1/priorityclasses",
	     "{\"metadata\":{\"name\":\"x\"},\"value\":7}");
	for (unsigned i = 0; i < 3; i++) {
		s.kind = (const char *const[]){ "Job", "GpuClaim", "PriorityClass" }[i];
		live_until(&s.live, is_found, &s, s.kind);
	}
	scene_close(&s);
}

TEST(a_node_that_goes_takes_its_pods_along_and_brings_them_back)
{
	struct scene s;
	scene_open(&s);
	wait_pod(&s, "ours", 1 << 2);
	CHECK_INT(live_call(&s.admin, "DELETE", NODES "/dgx", NULL), 200);
	live_until(&s.live, node_is_gone, &s, "the node to be gone");
	CHECK(pod(&s) == NULL);
	post(&s, NODES, "{\"metadata\":{\"name\":\"dgx\"}}");
	wait_pod(&s, "ours", 1 << 2);
	scene_close(&s);
}

TEST_MAIN()
