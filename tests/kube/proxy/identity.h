/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h - what a kubeconfig says about the server and about us, ready for TLS.
 *
 * Certificates and tokens are read once; exec plugins, passwords and proxies are not
 * for a test's proxy and are refused.
 */
#ifndef GS_TESTS_KUBE_PROXY_IDENTITY_H
#define GS_TESTS_KUBE_PROXY_IDENTITY_H

#include <gnutls/gnutls.h>
#include <sys/socket.h>

struct err;
struct kube_config;

struct identity {
	struct sockaddr_storage address;
	char *host;				      /* as the Host header has it */
	char *prefix;				      /* of every path, "" mostly */
	char *server_name;			      /* to be verified; NULL: whatever it is */
	char *authorization;			      /* NULL: none */
	gnutls_certificate_credentials_t credentials; /* who the config says we are */
	gnutls_certificate_credentials_t nobody;      /* without certificate of ours */
};

/* 0, -EINVAL, -ENOMEM, or why a file cannot be read. */
int identity_load(const struct kube_config *config, struct identity *ret, struct err *err);
void identity_done(struct identity *identity);

#endif
