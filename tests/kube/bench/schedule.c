/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_bench - loads a cluster for schedulers, and watches what they do.
 *
 *	schedule_bench nodes FROM TO		makes node-FROM ... up to TO, 8 GPUs each
 *	schedule_bench pods N SCHEDULER		makes N pods of one GPU
 *	schedule_bench delete			deletes all pods
 *	schedule_bench watch N SECONDS		until N are bound, or so long
 *	schedule_bench bare bind|lock N		binds N pods, and does nothing else
 *	schedule_bench online N RATE SCHEDULER	makes RATE pods a second; when are they bound?
 *
 * schedule.py calls it, with the kubeconfig of each part.  Results are a line of JSON. */
#include "schedule.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "bench.h"
#include "kube/cache.h"
#include "kube/kind.h"
#include "kube/object.h"

static void is_synced(void *context)
{
	*(bool *)context = true;
}

struct kube_cache *schedule_pods(struct bench *b, const char *field_selector)
{
	bool synced = false;
	struct kube_cache_options options = { .kind = &kube_kinds[KUBE_POD],
					      .namespace = "default",
					      .field_selector = field_selector,
					      .synced = is_synced,
					      .context = &synced };
	struct kube_cache *cache;
	struct err err = ERR_INIT;

	if (kube_cache_new(b->client, &options, &cache, &err) < 0)
		bench_fail("%s", err.text);
	while (!synced)
		bench_turn(b);
	return cache;
}

void schedule_wait_for_go(void)
{
	char line[16];

	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		bench_fail("nobody said go");
}

/* Nobody takes the taint away that the server gives to a node which is not ready. */
static int make_nodes(struct bench *b, unsigned from, unsigned to)
{
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;
	char path[64];

	for (unsigned i = from; i < to; i++) {
		bench_put_node(&body, i);
		bench_send(b, "POST", "/api/v1/nodes", &body);
	}
	bench_settle(b);
	strbuf_reset(&body);
	strbuf_puts(&body, "{\"spec\":{\"taints\":null}}");
	for (unsigned i = from; i < to; i++) {
		snprintf(path, sizeof(path), "/api/v1/nodes/node-%u", i);
		bench_send(b, "PATCH", path, &body);
	}
	bench_settle(b);
	return 0;
}

void schedule_put_pod(struct strbuf *out, unsigned i, const char *scheduler)
{
	strbuf_reset(out);
	strbuf_addf(out,
		    "{\"metadata\":{\"name\":\"pod-%u\",\"labels\":{\"app\":\"bench\"}},"
		    "\"spec\":{\"schedulerName\":\"%s\",\"containers\":[{\"name\":\"c\","
		    "\"image\":\"example.com/team/image:v1.2.3\",\"resources\":{\"requests\":{"
		    "\"cpu\":\"1\",\"memory\":\"4Gi\"},\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]}}",
		    i, scheduler);
}

static int make_pods(struct bench *b, unsigned count, const char *scheduler)
{
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;

	for (unsigned i = 0; i < count; i++) {
		schedule_put_pod(&body, i, scheduler);
		bench_send(b, "POST", "/api/v1/namespaces/default/pods", &body);
	}
	bench_settle(b);
	return 0;
}

static int delete_pods(struct bench *b)
{
	struct kube_cache *pods = schedule_pods(b, NULL);
	const struct kube_object *pod;
	struct strbuf paths CLEANUP(strbuf_done) = STRBUF_INIT;

	/* The cache changes while they go: first what to send. */
	for (uint32_t at = 0; (pod = kube_cache_next(pods, &at));)
		strbuf_addf(&paths, "/api/v1/namespaces/default/pods/%s?gracePeriodSeconds=0%c",
			    pod->name, '\0');
	kube_cache_free(pods);
	for (const char *path = paths.s; path < paths.s + paths.len; path += strlen(path) + 1)
		bench_send(b, "DELETE", path, NULL);
	bench_settle(b);
	return 0;
}

static int run(struct bench *b, int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (strcmp(mode, "nodes") == 0 && argc == 4)
		return make_nodes(b, bench_number(argc, argv, 2, 0),
				  bench_number(argc, argv, 3, 0));
	if (strcmp(mode, "pods") == 0 && argc == 4)
		return make_pods(b, bench_number(argc, argv, 2, 0), argv[3]);
	if (strcmp(mode, "delete") == 0)
		return delete_pods(b);
	if (strcmp(mode, "watch") == 0 && argc == 4)
		return schedule_watch(b, bench_number(argc, argv, 2, 0),
				      bench_number(argc, argv, 3, 0));
	if (strcmp(mode, "bare") == 0 && argc == 4)
		return schedule_bare(b, bench_number(argc, argv, 3, 0),
				     strcmp(argv[2], "lock") == 0);
	if (strcmp(mode, "online") == 0 && argc == 5)
		return schedule_online(b, bench_number(argc, argv, 2, 0),
				       bench_number(argc, argv, 3, 0), argv[4]);
	bench_fail("see the top of tests/kube/bench/schedule.c");
}

int main(int argc, char **argv)
{
	struct bench b;

	bench_open(&b);
	int result = run(&b, argc, argv);
	bench_close(&b);
	return result;
}
