/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - `gpu-scheduler simulate`: a trace of pods on its nodes. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "engine/policy/policy.h"
#include "sim/replay.h"
#include "sim/trace.h"

#define BAR_WIDTH 40

enum format { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON };
static const char *const formats[] = { "table", "csv", "json", NULL };

struct simulate {
	const char *nodes, *pods, *order;
	const char *policy_name;
	const struct policy *policy;
	uint64_t seed;
	size_t format;
};

static int complain(const char *text)
{
	fprintf(stderr, "gpu-scheduler simulate: %s\n", text);
	return CLI_USAGE;
}

/* The names of all policies, with what they do. */
static void list_policies(struct strbuf *out)
{
	const struct policy *p;

	strbuf_puts(out, "Policies:\n");
	for (size_t i = 0; (p = policy_at(i)); i++)
		strbuf_addf(out, "  %-12s %s\n", p->name, p->summary);
}

static int find_policy(struct simulate *s)
{
	s->policy = policy_find(s->policy_name ? s->policy_name : "default");
	if (s->policy)
		return CLI_OK;
	struct strbuf list CLEANUP(strbuf_done) = STRBUF_INIT;
	list_policies(&list);
	fprintf(stderr, "gpu-scheduler simulate: there is no policy %s\n%s", s->policy_name,
		list.s);
	return CLI_USAGE;
}

static void show_progress(void *context, uint32_t done, uint32_t total)
{
	char bar[BAR_WIDTH + 1];
	int filled = (int)((uint64_t)done * BAR_WIDTH / total);

	(void)context;
	memset(bar, ' ', BAR_WIDTH);
	memset(bar, '#', (size_t)filled);
	bar[BAR_WIDTH] = 0;
	if (done < total)
		fprintf(stderr, "\r[%s] %3d%%", bar, (int)((uint64_t)done * 100 / total));
	else
		fprintf(stderr, "\r\033[K");
	fflush(stderr);
}

static void print_replay(const struct simulate *s, const struct replay *r)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;

	if (s->format == FORMAT_CSV)
		replay_write_csv(r, &out);
	else if (s->format == FORMAT_JSON)
		replay_write_json(r, &out);
	else
		replay_write_table(r, s->policy->name, &out);
	fwrite(out.s, 1, out.len, stdout);
}

static int run_trace(const struct simulate *s)
{
	struct trace trace CLEANUP(trace_done) = { .nodes = NULL };
	struct replay replay CLEANUP(replay_done) = { .loads = NULL };
	struct replay_config config = { .policy = s->policy, .seed = s->seed,
					.clock = &clock_system };
	struct err err = ERR_INIT;

	if (isatty(STDERR_FILENO))
		config.progress = show_progress;
	if (trace_read(s->nodes, s->pods, s->order, &trace, &err) < 0 ||
	    replay_run(&trace, &config, &replay, &err) < 0)
		return complain(err.text);
	print_replay(s, &replay);
	return CLI_OK;
}

int cmd_simulate(int argc, char **argv)
{
	struct simulate s = { .seed = 1 };
	const struct option_spec specs[] = {
		{ .name = "nodes", .value = "FILE", .help = "the nodes of the trace, as CSV",
		  .string = &s.nodes, .required = true },
		{ .name = "pods", .value = "FILE", .help = "the pods of the trace, as CSV",
		  .string = &s.pods, .required = true },
		{ .name = "order", .value = "FILE",
		  .help = "pod names in order of arrival, one a line (default: as in --pods)",
		  .string = &s.order },
		{ .name = "policy", .value = "NAME", .help = "how nodes are chosen (below)",
		  .string = &s.policy_name },
		{ .name = "seed", .value = "N", .help = "of what is random (default 1)",
		  .number = &s.seed, .number_max = UINT64_MAX - 1 },
		{ .name = "format", .value = "FORMAT", .help = "table (default), csv or json",
		  .choice = &s.format, .choices = formats },
	};
	struct strbuf notes CLEANUP(strbuf_done) = STRBUF_INIT;
	int exit_code;

	list_policies(&notes);
	const struct options options = {
		.command = "simulate",
		.usage = "--nodes FILE --pods FILE [options]",
		.summary = "Places the pods of a trace on its nodes, one by one.",
		.notes = notes.s,
		.specs = specs,
		.spec_count = ARRAY_SIZE(specs),
	};
	if (options_done(&options, argc, argv, NULL, &exit_code))
		return exit_code;
	exit_code = find_policy(&s);
	return exit_code == CLI_OK ? run_trace(&s) : exit_code;
}
