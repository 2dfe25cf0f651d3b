/* SPDX-License-Identifier: Apache-2.0 */
/* cache_list.h - the body of a list, read as it comes.
 *
 * A list of all pods may have 500 MB, and when a page's token has expired it must be read
 * in one piece.  So its items are cut out of the bytes as they arrive and handed on one by
 * one; only one item, and the list without its items, are ever held.  Items may come
 * before the list's metadata: the order of keys means nothing.
 *
 * An item that is no JSON or too big is handed on as NULL with the reason, and the next
 * one is read.
 */
#ifndef GS_KUBE_CACHE_LIST_H
#define GS_KUBE_CACHE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

struct err;
struct json;

/* etcd takes 1.5 MiB, of which each character may be written as six. */
#define CACHE_LIST_ITEM_MAX  ((size_t)16 << 20)
#define CACHE_LIST_FRAME_MAX ((size_t)1 << 20) /* of the list without its items */

/* An item, or NULL and why not.  0, or anything else to stop. */
typedef int (*cache_list_fn)(void *context, const struct json *item, const char *why);

struct cache_list {
	struct strbuf frame; /* the list without its items */
	struct strbuf item;  /* of one that is not whole yet */
	/* private to cache_list.c */
	size_t string_at; /* where the last string of the frame begins */
	unsigned depth;
	bool in_string, escaped;
	bool is_key;   /* the last string at depth 1 was the key "items" */
	bool in_items; /* inside the array; an item is at depth 2 */
	bool too_big;  /* the rest of this item is skipped */
};

void cache_list_init(struct cache_list *list);
void cache_list_reset(struct cache_list *list); /* for the next body; memory is kept */
void cache_list_done(struct cache_list *list);

/* Takes the next bytes and calls for each item that they complete.
 * 0, -EINVAL (no list at all), -E2BIG, -ENOMEM, or what the callback said. */
int cache_list_push(struct cache_list *list, const char *bytes, size_t len, cache_list_fn call,
		    void *context, struct err *err);

/* What is around the items. */
struct cache_list_frame {
	struct strbuf version; /* metadata.resourceVersion, never "" */
	struct strbuf token;   /* metadata.continue, "" on the last page */
};

#define CACHE_LIST_FRAME_INIT                                \
	{                                                    \
		.version = STRBUF_INIT, .token = STRBUF_INIT \
	}

void cache_list_frame_done(struct cache_list_frame *frame);

/* The body has ended.  0, -EINVAL if it was no whole list, -ENOMEM. */
int cache_list_end(struct cache_list *list, struct cache_list_frame *ret, struct err *err);

#endif
