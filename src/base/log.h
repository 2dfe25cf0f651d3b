/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - one line for each thing that happened, for people and for machines.
 *
 *	log_info(log, "pod bound", LOG_STR("pod", name), LOG_U64("gpus", count));
 *
 * gives, as key=value (logfmt) or as JSON:
 *
 *	time=2026-01-31T08:05:09.042Z level=info msg="pod bound" pod=ml/train-0 gpus=8
 *	{"time":"2026-01-31T08:05:09.042Z","level":"info","msg":"pod bound","pod":"ml/train-0","gpus":8}
 *
 * Any thread may log: a line is one write().  A line that cannot be written is
 * lost and nobody is told, for there is no place left to tell.  Values are cut
 * at 4 KiB; fields past 64 KiB are left out, and truncated=true says so.
 */
#ifndef GS_BASE_LOG_H
#define GS_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clock;

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_LOGFMT, LOG_JSON };

struct log {
	int fd; /* borrowed */
	enum log_level level;
	enum log_format format;
	const struct clock *clock; /* borrowed */
};

#define LOG_VALUE_MAX ((size_t)4 << 10)
#define LOG_LINE_MAX  ((size_t)64 << 10)

/* Keys are ours, hence plain words: letters, digits, '_', '-', '.'. */
struct log_field {
	const char *key;
	enum { LOG_FIELD_STR, LOG_FIELD_I64, LOG_FIELD_U64, LOG_FIELD_BOOL } type;
	const char *str; /* NULL is written as empty */
	size_t len;	 /* SIZE_MAX: up to its NUL */
	int64_t i64;
	uint64_t u64;
	bool boolean;
};

#define LOG_FIELD(...)	  (&(const struct log_field){ __VA_ARGS__ })
#define LOG_STR(k, s)	  LOG_FIELD(.key = (k), .type = LOG_FIELD_STR, .str = (s), .len = SIZE_MAX)
#define LOG_STRN(k, s, n) LOG_FIELD(.key = (k), .type = LOG_FIELD_STR, .str = (s), .len = (n))
#define LOG_I64(k, i)	  LOG_FIELD(.key = (k), .type = LOG_FIELD_I64, .i64 = (i))
#define LOG_U64(k, u)	  LOG_FIELD(.key = (k), .type = LOG_FIELD_U64, .u64 = (u))
#define LOG_BOOL(k, b)	  LOG_FIELD(.key = (k), .type = LOG_FIELD_BOOL, .boolean = (b))

/* A message (a constant sentence without capital or full stop), then any number
 * of fields.  The fields are evaluated even if the level is off. */
#define log_error(log, ...) log_write((log), LOG_ERROR, __VA_ARGS__, LOG_END)
#define log_warn(log, ...)  log_write((log), LOG_WARN, __VA_ARGS__, LOG_END)
#define log_info(log, ...)  log_write((log), LOG_INFO, __VA_ARGS__, LOG_END)
#define log_debug(log, ...) log_write((log), LOG_DEBUG, __VA_ARGS__, LOG_END)
#define LOG_END		    ((const struct log_field *)0)

/* Behind the macros: struct log_field pointers up to LOG_END. */
void log_write(const struct log *log, enum log_level level, const char *message, ...);

/* "error", "warn", "info", "debug"; "logfmt", "json".  False: no such name. */
bool log_level_parse(const char *name, enum log_level *ret);
bool log_format_parse(const char *name, enum log_format *ret);

#endif
