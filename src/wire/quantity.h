/* SPDX-License-Identifier: Apache-2.0 */
/* quantity.h - Kubernetes quantities ("100m", "1.5Gi", "2E3"), exactly.
 *
 * A sign or none, digits with at most one point, and a suffix: n u m k M G T P E
 * (powers of 1000), Ki Mi Gi Ti Pi Ei (powers of 1024), or e/E with an integer
 * exponent.  So 1E is 10^18, 1E3 is 1000 and 1Ei is 2^60; "K" alone is nothing.
 *
 * Kept as an integer number of nano units, never as a double.  Anything finer
 * rounds away from zero, as Kubernetes does: whoever asks for a little gets
 * something.  With a binary suffix the value is capped at 2^63-1, as there; all
 * others at about 1.7 * 10^29.  Kubernetes takes a text without any digit ("Ki",
 * ".") for 0; here that is an error.
 */
#ifndef GS_WIRE_QUANTITY_H
#define GS_WIRE_QUANTITY_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct json;

__extension__ typedef __int128 int128;

struct quantity {
	int128 nano;
};

/* 0 or -EINVAL with what is allowed. */
int quantity_parse(const char *s, size_t n, struct quantity *ret, struct err *err);

/* From a JSON string (blanks around it do not count) or a JSON number.
 * 0, -ENOENT if value is NULL or null, -EINVAL. */
int quantity_from_json(const struct json *value, struct quantity *ret, struct err *err);

/* In thousandths and in whole units, rounded away from zero, within int64_t:
 * a quantity of 0.1m is 1 milli, and values that do not fit are the nearest that
 * does.  CPU is counted in milli, all else in units. */
int64_t quantity_milli(struct quantity q);
int64_t quantity_value(struct quantity q);

#endif
