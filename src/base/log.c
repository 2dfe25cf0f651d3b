/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

static const char *const level_names[] = { "error", "warn", "info", "debug" };
static const char *const format_names[] = { "logfmt", "json" };

/* logfmt readers split at blanks and '='; all else may stand without quotes. */
static bool logfmt_needs_quotes(const char *s, size_t n)
{
	if (n == 0 || utf8_valid(s, n) < n)
		return true;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		if (c <= ' ' || c == '=' || c == '"' || c == '\\' || c == 0x7f)
			return true;
	}
	return false;
}

/* Cuts before a character, not inside it. */
static size_t value_length(const struct log_field *field)
{
	if (!field->str)
		return 0;
	size_t n = field->len;
	if (n == SIZE_MAX)
		n = strnlen(field->str, LOG_VALUE_MAX + 1);
	if (n <= LOG_VALUE_MAX)
		return n;
	n = LOG_VALUE_MAX;
	for (int back = 0; back < 3 && ((unsigned char)field->str[n] & 0xc0) == 0x80; back++)
		n--;
	return n;
}

static void add_string(struct strbuf *line, enum log_format format, const char *s, size_t n)
{
	if (format == LOG_JSON || logfmt_needs_quotes(s, n))
		strbuf_add_json(line, s, n);
	else
		strbuf_add(line, s, n);
}

static void add_key(struct strbuf *line, enum log_format format, const char *key)
{
	if (format == LOG_JSON)
		strbuf_addf(line, ",\"%s\":", key);
	else
		strbuf_addf(line, " %s=", key);
}

static void add_field(struct strbuf *line, enum log_format format, const struct log_field *field)
{
	add_key(line, format, field->key);
	switch (field->type) {
	case LOG_FIELD_STR:
		add_string(line, format, field->str ? field->str : "", value_length(field));
		break;
	case LOG_FIELD_I64:
		strbuf_addf(line, "%" PRId64, field->i64);
		break;
	case LOG_FIELD_U64:
		strbuf_addf(line, "%" PRIu64, field->u64);
		break;
	case LOG_FIELD_BOOL:
		strbuf_puts(line, field->boolean ? "true" : "false");
		break;
	}
}

static void add_head(struct strbuf *line, const struct log *log, enum log_level level,
		     const char *message)
{
	char time[CLOCK_TEXT_MAX];
	clock_format(clock_wall_ns(log->clock), time);
	if (log->format == LOG_JSON)
		strbuf_addf(line, "{\"time\":\"%s\",\"level\":\"%s\"", time, level_names[level]);
	else
		strbuf_addf(line, "time=%s level=%s", time, level_names[level]);
	add_field(line, log->format, LOG_STR("msg", message));
}

static void write_line(int fd, const struct strbuf *line)
{
	while (write(fd, line->s, line->len) < 0 && errno == EINTR)
		;
}

void log_write(const struct log *log, enum log_level level, const char *message, ...)
{
	if (level > log->level)
		return;
	struct strbuf line CLEANUP(strbuf_done) = STRBUF_INIT;
	add_head(&line, log, level, message);
	va_list args;
	va_start(args, message);
	const struct log_field *field;
	while ((field = va_arg(args, const struct log_field *))) {
		size_t before = line.len;
		add_field(&line, log->format, field);
		if (line.len <= LOG_LINE_MAX)
			continue;
		strbuf_truncate(&line, before);
		add_field(&line, log->format, LOG_BOOL("truncated", true));
		break;
	}
	va_end(args);
	strbuf_puts(&line, log->format == LOG_JSON ? "}\n" : "\n");
	if (!line.failed)
		write_line(log->fd, &line);
}

bool log_level_parse(const char *name, enum log_level *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(level_names); i++) {
		if (strcmp(name, level_names[i]) == 0) {
			*ret = (enum log_level)i;
			return true;
		}
	}
	return false;
}

bool log_format_parse(const char *name, enum log_format *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(format_names); i++) {
		if (strcmp(name, format_names[i]) == 0) {
			*ret = (enum log_format)i;
			return true;
		}
	}
	return false;
}
