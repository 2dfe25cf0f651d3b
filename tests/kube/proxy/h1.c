/* SPDX-License-Identifier: Apache-2.0 */
#include "h1.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/num.h"

#include <errno.h>
#include <string.h>

enum state {
	IDLE,	    /* before a message */
	START,	    /* inside a head */
	BODY,	    /* `left` bytes of it to come */
	UNTIL_END,  /* a body that ends with the connection */
	CHUNK_SIZE, /* the line before a chunk */
	CHUNK,	    /* `left` bytes of it to come */
	CHUNK_END,  /* the line end after it */
	TRAILER,    /* lines after the last chunk */
	ENDED,	    /* told with the next call */
	BROKEN,
};

#define LINE_MAX_BYTES ((size_t)4 << 10) /* before a chunk, or of a trailer */
#define LINES_MAX      ((uint32_t)64)	 /* trailers */

void h1_init(struct h1 *h1, enum h1_kind kind)
{
	*h1 = (struct h1){ .kind = kind,
			   .text = STRBUF_INIT_MAX(H1_HEAD_MAX),
			   .line = STRBUF_INIT_MAX(LINE_MAX_BYTES) };
}

void h1_done(struct h1 *h1)
{
	strbuf_done(&h1->text);
	strbuf_done(&h1->line);
	vec_done(&h1->list);
}

const char *head_get(const struct head *head, const char *name)
{
	for (size_t i = 0; i < head->count; i++)
		if (strcmp(head->headers[i].name, name) == 0)
			return head->headers[i].value;
	return NULL;
}

bool header_is_of_hop(const char *name)
{
	static const char *const names[] = { "connection",
					     "keep-alive",
					     "proxy-connection",
					     "te",
					     "trailer",
					     "upgrade",
					     "transfer-encoding",
					     "expect",
					     "http2-settings",
					     "proxy-authorization",
					     "host" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static bool is_token_char(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(const char *s)
{
	for (const char *c = s; *c; c++)
		if (!is_token_char((unsigned char)*c))
			return false;
	return *s;
}

/* Without control characters, which could mean something to the next reader. */
static bool is_printable(const char *s)
{
	for (const unsigned char *c = (const unsigned char *)s; *c; c++)
		if ((*c < ' ' && *c != '\t') || *c == 0x7f)
			return false;
	return true;
}

static char *trim(char *s)
{
	s += strspn(s, " \t");
	size_t len = strlen(s);
	while (len > 0 && strchr(" \t", s[len - 1]))
		s[--len] = '\0';
	return s;
}

/* "HTTP/1.1" or "HTTP/1.0". */
static int parse_version(struct h1 *h1, const char *s, struct err *err)
{
	if (strcmp(s, "HTTP/1.1") != 0 && strcmp(s, "HTTP/1.0") != 0)
		return err_set(err, EINVAL, "not HTTP/1.1: \"%.20s\"", s);
	h1->http10 = s[7] == '0';
	h1->close = h1->http10;
	return 0;
}

static int parse_request_line(struct h1 *h1, char *line, struct err *err)
{
	char *target = strchr(line, ' ');
	char *version = target ? strchr(target + 1, ' ') : NULL;
	if (!version)
		return err_set(err, EINVAL, "not a request: \"%.40s\"", line);
	*target++ = '\0';
	*version++ = '\0';
	if (!is_token(line) || (*target != '/' && strcmp(target, "*") != 0) ||
	    !is_printable(target) || strchr(target, '\t'))
		return err_set(err, EINVAL, "malformed request line");
	h1->head.method = line;
	h1->head.target = target;
	return parse_version(h1, version, err);
}

static int parse_status_line(struct h1 *h1, char *line, struct err *err)
{
	char *status = strchr(line, ' ');
	if (!status)
		return err_set(err, EINVAL, "not a reply: \"%.40s\"", line);
	*status++ = '\0';
	uint32_t code;
	if ((status[0] && status[1] && status[2] && status[3] && status[3] != ' ') ||
	    parse_u32(status, strnlen(status, 3), &code) < 0 || code < 100)
		return err_set(err, EINVAL, "malformed status line");
	h1->head.status = (int)code;
	return parse_version(h1, line, err);
}

static int parse_header(struct h1 *h1, char *line, struct err *err)
{
	char *value = strchr(line, ':');
	if (!value)
		return err_set(err, EINVAL, "a header without ':'");
	*value++ = '\0';
	if (!is_token(line) || !is_printable(value))
		return err_set(err, EINVAL, "malformed header \"%.40s\"", line);
	for (char *c = line; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	if (h1->list.len >= H1_HEADERS_MAX)
		return err_set(err, E2BIG, "more than %d headers", H1_HEADERS_MAX);
	struct header header = { line, trim(value) };
	return vec_push(&h1->list, header) < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
}

/* Whether a list like "keep-alive, Upgrade" has the word. */
static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);
	for (const char *s = list; *s;) {
		s += strspn(s, ", \t");
		size_t n = strcspn(s, ", \t");
		if (n == len && strncasecmp(s, word, n) == 0)
			return true;
		s += n;
	}
	return false;
}

/* How the body ends, from the headers: 0 or -EINVAL. */
static int parse_framing(struct h1 *h1, struct err *err)
{
	bool chunked = false;
	h1->head.length = -1;
	for (size_t i = 0; i < h1->list.len; i++) {
		const struct header *header = &h1->list.items[i];
		if (strcmp(header->name, "content-length") == 0) {
			int64_t length;
			if (h1->head.length >= 0 ||
			    parse_i64(header->value, strlen(header->value), &length) < 0 ||
			    length < 0)
				return err_set(err, EINVAL, "malformed Content-Length");
			h1->head.length = length;
		} else if (strcmp(header->name, "transfer-encoding") == 0) {
			if (chunked || strcasecmp(header->value, "chunked") != 0)
				return err_set(err, EINVAL, "unknown Transfer-Encoding");
			chunked = true;
		} else if (strcmp(header->name, "connection") == 0) {
			h1->close |= has_word(header->value, "close");
		}
	}
	if (chunked && (h1->head.length >= 0 || h1->http10))
		return err_set(err, EINVAL, "Transfer-Encoding where it must not be");
	if (chunked)
		h1->state = CHUNK_SIZE;
	else if (h1->head.length >= 0)
		h1->state = BODY;
	else
		h1->state = h1->kind == H1_REPLIES ? UNTIL_END : ENDED;
	strbuf_reset(&h1->line);
	h1->left = h1->head.length > 0 ? (uint64_t)h1->head.length : 0;
	return 0;
}

/* What needs no body by its nature, whatever the headers say. */
static void apply_nature(struct h1 *h1)
{
	int status = h1->head.status;
	bool none = h1->kind == H1_REPLIES &&
		    (h1->bodyless || status < 200 || status == 204 || status == 304);
	if (none || (h1->state == BODY && h1->left == 0))
		h1->state = ENDED;
	h1->head.has_body = h1->state != ENDED;
	if (h1->state == UNTIL_END)
		h1->close = true;
}

/* The head is whole in `text`, with the empty line at its end. */
static int parse_head(struct h1 *h1, struct err *err)
{
	if (memchr(h1->text.s, '\0', h1->text.len))
		return err_set(err, EINVAL, "a NUL byte in a head");
	bool first = true;
	for (char *line = h1->text.s; line[0] != '\r' || line[1] != '\n';) {
		char *end = strstr(line, "\r\n");
		*end = '\0';
		int result = !first		       ? parse_header(h1, line, err)
			     : h1->kind == H1_REQUESTS ? parse_request_line(h1, line, err)
						       : parse_status_line(h1, line, err);
		if (result < 0)
			return result;
		first = false;
		line = end + 2;
	}
	if (first)
		return err_set(err, EINVAL, "an empty head");
	h1->head.headers = h1->list.items;
	h1->head.count = h1->list.len;
	int result = parse_framing(h1, err);
	if (result == 0)
		apply_nature(h1);
	return result;
}

static void begin(struct h1 *h1)
{
	strbuf_reset(&h1->text);
	h1->list.len = 0;
	h1->head = (struct head){ .length = -1 };
	h1->close = h1->http10 = false;
	h1->trailers = 0;
	h1->state = START;
}

/* Moves bytes up to and with the next line end.  True: there was one. */
static bool take_line(struct strbuf *text, const char **bytes, size_t *len)
{
	const char *end = memchr(*bytes, '\n', *len);
	size_t n = end ? (size_t)(end - *bytes) + 1 : *len;
	strbuf_add(text, *bytes, n);
	*bytes += n;
	*len -= n;
	return end;
}

static bool ends_with(const struct strbuf *text, const char *end, size_t n)
{
	return text->len >= n && memcmp(text->s + text->len - n, end, n) == 0;
}

static enum h1_event bad(struct h1 *h1)
{
	h1->state = BROKEN;
	return H1_BAD;
}

static enum h1_event next_head(struct h1 *h1, const char **bytes, size_t *len, struct err *err)
{
	while (*len > 0) {
		bool line = take_line(&h1->text, bytes, len);
		if (h1->text.failed) {
			err_set(err, E2BIG, "a head of more than %zu bytes", H1_HEAD_MAX);
			return bad(h1);
		}
		if (!line)
			return H1_MORE;
		if (!ends_with(&h1->text, "\r\n", 2)) {
			err_set(err, EINVAL, "a line of the head ends without CR");
			return bad(h1);
		}
		/* An empty line before a request is to be ignored (RFC 9112 §2.2). */
		if (h1->text.len == 2)
			strbuf_reset(&h1->text);
		else if (ends_with(&h1->text, "\r\n\r\n", 4))
			return parse_head(h1, err) < 0 ? bad(h1) : H1_HEAD;
	}
	return H1_MORE;
}

/* The number before a chunk; its extensions mean nothing to anybody. */
static int parse_chunk_size(struct h1 *h1, struct err *err)
{
	const char *line = h1->line.s;
	uint64_t size = 0;
	size_t digits = strspn(line, "0123456789abcdefABCDEF");
	if (digits == 0 || digits > 15 || !line[digits] || !strchr(";\r \t", line[digits]))
		return err_set(err, EINVAL, "malformed size of a chunk");
	for (size_t i = 0; i < digits; i++) {
		char c = line[i];
		size = size * 16 + (uint64_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
	}
	h1->left = size;
	h1->state = size ? CHUNK : TRAILER;
	return 0;
}

static int parse_line(struct h1 *h1, struct err *err)
{
	bool empty = h1->line.len == 2;
	if (h1->state == CHUNK_SIZE)
		return parse_chunk_size(h1, err);
	if (h1->state == CHUNK_END) {
		h1->state = CHUNK_SIZE;
		return empty ? 0 : err_set(err, EINVAL, "a chunk is longer than it said");
	}
	if (++h1->trailers > LINES_MAX)
		return err_set(err, E2BIG, "more than %u trailers", LINES_MAX);
	h1->state = empty ? ENDED : TRAILER;
	return 0;
}

static enum h1_event next_line(struct h1 *h1, const char **bytes, size_t *len, struct err *err)
{
	bool whole = take_line(&h1->line, bytes, len);
	if (h1->line.failed) {
		err_set(err, E2BIG, "a line of more than %zu bytes", LINE_MAX_BYTES);
		return bad(h1);
	}
	if (!whole)
		return H1_MORE;
	if (!ends_with(&h1->line, "\r\n", 2)) {
		err_set(err, EINVAL, "a line of a chunk ends without CR");
		return bad(h1);
	}
	int result = parse_line(h1, err);
	strbuf_reset(&h1->line);
	return result < 0 ? bad(h1) : H1_MORE;
}

static enum h1_event next_body(struct h1 *h1, const char **bytes, size_t *len,
			       struct h1_piece *body)
{
	size_t n = *len;
	if (h1->state != UNTIL_END && n > h1->left)
		n = (size_t)h1->left;
	*body = (struct h1_piece){ *bytes, n };
	*bytes += n;
	*len -= n;
	if (h1->state == UNTIL_END)
		return H1_BODY;
	h1->left -= n;
	if (h1->left == 0)
		h1->state = h1->state == CHUNK ? CHUNK_END : ENDED;
	return H1_BODY;
}

/* One step; H1_MORE also if there is more to do. */
static enum h1_event step(struct h1 *h1, const char **bytes, size_t *len, struct h1_piece *body,
			  struct err *err)
{
	switch ((enum state)h1->state) {
	case IDLE:
		begin(h1);
		return H1_MORE;
	case START:
		return next_head(h1, bytes, len, err);
	case BODY:
	case UNTIL_END:
	case CHUNK:
		return next_body(h1, bytes, len, body);
	case CHUNK_SIZE:
	case CHUNK_END:
	case TRAILER:
		return next_line(h1, bytes, len, err);
	case ENDED:
	case BROKEN:
		break;
	}
	return H1_MORE;
}

enum h1_event h1_next(struct h1 *h1, const char **bytes, size_t *len, struct h1_piece *body,
		      struct err *err)
{
	enum h1_event event = H1_MORE;
	*body = (struct h1_piece){ 0 };
	while (event == H1_MORE && *len > 0 && h1->state != ENDED && h1->state != BROKEN)
		event = step(h1, bytes, len, body, err);
	if (event != H1_MORE)
		return event;
	if (h1->state == BROKEN) {
		err_set(err, EINVAL, "nothing is read after an error");
		return H1_BAD;
	}
	if (h1->state != ENDED)
		return H1_MORE;
	h1->state = IDLE;
	return H1_END;
}

bool h1_is_inside(const struct h1 *h1)
{
	return h1->state != IDLE && (h1->state != START || h1->text.len > 0);
}

bool h1_eof(struct h1 *h1)
{
	bool fine = !h1_is_inside(h1) || h1->state == UNTIL_END || h1->state == ENDED;
	h1->state = BROKEN;
	return fine;
}
