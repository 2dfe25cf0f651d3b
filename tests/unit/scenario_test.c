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

#define BIG_POD                                                                       \
	"{kind: Pod, metadata: {name: big}, spec: {containers: [{name: c, resources:" \
	" {limits: {nvidia.com/gpu: 9}}}]}}"

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
			  "- {name: odd, domain: [p, q, r], gpus: [{model: Tesla-T4, count: 2}], "
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
		  "file: nodes[0]: machine dgx-h10 is unknown, did you mean dgx-h100? "
		  "(gpu-scheduler simulate --machines lists all)" },
		{ "nodes: [{machine: gb200}]",
		  "file: nodes[0]: machine gb200 is unknown, did you mean gb200-nvl72? "
		  "(gpu-scheduler simulate --machines lists all)" },
		{ "nodes: [{machine: t4}]\nnode: []",
		  "file: node is unknown, did you mean nodes?" },
		{ "nodes: {machine: t4}", "file: nodes must be a list, not an object" },
		{ "nodes: [{machine: t4, cout: 8}]",
		  "file: nodes[0]: cout is unknown, did you mean count?" },
		{ "nodes: [{machine: t4, count: '8'}]",
		  "file: nodes[0]: count must be a number, not a string (\"8\")" },
		{ "nodes: [{machine: t4, unhealthy: 3}]",
		  "file: nodes[0]: unhealthy must be a list, not a number" },
		{ "nodes: [{machine: a100-pcie, mig: 0}]",
		  "file: nodes[0]: mig must be true or false or a list, not a number" },
		{ "nodes: [{machine: t4, taints: {}}]",
		  "file: nodes[0]: taints must be a list, not an object" },
		{ "nodes: [{machine: t4, labels: [a]}]",
		  "file: nodes[0]: labels must be an object, not a list" },
		{ "nodes: [{machine: t4, resources: 5}]",
		  "file: nodes[0]: resources must be an object, not a number" },
		{ "nodes: [{machine: t4, gpus: 5}]",
		  "file: nodes[0]: gpus must be a list, not a number" },
		{ "nodes: [{machine: t4}]\nlimits: {maxNodesPerLeef: 1}",
		  "file: limits: maxNodesPerLeef is unknown, did you mean maxNodesPerLeaf?" },
		{ "nodes: [{machine: t4}]\nlimits: [4]",
		  "file: limits must be an object, not a list" },
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
		  "file: limits: maxNodesPerLeaf must be a whole number from 0 to 1000000" },
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
		  "file: nodes[0] (a): unhealthy names a GPU that the node lacks" },
		{ "nodes: [{machine: t4, name: a, cpu: lots}]",
		  "file: nodes[0] (a): cpu is no quantity" },
		{ "nodes: [{machine: t4, name: a, memory: -1}]",
		  "file: nodes[0] (a): memory is no quantity" },
		{ "nodes: [{name: a, gpus: [{count: 2}]}]",
		  "file: nodes[0] (a): gpus[0]: every entry needs a model" },
		{ "nodes: [{name: a, gpus: [{model: x, memoryMiB: 9, count: 32}, {model: x, "
		  "memoryMiB: 9}]}]",
		  "file: nodes[0] (a): gpus[1]: a node has at most 32 GPUs" },
		{ "nodes: [{name: a, labels: {x: 1}}]",
		  "file: nodes[0] (a): label x is no string" },
		{ "nodes: [{name: a, taints: [{key: k, effect: Never}]}]",
		  "file: nodes[0] (a): taints[0]: it needs a key, and NoSchedule, "
		  "PreferNoSchedule "
		  "or NoExecute as effect" },
		{ "nodes: [{name: a, taints: [{key: k, efect: NoSchedule}]}]",
		  "file: nodes[0] (a): taints[0]: efect is unknown, did you mean effect?" },
		{ "nodes: [{name: a, gpus: [{model: T4, memoryMib: 9}]}]",
		  "file: nodes[0] (a): gpus[0]: memoryMib is unknown, did you mean memoryMiB?" },
		{ "nodes: [{name: a, gpus: [{model: T4}]}]",
		  "file: nodes[0] (a): gpus[0]: memoryMiB is needed: no machine has GPUs of "
		  "model T4" },
		{ "nodes: [{machine: t4, name: a, mig: true}]",
		  "file: nodes[0] (a): mig: its GPUs cannot be sliced" },
		{ "nodes: [{name: a, mig: true}]",
		  "file: nodes[0] (a): mig: the node has no GPU" },
		{ "nodes: [{name: a, resources: {x/y: z}}]",
		  "file: nodes[0] (a): resource x/y is no quantity" },
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
		{ "{a: {apartFrom: x}}",
		  "step 2: a: apartFrom names x, and there is no such pod or workload\n" },
		{ "{a: {apartFrom: big}}",
		  "step 2: a: apartFrom names big, which is not placed\n" },
		{ "{big: {apartFrom: a}}", "step 2: big: apartFrom: it is not placed itself\n" },
		{ "{a: {annotations: {gpu.scheduling/allocated: 'box:5'}}}",
		  "step 2: a: a: annotation gpu.scheduling/allocated is \"box:0\", expected "
		  "\"box:5\"\n" },
		{ "{nobody: {placed: 1}}", "step 2: nobody: there is no such pod or workload\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct strbuf out = STRBUF_INIT, steps = STRBUF_INIT;
		struct story_result result;
		struct err err = ERR_INIT;

		strbuf_addf(&steps, "- submit: [%s, %s, %s]\n- expect: %s\n", POD("a"), POD("b"),
			    BIG_POD, rows[i].expect);
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
		{ "- explode: []\n", "story: step 1: explode is unknown" },
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
		{ "- delet: [x]\n", "story: step 1: delet is unknown, did you mean delete?" },
		{ "- delete: p\n", "story: step 1: delete must be a list, not a string (\"p\")" },
		{ "- delete: [5]\n", "story: step 1: a name must be a string, not a number" },
		{ "- fail: [{nod: x}]\n", "story: step 1: nod is unknown, did you mean node?" },
		{ "- fail: [{gpu: 1}]\n",
		  "story: step 1: an entry needs a node: {node: NAME} or {node: NAME, gpu: ID}" },
		{ "- x\n", "story: step 1: a step is an object such as {delete: [name]}, not a "
			   "string" },
		{ "- submit: [" POD("a") "]\n", "story: nothing is expected in any step" },
		{ "- submit: [{kind: Node, metadata: {name: x}}]\n",
		  "story: step 1: Node x: the nodes are those of the cluster's description" },
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

TEST(a_scenario_needs_its_parts)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "cluster: {nodes: [{machine: t4}]}\nstep: []\n",
		  "story: step is unknown, did you mean steps?" },
		{ "cluster: {nodes: [{machine: t4}]}\n",
		  "story: a scenario needs a cluster and steps" },
		{ "steps: [{delete: [a]}]\n", "story: a scenario needs a cluster and steps" },
		{ "cluster: {nodes: [{machine: t4}]}\nsteps: [{delete: [a]}]\nseed: -1\n",
		  "story: seed must be a whole number" },
		{ "cluster: {nodes: [{machine: t4}]}\nsteps: [{delete: [a]}]\npolicy: luck\n",
		  "story: there is no policy luck" },
		{ "a: 1\n---\nb: 2\n", "story: a scenario is one document, this file has 2" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct strbuf out = STRBUF_INIT;
		struct story_result result;
		struct err err = ERR_INIT;

		CHECKF(story_run("story", rows[i].text, strlen(rows[i].text), &out, &result,
				 &err) < 0,
		       "row %zu", i);
		CHECK_STR(err.text, rows[i].says);
		strbuf_done(&out);
	}
}

/* What is wrong with the objects, or "" if they are taken in. */
static void submit(const char *text, struct err *err, uint32_t *pods)
{
	struct yaml yaml;
	struct fleet *fleet = NULL;
	struct world *w = NULL;
	struct manifests m = { 0 };

	CHECK(make_fleet("nodes: [{machine: dgx-h100, name: box}]", &yaml, &fleet, NULL) == 0);
	CHECK(world_new(fleet, &(struct world_config){ .seed = 1 }, &w, NULL) == 0);
	int rc = manifests_parse(&m, "m.yaml", text, strlen(text), err);
	if (rc == 0)
		rc = world_submit(w, &m, 0, err);
	if (rc == 0)
		rc = world_check_claims(w, &m, err);
	if (rc == 0)
		rc = world_settle(w, err);
	CHECK((rc < 0) == (*err->text != 0));
	*pods = world_pods(w);
	world_free(w);
	manifests_done(&m);
	fleet_free(fleet);
	yaml_done(&yaml);
}

TEST(what_is_wrong_with_an_object_is_said_with_file_and_line)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "\n{kind: Pood, metadata: {name: p}}", "m.yaml:2: Pood p: this kind is unknown, "
							 "did you mean Pod?; understood are Pod" },
		{ "{kind: Service, metadata: {name: s}}\n---\n{kind: Job, metadata: {name: j}}",
		  "m.yaml:3: Job j has no spec.template" },
		{ "{kind: Namespace, metadata: {name: s}}\n---\n{kind: CronJob, metadata: {name: "
		  "c}, spec: {jobTemplate: {}}}",
		  "m.yaml:3: CronJob c: pods of this kind cannot be simulated yet" },
		{ "{kind: Deployment, metadata: {name: d}, spec: {replicas: x}}",
		  "m.yaml:1: Deployment d: spec.replicas must be" },
		{ "{kind: Deployment, metadata: {name: d}, spec: {replicas: 200001, template: "
		  "{}}}",
		  "m.yaml:1: Deployment d has 200001 pods: a simulation has at most 200000 pods" },
		{ POD("a") "\n---\n" POD("a"), "m.yaml:3: pod default/a is there already" },
		{ "---\n{kind: GpuClaim, metadata: {name: c}, spec: {devices: {count: 0}}}",
		  "m.yaml:2: GpuClaim c: devices.count is 0, it must be from 1 to 32" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = ERR_INIT;
		uint32_t pods;

		submit(rows[i].text, &err, &pods);
		CHECKF(strncmp(err.text, rows[i].says, strlen(rows[i].says)) == 0, "row %zu: %s",
		       i, err.text);
	}
}

/* Each of these would take minutes if pods were tried or explained one by one. */
TEST(tens_of_thousands_of_pods_that_ask_for_the_same_are_cheap)
{
	static const char *const texts[] = {
		"{kind: Deployment, metadata: {name: d}, spec: {replicas: 50000, template: {spec:"
		" {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}}}}",
		"{kind: Job, metadata: {name: j, annotations: {topology.scheduler/gpu-count:"
		" '50000'}}, spec: {parallelism: 50000, template: {spec: {containers: [{name: "
		"c}]}}}}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct err err = ERR_INIT;
		uint32_t pods;

		submit(texts[i], &err, &pods);
		CHECK_STR(err.text, "");
		CHECK_INT(pods, 50000);
	}
}

/* Pods and ReplicaSets as `kubectl get -o yaml` gives them, before their owners. */
TEST(a_workload_whose_pods_are_given_makes_no_others)
{
	static const char text[] =
		"{kind: Pod, metadata: {name: d-1-x, ownerReferences: [{kind: ReplicaSet, name:"
		" d-1, controller: true}]}, spec: {containers: [{name: c}]}}\n---\n"
		"{kind: ReplicaSet, metadata: {name: d-1, ownerReferences: [{kind: Deployment,"
		" name: d, controller: true}]}, spec: {replicas: 3, template: {spec: {containers:"
		" [{name: c}]}}}}\n---\n"
		"{kind: Deployment, metadata: {name: d}, spec: {replicas: 3, template: {spec:"
		" {containers: [{name: c}]}}}}\n";
	struct err err = ERR_INIT;
	uint32_t pods;

	submit(text, &err, &pods);
	CHECK_STR(err.text, "");
	CHECK_INT(pods, 1);
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
		      "had too few GPUs (asked for 9, at most 8 on one node).") != NULL,
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
