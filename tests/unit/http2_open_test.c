/* SPDX-License-Identifier: Apache-2.0 */
/* From a name to a connection of HTTP/2: addresses, and lookups that take their time. */
#include "test.h"
#include "unit/http_peer_parts.h"
#include "unit/http_stage.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdatomic.h>

static const struct stage_plan http2 = { .tls = true, .http2 = true };

/* ---- names: the test is the resolver ---- */

static const char *resolver_addresses[3]; /* of "peer.test" */
static atomic_bool resolver_let_go;	  /* of who asks for "slow.test" */
static atomic_int resolver_inside;	  /* asking for that */

static struct addrinfo *make_address(const char *host, const char *port)
{
	struct addrinfo *info = calloc(1, sizeof(*info) + sizeof(struct sockaddr_in));
	struct sockaddr_in *address = (struct sockaddr_in *)(info + 1);

	address->sin_family = AF_INET;
	address->sin_port = htons((uint16_t)strtoul(port, NULL, 10));
	inet_pton(AF_INET, host, &address->sin_addr);
	info->ai_family = AF_INET;
	info->ai_socktype = SOCK_STREAM;
	info->ai_addr = (struct sockaddr *)address;
	info->ai_addrlen = sizeof(*address);
	return info;
}

/* As one whose name servers are silent. */
static void wait_in_resolver(void)
{
	resolver_inside++;
	for (int i = 0; i < STAGE_HANG_MS && !resolver_let_go; i++)
		usleep(1000);
	resolver_inside--;
}

/* Instead of the C library's, for this program. */
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		struct addrinfo **ret)
{
	struct in_addr address;
	bool numeric = inet_pton(AF_INET, host, &address) == 1;

	*ret = NULL;
	if (numeric) {
		*ret = make_address(host, port);
		return 0;
	}
	if (!(hints->ai_flags & AI_NUMERICHOST) && strcmp(host, "slow.test") == 0)
		wait_in_resolver();
	if (hints->ai_flags & AI_NUMERICHOST || strcmp(host, "peer.test") != 0)
		return EAI_NONAME;
	for (size_t i = ARRAY_SIZE(resolver_addresses); i-- > 0;) {
		if (!resolver_addresses[i])
			continue;
		struct addrinfo *info = make_address(resolver_addresses[i], port);
		info->ai_next = *ret;
		*ret = info;
	}
	return *ret ? 0 : EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *info)
{
	for (struct addrinfo *next; info; info = next) {
		next = info->ai_next;
		free(info);
	}
}

static struct answer *get_by_name(struct stage *stage)
{
	char url[64];

	snprintf(url, sizeof(url), "https://peer.test:%d/hello", peer_port(stage->peer));
	struct answer *answer = stage_get(stage, url);
	stage_wait(stage, answer);
	return answer;
}

TEST(addresses_of_a_name_are_tried_one_after_the_other)
{
	static const struct {
		const char *addresses[3];
		enum http_result result;
	} rows[] = {
		{ { "127.0.0.1" }, HTTP_ANSWERED },
		/* nobody listens there */
		{ { "127.0.0.9", "127.0.0.1" }, HTTP_ANSWERED },
		{ { "127.0.0.9", "127.0.0.8", "127.0.0.1" }, HTTP_ANSWERED },
		{ { "127.0.0.9", "127.0.0.8" }, HTTP_NOT_SENT },
		/* cannot be connected to at all */
		{ { "255.255.255.255", "127.0.0.1" }, HTTP_ANSWERED },
		{ { NULL }, HTTP_NOT_SENT },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stage stage;
		memcpy(resolver_addresses, rows[i].addresses, sizeof(resolver_addresses));
		stage_open(&stage, &http2);
		struct answer *answer = get_by_name(&stage);
		CHECKF(answer->result == rows[i].result, "row %zu: %s", i, answer->reason);
		CHECKF(answer->result == HTTP_ANSWERED || strstr(answer->reason, "peer.test"),
		       "row %zu: %s", i, answer->reason);
		stage_close(&stage);
	}
}

/* A listener that takes no more connections does not answer: the next address gets its
 * share of the time. */
TEST(an_address_that_does_not_answer_leaves_time_for_the_next)
{
	struct http_options options = { .connect_ms = 2000 };
	struct stage_plan plan = http2;
	struct sockaddr_in address = { .sin_family = AF_INET };
	int listener = socket(AF_INET, SOCK_STREAM, 0), fillers[8];
	struct stage stage;

	plan.options = &options;
	stage_open(&stage, &plan);
	address.sin_port = htons((uint16_t)peer_port(stage.peer));
	inet_pton(AF_INET, "127.0.0.9", &address.sin_addr);
	CHECK_INT(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_INT(listen(listener, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(fillers); i++) {
		fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)connect(fillers[i], (struct sockaddr *)&address, sizeof(address));
	}
	memcpy(resolver_addresses, (const char *[3]){ "127.0.0.9", "127.0.0.1" },
	       sizeof(resolver_addresses));
	struct answer *answer = get_by_name(&stage);
	CHECKF(answer->result == HTTP_ANSWERED, "%s", answer->reason);
	stage_close(&stage);
	for (size_t i = 0; i < ARRAY_SIZE(fillers); i++)
		close(fillers[i]);
	close(listener);
}

/* At the server's port and another address. */
static struct peer *peer_beside(struct stage *stage, const char *host, const struct cert *cert)
{
	return peer_new(&stage->loop, &(struct peer_options){ .host = host,
							      .port = peer_port(stage->peer),
							      .cert_file = cert->cert_file,
							      .key_file = cert->key_file,
							      .http2 = true,
							      .serve = stage_serve,
							      .context = stage });
}

static void end_connections(struct stage *stage, const struct peer *peer)
{
	peer_cut(peer->links, false);
	while (http_connections(stage->http))
		stage_turn(stage);
}

/* Else each connection would wait for one that never answers. */
TEST(the_address_that_worked_is_tried_first_the_next_time)
{
	struct stage stage;

	stage_open(&stage, &http2);
	memcpy(resolver_addresses, (const char *[3]){ "127.0.0.9", "127.0.0.1", "127.0.0.8" },
	       sizeof(resolver_addresses));
	CHECK_INT(get_by_name(&stage)->result, HTTP_ANSWERED);
	struct peer *stranger = peer_beside(&stage, "127.0.0.9", &stage_client);
	for (uint32_t i = 2; i < 5; i++) {
		end_connections(&stage, stage.peer);
		struct answer *answer = get_by_name(&stage);
		CHECKF(answer->result == HTTP_ANSWERED, "%s", answer->reason);
		CHECK_INT(peer_accepted(stage.peer), i);
	}
	CHECK_INT(peer_accepted(stranger), 0);
	peer_close(stranger);
	stage_close(&stage);
}

TEST(when_it_does_not_work_any_more_all_others_are_tried)
{
	struct stage stage;

	stage_open(&stage, &http2);
	memcpy(resolver_addresses, (const char *[3]){ "127.0.0.8" }, sizeof(resolver_addresses));
	struct peer *other = peer_beside(&stage, "127.0.0.8", &stage_server);
	CHECK_INT(get_by_name(&stage)->result, HTTP_ANSWERED);
	CHECK_INT(peer_accepted(other), 1);
	end_connections(&stage, other);
	peer_close(other);
	/* Before it and behind it. */
	memcpy(resolver_addresses, (const char *[3]){ "127.0.0.1", "127.0.0.8", "127.0.0.9" },
	       sizeof(resolver_addresses));
	CHECK_INT(get_by_name(&stage)->result, HTTP_ANSWERED);
	CHECK_INT(peer_accepted(stage.peer), 1);
	stage_close(&stage);
}

TEST(an_address_that_fails_behind_its_greeting_is_not_tried_first_for_ever)
{
	struct stage stage;

	stage_open(&stage, &http2);
	memcpy(resolver_addresses, (const char *[3]){ "127.0.0.8" }, sizeof(resolver_addresses));
	struct peer *other = peer_beside(&stage, "127.0.0.8", &stage_server);
	CHECK_INT(get_by_name(&stage)->result, HTTP_ANSWERED);
	end_connections(&stage, other);
	peer_close(other);
	stage_pass(&stage, 10);
	other = peer_beside(&stage, "127.0.0.8", &stage_client);
	memcpy(resolver_addresses, (const char *[3]){ "127.0.0.1", "127.0.0.8" },
	       sizeof(resolver_addresses));
	CHECK_INT(get_by_name(&stage)->result, HTTP_REFUSED);
	CHECK_INT(get_by_name(&stage)->result, HTTP_ANSWERED);
	peer_close(other);
	stage_close(&stage);
}

/* A lookup cannot be cancelled and may take a minute; a process has less time to end. */
TEST(nobody_waits_for_a_lookup_that_nobody_wants_any_more)
{
	struct stage stage;

	stage_open(&stage, &http2);
	stage_get(&stage, "https://slow.test/");
	while (!resolver_inside)
		stage_turn(&stage);
	stage_close(&stage); /* also the loop */
	CHECK_INT(resolver_inside, 1);
	resolver_let_go = true;
	while (resolver_inside)
		usleep(1000);
	resolver_let_go = false;
}

TEST(a_lookup_that_takes_too_long_is_left_alone)
{
	struct http_options options = { .connect_ms = 50 };
	struct stage_plan plan = http2;
	struct stage stage;

	plan.options = &options;
	stage_open(&stage, &plan);
	for (int i = 0; i < 3; i++) {
		struct answer *answer = stage_post(&stage, "https://slow.test/", "x");
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_NOT_SENT);
		CHECK(strstr(answer->reason, "slow.test"));
	}
	resolver_let_go = true;
	while (resolver_inside)
		stage_pass(&stage, 1);
	stage_pass(&stage, 10);
	resolver_let_go = false;
	stage_close(&stage);
}

TEST(a_set_closes_at_any_moment_of_a_lookup)
{
	char url[64];

	memcpy(resolver_addresses, (const char *[3]){ "127.0.0.1" }, sizeof(resolver_addresses));
	for (int turns = 0; turns < 20; turns++) {
		struct stage stage;
		stage_open(&stage, &http2);
		snprintf(url, sizeof(url), "https://peer.test:%d/hello", peer_port(stage.peer));
		stage_get(&stage, url);
		for (int i = 0; i < turns; i++)
			uv_run(&stage.loop, UV_RUN_NOWAIT);
		stage_close(&stage);
	}
}

TEST_MAIN()
