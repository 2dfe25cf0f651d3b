/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/file.h"

#include "base/err.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int read_all(int fd, const char *path, size_t max_bytes, struct strbuf *ret,
		    struct err *err)
{
	char piece[32 << 10];
	for (;;) {
		ssize_t n = read(fd, piece, sizeof(piece));
		if (n == 0)
			return 0;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
		if ((size_t)n > max_bytes - ret->len)
			return err_set(err, EFBIG, "%s has more than %zu bytes", path, max_bytes);
		strbuf_add(ret, piece, (size_t)n);
		if (ret->failed)
			return err_set(err, ENOMEM, "cannot read %s: out of memory", path);
	}
}

int file_read(const char *path, size_t max_bytes, struct strbuf *ret, struct err *err)
{
	strbuf_reset(ret);
	ret->max = max_bytes;
	bool standard = strcmp(path, "-") == 0;
	int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	int result = read_all(fd, standard ? "the standard input" : path, max_bytes, ret, err);
	if (!standard)
		close(fd);
	if (result < 0)
		strbuf_reset(ret);
	return result;
}
