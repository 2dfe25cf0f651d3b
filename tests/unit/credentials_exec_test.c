/* SPDX-License-Identifier: Apache-2.0 */
/* Credential plugins, as small programs for sh: when they run, what they are told, and
 * what comes of all the ways in which they can go wrong. */
#include "credentials_bench.h"

#include <signal.h>

#define V1 "client.authentication.k8s.io/v1"

/* Says what the file "reply" holds, and leaves a line for each run. */
#define PLUGIN                       \
	"cd \"${0%/*}\" || exit 9\n" \
	"echo run >>runs\n"          \
	"cat reply\n"

static void exec_init(struct bench *bench, const char *script)
{
	bench_init(bench);
	bench->exec = (struct kube_exec){
		.api_version = V1,
		.command = files_script(&bench->files, "plugin", script),
	};
	bench->config.exec = &bench->exec;
}

static void reply_status(struct bench *bench, const char *status)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_addf(&text,
		    "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":%s}\n",
		    status);
	files_write(&bench->files, "reply", text.s);
}

/* Tokens that end so many seconds from now; 0: never. */
static void reply_token(struct bench *bench, const char *token, int64_t seconds)
{
	char status[256], when[CLOCK_TEXT_MAX] = "";
	if (seconds)
		clock_format(bench->clock.now_wall_ns + seconds * (int64_t)SECOND, when);
	snprintf(status, sizeof(status), "{\"token\":\"%s\",\"expirationTimestamp\":%s%s%s}",
		 token, seconds ? "\"" : "", seconds ? when : "null", seconds ? "\"" : "");
	reply_status(bench, status);
}

static void reply_pair(struct bench *bench, const char *cert, const char *key)
{
	struct strbuf status CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_puts(&status, "{\"clientCertificateData\":");
	strbuf_add_json(&status, cert, strlen(cert));
	strbuf_puts(&status, ",\"clientKeyData\":");
	strbuf_add_json(&status, key, strlen(key));
	strbuf_puts(&status, "}");
	reply_status(bench, status.s);
}

static int runs(struct bench *bench)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct err err = ERR_INIT;
	int lines = 0;
	if (file_read(files_path(&bench->files, "runs"), 1 << 16, &text, &err) < 0)
		return 0;
	for (size_t i = 0; i < text.len; i++)
		lines += text.s[i] == '\n';
	return lines;
}

/* Until nothing is left to be done. */
static void settle(struct bench *bench)
{
	uv_run(&bench->loop, UV_RUN_DEFAULT);
}

/* --- The good ways --- */

TEST(all_who_wait_share_one_run)
{
	struct bench bench CLEANUP(bench_done);
	struct asker first, second;
	exec_init(&bench, PLUGIN);
	reply_token(&bench, "abc", 0);
	bench_open(&bench);
	ask(&bench, &first);
	ask(&bench, &second);
	CHECK(first.answers == 0 && second.answers == 0);
	settle(&bench);
	CHECK_STR(first.authorization, "Bearer abc");
	CHECK_STR(second.authorization, "Bearer abc");
	CHECK(first.answers == 1 && second.answers == 1);
	struct asker third;
	ask(&bench, &third); /* at once */
	CHECK_STR(third.authorization, "Bearer abc");
	CHECK_INT(runs(&bench), 1);
}

TEST(the_plugin_gets_arguments_environment_and_its_task)
{
	static const char *const args[] = { "get token", "--now" };
	static const struct kube_env env[] = { { "GS_TEST_A", "from the kubeconfig" },
					       { "GS_TEST_B", "b" } };
	struct bench bench CLEANUP(bench_done);
	struct strbuf seen CLEANUP(strbuf_done) = STRBUF_INIT;
	struct err err = ERR_INIT;
	exec_init(&bench, PLUGIN "{ echo \"$1|$2|$#\"; echo \"$GS_TEST_A|$GS_TEST_B|$GS_TEST_C\"\n"
				 "echo \"$KUBERNETES_EXEC_INFO\"; cat; echo end; } >seen\n");
	setenv("GS_TEST_A", "ours", 1);
	setenv("GS_TEST_C", "c", 1);
	setenv("KUBERNETES_EXEC_INFO", "someone else's", 1);
	bench.exec.args = args;
	bench.exec.args_count = 2;
	bench.exec.env = env;
	bench.exec.env_count = 2;
	reply_token(&bench, "abc", 0);
	bench_open(&bench);
	CHECK_INT(asked(&bench).code, 0);
	CHECK_INT(file_read(files_path(&bench.files, "seen"), 1 << 16, &seen, &err), 0);
	CHECK_STR(seen.s, "get token|--now|2\n"
			  "from the kubeconfig|b|c\n"
			  "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
			  "\",\"spec\":{\"interactive\":false}}\n"
			  "end\n");
	unsetenv("KUBERNETES_EXEC_INFO");
}

TEST(a_plugin_that_asks_is_told_of_the_cluster)
{
	struct bench bench CLEANUP(bench_done);
	struct strbuf seen CLEANUP(strbuf_done) = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct pair ca;
	exec_init(&bench, PLUGIN "echo \"$KUBERNETES_EXEC_INFO\" >seen\n");
	pair_make(&ca);
	bench.config.ca_file = files_write(&bench.files, "ca", ca.cert);
	bench.exec.provide_cluster_info = true;
	reply_token(&bench, "abc", 0);
	bench_open(&bench);
	CHECK_INT(asked(&bench).code, 0);
	CHECK_INT(file_read(files_path(&bench.files, "seen"), 1 << 16, &seen, &err), 0);
	CHECK(strstr(seen.s, "\"server\":\"https://api:6443\""));
	CHECK(strstr(seen.s, "\"certificate-authority-data\":\"LS0tLS1CRUdJTiBDRVJU"));
}

TEST(a_plugin_is_found_in_the_path)
{
	struct bench bench CLEANUP(bench_done);
	char path[4096];
	const char *before = getenv("PATH");
	exec_init(&bench, PLUGIN);
	snprintf(path, sizeof(path), "%s:%s", bench.files.folder, before ? before : "");
	struct kube_env env = { "PATH", path };
	bench.exec.command = "plugin";
	bench.exec.env = &env;
	bench.exec.env_count = 1;
	reply_token(&bench, "abc", 0);
	bench_open(&bench);
	struct asker asker = asked(&bench);
	CHECKF(asker.code == 0, "%s", asker.text);
}

TEST(without_an_end_credentials_are_kept_until_they_are_refused)
{
	struct bench bench CLEANUP(bench_done);
	exec_init(&bench, PLUGIN);
	reply_token(&bench, "one", 0);
	bench_open(&bench);
	struct asker before = asked(&bench);
	bench_wait(&bench, 1000000);
	CHECK_INT(asked(&bench).generation, before.generation);
	CHECK_INT(runs(&bench), 1);
	reply_token(&bench, "two", 0);
	kube_credentials_refused(bench.credentials, before.generation);
	kube_credentials_refused(bench.credentials, before.generation); /* of another request */
	struct asker after = asked(&bench);
	CHECK_STR(after.authorization, "Bearer two");
	CHECK(after.generation > before.generation);
	CHECK_INT(runs(&bench), 2);
	/* a request that was on its way with the former */
	kube_credentials_refused(bench.credentials, before.generation);
	CHECK_STR(asked(&bench).authorization, "Bearer two");
	CHECK_INT(runs(&bench), 2);
}

TEST(shortly_before_the_end_a_new_one_is_fetched_while_the_old_serves)
{
	struct bench bench CLEANUP(bench_done);
	exec_init(&bench, PLUGIN);
	reply_token(&bench, "one", 100);
	bench_open(&bench);
	CHECK_STR(asked(&bench).authorization, "Bearer one");
	bench_wait(&bench, 89);
	CHECK_STR(asked(&bench).authorization, "Bearer one");
	settle(&bench);
	CHECK_INT(runs(&bench), 1);
	bench_wait(&bench, 1);
	reply_token(&bench, "two", 100);
	struct asker asker;
	ask(&bench, &asker);
	CHECK_STR(asker.authorization, "Bearer one");
	settle(&bench);
	CHECK_STR(asked(&bench).authorization, "Bearer two");
	CHECK_INT(runs(&bench), 2);
}

TEST(after_the_end_everybody_waits)
{
	struct bench bench CLEANUP(bench_done);
	exec_init(&bench, PLUGIN);
	reply_token(&bench, "one", 15);
	bench_open(&bench);
	CHECK_STR(asked(&bench).authorization, "Bearer one");
	bench_wait(&bench, 14); /* what is short is used to its end */
	CHECK_STR(asked(&bench).authorization, "Bearer one");
	settle(&bench);
	CHECK_INT(runs(&bench), 1);
	reply_token(&bench, "two", 100);
	bench_wait(&bench, 1);
	struct asker asker;
	ask(&bench, &asker);
	CHECK_INT(asker.answers, 0);
	await(&bench, &asker);
	CHECK_STR(asker.authorization, "Bearer two");
}

TEST(certificates_of_a_plugin)
{
	struct bench bench CLEANUP(bench_done);
	struct pair one, two;
	exec_init(&bench, PLUGIN);
	pair_make(&one);
	pair_make(&two);
	reply_pair(&bench, one.cert, one.key);
	bench_open(&bench);
	struct asker first = asked(&bench);
	CHECK_STR(first.authorization, "");
	check_content(first.cert_file, one.cert);
	check_content(first.key_file, one.key);
	/* the same again: nobody has to connect anew */
	kube_credentials_refused(bench.credentials, first.generation);
	struct asker again = asked(&bench);
	CHECK(again.generation > first.generation);
	CHECK_INT(again.tls_generation, first.tls_generation);
	reply_pair(&bench, two.cert, two.key);
	bench_wait(&bench, 300);
	kube_credentials_refused(bench.credentials, again.generation);
	struct asker other = asked(&bench);
	CHECK(other.tls_generation > first.tls_generation);
	check_content(other.key_file, two.key);
	CHECK_INT(runs(&bench), 3);
}

TEST(the_pair_of_the_kubeconfig_goes_before_that_of_a_plugin)
{
	struct bench bench CLEANUP(bench_done);
	struct pair own, plugins;
	exec_init(&bench, PLUGIN);
	pair_make(&own);
	pair_make(&plugins);
	bench.config.cert_data = own.cert;
	bench.config.key_data = own.key;
	reply_pair(&bench, plugins.cert, plugins.key);
	bench_open(&bench);
	check_content(asked(&bench).cert_file, own.cert);
}

/* --- The bad ways --- */

TEST(what_goes_wrong_is_said)
{
	static const struct {
		const char *script, *hint;
		int code;
		const char *says;
	} rows[] = {
		{ "echo 'log in first' >&2; exit 3\n", "install it", EIO,
		  "failed with status 3: log in first" },
		{ "printf 'one\\ntwo\\n' >&2; exit 1\n", NULL, EIO,
		  "failed with status 1: one two" },
		{ "kill -9 $$\n", NULL, EIO, "was killed by signal 9" },
		{ "exec gs-no-such-program\n", "apt install it", ENOENT, "; apt install it" },
		{ "echo hello\n", NULL, EINVAL, "gave something else than credentials" },
		{ "", NULL, EINVAL, "gave something else than credentials" },
		{ "head -c 1100000 /dev/zero\n", NULL, EFBIG, "says too much" },
		{ "head -c 100000 /dev/zero | tr '\\0' x >&2; echo last >&2; exit 1\n", NULL, EIO,
		  "xxxlast" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bench bench CLEANUP(bench_done);
		exec_init(&bench, rows[i].script);
		bench.exec.install_hint = rows[i].hint;
		bench_open(&bench);
		struct asker asker = asked(&bench);
		CHECKF(asker.code == rows[i].code, "%s: %s", rows[i].script, asker.text);
		CHECKF(strstr(asker.text, rows[i].says), "%s: %s", rows[i].script, asker.text);
		CHECK(strstr(asker.text, "/plugin (user \"u\" of config) "));
	}
}

TEST(a_plugin_that_is_not_there_is_said_with_how_to_get_it)
{
	struct bench bench CLEANUP(bench_done);
	exec_init(&bench, "");
	bench.exec.command = files_path(&bench.files, "nothing");
	bench.exec.install_hint = "get it from\nexample.com";
	bench_open(&bench);
	struct asker asker = asked(&bench);
	CHECK_INT(asker.code, ENOENT);
	CHECK(strstr(asker.text, "/nothing (user \"u\" of config) cannot be started: no such file "
				 "or directory; get it from example.com"));
}

TEST(a_plugin_that_does_not_end_is_killed_with_all_it_started)
{
	struct bench bench CLEANUP(bench_done);
	exec_init(&bench, "sleep 1000 | sleep 1000\n");
	bench.exec.timeout_ms = 50;
	bench_open(&bench);
	struct asker asker = asked(&bench);
	CHECK_INT(asker.code, ETIMEDOUT);
	CHECK(strstr(asker.text, "did not end in time"));
}

TEST(an_output_that_others_hold_open_is_not_waited_for_for_ever)
{
	struct bench bench CLEANUP(bench_done);
	struct strbuf pid CLEANUP(strbuf_done) = STRBUF_INIT;
	exec_init(&bench, PLUGIN "sleep 1000 & echo $! >left\n");
	reply_token(&bench, "abc", 0);
	bench.exec.timeout_ms = 300;
	bench_open(&bench);
	struct asker asker = asked(&bench);
	CHECK_INT(asker.code, ETIMEDOUT);
	struct err err = ERR_INIT;
	/* on a machine that is very slow the script itself may have been killed */
	if (file_read(files_path(&bench.files, "left"), 64, &pid, &err) == 0 && atoi(pid.s) > 1)
		kill(atoi(pid.s), SIGKILL);
}

TEST(a_helper_that_keeps_the_standard_error_does_not_matter)
{
	struct bench bench CLEANUP(bench_done);
	struct strbuf pid CLEANUP(strbuf_done) = STRBUF_INIT;
	struct err err = ERR_INIT;
	exec_init(&bench, PLUGIN "sleep 1000 >/dev/null & echo $! >left\n");
	reply_token(&bench, "abc", 0);
	bench_open(&bench);
	struct asker asker = asked(&bench);
	CHECKF(asker.code == 0, "%s", asker.text);
	CHECK_INT(file_read(files_path(&bench.files, "left"), 64, &pid, &err), 0);
	CHECK(atoi(pid.s) > 1 && kill(atoi(pid.s), SIGKILL) == 0);
}

TEST(a_plugin_that_fails_is_tried_again_with_backoff)
{
	struct bench bench CLEANUP(bench_done);
	exec_init(&bench, PLUGIN "exit 1\n");
	reply_token(&bench, "abc", 0);
	bench_open(&bench);
	static const uint64_t pauses[] = { 1, 2, 4, 8, 16, 32, 60, 60 };
	for (size_t i = 0; i < ARRAY_SIZE(pauses); i++) {
		CHECK_INT(asked(&bench).code, EIO);
		CHECK_INT(runs(&bench), (int)i + 1);
		bench_wait(&bench, pauses[i] - 1);
		struct asker asker;
		ask(&bench, &asker); /* at once */
		CHECK_INT(asker.code, EIO);
		CHECK(strstr(asker.text, "failed with status 1"));
		settle(&bench);
		CHECK_INT(runs(&bench), (int)i + 1);
		bench_wait(&bench, 1);
	}
	files_script(&bench.files, "plugin", PLUGIN);
	CHECK_STR(asked(&bench).authorization, "Bearer abc");
	CHECK(kube_credentials_problem(bench.credentials) == NULL);
}

TEST(while_a_new_one_cannot_be_had_the_old_serves_to_its_end)
{
	struct bench bench CLEANUP(bench_done);
	exec_init(&bench, PLUGIN);
	reply_token(&bench, "one", 100);
	bench_open(&bench);
	CHECK_STR(asked(&bench).authorization, "Bearer one");
	files_script(&bench.files, "plugin", "exit 1\n");
	bench_wait(&bench, 95);
	CHECK_STR(asked(&bench).authorization, "Bearer one");
	settle(&bench);
	CHECK(strstr(kube_credentials_problem(bench.credentials), "failed with status 1"));
	CHECK_STR(asked(&bench).authorization, "Bearer one");
	bench_wait(&bench, 5);
	CHECK_INT(asked(&bench).code, EIO);
}

TEST(credentials_that_are_refused_again_and_again_are_not_fetched_in_a_loop)
{
	struct bench bench CLEANUP(bench_done);
	exec_init(&bench, PLUGIN);
	reply_token(&bench, "bad", 0);
	bench_open(&bench);
	kube_credentials_refused(bench.credentials, asked(&bench).generation);
	kube_credentials_refused(bench.credentials, asked(&bench).generation);
	CHECK_INT(runs(&bench), 2);
	struct asker asker;
	ask(&bench, &asker); /* the refused ones, meanwhile */
	CHECK_STR(asker.authorization, "Bearer bad");
	settle(&bench);
	CHECK_INT(runs(&bench), 2);
	bench_wait(&bench, 1);
	kube_credentials_refused(bench.credentials, asked(&bench).generation);
	CHECK_INT(runs(&bench), 3);
	bench_wait(&bench, 1);
	CHECK_INT(asked(&bench).code, 0);
	CHECK_INT(runs(&bench), 3);
	/* after a good while the next refusal counts as the first */
	bench_wait(&bench, 1);
	struct asker good = asked(&bench);
	CHECK_INT(runs(&bench), 4);
	bench_wait(&bench, 300);
	kube_credentials_refused(bench.credentials, good.generation);
	asked(&bench);
	CHECK_INT(runs(&bench), 5);
}

TEST(credentials_that_have_expired_are_none)
{
	struct bench bench CLEANUP(bench_done);
	exec_init(&bench, PLUGIN);
	reply_token(&bench, "old", -1);
	bench_open(&bench);
	struct asker asker = asked(&bench);
	CHECK_INT(asker.code, EINVAL);
	CHECK(strstr(asker.text, "have expired at 2027-01-15T07:59:59.000Z"));
}

TEST(a_pair_that_does_not_fit_is_none)
{
	struct bench bench CLEANUP(bench_done);
	struct pair one, two;
	exec_init(&bench, PLUGIN);
	pair_make(&one);
	pair_make(&two);
	reply_pair(&bench, one.cert, two.key);
	bench_open(&bench);
	struct asker asker = asked(&bench);
	CHECK_INT(asker.code, EINVAL);
	CHECK(strstr(asker.text, "the key is that of another certificate"));
	CHECK(strstr(asker.text, "/plugin (user \"u\" of config)"));
}

/* --- Coming and going --- */

TEST(closing_kills_a_plugin_that_runs)
{
	struct bench bench CLEANUP(bench_done);
	struct asker asker;
	exec_init(&bench, "sleep 1000\n");
	bench_open(&bench);
	ask(&bench, &asker);
	uv_run(&bench.loop, UV_RUN_NOWAIT);
	bench_close(&bench);
	CHECK_INT(asker.answers, 1);
	CHECK_INT(asker.code, ECANCELED);
}

TEST(closing_just_after_a_failed_start)
{
	struct bench bench CLEANUP(bench_done);
	struct asker asker;
	exec_init(&bench, "");
	bench.exec.command = files_path(&bench.files, "nothing");
	bench_open(&bench);
	ask(&bench, &asker);
	bench_close(&bench);
	CHECK_INT(asker.code, ECANCELED);
}

TEST(who_does_not_wait_any_more_is_not_called)
{
	struct bench bench CLEANUP(bench_done);
	struct asker askers[3];
	exec_init(&bench, PLUGIN);
	reply_token(&bench, "abc", 0);
	bench_open(&bench);
	for (int i = 0; i < 3; i++)
		ask(&bench, &askers[i]);
	kube_auth_cancel(&askers[1].wait);
	kube_auth_cancel(&askers[1].wait);
	settle(&bench);
	CHECK(askers[0].answers == 1 && askers[1].answers == 0 && askers[2].answers == 1);
	kube_auth_cancel(&askers[2].wait);
}

/* Those who do something from inside the call. */
struct busy {
	struct kube_auth_wait wait;
	struct bench *bench;
	struct asker other;
	int answers;
};

static void cancel_the_other(void *context, const struct kube_auth *auth, const struct err *err)
{
	struct busy *busy = context;
	CHECK(auth && !err);
	kube_auth_cancel(&busy->other.wait);
	busy->answers++;
}

static void close_all(void *context, const struct kube_auth *auth, const struct err *err)
{
	struct busy *busy = context;
	CHECK(auth && !err);
	busy->answers++;
	struct kube_credentials *credentials = busy->bench->credentials;
	busy->bench->credentials = NULL;
	kube_credentials_close(credentials, bench_on_closed, busy->bench);
}

static void refuse_and_ask(void *context, const struct kube_auth *auth, const struct err *err)
{
	struct busy *busy = context;
	CHECK(auth && !err);
	busy->answers++;
	kube_credentials_refused(busy->bench->credentials, auth->generation);
	ask(busy->bench, &busy->other);
}

static void busy_ask(struct busy *busy, struct bench *bench,
		     void (*ready)(void *, const struct kube_auth *, const struct err *))
{
	*busy = (struct busy){ .wait = { .ready = ready, .context = busy }, .bench = bench };
	kube_credentials_get(bench->credentials, &busy->wait);
}

TEST(one_who_is_called_may_cancel_another)
{
	struct bench bench CLEANUP(bench_done);
	struct busy busy;
	exec_init(&bench, PLUGIN);
	reply_token(&bench, "abc", 0);
	bench_open(&bench);
	busy_ask(&busy, &bench, cancel_the_other);
	ask(&bench, &busy.other);
	settle(&bench);
	CHECK_INT(busy.answers, 1);
	CHECK_INT(busy.other.answers, 0);
}

TEST(one_who_is_called_may_close_all)
{
	struct bench bench CLEANUP(bench_done);
	struct busy busy;
	exec_init(&bench, PLUGIN);
	reply_token(&bench, "abc", 0);
	bench_open(&bench);
	busy_ask(&busy, &bench, close_all);
	ask(&bench, &busy.other);
	settle(&bench);
	CHECK_INT(busy.answers, 1);
	CHECK_INT(busy.other.code, ECANCELED);
	CHECK(bench.closed);
}

TEST(one_who_is_called_may_ask_again)
{
	struct bench bench CLEANUP(bench_done);
	struct busy busy;
	struct asker last;
	exec_init(&bench, PLUGIN);
	reply_token(&bench, "abc", 0);
	bench_open(&bench);
	busy_ask(&busy, &bench, refuse_and_ask);
	ask(&bench, &last);
	settle(&bench);
	CHECK(busy.answers == 1 && last.answers == 1 && busy.other.answers == 1);
	CHECK_INT(runs(&bench), 2);
}

TEST(runs_leave_no_descriptors_behind)
{
	struct bench bench CLEANUP(bench_done);
	exec_init(&bench, PLUGIN);
	reply_token(&bench, "abc", 0);
	bench_open(&bench);
	struct asker asker = asked(&bench);
	size_t before = open_descriptors();
	for (int i = 0; i < 5; i++) {
		bench_wait(&bench, 600);
		kube_credentials_refused(bench.credentials, asker.generation);
		asker = asked(&bench);
	}
	CHECK_INT(runs(&bench), 6);
	CHECK_INT(open_descriptors(), before);
}

TEST_MAIN()
