/* SPDX-License-Identifier: Apache-2.0 */
/* A script is read or refused with its line; what is read keeps its bounds, and whatever
 * it decides can be written to a log and replayed. */
#include "fuzz.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/proxy/decide.h"
#include "kube/proxy/script.h"
#include "kube/proxy/target.h"
#include "wire/json.h"
#include "wire/json_write.h"

#include <string.h>

static void check_rule(const struct script_rule *rule)
{
	REQUIRE(rule->fault.kind > FAULT_NONE && rule->fault.kind < FAULT_KINDS);
	REQUIRE(rule->fault.point < FAULT_POINTS && rule->fault.form < FAULT_FORMS);
	REQUIRE(rule->p_billionths <= SCRIPT_P_ALWAYS);
	REQUIRE(rule->ms.min <= rule->ms.max && rule->ms.max <= FAULT_FOREVER);
	REQUIRE(rule->count.min <= rule->count.max && rule->count.max <= INT64_MAX);
	REQUIRE(rule->line > 0);
}

/* A fault survives its way through the log. */
static void check_fault(const struct fault *fault)
{
	struct strbuf first CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf second CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct json_writer w = JSON_WRITER_INIT(&first);
	json_open_object(&w);
	fault_write(fault, &w);
	json_close_object(&w);
	struct fault again;
	struct err err = ERR_INIT;
	REQUIRE(json_parse("log", first.s, first.len, NULL, &doc, &err) == 0);
	REQUIRE(fault_read(json_root(doc), &again, &err) == 0);
	struct json_writer v = JSON_WRITER_INIT(&second);
	json_open_object(&v);
	fault_write(&again, &v);
	json_close_object(&v);
	REQUIRE(strcmp(first.s, second.s) == 0);
}

static void play(const struct script *script)
{
	static const char *const paths[] = { "/api/v1/namespaces/a/pods/b/binding", "/version",
					     "/api/v1/pods?watch=1", "/apis/apps/v1/deployments" };
	struct decider *decider = decider_new(script, 7);
	for (size_t i = 0; decider && i < 32; i++) {
		struct target target;
		struct decision decision;
		if (target_read(i % 3 ? "GET" : "POST", paths[i % ARRAY_SIZE(paths)], &target) < 0)
			continue;
		if (decide(decider, &target, i * 1000, &decision) == 0)
			for (size_t j = 0; j < decision.count; j++)
				check_fault(&decision.parts[j].fault);
		target_done(&target);
	}
	decider_free(decider);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script script;
	struct err err = ERR_INIT;
	int result = script_parse("fuzz", (const char *)data, size, &script, &err);
	REQUIRE(result == 0 || (err.code == -result && strncmp(err.text, "fuzz:", 5) == 0));
	if (result < 0)
		return 0;
	for (size_t i = 0; i < script.count; i++)
		check_rule(&script.rules[i]);
	play(&script);
	script_done(&script);
	return 0;
}
