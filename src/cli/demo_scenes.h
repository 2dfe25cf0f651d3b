/* SPDX-License-Identifier: Apache-2.0 */
/* demo_scenes.h - the cluster of the demo, and what happens on it.  For demo.c alone. */
#ifndef GS_CLI_DEMO_SCENES_H
#define GS_CLI_DEMO_SCENES_H

#include <stdbool.h>
#include <stddef.h>

/* One step: what ends, what fails, what arrives; each may be missing. */
struct demo_scene {
	const char *title;
	const char *ends;  /* a workload */
	const char *fails; /* a workload: a node below it */
	bool recovers;	   /* the node that failed last is back */
	const char *manifests;
};

static const char demo_cluster[] =
	"nodes:\n"
	"- {machine: dgx-h100, count: 28, perLeaf: 4, leavesPerSpine: 4, name: dgx-%02d,"
	" networkGbps: 400}\n"
	"- {machine: dgx-h100, count: 4, domain: [spine-1, leaf-7], name: mig-%02d, mig: [6, 7],"
	" networkGbps: 400}\n";

#define LIMITS(text) "{spec: {containers: [{name: main, resources: {limits: {" text "}}}]}}"

#define JOB(name, pods, gpus)                                                                   \
	"kind: Job\n"                                                                           \
	"metadata: {name: " name ", annotations: {topology.scheduler/gpu-count: '" gpus "'}}\n" \
	"spec: {parallelism: " pods ", template: {spec: {containers: [{name: main}]}}}\n"

/* Ends with an entry without title. */
static const struct demo_scene demo_scenes[] = {
	{ .title = "Single GPUs, fractions of GPUs and MIG slices: small work stays "
		   "together",
	  .manifests =
		  "kind: Deployment\n"
		  "metadata: {name: notebook}\n"
		  "spec: {replicas: 5, template: " LIMITS(
			  "nvidia.com/gpu: 1") "}\n"
					       "---\n"
					       "kind: Deployment\n"
					       "metadata: {name: inference}\n"
					       "spec: {replicas: 7, "
					       "template: " LIMITS(
						       "elasticgpu.io/gpu-core: 40, "
						       "elasticgpu.io/gpu-memory: "
						       "20000") "}\n"
								"---\n"
								"kind: Deployment\n"
								"metadata: {name: "
								"slices}\n"
								"spec: {replicas: 9, "
								"template: " LIMITS("nvidia.com/"
										    "mig-1g.10gb:"
										    " 1") "}\n" },
	{ .title = "Two nodes of eight GPUs train together: they share a leaf switch",
	  .manifests = JOB("pair", "2", "16") },
	{ .title = "Four nodes: a complete leaf.  And a claim for four GPUs with fast "
		   "links",
	  .manifests = JOB("finetune", "4",
			   "32") "---\n"
				 "kind: GpuClaim\n"
				 "metadata: {name: fast}\n"
				 "spec: {devices: {count: 4}, topology: {mode: Required,"
				 " minBandwidthGBps: 600}}\n"
				 "---\n"
				 "kind: Pod\n"
				 "metadata: {name: claimed, annotations: "
				 "{gpu.scheduling/claim: fast}}\n"
				 "spec: {containers: [{name: main}]}\n" },
	{ .title = "Eight nodes: two adjacent leaves below one spine",
	  .manifests = JOB("pretrain", "8", "64") },
	{ .title = "Sixteen nodes do not fit now: all of them wait, and hold nothing",
	  .manifests = JOB("huge", "16", "128") },
	{ .title = "A node fails under the pretraining: one member moves, the others stay",
	  .fails = "pretrain" },
	{ .title = "The node is back and the pretraining ends: the sixteen get four "
		   "adjacent leaves",
	  .ends = "pretrain",
	  .recovers = true },
	{ .title = "Urgent work takes the place of less important work, gangs whole or "
		   "not at all",
	  .manifests = "kind: Job\n"
		       "metadata: {name: urgent, annotations: "
		       "{topology.scheduler/gpu-count: '64'}}\n"
		       "spec: {parallelism: 8, template: {spec: {priority: 1000,"
		       " containers: [{name: main}]}}}\n" },
	{ .title = NULL },
};

#endif
