/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/exec_credential.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "kube/base64.h"
#include "kube/config.h"
#include "kube/pem.h"
#include "kube/timestamp.h"
#include "kube/token.h"
#include "wire/json.h"
#include "wire/json_write.h"

#include <errno.h>
#include <string.h>

/* --- The task --- */

static void add_str(struct json_writer *w, const char *key, const char *value)
{
	if (!value)
		return;
	json_add_key(w, key);
	json_add_str(w, value);
}

static void add_true(struct json_writer *w, const char *key, bool value)
{
	if (!value)
		return;
	json_add_key(w, key);
	json_add_bool(w, true);
}

static void add_ca(struct json_writer *w, const char *ca)
{
	struct strbuf base64 CLEANUP(strbuf_done) = STRBUF_INIT;
	if (!ca)
		return;
	base64_encode(&base64, ca, strlen(ca));
	w->out->failed |= base64.failed;
	add_str(w, "certificate-authority-data", base64.s);
}

/* What the cluster's extension holds is any JSON; it was written by us. */
static void add_extension(struct json_writer *w, const char *text)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	if (!text)
		return;
	if (json_parse("extension", text, strlen(text), NULL, &doc, NULL) < 0) {
		w->out->failed = true;
		return;
	}
	json_add_key(w, "config");
	json_add_value(w, json_root(doc));
}

static void add_cluster(struct json_writer *w, const struct kube_config *config, const char *ca)
{
	json_add_key(w, "cluster");
	json_open_object(w);
	add_str(w, "server", config->server);
	add_str(w, "tls-server-name", config->tls_server_name);
	add_true(w, "insecure-skip-tls-verify", config->insecure);
	add_ca(w, ca);
	add_str(w, "proxy-url", config->proxy_url);
	add_true(w, "disable-compression", config->disable_compression);
	add_extension(w, config->exec_extension);
	json_close_object(w);
}

void exec_info_write(struct strbuf *out, const struct kube_config *config, const char *ca)
{
	struct json_writer w = JSON_WRITER_INIT(out);
	json_open_object(&w);
	add_str(&w, "kind", "ExecCredential");
	add_str(&w, "apiVersion", config->exec->api_version);
	json_add_key(&w, "spec");
	json_open_object(&w);
	json_add_key(&w, "interactive");
	json_add_bool(&w, false);
	if (config->exec->provide_cluster_info)
		add_cluster(&w, config, ca);
	json_close_object(&w);
	json_close_object(&w);
}

/* --- The answer --- */

/* A string of the status; missing, null and "" say nothing. */
static int read_str(const struct json *status, const char *key, const char **ret, struct err *err)
{
	size_t len = 0;
	const char *s = json_strn(status, &len, key);
	enum json_type type = json_type(status, key);
	*ret = NULL;
	if (type == JSON_NONE || type == JSON_NULL || (s && len == 0))
		return 0;
	if (!s || strlen(s) != len)
		return err_set(err, EINVAL, "status.%s is not a string", key);
	*ret = s;
	return 0;
}

static int check_frame(const struct json *root, const char *api_version, struct err *err)
{
	const char *kind = json_str(root, "kind"), *version = json_str(root, "apiVersion");
	char shown[UTF8_SHOW_MAX];
	if (!kind || strcmp(kind, "ExecCredential") != 0)
		return err_set(err, EINVAL, "its output is not an ExecCredential: kind is \"%s\"",
			       kind ? utf8_show(kind, strlen(kind), shown) : "");
	if (!version || strcmp(version, api_version) != 0)
		return err_set(
			err, EINVAL,
			"it speaks \"%s\", but the kubeconfig says %s; make exec.apiVersion "
			"that of the plugin",
			version ? utf8_show(version, strlen(version), shown) : "", api_version);
	if (json_type(root, "status") != JSON_OBJECT)
		return err_set(err, EINVAL, "its ExecCredential has no status");
	return 0;
}

static int check_status(const struct exec_credential *reply, struct err *err)
{
	int result;
	if (!reply->certificate != !reply->key)
		return err_set(err, EINVAL, "its status has %s; both belong together",
			       reply->key ? "clientKeyData without clientCertificateData"
					  : "clientCertificateData without clientKeyData");
	if (!reply->token && !reply->key)
		return err_set(err, EINVAL, "its status has neither a token nor a certificate");
	if (reply->token && (result = token_check(reply->token, strlen(reply->token), err)) < 0) {
		err_prefix(err, "status.token");
		return result;
	}
	if (!reply->key)
		return 0;
	if ((result = pem_check_certificates(reply->certificate, strlen(reply->certificate),
					     err)) < 0)
		err_prefix(err, "status.clientCertificateData (PEM, not base64)");
	else if ((result = pem_check_key(reply->key, strlen(reply->key), err)) < 0)
		err_prefix(err, "status.clientKeyData (PEM, not base64)");
	return result;
}

static int read_expiry(const struct json *status, struct exec_credential *ret, struct err *err)
{
	const char *text;
	char shown[UTF8_SHOW_MAX];
	int result = read_str(status, "expirationTimestamp", &text, err);
	if (result < 0 || !text)
		return result;
	if (timestamp_parse(text, strlen(text), &ret->expires_wall_ns) < 0)
		return err_set(err, EINVAL, "status.expirationTimestamp \"%s\" is no time",
			       utf8_show(text, strlen(text), shown));
	ret->expires = true;
	return 0;
}

static int read_reply(const struct json *root, const char *api_version,
		      struct exec_credential *ret, struct err *err)
{
	const struct json *status = json_get(root, "status");
	int result;
	if ((result = check_frame(root, api_version, err)) < 0 ||
	    (result = read_str(status, "token", &ret->token, err)) < 0 ||
	    (result = read_str(status, "clientCertificateData", &ret->certificate, err)) < 0 ||
	    (result = read_str(status, "clientKeyData", &ret->key, err)) < 0 ||
	    (result = read_expiry(status, ret, err)) < 0)
		return result;
	return check_status(ret, err);
}

int exec_credential_parse(const char *text, size_t len, const char *api_version,
			  struct exec_credential *ret, struct err *err)
{
	static const struct json_limits limits = { .max_bytes = EXEC_REPLY_MAX_BYTES };
	struct exec_credential reply = { 0 };
	struct err local = ERR_INIT;
	err = err ? err : &local;
	int result = json_parse("its output", text, len, &limits, &reply.doc, err);
	if (result < 0)
		return result;
	result = read_reply(json_root(reply.doc), api_version, &reply, err);
	if (result < 0)
		exec_credential_done(&reply);
	else
		*ret = reply;
	return result;
}

void exec_credential_done(struct exec_credential *credential)
{
	json_doc_free(credential->doc);
	*credential = (struct exec_credential){ 0 };
}
