/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/description.h"

#include <errno.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "sim/manifest.h"
#include "wire/file.h"
#include "wire/yaml.h"

int description_parse(const char *name, const char *what, const char *text, size_t len,
		      struct yaml *ret, struct err *err)
{
	int rc = yaml_parse(name, text, len, NULL, ret, err);

	if (rc < 0 || ret->len == 1)
		return rc;
	return err_set(err, EINVAL, "%s: %s is one document, this file has %zu", name, what,
		       ret->len);
}

int description_read(const char *path, const char *what, struct yaml *ret, struct err *err)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT_MAX(MANIFEST_FILE_MAX);
	int rc = file_read(path, MANIFEST_FILE_MAX, &text, err);

	return rc < 0 ? rc : description_parse(path, what, text.s, text.len, ret, err);
}

void description_done(struct yaml *yaml)
{
	yaml_done(yaml);
}
