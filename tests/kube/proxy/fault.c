/* SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"

#include "base/attr.h"
#include "base/err.h"
#include "wire/json.h"
#include "wire/json_write.h"

#include <errno.h>
#include <string.h>

static const char *const kinds[FAULT_KINDS] = {
	[FAULT_NONE] = "none",	   [FAULT_DELAY] = "delay",	    [FAULT_CUT] = "cut",
	[FAULT_ANSWER] = "answer", [FAULT_SILENCE] = "silence",	    [FAULT_RESET] = "reset",
	[FAULT_GOAWAY] = "goaway", [FAULT_HALF_BODY] = "half-body", [FAULT_SLOW] = "slow",
	[FAULT_HOLD] = "hold",	   [FAULT_STOP] = "stop",
};

static const char *const points[FAULT_POINTS] = {
	[POINT_NONE] = "none",
	[POINT_BEFORE_WRITE] = "before-write",
	[POINT_AFTER_WRITE] = "after-write",
	[POINT_EVENTS] = "events",
	[POINT_BYTES] = "bytes",
	[POINT_MID_EVENT] = "mid-event",
};

static const char *const forms[FAULT_FORMS] = {
	[FORM_STATUS] = "status",
	[FORM_EVENT] = "event",
	[FORM_HTML] = "html",
};

const char *fault_kind_name(enum fault_kind kind)
{
	return kinds[kind];
}

static void add_number(struct json_writer *w, const char *key, uint64_t number)
{
	if (number == 0)
		return;
	json_add_key(w, key);
	json_add_u64(w, number);
}

static void add_word(struct json_writer *w, const char *key, const char *word)
{
	json_add_key(w, key);
	json_add_str(w, word);
}

void fault_write(const struct fault *fault, struct json_writer *w)
{
	add_word(w, "fault", kinds[fault->kind]);
	if (fault->point != POINT_NONE)
		add_word(w, "point", points[fault->point]);
	if (fault->kind == FAULT_ANSWER)
		add_word(w, "form", forms[fault->form]);
	add_number(w, "count", fault->count);
	add_number(w, "ms", fault->ms);
	add_number(w, "permille", fault->permille);
	add_number(w, "status", fault->status);
	add_number(w, "retry_after_s", fault->retry_after_s);
	add_number(w, "bytes_per_s", fault->bytes_per_s);
	add_number(w, "refuse", fault->refuse);
	add_number(w, "whole", fault->whole);
}

/* Which of the names it is; the first if it is not there. */
static int read_word(const struct json *object, const char *key, const char *const *names,
		     size_t count, unsigned *ret, struct err *err)
{
	const char *word = json_str(object, key);
	*ret = 0;
	for (unsigned i = 0; word && i < count; i++) {
		if (strcmp(word, names[i]) != 0)
			continue;
		*ret = i;
		return 0;
	}
	return word ? err_set(err, EINVAL, "\"%s\" is no %s", word, key) : 0;
}

static int read_number(const struct json *object, const char *key, uint64_t max, uint64_t *ret,
		       struct err *err)
{
	int64_t number = 0;
	int result = json_i64(object, &number, key);
	if (result == -EINVAL || number < 0 || (uint64_t)number > max)
		return err_set(err, EINVAL, "%s is no number from 0 to %llu", key,
			       (unsigned long long)max);
	*ret = (uint64_t)number;
	return 0;
}

static int read_u32(const struct json *object, const char *key, uint32_t max, uint32_t *ret,
		    struct err *err)
{
	uint64_t number = 0;
	int result = read_number(object, key, max, &number, err);
	*ret = (uint32_t)number;
	return result;
}

static int read_numbers(const struct json *object, struct fault *fault, struct err *err)
{
	uint32_t refuse = 0;
	uint32_t whole = 0;
	int result = read_number(object, "count", INT64_MAX, &fault->count, err);
	if (result == 0)
		result = read_u32(object, "ms", FAULT_FOREVER, &fault->ms, err);
	if (result == 0)
		result = read_u32(object, "permille", 999, &fault->permille, err);
	if (result == 0)
		result = read_u32(object, "status", 599, &fault->status, err);
	if (result == 0)
		result = read_u32(object, "retry_after_s", UINT32_MAX, &fault->retry_after_s, err);
	if (result == 0)
		result = read_number(object, "bytes_per_s", INT64_MAX, &fault->bytes_per_s, err);
	if (result == 0)
		result = read_u32(object, "refuse", 1, &refuse, err);
	if (result == 0)
		result = read_u32(object, "whole", 1, &whole, err);
	fault->refuse = refuse;
	fault->whole = whole;
	return result;
}

int fault_read(const struct json *object, struct fault *ret, struct err *err)
{
	struct fault fault = { 0 };
	unsigned kind, point, form;
	int result = read_word(object, "fault", kinds, ARRAY_SIZE(kinds), &kind, err);
	if (result == 0)
		result = read_word(object, "point", points, ARRAY_SIZE(points), &point, err);
	if (result == 0)
		result = read_word(object, "form", forms, ARRAY_SIZE(forms), &form, err);
	if (result < 0)
		return result;
	fault.kind = kind;
	fault.point = point;
	fault.form = form;
	result = read_numbers(object, &fault, err);
	if (result == 0 &&
	    (fault.kind == FAULT_NONE || (fault.kind == FAULT_ANSWER && fault.status < 200) ||
	     (fault.kind == FAULT_SLOW && fault.bytes_per_s == 0)))
		result = err_set(err, EINVAL, "no whole fault");
	if (result == 0)
		*ret = fault;
	return result;
}
