/* SPDX-License-Identifier: Apache-2.0 */
/* What the server's schemas accept and refuse is what our readers do: configurations and
 * reports of agents.  Claims are in e2e/crds_test.py.
 *
 * cluster:
 */
#include "live.h"

#include "test.h"

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "dialect/node.h"
#include "scheduler/settings.h"
#include "wire/json.h"

#define CONFIGS \
	"/apis/topology.scheduler/v1alpha1/namespaces/kube-system/schedulerconfigs?dryRun=All"
#define REPORTS "/apis/gpu.scheduling/v1/gpunodestatuses"

struct row {
	const char *text;
	bool good;
};

static bool are_served(void *context)
{
	return live_call(context, "GET", CONFIGS, NULL) == 200 &&
	       live_call(context, "GET", REPORTS, NULL) == 200;
}

static void begin(struct live *live)
{
	static bool made;
	live_open(live, NULL);
	if (!made) /* NOLINTNEXTLINE(cert-env33-c): ours */
		CHECK_INT(system("kubectl create -f " SOURCE_ROOT "/deploy/crds >/dev/null"), 0);
	made = true;
	live_until(live, are_served, live, "the kinds to be served");
}

TEST(configurations_are_accepted_and_refused_alike)
{
	static const struct row rows[] = {
		{ "{}", true },
		{ "{\"scoringWeights\":{}}", true },
		{ "{\"scoringWeights\":{\"resourceAvailability\":0}}", true },
		{ "{\"scoringWeights\":{\"resourceAvailability\":1000000}}", true },
		{ "{\"scoringWeights\":{\"resourceAvailability\":1000001}}", false },
		{ "{\"scoringWeights\":{\"topologyAlignment\":-0.1}}", false },
		{ "{\"scoringWeights\":{\"topologyAlignment\":\"1\"}}", false },
		{ "{\"scoringWeights\":{\"resourceAvailability\":0,\"topologyAlignment\":0,"
		  "\"domainUtilization\":0,\"historicalPerformance\":0}}",
		  false },
		{ "{\"scoringWeights\":3}", false },
		{ "{\"topologyConstraints\":{\"maxNodesPerLeaf\":0,\"maxGPUsPerLeaf\":1000000}}",
		  true },
		{ "{\"topologyConstraints\":{\"maxNodesPerLeaf\":1000001}}", false },
		{ "{\"topologyConstraints\":{\"maxNodesPerLeaf\":-1}}", false },
		{ "{\"topologyConstraints\":{\"maxNodesPerDomain\":4,\"maxNodesPerLeaf\":4}}",
		  true },
		{ "{\"topologyConstraints\":{\"maxNodesPerDomain\":4,\"maxNodesPerLeaf\":5}}",
		  false },
		{ "{\"topologyConstraints\":{\"maxGPUsPerDomain\":4,\"maxGPUsPerLeaf\":5}}",
		  false },
		{ "{\"policy\":\"default\"}", true },
		{ "{\"policy\":\"binpack\"}", true },
		{ "{\"policy\":\"spread\"}", true },
		{ "{\"policy\":\"random\"}", false },
		{ "{\"policy\":\"fgd\"}", false },
		{ "{\"policy\":\"\"}", false },
		{ "{\"policy\":1}", false },
		{ "{\"maxPodsPerSharedGpu\":1}", true },
		{ "{\"maxPodsPerSharedGpu\":1000}", true },
		{ "{\"maxPodsPerSharedGpu\":0}", false },
		{ "{\"maxPodsPerSharedGpu\":1001}", false },
		{ "{\"domainLabels\":[\"a\",\"example.org/b\"]}", true },
		{ "{\"domainLabels\":[]}", false },
		{ "{\"domainLabels\":[\"a\",\"a\"]}", false },
		{ "{\"domainLabels\":[\"\"]}", false },
		{ "{\"domainLabels\":[1]}", false },
		{ "{\"domainLabels\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\"]}", true },
		{ "{\"domainLabels\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"]}",
		  false },
		{ "{\"domainPreset\":\"topology.scheduler\"}", true },
		{ "{\"domainPreset\":\"topograph-0.1\"}", true },
		{ "{\"domainPreset\":\"topograph-0.3\"}", true },
		{ "{\"domainPreset\":\"topograph-1.0\"}", true },
		{ "{\"domainPreset\":\"kubernetes\"}", true },
		{ "{\"domainPreset\":\"mine\"}", false },
		{ "{\"domainPreset\":\"kubernetes\",\"domainLabels\":[\"a\"]}", false },
		{ "{\"gangReservationSeconds\":1}", true },
		{ "{\"gangReservationSeconds\":86400}", true },
		{ "{\"gangReservationSeconds\":0}", false },
		{ "{\"gangReservationSeconds\":86401}", false },
		{ "{\"podInitialBackoffSeconds\":10}", true },
		{ "{\"podInitialBackoffSeconds\":11}", false },
		{ "{\"podInitialBackoffSeconds\":11,\"podMaxBackoffSeconds\":11}", true },
		{ "{\"podMaxBackoffSeconds\":3600}", true },
		{ "{\"podMaxBackoffSeconds\":3601}", false },
		{ "{\"podMaxBackoffSeconds\":0}", false },
	};
	struct live live;
	begin(&live);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char body[1024];
		struct scheduler_settings settings;
		struct err err = ERR_INIT;
		const char *text = rows[i].text;
		snprintf(body, sizeof(body),
			 "{\"apiVersion\":\"" SETTINGS_API "\",\"kind\":\"SchedulerConfig\","
			 "\"metadata\":{\"name\":\"c\"},\"spec\":%s}",
			 text);
		int code = live_call(&live, "POST", CONFIGS, body);
		int rc = settings_parse("spec", text, strlen(text), &settings, &err);
		CHECKF(code == (rows[i].good ? 201 : 422), "the server: %s: %s", text,
		       live.text.s);
		CHECKF((rc == 0) == rows[i].good, "the reader: %s: %s", text, err.text);
	}
	live_close(&live);
}

static int read_report(const char *status, struct err *err)
{
	char text[2048];
	struct json_doc *node CLEANUP(json_doc_freep) = NULL;
	struct json_doc *report CLEANUP(json_doc_freep) = NULL;
	struct cluster *cluster = cluster_new(&(struct cluster_config){ 0 });
	struct arena arena;
	struct node_options options = { .links = NULL };
	struct node_spec spec = { .name = NULL };
	snprintf(text, sizeof(text), "{\"status\":%s}", status);
	CHECK_INT(json_parse("report", text, strlen(text), NULL, &report, err), 0);
	snprintf(text, sizeof(text), "{\"metadata\":{\"name\":\"n\"}}");
	CHECK_INT(json_parse("node", text, strlen(text), NULL, &node, err), 0);
	arena_init(&arena, 1 << 20);
	int rc = node_read(cluster, json_root(node), json_root(report), &options, &arena, &spec,
			   err);
	arena_done(&arena);
	cluster_free(cluster);
	return rc;
}

#define DEVICE "{\"id\":0,\"uuid\":\"u\""

TEST(reports_are_accepted_and_refused_alike)
{
	static const struct row rows[] = {
		{ "{}", true },
		{ "{\"devices\":[]}", true },
		{ "{\"devices\":[" DEVICE "}]}", true },
		{ "{\"devices\":[{\"id\":1,\"uuid\":\"v\"}," DEVICE "}]}", true },
		{ "{\"devices\":[{\"id\":1,\"uuid\":\"v\"}]}", false },
		{ "{\"devices\":[{\"id\":-1,\"uuid\":\"v\"}]}", false },
		{ "{\"devices\":[" DEVICE "},{\"id\":0,\"uuid\":\"v\"}]}", false },
		{ "{\"devices\":[{\"uuid\":\"v\"}]}", false },
		{ "{\"devices\":[{\"id\":0}]}", false },
		{ "{\"devices\":[{\"id\":0,\"uuid\":\"\"}]}", false },
		{ "{\"devices\":[" DEVICE ",\"memoryMiB\":2147483647,\"model\":\"A\"}]}", true },
		{ "{\"devices\":[" DEVICE ",\"memoryMiB\":2147483648}]}", false },
		{ "{\"devices\":[" DEVICE ",\"memoryMiB\":-1}]}", false },
		{ "{\"devices\":[" DEVICE ",\"health\":\"Unhealthy\",\"numaNode\":-1,"
		  "\"loadPercent\":100,\"migEnabled\":true,\"inUseBy\":[{\"uid\":\"p\"}]}]}",
		  true },
		{ "{\"devices\":[" DEVICE ",\"nvlinkPeers\":[1]},{\"id\":1,\"uuid\":\"v\"}]}",
		  true },
		{ "{\"devices\":[" DEVICE ",\"nvlinkPeers\":[0]}]}", false },
		{ "{\"devices\":[" DEVICE ",\"nvlinkPeers\":[1]}]}", false },
		{ "{\"devices\":[" DEVICE "}],\"linksGBps\":[[65535]]}", true },
		{ "{\"devices\":[" DEVICE "}],\"linksGBps\":[[65536]]}", false },
		{ "{\"devices\":[" DEVICE "}],\"linksGBps\":[[-1]]}", false },
		{ "{\"devices\":[" DEVICE "}],\"linksGBps\":[[0,1]]}", false },
		{ "{\"devices\":[" DEVICE "}],\"linksGBps\":[[0],[0]]}", false },
		{ "{\"network\":{\"bandwidthGbps\":400,\"rdmaPorts\":8,\"hcas\":[\"mlx5_0\"]},"
		  "\"storage\":{\"cuFile\":true}}",
		  true },
	};
	struct live live;
	begin(&live);
	CHECK_INT(live_call(&live, "POST", REPORTS,
			    "{\"apiVersion\":\"gpu.scheduling/v1\",\"kind\":\"GpuNodeStatus\","
			    "\"metadata\":{\"name\":\"n\"}}"),
		  201);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char body[1024];
		struct err err = ERR_INIT;
		const char *text = rows[i].text;
		snprintf(body, sizeof(body), "{\"status\":%s}", text);
		int code = live_call(&live, "PATCH", REPORTS "/n/status?dryRun=All", body);
		int rc = read_report(text, &err);
		CHECKF(code == (rows[i].good ? 200 : 422), "the server: %s: %s", text,
		       live.text.s);
		CHECKF((rc == 0) == rows[i].good, "the reader: %s: %s", text, err.text);
	}
	live_close(&live);
}

TEST_MAIN()
