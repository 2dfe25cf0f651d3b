/* SPDX-License-Identifier: Apache-2.0 */
/* TLS: who is greeted how, and certificates that change while the server runs. */
#include "test.h"
#include "unit/http_certs.h"
#include "unit/httpd_folder.h"
#include "unit/httpd_stand.h"

#include "base/attr.h"
#include "wire/httpd_parts.h"

#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

static struct cert authority, certs[3]; /* made once: keys take time under valgrind */

static void make_certs(void)
{
	if (authority.cert_file[0])
		return;
	cert_make(&authority, CERT_AUTHORITY, NULL, 2);
	for (size_t i = 0; i < ARRAY_SIZE(certs); i++)
		cert_make(&certs[i], CERT_SERVER, &authority, 1);
}

/* ---- a client that takes every step by itself ---- */

struct tls {
	struct caller *caller;
	gnutls_session_t session;
	gnutls_certificate_credentials_t trust;
	struct strbuf in;
};

static ssize_t tls_pull(gnutls_transport_ptr_t context, void *bytes, size_t len)
{
	return recv(((struct caller *)context)->fd, bytes, len, MSG_DONTWAIT);
}

static ssize_t tls_push(gnutls_transport_ptr_t context, const void *bytes, size_t len)
{
	return send(((struct caller *)context)->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int tls_pull_timeout(gnutls_transport_ptr_t context, unsigned int ms)
{
	(void)context, (void)ms;
	return 1;
}

static struct tls *tls_new(struct stand *stand, const char *priorities)
{
	struct tls *tls = calloc(1, sizeof(*tls));

	CHECK(tls != NULL);
	tls->caller = caller_new(stand);
	tls->in = (struct strbuf)STRBUF_INIT;
	gnutls_certificate_allocate_credentials(&tls->trust);
	CHECK(gnutls_certificate_set_x509_trust_file(tls->trust, authority.cert_file,
						     GNUTLS_X509_FMT_PEM) == 1);
	gnutls_init(&tls->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
	CHECK_INT(gnutls_priority_set_direct(tls->session, priorities, NULL), 0);
	gnutls_credentials_set(tls->session, GNUTLS_CRD_CERTIFICATE, tls->trust);
	gnutls_session_set_verify_cert(tls->session, "localhost", 0);
	gnutls_transport_set_ptr(tls->session, tls->caller);
	gnutls_transport_set_pull_function(tls->session, tls_pull);
	gnutls_transport_set_pull_timeout_function(tls->session, tls_pull_timeout);
	gnutls_transport_set_push_function(tls->session, tls_push);
	return tls;
}

static void tls_free(struct tls *tls)
{
	gnutls_deinit(tls->session);
	gnutls_certificate_free_credentials(tls->trust);
	strbuf_done(&tls->in);
	caller_free(tls->caller);
	free(tls);
}

/* 0, or what GnuTLS says. */
static int tls_greet(struct tls *tls)
{
	int r;

	while ((r = gnutls_handshake(tls->session)) < 0 && !gnutls_error_is_fatal(r))
		stand_turn(tls->caller->stand);
	uv_timer_again(&tls->caller->stand->hang);
	return r;
}

/* Which of certs[] the server has shown. */
static size_t tls_shown(struct tls *tls)
{
	unsigned int count;
	const gnutls_datum_t *shown = gnutls_certificate_get_peers(tls->session, &count);
	size_t found = ARRAY_SIZE(certs);

	CHECK(shown && count == 1);
	for (size_t i = 0; i < ARRAY_SIZE(certs); i++) {
		gnutls_datum_t own = { 0 }, text;
		CHECK_INT(gnutls_load_file(certs[i].cert_file, &text), 0);
		CHECK_INT(gnutls_pem_base64_decode2("CERTIFICATE", &text, &own), 0);
		if (own.size == shown->size && memcmp(own.data, shown->data, own.size) == 0)
			found = i;
		gnutls_free(own.data);
		gnutls_free(text.data);
	}
	return found;
}

static void tls_say(struct tls *tls, const char *text)
{
	CHECK_INT(gnutls_record_send(tls->session, text, strlen(text)), strlen(text));
}

/* Until that text has come, or the end (false). */
static bool tls_hears(struct tls *tls, const char *text)
{
	char block[4096];

	while (!strstr(tls->in.s, text)) {
		ssize_t n = gnutls_record_recv(tls->session, block, sizeof(block));
		if (n > 0)
			strbuf_add(&tls->in, block, (size_t)n);
		else if (n == 0 || gnutls_error_is_fatal((int)n))
			return false;
		else
			stand_turn(tls->caller->stand);
	}
	uv_timer_again(&tls->caller->stand->hang);
	strbuf_reset(&tls->in);
	return true;
}

static bool tls_asks(struct tls *tls)
{
	tls_say(tls, HELLO);
	return tls_hears(tls, "\r\n\r\nhello");
}

#define MODERN "NORMAL"

/* Greets, asks, leaves; which certificate it was. */
static size_t ask(struct stand *stand)
{
	struct tls *tls = tls_new(stand, MODERN);

	CHECK_INT(tls_greet(tls), 0);
	CHECK(tls_asks(tls));
	size_t shown = tls_shown(tls);
	tls_free(tls);
	return shown;
}

static void open_tls(struct stand *stand, const struct folder *folder)
{
	stand_open(stand, &(struct httpd_options){ .cert_file = folder->cert_file,
						   .key_file = folder->key_file,
						   .certs_ms = 5 });
}

static void wait_changed(struct stand *stand, uint32_t count)
{
	while (stand->changed < count)
		stand_turn(stand);
	CHECK_INT(stand->changed, count);
}

TEST(tls_of_today_is_spoken_and_nothing_older)
{
	static const struct {
		const char *priorities;
		bool greeted;
	} rows[] = {
		{ "NORMAL:-VERS-ALL:+VERS-TLS1.3", true },
		{ "NORMAL:-VERS-ALL:+VERS-TLS1.2", true },
		{ "NORMAL:-VERS-ALL:+VERS-TLS1.1:%COMPAT", false },
		{ "NORMAL:-VERS-ALL:+VERS-TLS1.0:%COMPAT", false },
	};
	struct folder folder;
	struct stand stand;

	make_certs();
	folder_open(&folder, &certs[0]);
	open_tls(&stand, &folder);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct tls *tls = tls_new(&stand, rows[i].priorities);
		int r = tls_greet(tls);
		CHECKF((r == 0) == rows[i].greeted, "%s: %s", rows[i].priorities,
		       gnutls_strerror(r));
		if (r == 0)
			CHECK(tls_asks(tls) && tls_asks(tls));
		tls_free(tls);
	}
	stand_close(&stand);
	folder_close(&folder);
}

TEST(new_connections_are_shown_the_new_certificate)
{
	struct folder folder;
	struct stand stand;

	make_certs();
	folder_open(&folder, &certs[0]);
	open_tls(&stand, &folder);
	struct tls *old = tls_new(&stand, MODERN);
	CHECK_INT(tls_greet(old), 0);
	for (uint32_t i = 0; i < 6; i++) {
		CHECK_INT(ask(&stand), i % 3);
		folder_fill(&folder, &certs[(i + 1) % 3]);
		wait_changed(&stand, i + 1);
		CHECK(tls_asks(old)); /* goes on as it was */
	}
	CHECK_INT(tls_shown(old), 0);
	CHECK_INT(stand.refused, 0);
	tls_free(old);
	stand_close(&stand);
	folder_close(&folder);
}

TEST(a_greeting_survives_a_change_in_its_midst)
{
	static const char *const versions[] = { "NORMAL:-VERS-ALL:+VERS-TLS1.3",
						"NORMAL:-VERS-ALL:+VERS-TLS1.2" };
	struct folder folder;
	struct stand stand;

	make_certs();
	folder_open(&folder, &certs[0]);
	open_tls(&stand, &folder);
	for (size_t version = 0; version < ARRAY_SIZE(versions); version++)
		for (int turns = 0; turns < 6; turns++) {
			struct tls *tls = tls_new(&stand, versions[version]);
			for (int i = 0; i < turns; i++) {
				if (i % 2)
					gnutls_handshake(tls->session);
				uv_run(&stand.loop, UV_RUN_NOWAIT);
			}
			for (int i = 1; i <= 3; i++) {
				folder_fill(&folder, &certs[i % 3]);
				wait_changed(&stand, stand.changed + 1);
			}
			CHECK_INT(tls_greet(tls), 0);
			CHECKF(tls_asks(tls), "%zu %d", version, turns);
			tls_free(tls);
		}
	stand_close(&stand);
	folder_close(&folder);
}

/* ---- pairs that are none ---- */

static void wait_refused(struct stand *stand, uint32_t count)
{
	while (stand->refused < count)
		stand_turn(stand);
	stand_pass(stand, 50);
	CHECK_INT(stand->refused, count); /* told once */
}

TEST(a_pair_that_cannot_be_used_leaves_the_old_one)
{
	static const char rubbish[] = "-----BEGIN CERTIFICATE-----\nrubbish\n";
	struct folder folder;
	struct stand stand;

	make_certs();
	folder_open(&folder, &certs[0]);
	open_tls(&stand, &folder);
	copy_file(certs[1].cert_file, folder.cert_file); /* the key is of another */
	wait_refused(&stand, 1);
	CHECKF(strstr(stand.refusal, folder.key_file), "%s", stand.refusal);
	CHECK_INT(ask(&stand), 0);
	int fd = open(folder.cert_file, O_WRONLY | O_TRUNC | O_CLOEXEC);
	CHECK(write(fd, rubbish, sizeof(rubbish)) == sizeof(rubbish));
	close(fd);
	wait_refused(&stand, 2);
	CHECKF(strstr(stand.refusal, folder.cert_file), "%s", stand.refusal);
	CHECK_INT(ask(&stand), 0);
	CHECK_INT(unlink(folder.cert_file), 0);
	wait_refused(&stand, 3);
	CHECK_INT(ask(&stand), 0);
	CHECK_INT(stand.changed, 0);
	copy_file(certs[2].cert_file, folder.cert_file);
	copy_file(certs[2].key_file, folder.key_file);
	wait_changed(&stand, 1);
	CHECK_INT(ask(&stand), 2);
	stand_close(&stand);
	folder_close(&folder);
}

/* Each look by itself: what changes between two of them is known here. */
TEST(one_file_after_the_other_is_no_mistake)
{
	struct httpd_certs *looked = NULL;
	struct folder folder;
	struct err err = ERR_INIT;

	make_certs();
	folder_open(&folder, &certs[0]);
	CHECK_INT(httpd_certs_new(folder.cert_file, folder.key_file, &looked, &err), 0);
	CHECK_INT(httpd_certs_check(looked, &err), 0);
	copy_file(certs[1].cert_file, folder.cert_file);
	CHECK_INT(httpd_certs_check(looked, &err), -EAGAIN);
	copy_file(certs[1].key_file, folder.key_file);
	CHECK_INT(httpd_certs_check(looked, &err), 1);
	CHECK_INT(httpd_certs_check(looked, &err), 0);
	copy_file(certs[2].key_file, folder.key_file);
	CHECK_INT(httpd_certs_check(looked, &err), -EAGAIN);
	CHECK_INT(httpd_certs_check(looked, &err), -EINVAL);
	CHECK_INT(httpd_certs_check(looked, &err), 0); /* it was told */
	copy_file(certs[2].key_file, folder.key_file);
	CHECK_INT(httpd_certs_check(looked, &err), -EAGAIN); /* another mistake */
	copy_file(certs[2].cert_file, folder.cert_file);
	CHECK_INT(httpd_certs_check(looked, &err), 1);
	httpd_certs_free(looked);
	folder_close(&folder);
}

TEST(a_pair_stays_while_somebody_may_use_it)
{
	struct httpd_certs *looked = NULL;
	struct folder folder;
	struct err err = ERR_INIT;
	gnutls_pcert_st *shown;
	unsigned int count;
	gnutls_privkey_t key;

	make_certs();
	folder_open(&folder, &certs[0]);
	CHECK_INT(httpd_certs_new(folder.cert_file, folder.key_file, &looked, &err), 0);
	struct httpd_pair *oldest = httpd_pair_get(looked);
	folder_fill(&folder, &certs[1]);
	CHECK_INT(httpd_certs_check(looked, &err), 1);
	/* who began with the oldest is shown the second, while the third comes */
	httpd_pair_use(looked, &shown, &count, &key);
	folder_fill(&folder, &certs[2]);
	CHECK_INT(httpd_certs_check(looked, &err), 1);
	CHECK_INT(count, 1);
	CHECK(shown[0].cert.size > 0 && shown[0].cert.data[0] == 0x30);
	CHECK(gnutls_privkey_get_pk_algorithm(key, NULL) == GNUTLS_PK_ECDSA);
	httpd_pair_put(looked, oldest);
	httpd_certs_free(looked);
	folder_close(&folder);
}

TEST(a_server_does_not_begin_without_a_pair)
{
	struct folder folder;
	struct stand stand;
	struct httpd *httpd = NULL;

	make_certs();
	folder_open(&folder, &certs[0]);
	const struct {
		const char *cert_file, *key_file;
	} rows[] = {
		{ folder.cert_file, NULL },
		{ NULL, folder.key_file },
		{ folder.cert_file, "/does/not/exist" },
		{ "/does/not/exist", folder.key_file },
		{ folder.cert_file, certs[1].key_file },
		{ folder.key_file, folder.key_file },
		{ "/dev/null", "/dev/null" },
	};
	open_tls(&stand, &folder);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct httpd_options options = { .addr = "127.0.0.1:0",
						 .handler = stand_handle,
						 .cert_file = rows[i].cert_file,
						 .key_file = rows[i].key_file };
		struct err err = ERR_INIT;
		int r = httpd_new(&stand.loop, &options, &httpd, &err);
		CHECKF(r < 0 && err.text[0] && !httpd, "row %zu: %d", i, r);
	}
	stand_close(&stand);
	folder_close(&folder);
}

/* ---- clients that do not mean well, or do the unusual ---- */

TEST(a_client_may_change_its_keys)
{
	struct folder folder;
	struct stand stand;

	make_certs();
	folder_open(&folder, &certs[0]);
	open_tls(&stand, &folder);
	struct tls *tls = tls_new(&stand, "NORMAL:-VERS-ALL:+VERS-TLS1.3");
	CHECK_INT(tls_greet(tls), 0);
	for (int i = 0; i < 6; i++) { /* GnuTLS allows 8 a second */
		CHECK_INT(gnutls_session_key_update(tls->session, i % 2 ? GNUTLS_KU_PEER : 0), 0);
		CHECK(tls_asks(tls));
	}
	tls_free(tls);
	stand_close(&stand);
	folder_close(&folder);
}

TEST(what_is_no_tls_is_closed)
{
	static const struct {
		const char *text;
		size_t len;
	} rows[] = {
		{ HELLO, sizeof(HELLO) - 1 },
		{ "", 0 }, /* says nothing at all */
		{ "\x16\x03\x01", 3 },
		{ "\x16\x03\x01\xff\xff\x01\x00\xff\xff\x03\x03", 11 },
		{ "\0\0\0\0\0\0\0\0\0\0\0\0", 12 },
	};
	struct folder folder;
	struct stand stand;

	make_certs();
	folder_open(&folder, &certs[0]);
	stand_open(&stand, &(struct httpd_options){ .cert_file = folder.cert_file,
						    .key_file = folder.key_file,
						    .request_ms = 300 });
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct caller *caller = caller_new(&stand);
		CHECK(caller_send(caller, rows[i].text, rows[i].len));
		caller_wait_end(caller);
		CHECK(!strstr(caller->in.s, "HTTP/1.1"));
		caller_free(caller);
	}
	CHECK_INT(stand.handled, 0);
	CHECK_INT(ask(&stand), 0);
	stand_close(&stand);
	folder_close(&folder);
}

/* libmicrohttpd would run all the time. */
TEST(a_client_that_stops_in_its_greeting_keeps_nobody_busy)
{
	struct folder folder;
	struct stand stand;
	uint64_t end_ms;
	unsigned turns = 0;

	make_certs();
	folder_open(&folder, &certs[0]);
	stand_open(&stand, &(struct httpd_options){ .cert_file = folder.cert_file,
						    .key_file = folder.key_file,
						    .request_ms = 20000 });
	struct tls *tls = tls_new(&stand, MODERN);
	CHECK(gnutls_handshake(tls->session) == GNUTLS_E_AGAIN);
	stand_pass(&stand, 100);
	for (end_ms = uv_now(&stand.loop) + 500; uv_now(&stand.loop) < end_ms; turns++)
		uv_run(&stand.loop, UV_RUN_ONCE);
	CHECKF(turns < 100, "%u turns", turns);
	CHECK_INT(tls_greet(tls), 0);
	CHECK(tls_asks(tls));
	tls_free(tls);
	stand_close(&stand);
	folder_close(&folder);
}

TEST(a_client_that_stops_in_its_greeting_does_not_slow_the_answers_of_others)
{
	struct folder folder;
	struct stand stand;
	char block[65536];
	size_t len = 0;

	make_certs();
	folder_open(&folder, &certs[0]);
	stand_open(&stand, &(struct httpd_options){ .cert_file = folder.cert_file,
						    .key_file = folder.key_file,
						    .request_ms = 25000 });
	struct tls *stops = tls_new(&stand, MODERN), *reads = tls_new(&stand, MODERN);
	CHECK(gnutls_handshake(stops->session) == GNUTLS_E_AGAIN);
	CHECK_INT(tls_greet(reads), 0);
	tls_say(reads, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
	while (len < BIG_LEN) { /* at 32 ms for 16 KiB it would be cut off */
		ssize_t n = gnutls_record_recv(reads->session, block, sizeof(block));
		CHECKF(n > 0 || (n < 0 && !gnutls_error_is_fatal((int)n)), "after %zu bytes", len);
		len += n > 0 ? (size_t)n : 0;
		if (n < 0)
			stand_turn(&stand);
	}
	tls_free(stops);
	tls_free(reads);
	stand_close(&stand);
	folder_close(&folder);
}

TEST(a_slow_request_is_told_so_through_tls)
{
	struct folder folder;
	struct stand stand;

	make_certs();
	folder_open(&folder, &certs[0]);
	stand_open(&stand, &(struct httpd_options){ .cert_file = folder.cert_file,
						    .key_file = folder.key_file,
						    .request_ms = 300 });
	struct tls *tls = tls_new(&stand, MODERN);
	CHECK_INT(tls_greet(tls), 0);
	tls_say(tls, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhalf");
	CHECK(tls_hears(tls, "HTTP/1.1 408 "));
	CHECK(!tls_hears(tls, "HTTP"));
	CHECK_INT(stand.handled, 0);
	tls_free(tls);
	while (httpd_connections(stand.httpd))
		stand_turn(&stand);
	stand_close(&stand);
	folder_close(&folder);
}

TEST(a_large_body_comes_through_tls_and_a_larger_one_not)
{
	static const size_t lens[] = { 3 << 20, (3 << 20) + 1 };
	struct folder folder;
	struct stand stand;

	make_certs();
	folder_open(&folder, &certs[0]);
	open_tls(&stand, &folder);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		struct tls *tls = tls_new(&stand, MODERN);
		char head[128], block[8192];
		memset(block, 'x', sizeof(block));
		CHECK_INT(tls_greet(tls), 0);
		snprintf(head, sizeof(head),
			 "POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
			 lens[i]);
		tls_say(tls, head);
		for (size_t sent = 0; sent < lens[i];) {
			ssize_t n = gnutls_record_send(tls->session, block,
						       MIN(sizeof(block), lens[i] - sent));
			CHECK(n > 0 || !gnutls_error_is_fatal((int)n));
			sent += n > 0 ? (size_t)n : 0;
			stand_turn(&stand);
		}
		if (i == 0) {
			struct httpd_reply reply = HTTPD_REPLY_INIT;
			while (!stand.held_count)
				stand_turn(&stand);
			reply.status = 200;
			httpd_answer(stand.held[0], &reply);
		}
		CHECK(tls_hears(tls, i == 0 ? "HTTP/1.1 200 " : "HTTP/1.1 413 "));
		tls_free(tls);
	}
	stand_close(&stand);
	folder_close(&folder);
}

TEST_MAIN()
