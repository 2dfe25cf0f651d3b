/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - following everything: what an object costs to read and to keep. */
#include "bench.h"

#include <malloc.h>
#include <stdio.h>

#include "base/err.h"
#include "kube/cache.h"
#include "kube/kind.h"

#define BYTES_TARGET (150.0 * 1048576)
#define POD_TARGET   1024.0

struct following {
	struct kube_cache *cache;
	bool synced;
};

static void is_synced(void *context)
{
	((struct following *)context)->synced = true;
}

static void follow(struct bench *b, struct following *f, enum kube_kind_id kind)
{
	struct kube_cache_options options = { .kind = &kube_kinds[kind],
					      .synced = is_synced,
					      .context = f };
	struct err err = ERR_INIT;

	if (kube_cache_new(b->client, &options, &f->cache, &err) < 0)
		bench_fail("%s", err.text);
	while (!f->synced)
		bench_turn(b);
}

int bench_cache(struct bench *b)
{
	struct following nodes = { 0 }, pods = { 0 };
	struct kube_cache_status status;
	uint64_t cpu;
	double rate, each, resident;

	follow(b, &nodes, KUBE_NODE);
	cpu = bench_cpu_ns();
	follow(b, &pods, KUBE_POD);
	cpu = bench_cpu_ns() - cpu;
	kube_cache_status(pods.cache, &status);
	rate = (double)status.count / ((double)cpu / 1e9);
	each = status.count ? (double)status.bytes / status.count : 0;
	resident = (double)bench_resident_bytes();
	/* The server sends them one by one, and waking up costs more than reading: how fast
	 * events are read when they are there is the business of kube_watch_bench. */
	printf("client_bench cache: %u pods from the server, %.0f events a CPU second\n",
	       status.count, rate);
	printf("client_bench cache: %.0f bytes a pod (target below %.0f); %.1f MiB resident with "
	       "%u "
	       "nodes (target below %.0f)\n",
	       each, POD_TARGET, resident / 1048576, kube_cache_count(nodes.cache),
	       BYTES_TARGET / 1048576);
	fflush(stdout);
	kube_cache_free(pods.cache);
	kube_cache_free(nodes.cache);
	return each >= POD_TARGET || resident >= BYTES_TARGET;
}
