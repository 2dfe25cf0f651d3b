/* SPDX-License-Identifier: Apache-2.0 */
/* cache_watch.c - the events of a watch, one by one. */
#include "base/attr.h"
#include "base/strbuf.h"
#include "kube/cache_follow.h"
#include "kube/object.h"
#include "wire/json.h"

#include <errno.h>
#include <string.h>

enum event_type { EVENT_PUT, EVENT_DELETED, EVENT_BOOKMARK, EVENT_ERROR, EVENT_UNKNOWN };

static enum event_type event_type(const char *type)
{
	static const struct {
		const char *name;
		enum event_type type;
	} types[] = {
		{ "ADDED", EVENT_PUT },	      { "MODIFIED", EVENT_PUT },
		{ "DELETED", EVENT_DELETED }, { "BOOKMARK", EVENT_BOOKMARK },
		{ "ERROR", EVENT_ERROR },
	};
	for (size_t i = 0; type && i < ARRAY_SIZE(types); i++) {
		if (strcmp(type, types[i].name) == 0)
			return types[i].type;
	}
	return EVENT_UNKNOWN;
}

/* The watch goes on from here if it is cut.  The objects that begin a stream come in no
 * order: theirs mean nothing before its list is whole. */
static int remember(struct follow *follow, const struct json *object)
{
	const char *version = json_str(object, "metadata", "resourceVersion");
	if (follow->doing != DOING_WATCH || !version || !*version ||
	    strlen(version) > KUBE_VERSION_MAX)
		return 0;
	strbuf_reset(&follow->version);
	strbuf_puts(&follow->version, version);
	follow->fresh = false;
	return follow->version.failed ? -ENOMEM : 0;
}

static int object_event(struct follow *follow, enum event_type type, const struct json *object)
{
	struct cache_store *store = &follow->store;
	bool staged = follow->doing == DOING_STREAM;
	follow->events++;
	int result = type == EVENT_PUT
			     ? (staged ? cache_store_stage : cache_store_put)(store, object)
			     : (staged ? cache_store_unstage : cache_store_delete)(store, object);
	return result < 0 ? result : remember(follow, object);
}

static int bookmark(struct follow *follow, const struct json *object)
{
	const struct json *metadata = json_get(object, "metadata");
	const char *end = json_str(metadata, "annotations", "k8s.io/initial-events-end");
	const char *version = json_str(metadata, "resourceVersion");
	if (follow->doing == DOING_WATCH)
		return remember(follow, object);
	if (!end || strcmp(end, "true") != 0)
		return 0;
	if (!version || !*version)
		return follow_stop(follow, KUBE_MALFORMED,
				   "the end of a list says no resourceVersion");
	int result = follow_commit(follow, version);
	if (result == 0) {
		follow->doing = DOING_WATCH;
		follow->began_ms = follow->heard_ms;
		follow->came = 0;
	}
	return result;
}

/* The server ends the watch: a Status says why. */
static int error_event(struct follow *follow, const struct json *status)
{
	struct strbuf said = STRBUF_INIT_MAX(KUBE_SAID_MAX);
	int64_t code = 0;
	json_i64(status, &code, "code");
	kube_reply_say(&said, (int)code, status, NULL, 0);
	follow->retry_after_s = kube_status_retry_after_s(status);
	int result = follow_stop(follow, kube_reason_of(0, status), said.s);
	strbuf_done(&said);
	return result;
}

int follow_event(void *context, const struct json *event)
{
	struct follow *follow = context;
	const struct json *object = json_get(event, "object");
	enum event_type type = event_type(json_str(event, "type"));
	int result = 0;
	/* what is no event has not come: an answer of such alone is a failed watch */
	if (type != EVENT_ERROR && type != EVENT_UNKNOWN)
		follow->came++;
	if (type == EVENT_UNKNOWN || json_type(object) != JSON_OBJECT)
		cache_store_malformed(&follow->store, "",
				      "an event of no known type, or without object");
	else if (type == EVENT_BOOKMARK)
		result = bookmark(follow, object);
	else if (type == EVENT_ERROR)
		result = error_event(follow, object);
	else
		result = object_event(follow, type, object);
	if (result == -ENOMEM)
		return follow_stop(follow, KUBE_MALFORMED, "out of memory");
	return result;
}
