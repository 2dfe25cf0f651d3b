/* SPDX-License-Identifier: Apache-2.0 */
/* story.h - a scenario in one file: a cluster, what happens to it, what must come of it.
 *
 *	name: a gang waits until there is room
 *	cluster:
 *	  nodes: [{machine: dgx-h100, count: 4, perLeaf: 2}]
 *	steps:
 *	- submit: [ ...Kubernetes objects... ]
 *	- delete: [small]                 # pods or workloads
 *	- fail: [{node: n-0}, {node: n-1, gpu: 3}]
 *	- recover: [{node: n-0}]
 *	- cordon: [n-2]
 *	- uncordon: [n-2]
 *	- expect:
 *	    train: {placed: 4, nodes: 4, leaves: 2, adjacent: true, spines: 1}
 *	    solo: {node: n-3, gpus: "0,1", minGbps: 900}
 *	    huge: {pending: "Insufficient free GPUs"}
 *
 * After every step all that waits is tried, and the cluster checks itself.  What may
 * be expected of a pod, or of all pods of a workload together:
 *
 *	node, leaf, spine   each pod is there
 *	gpus                the ids of each pod, "0,1"; gpuCount: how many
 *	minGbps             the slowest pair of each pod is at least so fast
 *	placed, pods        how many of them
 *	pending             how many, or that all are, with this in the message
 *	why                 what the reason of each placement has in it
 *	nodes, leaves, spines   on how many different ones
 *	adjacent            whether these leaves follow each other below one spine
 *	sameGpuAs, apartFrom    another pod, placed too: shares a card with it, or none
 *	annotations         of each pod's Binding; a value, or null: it is not there
 *
 * Options beside `steps`: preemption: false, policy: NAME, seed: N.  A key that is not
 * known is an error, and so is a file that expects nothing.
 */
#ifndef GS_SIM_STORY_H
#define GS_SIM_STORY_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct strbuf;

struct story_result {
	uint32_t checked; /* expectations that were looked at */
	uint32_t failed;
};

/* Runs the file.  Expectations that do not hold are written to `out`, one a line.  0 when
 * it could be run to its end; -EINVAL, -ENOMEM with a sentence otherwise. */
int story_run_file(const char *path, struct strbuf *out, struct story_result *ret,
		   struct err *err);
int story_run(const char *name, const char *text, size_t len, struct strbuf *out,
	      struct story_result *ret, struct err *err);

#endif
