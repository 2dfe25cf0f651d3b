/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "base/err.h"
#include "kube/check.h"

#include <errno.h>

static const char *repeat(char c, size_t n)
{
	static char text[8][300];
	static unsigned at;
	char *s = text[at++ % 8];
	memset(s, c, n);
	s[n] = '\0';
	return s;
}

typedef int (*check_fn)(const char *what, const char *s, struct err *err);

static void check_all(check_fn check, const char *const *cases, int expected)
{
	for (size_t i = 0; cases[i]; i++) {
		struct err err = ERR_INIT;
		CHECKF(check("thing", cases[i], &err) == expected, "\"%s\": %s", cases[i],
		       err.text);
		CHECK(expected == 0 || strncmp(err.text, "thing ", 6) == 0);
	}
	CHECK_INT(check("thing", NULL, NULL), -EINVAL);
}

TEST(names_are_dns_subdomains)
{
	const char *good[] = { "a", "0", "a-b", "a.b-c.9", "gpus-n1", repeat('a', 253), NULL };
	const char *bad[] = { "",
			      "A",
			      "-a",
			      "a-",
			      ".a",
			      "a.",
			      "a..b",
			      "a.-b",
			      "a-.b",
			      "a_b",
			      "a/b",
			      "\xc3\xbc",
			      repeat('a', 254),
			      NULL };
	check_all(kube_check_subdomain, good, 0);
	check_all(kube_check_subdomain, bad, -EINVAL);
}

TEST(namespaces_are_dns_labels)
{
	const char *good[] = { "a", "kube-system", "0", repeat('a', 63), NULL };
	const char *bad[] = { "", "a.b", "-a", "a-", "A", repeat('a', 64), NULL };
	check_all(kube_check_label_name, good, 0);
	check_all(kube_check_label_name, bad, -EINVAL);
}

TEST(keys_have_a_prefix_and_a_name)
{
	char long_prefix[300];
	snprintf(long_prefix, sizeof(long_prefix), "%s/n", repeat('a', 254));
	const char *good[] = { "a",
			       "A_b.c-d",
			       "gpu.scheduling/decision",
			       "elasticgpu.io/x",
			       "a-b.c/D",
			       repeat('a', 63),
			       NULL };
	const char *bad[] = { "",    "/",  "a/", "/a",	  "a/b/c",	   "a b",
			      "a/-", "_a", "a_", "a_b/c", repeat('a', 64), long_prefix,
			      NULL };
	check_all(kube_check_label_key, good, 0);
	check_all(kube_check_label_key, bad, -EINVAL);
	check_all(kube_check_annotation_key, good, 0);
	check_all(kube_check_annotation_key, bad, -EINVAL);
	CHECK_INT(kube_check_annotation_key("key", "Example.COM/a", NULL), 0);
	CHECK_INT(kube_check_label_key("key", "Example.COM/a", NULL), -EINVAL);
}

TEST(label_values_are_short_words)
{
	const char *good[] = { "", "a", "A-b_c.9", repeat('x', 63), NULL };
	const char *bad[] = { "-", "a-", "a b", "a/b", "\xc3\xbc", repeat('x', 64), NULL };
	check_all(kube_check_label_value, good, 0);
	check_all(kube_check_label_value, bad, -EINVAL);
}

TEST(uids_and_versions_are_what_the_server_gives)
{
	const char *good_uids[] = { "5f5ee5a6-7d51-4b4a-9d0e-6d6b1e7d4b21", "abc", NULL };
	const char *bad_uids[] = { "", "a b", "\"", repeat('a', 129), NULL };
	const char *good_versions[] = { "1", "123456789012345678901234567890", NULL };
	const char *bad_versions[] = { "", "0", "01", "-1", "1a", " 1", repeat('1', 65), NULL };
	check_all(kube_check_uid, good_uids, 0);
	check_all(kube_check_uid, bad_uids, -EINVAL);
	check_all(kube_check_version, good_versions, 0);
	check_all(kube_check_version, bad_versions, -EINVAL);
}

TEST(annotations_are_checked_one_by_one_and_together)
{
	static char half[(KUBE_ANNOTATIONS_MAX / 2)];
	memset(half, 'x', sizeof(half) - 1);
	struct err err = ERR_INIT;
	const struct kube_pair fit[] = { { "a", half }, { "b", half } };
	const struct kube_pair large[] = { { "a", half }, { "b", half }, { "c", "" } };
	const struct kube_pair twice[] = { { "a", "1" }, { "b", "" }, { "a", "1" } };
	const struct kube_pair strange[] = { { "a", "\xff" } };
	const struct kube_pair missing[] = { { "a", NULL } };
	const struct kube_pair key[] = { { "a", "" }, { "b c", "" } };
	CHECK_INT(kube_check_annotations("annotations", NULL, 0, &err), 0);
	CHECK_INT(kube_check_annotations("annotations", fit, 2, &err), 0);
	CHECK_INT(kube_check_annotations("annotations", large, 3, &err), -E2BIG);
	CHECK_STR(err.text, "annotations have 262145 bytes, more than 256 KiB");
	CHECK_INT(kube_check_annotations("annotations", twice, 3, &err), -EINVAL);
	CHECK_STR(err.text, "annotations have the key a twice");
	CHECK_INT(kube_check_annotations("annotations", strange, 1, &err), -EINVAL);
	CHECK_INT(kube_check_annotations("annotations", missing, 1, &err), -EINVAL);
	CHECK_INT(kube_check_annotations("annotations", key, 2, &err), -EINVAL);
	CHECK(strncmp(err.text, "annotations: annotation key \"b c\"", 33) == 0);
}

TEST(labels_are_checked_one_by_one_and_together)
{
	const struct kube_pair good[] = { { "a/b", "" }, { "b", "x" } };
	const struct kube_pair value[] = { { "a", "x y" } };
	const struct kube_pair key[] = { { "A.b/c", "" } };
	const struct kube_pair twice[] = { { "a", "" }, { "a", "" } };
	CHECK_INT(kube_check_labels("labels", good, 2, NULL), 0);
	CHECK_INT(kube_check_labels("labels", value, 1, NULL), -EINVAL);
	CHECK_INT(kube_check_labels("labels", key, 1, NULL), -EINVAL);
	CHECK_INT(kube_check_labels("labels", twice, 2, NULL), -EINVAL);
}

TEST(bodies_have_a_greatest_size)
{
	struct err err = ERR_INIT;
	CHECK_INT(kube_check_object_size("Lease a/b", 1536 << 10, &err), 0);
	CHECK_INT(kube_check_object_size("Lease a/b", (1536 << 10) + 1, &err), -E2BIG);
	CHECK_STR(err.text, "Lease a/b has 1572865 bytes, more than the 1.5 MiB that are stored");
	CHECK_INT(kube_check_request_size("patch", 3 << 20, &err), 0);
	CHECK_INT(kube_check_request_size("patch", (3 << 20) + 1, &err), -E2BIG);
}

TEST_MAIN()
