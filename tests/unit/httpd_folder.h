/* SPDX-License-Identifier: Apache-2.0 */
/* httpd_folder.h - a folder with a certificate and its key, which change. */
#ifndef GS_TESTS_UNIT_HTTPD_FOLDER_H
#define GS_TESTS_UNIT_HTTPD_FOLDER_H

#include "test.h"
#include "unit/http_certs.h"

#include <sys/stat.h>
#include <unistd.h>

/* A folder as the kubelet fills it from a Secret: tls.crt and tls.key are links into
 * ..data, which is a link to a folder of this version, and is replaced in one step. */
struct folder {
	char path[64];
	char cert_file[96], key_file[96];
	int version;
};

static inline void copy_file(const char *from, const char *to)
{
	char text[16384], draft[192];
	FILE *in = fopen(from, "r");
	CHECK(in != NULL);
	size_t len = fread(text, 1, sizeof(text), in);
	fclose(in);
	snprintf(draft, sizeof(draft), "%s.draft", to);
	FILE *out = fopen(draft, "w");
	CHECK(out != NULL);
	CHECK(fwrite(text, 1, len, out) == len);
	CHECK_INT(fclose(out), 0);
	CHECK_INT(rename(draft, to), 0);
}

/* Both files at once. */
static inline void folder_fill(struct folder *folder, const struct cert *cert)
{
	char version[96], path[128], draft[96], data[96];

	snprintf(version, sizeof(version), "%s/v%d", folder->path, ++folder->version);
	CHECK_INT(mkdir(version, 0700), 0);
	snprintf(path, sizeof(path), "%s/tls.crt", version);
	copy_file(cert->cert_file, path);
	snprintf(path, sizeof(path), "%s/tls.key", version);
	copy_file(cert->key_file, path);
	snprintf(draft, sizeof(draft), "%s/..draft", folder->path);
	snprintf(data, sizeof(data), "%s/..data", folder->path);
	CHECK_INT(symlink(strrchr(version, '/') + 1, draft), 0);
	CHECK_INT(rename(draft, data), 0);
}

static inline void folder_open(struct folder *folder, const struct cert *cert)
{
	memset(folder, 0, sizeof(*folder));
	snprintf(folder->path, sizeof(folder->path), "/tmp/httpd_tls.XXXXXX");
	CHECK(mkdtemp(folder->path) != NULL);
	snprintf(folder->cert_file, sizeof(folder->cert_file), "%s/tls.crt", folder->path);
	snprintf(folder->key_file, sizeof(folder->key_file), "%s/tls.key", folder->path);
	folder_fill(folder, cert);
	CHECK_INT(symlink("..data/tls.crt", folder->cert_file), 0);
	CHECK_INT(symlink("..data/tls.key", folder->key_file), 0);
}

static inline void folder_close(const struct folder *folder)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r '%s'", folder->path);
	CHECK_INT(system(command), 0); /* NOLINT(cert-env33-c): a test's own folder */
}

#endif
