/* SPDX-License-Identifier: Apache-2.0 */
/* httpd_call.c - a request: gathered, handed over, answered.
 *
 * libmicrohttpd calls httpd_call_serve() when the head is there, with every piece of the
 * body, and when all is there: only the first and the last may answer.  So who sends more
 * than may be is heard out, into nothing, and told then; a client that is cut off while it
 * writes would not see the answer.
 */
#include "base/num.h"
#include "wire/httpd_parts.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BAD_REQUEST   400
#define TOO_LARGE     413
#define UNAVAILABLE   503
#define HEARD_OUT_MAX ((size_t)16 << 20) /* past that it is cut off */

enum stage {
	CALL_HEAD,    /* its first line has come */
	CALL_BODY,    /* its body comes */
	CALL_REFUSED, /* its body comes into nothing */
	CALL_WAITS,   /* for httpd_answer() */
	CALL_ANSWERS, /* has its response */
};

struct httpd_call {
	struct httpd_request request; /* first: the handler's view of it */
	struct httpd *httpd;
	struct httpd_link *link;
	struct MHD_Connection *connection;
	struct httpd_call *prev, *next; /* among those that wait */
	enum stage stage;
	int refusal; /* the status for CALL_REFUSED */
	size_t ignored;
	struct strbuf body;
	struct MHD_Response *response;
	int status;
	bool suspended;	   /* httpd_suspend() was called */
	bool answering;	   /* the response is going */
	bool held, served; /* httpd_answer() is to come; libmicrohttpd has it still */
	char target[];
};

static struct httpd_link *link_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

void *httpd_call_new(void *context, const char *target, struct MHD_Connection *connection)
{
	struct httpd_link *link = link_of(connection);
	size_t len = strlen(target);
	struct httpd_call *call = link ? calloc(1, sizeof(*call) + len + 1) : NULL;

	if (!call)
		return NULL;
	call->httpd = context;
	call->link = link;
	call->connection = connection;
	call->served = true;
	call->body = (struct strbuf)STRBUF_INIT_MAX(call->httpd->options.max_body);
	memcpy(call->target, target, len + 1);
	char *query = strchr(call->target, '?');
	if (query)
		*query = '\0';
	call->request.path = call->target;
	call->request.query = query ? query + 1 : "";
	call->httpd->in_flight++;
	call->httpd->progress = true;
	link->asking = true;
	httpd_link_greeted(link);
	httpd_link_phase(link, HTTPD_BUSY);
	return call;
}

static void call_free(struct httpd_call *call)
{
	if (!call->held && !call->served)
		free(call);
}

const char *httpd_request_header(const struct httpd_request *request, const char *name)
{
	const struct httpd_call *call = (const struct httpd_call *)request;

	return MHD_lookup_connection_value(call->connection, MHD_HEADER_KIND, name);
}

/* ---- answering ---- */

static struct MHD_Response *response_of(struct httpd_reply *reply)
{
	struct MHD_Response *response;

	if (reply->body.failed || !reply->body.cap) {
		response =
			MHD_create_response_from_buffer(0, strbuf_empty, MHD_RESPMEM_PERSISTENT);
	} else {
		response = MHD_create_response_from_buffer_with_free_callback(reply->body.len,
									      reply->body.s, free);
		if (response)
			reply->body = (struct strbuf)STRBUF_INIT;
	}
	if (!response)
		return NULL;
	if (reply->content_type)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
					reply->content_type);
	for (size_t i = 0; i < reply->fields_count; i++)
		MHD_add_response_header(response, reply->fields[i].name, reply->fields[i].value);
	return response;
}

static void call_answer(struct httpd_call *call, struct httpd_reply *reply)
{
	call->status = reply->body.failed || !reply->status ? MHD_HTTP_INTERNAL_SERVER_ERROR
							    : reply->status;
	call->response = response_of(reply);
	call->stage = CALL_ANSWERS;
}

/* MHD_NO, for want of memory, cuts the client off. */
static enum MHD_Result call_send(struct httpd_call *call)
{
	if (!call->response)
		return MHD_NO;
	if (call->httpd->retired || call->stage == CALL_REFUSED)
		MHD_add_response_header(call->response, MHD_HTTP_HEADER_CONNECTION, "close");
	call->link->asking = false;
	call->answering = true;
	call->httpd->answering++;
	httpd_link_phase(call->link, HTTPD_BUSY); /* from now on it reads */
	return MHD_queue_response(call->connection, (unsigned int)call->status, call->response);
}

static const char *why_refused(int status)
{
	if (status == TOO_LARGE)
		return "the body is too large\n";
	if (status == BAD_REQUEST)
		return "the length of the body is given more than once\n";
	return "too many large requests at once, try again\n";
}

static enum MHD_Result call_refuse(struct httpd_call *call)
{
	struct httpd_reply reply = HTTPD_REPLY_INIT;

	reply.status = call->refusal;
	reply.content_type = "text/plain";
	strbuf_puts(&reply.body, why_refused(call->refusal));
	if (call->refusal == UNAVAILABLE)
		reply.fields[reply.fields_count++] = (struct httpd_field){ "Retry-After", "1" };
	call_answer(call, &reply);
	call->stage = CALL_REFUSED;
	strbuf_done(&reply.body);
	return call_send(call);
}

/* ---- waiting ---- */

static void call_hold(struct httpd_call *call)
{
	struct httpd_calls *waiting = &call->httpd->waiting;

	call->stage = CALL_WAITS;
	call->next = waiting->first;
	if (call->next)
		call->next->prev = call;
	waiting->first = call;
	call->link->asking = false;
	httpd_link_phase(call->link, HTTPD_WAITING);
	MHD_suspend_connection(call->connection);
}

static void call_release(struct httpd_call *call)
{
	*(call->prev ? &call->prev->next : &call->httpd->waiting.first) = call->next;
	if (call->next)
		call->next->prev = call->prev;
	call->prev = call->next = NULL;
	MHD_resume_connection(call->connection);
	httpd_kick(call->httpd);
}

struct httpd_later *httpd_suspend(const struct httpd_request *request)
{
	struct httpd_call *call = (struct httpd_call *)request;

	call->suspended = call->held = true;
	return (struct httpd_later *)call;
}

void httpd_answer(struct httpd_later *later, struct httpd_reply *reply)
{
	struct httpd_call *call = (struct httpd_call *)later;
	bool waits = call->stage == CALL_WAITS;

	call->held = false;
	if (call->served && call->stage != CALL_ANSWERS) {
		call_answer(call, reply);
		if (waits)
			call_release(call);
	}
	strbuf_done(&reply->body);
	call_free(call);
}

void httpd_calls_drop(struct httpd *httpd)
{
	struct httpd_reply reply = HTTPD_REPLY_INIT;

	reply.status = UNAVAILABLE;
	while (httpd->waiting.first) {
		struct httpd_call *call = httpd->waiting.first;
		call_answer(call, &reply);
		call_release(call);
	}
}

/* ---- as it comes ---- */

/* How long the body is going to be, as far as the head says. */
struct framing {
	uint32_t said; /* how often it is said */
	uint64_t len;
};

static enum MHD_Result find_framing(void *context, enum MHD_ValueKind kind, const char *name,
				    const char *value)
{
	struct framing *framing = context;
	bool length = strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;

	(void)kind;
	if (length && value && parse_u64(value, strlen(value), &framing->len) < 0)
		framing->len = UINT64_MAX;
	if (length || strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0)
		framing->said++;
	return MHD_YES;
}

/* The head is there.  Who contradicts itself, asks before it sends, or says that it will
 * send far too much, is answered now. */
static enum MHD_Result call_begin(struct httpd_call *call, const char *method)
{
	const char *type = httpd_request_header(&call->request, MHD_HTTP_HEADER_CONTENT_TYPE);
	struct framing framing = { 0 };

	call->stage = CALL_BODY;
	call->request.method = method;
	call->request.content_type = type ? type : "";
	MHD_get_connection_values(call->connection, MHD_HEADER_KIND, find_framing, &framing);
	if (framing.said > 1)
		call->refusal = BAD_REQUEST;
	else if (framing.len > call->httpd->options.max_body)
		call->refusal = TOO_LARGE;
	if (!call->refusal)
		return MHD_YES;
	call->stage = CALL_REFUSED;
	if (call->refusal == BAD_REQUEST || framing.len > HEARD_OUT_MAX ||
	    httpd_request_header(&call->request, MHD_HTTP_HEADER_EXPECT))
		return call_refuse(call);
	return MHD_YES;
}

static void give_back(struct httpd_call *call)
{
	call->httpd->bodies -= call->body.len;
	strbuf_done(&call->body);
}

/* Adds a piece of the body, or finds why not. */
static void call_add(struct httpd_call *call, const char *bytes, size_t len)
{
	struct httpd *httpd = call->httpd;

	if (len > httpd->options.max_body - call->body.len)
		call->refusal = TOO_LARGE;
	else if (len > httpd->options.max_bodies - httpd->bodies)
		call->refusal = UNAVAILABLE;
	else
		strbuf_add(&call->body, bytes, len);
	if (call->body.failed)
		call->refusal = UNAVAILABLE;
	if (!call->refusal) {
		httpd->bodies += len;
		return;
	}
	call->stage = CALL_REFUSED;
	give_back(call);
}

static enum MHD_Result call_hear(struct httpd_call *call, const char *bytes, size_t len)
{
	if (call->stage == CALL_BODY)
		call_add(call, bytes, len);
	if (call->stage != CALL_REFUSED)
		return MHD_YES;
	call->ignored += len;
	return call->ignored > HEARD_OUT_MAX ? MHD_NO : MHD_YES;
}

static enum MHD_Result call_handle(struct httpd_call *call)
{
	struct httpd_reply reply = HTTPD_REPLY_INIT;
	const struct httpd_options *options = &call->httpd->options;

	call->request.body = call->body.s;
	call->request.body_len = call->body.len;
	if (call->httpd->stopped)
		reply.status = UNAVAILABLE; /* nobody is to wait any more */
	else
		options->handler(options->context, &call->request, &reply);
	if (!call->suspended)
		call_answer(call, &reply);
	strbuf_done(&reply.body);
	if (call->stage == CALL_ANSWERS)
		return call_send(call);
	call_hold(call);
	return MHD_YES;
}

enum MHD_Result httpd_call_serve(void *context, struct MHD_Connection *connection,
				 const char *path, const char *method, const char *version,
				 const char *bytes, size_t *len, void **ret)
{
	struct httpd_call *call = *ret;
	size_t count = *len;

	(void)connection, (void)path, (void)version;
	((struct httpd *)context)->progress = true;
	if (!call)
		return MHD_NO; /* there was no memory for it */
	if (call->stage == CALL_HEAD)
		return call_begin(call, method);
	if (count) {
		*len = 0;
		return call_hear(call, bytes, count);
	}
	if (call->stage == CALL_REFUSED)
		return call_refuse(call);
	return call->stage == CALL_ANSWERS ? call_send(call) : call_handle(call);
}

void httpd_call_end(void *context, struct MHD_Connection *connection, void **ret,
		    enum MHD_RequestTerminationCode code)
{
	struct httpd_call *call = *ret;

	(void)connection, (void)code;
	((struct httpd *)context)->progress = true;
	if (!call)
		return;
	*ret = NULL;
	call->httpd->in_flight--;
	call->httpd->answering -= call->answering;
	call->link->asking = false;
	httpd_link_phase(call->link, HTTPD_IDLE);
	give_back(call);
	if (call->response)
		MHD_destroy_response(call->response);
	call->response = NULL;
	call->served = false;
	call_free(call);
}
