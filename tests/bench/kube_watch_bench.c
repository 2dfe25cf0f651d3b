/* SPDX-License-Identifier: Apache-2.0 */
/* kube_watch_bench - pod events from a TLS connection into a cache, all of our side.
 *
 * A server on a thread of its own lists nothing and then floods a watch with changes of
 * pods; our client decrypts, frames, parses and stores them.  What counts is the client
 * thread's processor time, the best of several rounds, for others use the machine too.
 */
#include "samples.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/log.h"
#include "bench/server_thread.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "kube/config.h"
#include "kube/kind.h"

#define EVENTS	12000
#define PODS	1000
#define ROUNDS	5
#define TARGET	60000 /* events a second of one core */
#define VERSION "\"resourceVersion\":\""

/* Every event is another version of one of the pods. */
static void make_events(struct strbuf *out)
{
	struct strbuf line CLEANUP(strbuf_done) = STRBUF_INIT;
	const char *version, *name;

	sample_read("pod_pending.json", &line);
	version = strstr(line.s, VERSION);
	name = strstr(line.s, "\"name\":\"");
	if (!version || !name)
		abort();
	for (unsigned i = 0; i < EVENTS; i++) {
		const char *first = MIN(name, version), *second = MAX(name, version);
		const char *at = line.s;

		for (unsigned part = 0; part < 2; part++) {
			const char *field = part ? second : first;
			const char *value = strchr(strchr(field, ':'), '"') + 1;

			strbuf_add(out, at, (size_t)(value - at));
			strbuf_addf(out, field == name ? "pod-%u" : "9%u",
				    field == name ? i % PODS : i);
			at = strchr(value, '"');
		}
		strbuf_puts(out, at);
	}
	if (out->failed)
		abort();
}

static void serve(void *context, struct peer_request *request)
{
	const struct strbuf *events = context;
	static const char list[] = "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{"
				   "\"resourceVersion\":\"1\"},\"items\":[]}";

	if (!strstr(request->path, "watch=")) {
		peer_reply(request, 200, "content-type: application/json\n", list,
			   sizeof(list) - 1);
		return;
	}
	peer_begin(request, 200, "content-type: application/json\n");
	peer_write(request, events->s, events->len);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct client {
	uv_loop_t loop;
	struct kube_config *config;
	struct kube_client *client;
	struct kube_cache *cache;
	unsigned changes;
	double start;
	bool closed;
};

static void changed(void *context, enum kube_change change, const struct kube_object *before,
		    struct kube_object *now, const struct json *object)
{
	struct client *c = context;

	(void)change, (void)before, (void)now, (void)object;
	if (c->changes++ == 0)
		c->start = seconds();
}

static void closed(void *context)
{
	((struct client *)context)->closed = true;
}

static void client_open(struct client *c, const struct server *server)
{
	static const struct log log = { .fd = 2, .level = LOG_ERROR, .clock = &clock_system };
	struct kube_config_source source = { 0 };
	struct kube_client_options options = { .loop = &c->loop,
					       .clock = &clock_system,
					       .log = &log };
	struct kube_cache_options follow = { .kind = &kube_kinds[KUBE_POD],
					     .no_streaming = true,
					     .changed = changed,
					     .context = c };
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct err err = ERR_INIT;

	strbuf_addf(&text,
		    "{clusters: [{name: c, cluster: {server: '%s', certificate-authority: %s}}],"
		    " users: [{name: u, user: {token: t}}], current-context: x,"
		    " contexts: [{name: x, context: {cluster: c, user: u}}]}",
		    peer_url(server->peer, ""), server->authority.cert_file);
	uv_loop_init(&c->loop);
	if (kube_config_parse("bench", text.s, text.len, &source, &c->config, &err) < 0 ||
	    (options.config = c->config, kube_client_new(&options, &c->client, &err)) < 0 ||
	    kube_cache_new(c->client, &follow, &c->cache, &err) < 0) {
		fprintf(stderr, "kube_watch: %s\n", err.text);
		abort();
	}
}

static void client_close(struct client *c)
{
	kube_cache_free(c->cache);
	kube_client_close(c->client, closed, c);
	while (!c->closed)
		uv_run(&c->loop, UV_RUN_ONCE);
	uv_run(&c->loop, UV_RUN_DEFAULT);
	uv_loop_close(&c->loop);
	kube_config_free(c->config);
}

/* Events a second of this thread's time, from the first to the last. */
static double run(const struct server *server)
{
	struct client c = { 0 };
	double rate;

	client_open(&c, server);
	while (c.changes < EVENTS)
		uv_run(&c.loop, UV_RUN_ONCE);
	rate = EVENTS / (seconds() - c.start);
	if (kube_cache_count(c.cache) != PODS)
		abort();
	client_close(&c);
	return rate;
}

int main(void)
{
	struct strbuf events CLEANUP(strbuf_done) = STRBUF_INIT;
	static struct server server = { .serve = serve };
	double best = 0;

	make_events(&events);
	server.context = &events;
	server_start(&server);
	for (unsigned i = 0; i < ROUNDS; i++) {
		double rate = run(&server);
		best = MAX(best, rate);
	}
	printf("kube_watch: %.0f pod events of %zu bytes a second of one core over TLS, target "
	       "%d: "
	       "%s\n",
	       best, events.len / EVENTS, TARGET, best >= TARGET ? "met" : "missed");
	server_stop(&server);
	return best < TARGET;
}
