/* SPDX-License-Identifier: Apache-2.0 */
/* shape.h - which keys an object of ours may have, and of which type each is.
 *
 *	static const struct shape_key keys[] = {
 *		{ "count", SHAPE_NUMBER },
 *		{ "mig", SHAPE_BOOL | SHAPE_LIST },
 *		{ NULL, 0 },
 *	};
 *	rc = shape_check(object, keys, err);
 *
 * A key that is mistyped or of another type would otherwise be passed over, and the file
 * would mean something else than it says.
 */
#ifndef GS_SIM_SHAPE_H
#define GS_SIM_SHAPE_H

struct err;
struct json;

enum {
	SHAPE_BOOL = 1 << 0,
	SHAPE_NUMBER = 1 << 1,
	SHAPE_STRING = 1 << 2,
	SHAPE_LIST = 1 << 3,
	SHAPE_OBJECT = 1 << 4,
	SHAPE_QUANTITY = SHAPE_NUMBER | SHAPE_STRING,
	SHAPE_ANY = 0x1f,
};

struct shape_key {
	const char *name; /* NULL ends the list */
	unsigned types;
};

/* 0; -EINVAL for a key that is not in the list, with the one that was probably meant, or
 * a value of another type.  Null counts as not there. */
int shape_check(const struct json *object, const struct shape_key *keys, struct err *err);

/* "a list", "a string": what a value is. */
const char *shape_name(const struct json *value);

#endif
