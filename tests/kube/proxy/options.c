/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/num.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

const char options_help[] =
	"fault-proxy - stands before an API server and breaks what goes through\n"
	"\n"
	"  --kubeconfig FILE        the server, and who the proxy is there\n"
	"  --listen ADDRESS:PORT    for clients; 127.0.0.1:0, any free port, by itself\n"
	"  --write-kubeconfig FILE  for clients, written when it listens\n"
	"  --script FILE            what to break (tests/kube/proxy/README.md); nothing by "
	"itself\n"
	"  --seed N                 for the rules with p=; 1 by itself\n"
	"  --log FILE               what was done, for --replay\n"
	"  --replay FILE            do what this log says instead\n"
	"\n"
	"SIGUSR1 switches faults off and on, SIGTERM ends it; the last line is a count of all.\n";

/* Where the value of an option goes. */
static const struct option_row {
	const char *name;
	size_t offset;
} rows[] = {
	{ "--kubeconfig", offsetof(struct options, kubeconfig) },
	{ "--listen", offsetof(struct options, listen) },
	{ "--write-kubeconfig", offsetof(struct options, write_kubeconfig) },
	{ "--script", offsetof(struct options, script) },
	{ "--log", offsetof(struct options, log) },
	{ "--replay", offsetof(struct options, replay) },
};

static int set_option(struct options *options, const char *name, const char *value,
		      struct err *err)
{
	if (strcmp(name, "--seed") == 0)
		return parse_u64(value, strlen(value), &options->seed) < 0
			       ? err_set(err, EINVAL, "--seed takes a number, not %s", value)
			       : 0;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (strcmp(rows[i].name, name) != 0)
			continue;
		*(const char **)((char *)options + rows[i].offset) = value;
		return 0;
	}
	return err_set(err, EINVAL, "there is no option %s; see --help", name);
}

int options_parse(int argc, char **argv, struct options *ret, struct err *err)
{
	struct options options = { .listen = "127.0.0.1:0", .seed = 1 };
	for (int i = 1; i < argc; i += 2) {
		if (strcmp(argv[i], "--help") == 0) {
			ret->help = true;
			return 0;
		}
		if (i + 1 == argc)
			return err_set(err, EINVAL, "%s without a value; see --help", argv[i]);
		int result = set_option(&options, argv[i], argv[i + 1], err);
		if (result < 0)
			return result;
	}
	if (!options.kubeconfig || !options.write_kubeconfig)
		return err_set(err, EINVAL,
			       "--kubeconfig and --write-kubeconfig are needed; see --help");
	*ret = options;
	return 0;
}
