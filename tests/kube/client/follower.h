/* SPDX-License-Identifier: Apache-2.0 */
/* follower.h - a cache of ConfigMaps, and what it has reported. */
#ifndef GS_TESTS_KUBE_CLIENT_FOLLOWER_H
#define GS_TESTS_KUBE_CLIENT_FOLLOWER_H

#include "live.h"

#include "kube/cache.h"

struct follower {
	struct live live;
	struct kube_cache *cache;
	unsigned added, modified, deleted, gone, synced;
	unsigned wanted;
	char last_n[16]; /* data.n of the last object */
};

/* Of ConfigMaps unless the options say otherwise; kubeconfig as in live_open(). */
void follow(struct follower *follower, const char *kubeconfig, struct kube_cache_options options);
void unfollow(struct follower *follower);

void follower_wait_synced(struct follower *follower);
void follower_wait_count(struct follower *follower, unsigned count);
struct kube_cache_status follower_status(const struct follower *follower);

/* The list of the ConfigMaps with that label; valid until the next call. */
const char *follower_path(const struct follower *follower, const char *app);

#endif
