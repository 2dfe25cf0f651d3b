/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "base/strbuf.h"
#include "sim/fleet.h"
#include "sim/manifest.h"
#include "sim/report.h"
#include "sim/story.h"
#include "sim/world.h"
#include "test.h"
#include "wire/json.h"
#include "wire/yaml.h"

#define POD(name)                                                                          \
	"{kind: Pod, metadata: {name: " name "}, spec: {containers: [{name: c, resources:" \
	" {limits: {nvidia.com/gpu: 1}}}]}}"

static int make_fleet(const char *text, struct yaml *yaml, struct fleet **ret, struct err *err)
{
	*yaml = (struct yaml)YAML_INIT;
	CHECK(yaml_parse("test", text, strlen(text), NULL, yaml, NULL) == 0);
	return fleet_new("file", json_root(yaml->items[0].doc), ret, err);
}

TEST(presets_are_laid_out_over_leaves_and_spines)
{
	struct yaml yaml;
	struct fleet *fleet = NULL;
	struct world *w = NULL;
	struct err err = ERR_INIT;

	CHECKF(make_fleet("nodes:\n"
			  "- {machine: dgx-h100, count: 128, perLeaf: 4, leavesPerSpine: 8, name: "
			  "d-%03d}\n"
			  "- {machine: gb200-nvl72, count: 36}\n"
			  "- {name: odd, domain: [p, q, r], gpus: [{model: T4, count: 2}], "
			  "networkGbps: 10}\n",
			  &yaml, &fleet, &err) == 0,
	       "%s", err.text);
	CHECK_INT(fleet_count(fleet), 165);
	CHECK_STR(fleet_node_name(fleet, 127), "d-127");
	CHECK_STR(fleet_node_name(fleet, 128), "gb200-nvl72-00");
	CHECKF(world_new(fleet, &(struct world_config){ .seed = 1 }, &w, &err) == 0, "%s",
	       err.text);
	const struct cluster *c = world_cluster(w);
	const struct node *n = cluster_node(c, cluster_node_find(c, "d-127"));
	CHECK_STR(cluster_domain(c, n->domain)->name, "leaf-31");
	CHECK_STR(cluster_domain(c, cluster_domain(c, n->domain)->parent)->name, "spine-3");
	CHECK_INT(n->gpus_count, 8);
	/* An NVLink domain of 18 trays is a leaf. */
	n = cluster_node(c, cluster_node_find(c, "gb200-nvl72-18"));
	CHECK_STR(cluster_domain(c, n->domain)->name, "leaf-33");
	n = cluster_node(c, cluster_node_find(c, "odd"));
	CHECK_STR(cluster_domain(c, n->domain)->name, "r");
	CHECK_INT(n->network_gbps, 10);
	CHECK(cluster_check(c) == NULL);
	world_free(w);
	fleet_free(fleet);
	yaml_done(&yaml);
}

TEST(a_bad_cluster_file_is_refused)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "{}", "file: there is no list of nodes" },
		{ "nodes: []", "file: there is no list of nodes" },
		{ "nodes: [5]", "file: nodes[0]: is no description of nodes" },
		{ "nodes: [{machine: dgx-h10}]",
		  "file: nodes[0]: machine dgx-h10 is unknown, did you mean dgx-h100?" },
		{ "nodes: [{machine: dgx-h100}, {colour: red}]",
		  "file: nodes[1]: colour is unknown" },
		{ "nodes: [{count: 2}]", "file: nodes[0]: a node without a machine needs a name" },
		{ "nodes: [{name: n}]",
		  "file: nodes[0]: name is no string; YAML takes some words, such "
		  "as n and on, for booleans: put it in quotes" },
		{ "nodes: [{name: a%s, count: 2}]",
		  "file: nodes[0]: name \"a%s\": only one %d or %03d may be in it" },
		{ "nodes: [{name: 'a%d%n', count: 2}]",
		  "file: nodes[0]: name \"a%d%n\": only one %d or %03d may be in it" },
		{ "nodes: [{name: a}, {name: a}]", "file: nodes[1]: node a is there twice" },
		{ "nodes: [{machine: t4, count: 0}]",
		  "file: nodes[0]: count must be a whole number from 1 to 200000" },
		{ "nodes: [{machine: t4, count: -3}]",
		  "file: nodes[0]: count must be a whole number from 1 to 200000" },
		{ "nodes: [{machine: t4}]\nlimits: {maxNodesPerLeaf: -1}",
		  "file: maxNodesPerLeaf must be a whole number from 0 to 1000000" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct yaml yaml;
		struct fleet *fleet = NULL;
		struct err err = ERR_INIT;

		CHECKF(make_fleet(rows[i].text, &yaml, &fleet, &err) == -EINVAL, "row %zu", i);
		CHECK_STR(err.text, rows[i].says);
		yaml_done(&yaml);
	}
}

TEST(a_bad_node_is_named)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "nodes: [{machine: t4, name: a, unhealthy: [9]}]",
		  "node a: unhealthy names a GPU that the node lacks" },
		{ "nodes: [{machine: t4, name: a, cpu: lots}]", "node a: cpu is no quantity" },
		{ "nodes: [{machine: t4, name: a, memory: -1}]", "node a: memory is no quantity" },
		{ "nodes: [{name: a, gpus: [{count: 2}]}]",
		  "node a: gpus: every entry needs a model" },
		{ "nodes: [{name: a, gpus: [{model: x, count: 32}, {model: x}]}]",
		  "node a: a node has at most 32 GPUs" },
		{ "nodes: [{name: a, labels: {x: 1}}]", "node a: label x is no string" },
		{ "nodes: [{name: a, taints: [{key: k, effect: Never}]}]",
		  "node a: taint without key, with an unknown effect, or one too many" },
		{ "nodes: [{name: a, resources: {x/y: z}}]",
		  "node a: resource x/y is no quantity" },
		{ "nodes: [{name: a, unschedulable: 3}]",
		  "node a: unschedulable is neither true nor false" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct yaml yaml;
		struct fleet *fleet = NULL;
		struct world *w = NULL;
		struct err err = ERR_INIT;

		CHECKF(make_fleet(rows[i].text, &yaml, &fleet, &err) == 0, "row %zu: %s", i,
		       err.text);
		CHECKF(world_new(fleet, &(struct world_config){ .seed = 1 }, &w, &err) < 0,
		       "row %zu", i);
		CHECK_STR(err.text, rows[i].says);
		fleet_free(fleet);
		yaml_done(&yaml);
	}
}

TEST(manifests_are_read_whole_or_not_at_all)
{
	struct manifests m = { 0 };
	struct err err = ERR_INIT;
	static const char good[] =
		"kind: PodList\nitems: [" POD("a") ", " POD("b") "]\n---\n" POD("c");
	static const char bad[] = "kind: Pod\nmetadata: {name: d}\n---\n\nmetadata: {name: e}\n";

	CHECK(manifests_parse(&m, "good", good, strlen(good), &err) == 0);
	CHECK_INT(m.items.len, 3);
	CHECK_STR(m.items.items[1].name, "b");
	CHECK_STR(m.items.items[1].namespace, "default");
	CHECK_INT(manifests_parse(&m, "bad.yaml", bad, strlen(bad), &err), -EINVAL);
	CHECKF(strncmp(err.text, "bad.yaml:", 9) == 0 &&
		       strstr(err.text, "an object without kind") != NULL,
	       "%s", err.text);
	CHECK_INT(m.items.len, 3);
	CHECK(manifests_parse(&m, "x", "kind: [", 7, &err) < 0);
	CHECK(manifests_read(&m, "/no/such/file", &err) < 0);
	CHECK_INT(m.items.len, 3);
	manifests_done(&m);
}

static int tell(const char *steps, struct strbuf *out, struct story_result *result,
		struct err *err)
{
	struct strbuf text = STRBUF_INIT;

	strbuf_addf(&text, "cluster: {nodes: [{machine: dgx-h100, name: box}]}\nsteps:\n%s",
		    steps);
	int rc = story_run("story", text.s, text.len, out, result, err);
	strbuf_done(&text);
	return rc;
}

TEST(an_expectation_that_does_not_hold_is_told)
{
	static const struct {
		const char *expect, *says;
	} rows[] = {
		{ "{a: {node: other}}", "step 2: a: a: node is box, expected other\n" },
		{ "{a: {gpus: '3'}}", "step 2: a: a: gpus is 0, expected 3\n" },
		{ "{a: {gpuCount: 2}}", "step 2: a: a has 1 GPUs, expected 2\n" },
		{ "{a: {pending: x}}", "step 2: a: a is not pending: box, GPU 0: " },
		{ "{a: {placed: 2}}",
		  "step 2: a: placed is 1, expected 2; the first says: box, GPU 0: " },
		{ "{a: {why: luck}}", "step 2: a: a says \"box, GPU 0: " },
		{ "{a: {sameGpuAs: b}}", "step 2: a: does not share a GPU with b\n" },
		{ "{a: {annotations: {gpu.scheduling/allocated: 'box:5'}}}",
		  "step 2: a: a: annotation gpu.scheduling/allocated is \"box:0\", expected "
		  "\"box:5\"\n" },
		{ "{nobody: {placed: 1}}", "step 2: nobody: there is no such pod or workload\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct strbuf out = STRBUF_INIT, steps = STRBUF_INIT;
		struct story_result result;
		struct err err = ERR_INIT;

		strbuf_addf(&steps, "- submit: [%s, %s]\n- expect: %s\n", POD("a"), POD("b"),
			    rows[i].expect);
		CHECKF(tell(steps.s, &out, &result, &err) == 0, "row %zu: %s", i, err.text);
		CHECKF(result.failed == 1, "row %zu", i);
		CHECKF(strncmp(out.s, rows[i].says, strlen(rows[i].says)) == 0, "row %zu: %s", i,
		       out.s);
		strbuf_done(&out);
		strbuf_done(&steps);
	}
}

TEST(a_story_that_cannot_be_run_says_where)
{
	static const struct {
		const char *steps, *says;
	} rows[] = {
		{ "- explode: []\n", "story: step 1: step explode is unknown" },
		{ "- expect: {}\n- delete: [x]\n",
		  "story: step 2: there is no pod or workload x" },
		{ "- fail: [{node: x}]\n", "story: step 1: there is no node x" },
		{ "- fail: [{node: box, gpu: 9}]\n", "story: step 1: node box has no GPU 9" },
		{ "- submit: [" POD("a") ", " POD("a") "]\n",
		  "story: step 1: pod default/a is there already" },
		{ "- submit: [{kind: DaemonSet, metadata: {name: d}, spec: {template: {spec: "
		  "{}}}}]\n",
		  "story: step 1: DaemonSet d: pods of this kind cannot be simulated yet" },
		{ "- submit: [{kind: Job, metadata: {name: j}, spec: {}}]\n",
		  "story: step 1: Job j has no spec.template" },
		{ "- submit: [" POD("a") "]\n- expect: {a: {luck: 1}}\n",
		  "story: step 2: expectation luck is unknown, or its value of the wrong type" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct strbuf out = STRBUF_INIT;
		struct story_result result;
		struct err err = ERR_INIT;

		CHECKF(tell(rows[i].steps, &out, &result, &err) < 0, "row %zu", i);
		CHECK_STR(err.text, rows[i].says);
		strbuf_done(&out);
	}
}

TEST(reports_say_who_is_where_and_who_waits)
{
	struct yaml yaml;
	struct fleet *fleet = NULL;
	struct world *w = NULL;
	struct manifests m = { 0 };
	struct strbuf out = STRBUF_INIT;
	struct json_doc *doc = NULL;
	static const char text[] = POD("a") "\n---\nkind: Deployment\nmetadata: {name: "
					    "big}\nspec: {replicas: 3, template:"
					    " {spec: {containers: [{name: c, resources: {limits: "
					    "{nvidia.com/gpu: 9}}}]}}}\n";

	CHECK(make_fleet("nodes: [{machine: dgx-h100, name: box}]", &yaml, &fleet, NULL) == 0);
	CHECK(world_new(fleet, &(struct world_config){ .seed = 1 }, &w, NULL) == 0);
	CHECK(manifests_parse(&m, "m", text, strlen(text), NULL) == 0);
	CHECK(world_submit(w, &m, 0, NULL) == 0);
	CHECK(world_settle(w, NULL) == 0);
	report_table(w, &out);
	CHECKF(strstr(out.s, "default/a      box, GPU 0: ") != NULL, "%s", out.s);
	CHECKF(strstr(out.s,
		      "default/big-0  pending, with 2 more: 0/1 nodes are available: 1 node(s) "
		      "had too few GPUs.") != NULL,
	       "%s", out.s);
	CHECK(strstr(out.s, "\n1 placed, 3 pending\n") != NULL);
	strbuf_reset(&out);
	report_json(w, &out);
	CHECK(json_parse("report", out.s, out.len, NULL, &doc, NULL) == 0);
	CHECK_INT(json_len(json_root(doc), "placed"), 1);
	CHECK_INT(json_len(json_root(doc), "pending"), 3);
	struct json_iter placed = json_items(json_root(doc), "placed");
	CHECK_STR(json_str(json_next(&placed), "annotations", "gpu.scheduling/allocated"),
		  "box:0");
	json_doc_free(doc);
	strbuf_done(&out);
	world_free(w);
	manifests_done(&m);
	fleet_free(fleet);
	yaml_done(&yaml);
}

TEST_MAIN()
