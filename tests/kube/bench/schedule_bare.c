/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_bare.c - the writes of a scheduler without the scheduler: for each pod a Binding, or
 * a PUT of a Lease and then a Binding, 64 pods at a time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bare.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "bench.h"
#include "kube/cache.h"
#include "kube/object.h"
#include "schedule.h"

#define LEASES	     "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler-locks/leases"
#define LEASES_COUNT 1000
#define ENTRIES_MAX  8 /* of a Lease: as many as a node has GPUs */
#define UUID	     "GPU-8f6c0a1e-1b2c-4d5e-8f90-%012u"

struct target {
	char name[32], uid[64], version[32];
};

struct lease {
	char version[32];
	unsigned pods[ENTRIES_MAX];
	unsigned count;
};

struct flow {
	struct bare *bare;
	VEC(struct target) pods;
	struct lease leases[LEASES_COUNT];
	unsigned next, end;
	unsigned pod_of[BARE_SLOTS]; /* that the slot is at; or the Lease, while they are made */
	bool locked[BARE_SLOTS];
	bool locks;
};

static void read_pods(struct bench *b, struct flow *f, unsigned count)
{
	struct kube_cache *pods = schedule_pods(b, "spec.nodeName=");
	const struct kube_object *pod;

	for (uint32_t at = 0; f->pods.len < count && (pod = kube_cache_next(pods, &at));) {
		struct target t = { 0 };

		snprintf(t.name, sizeof(t.name), "%s", pod->name);
		snprintf(t.uid, sizeof(t.uid), "%s", pod->uid);
		snprintf(t.version, sizeof(t.version), "%s", pod->version);
		if (vec_push(&f->pods, t) < 0)
			bench_fail("out of memory");
	}
	kube_cache_free(pods);
	if (f->pods.len < count)
		bench_fail("only %zu pods wait", f->pods.len);
}

/* Leases */

static void remember_version(struct lease *lease, const char *answer)
{
	const char *at = strstr(answer, "\"resourceVersion\":\"");
	size_t len = at ? strcspn(at + 19, "\"") : 0;

	if (len == 0 || len >= sizeof(lease->version))
		bench_fail("a Lease without version: %.200s", answer);
	memcpy(lease->version, at + 19, len);
	lease->version[len] = '\0';
}

static void put_entries(const struct flow *f, const struct lease *lease, struct strbuf *out)
{
	strbuf_putc(out, '[');
	for (unsigned i = 0; i < lease->count; i++) {
		const struct target *t = &f->pods.items[lease->pods[i]];

		strbuf_addf(out,
			    "%s{\"pod\":\"%s\",\"ns\":\"default\",\"name\":\"%s\",\"rv\":\"%s\","
			    "\"attempt\":2718281828,\"gpus\":[{\"uuid\":\"" UUID
			    "\",\"coreMilli\":1000,\"memoryMiB\":81559}]}",
			    i ? "," : "", t->uid, t->name, t->version, lease->pods[i]);
	}
	strbuf_putc(out, ']');
}

static void send_lease(struct flow *f, unsigned slot, const char *method, unsigned number)
{
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf entries CLEANUP(strbuf_done) = STRBUF_INIT;
	const struct lease *lease = &f->leases[number];
	char path[128];

	snprintf(path, sizeof(path), strcmp(method, "POST") == 0 ? LEASES : LEASES "/bench-%u",
		 number);
	put_entries(f, lease, &entries);
	strbuf_addf(&body,
		    "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"
		    "\"name\":\"bench-%u\",\"namespace\":\"gpu-scheduler-locks\","
		    "\"resourceVersion\":\"%s\",\"annotations\":{\"gpu.scheduling/entries\":",
		    number, lease->version);
	strbuf_add_json(&body, entries.s, entries.len);
	strbuf_puts(&body, "}}}");
	bare_send(f->bare, slot, method, path, body.s);
}

static void lease_made(void *context, unsigned slot, long code, const char *answer)
{
	struct flow *f = context;

	if (code != 201)
		bench_fail("POST of a Lease: %ld %.200s", code, answer);
	remember_version(&f->leases[f->pod_of[slot]], answer);
	if (f->next >= f->end)
		return;
	f->pod_of[slot] = f->next++;
	send_lease(f, slot, "POST", f->pod_of[slot]);
}

static void make_leases(struct bench *b, struct flow *f)
{
	f->bare = bare_new(b->config, lease_made, f);
	f->next = 0;
	f->end = LEASES_COUNT;
	for (unsigned slot = 0; slot < BARE_SLOTS; slot++) {
		f->pod_of[slot] = f->next++;
		send_lease(f, slot, "POST", f->pod_of[slot]);
	}
	bare_run(f->bare);
	bare_free(f->bare);
}

static void delete_leases(struct bench *b)
{
	char path[128];

	for (unsigned i = 0; i < LEASES_COUNT; i++) {
		snprintf(path, sizeof(path), LEASES "/bench-%u", i);
		bench_send(b, "DELETE", path, NULL);
	}
	bench_settle(b);
}

/* Pods */

static void send_binding(struct flow *f, unsigned slot)
{
	const struct target *t = &f->pods.items[f->pod_of[slot]];
	unsigned node = f->pod_of[slot] % LEASES_COUNT;
	char path[128], body[1024];

	snprintf(path, sizeof(path), "/api/v1/namespaces/default/pods/%s/binding", t->name);
	snprintf(body, sizeof(body),
		 "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"%s\","
		 "\"uid\":\"%s\",\"resourceVersion\":\"%s\",\"annotations\":{"
		 "\"gpu.scheduling/allocated\":\"node-%u:0\",\"gpu.scheduling/decision\":"
		 "\"{\\\"node\\\":\\\"node-%u\\\",\\\"attempt\\\":2718281828,\\\"gpus\\\":[{"
		 "\\\"id\\\":0,\\\"uuid\\\":\\\"" UUID "\\\",\\\"coreMilli\\\":1000,"
		 "\\\"memoryMiB\\\":81559}]}\"}},\"target\":{\"kind\":\"Node\",\"name\":\"node-%"
		 "u\"}}",
		 t->name, t->uid, t->version, node, node, f->pod_of[slot], node);
	f->locked[slot] = true;
	bare_send(f->bare, slot, "POST", path, body);
}

static void start_pod(struct flow *f, unsigned slot)
{
	unsigned pod = f->next++;
	struct lease *lease = &f->leases[pod % LEASES_COUNT];

	f->pod_of[slot] = pod;
	f->locked[slot] = false;
	if (!f->locks) {
		send_binding(f, slot);
		return;
	}
	lease->pods[lease->count++ % ENTRIES_MAX] = pod;
	if (lease->count > ENTRIES_MAX)
		bench_fail("more pods than GPUs");
	send_lease(f, slot, "PUT", pod % LEASES_COUNT);
}

static void pod_ended(void *context, unsigned slot, long code, const char *answer)
{
	struct flow *f = context;

	if (code != (f->locked[slot] ? 201 : 200))
		bench_fail("the bare client got %ld: %.200s", code, answer);
	if (!f->locked[slot]) {
		remember_version(&f->leases[f->pod_of[slot] % LEASES_COUNT], answer);
		send_binding(f, slot);
	} else if (f->next < f->end) {
		start_pod(f, slot);
	}
}

int schedule_bare(struct bench *b, unsigned pods, bool locks)
{
	struct flow *f = calloc(1, sizeof(*f));
	uint64_t cpu_ns;

	if (!f)
		bench_fail("out of memory");
	f->locks = locks;
	read_pods(b, f, pods);
	if (locks)
		make_leases(b, f);
	f->bare = bare_new(b->config, pod_ended, f);
	f->next = 0;
	f->end = pods;
	schedule_wait_for_go();
	cpu_ns = bench_cpu_ns();
	for (unsigned slot = 0; slot < BARE_SLOTS && f->next < f->end; slot++)
		start_pod(f, slot);
	bare_run(f->bare);
	printf("{\"cpu_ms\": %.4f}\n", (double)(bench_cpu_ns() - cpu_ns) / 1e6 / pods);
	bare_free(f->bare);
	if (locks)
		delete_leases(b);
	vec_done(&f->pods);
	free(f);
	return 0;
}
