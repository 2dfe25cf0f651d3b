/* SPDX-License-Identifier: Apache-2.0 */
/* The file, as it changes.  What the cluster has is tested against a real server. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "scheduler/config.h"

struct bench {
	char folder[64], file[128];
	struct clock_manual clock;
	struct log log;
	struct config *config;
	struct err err;
	unsigned changes;
	uint16_t seats; /* at the last change */
};

static void changed(void *context, const struct scheduler_settings *settings)
{
	struct bench *b = context;

	b->changes++;
	b->seats = settings->seats;
}

static void bench_init(struct bench *b)
{
	*b = (struct bench){ .folder = "/tmp/config-test.XXXXXX" };
	CHECK(mkdtemp(b->folder));
	snprintf(b->file, sizeof(b->file), "%s/config", b->folder);
	clock_manual_init(&b->clock, 0);
	b->log = (struct log){ memfd_create("log", 0), LOG_DEBUG, LOG_LOGFMT, &b->clock.clock };
}

static void bench_done(struct bench *b)
{
	char path[256];

	config_free(b->config);
	close(b->log.fd);
	snprintf(path, sizeof(path), "rm -r %s", b->folder);
	CHECK(system(path) == 0);
}

/* A new file in place of the old one. */
static void put_file(const struct bench *b, const char *text)
{
	char part[256];

	snprintf(part, sizeof(part), "%s/part", b->folder);
	FILE *file = fopen(part, "w");
	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
	CHECK(rename(part, b->file) == 0);
}

static int start(struct bench *b, const char *file)
{
	struct config_options options = { .file = file,
					  .clock = &b->clock.clock,
					  .log = &b->log,
					  .changed = changed,
					  .context = b };

	return config_new(&options, &b->config, &b->err);
}

static void look_again(struct bench *b)
{
	clock_manual_advance(&b->clock, (uint64_t)CONFIG_LOOK_MS * 1000000);
	config_tick(b->config);
}

/* How often the log has said that. */
static unsigned logged(const struct bench *b, const char *what)
{
	static char text[1 << 16];
	ssize_t len = pread(b->log.fd, text, sizeof(text) - 1, 0);
	unsigned count = 0;

	CHECK(len >= 0);
	text[len] = '\0';
	for (const char *at = text; (at = strstr(at, what)); at++)
		count++;
	return count;
}

TEST(without_file_and_cluster_the_defaults_hold)
{
	struct bench b;
	struct scheduler_settings expected;

	bench_init(&b);
	settings_default(&expected);
	CHECK(start(&b, NULL) == 0);
	CHECK(settings_equal(config_settings(b.config), &expected));
	CHECK_STR(config_source(b.config), "the defaults");
	look_again(&b);
	CHECK_INT(b.changes, 0);
	bench_done(&b);
}

TEST(a_file_holds_from_the_start_and_when_it_is_another)
{
	struct bench b;

	bench_init(&b);
	put_file(&b, "maxPodsPerSharedGpu: 3\n");
	CHECK(start(&b, b.file) == 0);
	CHECK_INT(config_settings(b.config)->seats, 3);
	CHECK_STR(config_source(b.config), b.file);
	look_again(&b);
	CHECK_INT(b.changes, 0);
	put_file(&b, "maxPodsPerSharedGpu: 4\n");
	/* Not before it is time to. */
	config_tick(b.config);
	CHECK_INT(b.changes, 0);
	look_again(&b);
	CHECK_INT(b.changes, 1);
	CHECK_INT(b.seats, 4);
	CHECK_INT(config_settings(b.config)->seats, 4);
	/* Other words for the same. */
	put_file(&b, "{maxPodsPerSharedGpu: 4}\n");
	look_again(&b);
	CHECK_INT(b.changes, 1);
	bench_done(&b);
}

TEST(a_link_that_is_swapped_is_another_file)
{
	struct bench b;
	char one[256], two[256], part[256];

	bench_init(&b);
	snprintf(one, sizeof(one), "%s/one", b.folder);
	snprintf(two, sizeof(two), "%s/two", b.folder);
	snprintf(part, sizeof(part), "%s/link", b.folder);
	put_file(&b, "maxPodsPerSharedGpu: 1\n");
	CHECK(rename(b.file, one) == 0);
	put_file(&b, "maxPodsPerSharedGpu: 2\n");
	CHECK(rename(b.file, two) == 0);
	CHECK(symlink(one, b.file) == 0);
	CHECK(start(&b, b.file) == 0);
	CHECK_INT(config_settings(b.config)->seats, 1);
	CHECK(symlink(two, part) == 0 && rename(part, b.file) == 0);
	look_again(&b);
	CHECK_INT(b.seats, 2);
	bench_done(&b);
}

TEST(a_file_that_turns_bad_is_told_once_and_the_former_settings_stay)
{
	struct bench b;

	bench_init(&b);
	put_file(&b, "maxPodsPerSharedGpu: 3\n");
	CHECK(start(&b, b.file) == 0);
	put_file(&b, "maxPodsPerSharedGpu: none\n");
	for (unsigned i = 0; i < 3; i++)
		look_again(&b);
	CHECK_INT(config_settings(b.config)->seats, 3);
	CHECK_INT(logged(&b, "maxPodsPerSharedGpu must be a whole number"), 1);
	CHECK(unlink(b.file) == 0);
	for (unsigned i = 0; i < 3; i++)
		look_again(&b);
	CHECK_INT(config_settings(b.config)->seats, 3);
	CHECK_INT(logged(&b, "No such file"), 1);
	CHECK_INT(b.changes, 0);
	put_file(&b, "maxPodsPerSharedGpu: 5\n");
	look_again(&b);
	CHECK_INT(b.changes, 1);
	CHECK_INT(b.seats, 5);
	bench_done(&b);
}

TEST(a_file_that_is_bad_at_the_start_is_an_error)
{
	struct bench b;

	bench_init(&b);
	CHECK_INT(start(&b, b.file), -ENOENT);
	CHECK(strstr(b.err.text, b.file));
	put_file(&b, "policy: best\n");
	CHECK_INT(start(&b, b.file), -EINVAL);
	CHECK(strstr(b.err.text, "policy is \"best\""));
	bench_done(&b);
}

TEST_MAIN()
