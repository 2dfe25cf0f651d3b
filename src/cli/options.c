/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/num.h"
#include "base/suggest.h"
#include "cli/commands.h"

#define HELP_COLUMN 26 /* where the explanations start */

/* What is read, and how far it has got. */
struct parser {
	const struct options *options;
	int argc;
	char **argv;
	int next;      /* index of the next word */
	uint64_t seen; /* a bit for each spec */
	struct option_list *operands;
	struct err *err;
};

static bool spec_is_flag(const struct option_spec *spec)
{
	return spec->flag != NULL;
}

static int list_add(struct option_list *list, const char *item)
{
	if (list->count == OPTION_LIST_MAX)
		return -ENOSPC;
	list->items[list->count++] = item;
	return 0;
}

static int read_number(const struct option_spec *spec, const char *text, struct err *err)
{
	uint64_t number;
	if (parse_u64(text, strlen(text), &number) < 0 || number < spec->number_min ||
	    number > spec->number_max)
		return err_set(err, EINVAL,
			       "--%s needs a whole number from %" PRIu64 " to %" PRIu64
			       ", not '%.80s'",
			       spec->name, spec->number_min, spec->number_max, text);
	*spec->number = number;
	return 0;
}

static int read_choice(const struct option_spec *spec, const char *text, struct err *err)
{
	char names[256] = "";
	size_t used = 0;
	for (size_t i = 0; spec->choices[i]; i++) {
		if (strcmp(spec->choices[i], text) == 0) {
			*spec->choice = i;
			return 0;
		}
		int length = snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
				      spec->choices[i]);
		used = MIN(used + (size_t)length, sizeof(names) - 1);
	}
	return err_set(err, EINVAL, "--%s is one of %s, not '%.80s'", spec->name, names, text);
}

static int read_value(const struct option_spec *spec, const char *text, struct err *err)
{
	if (!*text)
		return err_set(err, EINVAL, "--%s needs a value: %s", spec->name, spec->value);
	if (spec->number)
		return read_number(spec, text, err);
	if (spec->choice)
		return read_choice(spec, text, err);
	if (spec->list && list_add(spec->list, text) < 0)
		return err_set(err, EINVAL, "--%s is given more than %d times", spec->name,
			       OPTION_LIST_MAX);
	if (spec->string)
		*spec->string = text;
	return 0;
}

static const struct option_spec *spec_by_name(const struct options *options, const char *name,
					      size_t length)
{
	for (size_t i = 0; i < options->spec_count; i++) {
		const struct option_spec *spec = &options->specs[i];
		if (strlen(spec->name) == length && memcmp(spec->name, name, length) == 0)
			return spec;
	}
	return NULL;
}

static const struct option_spec *spec_by_letter(const struct options *options, char letter)
{
	for (size_t i = 0; i < options->spec_count; i++)
		if (options->specs[i].letter == letter)
			return &options->specs[i];
	return NULL;
}

static int refuse_unknown(const struct parser *parser, const char *word)
{
	const struct options *options = parser->options;
	const char *names[OPTION_SPECS_MAX + 1];
	for (size_t i = 0; i < options->spec_count; i++)
		names[i] = options->specs[i].name;
	names[options->spec_count] = "help";
	char name[SUGGEST_NAME_MAX + 1];
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	const char *near = suggest(name + strspn(name, "-"), names, options->spec_count + 1);
	if (near)
		return err_set(parser->err, EINVAL, "unknown option %.80s, did you mean --%s?",
			       name, near);
	return err_set(parser->err, EINVAL, "unknown option %.80s, see gpu-scheduler %s --help",
		       name, options->command);
}

/* Takes an option whose value, if it has one, is `attached` or the next word. */
static int take_option(struct parser *parser, const struct option_spec *spec, const char *attached)
{
	uint64_t bit = UINT64_C(1) << (spec - parser->options->specs);
	if ((parser->seen & bit) && !spec_is_flag(spec) && !spec->list)
		return err_set(parser->err, EINVAL, "--%s is given twice", spec->name);
	parser->seen |= bit;
	if (spec_is_flag(spec)) {
		if (attached)
			return err_set(parser->err, EINVAL, "--%s takes no value", spec->name);
		*spec->flag = true;
		return 0;
	}
	if (!attached && parser->next == parser->argc)
		return err_set(parser->err, EINVAL, "--%s needs a value: %s", spec->name,
			       spec->value);
	return read_value(spec, attached ? attached : parser->argv[parser->next++], parser->err);
}

static int take_long(struct parser *parser, const char *word)
{
	const char *name = word + 2;
	size_t length = strcspn(name, "=");
	const struct option_spec *spec = spec_by_name(parser->options, name, length);
	if (!spec && strcmp(name, "help") == 0)
		return OPTIONS_HELP;
	if (!spec)
		return refuse_unknown(parser, word);
	return take_option(parser, spec, name[length] ? name + length + 1 : NULL);
}

static int take_short(struct parser *parser, const char *word)
{
	const struct option_spec *spec = spec_by_letter(parser->options, word[1]);
	if (!spec && strcmp(word, "-h") == 0)
		return OPTIONS_HELP;
	if (!spec)
		return refuse_unknown(parser, word);
	return take_option(parser, spec, word[2] ? word + 2 : NULL);
}

static int take_operand(struct parser *parser, const char *word)
{
	size_t max = MIN(parser->options->operands_max, OPTION_LIST_MAX);
	if (!parser->operands || parser->operands->count >= max)
		return err_set(parser->err, EINVAL,
			       "unexpected argument '%.80s', see gpu-scheduler %s --help", word,
			       parser->options->command);
	return list_add(parser->operands, word);
}

static int check_required(const struct parser *parser)
{
	for (size_t i = 0; i < parser->options->spec_count; i++) {
		const struct option_spec *spec = &parser->options->specs[i];
		if (spec->required && !(parser->seen >> i & 1))
			return err_set(parser->err, EINVAL, "%s needs --%s %s",
				       parser->options->command, spec->name, spec->value);
	}
	return 0;
}

static bool asks_for_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--help") == 0)
			return true;
	return false;
}

int options_parse(const struct options *options, int argc, char **argv,
		  struct option_list *operands, struct err *err)
{
	struct parser parser = { options, argc, argv, 1, 0, operands, err };
	bool only_operands = false;
	assert(options->spec_count <= OPTION_SPECS_MAX);
	if (operands)
		operands->count = 0;
	if (asks_for_help(argc, argv))
		return OPTIONS_HELP;
	while (parser.next < argc) {
		const char *word = argv[parser.next++];
		int result;
		if (only_operands || word[0] != '-' || !word[1])
			result = take_operand(&parser, word);
		else if (strcmp(word, "--") == 0)
			result = 0, only_operands = true;
		else
			result = word[1] == '-' ? take_long(&parser, word)
						: take_short(&parser, word);
		if (result)
			return result;
	}
	return check_required(&parser);
}

/* Writes an explanation line by line, each from the same column on. */
static void help_text(const char *text, int column, FILE *out)
{
	if (column >= HELP_COLUMN) {
		fputc('\n', out);
		column = 0;
	}
	while (*text) {
		int length = (int)strcspn(text, "\n");
		fprintf(out, "%*s%.*s\n", HELP_COLUMN - column, "", length, text);
		column = 0;
		text += length + (text[length] == '\n');
	}
}

static void help_spec(const struct option_spec *spec, FILE *out)
{
	int column = spec->letter ? fprintf(out, "  -%c, ", spec->letter) : fprintf(out, "      ");
	column += fprintf(out, "--%s", spec->name);
	if (!spec_is_flag(spec))
		column += fprintf(out, " %s", spec->value);
	help_text(spec->help, column, out);
}

void options_help(const struct options *options, FILE *out)
{
	const struct option_spec help = {
		.name = "help", .letter = 'h', .help = "show this text", .flag = &(bool){ false }
	};
	fprintf(out, "Usage: gpu-scheduler %s %s\n\n%s\n\nOptions:\n", options->command,
		options->usage ? options->usage : "[options]", options->summary);
	for (size_t i = 0; i < options->spec_count; i++)
		help_spec(&options->specs[i], out);
	help_spec(&help, out);
	if (options->notes)
		fprintf(out, "\n%s\n", options->notes);
}

bool options_done(const struct options *options, int argc, char **argv,
		  struct option_list *operands, int *exit_code)
{
	struct err err = ERR_INIT;
	int result = options_parse(options, argc, argv, operands, &err);
	if (result == OPTIONS_PARSED)
		return false;
	if (result == OPTIONS_HELP) {
		options_help(options, stdout);
		*exit_code = CLI_OK;
	} else {
		fprintf(stderr, "gpu-scheduler %s: %s\n", options->command, err.text);
		*exit_code = CLI_USAGE;
	}
	return true;
}

int options_name_addr(int rc, const char *option, struct err *err)
{
	if (rc == -EADDRINUSE || rc == -EADDRNOTAVAIL || rc == -EACCES)
		err_prefix(err, "--%s", option);
	return rc;
}
