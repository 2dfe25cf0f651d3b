/* SPDX-License-Identifier: Apache-2.0
 *
 * main.c - the one binary.  commands.c chooses what it does.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"

int main(int argc, char **argv)
{
	int exit_code = commands_run(argc, argv, stdout, stderr);

	/* Output that did not arrive (a full disk) must not look like success. */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "gpu-scheduler: cannot write the output: %s\n", strerror(errno));
		return CLI_USAGE;
	}
	return exit_code;
}
