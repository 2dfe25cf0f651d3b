/* SPDX-License-Identifier: Apache-2.0 */
/* kubeconfig_cluster.c - an entry of clusters. */
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/endpoint.h"
#include "kube/kubeconfig.h"
#include "kube/pem.h"
#include "wire/json.h"
#include "wire/json_write.h"

#include <errno.h>
#include <string.h>

/* What a cluster says to credential plugins stands below this name. */
#define EXEC_EXTENSION "client.authentication.k8s.io/exec"

static int read_server(const struct kubeconfig_entry *entry, const char *master,
		       struct kube_config *config, struct err *err)
{
	const char *server;
	int result = kubeconfig_str(entry, entry->value, "server", &server, err);
	if (result < 0)
		return result;
	if (master) {
		if ((result = endpoint_server(entry->arena, master, &config->server, err)) < 0)
			err_prefix(err, "--master");
		return result;
	}
	if (!server)
		return kubeconfig_wrong(entry, err,
					"server is missing; it is the URL of the API server");
	if ((result = endpoint_server(entry->arena, server, &config->server, err)) < 0)
		kubeconfig_wrong_field(entry, "server", err);
	return result;
}

static int read_trust(const struct kubeconfig_entry *entry, struct kube_config *config,
		      struct err *err)
{
	const struct json *cluster = entry->value;
	int result;
	if ((result = kubeconfig_path(entry, cluster, "certificate-authority", &config->ca_file,
				      err)) < 0 ||
	    (result = kubeconfig_data(entry, cluster, "certificate-authority-data",
				      pem_check_certificates, &config->ca_data, err)) < 0 ||
	    (result = kubeconfig_bool(entry, cluster, "insecure-skip-tls-verify",
				      &config->insecure, err)) < 0)
		return result;
	if (config->insecure && (config->ca_file || config->ca_data))
		return kubeconfig_wrong(entry, err,
					"insecure-skip-tls-verify and certificate-authority%s "
					"contradict each other; remove one of them",
					config->ca_data ? "-data" : "");
	if (config->ca_data)
		config->ca_file = NULL;
	return 0;
}

static int read_proxy(const struct kubeconfig_entry *entry, struct kube_config *config,
		      struct err *err)
{
	int result = kubeconfig_str(entry, entry->value, "proxy-url", &config->proxy_url, err);
	if (result < 0 || !config->proxy_url)
		return result;
	if ((result = endpoint_proxy(config->proxy_url, err)) < 0)
		kubeconfig_wrong_field(entry, "proxy-url", err);
	return result;
}

int kubeconfig_read_cluster(const struct kubeconfig_entry *entry, const char *master,
			    struct kube_config *config, struct err *err)
{
	int result;
	if ((result = read_server(entry, master, config, err)) < 0 ||
	    (result = read_trust(entry, config, err)) < 0 ||
	    (result = kubeconfig_header(entry, entry->value, "tls-server-name",
					&config->tls_server_name, err)) < 0 ||
	    (result = read_proxy(entry, config, err)) < 0)
		return result;
	return kubeconfig_bool(entry, entry->value, "disable-compression",
			       &config->disable_compression, err);
}

int kubeconfig_read_extension(const struct kubeconfig_entry *entry, struct kube_config *config,
			      struct err *err)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_writer writer = JSON_WRITER_INIT(&text);
	const struct json *list, *item;
	int result = kubeconfig_array(entry, entry->value, "extensions", &list, err);
	if (result < 0)
		return result;
	struct json_iter items = json_items(list);
	while ((item = json_next(&items))) {
		const char *name = json_str(item, "name");
		const struct json *value = json_get(item, "extension");
		if (!name || strcmp(name, EXEC_EXTENSION) != 0 || !value)
			continue;
		json_add_value(&writer, value);
		config->exec_extension = arena_strndup(entry->arena, text.s, text.len);
		if (text.failed || !config->exec_extension)
			return err_set(err, ENOMEM, "out of memory");
		return 0;
	}
	return 0;
}
