/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a rule, each with the function that reads it. */
#include "script_private.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/num.h"
#include "base/suggest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong(const struct word *word)
{
	if (!word->value)
		return err_set(word->err, EINVAL, "write %s", word->keyword->form);
	return err_set(word->err, EINVAL, "%s does not take \"%s\": write %s", word->keyword->name,
		       word->value, word->keyword->form);
}

/* "200ms", "5s", "1m"; `unit` of the end of a range counts where there is none. */
static int parse_ms(const char *s, size_t n, uint64_t unit, uint64_t *ret, uint64_t *ret_unit)
{
	static const struct {
		const char *name;
		uint64_t ms;
	} units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 } };
	size_t digits = 0;
	while (digits < n && s[digits] >= '0' && s[digits] <= '9')
		digits++;
	uint64_t found = digits == n ? unit : 0;
	for (size_t i = 0; i < ARRAY_SIZE(units) && digits < n; i++)
		if (strlen(units[i].name) == n - digits &&
		    memcmp(units[i].name, s + digits, n - digits) == 0)
			found = units[i].ms;
	uint64_t number;
	if (found == 0 || parse_u64(s, digits, &number) < 0 || MUL_OVERFLOW(number, found, ret) ||
	    *ret >= FAULT_FOREVER)
		return -EINVAL;
	if (ret_unit)
		*ret_unit = found;
	return 0;
}

/* "5s" or "5..200ms". */
static int parse_ms_range(const char *s, struct script_range *ret)
{
	const char *dots = strstr(s, "..");
	const char *last = dots ? dots + 2 : s;
	uint64_t unit;
	if (parse_ms(last, strlen(last), 0, &ret->max, &unit) < 0)
		return -EINVAL;
	ret->min = ret->max;
	if (dots && parse_ms(s, (size_t)(dots - s), unit, &ret->min, NULL) < 0)
		return -EINVAL;
	return ret->min <= ret->max ? 0 : -EINVAL;
}

/* "3" or "1..5". */
static int parse_count_range(const char *s, struct script_range *ret)
{
	const char *dots = strstr(s, "..");
	const char *last = dots ? dots + 2 : s;
	if (parse_u64(last, strlen(last), &ret->max) < 0 || ret->max > INT64_MAX)
		return -EINVAL;
	ret->min = ret->max;
	if (dots && parse_u64(s, (size_t)(dots - s), &ret->min) < 0)
		return -EINVAL;
	return ret->min <= ret->max ? 0 : -EINVAL;
}

static int read_any(const struct word *word)
{
	return word->value ? wrong(word) : 0;
}

/* A verb or method that no request can have is a slip of the pen. */
static int check_known(const struct word *word, const char *const *names, size_t count)
{
	for (const char *s = word->value; *s;) {
		char pattern[32];
		size_t n = strcspn(s, ",");
		bool known = false;
		snprintf(pattern, sizeof(pattern), "%.*s", (int)MIN(n, sizeof(pattern) - 1), s);
		for (size_t i = 0; i < count && !known; i++)
			known = script_glob_any(pattern, names[i], strlen(names[i]));
		if (!known) {
			const char *meant = suggest(pattern, names, count);
			return err_set(word->err, EINVAL, "there is no %s \"%s\"%s%s%s",
				       word->keyword->name, pattern, meant ? ": write \"" : "",
				       meant ? meant : "", meant ? "\"" : "");
		}
		s += n;
		s += *s == ',';
	}
	return 0;
}

static int check_match(const struct word *word)
{
	static const char *const verbs[] = { "get",    "list",	"watch",  "create",
					     "update", "patch", "delete", "deletecollection",
					     "other" };
	static const char *const methods[] = { "GET",	"HEAD",	  "POST",   "PUT",
					       "PATCH", "DELETE", "OPTIONS" };
	if (word->keyword->number == MATCH_VERB)
		return check_known(word, verbs, ARRAY_SIZE(verbs));
	if (word->keyword->number == MATCH_METHOD)
		return check_known(word, methods, ARRAY_SIZE(methods));
	return 0;
}

static int read_match(const struct word *word)
{
	char **match = &word->rule->match[word->keyword->number];
	if (!word->value || !*word->value)
		return wrong(word);
	if (*match)
		return err_set(word->err, EINVAL, "%s twice: write %s=A,B", word->keyword->name,
			       word->keyword->name);
	int result = check_match(word);
	if (result < 0)
		return result;
	*match = strdup(word->value);
	return *match ? 0 : err_set(word->err, ENOMEM, "out of memory");
}

/* "0.25": at most nine digits after the point. */
static int read_p(const struct word *word)
{
	const char *s = word->value;
	if (!s || !*s || strlen(s) > 11)
		return wrong(word);
	const char *point = strchr(s, '.');
	size_t whole = point ? (size_t)(point - s) : strlen(s);
	uint64_t units;
	uint64_t parts = 0;
	if (parse_u64(s, whole, &units) < 0 || units > 1)
		return wrong(word);
	uint64_t scale = SCRIPT_P_ALWAYS;
	for (const char *c = point ? point + 1 : ""; *c; c++) {
		scale /= 10;
		if (*c < '0' || *c > '9' || scale == 0)
			return wrong(word);
		parts += (uint64_t)(*c - '0') * scale;
	}
	uint64_t p = units * SCRIPT_P_ALWAYS + parts;
	if (p > SCRIPT_P_ALWAYS)
		return wrong(word);
	word->rule->p_billionths = (uint32_t)p;
	return 0;
}

static int read_positive(const struct word *word, uint64_t *ret)
{
	if (!word->value || parse_u64(word->value, strlen(word->value), ret) < 0 || *ret == 0)
		return wrong(word);
	return 0;
}

static int read_nth(const struct word *word)
{
	return read_positive(word, &word->rule->nth);
}

static int read_every(const struct word *word)
{
	return read_positive(word, &word->rule->every);
}

static int read_max(const struct word *word)
{
	return read_positive(word, &word->limits->max);
}

static int read_gap(const struct word *word)
{
	if (!word->value ||
	    parse_ms(word->value, strlen(word->value), 0, &word->limits->gap_ms, NULL) < 0)
		return wrong(word);
	return 0;
}

/* "mid-event" may say after how many events; other points exclude each other. */
static int set_after(const struct word *word, enum fault_point point, struct script_range range)
{
	struct fault *fault = &word->rule->fault;
	bool mid = fault->point == POINT_MID_EVENT && point == POINT_EVENTS;
	if (fault->point != POINT_NONE && !mid)
		return err_set(word->err, EINVAL, "at two points: write two rules");
	word->rule->count = range;
	if (!mid)
		fault->point = point;
	return 0;
}

static int read_after(const struct word *word)
{
	static const struct {
		const char *name;
		enum fault_point point;
	} forms[] = { { "requests:", POINT_NONE },
		      { "events:", POINT_EVENTS },
		      { "bytes:", POINT_BYTES } };
	const char *value = word->value ? word->value : "";
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		size_t n = strlen(forms[i].name);
		struct script_range range;
		if (strncmp(value, forms[i].name, n) != 0)
			continue;
		if (parse_count_range(value + n, &range) < 0)
			return wrong(word);
		if (forms[i].point == POINT_NONE) {
			word->limits->after_requests = range.min;
			return range.min == range.max ? 0 : wrong(word);
		}
		if (!word->rule)
			return wrong(word);
		return set_after(word, forms[i].point, range);
	}
	return wrong(word);
}

static int set_kind(const struct word *word, enum fault_kind kind)
{
	struct fault *fault = &word->rule->fault;
	if (fault->kind != FAULT_NONE)
		return err_set(word->err, EINVAL, "two faults, %s and %s: write two rules",
			       fault_kind_name(fault->kind), fault_kind_name(kind));
	fault->kind = kind;
	return 0;
}

static int read_plain(const struct word *word)
{
	return word->value ? wrong(word) : set_kind(word, (enum fault_kind)word->keyword->number);
}

static int read_point(const struct word *word)
{
	enum fault_point point = (enum fault_point)word->keyword->number;
	struct fault *fault = &word->rule->fault;
	if (word->value)
		return wrong(word);
	if (fault->point != POINT_NONE &&
	    (fault->point != POINT_EVENTS || point != POINT_MID_EVENT))
		return err_set(word->err, EINVAL, "at two points: write two rules");
	fault->point = point;
	return 0;
}

static int read_delay(const struct word *word)
{
	if (!word->value || parse_ms_range(word->value, &word->rule->ms) < 0)
		return wrong(word);
	return set_kind(word, FAULT_DELAY);
}

static int read_silence(const struct word *word)
{
	struct script_range *ms = &word->rule->ms;
	if (word->value && strcmp(word->value, "forever") == 0)
		*ms = (struct script_range){ FAULT_FOREVER, FAULT_FOREVER };
	else if (!word->value || parse_ms_range(word->value, ms) < 0)
		return wrong(word);
	return set_kind(word, FAULT_SILENCE);
}

static int read_answer(const struct word *word)
{
	struct fault *fault = &word->rule->fault;
	const char *value = word->value ? word->value : "";
	const char *form = strchr(value, '-');
	size_t digits = form ? (size_t)(form - value) : strlen(value);
	if (parse_u32(value, digits, &fault->status) < 0 || fault->status < 400 ||
	    fault->status > 599)
		return wrong(word);
	if (form && strcmp(form, "-event") == 0)
		fault->form = FORM_EVENT;
	else if (form && strcmp(form, "-html") == 0)
		fault->form = FORM_HTML;
	else if (form)
		return wrong(word);
	return set_kind(word, FAULT_ANSWER);
}

static int read_retry_after(const struct word *word)
{
	uint32_t *seconds = &word->rule->fault.retry_after_s;
	if (!word->value || parse_u32(word->value, strlen(word->value), seconds) < 0)
		return wrong(word);
	return 0;
}

static int read_slow(const struct word *word)
{
	const char *value = word->value ? word->value : "";
	size_t n = strlen(value);
	uint64_t *rate = &word->rule->fault.bytes_per_s;
	if (n < 3 || strcmp(value + n - 2, "/s") != 0 || parse_u64(value, n - 2, rate) < 0 ||
	    *rate == 0 || *rate > UINT32_MAX)
		return wrong(word);
	return set_kind(word, FAULT_SLOW);
}

static int read_until(const struct word *word)
{
	return word->value && strcmp(word->value, "next") == 0 ? 0 : wrong(word);
}

static int read_for(const struct word *word)
{
	if (!word->value || parse_ms_range(word->value, &word->rule->ms) < 0)
		return wrong(word);
	return 0;
}

static int read_whole(const struct word *word)
{
	word->rule->fault.whole = true;
	return word->value && strcmp(word->value, "connection") == 0 ? 0 : wrong(word);
}

static int read_refuse(const struct word *word)
{
	word->rule->fault.refuse = true;
	return word->value ? wrong(word) : 0;
}

const struct keyword script_keywords[] = {
	{ "any", read_any, 0, "any", false },
	{ "verb", read_match, MATCH_VERB, "verb=list,watch", false },
	{ "method", read_match, MATCH_METHOD, "method=PUT,POST", false },
	{ "resource", read_match, MATCH_RESOURCE, "resource=pods,pods/binding", false },
	{ "namespace", read_match, MATCH_NAMESPACE, "namespace=team-*", false },
	{ "name", read_match, MATCH_NAME, "name=gpus-*", false },
	{ "path", read_match, MATCH_PATH, "path=*/binding", false },
	{ "p", read_p, 0, "p=0.02, a number from 0 to 1", false },
	{ "nth", read_nth, 0, "nth=7, the seventh that matches", false },
	{ "every", read_every, 0, "every=10, each tenth that matches", false },
	{ "max", read_max, 0, "max=5, the number of faults", true },
	{ "gap", read_gap, 0, "gap=500ms, the time between two faults", true },
	{ "after", read_after, 0, "after=requests:100, after=events:3 or after=bytes:1000", true },
	{ "cut", read_plain, FAULT_CUT, "cut before-write", false },
	{ "before-write", read_point, POINT_BEFORE_WRITE, "cut before-write", false },
	{ "after-write", read_point, POINT_AFTER_WRITE, "cut after-write", false },
	{ "mid-event", read_point, POINT_MID_EVENT, "cut mid-event", false },
	{ "delay", read_delay, 0, "delay=200ms or delay=5..200ms", false },
	{ "answer", read_answer, 0, "answer=429, answer=410-event or answer=502-html", false },
	{ "retry-after", read_retry_after, 0, "retry-after=1, in seconds", false },
	{ "silence", read_silence, 0, "silence=10s, silence=1..10s or silence=forever", false },
	{ "of", read_whole, 0, "silence=10s of=connection", false },
	{ "reset", read_plain, FAULT_RESET, "reset", false },
	{ "goaway", read_plain, FAULT_GOAWAY, "goaway", false },
	{ "refuse", read_refuse, 0, "goaway refuse", false },
	{ "half-body", read_plain, FAULT_HALF_BODY, "half-body", false },
	{ "slow", read_slow, 0, "slow=1000/s, in bytes", false },
	{ "hold", read_plain, FAULT_HOLD, "hold until=next", false },
	{ "until", read_until, 0, "hold until=next", false },
	{ "for", read_for, 0, "hold until=next for=5s", false },
	{ "stop", read_plain, FAULT_STOP, "stop", false },
};
const size_t script_keywords_count = ARRAY_SIZE(script_keywords);
