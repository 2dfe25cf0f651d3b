/* SPDX-License-Identifier: Apache-2.0 */
/* samples.h - watch events as kube-apiserver 1.36 sends them, one line each, from
 * tests/samples.  pod_running.json has a status as the kubelet writes it. */
#ifndef GS_TESTS_SAMPLES_H
#define GS_TESTS_SAMPLES_H

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "wire/file.h"

/* Appends the line, with its end. */
static inline void sample_read(const char *name, struct strbuf *ret)
{
	char path[512];
	struct err err = ERR_INIT;

	snprintf(path, sizeof(path), "%s/tests/samples/%s", SOURCE_ROOT, name);
	if (file_read(path, 1 << 20, ret, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
}

#endif
