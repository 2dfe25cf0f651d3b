/* SPDX-License-Identifier: Apache-2.0 */
#include "record.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "decide.h"
#include "target.h"
#include "wire/json_write.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct record {
	FILE *file; /* NULL: nobody reads it */
	uint64_t seq;
	struct strbuf line;
};

static struct json_writer begin(struct record *record)
{
	strbuf_reset(&record->line);
	struct json_writer w = JSON_WRITER_INIT(&record->line);
	json_open_object(&w);
	return w;
}

/* Each line at once: a run that is killed leaves its log. */
static void end(struct record *record, struct json_writer *w)
{
	json_close_object(w);
	strbuf_putc(&record->line, '\n');
	if (!record->file)
		return;
	fwrite(record->line.s, 1, record->line.len, record->file);
	fflush(record->file);
}

static void add_u64(struct json_writer *w, const char *key, uint64_t number)
{
	json_add_key(w, key);
	json_add_u64(w, number);
}

static void add_str(struct json_writer *w, const char *key, const char *s)
{
	json_add_key(w, key);
	json_add_str(w, s);
}

int record_open(const char *path, uint64_t seed, struct record **ret, struct err *err)
{
	struct record *record = calloc(1, sizeof(*record));
	if (!record)
		return err_set(err, ENOMEM, "out of memory");
	record->line = (struct strbuf)STRBUF_INIT;
	record->file = path ? fopen(path, "we") : NULL;
	if (path && !record->file) {
		int code = errno;
		free(record);
		return err_set(err, code, "%s: %s", path, strerror(code));
	}
	struct json_writer w = begin(record);
	add_u64(&w, "seed", seed);
	end(record, &w);
	*ret = record;
	return 0;
}

void record_close(struct record *record)
{
	if (!record)
		return;
	if (record->file)
		fclose(record->file);
	strbuf_done(&record->line);
	free(record);
}

static struct json_writer begin_numbered(struct record *record, uint64_t ms)
{
	struct json_writer w = begin(record);
	add_u64(&w, "seq", ++record->seq);
	add_u64(&w, "at_ms", ms);
	return w;
}

uint64_t record_decision(struct record *record, uint64_t ms, const struct record_origin *origin,
			 const struct target *target, const struct decision *decision)
{
	for (size_t i = 0; i < decision->count; i++) {
		struct json_writer w = begin_numbered(record, ms);
		add_u64(&w, "conn", origin->conn);
		add_u64(&w, "stream", origin->stream);
		add_str(&w, "method", target->method);
		add_str(&w, "path", origin->path);
		add_str(&w, "identity", target->identity.s);
		add_u64(&w, "n", decision->n);
		add_u64(&w, "rule", decision->parts[i].rule);
		fault_write(&decision->parts[i].fault, &w);
		end(record, &w);
	}
	return record->seq;
}

void record_effect(struct record *record, uint64_t ms, uint64_t of, const char *effect,
		   uint64_t bytes, uint64_t events)
{
	struct json_writer w = begin_numbered(record, ms);
	add_u64(&w, "of", of);
	add_str(&w, "effect", effect);
	add_u64(&w, "bytes", bytes);
	add_u64(&w, "events", events);
	end(record, &w);
}

void record_trouble(struct record *record, uint64_t ms, const struct record_origin *origin,
		    const char *reason)
{
	struct json_writer w = begin_numbered(record, ms);
	add_u64(&w, "conn", origin->conn);
	add_u64(&w, "stream", origin->stream);
	add_str(&w, "path", origin->path);
	add_str(&w, "trouble", reason);
	end(record, &w);
}
