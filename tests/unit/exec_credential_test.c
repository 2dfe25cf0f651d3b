/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/config.h"
#include "kube/exec_credential.h"

#include <errno.h>

#define V1   EXEC_CREDENTIAL_V1
#define BETA EXEC_CREDENTIAL_V1BETA1
#define CERT "-----BEGIN CERTIFICATE-----\\nY2VydA==\\n-----END CERTIFICATE-----\\n"
#define KEY  "-----BEGIN PRIVATE KEY-----\\na2V5\\n-----END PRIVATE KEY-----\\n"

/* A reply with this status. */
#define REPLY(version, status) \
	"{\"kind\":\"ExecCredential\",\"apiVersion\":\"" version "\",\"status\":" status "}"

static int parse(const char *text, const char *version, struct exec_credential *ret,
		 struct err *err)
{
	return exec_credential_parse(text, strlen(text), version, ret, err);
}

/* --- The task --- */

TEST(the_task_says_as_little_as_it_may)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct kube_exec exec = { .api_version = BETA };
	struct kube_config config = { .exec = &exec, .server = "https://api", .insecure = true };
	exec_info_write(&text, &config, "CA");
	CHECK_STR(text.s, "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" BETA
			  "\",\"spec\":{\"interactive\":false}}");
}

TEST(the_task_says_all_about_the_cluster_to_who_wants_it)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct kube_exec exec = { .api_version = V1, .provide_cluster_info = true };
	struct kube_config config = {
		.exec = &exec,
		.server = "https://api/x",
		.tls_server_name = "name",
		.proxy_url = "http://proxy",
		.disable_compression = true,
		.exec_extension = "{\"audience\":[\"a\"]}",
	};
	exec_info_write(&text, &config, "CA");
	CHECK(!text.failed);
	CHECK_STR(text.s, "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"spec\":{"
			  "\"interactive\":false,\"cluster\":{\"server\":\"https://api/x\","
			  "\"tls-server-name\":\"name\",\"certificate-authority-data\":\"Q0E=\","
			  "\"proxy-url\":\"http://proxy\",\"disable-compression\":true,"
			  "\"config\":{\"audience\":[\"a\"]}}}}");
}

TEST(a_cluster_without_ca)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct kube_exec exec = { .api_version = V1, .provide_cluster_info = true };
	struct kube_config config = { .exec = &exec, .server = "https://api", .insecure = true };
	exec_info_write(&text, &config, NULL);
	CHECK(strstr(text.s, "\"cluster\":{\"server\":\"https://api\","
			     "\"insecure-skip-tls-verify\":true}"));
}

/* --- The answer --- */

TEST(a_token_until_some_time)
{
	struct exec_credential reply CLEANUP(exec_credential_done) = { 0 };
	struct err err = ERR_INIT;
	CHECK_INT(parse(REPLY(V1, "{\"token\":\"abc\",\"expirationTimestamp\":"
				  "\"1970-01-01T00:00:02Z\",\"future\":1}"),
			V1, &reply, &err),
		  0);
	CHECK_STR(reply.token, "abc");
	CHECK(reply.expires && !reply.certificate && !reply.key);
	CHECK_INT(reply.expires_wall_ns, INT64_C(2000000000));
}

TEST(certificates_are_pem_and_not_base64)
{
	struct exec_credential reply CLEANUP(exec_credential_done) = { 0 };
	struct err err = ERR_INIT;
	CHECK_INT(parse(REPLY(BETA, "{\"clientCertificateData\":\"" CERT
				    "\",\"clientKeyData\":\"" KEY "\",\"token\":\"\","
				    "\"expirationTimestamp\":null}"),
			BETA, &reply, &err),
		  0);
	CHECK_STR(reply.token, NULL);
	CHECK(!reply.expires);
	CHECK(strstr(reply.certificate, "BEGIN CERTIFICATE-----\nY2VydA==\n"));
	CHECK(strstr(reply.key, "BEGIN PRIVATE KEY-----\na2V5\n"));
}

TEST(answers_that_are_none)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "", "its output:1" },
		{ "token: abc", "its output:1:" },
		{ "[]", "not an ExecCredential: kind is \"\"" },
		{ "{\"kind\":\"Status\"}", "kind is \"Status\"" },
		{ "{\"kind\":\"ExecCredential\"}", "it speaks \"\"" },
		{ REPLY(BETA, "{\"token\":\"a\"}"), "it speaks \"" BETA "\", but the kubeconfig" },
		{ "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\"}", "has no status" },
		{ REPLY(V1, "[]"), "has no status" },
		{ REPLY(V1, "{}"), "neither a token nor a certificate" },
		{ REPLY(V1, "{\"token\":null}"), "neither a token nor a certificate" },
		{ REPLY(V1, "{\"token\":1}"), "status.token is not a string" },
		{ REPLY(V1, "{\"token\":\"a\\u0000b\"}"), "status.token is not a string" },
		{ REPLY(V1, "{\"token\":\"a\\n\"}"), "status.token: the token has" },
		{ REPLY(V1, "{\"clientKeyData\":\"" KEY "\"}"),
		  "clientKeyData without clientCertificateData" },
		{ REPLY(V1, "{\"token\":\"a\",\"clientCertificateData\":\"" CERT "\"}"),
		  "clientCertificateData without clientKeyData" },
		{ REPLY(V1, "{\"clientCertificateData\":\"x\",\"clientKeyData\":\"" KEY "\"}"),
		  "status.clientCertificateData (PEM, not base64): there is no certificate" },
		{ REPLY(V1, "{\"clientCertificateData\":\"" CERT "\",\"clientKeyData\":\"x\"}"),
		  "status.clientKeyData (PEM, not base64): there is no private key" },
		{ REPLY(V1, "{\"token\":\"a\",\"expirationTimestamp\":\"soon\"}"),
		  "status.expirationTimestamp \"soon\" is no time" },
		{ REPLY(V1, "{\"token\":\"a\",\"expirationTimestamp\":7}"),
		  "status.expirationTimestamp is not a string" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct exec_credential reply = { 0 };
		struct err err = ERR_INIT;
		CHECKF(parse(rows[i].text, V1, &reply, &err) == -EINVAL, "%s", rows[i].text);
		CHECKF(strstr(err.text, rows[i].says), "%s: %s", rows[i].text, err.text);
		CHECK(!reply.doc && !reply.token);
		CHECK_INT(parse(rows[i].text, V1, &reply, NULL), -EINVAL);
	}
}

TEST_MAIN()
