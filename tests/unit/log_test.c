/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/attr.h"
#include "base/clock.h"
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#define NOON_NS INT64_C(1769846709042000000) /* 2026-01-31T08:05:09.042Z */

static struct clock_manual noon;
static char output[256 << 10];

static struct log log_new(enum log_format format)
{
	clock_manual_init(&noon, NOON_NS);
	int fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		fd = fileno(tmpfile());
	return (struct log){ .fd = fd, .level = LOG_INFO, .format = format, .clock = &noon.clock };
}

/* All that was logged; closes the log. */
static const char *log_text(struct log *log)
{
	ssize_t n = pread(log->fd, output, sizeof(output) - 1, 0);
	CHECK(n >= 0);
	output[n] = '\0';
	close(log->fd);
	return output;
}

TEST(a_line_has_time_level_message_and_fields)
{
	struct log log = log_new(LOG_LOGFMT);
	log_info(&log, "pod bound", LOG_STR("pod", "ml/train-0"), LOG_U64("gpus", 8),
		 LOG_I64("score", -3), LOG_BOOL("gang", true));
	log_error(&log, "stopped");
	CHECK_STR(log_text(&log), "time=2026-01-31T08:05:09.042Z level=info msg=\"pod bound\" "
				  "pod=ml/train-0 gpus=8 score=-3 gang=true\n"
				  "time=2026-01-31T08:05:09.042Z level=error msg=stopped\n");
}

TEST(the_same_as_json)
{
	struct log log = log_new(LOG_JSON);
	log_warn(&log, "pod bound", LOG_STR("pod", "a\"b"), LOG_U64("gpus", UINT64_MAX),
		 LOG_I64("score", INT64_MIN), LOG_BOOL("gang", false), LOG_STR("none", NULL));
	CHECK_STR(log_text(&log),
		  "{\"time\":\"2026-01-31T08:05:09.042Z\",\"level\":\"warn\",\"msg\":\"pod "
		  "bound\",\"pod\":\"a\\\"b\",\"gpus\":18446744073709551615,"
		  "\"score\":-9223372036854775808,\"gang\":false,\"none\":\"\"}\n");
}

TEST(levels_below_the_wanted_one_are_silent)
{
	struct log log = log_new(LOG_LOGFMT);
	log_debug(&log, "hidden");
	log.level = LOG_ERROR;
	log_warn(&log, "hidden");
	log_info(&log, "hidden");
	CHECK_STR(log_text(&log), "");
}

TEST(logfmt_values_are_quoted_where_a_reader_would_split_them)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "plain/x:1,2-\xc3\xa9", "plain/x:1,2-\xc3\xa9" },
		{ "", "\"\"" },
		{ "a b", "\"a b\"" },
		{ "a=b", "\"a=b\"" },
		{ "a\"b", "\"a\\\"b\"" },
		{ "line\nlevel=error", "\"line\\nlevel=error\"" },
		{ "\x1b[31m", "\"\\u001b[31m\"" },
		{ "\xff", "\"\xef\xbf\xbd\"" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct log log = log_new(LOG_LOGFMT);
		log_info(&log, "m", LOG_STR("v", cases[i].in));
		const char *value = strstr(log_text(&log), " v=") + 3;
		CHECK(strncmp(value, cases[i].out, strlen(cases[i].out)) == 0);
		CHECK_STR(value + strlen(cases[i].out), "\n");
	}
}

TEST(large_values_are_cut_between_characters)
{
	static char large[3 * LOG_VALUE_MAX];
	memset(large, 'x', sizeof(large));
	static const char euro[] = { '\xe2', '\x82', '\xac' };
	memcpy(large + LOG_VALUE_MAX - 1, euro, sizeof(euro));
	struct log log = log_new(LOG_LOGFMT);
	log_info(&log, "m", LOG_STRN("v", large, sizeof(large)), LOG_STRN("w", "abc", 2));
	const char *value = strstr(log_text(&log), " v=") + 3;
	CHECK_INT(strcspn(value, " "), LOG_VALUE_MAX - 1);
	CHECK_STR(value + LOG_VALUE_MAX - 1, " w=ab\n");
}

#define FOUR(x) x, x, x, x

TEST(fields_past_the_longest_line_are_left_out_and_the_line_says_so)
{
	static char large[LOG_VALUE_MAX + 1];
	memset(large, 'x', sizeof(large) - 1);
	struct log log = log_new(LOG_JSON);
	log_info(&log, "m", FOUR(FOUR(LOG_STR("v", large))), FOUR(LOG_STR("w", large)));
	const char *text = log_text(&log);
	CHECK(strlen(text) < LOG_LINE_MAX + 64);
	CHECK(!strstr(text, "\"w\""));
	CHECK_STR(strstr(text, ",\"truncated\""), ",\"truncated\":true}\n");
}

static void *log_much(void *log)
{
	for (int i = 0; i < 200; i++)
		log_info(log, "thread", LOG_STR("value", "abcdefghijklmnopqrstuvwxyz"));
	return NULL;
}

TEST(lines_of_several_threads_do_not_mix)
{
	struct log log = log_new(LOG_LOGFMT);
	pthread_t threads[4];
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		CHECK(pthread_create(&threads[i], NULL, log_much, &log) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	const char *text = log_text(&log), *end = strchr(text, '\n');
	size_t line = (size_t)(end - text) + 1;
	CHECK_INT(strlen(text), line * 800);
	for (size_t i = 1; i < 800; i++)
		CHECK(memcmp(text, text + i * line, line) == 0);
}

TEST(names_of_levels_and_formats_are_read)
{
	enum log_level level;
	enum log_format format;
	CHECK(log_level_parse("error", &level) && level == LOG_ERROR);
	CHECK(log_level_parse("debug", &level) && level == LOG_DEBUG);
	CHECK(!log_level_parse("Debug", &level) && !log_level_parse("", &level));
	CHECK(log_format_parse("json", &format) && format == LOG_JSON);
	CHECK(log_format_parse("logfmt", &format) && format == LOG_LOGFMT);
	CHECK(!log_format_parse("text", &format));
}

TEST(times_are_written_in_utc)
{
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = {
		{ 0, "1970-01-01T00:00:00.000Z" },
		{ NOON_NS, "2026-01-31T08:05:09.042Z" },
		{ -1, "1969-12-31T23:59:59.999Z" },
		{ -1000000000, "1969-12-31T23:59:59.000Z" },
		{ INT64_MAX, "2262-04-11T23:47:16.854Z" },
		{ INT64_MIN, "1677-09-21T00:12:43.145Z" },
	};
	char text[CLOCK_TEXT_MAX];
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		CHECK_STR(clock_format(cases[i].ns, text), cases[i].text);
}

TEST(a_manual_clock_moves_only_when_told)
{
	struct clock_manual manual;
	clock_manual_init(&manual, 5);
	CHECK(clock_monotonic_ns(&manual.clock) == 0);
	clock_manual_advance(&manual, 3000000);
	CHECK(clock_monotonic_ms(&manual.clock) == 3);
	CHECK(clock_wall_ns(&manual.clock) == 3000005);
	uint64_t before = clock_monotonic_ns(&clock_system);
	CHECK(before > 0 && clock_monotonic_ns(&clock_system) >= before);
	CHECK(clock_wall_ns(&clock_system) > NOON_NS / 2);
}

TEST_MAIN()
