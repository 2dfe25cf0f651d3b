/* SPDX-License-Identifier: Apache-2.0 */
/* locks_fake.h - as much of an API server as locks see of one: Leases that are compared before
 * they are replaced, finalizers, pods that can be read and patched, and a watch.
 *
 * It breaks what it is told to: an answer lost after the write or before it, another's write
 * just before ours.  What was asked is in fake.lines, "PUT gpus-n1 " for each.
 */
#ifndef GS_TESTS_LOCKS_FAKE_H
#define GS_TESTS_LOCKS_FAKE_H

#include "kube_fixture.h"

#include "base/attr.h"
#include "base/strbuf.h"
#include "kube/ready.h"
#include "scheduler/locks.h"
#include "wire/json.h"

#define FAKE_MAX 16

struct fake_lease {
	char name[64], uid[32], node[64], gpu[64], holder[64];
	char *entries;
	unsigned version;
	bool exists, deleting, finalizer;
};

struct fake_pod {
	char name[64], uid[32], node[64], phase[16];
	unsigned version, attempt;
	bool exists;
};

enum fake_fault {
	FAKE_FINE,
	FAKE_LOST,
	FAKE_UNDONE,
	FAKE_FORBIDDEN,
	FAKE_NO_NAMESPACE,
	FAKE_TERMINATING, /* the namespace is: nothing new is made in it */
};

struct fake {
	struct fake_lease leases[FAKE_MAX];
	struct fake_pod pods[FAKE_MAX];
	unsigned version, uids;
	struct strbuf lines, reply;
	enum fake_fault fault;	  /* of the next write of a Lease that is a lock */
	void (*before_put)(void); /* once, before the next PUT is looked at */
	unsigned most_entries;	  /* that one PUT has added */
	bool overbooked;	  /* a whole card had two entries at once */
	bool renamed;		  /* a Lease with entries became one of another card */
	bool hasty;		  /* the finalizer went while somebody could have added an entry */
	bool forbidden_pods;
	void (*before_delete)(void); /* once, as before_put */
};

static struct fake fake;

static inline struct fake_lease *fake_lease(const char *name)
{
	for (size_t i = 0; i < FAKE_MAX; i++)
		if (fake.leases[i].exists && strcmp(fake.leases[i].name, name) == 0)
			return &fake.leases[i];
	return NULL;
}

static inline struct fake_pod *fake_pod(const char *name)
{
	for (size_t i = 0; i < FAKE_MAX; i++)
		if (fake.pods[i].exists && strcmp(fake.pods[i].name, name) == 0)
			return &fake.pods[i];
	return NULL;
}

static inline struct fake_pod *fake_pod_add(const char *name, unsigned version)
{
	for (size_t i = 0; i < FAKE_MAX; i++) {
		struct fake_pod *pod = &fake.pods[i];
		if (pod->exists)
			continue;
		*pod = (struct fake_pod){ .version = version, .exists = true };
		snprintf(pod->name, sizeof(pod->name), "%s", name);
		snprintf(pod->uid, sizeof(pod->uid), "u-%s", name);
		snprintf(pod->phase, sizeof(pod->phase), "Pending");
		return pod;
	}
	abort();
}

static inline void fake_write_lease(const struct fake_lease *lease, struct strbuf *out)
{
	strbuf_addf(out,
		    "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"
		    "\"name\":\"%s\",\"namespace\":\"locks\",\"uid\":\"%s\","
		    "\"resourceVersion\":\"%u\",\"annotations\":{",
		    lease->name, lease->uid, lease->version);
	const char *comma = "";
	if (lease->node[0]) {
		strbuf_addf(out, "\"gpu.scheduling/node\":\"%s\"", lease->node);
		comma = ",";
	}
	if (lease->gpu[0])
		strbuf_addf(out, "%s\"gpu.scheduling/gpu\":\"%s\"", comma, lease->gpu);
	if (lease->entries) {
		strbuf_addf(out, "%s\"gpu.scheduling/entries\":", comma);
		strbuf_add_json(out, lease->entries, strlen(lease->entries));
	}
	strbuf_puts(out, "}");
	if (lease->finalizer)
		strbuf_puts(out, ",\"finalizers\":[\"gpu.scheduling/locks\"]");
	if (lease->deleting)
		strbuf_puts(out, ",\"deletionTimestamp\":\"2026-01-31T08:05:09Z\"");
	strbuf_addf(out, "},\"spec\":{\"holderIdentity\":\"%s\"}}", lease->holder);
}

/* An event, to whoever has a watch open. */
static inline void fake_event(const char *type, const struct fake_lease *lease)
{
	struct strbuf event CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_addf(&event, "{\"type\":\"%s\",\"object\":", type);
	fake_write_lease(lease, &event);
	strbuf_puts(&event, "}\n");
	for (size_t i = 0; i < SERVER_CONNECTIONS; i++) {
		struct server_connection *at = s.server.connections[i];
		if (!at || at->answer.how != SERVER_OPEN || at->busy)
			continue;
		char *chunk = malloc(event.len + 32);
		int n = sprintf(chunk, "%zx\r\n%s\r\n", event.len, event.s);
		server_write(at, chunk, (size_t)n);
	}
}

static inline bool fake_is_watched(void)
{
	for (size_t i = 0; i < SERVER_CONNECTIONS; i++) {
		struct server_connection *at = s.server.connections[i];
		if (at && at->answer.how == SERVER_OPEN && !at->busy)
			return true;
	}
	return false;
}

/* Another scheduler, or an administrator. */
static inline struct fake_lease *fake_put(const char *name, const char *node, const char *entries)
{
	struct fake_lease *lease = fake_lease(name);
	bool fresh = !lease;
	for (size_t i = 0; !lease; i++)
		if (!fake.leases[i].exists)
			lease = &fake.leases[i];
	if (fresh) {
		*lease = (struct fake_lease){ .exists = true, .finalizer = true };
		snprintf(lease->name, sizeof(lease->name), "%s", name);
		snprintf(lease->uid, sizeof(lease->uid), "uid-%u", ++fake.uids);
	}
	snprintf(lease->node, sizeof(lease->node), "%s", node);
	char *copy = entries ? strdup(entries) : NULL;
	free(lease->entries);
	lease->entries = copy;
	lease->version = ++fake.version;
	fake_event(fresh ? "ADDED" : "MODIFIED", lease);
	return lease;
}

static inline void fake_remove(struct fake_lease *lease)
{
	lease->version = ++fake.version;
	fake_event("DELETED", lease);
	lease->exists = false;
	free(lease->entries);
	lease->entries = NULL;
}

static inline void fake_mark_deleting(struct fake_lease *lease)
{
	lease->deleting = true;
	lease->version = ++fake.version;
	fake_event("MODIFIED", lease);
}

static inline void fake_status(struct server_answer *ret, int code, const char *reason)
{
	strbuf_reset(&fake.reply);
	strbuf_addf(&fake.reply,
		    "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"%s\","
		    "\"message\":\"%s\",\"code\":%d}",
		    reason, reason, code);
	ret->code = code;
	ret->body = fake.reply.s;
}

static inline void fake_copy(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from ? from : "");
}

static inline unsigned fake_count(const char *text, const char *what)
{
	unsigned count = 0;
	for (const char *at = text; at && (at = strstr(at, what)); at++)
		count++;
	return count;
}

/* A whole card that two hold: the worst that can be. */
static inline void fake_look(const struct fake_lease *lease)
{
	for (unsigned card = 0; card < 10; card++) {
		char text[64];
		snprintf(text, sizeof(text), "\"GPU-%u\",\"coreMilli\":1000", card);
		if (fake_count(lease->entries, text) > 1)
			fake.overbooked = true;
	}
}

static inline void fake_take(struct fake_lease *lease, const struct json *body)
{
	const char *entries = json_str(body, "metadata", "annotations", "gpu.scheduling/entries");
	const char *gpu = json_str(body, "metadata", "annotations", "gpu.scheduling/gpu");
	unsigned had = fake_count(lease->entries, "\"pod\":");
	fake.renamed |= had && gpu && lease->gpu[0] && strcmp(gpu, lease->gpu) != 0;
	fake_copy(lease->node, sizeof(lease->node),
		  json_str(body, "metadata", "annotations", "gpu.scheduling/node"));
	fake_copy(lease->gpu, sizeof(lease->gpu), gpu);
	fake_copy(lease->holder, sizeof(lease->holder), json_str(body, "spec", "holderIdentity"));
	free(lease->entries);
	lease->entries = entries ? strdup(entries) : NULL;
	lease->finalizer = json_len(body, "metadata", "finalizers") > 0;
	lease->version = ++fake.version;
	fake_look(lease);
	unsigned has = fake_count(lease->entries, "\"pod\":");
	if (has > had && has - had > fake.most_entries)
		fake.most_entries = has - had;
}

static inline void fake_say(struct server_answer *ret, const struct fake_lease *lease)
{
	strbuf_reset(&fake.reply);
	fake_write_lease(lease, &fake.reply);
	ret->body = fake.reply.s;
}

static inline void fake_create(const struct json *body, struct server_answer *ret)
{
	const char *name = json_str(body, "metadata", "name");
	if (fake_lease(name)) {
		fake_status(ret, 409, "AlreadyExists");
		return;
	}
	struct fake_lease *lease = NULL;
	for (size_t i = 0; !lease; i++)
		if (!fake.leases[i].exists)
			lease = &fake.leases[i];
	*lease = (struct fake_lease){ .exists = true };
	fake_copy(lease->name, sizeof(lease->name), name);
	snprintf(lease->uid, sizeof(lease->uid), "uid-%u", ++fake.uids);
	fake_take(lease, body);
	fake_event("ADDED", lease);
	fake_say(ret, lease);
	ret->code = 201;
}

static inline void fake_replace(const char *name, const struct json *body,
				struct server_answer *ret)
{
	struct fake_lease *lease = fake_lease(name);
	char version[16];
	snprintf(version, sizeof(version), "%u", lease ? lease->version : 0);
	if (!lease || strcmp(json_str(body, "metadata", "uid"), lease->uid) != 0 ||
	    strcmp(json_str(body, "metadata", "resourceVersion"), version) != 0) {
		fake_status(ret, 409, "Conflict");
		return;
	}
	bool open = lease->entries != NULL;
	fake_take(lease, body);
	fake_say(ret, lease);
	fake.hasty = fake.hasty || (open && !lease->finalizer);
	if (lease->deleting && !lease->finalizer)
		fake_remove(lease);
	else
		fake_event("MODIFIED", lease);
}

static inline void fake_write(const struct server_request *request, const char *name,
			      struct server_answer *ret)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	CHECK_INT(json_parse("body", request->body, request->body_len, NULL, &doc, NULL), 0);
	const char *of = json_str(json_root(doc), "metadata", "name");
	enum fake_fault fault = strcmp(of, "lock-mode") == 0 ? FAKE_FINE : fake.fault;
	if (fake.fault >= FAKE_FORBIDDEN)
		fault = fake.fault;
	else if (fault)
		fake.fault = FAKE_FINE;
	void (*before)(void) = strcmp(of, "lock-mode") == 0 ? NULL : fake.before_put;
	if (before) {
		fake.before_put = NULL;
		before();
	}
	strbuf_addf(&fake.lines, "%s %s ", request->method, of);
	if (fault == FAKE_FORBIDDEN || (fault == FAKE_TERMINATING && !*name))
		fake_status(ret, 403, "Forbidden");
	else if (fault == FAKE_NO_NAMESPACE)
		fake_status(ret, 404, "NotFound");
	else if (fault != FAKE_UNDONE && *name)
		fake_replace(name, json_root(doc), ret);
	else if (fault != FAKE_UNDONE)
		fake_create(json_root(doc), ret);
	if (fault == FAKE_LOST || fault == FAKE_UNDONE)
		ret->how = SERVER_DROP;
}

/* By uid and version alone; what has a finalizer stays until that is gone. */
static inline void fake_delete(const struct server_request *request, const char *name,
			       struct server_answer *ret)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	CHECK_INT(json_parse("body", request->body, request->body_len, NULL, &doc, NULL), 0);
	const struct json *body = json_root(doc);
	char version[16];
	strbuf_addf(&fake.lines, "DELETE %s ", name);
	void (*before)(void) = fake.before_delete;
	fake.before_delete = NULL;
	if (before)
		before();
	struct fake_lease *lease = fake_lease(name);
	snprintf(version, sizeof(version), "%u", lease ? lease->version : 0);
	if (!lease) {
		fake_status(ret, 404, "NotFound");
	} else if (strcmp(json_str(body, "preconditions", "uid"), lease->uid) != 0 ||
		   strcmp(json_str(body, "preconditions", "resourceVersion"), version) != 0) {
		fake_status(ret, 409, "Conflict");
	} else if (fake.fault == FAKE_FORBIDDEN) {
		fake_status(ret, 403, "Forbidden");
	} else {
		fake_mark_deleting(lease);
		fake_say(ret, lease);
		if (!lease->finalizer)
			fake_remove(lease);
	}
}

static inline void fake_list(struct server_answer *ret)
{
	strbuf_reset(&fake.reply);
	strbuf_addf(&fake.reply,
		    "{\"kind\":\"LeaseList\",\"apiVersion\":\"coordination.k8s.io/v1\","
		    "\"metadata\":{\"resourceVersion\":\"%u\"},\"items\":[",
		    fake.version);
	const char *comma = "";
	for (size_t i = 0; i < FAKE_MAX; i++) {
		if (!fake.leases[i].exists)
			continue;
		strbuf_puts(&fake.reply, comma);
		fake_write_lease(&fake.leases[i], &fake.reply);
		comma = ",";
	}
	strbuf_puts(&fake.reply, "]}");
	ret->body = fake.reply.s;
}

/* Begins with what has changed since the version that is asked for. */
static inline void fake_watch(const char *path, struct server_answer *ret)
{
	const char *since = strstr(path, "resourceVersion=");
	unsigned version = since ? (unsigned)strtoul(since + 16, NULL, 10) : 0;
	strbuf_reset(&fake.reply);
	for (size_t i = 0; i < FAKE_MAX; i++) {
		if (!fake.leases[i].exists || fake.leases[i].version <= version)
			continue;
		strbuf_puts(&fake.reply, "{\"type\":\"MODIFIED\",\"object\":");
		fake_write_lease(&fake.leases[i], &fake.reply);
		strbuf_puts(&fake.reply, "}\n");
	}
	ret->how = SERVER_OPEN;
	ret->body = fake.reply.s;
}

static inline void fake_leases(const struct server_request *request, struct server_answer *ret)
{
	char name[64] = "";
	sscanf(strstr(request->path, "/leases") + 7, "/%63[^?]", name);
	if (strstr(request->path, "sendInitialEvents")) {
		fake_status(ret, 400, "BadRequest");
	} else if (strstr(request->path, "watch=")) {
		fake_watch(request->path, ret);
	} else if (strcmp(request->method, "DELETE") == 0) {
		fake_delete(request, name, ret);
	} else if (strcmp(request->method, "GET") != 0) {
		fake_write(request, name, ret);
	} else if (!*name) {
		fake_list(ret);
	} else {
		strbuf_addf(&fake.lines, "GET %s ", name);
		if (fake_lease(name))
			fake_say(ret, fake_lease(name));
		else
			fake_status(ret, 404, "NotFound");
	}
}

static inline void fake_say_pod(const struct fake_pod *pod, struct server_answer *ret)
{
	strbuf_reset(&fake.reply);
	strbuf_addf(&fake.reply,
		    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\","
		    "\"uid\":\"%s\",\"resourceVersion\":\"%u\"",
		    pod->name, pod->uid, pod->version);
	if (pod->attempt)
		strbuf_addf(&fake.reply,
			    ",\"annotations\":{\"gpu.scheduling/decision\":"
			    "\"{\\\"attempt\\\":%u}\"}",
			    pod->attempt);
	strbuf_puts(&fake.reply, "},\"spec\":{");
	if (pod->node[0])
		strbuf_addf(&fake.reply, "\"nodeName\":\"%s\"", pod->node);
	strbuf_addf(&fake.reply, "},\"status\":{\"phase\":\"%s\"}}", pod->phase);
	ret->body = fake.reply.s;
}

static inline void fake_patch_pod(struct fake_pod *pod, const struct server_request *request,
				  struct server_answer *ret)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	CHECK_INT(json_parse("body", request->body, request->body_len, NULL, &doc, NULL), 0);
	const char *version = json_str(json_root(doc), "metadata", "resourceVersion");
	CHECK(strstr(request->path, "/status?"));
	CHECK(strstr(request->body, "gpu.scheduling/Fenced"));
	if (strcmp(json_str(json_root(doc), "metadata", "uid"), pod->uid) != 0) {
		fake_status(ret, 422, "Invalid");
	} else if (version && strtoul(version, NULL, 10) != pod->version) {
		fake_status(ret, 409, "Conflict");
	} else {
		pod->version = ++fake.version;
		fake_say_pod(pod, ret);
	}
}

static inline void fake_pods(const struct server_request *request, struct server_answer *ret)
{
	char name[64] = "";
	sscanf(strstr(request->path, "/pods") + 5, "/%63[^?/]", name);
	struct fake_pod *pod = fake_pod(name);
	strbuf_addf(&fake.lines, "%s %s ", request->method, name);
	if (fake.forbidden_pods && strcmp(request->method, "PATCH") == 0)
		fake_status(ret, 403, "Forbidden");
	else if (!pod)
		fake_status(ret, 404, "NotFound");
	else if (strcmp(request->method, "PATCH") == 0)
		fake_patch_pod(pod, request, ret);
	else
		fake_say_pod(pod, ret);
}

static inline void fake_answer(void *context, const struct server_request *request,
			       struct server_answer *ret)
{
	(void)context;
	if (strstr(request->path, "/leases"))
		fake_leases(request, ret);
	else
		fake_pods(request, ret);
	/* The answer is sent later, when the next may have been made. */
	static char *kept[64];
	static unsigned at;
	if (ret->body) {
		free(kept[at % 64]);
		kept[at % 64] = strdup(ret->body);
		ret->body = kept[at++ % 64];
	}
}

static inline void fake_start(void)
{
	setup();
	fake = (struct fake){ .version = 100, .lines = STRBUF_INIT, .reply = STRBUF_INIT };
	s.server.call = fake_answer;
}

static inline void fake_end(void)
{
	for (size_t i = 0; i < FAKE_MAX; i++)
		free(fake.leases[i].entries);
	strbuf_done(&fake.lines);
	strbuf_done(&fake.reply);
}

#endif
