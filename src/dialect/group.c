/* SPDX-License-Identifier: Apache-2.0 */
/* group.c - which gang the pod belongs to, and how many make it whole.
 *
 * A gang is named by spec.schedulingGroup, by the label of the co-scheduling plugin or
 * by the claim's gangRef; a Job that speaks the topology dialect is one by itself.
 * Its size is that of the PodGroup of that name; else gangMinMembers; else what the
 * owner runs at a time.  Of a Job, pods that have succeeded make it smaller.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "dialect/draft.h"
#include "dialect/keys.h"
#include "dialect/owner.h"
#include "wire/json.h"

static int agree(const char **name, const char **said_by, const char *more, const char *by,
		 struct err *err)
{
	if (!more || !*more)
		return 0;
	if (*name && strcmp(*name, more) != 0)
		return err_set(err, EINVAL, "%s puts the pod into gang %s, but %s into gang %s",
			       *said_by, *name, by, more);
	if (!*name)
		*said_by = by;
	*name = more;
	return 0;
}

static int gang_name(const struct draft *d, const char **ret, struct err *err)
{
	const struct json *object = d->source->object;
	const char *said_by = NULL;
	int rc;

	if ((rc = agree(ret, &said_by, json_str(object, "spec", "schedulingGroup", "podGroupName"),
			"schedulingGroup", err)) < 0 ||
	    (rc = agree(ret, &said_by, json_str(object, "metadata", "labels", KEY_POD_GROUP),
			"label " KEY_POD_GROUP, err)) < 0)
		return rc;
	return agree(ret, &said_by, d->gang_ref, "the claim's gangRef", err);
}

/* The PodGroup's own number; -ENOENT if it says none.  0 members: not a gang. */
static int group_size(const struct json *group, const char *name, int64_t *ret, struct err *err)
{
	int rc = json_i64(group, ret, "spec", "minMember");

	if (json_get(group, "spec", "schedulingPolicy", "basic")) {
		*ret = 0;
		return 0;
	}
	if (rc == -ENOENT)
		rc = json_i64(group, ret, "spec", "schedulingPolicy", "gang", "minCount");
	if (rc == -EINVAL || (rc == 0 && (*ret < 1 || *ret > INT32_MAX)))
		return err_set(err, EINVAL,
			       "PodGroup %s: its size must be a whole number, 1 or "
			       "more",
			       name);
	return rc;
}

/* Those that have done their part are not waited for. */
static int members_left(const struct json *owner, int64_t *members, struct err *err)
{
	return owner ? owner_left(owner, *members, members, err) : 0;
}

/* The nearest owner that says how many pods it runs. */
static const struct json *sized_owner(const struct draft *d)
{
	for (uint32_t i = 0; i < d->source->owners_count; i++)
		if (owner_is_known(d->source->owners[i]))
			return d->source->owners[i];
	return NULL;
}

static int gang_size(const struct draft *d, const char *name, int64_t *ret, struct err *err)
{
	const struct json *group =
		d->lookup->find(d->lookup->context, "PodGroup", d->source->namespace, name);
	const struct json *owner = sized_owner(d);
	int rc = group ? group_size(group, name, ret, err) : -ENOENT;
	if (rc != -ENOENT)
		return rc;
	*ret = d->gang_min_members;
	if (*ret)
		return 0;
	if (owner)
		return owner_size(owner, ret, err);
	if (!d->source->owners_count)
		return err_set(err, ENOENT,
			       "the size of gang %s is not known: there is no PodGroup %s, no "
			       "gangMinMembers and no owner",
			       name, name);
	return err_set(err, ENOENT,
		       "the size of gang %s is not known: there is no PodGroup %s, no "
		       "gangMinMembers and no owner that is a Job, Deployment, ReplicaSet or "
		       "StatefulSet",
		       name, name);
}

static int set_gang(struct draft *d, const char *prefix, const char *name, int64_t members,
		    struct err *err)
{
	struct wish_gang *gang = &d->wish->gang;

	if (members <= 1)
		return 0;
	gang->members = (uint32_t)members;
	gang->leaves = d->leaves_required ? LEAVES_REQUIRED : LEAVES_PREFERRED;
	gang->name = draft_printf(d, "%s/%s%s", d->source->namespace, prefix, name);
	return gang->name ? 0 : err_set(err, ENOMEM, "out of memory");
}

/* A gang without a name would start with its first pod. */
static int check_alone(const struct draft *d, struct err *err)
{
	if (d->gang_min_members <= 1)
		return 0;
	return err_set(err, EINVAL,
		       "GpuClaim %s: gangMinMembers is %" PRId64
		       ", but the pod is in no gang: give "
		       "the claim a gangRef",
		       draft_annotation(d, KEY_CLAIM), d->gang_min_members);
}

int read_gang(struct draft *d, struct err *err)
{
	const struct json *owner = d->source->owners_count ? d->source->owners[0] : NULL;
	const char *name = NULL;
	int64_t members = 0;
	int rc = gang_name(d, &name, err);

	if (rc < 0)
		return rc;
	if (name) {
		rc = gang_size(d, name, &members, err);
		if (rc == 0)
			rc = members_left(sized_owner(d), &members, err);
		return rc < 0 ? rc : set_gang(d, "", name, members, err);
	}
	name = json_str(owner, "metadata", "name");
	if (!d->topology || !name || !owner_is(owner, "Job"))
		return check_alone(d, err);
	rc = owner_size(owner, &members, err);
	if (rc == 0)
		rc = members_left(owner, &members, err);
	return rc < 0 ? rc : set_gang(d, "job/", name, members, err);
}
