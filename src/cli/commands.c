/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include <stdbool.h>
#include <string.h>

#include "base/attr.h"
#include "base/suggest.h"

struct command {
	const char *name;
	bool for_people;		   /* offered by kubectl-gpu too */
	const char *summary;		   /* what it does */
	int (*run)(int argc, char **argv); /* NULL: known, and not part of this version */
};

static const struct command commands[] = {
	{ "simulate", false, "place a trace or manifests on a described cluster", cmd_simulate },
	{ "demo", false, "watch work being placed on a simulated cluster", cmd_demo },
	{ "run", false, "places the pods of a Kubernetes cluster", cmd_run },
	{ "extender", false, "advises kube-scheduler", NULL },
	{ "webhook", false, "checks and completes pods as they are created", cmd_webhook },
	{ "agent", false, "reports the GPUs of a node", NULL },
	{ "controller", false, "keeps claims and gangs up to date", NULL },
	{ "certs", false, "makes and renews the certificate of the webhook", cmd_certs },
	{ "lab", false, "serves a simulated cluster", NULL },
	{ "explain", true, "says why a pod is where it is, or waits", NULL },
	{ "whatif", true, "says where a pod would go", NULL },
	{ "top", true, "shows how GPUs are used", NULL },
	{ "topo", true, "shows how GPUs are joined", NULL },
	{ "queue", true, "lists what waits", NULL },
	{ "gangs", true, "lists gangs", NULL },
	{ "frag", true, "shows how fragmented the cluster is", NULL },
	{ "leases", true, "lists who holds which GPU", NULL },
	{ "history", true, "lists past decisions", NULL },
};

/* A link of this name runs that command; all of argv is the command's. */
static const struct role {
	const char *link;
	const char *command;
} roles[] = {
	{ "scheduler", "run" },
	{ "controller", "controller" },
	{ "webhook", "webhook" },
	{ "agent", "agent" },
};

static const struct command *command_find(const char *name, bool people_only)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (strcmp(commands[i].name, name) == 0 &&
		    (commands[i].for_people || !people_only))
			return &commands[i];
	return NULL;
}

static const char *role_command(const char *link)
{
	for (size_t i = 0; i < ARRAY_SIZE(roles); i++)
		if (strcmp(roles[i].link, link) == 0)
			return roles[i].command;
	return NULL;
}

static void print_commands(bool people_only, FILE *out)
{
	int shown = 0;
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		const struct command *command = &commands[i];
		if (!command->run || (people_only && !command->for_people))
			continue;
		fprintf(out, "  %-12s %s\n", command->name, command->summary);
		shown++;
	}
	if (!shown)
		fprintf(out, "  none in this version\n");
}

static void print_help(const char *program, bool people_only, FILE *out)
{
	fprintf(out,
		"Usage: %s COMMAND [options]\n"
		"       %s help COMMAND\n"
		"       %s --version\n"
		"\n"
		"Schedules GPU work on Kubernetes: which node and which GPUs each pod gets.\n"
		"\n"
		"Commands:\n",
		program, program, program);
	print_commands(people_only, out);
	fprintf(out,
		"\nExits with 0 when done, 1 when the answer is no, 2 on bad usage or input.\n");
}

static int refuse_unknown(const char *program, const char *name, bool people_only,
			  FILE *complaints)
{
	const char *names[ARRAY_SIZE(commands)] = { NULL };
	size_t count = 0;
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (commands[i].run && (commands[i].for_people || !people_only))
			names[count++] = commands[i].name;
	const char *near = suggest(name, names, count);
	fprintf(complaints, "%s: unknown command '%.80s', ", program, name);
	if (near)
		fprintf(complaints, "did you mean %s?\n", near);
	else
		fprintf(complaints, "see %s --help\n", program);
	return CLI_USAGE;
}

static bool is_any_of(const char *word, const char *first, const char *second)
{
	return strcmp(word, first) == 0 || strcmp(word, second) == 0;
}

/* What the command will be, for whoever asks; else a complaint. */
static int refuse_missing(const char *program, const struct command *command, bool asked,
			  FILE *out, FILE *complaints)
{
	fprintf(asked ? out : complaints,
		"%s: %s, which %s, is not part of version %s yet; gpu-scheduler help lists what "
		"is\n",
		program, command->name, command->summary, GS_VERSION);
	return asked ? CLI_OK : CLI_USAGE;
}

static int run_command(const char *program, const char *name, int argc, char **argv, FILE *out,
		       FILE *complaints)
{
	bool people_only = strcmp(program, "kubectl-gpu") == 0;
	const struct command *command = command_find(name, people_only);
	if (!command)
		return refuse_unknown(program, name, people_only, complaints);
	if (!command->run)
		return refuse_missing(program, command,
				      argc > 1 && is_any_of(argv[1], "--help", "-h"), out,
				      complaints);
	return command->run(argc, argv);
}

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	return slash ? slash + 1 : path && *path ? path : "gpu-scheduler";
}

/* `help NAME` is `NAME --help`. */
static int run_help(const char *program, char *name, FILE *out, FILE *complaints)
{
	char flag[] = "--help";
	char *words[] = { name, flag, NULL };
	return run_command(program, name, 2, words, out, complaints);
}

int commands_run(int argc, char **argv, FILE *out, FILE *complaints)
{
	const char *program = base_name(argc > 0 ? argv[0] : NULL);
	const char *word = argc > 1 ? argv[1] : "";
	bool people_only = strcmp(program, "kubectl-gpu") == 0;

	if (is_any_of(word, "--version", "-V") ||
	    (strcmp(word, "version") == 0 && !role_command(program))) {
		fprintf(out, "gpu-scheduler %s\n", GS_VERSION);
		return CLI_OK;
	}
	if (role_command(program))
		return run_command(program, role_command(program), argc, argv, out, complaints);
	if (!*word) {
		print_help(program, people_only, complaints);
		return CLI_USAGE;
	}
	if (is_any_of(word, "--help", "-h") ||
	    (strcmp(word, "help") == 0 && (argc == 2 || is_any_of(argv[2], "--help", "-h")))) {
		print_help(program, people_only, out);
		return CLI_OK;
	}
	if (strcmp(word, "help") == 0)
		return run_help(program, argv[2], out, complaints);
	return run_command(program, word, argc - 1, argv + 1, out, complaints);
}
