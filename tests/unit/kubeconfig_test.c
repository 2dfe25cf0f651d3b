/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/config.h"

#include <errno.h>

#define CERT "-----BEGIN CERTIFICATE-----\nY2VydA==\n-----END CERTIFICATE-----\n"
#define KEY  "-----BEGIN EC PRIVATE KEY-----\na2V5\n-----END EC PRIVATE KEY-----\n"

/* CERT and KEY in base64 */
#define CERT64                                                                          \
	"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tClkyVnlkQT09Ci0tLS0tRU5EIENFUlRJRklDQVRFL" \
	"S0tLS0K"
#define KEY64                                                                           \
	"LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS0tLS0tCmEyVjUKLS0tLS1FTkQgRUMgUFJJVkFURSBLR" \
	"VktLS0tLQo="

/* The frame in which a cluster and a user stand; both as flow mappings. */
static const char *frame(struct strbuf *text, const char *cluster, const char *user)
{
	strbuf_reset(text);
	strbuf_addf(text,
		    "apiVersion: v1\n"
		    "kind: Config\n"
		    "current-context: here\n"
		    "contexts:\n"
		    "- {name: here, context: {cluster: c, user: u, namespace: team-a}}\n"
		    "clusters:\n"
		    "- {name: c, cluster: {%s}}\n"
		    "users:\n"
		    "- {name: u, user: {%s}}\n",
		    cluster, user);
	return text->s;
}

static int parse(const char *text, struct kube_config **ret, struct err *err)
{
	struct kube_config_source source = { 0 };
	return kube_config_parse("/etc/kube/config", text, strlen(text), &source, ret, err);
}

#define SERVER "server: 'https://api:6443'"

/* A config whose user says this; the test fails if it cannot be read. */
static struct kube_config *with_user(const char *user)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct kube_config *config = NULL;
	int result = parse(frame(&text, SERVER, user), &config, &err);
	CHECKF(result == 0, "%s: %s", user, err.text);
	return config;
}

static struct kube_config *with_cluster(const char *cluster)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct kube_config *config = NULL;
	int result = parse(frame(&text, cluster, ""), &config, &err);
	CHECKF(result == 0, "%s: %s", cluster, err.text);
	return config;
}

/* --- One file --- */

TEST(what_most_kubeconfigs_say)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct kube_config *config CLEANUP(kube_config_freep) = NULL;
	struct err err = ERR_INIT;
	frame(&text, "server: 'https://api:6443/k8s/c-1/', certificate-authority-data: " CERT64,
	      "client-certificate-data: " CERT64 ", client-key-data: " KEY64);
	CHECK_INT(parse(text.s, &config, &err), 0);
	CHECK_STR(config->server, "https://api:6443/k8s/c-1");
	CHECK_STR(config->namespace, "team-a");
	CHECK_STR(config->ca_data, CERT);
	CHECK_STR(config->cert_data, CERT);
	CHECK_STR(config->key_data, KEY);
	CHECK(!config->insecure && !config->proxy_url && !config->token && !config->exec);
	CHECK(!config->in_cluster && !config->tls_server_name && !config->disable_compression);
	CHECK_STR(config->cluster_origin, "cluster \"c\" of /etc/kube/config");
	CHECK_STR(config->user_origin, "user \"u\" of /etc/kube/config");
}

TEST(json_is_read_too)
{
	struct kube_config *config CLEANUP(kube_config_freep) = NULL;
	struct err err = ERR_INIT;
	CHECK_INT(
		parse("{\"current-context\":\"a\",\"contexts\":[{\"name\":\"a\",\"context\":{"
		      "\"cluster\":\"b\"}}],\"clusters\":[{\"name\":\"b\",\"cluster\":{\"server\""
		      ":\"http://localhost:8001\"}}]}",
		      &config, &err),
		0);
	CHECK_STR(config->server, "http://localhost:8001");
	CHECK_STR(config->namespace, "default");
	CHECK(!config->token && !config->cert_data);
}

TEST(unknown_fields_are_ignored_everywhere)
{
	struct kube_config *config CLEANUP(kube_config_freep) = NULL;
	struct err err = ERR_INIT;
	CHECK_INT(parse("kind: Config\npreferences: {colors: true}\nfuture: [1]\n"
			"extensions: [{name: x, extension: {}}]\ncurrent-context: a\n"
			"contexts: [{name: a, later: 1, context: {cluster: c, extra: {}}}]\n"
			"clusters: [{name: c, cluster: {" SERVER ", new-field: {a: [b]}}}]\n",
			&config, &err),
		  0);
	CHECK_STR(config->server, "https://api:6443");
}

TEST(entries_that_are_not_used_are_not_looked_at)
{
	struct kube_config *config CLEANUP(kube_config_freep) = NULL;
	struct err err = ERR_INIT;
	CHECK_INT(parse("current-context: a\n"
			"contexts: [{name: a, context: {cluster: c, user: u}}, {name: b}]\n"
			"clusters: [{name: c, cluster: {" SERVER
			"}}, {name: d, cluster: {server: 1}}]\n"
			"users: [{name: u, user: {token: t}}, {name: v, user: {auth-provider: "
			"{}}}]\n",
			&config, &err),
		  0);
	CHECK_STR(config->token, "t");
}

TEST(all_that_a_cluster_can_say)
{
	struct kube_config *config CLEANUP(kube_config_freep) = with_cluster(
		"server: 'HTTPS://[fd00::1]:6443', certificate-authority: pki/ca.crt, "
		"tls-server-name: kubernetes, proxy-url: 'socks5://10.0.0.1:1080', "
		"disable-compression: true");
	CHECK_STR(config->server, "https://[fd00::1]:6443");
	CHECK_STR(config->ca_file, "/etc/kube/pki/ca.crt");
	CHECK_STR(config->tls_server_name, "kubernetes");
	CHECK_STR(config->proxy_url, "socks5://10.0.0.1:1080");
	CHECK(config->disable_compression && !config->insecure);
}

TEST(a_cluster_that_need_not_be_verified)
{
	struct kube_config *config CLEANUP(kube_config_freep) =
		with_cluster(SERVER ", insecure-skip-tls-verify: true");
	CHECK(config->insecure && !config->ca_file && !config->ca_data);
}

TEST(data_beats_files)
{
	struct kube_config *config CLEANUP(kube_config_freep) = with_cluster(
		SERVER ", certificate-authority: a, certificate-authority-data: " CERT64);
	CHECK_STR(config->ca_data, CERT);
	CHECK_STR(config->ca_file, NULL);
	struct kube_config *user CLEANUP(kube_config_freep) =
		with_user("client-certificate: a, client-certificate-data: " CERT64
			  ", client-key: b, client-key-data: " KEY64);
	CHECK_STR(user->cert_file, NULL);
	CHECK_STR(user->key_file, NULL);
	CHECK_STR(user->cert_data, CERT);
	CHECK_STR(user->key_data, KEY);
}

TEST(files_and_data_may_be_mixed_in_a_pair)
{
	struct kube_config *config CLEANUP(kube_config_freep) =
		with_user("client-certificate: /abs/cert, client-key-data: " KEY64);
	CHECK_STR(config->cert_file, "/abs/cert");
	CHECK_STR(config->key_data, KEY);
}

TEST(tokens_and_files_of_tokens)
{
	struct kube_config *config CLEANUP(kube_config_freep) =
		with_user("token: \" abc.def\\n\", tokenFile: ../token");
	CHECK_STR(config->token, "abc.def");
	CHECK_STR(config->token_file, "/etc/kube/../token");
}

TEST(a_user_with_a_password)
{
	struct kube_config *config CLEANUP(kube_config_freep) =
		with_user("username: ann, password: 's:e'");
	CHECK_STR(config->username, "ann");
	CHECK_STR(config->password, "s:e");
}

TEST(a_user_who_acts_as_another)
{
	struct kube_config *config CLEANUP(kube_config_freep) =
		with_user("token: t, as: bob, as-uid: '7', as-groups: [a, b], "
			  "as-user-extra: {scopes: [v, w], acme.com/z: []}");
	const struct kube_impersonation *as = &config->as;
	CHECK_STR(as->user, "bob");
	CHECK_STR(as->uid, "7");
	CHECK_INT(as->groups_count, 2);
	CHECK_STR(as->groups[1], "b");
	CHECK_INT(as->extra_count, 2);
	CHECK_STR(as->extra[0].key, "scopes");
	CHECK_INT(as->extra[0].values_count, 2);
	CHECK_STR(as->extra[0].values[1], "w");
	CHECK_STR(as->extra[1].key, "acme.com/z");
	CHECK_INT(as->extra[1].values_count, 0);
}

TEST(a_plugin_with_all_it_can_have)
{
	struct kube_config *config CLEANUP(kube_config_freep) = NULL;
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct err err = ERR_INIT;
	frame(&text,
	      SERVER ", extensions: [{name: other, extension: 1}, {name: "
		     "client.authentication.k8s.io/exec, extension: {audience: [1, a]}}]",
	      "exec: {apiVersion: client.authentication.k8s.io/v1, command: bin/login, "
	      "args: [get, --now], env: [{name: A, value: b}, {name: EMPTY}], interactiveMode: "
	      "IfAvailable, provideClusterInfo: true, installHint: install it}");
	CHECK_INT(parse(text.s, &config, &err), 0);
	const struct kube_exec *exec = config->exec;
	CHECK_STR(exec->api_version, "client.authentication.k8s.io/v1");
	CHECK_STR(exec->command, "/etc/kube/bin/login");
	CHECK_INT(exec->args_count, 2);
	CHECK_STR(exec->args[1], "--now");
	CHECK_INT(exec->env_count, 2);
	CHECK_STR(exec->env[0].name, "A");
	CHECK_STR(exec->env[0].value, "b");
	CHECK_STR(exec->env[1].value, "");
	CHECK_STR(exec->install_hint, "install it");
	CHECK(exec->provide_cluster_info);
	CHECK_STR(config->exec_extension, "{\"audience\":[1,\"a\"]}");
}

TEST(a_plugin_by_name_is_looked_for_in_the_path)
{
	struct kube_config *config CLEANUP(kube_config_freep) = with_user(
		"exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: kubelogin}");
	CHECK_STR(config->exec->command, "kubelogin");
	CHECK(!config->exec->provide_cluster_info && !config->exec_extension);
}

/* --- What is wrong, and how it is said --- */

TEST(wrong_clusters)
{
	static const struct {
		const char *cluster, *says;
	} rows[] = {
		{ "", "server is missing" },
		{ "server: 6443", "server must be a string" },
		{ "server: 'api:6443'", "server: \"api:6443\" does not begin with https://" },
		{ "server: 'ftp://api'", "is neither https:// nor http://" },
		{ "server: 'https://'", "has no proper host" },
		{ "server: 'https://a b'", "characters that a URL cannot have" },
		{ "server: 'https://api:99999'", "has no proper port" },
		{ "server: 'https://api:'", "has no proper port" },
		{ "server: 'https://u:secret@api'", "server: the URL has a user in it" },
		{ "server: 'https://api/?a=b'", "has a query or fragment" },
		{ "server: 'https://[::1'", "has '[' without ']'" },
		{ "server: 'https://[::1]x'", "behind ']'" },
		{ "server: 'https://[nonsense]'", "has no proper host" },
		{ "server: 'https://fd00::1:6443'", "has no proper port" },
		{ SERVER ", insecure-skip-tls-verify: true, certificate-authority: a",
		  "insecure-skip-tls-verify and certificate-authority contradict" },
		{ SERVER ", insecure-skip-tls-verify: true, certificate-authority-data: " CERT64,
		  "insecure-skip-tls-verify and certificate-authority-data contradict" },
		{ SERVER ", insecure-skip-tls-verify: 'true'", "must be true or false" },
		{ SERVER ", certificate-authority-data: '%%%'", "is not proper base64" },
		{ SERVER ", certificate-authority-data: '-----BEGIN CERTIFICATE-----'",
		  "must be the base64 of PEM, not PEM itself" },
		{ SERVER ", certificate-authority-data: bm8gUEVN",
		  "certificate-authority-data: there is no certificate in PEM form in it" },
		{ SERVER ", certificate-authority-data: " KEY64, "there is no certificate" },
		{ SERVER ", certificate-authority-data: AAAA", "there is a NUL byte" },
		{ SERVER ", certificate-authority: [a]",
		  "certificate-authority must be a string" },
		{ SERVER ", proxy-url: 'ftp://proxy'", "proxy-url: \"ftp://proxy\" is none of" },
		{ SERVER ", proxy-url: 'http://proxy/path'", "has a path; a proxy has none" },
		{ SERVER ", proxy-url: proxy", "does not begin with" },
		{ SERVER ", tls-server-name: \"a\\nb\"", "tls-server-name has a control" },
		{ SERVER ", disable-compression: 1", "must be true or false" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
		struct kube_config *config = NULL;
		struct err err = ERR_INIT;
		int result = parse(frame(&text, rows[i].cluster, ""), &config, &err);
		CHECKF(result == -EINVAL && !config, "%s", rows[i].cluster);
		CHECKF(strstr(err.text, rows[i].says), "%s: %s", rows[i].cluster, err.text);
		CHECKF(strstr(err.text, "/etc/kube/config: cluster \"c\": ") == err.text, "%s",
		       err.text);
		CHECK(!strstr(err.text, "secret"));
	}
}

struct wrong {
	const char *field, *says;
};

/* The user says this: it is refused with these words, behind file and name. */
static void check_wrong_user(const struct wrong *row)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct kube_config *config = NULL;
	struct err err = ERR_INIT;
	int result = parse(frame(&text, SERVER, row->field), &config, &err);
	CHECKF(result == -EINVAL && !config, "%s", row->field);
	CHECKF(strstr(err.text, row->says), "%s: %s", row->field, err.text);
	CHECKF(strstr(err.text, "/etc/kube/config: user \"u\": ") == err.text, "%s", err.text);
}

TEST(wrong_users)
{
	static const struct wrong rows[] = {
		{ "auth-provider: {name: gcp}", "auth-provider is a legacy form" },
		{ "client-certificate: a", "client-certificate needs client-key" },
		{ "client-key: a", "client-key needs client-certificate" },
		{ "client-certificate-data: " CERT64, "client-certificate needs client-key" },
		{ "client-key-data: " KEY64, "client-key needs client-certificate" },
		{ "client-certificate: a, client-key-data: " CERT64,
		  "no private key in PEM form" },
		{ "client-certificate-data: " KEY64 ", client-key: a", "no certificate in PEM" },
		{ "token: 12345", "token must be a string" },
		{ "token: 'a b'", "token: the token has a blank" },
		{ "token: \"a\\0b\"", "token has a NUL character" },
		{ "token: ' '", "token: there is no token in it" },
		{ "token: \"\\u00e9\"", "beyond ASCII" },
		{ "tokenFile: {}", "tokenFile must be a string" },
		{ "token: t, username: u", "token and username contradict each other" },
		{ "tokenFile: t, username: u", "tokenFile and username contradict" },
		{ "password: p", "password needs a username" },
		{ "username: 'a:b'", "username cannot have a ':'" },
		{ "username: \"a\\nb\"", "username has a control character" },
		{ "as-groups: [a]", "need a user in as" },
		{ "as-uid: a", "need a user in as" },
		{ "as-user-extra: {a: [b]}", "need a user in as" },
		{ "as: a, as-groups: b", "as-groups must be a list" },
		{ "as: a, as-groups: [1]", "as-groups[0] must be a string" },
		{ "as: a, as-groups: [\"b\\rc\"]", "control characters" },
		{ "as: a, as-user-extra: {b: c}", "b must be a list" },
		{ "as: a, as-user-extra: {b: [\"\\n\"]}", "control characters" },
		{ "as: a, as-user-extra: [b]", "as-user-extra must be a mapping" },
		{ "as: a, as-user-extra: {'': [b]}", "bad key" },
		{ "as: \"a\\nX: y\"", "as has a control character" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_wrong_user(&rows[i]);
}

#define V1	"exec: {apiVersion: client.authentication.k8s.io/v1, "
#define V1BETA1 "exec: {apiVersion: client.authentication.k8s.io/v1beta1, "

TEST(wrong_plugins)
{
	static const struct wrong rows[] = {
		{ "exec: login", "exec must be a mapping" },
		{ "exec: {command: login}", "exec.apiVersion is missing" },
		{ "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: a}",
		  "v1alpha1\" is not known; use client.authentication.k8s.io/v1 or" },
		{ V1 "command: a}", "exec.interactiveMode is missing" },
		{ V1 "command: a, interactiveMode: Always}", "interactiveMode is Always" },
		{ V1BETA1 "command: a, interactiveMode: Always}", "interactiveMode is Always" },
		{ V1 "command: a, interactiveMode: Perhaps}", "\"Perhaps\" is not known" },
		{ V1 "interactiveMode: Never}", "exec.command is missing" },
		{ V1BETA1 "command: a, args: b}", "args must be a list" },
		{ V1BETA1 "command: a, env: [{value: b}]}", "exec.env[0] has no proper name" },
		{ V1BETA1 "command: a, env: [{name: 'a=b'}]}", "exec.env[0] has no proper name" },
		{ V1BETA1 "command: a, env: {a: b}}", "env must be a list" },
		{ V1BETA1 "command: a, provideClusterInfo: 1}", "must be true or false" },
		{ V1BETA1 "command: a}, token: t", "token and exec contradict" },
		{ V1BETA1 "command: a}, username: t", "username and exec contradict" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_wrong_user(&rows[i]);
}

TEST(wrong_files)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "a: [", "/etc/kube/config:" },
		{ "- a", "is not a kubeconfig: it must be a mapping" },
		{ "kind: Pod", "kind is \"Pod\", not Config" },
		{ "apiVersion: v2", "apiVersion is \"v2\"" },
		{ "a: 1\n---\nb: 2\n", "has 2 YAML documents" },
		{ "clusters: {}", "clusters must be a list" },
		{ "current-context: 1", "current-context must be a string" },
		{ "kind: Config", "current-context is not set" },
		{ "current-context: b", "there is no context \"b\"" },
		{ "current-context: prod\ncontexts: [{name: prd}]", "is it \"prd\"?" },
		{ "current-context: b\ncontexts: [{context: {}}]", "contexts[0] has no name" },
		{ "current-context: b\ncontexts: [a]", "contexts[0] has no name" },
		{ "current-context: b\ncontexts: [{name: b}]", "cluster is missing" },
		{ "current-context: b\ncontexts: [{name: b}, {name: b}]", "two entries \"b\"" },
		{ "current-context: b\ncontexts: [{name: b, context: []}]", "must be a mapping" },
		{ "current-context: b\ncontexts: [{name: b, context: {cluster: c}}]",
		  "there is no cluster \"c\"" },
		{ "current-context: b\ncontexts: [{name: b, context: {cluster: c, user: u}}]\n"
		  "clusters: [{name: c, cluster: {" SERVER "}}]",
		  "there is no user \"u\"" },
		{ "current-context: b\ncontexts: [{name: b, context: {cluster: c, namespace: "
		  "A}}]\n"
		  "clusters: [{name: c, cluster: {" SERVER "}}]",
		  "context \"b\": namespace \"A\"" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct kube_config *config = NULL;
		struct err err = ERR_INIT;
		CHECKF(parse(rows[i].text, &config, &err) == -EINVAL, "%s", rows[i].text);
		CHECKF(strstr(err.text, rows[i].says), "%s: %s", rows[i].text, err.text);
		CHECKF(strstr(err.text, "/etc/kube/config") == err.text, "%s", err.text);
	}
}

TEST(lists_are_bounded)
{
	struct strbuf user CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct kube_config *config = NULL;
	struct err err = ERR_INIT;
	strbuf_puts(&user, "as: a, as-groups: [a");
	for (int i = 0; i < KUBE_CONFIG_MAX_ITEMS; i++)
		strbuf_puts(&user, ", b");
	strbuf_puts(&user, "]");
	CHECK_INT(parse(frame(&text, SERVER, user.s), &config, &err), -EINVAL);
	CHECK(strstr(err.text, "as-groups has more than 1024 items"));
}

TEST(the_error_may_be_left_out)
{
	struct kube_config *config = NULL;
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	CHECK_INT(parse(frame(&text, "server: x", ""), &config, NULL), -EINVAL);
	CHECK_INT(parse("a: [", &config, NULL), -EINVAL);
	kube_config_free(NULL);
}

TEST_MAIN()
