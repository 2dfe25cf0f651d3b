/* SPDX-License-Identifier: Apache-2.0 */
/* The command as people call it: what it exits with, and that bad input leaves nothing on
 * the standard output. */
#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "cli/commands.h"
#include "cli/show.h"
#include "test.h"
#include "wire/file.h"

#include <unistd.h>

#define ARGUMENTS_MAX 16

struct stage {
	char folder[64];
	struct strbuf out, complaints;
};

static void stage_open(struct stage *s)
{
	*s = (struct stage){ .out = STRBUF_INIT, .complaints = STRBUF_INIT };
	snprintf(s->folder, sizeof(s->folder), "/tmp/gpu-scheduler-test-XXXXXX");
	CHECK(mkdtemp(s->folder) != NULL);
	CHECK(chdir(s->folder) == 0);
}

static void stage_close(struct stage *s)
{
	static const char *const files[] = { "nodes.csv",    "pods.csv",  "order.txt",
					     "cluster.yaml", "pods.yaml", "empty.yaml",
					     "out",	     "err" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlink(files[i]);
	CHECK(chdir("/") == 0);
	CHECK(rmdir(s->folder) == 0);
	strbuf_done(&s->out);
	strbuf_done(&s->complaints);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	CHECK(f != NULL);
	CHECK(fputs(text, f) >= 0);
	CHECK(fclose(f) == 0);
}

/* Runs the command with its output in files of the stage. */
static int run(struct stage *s, const char *line)
{
	char words[1024];
	char *argv[ARGUMENTS_MAX] = { NULL };
	int argc = 0, out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);

	snprintf(words, sizeof(words), "simulate%s%s", *line ? " " : "", line);
	for (char *at = words; argc < ARGUMENTS_MAX - 1 && (argv[argc] = strsep(&at, " "));)
		argc++;
	fflush(stdout);
	CHECK(out >= 0 && err >= 0 && freopen("out", "w", stdout) && freopen("err", "w", stderr));
	int rc = cmd_simulate(argc, argv);
	fflush(stdout);
	fflush(stderr);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	close(out);
	close(err);
	CHECK(file_read("out", 1 << 20, &s->out, NULL) == 0);
	CHECK(file_read("err", 1 << 20, &s->complaints, NULL) == 0);
	return rc;
}

static void write_trace(void)
{
	write_file("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\na,100,100,2,T4\n");
	write_file("pods.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,1,1000\n");
	write_file("order.txt", "p\np\np\n");
}

TEST(a_trace_is_replayed)
{
	struct stage s;

	stage_open(&s);
	write_trace();
	CHECK_INT(run(&s, "--nodes nodes.csv --pods pods.csv --order order.txt --format csv"),
		  CLI_OK);
	CHECK_STR(s.out.s, "load,allocated\n50,50.0000\n100,100.0000\n150,100.0000\n");
	CHECK_STR(s.complaints.s, "");
	CHECK_INT(run(&s, "--nodes nodes.csv --pods pods.csv --format json --policy fgd --seed 9"),
		  CLI_OK);
	CHECKF(strstr(s.out.s, "\"rejected\":0,\"rejected_cpu_only\":0,\"decisions\":1,") != NULL,
	       "%s", s.out.s);
	CHECK_INT(run(&s, "--nodes nodes.csv --pods pods.csv"), CLI_OK);
	CHECK(strstr(s.out.s, "policy default") != NULL);
	stage_close(&s);
}

TEST(manifests_are_placed)
{
	struct stage s;

	stage_open(&s);
	write_file("cluster.yaml", "nodes: [{machine: dgx-h100, name: box}]\n");
	write_file("pods.yaml",
		   "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, resources:"
		   " {limits: {nvidia.com/gpu: 2}}}]}\n");
	CHECK_INT(run(&s, "--cluster cluster.yaml -f pods.yaml --picture"), CLI_OK);
	CHECKF(strstr(s.out.s, "default/p  box, GPUs 0-1: ") != NULL, "%s", s.out.s);
	CHECKF(strstr(s.out.s, "box AA......") != NULL, "%s", s.out.s);
	CHECK_INT(run(&s, "--cluster cluster.yaml -f pods.yaml --format json"), CLI_OK);
	CHECKF(strncmp(s.out.s, "{\"placed\":[{\"pod\":\"default/p\"", 29) == 0, "%s", s.out.s);
	stage_close(&s);
}

TEST(machines_are_listed_and_help_fits_a_terminal)
{
	struct stage s;

	stage_open(&s);
	CHECK_INT(run(&s, "--machines"), CLI_OK);
	CHECKF(strstr(s.out.s, "\ngb200-nvl72") != NULL, "%s", s.out.s);
	CHECK_INT(run(&s, "--help"), CLI_OK);
	for (const char *line = s.out.s, *end; *line; line = end + (*end == '\n')) {
		end = strchrnul(line, '\n');
		CHECKF(end - line <= 80, "%.*s", (int)(end - line), line);
	}
	stage_close(&s);
}

/* The line of the entry, in block and in flow style, of a cluster and in a scenario. */
TEST(what_is_wrong_with_a_cluster_is_said_with_its_line)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "# one\nlimits: {maxNodesPerLeaf: 1}\nnodes:\n- machine: t4\n  labels: {nodes: "
		  "x}\n"
		  "- machine: t4\n  name: b\n  mig: true\n",
		  "cluster.yaml:6: nodes[1] (b): mig: its GPUs cannot be sliced" },
		{ "nodes: [{machine: t4},\n{machine: t5x}]",
		  "cluster.yaml:2: nodes[1]: machine t5x" },
		{ "{\"nodes\": [{\"machine\": \"t4\"},\n\n{\"count\": 2}]}",
		  "cluster.yaml:3: nodes[1]: a node without" },
	};
	struct stage s;

	stage_open(&s);
	write_file("pods.yaml", "{kind: Service, metadata: {name: s}}\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		write_file("cluster.yaml", rows[i].text);
		CHECK_INT(run(&s, "--cluster cluster.yaml -f pods.yaml"), CLI_USAGE);
		CHECKF(strstr(s.complaints.s, rows[i].says) != NULL, "row %zu: %s", i,
		       s.complaints.s);
	}
	write_file("cluster.yaml",
		   "steps: [{delete: [x]}]\ncluster:\n  nodes:\n  - machine: t5x\n");
	CHECK_INT(run(&s, "--scenario cluster.yaml"), CLI_USAGE);
	CHECKF(strstr(s.complaints.s, "cluster.yaml:4: nodes[0]: machine t5x") != NULL, "%s",
	       s.complaints.s);
	stage_close(&s);
}

TEST(long_texts_are_wrapped_between_words)
{
	struct strbuf out = STRBUF_INIT;

	show_wrapped("one two three incomprehensibilities four", 4, 2, 12, &out);
	CHECK_STR(out.s, "one two\n  three\n  incomprehensibilities\n  four");
	strbuf_done(&out);
}

TEST(progress_fits_the_terminal)
{
	static const uint32_t widths[] = { 5, 20, 40, 80, 200 };

	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		struct strbuf line = STRBUF_INIT;

		show_progress_line(5000, 10000, widths[i], &line);
		CHECKF(line.len < MAX(widths[i], 6u), "%u: %s", widths[i], line.s);
		CHECK(strstr(line.s, " 50%") != NULL);
		CHECK((widths[i] >= 40) == (strstr(line.s, "5000 of 10000") != NULL));
		strbuf_done(&line);
	}
}

TEST(bad_usage_and_bad_input_exit_with_2_and_no_result)
{
	static const struct {
		const char *line, *says;
	} rows[] = {
		{ "", "give either --nodes and --pods, or --cluster and -f, or --scenario" },
		{ "--nodes nodes.csv", "a trace needs --nodes and --pods" },
		{ "--cluster cluster.yaml", "manifests need --cluster and -f" },
		{ "--nodes nodes.csv --pods pods.csv --cluster cluster.yaml", "give either" },
		{ "--nodes nodes.csv --pods pods.csv --policy luck",
		  "there is no policy luck; they are default, " },
		{ "--nodes nodes.csv --pods pods.csv --policy bestfot",
		  "there is no policy bestfot, did you mean bestfit? They are default, " },
		{ "--nodes nodes.csv --pods pods.csv --picture",
		  "--picture applies to --cluster" },
		{ "--nodes nodes.csv --pods pods.csv --no-preemption",
		  "--no-preemption applies to --cluster" },
		{ "--scenario s.yaml --policy fgd", "--policy does not apply" },
		{ "--scenario s.yaml --seed 1", "--seed does not apply" },
		{ "--scenario s.yaml --format table", "do not apply to scenarios" },
		{ "--scenario s.yaml --no-preemption", "--no-preemption does not apply" },
		{ "--cluster cluster.yaml -f pods.yaml --picture --format json",
		  "--picture goes with the table format" },
		{ "--seed 1 --seed 1", "--seed is given twice" },
		{ "--nodes nodes.csv --pods pods.csv --format xml", "xml" },
		{ "--nodes missing.csv --pods pods.csv", "missing.csv" },
		{ "--nodes pods.csv --pods pods.csv", "pods.csv" },
		{ "--nodes nodes.csv --pods pods.csv --order pods.csv",
		  "pods.csv:1: there is no pod" },
		{ "--cluster cluster.yaml -f pods.yaml --format csv",
		  "csv is a format of traces" },
		{ "--cluster cluster.yaml -f pods.yaml", "pods.yaml:2: an object without kind" },
		{ "--cluster nodes.csv -f pods.yaml", "nodes.csv: there is no list of nodes" },
		{ "--scenario cluster.yaml", "cluster.yaml: nodes is unknown" },
		{ "--cluster cluster.yaml -f empty.yaml", "empty.yaml: there is no object in it" },
	};
	struct stage s;

	stage_open(&s);
	write_trace();
	write_file("cluster.yaml", "nodes: [{machine: dgx-h100, name: box}]\n");
	write_file("pods.yaml", "---\nmetadata: {name: p}\n");
	write_file("empty.yaml", "# nothing\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECKF(run(&s, rows[i].line) == CLI_USAGE, "row %zu", i);
		CHECKF(s.out.len == 0, "row %zu: %s", i, s.out.s);
		CHECKF(strstr(s.complaints.s, rows[i].says) != NULL, "row %zu: %s", i,
		       s.complaints.s);
	}
	stage_close(&s);
}

TEST_MAIN()
