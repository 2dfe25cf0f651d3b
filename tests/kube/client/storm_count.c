/* SPDX-License-Identifier: Apache-2.0 */
/* storm_count.c - Leases as counters, each replaced by several writers at once. */
#include "storm.h"

#include "test.h"

#include "base/attr.h"
#include "kube/kind.h"
#include "wire/json.h"
#include "wire/json_write.h"

static void on_read(void *context, const struct kube_write_result *result);
static void on_replaced(void *context, const struct kube_write_result *result);
static void on_doubted(void *context, const struct kube_write_result *result);

static void mark(char *key, size_t size, unsigned writer)
{
	snprintf(key, size, "storm/w%u", writer);
}

static void read_lease(struct storm_counting *counting,
		       void (*done)(void *context, const struct kube_write_result *result))
{
	storm_write(&counting->writer, (struct kube_write){ .verb = KUBE_GET,
							    .kind = &kube_kinds[KUBE_LEASE],
							    .name = counting->counter->name,
							    .done = done,
							    .context = counting });
}

static void next(struct storm_counting *counting)
{
	if (counting->writer.storm->ending)
		storm_writer_end(&counting->writer);
	else
		read_lease(counting, on_read);
}

static void replace(struct storm_counting *counting)
{
	struct storm_writer *writer = &counting->writer;
	storm_write(writer, (struct kube_write){ .verb = KUBE_REPLACE,
						 .kind = &kube_kinds[KUBE_LEASE],
						 .name = counting->counter->name,
						 .body = writer->body.s,
						 .body_len = writer->body.len,
						 .reread_refused = true,
						 .done = on_replaced,
						 .context = counting });
}

/* The marks of the others stay as they are. */
static void add_marks(struct json_writer *w, const struct storm_counting *counting,
		      const struct json *lease)
{
	char key[32], value[16];
	mark(key, sizeof(key), counting->writer.number);
	snprintf(value, sizeof(value), "%u", counting->attempt);
	json_add_key(w, "annotations");
	json_open_object(w);
	struct json_iter members = json_members(lease, "metadata", "annotations");
	for (struct json_member member; json_next_member(&members, &member);) {
		if (strcmp(member.key, key) == 0)
			continue;
		json_add_key(w, member.key);
		json_add_value(w, member.value);
	}
	json_add_key(w, key);
	json_add_str(w, value);
	json_close_object(w);
}

static void write_lease(struct storm_counting *counting, const struct json *lease)
{
	struct storm_writer *writer = &counting->writer;
	struct json_writer w = JSON_WRITER_INIT(&writer->body);
	int64_t n = 0;
	json_i64(lease, &n, "spec", "leaseTransitions");
	strbuf_reset(&writer->body);
	counting->attempt++;
	json_open_object(&w);
	json_add_key(&w, "apiVersion");
	json_add_str(&w, "coordination.k8s.io/v1");
	json_add_key(&w, "kind");
	json_add_str(&w, "Lease");
	json_add_key(&w, "metadata");
	json_open_object(&w);
	json_add_key(&w, "name");
	json_add_str(&w, counting->counter->name);
	json_add_key(&w, "uid");
	json_add_str(&w, writer->uid);
	json_add_key(&w, "resourceVersion");
	json_add_str(&w, writer->version);
	add_marks(&w, counting, lease);
	json_close_object(&w);
	json_add_key(&w, "spec");
	json_open_object(&w);
	json_add_key(&w, "leaseTransitions");
	json_add_i64(&w, n + 1);
	json_close_object(&w);
	json_close_object(&w);
	replace(counting);
}

static void on_read(void *context, const struct kube_write_result *result)
{
	struct storm_counting *counting = context;
	const struct json *lease = storm_shown(result);
	CHECKF(result->reply->reason != KUBE_NOT_FOUND, "%s", result->reply->message);
	if (!lease) {
		next(counting);
		return;
	}
	storm_note(&counting->writer, lease);
	write_lease(counting, lease);
}

static void won(struct storm_counting *counting)
{
	counting->counter->won++;
	counting->last = counting->attempt;
	next(counting);
}

/* The Lease as it was after the write. */
static void judge(struct storm_counting *counting, const struct json *lease)
{
	char key[32], value[16];
	mark(key, sizeof(key), counting->writer.number);
	snprintf(value, sizeof(value), "%u", counting->attempt);
	const char *last = json_str(lease, "metadata", "annotations", key);
	CHECK_STR(json_str(lease, "metadata", "uid"), counting->writer.uid);
	if (last && strcmp(last, value) == 0)
		won(counting);
	else if (strcmp(json_str(lease, "metadata", "resourceVersion"),
			counting->writer.version) == 0)
		replace(counting);
	else
		next(counting);
}

static void on_doubted(void *context, const struct kube_write_result *result)
{
	struct storm_counting *counting = context;
	const struct json *lease = storm_shown(result);
	if (lease)
		judge(counting, lease);
	else
		read_lease(counting, on_doubted);
}

static void on_replaced(void *context, const struct kube_write_result *result)
{
	struct storm_counting *counting = context;
	if (result->reply->reason == KUBE_OK)
		won(counting);
	else
		on_doubted(context, result);
}

void storm_count_begin(struct storm *storm)
{
	for (unsigned i = 0; i < STORM_COUNTERS; i++) {
		struct storm_counter *counter = &storm->counters[i];
		char body[128];
		snprintf(counter->name, sizeof(counter->name), "counter-%u", i);
		snprintf(body, sizeof(body),
			 "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"leaseTransitions\":0}}",
			 counter->name);
		CHECK_INT(live_call(&storm->direct, "POST",
				    "/apis/coordination.k8s.io/v1/namespaces/" STORM_NAMESPACE
				    "/leases",
				    body),
			  201);
	}
	for (unsigned i = 0; i < STORM_COUNTERS * STORM_COUNTING; i++) {
		struct storm_counting *counting = &storm->counting[i];
		storm_writer_begin(&counting->writer, storm, i);
		counting->counter = &storm->counters[i / STORM_COUNTING];
		next(counting);
	}
}

static void check_marks(const struct storm *storm, unsigned counter, const struct json *lease)
{
	for (unsigned i = 0; i < STORM_COUNTING; i++) {
		const struct storm_counting *counting =
			&storm->counting[counter * STORM_COUNTING + i];
		char key[32], value[16];
		mark(key, sizeof(key), counting->writer.number);
		snprintf(value, sizeof(value), "%u", counting->last);
		const char *last = json_str(lease, "metadata", "annotations", key);
		CHECK_STR(last ? last : "0", value);
	}
}

void storm_count_check(struct storm *storm)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = storm_list(
		storm, "/apis/coordination.k8s.io/v1/namespaces/" STORM_NAMESPACE "/leases");
	struct json_iter items = json_items(json_root(doc), "items");
	unsigned seen = 0;
	for (const struct json *lease; (lease = json_next(&items)); seen++) {
		unsigned i = 0;
		int64_t n = 0;
		CHECK(sscanf(json_str(lease, "metadata", "name"), "counter-%u", &i) == 1);
		CHECK(i < STORM_COUNTERS);
		CHECK_INT(json_i64(lease, &n, "spec", "leaseTransitions"), 0);
		CHECK_INT(n, storm->counters[i].won);
		CHECK(n > 0);
		check_marks(storm, i, lease);
		printf("# %s: %" PRIu64 "\n", storm->counters[i].name, storm->counters[i].won);
	}
	CHECK_INT(seen, STORM_COUNTERS);
}
