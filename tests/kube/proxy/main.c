/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - fault-proxy: starts everything, and ends it in good order. */
#include "base/err.h"
#include "base/strbuf.h"
#include "certificate.h"
#include "decide.h"
#include "kube/base64.h"
#include "kube/config.h"
#include "options.h"
#include "proxy.h"
#include "record.h"
#include "script.h"
#include "server.h"
#include "upstream.h"
#include "wire/file.h"
#include "wire/json_write.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOG_MAX	  ((size_t)64 << 20) /* bytes of a log to replay */
#define TOKEN_LEN 32

struct program {
	struct options options;
	struct script script;
	struct kube_config *config;
	struct certificate certificate;
	struct proxy proxy;
	uv_signal_t signals[3];
	size_t signals_count;
};

static void on_end(uv_signal_t *handle, int number)
{
	struct program *program = handle->data;
	(void)number;
	for (size_t i = 0; i < program->signals_count; i++)
		uv_close((uv_handle_t *)&program->signals[i], NULL);
	program->signals_count = 0;
	server_close(program->proxy.server);
}

static void on_toggle(uv_signal_t *handle, int number)
{
	const struct program *program = handle->data;
	struct decider *decider = program->proxy.decider;
	(void)number;
	decider_switch(decider, !decider_is_on(decider));
}

static void catch_signals(struct program *program)
{
	static const struct {
		int number;
		uv_signal_cb call;
	} rows[] = { { SIGTERM, on_end }, { SIGINT, on_end }, { SIGUSR1, on_toggle } };
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uv_signal_t *handle = &program->signals[program->signals_count++];
		uv_signal_init(program->proxy.loop, handle);
		handle->data = program;
		uv_signal_start(handle, rows[i].call, rows[i].number);
	}
	signal(SIGPIPE, SIG_IGN);
}

static void add_str(struct json_writer *w, const char *key, const char *s)
{
	json_add_key(w, key);
	json_add_str(w, s);
}

/* Opens what every list of a kubeconfig has: [{"name":"proxy","<kind>":{ */
static void open_entry(struct json_writer *w, const char *list, const char *kind)
{
	json_add_key(w, list);
	json_open_array(w);
	json_open_object(w);
	add_str(w, "name", "proxy");
	json_add_key(w, kind);
	json_open_object(w);
}

static void close_entry(struct json_writer *w)
{
	json_close_object(w);
	json_close_object(w);
	json_close_array(w);
}

/* JSON, which every reader of kubeconfigs reads. */
static void add_kubeconfig(const struct program *program, struct strbuf *out)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_writer w = JSON_WRITER_INIT(out);
	json_open_object(&w);
	add_str(&w, "apiVersion", "v1");
	add_str(&w, "kind", "Config");
	add_str(&w, "current-context", "proxy");
	open_entry(&w, "clusters", "cluster");
	strbuf_addf(&text, "https://%s", server_address(program->proxy.server));
	add_str(&w, "server", text.s);
	strbuf_reset(&text);
	base64_encode(&text, program->certificate.authority.s, program->certificate.authority.len);
	add_str(&w, "certificate-authority-data", text.s);
	close_entry(&w);
	open_entry(&w, "users", "user");
	add_str(&w, "token", program->proxy.token);
	close_entry(&w);
	open_entry(&w, "contexts", "context");
	add_str(&w, "cluster", "proxy");
	add_str(&w, "user", "proxy");
	add_str(&w, "namespace", program->config->namespace);
	close_entry(&w);
	json_close_object(&w);
	strbuf_putc(out, '\n');
}

/* Whole or not at all, and for nobody else's eyes. */
static int write_file(const char *path, const struct strbuf *text, struct err *err)
{
	struct strbuf draft CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_addf(&draft, "%s.new", path);
	int fd = open(draft.s, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool fine = fd >= 0 && write(fd, text->s, text->len) == (ssize_t)text->len;
	if (fd >= 0)
		close(fd);
	if (!fine || rename(draft.s, path) < 0)
		return err_set(err, errno ? errno : EIO, "%s: %s", path,
			       strerror(errno ? errno : EIO));
	return 0;
}

static int read_script(struct program *program, struct err *err)
{
	const char *path = program->options.script;
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	if (!path)
		return 0;
	int result = file_read(path, SCRIPT_MAX, &text, err);
	return result < 0 ? result : script_parse(path, text.s, text.len, &program->script, err);
}

static int make_decider(struct program *program, struct err *err)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT_MAX(LOG_MAX);
	const struct options *options = &program->options;
	struct decider *decider = decider_new(&program->script, options->seed);
	if (!decider)
		return err_set(err, ENOMEM, "out of memory");
	program->proxy.decider = decider;
	if (!options->replay)
		return 0;
	int result = file_read(options->replay, LOG_MAX, &text, err);
	return result < 0 ? result
			  : decider_replay(decider, options->replay, text.s, text.len, err);
}

/* What needs no loop. */
static int prepare(struct program *program, struct err *err)
{
	const struct options *options = &program->options;
	struct proxy *proxy = &program->proxy;
	const struct kube_config_source source = { .path = options->kubeconfig };
	char host[64];
	snprintf(host, sizeof(host), "%.*s", (int)strcspn(options->listen, ":"), options->listen);
	int result = read_script(program, err);
	if (result == 0)
		result = make_decider(program, err);
	if (result == 0)
		result = record_open(options->log, options->seed, &proxy->record, err);
	if (result == 0)
		result = kube_config_load(&source, &program->config, err);
	if (result == 0)
		result = certificate_make(host, &program->certificate, err);
	if (result == 0)
		result = certificate_random_text(proxy->token, TOKEN_LEN, err);
	return result;
}

static int start(struct program *program, struct err *err)
{
	struct proxy *proxy = &program->proxy;
	int result = upstream_new(proxy->loop, program->config, &proxy->upstream, err);
	if (result == 0)
		result = server_new(proxy, program->options.listen,
				    program->certificate.credentials, &proxy->server, err);
	if (result < 0)
		return result;
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	add_kubeconfig(program, &text);
	result = write_file(program->options.write_kubeconfig, &text, err);
	if (result < 0)
		return result;
	printf("{\"listen\":\"%s\"}\n", server_address(proxy->server));
	fflush(stdout);
	return 0;
}

static void print_stats(const struct proxy *proxy)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	proxy_stats(proxy, &text);
	printf("%s\n", text.s);
}

static void program_done(struct program *program)
{
	server_free(program->proxy.server);
	upstream_free(program->proxy.upstream);
	certificate_done(&program->certificate);
	decider_free(program->proxy.decider);
	record_close(program->proxy.record);
	script_done(&program->script);
	kube_config_free(program->config);
}

/* The loop until a signal; then until all that it holds is closed. */
static int run(struct program *program, struct err *err)
{
	struct proxy *proxy = &program->proxy;
	uv_loop_t loop;
	uv_loop_init(&loop);
	proxy->loop = &loop;
	proxy->start_ms = uv_now(&loop);
	int result = start(program, err);
	if (result == 0) {
		catch_signals(program);
		while (program->signals_count > 0)
			uv_run(&loop, UV_RUN_ONCE);
		print_stats(proxy);
	}
	server_close(proxy->server);
	/* Exchanges end with their connections, in the next turn; what is left upstream
	 * after that is idle. */
	uv_run(&loop, UV_RUN_NOWAIT);
	if (proxy->upstream)
		upstream_close(proxy->upstream);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	return result;
}

int main(int argc, char **argv)
{
	struct program program = { .certificate.authority = STRBUF_INIT };
	struct err err = ERR_INIT;
	int result = options_parse(argc, argv, &program.options, &err);
	if (result == 0 && program.options.help) {
		fputs(options_help, stdout);
		return 0;
	}
	if (result == 0)
		result = prepare(&program, &err);
	if (result == 0)
		result = run(&program, &err);
	program_done(&program);
	gnutls_global_deinit();
	if (result < 0)
		fprintf(stderr, "fault-proxy: %s\n", err.text);
	return result < 0 ? 1 : 0;
}
