/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, reports, pods and locks that come, change and go in any order: whatever happened before,
 * the engine has just what is there. */
#include "scheduler_bench.h"

#include "base/rng.h"
#include "scheduler/inventory.h"
#include "scheduler/lookup.h"
#include "scheduler/residents.h"

#define HOSTS  3
#define CARDS  4
#define OURS   8 /* pods with a decision */
#define OTHERS 4
#define GUESTS 2
#define STEPS  1000

/* What the server has. */
struct truth {
	bool node[HOSTS], report[HOSTS];
	bool lacks[HOSTS][CARDS]; /* the report does not have that card */
	uint8_t turn[HOSTS];	  /* the ids begin at another card */
	bool ours[OURS], others[OTHERS], guests[GUESTS];
	uint8_t seen[OTHERS]; /* card on which the agent sees it, plus 1 */
};

static struct truth truth;
static struct inventory *inventory;
static struct lookup *lookup;
static struct residents *residents;
static struct rng rng;
static uint64_t seed;

static void node_changed(void *context, const char *name, uint32_t node, uint32_t changes)
{
	(void)context, (void)node;
	residents_node(residents, name, changes);
}

static void pod_changed(void *context, enum kube_change change, const struct kube_object *before,
			struct kube_object *now, const struct json *object)
{
	uint32_t node;

	(void)context, (void)change;
	if (now)
		residents_put(residents, now, object);
	else
		residents_remove(residents, before->uid, &node);
}

static void open(void)
{
	struct err err = ERR_INIT;

	bench_open();
	struct lookup_options l = { .caches = &bench.caches, .cluster = bench.cluster };
	struct inventory_options i = { .engine = bench.engine,
				       .caches = &bench.caches,
				       .changed = node_changed };
	struct kube_cache_options pods = { .kind = &kube_kinds[KUBE_POD], .changed = pod_changed };
	CHECK(lookup_new(&l, &lookup, &err) == 0 && inventory_new(&i, &inventory, &err) == 0);
	CHECK(kube_caches_add(&bench.caches, &pods, NULL, &err) == 0);
	struct residents_options r = { .engine = bench.engine,
				       .inventory = inventory,
				       .lookup = lookup };
	CHECK(residents_new(&r, &residents, &err) == 0);
	memset(&truth, 0, sizeof(truth));
}

static void close_all(void)
{
	residents_free(residents);
	bench_close();
	inventory_free(inventory);
	lookup_free(lookup);
}

static void put_node(unsigned n)
{
	char yaml[256];

	snprintf(yaml, sizeof(yaml),
		 "metadata: {name: n%u, uid: n%u, resourceVersion: RV, labels: {x: y%u}}\n"
		 "status: {allocatable: {cpu: 64, pods: 110}}\n",
		 n, n, (unsigned)rng_below(&rng, 3));
	truth.node[n] = rng_chance(&rng, 3, 4);
	if (truth.node[n])
		bench_put(KUBE_NODE, yaml);
	else
		bench_delete(KUBE_NODE, yaml);
}

/* Pods of others are on node 0 and 1, by turns. */
static unsigned host_of_other(unsigned i)
{
	return i % 2;
}

static size_t put_users(char *text, size_t size, unsigned n, unsigned card)
{
	size_t len = 0;

	for (unsigned i = 0; i < OTHERS; i++)
		if (host_of_other(i) == n && truth.seen[i] == card + 1)
			len += (size_t)snprintf(text + len, size - len, "{uid: other%u}, ", i);
	return len;
}

static void put_report(unsigned n)
{
	char yaml[2048];
	size_t len;
	unsigned id = 0;

	truth.report[n] = rng_chance(&rng, 4, 5);
	truth.turn[n] = (uint8_t)rng_below(&rng, CARDS);
	len = (size_t)snprintf(yaml, sizeof(yaml),
			       "metadata: {name: n%u, uid: s%u, "
			       "resourceVersion: RV}\nstatus: {devices: [",
			       n, n);
	for (unsigned i = 0; i < CARDS; i++) {
		unsigned card = (i + truth.turn[n]) % CARDS;

		truth.lacks[n][card] = rng_chance(&rng, 1, 8);
		if (truth.lacks[n][card])
			continue;
		len += (size_t)snprintf(yaml + len, sizeof(yaml) - len,
					"{id: %u, uuid: G%u-%u, memoryMiB: 1000, inUseBy: [", id++,
					n, card);
		len += put_users(yaml + len, sizeof(yaml) - len, n, card);
		len += (size_t)snprintf(yaml + len, sizeof(yaml) - len, "]}, ");
	}
	snprintf(yaml + len, sizeof(yaml) - len, "]}\n");
	if (truth.report[n])
		bench_put(KUBE_GPU_NODE_STATUS, yaml);
	else
		bench_delete(KUBE_GPU_NODE_STATUS, yaml);
}

/* Each of ours has a card of its own, on node 0, 1 and 2 by turns; locks of guests are on the
 * last cards of node 2. */
static unsigned host_of_ours(unsigned i)
{
	return i % HOSTS;
}

static unsigned card_of_ours(unsigned i)
{
	return i / HOSTS % 2;
}

static void put_ours(unsigned i)
{
	static const char *const phases[] = { "Pending", "Running" };
	unsigned n = host_of_ours(i);
	char yaml[1024];

	/* The third round of them share what the first has half of. */
	snprintf(
		yaml, sizeof(yaml),
		"metadata: {name: ours%u, namespace: ml, uid: ours%u, resourceVersion: RV,"
		" annotations: {gpu.scheduling/decision: '{\"node\":\"n%u\",\"attempt\":1,"
		"\"gpus\":[{\"uuid\":\"G%u-%u\",\"coreMilli\":500,\"memoryMiB\":500}]}'}}\n"
		"spec: {nodeName: n%u, containers: [{name: c, resources: {requests: {cpu: 1}}}]}\n"
		"status: {phase: %s}\n",
		i, i, n, n, card_of_ours(i), n, phases[rng_below(&rng, 2)]);
	truth.ours[i] = rng_chance(&rng, 2, 3);
	if (truth.ours[i])
		bench_put(KUBE_POD, yaml);
	else
		bench_delete(KUBE_POD, yaml);
}

static void put_other(unsigned i)
{
	char yaml[512];

	snprintf(yaml, sizeof(yaml),
		 "metadata: {name: other%u, namespace: ml, uid: other%u, resourceVersion: RV}\n"
		 "spec: {nodeName: n%u, containers: [{name: c, resources: {requests: {cpu: 1},"
		 " limits: {nvidia.com/gpu: 1}}}]}\n",
		 i, i, host_of_other(i));
	truth.others[i] = rng_chance(&rng, 2, 3);
	if (truth.others[i])
		bench_put(KUBE_POD, yaml);
	else
		bench_delete(KUBE_POD, yaml);
}

static void put_guest(unsigned i)
{
	char uid[32], uuid[32];
	struct lock_hold hold = { .uuid = uuid, .core_milli = 1000, .mem_mib = 1000 };
	struct lock_entry entry = { .uid = uid,
				    .namespace = "ml",
				    .name = uid,
				    .version = "1",
				    .attempt = 1,
				    .holds = &hold,
				    .holds_count = 1 };

	snprintf(uid, sizeof(uid), "guest%u", i);
	snprintf(uuid, sizeof(uuid), "G2-%u", CARDS - 1 - i);
	truth.guests[i] = rng_chance(&rng, 1, 2);
	if (truth.guests[i])
		CHECK(residents_put_guest(residents, "n2", &entry) == 0);
	else
		residents_remove_guest(residents, uid);
}

static const struct pod *booked(const char *prefix, unsigned i)
{
	char uid[32];

	snprintf(uid, sizeof(uid), "%s%u", prefix, i);
	uint32_t number = cluster_pod_find(bench.cluster, uid);
	return number == POD_NONE ? NULL : cluster_pod(bench.cluster, number);
}

static bool holds_card(const struct pod *p, unsigned n, unsigned card)
{
	const struct node *node = cluster_node(bench.cluster, p->node);
	char uuid[32];

	snprintf(uuid, sizeof(uuid), "G%u-%u", n, card);
	for (uint16_t i = 0; i < p->holds_count; i++)
		if (strcmp(cluster_string(bench.cluster, node->gpus[p->holds[i].gpu].uuid),
			   uuid) == 0)
			return true;
	return false;
}

/* It is booked just if it and its node are there, with its card if that is reported. */
static void check_known(const char *prefix, unsigned i, bool there, unsigned n, unsigned card)
{
	const struct pod *p = booked(prefix, i);

	CHECKF((p != NULL) == (there && truth.node[n]), "seed %llu: %s%u",
	       (unsigned long long)seed, prefix, i);
	if (p && truth.report[n] && !truth.lacks[n][card])
		CHECKF(holds_card(p, n, card), "seed %llu: %s%u lacks card %u of %u",
		       (unsigned long long)seed, prefix, i, card, n);
}

static void check_others(void)
{
	for (unsigned i = 0; i < OTHERS; i++) {
		const struct pod *p = booked("other", i);

		CHECKF((p != NULL) == (truth.others[i] && truth.node[host_of_other(i)]),
		       "seed %llu: other%u", (unsigned long long)seed, i);
		CHECK(!p || p->holds_count <= 1);
	}
}

static void check(void)
{
	int64_t cpus[HOSTS] = { 0 };

	for (unsigned i = 0; i < OURS; i++) {
		check_known("ours", i, truth.ours[i], host_of_ours(i), card_of_ours(i));
		cpus[host_of_ours(i)] += truth.ours[i];
	}
	for (unsigned i = 0; i < GUESTS; i++)
		check_known("guest", i, truth.guests[i], 2, CARDS - 1 - i);
	check_others();
	for (unsigned i = 0; i < OTHERS; i++)
		cpus[host_of_other(i)] += truth.others[i];
	for (unsigned n = 0; n < HOSTS; n++) {
		char name[8];

		snprintf(name, sizeof(name), "n%u", n);
		uint32_t number = cluster_node_find(bench.cluster, name);
		CHECK((number != NODE_NONE) == truth.node[n]);
		if (number != NODE_NONE)
			CHECK_INT(cluster_node(bench.cluster, number)->free.cpu_milli,
				  64000 - 1000 * cpus[n]);
	}
	const char *wrong = cluster_check(bench.cluster);
	CHECKF(!wrong, "seed %llu: %s", (unsigned long long)seed, wrong);
}

static void step(void)
{
	unsigned other = (unsigned)rng_below(&rng, OTHERS);

	switch (rng_below(&rng, 6)) {
	case 0:
		put_node((unsigned)rng_below(&rng, HOSTS));
		break;
	case 1:
		put_report((unsigned)rng_below(&rng, HOSTS));
		break;
	case 2:
		put_ours((unsigned)rng_below(&rng, OURS));
		break;
	case 3:
		put_other(other);
		break;
	case 4:
		put_guest((unsigned)rng_below(&rng, GUESTS));
		break;
	default:
		truth.seen[other] = (uint8_t)rng_below(&rng, CARDS + 1);
		put_report(host_of_other(other));
		break;
	}
}

TEST(whatever_happened_the_engine_has_what_is_there)
{
	for (seed = 1; seed <= 4; seed++) {
		rng_seed(&rng, seed);
		open();
		for (unsigned i = 0; i < STEPS; i++) {
			step();
			check();
		}
		close_all();
	}
}

TEST_MAIN()
