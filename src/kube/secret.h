/* SPDX-License-Identifier: Apache-2.0 */
/* secret.h - files that are read again when they change, and text as a file.
 *
 * Files of tokens and certificates are replaced while we run: in place, by rename, or by
 * the swap of a symbolic link above them.  What stat(2) says tells whether it is worth
 * reading.  Only regular files are read, so nothing waits for the other end of a pipe.
 */
#ifndef GS_KUBE_SECRET_H
#define GS_KUBE_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct strbuf;

/* Which content a path has led to.  Zero is none. */
struct secret_identity {
	dev_t device;
	ino_t inode;
	off_t size;
	int64_t modified_ns, changed_ns;
};

/* 0, or why it cannot be read, naming it. */
int secret_identify(const char *path, struct secret_identity *ret, struct err *err);
bool secret_same(const struct secret_identity *a, const struct secret_identity *b);

/* The content; as for file_read(), and -EINVAL for what is no regular file. */
int secret_read(const char *path, size_t max_bytes, struct strbuf *ret, struct err *err);

/* A sealed file in memory with that text, and closed on exec: its descriptor, or -errno. */
int secret_to_memory(const char *name, const char *text, size_t len, struct err *err);

#endif
