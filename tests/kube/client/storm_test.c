/* SPDX-License-Identifier: Apache-2.0 */
/* Ten thousand faults in one run: no write is done twice with another meaning, every cache
 * ends with what the server has.
 *
 * STORM_FAULTS and STORM_SEED choose another number and other faults, by hand.
 *
 * cluster: --nodes 0
 */
#include "storm.h"

#include "test.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "kube/client.h"
#include "wire/json.h"

/* Some break one request and are frequent; those that break a connection, and with it
 * whatever else is on its way there, are rare, or nothing would ever be done. */
static const char script[] = "on any p=0.02 delay=1..20ms\n"
			     "on verb=watch p=0.3 cut after=events:1..150\n"
			     "on verb=watch p=0.3 cut mid-event after=events:1..150\n"
			     "on verb=watch p=0.1 half-body\n"
			     "on verb=watch p=0.02 answer=410-event\n"
			     "on verb=watch p=0.01 answer=410\n"
			     "on verb=watch p=0.01 answer=429 retry-after=1\n"
			     "on verb=watch p=0.01 answer=503\n"
			     "on verb=watch p=0.02 silence=1..2s after=events:1..50\n"
			     "on verb=list p=0.1 half-body\n"
			     "on verb=list p=0.05 cut after=bytes:100..2000\n"
			     "on verb=list p=0.05 answer=410\n"
			     "on method=GET p=0.05 answer=500\n"
			     "on method=GET p=0.05 half-body\n"
			     "on method=GET p=0.02 answer=410\n"
			     "on method=GET p=0.02 answer=502-html\n"
			     "on method=PUT,POST,PATCH,DELETE p=0.15 half-body\n"
			     "on method=PUT,POST,PATCH,DELETE p=0.1 answer=500\n"
			     "on method=PUT,POST,PATCH,DELETE p=0.05 answer=502-html\n"
			     "on method=PUT,POST,PATCH,DELETE p=0.05 answer=409\n"
			     "on method=PUT,POST,PATCH,DELETE p=0.03 answer=410\n"
			     "on method=PUT,POST,PATCH,DELETE p=0.02 answer=503\n"
			     "on any p=0.01 answer=429 retry-after=1\n"
			     "on any p=0.005 answer=503 retry-after=1\n"
			     "on any p=0.005 goaway\n"
			     "on any p=0.005 goaway refuse\n"
			     "on method=PUT,POST,PATCH,DELETE p=0.004 cut after-write\n"
			     "on method=PUT,POST,PATCH,DELETE p=0.002 cut before-write\n"
			     "on any p=0.002 reset\n"
			     "on any p=0.001 silence=1..2s\n"
			     "on method=PUT,POST,PATCH,DELETE p=0.0005 silence=7s\n"
			     "on any p=0.0002 silence=1s of=connection\n";

static uint64_t chosen(const char *name, uint64_t usual)
{
	const char *value = getenv(name);
	return value && *value ? strtoull(value, NULL, 10) : usual;
}

void storm_writer_begin(struct storm_writer *writer, struct storm *storm, unsigned number)
{
	*writer = (struct storm_writer){ .storm = storm, .number = number, .body = STRBUF_INIT };
	storm->busy++;
}

void storm_writer_end(struct storm_writer *writer)
{
	strbuf_done(&writer->body);
	writer->storm->busy--;
}

void storm_write(struct storm_writer *writer, struct kube_write write)
{
	struct err err = ERR_INIT;
	struct storm *storm = writer->storm;
	write.namespace = STORM_NAMESPACE;
	write.deadline_ms = STORM_DEADLINE_MS;
	CHECKF(kube_write(storm->live.client, &write, NULL, &err) == 0, "%s", err.text);
	storm->peak = MAX(storm->peak, kube_in_flight(storm->live.client));
}

void storm_note(struct storm_writer *writer, const struct json *object)
{
	snprintf(writer->uid, sizeof(writer->uid), "%s", json_str(object, "metadata", "uid"));
	snprintf(writer->version, sizeof(writer->version), "%s",
		 json_str(object, "metadata", "resourceVersion"));
}

const struct json *storm_shown(const struct kube_write_result *result)
{
	if (result->current)
		return result->current->reason == KUBE_OK ? result->current->body : NULL;
	return result->reply->reason == KUBE_OK ? result->reply->body : NULL;
}

struct json_doc *storm_list(struct storm *storm, const char *path)
{
	struct json_doc *doc = NULL;
	struct err err = ERR_INIT;
	CHECK_INT(live_call(&storm->direct, "GET", path, NULL), 200);
	CHECKF(json_parse(path, storm->direct.text.s, storm->direct.text.len, NULL, &doc, &err) ==
		       0,
	       "%s", err.text);
	return doc;
}

/* By the proxy's own count, without those that only delay. */
static uint64_t count_faults(struct storm *storm, bool show)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	uint64_t count = 0;
	CHECK_INT(live_call(&storm->live, "GET", "/__proxy/stats", NULL), 200);
	CHECK_INT(json_parse("stats", storm->live.text.s, storm->live.text.len, NULL, &doc, NULL),
		  0);
	struct json_iter members = json_members(json_root(doc), "faults");
	for (struct json_member member; json_next_member(&members, &member);) {
		int64_t n = 0;
		CHECK_INT(json_i64(member.value, &n), 0);
		if (strcmp(member.key, "delay") != 0)
			count += (uint64_t)n;
	}
	if (show)
		printf("# %s\n", storm->live.text.s);
	return count;
}

static bool is_calm(void *context)
{
	return ((const struct storm *)context)->busy == 0;
}

static void storm_open(struct storm *storm, uint64_t seed)
{
	rng_seed(&storm->rng, seed);
	faults_start_seeded(&storm->faults, script, seed);
	live_open(&storm->direct, NULL);
	live_open_beside(&storm->live, &storm->direct, storm->faults.kubeconfig);
	CHECK_INT(live_call(&storm->direct, "POST", "/api/v1/namespaces",
			    "{\"metadata\":{\"name\":\"" STORM_NAMESPACE "\"}}"),
		  201);
}

static void storm_close(struct storm *storm)
{
	storm_caches_end(storm);
	live_close(&storm->live);
	live_close(&storm->direct);
	faults_end(&storm->faults);
	free(storm);
}

TEST(ten_thousand_faults_change_nothing_but_the_time_it_takes)
{
	uint64_t wanted = chosen("STORM_FAULTS", 10000), seed = chosen("STORM_SEED", 1);
	struct storm *storm = calloc(1, sizeof(*storm));
	CHECK(storm);
	printf("# STORM_FAULTS=%" PRIu64 " STORM_SEED=%" PRIu64 "\n", wanted, seed);
	storm_open(storm, seed);
	storm_caches_begin(storm);
	storm_count_begin(storm);
	storm_bind_begin(storm);
	storm_cycle_begin(storm);
	while (count_faults(storm, false) < wanted)
		live_for(&storm->live, 500);
	storm->ending = true;
	live_until(&storm->live, is_calm, storm, "the writers to resolve their last write");
	faults_toggle(&storm->faults);
	storm_count_check(storm);
	storm_bind_check(storm);
	storm_cycle_check(storm);
	storm_caches_check(storm);
	CHECK(storm->peak >= 64 && storm->peak <= 68); /* four more for rereads */
	CHECK(count_faults(storm, true) >= wanted);
	storm_close(storm);
}

TEST_MAIN()
