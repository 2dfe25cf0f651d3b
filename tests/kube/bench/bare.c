/* SPDX-License-Identifier: Apache-2.0 */
#include "bare.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"
#include "kube/config.h"

struct slot {
	CURL *easy;
	char answer[BARE_ANSWER_MAX];
	size_t answer_len;
};

struct bare {
	const char *server;
	CURLM *multi;
	struct curl_slist *headers;
	bare_ended_fn ended;
	void *context;
	unsigned busy;
	uint64_t begun; /* requests so far */
	struct slot slots[BARE_SLOTS];
};

/* NOLINTNEXTLINE(readability-non-const-parameter): libcurl says what it looks like */
static size_t take(char *bytes, size_t size, size_t count, void *context)
{
	struct slot *slot = context;
	size_t room = sizeof(slot->answer) - 1 - slot->answer_len;
	size_t n = size * count < room ? size * count : room;

	memcpy(slot->answer + slot->answer_len, bytes, n);
	slot->answer_len += n;
	return size * count;
}

/* libcurl takes files alone. */
static void file_of(const char *data, char *path, size_t size)
{
	int fd = memfd_create("bench", 0);

	if (!data)
		bench_fail("the bare client needs a kubeconfig with its certificates inside");
	if (fd < 0 || write(fd, data, strlen(data)) != (ssize_t)strlen(data))
		bench_fail("no memory for a certificate");
	snprintf(path, size, "/proc/self/fd/%d", fd);
}

static CURL *handle_new(const struct kube_config *config)
{
	static char ca[64], cert[64], key[64];
	CURL *easy = curl_easy_init();

	if (!easy)
		bench_fail("out of memory");
	if (!ca[0]) {
		file_of(config->ca_data, ca, sizeof(ca));
		file_of(config->cert_data, cert, sizeof(cert));
		file_of(config->key_data, key, sizeof(key));
	}
	curl_easy_setopt(easy, CURLOPT_CAINFO, ca);
	curl_easy_setopt(easy, CURLOPT_SSLCERT, cert);
	curl_easy_setopt(easy, CURLOPT_SSLKEY, key);
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
	return easy;
}

struct bare *bare_new(const struct kube_config *config, bare_ended_fn ended, void *context)
{
	struct bare *bare = calloc(1, sizeof(*bare));

	if (!bare || !(bare->multi = curl_multi_init()))
		bench_fail("out of memory");
	bare->server = config->server;
	bare->ended = ended;
	bare->context = context;
	bare->headers = curl_slist_append(NULL, "Content-Type: application/json");
	for (unsigned i = 0; i < BARE_SLOTS; i++) {
		struct slot *slot = &bare->slots[i];

		slot->easy = handle_new(config);
		curl_easy_setopt(slot->easy, CURLOPT_WRITEDATA, slot);
		curl_easy_setopt(slot->easy, CURLOPT_PRIVATE, slot);
		curl_easy_setopt(slot->easy, CURLOPT_HTTPHEADER, bare->headers);
	}
	return bare;
}

void bare_free(struct bare *bare)
{
	if (!bare)
		return;
	for (unsigned i = 0; i < BARE_SLOTS; i++)
		curl_easy_cleanup(bare->slots[i].easy);
	curl_multi_cleanup(bare->multi);
	curl_slist_free_all(bare->headers);
	free(bare);
}

void bare_send(struct bare *bare, unsigned slot, const char *method, const char *path,
	       const char *body)
{
	CURL *easy = bare->slots[slot].easy;
	char url[1024];

	snprintf(url, sizeof(url), "%s%s", bare->server, path);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, body);
	bare->slots[slot].answer_len = 0;
	if (curl_multi_add_handle(bare->multi, easy) != CURLM_OK)
		bench_fail("the bare client failed");
	bare->busy++;
	bare->begun++;
}

static void finish(struct bare *bare)
{
	CURLMsg *message;
	int queued;

	while ((message = curl_multi_info_read(bare->multi, &queued))) {
		CURL *easy = message->easy_handle;
		struct slot *slot = NULL;
		long code = 0;

		curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
		curl_easy_getinfo(easy, CURLINFO_PRIVATE, &slot);
		if (message->data.result != CURLE_OK)
			bench_fail("the bare client: %s",
				   curl_easy_strerror(message->data.result));
		curl_multi_remove_handle(bare->multi, easy);
		bare->busy--;
		slot->answer[slot->answer_len] = '\0';
		bare->ended(bare->context, (unsigned)(slot - bare->slots), code, slot->answer);
	}
}

void bare_run(struct bare *bare)
{
	int running;

	while (bare->busy) {
		uint64_t begun = bare->begun;

		if (curl_multi_perform(bare->multi, &running) != CURLM_OK)
			bench_fail("the bare client failed");
		finish(bare);
		/* New ones are sent before anybody waits. */
		if (bare->begun == begun && bare->busy &&
		    curl_multi_poll(bare->multi, NULL, 0, 1000, NULL) != CURLM_OK)
			bench_fail("the bare client failed");
	}
}
