/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - `gpu-scheduler simulate`: a trace, or manifests, on a described cluster. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/show.h"
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

#define OUTPUT_MAX   ((size_t)1 << 30)
#define SEED_DEFAULT 1
#define NOT_GIVEN    SIZE_MAX

enum format { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON };
static const char *const formats[] = { "table", "csv", "json", NULL };

struct simulate {
	const char *nodes, *pods, *order; /* a trace */
	const char *cluster;		  /* manifests on a cluster */
	struct option_list files;
	bool no_preemption, picture, machines;
	const char *scenario; /* a file with expectations */
	const char *policy_name;
	const struct policy *policy;
	uint64_t seed; /* UINT64_MAX: not given */
	size_t format; /* NOT_GIVEN */
};

static int complain(const char *text)
{
	fprintf(stderr, "gpu-scheduler simulate: %s\n", text);
	return CLI_USAGE;
}

static int find_policy(struct simulate *s)
{
	struct strbuf complaint CLEANUP(strbuf_done) = STRBUF_INIT;

	s->policy = show_find_policy(s->policy_name ? s->policy_name : "default", &complaint);
	return s->policy ? CLI_OK : complain(complaint.s);
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

static int print_world(const struct simulate *s, struct world *w)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT_MAX(OUTPUT_MAX);
	struct picture_style style = { .workload = workload_of, .context = w };

	terminal_style(stdout, &style);
	struct picture *picture CLEANUP(picture_freep) = picture_new(&style);
	if (s->format == FORMAT_JSON)
		report_json(w, &out);
	else
		report_table(w, &out);
	if (s->picture && picture) {
		strbuf_putc(&out, '\n');
		picture_draw(picture, world_cluster(w), &out);
		picture_key(picture, &out);
	}
	if (out.failed || !picture)
		return complain("the output is too large, or memory ran out");
	fwrite(out.s, 1, out.len, stdout);
	return CLI_OK;
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
	return print_world(s, world);
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

/* A sentence about an option that means nothing with what is to be done; or NULL. */
static const char *misplaced(const struct simulate *s, bool trace)
{
	if (s->scenario && s->policy_name)
		return "a scenario names its policy itself (policy: NAME), --policy does not "
		       "apply";
	if (s->scenario && s->seed != UINT64_MAX)
		return "a scenario has its seed itself (seed: N), --seed does not apply";
	if (s->scenario && s->no_preemption)
		return "a scenario says so itself (preemption: false), --no-preemption does not "
		       "apply";
	if (s->scenario && (s->format != NOT_GIVEN || s->picture))
		return "--format and --picture do not apply to scenarios";
	if (trace && s->picture)
		return "--picture applies to --cluster, a trace has none";
	if (trace && s->no_preemption)
		return "--no-preemption applies to --cluster, in a trace no pod makes way";
	if (s->picture && s->format != NOT_GIVEN && s->format != FORMAT_TABLE)
		return "--picture goes with the table format only";
	return NULL;
}

static int check_mode(const struct simulate *s, bool trace, bool manifests)
{
	const char *wrong = misplaced(s, trace);

	if (trace + manifests + (s->scenario != NULL) != 1)
		return complain("give either --nodes and --pods, or --cluster and -f, or "
				"--scenario; see gpu-scheduler simulate --help");
	if (wrong)
		return complain(wrong);
	if (trace && (!s->nodes || !s->pods))
		return complain("a trace needs --nodes and --pods");
	if (manifests && (!s->cluster || !s->files.count))
		return complain("manifests need --cluster and -f");
	if (manifests && s->format == FORMAT_CSV)
		return complain("csv is a format of traces; use table or json");
	return CLI_OK;
}

static int list_machines(void)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;

	show_machines(&out);
	fwrite(out.s, 1, out.len, stdout);
	return CLI_OK;
}

/* Which of the three it is to be. */
static int run_mode(struct simulate *s)
{
	bool trace = s->nodes || s->pods || s->order, manifests = s->cluster || s->files.count;
	int exit_code = s->machines ? CLI_OK : check_mode(s, trace, manifests);

	if (s->machines)
		return list_machines();
	if (exit_code == CLI_OK)
		exit_code = find_policy(s);
	if (exit_code != CLI_OK)
		return exit_code;
	s->seed = s->seed == UINT64_MAX ? SEED_DEFAULT : s->seed;
	s->format = s->format == NOT_GIVEN ? FORMAT_TABLE : s->format;
	if (s->scenario)
		return run_scenario(s);
	return trace ? run_trace(s) : run_cluster(s);
}

#define USAGE                                                              \
	"--nodes FILE --pods FILE [options]\n"                             \
	"       gpu-scheduler simulate --cluster FILE -f FILE [options]\n" \
	"       gpu-scheduler simulate --scenario FILE\n"                  \
	"       gpu-scheduler simulate --machines"

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
		  .help = "pod names in order of arrival, one a line\n(default: as in --pods)",
		  .string = &s->order },
		{ .name = "cluster",
		  .value = "FILE",
		  .help = "describes a cluster, as YAML; the format is in\nexamples/README.md",
		  .string = &s->cluster },
		{ .name = "filename",
		  .letter = 'f',
		  .value = "FILE",
		  .help = "Kubernetes manifests to place on it; may be\ngiven again",
		  .list = &s->files },
		{ .name = "no-preemption",
		  .help = "pods never take the place of others",
		  .flag = &s->no_preemption },
		{ .name = "machines",
		  .help = "list the machines that clusters are made of",
		  .flag = &s->machines },
		{ .name = "picture", .help = "draw the cluster at the end", .flag = &s->picture },
		{ .name = "scenario",
		  .value = "FILE",
		  .help = "cluster, steps and expectations in one file; exits\n"
			  "with 1 if an expectation does not hold",
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
	struct simulate s = { .seed = UINT64_MAX, .format = NOT_GIVEN };
	struct strbuf notes CLEANUP(strbuf_done) = STRBUF_INIT;
	int exit_code;

	strbuf_puts(&notes, NOTES);
	show_policies(&notes);
	if (!read_options(&s, notes.s, argc, argv, &exit_code))
		return exit_code;
	return run_mode(&s);
}
