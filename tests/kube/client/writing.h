/* SPDX-License-Identifier: Apache-2.0 */
/* writing.h - one write at a time, and what came of it. */
#ifndef GS_TESTS_KUBE_CLIENT_WRITING_H
#define GS_TESTS_KUBE_CLIENT_WRITING_H

#include "live.h"

#include "base/err.h"
#include "kube/write.h"

struct json_doc;

struct writing {
	struct live live;
	/* Of the last write. */
	bool done, reread;
	int code;
	enum kube_reason reason;
	char message[2048];
	struct json_doc *object; /* that the answer has, or the reread; NULL: none */
	struct err err;		 /* why it was not sent */
};

/* `kubeconfig` as in live_open(). */
void writing_open(struct writing *writing, const char *kubeconfig);
void writing_close(struct writing *writing);

/* Fills in the namespace (unless the kind has none) and the length of the body, sends and
 * waits: the reason. */
enum kube_reason write_now(struct writing *writing, struct kube_write write);

/* -EINVAL and so on: it was not sent. */
int write_refused(struct writing *writing, struct kube_write write);

/* Of the last object. */
const char *writing_uid(const struct writing *writing);
const char *writing_version(const struct writing *writing);

#endif
