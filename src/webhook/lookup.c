/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/lookup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/vec.h"
#include "dialect/dialect.h"
#include "kube/cache.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "kube/ready.h"
#include "wire/json.h"

#define KINDS_MAX 8

/* For people whose account may not read these. */
#define RIGHTS                                                     \
	"deploy/webhook/optional/reader.yaml gives these rights, " \
	"to the account webhook of namespace gpu-scheduler"

struct webhook_lookup {
	struct dialect_lookup dialect;
	struct kube_caches *caches;
	struct kube_cache *shelves[KINDS_MAX];
	size_t count;
	VEC(struct json_doc *) docs; /* found since the last reset */
};

static const struct kube_object *get(const struct webhook_lookup *lookup, const char *kind,
				     const char *namespace, const char *name)
{
	for (size_t i = 0; i < lookup->count; i++)
		if (strcmp(kube_cache_kind(lookup->shelves[i])->kind, kind) == 0)
			return kube_cache_get(lookup->shelves[i], namespace, name);
	return NULL;
}

static const struct json *find(void *context, const char *kind, const char *namespace,
			       const char *name)
{
	struct webhook_lookup *lookup = context;
	const struct kube_object *object = get(lookup, kind, namespace, name);
	struct json_doc *doc = NULL;

	if (!object || vec_reserve(&lookup->docs, lookup->docs.len + 1) < 0 ||
	    kube_object_parse(object, &doc) < 0)
		return NULL;
	lookup->docs.items[lookup->docs.len++] = doc;
	return json_root(doc);
}

/* Reviews ask for no index: which one a pod gets is decided when it is placed. */
static bool index_taken(void *context, const char *workload, uint32_t index)
{
	(void)context;
	(void)workload;
	(void)index;
	return false;
}

static int add(struct webhook_lookup *lookup, const struct webhook_lookup_options *options,
	       enum kube_kind_id kind, struct err *err)
{
	const struct kube_cache_options cache = { .kind = &kube_kinds[kind],
						  .hint = RIGHTS,
						  .log = options->log };
	int rc = kube_caches_add(lookup->caches, &cache, &lookup->shelves[lookup->count], err);

	if (rc == 0)
		lookup->count++;
	return rc;
}

static int add_all(struct webhook_lookup *lookup, const struct webhook_lookup_options *options,
		   struct err *err)
{
	static const enum kube_kind_id owners[] = { KUBE_JOB, KUBE_REPLICA_SET, KUBE_DEPLOYMENT,
						    KUBE_STATEFUL_SET };
	int rc = options->claims ? add(lookup, options, KUBE_GPU_CLAIM, err) : 0;

	for (unsigned i = 0; options->owners && i < ARRAY_SIZE(owners) && rc == 0; i++)
		rc = add(lookup, options, owners[i], err);
	return rc;
}

int webhook_lookup_new(const struct webhook_lookup_options *options, struct webhook_lookup **ret,
		       struct err *err)
{
	struct webhook_lookup *lookup = calloc(1, sizeof(*lookup));

	if (lookup)
		lookup->caches = kube_caches_new(options->client);
	if (!lookup || !lookup->caches) {
		webhook_lookup_free(lookup);
		return err_set(err, ENOMEM, "out of memory");
	}
	lookup->dialect = (struct dialect_lookup){ .context = lookup,
						   .find = find,
						   .index_taken = index_taken };
	int rc = add_all(lookup, options, err);
	if (rc < 0) {
		webhook_lookup_free(lookup);
		return rc;
	}
	*ret = lookup;
	return 0;
}

void webhook_lookup_free(struct webhook_lookup *lookup)
{
	if (!lookup)
		return;
	webhook_lookup_reset(lookup);
	vec_done(&lookup->docs);
	kube_caches_free(lookup->caches);
	free(lookup);
}

const struct dialect_lookup *webhook_lookup_dialect(struct webhook_lookup *lookup)
{
	return &lookup->dialect;
}

void webhook_lookup_reset(struct webhook_lookup *lookup)
{
	for (size_t i = 0; i < lookup->docs.len; i++)
		json_doc_free(lookup->docs.items[i]);
	lookup->docs.len = 0;
}

void webhook_lookup_measure(const struct webhook_lookup *lookup)
{
	kube_caches_measure(lookup->caches);
}

bool webhook_lookup_ready(const struct webhook_lookup *lookup, struct strbuf *why)
{
	if (kube_caches_synced(lookup->caches))
		return true;
	kube_caches_ready(lookup->caches, why);
	return false;
}
