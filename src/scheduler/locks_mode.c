/* SPDX-License-Identifier: Apache-2.0 */
/* locks_mode.c - the Lease that records whether the cluster is locked by node or by GPU.
 *
 * It is made before the first lock.  Who finds the other mode waits for nobody: with locks
 * there it says what to do, without it changes the mode, but only while it is active. */
#include "scheduler/locks_private.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/log.h"
#include "kube/cache.h"
#include "kube/kind.h"
#include "kube/write.h"
#include "wire/json.h"

#include <stdio.h>
#include <string.h>

static const char *const mode_names[] = { [LOCKS_BY_NODE] = "node", [LOCKS_BY_GPU] = "gpu" };

static void mode_set(struct locks *locks, const struct json *lease, const char *version)
{
	struct locks_mode_lease *mode = &locks->mode;
	const char *value = json_str(lease, "spec", "holderIdentity");
	const char *uid = json_str(lease, "metadata", "uid");

	if (!version)
		version = json_str(lease, "metadata", "resourceVersion");
	mode->exists = lease != NULL;
	snprintf(mode->value, sizeof(mode->value), "%s", value ? value : "");
	snprintf(mode->uid, sizeof(mode->uid), "%s", uid ? uid : "");
	snprintf(mode->version, sizeof(mode->version), "%s", version ? version : "");
}

static void touch_all(struct locks *locks)
{
	struct map_entry entry;

	for (uint32_t at = 0; map_next(&locks->cells, &at, &entry);)
		cell_touch(entry.value);
}

/* What waited for it: everything. */
static void mode_ready(struct locks *locks)
{
	locks->trouble[0] = '\0';
	if (locks->ready)
		return;
	locks->ready = true;
	touch_all(locks);
	if (locks->options.ready)
		locks->options.ready(locks->options.context);
}

/* Nobody knows for how long: who wants a lock does not wait for it. */
static void mode_unready(struct locks *locks)
{
	if (!locks->ready)
		return;
	locks->ready = false;
	touch_all(locks);
	cards_look(locks);
}

static bool is_of_other_mode(const struct locks *locks, const char *name)
{
	const char *prefix = locks->options.mode == LOCKS_BY_NODE ? "gpu-" : "gpus-";

	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Those of the other mode are in the cache alone.  With a mode on record all count; without one
 * those that may not be mixed with ours. */
static uint32_t count_locked(const struct locks *locks)
{
	uint32_t count = 0, at = 0;

	for (struct kube_object *lease; (lease = kube_cache_next(locks->cache, &at));) {
		struct json_doc *doc CLEANUP(json_doc_freep) = NULL;

		if (!locks->mode.exists && !is_of_other_mode(locks, lease->name))
			continue;
		if (kube_object_parse(lease, &doc) < 0)
			continue;
		const char *text =
			json_str(json_root(doc), "metadata", "annotations", KEY_LOCK_ENTRIES);
		count += text && strcmp(text, "[]") != 0;
	}
	return count;
}

static void mode_wrong(struct locks *locks, uint32_t locked)
{
	struct locks_mode_lease *mode = &locks->mode;
	char why[256];

	mode_unready(locks);
	if (mode->told)
		return;
	mode->told = true;
	snprintf(why, sizeof(why),
		 "the cluster is locked with --locks=%.15s and %u of its leases hold GPUs: run "
		 "with that, or wait until no pod has GPUs",
		 mode->exists ? mode->value : mode_names[!locks->options.mode], locked);
	log_error(locks->options.log, "locks are of the other mode", LOG_STR("why", why));
	if (locks->options.wrong)
		locks->options.wrong(locks->options.context, why);
}

static void mode_trouble(struct locks *locks, const struct kube_write_result *result)
{
	struct locks_mode_lease *mode = &locks->mode;
	uint64_t now_ms = locks_now_ms(locks);

	lease_trouble(locks, result, locks->trouble, sizeof(locks->trouble));
	if (!locks->trouble_told)
		log_error(locks->options.log, "the mode of the locks cannot be recorded",
			  LOG_STR("error", locks->trouble));
	locks->trouble_told = true;
	mode->retry_ms = now_ms + backoff_fail(&mode->backoff, now_ms, &locks->rng);
	collect_arm(locks);
}

static void mode_written(void *context, const struct kube_write_result *result)
{
	struct locks *locks = context;
	const struct kube_reply *told = result->reread ? result->current : result->reply;

	locks->mode.writing = NULL;
	locks->writes--;
	if (told && told->reason == KUBE_OK && told->body) {
		mode_set(locks, told->body, NULL);
		locks->trouble_told = false;
		mode_look(locks);
	} else {
		mode_trouble(locks, result);
	}
}

static void mode_write(struct locks *locks)
{
	struct locks_mode_lease *mode = &locks->mode;
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;

	lease_head(&body, locks, LOCKS_MODE_NAME, mode->exists ? mode->uid : NULL, mode->version);
	strbuf_addf(&body,
		    ",\"labels\":{\"" KEY_LOCK_MANAGED
		    "\":\"true\"}},\"spec\":{\"holderIdentity\":\"%s\"}}",
		    mode_names[locks->options.mode]);
	int rc = body.failed
			 ? -1
			 : kube_write(locks->options.client,
				      &(struct kube_write){
					      .verb = mode->exists ? KUBE_REPLACE : KUBE_CREATE,
					      .kind = &kube_kinds[KUBE_LEASE],
					      .namespace = locks->namespace,
					      .name = LOCKS_MODE_NAME,
					      .body = body.s,
					      .body_len = body.len,
					      .reread_refused = true,
					      .done = mode_written,
					      .context = locks,
				      },
				      &mode->writing, NULL);
	if (rc < 0) {
		mode->retry_ms = locks_now_ms(locks) + LOCKS_RETRY_MS;
		collect_arm(locks);
		return;
	}
	locks->writes++;
}

void mode_look(struct locks *locks)
{
	struct locks_mode_lease *mode = &locks->mode;

	if (!locks->synced || mode->writing || locks->closing)
		return;
	if (mode->retry_ms > locks_now_ms(locks))
		return;
	mode->retry_ms = 0;
	if (mode->exists && strcmp(mode->value, mode_names[locks->options.mode]) == 0) {
		mode->told = false;
		mode_ready(locks);
		return;
	}
	mode_unready(locks);
	uint32_t locked = count_locked(locks);
	if (locked)
		mode_wrong(locks, locked);
	else if (!mode->exists || locks->active)
		mode_write(locks);
}

void mode_watched(struct locks *locks, const struct kube_object *before,
		  const struct kube_object *now, const struct json *object)
{
	struct locks_mode_lease *mode = &locks->mode;

	if (now ? !version_newer(now->version, mode->version)
		: strcmp(before->uid, mode->uid) != 0)
		return;
	mode_set(locks, object, now ? now->version : mode->version);
	mode_look(locks);
}

void mode_stop(struct locks *locks)
{
	if (!locks->mode.writing)
		return;
	kube_write_cancel(locks->mode.writing);
	locks->mode.writing = NULL;
	locks->writes--;
}
