/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - a Node as the engine wants it: labels, taints, resources, place in the fabric.
 * Its GPUs are in node_gpus.c. */
#include "dialect/node.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "dialect/dialect.h"
#include "dialect/keys.h"
#include "dialect/node_private.h"
#include "wire/json.h"
#include "wire/quantity.h"

/* Our own; those of others are a matter of configuration. */
const char *const node_domain_keys[] = {
	"topology.scheduler/spine",
	"topology.scheduler/leaf",
};
const size_t node_domain_keys_count = ARRAY_SIZE(node_domain_keys);

static int out_of_memory(struct err *err)
{
	return err_set(err, ENOMEM, "out of memory");
}

static int read_labels(struct node_reader *r, struct err *err)
{
	const struct json *labels = json_get(r->node, "metadata", "labels");
	struct label *list = arena_array(r->arena, json_len(labels) + 1, sizeof(*list));
	struct json_iter iter = json_members(labels);
	struct json_member m;
	uint32_t count = 0;

	if (!list)
		return out_of_memory(err);
	while (json_next_member(&iter, &m)) {
		const char *value = json_str(m.value);

		list[count] = (struct label){ cluster_intern(r->cluster, m.key),
					      cluster_intern(r->cluster, value ? value : "") };
		if (list[count].key == UINT32_MAX || list[count].value == UINT32_MAX)
			return out_of_memory(err);
		count++;
	}
	r->spec->labels = list;
	r->spec->labels_count = count;
	return 0;
}

/* An effect that nobody knows keeps nobody away: so does kube-scheduler. */
static uint8_t effect_of(const char *word)
{
	if (word && strcmp(word, "NoSchedule") == 0)
		return EFFECT_NO_SCHEDULE;
	if (word && strcmp(word, "NoExecute") == 0)
		return EFFECT_NO_EXECUTE;
	return EFFECT_PREFER_NO_SCHEDULE;
}

static int read_taints(struct node_reader *r, struct err *err)
{
	const struct json *taints = json_get(r->node, "spec", "taints");
	struct taint *list = arena_array(r->arena, json_len(taints) + 1, sizeof(*list));
	struct json_iter iter = json_items(taints);
	const struct json *taint;
	uint32_t count = 0;

	if (!list)
		return out_of_memory(err);
	while ((taint = json_next(&iter))) {
		const char *key = json_str(taint, "key"), *value = json_str(taint, "value");

		list[count].key = cluster_intern(r->cluster, key ? key : "");
		list[count].value = cluster_intern(r->cluster, value ? value : "");
		list[count].effect = effect_of(json_str(taint, "effect"));
		if (list[count].key == UINT32_MAX || list[count].value == UINT32_MAX)
			return out_of_memory(err);
		count++;
	}
	r->spec->taints = list;
	r->spec->taints_count = count;
	return 0;
}

/* Whole units of what Kubernetes counts by number; 0 for what is no quantity. */
static int64_t amount_of(const struct json *value, bool milli)
{
	struct quantity q;
	int64_t amount;

	if (quantity_from_json(value, &q, NULL) < 0 || q.nano < 0)
		return 0;
	amount = milli ? quantity_milli(q) : quantity_value(q);
	return MIN(amount, RESOURCE_AMOUNT_MAX);
}

/* Whether it is one of the four that have a place of their own, and put there. */
static bool put_plain(struct resources *r, const char *name, const struct json *value)
{
	if (strcmp(name, "cpu") == 0)
		r->cpu_milli = amount_of(value, true);
	else if (strcmp(name, "memory") == 0)
		r->mem_bytes = amount_of(value, false);
	else if (strcmp(name, "ephemeral-storage") == 0)
		r->ephemeral_bytes = amount_of(value, false);
	else if (strcmp(name, "pods") == 0)
		r->pods = amount_of(value, false);
	else
		return false;
	return true;
}

static int read_resources(struct node_reader *r, struct err *err)
{
	const struct json *all = json_get(r->node, "status", "allocatable");
	struct extended *list = arena_array(r->arena, json_len(all) + 1, sizeof(*list));
	struct json_iter iter = json_members(all);
	struct json_member m;
	uint32_t count = 0;

	if (!list)
		return out_of_memory(err);
	while (json_next_member(&iter, &m)) {
		if (put_plain(&r->spec->allocatable, m.key, m.value) ||
		    dialect_is_gpu_resource(m.key))
			continue;
		list[count].resource = cluster_resource(r->cluster, m.key);
		list[count].amount = amount_of(m.value, false);
		if (list[count].resource == UINT32_MAX)
			return out_of_memory(err);
		count++;
	}
	r->spec->extended = list;
	r->spec->extended_count = count;
	return 0;
}

static int read_domains(struct node_reader *r, struct err *err)
{
	const struct node_options *o = r->options;
	const char *const *keys = o->domain_keys ? o->domain_keys : node_domain_keys;
	size_t count = o->domain_keys ? o->domain_keys_count : node_domain_keys_count;
	const char **path = arena_array(r->arena, count + 1, sizeof(char *));

	if (!path)
		return out_of_memory(err);
	for (size_t i = 0; i < count; i++) {
		const char *name = json_str(r->node, "metadata", "labels", keys[i]);

		if (name && *name)
			path[r->spec->domains_count++] = name;
	}
	r->spec->domains = path;
	return 0;
}

/* What the agent measured, else what the label says. */
static int read_network(struct node_reader *r, struct err *err)
{
	const char *label = json_str(r->node, "metadata", "labels", KEY_NETWORK_BANDWIDTH);
	int64_t gbps = 0;

	if (json_i64(r->status, &gbps, "status", "network", "bandwidthGbps") == 0 && gbps > 0) {
		r->spec->network_gbps = (uint32_t)MIN(gbps, UINT32_MAX);
		return 0;
	}
	if (label && dialect_parse_bandwidth(label, &r->spec->network_gbps) < 0)
		return err_set(err, EINVAL,
			       "node %s: the label " KEY_NETWORK_BANDWIDTH
			       " is \"%.40s\", which is "
			       "no bandwidth such as 100Gbps",
			       r->spec->name, label);
	return 0;
}

/* Ports that the agent counts; at least one for each adapter; else what the labels say. */
static uint16_t rdma_ports(const struct node_reader *r)
{
	const char *yes = json_str(r->node, "metadata", "labels", LABEL_RDMA);
	const char *text = json_str(r->node, "metadata", "labels", LABEL_RDMA_PORTS);
	int64_t reported = 0;
	uint32_t ports = 0;

	if (json_i64(r->status, &reported, "status", "network", "rdmaPorts") == 0)
		return (uint16_t)MIN(MAX(reported, 0), UINT16_MAX);
	if (json_type(r->status, "status", "network", "hcas") == JSON_ARRAY)
		return (uint16_t)MIN(json_len(r->status, "status", "network", "hcas"), UINT16_MAX);
	if (text && parse_u32(text, strlen(text), &ports) == 0)
		return (uint16_t)MIN(ports, UINT16_MAX);
	return yes && strcmp(yes, "true") == 0;
}

static void read_fabric(struct node_reader *r)
{
	const char *label = json_str(r->node, "metadata", "labels", LABEL_CUFILE);
	struct json_iter hcas = json_items(r->status, "status", "network", "hcas");
	const struct json *item;

	r->spec->rdma_ports = rdma_ports(r);
	r->spec->cufile = label && strcmp(label, "true") == 0;
	json_bool(r->status, &r->spec->cufile, "status", "storage", "cuFile");
	/* Names are for preferences: one that there is no number for cannot be preferred. */
	while ((item = json_next(&hcas))) {
		const char *name = json_str(item);
		uint8_t hca = name ? cluster_hca(r->cluster, name) : HCA_MAX;

		if (hca < HCA_MAX)
			r->spec->hcas |= UINT64_C(1) << hca;
	}
}

int node_read(struct cluster *cluster, const struct json *node, const struct json *status,
	      const struct node_options *options, struct arena *arena, struct node_spec *ret,
	      struct err *err)
{
	struct node_reader r = { cluster, node, status, options, arena, ret };
	int rc;

	*ret = (struct node_spec){ .name = json_str(node, "metadata", "name") };
	if (!ret->name || !*ret->name)
		return err_set(err, EINVAL, "a Node has no metadata.name");
	json_bool(node, &ret->unschedulable, "spec", "unschedulable");
	if ((rc = read_labels(&r, err)) < 0 || (rc = read_taints(&r, err)) < 0 ||
	    (rc = read_resources(&r, err)) < 0 || (rc = read_domains(&r, err)) < 0 ||
	    (rc = node_read_gpus(&r, err)) < 0)
		return rc;
	read_fabric(&r);
	return read_network(&r, err);
}
