/* SPDX-License-Identifier: Apache-2.0 */
/* storm_cycle.c - ConfigMaps that are made, patched, deleted, and made again. */
#include "storm.h"

#include "test.h"

#include "base/attr.h"
#include "kube/kind.h"
#include "wire/json.h"

#define PATCHES_MAX 6 /* before it is deleted */

static void act(struct storm_cycle *cycle, const struct json *now);
static void on_done(void *context, const struct kube_write_result *result);

static void write_map(struct storm_cycle *cycle, struct kube_write write)
{
	write.kind = &kube_kinds[KUBE_CONFIG_MAP];
	write.name = cycle->name;
	if (cycle->writer.body.len > 0) {
		write.body = cycle->writer.body.s;
		write.body_len = cycle->writer.body.len;
	}
	write.reread_refused = true;
	write.done = on_done;
	write.context = cycle;
	storm_write(&cycle->writer, write);
}

static void read_map(struct storm_cycle *cycle)
{
	strbuf_reset(&cycle->writer.body);
	storm_write(&cycle->writer, (struct kube_write){ .verb = KUBE_GET,
							 .kind = &kube_kinds[KUBE_CONFIG_MAP],
							 .name = cycle->name,
							 .done = on_done,
							 .context = cycle });
}

static void create(struct storm_cycle *cycle)
{
	strbuf_addf(&cycle->writer.body,
		    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s\"},"
		    "\"data\":{\"generation\":\"%u\",\"n\":\"0\"}}",
		    cycle->name, cycle->generation);
	write_map(cycle, (struct kube_write){ .verb = KUBE_CREATE });
}

static void delete_map(struct storm_cycle *cycle)
{
	write_map(cycle,
		  (struct kube_write){ .verb = KUBE_DELETE,
				       .uid = cycle->writer.uid,
				       .version = cycle->n % 2 ? cycle->writer.version : NULL });
}

/* data.n becomes n + 1, each time in another way; all but the apply say which version is
 * meant. */
static void patch(struct storm_cycle *cycle)
{
	struct storm_writer *writer = &cycle->writer;
	static const enum kube_write_verb verbs[] = { KUBE_MERGE_PATCH, KUBE_STRATEGIC_PATCH,
						      KUBE_JSON_PATCH, KUBE_APPLY };
	enum kube_write_verb verb = verbs[(writer->number + cycle->n) % ARRAY_SIZE(verbs)];
	if (verb == KUBE_JSON_PATCH)
		strbuf_addf(&writer->body,
			    "[{\"op\":\"test\",\"path\":\"/metadata/resourceVersion\","
			    "\"value\":\"%s\"},"
			    "{\"op\":\"replace\",\"path\":\"/data/n\",\"value\":\"%u\"}]",
			    writer->version, cycle->n + 1);
	else
		strbuf_addf(&writer->body,
			    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
			    "\"name\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"%s\"},"
			    "\"data\":{\"n\":\"%u\"}}",
			    cycle->name, writer->uid, writer->version, cycle->n + 1);
	write_map(cycle, (struct kube_write){ .verb = verb, .force = verb == KUBE_APPLY });
}

static void make(struct storm_cycle *cycle)
{
	cycle->generation++;
	cycle->n = 0;
	cycle->deletes = false;
	cycle->until = 1 + rng_below(&cycle->writer.storm->rng, PATCHES_MAX);
	create(cycle);
}

/* It is not there. */
static void act_on_nothing(struct storm_cycle *cycle)
{
	CHECKF(cycle->deletes || cycle->n == 0, "%s is gone, and nobody deleted it", cycle->name);
	if (!cycle->deletes) {
		create(cycle);
		return;
	}
	cycle->deleted++;
	make(cycle);
}

/* A create that was sent twice, for its answer was lost, and whose first came so late that
 * the second had been deleted again by then. */
static bool is_ghost(const struct storm_cycle *cycle, const struct json *now, unsigned generation)
{
	const char *uid = json_str(now, "metadata", "uid");
	return generation < cycle->generation ||
	       (cycle->deletes && strcmp(uid, cycle->writer.uid) != 0);
}

/* Goes on from what the server has: nobody else writes it. */
static void act(struct storm_cycle *cycle, const struct json *now)
{
	unsigned generation = 0, n = 0;
	strbuf_reset(&cycle->writer.body);
	if (!now) {
		act_on_nothing(cycle);
		return;
	}
	CHECK(sscanf(json_str(now, "data", "generation"), "%u", &generation) == 1);
	CHECK(sscanf(json_str(now, "data", "n"), "%u", &n) == 1);
	bool ghost = is_ghost(cycle, now, generation);
	storm_note(&cycle->writer, now);
	if (ghost) {
		delete_map(cycle);
		return;
	}
	CHECKF(generation == cycle->generation, "%s is of generation %u, not %u", cycle->name,
	       generation, cycle->generation);
	CHECKF(n == cycle->n || (n == cycle->n + 1 && !cycle->deletes), "%s is at %u after %u",
	       cycle->name, n, cycle->n);
	cycle->n = n;
	cycle->deletes = cycle->deletes || n >= cycle->until;
	if (cycle->writer.storm->ending && !cycle->deletes)
		storm_writer_end(&cycle->writer);
	else if (cycle->deletes)
		delete_map(cycle);
	else
		patch(cycle);
}

static void on_done(void *context, const struct kube_write_result *result)
{
	struct storm_cycle *cycle = context;
	enum kube_reason reason = result->reply->reason;
	bool told_gone = result->current ? result->current->reason == KUBE_NOT_FOUND
					 : reason == KUBE_NOT_FOUND;
	bool deleted = reason == KUBE_OK && cycle->deletes &&
		       json_str(result->reply->body, "status") != NULL;
	const struct json *now = storm_shown(result);
	if (told_gone || deleted)
		act(cycle, NULL);
	else if (now)
		act(cycle, now);
	else
		read_map(cycle);
}

void storm_cycle_begin(struct storm *storm)
{
	for (unsigned i = 0; i < STORM_CYCLES; i++) {
		struct storm_cycle *cycle = &storm->cycles[i];
		storm_writer_begin(&cycle->writer, storm, i);
		snprintf(cycle->name, sizeof(cycle->name), "cycle-%u", i);
		make(cycle);
	}
}

void storm_cycle_check(struct storm *storm)
{
	struct json_doc *doc CLEANUP(json_doc_freep) =
		storm_list(storm, "/api/v1/namespaces/" STORM_NAMESPACE "/configmaps");
	unsigned seen = 0;
	uint64_t deleted = 0;
	struct json_iter items = json_items(json_root(doc), "items");
	for (const struct json *map; (map = json_next(&items)); seen++) {
		unsigned i = 0;
		char generation[16], n[16];
		CHECK(sscanf(json_str(map, "metadata", "name"), "cycle-%u", &i) == 1);
		CHECK(i < STORM_CYCLES);
		const struct storm_cycle *cycle = &storm->cycles[i];
		snprintf(generation, sizeof(generation), "%u", cycle->generation);
		snprintf(n, sizeof(n), "%u", cycle->n);
		CHECK_STR(json_str(map, "data", "generation"), generation);
		CHECK_STR(json_str(map, "data", "n"), n);
		CHECK_STR(json_str(map, "metadata", "uid"), cycle->writer.uid);
		CHECK_INT(cycle->deleted, cycle->generation - 1);
		deleted += cycle->deleted;
	}
	CHECK_INT(seen, STORM_CYCLES);
	printf("# %" PRIu64 " ConfigMaps deleted and made again\n", deleted);
}
