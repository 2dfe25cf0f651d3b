/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials that change while they are used: no request is lost, no watch is cut.
 *
 * The server gives up a connection after every fiftieth request or so, so that many are
 * made anew.
 *
 * cluster: --apiserver-flag=--goaway-chance=0.02
 */
#include "follower.h"

#include "test.h"

#include "base/attr.h"
#include "base/clock.h"
#include "kube/kind.h"
#include "wire/json.h"

#include <ftw.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define REVIEWS "/apis/authentication.k8s.io/v1/selfsubjectreviews"
#define TOKENS	"/api/v1/namespaces/gpu-scheduler/serviceaccounts/scheduler/token"
#define SECRETS "/api/v1/namespaces/gpu-scheduler/secrets"
#define PODS	"/api/v1/namespaces/default/pods"

/* A folder with what a kubeconfig points to, and an administrator. */
struct scene {
	char folder[64], kubeconfig[128];
	struct live admin;
	struct follower f;
	char token[2][4096];
};

static const char *in_folder(const struct scene *scene, const char *name)
{
	static char path[256];
	snprintf(path, sizeof(path), "%s/%s", scene->folder, name);
	return path;
}

/* In place of what was there, whole. */
static void write_file(const struct scene *scene, const char *name, const char *text)
{
	char part[256];
	snprintf(part, sizeof(part), "%s", in_folder(scene, "part"));
	FILE *file = fopen(part, "w");
	CHECK(file);
	CHECK(fputs(text, file) >= 0);
	CHECK(fclose(file) == 0);
	CHECK(chmod(part, 0700) == 0);
	CHECK(rename(part, in_folder(scene, name)) == 0);
}

/* Runs a command in the folder, where $PKI is that of the cluster. */
static void run(const struct scene *scene, const char *command)
{
	char text[2048];
	snprintf(text, sizeof(text), "cd %s && PKI=$KUBE_DIR/pki && { %s; } >log 2>&1",
		 scene->folder, command);
	CHECKF(system(text) == 0, "%s", command); /* NOLINT(cert-env33-c): ours */
}

/* `user` is the inside of the user's entry, in JSON. */
static void scene_open(struct scene *scene, const char *user)
{
	char text[2048];
	*scene = (struct scene){ .folder = "/tmp/credentials.XXXXXX" };
	CHECK(mkdtemp(scene->folder));
	snprintf(scene->kubeconfig, sizeof(scene->kubeconfig), "%s/kubeconfig", scene->folder);
	snprintf(text, sizeof(text),
		 "{\"apiVersion\":\"v1\",\"kind\":\"Config\",\"current-context\":\"c\","
		 "\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":\"%s\","
		 "\"certificate-authority\":\"ca.crt\"}}],"
		 "\"users\":[{\"name\":\"u\",\"user\":{%s}}],"
		 "\"contexts\":[{\"name\":\"c\",\"context\":{\"cluster\":\"c\",\"user\":\"u\"}}]}",
		 getenv("KUBE_SERVER"), user);
	write_file(scene, "kubeconfig", text);
	run(scene, "cp $PKI/ca.crt ca.crt");
	live_open(&scene->admin, NULL);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void scene_close(struct scene *scene)
{
	unfollow(&scene->f);
	live_close(&scene->admin);
	CHECK_INT(nftw(scene->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void follow_pods(struct scene *scene)
{
	follow(&scene->f, scene->kubeconfig,
	       (struct kube_cache_options){ .kind = &kube_kinds[KUBE_POD],
					    .namespace = "default" });
}

/* One more pod, which the cache sees. */
static void another_pod(struct scene *scene, const char *name)
{
	char body[256];
	unsigned count = kube_cache_count(scene->f.cache);
	snprintf(body, sizeof(body),
		 "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"containers\":[{\"name\":\"c\","
		 "\"image\":\"i\"}]}}",
		 name);
	CHECK_INT(live_call(&scene->admin, "POST", PODS, body), 201);
	follower_wait_count(&scene->f, count + 1);
}

/* Of the service account `scheduler`; good as long as the Secret is there, if one is named. */
static void get_token(struct scene *scene, const char *secret, char *ret, size_t size)
{
	char body[512] = "{\"spec\":{\"expirationSeconds\":600}}";
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	if (secret) {
		snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"%s\"}}", secret);
		CHECK_INT(live_call(&scene->admin, "POST", SECRETS, body), 201);
		snprintf(body, sizeof(body),
			 "{\"spec\":{\"expirationSeconds\":600,\"boundObjectRef\":{"
			 "\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"name\":\"%s\"}}}",
			 secret);
	}
	CHECK_INT(live_call(&scene->admin, "POST", TOKENS, body), 201);
	CHECK_INT(
		json_parse("token", scene->admin.text.s, scene->admin.text.len, NULL, &doc, NULL),
		0);
	const char *token = json_str(json_root(doc), "status", "token");
	CHECK(token && strlen(token) < size);
	snprintf(ret, size, "%s", token);
}

static void revoke_token(struct scene *scene, const char *secret)
{
	char path[256];
	snprintf(path, sizeof(path), SECRETS "/%s", secret);
	CHECK_INT(live_call(&scene->admin, "DELETE", path, NULL), 200);
}

/* Who we are to the server: the user, and which token. */
static void who(struct scene *scene, char *ret, size_t size)
{
	struct live *live = &scene->f.live;
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	CHECK_INT(live_call(live, "POST", REVIEWS, "{}"), 201);
	CHECK_INT(json_parse("review", live->text.s, live->text.len, NULL, &doc, NULL), 0);
	const struct json *user = json_get(json_root(doc), "status", "userInfo");
	struct json_iter ids =
		json_items(user, "extra", "authentication.kubernetes.io/credential-id");
	const char *id = json_str(json_next(&ids));
	snprintf(ret, size, "%s %s", json_str(user, "username"), id ? id : "");
}

/* Asks until we are somebody else; each of these requests is answered. */
static void until_another(struct scene *scene, const char *before)
{
	char now[512];
	uint64_t end_ms = clock_monotonic_ms(&clock_system) + LIVE_PATIENCE_MS;
	do {
		CHECKF(clock_monotonic_ms(&clock_system) < end_ms, "still %s", before);
		live_for(&scene->f.live, 100);
		CHECK_INT(live_call(&scene->admin, "GET", "/version", NULL), 200);
		who(scene, now, sizeof(now));
	} while (strcmp(now, before) == 0);
}

static void check_undisturbed(const struct scene *scene)
{
	struct kube_cache_status status = follower_status(&scene->f);
	CHECK_INT(status.lists, 1);
	CHECK_INT(status.watches, 1);
	CHECK_INT(status.failures, 0);
}

TEST(a_token_that_was_bad_is_read_again)
{
	struct scene s;
	scene_open(&s, "\"tokenFile\":\"token\"");
	get_token(&s, NULL, s.token[0], sizeof(s.token[0]));
	write_file(&s, "token", "this-is-none");
	follow_pods(&s);
	CHECK_INT(live_call(&s.f.live, "GET", PODS, NULL), 401);
	CHECK_INT(s.f.live.reason, KUBE_UNAUTHORIZED);
	CHECK_INT(s.f.synced, 0);
	write_file(&s, "token", s.token[0]);
	CHECK_INT(live_call(&s.f.live, "GET", PODS, NULL), 200);
	follower_wait_synced(&s.f);
	another_pod(&s, "bad-token");
	scene_close(&s);
}

TEST(a_token_that_is_revoked_is_followed_by_the_next)
{
	struct scene s;
	char before[512];
	scene_open(&s, "\"tokenFile\":\"token\"");
	get_token(&s, "first", s.token[0], sizeof(s.token[0]));
	get_token(&s, NULL, s.token[1], sizeof(s.token[1]));
	write_file(&s, "token", s.token[0]);
	follow_pods(&s);
	follower_wait_synced(&s.f);
	who(&s, before, sizeof(before));
	write_file(&s, "token", s.token[1]);
	revoke_token(&s, "first");
	until_another(&s, before);
	another_pod(&s, "next-token");
	check_undisturbed(&s);
	scene_close(&s);
}

/* The server lets a token live a minute longer than it says. */
#define LEEWAY_S 60

/* Signed with the cluster's own key; the server takes it for so many seconds more. */
static void sign_token(struct scene *scene, int seconds)
{
	static const char account[] = "/api/v1/namespaces/gpu-scheduler/serviceaccounts/scheduler";
	char claims[1024], command[1900];
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	CHECK_INT(live_call(&scene->admin, "GET", account, NULL), 200);
	CHECK_INT(json_parse("account", scene->admin.text.s, scene->admin.text.len, NULL, &doc,
			     NULL),
		  0);
	long long now_s = clock_wall_ns(&clock_system) / 1000000000;
	snprintf(claims, sizeof(claims),
		 "{\"iss\":\"https://kubernetes.default.svc\","
		 "\"aud\":[\"https://kubernetes.default.svc\"],"
		 "\"sub\":\"system:serviceaccount:gpu-scheduler:scheduler\","
		 "\"iat\":%lld,\"nbf\":%lld,\"exp\":%lld,\"kubernetes.io\":{\"namespace\":"
		 "\"gpu-scheduler\",\"serviceaccount\":{\"name\":\"scheduler\",\"uid\":\"%s\"}}}",
		 now_s - 600, now_s - 600, now_s - LEEWAY_S + seconds,
		 json_str(json_root(doc), "metadata", "uid"));
	snprintf(
		command, sizeof(command),
		"b64() { openssl base64 -A | tr +/ -_ | tr -d =; } && "
		"head=$(printf '{\"alg\":\"RS256\"}' | b64) && body=$(printf '%%s' '%s' | b64) && "
		"printf %%s.%%s \"$head\" \"$body\" >signed && "
		"openssl dgst -sha256 -sign $PKI/service-account.key -out signature signed && "
		"{ cat signed; printf .; b64 <signature; } >part && mv part token",
		claims);
	run(scene, command);
}

/* Every connection of this process, as a network that fails would. */
static void cut_connections(void)
{
	for (int fd = 3; fd < 256; fd++) {
		struct sockaddr_storage peer;
		socklen_t size = sizeof(peer);
		if (getpeername(fd, (struct sockaddr *)&peer, &size) == 0 &&
		    peer.ss_family == AF_INET)
			CHECK(shutdown(fd, SHUT_RDWR) == 0);
	}
}

static bool is_cut_off(void *context)
{
	return follower_status(context).failures > 0;
}

/* Past its time the server accepts it no longer, nor does it open the watch that was cut;
 * with the next token all that has happened meanwhile is there, once. */
TEST(a_token_that_expires_is_followed_by_the_next)
{
	struct scene s;
	scene_open(&s, "\"tokenFile\":\"token\"");
	sign_token(&s, 3);
	follow_pods(&s);
	follower_wait_synced(&s.f);
	unsigned before = kube_cache_count(s.f.cache);
	another_pod(&s, "valid");
	while (live_call(&s.f.live, "GET", PODS, NULL) == 200)
		live_for(&s.f.live, 100);
	CHECK_INT(s.f.live.reason, KUBE_UNAUTHORIZED);
	CHECK_INT(follower_status(&s.f).failures, 0);
	cut_connections();
	live_until(&s.f.live, is_cut_off, &s.f, "the watch to be refused");
	CHECK_INT(live_call(&s.admin, "POST", PODS,
			    "{\"metadata\":{\"name\":\"expired\"},\"spec\":{\"containers\":"
			    "[{\"name\":\"c\",\"image\":\"i\"}]}}"),
		  201);
	live_for(&s.f.live, 500);
	CHECK_INT(kube_cache_count(s.f.cache), before + 1);
	sign_token(&s, 600);
	follower_wait_count(&s.f, before + 2);
	another_pod(&s, "renewed");
	CHECK_INT(live_call(&s.f.live, "GET", PODS, NULL), 200);
	live_equal(&s.f.live, s.f.cache, PODS);
	CHECK_INT(s.f.added, before + 3);
	CHECK_INT(s.f.gone, 0);
	CHECK_INT(s.f.deleted, 0);
	scene_close(&s);
}

static unsigned count_lines(const char *path)
{
	unsigned lines = 0;
	FILE *file = fopen(path, "r");
	CHECK(file);
	for (int c; (c = fgetc(file)) != EOF;)
		lines += c == '\n';
	fclose(file);
	return lines;
}

TEST(a_plugin_is_asked_again_when_its_token_is_refused)
{
	struct scene s;
	char before[512];
	scene_open(&s, "\"exec\":{\"apiVersion\":\"client.authentication.k8s.io/v1\","
		       "\"command\":\"./plugin\",\"interactiveMode\":\"Never\"}");
	write_file(
		&s, "plugin",
		"#!/bin/sh\n"
		"cd \"$(dirname \"$0\")\"\n"
		"echo run >>runs\n"
		"echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\","
		"\"kind\":\"ExecCredential\",\"status\":{\"token\":\"'\"$(cat token)\"'\"}}'\n");
	get_token(&s, "second", s.token[0], sizeof(s.token[0]));
	get_token(&s, NULL, s.token[1], sizeof(s.token[1]));
	write_file(&s, "token", s.token[0]);
	follow_pods(&s);
	follower_wait_synced(&s.f);
	who(&s, before, sizeof(before));
	CHECK_INT(count_lines(in_folder(&s, "runs")), 1);
	write_file(&s, "token", s.token[1]);
	revoke_token(&s, "second");
	until_another(&s, before);
	another_pod(&s, "plugin");
	CHECK_INT(count_lines(in_folder(&s, "runs")), 2);
	check_undisturbed(&s);
	scene_close(&s);
}

#define REQUEST \
	"openssl req -x509 -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
#define CLIENT(name)                                                                              \
	REQUEST "-subj /O=system:masters/CN=" name " -addext basicConstraints=critical,CA:FALSE " \
		"-addext extendedKeyUsage=clientAuth -CA $PKI/ca.crt "                            \
		"-CAkey $PKI/ca.key -keyout " name ".key -out " name ".crt"

TEST(a_certificate_that_is_rotated_is_used_on_new_connections)
{
	struct scene s;
	char before[512];
	scene_open(&s, "\"client-certificate\":\"used.crt\",\"client-key\":\"used.key\"");
	run(&s, CLIENT("first") " && cp first.crt used.crt && cp first.key used.key");
	run(&s, CLIENT("second"));
	follow_pods(&s);
	follower_wait_synced(&s.f);
	who(&s, before, sizeof(before));
	CHECKF(strncmp(before, "first ", 6) == 0, "%s", before);
	run(&s, "cp second.crt used.crt"); /* for a while, half of it */
	who(&s, before, sizeof(before));
	CHECKF(strncmp(before, "first ", 6) == 0, "%s", before);
	run(&s, "cp second.key used.key");
	until_another(&s, before);
	who(&s, before, sizeof(before));
	CHECKF(strncmp(before, "second ", 7) == 0, "%s", before);
	another_pod(&s, "certificate");
	CHECK_INT(follower_status(&s.f).failures, 0);
	CHECK_INT(follower_status(&s.f).lists, 1);
	scene_close(&s);
}

static bool serves_new(void *context)
{
	struct scene *scene = context;
	struct live probe;
	char path[256];
	snprintf(path, sizeof(path), "%s", in_folder(scene, "kubeconfig"));
	live_open(&probe, path);
	int code = live_call(&probe, "GET", "/version", NULL);
	live_close(&probe);
	return code == 200;
}

/* The last: nobody else knows this server any more. */
TEST(an_authority_that_is_rotated_is_trusted_on_new_connections)
{
	struct scene s;
	scene_open(&s, "\"client-certificate\":\"used.crt\",\"client-key\":\"used.key\"");
	run(&s, CLIENT("first") " && cp first.crt used.crt && cp first.key used.key");
	follow_pods(&s);
	follower_wait_synced(&s.f);
	run(&s, "cp ca.crt old.crt && " REQUEST
		"-subj /CN=next -addext basicConstraints=critical,CA:TRUE "
		"-keyout next.key -out next.crt && "
		"IP=$(echo $KUBE_SERVER | sed 's,https://,,; s,:.*,,') && " REQUEST
		"-subj /CN=apiserver -addext basicConstraints=critical,CA:FALSE "
		"-addext extendedKeyUsage=serverAuth -addext subjectAltName=IP:$IP "
		"-CA next.crt -CAkey next.key -keyout $PKI/apiserver.key -out $PKI/apiserver.crt");
	run(&s, "cp next.crt ca.crt");
	live_until(&s.f.live, serves_new, &s, "the server to show its new certificate");
	run(&s, "cp old.crt ca.crt");
	/* Sooner or later the connection ends, and who trusts the old one gets no other. */
	while (live_call(&s.f.live, "GET", PODS, NULL) == 200)
		live_for(&s.f.live, 1);
	run(&s, "cp next.crt ca.crt");
	for (unsigned i = 0; i < 200; i++)
		CHECK_INT(live_call(&s.f.live, "GET", PODS, NULL), 200);
	live_equal(&s.f.live, s.f.cache, PODS);
	CHECK_INT(s.f.synced, 1);
	scene_close(&s);
}

TEST_MAIN()
