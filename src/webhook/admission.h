/* SPDX-License-Identifier: Apache-2.0 */
/* admission.h - what the API server asks, and what it is told; for the files of this folder.
 */
#ifndef GS_WEBHOOK_ADMISSION_H
#define GS_WEBHOOK_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "webhook/patch.h"

struct json;
struct webhook_options;

/* The request of an AdmissionReview.  Strings are "" where they are missing, and all is
 * borrowed from the document. */
struct admission {
	const char *uid, *operation, *namespace, *username;
	const char *group, *resource, *subresource;
	const struct json *object, *old; /* NULL: not there */
};

/* 0, or -EINVAL if it is no AdmissionReview of v1. */
int admission_read(const struct json *review, struct admission *ret, struct err *err);

/* Whether it is that operation on that resource; subresource "" is the object itself. */
bool admission_is(const struct admission *a, const char *operation, const char *group,
		  const char *resource, const char *subresource);

/* The API server shows up to 4096 bytes of warnings and advises 256 for each. */
#define WARNINGS_MAX 12
#define WARNING_MAX  256

/* What becomes of it.  RULING_INIT allows it as it is. */
struct ruling {
	bool refused;
	struct err reason; /* of the refusal */
	struct patch patch;
	unsigned warnings_count;
	char warnings[WARNINGS_MAX][WARNING_MAX];
};

#define RULING_INIT                 \
	{                           \
		.patch = PATCH_INIT \
	}

void ruling_done(struct ruling *ruling);

/* One line for the user; those past WARNINGS_MAX are dropped. */
void ruling_warn(struct ruling *ruling, const char *format, ...) PRINTF(2, 3);

/* mutate.c: what the pod lacks.  `ruling` is fresh. */
void webhook_mutate(const struct webhook_options *options, const struct admission *a,
		    struct ruling *ruling);

/* validate.c: whether it may be.  0 or -ENOMEM. */
int webhook_validate(const struct webhook_options *options, const struct admission *a,
		     struct ruling *ruling, struct err *err);

#endif
