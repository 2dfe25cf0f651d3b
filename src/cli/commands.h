/* SPDX-License-Identifier: Apache-2.0
 *
 * commands.h - the subcommands of the one binary, and how one is chosen.
 *
 * `gpu-scheduler NAME ...` runs the command of that name with argv[0] = NAME.
 * Called through a link named scheduler, controller, webhook or agent the program
 * is that role; through kubectl-gpu it offers the commands for people, so that
 * kubectl finds it as `kubectl gpu`.
 *
 * To add a command: write `cmd_<name>` in a file of its own, declare it here and
 * give it a line in the table of commands.c.
 */
#ifndef GS_CLI_COMMANDS_H
#define GS_CLI_COMMANDS_H

#include <stdio.h>

/* What every command exits with. */
enum cli_exit {
	CLI_OK = 0,
	CLI_NO = 1,    /* understood, and the answer is no: an expectation failed */
	CLI_USAGE = 2, /* bad options or bad input; nothing was done */
};

/* Chooses and runs a command; returns what the process exits with.  Help and the
 * version go to `out`, complaints to `complaints`; commands use stdout and stderr. */
int commands_run(int argc, char **argv, FILE *out, FILE *complaints);

int cmd_certs(int argc, char **argv);
int cmd_demo(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_simulate(int argc, char **argv);
int cmd_webhook(int argc, char **argv);

#endif
