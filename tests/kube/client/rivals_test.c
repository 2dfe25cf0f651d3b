/* SPDX-License-Identifier: Apache-2.0 */
/* Schedulers that race for the same GPUs on a real API server, die and come back.
 *
 * What they did is checked from etcd's history when this has ended: no card locked twice at
 * any version, no pod bound without its lock, nothing released before it was fenced.
 *
 * cluster: --nodes 0 --history
 */
#include "faults.h"
#include "rival.h"

#include "test.h"

#include "base/attr.h"
#include "base/clock.h"
#include "kube/cache.h"
#include "wire/json.h"

#include <stdlib.h>

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler-locks/leases"

struct race {
	struct live admin;
	struct rival rivals[2];
	unsigned pods;
	uint64_t until_ms;
};

static unsigned rounds(void)
{
	const char *text = getenv("LOCKS_ROUNDS");
	return text ? (unsigned)strtoul(text, NULL, 10) : 150;
}

static void pod_path(char *path, size_t size, const char *name)
{
	snprintf(path, size, "/api/v1/namespaces/default/pods%s%s", name ? "/" : "",
		 name ? name : "");
}

static void make_pod(struct race *race)
{
	char path[128], body[512];
	pod_path(path, sizeof(path), NULL);
	snprintf(body, sizeof(body),
		 "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"race-%u\"},"
		 "\"spec\":{\"schedulerName\":\"none\",\"terminationGracePeriodSeconds\":0,"
		 "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}",
		 race->pods++);
	CHECK_INT(live_call(&race->admin, "POST", path, body), 201);
}

static void delete_pod(struct race *race, const char *name)
{
	char path[128];
	pod_path(path, sizeof(path), name);
	live_call(&race->admin, "DELETE", path, "{\"gracePeriodSeconds\":0}");
}

/* An administrator who tidies up: what holds something must not go. */
static void delete_lease(struct race *race)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	char path[160];
	CHECK_INT(live_call(&race->admin, "GET", LEASES, NULL), 200);
	CHECK_INT(json_parse("leases", race->admin.text.s, race->admin.text.len, NULL, &doc, NULL),
		  0);
	struct json_iter items = json_items(json_root(doc), "items");
	for (const struct json *lease; (lease = json_next(&items));) {
		const char *name = json_str(lease, "metadata", "name");
		snprintf(path, sizeof(path), LEASES "/%s", name);
		if (strncmp(name, "gpu", 3) == 0 && rand() % 10 == 0)
			live_call(&race->admin, "DELETE", path, NULL);
	}
}

/* Deletes bound pods, and some that wait, and makes as many anew. */
static void churn(struct race *race, bool all)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	char path[128];
	unsigned left = 0;
	pod_path(path, sizeof(path), NULL);
	CHECK_INT(live_call(&race->admin, "GET", path, NULL), 200);
	CHECK_INT(json_parse("pods", race->admin.text.s, race->admin.text.len, NULL, &doc, NULL),
		  0);
	struct json_iter items = json_items(json_root(doc), "items");
	for (const struct json *pod; (pod = json_next(&items));) {
		bool bound = json_str(pod, "spec", "nodeName") != NULL;
		if (all || (bound ? rand() % 2 : rand() % 12) == 0)
			delete_pod(race, json_str(pod, "metadata", "name"));
		else
			left += !bound;
	}
	while (!all && left++ < RIVAL_PODS)
		make_pod(race);
	delete_lease(race);
}

static bool is_ready(void *context)
{
	return ((struct rival *)context)->ready;
}

static void race_open(struct race *race, const char *kubeconfig, enum lock_mode mode)
{
	*race = (struct race){ 0 };
	live_open(&race->admin, NULL);
	live_call(&race->admin, "POST", "/api/v1/namespaces",
		  "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\","
		  "\"metadata\":{\"name\":\"gpu-scheduler-locks\"}}");
	race->pods = (unsigned)mode * 10000 + (kubeconfig ? 5000 : 0);
	churn(race, false);
	for (unsigned i = 0; i < 2; i++) {
		rival_open(&race->rivals[i], &race->admin, i ? kubeconfig : NULL, mode, i + 1);
		live_until(&race->admin, is_ready, &race->rivals[i], "the locks to be ready");
	}
}

static unsigned wins(const struct race *race)
{
	return race->rivals[0].wins + race->rivals[1].wins;
}

static bool is_over(void *context)
{
	struct race *race = context;
	for (unsigned i = 0; i < 2; i++)
		rival_go(&race->rivals[i]);
	return clock_monotonic_ms(&clock_system) >= race->until_ms;
}

/* Lets them race until so many more locks were taken; the cards become free by churn(). */
static void run(struct race *race, unsigned more)
{
	unsigned goal = wins(race) + more;
	while (wins(race) < goal) {
		race->until_ms = clock_monotonic_ms(&clock_system) + 100;
		live_until(&race->admin, is_over, race, "time to pass");
		churn(race, false);
	}
}

static bool is_idle(void *context)
{
	struct race *race = context;
	return rival_is_idle(&race->rivals[0]) && rival_is_idle(&race->rivals[1]);
}

/* No Lease of a node or a card is there any more. */
static bool is_bare(void *context)
{
	struct live *live = context;
	CHECK_INT(live_call(live, "GET", LEASES, NULL), 200);
	return !strstr(live->text.s, "\"name\":\"gpu");
}

static void race_close(struct race *race)
{
	unsigned binds = race->rivals[0].binds + race->rivals[1].binds;
	unsigned gangs = race->rivals[0].gang_binds + race->rivals[1].gang_binds;
	race->rivals[0].paused = race->rivals[1].paused = true;
	churn(race, true);
	live_until(&race->admin, is_idle, race, "what is given up to go");
	churn(race, true);
	live_until(&race->admin, is_bare, &race->admin, "the last Lease to go");
	for (unsigned i = 0; i < 2; i++) {
		CHECK(race->rivals[i].wins > 0 && !race->rivals[i].wrong);
		rival_close(&race->rivals[i]);
	}
	printf("# %u pods were bound, %u of them of gangs\n", binds, gangs);
	CHECK(binds > 0 && (gangs > 0 || binds < 50));
	live_close(&race->admin);
}

TEST(two_schedulers_never_lock_a_card_twice)
{
	struct race race;
	race_open(&race, NULL, LOCKS_BY_NODE);
	run(&race, rounds());
	race_close(&race);
}

TEST(what_a_killed_scheduler_leaves_is_cleared)
{
	struct race race;
	race_open(&race, NULL, LOCKS_BY_NODE);
	for (unsigned i = 0; i < 3; i++) {
		run(&race, 10);
		unsigned won = race.rivals[1].wins, binds = race.rivals[1].binds;
		rival_close(&race.rivals[1]);
		rival_open(&race.rivals[1], &race.admin, NULL, LOCKS_BY_NODE, 100 + i);
		live_until(&race.admin, is_ready, &race.rivals[1], "the locks to be ready");
		race.rivals[1].wins = won;
		race.rivals[1].binds = binds;
	}
	race_close(&race);
}

static void race_through_faults(enum lock_mode mode)
{
	struct faults faults;
	struct race race;
	faults_start(&faults, "on method=PUT,POST resource=leases p=0.1 cut after-write\n"
			      "on method=PUT,POST resource=leases p=0.1 cut before-write\n"
			      "on method=PATCH p=0.15 cut after-write\n"
			      "on resource=pods/binding p=0.15 cut after-write\n"
			      "on resource=pods/binding p=0.1 cut before-write\n"
			      "on method=GET p=0.05 answer=500\n"
			      "on method=PUT p=0.05 answer=429 retry-after=1\n"
			      "on verb=watch p=0.05 cut mid-event\n");
	race_open(&race, faults.kubeconfig, mode);
	run(&race, rounds());
	faults_toggle(&faults);
	race_close(&race);
	CHECK(faults_end(&faults) > 0);
}

TEST(lost_answers_and_refusals_do_not_lock_twice)
{
	race_through_faults(LOCKS_BY_NODE);
}

TEST(with_a_lease_for_each_card_it_is_the_same)
{
	struct race race;
	race_open(&race, NULL, LOCKS_BY_GPU);
	run(&race, rounds());
	race_close(&race);
}

TEST(lost_answers_do_not_lock_twice_with_a_lease_for_each_card)
{
	race_through_faults(LOCKS_BY_GPU);
}

TEST_MAIN()
