/* SPDX-License-Identifier: Apache-2.0 */
/* kube_election.h - a server with one Lease, and electors that it answers in the way the
 * test wants.  Time is moved by the test; started, stopped and new leaders are written
 * down as "started", "stopped(reason)", "leader(identity)". */
#ifndef GS_TESTS_UNIT_KUBE_ELECTION_H
#define GS_TESTS_UNIT_KUBE_ELECTION_H

#include "test.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/campaign.h"
#include "wire/json.h"

#define WALL_NS INT64_C(1767225600000000000) /* 2026-01-01 */

struct lease_server {
	struct strbuf lease; /* as it was written; "": there is none */
	uint64_t uid, version;
	unsigned gets, creates, updates;
};

static inline void lease_server_init(struct lease_server *server)
{
	*server = (struct lease_server){ .lease = STRBUF_INIT };
}

static inline void lease_server_done(struct lease_server *server)
{
	strbuf_done(&server->lease);
}

/* Stores the spec and labels of a written Lease, with the server's own metadata. */
static inline void lease_store(struct lease_server *server, const struct json *lease)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_writer w = JSON_WRITER_INIT(&text);
	strbuf_addf(&text,
		    "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":{"
		    "\"name\":\"%s\",\"uid\":\"u%llu\",\"resourceVersion\":\"%llu\",\"labels\":",
		    json_str(lease, "metadata", "name"), (unsigned long long)server->uid,
		    (unsigned long long)++server->version);
	json_add_value(&w, json_get(lease, "metadata", "labels"));
	strbuf_puts(&text, ",\"managedFields\":[{\"manager\":\"x\"}]},\"spec\":");
	struct json_writer w2 = JSON_WRITER_INIT(&text);
	json_add_value(&w2, json_get(lease, "spec"));
	strbuf_putc(&text, '}');
	CHECK(!text.failed);
	strbuf_reset(&server->lease);
	strbuf_puts(&server->lease, text.s);
}

/* As kube-apiserver does it: a PUT to a Lease that is gone makes it again, unless it
 * carries a uid; another uid or version is a conflict. */
static inline enum kube_reason lease_apply(struct lease_server *server, enum campaign_want want,
					   const char *body)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct json_doc *now CLEANUP(json_doc_freep) = NULL;
	struct err err = ERR_INIT;
	bool exists = server->lease.len > 0;
	if (want == CAMPAIGN_GET) {
		server->gets++;
		return exists ? KUBE_OK : KUBE_NOT_FOUND;
	}
	CHECKF(json_parse("body", body, strlen(body), NULL, &doc, &err) == 0, "%s", err.text);
	const struct json *lease = json_root(doc);
	if (want == CAMPAIGN_CREATE) {
		server->creates++;
		if (exists)
			return KUBE_ALREADY_EXISTS;
		server->uid++;
		lease_store(server, lease);
		return KUBE_OK;
	}
	server->updates++;
	const char *uid = json_str(lease, "metadata", "uid");
	const char *version = json_str(lease, "metadata", "resourceVersion");
	CHECK(uid && version); /* never without both */
	if (!exists)
		return KUBE_CONFLICT;
	CHECK_INT(json_parse("lease", server->lease.s, server->lease.len, NULL, &now, &err), 0);
	if (strcmp(json_str(json_root(now), "metadata", "uid"), uid) != 0 ||
	    strcmp(json_str(json_root(now), "metadata", "resourceVersion"), version) != 0)
		return KUBE_CONFLICT;
	lease_store(server, lease);
	return KUBE_OK;
}

struct elector {
	struct kube_election_options options;
	struct campaign campaign;
	struct campaign_request asked;
	struct strbuf seen, shown, body;
};

static inline void elector_note(struct elector *elector, const char *format, const char *what)
{
	strbuf_puts(&elector->seen, elector->seen.len ? " " : "");
	strbuf_puts(&elector->seen, format);
	if (what)
		strbuf_addf(&elector->seen, "(%s)", what);
}

static inline void elector_started(void *context)
{
	elector_note(context, "started", NULL);
}

static inline void elector_stopped(void *context, const char *reason)
{
	elector_note(context, "stopped", reason);
}

static inline void elector_new_leader(void *context, const char *identity)
{
	elector_note(context, "leader", identity);
}

static inline void elector_init(struct elector *elector, const char *identity, uint64_t seed)
{
	*elector =
		(struct elector){ .seen = STRBUF_INIT, .shown = STRBUF_INIT, .body = STRBUF_INIT };
	elector->options = (struct kube_election_options){
		.namespace = "gpu-scheduler",
		.name = "gpu-scheduler",
		.identity = identity,
		.lease_ms = 15000,
		.renew_ms = 10000,
		.retry_ms = 2000,
		.started = elector_started,
		.stopped = elector_stopped,
		.new_leader = elector_new_leader,
		.context = elector,
	};
	campaign_init(&elector->campaign, &elector->options, seed);
}

static inline void elector_done(struct elector *elector)
{
	campaign_done(&elector->campaign);
	strbuf_done(&elector->seen);
	strbuf_done(&elector->shown);
	strbuf_done(&elector->body);
}

static inline const char *elector_seen(struct elector *elector)
{
	strbuf_reset(&elector->shown);
	strbuf_puts(&elector->shown, elector->seen.s);
	strbuf_reset(&elector->seen);
	return elector->shown.s;
}

/* What it wants now; the body is kept. */
static inline enum campaign_want elector_next(struct elector *elector, uint64_t now_ms)
{
	campaign_next(&elector->campaign, now_ms, WALL_NS + (int64_t)now_ms * 1000000,
		      &elector->asked);
	if (elector->asked.body) {
		strbuf_reset(&elector->body);
		strbuf_add(&elector->body, elector->asked.body, elector->asked.body_len);
	}
	return elector->asked.want;
}

/* Its answer, with the Lease that the server has where there is one to show. */
static inline void elector_answer(struct elector *elector, uint64_t now_ms,
				  const struct lease_server *server, enum kube_reason reason)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct err err = ERR_INIT;
	struct kube_reply reply = { .reason = reason, .retry_after_s = -1, .message = "" };
	if (reason == KUBE_OK) {
		CHECK_INT(
			json_parse("lease", server->lease.s, server->lease.len, NULL, &doc, &err),
			0);
		reply.body = json_root(doc);
	}
	campaign_reply(&elector->campaign, now_ms, &reply);
}

/* Lets it do all that it wants at this moment: how many requests. */
static inline unsigned elector_run(struct elector *elector, struct lease_server *server,
				   uint64_t now_ms)
{
	unsigned requests = 0;
	for (;;) {
		enum campaign_want want = elector_next(elector, now_ms);
		if (want == CAMPAIGN_WAIT || want == CAMPAIGN_CLOSED)
			return requests;
		elector_answer(elector, now_ms, server,
			       lease_apply(server, want, elector->body.s));
		CHECK(++requests < 100);
	}
}

/* From now until then, every 100 ms. */
static inline void elector_run_until(struct elector *elector, struct lease_server *server,
				     uint64_t *now_ms, uint64_t until_ms)
{
	for (; *now_ms < until_ms; *now_ms += 100)
		elector_run(elector, server, *now_ms);
}

#endif
