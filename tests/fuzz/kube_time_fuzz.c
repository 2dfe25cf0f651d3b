/* SPDX-License-Identifier: Apache-2.0 */
/* Durations and times that are read can be written, and are then read as the same. */
#include "fuzz.h"

#include "kube/time.h"
#include "kube/timestamp.h"

#include <errno.h>
#include <string.h>

static void check_duration(const char *text, size_t size)
{
	char again[KUBE_TIME_MAX];
	int64_t ns, same;
	int rc = kube_duration_parse(text, size, &ns);

	REQUIRE(rc == 0 || rc == -EINVAL || rc == -ERANGE);
	if (rc < 0)
		return;
	kube_duration_format(ns, again);
	REQUIRE(strlen(again) < KUBE_TIME_MAX);
	REQUIRE(kube_duration_parse(again, strlen(again), &same) == 0 && same == ns);
}

static void check_time(const char *text, size_t size)
{
	char again[KUBE_TIME_MAX];
	int64_t ns, same;

	if (timestamp_parse(text, size, &ns) < 0)
		return;
	kube_microtime_format(ns, again);
	REQUIRE(timestamp_parse(again, strlen(again), &same) == 0);
	REQUIRE(same <= ns && ns - same < 1000);
	kube_time_format(ns, again);
	REQUIRE(timestamp_parse(again, strlen(again), &same) == 0);
	REQUIRE(same <= ns && ns - same < 1000000000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* No NUL behind the text, so that reading past its end is noticed. */
	check_duration((const char *)data, size);
	check_time((const char *)data, size);
	return 0;
}
