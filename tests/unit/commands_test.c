/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "test.h"

/* What one call printed and exited with. */
struct called {
	int exit_code;
	char out[2048];
	char complaints[512];
};

/* Calls the program with `words`, which ends with NULL. */
static struct called *call(char **words)
{
	static struct called called;
	memset(&called, 0, sizeof(called));
	int count = 0;
	while (words[count])
		count++;
	FILE *out = fmemopen(called.out, sizeof(called.out), "w");
	FILE *complaints = fmemopen(called.complaints, sizeof(called.complaints), "w");
	CHECK(out && complaints);
	called.exit_code = commands_run(count, words, out, complaints);
	fclose(out);
	fclose(complaints);
	return &called;
}

#define W(word)      \
	(char[])     \
	{            \
		word \
	}
#define CALL(...) call((char *[]){ __VA_ARGS__, NULL })

#define NOT_YET "is not part of version " GS_VERSION " yet; gpu-scheduler help lists what is\n"

TEST(the_version_is_told_under_every_name)
{
	CHECK_STR(CALL(W("build/gpu-scheduler"), W("--version"))->out,
		  "gpu-scheduler " GS_VERSION "\n");
	CHECK_STR(CALL(W("gpu-scheduler"), W("-V"))->out, "gpu-scheduler " GS_VERSION "\n");
	CHECK_STR(CALL(W("gpu-scheduler"), W("version"))->out, "gpu-scheduler " GS_VERSION "\n");
	CHECK_STR(CALL(W("/usr/bin/webhook"), W("--version"))->out,
		  "gpu-scheduler " GS_VERSION "\n");
}

TEST(help_lists_commands_and_goes_to_the_output)
{
	struct called *c = CALL(W("gpu-scheduler"), W("--help"));
	CHECK_INT(c->exit_code, CLI_OK);
	CHECK(strstr(c->out, "Usage: gpu-scheduler COMMAND"));
	CHECK(strstr(c->out, "simulate"));
	CHECK(strstr(c->out, "demo"));
	CHECK_STR(c->complaints, "");
	CHECK_INT(CALL(W("gpu-scheduler"), W("help"))->exit_code, CLI_OK);
	CHECK_INT(CALL(W("gpu-scheduler"), W("-h"))->exit_code, CLI_OK);
	CHECK_INT(CALL(W("gpu-scheduler"), W("help"), W("--help"))->exit_code, CLI_OK);
}

TEST(help_lists_no_command_that_is_not_there)
{
	struct called *c = CALL(W("gpu-scheduler"), W("--help"));
	CHECK(!strstr(c->out, "controller"));
	CHECK(!strstr(c->out, "extender"));
	CHECK(!strstr(c->out, "whatif"));
}

TEST(without_a_command_the_help_is_a_complaint)
{
	struct called *c = CALL(W("gpu-scheduler"));
	CHECK_INT(c->exit_code, CLI_USAGE);
	CHECK_STR(c->out, "");
	CHECK(strstr(c->complaints, "Usage:"));
}

TEST(a_command_of_another_version_says_so)
{
	struct called *c = CALL(W("gpu-scheduler"), W("extender"), W("--port=1"));
	CHECK_INT(c->exit_code, CLI_USAGE);
	CHECK_STR(c->complaints,
		  "gpu-scheduler: extender, which advises kube-scheduler, " NOT_YET);
	c = CALL(W("gpu-scheduler"), W("help"), W("lab"));
	CHECK_INT(c->exit_code, CLI_OK);
	CHECK_STR(c->out, "gpu-scheduler: lab, which serves a simulated cluster, " NOT_YET);
}

TEST(an_unknown_command_gets_a_suggestion)
{
	struct called *c = CALL(W("gpu-scheduler"), W("simualte"));
	CHECK_INT(c->exit_code, CLI_USAGE);
	CHECK_STR(c->complaints,
		  "gpu-scheduler: unknown command 'simualte', did you mean simulate?\n");
	c = CALL(W("gpu-scheduler"), W("xylophone"));
	CHECK_INT(c->exit_code, CLI_USAGE);
	CHECK_STR(c->complaints,
		  "gpu-scheduler: unknown command 'xylophone', see gpu-scheduler --help\n");
}

TEST(a_link_named_after_a_role_takes_it_with_all_arguments)
{
	struct called *c = CALL(W("bin/controller"), W("--kubeconfig=x"));
	CHECK_INT(c->exit_code, CLI_USAGE);
	CHECK_STR(c->complaints,
		  "controller: controller, which keeps claims and gangs up to date, " NOT_YET);
	c = CALL(W("bin/controller"), W("--help"));
	CHECK_INT(c->exit_code, CLI_OK);
	CHECK_STR(c->out,
		  "controller: controller, which keeps claims and gangs up to date, " NOT_YET);
	CHECK_STR(c->complaints, "");
	c = CALL(W("agent"));
	CHECK_STR(c->complaints, "agent: agent, which reports the GPUs of a node, " NOT_YET);
}

TEST(kubectl_offers_the_commands_for_people_only)
{
	struct called *c = CALL(W("/usr/local/bin/kubectl-gpu"), W("explain"), W("pod"));
	CHECK_INT(c->exit_code, CLI_USAGE);
	CHECK_STR(c->complaints,
		  "kubectl-gpu: explain, which says why a pod is where it is, or waits, " NOT_YET);
	c = CALL(W("kubectl-gpu"), W("simulate"));
	CHECK_STR(c->complaints,
		  "kubectl-gpu: unknown command 'simulate', see kubectl-gpu --help\n");
	c = CALL(W("kubectl-gpu"), W("--help"));
	CHECK_INT(c->exit_code, CLI_OK);
	CHECK(strstr(c->out, "none in this version"));
}

TEST(a_process_without_a_name_is_the_program)
{
	char *none[] = { NULL };
	CHECK_INT(call(none)->exit_code, CLI_USAGE);
}

TEST_MAIN()
