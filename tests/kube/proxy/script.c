/* SPDX-License-Identifier: Apache-2.0 */
#include "script.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/suggest.h"
#include "base/vec.h"
#include "script_private.h"
#include "target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct script_limits no_limits = { .max = UINT64_MAX };

static int unknown_word(const char *name, bool limit, struct err *err)
{
	const char *names[64];
	size_t count = 0;
	for (size_t i = 0; i < script_keywords_count && count < ARRAY_SIZE(names); i++)
		if (!limit || script_keywords[i].limit)
			names[count++] = script_keywords[i].name;
	const char *meant = suggest(name, names, count);
	if (meant)
		return err_set(err, EINVAL, "unknown word \"%s\": did you mean \"%s\"?", name,
			       meant);
	return err_set(err, EINVAL, "unknown word \"%s\"", name);
}

static int read_word(char *text, struct word *word)
{
	char *value = strchr(text, '=');
	if (value)
		*value++ = '\0';
	word->value = value;
	for (size_t i = 0; i < script_keywords_count; i++) {
		word->keyword = &script_keywords[i];
		if (strcmp(word->keyword->name, text) != 0)
			continue;
		if (!word->rule && !word->keyword->limit)
			return err_set(
				word->err, EINVAL,
				"%s is no limit: write max=, gap= or after=requests:", text);
		return word->keyword->read(word);
	}
	return unknown_word(text, !word->rule, word->err);
}

static int check_point(const struct script_rule *rule, struct err *err)
{
	const struct fault *fault = &rule->fault;
	bool counts = fault->point == POINT_EVENTS || fault->point == POINT_BYTES;
	if (fault->kind == FAULT_CUT && fault->point == POINT_NONE)
		return err_set(err, EINVAL,
			       "cut when? write cut before-write, cut after-write, cut mid-event, "
			       "cut after=events:3 or cut after=bytes:1000");
	if (fault->kind == FAULT_SILENCE && fault->point != POINT_NONE && !counts)
		return err_set(err, EINVAL, "silence takes after=events:3 or after=bytes:1000");
	if (fault->kind != FAULT_CUT && fault->kind != FAULT_SILENCE && fault->point != POINT_NONE)
		return err_set(err, EINVAL, "%s has no point: only cut and silence do",
			       fault_kind_name(fault->kind));
	return 0;
}

/* Options that belong to another fault than this one. */
static int check_options(const struct script_rule *rule, struct err *err)
{
	const struct fault *fault = &rule->fault;
	if (fault->retry_after_s && fault->kind != FAULT_ANSWER)
		return err_set(err, EINVAL, "retry-after goes with answer=429");
	if (fault->refuse && fault->kind != FAULT_GOAWAY)
		return err_set(err, EINVAL, "refuse goes with goaway");
	if (fault->whole && (fault->kind != FAULT_SILENCE || fault->point != POINT_NONE))
		return err_set(err, EINVAL, "of=connection goes with silence= alone");
	if (rule->ms.max && fault->kind != FAULT_DELAY && fault->kind != FAULT_SILENCE &&
	    fault->kind != FAULT_HOLD)
		return err_set(err, EINVAL, "for= goes with hold until=next");
	return 0;
}

/* The rule as a whole, after its last word. */
static int finish_rule(struct script_rule *rule, struct err *err)
{
	struct fault *fault = &rule->fault;
	if (fault->kind == FAULT_NONE)
		return err_set(
			err, EINVAL,
			"on which requests, but not what: write cut, delay=, answer=, silence=, "
			"reset, goaway, half-body, slow=, hold until=next or stop");
	if (rule->nth && (rule->every || rule->p_billionths != SCRIPT_P_ALWAYS))
		return err_set(err, EINVAL, "nth= already says when: leave p= and every= out");
	int result = check_point(rule, err);
	if (result == 0)
		result = check_options(rule, err);
	rule->watch_only = fault->point == POINT_EVENTS || fault->point == POINT_MID_EVENT ||
			   fault->form == FORM_EVENT;
	if (fault->kind == FAULT_HOLD && rule->ms.max == 0)
		rule->ms = (struct script_range){ SCRIPT_HOLD_MS, SCRIPT_HOLD_MS };
	return result;
}

static int read_words(char *text, struct word *word)
{
	char *rest = NULL;
	for (char *each = strtok_r(text, " \t", &rest); each;
	     each = strtok_r(NULL, " \t", &rest)) {
		int result = read_word(each, word);
		if (result < 0)
			return result;
	}
	return 0;
}

static void rule_done(struct script_rule *rule)
{
	for (size_t i = 0; i < SCRIPT_MATCHES; i++)
		free(rule->match[i]);
}

static int add_rule(struct script *script, char *words, size_t line, struct err *err)
{
	struct script_rule rule = { .line = line,
				    .p_billionths = SCRIPT_P_ALWAYS,
				    .limits = no_limits };
	struct word word = { .rule = &rule, .limits = &rule.limits, .err = err };
	int result = read_words(words, &word);
	if (result == 0)
		result = finish_rule(&rule, err);
	if (result == 0 && script->count >= SCRIPT_RULES_MAX)
		result = err_set(err, E2BIG, "more than %d rules", SCRIPT_RULES_MAX);
	struct script_rule *rules = NULL;
	if (result == 0) {
		rules = reallocarray(script->rules, script->count + 1, sizeof(rule));
		result = rules ? 0 : err_set(err, ENOMEM, "out of memory");
	}
	if (result < 0) {
		rule_done(&rule);
		return result;
	}
	script->rules = rules;
	script->rules[script->count++] = rule;
	return 0;
}

static int read_line(struct script *script, char *text, size_t line, struct err *err)
{
	text[strcspn(text, "#\r")] = '\0';
	text += strspn(text, " \t");
	size_t n = strcspn(text, " \t");
	if (n == 0)
		return 0;
	char *words = text + n;
	if (n == 2 && memcmp(text, "on", n) == 0)
		return add_rule(script, words, line, err);
	if (n == 5 && memcmp(text, "limit", n) == 0)
		return read_words(words, &(struct word){ .limits = &script->limits, .err = err });
	return err_set(err, EINVAL, "a line begins with \"on\" or \"limit\", not with \"%.40s\"",
		       text);
}

int script_parse(const char *name, const char *text, size_t len, struct script *ret,
		 struct err *err)
{
	struct script script = { .limits = no_limits };
	struct strbuf copy CLEANUP(strbuf_done) = STRBUF_INIT_MAX(SCRIPT_MAX);
	strbuf_add(&copy, text, len);
	if (copy.failed)
		return err_set(err, E2BIG, "%s: more than %zu bytes", name, SCRIPT_MAX);
	size_t line = 0;
	for (char *at = copy.s, *end; at; at = end) {
		line++;
		end = memchr(at, '\n', copy.len - (size_t)(at - copy.s));
		if (end)
			*end++ = '\0';
		int result = read_line(&script, at, line, err);
		if (result < 0) {
			err_prefix(err, "%s:%zu", name, line);
			script_done(&script);
			return result;
		}
	}
	*ret = script;
	return 0;
}

void script_done(struct script *script)
{
	for (size_t i = 0; i < script->count; i++)
		rule_done(&script->rules[i]);
	free(script->rules);
	*script = (struct script){ 0 };
}

/* Without recursion: goes back to the last * when the rest does not match. */
static bool glob(const char *pattern, size_t pattern_len, const char *s, size_t n)
{
	size_t p = 0, i = 0;
	size_t star = SIZE_MAX, from = 0;
	while (i < n) {
		if (p < pattern_len && pattern[p] == '*') {
			star = p++;
			from = i;
		} else if (p < pattern_len && (pattern[p] == '?' || pattern[p] == s[i])) {
			p++;
			i++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			i = ++from;
		} else {
			return false;
		}
	}
	while (p < pattern_len && pattern[p] == '*')
		p++;
	return p == pattern_len;
}

bool script_glob_any(const char *patterns, const char *s, size_t n)
{
	while (*patterns) {
		size_t len = strcspn(patterns, ",");
		if (len > 0 && glob(patterns, len, s, n))
			return true;
		patterns += len;
		patterns += *patterns == ',';
	}
	return false;
}

bool script_rule_matches(const struct script_rule *rule, const struct target *target)
{
	const struct {
		const char *s;
		size_t n;
	} values[SCRIPT_MATCHES] = {
		[MATCH_VERB] = { target->verb, strlen(target->verb) },
		[MATCH_METHOD] = { target->method, strlen(target->method) },
		[MATCH_RESOURCE] = { target->resource.s, target->resource.len },
		[MATCH_NAMESPACE] = { target->namespace.s, target->namespace.len },
		[MATCH_NAME] = { target->name.s, target->name.len },
		[MATCH_PATH] = { target->path.s, target->path.len },
	};
	if (rule->watch_only && !target->watch)
		return false;
	for (size_t i = 0; i < SCRIPT_MATCHES; i++)
		if (rule->match[i] && !script_glob_any(rule->match[i], values[i].s, values[i].n))
			return false;
	return true;
}
