/* SPDX-License-Identifier: Apache-2.0 */
#include "identity.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/config.h"
#include "wire/file.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

static int out_of_memory(struct err *err)
{
	return err_set(err, ENOMEM, "out of memory");
}

/* What stands in the config, or in the file that it names; empty if neither. */
static int load_text(const char *data, const char *file, struct strbuf *ret, struct err *err)
{
	if (!data && file)
		return file_read(file, KUBE_PEM_MAX_BYTES, ret, err);
	strbuf_puts(ret, data ? data : "");
	return ret->failed ? out_of_memory(err) : 0;
}

static gnutls_datum_t datum(const struct strbuf *text)
{
	return (gnutls_datum_t){ (unsigned char *)text->s, (unsigned)text->len };
}

static int load_trust(const struct kube_config *config, gnutls_certificate_credentials_t to,
		      struct err *err)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	int result = load_text(config->ca_data, config->ca_file, &text, err);
	if (result < 0)
		return result;
	gnutls_datum_t pem = datum(&text);
	int count = text.len ? gnutls_certificate_set_x509_trust_mem(to, &pem, GNUTLS_X509_FMT_PEM)
			     : gnutls_certificate_set_x509_system_trust(to);
	return count < 0
		       ? err_set(err, EINVAL, "the server's authority: %s", gnutls_strerror(count))
		       : 0;
}

static int load_pair(const struct kube_config *config, gnutls_certificate_credentials_t to,
		     struct err *err)
{
	struct strbuf cert CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf key CLEANUP(strbuf_done) = STRBUF_INIT;
	int result = load_text(config->cert_data, config->cert_file, &cert, err);
	if (result == 0)
		result = load_text(config->key_data, config->key_file, &key, err);
	if (result < 0 || cert.len == 0)
		return result;
	gnutls_datum_t cert_pem = datum(&cert);
	gnutls_datum_t key_pem = datum(&key);
	result = gnutls_certificate_set_x509_key_mem(to, &cert_pem, &key_pem, GNUTLS_X509_FMT_PEM);
	return result < 0 ? err_set(err, EINVAL, "our certificate: %s", gnutls_strerror(result))
			  : 0;
}

static int load_credentials(const struct kube_config *config, struct identity *identity,
			    struct err *err)
{
	if (gnutls_certificate_allocate_credentials(&identity->credentials) < 0 ||
	    gnutls_certificate_allocate_credentials(&identity->nobody) < 0)
		return out_of_memory(err);
	int result = load_trust(config, identity->credentials, err);
	if (result == 0)
		result = load_trust(config, identity->nobody, err);
	if (result == 0)
		result = load_pair(config, identity->credentials, err);
	return result;
}

static int load_token(const struct kube_config *config, struct identity *identity, struct err *err)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	int result = config->token_file
			     ? file_read(config->token_file, KUBE_TOKEN_MAX_BYTES, &text, err)
			     : load_text(config->token, NULL, &text, err);
	if (result < 0)
		return result;
	while (text.len > 0 && strchr(" \r\n\t", text.s[text.len - 1]))
		strbuf_truncate(&text, text.len - 1);
	if (text.len == 0)
		return 0;
	struct strbuf value CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_addf(&value, "Bearer %s", text.s);
	identity->authorization = value.failed ? NULL : strdup(value.s);
	return identity->authorization ? 0 : out_of_memory(err);
}

static int resolve(const char *host, const char *port, struct sockaddr_storage *ret,
		   struct err *err)
{
	struct addrinfo *found = NULL;
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	int result = getaddrinfo(host, port, &hints, &found);
	if (result != 0)
		return err_set(err, EINVAL, "%s: %s", host, gai_strerror(result));
	memcpy(ret, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return 0;
}

/* "https://[::1]:6443/prefix", which config.h has checked. */
static int load_server(const struct kube_config *config, struct identity *identity,
		       struct err *err)
{
	static const char scheme[] = "https://";
	if (strncmp(config->server, scheme, strlen(scheme)) != 0)
		return err_set(err, EINVAL, "%s: the proxy speaks TLS only", config->server);
	const char *host = config->server + strlen(scheme);
	size_t host_len = strcspn(host, "/");
	identity->host = strndup(host, host_len);
	identity->prefix = strdup(host + host_len);
	char *name = strndup(host + (host[0] == '['), host_len - (host[0] == '['));
	if (!identity->host || !identity->prefix || !name) {
		free(name);
		return out_of_memory(err);
	}
	char *bracket = host[0] == '[' ? strchr(name, ']') : NULL;
	char *port = strchr(bracket ? bracket : name, ':');
	if (bracket)
		*bracket = '\0';
	if (port)
		*port++ = '\0';
	int result = resolve(name, port ? port : "443", &identity->address, err);
	if (result == 0 && !config->insecure) {
		identity->server_name =
			strdup(config->tls_server_name ? config->tls_server_name : name);
		result = identity->server_name ? 0 : out_of_memory(err);
	}
	free(name);
	return result;
}

int identity_load(const struct kube_config *config, struct identity *ret, struct err *err)
{
	struct identity identity = { 0 };
	if (config->exec || config->username || config->proxy_url || config->as.user)
		return err_set(err, EINVAL,
			       "%s: the proxy takes certificates and tokens, no exec plugin, "
			       "password, proxy or impersonation",
			       config->user_origin);
	int result = load_server(config, &identity, err);
	if (result == 0)
		result = load_token(config, &identity, err);
	if (result == 0)
		result = load_credentials(config, &identity, err);
	if (result < 0)
		identity_done(&identity);
	else
		*ret = identity;
	return result;
}

void identity_done(struct identity *identity)
{
	free(identity->host);
	free(identity->prefix);
	free(identity->server_name);
	free(identity->authorization);
	if (identity->credentials)
		gnutls_certificate_free_credentials(identity->credentials);
	if (identity->nobody)
		gnutls_certificate_free_credentials(identity->nobody);
	*identity = (struct identity){ 0 };
}
