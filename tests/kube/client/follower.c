/* SPDX-License-Identifier: Apache-2.0 */
#include "follower.h"

#include "test.h"

#include "base/err.h"
#include "kube/kind.h"
#include "wire/json.h"

static void on_changed(void *context, enum kube_change change, const struct kube_object *before,
		       struct kube_object *now, const struct json *object)
{
	struct follower *follower = context;
	const char *n = json_str(object, "data", "n");
	follower->added += change == KUBE_ADDED;
	follower->modified += change == KUBE_MODIFIED;
	follower->deleted += change == KUBE_DELETED;
	follower->gone += change == KUBE_GONE;
	CHECK((change == KUBE_ADDED) == (before == NULL));
	CHECK((change == KUBE_ADDED || change == KUBE_MODIFIED) == (now != NULL));
	if (n)
		snprintf(follower->last_n, sizeof(follower->last_n), "%s", n);
}

static void on_synced(void *context)
{
	((struct follower *)context)->synced++;
}

void follow(struct follower *follower, const char *kubeconfig, struct kube_cache_options options)
{
	struct err err = ERR_INIT;
	*follower = (struct follower){ 0 };
	live_open(&follower->live, kubeconfig);
	options.kind = options.kind ? options.kind : &kube_kinds[KUBE_CONFIG_MAP];
	options.changed = on_changed;
	options.synced = on_synced;
	options.context = follower;
	CHECKF(kube_cache_new(follower->live.client, &options, &follower->cache, &err) == 0, "%s",
	       err.text);
}

void unfollow(struct follower *follower)
{
	kube_cache_free(follower->cache);
	live_close(&follower->live);
}

static bool is_synced(void *context)
{
	return ((const struct follower *)context)->synced > 0;
}

void follower_wait_synced(struct follower *follower)
{
	live_until(&follower->live, is_synced, follower, "the first list");
}

static bool has_count(void *context)
{
	const struct follower *follower = context;
	return kube_cache_count(follower->cache) == follower->wanted;
}

void follower_wait_count(struct follower *follower, unsigned count)
{
	follower->wanted = count;
	live_until(&follower->live, has_count, follower, "that many objects in the cache");
}

struct kube_cache_status follower_status(const struct follower *follower)
{
	struct kube_cache_status status;
	kube_cache_status(follower->cache, &status);
	return status;
}

const char *follower_path(const struct follower *follower, const char *app)
{
	static char path[256];
	snprintf(path, sizeof(path), "/api/v1/namespaces/%s/configmaps?labelSelector=app%%3D%s",
		 follower->live.namespace, app);
	return path;
}
