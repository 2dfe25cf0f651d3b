/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

#define NS_PER_S  1000000000
#define NS_PER_MS 1000000

static uint64_t system_monotonic_ns(void *context)
{
	(void)context;
	struct timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t); /* cannot fail with this clock id */
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static int64_t system_wall_ns(void *context)
{
	(void)context;
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

const struct clock clock_system = { system_monotonic_ns, system_wall_ns, NULL };

uint64_t clock_monotonic_ns(const struct clock *clock)
{
	return clock->monotonic_ns(clock->context);
}

uint64_t clock_monotonic_ms(const struct clock *clock)
{
	return clock_monotonic_ns(clock) / NS_PER_MS;
}

int64_t clock_wall_ns(const struct clock *clock)
{
	return clock->wall_ns(clock->context);
}

static uint64_t manual_monotonic_ns(void *context)
{
	return ((struct clock_manual *)context)->now_monotonic_ns;
}

static int64_t manual_wall_ns(void *context)
{
	return ((struct clock_manual *)context)->now_wall_ns;
}

void clock_manual_init(struct clock_manual *manual, int64_t wall_ns)
{
	*manual = (struct clock_manual){
		.clock = { manual_monotonic_ns, manual_wall_ns, manual },
		.now_wall_ns = wall_ns,
	};
}

void clock_manual_advance(struct clock_manual *manual, uint64_t ns)
{
	manual->now_monotonic_ns += ns;
	manual->now_wall_ns += (int64_t)ns;
}

char *clock_format(int64_t wall_ns, char *text)
{
	/* before 1970 the remainder is negative: round down, not towards zero */
	int64_t rest = wall_ns % NS_PER_S;
	int64_t ns = rest < 0 ? rest + NS_PER_S : rest;
	time_t seconds = (time_t)((wall_ns - rest) / NS_PER_S - (rest < 0));
	struct tm tm;
	gmtime_r(&seconds, &tm); /* int64_t nanoseconds reach only 1677 to 2262 */
	size_t n = strftime(text, CLOCK_TEXT_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, CLOCK_TEXT_MAX - n, ".%03dZ", (int)(ns / NS_PER_MS));
	return text;
}
