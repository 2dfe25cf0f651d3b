/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/certs_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/err.h"
#include "kube/secret.h"
#include "webhook/certs.h"

#define PATH_BYTES 4096

static int path_of(char path[PATH_BYTES], const char *folder, const char *name, struct err *err)
{
	int len = snprintf(path, PATH_BYTES, "%s/%s", folder, name);

	if (len < 0 || len >= PATH_BYTES)
		return err_set(err, ENAMETOOLONG, "%.100s...: the path is too long", folder);
	return 0;
}

static int read_file(const char *folder, const char *name, struct strbuf *ret, struct err *err)
{
	char path[PATH_BYTES];
	int rc = path_of(path, folder, name, err);

	if (rc == 0)
		rc = secret_read(path, CERTS_PEM_MAX, ret, err);
	return rc == -ENOENT ? 0 : rc;
}

int certs_files_read(const char *folder, struct certs *ret, struct err *err)
{
	int rc;

	if ((rc = read_file(folder, "ca.crt", &ret->ca, err)) < 0 ||
	    (rc = read_file(folder, "tls.crt", &ret->cert, err)) < 0)
		return rc;
	return read_file(folder, "tls.key", &ret->key, err);
}

static int write_all(int fd, const struct strbuf *text)
{
	size_t at = 0;

	while (at < text->len) {
		ssize_t n = write(fd, text->s + at, text->len - at);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

static int write_file(const char *folder, const char *name, const struct strbuf *text, mode_t mode,
		      struct err *err)
{
	char path[PATH_BYTES], temporary[PATH_BYTES];
	char beside[32];
	int rc;

	snprintf(beside, sizeof(beside), ".%s.new", name);
	if ((rc = path_of(path, folder, name, err)) < 0 ||
	    (rc = path_of(temporary, folder, beside, err)) < 0)
		return rc;
	/* One that is left over may be readable by others. */
	if (unlink(temporary) < 0 && errno != ENOENT)
		return err_set(err, errno, "%s: %s", temporary, strerror(errno));
	int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return err_set(err, errno, "%s: %s", temporary, strerror(errno));
	rc = write_all(fd, text);
	if (close(fd) < 0 && rc == 0)
		rc = -errno;
	if (rc == 0 && rename(temporary, path) < 0)
		rc = -errno;
	return rc < 0 ? err_set(err, -rc, "%s: %s", path, strerror(-rc)) : 0;
}

int certs_files_write(const char *folder, const struct certs *certs, struct err *err)
{
	int rc;

	if (mkdir(folder, 0755) < 0 && errno != EEXIST)
		return err_set(err, errno, "cannot make the folder %s: %s", folder,
			       strerror(errno));
	if ((rc = write_file(folder, "ca.crt", &certs->ca, 0644, err)) < 0 ||
	    (rc = write_file(folder, "tls.key", &certs->key, 0600, err)) < 0)
		return rc;
	return write_file(folder, "tls.crt", &certs->cert, 0644, err);
}
