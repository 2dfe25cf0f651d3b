/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - replies that the proxy makes itself. */
#ifndef GS_TESTS_KUBE_PROXY_ANSWER_H
#define GS_TESTS_KUBE_PROXY_ANSWER_H

#include <stdint.h>

#include "fault.h"

struct stream;

/* A whole reply of this form, in the words of the API server where there are some;
 * message NULL: what belongs to the status.  The stream has ended after it. */
void answer_fault(struct stream *stream, const struct fault *fault, const char *message);

/* A whole reply 200 with this JSON. */
void answer_json(struct stream *stream, const char *json);

#endif
