/* SPDX-License-Identifier: Apache-2.0 */
/* Who trusts whom: certificates of both sides, names, and what lies between. */
#include "test.h"
#include "unit/http_stage.h"

#include <fcntl.h>
#include <sys/mman.h>

/* One GET; how it ended, and the server's number of requests must fit to that. */
static struct answer get_hello(struct stage *stage)
{
	struct answer *answer = stage_get(stage, "/hello");

	stage_wait(stage, answer);
	CHECK_INT(stage->served, answer->result == HTTP_ANSWERED);
	return *answer;
}

TEST(a_server_of_an_unknown_authority_is_refused)
{
	struct cert other, server;

	cert_make(&other, CERT_AUTHORITY, NULL, 2);
	cert_make(&server, CERT_SERVER, &other, 1);
	for (int http2 = 0; http2 < 2; http2++)
		for (int insecure = 0; insecure < 2; insecure++) {
			struct http_options options = { .insecure = insecure };
			struct stage stage;
			stage_open(&stage, &(struct stage_plan){
						   .tls = true,
						   .http2 = http2,
						   .options = &options,
						   .peer = { .cert_file = server.cert_file,
							     .key_file = server.key_file } });
			struct answer answer = get_hello(&stage);
			CHECK_INT(answer.result, insecure ? HTTP_ANSWERED : HTTP_REFUSED);
			CHECK(insecure || answer.reason[0]);
			stage_close(&stage);
		}
	cert_done(&server);
	cert_done(&other);
}

TEST(without_an_authority_the_systems_are_asked)
{
	struct stage stage;

	stage_open(&stage, &(struct stage_plan){ .tls = true, .no_trust = true });
	CHECK_INT(get_hello(&stage).result, HTTP_REFUSED);
	stage_close(&stage);
}

TEST(a_certificate_that_has_expired_is_refused)
{
	struct cert server;
	struct stage stage;

	stage_certs();
	cert_make(&server, CERT_SERVER, &stage_authority, -1);
	stage_open(&stage, &(struct stage_plan){ .tls = true,
						 .peer = { .cert_file = server.cert_file,
							   .key_file = server.key_file } });
	CHECK_INT(get_hello(&stage).result, HTTP_REFUSED);
	stage_close(&stage);
	cert_done(&server);
}

/* Who has a client's certificate of the same authority is not the server. */
TEST(a_certificate_that_is_not_for_servers_is_refused)
{
	static const struct {
		enum cert_role role;
		enum http_result result;
	} rows[] = {
		{ CERT_SERVER, HTTP_ANSWERED },
		{ CERT_ANY_USE, HTTP_ANSWERED },
		{ CERT_MISUSED, HTTP_REFUSED },
	};

	stage_certs();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cert server;
		struct stage stage;
		cert_make(&server, rows[i].role, &stage_authority, 1);
		stage_open(&stage,
			   &(struct stage_plan){ .tls = true,
						 .http2 = true,
						 .peer = { .cert_file = server.cert_file,
							   .key_file = server.key_file } });
		struct answer answer = get_hello(&stage);
		CHECKF(answer.result == rows[i].result, "row %zu: %d %s", i, answer.result,
		       answer.reason);
		stage_close(&stage);
		cert_done(&server);
	}
}

TEST(the_servers_name_is_that_of_the_url_or_the_one_given)
{
	static const struct {
		const char *host, *name;
		enum http_result result;
	} rows[] = {
		{ "127.0.0.1", NULL, HTTP_ANSWERED },
		{ "localhost", NULL, HTTP_ANSWERED },
		{ "127.0.0.1", "peer.test", HTTP_ANSWERED },
		{ "127.0.0.1", "other.test", HTTP_REFUSED },
		{ "127.0.0.1", "127.0.0.1", HTTP_ANSWERED },
		{ "127.0.0.1", "127.0.0.2", HTTP_REFUSED },
	};

	for (size_t n = 0; n < 2 * ARRAY_SIZE(rows); n++) {
		const size_t i = n / 2;
		struct http_options options = { .server_name = rows[i].name };
		struct stage stage;
		char url[64];
		stage_open(&stage, &(struct stage_plan){
					   .tls = true, .http2 = n % 2, .options = &options });
		snprintf(url, sizeof(url), "https://%s:%d/hello", rows[i].host,
			 peer_port(stage.peer));
		struct answer *answer = stage_get(&stage, url);
		stage_wait(&stage, answer);
		CHECKF(answer->result == rows[i].result, "row %zu: %s", i, answer->reason);
		stage_close(&stage);
	}
}

static void serve_names(struct stage *stage, struct peer_request *request)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	char name[128] = "none", host[128] = "none";

	(void)stage;
	peer_server_name(request->link, name, sizeof(name));
	if (!peer_header(request, "host", host, sizeof(host)))
		peer_header(request, ":authority", host, sizeof(host));
	strbuf_addf(&text, "%s %s", name, host);
	peer_reply(request, 200, NULL, text.s, text.len);
}

TEST(another_name_for_tls_leaves_the_host_header_alone)
{
	struct http_options options = { .server_name = "peer.test" };
	char expected[128];

	for (int http2 = 0; http2 < 2; http2++) {
		struct stage stage;
		stage_open(&stage, &(struct stage_plan){
					   .tls = true, .http2 = http2, .options = &options });
		stage.serve = serve_names;
		for (int i = 0; i < 3; i++) {
			struct answer *answer = stage_get(&stage, "/");
			stage_wait(&stage, answer);
			snprintf(expected, sizeof(expected), "peer.test 127.0.0.1:%d",
				 peer_port(stage.peer));
			CHECK_STR(answer->body, expected);
		}
		CHECK_INT(stage_accepted(&stage), 1);
		stage_close(&stage);
	}
}

TEST(our_certificate_opens_the_door)
{
	stage_certs();
	struct http_options options = { .cert_file = stage_client.cert_file,
					.key_file = stage_client.key_file };

	for (int variant = 0; variant < 4; variant++) {
		struct stage stage;
		stage_open(&stage, &(struct stage_plan){
					   .tls = true,
					   .http2 = variant & 1,
					   .options = &options,
					   .peer = { .client_ca_file = stage_authority.cert_file,
						     .tls12 = variant & 2 } });
		/* Each connection reads the files anew. */
		for (int i = 0; i < 5; i++) {
			struct answer *answer = stage_get(&stage, "/close");
			stage_wait(&stage, answer);
			CHECKF(answer->result == HTTP_ANSWERED, "%s", answer->reason);
			stage_pass(&stage, 10);
		}
		CHECK_INT(stage_accepted(&stage), 5);
		stage_close(&stage);
	}
}

static void serve_client(struct stage *stage, struct peer_request *request)
{
	(void)stage;
	peer_reply(request, peer_knows_client(request->link) ? 200 : 403, NULL, "", 0);
}

/* Else who is not known is nobody, and is forbidden what nobody may. */
TEST(our_certificate_is_shown_whichever_authorities_the_server_names)
{
	struct cert other;

	stage_certs();
	cert_make(&other, CERT_OTHER_AUTHORITY, NULL, 2);
	struct http_options options = { .cert_file = stage_client.cert_file,
					.key_file = stage_client.key_file };
	for (int variant = 0; variant < 4; variant++) {
		struct stage stage;
		stage_open(&stage,
			   &(struct stage_plan){ .tls = true,
						 .http2 = variant & 1,
						 .options = &options,
						 .peer = { .client_ca_file = other.cert_file,
							   .client_optional = true,
							   .tls12 = variant & 2 } });
		stage.serve = serve_client;
		struct answer *answer = stage_get(&stage, "/");
		stage_wait(&stage, answer);
		CHECKF(answer->status == 200, "variant %d: %d %s", variant, answer->status,
		       answer->reason);
		stage_close(&stage);
	}
	cert_done(&other);
}

TEST(a_server_that_does_not_like_our_certificate_refuses)
{
	struct cert other, stranger;

	stage_certs();
	cert_make(&other, CERT_AUTHORITY, NULL, 2);
	cert_make(&stranger, CERT_CLIENT, &other, 1);
	const struct http_options rows[] = {
		{ .cert_file = NULL },
		{ .cert_file = stranger.cert_file, .key_file = stranger.key_file },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (int variant = 0; variant < 4; variant++) {
			struct stage stage;
			stage_open(&stage,
				   &(struct stage_plan){
					   .tls = true,
					   .http2 = variant & 1,
					   .options = &rows[i],
					   .peer = { .client_ca_file = stage_authority.cert_file,
						     .tls12 = variant & 2 } });
			struct answer answer = get_hello(&stage);
			CHECKF(answer.result == HTTP_REFUSED, "row %zu, variant %d: %d %s", i,
			       variant, answer.result, answer.reason);
			stage_close(&stage);
		}
	cert_done(&stranger);
	cert_done(&other);
}

TEST(files_that_hold_no_certificate_refuse)
{
	stage_certs();
	const struct http_options rows[] = {
		{ .ca_file = "/dev/null" },
		{ .cert_file = "/dev/null", .key_file = "/dev/null" },
		/* a key that is not that of the certificate */
		{ .cert_file = stage_client.cert_file, .key_file = stage_server.key_file },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stage stage;
		stage_open(&stage, &(struct stage_plan){ .tls = true, .options = &rows[i] });
		struct answer answer = get_hello(&stage);
		CHECKF(answer.result == HTTP_REFUSED, "row %zu: %d %s", i, answer.result,
		       answer.reason);
		stage_close(&stage);
	}
}

/* The text of both, one behind the other, in a file without a name. */
static int join_files(const char *path, const char *next)
{
	int fd = memfd_create("chain", MFD_CLOEXEC);
	const char *const paths[] = { path, next };
	char text[16384];

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		int from = open(paths[i], O_RDONLY | O_CLOEXEC);
		ssize_t len = read(from, text, sizeof(text));
		CHECK(len > 0 && write(fd, text, (size_t)len) == len);
		close(from);
	}
	return fd;
}

/* As that of a long chain.  GnuTLS gives way after each of them, and leaves the rest. */
TEST(a_certificate_may_come_in_several_records)
{
	char path[CERTS_PATH_MAX];

	stage_certs();
	int chain = join_files(stage_server.cert_file, stage_authority.cert_file);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", chain);
	for (int tls12 = 0; tls12 < 2; tls12++) {
		struct stage stage;
		stage_open(&stage,
			   &(struct stage_plan){ .tls = true,
						 .http2 = true,
						 .peer = { .cert_file = path,
							   .key_file = stage_server.key_file,
							   .small_records = true,
							   .tls12 = tls12 } });
		struct answer answer = get_hello(&stage);
		CHECKF(answer.result == HTTP_ANSWERED, "%s", answer.reason);
		stage_close(&stage);
	}
	close(chain);
}

/* ---- what had been sent before it was refused ---- */

static void serve_cut_posts(struct stage *stage, struct peer_request *request)
{
	(void)stage;
	if (strcmp(request->method, "POST") == 0)
		peer_cut(request->link, false);
	else
		peer_reply(request, 200, NULL, "ok", 2);
}

/* libcurl turns to a new connection when one that it used before breaks.  That this one is
 * refused says nothing of the request that has gone over the other. */
TEST(a_write_that_was_sent_is_lost_though_the_next_connection_is_refused)
{
	char path[CERTS_PATH_MAX], text[16384];

	stage_certs();
	for (int http2 = 0; http2 < 2; http2++) {
		int fd = memfd_create("authority", MFD_CLOEXEC);
		ssize_t len = pread(stage_authority.cert_fd, text, sizeof(text), 0);
		CHECK(fd >= 0 && len > 0 && write(fd, text, (size_t)len) == len);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		struct http_options options = { .ca_file = path };
		struct stage stage;
		stage_open(&stage, &(struct stage_plan){
					   .tls = true, .http2 = http2, .options = &options });
		stage.serve = serve_cut_posts;
		stage_wait(&stage, stage_get(&stage, "/"));
		CHECK_INT(stage.answers[0]->result, HTTP_ANSWERED);
		CHECK_INT(ftruncate(fd, 0), 0); /* from here on nobody is trusted */
		struct answer *write = stage_post(&stage, "/", "x");
		stage_wait(&stage, write);
		CHECK_INT(stage.served, 2);
		CHECKF(write->result == HTTP_LOST, "%d %s", write->result, write->reason);
		stage_close(&stage);
		close(fd);
	}
}

/* ---- proxies ---- */

static char proxy_headers[2048], proxy_path[128];

static void serve_proxy(struct stage *stage, struct peer_request *request)
{
	(void)stage;
	if (strcmp(request->method, "CONNECT") == 0) {
		snprintf(proxy_headers, sizeof(proxy_headers), "%s", request->headers);
		snprintf(proxy_path, sizeof(proxy_path), "%s", request->path);
		peer_tunnel(request);
	} else {
		peer_reply(request, 200, NULL, request->headers, strlen(request->headers));
	}
}

/* A client whose proxy is the server itself; the port is known only then. */
static void use_proxy(struct stage *stage, const char *scheme)
{
	char proxy[64];
	struct http_options options = { .ca_file = stage_authority.cert_file, .proxy_url = proxy };

	snprintf(proxy, sizeof(proxy), "%s://127.0.0.1:%d", scheme, peer_port(stage->peer));
	http_close(stage->http, NULL, NULL);
	CHECK_INT(http_new(&stage->loop, &options, &stage->http, NULL), 0);
}

TEST(a_proxy_connects_and_does_not_see_our_headers)
{
	static const char *const header = "Authorization: Bearer secret";

	for (int http2 = 0; http2 < 2; http2++) {
		struct stage stage;
		stage_open(&stage, &(struct stage_plan){ .tls = true,
							 .http2 = http2,
							 .peer = { .proxy = true } });
		stage.serve = serve_proxy;
		use_proxy(&stage, "http");
		struct answer *answer =
			stage_send(&stage,
				   (struct http_request){ .url = "https://peer.test:6443/api",
							  .headers = &header,
							  .headers_count = 1 },
				   false);
		stage_wait(&stage, answer);
		CHECKF(answer->result == HTTP_ANSWERED, "%s", answer->reason);
		CHECK_INT(answer->http_major, http2 ? 2 : 1);
		CHECK(strstr(answer->body, "authorization: Bearer secret"));
		CHECK_STR(proxy_path, "peer.test:6443");
		CHECK(!strstr(proxy_headers, "authorization"));
		stage_close(&stage);
	}
}

static void set_variable(const char *name, const char *value)
{
	CHECK_INT(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static void set_environment(const char *proxy, const char *no_proxy)
{
	set_variable("HTTPS_PROXY", proxy);
	set_variable("NO_PROXY", no_proxy);
}

TEST(a_proxy_that_was_named_is_used_whatever_the_environment_says)
{
	struct stage stage;

	set_environment(NULL, "*");
	stage_open(&stage, &(struct stage_plan){ .tls = true, .peer = { .proxy = true } });
	stage.serve = serve_proxy;
	use_proxy(&stage, "http");
	struct answer *answer = stage_get(&stage, "https://peer.test:6443/api");
	stage_wait(&stage, answer);
	CHECKF(answer->result == HTTP_ANSWERED, "%s", answer->reason);
	stage_close(&stage);
	set_environment(NULL, NULL);
}

TEST(else_the_environment_says_for_whom_there_is_a_proxy)
{
	struct stage stage;
	char proxy[64];

	stage_open(&stage, &(struct stage_plan){ .tls = true, .peer = { .proxy = true } });
	stage.serve = serve_proxy;
	snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", peer_port(stage.peer));
	set_environment(proxy, NULL);
	struct answer *answer = stage_get(&stage, "https://peer.test:6443/api");
	stage_wait(&stage, answer);
	CHECKF(answer->result == HTTP_ANSWERED, "%s", answer->reason);
	set_environment(proxy, "other.test,peer.invalid");
	proxy_path[0] = '\0';
	answer = stage_get(&stage, "https://peer.invalid:6443/api");
	stage_wait(&stage, answer);
	CHECK_INT(answer->result, HTTP_NOT_SENT);
	CHECK_STR(proxy_path, "");
	stage_close(&stage);
	set_environment(NULL, NULL);
}

TEST(this_machine_is_reached_without_the_proxy_of_the_environment)
{
	static const char *const hosts[] = { "127.0.0.1", "localhost" };

	set_environment("http://127.0.0.1:1", NULL); /* nobody listens */
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		struct stage stage;
		char url[64];

		stage_open(&stage, &(struct stage_plan){ .tls = true });
		snprintf(url, sizeof(url), "https://%s:%d/hello", hosts[i], peer_port(stage.peer));
		struct answer *answer = stage_get(&stage, url);
		stage_wait(&stage, answer);
		CHECKF(answer->result == HTTP_ANSWERED, "%s: %s", hosts[i], answer->reason);
		stage_close(&stage);
	}
	set_environment(NULL, NULL);
}

static void serve_forbid(struct stage *stage, struct peer_request *request)
{
	(void)stage;
	peer_reply(request, 403, "warning: 299 - \"proxy\"\n", "no", 2);
}

TEST(what_a_proxy_forbids_was_not_sent)
{
	struct stage stage;

	stage_open(&stage, &(struct stage_plan){ .tls = true, .peer = { .proxy = true } });
	stage.serve = serve_forbid;
	use_proxy(&stage, "http");
	struct answer *answer = stage_get(&stage, "https://peer.test:6443/api");
	stage_wait(&stage, answer);
	CHECK_INT(answer->result, HTTP_NOT_SENT);
	CHECK_INT(answer->status, 0);
	CHECK(strstr(answer->reason, "403"));
	stage_close(&stage);
}

TEST(a_socks_proxy_is_given_the_name_to_resolve)
{
	for (int http2 = 0; http2 < 2; http2++) {
		struct stage stage;
		stage_open(&stage, &(struct stage_plan){ .tls = true,
							 .http2 = http2,
							 .peer = { .socks = true } });
		use_proxy(&stage, "socks5");
		struct answer *answer = stage_get(&stage, "https://peer.test:6443/hello");
		stage_wait(&stage, answer);
		CHECKF(answer->result == HTTP_ANSWERED, "%s", answer->reason);
		CHECK_STR(answer->body, "hello");
		CHECK_STR(peer_asked(stage.peer), "peer.test");
		stage_close(&stage);
	}
}

TEST_MAIN()
