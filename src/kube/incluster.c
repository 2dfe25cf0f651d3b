/* SPDX-License-Identifier: Apache-2.0 */
/* incluster.c - the service account that the kubelet mounts into every pod. */
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/check.h"
#include "kube/endpoint.h"
#include "kube/kubeconfig.h"
#include "kube/token.h"
#include "wire/file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const char *join(struct arena *arena, const char *folder, const char *name)
{
	struct strbuf path CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_addf(&path, "%s/%s", folder, name);
	return path.failed ? NULL : arena_strndup(arena, path.s, path.len);
}

/* The content is read by credentials.h, again and again. */
static int check_there(const char *path, struct err *err)
{
	if (access(path, R_OK) == 0)
		return 0;
	return err_set(err, errno,
		       "cannot read %s of the service account: %s; does the pod have "
		       "automountServiceAccountToken: false?",
		       path, strerror(errno));
}

/* Without the file we are where everybody is. */
static int read_namespace(const char *folder, struct kube_config *config, struct err *err)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	const char *path = join(&config->arena, folder, "namespace");
	if (!path)
		return err_set(err, ENOMEM, "out of memory");
	config->namespace = "default";
	int result = file_read(path, 4096, &text, err);
	if (result == -ENOENT)
		return 0;
	if (result < 0)
		return result;
	size_t len = text.len;
	const char *name = token_trim(text.s, &len);
	config->namespace = arena_strndup(&config->arena, name, len);
	if (!config->namespace)
		return err_set(err, ENOMEM, "out of memory");
	if ((result = kube_check_label_name("namespace", config->namespace, err)) < 0)
		err_prefix(err, "%s", path);
	return result;
}

static int read_server(const char *host, const char *port, const char *master,
		       struct kube_config *config, struct err *err)
{
	int result;
	if (master) {
		if ((result = endpoint_server(&config->arena, master, &config->server, err)) < 0)
			err_prefix(err, "--master");
		return result;
	}
	if (!port || !*port)
		return err_set(
			err, EINVAL,
			"KUBERNETES_SERVICE_HOST is set but KUBERNETES_SERVICE_PORT is not; "
			"set both or name a kubeconfig");
	if ((result = endpoint_of(&config->arena, host, port, &config->server, err)) < 0)
		err_prefix(err, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT");
	return result;
}

int incluster_read(const char *host, const char *port, const char *folder, const char *master,
		   struct kube_config *config, struct err *err)
{
	struct strbuf origin CLEANUP(strbuf_done) = STRBUF_INIT;
	int result = read_server(host, port, master, config, err);
	if (result < 0)
		return result;
	strbuf_addf(&origin, "the service account in %s", folder);
	config->in_cluster = true;
	config->token_file = join(&config->arena, folder, "token");
	config->ca_file = join(&config->arena, folder, "ca.crt");
	config->cluster_origin = "the environment of the pod";
	config->user_origin = arena_strndup(&config->arena, origin.s, origin.len);
	if (origin.failed || !config->token_file || !config->ca_file || !config->user_origin)
		return err_set(err, ENOMEM, "out of memory");
	if ((result = check_there(config->token_file, err)) < 0 ||
	    (result = check_there(config->ca_file, err)) < 0)
		return result;
	return read_namespace(folder, config, err);
}
