/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is a configuration that keeps its promises, or one sentence that names the
 * file. */
#include "fuzz.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/config.h"
#include "kube/exec_credential.h"
#include "kube/pem.h"
#include "wire/json.h"

#include <string.h>

/* What goes into a header must not be able to begin another. */
static void check_header(const char *s)
{
	REQUIRE(!s || strcspn(s, "\r\n") == strlen(s));
}

static void check_path(const char *path)
{
	REQUIRE(!path || *path == '/');
}

static void check_cluster(const struct kube_config *config)
{
	REQUIRE(strncmp(config->server, "https://", 8) == 0 ||
		strncmp(config->server, "http://", 7) == 0);
	REQUIRE(config->server[strlen(config->server) - 1] != '/');
	REQUIRE(!strpbrk(config->server, " \r\n?#@"));
	REQUIRE(!config->ca_file || !config->ca_data);
	REQUIRE(!config->insecure || (!config->ca_file && !config->ca_data));
	check_path(config->ca_file);
	if (config->ca_data)
		REQUIRE(pem_check_certificates(config->ca_data, strlen(config->ca_data), NULL) ==
			0);
	check_header(config->tls_server_name);
	REQUIRE(config->namespace && !strpbrk(config->namespace, "/. \r\n"));
}

static void check_user(const struct kube_config *config)
{
	bool cert = config->cert_file || config->cert_data;
	REQUIRE(cert == (config->key_file || config->key_data));
	REQUIRE(!config->cert_file || !config->cert_data);
	REQUIRE(!config->key_file || !config->key_data);
	check_path(config->cert_file);
	check_path(config->key_file);
	check_path(config->token_file);
	check_header(config->token);
	check_header(config->username);
	check_header(config->password);
	REQUIRE(!config->exec || (!config->token && !config->token_file && !config->username));
}

static void check_impersonation(const struct kube_impersonation *as)
{
	REQUIRE(as->user || (!as->uid && !as->groups_count && !as->extra_count));
	check_header(as->user);
	check_header(as->uid);
	for (size_t i = 0; i < as->groups_count; i++)
		check_header(as->groups[i]);
	for (size_t i = 0; i < as->extra_count; i++)
		for (size_t k = 0; k < as->extra[i].values_count; k++)
			check_header(as->extra[i].values[k]);
}

/* What a plugin is told is JSON, whatever the cluster's extension holds. */
static void check_exec(const struct kube_config *config)
{
	struct strbuf info CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	if (!config->exec)
		return;
	REQUIRE(config->exec->command && *config->exec->command);
	REQUIRE(!strchr(config->exec->command, '/') || *config->exec->command == '/');
	exec_info_write(&info, config, config->ca_data);
	REQUIRE(!info.failed);
	REQUIRE(json_parse("info", info.s, info.len, NULL, &doc, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kube_config_source source = { 0 };
	struct kube_config *config CLEANUP(kube_config_freep) = NULL;
	struct err err = ERR_INIT;
	int result = kube_config_parse("/fuzz/config", (const char *)data, size, &source, &config,
				       &err);
	REQUIRE(result <= 0 && err.code == -result && !config == (result < 0));
	REQUIRE(result == 0 || strstr(err.text, "/fuzz/config") == err.text);
	if (result < 0)
		return 0;
	check_cluster(config);
	check_user(config);
	check_impersonation(&config->as);
	check_exec(config);
	return 0;
}
