/* SPDX-License-Identifier: Apache-2.0 */
/* Electors whose requests are late, lost, or done without an answer, and who are stopped
 * for a while themselves: never do two of them lead, and mostly one does. */
#include "wire/json_write.h"

#include "kube_election.h"

#include "base/rng.h"

#define ELECTORS 3
#define STEP_MS	 50
#define RUN_MS	 600000

/* A request on its way to the server, and back. */
struct post {
	bool busy, sent, applied;
	enum campaign_want want;
	enum kube_reason reason;
	struct strbuf body, lease; /* as sent, as answered */
	uint64_t arrives_ms, answered_ms, gives_up_ms;
};

struct world {
	struct rng rng;
	struct lease_server server;
	struct elector electors[ELECTORS];
	struct post posts[ELECTORS][4]; /* also those that their sender has given up */
	uint64_t asleep_until_ms[ELECTORS];
	unsigned faults_of_8;
	uint64_t led_ms;
};

static uint64_t delay_ms(struct world *world)
{
	return rng_chance(&world->rng, world->faults_of_8, 8) ? rng_below(&world->rng, 30000)
							      : rng_below(&world->rng, 200);
}

static void arrive(struct world *world, struct post *post)
{
	post->applied = true;
	post->reason = lease_apply(&world->server, post->want, post->body.s);
	strbuf_reset(&post->lease);
	strbuf_puts(&post->lease, world->server.lease.s);
}

static void answer(struct world *world, size_t i, struct post *post, uint64_t now_ms)
{
	struct lease_server shown = { .lease = post->lease };
	bool in_time = post->applied && post->answered_ms <= now_ms;
	enum kube_reason lost = post->want == CAMPAIGN_GET ? KUBE_SERVER_ERROR : KUBE_UNKNOWN;
	elector_answer(&world->electors[i], now_ms, &shown, in_time ? post->reason : lost);
}

/* What the one on its way has become; 0: it is still there. */
static bool is_on_its_way(struct world *world, size_t i, uint64_t now_ms)
{
	struct post *post = &world->posts[i][0];
	if (!post->busy)
		return false;
	if (now_ms < post->gives_up_ms && (!post->applied || now_ms < post->answered_ms))
		return true;
	answer(world, i, post, now_ms);
	post->busy = false;
	return false;
}

static void send(struct world *world, size_t i, uint64_t now_ms)
{
	struct elector *elector = &world->electors[i];
	struct post last = world->posts[i][3];
	/* What was given up may still arrive: it moves to the back. */
	memmove(&world->posts[i][1], &world->posts[i][0], 3 * sizeof(last));
	world->posts[i][0] = last;
	struct post *post = &world->posts[i][0];
	post->busy = post->sent = true;
	post->applied = false;
	post->want = elector->asked.want;
	strbuf_reset(&post->body);
	strbuf_puts(&post->body, elector->asked.body ? elector->asked.body : "");
	post->arrives_ms = now_ms + delay_ms(world);
	post->answered_ms = post->arrives_ms + delay_ms(world);
	post->gives_up_ms = now_ms + elector->asked.deadline_ms;
}

static void act(struct world *world, size_t i, uint64_t now_ms)
{
	if (now_ms < world->asleep_until_ms[i])
		return;
	if (rng_chance(&world->rng, world->faults_of_8, 8 * 2000)) {
		world->asleep_until_ms[i] = now_ms + rng_below(&world->rng, 40000);
		return;
	}
	if (is_on_its_way(world, i, now_ms))
		return;
	enum campaign_want want = elector_next(&world->electors[i], now_ms);
	if (want != CAMPAIGN_WAIT && want != CAMPAIGN_CLOSED)
		send(world, i, now_ms);
}

static void step(struct world *world, uint64_t now_ms, uint64_t seed)
{
	unsigned leaders = 0;
	for (size_t i = 0; i < ELECTORS; i++)
		for (size_t k = 0; k < 4; k++) {
			struct post *post = &world->posts[i][k];
			if (post->sent && !post->applied && now_ms >= post->arrives_ms)
				arrive(world, post);
		}
	for (size_t i = 0; i < ELECTORS; i++) {
		act(world, i, now_ms);
		leaders += campaign_leads(&world->electors[i].campaign, now_ms);
	}
	CHECKF(leaders <= 1, "seed %" PRIu64 " at %" PRIu64 " ms", seed, now_ms);
	world->led_ms += leaders * STEP_MS;
}

/* For how long someone led. */
static uint64_t run(uint64_t seed, unsigned faults_of_8)
{
	static const char *const names[ELECTORS] = { "a", "b", "c" };
	struct world world = { .faults_of_8 = faults_of_8 };
	rng_seed(&world.rng, seed);
	lease_server_init(&world.server);
	for (size_t i = 0; i < ELECTORS; i++) {
		elector_init(&world.electors[i], names[i], seed + i);
		for (size_t k = 0; k < 4; k++)
			world.posts[i][k] =
				(struct post){ .body = STRBUF_INIT, .lease = STRBUF_INIT };
	}
	for (uint64_t now_ms = 0; now_ms < RUN_MS; now_ms += STEP_MS)
		step(&world, now_ms, seed);
	for (size_t i = 0; i < ELECTORS; i++) {
		elector_done(&world.electors[i]);
		for (size_t k = 0; k < 4; k++) {
			strbuf_done(&world.posts[i][k].body);
			strbuf_done(&world.posts[i][k].lease);
		}
	}
	lease_server_done(&world.server);
	return world.led_ms;
}

TEST(two_never_lead_however_requests_and_processes_are_delayed)
{
	uint64_t led_ms = 0;
	for (uint64_t seed = 0; seed < 24; seed++)
		led_ms += run(seed, 1 + seed % 4);
	CHECK(led_ms > 24 * RUN_MS / 4);
}

TEST(in_quiet_times_somebody_always_leads)
{
	for (uint64_t seed = 0; seed < 4; seed++)
		CHECK(run(seed, 0) > RUN_MS - 2000);
}

TEST_MAIN()
