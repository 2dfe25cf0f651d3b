/* SPDX-License-Identifier: Apache-2.0 */
/* runner.c - runs scenario files and says TAP: one test a file. */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "sim/story.h"

/* TAP wants comments to begin with '#'. */
static void print_comment(const char *text)
{
	for (const char *end; *text; text = end + (*end == '\n')) {
		end = strchrnul(text, '\n');
		printf("# %.*s\n", (int)(end - text), text);
	}
}

static int run(const char *path, int number)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	struct story_result result = { 0 };
	struct err err = ERR_INIT;
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	int rc = story_run_file(path, &out, &result, &err);
	int failed = rc < 0 || result.failed || !result.checked;

	print_comment(out.s);
	if (rc < 0)
		print_comment(err.text);
	else if (!result.checked)
		print_comment("nothing is expected");
	printf("%sok %d - %s\n", failed ? "not " : "", number, name);
	return failed;
}

int main(int argc, char **argv)
{
	int failed = 0;

	printf("1..%d\n", argc - 1);
	for (int i = 1; i < argc; i++)
		failed |= run(argv[i], i);
	return failed;
}
