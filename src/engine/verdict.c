/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.c - the words for each refusal.
 *
 * What kube-scheduler has words for keeps them, to the letter: people search for them.
 */
#include "engine/verdict.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "engine/pick.h"
#include "engine/request.h"

struct words {
	const char *name;
	const char *text;
	bool curable;
};

static const struct words table[VERDICT_COUNT] = {
	[FITS] = { "fits", "node(s) fit", false },
	[NODE_GONE] = { "node-gone", "node(s) were removed", false },
	[UNSCHEDULABLE] = { "unschedulable", "node(s) were unschedulable", false },
	[WRONG_NODE] = { "wrong-node", "node(s) didn't match the requested node name", false },
	[WRONG_LABELS] = { "wrong-labels", "node(s) didn't match Pod's node affinity/selector",
			   false },
	[WRONG_VOLUME_NODE] = { "wrong-volume-node",
				"node(s) didn't match PersistentVolume's node affinity", false },
	[WRONG_VOLUME_ZONE] = { "wrong-volume-zone", "node(s) had no available volume zone",
				false },
	[NO_VOLUME] = { "no-volume", "node(s) didn't find available persistent volumes to bind",
			false },
	[NO_VOLUME_ROOM] = { "no-volume-room", "node(s) did not have enough free storage", false },
	[NO_SPREAD_LABEL] = { "no-spread-label",
			      "node(s) didn't match pod topology spread constraints "
			      "(missing required label)",
			      false },
	[NOT_NEAR] = { "not-near", "node(s) didn't match pod affinity rules", false },
	[NO_PORT] = { "no-port", "node(s) didn't have free ports for the requested pod ports",
		      true },
	[DISK_IN_USE] = { "disk-in-use", "node(s) had no available disk", true },
	[CLAIM_IN_USE] = { "claim-in-use",
			   "node(s) unavailable due to PersistentVolumeClaim with "
			   "ReadWriteOncePod "
			   "access mode already in-use by another pod",
			   true },
	[TOO_MANY_VOLUMES] = { "too-many-volumes", "node(s) exceed max volume count", true },
	[UNEVEN] = { "uneven", "node(s) didn't match pod topology spread constraints", true },
	[NOT_APART] = { "not-apart", "node(s) didn't match pod anti-affinity rules", true },
	[KEPT_AWAY] = { "kept-away", "node(s) didn't satisfy existing pods anti-affinity rules",
			true },
	[TAINTED] = { "tainted", "node(s) had untolerated taint(s)", false },
	[TOO_MANY_PODS] = { "too-many-pods", "Too many pods", true },
	[NO_CPU] = { "no-cpu", "Insufficient cpu", true },
	[NO_MEMORY] = { "no-memory", "Insufficient memory", true },
	[NO_EPHEMERAL] = { "no-ephemeral", "Insufficient ephemeral-storage", true },
	[NO_EXTENDED] = { "no-extended", "Insufficient extended resource", true },
	[NO_GPU] = { "no-gpu", "node(s) had too few GPUs", false },
	[WRONG_MODEL] = { "wrong-model", "node(s) had too few GPUs of the requested model",
			  false },
	/* The cards that are well may be busy: without their pods it could fit. */
	[UNHEALTHY_GPU] = { "unhealthy-gpu", "node(s) had unhealthy GPUs", true },
	[NO_FREE_GPU] = { "no-free-gpu", "Insufficient free GPUs", true },
	[NO_GPU_CORE] = { "no-gpu-core", "Insufficient GPU core", true },
	[NO_GPU_MEMORY] = { "no-gpu-memory", "Insufficient GPU memory", true },
	[NO_SHARED_SEAT] = { "no-shared-seat", "Too many pods on shared GPUs", true },
	[NO_BANDWIDTH] = { "no-bandwidth", "Insufficient NVLink bandwidth", true },
	[NO_SUCH_GPU] = { "no-such-gpu", "node(s) didn't have the requested GPU ids", false },
	[PINNED_GPU_BUSY] = { "pinned-gpu-busy", "requested GPU ids were in use", true },
	[NO_MIG_PROFILE] = { "no-mig-profile", "node(s) didn't support the MIG profile", false },
	[NO_MIG_SLICE] = { "no-mig-slice", "Insufficient MIG slices", true },
	[NO_NETWORK] = { "no-network",
			 "network bandwidth unknown or too low "
			 "(label topology.scheduler/network-bandwidth)",
			 false },
	[NO_RDMA] = { "no-rdma",
		      "too few RDMA ports, or not reported (label gpu.scheduling/rdma-ports)",
		      false },
	[NO_CUFILE] = { "no-cufile",
			"node(s) had no GPUDirect Storage, or not reported "
			"(label gpu.scheduling/cufile)",
			false },
	[NO_LOCK] = { "no-lock",
		      "node(s) had locks that are full, cannot be read or are of GPUs whose index "
		      "changed",
		      false },
	[WRONG_DOMAIN] = { "wrong-domain", "node(s) were outside the required domain", false },
};

static const struct words *words_of(enum verdict v)
{
	assert((unsigned)v < VERDICT_COUNT);
	return &table[v];
}

bool verdict_curable(enum verdict v)
{
	return words_of(v)->curable;
}

const char *verdict_name(enum verdict v)
{
	return words_of(v)->name;
}

/* The fastest link that some ask insists on, or 0. */
static unsigned required_gbps(const struct request *r)
{
	unsigned gbps = 0;

	for (unsigned i = 0; i < r->asks_count; i++)
		if (r->asks[i].bandwidth_mode == PICK_REQUIRED)
			gbps = MAX(gbps, r->asks[i].min_gbps);
	return gbps;
}

/* The profile, if all slices asked for are of one; else NULL. */
static const char *only_profile(const struct request *r)
{
	const struct ask *mig = NULL;

	for (unsigned i = 0; i < r->asks_count; i++) {
		const struct ask *ask = &r->asks[i];

		if (ask->kind != ASK_MIG)
			continue;
		if (mig && strncmp(mig->mig_profile, ask->mig_profile, sizeof(ask->mig_profile)))
			return NULL;
		mig = ask;
	}
	return mig && mig->mig_profile[0] ? mig->mig_profile : NULL;
}

/* False where the request adds nothing to the plain text. */
static bool text_with_figure(enum verdict v, const struct request *r, char *buf, size_t size)
{
	const char *profile = only_profile(r);
	unsigned gbps = required_gbps(r);
	int width = (int)sizeof(r->asks[0].mig_profile);

	if (v == NO_BANDWIDTH && gbps)
		snprintf(buf, size, "NVLink bandwidth below %u GB/s", gbps);
	else if (v == NO_NETWORK && r->min_network_gbps)
		snprintf(buf, size,
			 "network bandwidth unknown or below %u Gbit/s "
			 "(label topology.scheduler/network-bandwidth)",
			 (unsigned)r->min_network_gbps);
	else if (v == NO_RDMA && r->min_rdma_ports)
		snprintf(buf, size,
			 "fewer than %u RDMA port(s), or not reported "
			 "(label gpu.scheduling/rdma-ports)",
			 (unsigned)r->min_rdma_ports);
	else if (v == NO_MIG_PROFILE && profile)
		snprintf(buf, size, "node(s) didn't support MIG profile %.*s", width, profile);
	else if (v == NO_MIG_SLICE && profile)
		snprintf(buf, size, "Insufficient MIG slices of %.*s", width, profile);
	else
		return false;
	return true;
}

void verdict_text(enum verdict v, const struct request *r, char *buf, size_t size)
{
	if (!r || !text_with_figure(v, r, buf, size))
		snprintf(buf, size, "%s", words_of(v)->text);
}
