/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/token.h"

#include "base/err.h"
#include "kube/config.h"

#include <ctype.h>
#include <errno.h>

const char *token_trim(const char *s, size_t *n)
{
	size_t len = *n;
	while (len > 0 && isspace((unsigned char)s[len - 1]))
		len--;
	while (len > 0 && isspace((unsigned char)*s)) {
		s++;
		len--;
	}
	*n = len;
	return s;
}

int token_check(const char *s, size_t n, struct err *err)
{
	if (n == 0)
		return err_set(err, EINVAL, "there is no token in it");
	if (n > KUBE_TOKEN_MAX_BYTES)
		return err_set(err, EINVAL, "a token of more than %zu bytes is too long",
			       KUBE_TOKEN_MAX_BYTES);
	for (size_t i = 0; i < n; i++)
		if (!isgraph((unsigned char)s[i]))
			return err_set(err, EINVAL,
				       "the token has a blank, a control character or something "
				       "beyond ASCII in it, which a header cannot carry");
	return 0;
}
