/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/dialect.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"
#include "dialect/draft.h"
#include "engine/rules.h"
#include "engine/soft.h"
#include "wire/json.h"

/* Classes that every cluster has. */
static const struct {
	const char *name;
	int32_t priority;
} built_in[] = {
	{ "system-cluster-critical", 2000000000 },
	{ "system-node-critical", 2000001000 },
};

static int class_priority(const struct draft *d, const char *name, int64_t *ret, bool *preempts,
			  struct err *err)
{
	const struct json *class = d->lookup->find(d->lookup->context, "PriorityClass", "", name);
	const char *policy = json_str(class, "preemptionPolicy");

	for (unsigned i = 0; i < ARRAY_SIZE(built_in); i++) {
		if (strcmp(built_in[i].name, name) == 0) {
			*ret = built_in[i].priority;
			return 0;
		}
	}
	if (!class)
		return err_set(err, ENOENT, "PriorityClass %s does not exist", name);
	if (json_i64(class, ret, "value") < 0)
		return err_set(err, EINVAL, "PriorityClass %s has no value", name);
	if (policy && strcmp(policy, "Never") == 0)
		*preempts = false;
	return 0;
}

static int read_priority(struct draft *d, struct err *err)
{
	const struct json *spec = json_get(d->source->object, "spec");
	const char *class = json_str(spec, "priorityClassName");
	const char *policy = json_str(spec, "preemptionPolicy");
	int64_t priority = 0;
	int rc = json_i64(spec, &priority, "priority");

	d->wish->preempts = true;
	if (rc == -EINVAL)
		return err_set(err, EINVAL, "spec.priority is no whole number");
	if (rc == -ENOENT && class && *class &&
	    (rc = class_priority(d, class, &priority, &d->wish->preempts, err)) < 0)
		return rc;
	if (priority < INT32_MIN || priority > INT32_MAX)
		return err_set(err, EINVAL, "the priority %lld is out of range",
			       (long long)priority);
	if (policy)
		d->wish->preempts = strcmp(policy, "Never") != 0;
	d->wish->priority = (int32_t)priority;
	return 0;
}

int read_facts(struct draft *d, struct err *err)
{
	const struct pod_source *s = d->source;
	const char *scheduler = json_str(s->object, "spec", "schedulerName");
	struct wish *w = d->wish;

	if (json_type(s->object, "spec") != JSON_OBJECT)
		return err_set(err, EINVAL, "the pod has no spec");
	w->namespace = draft_printf(d, "%s", s->namespace);
	w->name = draft_printf(d, "%s", s->name);
	w->uid = draft_printf(d, "%s", s->uid);
	w->scheduler = draft_printf(d, "%s", scheduler ? scheduler : "");
	if (!w->namespace || !w->name || !w->uid || !w->scheduler)
		return err_set(err, ENOMEM, "out of memory");
	return read_priority(d, err);
}

/* What the pod asks for, and how many there are of it, may be written on an owner that we have
 * not heard of yet: without it the pod would be taken for one that asks for nothing. */
static int read_owners(struct draft *d, struct err *err)
{
	const struct pod_source *s = d->source;
	const struct json *above = s->owners_count ? s->owners[s->owners_count - 1] : NULL;
	const char *kind = json_str(s->owner_missing, "kind");
	const char *name = json_str(s->owner_missing, "name");

	if (!s->owner_missing)
		return 0;
	const char *other = d->lookup->find(d->lookup->context, kind, s->namespace, name)
				    ? ", only another one of that name"
				    : "";
	if (!above)
		return err_set(err, ESRCH,
			       "its %s %s/%s is not there (yet)%s: if it was deleted, delete the "
			       "pod, or remove it from the pod's metadata.ownerReferences",
			       kind, s->namespace, name, other);
	return err_set(err, ESRCH,
		       "%s %s/%s, which owns its %s %s, is not there (yet)%s: if it was deleted, "
		       "remove it from metadata.ownerReferences of that %s",
		       kind, s->namespace, name, json_str(above, "kind"),
		       json_str(above, "metadata", "name"), other, json_str(above, "kind"));
}

void draft_make_plain(char *text)
{
	size_t left = strlen(text);

	while (left) {
		size_t length = utf8_length(text, left);
		unsigned char c = (unsigned char)*text;

		/* 0xc2 0x80..0x9f are control characters too. */
		if (length == 0 || c < ' ' || c == 0x7f)
			*text = '?';
		else if (c == 0xc2 && (unsigned char)text[1] < 0xa0)
			memset(text, '?', length);
		text += MAX(length, (size_t)1);
		left -= MAX(length, (size_t)1);
	}
}

int dialect_read(struct cluster *cluster, const struct dialect_lookup *lookup,
		 const struct pod_source *source, struct arena *arena, struct wish *ret,
		 struct err *err)
{
	static int (*const readers[])(struct draft * d, struct err * err) = {
		read_facts,  read_form,	 read_owners,	read_needs, read_place, read_around,
		read_limits, read_claim, read_topology, read_map,   read_gang,
	};
	struct draft d = { .cluster = cluster,
			   .lookup = lookup,
			   .source = source,
			   .arena = arena,
			   .wish = ret,
			   .request = &ret->request };
	int rc = 0;

	memset(ret, 0, sizeof(*ret));
	request_init(&ret->request);
	ret->index = WISH_INDEX_NONE;
	for (unsigned i = 0; i < ARRAY_SIZE(readers) && rc == 0; i++)
		rc = readers[i](&d, err);
	if (rc < 0)
		wish_release(cluster, ret);
	if (rc < 0 && err)
		draft_make_plain(err->text);
	return rc;
}

void wish_release(struct cluster *cluster, struct wish *wish)
{
	subject_release(cluster, wish->request.subject);
	rules_release(cluster, wish->request.rules);
	soft_release(cluster, wish->request.soft);
	wish->request.subject = 0;
	wish->request.rules = 0;
	wish->request.soft = 0;
}
