/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "kube_fixture.h"

#include <ftw.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "kube/base64.h"
#include "webhook/certs_files.h"
#include "webhook/certs_keep.h"
#include "webhook/certs_objects.h"
#include "wire/json.h"
#include "wire/json_write.h"

#define NOW_S	INT64_C(1800000000)
#define SECRET	"/api/v1/namespaces/ml/secrets"
#define HOOKS	"/apis/admissionregistration.k8s.io/v1/"
#define MUTATE	HOOKS "mutatingwebhookconfigurations/hooks"
#define GUARD	HOOKS "validatingwebhookconfigurations/hooks"
#define SERVICE "\"service\":{\"namespace\":\"ml\",\"name\":\"hook\"}"
#define MANAGER "?fieldManager=gpu-scheduler"
#define MISSING                                                                         \
	"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":" \
	"\"NotFound\","                                                                 \
	"\"code\":404}"
#define CONFLICT                                                                        \
	"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":" \
	"\"Conflict\","                                                                 \
	"\"code\":409}"

#define INVALID                                                                         \
	"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":" \
	"\"Invalid\","                                                                  \
	"\"code\":422}"

struct round {
	bool over;
	int rc;
	struct certs_kept kept;
	char why[256], error[ERR_TEXT_MAX];
};

static void on_done(void *context, int rc, const struct certs_kept *kept, const struct err *err)
{
	struct round *round = context;

	CHECK(!round->over);
	round->over = true;
	round->rc = rc;
	round->kept = *kept;
	snprintf(round->why, sizeof(round->why), "%s", kept->why);
	snprintf(round->error, sizeof(round->error), "%s", err ? err->text : "");
}

static const struct certs_order order = { .names = { "hook.ml.svc" },
					  .names_count = 1,
					  .days = 365,
					  .renew_hours = 90 * 24,
					  .overlap_hours = 24 };

static struct round run_round(const struct certs_keep_options *more)
{
	struct clock_manual clock;
	struct certs_keep_options options = *more;
	struct round round = { 0 };
	struct certs_keep *keep = NULL;
	struct err err = ERR_INIT;

	clock_manual_init(&clock, NOW_S * 1000000000);
	options.loop = &s.loop;
	options.clock = &clock.clock;
	options.client = s.client;
	options.order = order;
	options.done = on_done;
	options.context = &round;
	CHECKF(certs_keep_start(&options, &keep, &err) == 0, "%s", err.text);
	wait_for(&round.over);
	certs_keep_free(keep);
	return round;
}

static const struct certs_keep_options in_secret = {
	.namespace = "ml", .secret = "cert", .configuration = "hooks", .settle_ms = 1
};

static void put_base64(struct strbuf *out, const struct strbuf *text)
{
	strbuf_putc(out, '"');
	base64_encode(out, text->s, text->len);
	strbuf_putc(out, '"');
}

/* A Secret and a configuration with these, as the API server has them. */
static void put_secret(struct strbuf *out, const struct certs *certs, const char *annotation)
{
	strbuf_addf(out,
		    "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"type\":\"kubernetes.io/tls\","
		    "\"metadata\":{\"namespace\":\"ml\",\"name\":\"cert\",\"uid\":\"u\","
		    "\"resourceVersion\":\"7\",\"annotations\":{\"%s\":\"x\"}},"
		    "\"data\":{\"other\":\"eA==\",\"ca.crt\":",
		    annotation);
	put_base64(out, &certs->ca);
	strbuf_puts(out, ",\"tls.crt\":");
	put_base64(out, &certs->cert);
	strbuf_puts(out, ",\"tls.key\":");
	put_base64(out, &certs->key);
	strbuf_puts(out, "}}");
}

static void put_hooks(struct strbuf *out, const struct strbuf *bundle)
{
	strbuf_puts(out,
		    "{\"webhooks\":[{\"name\":\"a\",\"clientConfig\":{" SERVICE ",\"caBundle\":");
	put_base64(out, bundle);
	strbuf_puts(out, "}},{\"name\":\"b\",\"clientConfig\":{" SERVICE ",\"caBundle\":");
	put_base64(out, bundle);
	strbuf_puts(out, "}}]}");
}

static void make(struct certs *certs, const char *name)
{
	struct certs_order wanted = order;

	wanted.names[0] = name;
	CHECK(certs_make(&wanted, NOW_S, certs, NULL) == 0);
}

TEST(the_first_round_tells_whom_to_trust_and_stores)
{
	setup();
	s.script[0] = (struct server_answer){ .code = 404, .body = MISSING };
	s.script[1] = (struct server_answer){
		.code = 200,
		.body = "{\"webhooks\":[{\"name\":\"a\",\"clientConfig\":{" SERVICE "}}]}"
	};
	s.script[2] = (struct server_answer){ .code = 200, .body = "{}" };
	s.script[3] = (struct server_answer){ .code = 404, .body = MISSING };
	s.script[4] = (struct server_answer){ .code = 201, .body = "{}" };
	struct round round = run_round(&in_secret);
	CHECKF(round.rc == 0, "%s", round.error);
	CHECK(round.kept.renewed && round.kept.stored);
	CHECK_INT(round.kept.told, 1);
	CHECK_INT(round.kept.found, 1);
	CHECK_INT(round.kept.until_s, NOW_S + 365 * 86400);
	CHECK_STR(s.lines, "GET " SECRET "/cert\nGET " MUTATE "\nPATCH " MUTATE MANAGER
			   "\nGET " GUARD "\nPOST " SECRET MANAGER "\n");
	teardown();
}

TEST(a_round_with_nothing_to_do_only_reads)
{
	struct certs certs CLEANUP(certs_done) = CERTS_INIT;
	struct strbuf secret CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf hooks CLEANUP(strbuf_done) = STRBUF_INIT;

	setup();
	make(&certs, "hook.ml.svc");
	put_secret(&secret, &certs, "y");
	put_hooks(&hooks, &certs.ca);
	s.script[0] = (struct server_answer){ .code = 200, .body = secret.s };
	s.script[1] = (struct server_answer){ .code = 200, .body = hooks.s };
	struct round round = run_round(&in_secret);
	CHECKF(round.rc == 0, "%s", round.error);
	CHECK(!round.kept.renewed && !round.kept.stored && !round.kept.told);
	CHECK_INT(round.kept.found, 2);
	CHECK_STR(s.lines, "GET " SECRET "/cert\nGET " MUTATE "\nGET " GUARD "\n");
	teardown();
}

TEST(a_new_authority_is_trusted_before_it_is_used)
{
	struct certs certs CLEANUP(certs_done) = CERTS_INIT;
	struct strbuf secret CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf hooks CLEANUP(strbuf_done) = STRBUF_INIT;

	setup();
	make(&certs, "hook.elsewhere.svc");
	put_secret(&secret, &certs, "y");
	put_hooks(&hooks, &certs.ca);
	s.script[0] = (struct server_answer){ .code = 200, .body = secret.s };
	s.script[1] = (struct server_answer){ .code = 200, .body = hooks.s };
	s.script[2] = (struct server_answer){ .code = 200, .body = "{}" };
	s.script[3] = (struct server_answer){ .code = 200, .body = hooks.s };
	s.script[4] = (struct server_answer){ .code = 200, .body = "{}" };
	struct round round = run_round(&in_secret);
	CHECKF(round.rc == 0, "%s", round.error);
	CHECK_INT(round.kept.told, 2);
	CHECK_INT(round.kept.found, 2);
	CHECK_STR(round.why, "the certificate is not for hook.ml.svc");
	CHECK_STR(s.lines,
		  "GET " SECRET "/cert\nGET " MUTATE "\nPATCH " MUTATE MANAGER "\nGET " GUARD
		  "\nPATCH " GUARD MANAGER "\nPUT " SECRET "/cert" MANAGER "\n");
	CHECK(strstr(s.body, "\"uid\":\"u\"") && strstr(s.body, "\"other\":\"eA==\""));
	teardown();
}

TEST(nothing_is_stored_that_could_not_be_told)
{
	struct certs certs CLEANUP(certs_done) = CERTS_INIT;
	struct strbuf secret CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf hooks CLEANUP(strbuf_done) = STRBUF_INIT;

	setup();
	make(&certs, "hook.elsewhere.svc");
	put_secret(&secret, &certs, "y");
	put_hooks(&hooks, &certs.ca);
	s.script[0] = (struct server_answer){ .code = 200, .body = secret.s };
	s.script[1] = (struct server_answer){ .code = 200, .body = hooks.s };
	s.script[2] = (struct server_answer){
		.code = 403, .body = "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"code\":403}"
	};
	struct round round = run_round(&in_secret);
	CHECK(round.rc < 0 && strstr(round.error, "hooks"));
	CHECK(!round.kept.stored);
	CHECK_STR(s.lines, "GET " SECRET "/cert\nGET " MUTATE "\nPATCH " MUTATE MANAGER "\n");
	teardown();
}

TEST(a_round_begins_anew_when_somebody_else_wrote)
{
	struct certs certs CLEANUP(certs_done) = CERTS_INIT;
	struct strbuf secret CLEANUP(strbuf_done) = STRBUF_INIT;
	struct certs_keep_options alone = in_secret;

	setup();
	alone.configuration = NULL;
	make(&certs, "hook.ml.svc");
	put_secret(&secret, &certs, "y");
	s.script[0] = (struct server_answer){ .code = 404, .body = MISSING };
	s.script[1] = (struct server_answer){ .code = 409, .body = CONFLICT };
	s.script[2] = (struct server_answer){ .code = 200, .body = secret.s };
	struct round round = run_round(&alone);
	CHECKF(round.rc == 0, "%s", round.error);
	CHECK(!round.kept.stored && !round.kept.renewed);
	CHECK_STR(s.lines, "GET " SECRET "/cert\nPOST " SECRET MANAGER "\nGET " SECRET "/cert\n");
	teardown();
}

TEST(a_secret_of_cert_manager_is_left_alone)
{
	struct certs certs CLEANUP(certs_done) = CERTS_INIT;
	struct strbuf secret CLEANUP(strbuf_done) = STRBUF_INIT;

	setup();
	put_secret(&secret, &certs, "cert-manager.io/certificate-name");
	s.script[0] = (struct server_answer){ .code = 200, .body = secret.s };
	struct round round = run_round(&in_secret);
	CHECK(round.rc == -EEXIST);
	CHECK_STR(round.error, "Secret ml/cert is kept by cert-manager");
	CHECK_STR(s.lines, "GET " SECRET "/cert\n");
	teardown();
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
	(void)stat, (void)type, (void)ftw;
	return remove(path);
}

TEST(files_are_written_once_and_the_key_is_its_owners)
{
	char base[] = "/tmp/certs-test-XXXXXX", folder[64], key[80];
	struct certs read CLEANUP(certs_done) = CERTS_INIT;
	struct certs_keep_options options = { .folder = folder };
	struct stat stat_of;

	setup();
	CHECK(mkdtemp(base));
	snprintf(folder, sizeof(folder), "%s/pki", base);
	snprintf(key, sizeof(key), "%s/tls.key", folder);
	struct round round = run_round(&options);
	CHECKF(round.rc == 0, "%s", round.error);
	CHECK(round.kept.renewed && round.kept.stored);
	CHECK(stat(key, &stat_of) == 0 && (stat_of.st_mode & 0777) == 0600);
	CHECK(certs_files_read(folder, &read, NULL) == 0);
	CHECK(certs_check(&read, &order, NOW_S, NULL) == 0);
	round = run_round(&options);
	CHECK(round.rc == 0 && !round.kept.renewed && !round.kept.stored);
	CHECK_STR(s.lines, "");
	nftw(base, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	teardown();
}

TEST(a_patch_sets_the_bundle_of_every_webhook_that_lacks_it)
{
	static const char text[] =
		"{\"metadata\":{\"resourceVersion\":\"7\"},"
		"\"webhooks\":[{\"name\":\"a\",\"clientConfig\":{" SERVICE
		",\"caBundle\":\"b2xk\"}},"
		"{\"name\":\"b\",\"clientConfig\":{" SERVICE ",\"caBundle\":\"bmV3\"}},"
		"{\"name\":\"c\",\"clientConfig\":{" SERVICE "}}]}";
	struct strbuf bundle CLEANUP(strbuf_done) = STRBUF_INIT,
			     out CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	unsigned calls;

	strbuf_puts(&bundle, "new");
	CHECK(json_parse("hooks", text, sizeof(text) - 1, NULL, &doc, NULL) == 0);
	const struct certs_trust trust = { .order = &order, .bundle = &bundle, .alone = true };
	CHECK(certs_configuration_patch(&out, json_root(doc), &trust, &calls, NULL) == 0);
	CHECK_INT(calls, 3);
	CHECK_STR(out.s, "[{\"op\":\"test\",\"path\":\"/webhooks/0/name\",\"value\":\"a\"},"
			 "{\"op\":\"replace\",\"path\":\"/webhooks/0/clientConfig/caBundle\","
			 "\"value\":\"bmV3\"},"
			 "{\"op\":\"test\",\"path\":\"/webhooks/2/name\",\"value\":\"c\"},"
			 "{\"op\":\"add\",\"path\":\"/webhooks/2/clientConfig/caBundle\","
			 "\"value\":\"bmV3\"},"
			 "{\"op\":\"replace\",\"path\":\"/metadata/resourceVersion\",\"value\":"
			 "\"7\"}]");
}

TEST(only_those_who_call_it_are_told_of_it)
{
	static const struct {
		const char *client;
		bool told;
	} rows[] = {
		{ SERVICE, true },
		{ "\"service\":{\"namespace\":\"default\",\"name\":\"hook\"}", false },
		{ "\"service\":{\"namespace\":\"ml\",\"name\":\"other\"}", false },
		{ "\"url\":\"https://hook.ml.svc/mutate\"", true },
		{ "\"url\":\"https://HOOK.ml.svc:8443?a\"", true },
		{ "\"url\":\"https://hook.ml.svc.evil.org/hook.ml.svc\"", false },
		{ "\"url\":\"https://192.0.2.10:8443/mutate\"", true },
		{ "\"url\":\"https://192.0.2.1:8443/mutate\"", false },
		{ "\"url\":\"https://[2001:db8:0::1]:8443/mutate\"", true },
		{ "\"url\":\"https://[2001:db8::2]/\"", false },
		{ "\"url\":\"\"", false },
		{ "", false },
	};
	const struct certs_order names = { .names = { "hook.ml.svc", "192.0.2.10", "2001:db8::1" },
					   .names_count = 3 };
	struct strbuf bundle CLEANUP(strbuf_done) = STRBUF_INIT;
	const struct certs_trust trust = { .order = &names, .bundle = &bundle };

	strbuf_puts(&bundle, "new");
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
		struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
		struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
		unsigned calls;

		strbuf_addf(&text, "{\"webhooks\":[{\"name\":\"a\",\"clientConfig\":{%s}}]}",
			    rows[i].client);
		CHECK(json_parse("hooks", text.s, text.len, NULL, &doc, NULL) == 0);
		CHECK(certs_configuration_patch(&out, json_root(doc), &trust, &calls, NULL) == 0);
		CHECKF(calls == rows[i].told && (out.len > 0) == rows[i].told, "row %u", i);
	}
}

/* The bundle that the first operation of a patch sets. */
static void patched_bundle(const struct certs_trust *trust, const struct strbuf *before,
			   struct strbuf *ret)
{
	struct strbuf hooks CLEANUP(strbuf_done) = STRBUF_INIT,
			    out CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct json_doc *patch CLEANUP(json_doc_freep) = NULL;
	unsigned calls;

	put_hooks(&hooks, before);
	CHECK(json_parse("hooks", hooks.s, hooks.len, NULL, &doc, NULL) == 0);
	CHECK(certs_configuration_patch(&out, json_root(doc), trust, &calls, NULL) == 0);
	if (!out.len)
		return;
	CHECK(json_parse("patch", out.s, out.len, NULL, &patch, NULL) == 0);
	struct json_iter iter = json_items(json_root(patch));
	json_next(&iter);
	const char *text = json_str(json_next(&iter), "value");
	CHECK(text && base64_decode(ret, text, strlen(text)) == 0);
}

TEST(authorities_of_others_stay_unless_told_otherwise)
{
	struct certs ours CLEANUP(certs_done) = CERTS_INIT, other CLEANUP(certs_done) = CERTS_INIT;
	struct certs_trust trust = { .order = &order, .bundle = &ours.ca, .at_s = NOW_S };

	make(&ours, "hook.ml.svc");
	make(&other, "hook.ml.svc");
	for (unsigned i = 0; i < 3; i++) {
		struct strbuf bundle CLEANUP(strbuf_done) = STRBUF_INIT;

		/* In time, alone, and after the other's has ended. */
		trust.alone = i == 1;
		trust.at_s = i == 2 ? NOW_S + INT64_C(400) * 86400 : NOW_S;
		patched_bundle(&trust, &other.ca, &bundle);
		CHECK(strstr(bundle.s, ours.ca.s));
		CHECK(!strstr(bundle.s, other.ca.s) == (i > 0));
	}
}

/* As the API server does, which passes over what it cannot read. */
TEST(all_of_a_bundle_stays_that_is_strange_or_long)
{
	struct certs ours CLEANUP(certs_done) = CERTS_INIT;
	struct strbuf noise CLEANUP(strbuf_done) = STRBUF_INIT,
			    many CLEANUP(strbuf_done) = STRBUF_INIT;
	const struct certs_trust trust = { .order = &order, .bundle = &ours.ca, .at_s = NOW_S };

	make(&ours, "hook.ml.svc");
	for (unsigned i = 0; i < 40; i++) {
		struct certs other CLEANUP(certs_done) = CERTS_INIT;

		make(&other, "hook.ml.svc");
		strbuf_add(&many, other.ca.s, other.ca.len);
		if (i == 0)
			strbuf_addf(&noise,
				    "%s-----BEGIN CERTIFICATE-----\nAAAA\n"
				    "-----END CERTIFICATE-----",
				    other.ca.s);
	}
	for (unsigned i = 0; i < 2; i++) {
		const struct strbuf *before = i ? &noise : &many;
		struct strbuf bundle CLEANUP(strbuf_done) = STRBUF_INIT;
		struct strbuf again CLEANUP(strbuf_done) = STRBUF_INIT;

		patched_bundle(&trust, before, &bundle);
		CHECK(strncmp(bundle.s, ours.ca.s, ours.ca.len) == 0);
		CHECK(strstr(bundle.s, before->s));
		patched_bundle(&trust, &bundle, &again);
		CHECK_INT(again.len, 0);
	}
}

/* Both have read the Secret before one of them renews it. */
TEST(who_keeps_what_is_there_leaves_the_authority_of_who_renews)
{
	struct certs certs CLEANUP(certs_done) = CERTS_INIT,
			   other CLEANUP(certs_done) = CERTS_INIT;
	struct strbuf secret CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf both CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf hooks CLEANUP(strbuf_done) = STRBUF_INIT;

	setup();
	make(&certs, "hook.ml.svc");
	make(&other, "hook.ml.svc");
	put_secret(&secret, &certs, "y");
	CHECK(certs_join(certs.ca.s, other.ca.s, NOW_S, &both, NULL) == 0);
	put_hooks(&hooks, &both);
	s.script[0] = (struct server_answer){ .code = 200, .body = secret.s };
	s.script[1] = (struct server_answer){ .code = 200, .body = hooks.s };
	s.script[2] = (struct server_answer){ .code = 200, .body = hooks.s };
	struct round round = run_round(&in_secret);
	CHECKF(round.rc == 0, "%s", round.error);
	CHECK_STR(s.lines, "GET " SECRET "/cert\nGET " MUTATE "\nGET " GUARD "\n");
	teardown();
}

/* A version that has gone is a conflict; webhooks that stand elsewhere make the patch invalid. */
TEST(a_configuration_that_somebody_else_wrote_is_read_again)
{
	struct certs certs CLEANUP(certs_done) = CERTS_INIT;
	struct strbuf secret CLEANUP(strbuf_done) = STRBUF_INIT;
	static const char hooks[] = "{\"metadata\":{\"resourceVersion\":\"7\"},\"webhooks\":"
				    "[{\"name\":\"a\",\"clientConfig\":{" SERVICE "}}]}";

	setup();
	make(&certs, "hook.ml.svc");
	put_secret(&secret, &certs, "y");
	s.script[0] = (struct server_answer){ .code = 200, .body = secret.s };
	s.script[1] = (struct server_answer){ .code = 200, .body = hooks };
	s.script[2] = (struct server_answer){ .code = 409, .body = CONFLICT };
	s.script[3] = (struct server_answer){ .code = 200, .body = hooks };
	s.script[4] = (struct server_answer){ .code = 422, .body = INVALID };
	s.script[5] = (struct server_answer){ .code = 200, .body = hooks };
	s.script[6] = (struct server_answer){ .code = 200, .body = "{}" };
	s.script[7] = (struct server_answer){ .code = 404, .body = MISSING };
	struct round round = run_round(&in_secret);
	CHECKF(round.rc == 0, "%s", round.error);
	CHECK_INT(round.kept.found, 1);
	CHECK_INT(round.kept.told, 1);
	CHECK_STR(s.lines, "GET " SECRET "/cert\nGET " MUTATE "\nPATCH " MUTATE MANAGER
			   "\nGET " MUTATE "\nPATCH " MUTATE MANAGER "\nGET " MUTATE
			   "\nPATCH " MUTATE MANAGER "\nGET " GUARD "\n");
	teardown();
}

TEST_MAIN()
