/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.h - Kubernetes objects from files.
 *
 * YAML or JSON, many documents a file, Lists taken apart.  Any kind may be there;
 * which ones mean something is the reader's business, who also says where the object is
 * (manifest_prefix) when he finds something wrong with it.  The objects live as long as
 * the list.
 */
#ifndef GS_SIM_MANIFEST_H
#define GS_SIM_MANIFEST_H

#include <stddef.h>

#include "base/vec.h"

struct err;
struct json;
struct json_doc;

#define MANIFEST_FILE_MAX ((size_t)64 << 20)

struct manifest {
	const char *kind, *namespace, *name; /* namespace "" for kinds without one */
	const struct json *object;
	const char *file; /* NULL: from no file */
	size_t line;	  /* of its document */
};

struct manifests {
	VEC(struct manifest) items;
	VEC(char *) files;
	VEC(struct json_doc *) docs;
};

/* Both append; on error the list is as it was.  The error names the file, and the line
 * of the document.  0, -EINVAL, -ENOMEM, or why the file cannot be read; a file without
 * any object is -EINVAL. */
int manifests_read(struct manifests *m, const char *path, struct err *err);
int manifests_parse(struct manifests *m, const char *name, const char *text, size_t len,
		    struct err *err);

/* Appends one object, or the items of a List; it is borrowed. */
int manifests_add(struct manifests *m, const struct json *object, struct err *err);

/* Puts "file:line: " before an error about the object, if it came from a file. */
void manifest_prefix(const struct manifest *m, struct err *err);

void manifests_done(struct manifests *m);

#endif
