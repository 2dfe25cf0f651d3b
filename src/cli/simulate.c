/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - `gpu-scheduler simulate`: a trace, or manifests, on a described cluster. */
#include <errno.h>
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
#include "sim/description.h"
#include "sim/fleet.h"
#include "sim/manifest.h"
#include "sim/picture.h"
#include "sim/replay.h"
#include "sim/report.h"
#include "sim/story.h"
#include "sim/terminal.h"
#include "sim/trace.h"
#include "sim/world.h"
#include "wire/json.h"
#include "wire/yaml.h"

#define BAR_WIDTH 40

enum format { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON };
static const char *const formats[] = { "table", "csv", "json", NULL };

struct simulate {
	const char *nodes, *pods, *order; /* a trace */
	const char *cluster;		  /* manifests on a cluster */
	struct option_list files;
	bool no_preemption, picture;
	const char *scenario; /* a file with expectations */
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
	struct replay_config config = { .policy = s->policy,
					.seed = s->seed,
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

static const char *workload_of(void *context, const struct pod *pod)
{
	const struct world_pod *p = world_pod_of(context, pod);

	return p ? p->workload : pod->name;
}

static void print_world(const struct simulate *s, struct world *w)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	struct picture_style style = { .workload = workload_of, .context = w };

	terminal_style(stdout, &style);
	struct picture *picture CLEANUP(picture_freep) = picture_new(&style);
	if (s->format == FORMAT_JSON)
		report_json(w, &out);
	else
		report_table(w, &out);
	if (s->picture && picture && s->format == FORMAT_TABLE) {
		strbuf_putc(&out, '\n');
		picture_draw(picture, world_cluster(w), &out);
		picture_key(picture, &out);
	}
	fwrite(out.s, 1, out.len, stdout);
}

static int run_cluster(const struct simulate *s)
{
	struct yaml yaml CLEANUP(description_done) = YAML_INIT;
	struct manifests m CLEANUP(manifests_done) = { 0 };
	struct fleet *fleet CLEANUP(fleet_freep) = NULL;
	struct world *world CLEANUP(world_freep) = NULL;
	struct world_config config = { .policy = s->policy,
				       .seed = s->seed,
				       .no_preemption = s->no_preemption };
	struct err err = ERR_INIT;
	int rc = description_read(s->cluster, "a cluster", &yaml, &err);

	if (rc == 0)
		rc = fleet_new(s->cluster, json_root(yaml.items[0].doc), &fleet, &err);
	for (size_t i = 0; i < s->files.count && rc == 0; i++)
		rc = manifests_read(&m, s->files.items[i], &err);
	if (rc < 0 || world_new(fleet, &config, &world, &err) < 0 ||
	    world_submit(world, &m, 0, &err) < 0 || world_check_claims(world, &m, &err) < 0 ||
	    world_settle(world, &err) < 0)
		return complain(err.text);
	print_world(s, world);
	return CLI_OK;
}

static int run_scenario(const struct simulate *s)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	struct story_result result;
	struct err err = ERR_INIT;

	if (story_run_file(s->scenario, &out, &result, &err) < 0)
		return complain(err.text);
	fwrite(out.s, 1, out.len, stdout);
	printf("%s: %u expectations, %u failed\n", s->scenario, result.checked, result.failed);
	return result.failed ? CLI_NO : CLI_OK;
}

/* Which of the three it is to be. */
static int run_mode(struct simulate *s)
{
	bool trace = s->nodes || s->pods || s->order, manifests = s->cluster || s->files.count;

	if (trace + manifests + (s->scenario != NULL) != 1)
		return complain("give either --nodes and --pods, or --cluster and -f, or "
				"--scenario; see --help");
	if (s->scenario)
		return run_scenario(s);
	if (trace && (!s->nodes || !s->pods))
		return complain("a trace needs --nodes and --pods");
	if (manifests && (!s->cluster || !s->files.count))
		return complain("manifests need --cluster and -f");
	if (manifests && s->format == FORMAT_CSV)
		return complain("csv is a format of traces; use table or json");
	return trace ? run_trace(s) : run_cluster(s);
}

#define USAGE                                  \
	"--nodes FILE --pods FILE [options]\n" \
	"       gpu-scheduler simulate --cluster FILE -f FILE [options]"

#define NOTES                                                                              \
	"Examples:\n"                                                                      \
	"  gpu-scheduler simulate --nodes nodes.csv --pods pods.csv --format csv\n"        \
	"  gpu-scheduler simulate --cluster examples/cluster.yaml -f examples/jobs.yaml\n" \
	"\n"

/* False when there is no more to do: help was asked for, or something is wrong. */
static bool read_options(struct simulate *s, const char *notes, int argc, char **argv,
			 int *exit_code)
{
	const struct option_spec specs[] = {
		{ .name = "nodes",
		  .value = "FILE",
		  .help = "the nodes of a trace, as CSV",
		  .string = &s->nodes },
		{ .name = "pods",
		  .value = "FILE",
		  .help = "the pods of a trace, as CSV",
		  .string = &s->pods },
		{ .name = "order",
		  .value = "FILE",
		  .help = "pod names in order of arrival, one a line (default: as in --pods)",
		  .string = &s->order },
		{ .name = "cluster",
		  .value = "FILE",
		  .help = "describes a cluster, as YAML",
		  .string = &s->cluster },
		{ .name = "filename",
		  .letter = 'f',
		  .value = "FILE",
		  .help = "Kubernetes manifests to place on it; may be given again",
		  .list = &s->files },
		{ .name = "no-preemption",
		  .help = "pods never take the place of others",
		  .flag = &s->no_preemption },
		{ .name = "picture", .help = "draw the cluster at the end", .flag = &s->picture },
		{ .name = "scenario",
		  .value = "FILE",
		  .help = "cluster, steps and expectations in one file; exits with 1\n"
			  "if an expectation does not hold",
		  .string = &s->scenario },
		{ .name = "policy",
		  .value = "NAME",
		  .help = "how nodes are chosen (below)",
		  .string = &s->policy_name },
		{ .name = "seed",
		  .value = "N",
		  .help = "of what is random (default 1)",
		  .number = &s->seed,
		  .number_max = UINT64_MAX - 1 },
		{ .name = "format",
		  .value = "FORMAT",
		  .help = "table (default), csv or json",
		  .choice = &s->format,
		  .choices = formats },
	};
	const struct options options = {
		.command = "simulate",
		.usage = USAGE,
		.summary = "Places the pods of a trace, or of manifests, on a described cluster.",
		.notes = notes,
		.specs = specs,
		.spec_count = ARRAY_SIZE(specs),
	};

	return !options_done(&options, argc, argv, NULL, exit_code);
}

int cmd_simulate(int argc, char **argv)
{
	struct simulate s = { .seed = 1 };
	struct strbuf notes CLEANUP(strbuf_done) = STRBUF_INIT;
	int exit_code;

	strbuf_puts(&notes, NOTES);
	list_policies(&notes);
	if (!read_options(&s, notes.s, argc, argv, &exit_code))
		return exit_code;
	exit_code = find_policy(&s);
	return exit_code == CLI_OK ? run_mode(&s) : exit_code;
}
