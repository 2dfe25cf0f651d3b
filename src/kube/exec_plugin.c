/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/exec_plugin.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/config.h"
#include "kube/exec_credential.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_MS	    60000
#define ENVIRONMENT_MAX	    ((size_t)16 << 20)
#define COMPLAINT_MAX	    1024 /* last words on the standard error that are kept */
#define COMPLAINT_SHOWN_MAX 200	 /* of them in a message */
#define INFO_VARIABLE	    "KUBERNETES_EXEC_INFO"

extern char **environ;

struct exec_plugin {
	const struct kube_config *config;
	exec_plugin_done done;
	void *context;

	uv_process_t process;
	uv_timer_t timer;
	uv_pipe_t out, complaints;
	unsigned handles;     /* that are still to be closed */
	bool running, silent; /* silent: the standard output has ended */
	int64_t status;
	int term_signal;

	struct arena arena; /* arguments and environment */
	struct strbuf text; /* its standard output */
	char complaint[COMPLAINT_MAX];
	size_t complaint_len;
	char piece[16 << 10];
	struct err err; /* code 0: nothing has gone wrong yet */
};

static void plugin_free(struct exec_plugin *plugin)
{
	if (!plugin)
		return;
	strbuf_done(&plugin->text);
	arena_done(&plugin->arena);
	free(plugin);
}

/* --- What to run --- */

/* "name=value" into the list, in the place of another value of that name. */
static int set_variable(struct arena *arena, char **list, size_t *count, const char *name,
			const char *value)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_addf(&text, "%s=%s", name, value);
	char *copy = text.failed ? NULL : arena_strndup(arena, text.s, text.len);
	if (!copy)
		return -ENOMEM;
	size_t prefix = strlen(name) + 1, i = 0;
	while (i < *count && strncmp(list[i], copy, prefix) != 0)
		i++;
	list[i] = copy;
	*count += i == *count;
	return 0;
}

static char **make_environment(struct exec_plugin *plugin, const char *ca)
{
	struct strbuf info CLEANUP(strbuf_done) = STRBUF_INIT;
	const struct kube_exec *exec = plugin->config->exec;
	size_t ours = 0, count;
	while (environ && environ[ours])
		ours++;
	char **list = arena_array(&plugin->arena, ours + exec->env_count + 2, sizeof(*list));
	if (!list)
		return NULL;
	for (count = 0; count < ours; count++)
		list[count] = environ[count];
	exec_info_write(&info, plugin->config, ca);
	for (size_t i = 0; i < exec->env_count; i++)
		if (set_variable(&plugin->arena, list, &count, exec->env[i].name,
				 exec->env[i].value) < 0)
			return NULL;
	if (info.failed || set_variable(&plugin->arena, list, &count, INFO_VARIABLE, info.s) < 0)
		return NULL;
	return list;
}

static char **make_arguments(struct exec_plugin *plugin)
{
	const struct kube_exec *exec = plugin->config->exec;
	char **list = arena_array(&plugin->arena, exec->args_count + 2, sizeof(*list));
	if (!list)
		return NULL;
	list[0] = arena_strndup(&plugin->arena, exec->command, strlen(exec->command));
	for (size_t i = 0; i < exec->args_count; i++) {
		const char *argument = exec->args[i];
		list[i + 1] = arena_strndup(&plugin->arena, argument, strlen(argument));
		if (!list[i + 1])
			return NULL;
	}
	return list[0] ? list : NULL;
}

/* --- What to say --- */

/* On one line, without what a terminal could take for a command. */
static void make_plain(char *text)
{
	for (; *text; text++)
		if (iscntrl((unsigned char)*text))
			*text = ' ';
}

static void fail(struct exec_plugin *plugin, int code, const char *what, const char *more)
{
	const struct kube_config *config = plugin->config;
	if (plugin->err.code)
		return; /* what came first caused the rest */
	err_set(&plugin->err, code, "the credential plugin %s (%s) %s%s%s", config->exec->command,
		config->user_origin ? config->user_origin : "unnamed user", what,
		*more ? ": " : "", more);
	make_plain(plugin->err.text);
}

/* For one that is not there, or has parts missing. */
static void fail_to_start(struct exec_plugin *plugin, int code, const char *why)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	const char *hint = plugin->config->exec->install_hint;
	strbuf_addf(&text, "%s%s%s", why, hint && *why ? "; " : "", hint ? hint : "");
	fail(plugin, code, "cannot be started", text.s);
}

static void fail_with_status(struct exec_plugin *plugin)
{
	char what[64];
	char last[COMPLAINT_SHOWN_MAX + 1];
	size_t len = plugin->complaint_len;
	const char *s = plugin->complaint;
	while (len > 0 && isspace((unsigned char)s[len - 1]))
		len--;
	size_t shown = MIN(len, COMPLAINT_SHOWN_MAX);
	memcpy(last, s + len - shown, shown);
	last[shown] = '\0';
	if (plugin->term_signal)
		snprintf(what, sizeof(what), "was killed by signal %d", plugin->term_signal);
	else
		snprintf(what, sizeof(what), "failed with status %d", (int)plugin->status);
	/* 126 and 127 are what shells say of programs that they cannot run */
	if (!plugin->term_signal && (plugin->status == 126 || plugin->status == 127))
		fail_to_start(plugin, ENOENT, last);
	else
		fail(plugin, EIO, what, last);
}

/* --- The end --- */

static void judge(struct exec_plugin *plugin, struct exec_credential *reply)
{
	struct err why = ERR_INIT;
	if (!plugin->err.code && (plugin->status != 0 || plugin->term_signal))
		fail_with_status(plugin);
	if (plugin->err.code)
		return;
	if (exec_credential_parse(plugin->text.s, plugin->text.len,
				  plugin->config->exec->api_version, reply, &why) < 0)
		fail(plugin, why.code, "gave something else than credentials", why.text);
}

static void on_closed(uv_handle_t *handle)
{
	struct exec_plugin *plugin = handle->data;
	struct exec_credential reply = { 0 };
	if (--plugin->handles > 0)
		return;
	judge(plugin, &reply);
	plugin->done(plugin->context, plugin->err.code ? NULL : &reply,
		     plugin->err.code ? &plugin->err : NULL);
	exec_credential_done(&reply);
	plugin_free(plugin);
}

static void keep_complaint(struct exec_plugin *plugin, const char *s, size_t n)
{
	if (n > COMPLAINT_MAX) {
		s += n - COMPLAINT_MAX;
		n = COMPLAINT_MAX;
	}
	size_t keep = MIN(plugin->complaint_len, COMPLAINT_MAX - n);
	memmove(plugin->complaint, plugin->complaint + plugin->complaint_len - keep, keep);
	memcpy(plugin->complaint + keep, s, n);
	plugin->complaint_len = keep + n;
}

/* The standard error may stay open in a helper that the plugin left behind, so its end is
 * not waited for: what is there now is all. */
static void read_last_complaints(struct exec_plugin *plugin)
{
	uv_os_fd_t fd;
	ssize_t n;
	if (uv_fileno((uv_handle_t *)&plugin->complaints, &fd) < 0)
		return;
	for (int turn = 0; turn < 64; turn++) {
		n = read(fd, plugin->piece, sizeof(plugin->piece));
		if (n <= 0)
			return;
		keep_complaint(plugin, plugin->piece, (size_t)n);
	}
}

static void close_handle(uv_handle_t *handle)
{
	if (!uv_is_closing(handle))
		uv_close(handle, on_closed);
}

static void finish(struct exec_plugin *plugin)
{
	if (plugin->running)
		return; /* until it is reaped */
	read_last_complaints(plugin);
	close_handle((uv_handle_t *)&plugin->process);
	close_handle((uv_handle_t *)&plugin->timer);
	close_handle((uv_handle_t *)&plugin->out);
	close_handle((uv_handle_t *)&plugin->complaints);
}

/* The plugin leads its own process group: with it go those that it started. */
static void kill_it(struct exec_plugin *plugin)
{
	if (!plugin->running) {
		finish(plugin);
		return;
	}
	uv_read_stop((uv_stream_t *)&plugin->out);
	kill(-plugin->process.pid, SIGKILL);
}

static void on_ended(uv_process_t *process, int64_t status, int term_signal)
{
	struct exec_plugin *plugin = process->data;
	plugin->running = false;
	plugin->status = status;
	plugin->term_signal = term_signal;
	if (plugin->silent || plugin->err.code)
		finish(plugin);
}

static void on_timeout(uv_timer_t *timer)
{
	struct exec_plugin *plugin = timer->data;
	fail(plugin, ETIMEDOUT,
	     plugin->running ? "did not end in time" : "left its output open to others", "");
	kill_it(plugin);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct exec_plugin *plugin = handle->data;
	(void)suggested;
	*buf = uv_buf_init(plugin->piece, sizeof(plugin->piece));
}

static void on_output(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct exec_plugin *plugin = stream->data;
	if (n > 0)
		strbuf_add(&plugin->text, buf->base, (size_t)n);
	if (plugin->text.failed) {
		fail(plugin, EFBIG, "says too much", "");
		kill_it(plugin);
	} else if (n < 0) {
		uv_read_stop(stream);
		plugin->silent = true;
		finish(plugin);
	}
}

static void on_complaint(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct exec_plugin *plugin = stream->data;
	if (n > 0)
		keep_complaint(plugin, buf->base, (size_t)n);
	else if (n < 0)
		uv_read_stop(stream);
}

/* --- The beginning --- */

static int spawn(struct exec_plugin *plugin, uv_loop_t *loop, char **arguments, char **environment)
{
	uv_stdio_container_t stdio[3] = {
		{ .flags = UV_IGNORE }, /* /dev/null */
		{ .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
		  .data.stream = (uv_stream_t *)&plugin->out },
		{ .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
		  .data.stream = (uv_stream_t *)&plugin->complaints },
	};
	uv_process_options_t options = {
		.exit_cb = on_ended,
		.file = arguments[0],
		.args = arguments,
		.env = environment,
		.flags = UV_PROCESS_DETACHED,
		.stdio_count = 3,
		.stdio = stdio,
	};
	return uv_spawn(loop, &plugin->process, &options);
}

static void begin(struct exec_plugin *plugin, uv_loop_t *loop, char **arguments,
		  char **environment)
{
	uint32_t timeout_ms = plugin->config->exec->timeout_ms;
	uv_timer_init(loop, &plugin->timer);
	uv_pipe_init(loop, &plugin->out, 0);
	uv_pipe_init(loop, &plugin->complaints, 0);
	plugin->process.data = plugin->timer.data = plugin;
	plugin->out.data = plugin->complaints.data = plugin;
	plugin->handles = 4;
	int result = spawn(plugin, loop, arguments, environment);
	if (result < 0) {
		fail_to_start(plugin, -result, uv_strerror(result));
		finish(plugin);
		return;
	}
	plugin->running = true;
	uv_timer_start(&plugin->timer, on_timeout, timeout_ms ? timeout_ms : TIMEOUT_MS, 0);
	uv_read_start((uv_stream_t *)&plugin->out, on_alloc, on_output);
	uv_read_start((uv_stream_t *)&plugin->complaints, on_alloc, on_complaint);
}

int exec_plugin_start(uv_loop_t *loop, const struct kube_config *config, const char *ca,
		      exec_plugin_done done, void *context, struct exec_plugin **ret,
		      struct err *err)
{
	struct exec_plugin *plugin = calloc(1, sizeof(*plugin));
	char **arguments = NULL, **environment = NULL;
	if (plugin) {
		*plugin =
			(struct exec_plugin){ .config = config, .done = done, .context = context };
		plugin->text = (struct strbuf)STRBUF_INIT_MAX(EXEC_REPLY_MAX_BYTES);
		arena_init(&plugin->arena, ENVIRONMENT_MAX);
		arguments = make_arguments(plugin);
		environment = make_environment(plugin, ca);
	}
	if (!arguments || !environment) {
		plugin_free(plugin);
		return err_set(err, ENOMEM, "cannot run the credential plugin: out of memory");
	}
	begin(plugin, loop, arguments, environment);
	*ret = plugin;
	return 0;
}

void exec_plugin_stop(struct exec_plugin *plugin)
{
	fail(plugin, ECANCELED, "was stopped", "");
	kill_it(plugin);
}
