/* SPDX-License-Identifier: Apache-2.0 */
/* timestamp.h - reading RFC 3339, as Kubernetes writes times. */
#ifndef GS_KUBE_TIMESTAMP_H
#define GS_KUBE_TIMESTAMP_H

#include <stddef.h>
#include <stdint.h>

/* "2026-01-31T08:05:09Z", with any fraction of a second and any offset ("+01:00").
 * Nanoseconds since 1970; finer ones are cut, leap seconds (:60) count as the next
 * second.  0, -EINVAL, -ERANGE outside of the years 1678 to 2261. */
int timestamp_parse(const char *s, size_t n, int64_t *ret_wall_ns);

#endif
