/* SPDX-License-Identifier: Apache-2.0 */
/* time.h - times and durations as Kubernetes writes them.
 *
 *	metav1.Time		2026-01-31T08:05:09Z		whole seconds
 *	metav1.MicroTime	2026-01-31T08:05:09.000042Z	six digits, always
 *	metav1.Duration		1h30m, 300ms, 1.5s, -2us	as in Go
 *
 * Times are read by timestamp.h, whichever form they have.
 */
#ifndef GS_KUBE_TIME_H
#define GS_KUBE_TIME_H

#include <stddef.h>
#include <stdint.h>

#define KUBE_TIME_MAX 48 /* bytes of any of these, with the NUL */

/* Nanoseconds since 1970 as a Time or MicroTime; what is finer is cut, towards the past.
 * Return text. */
char *kube_time_format(int64_t wall_ns, char text[KUBE_TIME_MAX]);
char *kube_microtime_format(int64_t wall_ns, char text[KUBE_TIME_MAX]);

/* 0, -EINVAL if it is no duration, -ERANGE for one of more than 292 years.  Parts of a
 * nanosecond are cut.  As in Go, "0" needs no unit and all else does. */
int kube_duration_parse(const char *s, size_t n, int64_t *ret_ns);

/* As Go would write it: "1h30m0s", "1.5s", "300ms", "0s".  Returns text. */
char *kube_duration_format(int64_t ns, char text[KUBE_TIME_MAX]);

#endif
