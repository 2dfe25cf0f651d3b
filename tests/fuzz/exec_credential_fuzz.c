/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a plugin says is a credential that can be sent, or an error. */
#include "fuzz.h"

#include "base/attr.h"
#include "base/err.h"
#include "kube/exec_credential.h"
#include "kube/pem.h"

#include <stdbool.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct exec_credential reply CLEANUP(exec_credential_done) = { 0 };
	struct err err = ERR_INIT;
	int result =
		exec_credential_parse((const char *)data, size, EXEC_CREDENTIAL_V1, &reply, &err);
	REQUIRE(result <= 0 && err.code == -result);
	if (result < 0) {
		REQUIRE(*err.text && !reply.doc && !reply.token && !reply.key);
		return 0;
	}
	REQUIRE(reply.doc && (reply.token || reply.key));
	REQUIRE(!reply.key == !reply.certificate);
	for (const char *c = reply.token; c && *c; c++)
		REQUIRE(*c > ' ' && *c < 0x7f);
	if (reply.key) {
		REQUIRE(pem_check_key(reply.key, strlen(reply.key), NULL) == 0);
		REQUIRE(pem_check_certificates(reply.certificate, strlen(reply.certificate),
					       NULL) == 0);
	}
	return 0;
}
