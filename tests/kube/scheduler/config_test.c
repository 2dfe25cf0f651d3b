/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration that the cluster has, followed with the scheduler's own rights.
 *
 * cluster:
 */
#include "live.h"

#include "test.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "kube/ready.h"
#include "scheduler/config.h"

#include <sys/mman.h>
#include <unistd.h>

#define MAPS   "/api/v1/namespaces/kube-system/configmaps"
#define GROUP  "/apis/topology.scheduler/v1alpha1/namespaces/kube-system/"
#define PLAIN  GROUP "schedulerconfigs"
#define LONGER GROUP "topologyschedulerconfigs"

struct scene {
	struct live admin, live;
	struct kube_caches *caches;
	struct config *config;
	struct log log;
	unsigned changes;
	uint32_t wanted; /* seats */
	const char *logged;
};

static void changed(void *context, const struct scheduler_settings *settings)
{
	struct scene *s = context;
	CHECK(settings == config_settings(s->config));
	s->changes++;
}

static bool is_ready(void *context)
{
	const struct scene *s = context;
	return kube_caches_ready(s->caches, NULL);
}

static void scene_open(struct scene *s)
{
	char kubeconfig[256];
	struct err err = ERR_INIT;
	*s = (struct scene){ .changes = 0 };
	snprintf(kubeconfig, sizeof(kubeconfig), "%s/scheduler.kubeconfig", getenv("KUBE_DIR"));
	live_open(&s->admin, NULL);
	live_open_beside(&s->live, &s->admin, kubeconfig);
	s->log = (struct log){ memfd_create("log", 0), LOG_DEBUG, LOG_LOGFMT, &clock_system };
	s->caches = kube_caches_new(s->live.client);
	struct config_options options = { .caches = s->caches,
					  .clock = &clock_system,
					  .log = &s->log,
					  .changed = changed,
					  .context = s };
	CHECKF(config_new(&options, &s->config, &err) == 0, "%s", err.text);
	live_until(&s->live, is_ready, s, "the caches to be live");
}

static void scene_close(struct scene *s)
{
	kube_caches_free(s->caches);
	config_free(s->config);
	close(s->log.fd);
	live_close(&s->live);
	live_close(&s->admin);
}

static bool holds(void *context)
{
	const struct scene *s = context;
	return config_settings(s->config)->seats == s->wanted;
}

static void wait_seats(struct scene *s, uint32_t seats)
{
	s->wanted = seats;
	live_until(&s->live, holds, s, "the settings to hold");
}

static bool is_logged(void *context)
{
	const struct scene *s = context;
	static char text[1 << 16];
	ssize_t len = pread(s->log.fd, text, sizeof(text) - 1, 0);
	CHECK(len >= 0);
	text[len] = '\0';
	return strstr(text, s->logged);
}

static void wait_logged(struct scene *s, const char *what)
{
	s->logged = what;
	live_until(&s->live, is_logged, s, what);
}

static void put_map(struct scene *s, const char *method, const char *text)
{
	char body[512];
	bool post = strcmp(method, "POST") == 0;
	snprintf(body, sizeof(body),
		 "{\"metadata\":{\"name\":\"%s\"},\"data\":{\"config.yaml\":\"%s\"}}", CONFIG_NAME,
		 text);
	CHECK_INT(live_call(&s->admin, method, post ? MAPS : MAPS "/" CONFIG_NAME, body),
		  post ? 201 : 200);
}

static void put_object(struct scene *s, const char *path, const char *kind, unsigned seats)
{
	char body[512];
	snprintf(body, sizeof(body),
		 "{\"apiVersion\":\"" SETTINGS_API
		 "\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\"},"
		 "\"spec\":{\"maxPodsPerSharedGpu\":%u}}",
		 kind, CONFIG_NAME, seats);
	CHECK_INT(live_call(&s->admin, "POST", path, body), 201);
}

static bool are_served(void *context)
{
	struct scene *s = context;
	return live_call(&s->admin, "GET", PLAIN, NULL) == 200 &&
	       live_call(&s->admin, "GET", LONGER, NULL) == 200;
}

TEST(a_cluster_that_says_nothing_has_the_defaults)
{
	struct scene s;
	struct scheduler_settings expected;
	settings_default(&expected);
	scene_open(&s); /* the kinds are not even known */
	CHECK(settings_equal(config_settings(s.config), &expected));
	CHECK_STR(config_source(s.config), "the defaults");
	CHECK_INT(s.changes, 0);
	scene_close(&s);
	/* NOLINTNEXTLINE(cert-env33-c): ours */
	CHECK_INT(system("kubectl create -f " SOURCE_ROOT "/deploy/crds >/dev/null"), 0);
	live_open(&s.admin, NULL);
	live_until(&s.admin, are_served, &s, "the kinds to be served");
	live_close(&s.admin);
}

TEST(what_is_there_from_the_start_holds_at_once)
{
	struct scene s;
	live_open(&s.admin, NULL);
	put_map(&s, "POST", "maxPodsPerSharedGpu: 2");
	live_close(&s.admin);
	scene_open(&s);
	wait_seats(&s, 2);
	CHECK_INT(s.changes, 1);
	CHECK_STR(config_source(s.config), "ConfigMap kube-system/" CONFIG_NAME);
	scene_close(&s);
}

TEST(a_custom_resource_goes_before_the_map_and_the_map_before_the_defaults)
{
	struct scene s;
	scene_open(&s);
	wait_seats(&s, 2);
	put_object(&s, LONGER, "TopologySchedulerConfig", 3);
	wait_seats(&s, 3);
	put_object(&s, PLAIN, "SchedulerConfig", 4);
	wait_seats(&s, 4);
	CHECK_STR(config_source(s.config), "SchedulerConfig kube-system/" CONFIG_NAME);
	/* Nobody looks at the map any more; another write of what counts is seen. */
	put_map(&s, "PATCH", "maxPodsPerSharedGpu: 6");
	CHECK_INT(live_call(&s.admin, "PATCH", PLAIN "/" CONFIG_NAME,
			    "{\"spec\":{\"maxPodsPerSharedGpu\":5}}"),
		  200);
	wait_seats(&s, 5);
	CHECK_INT(s.changes, 4);
	CHECK_INT(live_call(&s.admin, "DELETE", PLAIN "/" CONFIG_NAME, NULL), 200);
	wait_seats(&s, 3);
	CHECK_INT(live_call(&s.admin, "DELETE", LONGER "/" CONFIG_NAME, NULL), 200);
	wait_seats(&s, 6);
	CHECK_INT(live_call(&s.admin, "DELETE", MAPS "/" CONFIG_NAME, NULL), 200);
	wait_seats(&s, SEATS_DEFAULT);
	CHECK_STR(config_source(s.config), "the defaults");
	CHECK_INT(s.changes, 7);
	scene_close(&s);
}

TEST(what_cannot_be_is_told_and_the_former_settings_stay)
{
	struct scene s;
	scene_open(&s);
	put_map(&s, "POST", "maxPodsPerSharedGpu: 2");
	wait_seats(&s, 2);
	put_map(&s, "PATCH", "maxPodsPerSharedGpu: many");
	wait_logged(&s, "ConfigMap kube-system/" CONFIG_NAME
			": maxPodsPerSharedGpu must be a whole number from 1 to 1000");
	CHECK_INT(config_settings(s.config)->seats, 2);
	CHECK_INT(s.changes, 1);
	put_map(&s, "PATCH", "maxPodsPerSharedGpu: 7");
	wait_seats(&s, 7);
	CHECK_INT(live_call(&s.admin, "DELETE", MAPS "/" CONFIG_NAME, NULL), 200);
	wait_seats(&s, SEATS_DEFAULT);
	scene_close(&s);
}

TEST_MAIN()
