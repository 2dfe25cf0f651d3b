/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/decided.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "dialect/annotations.h"
#include "dialect/keys.h"
#include "engine/mig.h"
#include "engine/request.h"
#include "wire/json.h"

static int no_memory(struct err *err)
{
	return err_set(err, ENOMEM, "out of memory");
}

static int wrong(const char *what, struct err *err)
{
	return err_set(err, EINVAL, KEY_DECISION ": %s", what);
}

/* A number of that field from 0 to max; `otherwise` if it is not there. */
static int number_of(const struct json *object, const char *field, int64_t max, int64_t otherwise,
		     int64_t *ret, struct err *err)
{
	int rc = json_i64(object, ret, field);

	if (rc == -ENOENT)
		*ret = otherwise;
	if (rc == -EINVAL || *ret < 0 || *ret > max)
		return err_set(err, EINVAL, KEY_DECISION ": %s is out of range", field);
	return 0;
}

/* A copy that outlives the document. */
static int string_of(const struct json *object, const char *field, struct arena *arena,
		     const char **ret, struct err *err)
{
	const char *text = json_str(object, field);

	if (!text || !*text)
		return err_set(err, EINVAL, KEY_DECISION ": %s is missing", field);
	*ret = arena_strndup(arena, text, strlen(text));
	return *ret ? 0 : no_memory(err);
}

static int read_slice(const struct json *mig, struct arena *arena, struct decided_hold *ret,
		      struct err *err)
{
	int64_t start;
	int rc = string_of(mig, "profile", arena, &ret->mig_profile, err);

	if (rc == 0)
		rc = number_of(mig, "start", MIG_SLICES_MAX - 1, -1, &start, err);
	if (rc == 0)
		ret->mig_start = (uint8_t)start;
	return rc;
}

static int read_hold(const struct json *gpu, struct arena *arena, struct decided_hold *ret,
		     struct err *err)
{
	const struct json *mig = json_get(gpu, "mig");
	int64_t core = 0, mem = 0, ask = 0;
	int rc = string_of(gpu, "uuid", arena, &ret->uuid, err);

	if (rc < 0 || (rc = number_of(gpu, "ask", ASK_MAX - 1, 0, &ask, err)) < 0)
		return rc;
	ret->ask = (uint8_t)ask;
	if (mig)
		return read_slice(mig, arena, ret, err);
	if ((rc = number_of(gpu, "coreMilli", CORE_WHOLE, -1, &core, err)) < 0 ||
	    (rc = number_of(gpu, "memoryMiB", UINT32_MAX, -1, &mem, err)) < 0)
		return rc;
	ret->core_milli = (uint16_t)core;
	ret->mem_mib = (uint32_t)mem;
	return 0;
}

static int read_holds(const struct json *gpus, struct arena *arena, struct decided *ret,
		      struct err *err)
{
	size_t count = json_len(gpus);
	struct decided_hold *holds;
	struct json_iter iter = json_items(gpus);
	const struct json *gpu;
	int rc = 0;

	if (json_type(gpus) != JSON_ARRAY || count > DECIDED_HOLDS_MAX)
		return wrong("gpus is no list of at most 256", err);
	holds = arena_array(arena, count + 1, sizeof(*holds));
	if (!holds)
		return no_memory(err);
	for (ret->holds_count = 0; rc == 0 && (gpu = json_next(&iter)); ret->holds_count++)
		rc = read_hold(gpu, arena, &holds[ret->holds_count], err);
	ret->holds = holds;
	return rc;
}

/* A copy of a decision is none: manifests are made from pods that run. */
static bool is_of_another(const struct json *decision, const struct json *pod)
{
	const char *theirs = json_str(decision, "pod"), *uid = json_str(pod, "metadata", "uid");

	return theirs && (!uid || strcmp(theirs, uid) != 0);
}

static int read_all(const struct json *decision, const struct json *pod, struct arena *arena,
		    struct decided *ret, struct err *err)
{
	const char *node = json_str(pod, "spec", "nodeName");
	int64_t attempt, index;
	int rc = string_of(decision, "node", arena, &ret->node, err);

	if (rc < 0)
		return rc;
	if (!node || strcmp(ret->node, node) != 0)
		return wrong("was made for another node", err);
	if (is_of_another(decision, pod))
		return wrong("was made for another pod", err);
	if ((rc = number_of(decision, "attempt", UINT32_MAX, 0, &attempt, err)) < 0 ||
	    (rc = number_of(decision, "index", UINT32_MAX, DECIDED_INDEX_NONE, &index, err)) < 0)
		return rc;
	if (!attempt)
		return wrong("attempt is missing", err);
	ret->attempt = (uint32_t)attempt;
	ret->index = (uint32_t)index;
	return read_holds(json_get(decision, "gpus"), arena, ret, err);
}

int decided_read(const struct json *pod, struct arena *arena, struct decided *ret, struct err *err)
{
	const char *text = json_str(pod, "metadata", "annotations", KEY_DECISION);
	const struct json_limits limits = { .max_bytes = ANNOTATIONS_BYTES_ALL };
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	int rc;

	if (!text)
		return err_set(err, ENOENT, "the pod has no " KEY_DECISION);
	*ret = (struct decided){ .index = DECIDED_INDEX_NONE };
	rc = json_parse(KEY_DECISION, text, strlen(text), &limits, &doc, err);
	if (rc < 0)
		return rc == -ENOMEM ? rc : -EINVAL;
	return read_all(json_root(doc), pod, arena, ret, err);
}
