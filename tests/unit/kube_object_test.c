/* SPDX-License-Identifier: Apache-2.0 */
#include "samples.h"
#include "test.h"

#include "base/attr.h"
#include "kube/keep.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "wire/json.h"

#include <errno.h>

static struct json_doc *parse(const char *text, size_t len)
{
	struct json_doc *doc = NULL;
	struct err err = ERR_INIT;
	CHECKF(json_parse("test", text, len, NULL, &doc, &err) == 0, "%s", err.text);
	return doc;
}

static struct keep *keep_of(enum kube_kind_id kind)
{
	struct keep *keep = NULL;
	CHECK_INT(keep_new(kube_kinds[kind].keep, &keep, NULL), 0);
	return keep;
}

TEST(an_object_is_one_piece_with_all_its_names)
{
	static const char text[] =
		"{\"metadata\":{\"name\":\"a\",\"namespace\":\"ml\",\"uid\":\"u-1\","
		"\"resourceVersion\":\"12\",\"managedFields\":[1]},\"spec\":{\"nodeName\":\"n\"}}";
	struct json_doc *doc CLEANUP(json_doc_freep) = parse(text, strlen(text));
	struct json_doc *again CLEANUP(json_doc_freep) = NULL;
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	struct keep *keep CLEANUP(keep_freep) = keep_of(KUBE_POD);
	struct kube_object *object CLEANUP(kube_object_freep) = NULL;
	CHECK_INT(kube_object_new(json_root(doc), keep, &object, NULL), 0);
	CHECK_STR(object->namespace, "ml");
	CHECK_STR(object->name, "a");
	CHECK_STR(object->uid, "u-1");
	CHECK_STR(object->version, "12");
	kube_object_write_json(object, &out);
	CHECK_STR(out.s, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ml\",\"uid\":"
			 "\"u-1\"},\"spec\":{\"nodeName\":\"n\"}}");
	CHECK(object->user == NULL);
	CHECK_INT(object->bytes, sizeof(*object) + 3 + 2 + 4 + 3 + object->packed_len);
	CHECK_INT(kube_object_parse(object, &again), 0);
	CHECK_STR(json_str(json_root(again), "spec", "nodeName"), "n");
}

TEST(objects_without_identity_are_refused)
{
	static const struct {
		const char *text, *complaint;
	} rows[] = {
		{ "[]", "an object without metadata.name" },
		{ "{\"metadata\":{\"resourceVersion\":\"1\"}}",
		  "an object without metadata.name" },
		{ "{\"metadata\":{\"name\":\"\",\"resourceVersion\":\"1\"}}",
		  "an object without metadata.name" },
		{ "{\"metadata\":{\"name\":\"a\"}}",
		  "a: an object without metadata.resourceVersion" },
		{ "{\"metadata\":{\"name\":7,\"resourceVersion\":\"1\"}}",
		  "an object whose metadata.name is no string" },
		{ "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":1}}",
		  "an object whose metadata.resourceVersion is no string" },
		{ "{\"metadata\":{\"name\":\"a\\u0000b\",\"resourceVersion\":\"1\"}}",
		  "an object whose metadata.name is no string" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct json_doc *doc CLEANUP(json_doc_freep) =
			parse(rows[i].text, strlen(rows[i].text));
		struct kube_meta meta;
		struct err err = ERR_INIT;
		CHECK_INT(kube_meta_read(json_root(doc), &meta, &err), -EINVAL);
		CHECK_STR(err.text, rows[i].complaint);
	}
}

TEST(names_are_as_long_as_kubernetes_allows)
{
	static const struct {
		const char *field;
		size_t max;
	} rows[] = { { "namespace", 63 }, { "name", 253 }, { "uid", 128 } };
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		for (size_t more = 0; more < 2; more++) {
			char text[512], value[300] = "";
			memset(value, 'x', rows[i].max + more);
			snprintf(text, sizeof(text),
				 "{\"metadata\":{\"%s\":\"%s\",\"name\":\"a\","
				 "\"resourceVersion\":\"1\"}}",
				 rows[i].field, value);
			struct json_doc *doc CLEANUP(json_doc_freep) = parse(text, strlen(text));
			struct kube_meta meta;
			CHECK_INT(kube_meta_read(json_root(doc), &meta, NULL), more ? -EINVAL : 0);
		}
	}
}

TEST(an_object_of_a_megabyte_is_refused)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct keep *keep CLEANUP(keep_freep) = keep_of(KUBE_CONFIG_MAP);
	struct kube_object *object CLEANUP(kube_object_freep) = NULL;
	struct err err = ERR_INIT;
	strbuf_puts(&text, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"},"
			   "\"data\":{\"x\":\"");
	for (size_t i = 0; i < KUBE_KEPT_MAX; i++)
		strbuf_putc(&text, 'x');
	strbuf_puts(&text, "\"}}");
	struct json_doc *doc CLEANUP(json_doc_freep) = parse(text.s, text.len);
	CHECK_INT(kube_object_new(json_root(doc), keep, &object, &err), -E2BIG);
	CHECK_STR(err.text, "a: more than 1048576 bytes of it would be kept");
}

TEST(of_annotations_that_are_not_kept_their_size_is)
{
	static const struct {
		const char *annotations;
		uint32_t bytes;
	} rows[] = {
		{ "{}", 0 },
		{ "null", 0 },
		{ "{\"a\":\"\"}", 1 },
		{ "{\"example.com/note\":\"\\u00e4\\n\",\"gpu.scheduling/claim\":\"two\"}",
		  16 + 3 + 20 + 3 },
	};
	struct keep *keep CLEANUP(keep_freep) = keep_of(KUBE_POD);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct kube_object *object CLEANUP(kube_object_freep) = NULL;
		char text[256];
		snprintf(text, sizeof(text),
			 "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\","
			 "\"annotations\":%s}}",
			 rows[i].annotations);
		struct json_doc *doc CLEANUP(json_doc_freep) = parse(text, strlen(text));
		CHECK_INT(kube_object_new(json_root(doc), keep, &object, NULL), 0);
		CHECKF(object->annotations_bytes == rows[i].bytes, "%s: %u", rows[i].annotations,
		       object->annotations_bytes);
	}
}

static struct kube_object *object_of_sample(const char *name, enum kube_kind_id kind)
{
	struct strbuf line CLEANUP(strbuf_done) = STRBUF_INIT;
	struct keep *keep CLEANUP(keep_freep) = keep_of(kind);
	struct kube_object *object = NULL;
	sample_read(name, &line);
	struct json_doc *doc CLEANUP(json_doc_freep) = parse(line.s, line.len);
	CHECK_INT(kube_object_new(json_get(json_root(doc), "object"), keep, &object, NULL), 0);
	return object;
}

TEST(a_pod_takes_less_than_a_kibibyte)
{
	static const char *const names[] = { "pod_running.json", "pod_pending.json" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct kube_object *pod CLEANUP(kube_object_freep) =
			object_of_sample(names[i], KUBE_POD);
		CHECKF(pod->bytes < 1024, "%s: %u bytes", names[i], pod->bytes);
	}
}

TEST(of_a_pod_is_kept_what_scheduling_asks_about)
{
	struct kube_object *pod CLEANUP(kube_object_freep) =
		object_of_sample("pod_running.json", KUBE_POD);
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	CHECK_INT(kube_object_parse(pod, &doc), 0);
	const struct json *root = json_root(doc);
	struct json_iter containers = json_items(root, "spec", "containers");
	CHECK_STR(json_str(root, "spec", "nodeName"), "gpu-0");
	CHECK_STR(json_str(root, "metadata", "annotations", "gpu.scheduling/allocated"),
		  "gpu-0:0,1");
	CHECK_INT(json_len(root, "metadata", "annotations"), 5);
	CHECK_INT(json_len(root, "spec", "containers"), 2);
	CHECK_INT(json_len(root, "spec", "volumes"), 1);
	CHECK_INT(json_len(root, "spec", "tolerations"), 2);
	CHECK_INT(json_len(root, "status", "conditions"), 2);
	CHECK(!json_get(root, "status", "containerStatuses"));
	CHECK(!json_get(root, "metadata", "managedFields"));
	CHECK(!json_get(json_next(&containers), "volumeMounts"));
}

TEST(of_a_node_are_kept_its_resources_and_whether_it_is_ready)
{
	struct kube_object *node CLEANUP(kube_object_freep) =
		object_of_sample("node.json", KUBE_NODE);
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	CHECK_INT(kube_object_parse(node, &doc), 0);
	const struct json *root = json_root(doc);
	CHECK_STR(json_str(root, "status", "allocatable", "nvidia.com/gpu"), "8");
	CHECK_INT(json_len(root, "status", "conditions"), 1);
	CHECK(!json_get(root, "status", "nodeInfo"));
}

TEST_MAIN()
