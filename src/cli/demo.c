/* SPDX-License-Identifier: Apache-2.0 */
/* demo.c - `gpu-scheduler demo`: a day on a small cluster, in pictures. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "cli/commands.h"
#include "cli/demo_scenes.h"
#include "cli/options.h"
#include "sim/fleet.h"
#include "sim/manifest.h"
#include "sim/picture.h"
#include "sim/terminal.h"
#include "sim/world.h"
#include "wire/json.h"
#include "wire/yaml.h"

#define NEWS_MAX 64

/* What happened to a workload in one scene: so many pods, the last one says why. */
struct news {
	enum world_event event;
	const char *workload;
	const struct world_pod *pod;
	unsigned pods;
};

struct demo {
	struct manifests manifests;
	struct yaml yaml;
	struct fleet *fleet;
	struct world *world;
	struct picture *picture;
	struct picture_style style;
	struct news news[NEWS_MAX];
	unsigned news_count;
	uint64_t pause_ms;
	const char *failed; /* the node that failed last */
};

static void demo_done(struct demo *d)
{
	picture_free(d->picture);
	world_free(d->world);
	fleet_free(d->fleet);
	manifests_done(&d->manifests);
	yaml_done(&d->yaml);
}

static void hear(void *context, enum world_event event, const struct world_pod *pod)
{
	struct demo *d = context;

	for (unsigned i = 0; i < d->news_count; i++) {
		struct news *n = &d->news[i];

		if (n->event == event && strcmp(n->workload, pod->workload) == 0) {
			n->pods++;
			n->pod = pod;
			return;
		}
	}
	if (d->news_count < NEWS_MAX)
		d->news[d->news_count++] = (struct news){ event, pod->workload, pod, 1 };
}

static const char *workload_of(void *context, const struct pod *pod)
{
	const struct demo *d = context;
	const struct world_pod *p = world_pod_of(d->world, pod);

	return p ? p->workload : pod->name;
}

static int prepare(struct demo *d, struct err *err)
{
	struct world_config config = { .seed = 1, .on_event = hear, .context = d };
	int rc;

	d->style.workload = workload_of;
	d->style.context = d;
	if ((rc = yaml_parse("demo", demo_cluster, strlen(demo_cluster), NULL, &d->yaml, err)) <
		    0 ||
	    (rc = fleet_new("demo", json_root(d->yaml.items[0].doc), &d->fleet, err)) < 0 ||
	    (rc = world_new(d->fleet, &config, &d->world, err)) < 0)
		return rc;
	d->picture = picture_new(&d->style);
	return d->picture ? 0 : err_set(err, ENOMEM, "out of memory");
}

/* The first node that has a pod of the workload fails. */
static int fail_under(struct demo *d, const char *workload, struct err *err)
{
	for (uint32_t i = 0; i < world_pods(d->world); i++) {
		const struct world_pod *pod = world_pod(d->world, i);

		if (pod->state != WORLD_PLACED || strcmp(pod->workload, workload) != 0)
			continue;
		uint32_t node = fleet_find(
			d->fleet, cluster_node(world_cluster(d->world), pod->decision.node)->name);
		d->failed = fleet_node_name(d->fleet, node);
		return world_fail_node(d->world, d->failed, err);
	}
	return 0;
}

static int act(struct demo *d, const struct demo_scene *scene, struct err *err)
{
	size_t from = d->manifests.items.len;
	int rc = 0;

	if (scene->ends)
		rc = world_delete(d->world, scene->ends, err);
	if (rc == 0 && scene->fails)
		rc = fail_under(d, scene->fails, err);
	if (rc == 0 && scene->recovers && d->failed)
		rc = world_recover_node(d->world, d->failed, err);
	if (rc == 0 && scene->manifests)
		rc = manifests_parse(&d->manifests, "demo", scene->manifests,
				     strlen(scene->manifests), err);
	if (rc == 0)
		rc = world_submit(d->world, &d->manifests, from, err);
	return rc < 0 ? rc : world_settle(d->world, err);
}

static void put_news(const struct demo *d, struct strbuf *out)
{
	static const struct {
		const char *sign, *color, *words;
	} says[] = {
		[WORLD_EVENT_PLACED] = { "+", "\033[32m", "" },
		[WORLD_EVENT_WAITS] = { "~", "\033[33m", "waits: " },
		[WORLD_EVENT_EVICTED] = { "-", "\033[31m", "gives way: " },
		[WORLD_EVENT_LOST] = { "!", "\033[31m", "lost its place: " },
	};

	for (unsigned i = 0; i < d->news_count; i++) {
		const struct news *n = &d->news[i];

		strbuf_addf(out, "%s%s%s %s", d->style.color ? says[n->event].color : "",
			    says[n->event].sign, d->style.color ? "\033[0m" : "", n->workload);
		if (n->pods > 1)
			strbuf_addf(out, " (%u pods)", n->pods);
		strbuf_addf(out, "  %s%s\n", says[n->event].words,
			    n->event == WORLD_EVENT_LOST      ? "its node failed"
			    : n->event == WORLD_EVENT_EVICTED ? "a pod of higher priority needs it"
			    : n->pod->text		      ? n->pod->text
							      : "");
	}
}

static void show(struct demo *d, const struct demo_scene *scene, size_t number)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;

	strbuf_addf(&out, "%s%zu. %s%s\n\n", d->style.color ? "\033[1m" : "", number, scene->title,
		    d->style.color ? "\033[0m" : "");
	put_news(d, &out);
	strbuf_putc(&out, '\n');
	picture_draw(d->picture, world_cluster(d->world), &out);
	strbuf_putc(&out, '\n');
	fwrite(out.s, 1, out.len, stdout);
	fflush(stdout);
}

static void pause_for(const struct demo *d)
{
	struct timespec time = { (time_t)(d->pause_ms / 1000),
				 (long)(d->pause_ms % 1000) * 1000000 };

	if (d->pause_ms)
		nanosleep(&time, NULL);
}

static int play(struct demo *d, struct err *err)
{
	struct strbuf key CLEANUP(strbuf_done) = STRBUF_INIT;
	int rc = 0;

	picture_key(d->picture, &key);
	for (size_t i = 0; rc == 0 && demo_scenes[i].title; i++) {
		if (i)
			pause_for(d);
		d->news_count = 0;
		rc = act(d, &demo_scenes[i], err);
		if (rc == 0)
			show(d, &demo_scenes[i], i + 1);
	}
	if (rc == 0)
		fputs(key.s, stdout);
	return rc;
}

int cmd_demo(int argc, char **argv)
{
	struct demo d CLEANUP(demo_done) = { .pause_ms = isatty(STDOUT_FILENO) ? 700 : 0 };
	struct err err = ERR_INIT;
	const struct option_spec specs[] = {
		{ .name = "pause",
		  .value = "MS",
		  .help = "between scenes (default 700 on a terminal, else 0)",
		  .number = &d.pause_ms,
		  .number_max = 60000 },
	};
	const struct options options = {
		.command = "demo",
		.summary = "Shows work being placed on a simulated cluster, step by step, with "
			   "reasons.",
		.specs = specs,
		.spec_count = ARRAY_SIZE(specs),
	};
	int exit_code;

	if (options_done(&options, argc, argv, NULL, &exit_code))
		return exit_code;
	terminal_style(stdout, &d.style);
	if (prepare(&d, &err) < 0 || play(&d, &err) < 0) {
		fprintf(stderr, "gpu-scheduler demo: %s\n", err.text);
		return CLI_USAGE;
	}
	return CLI_OK;
}
