/* SPDX-License-Identifier: Apache-2.0 */
/* topology.c - the topology dialect: annotations about the fabric, on the pod or on what
 * owns it.
 *
 * The number of GPUs is a total on a Job, to be divided among the pods that run at a
 * time, and a number per pod everywhere else.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/num.h"
#include "dialect/draft.h"
#include "dialect/keys.h"
#include "dialect/owner.h"
#include "engine/cluster.h"
#include "wire/json.h"

/* The annotation, of the pod or of the nearest owner that has it (*owner, else NULL). */
static const char *inherited(struct draft *d, const char *key, const struct json **owner)
{
	const char *value = draft_annotation(d, key);

	*owner = NULL;
	for (uint32_t i = 0; !value && i < d->source->owners_count; i++) {
		*owner = d->source->owners[i];
		value = json_str(*owner, "metadata", "annotations", key);
	}
	d->topology |= value != NULL;
	return value;
}

static int divide(const struct json *owner, uint32_t total, uint32_t *ret, struct err *err)
{
	int64_t pods;
	int rc = owner_size(owner, &pods, err);

	if (rc < 0)
		return rc;
	if (pods < 1 || total % pods != 0)
		return err_set(err, EINVAL,
			       KEY_GPU_COUNT " of the Job is %u, which does not divide "
					     "evenly among %lld pods",
			       total, (long long)pods);
	*ret = (uint32_t)(total / pods);
	return 0;
}

/* GPUs of this pod; 0 if nothing is said. */
static int count_of(struct draft *d, uint32_t *ret, struct err *err)
{
	const struct json *owner;
	const char *text = inherited(d, KEY_GPU_COUNT, &owner);
	uint32_t count;
	int rc = 0;

	*ret = 0;
	if (!text)
		return 0;
	if (parse_u32(text, strlen(text), &count) < 0 || count == 0)
		return err_set(err, EINVAL,
			       KEY_GPU_COUNT " is \"%.40s\", it must be a whole number, "
					     "1 or more",
			       text);
	if (owner && owner_is(owner, "Job"))
		rc = divide(owner, count, &count, err);
	if (rc == 0 && count > GPU_MAX)
		return err_set(err, EINVAL,
			       KEY_GPU_COUNT " comes to %u GPUs a pod, no node has more "
					     "than %d",
			       count, GPU_MAX);
	*ret = count;
	return rc;
}

static int read_count(struct draft *d, struct err *err)
{
	uint32_t count;
	int rc = count_of(d, &count, err);

	if (rc < 0 || count == 0)
		return rc;
	if (!d->asked_by) {
		d->asked_by = KEY_GPU_COUNT;
		return draft_ask_for_all(d, ASK_WHOLE, (uint8_t)count, err) ? 0 : -EINVAL;
	}
	enum ask_kind other = draft_other_kind(d, ASK_WHOLE);
	if (other)
		return err_set(err, EINVAL, KEY_GPU_COUNT " asks for whole GPUs, but %s for %s",
			       d->asked_by, draft_kind_name(other));
	if (draft_cards(d) != count)
		return err_set(err, EINVAL,
			       KEY_GPU_COUNT " comes to %u GPUs a pod, but %s %s for %u", count,
			       d->asked_by, draft_ask_verb(d), draft_cards(d));
	return 0;
}

static int read_strategy(struct draft *d, struct err *err)
{
	static const char *const words[] = {
		[STRATEGY_CONSOLIDATED] = "consolidated",
		[STRATEGY_DISTRIBUTED] = "distributed",
		[STRATEGY_BALANCED] = "balanced",
	};
	const struct json *owner;
	const char *text = inherited(d, KEY_STRATEGY, &owner);

	for (uint8_t i = 0; text && i < ARRAY_SIZE(words); i++) {
		if (strcasecmp(words[i], text) == 0) {
			d->request->strategy = i;
			return 0;
		}
	}
	if (!text)
		return 0;
	return err_set(err, EINVAL,
		       KEY_STRATEGY " is \"%.40s\", which is none of consolidated, "
				    "distributed or balanced",
		       text);
}

int dialect_parse_bandwidth(const char *text, uint32_t *ret)
{
	static const char *const units[] = { "", "G", "Gb", "Gbps", "Gbit/s", "Gb/s" };
	size_t digits = strspn(text, "0123456789");
	const char *unit = text + digits + strspn(text + digits, " ");

	for (unsigned i = 0; i < ARRAY_SIZE(units); i++)
		if (strcasecmp(units[i], unit) == 0)
			return parse_u32(text, digits, ret) < 0 ? -EINVAL : 0;
	return -EINVAL;
}

static int read_bandwidth(struct draft *d, struct err *err)
{
	const struct json *owner;
	const char *text = inherited(d, KEY_NETWORK_BANDWIDTH, &owner);

	if (!text || dialect_parse_bandwidth(text, &d->request->min_network_gbps) == 0)
		return 0;
	return err_set(err, EINVAL,
		       KEY_NETWORK_BANDWIDTH " is \"%.40s\", it must be a number of "
					     "Gbit/s such as 100 or 100Gbps",
		       text);
}

static int read_latency(struct draft *d, struct err *err)
{
	const struct json *owner;
	const char *text = inherited(d, KEY_LATENCY_SENSITIVE, &owner);

	if (!text)
		return 0;
	if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return err_set(err, EINVAL,
			       KEY_LATENCY_SENSITIVE " is \"%.40s\", it must be true or "
						     "false",
			       text);
	d->request->latency_sensitive = strcmp(text, "true") == 0;
	return 0;
}

/* A domain by its name, or by its path with slashes where names repeat. */
static int read_domain(struct draft *d, struct err *err)
{
	const struct json *owner;
	const char *text = inherited(d, KEY_PREFERRED_DOMAIN, &owner);
	const char *path[DOMAIN_LEVELS_MAX];
	uint32_t n = 0;

	if (!text || !*text)
		return 0;
	char *copy = draft_printf(d, "%s", text);
	if (!copy)
		return err_set(err, ENOMEM, "out of memory");
	for (char *part; n < DOMAIN_LEVELS_MAX && (part = strsep(&copy, "/"));)
		path[n++] = part;
	/* One that does not exist is a preference that nothing meets. */
	d->request->prefer_domain = n == 1 ? cluster_domain_named(d->cluster, text)
					   : cluster_domain_find(d->cluster, path, n);
	return 0;
}

int read_topology(struct draft *d, struct err *err)
{
	int rc;

	if ((rc = read_count(d, err)) < 0 || (rc = read_strategy(d, err)) < 0 ||
	    (rc = read_bandwidth(d, err)) < 0 || (rc = read_latency(d, err)) < 0)
		return rc;
	rc = read_domain(d, err);
	d->leaves_required |= d->topology;
	return rc;
}
