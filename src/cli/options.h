/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h - command-line options from a table, which is also their help.
 *
 *	const char *nodes = NULL;
 *	uint64_t seed = 1;
 *	const struct option_spec specs[] = {
 *		{ .name = "nodes", .value = "FILE", .help = "the nodes, as CSV",
 *		  .string = &nodes, .required = true },
 *		{ .name = "seed", .value = "N", .help = "of the random policy (default 1)",
 *		  .number = &seed, .number_max = UINT64_MAX },
 *	};
 *	const struct options options = {
 *		.command = "simulate", .summary = "Place a trace of pods on its nodes.",
 *		.specs = specs, .spec_count = ARRAY_SIZE(specs),
 *	};
 *	int exit_code;
 *	if (options_done(&options, argc, argv, NULL, &exit_code))
 *		return exit_code;
 *
 * Values are written `--seed=7`, `--seed 7` or, with a letter, `-s7` and `-s 7`.
 * Options and operands come in any order; `--` ends the options.  Every command
 * has `--help` and `-h` without saying so.  An option with a value is given once,
 * except a list, which collects.  Strings are borrowed from argv.
 */
#ifndef GS_CLI_OPTIONS_H
#define GS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct err;

#define OPTION_SPECS_MAX 64  /* options of one command */
#define OPTION_LIST_MAX	 256 /* values of one list, operands of one command */

struct option_list {
	size_t count;
	const char *items[OPTION_LIST_MAX];
};

/* One option.  Exactly one of the pointers to results is set: it says what kind
 * of option this is, and is written only if the option is there. */
struct option_spec {
	const char *name;  /* without the dashes */
	char letter;	   /* its short form, or 0 */
	const char *value; /* what the help calls its value; NULL for a flag */
	const char *help;  /* '\n' starts another line */
	bool required;

	bool *flag;
	const char **string; /* never empty */
	uint64_t *number;
	uint64_t number_min, number_max; /* both included */
	struct option_list *list;
	size_t *choice;		    /* index into choices */
	const char *const *choices; /* ends with NULL */
};

struct options {
	const char *command; /* as it is called: "simulate" */
	const char *usage;   /* after the command in the help; NULL: "[options]" */
	const char *summary; /* a sentence or more, may have several lines */
	const char *notes;   /* after the options in the help, for examples; or NULL */
	const struct option_spec *specs;
	size_t spec_count;
	size_t operands_max; /* how many arguments that are no options it takes */
};

enum { OPTIONS_PARSED = 0, OPTIONS_HELP = 1 };

/* Reads argv[1] and on.  OPTIONS_PARSED; OPTIONS_HELP when help is asked for,
 * whatever else is there; -EINVAL with a sentence.  `operands` may be NULL if
 * the command takes none. */
int options_parse(const struct options *options, int argc, char **argv,
		  struct option_list *operands, struct err *err);

/* Writes the help of a command. */
void options_help(const struct options *options, FILE *out);

/* The same for a command that only wants to get on: true when there is no more to
 * do, for the help or the error has been printed and *exit_code is set. */
bool options_done(const struct options *options, int argc, char **argv,
		  struct option_list *operands, int *exit_code);

/* Returns `rc`.  If it says that an address is somebody else's, the option that takes
 * another is put in front of the sentence. */
int options_name_addr(int rc, const char *option, struct err *err);

#endif
