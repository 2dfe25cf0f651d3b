/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the command line of fault-proxy. */
#ifndef GS_TESTS_KUBE_PROXY_OPTIONS_H
#define GS_TESTS_KUBE_PROXY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct err;

/* Borrowed from the command line; NULL: not given. */
struct options {
	const char *kubeconfig;
	const char *listen;
	const char *write_kubeconfig;
	const char *script;
	const char *log;
	const char *replay;
	uint64_t seed;
	bool help;
};

extern const char options_help[];

/* 0 or -EINVAL. */
int options_parse(int argc, char **argv, struct options *ret, struct err *err);

#endif
