/* SPDX-License-Identifier: Apache-2.0 */
/* replay CORPUS - run the fuzz target that this is linked with over every file of a
 * folder.  Says how many as one test in TAP; none at all is a failure. */
#include "fuzz.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "wire/file.h"

#include <dirent.h>
#include <string.h>

#define INPUT_MAX ((size_t)64 << 20)

static bool replay(const char *folder, const char *name)
{
	struct err err = ERR_INIT;
	struct strbuf path CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf input CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_addf(&path, "%s/%s", folder, name);
	if (file_read(path.s, INPUT_MAX, &input, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return false;
	}
	printf("# %s\n", name); /* the last one named is the one that crashed */
	fflush(stdout);
	uint8_t *exact =
		malloc(input.len + 1); /* without room behind it for a sanitizer to miss */
	if (!exact)
		return false;
	uint8_t *data = exact + 1;
	memcpy(data, input.s, input.len);
	LLVMFuzzerTestOneInput(data, input.len);
	free(exact);
	return true;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: replay CORPUS\n");
		return 2;
	}
	DIR *folder = opendir(argv[1]);
	size_t count = 0, failed = 0;
	struct dirent *entry;
	/* cppcheck-suppress readdirCalled ; glibc's is safe, and there is one thread */
	while (folder && (entry = readdir(folder))) {
		if (entry->d_name[0] == '.')
			continue;
		if (replay(argv[1], entry->d_name))
			count++;
		else
			failed++;
	}
	if (folder)
		closedir(folder);
	bool fine = count > 0 && failed == 0;
	printf("1..1\n%s 1 - replayed %zu inputs\n", fine ? "ok" : "not ok", count);
	return fine ? 0 : 1;
}
