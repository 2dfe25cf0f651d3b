/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - what every fuzz target has.
 *
 * A target is one file <name>_fuzz.c with the function below.  Built with
 * -Dfuzz=true it explores (libFuzzer); otherwise replay.c runs it over the files of
 * corpus/<name>.
 */
#ifndef GS_TESTS_FUZZ_FUZZ_H
#define GS_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Stops with the input at hand if the property does not hold. */
#define REQUIRE(expression) \
	((expression)       \
		 ? (void)0  \
		 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #expression), abort()))

#endif
