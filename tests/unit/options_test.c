/* SPDX-License-Identifier: Apache-2.0 */
#include "base/attr.h"
#include "base/err.h"
#include "cli/options.h"
#include "test.h"

#include <errno.h>

/* What a command with one option of each kind gets from its arguments. */
struct parsed {
	bool verbose;
	const char *nodes;
	uint64_t seed;
	struct option_list files, operands;
	size_t format;
	int result;
	struct err err;
};

static const char *const formats[] = { "table", "csv", "json", NULL };

#define SPECS(p)                                                                                 \
	{                                                                                        \
		{ .name = "verbose", .letter = 'v', .help = "say more", .flag = &(p)->verbose }, \
			{ .name = "nodes",                                                       \
			  .value = "FILE",                                                       \
			  .help = "nodes\nas CSV",                                               \
			  .string = &(p)->nodes },                                               \
			{ .name = "seed",                                                        \
			  .letter = 's',                                                         \
			  .value = "N",                                                          \
			  .help = "seed",                                                        \
			  .number = &(p)->seed,                                                  \
			  .number_min = 1,                                                       \
			  .number_max = 1000 },                                                  \
			{ .name = "filename",                                                    \
			  .letter = 'f',                                                         \
			  .value = "FILE",                                                       \
			  .help = "manifests",                                                   \
			  .list = &(p)->files },                                                 \
			{ .name = "format",                                                      \
			  .value = "table|csv|json",                                             \
			  .help = "of the result",                                               \
			  .choice = &(p)->format,                                                \
			  .choices = formats },                                                  \
	}

/* Parses `words`, which ends with NULL, for a command with at most two operands. */
static struct parsed *parse(char **words)
{
	static struct parsed parsed;
	memset(&parsed, 0, sizeof(parsed));
	const struct option_spec specs[] = SPECS(&parsed);
	const struct options options = { .command = "try",
					 .summary = "Tries.",
					 .specs = specs,
					 .spec_count = ARRAY_SIZE(specs),
					 .operands_max = 2 };
	int count = 0;
	while (words[count])
		count++;
	parsed.result = options_parse(&options, count, words, &parsed.operands, &parsed.err);
	return &parsed;
}

#define PARSE(...) parse((char *[]){ (char[]){ "try" }, __VA_ARGS__ NULL })
#define W(word)      \
	(char[])     \
	{            \
		word \
	}

TEST(no_arguments_leave_everything_as_it_was)
{
	struct parsed *p = PARSE();
	CHECK_INT(p->result, OPTIONS_PARSED);
	CHECK(!p->verbose && !p->nodes && p->seed == 0 && p->files.count == 0);
}

TEST(a_value_follows_an_equals_sign_or_is_the_next_word)
{
	CHECK_STR(PARSE(W("--nodes=a.csv"), )->nodes, "a.csv");
	CHECK_STR(PARSE(W("--nodes"), W("a.csv"), )->nodes, "a.csv");
	CHECK_STR(PARSE(W("--nodes=a=b"), )->nodes, "a=b");
	CHECK_STR(PARSE(W("--nodes"), W("-"), )->nodes, "-");
}

TEST(a_letter_takes_its_value_with_or_without_a_blank)
{
	CHECK_INT(PARSE(W("-s7"), )->seed, 7);
	CHECK_INT(PARSE(W("-s"), W("7"), )->seed, 7);
	CHECK(PARSE(W("-v"), )->verbose);
}

TEST(a_list_collects_and_any_other_option_is_given_once)
{
	struct parsed *p = PARSE(W("-f"), W("a"), W("--filename=b"), W("-v"), W("-v"), );
	CHECK_INT(p->result, OPTIONS_PARSED);
	CHECK_INT(p->files.count, 2);
	CHECK_STR(p->files.items[0], "a");
	CHECK_STR(p->files.items[1], "b");
	CHECK(p->verbose);
}

TEST(a_choice_becomes_its_index)
{
	CHECK_INT(PARSE(W("--format=json"), )->format, 2);
	CHECK_INT(PARSE(W("--format"), W("table"), )->format, 0);
}

TEST(operands_stand_anywhere_and_two_dashes_end_the_options)
{
	struct parsed *p = PARSE(W("one"), W("-v"), W("--"), W("--nodes"), );
	CHECK_INT(p->result, OPTIONS_PARSED);
	CHECK(p->verbose && !p->nodes);
	CHECK_INT(p->operands.count, 2);
	CHECK_STR(p->operands.items[0], "one");
	CHECK_STR(p->operands.items[1], "--nodes");
}

TEST(help_wins_over_every_mistake_before_and_after_it)
{
	CHECK_INT(PARSE(W("--help"), )->result, OPTIONS_HELP);
	CHECK_INT(PARSE(W("-h"), )->result, OPTIONS_HELP);
	CHECK_INT(PARSE(W("--wrong"), W("--help"), )->result, OPTIONS_HELP);
	CHECK_INT(PARSE(W("--"), W("--help"), )->result, OPTIONS_PARSED);
}

TEST(each_mistake_gets_a_sentence_of_its_own)
{
	static const struct {
		const char *words[3];
		const char *text;
	} rows[] = {
		{ { "--sede=1" }, "unknown option --sede, did you mean --seed?" },
		{ { "--quark" }, "unknown option --quark, see gpu-scheduler try --help" },
		{ { "-x" }, "unknown option -x, see gpu-scheduler try --help" },
		{ { "-nodes" }, "unknown option -nodes, did you mean --nodes?" },
		{ { "--nodes" }, "--nodes needs a value: FILE" },
		{ { "--nodes=" }, "--nodes needs a value: FILE" },
		{ { "--nodes", "" }, "--nodes needs a value: FILE" },
		{ { "--verbose=1" }, "--verbose takes no value" },
		{ { "-vx" }, "--verbose takes no value" },
		{ { "--seed=x" }, "--seed needs a whole number from 1 to 1000, not 'x'" },
		{ { "--seed=0" }, "--seed needs a whole number from 1 to 1000, not '0'" },
		{ { "--seed=-1" }, "--seed needs a whole number from 1 to 1000, not '-1'" },
		{ { "--seed=1001" }, "--seed needs a whole number from 1 to 1000, not '1001'" },
		{ { "--format=xml" }, "--format is one of table, csv, json, not 'xml'" },
		{ { "a", "b", "c" }, "unexpected argument 'c', see gpu-scheduler try --help" },
		{ { "--seed=1", "-s2" }, "--seed is given twice" },
		{ { "--nodes=a", "--nodes=a" }, "--nodes is given twice" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char name[] = "try";
		char words[3][32] = { "" };
		char *argv[5] = { name };
		for (size_t j = 0; j < 3 && rows[i].words[j]; j++) {
			snprintf(words[j], sizeof(words[j]), "%s", rows[i].words[j]);
			argv[j + 1] = words[j];
		}
		struct parsed *p = parse(argv);
		CHECKF(p->result == -EINVAL, "row %zu", i);
		CHECK_STR(p->err.text, rows[i].text);
	}
}

TEST(a_list_has_an_end)
{
	char word[] = "-fx";
	char *argv[OPTION_LIST_MAX + 3] = { word };
	for (size_t i = 1; i < ARRAY_SIZE(argv) - 1; i++)
		argv[i] = word;
	struct parsed *p = parse(argv);
	CHECK_INT(p->result, -EINVAL);
	CHECK_STR(p->err.text, "--filename is given more than 256 times");
}

TEST(an_option_that_is_required_is_asked_for_by_name)
{
	const char *nodes = NULL;
	const struct option_spec specs[] = {
		{ .name = "nodes",
		  .value = "FILE",
		  .help = "x",
		  .string = &nodes,
		  .required = true },
	};
	const struct options options = { .command = "try", .specs = specs, .spec_count = 1 };
	struct err err = ERR_INIT;
	char *argv[] = { W("try"), W("--nodes=x"), NULL };
	CHECK_INT(options_parse(&options, 1, argv, NULL, &err), -EINVAL);
	CHECK_STR(err.text, "try needs --nodes FILE");
	CHECK_INT(options_parse(&options, 2, argv, NULL, &err), OPTIONS_PARSED);
	CHECK_STR(nodes, "x");
}

TEST(the_help_comes_from_the_table)
{
	struct parsed parsed;
	const struct option_spec specs[] = SPECS(&parsed);
	const struct options options = { .command = "try",
					 .usage = "[options] FILE",
					 .summary = "Tries.",
					 .notes = "Example: try it",
					 .specs = specs,
					 .spec_count = ARRAY_SIZE(specs) };
	char text[1024] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");
	CHECK(out);
	options_help(&options, out);
	fclose(out);
	CHECK_STR(text, "Usage: gpu-scheduler try [options] FILE\n"
			"\n"
			"Tries.\n"
			"\n"
			"Options:\n"
			"  -v, --verbose           say more\n"
			"      --nodes FILE        nodes\n"
			"                          as CSV\n"
			"  -s, --seed N            seed\n"
			"  -f, --filename FILE     manifests\n"
			"      --format table|csv|json\n"
			"                          of the result\n"
			"  -h, --help              show this text\n"
			"\n"
			"Example: try it\n");
}

TEST(an_address_that_is_taken_names_the_option_for_another)
{
	struct err err = ERR_INIT;

	err_set(&err, EADDRINUSE, "cannot listen on :80");
	CHECK_INT(options_name_addr(-EADDRINUSE, "addr", &err), -EADDRINUSE);
	CHECK_STR(err.text, "--addr: cannot listen on :80");
	CHECK_INT(options_name_addr(-EINVAL, "addr", &err), -EINVAL);
	CHECK_STR(err.text, "--addr: cannot listen on :80");
	CHECK_INT(options_name_addr(0, "addr", &err), 0);
}

TEST_MAIN()
