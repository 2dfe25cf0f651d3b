/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "kube/reply.h"
#include "kube/retry.h"
#include "wire/http.h"
#include "wire/json.h"

static struct json_doc *parse(const char *text)
{
	struct json_doc *doc = NULL;
	CHECK(json_parse("test", text, strlen(text), NULL, &doc, NULL) == 0);
	return doc;
}

static enum kube_reason reason_of(int code, const char *text)
{
	if (!text)
		return kube_reason_of(code, NULL);
	struct json_doc *doc CLEANUP(json_doc_freep) = parse(text);
	return kube_reason_of(code, json_root(doc));
}

#define STATUS(reason) "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"" reason "\"}"

TEST(the_reason_counts_before_the_code)
{
	static const struct {
		int code;
		const char *body;
		enum kube_reason reason;
	} cases[] = {
		{ 200, NULL, KUBE_OK },
		{ 201, STATUS("Conflict"), KUBE_OK },
		{ 409, STATUS("AlreadyExists"), KUBE_ALREADY_EXISTS },
		{ 409, STATUS("Conflict"), KUBE_CONFLICT },
		{ 409, NULL, KUBE_CONFLICT },
		{ 409, "{\"reason\":\"AlreadyExists\"}", KUBE_CONFLICT },
		{ 404, STATUS("NotFound"), KUBE_NOT_FOUND },
		{ 404, NULL, KUBE_NOT_FOUND },
		{ 410, STATUS("Expired"), KUBE_EXPIRED },
		{ 410, STATUS("Gone"), KUBE_EXPIRED },
		{ 410, NULL, KUBE_EXPIRED },
		{ 422, STATUS("Invalid"), KUBE_INVALID },
		{ 400, STATUS("BadRequest"), KUBE_BAD_REQUEST },
		{ 413, STATUS("RequestEntityTooLarge"), KUBE_BAD_REQUEST },
		{ 415, STATUS("UnsupportedMediaType"), KUBE_BAD_REQUEST },
		{ 418, NULL, KUBE_BAD_REQUEST },
		{ 302, NULL, KUBE_BAD_REQUEST },
		{ 401, NULL, KUBE_UNAUTHORIZED },
		{ 403, STATUS("Forbidden"), KUBE_FORBIDDEN },
		{ 429, STATUS("TooManyRequests"), KUBE_TOO_MANY_REQUESTS },
		{ 500, STATUS("InternalError"), KUBE_SERVER_ERROR },
		{ 500, STATUS("ServerTimeout"), KUBE_SERVER_ERROR },
		{ 500, STATUS("Conflict"), KUBE_SERVER_ERROR },
		{ 409, STATUS("InternalError"), KUBE_CONFLICT },
		{ 503, NULL, KUBE_SERVER_ERROR },
		{ 504, STATUS("Timeout"), KUBE_SERVER_ERROR },
		{ 0, STATUS("Expired"), KUBE_EXPIRED },
		{ 0, STATUS("whatever"), KUBE_SERVER_ERROR },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		enum kube_reason reason = reason_of(cases[i].code, cases[i].body);
		CHECKF(reason == cases[i].reason, "case %zu: %s", i, kube_reason_name(reason));
	}
}

TEST(a_version_of_the_future_is_told_from_other_timeouts)
{
	CHECK_INT(reason_of(504,
			    "{\"kind\":\"Status\",\"reason\":\"Timeout\",\"details\":{\"causes\":"
			    "[{\"reason\":\"x\"},{\"reason\":\"ResourceVersionTooLarge\"}]}}"),
		  KUBE_VERSION_TOO_LARGE);
	CHECK_INT(reason_of(504,
			    "{\"kind\":\"Status\",\"reason\":\"Timeout\",\"message\":\"Timeout: "
			    "Too large resource version: 9, current: 1\"}"),
		  KUBE_VERSION_TOO_LARGE);
}

TEST(every_reason_has_a_name)
{
	for (int i = 0; i < KUBE_REASONS; i++)
		CHECK(kube_reason_name((enum kube_reason)i)[0] != '\0');
	CHECK_STR(kube_reason_name(KUBE_ALREADY_EXISTS), "AlreadyExists");
	CHECK_STR(kube_reason_name(KUBE_REASONS), "Unknown");
}

static void check_said(int code, const char *body, const char *expected)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	json_parse("test", body, strlen(body), NULL, &doc, NULL);
	kube_reply_say(&out, code, doc ? json_root(doc) : NULL, body, strlen(body));
	CHECK_STR(out.s, expected);
}

TEST(the_servers_words_become_one_line)
{
	check_said(409, "{\"message\":\"leases \\\"a\\\"\\n exists\\u0007\"}",
		   "leases \"a\"  exists ");
	check_said(502, "upstream\r\nis gone\n", "the server answered 502, upstream  is gone");
	check_said(502, "<html>...</html>", "the server answered 502");
	check_said(503, "", "the server answered 503");
	check_said(500, "{\"a\":1}", "the server answered 500");
}

TEST(long_words_are_cut_between_characters)
{
	char body[3 * KUBE_SAID_MAX] = "{\"message\":\"x";
	while (strlen(body) < sizeof(body) - 8)
		strcat(body, "\xc3\xbc");
	strcat(body, "\"}");
	struct json_doc *doc CLEANUP(json_doc_freep) = parse(body);
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	kube_reply_say(&out, 500, json_root(doc), body, strlen(body));
	CHECK_INT(out.len, KUBE_SAID_MAX - 1);
	CHECK(out.s[0] == 'x' && out.s[out.len - 1] == '\xbc');
}

TEST(a_status_says_how_long_to_wait)
{
	struct json_doc *says CLEANUP(json_doc_freep) =
		parse("{\"details\":{\"retryAfterSeconds\":7}}");
	struct json_doc *silent CLEANUP(json_doc_freep) = parse("{\"details\":{}}");
	CHECK_INT(kube_status_retry_after_s(json_root(says)), 7);
	CHECK_INT(kube_status_retry_after_s(json_root(silent)), -1);
	CHECK_INT(kube_status_retry_after_s(NULL), -1);
}

struct judged {
	enum retry_verdict verdict;
	uint32_t wait_ms;
};

static struct judged judge(struct retry *retry, enum http_result result, int status,
			   int64_t after_s)
{
	struct rng rng;
	rng_seed(&rng, 7);
	struct http_reply reply = { .result = result, .status = status, .retry_after_s = after_s };
	struct judged judged = { .wait_ms = 0 };
	judged.verdict = retry_judge(retry, &reply, &rng, &judged.wait_ms);
	return judged;
}

TEST(what_is_sent_again)
{
	static const struct {
		enum http_result result;
		int status;
		int64_t after_s;
		enum retry_verdict read, write;
	} cases[] = {
		{ HTTP_ANSWERED, 200, -1, RETRY_NO, RETRY_NO },
		{ HTTP_ANSWERED, 404, 3, RETRY_NO, RETRY_NO },
		{ HTTP_ANSWERED, 409, -1, RETRY_NO, RETRY_NO },
		{ HTTP_ANSWERED, 429, -1, RETRY_LATER, RETRY_LATER },
		{ HTTP_ANSWERED, 429, 1, RETRY_LATER, RETRY_LATER },
		{ HTTP_ANSWERED, 500, -1, RETRY_LATER, RETRY_NO },
		{ HTTP_ANSWERED, 503, 1, RETRY_LATER, RETRY_LATER },
		{ HTTP_ANSWERED, 504, -1, RETRY_LATER, RETRY_NO },
		{ HTTP_ANSWERED, 401, -1, RETRY_CREDENTIALS, RETRY_CREDENTIALS },
		{ HTTP_NOT_SENT, 0, -1, RETRY_LATER, RETRY_LATER },
		{ HTTP_REFUSED, 0, -1, RETRY_TLS, RETRY_TLS },
		{ HTTP_LOST, 0, -1, RETRY_LATER, RETRY_NO },
		{ HTTP_LOST, 503, 1, RETRY_LATER, RETRY_NO },
		{ HTTP_DEADLINE, 0, -1, RETRY_LATER, RETRY_NO },
		{ HTTP_TOO_BIG, 200, -1, RETRY_NO, RETRY_NO },
		{ HTTP_STOPPED, 200, -1, RETRY_NO, RETRY_NO },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct retry read = { .max_tries = 2, .reads = true }, write = { .max_tries = 2 };
		struct retry last = { .max_tries = 1, .reads = true };
		CHECKF(judge(&read, cases[i].result, cases[i].status, cases[i].after_s).verdict ==
			       cases[i].read,
		       "read, case %zu", i);
		CHECKF(judge(&write, cases[i].result, cases[i].status, cases[i].after_s).verdict ==
			       cases[i].write,
		       "write, case %zu", i);
		CHECKF(judge(&last, cases[i].result, cases[i].status, cases[i].after_s).verdict !=
			       RETRY_LATER,
		       "last, case %zu", i);
	}
}

TEST(the_server_is_given_the_time_it_asks_for)
{
	static const struct {
		int64_t after_s;
		uint32_t least_ms;
	} cases[] = { { -1, 1000 }, { 0, 100 }, { 3, 3000 }, { 60, 60000 }, { 86400, 60000 } };
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct retry retry = { .max_tries = 2 };
		struct judged judged = judge(&retry, HTTP_ANSWERED, 429, cases[i].after_s);
		CHECKF(judged.wait_ms >= cases[i].least_ms &&
			       judged.wait_ms < cases[i].least_ms + cases[i].least_ms / 4,
		       "case %zu: %u", i, judged.wait_ms);
	}
}

TEST(pauses_double_up_to_five_seconds)
{
	struct retry retry = { .max_tries = 100 };
	for (uint32_t whole = 100, i = 0; i < 40; i++, whole = MIN(2 * whole, 5000)) {
		struct judged judged = judge(&retry, HTTP_NOT_SENT, 0, -1);
		CHECK(judged.wait_ms >= whole / 2 && judged.wait_ms <= whole);
	}
}

TEST(a_refusal_whose_body_is_lost_is_one_all_the_same)
{
	struct retry retry = { .max_tries = 3 };
	CHECK_INT(judge(&retry, HTTP_LOST, 401, -1).verdict, RETRY_CREDENTIALS);
	CHECK_INT(judge(&retry, HTTP_LOST, 429, 1).verdict, RETRY_LATER);
	CHECK(!retry.maybe_done);
	CHECK_INT(judge(&retry, HTTP_LOST, 200, -1).verdict, RETRY_NO);
	CHECK(retry.maybe_done);
}

TEST(who_has_time_waits_for_certificates_that_please)
{
	struct retry timed = { .max_tries = 4, .reads = true, .timed = true };
	for (unsigned i = 0; i < 3; i++) {
		CHECK_INT(judge(&timed, HTTP_REFUSED, 0, -1).verdict, RETRY_TLS);
		struct judged judged = judge(&timed, HTTP_REFUSED, 0, -1);
		CHECK_INT(judged.verdict, RETRY_LATER);
		CHECK(judged.wait_ms >= 50u << i && judged.wait_ms <= 100u << i);
	}
	CHECK_INT(judge(&timed, HTTP_REFUSED, 0, -1).verdict, RETRY_TLS);
	CHECK_INT(judge(&timed, HTTP_REFUSED, 0, -1).verdict, RETRY_NO);
}

TEST(tries_are_counted_and_fresh_credentials_cost_none)
{
	struct retry retry = { .max_tries = 11, .reads = true };
	CHECK_INT(judge(&retry, HTTP_ANSWERED, 401, -1).verdict, RETRY_CREDENTIALS);
	CHECK_INT(judge(&retry, HTTP_REFUSED, 0, -1).verdict, RETRY_TLS);
	for (unsigned i = 0; i < 10; i++)
		CHECK_INT(judge(&retry, HTTP_LOST, 0, -1).verdict, RETRY_LATER);
	CHECK_INT(judge(&retry, HTTP_LOST, 0, -1).verdict, RETRY_NO);
	CHECK_INT(retry.tries, 11);
	retry.tries = 0;
	CHECK_INT(judge(&retry, HTTP_ANSWERED, 401, -1).verdict, RETRY_NO);
	CHECK_INT(judge(&retry, HTTP_REFUSED, 0, -1).verdict, RETRY_NO);
}

TEST(a_5xx_or_a_lost_answer_leaves_a_write_in_doubt)
{
	struct retry told = { .max_tries = 3 }, lost = { .max_tries = 3 };
	struct retry refused = { .max_tries = 3 }, read = { .max_tries = 3, .reads = true };
	judge(&told, HTTP_ANSWERED, 503, 1);
	judge(&lost, HTTP_LOST, 0, -1);
	judge(&refused, HTTP_ANSWERED, 429, 1);
	judge(&read, HTTP_ANSWERED, 503, 1);
	CHECK(told.maybe_done && lost.maybe_done && !refused.maybe_done && !read.maybe_done);
}

TEST_MAIN()
