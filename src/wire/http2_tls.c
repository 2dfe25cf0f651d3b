/* SPDX-License-Identifier: Apache-2.0 */
/* http2_tls.c - GnuTLS on bytes that the link has received, and into those it will send. */
#include "wire/http2.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <string.h>

static CURLcode complain(struct http2_link *link, CURLcode code, const char *what, int r)
{
	snprintf(link->reason, sizeof(link->reason), "%s: %s", what, gnutls_strerror(r));
	return code;
}

static ssize_t pull(gnutls_transport_ptr_t context, void *bytes, size_t size)
{
	struct http2_link *link = context;
	size_t len = link->in_len < size ? link->in_len : size;

	if (!len && !link->in_ended) {
		gnutls_transport_set_errno(link->tls, EAGAIN);
		return -1;
	}
	memcpy(bytes, link->in, len);
	link->in += len;
	link->in_len -= len;
	return (ssize_t)len;
}

static ssize_t push(gnutls_transport_ptr_t context, const void *bytes, size_t len)
{
	struct http2_link *link = context;

	strbuf_add(&link->out, bytes, len);
	if (!link->out.failed)
		return (ssize_t)len;
	gnutls_transport_set_errno(link->tls, ENOMEM);
	return -1;
}

/* ---- who we are, and whom we trust ---- */

/* Each connection looks at the files as they are then. */
static CURLcode load_files(struct http2_link *link)
{
	const struct http_options *options = &link->http->options;
	int r = gnutls_certificate_allocate_credentials(&link->credentials);

	if (r < 0)
		return complain(link, CURLE_OUT_OF_MEMORY, "TLS", r);
	if (options->cert_file) {
		r = gnutls_certificate_set_x509_key_file(link->credentials, options->cert_file,
							 options->key_file, GNUTLS_X509_FMT_PEM);
		if (r < 0)
			return complain(link, CURLE_SSL_CERTPROBLEM,
					"our certificate and key cannot be used", r);
	}
	if (options->insecure)
		return CURLE_OK;
	if (!options->ca_file) {
		gnutls_certificate_set_x509_system_trust(link->credentials);
		return CURLE_OK;
	}
	r = gnutls_certificate_set_x509_trust_file(link->credentials, options->ca_file,
						   GNUTLS_X509_FMT_PEM);
	if (r < 0)
		return complain(link, CURLE_SSL_CACERT_BADFILE,
				"the certificate authority cannot be read", r);
	return CURLE_OK;
}

static bool is_address(const char *name)
{
	struct in6_addr address;

	return inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1;
}

/* An address is looked for among the addresses.  The use matters where one authority makes
 * certificates for servers and for clients: a client is not to pass for the server.  One
 * that says none is for every use. */
static void set_wanted(struct http2_link *link)
{
	link->wanted[0].type = GNUTLS_DT_DNS_HOSTNAME;
	link->wanted[0].data = (unsigned char *)link->name;
	link->wanted[1].type = GNUTLS_DT_KEY_PURPOSE_OID;
	link->wanted[1].data = (unsigned char *)GNUTLS_KP_TLS_WWW_SERVER;
	gnutls_session_set_verify_cert2(link->tls, link->wanted, 2, 0);
}

static int set_name(struct http2_link *link)
{
	const char *name = link->name;
	int r = 0;

	if (!is_address(name))
		r = gnutls_server_name_set(link->tls, GNUTLS_NAME_DNS, name, strlen(name));
	if (r >= 0 && !link->http->options.insecure)
		set_wanted(link);
	return r;
}

CURLcode http2_tls_new(struct http2_link *link)
{
	static const gnutls_datum_t protocols[] = { { (unsigned char *)"h2", 2 },
						    { (unsigned char *)"http/1.1", 8 } };
	CURLcode code = load_files(link);

	if (code)
		return code;
	/* Servers list authorities as a hint.  One that lists others, or is behind somebody who
	 * does, would not learn who we are, and treat us as nobody. */
	int r = gnutls_init(&link->tls, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL |
						GNUTLS_NO_TICKETS | GNUTLS_FORCE_CLIENT_CERT);
	if (r >= 0)
		r = gnutls_set_default_priority_append(
			link->tls, "-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2", NULL, 0);
	if (r >= 0)
		r = gnutls_credentials_set(link->tls, GNUTLS_CRD_CERTIFICATE, link->credentials);
	if (r >= 0)
		r = gnutls_alpn_set_protocols(link->tls, protocols, 2, 0);
	if (r >= 0)
		r = set_name(link);
	if (r < 0)
		return complain(link, CURLE_SSL_CONNECT_ERROR, "TLS", r);
	gnutls_transport_set_ptr(link->tls, link);
	gnutls_transport_set_pull_function(link->tls, pull);
	gnutls_transport_set_push_function(link->tls, push);
	gnutls_handshake_set_timeout(link->tls, 0); /* the link has its own */
	return CURLE_OK;
}

/* ---- greeting ---- */

static CURLcode distrust(struct http2_link *link)
{
	gnutls_datum_t text = { 0 };
	unsigned status = gnutls_session_get_verify_cert_status(link->tls);

	if (gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0) < 0)
		return complain(link, CURLE_PEER_FAILED_VERIFICATION, "the server's certificate",
				GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR);
	snprintf(link->reason, sizeof(link->reason), "the server's certificate: %s", text.data);
	gnutls_free(text.data);
	size_t len = strlen(link->reason);
	while (len && link->reason[len - 1] == ' ')
		link->reason[--len] = '\0';
	return CURLE_PEER_FAILED_VERIFICATION;
}

/* What the other side says before it goes; `code` for all else. */
static CURLcode failed(struct http2_link *link, CURLcode code, const char *what, int r)
{
	if (r == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR)
		return distrust(link);
	if (r != GNUTLS_E_FATAL_ALERT_RECEIVED)
		return complain(link, code, what, r);
	snprintf(link->reason, sizeof(link->reason), "%s: the server sent the alert \"%s\"", what,
		 gnutls_alert_get_name(gnutls_alert_get(link->tls)));
	return code;
}

CURLcode http2_tls_greet(struct http2_link *link, bool *done)
{
	int r;

	/* Also "again": after a record that holds only a part of a message. */
	do
		r = gnutls_handshake(link->tls);
	while (r < 0 && (r == GNUTLS_E_AGAIN ? link->in_len > 0 : !gnutls_error_is_fatal(r)));
	*done = r >= 0;
	if (r >= 0 || r == GNUTLS_E_AGAIN)
		return CURLE_OK;
	gnutls_alert_send_appropriate(link->tls, r);
	return failed(link, CURLE_SSL_CONNECT_ERROR, "TLS", r);
}

bool http2_tls_speaks_http2(const struct http2_link *link)
{
	gnutls_datum_t protocol = { 0 };

	return gnutls_alpn_get_selected_protocol(link->tls, &protocol) == 0 &&
	       protocol.size == 2 && memcmp(protocol.data, "h2", 2) == 0;
}

/* ---- and then ---- */

CURLcode http2_tls_read(struct http2_link *link, char *bytes, size_t size, size_t *len)
{
	ssize_t r;

	*len = 0;
	/* GnuTLS also says "again" after a message of its own, a ticket or a change of keys, and
	 * leaves what lies behind it. */
	do
		r = gnutls_record_recv(link->tls, bytes, size);
	while (r < 0 && (r == GNUTLS_E_AGAIN ? link->in_len > 0 : !gnutls_error_is_fatal((int)r)));
	if (r == GNUTLS_E_AGAIN)
		return CURLE_OK;
	/* TLS 1.3: a client is through with the greeting before the server has looked at its
	 * certificate, and hears of it then. */
	if (r == GNUTLS_E_FATAL_ALERT_RECEIVED && link->state == HTTP2_SETTLING)
		return failed(link, CURLE_SSL_CONNECT_ERROR, "TLS", (int)r);
	if (r < 0 && r != GNUTLS_E_PREMATURE_TERMINATION)
		return failed(link, CURLE_RECV_ERROR, "cannot receive", (int)r);
	if (r <= 0) {
		link->in_ended = true;
		http2_link_note(link, "the server has closed the connection");
		return CURLE_RECV_ERROR;
	}
	*len = (size_t)r;
	return CURLE_OK;
}

CURLcode http2_tls_write(struct http2_link *link, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t r = gnutls_record_send(link->tls, bytes, len);
		if (r < 0)
			return complain(link, CURLE_SEND_ERROR, "cannot send", (int)r);
		bytes += r;
		len -= (size_t)r;
	}
	return CURLE_OK;
}

void http2_tls_done(struct http2_link *link)
{
	if (link->tls)
		gnutls_deinit(link->tls);
	if (link->credentials)
		gnutls_certificate_free_credentials(link->credentials);
}
