/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - time as an argument.
 *
 * Whoever needs the time is given a struct clock: the system's in the program, a
 * manual one in tests and in the simulator.  Monotonic time counts from boot,
 * through sleep, and is for durations and deadlines; wall time counts from 1970
 * and is for people.
 */
#ifndef GS_BASE_CLOCK_H
#define GS_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

struct clock {
	uint64_t (*monotonic_ns)(void *context);
	int64_t (*wall_ns)(void *context);
	void *context;
};

extern const struct clock clock_system; /* any thread */

uint64_t clock_monotonic_ns(const struct clock *clock);
uint64_t clock_monotonic_ms(const struct clock *clock);
int64_t clock_wall_ns(const struct clock *clock);

/* A clock that stands until it is moved.  Must not move in memory after init. */
struct clock_manual {
	struct clock clock; /* pass &manual.clock */
	uint64_t now_monotonic_ns;
	int64_t now_wall_ns;
};

void clock_manual_init(struct clock_manual *manual, int64_t wall_ns);
void clock_manual_advance(struct clock_manual *manual, uint64_t ns); /* both times */

#define CLOCK_TEXT_MAX 32

/* RFC 3339 in UTC with milliseconds, "2026-01-31T08:05:09.042Z", into `text` of
 * CLOCK_TEXT_MAX bytes.  Returns text. */
char *clock_format(int64_t wall_ns, char *text);

#endif
