/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_node.c - one node of a fleet as the engine wants it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "dialect/dialect.h"
#include "dialect/keys.h"
#include "engine/cluster.h"
#include "engine/machine.h"
#include "sim/fleet_private.h"
#include "sim/shape.h"
#include "wire/json.h"
#include "wire/quantity.h"

#define LABELS_MAX	  64
#define TAINTS_MAX	  16
#define EXTRAS_MAX	  16
#define TEXT_MAX	  160
#define PODS_DEFAULT	  110
#define EPHEMERAL_DEFAULT (INT64_C(1) << 40)
#define CPU_DEFAULT	  64000
#define MEM_DEFAULT	  (INT64_C(256) << 30)

/* The parts a node_spec points to. */
struct parts_of_node {
	struct gpu_spec gpus[GPU_MAX];
	char uuids[GPU_MAX][TEXT_MAX];
	struct label labels[LABELS_MAX];
	struct taint taints[TAINTS_MAX];
	struct extended extras[EXTRAS_MAX];
	char leaf[32], spine[32];
	const char *domains[FLEET_DOMAINS_MAX];
};

struct builder {
	const struct fleet_node *node;
	const struct fleet_group *group;
	const struct json *json;
	struct cluster *cluster;
	struct node_spec *spec;
	struct parts_of_node *parts;
};

int fleet_check_keys(const struct json *group, struct err *err)
{
	static const struct shape_key keys[] = {
		{ "name", SHAPE_ANY }, /* pattern_of() says more */
		{ "machine", SHAPE_STRING },
		{ "count", SHAPE_NUMBER },
		{ "perLeaf", SHAPE_NUMBER },
		{ "leavesPerSpine", SHAPE_NUMBER },
		{ "domain", SHAPE_LIST },
		{ "gpus", SHAPE_LIST },
		{ "cpu", SHAPE_QUANTITY },
		{ "memory", SHAPE_QUANTITY },
		{ "ephemeralStorage", SHAPE_QUANTITY },
		{ "pods", SHAPE_NUMBER },
		{ "resources", SHAPE_OBJECT },
		{ "labels", SHAPE_OBJECT },
		{ "taints", SHAPE_LIST },
		{ "networkGbps", SHAPE_NUMBER },
		{ "rdmaPorts", SHAPE_NUMBER },
		{ "hcas", SHAPE_LIST },
		{ "cuFile", SHAPE_BOOL },
		{ "unschedulable", SHAPE_BOOL },
		{ "unhealthy", SHAPE_LIST },
		{ "mig", SHAPE_BOOL | SHAPE_LIST },
		{ "performance", SHAPE_NUMBER },
		{ NULL, 0 },
	};

	return shape_check(group, keys, err);
}

static int amount(const struct json *json, const char *field, bool milli, int64_t otherwise,
		  int64_t *ret, struct err *err)
{
	struct quantity q;
	int rc = quantity_from_json(json_get(json, field), &q, err);

	*ret = otherwise;
	if (rc == -ENOENT)
		return 0;
	if (rc < 0 || q.nano < 0)
		return err_set(err, EINVAL, "%s is no quantity", field);
	*ret = milli ? quantity_milli(q) : quantity_value(q);
	return 0;
}

static int build_resources(struct builder *b, struct err *err)
{
	const struct machine *m = b->group->machine;
	struct resources *r = &b->spec->allocatable;
	int rc;

	if ((rc = amount(b->json, "cpu", true, m ? m->cpu_milli : CPU_DEFAULT, &r->cpu_milli,
			 err)) < 0 ||
	    (rc = amount(b->json, "memory", false, m ? (int64_t)m->mem_mib << 20 : MEM_DEFAULT,
			 &r->mem_bytes, err)) < 0 ||
	    (rc = amount(b->json, "ephemeralStorage", false, EPHEMERAL_DEFAULT,
			 &r->ephemeral_bytes, err)) < 0)
		return rc;
	return fleet_number(b->json, "pods", 0, 1000000, PODS_DEFAULT, &r->pods, err);
}

static int build_extras(struct builder *b, struct err *err)
{
	struct json_iter iter = json_members(b->json, "resources");
	struct node_spec *s = b->spec;
	struct json_member m;

	while (json_next_member(&iter, &m)) {
		struct extended *e = &b->parts->extras[s->extended_count];
		struct quantity q;

		if (s->extended_count == EXTRAS_MAX)
			return err_set(err, EINVAL, "there are more than %d resources",
				       EXTRAS_MAX);
		if (quantity_from_json(m.value, &q, NULL) < 0 || q.nano < 0)
			return err_set(err, EINVAL, "resource %s is no quantity", m.key);
		*e = (struct extended){ .resource = cluster_resource(b->cluster, m.key),
					.amount = quantity_value(q) };
		s->extended_count++;
	}
	s->extended = b->parts->extras;
	return 0;
}

static int add_label(struct builder *b, const char *key, const char *value, struct err *err)
{
	struct node_spec *s = b->spec;

	if (s->labels_count == LABELS_MAX)
		return err_set(err, EINVAL, "there are more than %d labels", LABELS_MAX);
	b->parts->labels[s->labels_count++] = (struct label){ cluster_intern(b->cluster, key),
							      cluster_intern(b->cluster, value) };
	return 0;
}

static int build_labels(struct builder *b, struct err *err)
{
	struct json_iter iter = json_members(b->json, "labels");
	const char *model = b->spec->gpus_count ? b->parts->gpus[0].model : NULL;
	struct json_member m;
	int rc = 0;

	b->spec->labels = b->parts->labels;
	while (rc == 0 && json_next_member(&iter, &m)) {
		const char *value = json_str(m.value);

		if (!value)
			return err_set(err, EINVAL, "label %s is no string", m.key);
		rc = add_label(b, m.key, value, err);
	}
	if (rc == 0 && !json_get(b->json, "labels", LABEL_HOSTNAME))
		rc = add_label(b, LABEL_HOSTNAME, b->node->name, err);
	if (rc == 0 && model && !json_get(b->json, "labels", LABEL_PRODUCT))
		rc = add_label(b, LABEL_PRODUCT, model, err);
	return rc;
}

static int read_taint(struct builder *b, const struct json *json, struct err *err)
{
	static const struct shape_key keys[] = { { "key", SHAPE_STRING },
						 { "value", SHAPE_STRING },
						 { "effect", SHAPE_STRING },
						 { NULL, 0 } };
	static const char *const effects[] = {
		[EFFECT_NO_SCHEDULE] = "NoSchedule",
		[EFFECT_PREFER_NO_SCHEDULE] = "PreferNoSchedule",
		[EFFECT_NO_EXECUTE] = "NoExecute",
	};
	const char *key = json_str(json, "key"), *value = json_str(json, "value");
	const char *effect = json_str(json, "effect");
	struct taint t = { .effect = EFFECT_ANY };
	int rc = shape_check(json, keys, err);

	if (rc < 0)
		return rc;
	for (unsigned i = EFFECT_NO_SCHEDULE; i < ARRAY_SIZE(effects); i++)
		if (effect && strcmp(effects[i], effect) == 0)
			t.effect = (uint8_t)i;
	if (!key || t.effect == EFFECT_ANY)
		return err_set(err, EINVAL,
			       "it needs a key, and NoSchedule, PreferNoSchedule or NoExecute "
			       "as effect");
	t.key = cluster_intern(b->cluster, key);
	t.value = cluster_intern(b->cluster, value ? value : "");
	b->parts->taints[b->spec->taints_count++] = t;
	return 0;
}

static int build_taints(struct builder *b, struct err *err)
{
	struct json_iter iter = json_items(b->json, "taints");
	const struct json *taint;
	int rc = 0;

	b->spec->taints = b->parts->taints;
	while (rc == 0 && (taint = json_next(&iter))) {
		if (b->spec->taints_count == TAINTS_MAX)
			return err_set(err, EINVAL, "there are more than %d taints", TAINTS_MAX);
		rc = read_taint(b, taint, err);
		if (rc < 0)
			err_prefix(err, "taints[%u]", b->spec->taints_count);
	}
	return rc;
}

static int add_gpu(struct builder *b, const char *model, uint32_t mem_mib, uint8_t numa,
		   struct err *err)
{
	struct node_spec *s = b->spec;
	uint32_t i = s->gpus_count;

	if (i == GPU_MAX)
		return err_set(err, EINVAL, "a node has at most %d GPUs", GPU_MAX);
	snprintf(b->parts->uuids[i], TEXT_MAX, "GPU-%s-%u", b->node->name, i);
	b->parts->gpus[i] = (struct gpu_spec){
		.uuid = b->parts->uuids[i], .model = model, .mem_mib = mem_mib, .numa = numa
	};
	s->gpus_count++;
	return 0;
}

/* Memory that is not given is that of the model, if it is one of the machines'.  A card
 * whose memory nobody knows would take any number of tenants. */
static int memory_of(const struct json *gpu, const char *model, int64_t *ret, struct err *err)
{
	const struct machine *m = machine_of_model(model);
	int rc = fleet_number(gpu, "memoryMiB", 1, UINT32_MAX, m ? m->gpu_mem_mib : 0, ret, err);

	if (rc < 0 || *ret)
		return rc;
	return err_set(err, EINVAL, "memoryMiB is needed: no machine has GPUs of model %.60s",
		       model);
}

static int add_listed(struct builder *b, const struct json *gpu, struct err *err)
{
	static const struct shape_key keys[] = { { "model", SHAPE_STRING },
						 { "memoryMiB", SHAPE_NUMBER },
						 { "count", SHAPE_NUMBER },
						 { "numa", SHAPE_NUMBER },
						 { NULL, 0 } };
	const char *model = json_str(gpu, "model");
	int64_t count, mem, numa;
	int rc;

	if ((rc = shape_check(gpu, keys, err)) < 0)
		return rc;
	if (!model || !*model)
		return err_set(err, EINVAL, "every entry needs a model");
	if ((rc = fleet_number(gpu, "count", 1, GPU_MAX, 1, &count, err)) < 0 ||
	    (rc = memory_of(gpu, model, &mem, err)) < 0 ||
	    (rc = fleet_number(gpu, "numa", 0, 255, 0, &numa, err)) < 0)
		return rc;
	while (rc == 0 && count--)
		rc = add_gpu(b, model, (uint32_t)mem, (uint8_t)numa, err);
	return rc;
}

static int build_listed_gpus(struct builder *b, struct err *err)
{
	struct json_iter iter = json_items(b->json, "gpus");
	const struct json *gpu;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && (gpu = json_next(&iter)); i++) {
		rc = add_listed(b, gpu, err);
		if (rc < 0)
			err_prefix(err, "gpus[%u]", i);
	}
	if (b->spec->gpus_count)
		b->spec->mig = mig_geometry_of_model(b->parts->gpus[0].model);
	return rc;
}

static int build_gpus(struct builder *b, struct err *err)
{
	const struct machine *m = b->group->machine;
	int rc = 0;

	b->spec->gpus = b->parts->gpus;
	if (json_get(b->json, "gpus"))
		return build_listed_gpus(b, err);
	for (uint8_t i = 0; m && i < m->gpu_count && rc == 0; i++)
		rc = add_gpu(b, m->model, m->gpu_mem_mib, (uint8_t)(i / m->gpus_per_numa), err);
	if (m) {
		b->spec->links = b->group->links;
		b->spec->mig = m->mig;
	}
	return rc;
}

/* The GPUs that a list of ids names. */
static int ids_of(struct builder *b, const char *field, uint32_t *ret, struct err *err)
{
	struct json_iter iter = json_items(b->json, field);
	const struct json *item;

	*ret = 0;
	while ((item = json_next(&iter))) {
		int64_t id;

		if (json_i64_path(item, &id, JSON_PATH_END) < 0 || id < 0 ||
		    id >= b->spec->gpus_count)
			return err_set(err, EINVAL, "%s names a GPU that the node lacks", field);
		*ret |= gpuset_one((unsigned)id);
	}
	return 0;
}

static int mark_gpus(struct builder *b, struct err *err)
{
	uint32_t ill, sliced;
	bool all = false;
	int rc;

	if ((rc = ids_of(b, "unhealthy", &ill, err)) < 0 ||
	    (rc = ids_of(b, "mig", &sliced, err)) < 0)
		return rc;
	if (json_bool(b->json, &all, "mig") == 0 && all)
		sliced = UINT32_MAX;
	if (sliced && !b->spec->mig)
		return err_set(err, EINVAL, "mig: %s",
			       b->spec->gpus_count ? "its GPUs cannot be sliced"
						   : "the node has no GPU");
	for (uint32_t i = 0; i < MIN(b->spec->gpus_count, GPU_MAX); i++) {
		b->parts->gpus[i].unhealthy = gpuset_has(ill, i);
		b->parts->gpus[i].mig_mode = gpuset_has(sliced, i);
	}
	return 0;
}

static void build_domain(struct builder *b)
{
	const struct fleet_group *g = b->group;
	int64_t below = b->node->position / g->per_leaf;
	int64_t leaf = g->first_leaf + below;
	int64_t spine = g->first_spine + below / g->leaves_per_spine;

	b->spec->domains = b->parts->domains;
	b->spec->domains_count = g->domain_count ? g->domain_count : 2;
	memcpy(b->parts->domains, g->domain, sizeof(g->domain));
	if (g->domain_count)
		return;
	snprintf(b->parts->leaf, sizeof(b->parts->leaf), "leaf-%" PRId64, leaf);
	snprintf(b->parts->spine, sizeof(b->parts->spine), "spine-%" PRId64, spine);
	b->parts->domains[0] = b->parts->spine;
	b->parts->domains[1] = b->parts->leaf;
}

/* The node's own label, where networkGbps says nothing. */
static uint32_t labelled_bandwidth(const struct builder *b)
{
	const char *label = json_str(b->json, "labels", KEY_NETWORK_BANDWIDTH);
	uint32_t gbps;

	return label && dialect_parse_bandwidth(label, &gbps) == 0 ? gbps : 0;
}

/* RDMA and GPUDirect Storage, which elsewhere the agent reports. */
static int build_fabric(struct builder *b, struct err *err)
{
	struct json_iter hcas = json_items(b->json, "hcas");
	const struct json *item;
	int64_t ports;
	int rc = fleet_number(b->json, "rdmaPorts", 0, UINT16_MAX,
			      (int64_t)json_len(b->json, "hcas"), &ports, err);

	if (rc < 0)
		return rc;
	while ((item = json_next(&hcas))) {
		const char *name = json_str(item);
		uint8_t hca = name ? cluster_hca(b->cluster, name) : HCA_MAX;

		if (hca >= HCA_MAX)
			return err_set(err, EINVAL,
				       "hcas must be names, %d different ones at most", HCA_MAX);
		b->spec->hcas |= UINT64_C(1) << hca;
	}
	b->spec->rdma_ports = (uint16_t)ports;
	json_bool(b->json, &b->spec->cufile, "cuFile");
	return 0;
}

static int build_facts(struct builder *b, struct err *err)
{
	int64_t network, performance;
	int rc;

	if ((rc = fleet_number(b->json, "networkGbps", 0, 1000000, labelled_bandwidth(b), &network,
			       err)) < 0 ||
	    (rc = fleet_number(b->json, "performance", 0, UINT16_MAX, 0, &performance, err)) < 0)
		return rc;
	b->spec->network_gbps = (uint32_t)network;
	b->spec->performance_milli = (uint16_t)performance;
	if (json_bool(b->json, &b->spec->unschedulable, "unschedulable") == -EINVAL)
		return err_set(err, EINVAL, "unschedulable is neither true nor false");
	return 0;
}

static int build(const struct fleet *f, uint32_t i, struct cluster *c, struct node_spec *spec,
		 struct parts_of_node *parts, struct err *err)
{
	const struct fleet_node *node = &f->nodes.items[i];
	const struct fleet_group *group = &f->groups.items[node->group];
	struct builder b = { node, group, group->json, c, spec, parts };
	int rc;

	spec->name = node->name;
	if ((rc = build_gpus(&b, err)) < 0 || (rc = mark_gpus(&b, err)) < 0 ||
	    (rc = build_resources(&b, err)) < 0 || (rc = build_extras(&b, err)) < 0 ||
	    (rc = build_labels(&b, err)) < 0 || (rc = build_taints(&b, err)) < 0 ||
	    (rc = build_facts(&b, err)) < 0 || (rc = build_fabric(&b, err)) < 0) {
		fleet_prefix(f, node->group, node->name, err);
		return rc;
	}
	build_domain(&b);
	return 0;
}

int fleet_add(const struct fleet *f, uint32_t i, struct cluster *c, struct err *err)
{
	struct node_spec spec = { .name = NULL };
	struct parts_of_node parts = { .leaf = "" };
	uint32_t number;
	int rc = build(f, i, c, &spec, &parts, err);

	if (rc < 0 || (rc = cluster_node_add(c, &spec, &number, err)) == 0)
		return rc;
	fleet_prefix(f, f->nodes.items[i].group, f->nodes.items[i].name, err);
	return rc;
}

int fleet_cordon(const struct fleet *f, uint32_t i, struct cluster *c, bool unschedulable,
		 struct err *err)
{
	struct node_spec spec = { .name = NULL };
	struct parts_of_node parts = { .leaf = "" };
	uint32_t number = cluster_node_find(c, fleet_node_name(f, i));
	int rc = build(f, i, c, &spec, &parts, err);

	if (rc < 0)
		return rc;
	if (number == NODE_NONE)
		return err_set(err, ENOENT, "node %s is not there", spec.name);
	spec.unschedulable = unschedulable;
	for (uint32_t g = 0; g < spec.gpus_count; g++)
		parts.gpus[g].unhealthy = !cluster_node(c, number)->gpus[g].healthy;
	return cluster_node_change(c, number, &spec, err);
}
