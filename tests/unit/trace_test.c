/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "engine/policy/policy.h"
#include "sim/replay.h"
#include "sim/trace.h"
#include "test.h"

#define NODES "sn,cpu_milli,memory_mib,gpu,model\n"
#define PODS  "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"

/* Reading changes the texts: they are copied. */
static int parse(const char *nodes, const char *pods, const char *order, struct trace *ret,
		 struct err *err)
{
	char *copies[3] = { strdup(nodes), strdup(pods), strdup(order ? order : "") };
	struct trace_text n = { "nodes.csv", copies[0], strlen(nodes) };
	struct trace_text p = { "pods.csv", copies[1], strlen(pods) };
	struct trace_text o = { "order.txt", copies[2], order ? strlen(order) : 0 };
	int rc = trace_parse(&n, &p, order ? &o : NULL, ret, err);

	for (int i = 0; i < 3; i++)
		free(copies[i]);
	return rc;
}

static void run(const char *nodes, const char *pods, const char *order, const char *policy,
		struct replay *ret)
{
	struct trace trace;
	struct err err = ERR_INIT;
	struct clock_manual clock;
	struct replay_config config = { .policy = policy_find(policy),
					.seed = 3,
					.clock = &clock.clock };

	clock_manual_init(&clock, 0);
	CHECKF(parse(nodes, pods, order, &trace, &err) == 0, "%s", err.text);
	CHECKF(replay_run(&trace, &config, ret, &err) == 0, "%s", err.text);
	trace_done(&trace);
}

TEST(columns_are_found_by_name_and_some_may_be_missing)
{
	struct trace t;
	struct err err = ERR_INIT;

	CHECKF(parse("model,gpu,memory_mib,cpu_milli,sn,extra\nT4,2,10,20,a,x\n,0,1,2,b,y\n",
		     "gpu_milli,num_gpu,memory_mib,cpu_milli,name\n1000,1,3,4,p\n0,0,0,0,q\n",
		     NULL, &t, &err) == 0,
	       "%s", err.text);
	CHECK_INT(t.nodes_count, 2);
	CHECK_STR(t.nodes[0].name, "a");
	CHECK_STR(t.nodes[0].model, "T4");
	CHECK_INT(t.nodes[0].cpu_milli, 20);
	CHECK_INT(t.nodes[1].gpus, 0);
	CHECK_INT(t.pods_count, 2);
	CHECK_INT(t.order_count, 2);
	CHECK_INT(t.classes[t.pods[0].class_index].mem_mib, 3);
	CHECK_STR(t.classes[t.pods[0].class_index].models, "");
	trace_done(&t);
}

TEST(pods_that_ask_for_the_same_are_one_class)
{
	struct trace t;

	CHECK(parse(NODES "a,1,1,1,T4\n", PODS "p,1,1,1,500,T4\nq,1,1,1,500,T4\nr,1,1,1,500,\n",
		    "r\r\np\n\nr", &t, NULL) == 0);
	CHECK_INT(t.classes_count, 2);
	CHECK_INT(t.order_count, 3);
	CHECK_INT(t.order[0], 2);
	CHECK_INT(t.order[1], 0);
	CHECK_INT(t.order[2], 2);
	trace_done(&t);
}

#define LONG "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"

TEST(bad_input_is_one_sentence_with_file_and_line)
{
	static const struct {
		const char *nodes, *pods, *order, *says;
	} rows[] = {
		{ "", PODS, NULL, "nodes.csv" },
		{ "sn,cpu_milli,memory_mib,gpu\na,1,1,1\n", PODS, NULL, "model" },
		{ NODES "a,1,1,1,T4\na,1,1,1,T4\n", PODS "p,1,1,1,1000,\n", NULL,
		  "nodes.csv:3: node a is there twice" },
		{ NODES "a,1,1,1\n", PODS "p,1,1,1,1000,\n", NULL, "nodes.csv:2:" },
		{ NODES "a,-1,1,1,T4\n", PODS "p,1,1,1,1000,\n", NULL, "nodes.csv:2:" },
		{ NODES "a,1,1,x,T4\n", PODS "p,1,1,1,1000,\n", NULL, "nodes.csv:2:" },
		{ NODES "a,1,1,33,T4\n", PODS "p,1,1,1,1000,\n", NULL, "nodes.csv:2:" },
		{ NODES "a,1,99999999999999999999,1,T4\n", PODS "p,1,1,1,1000,\n", NULL,
		  "nodes.csv:2:" },
		{ NODES "a,1,1,1,\n", PODS "p,1,1,1,1000,\n", NULL,
		  "nodes.csv:2: node a has GPUs but no model" },
		{ NODES ",1,1,1,T4\n", PODS "p,1,1,1,1000,\n", NULL,
		  "nodes.csv:2: a node without name" },
		{ NODES "a,1,1,1,T4\n" LONG LONG LONG "x,1,1,1,T4\n", PODS "p,1,1,1,1000,\n", NULL,
		  "nodes.csv:3: node nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn...: its name is "
		  "longer than 128" },
		{ NODES "a,1,1,0,\n", PODS "p,1,1,1,1000,\n", NULL,
		  "nodes.csv: no node has a GPU" },
		{ NODES "a,1,1,1,T4\n", PODS, NULL, "pods.csv: there is no pod in it" },
		{ NODES "a,1,1,1,T4\n", PODS "p,1,1,1,0,\n", NULL, "pods.csv:2:" },
		{ NODES "a,1,1,1,T4\n", PODS "p,1,1,1,1001,\n", NULL, "pods.csv:2:" },
		{ NODES "a,1,1,1,T4\n", PODS "p,1,1,1,,\n", NULL, "pods.csv:2:" },
		{ NODES "a,1,1,1,T4\n", PODS "p,1,1,-1,1000,\n", NULL, "pods.csv:2:" },
		{ NODES "a,1,1,1,T4\n", PODS "p,1,1,1,1000,T4|V9\n", NULL,
		  "pods.csv:2: gpu_spec names model \"V9\", which no node has" },
		{ NODES "a,1,1,1,T4\n", PODS "p,1,1,1,1000,\np,1,1,1,1000,\n", NULL,
		  "pods.csv:3: pod p is there twice" },
		{ NODES "a,1,1,1,T4\n", PODS "p,1,1,1,10", NULL, "pods.csv:2:" },
		{ NODES "a,1,1,1,T4\n", PODS "p,1,1,1,1000,\n", "p\nq\n",
		  "order.txt:2: there is no pod \"q\"" },
		{ NODES "a,1,1,1,T4\n", PODS "p,1,1,1,1000,\n", "\n",
		  "order.txt: there is no pod in it" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct trace t;
		struct err err = ERR_INIT;
		int rc = parse(rows[i].nodes, rows[i].pods, rows[i].order, &t, &err);

		CHECKF(rc < 0, "row %zu", i);
		CHECKF(strstr(err.text, rows[i].says) != NULL, "row %zu: %s", i, err.text);
		CHECK(t.nodes == NULL);
	}
}

TEST(a_line_of_ten_megabytes_is_refused)
{
	struct strbuf text = STRBUF_INIT;
	struct trace t;
	struct err err = ERR_INIT;

	strbuf_puts(&text, NODES "a,1,1,1,");
	for (int i = 0; i < 10 << 20; i += 16)
		strbuf_puts(&text, "0123456789abcdef");
	CHECK(parse(text.s, PODS "p,1,1,1,1000,\n", NULL, &t, &err) < 0);
	CHECKF(strncmp(err.text, "nodes.csv:2:", 12) == 0, "%s", err.text);
	strbuf_done(&text);
}

/* Two GPUs; the third pod is too much, the fourth is too much for the CPUs. */
TEST(the_figure_at_a_load_is_the_mean_over_its_arrivals)
{
	struct replay r;
	double at;

	run(NODES "a,100,100,2,T4\n",
	    PODS "p,10,10,1,1000,\nq,10,10,1,500,\nr,10,10,1,1000,\ns,1000,1,0,0,\nt,1,1,1,3,\n",
	    NULL, "default", &r);
	CHECK_INT(r.decisions, 5);
	CHECK_INT(r.rejected, 2);
	CHECK_INT(r.rejected_cpu_only, 1);
	CHECK(replay_at(&r, 50, &at) && at == 50);
	CHECK(replay_at(&r, 75, &at) && at == 75);
	/* Three arrivals at 125 %: after the second q and s nothing, t adds 0.15 %. */
	CHECK(replay_at(&r, 125, &at) && at > 75.04 && at < 75.06);
	CHECK(!replay_at(&r, 100, &at));
	struct strbuf out = STRBUF_INIT;
	replay_write_csv(&r, &out);
	CHECK_STR(out.s, "load,allocated\n50,50.0000\n75,75.0000\n125,75.0500\n");
	strbuf_reset(&out);
	replay_write_json(&r, &out);
	CHECK_STR(out.s,
		  "{\"alloc\":{\"80\":null,\"90\":null,\"95\":null,\"100\":null,\"110\":null,"
		  "\"130\":null},\"rejected\":2,\"rejected_cpu_only\":1,\"decisions\":5,"
		  "\"seconds\":0.000000}\n");
	strbuf_reset(&out);
	replay_write_table(&r, "default", &out);
	CHECK(strstr(out.s, "5 pods arrived, 2 were rejected (1 of them without GPUs)") != NULL);
	strbuf_done(&out);
	replay_done(&r);
}

TEST(too_many_models_are_refused_at_their_line)
{
	struct strbuf nodes = STRBUF_INIT;
	struct trace t;
	struct err err = ERR_INIT;

	strbuf_puts(&nodes, NODES);
	for (int i = 0; i < 300; i++)
		strbuf_addf(&nodes, "n%d,1,1,1,M%d\n", i, i);
	CHECK(parse(nodes.s, PODS "p,1,1,1,1000,\n", NULL, &t, &err) < 0);
	CHECK_STR(err.text, "nodes.csv:258: there are more than 256 GPU models");
	strbuf_done(&nodes);
}

/* Five GPUs: 20 milli are 0.4 % of them, 10 more are 0.6 %. */
TEST(a_load_is_rounded_to_the_nearest_percent)
{
	struct replay r;
	double at;

	run(NODES "a,100,100,5,T4\n", PODS "p,1,1,1,20,\nq,1,1,1,10,\n", NULL, "default", &r);
	CHECK_INT(r.loads_count, 2);
	CHECK(replay_at(&r, 0, &at) && at == 0.4);
	CHECK(replay_at(&r, 1, &at) && at > 0.599 && at < 0.601);
	replay_done(&r);
}

/* An empty gpu_milli is fine where there are no GPUs. */
TEST(rejected_pods_without_gpus_are_counted_apart)
{
	struct replay r;

	run(NODES "a,100,100,1,T4\n",
	    PODS "p,200,1,0,,\nq,1,200,0,-,\nr,200,1,1,1000,\ns,1,1,0,0,\n", NULL, "default", &r);
	CHECK_INT(r.rejected, 3);
	CHECK_INT(r.rejected_cpu_only, 2);
	replay_done(&r);
}

TEST(models_are_respected_by_every_policy)
{
	for (size_t i = 0; policy_at(i); i++) {
		struct replay r;

		run(NODES "a,100,100,1,T4\nb,100,100,1,V100\n",
		    PODS "p,1,1,1,1000,V100\nq,1,1,1,1000,V100\nr,1,1,1,1000,V100|T4\n",
		    "p\nq\nr\nq\n", policy_at(i)->name, &r);
		CHECKF(r.rejected == 2, "%s rejects %u", policy_at(i)->name, r.rejected);
		replay_done(&r);
	}
}

TEST(the_same_seed_gives_the_same_result)
{
	struct replay a, b;

	for (size_t i = 0; policy_at(i); i++) {
		run(NODES "a,9,9,4,T4\nb,9,9,4,T4\nc,9,9,2,T4\n",
		    PODS "p,1,1,1,300,\nq,2,1,2,1000,\nr,1,1,1,700,\n",
		    "p\nq\nr\np\np\nr\nq\nr\np\n", policy_at(i)->name, &a);
		run(NODES "a,9,9,4,T4\nb,9,9,4,T4\nc,9,9,2,T4\n",
		    PODS "p,1,1,1,300,\nq,2,1,2,1000,\nr,1,1,1,700,\n",
		    "p\nq\nr\np\np\nr\nq\nr\np\n", policy_at(i)->name, &b);
		CHECK_INT(a.loads_count, b.loads_count);
		CHECK(memcmp(a.loads, b.loads, a.loads_count * sizeof(*a.loads)) == 0);
		replay_done(&a);
		replay_done(&b);
	}
}

TEST_MAIN()
