/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials of the config and of files; those of plugins are in credentials_exec_test.c. */
#include "credentials_bench.h"

static int open_fails(struct bench *bench, struct err *err)
{
	int result = kube_credentials_new(&bench->loop, &bench->config, &bench->clock.clock,
					  &bench->credentials, err);
	CHECK(result < 0 && err->code == -result && !bench->credentials);
	return result;
}

/* --- What the config says itself --- */

TEST(nobody_has_nothing)
{
	struct bench bench CLEANUP(bench_done);
	bench_init(&bench);
	bench_open(&bench);
	struct asker asker = asked(&bench);
	CHECK_INT(asker.code, 0);
	CHECK_STR(asker.authorization, "");
	CHECK(!*asker.ca_file && !*asker.cert_file && !*asker.key_file && !*asker.impersonate);
}

TEST(a_token_is_a_bearers)
{
	struct bench bench CLEANUP(bench_done);
	bench_init(&bench);
	bench.config.token = "abc.def";
	bench_open(&bench);
	CHECK_STR(asked(&bench).authorization, "Bearer abc.def");
}

TEST(a_password_goes_as_basic)
{
	struct bench bench CLEANUP(bench_done);
	bench_init(&bench);
	bench.config.username = "Aladdin";
	bench.config.password = "open sesame";
	bench_open(&bench);
	CHECK_STR(asked(&bench).authorization, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
}

TEST(a_user_without_password)
{
	struct bench bench CLEANUP(bench_done);
	bench_init(&bench);
	bench.config.username = "a";
	bench_open(&bench);
	CHECK_STR(asked(&bench).authorization, "Basic YTo=");
}

TEST(impersonation_is_header_lines)
{
	static const char *const groups[] = { "dev", "ops team" };
	static const char *const scopes[] = { "view", "edit" };
	static const char *const none[] = { "x" };
	static const struct kube_extra extra[] = {
		{ "scopes", scopes, 2 },
		{ "acme.com/a b%", none, 1 },
		{ "unused", NULL, 0 },
	};
	struct bench bench CLEANUP(bench_done);
	bench_init(&bench);
	bench.config.as = (struct kube_impersonation){ "bob", "7", groups, 2, extra, 3 };
	bench_open(&bench);
	CHECK_STR(asked(&bench).impersonate, "Impersonate-User: bob\n"
					     "Impersonate-Uid: 7\n"
					     "Impersonate-Group: dev\n"
					     "Impersonate-Group: ops team\n"
					     "Impersonate-Extra-scopes: view\n"
					     "Impersonate-Extra-scopes: edit\n"
					     "Impersonate-Extra-acme.com%2Fa%20b%25: x\n");
}

TEST(pem_of_the_config_comes_as_files)
{
	struct bench bench CLEANUP(bench_done);
	struct pair ca, client;
	bench_init(&bench);
	pair_make(&ca);
	pair_make(&client);
	bench.config.ca_data = ca.cert;
	bench.config.cert_data = client.cert;
	bench.config.key_data = client.key;
	bench_open(&bench);
	struct asker asker = asked(&bench);
	check_content(asker.ca_file, ca.cert);
	check_content(asker.cert_file, client.cert);
	check_content(asker.key_file, client.key);
	CHECK(strncmp(asker.key_file, "/proc/self/fd/", 14) == 0);
	bench_wait(&bench, 3600);
	kube_credentials_tls_failed(bench.credentials);
	struct asker later = asked(&bench);
	CHECK_STR(later.ca_file, asker.ca_file);
	CHECK_INT(later.generation, asker.generation);
	CHECK_INT(later.tls_generation, asker.tls_generation);
}

TEST(files_in_memory_cannot_be_changed)
{
	struct bench bench CLEANUP(bench_done);
	struct pair ca;
	bench_init(&bench);
	pair_make(&ca);
	bench.config.ca_data = ca.cert;
	bench_open(&bench);
	FILE *file = fopen(asked(&bench).ca_file, "r+");
	CHECK(!file || fputs("x", file) < 0 || fflush(file) != 0);
	if (file)
		fclose(file);
	check_content(asked(&bench).ca_file, ca.cert);
}

/* --- Tokens in files --- */

TEST(a_token_file_is_trimmed_and_looked_at_once_a_minute)
{
	struct bench bench CLEANUP(bench_done);
	bench_init(&bench);
	bench.config.token_file = files_write(&bench.files, "token", " first\r\n\n");
	bench_open(&bench);
	struct asker before = asked(&bench);
	CHECK_STR(before.authorization, "Bearer first");
	files_write(&bench.files, "token", "second\n");
	bench_wait(&bench, 59);
	CHECK_STR(asked(&bench).authorization, "Bearer first");
	bench_wait(&bench, 1);
	struct asker after = asked(&bench);
	CHECK_STR(after.authorization, "Bearer second");
	CHECK(after.generation > before.generation);
	CHECK_INT(after.tls_generation, before.tls_generation);
}

TEST(the_swap_of_a_link_is_seen)
{
	struct bench bench CLEANUP(bench_done);
	bench_init(&bench);
	struct files *files = &bench.files;
	files_folder(files, "one");
	files_folder(files, "two");
	files_write(files, "one/token", "aaa");
	files_write(files, "two/token", "bbb");
	CHECK(symlink("one", files_path(files, "data")) == 0);
	CHECK(symlink("data/token", files_path(files, "token")) == 0);
	bench.config.token_file = files_path(files, "token");
	bench_open(&bench);
	CHECK_STR(asked(&bench).authorization, "Bearer aaa");
	CHECK(symlink("two", files_path(files, "data~")) == 0);
	CHECK(rename(files_path(files, "data~"), files_path(files, "data")) == 0);
	bench_wait(&bench, 60);
	CHECK_STR(asked(&bench).authorization, "Bearer bbb");
}

TEST(a_refused_token_is_read_again_at_once)
{
	struct bench bench CLEANUP(bench_done);
	bench_init(&bench);
	bench.config.token_file = files_write(&bench.files, "token", "old");
	bench_open(&bench);
	struct asker before = asked(&bench);
	kube_credentials_refused(bench.credentials, before.generation);
	CHECK_INT(asked(&bench).generation, before.generation); /* nothing new */
	files_write(&bench.files, "token", "new");
	kube_credentials_refused(bench.credentials, before.generation);
	struct asker after = asked(&bench);
	CHECK_STR(after.authorization, "Bearer new");
	/* late news of the former one changes nothing */
	files_write(&bench.files, "token", "newer");
	kube_credentials_refused(bench.credentials, before.generation);
	CHECK_STR(asked(&bench).authorization, "Bearer new");
}

TEST(a_token_file_that_makes_no_sense_leaves_the_former_token)
{
	static const char *const rows[] = {
		NULL, "", " \n", "a b", "a\tb", "caf\xc3\xa9", "\x01"
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bench bench CLEANUP(bench_done);
		bench_init(&bench);
		bench.config.token_file = files_write(&bench.files, "token", "good");
		bench_open(&bench);
		CHECK(kube_credentials_problem(bench.credentials) == NULL);
		if (rows[i])
			files_write(&bench.files, "token", rows[i]);
		else
			CHECK(unlink(bench.config.token_file) == 0);
		bench_wait(&bench, 60);
		CHECK_STR(asked(&bench).authorization, "Bearer good");
		const char *problem = kube_credentials_problem(bench.credentials);
		CHECKF(problem && strstr(problem, bench.config.token_file), "row %zu", i);
		/* and is looked at again soon */
		files_write(&bench.files, "token", "better");
		bench_wait(&bench, 5);
		CHECK_STR(asked(&bench).authorization, "Bearer better");
		CHECK(kube_credentials_problem(bench.credentials) == NULL);
	}
}

TEST(with_both_the_file_wins_once_it_can_be_read)
{
	struct bench bench CLEANUP(bench_done);
	bench_init(&bench);
	bench.config.token = "written";
	bench.config.token_file = files_path(&bench.files, "token");
	bench_open(&bench);
	CHECK_STR(asked(&bench).authorization, "Bearer written");
	CHECK(kube_credentials_problem(bench.credentials) != NULL);
	files_write(&bench.files, "token", "filed");
	bench_wait(&bench, 5);
	CHECK_STR(asked(&bench).authorization, "Bearer filed");
	files_write(&bench.files, "token", "filed again");
	CHECK(unlink(bench.config.token_file) == 0);
	bench_wait(&bench, 60);
	CHECK_STR(asked(&bench).authorization, "Bearer filed");
}

TEST(a_file_that_is_written_anew_with_the_same_is_no_change)
{
	struct bench bench CLEANUP(bench_done);
	struct pair ca;
	bench_init(&bench);
	pair_make(&ca);
	bench.config.token_file = files_write(&bench.files, "token", "same");
	bench.config.ca_file = files_write(&bench.files, "ca", ca.cert);
	bench_open(&bench);
	struct asker before = asked(&bench);
	files_write(&bench.files, "token", "same\n");
	files_write(&bench.files, "ca", ca.cert);
	bench_wait(&bench, 60);
	struct asker after = asked(&bench);
	CHECK_INT(after.generation, before.generation);
	CHECK_STR(after.ca_file, before.ca_file);
}

/* --- Certificates in files --- */

TEST(a_new_ca_is_read_after_a_failed_handshake)
{
	struct bench bench CLEANUP(bench_done);
	struct pair old, new;
	bench_init(&bench);
	pair_make(&old);
	pair_make(&new);
	bench.config.ca_file = files_write(&bench.files, "ca", old.cert);
	bench_open(&bench);
	struct asker before = asked(&bench);
	files_write(&bench.files, "ca", new.cert);
	CHECK_INT(asked(&bench).tls_generation, before.tls_generation);
	kube_credentials_tls_failed(bench.credentials);
	struct asker after = asked(&bench);
	CHECK(after.tls_generation > before.tls_generation);
	CHECK(after.generation > before.generation);
	CHECK(strcmp(after.ca_file, before.ca_file) != 0);
	check_content(after.ca_file, new.cert);
	check_content(before.ca_file, old.cert); /* for who is just connecting */
}

TEST(certificate_and_key_change_together)
{
	struct bench bench CLEANUP(bench_done);
	struct pair old, new;
	bench_init(&bench);
	pair_make(&old);
	pair_make(&new);
	bench.config.cert_file = files_write(&bench.files, "cert", old.cert);
	bench.config.key_file = files_write(&bench.files, "key", old.key);
	bench_open(&bench);
	struct asker before = asked(&bench);
	files_write(&bench.files, "cert", new.cert);
	bench_wait(&bench, 60);
	struct asker halfway = asked(&bench);
	CHECK_INT(halfway.tls_generation, before.tls_generation);
	check_content(halfway.cert_file, old.cert);
	check_content(halfway.key_file, old.key);
	CHECK(strstr(kube_credentials_problem(bench.credentials), "of another certificate"));
	files_write(&bench.files, "key", new.key);
	bench_wait(&bench, 5);
	struct asker after = asked(&bench);
	CHECK(after.tls_generation > before.tls_generation);
	check_content(after.cert_file, new.cert);
	check_content(after.key_file, new.key);
	CHECK(kube_credentials_problem(bench.credentials) == NULL);
}

TEST(both_may_be_in_one_file)
{
	struct bench bench CLEANUP(bench_done);
	struct pair pair;
	char both[4096];
	bench_init(&bench);
	pair_make(&pair);
	snprintf(both, sizeof(both), "%s%s", pair.cert, pair.key);
	bench.config.cert_file = bench.config.key_file = files_write(&bench.files, "both", both);
	bench_open(&bench);
	check_content(asked(&bench).cert_file, both);
}

TEST(certificates_that_make_no_sense_leave_the_former)
{
	static const char *const rows[] = {
		"",
		"no PEM",
		"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
		"-----BEGIN CERTIFICATE-----\nAAAA\n",
	};
	struct pair ca;
	pair_make(&ca);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bench bench CLEANUP(bench_done);
		bench_init(&bench);
		bench.config.ca_file = files_write(&bench.files, "ca", ca.cert);
		bench_open(&bench);
		files_write(&bench.files, "ca", rows[i]);
		kube_credentials_tls_failed(bench.credentials);
		check_content(asked(&bench).ca_file, ca.cert);
		CHECKF(strstr(kube_credentials_problem(bench.credentials), bench.config.ca_file),
		       "row %zu", i);
	}
}

TEST(after_many_changes_few_descriptors_are_open)
{
	struct bench bench CLEANUP(bench_done);
	struct pair pairs[2];
	bench_init(&bench);
	pair_make(&pairs[0]);
	pair_make(&pairs[1]);
	bench.config.ca_file = files_write(&bench.files, "ca", pairs[0].cert);
	bench_open(&bench);
	size_t before = open_descriptors();
	for (int i = 1; i <= 100; i++) {
		files_write(&bench.files, "ca", pairs[i % 2].cert);
		kube_credentials_tls_failed(bench.credentials);
		struct asker asker = asked(&bench);
		CHECK_INT(asker.tls_generation, i + 1);
		check_content(asker.ca_file, pairs[i % 2].cert);
	}
	CHECK(open_descriptors() <= before + 24);
}

/* --- What is wrong from the start --- */

TEST(what_cannot_be_read_at_the_start_is_an_error)
{
	struct pair pair, other;
	pair_make(&pair);
	pair_make(&other);
	const struct {
		const char *ca, *cert, *key, *token, *says;
	} rows[] = {
		{ .token = "", .says = "/token: there is no token in it" },
		{ .token = "a b", .says = "/token: the token has a blank" },
		{ .ca = "", .says = "/ca: there is no certificate" },
		{ .ca = pair.key, .says = "/ca: there is no certificate" },
		{ .cert = "x", .key = pair.key, .says = "/cert: there is no certificate" },
		{ .cert = pair.cert, .key = "x", .says = "/key: there is no private key" },
		{ .cert = pair.cert, .key = other.key, .says = "of another certificate" },
		{ .cert = pair.cert,
		  .key = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n"
			 "-----END ENCRYPTED PRIVATE KEY-----\n",
		  .says = "/key: the key is protected by a passphrase" },
		{ .cert = pair.cert,
		  .key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n"
			 "-----END RSA PRIVATE KEY-----\n",
		  .says = "/key: the key is protected by a passphrase" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bench bench CLEANUP(bench_done);
		struct err err = ERR_INIT;
		bench_init(&bench);
		struct files *files = &bench.files;
		bench.config.ca_file = rows[i].ca ? files_write(files, "ca", rows[i].ca) : NULL;
		bench.config.cert_file =
			rows[i].cert ? files_write(files, "cert", rows[i].cert) : NULL;
		bench.config.key_file =
			rows[i].key ? files_write(files, "key", rows[i].key) : NULL;
		bench.config.token_file =
			rows[i].token ? files_write(files, "token", rows[i].token) : NULL;
		CHECK_INT(open_fails(&bench, &err), -EINVAL);
		CHECKF(strstr(err.text, rows[i].says), "%s", err.text);
	}
}

TEST(files_that_are_missing_or_no_files_are_errors)
{
	struct bench bench CLEANUP(bench_done);
	struct err err = ERR_INIT;
	bench_init(&bench);
	bench.config.token_file = files_path(&bench.files, "missing");
	CHECK_INT(open_fails(&bench, &err), -ENOENT);
	CHECK(strstr(err.text, bench.config.token_file));
	bench.config.token_file = files_path(&bench.files, "pipe");
	CHECK(mkfifo(bench.config.token_file, 0600) == 0);
	CHECK_INT(open_fails(&bench, &err), -EINVAL);
	CHECK(strstr(err.text, "not a regular file"));
	bench.config.token_file = files_write(&bench.files, "big", "a");
	CHECK(truncate(bench.config.token_file, (off_t)KUBE_TOKEN_MAX_BYTES + 1) == 0);
	CHECK_INT(open_fails(&bench, &err), -EFBIG);
	/* what there can be no connection without is told first */
	bench.config.ca_file = files_path(&bench.files, "ca");
	CHECK_INT(open_fails(&bench, &err), -ENOENT);
	CHECK(strstr(err.text, "/ca"));
	CHECK_INT(kube_credentials_new(&bench.loop, &bench.config, &bench.clock.clock,
				       &bench.credentials, NULL),
		  -ENOENT);
}

/* --- The end --- */

TEST(nothing_may_be_closed)
{
	struct bench bench = { 0 };
	kube_credentials_close(NULL, bench_on_closed, &bench);
	CHECK(bench.closed);
	kube_credentials_close(NULL, NULL, NULL);
}

TEST(who_asks_while_it_closes_is_turned_away)
{
	struct bench bench CLEANUP(bench_done);
	bench_init(&bench);
	bench.config.token = "t";
	bench_open(&bench);
	struct kube_credentials *credentials = bench.credentials;
	kube_credentials_close(credentials, bench_on_closed, &bench);
	CHECK(!bench.closed);
	struct asker asker;
	ask(&bench, &asker);
	CHECK_INT(asker.code, ECANCELED);
	kube_credentials_refused(credentials, 1);
	kube_credentials_tls_failed(credentials);
	bench.credentials = NULL;
	uv_run(&bench.loop, UV_RUN_DEFAULT);
	CHECK(bench.closed);
}

TEST_MAIN()
