/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"
#include "unit/httpd_stand.h"

#include "base/attr.h"
#include "wire/health.h"
#include "wire/metrics.h"

/* A role that tells of itself; its httpd is there for callers alone. */
struct role {
	struct stand stand; /* of another server, for its loop and its callers */
	struct health *health;
	struct metrics *metrics;
	struct metric *turns;
	bool ready;
	uint32_t refreshed;
	int closed;
};

static bool is_ready(void *context, struct strbuf *why)
{
	const struct role *role = context;

	if (!role->ready)
		strbuf_puts(why, "the caches are not filled");
	return role->ready;
}

static void refresh(void *context)
{
	struct role *role = context;

	role->refreshed++;
	metric_set(role->turns, METRIC_NO_LABELS, role->refreshed);
}

static void role_closed(void *context)
{
	((struct role *)context)->closed++;
}

static void role_open(struct role *role, const char *metrics_addr)
{
	struct err err = ERR_INIT;

	memset(role, 0, sizeof(*role));
	stand_open(&role->stand, &(struct httpd_options){ 0 });
	role->metrics = metrics_new();
	CHECK_INT(metrics_add(role->metrics,
			      &(struct metric_options){
				      .name = "turns", .help = "Turns.", .type = METRIC_GAUGE },
			      &role->turns, &err),
		  0);
	struct health_options options = { .loop = &role->stand.loop,
					  .addr = "127.0.0.1:0",
					  .metrics_addr = metrics_addr,
					  .metrics = role->metrics,
					  .ready = is_ready,
					  .refresh = refresh,
					  .context = role };
	if (health_new(&options, &role->health, &err) < 0)
		test_fail(__FILE__, __LINE__, "%s", err.text);
}

static void role_close(struct role *role)
{
	health_close(role->health, role_closed, role);
	stand_close(&role->stand);
	CHECK_INT(role->closed, 1);
	metrics_free(role->metrics);
}

/* What is at that port and path; the caller frees it. */
static struct caller *ask(struct role *role, int port, const char *method, const char *path,
			  int expected)
{
	struct caller *caller = caller_new_at(&role->stand, port);
	char text[256];

	snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: x\r\n\r\n", method, path);
	CHECK(caller_say(caller, text));
	int status = caller_read(caller);
	CHECKF(status == expected, "%s %s: %d", method, path, status);
	return caller;
}

static void check(struct role *role, int port, const char *path, int status, const char *body)
{
	struct caller *caller = ask(role, port, "GET", path, status);

	CHECK_STR(caller->body, body);
	caller_free(caller);
}

TEST(a_role_tells_whether_it_lives_and_works)
{
	struct role role;

	role_open(&role, NULL);
	int port = health_port(role.health);
	for (int ready = 0; ready < 2; ready++) {
		int status = ready ? 200 : 503;
		const char *body = ready ? "ok\n" : "not ready: the caches are not filled\n";
		role.ready = ready;
		check(&role, port, "/health", 200, "ok\n");
		check(&role, port, "/healthz", 200, "ok\n");
		check(&role, port, "/livez", 200, "ok\n");
		check(&role, port, "/livez?verbose", 200, "ok\n");
		check(&role, port, "/ready", status, body);
		check(&role, port, "/readyz", status, body);
	}
	check(&role, port, "/", 404, "not found\n");
	check(&role, port, "/healthz/", 404, "not found\n");
	check(&role, port, "/other", 404, "not found\n");
	role_close(&role);
}

TEST(metrics_are_fresh)
{
	static const char text[] = "# HELP turns Turns.\n# TYPE turns gauge\nturns %d\n";
	struct role role;
	char expected[128];

	role_open(&role, NULL);
	CHECK_INT(health_metrics_port(role.health), health_port(role.health));
	for (int i = 1; i <= 3; i++) {
		struct caller *caller =
			ask(&role, health_port(role.health), "GET", "/metrics", 200);
		snprintf(expected, sizeof(expected), text, i);
		CHECK_STR(caller->body, expected);
		CHECK(strstr(caller->head, "Content-Type: text/plain; version=0.0.4"));
		caller_free(caller);
	}
	role_close(&role);
}

TEST(metrics_may_have_a_port_of_their_own)
{
	struct role role;

	role_open(&role, "localhost:0");
	int port = health_port(role.health), metrics_port = health_metrics_port(role.health);
	CHECK(port != metrics_port);
	check(&role, port, "/metrics", 404, "not found\n");
	check(&role, metrics_port, "/healthz", 404, "not found\n");
	CHECK_INT(role.refreshed, 0);
	caller_free(ask(&role, metrics_port, "GET", "/metrics", 200));
	CHECK_INT(role.refreshed, 1);
	role_close(&role);
	role_open(&role, "127.0.0.1:0"); /* the same text */
	CHECK_INT(health_metrics_port(role.health), health_port(role.health));
	caller_free(ask(&role, health_port(role.health), "GET", "/metrics", 200));
	role_close(&role);
}

TEST(nothing_is_to_be_written_here)
{
	static const char *const methods[] = { "POST", "PUT", "DELETE", "OPTIONS" };
	struct role role;

	role_open(&role, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		struct caller *caller =
			ask(&role, health_port(role.health), methods[i], "/metrics", 405);
		CHECK(strstr(caller->head, "Allow: GET, HEAD\r\n"));
		caller_free(caller);
	}
	CHECK_INT(role.refreshed, 0);
	role_close(&role);
}

TEST(a_role_without_metrics_has_none)
{
	struct role role;
	struct health *health = NULL;
	struct err err = ERR_INIT;

	role_open(&role, NULL);
	struct health_options options = { .loop = &role.stand.loop,
					  .addr = "127.0.0.1:0",
					  .metrics_addr = "127.0.0.1:1" };
	CHECK_INT(health_new(&options, &health, &err), 0);
	check(&role, health_port(health), "/metrics", 404, "not found\n");
	check(&role, health_port(health), "/ready", 200, "ok\n"); /* nobody says otherwise */
	health_free(health);
	role_close(&role);
}

TEST(two_addresses_are_needed_or_none_is_taken)
{
	struct role role;
	struct health *health = NULL;
	struct err err = ERR_INIT;
	char taken[32];

	role_open(&role, NULL);
	snprintf(taken, sizeof(taken), "127.0.0.1:%d", health_port(role.health));
	struct health_options options = { .loop = &role.stand.loop,
					  .addr = "127.0.0.1:0",
					  .metrics_addr = taken,
					  .metrics = role.metrics };
	CHECK_INT(health_new(&options, &health, &err), -EADDRINUSE);
	CHECKF(strstr(err.text, taken), "%s", err.text);
	options.addr = "nowhere";
	CHECK_INT(health_new(&options, &health, &err), -EINVAL);
	CHECK(!health);
	health_free(NULL);
	role_close(&role);
}

TEST_MAIN()
