/* SPDX-License-Identifier: Apache-2.0 */
/* fill.c - many nodes, and many pods that are bound to them, as a full cluster has them. */
#include "bench.h"

#include <stdio.h>

#include "base/strbuf.h"

void bench_put_node(struct strbuf *out, unsigned i)
{
	strbuf_reset(out);
	strbuf_addf(
		out,
		"{\"metadata\":{\"name\":\"node-%u\",\"labels\":{\"kubernetes.io/hostname\":"
		"\"node-%u\",\"topology.scheduler/leaf\":\"leaf-%u\",\"nvidia.com/gpu.product\":"
		"\"NVIDIA-H100-80GB-HBM3\"}},\"status\":{\"allocatable\":{\"cpu\":\"128\","
		"\"memory\":\"2000Gi\",\"pods\":\"110\",\"nvidia.com/gpu\":\"8\"},"
		"\"capacity\":{\"cpu\":\"128\",\"memory\":\"2000Gi\",\"pods\":\"110\","
		"\"nvidia.com/gpu\":\"8\"}}}",
		i, i, i / 4);
}

/* A pod as people write them: two containers, environment, probes, volumes.  `node` NULL: it
 * waits for one. */
void bench_put_pod(struct strbuf *out, const char *name, unsigned i, const char *node)
{
	strbuf_reset(out);
	strbuf_addf(out,
		    "{\"metadata\":{\"name\":\"%s-%u\",\"labels\":{\"app\":\"train\",\"team\":"
		    "\"team-%u\",\"job-name\":\"job-%u\"},\"annotations\":{\"example.com/note\":"
		    "\"what people write here does not matter to scheduling\"}},\"spec\":{"
		    "\"schedulerName\":\"nobody\",%s%s%s\"terminationGracePeriodSeconds\":0,"
		    "\"containers\":[",
		    name, i, i % 40, i / 8, node ? "\"nodeName\":\"" : "", node ? node : "",
		    node ? "\"," : "");
	for (unsigned c = 0; c < 2; c++) {
		strbuf_addf(out,
			    "%s{\"name\":\"c%u\",\"image\":\"example.com/team/image:v1.2.3\","
			    "\"command\":[\"python\",\"train.py\",\"--epochs\",\"10\"],\"env\":[",
			    c ? "," : "", c);
		for (unsigned e = 0; e < 10; e++)
			strbuf_addf(out, "%s{\"name\":\"SETTING_%u\",\"value\":\"value-%u\"}",
				    e ? "," : "", e, i);
		strbuf_puts(out,
			    "],\"resources\":{\"requests\":{\"cpu\":\"1\",\"memory\":\"4Gi\"},"
			    "\"limits\":{\"memory\":\"4Gi\"}},\"volumeMounts\":[{\"name\":\"d\","
			    "\"mountPath\":\"/data\"}],\"livenessProbe\":{\"httpGet\":{\"path\":"
			    "\"/healthz\",\"port\":8080}}}");
	}
	strbuf_puts(out, "],\"volumes\":[{\"name\":\"d\",\"emptyDir\":{}}]}}");
}

int bench_fill(struct bench *b, unsigned nodes, unsigned pods)
{
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;
	uint64_t start = bench_wall_ns();
	char node[32];

	for (unsigned i = 0; i < nodes; i++) {
		bench_put_node(&body, i);
		bench_send(b, "POST", "/api/v1/nodes", &body);
	}
	bench_settle(b);
	for (unsigned i = 0; i < pods; i++) {
		snprintf(node, sizeof(node), "node-%u", i % (nodes ? nodes : 1));
		bench_put_pod(&body, "full", i, node);
		bench_send(b, "POST", "/api/v1/namespaces/default/pods", &body);
	}
	bench_settle(b);
	printf("client_bench fill: %u nodes and %u pods created in %.1f s\n", nodes, pods,
	       (double)(bench_wall_ns() - start) / 1e9);
	fflush(stdout);
	return 0;
}
