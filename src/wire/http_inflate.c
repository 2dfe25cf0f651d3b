/* SPDX-License-Identifier: Apache-2.0 */
/* http_inflate.c - a body that came compressed with gzip. */
#include "wire/http_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#define GZIP_ONLY     16 /* beside the bits of the window */
#define INFLATE_BYTES 16384

struct http_inflate {
	z_stream stream;
	bool ended;
	char bytes[INFLATE_BYTES];
};

int http_inflate_new(struct http_inflate **ret)
{
	struct http_inflate *inflate = calloc(1, sizeof(*inflate));

	if (!inflate)
		return -ENOMEM;
	if (inflateInit2(&inflate->stream, GZIP_ONLY + MAX_WBITS) != Z_OK) {
		free(inflate);
		return -ENOMEM;
	}
	*ret = inflate;
	return 0;
}

void http_inflate_free(struct http_inflate *inflate)
{
	if (!inflate)
		return;
	inflateEnd(&inflate->stream);
	free(inflate);
}

bool http_inflate_ended(const struct http_inflate *inflate)
{
	return inflate->ended;
}

CURLcode http_inflate(struct http_call *call, const char *bytes, size_t len)
{
	struct http_inflate *state = call->inflate;
	z_stream *stream = &state->stream;

	stream->next_in = (Bytef *)bytes;
	stream->avail_in = (uInt)len;
	do {
		stream->next_out = (Bytef *)state->bytes;
		stream->avail_out = INFLATE_BYTES;
		int r = state->ended ? Z_DATA_ERROR : inflate(stream, Z_NO_FLUSH);
		if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
			return CURLE_BAD_CONTENT_ENCODING;
		state->ended = r == Z_STREAM_END;
		size_t out = INFLATE_BYTES - stream->avail_out;
		if (out && !http_reply_body(call, state->bytes, out))
			return CURLE_WRITE_ERROR;
	} while (stream->avail_in || (stream->avail_out == 0 && !state->ended));
	return CURLE_OK;
}
