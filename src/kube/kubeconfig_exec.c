/* SPDX-License-Identifier: Apache-2.0 */
/* kubeconfig_exec.c - the exec plugin of an entry of users. */
#include "base/err.h"
#include "base/utf8.h"
#include "kube/exec_credential.h"
#include "kube/kubeconfig.h"
#include "wire/json.h"

#include <errno.h>
#include <string.h>

static int read_version(const struct kubeconfig_entry *entry, const struct json *exec,
			struct kube_exec *ret, struct err *err)
{
	char shown[UTF8_SHOW_MAX];
	int result = kubeconfig_str(entry, exec, "apiVersion", &ret->api_version, err);
	if (result < 0)
		return result;
	if (!ret->api_version)
		return kubeconfig_wrong(entry, err, "exec.apiVersion is missing; it is %s or %s",
					EXEC_CREDENTIAL_V1, EXEC_CREDENTIAL_V1BETA1);
	if (strcmp(ret->api_version, EXEC_CREDENTIAL_V1) != 0 &&
	    strcmp(ret->api_version, EXEC_CREDENTIAL_V1BETA1) != 0)
		return kubeconfig_wrong(
			entry, err, "exec.apiVersion \"%s\" is not known; use %s or %s",
			utf8_show(ret->api_version, strlen(ret->api_version), shown),
			EXEC_CREDENTIAL_V1, EXEC_CREDENTIAL_V1BETA1);
	return 0;
}

/* Nobody sits before a daemon: a plugin may not insist on asking. */
static int check_mode(const struct kubeconfig_entry *entry, const struct json *exec,
		      const struct kube_exec *plugin, struct err *err)
{
	const char *mode;
	char shown[UTF8_SHOW_MAX];
	int result = kubeconfig_str(entry, exec, "interactiveMode", &mode, err);
	if (result < 0)
		return result;
	if (!mode && strcmp(plugin->api_version, EXEC_CREDENTIAL_V1) == 0)
		return kubeconfig_wrong(
			entry, err,
			"exec.interactiveMode is missing; with %s it must be Never "
			"or IfAvailable",
			EXEC_CREDENTIAL_V1);
	if (!mode || strcmp(mode, "Never") == 0 || strcmp(mode, "IfAvailable") == 0)
		return 0;
	if (strcmp(mode, "Always") == 0)
		return kubeconfig_wrong(entry, err,
					"exec.interactiveMode is Always, but nobody is there to "
					"answer the plugin; use one that can do without (Never or "
					"IfAvailable)");
	return kubeconfig_wrong(entry, err,
				"exec.interactiveMode \"%s\" is not known; use Never or "
				"IfAvailable",
				utf8_show(mode, strlen(mode), shown));
}

static int read_command(const struct kubeconfig_entry *entry, const struct json *exec,
			struct kube_exec *ret, struct err *err)
{
	int result = kubeconfig_str(entry, exec, "command", &ret->command, err);
	if (result < 0)
		return result;
	if (!ret->command)
		return kubeconfig_wrong(entry, err,
					"exec.command is missing; it is the plugin to run");
	if (strchr(ret->command, '/'))
		return kubeconfig_path(entry, exec, "command", &ret->command, err);
	return 0;
}

static int read_env(const struct kubeconfig_entry *entry, const struct json *exec,
		    struct kube_exec *ret, struct err *err)
{
	const struct json *list, *item;
	int result = kubeconfig_array(entry, exec, "env", &list, err);
	if (result < 0)
		return result;
	struct kube_env *env = arena_array(entry->arena, json_len(list) + 1, sizeof(*env));
	if (!env)
		return err_set(err, ENOMEM, "out of memory");
	struct json_iter items = json_items(list);
	for (size_t n = 0; (item = json_next(&items)); n++) {
		if ((result = kubeconfig_str(entry, item, "name", &env[n].name, err)) < 0 ||
		    (result = kubeconfig_str(entry, item, "value", &env[n].value, err)) < 0)
			return result;
		if (!env[n].name || strchr(env[n].name, '='))
			return kubeconfig_wrong(entry, err, "exec.env[%zu] has no proper name", n);
		if (!env[n].value)
			env[n].value = "";
	}
	ret->env = env;
	ret->env_count = json_len(list);
	return 0;
}

int kubeconfig_read_exec(const struct kubeconfig_entry *entry, const struct json *exec,
			 struct kube_config *config, struct err *err)
{
	struct kube_exec *plugin = arena_alloc(entry->arena, sizeof(*plugin));
	int result;
	if (!plugin)
		return err_set(err, ENOMEM, "out of memory");
	if ((result = read_version(entry, exec, plugin, err)) < 0 ||
	    (result = check_mode(entry, exec, plugin, err)) < 0 ||
	    (result = read_command(entry, exec, plugin, err)) < 0 ||
	    (result = kubeconfig_strings(entry, exec, "args", &plugin->args, &plugin->args_count,
					 err)) < 0 ||
	    (result = read_env(entry, exec, plugin, err)) < 0 ||
	    (result = kubeconfig_str(entry, exec, "installHint", &plugin->install_hint, err)) < 0)
		return result;
	config->exec = plugin;
	return kubeconfig_bool(entry, exec, "provideClusterInfo", &plugin->provide_cluster_info,
			       err);
}
