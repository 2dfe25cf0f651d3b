/* SPDX-License-Identifier: Apache-2.0 */
/* Where a configuration is looked for; what one file says is in kubeconfig_test.c. */
#include "kube_files.h"

#include "base/err.h"
#include "kube/config.h"

#include <errno.h>

#define CERT "-----BEGIN CERTIFICATE-----\nY2VydA==\n-----END CERTIFICATE-----\n"

static struct kube_config *load(struct files *files, struct kube_config_source source)
{
	struct err err = ERR_INIT;
	struct kube_config *config = NULL;
	source.getenv = files_getenv;
	source.env = files;
	int result = kube_config_load(&source, &config, &err);
	CHECKF(result == 0, "%s", err.text);
	return config;
}

static int load_fails(struct files *files, struct kube_config_source source, struct err *err)
{
	struct kube_config *config = NULL;
	source.getenv = files_getenv;
	source.env = files;
	int result = kube_config_load(&source, &config, err);
	CHECK(result < 0 && config == NULL && err->code == -result);
	return result;
}

#define ONE(cluster, server)                                              \
	"current-context: " cluster "\ncontexts: [{name: " cluster        \
	", context: {cluster: " cluster "}}]\nclusters: [{name: " cluster \
	", cluster: {server: 'https://" server "', certificate-authority: ca}}]\n"

TEST(the_file_that_was_named_comes_first)
{
	struct files files CLEANUP(files_done);
	files_init(&files);
	const char *named = files_write(&files, "named", ONE("a", "named"));
	files_setenv(&files, "KUBECONFIG", files_write(&files, "listed", ONE("b", "listed")));
	struct kube_config *config CLEANUP(kube_config_freep) =
		load(&files, (struct kube_config_source){ .path = named });
	CHECK_STR(config->server, "https://named");
}

TEST(the_file_that_was_named_must_be_there)
{
	struct files files CLEANUP(files_done);
	struct err err = ERR_INIT;
	files_init(&files);
	files_setenv(&files, "KUBECONFIG", files_write(&files, "listed", ONE("b", "listed")));
	const char *path = files_path(&files, "missing");
	CHECK_INT(load_fails(&files, (struct kube_config_source){ .path = path }, &err), -ENOENT);
	CHECK(strstr(err.text, path));
	path = files_write(&files, "empty", "");
	CHECK_INT(load_fails(&files, (struct kube_config_source){ .path = path }, &err), -EINVAL);
	CHECK(strstr(err.text, path));
}

TEST(of_listed_files_the_first_that_says_something_wins)
{
	struct files files CLEANUP(files_done);
	char list[512];
	files_init(&files);
	files_folder(&files, "one");
	files_folder(&files, "two");
	files_write(&files, "one/config",
		    "clusters: [{name: c, cluster: {server: 'https://one'}}]\n"
		    "users: [{name: u, user: {tokenFile: tok, client-certificate: crt, "
		    "client-key: key}}]\n");
	files_write(&files, "two/config",
		    "current-context: x\n"
		    "contexts: [{name: x, context: {cluster: c, user: u, namespace: ns}}]\n"
		    "clusters: [{name: c, cluster: {server: 'https://two', tls-server-name: t}}, "
		    "{name: d, cluster: {server: 'https://d', certificate-authority: ca}}]\n"
		    "users: [{name: u, user: {token: t}}]\n");
	files_write(&files, "three",
		    "current-context: z\n"
		    "contexts: [{name: z, context: {cluster: d}}]\n");
	snprintf(list, sizeof(list), "%s/one/config::%s/missing:%s/two/config:%s/three:%s/three",
		 files.folder, files.folder, files.folder, files.folder, files.folder);
	files_setenv(&files, "KUBECONFIG", list);
	struct kube_config *config CLEANUP(kube_config_freep) =
		load(&files, (struct kube_config_source){ 0 });
	CHECK_STR(config->server, "https://one");
	CHECK_STR(config->tls_server_name, NULL); /* an entry is taken whole */
	CHECK_STR(config->namespace, "ns");
	CHECK_STR(config->token, NULL);
	CHECK_STR(config->token_file, files_path(&files, "one/tok"));
	CHECK_STR(config->cert_file, files_path(&files, "one/crt"));
	CHECK_STR(config->key_file, files_path(&files, "one/key"));
	struct kube_config *other CLEANUP(kube_config_freep) =
		load(&files, (struct kube_config_source){ .context = "z" });
	CHECK_STR(other->server, "https://d");
	CHECK_STR(other->ca_file, files_path(&files, "two/ca"));
}

TEST(a_listed_file_that_is_there_must_be_readable)
{
	struct files files CLEANUP(files_done);
	struct err err = ERR_INIT;
	files_init(&files);
	files_setenv(&files, "KUBECONFIG", files_folder(&files, "folder"));
	CHECK_INT(load_fails(&files, (struct kube_config_source){ 0 }, &err), -EISDIR);
	CHECK(strstr(err.text, "/folder"));
}

TEST(then_comes_the_home)
{
	struct files files CLEANUP(files_done);
	files_init(&files);
	files_folder(&files, ".kube");
	files_write(&files, ".kube/config", ONE("a", "home"));
	files_setenv(&files, "HOME", files.folder);
	files_setenv(&files, "KUBERNETES_SERVICE_HOST", "10.0.0.1");
	struct kube_config *config CLEANUP(kube_config_freep) =
		load(&files, (struct kube_config_source){ 0 });
	CHECK_STR(config->server, "https://home");
	CHECK_STR(config->ca_file, files_path(&files, ".kube/ca"));
	/* the list counts alone, even if nothing in it exists */
	struct err err = ERR_INIT;
	files_setenv(&files, "KUBERNETES_SERVICE_HOST", "");
	files_setenv(&files, "KUBECONFIG", files_path(&files, "missing"));
	CHECK_INT(load_fails(&files, (struct kube_config_source){ 0 }, &err), -ENOENT);
	CHECK(strstr(err.text, "KUBECONFIG names no file"));
}

TEST(relative_paths_begin_at_the_file_and_not_where_we_are)
{
	struct files files CLEANUP(files_done);
	files_init(&files);
	files_folder(&files, "sub");
	files_write(&files, "sub/config", ONE("a", "a"));
	char *before = getcwd(NULL, 0);
	CHECK(before && chdir(files.folder) == 0);
	struct kube_config *config CLEANUP(kube_config_freep) =
		load(&files, (struct kube_config_source){ .path = "sub/config" });
	CHECK(chdir(files_path(&files, "sub")) == 0);
	struct kube_config *here CLEANUP(kube_config_freep) =
		load(&files, (struct kube_config_source){ .path = "config" });
	CHECK(chdir(before) == 0);
	free(before);
	CHECK_STR(config->ca_file, files_path(&files, "sub/ca"));
	CHECK_STR(here->ca_file, files_path(&files, "sub/ca"));
}

/* A pod's service account. */
static struct kube_config_source pod(struct files *files, const char *host, const char *port)
{
	files_setenv(files, "KUBERNETES_SERVICE_HOST", host);
	files_setenv(files, "KUBERNETES_SERVICE_PORT", port);
	files_write(files, "token", "abc\n");
	files_write(files, "ca.crt", CERT);
	files_write(files, "namespace", "gpu-system\n");
	return (struct kube_config_source){ .serviceaccount_dir = files->folder };
}

TEST(last_comes_the_pod_we_are_in)
{
	struct files files CLEANUP(files_done);
	files_init(&files);
	files_setenv(&files, "HOME", files.folder);
	struct kube_config_source source = pod(&files, "10.96.0.1", "443");
	struct kube_config *config CLEANUP(kube_config_freep) = load(&files, source);
	CHECK_STR(config->server, "https://10.96.0.1:443");
	CHECK_STR(config->namespace, "gpu-system");
	CHECK_STR(config->token_file, files_path(&files, "token"));
	CHECK_STR(config->ca_file, files_path(&files, "ca.crt"));
	CHECK(config->in_cluster && !config->token);
}

TEST(an_empty_kubeconfig_counts_as_missing)
{
	struct files files CLEANUP(files_done);
	files_init(&files);
	struct kube_config_source source = pod(&files, "10.96.0.1", "443");
	files_setenv(&files, "KUBECONFIG",
		     files_write(&files, "empty", "kind: Config\nclusters: []\nusers: null\n"));
	struct kube_config *config CLEANUP(kube_config_freep) = load(&files, source);
	CHECK(config->in_cluster);
}

TEST(hosts_of_ipv6_get_brackets)
{
	struct files files CLEANUP(files_done);
	files_init(&files);
	struct kube_config_source source = pod(&files, "fd00:10:96::1", "6443");
	struct kube_config *config CLEANUP(kube_config_freep) = load(&files, source);
	CHECK_STR(config->server, "https://[fd00:10:96::1]:6443");
	files_setenv(&files, "KUBERNETES_SERVICE_HOST", "[::1]");
	struct kube_config *bracketed CLEANUP(kube_config_freep) = load(&files, source);
	CHECK_STR(bracketed->server, "https://[::1]:6443");
}

TEST(a_pod_without_a_namespace_file_is_in_default)
{
	struct files files CLEANUP(files_done);
	files_init(&files);
	struct kube_config_source source = pod(&files, "10.96.0.1", "443");
	CHECK(unlink(files_path(&files, "namespace")) == 0);
	struct kube_config *config CLEANUP(kube_config_freep) = load(&files, source);
	CHECK_STR(config->namespace, "default");
}

TEST(wrong_pods)
{
	static const struct {
		const char *host, *port, *without, *says;
	} rows[] = {
		{ "10.96.0.1", "", NULL, "KUBERNETES_SERVICE_PORT is not" },
		{ "10.96.0.1", "0", NULL, "KUBERNETES_SERVICE_PORT: \"0\" is no proper port" },
		{ "10.96.0.1", "443/x", NULL, "is no proper port" },
		{ "a b", "443", NULL, "KUBERNETES_SERVICE_HOST" },
		{ "10.96.0.1", "443", "token", "/token of the service account" },
		{ "10.96.0.1", "443", "ca.crt", "/ca.crt of the service account" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct files files CLEANUP(files_done);
		struct err err = ERR_INIT;
		files_init(&files);
		struct kube_config_source source = pod(&files, rows[i].host, rows[i].port);
		if (rows[i].without)
			CHECK(unlink(files_path(&files, rows[i].without)) == 0);
		load_fails(&files, source, &err);
		CHECKF(strstr(err.text, rows[i].says), "%s", err.text);
	}
}

TEST(a_bad_namespace_file_is_told)
{
	struct files files CLEANUP(files_done);
	struct err err = ERR_INIT;
	files_init(&files);
	struct kube_config_source source = pod(&files, "10.96.0.1", "443");
	files_write(&files, "namespace", "../../x");
	CHECK_INT(load_fails(&files, source, &err), -EINVAL);
	CHECK(strstr(err.text, "/namespace: namespace "));
}

TEST(the_master_replaces_the_server_everywhere)
{
	struct files files CLEANUP(files_done);
	struct err err = ERR_INIT;
	files_init(&files);
	struct kube_config_source source = pod(&files, "10.96.0.1", "443");
	source.master = "https://other:1/";
	struct kube_config *inside CLEANUP(kube_config_freep) = load(&files, source);
	CHECK_STR(inside->server, "https://other:1");
	CHECK(inside->in_cluster);
	files_setenv(&files, "KUBERNETES_SERVICE_HOST", "");
	struct kube_config *alone CLEANUP(kube_config_freep) = load(&files, source);
	CHECK_STR(alone->server, "https://other:1");
	CHECK(!alone->token_file && !alone->in_cluster);
	source.path = files_write(&files, "config", ONE("a", "a"));
	struct kube_config *file CLEANUP(kube_config_freep) = load(&files, source);
	CHECK_STR(file->server, "https://other:1");
	CHECK_STR(file->ca_file, files_path(&files, "ca"));
	source.master = "other";
	CHECK_INT(load_fails(&files, source, &err), -EINVAL);
	CHECK(strstr(err.text, "--master: \"other\"") == err.text);
	source.path = NULL;
	CHECK_INT(load_fails(&files, source, &err), -EINVAL);
	CHECK(strstr(err.text, "--master: \"other\"") == err.text);
}

TEST(without_anything_it_says_what_to_do)
{
	struct files files CLEANUP(files_done);
	struct err err = ERR_INIT;
	files_init(&files);
	CHECK_INT(load_fails(&files, (struct kube_config_source){ 0 }, &err), -ENOENT);
	CHECK(strstr(err.text, "--kubeconfig") && strstr(err.text, "KUBECONFIG is not set"));
	struct kube_config_source source = pod(&files, "10.96.0.1", "443");
	source.context = "a";
	CHECK_INT(load_fails(&files, source, &err), -ENOENT);
	CHECK(strstr(err.text, "--context needs a kubeconfig"));
}

TEST(a_kubeconfig_that_is_too_big_is_told)
{
	struct files files CLEANUP(files_done);
	struct err err = ERR_INIT;
	files_init(&files);
	const char *path = files_write(&files, "big", "kind: Config\n");
	CHECK(truncate(path, (off_t)KUBE_CONFIG_MAX_BYTES + 1) == 0);
	CHECK_INT(load_fails(&files, (struct kube_config_source){ .path = path }, &err), -EFBIG);
}

TEST_MAIN()
