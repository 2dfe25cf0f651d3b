/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/packed.h"

#include "base/attr.h"
#include "base/strbuf.h"
#include "kube/time.h"
#include "kube/timestamp.h"

#include <assert.h>
#include <string.h>

#define NS_PER_S  INT64_C(1000000000)
#define SHORT_MAX (PACKED_KNOWN - PACKED_SHORT) /* bytes of a short string, exclusive */
#define KNOWN_MAX (256 - PACKED_KNOWN)		/* words of one byte */

struct word {
	const char *text;
	size_t len;
};

#define WORD(text)                     \
	{                              \
		text, sizeof(text) - 1 \
	}

/* The first KNOWN_MAX take one byte, the others two. */
static const struct word known[] = {
#include "kube/packed_words.h"
};

static unsigned hash(const char *s, size_t len)
{
	unsigned first = (unsigned char)s[0], last = (unsigned char)s[len - 1];
	unsigned middle = (unsigned char)s[len / 2];
	return (unsigned)len * 131 + first * 31 + last * 17 + middle * 67;
}

void packed_words_init(struct packed_words *words)
{
	static_assert(ARRAY_SIZE(known) <= KNOWN_MAX + 256, "more words than codes");
	memset(words, 0, sizeof(*words));
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		unsigned at = hash(known[i].text, known[i].len) % PACKED_INDEX;
		while (words->index[at])
			at = (at + 1) % PACKED_INDEX;
		words->index[at] = (uint16_t)(i + 1);
	}
}

static int find_word(const struct packed_words *words, const char *s, size_t len)
{
	if (len == 0)
		return -1;
	for (unsigned at = hash(s, len) % PACKED_INDEX; words->index[at];
	     at = (at + 1) % PACKED_INDEX) {
		const struct word *word = &known[words->index[at] - 1];
		if (word->len == len && memcmp(word->text, s, len) == 0)
			return words->index[at] - 1;
	}
	return -1;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "35ef8954-6455-4013-9481-b531bf2d17cf", in lower case. */
static bool read_uuid(const char *s, size_t len, char bytes[16])
{
	size_t count = 0;
	if (len != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-')
		return false;
	for (size_t i = 0; i < 36; i += 2) {
		i += s[i] == '-';
		int high = hex_digit(s[i]), low = hex_digit(s[i + 1]);
		if (high < 0 || low < 0)
			return false;
		bytes[count++] = (char)(high << 4 | low);
	}
	return true;
}

static void write_uuid(const char *bytes, char text[36])
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < 16; i++) {
		unsigned char byte = (unsigned char)bytes[i];
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*text++ = '-';
		*text++ = digits[byte >> 4];
		*text++ = digits[byte & 15];
	}
}

/* A time that is written in just this way, as seconds. */
static bool read_time(const char *s, size_t len, uint32_t *ret)
{
	char again[KUBE_TIME_MAX];
	int64_t wall_ns;
	if (len != 20 || s[10] != 'T' || timestamp_parse(s, len, &wall_ns) < 0 || wall_ns < 0 ||
	    wall_ns / NS_PER_S > UINT32_MAX || memcmp(kube_time_format(wall_ns, again), s, len))
		return false;
	*ret = (uint32_t)(wall_ns / NS_PER_S);
	return true;
}

static void add_little(struct strbuf *out, char token, size_t number, size_t bytes)
{
	char text[8] = { token };
	for (size_t i = 1; i <= bytes; i++, number >>= 8)
		text[i] = (char)(number & 0xff);
	packed_add(out, text, bytes + 1);
}

static size_t read_little(const char *p, size_t bytes)
{
	size_t number = 0;
	while (bytes-- > 0)
		number = number << 8 | (unsigned char)p[bytes];
	return number;
}

void packed_add_string(struct strbuf *out, const struct packed_words *words, const char *s,
		       size_t len)
{
	char text[SHORT_MAX + 1];
	uint32_t seconds;
	int word = find_word(words, s, len);
	if (word >= KNOWN_MAX) {
		add_little(out, PACKED_WORD, (size_t)word - KNOWN_MAX, 1);
	} else if (word >= 0) {
		packed_put(out, (char)(PACKED_KNOWN + word));
	} else if (read_uuid(s, len, text + 1)) {
		text[0] = PACKED_UUID;
		packed_add(out, text, 17);
	} else if (read_time(s, len, &seconds)) {
		add_little(out, PACKED_TIME, seconds, 4);
	} else if (len < SHORT_MAX) {
		packed_put(out, (char)(PACKED_SHORT + len));
		packed_add(out, s, len);
	} else if (len < (size_t)1 << 24) {
		add_little(out, PACKED_LONG, len, 3);
		packed_add(out, s, len);
	} else {
		out->failed = true;
	}
}

void packed_add_number(struct strbuf *out, const char *digits, size_t len)
{
	assert(len < 256);
	add_little(out, PACKED_NUMBER, len, 1);
	packed_add(out, digits, len);
}

/* Where the writer of JSON is. */
struct unpack {
	struct strbuf *out;
	const struct packed_names *names;
	unsigned depth;
	bool object[PACKED_DEPTH_MAX + 1];
	bool filled[PACKED_DEPTH_MAX + 1];
	bool after_key;
};

/* The comma before a value or key. */
static void separate(struct unpack *u)
{
	if (!u->after_key && u->filled[u->depth])
		packed_put(u->out, ',');
	u->filled[u->depth] = true;
}

/* After a string, which was a key if it stood where one must stand; and after any other
 * value. */
static void went_by(struct unpack *u)
{
	bool was_key = u->object[u->depth] && !u->after_key;
	if (was_key)
		packed_put(u->out, ':');
	u->after_key = was_key;
}

static void add_plain(struct unpack *u, const char *s, size_t len)
{
	separate(u);
	packed_add(u->out, s, len);
	went_by(u);
}

/* Known words, UUIDs and times need no escapes. */
static void add_safe(struct unpack *u, const char *s, size_t len)
{
	separate(u);
	packed_put(u->out, '"');
	packed_add(u->out, s, len);
	packed_put(u->out, '"');
	went_by(u);
}

static bool is_safe(const char *s, size_t len)
{
	unsigned char found = 0;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];
		found |= (c < 0x20) | (c >= 0x7f) | (c == '"') | (c == '\\');
	}
	return !found;
}

static void add_string(struct unpack *u, const char *s, size_t len)
{
	if (is_safe(s, len)) {
		add_safe(u, s, len);
		return;
	}
	separate(u);
	packed_close(u->out);
	strbuf_add_json(u->out, s, len);
	went_by(u);
}

static void open_container(struct unpack *u, bool object)
{
	separate(u);
	packed_put(u->out, object ? '{' : '[');
	assert(u->depth < PACKED_DEPTH_MAX);
	u->depth++;
	u->object[u->depth] = object;
	u->filled[u->depth] = false;
	u->after_key = false;
}

static void close_container(struct unpack *u)
{
	assert(u->depth > 0 && !u->after_key);
	packed_put(u->out, u->object[u->depth] ? '}' : ']');
	u->depth--;
	u->after_key = false;
}

static void add_time(struct unpack *u, const char *p)
{
	char text[KUBE_TIME_MAX];
	kube_time_format((int64_t)read_little(p, 4) * NS_PER_S, text);
	add_safe(u, text, strlen(text));
}

static void add_uuid(struct unpack *u, const char *p)
{
	char text[36];
	write_uuid(p, text);
	add_safe(u, text, sizeof(text));
}

/* A token that has bytes behind it: returns how many. */
static size_t add_with_bytes(struct unpack *u, unsigned char token, const char *p)
{
	size_t len;
	switch (token) {
	case PACKED_NUMBER:
		len = read_little(p, 1);
		add_plain(u, p + 1, len);
		return len + 1;
	case PACKED_LONG:
		len = read_little(p, 3);
		add_string(u, p + 3, len);
		return len + 3;
	case PACKED_UUID:
		add_uuid(u, p);
		return 16;
	case PACKED_TIME:
		add_time(u, p);
		return 4;
	case PACKED_WORD:
		len = KNOWN_MAX + read_little(p, 1);
		add_safe(u, known[len].text, known[len].len);
		return 1;
	default:
		len = (size_t)token - PACKED_SHORT;
		add_string(u, p, len);
		return len;
	}
}

/* A token: returns how many bytes behind it belong to it. */
static size_t add_token(struct unpack *u, unsigned char token, const char *p)
{
	if (token >= PACKED_KNOWN) {
		const struct word *word = &known[token - PACKED_KNOWN];
		add_safe(u, word->text, word->len);
		return 0;
	}
	switch (token) {
	case PACKED_END:
		close_container(u);
		return 0;
	case PACKED_OBJECT:
	case PACKED_ARRAY:
		open_container(u, token == PACKED_OBJECT);
		return 0;
	case PACKED_TRUE:
		add_plain(u, "true", 4);
		return 0;
	case PACKED_FALSE:
		add_plain(u, "false", 5);
		return 0;
	case PACKED_NULL:
		add_plain(u, "null", 4);
		return 0;
	case PACKED_NAME:
		add_string(u, u->names->name, strlen(u->names->name));
		return 0;
	case PACKED_NAMESPACE:
		add_string(u, u->names->namespace, strlen(u->names->namespace));
		return 0;
	case PACKED_UID:
		add_string(u, u->names->uid, strlen(u->names->uid));
		return 0;
	default:
		return add_with_bytes(u, token, p);
	}
}

void packed_write_json(const char *packed, size_t len, const struct packed_names *names,
		       struct strbuf *out)
{
	struct unpack u = { .out = out, .names = names };
	const char *end = packed + len;
	while (packed < end) {
		unsigned char token = (unsigned char)*packed++;
		packed += add_token(&u, token, packed);
	}
	assert(packed == end && u.depth == 0);
	packed_close(out);
}
