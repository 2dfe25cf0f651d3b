/* SPDX-License-Identifier: Apache-2.0 */
/* claim.c - the claim dialect: a GpuClaim that the pod names in an annotation.
 *
 * The claim says what each pod that names it gets.  With limits it speaks of the same
 * GPUs and refines how they are chosen; without, its GPUs are for every container.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "dialect/claim.h"
#include "dialect/draft.h"
#include "dialect/keys.h"
#include "dialect/pack.h"
#include "engine/cluster.h"
#include "engine/pick.h"
#include "wire/json.h"

#define PORTS_MAX 1024 /* RDMA ports that a claim may ask for */

/* The claim's spec, read and checked. */
struct claim {
	const char *name;
	const struct json *spec;
	int64_t count; /* 0: not given */
	enum ask_kind kind;
	enum pick_policy policy;
	enum pick_mode mode;
	int64_t min_gbps, core, mem_mib;
	const char *profile; /* "" unless MIG */
	uint8_t prefer[GPU_MAX];
	uint8_t prefer_count;
	bool rdma, cufile;
	int64_t ports;
	const char *gang;	  /* NULL: none */
	int64_t gang_min_members; /* 0: not given */
};

/* What is there, and not null, is of that type. */
static int check_type(const struct claim *c, const char *part, const char *field,
		      enum json_type wanted, const char *name, struct err *err)
{
	enum json_type type = json_type(c->spec, part, field);

	if (type == JSON_NONE || type == JSON_NULL || type == wanted)
		return 0;
	return err_set(err, EINVAL, "GpuClaim %s: %s.%s is no %s", c->name, part, field, name);
}

/* A word of a fixed list: its index; 0 if it is not there. */
static int word_of(const struct claim *c, const char *part, const char *field,
		   const char *const *words, int *ret, struct err *err)
{
	const char *word = json_str(c->spec, part, field);
	char list[128] = "";
	int rc = check_type(c, part, field, JSON_STRING, "word", err);

	*ret = 0;
	if (rc < 0 || !word)
		return rc;
	for (int i = 0; words[i]; i++) {
		if (strcmp(words[i], word) == 0) {
			*ret = i;
			return 0;
		}
		strncat(list, i ? (words[i + 1] ? ", " : " or ") : "",
			sizeof(list) - strlen(list) - 1);
		strncat(list, words[i], sizeof(list) - strlen(list) - 1);
	}
	return err_set(err, EINVAL, "GpuClaim %s: %s.%s is \"%s\", which is none of %s", c->name,
		       part, field, word, list);
}

/* A whole number from min to max; 0 if it is not there. */
static int number_of(const struct claim *c, const char *part, const char *field, int64_t min,
		     int64_t max, int64_t *ret, struct err *err)
{
	int rc = json_i64(c->spec, ret, part, field);

	if (rc == -ENOENT) {
		*ret = 0;
		return 0;
	}
	if (rc < 0)
		return err_set(err, EINVAL, "GpuClaim %s: %s.%s is no whole number", c->name, part,
			       field);
	if (*ret < min || *ret > max)
		return err_set(err, EINVAL,
			       "GpuClaim %s: %s.%s is %lld, it must be from %lld to "
			       "%lld",
			       c->name, part, field, (long long)*ret, (long long)min,
			       (long long)max);
	return 0;
}

static int read_prefer(struct claim *c, struct err *err)
{
	struct json_iter iter = json_items(c->spec, "devices", "preferIds");
	const struct json *item;
	uint32_t seen = 0;
	int rc = check_type(c, "devices", "preferIds", JSON_ARRAY, "list", err);

	if (rc < 0)
		return rc;
	while ((item = json_next(&iter))) {
		int64_t id;

		if (json_i64_path(item, &id, JSON_PATH_END) < 0 || id < 0)
			return err_set(err, EINVAL,
				       "GpuClaim %s: devices.preferIds has an entry "
				       "that is no GPU id",
				       c->name);
		/* Ids that no node has are wishes that nothing can grant. */
		if (id >= GPU_MAX || gpuset_has(seen, (unsigned)id))
			continue;
		seen |= gpuset_one((unsigned)id);
		c->prefer[c->prefer_count++] = (uint8_t)id;
	}
	return 0;
}

static int read_words(struct claim *c, struct err *err)
{
	static const char *const policies[] = { "contiguous", "spread", "preferIds", NULL };
	static const enum pick_policy policy_of[] = { PICK_CONTIGUOUS, PICK_SPREAD, PICK_PREFER };
	static const char *const kinds[] = { "Exclusive", "Shared", "MIG", NULL };
	static const enum ask_kind kind_of[] = { ASK_WHOLE, ASK_SHARE, ASK_MIG };
	static const char *const modes[] = { "Preferred", "Required", "Ignore", NULL };
	static const enum pick_mode mode_of[] = { PICK_PREFERRED, PICK_REQUIRED, PICK_IGNORE };
	int policy, kind, mode, rc;

	if ((rc = word_of(c, "devices", "policy", policies, &policy, err)) < 0 ||
	    (rc = word_of(c, "devices", "exclusivity", kinds, &kind, err)) < 0 ||
	    (rc = word_of(c, "topology", "mode", modes, &mode, err)) < 0)
		return rc;
	c->policy = policy_of[policy];
	c->kind = kind_of[kind];
	c->mode = mode_of[mode];
	return 0;
}

static int read_numbers(struct claim *c, struct err *err)
{
	int rc;

	if ((rc = number_of(c, "devices", "count", 1, GPU_MAX, &c->count, err)) < 0 ||
	    (rc = number_of(c, "devices", "core", 1, 100, &c->core, err)) < 0 ||
	    (rc = number_of(c, "devices", "memoryMiB", 1, UINT32_MAX, &c->mem_mib, err)) < 0)
		return rc;
	return number_of(c, "topology", "minBandwidthGBps", 0, UINT16_MAX, &c->min_gbps, err);
}

/* What goes with which exclusivity. */
static int check_parts(struct claim *c, struct err *err)
{
	const char *profile = json_str(c->spec, "devices", "migProfile");
	int rc = check_type(c, "devices", "migProfile", JSON_STRING, "text", err);

	if (rc < 0)
		return rc;
	c->profile = profile ? profile : "";
	if (c->kind == ASK_MIG && !*c->profile)
		return err_set(err, EINVAL,
			       "GpuClaim %s: exclusivity MIG needs devices.migProfile", c->name);
	if (c->kind != ASK_MIG && *c->profile)
		return err_set(err, EINVAL,
			       "GpuClaim %s: devices.migProfile needs exclusivity MIG", c->name);
	if (strlen(c->profile) >= sizeof(((struct ask *)0)->mig_profile))
		return err_set(err, EINVAL, "GpuClaim %s: \"%s\" is no MIG profile", c->name,
			       c->profile);
	if (c->kind != ASK_SHARE && (c->core || c->mem_mib))
		return err_set(err, EINVAL,
			       "GpuClaim %s: devices.core and devices.memoryMiB need "
			       "exclusivity Shared",
			       c->name);
	if (c->policy == PICK_PREFER && !json_len(c->spec, "devices", "preferIds"))
		return err_set(err, EINVAL,
			       "GpuClaim %s: policy preferIds needs devices.preferIds", c->name);
	return 0;
}

/* Shares of more containers than the claim has cards lie together on them, if they fit. */
static void lay_together(struct draft *d, const struct claim *c)
{
	struct pack_card cards[GPU_MAX];
	unsigned asks = d->request->asks_count, count = (unsigned)c->count;
	int card_of[ASK_MAX] = { 0 };

	for (unsigned i = 0; i < count; i++)
		cards[i] = (struct pack_card){
			.core_milli = c->core ? (uint32_t)c->core * 10 : CORE_WHOLE,
			.mem_mib = c->mem_mib ? (uint32_t)c->mem_mib : UINT32_MAX,
		};
	for (unsigned i = 0; i < asks; i++) {
		card_of[i] = pack_share(cards, count, &d->request->asks[i]);
		if (card_of[i] < 0)
			return;
	}
	/* The first shares have a card each, in their order; the others join them. */
	for (unsigned i = asks; i-- > count;)
		draft_merge_last(d, (unsigned)card_of[i]);
}

/* Limits are there too: they must ask for the same. */
static int check_limits(struct draft *d, const struct claim *c, struct err *err)
{
	enum ask_kind other = draft_other_kind(d, c->kind);

	if (other)
		return err_set(err, EINVAL, "GpuClaim %s asks for %s, but %s for %s", c->name,
			       draft_kind_name(c->kind), d->asked_by, draft_kind_name(other));
	if (c->kind == ASK_SHARE && c->count && draft_cards(d) > c->count)
		lay_together(d, c);
	if (c->count && draft_cards(d) != c->count)
		return err_set(err, EINVAL, "GpuClaim %s asks for %lld GPUs, but %s for %u",
			       c->name, (long long)c->count, d->asked_by, draft_cards(d));
	for (unsigned i = 0; i < d->request->asks_count; i++) {
		const struct ask *ask = &d->request->asks[i];

		if (strcmp(ask->mig_profile, c->profile) != 0)
			return err_set(err, EINVAL,
				       "GpuClaim %s asks for slices of %s, but %s "
				       "for %s",
				       c->name, c->profile, d->asked_by, ask->mig_profile);
		if ((c->core && ask->core_milli != c->core * 10) ||
		    (c->mem_mib && ask->mem_mib != c->mem_mib))
			return err_set(err, EINVAL, "GpuClaim %s and %s ask for different shares",
				       c->name, d->asked_by);
	}
	return 0;
}

static int add_devices(struct draft *d, const struct claim *c, struct err *err)
{
	if (!c->count)
		return err_set(err, EINVAL, "GpuClaim %s: devices.count is missing", c->name);
	struct ask *ask = draft_ask_for_all(d, c->kind, (uint8_t)c->count, err);
	if (!ask)
		return -EINVAL;
	ask->core_milli = (uint16_t)(c->core * 10);
	ask->mem_mib = (uint32_t)c->mem_mib;
	snprintf(ask->mig_profile, sizeof(ask->mig_profile), "%s", c->profile);
	d->asked_by = draft_printf(d, "GpuClaim %s", c->name);
	return d->asked_by ? 0 : err_set(err, ENOMEM, "out of memory");
}

/* How the GPUs are to be chosen, whoever asked for them. */
static void refine(struct draft *d, const struct claim *c)
{
	for (unsigned i = 0; i < d->request->asks_count; i++) {
		struct ask *ask = &d->request->asks[i];

		ask->policy = (uint8_t)c->policy;
		ask->bandwidth_mode = (uint8_t)c->mode;
		ask->min_gbps = (uint16_t)c->min_gbps;
		if (c->policy == PICK_PREFER) {
			ask->prefer_count = c->prefer_count;
			memcpy(ask->prefer, c->prefer, sizeof(c->prefer));
		}
		if (c->kind == ASK_SHARE && c->policy == PICK_SPREAD)
			ask->share_policy = SHARE_SPREAD;
	}
}

static int check_labels(const struct claim *c, struct err *err)
{
	struct json_iter iter = json_members(c->spec, "selector", "matchLabels");
	struct json_member m;
	int rc = check_type(c, "selector", "matchLabels", JSON_OBJECT, "mapping", err);

	while (rc == 0 && json_next_member(&iter, &m))
		if (!json_str(m.value))
			rc = err_set(err, EINVAL,
				     "GpuClaim %s: selector.matchLabels %s is no "
				     "string",
				     c->name, m.key);
	return rc;
}

static int select_labels(struct draft *d, const struct claim *c, struct err *err)
{
	struct json_iter iter = json_members(c->spec, "selector", "matchLabels");
	struct json_member m;
	int rc = 0;

	while (rc == 0 && json_next_member(&iter, &m))
		rc = draft_select(d, m.key, json_str(m.value), err);
	return rc;
}

/* What the node's network and storage must have. */
static int read_fabric(struct claim *c, struct err *err)
{
	struct json_iter hcas = json_items(c->spec, "network", "preferredHcas");
	const struct json *item;
	int rc = number_of(c, "network", "minPorts", 0, PORTS_MAX, &c->ports, err);

	if (rc < 0 ||
	    (rc = check_type(c, "network", "preferredHcas", JSON_ARRAY, "list", err)) < 0)
		return rc;
	if (json_bool(c->spec, &c->rdma, "network", "rdmaRequired") == -EINVAL)
		return err_set(err, EINVAL,
			       "GpuClaim %s: network.rdmaRequired is neither true nor "
			       "false",
			       c->name);
	if (json_bool(c->spec, &c->cufile, "storage", "cuFile") == -EINVAL)
		return err_set(err, EINVAL,
			       "GpuClaim %s: storage.cuFile is neither true nor false", c->name);
	while ((item = json_next(&hcas)))
		if (!json_str(item))
			return err_set(err, EINVAL,
				       "GpuClaim %s: network.preferredHcas has an entry that is "
				       "no name",
				       c->name);
	return 0;
}

static void ask_for_fabric(struct draft *d, const struct claim *c)
{
	struct json_iter hcas = json_items(c->spec, "network", "preferredHcas");
	const struct json *item;

	d->request->min_rdma_ports = (uint16_t)(c->rdma && !c->ports ? 1 : c->ports);
	d->request->cufile = c->cufile;
	/* An adapter that no node has is a wish that nothing can grant. */
	while ((item = json_next(&hcas))) {
		uint8_t hca = cluster_hca_find(d->cluster, json_str(item));

		if (hca < HCA_MAX)
			d->request->prefer_hcas |= UINT64_C(1) << hca;
	}
}

/* `gangRef: name` and `gangRef: {name: name}` are the same. */
static int read_gang_ref(struct claim *c, struct err *err)
{
	const char *ref = json_str(c->spec, "gangRef");
	enum json_type type = json_type(c->spec, "gangRef");
	int rc = json_i64(c->spec, &c->gang_min_members, "gangMinMembers");

	c->gang = ref ? ref : json_str(c->spec, "gangRef", "name");
	if (!c->gang && type != JSON_NONE && type != JSON_NULL)
		return err_set(err, EINVAL, "GpuClaim %s: gangRef is no name", c->name);
	if (c->gang && !*c->gang)
		c->gang = NULL;
	if (rc == -ENOENT)
		c->gang_min_members = 0;
	else if (rc < 0 || c->gang_min_members < 1 || c->gang_min_members > INT32_MAX)
		return err_set(err, EINVAL,
			       "GpuClaim %s: gangMinMembers must be a whole number, 1 "
			       "or more",
			       c->name);
	return 0;
}

/* All that can be told without a pod. */
static int read_spec(struct claim *c, struct err *err)
{
	int rc;

	if ((rc = read_words(c, err)) < 0 || (rc = read_numbers(c, err)) < 0 ||
	    (rc = read_prefer(c, err)) < 0 || (rc = check_parts(c, err)) < 0 ||
	    (rc = check_labels(c, err)) < 0 || (rc = read_fabric(c, err)) < 0)
		return rc;
	return read_gang_ref(c, err);
}

int claim_check(const struct json *claim, struct err *err)
{
	const char *name = json_str(claim, "metadata", "name");
	struct claim c = { .name = name ? name : "", .spec = json_get(claim, "spec") };

	return read_spec(&c, err);
}

int read_claim(struct draft *d, struct err *err)
{
	struct claim c = { .name = draft_annotation(d, KEY_CLAIM) };
	int rc;

	if (!c.name)
		return 0;
	if (!*c.name)
		return err_set(err, EINVAL, KEY_CLAIM " is empty: name a GpuClaim");
	const struct json *object =
		d->lookup->find(d->lookup->context, "GpuClaim", d->source->namespace, c.name);
	if (!object)
		return err_set(err, ENOENT, "GpuClaim %s does not exist in namespace %s", c.name,
			       d->source->namespace);
	c.spec = json_get(object, "spec");
	if ((rc = read_spec(&c, err)) < 0)
		return rc;
	rc = d->asked_by ? check_limits(d, &c, err) : add_devices(d, &c, err);
	if (rc < 0)
		return rc;
	refine(d, &c);
	d->leaves_required = c.mode == PICK_REQUIRED;
	d->gang_ref = c.gang;
	d->gang_min_members = c.gang_min_members;
	ask_for_fabric(d, &c);
	return select_labels(d, &c, err);
}
