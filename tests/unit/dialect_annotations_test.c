/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect_bench.h"

#include "dialect/annotations.h"
#include "engine/assign.h"
#include "engine/engine.h"

#define LONG "a-container-whose-name-is-as-long-as-kubernetes-lets-it-become"

#define JUST "a-container-whose-name-is-as-long-as-a-key-lets-it-be" /* 53 letters */

static const char *mig_uuid(void *context, uint32_t node, const struct hold *hold)
{
	(void)node;
	(void)hold;
	return context;
}

/* Two containers: GPUs 1 and 4 whole, and half of GPU 6. */
static void prepare(struct bench *b, struct decision *d)
{
	bench_init(b);
	CHECK(bench_read(b,
			 "kind: Pod\nmetadata: {name: p}\nspec: {containers: ["
			 "{name: train, resources: {limits: {nvidia.com/gpu: 2}}},"
			 "{name: watch}, {name: serve, resources: {limits:"
			 " {elasticgpu.io/gpu-core: 50, elasticgpu.io/gpu-memory: 100}}}]}\n") ==
	      0);
	*d = (struct decision){ .node = cluster_node_find(b->cluster, "alpha"), .score = 7 };
	d->assignment.count = 3;
	d->assignment.gpus = 1 << 1 | 1 << 4 | 1 << 6;
	d->assignment.holds[0] = (struct hold){ .gpu = 1, .ask = 0, .kind = ASK_WHOLE };
	d->assignment.holds[1] = (struct hold){ .gpu = 4, .ask = 0, .kind = ASK_WHOLE };
	d->assignment.holds[2] = (struct hold){
		.gpu = 6, .ask = 1, .kind = ASK_SHARE, .core_milli = 500, .mem_mib = 100
	};
}

static struct annotations_input input_of(const struct bench *b, const struct decision *d)
{
	return (struct annotations_input){ .cluster = b->cluster,
					   .wish = &b->wish,
					   .decision = d,
					   .scheduler = "gpu-scheduler",
					   .attempt = 2 };
}

TEST(ids_where_every_gpu_is_visible)
{
	struct bench b;
	struct decision d;
	struct annotations list;

	prepare(&b, &d);
	struct annotations_input in = input_of(&b, &d);
	CHECK(annotations_make(&in, &b.arena, &list, NULL) == 0);
	CHECK_STR(annotations_find(&list, "gpu.scheduling/allocated"), "alpha:1,4,6");
	CHECK_STR(annotations_find(&list, "gpu.scheduling/visible-devices"), "1,4,6");
	CHECK_STR(annotations_find(&list, "elasticgpu.io/container-train"), "1,4");
	CHECK_STR(annotations_find(&list, "elasticgpu.io/container-serve"), "6");
	CHECK(annotations_find(&list, "elasticgpu.io/container-watch") == NULL);
	CHECK_STR(annotations_find(&list, "elasticgpu.io/assumed"), "true");
	CHECK_STR(annotations_find(&list, "gpu.scheduling/decision"),
		  "{\"node\":\"alpha\",\"gpus\":["
		  "{\"id\":1,\"uuid\":\"GPU-alpha-1\",\"coreMilli\":1000,\"memoryMiB\":80000,"
		  "\"ask\":0},"
		  "{\"id\":4,\"uuid\":\"GPU-alpha-4\",\"coreMilli\":1000,\"memoryMiB\":80000,"
		  "\"ask\":0},"
		  "{\"id\":6,\"uuid\":\"GPU-alpha-6\",\"coreMilli\":500,\"memoryMiB\":100,\"ask\":"
		  "1}],"
		  "\"containers\":{\"train\":{\"gpus\":[0,1]},\"serve\":{\"gpus\":[2],"
		  "\"coreMilli\":500,\"memoryMiB\":100}},\"attempt\":2,"
		  "\"scheduler\":\"gpu-scheduler\",\"score\":7}");
	bench_done(&b);
}

TEST(positions_where_only_the_decided_ones_are_visible)
{
	struct bench b;
	struct decision d;
	struct annotations list;

	prepare(&b, &d);
	struct annotations_input in = input_of(&b, &d);
	in.visibility = VISIBLE_DECIDED;
	CHECK(annotations_make(&in, &b.arena, &list, NULL) == 0);
	CHECK_STR(annotations_find(&list, "gpu.scheduling/visible-devices"), "0,1,2");
	CHECK_STR(annotations_find(&list, "elasticgpu.io/container-train"), "0,1");
	CHECK_STR(annotations_find(&list, "elasticgpu.io/container-serve"), "0");
	in.mps = true;
	CHECK(annotations_make(&in, &b.arena, &list, NULL) == 0);
	CHECK_STR(annotations_find(&list, "elasticgpu.io/container-serve"), "GPU-alpha-6");
	CHECK_STR(annotations_find(&list, "elasticgpu.io/container-train"), "0,1");
	/* Numbers and UUIDs in one value would not be understood. */
	CHECK_STR(annotations_find(&list, "gpu.scheduling/visible-devices"),
		  "GPU-alpha-1,GPU-alpha-4,GPU-alpha-6");
	bench_done(&b);
}

TEST(uuids_where_the_runtime_shows_what_the_value_names)
{
	struct bench b;
	struct decision d;
	struct annotations list;

	prepare(&b, &d);
	struct annotations_input in = input_of(&b, &d);
	in.visibility = VISIBLE_NAMED;
	CHECK(annotations_make(&in, &b.arena, &list, NULL) == 0);
	CHECK_STR(annotations_find(&list, "elasticgpu.io/container-train"),
		  "GPU-alpha-1,GPU-alpha-4");
	CHECK_STR(annotations_find(&list, "elasticgpu.io/container-serve"), "GPU-alpha-6");
	CHECK_STR(annotations_find(&list, "gpu.scheduling/visible-devices"),
		  "GPU-alpha-1,GPU-alpha-4,GPU-alpha-6");
	bench_done(&b);
}

TEST(slices_are_named_by_uuid)
{
	static char uuid[] = "MIG-1234";
	struct bench b;
	struct decision d;
	struct annotations list;
	struct err err = ERR_INIT;

	bench_init(&b);
	CHECK(bench_read(&b, "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c,"
			     " resources: {limits: {nvidia.com/mig-1g.10gb: 1}}}]}\n") == 0);
	uint32_t number = cluster_node_find(b.cluster, "alpha");
	d = (struct decision){ .node = number };
	d.assignment.count = 1;
	d.assignment.gpus = 1;
	d.assignment.holds[0] = (struct hold){ .gpu = 0, .ask = 0, .kind = ASK_MIG };
	struct annotations_input in = input_of(&b, &d);
	CHECK_INT(annotations_make(&in, &b.arena, &list, &err), -ENOENT);
	CHECK_STR(err.text, "the MIG slice on GPU 0 of alpha has no UUID yet");
	in.slice_uuid = mig_uuid;
	in.context = uuid;
	CHECK(annotations_make(&in, &b.arena, &list, NULL) == 0);
	CHECK_STR(annotations_find(&list, "elasticgpu.io/container-c"), "MIG-1234");
	CHECK(strstr(annotations_find(&list, "gpu.scheduling/decision"),
		     "\"mig\":{\"profile\":\"7g.80gb\",\"start\":0}") != NULL);
	/* Where only the slice is visible too. */
	in.visibility = VISIBLE_DECIDED;
	CHECK(annotations_make(&in, &b.arena, &list, NULL) == 0);
	CHECK_STR(annotations_find(&list, "elasticgpu.io/container-c"), "MIG-1234");
	in.slice_uuid = NULL;
	CHECK_INT(annotations_make(&in, &b.arena, &list, &err), -ENOENT);
	bench_done(&b);
}

TEST(a_card_without_uuid_is_never_named_by_number_under_mps)
{
	struct bench b;
	struct decision d;
	struct annotations list;
	struct err err = ERR_INIT;

	prepare(&b, &d);
	struct annotations_input in = input_of(&b, &d);
	in.mps = true;
	cluster_node(b.cluster, d.node)->gpus[6].uuid = cluster_intern(b.cluster, "");
	CHECK_INT(annotations_make(&in, &b.arena, &list, &err), -ENOENT);
	CHECK_STR(err.text, "GPU 6 of alpha has no UUID yet");
	bench_done(&b);
}

TEST(an_init_container_is_told_only_of_what_it_asked_for)
{
	struct bench b;
	struct annotations list;
	static char uuid[] = "MIG-1";

	bench_init(&b);
	CHECK(bench_read(&b, "kind: Pod\nmetadata: {name: p}\nspec: {initContainers: [{name: i,"
			     " resources: {limits: {nvidia.com/gpu: 3, nvidia.com/mig-1g.10gb:"
			     " 1}}}], containers: [{name: a, resources: {limits: {nvidia.com/gpu:"
			     " 2, nvidia.com/mig-1g.10gb: 2}}}, {name: b, resources: {limits:"
			     " {nvidia.com/gpu: 2}}}]}\n") == 0);
	struct decision d = { .node = cluster_node_find(b.cluster, "alpha") };
	d.assignment.count = 6;
	d.assignment.holds[0] = (struct hold){ .gpu = 6, .ask = 2, .kind = ASK_WHOLE };
	d.assignment.holds[1] = (struct hold){ .gpu = 5, .ask = 2, .kind = ASK_WHOLE };
	d.assignment.holds[2] = (struct hold){ .gpu = 0, .ask = 0, .kind = ASK_WHOLE };
	d.assignment.holds[3] = (struct hold){ .gpu = 1, .ask = 0, .kind = ASK_WHOLE };
	d.assignment.holds[4] =
		(struct hold){ .gpu = 3, .ask = 1, .kind = ASK_MIG, .mig_start = 1 };
	d.assignment.holds[5] = (struct hold){ .gpu = 3, .ask = 1, .kind = ASK_MIG };
	struct annotations_input in = input_of(&b, &d);
	in.slice_uuid = mig_uuid;
	in.context = uuid;
	CHECK(annotations_make(&in, &b.arena, &list, NULL) == 0);
	CHECK(strstr(annotations_find(&list, "gpu.scheduling/decision"),
		     "\"containers\":{\"a\":{\"gpus\":[2,3,4,5]},\"b\":{\"gpus\":[0,1]},"
		     "\"i\":{\"gpus\":[1,2,3,5]}}") != NULL);
	CHECK_STR(annotations_find(&list, "elasticgpu.io/container-i"),
		  "GPU-alpha-0,GPU-alpha-1,MIG-1,GPU-alpha-5");
	CHECK_STR(annotations_find(&list, "elasticgpu.io/container-b"), "5,6");
	/* Two slices of one card are two devices. */
	CHECK_STR(annotations_find(&list, "elasticgpu.io/container-a"),
		  "GPU-alpha-0,GPU-alpha-1,MIG-1,MIG-1");
	bench_done(&b);
}

TEST(two_shares_of_one_card_are_one_device)
{
	struct bench b;
	struct annotations list;

	bench_init(&b);
	CHECK(bench_read(&b,
			 "kind: Pod\nmetadata: {name: p}\nspec: {containers: ["
			 "{name: a, resources: {limits: {elasticgpu.io/gpu-memory: 7}}},"
			 "{name: b, resources: {limits: {elasticgpu.io/gpu-core: 20}}}]}\n") == 0);
	struct decision d = { .node = cluster_node_find(b.cluster, "alpha") };
	d.assignment.count = 2;
	d.assignment.holds[0] = (struct hold){ .gpu = 6, .ask = 0, .kind = ASK_SHARE };
	d.assignment.holds[1] = (struct hold){ .gpu = 6, .ask = 1, .kind = ASK_SHARE };
	struct annotations_input in = input_of(&b, &d);
	CHECK(annotations_make(&in, &b.arena, &list, NULL) == 0);
	CHECK_STR(annotations_find(&list, "gpu.scheduling/visible-devices"), "6");
	CHECK_STR(annotations_find(&list, "elasticgpu.io/container-b"), "6");
	CHECK(strstr(annotations_find(&list, "gpu.scheduling/decision"),
		     "\"containers\":{\"a\":{\"gpus\":[0],\"coreMilli\":0,\"memoryMiB\":7},"
		     "\"b\":{\"gpus\":[1],\"coreMilli\":200,\"memoryMiB\":0}}") != NULL);
	bench_done(&b);
}

TEST(annotations_that_are_too_large_are_not_sent)
{
	struct bench b;
	struct decision d;
	struct annotations list;
	struct err err = ERR_INIT;
	size_t bytes = 0;

	prepare(&b, &d);
	struct annotations_input in = input_of(&b, &d);
	CHECK(annotations_make(&in, &b.arena, &list, NULL) == 0);
	for (uint32_t i = 0; i < list.count; i++)
		bytes += strlen(list.items[i].key) + strlen(list.items[i].value);
	in.existing_bytes = ANNOTATIONS_BYTES_ALL - bytes;
	CHECK(annotations_make(&in, &b.arena, &list, NULL) == 0);
	in.existing_bytes++;
	CHECK_INT(annotations_make(&in, &b.arena, &list, &err), -E2BIG);
	CHECK(strstr(err.text, "at most 262144 are allowed") != NULL);
	in.existing_bytes = SIZE_MAX;
	CHECK_INT(annotations_make(&in, &b.arena, &list, &err), -E2BIG);
	/* Our own bound holds whatever the pod has. */
	static char scheduler[ANNOTATIONS_BYTES_MAX + 1];
	memset(scheduler, 's', ANNOTATIONS_BYTES_MAX - bytes + strlen(in.scheduler));
	in.existing_bytes = 0;
	in.scheduler = scheduler;
	CHECK(annotations_make(&in, &b.arena, &list, NULL) == 0);
	scheduler[strlen(scheduler)] = 's';
	CHECK_INT(annotations_make(&in, &b.arena, &list, &err), -E2BIG);
	CHECK_STR(err.text,
		  "the decision takes 65537 bytes of annotations, at most 65536 are allowed");
	bench_done(&b);
}

TEST(long_container_names_make_legal_keys)
{
	char key[ANNOTATION_KEY_MAX], other[ANNOTATION_KEY_MAX];

	CHECK_STR(annotation_container_key("main", key), "elasticgpu.io/container-main");
	CHECK_STR(annotation_container_key(JUST, key), "elasticgpu.io/container-" JUST);
	annotation_container_key(LONG, key);
	CHECK_INT(strlen(strchr(key, '/') + 1), 63);
	CHECK(annotation_key_check(key, NULL) == 0);
	/* The same but for the last letter. */
	annotation_container_key(LONG "s", other);
	CHECK(strcmp(key, other) != 0);
	CHECK_STR(annotation_container_key(LONG, other), key);
}

TEST(keys_that_kubernetes_refuses_are_refused)
{
	static const char overlong[] = "x/" LONG "-and-more";
	static const char *const bad[] = { "",	   "/x",   "x/",    "a/b/c", "-x/y",
					   "x/-y", "x/y_", "x y/z", overlong };
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECKF(annotation_key_check(bad[i], &err) == -EINVAL, "row %zu", i);
	CHECK_STR(err.text, "\"x/" LONG "-and-more\" is no legal key for an annotation");
	CHECK(annotation_key_check("a.b/c_d.e", NULL) == 0);
}

TEST_MAIN()
