/* SPDX-License-Identifier: Apache-2.0 */
/* kube_files.h - a folder of files for a test, gone with it, and an environment.
 *
 *	struct files files CLEANUP(files_done);
 *	files_init(&files);
 *	files_write(&files, "token", "abc");
 *	load(files_path(&files, "token"));
 */
#ifndef GS_TESTS_UNIT_KUBE_FILES_H
#define GS_TESTS_UNIT_KUBE_FILES_H

#include "test.h"

#include "base/arena.h"
#include "base/attr.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

struct files {
	char folder[64];
	struct arena arena; /* of paths */
	const char *env[8][2];
	size_t env_count;
};

static inline void files_init(struct files *files)
{
	*files = (struct files){ .folder = "/tmp/kube_test.XXXXXX" };
	arena_init(&files->arena, 1 << 20);
	CHECK(mkdtemp(files->folder) != NULL);
}

static inline int files_remove(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st, (void)flag, (void)at;
	return remove(path);
}

static inline void files_done(struct files *files)
{
	nftw(files->folder, files_remove, 8, FTW_DEPTH | FTW_PHYS);
	arena_done(&files->arena);
}

static inline const char *files_path(struct files *files, const char *name)
{
	char path[512];
	int n = snprintf(path, sizeof(path), "%s/%s", files->folder, name);
	return arena_strndup(&files->arena, path, (size_t)n);
}

/* Replaces the file as a whole, by rename, as careful programs do. */
static inline const char *files_write(struct files *files, const char *name, const char *text)
{
	const char *path = files_path(files, name), *fresh = files_path(files, "fresh~");
	FILE *file = fopen(fresh, "w");
	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
	CHECK(rename(fresh, path) == 0);
	return path;
}

static inline const char *files_folder(struct files *files, const char *name)
{
	const char *path = files_path(files, name);
	CHECK(mkdir(path, 0700) == 0);
	return path;
}

/* A program for sh. */
static inline const char *files_script(struct files *files, const char *name, const char *text)
{
	char script[8192];
	snprintf(script, sizeof(script), "#!/bin/sh\n%s", text);
	const char *path = files_write(files, name, script);
	CHECK(chmod(path, 0700) == 0);
	return path;
}

static inline void files_setenv(struct files *files, const char *name, const char *value)
{
	CHECK(files->env_count < ARRAY_SIZE(files->env));
	files->env[files->env_count][0] = name;
	files->env[files->env_count++][1] = value;
}

static inline const char *files_getenv(void *files, const char *name)
{
	const struct files *of = files;
	for (size_t i = of->env_count; i-- > 0;)
		if (strcmp(of->env[i][0], name) == 0)
			return of->env[i][1];
	return NULL;
}

#endif
