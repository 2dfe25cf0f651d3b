/* SPDX-License-Identifier: Apache-2.0 */
/* kubeconfig_user.c - an entry of users, but for plugins. */
#include "base/err.h"
#include "kube/kubeconfig.h"
#include "kube/pem.h"
#include "kube/token.h"
#include "wire/json.h"

#include <errno.h>
#include <string.h>

static int read_certificate(const struct kubeconfig_entry *entry, struct kube_config *config,
			    struct err *err)
{
	const struct json *user = entry->value;
	int result;
	if ((result = kubeconfig_path(entry, user, "client-certificate", &config->cert_file,
				      err)) < 0 ||
	    (result = kubeconfig_data(entry, user, "client-certificate-data",
				      pem_check_certificates, &config->cert_data, err)) < 0 ||
	    (result = kubeconfig_path(entry, user, "client-key", &config->key_file, err)) < 0 ||
	    (result = kubeconfig_data(entry, user, "client-key-data", pem_check_key,
				      &config->key_data, err)) < 0)
		return result;
	bool cert = config->cert_file || config->cert_data;
	bool key = config->key_file || config->key_data;
	if (cert && !key)
		return kubeconfig_wrong(entry, err,
					"client-certificate needs client-key or client-key-data");
	if (key && !cert)
		return kubeconfig_wrong(entry, err,
					"client-key needs client-certificate or "
					"client-certificate-data");
	if (config->cert_data)
		config->cert_file = NULL;
	if (config->key_data)
		config->key_file = NULL;
	return 0;
}

static int read_token(const struct kubeconfig_entry *entry, struct kube_config *config,
		      struct err *err)
{
	int result = kubeconfig_str(entry, entry->value, "token", &config->token, err);
	if (result < 0)
		return result;
	if (config->token) {
		size_t len = strlen(config->token);
		const char *token = token_trim(config->token, &len);
		if ((result = token_check(token, len, err)) < 0) {
			kubeconfig_wrong_field(entry, "token", err);
			return result;
		}
		config->token = arena_strndup(entry->arena, token, len);
		if (!config->token)
			return err_set(err, ENOMEM, "out of memory");
	}
	return kubeconfig_path(entry, entry->value, "tokenFile", &config->token_file, err);
}

static int read_basic(const struct kubeconfig_entry *entry, struct kube_config *config,
		      struct err *err)
{
	int result;
	if ((result = kubeconfig_header(entry, entry->value, "username", &config->username, err)) <
		    0 ||
	    (result = kubeconfig_header(entry, entry->value, "password", &config->password, err)) <
		    0)
		return result;
	if (config->password && !config->username)
		return kubeconfig_wrong(entry, err, "password needs a username");
	if (config->username && strchr(config->username, ':'))
		return kubeconfig_wrong(entry, err, "username cannot have a ':' in it");
	return 0;
}

/* A request has room for one Authorization. */
static int check_methods(const struct kubeconfig_entry *entry, const struct kube_config *config,
			 struct err *err)
{
	const char *token = config->token ? "token" : config->token_file ? "tokenFile" : NULL;
	const char *basic = config->username ? "username" : NULL;
	const char *exec = config->exec ? "exec" : NULL;
	const char *first = token ? token : basic;
	const char *second = token && basic ? basic : exec;
	if (first && second)
		return kubeconfig_wrong(entry, err,
					"%s and %s contradict each other; keep one of them", first,
					second);
	return 0;
}

static int read_extra(const struct kubeconfig_entry *entry, const struct json *extra,
		      struct kube_config *config, struct err *err)
{
	struct json_iter members = json_members(extra);
	struct json_member member;
	struct kube_extra *items = arena_array(entry->arena, json_len(extra) + 1, sizeof(*items));
	if (!items)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t n = 0; json_next_member(&members, &member); n++) {
		if (member.key_len == 0 || strlen(member.key) != member.key_len)
			return kubeconfig_wrong(entry, err, "as-user-extra has a bad key");
		items[n].key = arena_strndup(entry->arena, member.key, member.key_len);
		if (!items[n].key)
			return err_set(err, ENOMEM, "out of memory");
		int result = kubeconfig_strings(entry, extra, items[n].key, &items[n].values,
						&items[n].values_count, err);
		if (result < 0)
			return result;
	}
	config->as.extra = items;
	config->as.extra_count = json_len(extra);
	return 0;
}

static bool is_header_value(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return false;
	return true;
}

static int check_impersonation(const struct kubeconfig_entry *entry,
			       const struct kube_impersonation *as, struct err *err)
{
	if (!as->user && (as->uid || as->groups_count || as->extra_count))
		return kubeconfig_wrong(entry, err,
					"as-uid, as-groups and as-user-extra need a user in as");
	bool fine = true;
	for (size_t i = 0; i < as->groups_count; i++)
		fine = fine && is_header_value(as->groups[i]);
	for (size_t i = 0; i < as->extra_count; i++)
		for (size_t k = 0; k < as->extra[i].values_count; k++)
			fine = fine && is_header_value(as->extra[i].values[k]);
	if (!fine)
		return kubeconfig_wrong(entry, err,
					"as-groups and as-user-extra cannot have control "
					"characters or line ends");
	return 0;
}

int kubeconfig_read_impersonation(const struct kubeconfig_entry *entry, struct kube_config *config,
				  struct err *err)
{
	struct kube_impersonation *as = &config->as;
	const struct json *extra;
	int result;
	if ((result = kubeconfig_header(entry, entry->value, "as", &as->user, err)) < 0 ||
	    (result = kubeconfig_header(entry, entry->value, "as-uid", &as->uid, err)) < 0 ||
	    (result = kubeconfig_strings(entry, entry->value, "as-groups", &as->groups,
					 &as->groups_count, err)) < 0 ||
	    (result = kubeconfig_object(entry, entry->value, "as-user-extra", &extra, err)) < 0 ||
	    (result = read_extra(entry, extra, config, err)) < 0)
		return result;
	return check_impersonation(entry, as, err);
}

int kubeconfig_read_user(const struct kubeconfig_entry *entry, struct kube_config *config,
			 struct err *err)
{
	const struct json *exec;
	int result;
	enum json_type legacy = json_type(entry->value, "auth-provider");
	if (legacy != JSON_NONE && legacy != JSON_NULL)
		return kubeconfig_wrong(entry, err,
					"auth-provider is a legacy form that Kubernetes has "
					"removed; use an exec plugin (kubelogin, "
					"gke-gcloud-auth-plugin, ...) or a token instead");
	if ((result = read_certificate(entry, config, err)) < 0 ||
	    (result = read_token(entry, config, err)) < 0 ||
	    (result = read_basic(entry, config, err)) < 0 ||
	    (result = kubeconfig_read_impersonation(entry, config, err)) < 0 ||
	    (result = kubeconfig_object(entry, entry->value, "exec", &exec, err)) < 0)
		return result;
	if (exec && (result = kubeconfig_read_exec(entry, exec, config, err)) < 0)
		return result;
	return check_methods(entry, config, err);
}
