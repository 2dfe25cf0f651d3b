/* SPDX-License-Identifier: Apache-2.0 */
/* storm_bind.c - pods that two bind at once, to different nodes. */
#include "storm.h"

#include "test.h"

#include "base/attr.h"
#include "base/err.h"
#include "kube/bind.h"
#include "kube/check.h"
#include "kube/kind.h"
#include "wire/json.h"

#define ATTEMPT "storm/attempt"

static void on_created(void *context, const struct kube_write_result *result);
static void on_read(void *context, const struct kube_write_result *result);
static void decide(struct storm_binder *binder, const struct json *pod);

static void create(struct storm_binder *binder)
{
	struct storm_writer *writer = &binder->writer;
	strbuf_reset(&writer->body);
	strbuf_addf(&writer->body,
		    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\"},"
		    "\"spec\":{\"schedulerName\":\"storm\","
		    "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}",
		    binder->name);
	storm_write(writer, (struct kube_write){ .verb = KUBE_CREATE,
						 .kind = &kube_kinds[KUBE_POD],
						 .name = binder->name,
						 .body = writer->body.s,
						 .body_len = writer->body.len,
						 .reread_refused = true,
						 .done = on_created,
						 .context = binder });
}

static void read_pod(struct storm_binder *binder)
{
	storm_write(&binder->writer, (struct kube_write){ .verb = KUBE_GET,
							  .kind = &kube_kinds[KUBE_POD],
							  .name = binder->name,
							  .done = on_read,
							  .context = binder });
}

static void next(struct storm_binder *binder, unsigned pod)
{
	if (binder->writer.storm->ending || pod == STORM_PODS_MAX) {
		storm_writer_end(&binder->writer);
		return;
	}
	binder->pod = pod;
	binder->attempt[0] = binder->writer.version[0] = '\0';
	snprintf(binder->name, sizeof(binder->name), "pod-%u-%u", binder->pair->number, pod);
	create(binder);
}

static void won(struct storm_binder *binder)
{
	struct storm_pod *pod = &binder->pair->pods[binder->pod];
	CHECKF(!pod->attempt[0], "%s was bound by %s and by %s", binder->name, pod->attempt,
	       binder->attempt);
	snprintf(pod->attempt, sizeof(pod->attempt), "%s", binder->attempt);
	snprintf(pod->node, sizeof(pod->node), "%s", binder->node);
	next(binder, binder->pod + 1);
}

static void on_bound(void *context, const struct kube_bind_result *result)
{
	struct storm_binder *binder = context;
	binder->writer.storm->doubted += result->pod != NULL;
	switch (result->outcome) {
	case KUBE_BIND_DONE:
		won(binder);
		break;
	case KUBE_BIND_ELSEWHERE:
		next(binder, binder->pod + 1);
		break;
	case KUBE_BIND_SAME:
	case KUBE_BIND_MOVED:
		decide(binder, result->pod);
		break;
	case KUBE_BIND_UNSENT:
	case KUBE_BIND_UNKNOWN:
		read_pod(binder);
		break;
	case KUBE_BIND_GONE:
	case KUBE_BIND_REFUSED:
		CHECKF(false, "%s: %s: %s", binder->name, kube_bind_outcome_name(result->outcome),
		       result->reply->message);
	}
}

static void bind_pod(struct storm_binder *binder)
{
	struct err err = ERR_INIT;
	const struct kube_pair annotations[] = { { ATTEMPT, binder->attempt },
						 { "storm/node", binder->node } };
	struct kube_bind bind = { .namespace = STORM_NAMESPACE,
				  .pod = binder->name,
				  .uid = binder->writer.uid,
				  .version = binder->writer.version,
				  .node = binder->node,
				  .annotations = annotations,
				  .annotations_count = ARRAY_SIZE(annotations),
				  .attempt_key = ATTEMPT,
				  .done = on_bound,
				  .context = binder };
	CHECKF(kube_bind(binder->writer.storm->live.client, &bind, NULL, &err) == 0, "%s",
	       err.text);
}

/* A change of no meaning, after which decisions on the former version are over. */
static void touch(struct storm_binder *binder)
{
	struct storm_writer *writer = &binder->writer;
	strbuf_reset(&writer->body);
	strbuf_addf(&writer->body,
		    "{\"metadata\":{\"uid\":\"%s\",\"annotations\":{\"storm/touched\":\"%u\"}}}",
		    writer->uid, ++binder->tries);
	storm_write(writer, (struct kube_write){ .verb = KUBE_MERGE_PATCH,
						 .kind = &kube_kinds[KUBE_POD],
						 .name = binder->name,
						 .body = writer->body.s,
						 .body_len = writer->body.len,
						 .done = on_read,
						 .context = binder });
}

/* The pod as it is now, with at most one attempt of ours on its way. */
static void decide(struct storm_binder *binder, const struct json *pod)
{
	struct storm_writer *writer = &binder->writer;
	const char *node = json_str(pod, "spec", "nodeName");
	const char *attempt = json_str(pod, "metadata", "annotations", ATTEMPT);
	const char *version = json_str(pod, "metadata", "resourceVersion");
	if (node && attempt && strcmp(attempt, binder->attempt) == 0) {
		won(binder);
	} else if (node) {
		next(binder, binder->pod + 1);
	} else if (binder->attempt[0] && strcmp(version, writer->version) == 0) {
		bind_pod(binder); /* the identical once more */
	} else {
		storm_note(writer, pod);
		snprintf(binder->attempt, sizeof(binder->attempt), "%s-%u-%u", binder->name,
			 binder->side, ++binder->tries);
		bind_pod(binder);
	}
}

static void on_read(void *context, const struct kube_write_result *result)
{
	const struct json *pod = storm_shown(result);
	if (pod)
		decide(context, pod);
	else
		read_pod(context);
}

static void on_created(void *context, const struct kube_write_result *result)
{
	struct storm_binder *binder = context;
	const struct json *pod = storm_shown(result);
	if (!pod) {
		create(binder); /* who is first does not matter: nobody deletes it */
		return;
	}
	storm_note(&binder->writer, pod);
	if (rng_chance(&binder->writer.storm->rng, 1, 4))
		touch(binder);
	else
		decide(binder, pod);
}

void storm_bind_begin(struct storm *storm)
{
	for (unsigned i = 0; i < 2 * STORM_PAIRS; i++) {
		struct storm_binder *binder = &storm->binders[i];
		storm_writer_begin(&binder->writer, storm, i);
		binder->pair = &storm->pairs[i / 2];
		binder->pair->number = i / 2;
		binder->side = i % 2;
		snprintf(binder->node, sizeof(binder->node), "node-%u", binder->side);
		next(binder, 0);
	}
}

void storm_bind_check(struct storm *storm)
{
	struct json_doc *doc CLEANUP(json_doc_freep) =
		storm_list(storm, "/api/v1/namespaces/" STORM_NAMESPACE "/pods");
	unsigned seen = 0, believed = 0;
	struct json_iter items = json_items(json_root(doc), "items");
	for (const struct json *pod; (pod = json_next(&items)); seen++) {
		unsigned pair = 0, number = 0;
		const char *name = json_str(pod, "metadata", "name");
		CHECK(sscanf(name, "pod-%u-%u", &pair, &number) == 2);
		CHECK(pair < STORM_PAIRS && number < STORM_PODS_MAX);
		const struct storm_pod *ours = &storm->pairs[pair].pods[number];
		const char *node = json_str(pod, "spec", "nodeName");
		CHECKF(node && ours->attempt[0], "%s: node %s, believed %s", name,
		       node ? node : "none", ours->attempt);
		CHECK_STR(node, ours->node);
		CHECK_STR(json_str(pod, "metadata", "annotations", ATTEMPT), ours->attempt);
		CHECK_STR(json_str(pod, "metadata", "annotations", "storm/node"), ours->node);
	}
	for (unsigned i = 0; i < STORM_PAIRS * STORM_PODS_MAX; i++)
		believed += storm->pairs[i / STORM_PODS_MAX].pods[i % STORM_PODS_MAX].attempt[0] !=
			    '\0';
	CHECK_INT(believed, seen);
	CHECK(seen > STORM_PAIRS);
	printf("# %u pods bound\n", seen);
}
