/* SPDX-License-Identifier: Apache-2.0 */
/* faults.h - the fault proxy in front of the API server, as a child of the test.
 *
 *	struct faults faults;
 *	faults_start(&faults, "on verb=watch max=3 cut mid-event\n");
 *	live_open(&live, faults.kubeconfig);
 *	...
 *	live_close(&live);
 *	faults_end(&faults);
 */
#ifndef GS_TESTS_KUBE_CLIENT_FAULTS_H
#define GS_TESTS_KUBE_CLIENT_FAULTS_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct faults {
	char folder[64];
	char kubeconfig[128];
	pid_t pid;
	FILE *said;
};

/* `script` as in ../proxy/README.md.  It ends with the test, however that ends. */
void faults_start(struct faults *faults, const char *script);
/* Another seed for the rules with p=; faults_start() has 1. */
void faults_start_seeded(struct faults *faults, const char *script, uint64_t seed);
void faults_toggle(struct faults *faults); /* off, and on again */

/* Ends it, in good order or the test fails: how many faults there were. */
unsigned faults_end(struct faults *faults);

#endif
