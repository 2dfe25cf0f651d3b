/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/keep.h"
#include "kube/kind.h"

TEST(every_kind_is_complete)
{
	for (size_t i = 0; i < KUBE_KINDS; i++) {
		const struct kube_kind *kind = &kube_kinds[i];
		struct keep *keep CLEANUP(keep_freep) = NULL;
		struct err err = ERR_INIT;
		CHECKF(kind->kind && kind->group && kind->version && kind->plural && kind->keep,
		       "kind %zu", i);
		CHECKF(keep_new(kind->keep, &keep, &err) == 0, "%s: %s", kind->kind, err.text);
		CHECK(kube_kind_find(kind->group, kind->kind) == kind);
	}
}

TEST(kinds_of_one_name_are_told_apart_by_group)
{
	CHECK(kube_kind_find("scheduling.x-k8s.io", "PodGroup") == &kube_kinds[KUBE_POD_GROUP]);
	CHECK(kube_kind_find("scheduling.k8s.io", "PodGroup") ==
	      &kube_kinds[KUBE_UPSTREAM_POD_GROUP]);
	CHECK(kube_kind_find("", "PodGroup") == NULL);
	CHECK(kube_kind_find("apps", "Pod") == NULL);
}

TEST(paths)
{
	static const struct {
		enum kube_kind_id kind;
		const char *namespace, *name, *subresource, *path;
	} rows[] = {
		{ KUBE_POD, "ml", "a", "binding", "/api/v1/namespaces/ml/pods/a/binding" },
		{ KUBE_POD, "ml", "a", NULL, "/api/v1/namespaces/ml/pods/a" },
		{ KUBE_POD, "ml", NULL, "status", "/api/v1/namespaces/ml/pods" },
		{ KUBE_POD, NULL, NULL, NULL, "/api/v1/pods" },
		{ KUBE_POD, "", NULL, NULL, "/api/v1/pods" },
		{ KUBE_NODE, "ml", "n", NULL, "/api/v1/nodes/n" },
		{ KUBE_LEASE, "l", "x", NULL,
		  "/apis/coordination.k8s.io/v1/namespaces/l/leases/x" },
		{ KUBE_GPU_NODE_STATUS, NULL, "n", "status",
		  "/apis/gpu.scheduling/v1/gpunodestatuses/n/status" },
		{ KUBE_POD, "..", "a/b?c", NULL, "/api/v1/namespaces/%2E%2E/pods/a%2Fb%3Fc" },
		{ KUBE_POD, ".", "...", NULL, "/api/v1/namespaces/%2E/pods/..." },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct strbuf path CLEANUP(strbuf_done) = STRBUF_INIT;
		kube_path(&path, &kube_kinds[rows[i].kind], rows[i].namespace, rows[i].name,
			  rows[i].subresource);
		CHECK_STR(path.s, rows[i].path);
	}
}

TEST(query_values_are_escaped)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	static const char text[] = "status.phase!=Failed,a in (b) \xc3\xa9+\0~";
	kube_escape(&out, text, sizeof(text) - 1);
	CHECK_STR(out.s, "status.phase%21%3DFailed%2Ca%20in%20%28b%29%20%C3%A9%2B%00~");
}

TEST_MAIN()
