/* SPDX-License-Identifier: Apache-2.0 */
#include "credentials_bench.h"

#include "kube/pem.h"

#define CERT "-----BEGIN CERTIFICATE-----\nY2VydA==\n-----END CERTIFICATE-----\n"
#define KEY  "-----BEGIN RSA PRIVATE KEY-----\na2V5\n-----END RSA PRIVATE KEY-----\n"

TEST(what_is_in_it)
{
	static const struct {
		const char *text;
		bool cert, key;
	} rows[] = {
		{ CERT, true, false },
		{ CERT CERT, true, false },
		{ KEY, false, true },
		{ CERT KEY, true, true },
		{ "subject=/CN=x\n\n" CERT "more\n", true, false },
		{ "-----BEGIN CERTIFICATE-----\r\nY2Vy\r\ndA==\r\n-----END CERTIFICATE-----", true,
		  false },
		{ "-----BEGIN CERTIFICATE-----  \nY2VydA==\t\n-----END CERTIFICATE----- \n", true,
		  false },
		{ "-----BEGIN EC PARAMETERS-----\nAAAA\n-----END EC PARAMETERS-----\n"
		  "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n",
		  false, true },
		{ "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", false, true },
		{ "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", false, false },
		{ " -----BEGIN CERTIFICATE-----\nnot at the start of a line\n", false, false },
		{ "", false, false },
		{ "-----BEGIN CERTIFICATE----", false, false },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *text = rows[i].text;
		struct err err = ERR_INIT;
		int cert = pem_check_certificates(text, strlen(text), &err);
		CHECKF((cert == 0) == rows[i].cert, "%s: %s", text, err.text);
		int key = pem_check_key(text, strlen(text), &err);
		CHECKF((key == 0) == rows[i].key, "%s: %s", text, err.text);
	}
}

TEST(pem_that_is_broken)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "-----BEGIN CERTIFICATE-----\nAAAA\n", "no end" },
		{ "-----BEGIN CERTIFICATE-----\n", "no end" },
		{ "-----BEGIN CERTIFICATE-----", "no end" },
		{ "-----BEGIN CERTIFICATE-----\nAAAA\n-----END KEY-----\n", "no end" },
		{ "-----BEGIN CERTIFICATE-----\nAAAA\n" CERT, "no end" },
		{ "-----BEGIN CERTIFICATE-----\nAAA\n-----END CERTIFICATE-----\n", "base64" },
		{ "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", "base64" },
		{ "-----BEGIN CERTIFICATE-----\n????\n-----END CERTIFICATE-----\n", "base64" },
		{ CERT "-----BEGIN X-----\n?\n-----END X-----\n", "base64" },
		{ "hello", "there is no certificate in PEM form" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = ERR_INIT;
		CHECKF(pem_check_certificates(rows[i].text, strlen(rows[i].text), &err) == -EINVAL,
		       "%s", rows[i].text);
		CHECKF(strstr(err.text, rows[i].says), "%s: %s", rows[i].text, err.text);
	}
	struct err err = ERR_INIT;
	CHECK_INT(pem_check_certificates(CERT "\0", strlen(CERT) + 1, &err), -EINVAL);
	CHECK(strstr(err.text, "NUL"));
}

TEST(keys_that_nobody_can_open)
{
	static const char *const rows[] = {
		"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE "
		"KEY-----\n",
		"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"
		"DEK-Info: AES-256-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n",
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = ERR_INIT;
		CHECK_INT(pem_check_key(rows[i], strlen(rows[i]), &err), -EINVAL);
		CHECK(strstr(err.text, "passphrase"));
	}
}

TEST(pem_with_nothing_good_inside)
{
	struct err err = ERR_INIT;
	struct pair pair;
	pair_make(&pair);
	CHECK_INT(pem_check_trust(CERT, strlen(CERT), &err), -EINVAL);
	CHECK(strstr(err.text, "that TLS can use"));
	CHECK_INT(pem_check_trust(pair.cert, strlen(pair.cert), &err), 0);
	CHECK_INT(pem_check_pair(CERT, strlen(CERT), KEY, strlen(KEY), &err), -EINVAL);
	CHECK(strstr(err.text, "TLS cannot use"));
	CHECK_INT(pem_check_pair(pair.cert, strlen(pair.cert), pair.key, strlen(pair.key), &err),
		  0);
}

TEST(a_key_of_another_certificate)
{
	struct err err = ERR_INIT;
	struct pair one, two;
	pair_make(&one);
	pair_make(&two);
	CHECK_INT(pem_check_pair(one.cert, strlen(one.cert), two.key, strlen(two.key), &err),
		  -EINVAL);
	CHECK_STR(err.text, "the key is that of another certificate");
}

TEST_MAIN()
