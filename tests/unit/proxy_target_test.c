/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "kube/proxy/target.h"

#include <errno.h>

static const struct row {
	const char *method, *path;
	const char *verb, *resource, *namespace, *name, *identity;
} rows[] = {
	{ "GET", "/api/v1/pods", "list", "pods", "", "", "GET /api/v1/pods" },
	{ "GET", "/api/v1/pods?watch=1&resourceVersion=5&timeoutSeconds=9", "watch", "pods", "",
	  "", "GET /api/v1/pods?watch" },
	{ "GET", "/api/v1/pods?fieldSelector=a%3Db&limit=500&labelSelector=x", "list", "pods", "",
	  "", "GET /api/v1/pods?labelSelector=x&fieldSelector=a%3Db" },
	{ "GET", "/api/v1/pods?labelSelector=x&watch=true", "watch", "pods", "", "",
	  "GET /api/v1/pods?watch&labelSelector=x" },
	{ "GET", "/api/v1/namespaces/ml/pods/a", "get", "pods", "ml", "a",
	  "GET /api/v1/namespaces/ml/pods/a" },
	{ "POST", "/api/v1/namespaces/ml/pods/a/binding?fieldManager=b", "create", "pods/binding",
	  "ml", "a", "POST /api/v1/namespaces/ml/pods/a/binding" },
	{ "PATCH", "/api/v1/namespaces/ml/pods/a/status", "patch", "pods/status", "ml", "a",
	  "PATCH /api/v1/namespaces/ml/pods/a/status" },
	{ "GET", "/api/v1/namespaces", "list", "namespaces", "", "", "GET /api/v1/namespaces" },
	{ "GET", "/api/v1/namespaces/ml", "get", "namespaces", "", "ml",
	  "GET /api/v1/namespaces/ml" },
	{ "PUT", "/api/v1/namespaces/ml/finalize", "update", "namespaces/finalize", "", "ml",
	  "PUT /api/v1/namespaces/ml/finalize" },
	{ "DELETE", "/apis/apps/v1/namespaces/ml/deployments", "deletecollection", "deployments",
	  "ml", "", "DELETE /apis/apps/v1/namespaces/ml/deployments" },
	{ "DELETE", "/apis/apps/v1/namespaces/ml/deployments/a", "delete", "deployments", "ml",
	  "a", "DELETE /apis/apps/v1/namespaces/ml/deployments/a" },
	{ "GET", "/apis/coordination.k8s.io/v1/watch/namespaces/a/leases/b", "watch", "leases",
	  "a", "b", "GET /apis/coordination.k8s.io/v1/watch/namespaces/a/leases/b?watch" },
	{ "POST", "/api/v1/pods?watch=1", "create", "pods", "", "", "POST /api/v1/pods" },
	{ "HEAD", "/api/v1/nodes/a", "get", "nodes", "", "a", "HEAD /api/v1/nodes/a" },
	{ "GET", "/version", "get", "", "", "", "GET /version" },
	{ "GET", "/apis/apps/v1", "get", "", "", "", "GET /apis/apps/v1" },
	{ "GET", "/", "get", "", "", "", "GET /" },
	{ "OPTIONS", "*", "other", "", "", "", "OPTIONS *" },
};

TEST(a_request_is_about_what_the_api_server_takes_it_for)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];
		struct target target CLEANUP(target_done);
		CHECK_INT(target_read(row->method, row->path, &target), 0);
		CHECK_STR(target.verb, row->verb);
		CHECK_STR(target.resource.s, row->resource);
		CHECK_STR(target.namespace.s, row->namespace);
		CHECK_STR(target.name.s, row->name);
		CHECK_STR(target.identity.s, row->identity);
		CHECKF(target.watch == (strcmp(row->verb, "watch") == 0), "%s", row->path);
	}
}

TEST(a_path_without_end_is_refused)
{
	struct strbuf path CLEANUP(strbuf_done) = STRBUF_INIT;
	struct target target;
	while (path.len <= TARGET_MAX)
		strbuf_puts(&path, "/long");
	CHECK_INT(target_read("GET", path.s, &target), -E2BIG);
}

TEST_MAIN()
