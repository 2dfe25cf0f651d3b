/* SPDX-License-Identifier: Apache-2.0 */
/* http2_lookup.c - the addresses of a name, found by a thread of their own.
 *
 * Nothing ends a lookup whose name servers are silent: it may take a minute.  On a thread of
 * libuv's, the loop could not be closed until then, nor the process end.  So this thread is
 * waited for by nobody: who does not want to know any more leaves it with what it has.
 */
#include "wire/http2.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Of a process, those that were left alone among them. */
#define LOOKUPS_MAX 64

static atomic_uint lookups;

struct http2_lookup {
	uv_async_t ready; /* the loop's end of it */
	void (*found)(void *context, int error, struct addrinfo *addresses);
	void *context;
	char *host, *port; /* from here on the thread's, until it is ready */
	int error;
	struct addrinfo *addresses;
	pthread_mutex_t lock; /* for the rest */
	bool dropped;	      /* `ready` is closed, or about to be */
	uint32_t holders;     /* the loop and the thread */
};

static void release(struct http2_lookup *lookup)
{
	pthread_mutex_lock(&lookup->lock);
	bool last = --lookup->holders == 0;
	pthread_mutex_unlock(&lookup->lock);
	if (!last)
		return;
	if (lookup->addresses)
		freeaddrinfo(lookup->addresses);
	pthread_mutex_destroy(&lookup->lock);
	free(lookup->host);
	free(lookup->port);
	free(lookup);
}

static void ready_closed(uv_handle_t *handle)
{
	release(handle->data);
}

void http2_lookup_drop(struct http2_lookup *lookup)
{
	pthread_mutex_lock(&lookup->lock);
	lookup->dropped = true;
	pthread_mutex_unlock(&lookup->lock);
	uv_close((uv_handle_t *)&lookup->ready, ready_closed);
}

static void is_ready(uv_async_t *async)
{
	struct http2_lookup *lookup = async->data;

	http2_lookup_drop(lookup);
	struct addrinfo *addresses = lookup->addresses;
	lookup->addresses = NULL;
	lookup->found(lookup->context, lookup->error, addresses);
}

static void *look_up(void *context)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	struct http2_lookup *lookup = context;

	lookup->error = getaddrinfo(lookup->host, lookup->port, &hints, &lookup->addresses);
	if (lookup->error)
		lookup->addresses = NULL;
	pthread_mutex_lock(&lookup->lock);
	if (!lookup->dropped)
		uv_async_send(&lookup->ready);
	pthread_mutex_unlock(&lookup->lock);
	release(lookup);
	lookups--;
	return NULL;
}

static int start_thread(struct http2_lookup *lookup)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int r = -pthread_attr_init(&attributes);

	if (r < 0)
		return r;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (++lookups <= LOOKUPS_MAX)
		r = -pthread_create(&thread, &attributes, look_up, lookup);
	else
		r = -EAGAIN;
	if (r < 0)
		lookups--;
	pthread_attr_destroy(&attributes);
	return r;
}

/* Held by the loop alone. */
static struct http2_lookup *make(const struct http2_link *link)
{
	struct http2_lookup *lookup = calloc(1, sizeof(*lookup));

	if (!lookup)
		return NULL;
	pthread_mutex_init(&lookup->lock, NULL);
	lookup->holders = 1;
	lookup->host = strdup(link->host);
	lookup->port = strdup(link->port);
	if (lookup->host && lookup->port &&
	    uv_async_init(link->http->loop, &lookup->ready, is_ready) == 0) {
		lookup->ready.data = lookup;
		return lookup;
	}
	release(lookup);
	return NULL;
}

int http2_lookup_new(const struct http2_link *link,
		     void (*found)(void *context, int error, struct addrinfo *addresses),
		     void *context, struct http2_lookup **ret)
{
	struct http2_lookup *lookup = make(link);

	if (!lookup)
		return -ENOMEM;
	lookup->found = found;
	lookup->context = context;
	lookup->holders = 2;
	int r = start_thread(lookup);
	if (r < 0) {
		lookup->holders = 1; /* there is no thread */
		http2_lookup_drop(lookup);
		return r;
	}
	*ret = lookup;
	return 0;
}
