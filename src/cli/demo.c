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
#include "cli/show.h"
#include "sim/fleet.h"
#include "sim/manifest.h"
#include "sim/picture.h"
#include "sim/report.h"
#include "sim/terminal.h"
#include "sim/world.h"
#include "wire/json.h"
#include "wire/yaml.h"

#define NEWS_MAX     64
#define PLACES_SHOWN 3
#define NEWS_INDENT  4

/* What happened to a workload in one scene: so many pods, the last one says why. */
struct news {
	enum world_event event;
	const char *workload;
	const struct world_pod *pod;
	const struct world_pod *first[PLACES_SHOWN];
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
			if (n->pods < PLACES_SHOWN)
				n->first[n->pods] = pod;
			n->pods++;
			n->pod = pod;
			return;
		}
	}
	if (d->news_count < NEWS_MAX)
		d->news[d->news_count++] = (struct news){ event, pod->workload, pod, { pod }, 1 };
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
		const struct cluster *c = world_cluster(d->world);
		const struct node *n = cluster_node(c, pod->decision.node);
		if (picture_add_failed(d->picture, n->name, cluster_domain(c, n->domain)->name,
				       n->gpus_count) < 0)
			return err_set(err, ENOMEM, "out of memory");
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
	if (rc == 0 && scene->recovers && d->failed) {
		picture_drop_failed(d->picture, d->failed);
		rc = world_recover_node(d->world, d->failed, err);
	}
	if (rc == 0 && scene->manifests)
		rc = manifests_parse(&d->manifests, "demo", scene->manifests,
				     strlen(scene->manifests), err);
	if (rc == 0)
		rc = world_submit(d->world, &d->manifests, from, err);
	return rc < 0 ? rc : world_settle(d->world, err);
}

/* "dgx-00, dgx-01, dgx-02 and 5 more: gang ..."; of one pod the reason says where it is. */
static void put_places(const struct demo *d, const struct news *n, struct strbuf *out)
{
	const struct cluster *c = world_cluster(d->world);
	struct strbuf place CLEANUP(strbuf_done) = STRBUF_INIT;
	const char *text = n->pod->text ? n->pod->text : "";

	report_place(d->world, n->pod, &place);
	if (n->pods == 1) {
		bool starts = strncmp(text, place.s, place.len) == 0;

		strbuf_addf(out, "%s%s%s", starts ? "" : place.s, starts ? "" : ": ", text);
		return;
	}
	strbuf_addf(out, "%u pods on ", n->pods);
	for (unsigned i = 0; i < MIN(n->pods, PLACES_SHOWN); i++) {
		strbuf_puts(out, i ? "; " : "");
		if (n->first[i]->wish->gang.name)
			strbuf_puts(out, cluster_node(c, n->first[i]->decision.node)->name);
		else
			report_place(d->world, n->first[i], out);
	}
	if (n->pods > PLACES_SHOWN)
		strbuf_addf(out, " and %u more", n->pods - PLACES_SHOWN);
	strbuf_addf(out, "; %s%s", n->pod->wish->gang.name ? "" : "the last: ", text);
}

static void put_reason(const struct demo *d, const struct news *n, struct strbuf *out)
{
	if (n->event == WORLD_EVENT_PLACED && n->pod->state == WORLD_PLACED) {
		put_places(d, n, out);
		return;
	}
	if (n->pods > 1)
		strbuf_addf(out, "%u pods ", n->pods);
	else if (n->event != WORLD_EVENT_PLACED)
		strbuf_addf(out, "%s ", n->pod->name);
	if (n->event == WORLD_EVENT_LOST)
		strbuf_addf(out, "lost: node %s failed", d->failed);
	else if (n->event == WORLD_EVENT_EVICTED)
		strbuf_puts(out, "give way: a pod of higher priority needs the place");
	else
		strbuf_addf(out, "%s: %s", n->pods > 1 ? "wait" : "waits",
			    n->pod->text ? n->pod->text : "");
}

static void put_news(const struct demo *d, struct strbuf *out)
{
	static const struct {
		const char *sign, *color;
	} says[] = {
		[WORLD_EVENT_PLACED] = { "+", "\033[32m" },
		[WORLD_EVENT_WAITS] = { "~", "\033[33m" },
		[WORLD_EVENT_EVICTED] = { "-", "\033[31m" },
		[WORLD_EVENT_LOST] = { "!", "\033[31m" },
	};

	for (unsigned i = 0; i < d->news_count; i++) {
		struct strbuf reason CLEANUP(strbuf_done) = STRBUF_INIT;
		const struct news *n = &d->news[i];

		strbuf_addf(out, "%s%s%s %s  ", d->style.color ? says[n->event].color : "",
			    says[n->event].sign, d->style.color ? "\033[0m" : "", n->workload);
		put_reason(d, n, &reason);
		show_wrapped(reason.s, (uint32_t)strlen(n->workload) + 4, NEWS_INDENT,
			     terminal_width(stdout), out);
		strbuf_putc(out, '\n');
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
	if (number == 1)
		picture_key(d->picture, &out);
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
	int rc = 0;

	for (size_t i = 0; rc == 0 && demo_scenes[i].title; i++) {
		if (i)
			pause_for(d);
		d->news_count = 0;
		rc = act(d, &demo_scenes[i], err);
		if (rc == 0)
			show(d, &demo_scenes[i], i + 1);
	}
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
