/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/base64.h"

#include "base/strbuf.h"

#include <errno.h>
#include <stdint.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(struct strbuf *out, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i += 3) {
		size_t count = n - i < 3 ? n - i : 3;
		uint32_t bits = 0;
		for (size_t k = 0; k < 3; k++)
			bits = bits << 8 | (k < count ? (uint8_t)p[i + k] : 0);
		char group[4] = { '=', '=', '=', '=' };
		for (size_t k = 0; k <= count; k++)
			group[k] = alphabet[bits >> (18 - 6 * k) & 63];
		strbuf_add(out, group, sizeof(group));
	}
}

/* 0 to 63, or -1. */
static int digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Four characters at a time. */
struct group {
	uint32_t bits;
	unsigned count, padding;
};

static int group_add(struct group *group, char c)
{
	int value = digit(c);
	if (c == '=' && group->count >= 2) {
		group->padding++;
		value = 0;
	} else if (value < 0 || group->padding) {
		return -EINVAL;
	}
	group->bits = group->bits << 6 | (uint32_t)value;
	group->count++;
	return 0;
}

static void group_flush(struct group *group, struct strbuf *out)
{
	char bytes[3] = { (char)(group->bits >> 16), (char)(group->bits >> 8), (char)group->bits };
	strbuf_add(out, bytes, 3 - group->padding);
	group->bits = 0;
	group->count = 0; /* padding stays: nothing may follow it */
}

static int decode(struct strbuf *out, const char *s, size_t n)
{
	struct group group = { 0 };
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\n' || s[i] == '\r')
			continue;
		if ((group.padding && group.count == 0) || group_add(&group, s[i]) < 0)
			return -EINVAL;
		if (group.count == 4)
			group_flush(&group, out);
	}
	if (group.count != 0)
		return -EINVAL;
	return out->failed ? -ENOMEM : 0;
}

int base64_decode(struct strbuf *out, const char *s, size_t n)
{
	size_t before = out->len;
	int result = decode(out, s, n);
	if (result < 0)
		strbuf_truncate(out, before);
	return result;
}
