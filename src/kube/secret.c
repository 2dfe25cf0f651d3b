/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/secret.h"

#include "base/err.h"
#include "wire/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int64_t in_ns(struct timespec t)
{
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int secret_identify(const char *path, struct secret_identity *ret, struct err *err)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "cannot read %s: it is not a regular file", path);
	*ret = (struct secret_identity){ st.st_dev, st.st_ino, st.st_size, in_ns(st.st_mtim),
					 in_ns(st.st_ctim) };
	return 0;
}

bool secret_same(const struct secret_identity *a, const struct secret_identity *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->modified_ns == b->modified_ns && a->changed_ns == b->changed_ns;
}

int secret_read(const char *path, size_t max_bytes, struct strbuf *ret, struct err *err)
{
	struct secret_identity identity;
	int result = secret_identify(path, &identity, err);
	return result < 0 ? result : file_read(path, max_bytes, ret, err);
}

static int write_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

int secret_to_memory(const char *name, const char *text, size_t len, struct err *err)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return err_set(err, errno, "cannot keep %s in memory: %s", name, strerror(errno));
	int result = write_all(fd, text, len);
	if (result < 0) {
		close(fd);
		return err_set(err, -result, "cannot keep %s in memory: %s", name,
			       strerror(-result));
	}
	/* nobody can change it behind the path; if that is not to be had, all else holds */
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	return fd;
}
