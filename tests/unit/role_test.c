/* SPDX-License-Identifier: Apache-2.0 */
/* What commands that stay have alike, as far as it needs no cluster. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "cli/commands.h"
#include "cli/role.h"
#include "test.h"

static struct role new_role(void)
{
	unsetenv("LOG_LEVEL");
	return (struct role){ .command = "test" };
}

static void on_signal(uv_signal_t *handle, int number)
{
	int *told = handle->data;

	*told = number;
	uv_stop(handle->loop);
}

static void on_late(uv_timer_t *timer)
{
	uv_stop(timer->loop);
}

static bool is_ready(void *context, struct strbuf *why)
{
	(void)context;
	(void)why;
	return true;
}

TEST(what_was_not_begun_is_not_ended)
{
	struct role role = new_role();
	struct err err = ERR_INIT;

	CHECK_INT(role_begin(&role, &err), 0);
	role_close(&role);
	CHECK_INT(uv_run(&role.loop, UV_RUN_DEFAULT), 0);
	role_done(&role);
}

TEST(a_signal_is_told_and_keeps_no_loop_from_ending)
{
	struct role role = new_role();
	struct err err = ERR_INIT;
	uv_timer_t late;
	int told = 0;

	CHECK_INT(role_begin(&role, &err), 0);
	role_watch_signals(&role, on_signal, &told);
	CHECK_INT(uv_run(&role.loop, UV_RUN_DEFAULT), 0);
	/* A timer, for a loop that has nothing to wait for does not look. */
	uv_timer_init(&role.loop, &late);
	uv_timer_start(&late, on_late, 60000, 0);
	kill(getpid(), SIGTERM);
	uv_run(&role.loop, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)&late, NULL);
	CHECK_INT(told, SIGTERM);
	role_close(&role);
	CHECK_INT(uv_run(&role.loop, UV_RUN_DEFAULT), 0);
	role_done(&role);
}

TEST(a_reader_that_goes_ends_nobody)
{
	struct role role = new_role();
	struct err err = ERR_INIT;
	int ends[2];

	CHECK_INT(role_begin(&role, &err), 0);
	CHECK_INT(pipe(ends), 0);
	close(ends[0]);
	CHECK_INT(write(ends[1], "x", 1), -1);
	close(ends[1]);
	role_done(&role);
}

TEST(the_log_is_as_told)
{
	struct role role = new_role();
	struct err err = ERR_INIT;

	setenv("LOG_LEVEL", "loud", 1);
	CHECK(role_begin(&role, &err) < 0);
	CHECK_STR(err.text, "--log-level and LOG_LEVEL are error, warn, info or debug");
	role.log_level = "debug"; /* goes before the environment */
	role.log_format = "xml";
	CHECK(role_begin(&role, &err) < 0);
	CHECK_STR(err.text, "--log-format is logfmt or json");
	role.log_format = "json";
	CHECK_INT(role_begin(&role, &err), 0);
	CHECK_INT(role.log.level, LOG_DEBUG);
	unsetenv("LOG_LEVEL");
	role_done(&role);
}

TEST(none_answers_no_probes_and_has_no_metrics)
{
	const struct role_probes probes = { .ready = is_ready };
	struct role role = new_role();
	struct err err = ERR_INIT;

	CHECK_INT(role_begin(&role, &err), 0);
	role.health_addr = "none";
	CHECK_INT(role_serve(&role, &probes, &err), 0);
	CHECK(!role.health);
	role.metrics_addr = "127.0.0.1:1";
	CHECK(role_serve(&role, &probes, &err) < 0);
	CHECK_STR(err.text, "--health-addr none serves no metrics at 127.0.0.1:1 either: leave "
			    "out one of the two");
	role_done(&role);
}

TEST(probes_are_answered_until_it_closes)
{
	const struct role_probes probes = { .ready = is_ready };
	struct role role = new_role();
	struct err err = ERR_INIT;

	CHECK_INT(role_begin(&role, &err), 0);
	role.health_addr = "127.0.0.1:0";
	CHECK_INT(role_serve(&role, &probes, &err), 0);
	CHECK(role.health);
	role_close(&role);
	CHECK_INT(uv_run(&role.loop, UV_RUN_DEFAULT), 0);
	role_done(&role);
}

TEST_MAIN()
