/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/quantity.h"

#include "base/attr.h"
#include "base/err.h"
#include "test.h"
#include "wire/json.h"

#include <errno.h>

static const struct {
	const char *text;
	int64_t milli, value;
} values[] = {
	{ "0", 0, 0 },
	{ "1", 1000, 1 },
	{ "100m", 100, 1 },
	{ "1500m", 1500, 2 },
	{ "0.1", 100, 1 },
	{ "0.1m", 1, 1 },
	{ "0.0001m", 1, 1 },
	{ "1n", 1, 1 },
	{ "1u", 1, 1 },
	{ "1001u", 2, 1 },
	{ "1000000n", 1, 1 },
	{ "1000001n", 2, 1 },
	{ "0.5n", 1, 1 },
	{ "1e-30", 1, 1 },
	{ "0e-30", 0, 0 },
	{ "0.0000000000000000000000000000000", 0, 0 },
	{ "1k", 1000000, 1000 },
	{ "1M", 1000000000, 1000000 },
	{ "1.5G", 1500000000000, 1500000000 },
	{ "2T", 2000000000000000, 2000000000000 },
	{ "3P", 3000000000000000000, 3000000000000000 },
	{ "1E", INT64_MAX, 1000000000000000000 },
	{ "1E3", 1000000, 1000 },
	{ "1e3", 1000000, 1000 },
	{ "1E+3", 1000000, 1000 },
	{ "1E-3", 1, 1 },
	{ "12e-4", 2, 1 },
	{ "1e0", 1000, 1 },
	{ "1e-0", 1000, 1 },
	{ "1Ei", INT64_MAX, INT64_C(1) << 60 },
	{ "1Ki", 1024000, 1024 },
	{ "1.5Ki", 1536000, 1536 },
	{ "0.5Mi", 524288000, 524288 },
	{ "1Gi", INT64_C(1000) << 30, INT64_C(1) << 30 },
	{ "64Gi", INT64_C(64000) << 30, INT64_C(64) << 30 },
	{ "1Ti", INT64_C(1000) << 40, INT64_C(1) << 40 },
	{ "1Pi", INT64_C(1000) << 50, INT64_C(1) << 50 },
	{ "0.0001Ki", 103, 1 },
	{ ".0009765625Ki", 1000, 1 },
	{ "0.1Ki", 102400, 103 },
	{ "1.", 1000, 1 },
	{ "1.k", 1000000, 1000 },
	{ ".5", 500, 1 },
	{ "+.5", 500, 1 },
	{ "0001", 1000, 1 },
	{ "+2", 2000, 2 },
	{ "-2", -2000, -2 },
	{ "-0.1m", -1, -1 },
	{ "-1500m", -1500, -2 },
	{ "-0", 0, 0 },
	{ "1.0000000000000000000000000000000001", 1001, 2 },
	{ "1.00000000000000000000000000000000000000000000000000000000000000", 1000, 1 },
	{ "0000000000000000000000000000000000000000000000000000000000001k", 1000000, 1000 },
	/* the ends of int64_t */
	{ "9223372036854775807", INT64_MAX, INT64_MAX },
	{ "9223372036854775808", INT64_MAX, INT64_MAX },
	{ "-9223372036854775808", INT64_MIN, INT64_MIN },
	{ "-9223372036854775809", INT64_MIN, INT64_MIN },
	{ "9223372036854775.807", INT64_MAX, INT64_C(9223372036854776) },
	{ "9223372036854775.8071", INT64_MAX, INT64_C(9223372036854776) },
	{ "9223372036854775.806", INT64_MAX - 1, INT64_C(9223372036854776) },
	{ "7Ei", INT64_MAX, INT64_C(7) << 60 },
	{ "8Ei", INT64_MAX, INT64_MAX },
	{ "100Ei", INT64_MAX, INT64_MAX },
	{ "-100Ei", INT64_MIN, -INT64_MAX },
	{ "9007199254740991.9Ki", INT64_MAX, 9223372036854775706 },
	{ "9007199254740991.9999Ki", INT64_MAX, INT64_MAX },
	{ "99999999999999999999999999999999999999999999999999Ki", INT64_MAX, INT64_MAX },
	{ "1e18", INT64_MAX, 1000000000000000000 },
	{ "1e19", INT64_MAX, INT64_MAX },
	{ "1e100", INT64_MAX, INT64_MAX },
	{ "-1e100", INT64_MIN, INT64_MIN },
	{ "1e99999999999999999999", INT64_MAX, INT64_MAX },
	{ "1e-99999999999999999999", 1, 1 },
	{ "0e99999999999999999999", 0, 0 },
	{ "123456789012345678901234567890123456789012345", INT64_MAX, INT64_MAX },
};

TEST(quantities_have_the_values_that_kubernetes_gives_them)
{
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		struct quantity q;
		struct err err = ERR_INIT;
		const char *text = values[i].text;
		CHECKF(quantity_parse(text, strlen(text), &q, &err) == 0, "%s", err.text);
		CHECKF(quantity_milli(q) == values[i].milli, "%s is %" PRId64 " milli", text,
		       quantity_milli(q));
		CHECKF(quantity_value(q) == values[i].value, "%s is %" PRId64, text,
		       quantity_value(q));
	}
}

TEST(precision_ends_at_nano)
{
	struct quantity q;
	CHECK(quantity_parse("1.5n", 4, &q, NULL) == 0 && q.nano == 2);
	CHECK(quantity_parse("-1.5n", 5, &q, NULL) == 0 && q.nano == -2);
	CHECK(quantity_parse("123.456789012", 13, &q, NULL) == 0 && q.nano == 123456789012);
	CHECK(quantity_parse("0.00000000001Ki", 15, &q, NULL) == 0 && q.nano == 11);
}

TEST(what_is_no_quantity_is_refused_with_what_is_allowed)
{
	static const char *const cases[] = {
		"",	 "-",	  "+",	   ".",	  "-.",	  "Ki",	 "m",	 "K",	 "1K",
		"1KI",	 "1ki",	  "1mi",   "1i",  "1gi",  "1g",	 "1t",	 "1 ",	 " 1",
		"1 Gi",	 "1..2",  "1.2.3", "--1", "+-1",  "1e",	 "1e+",	 "1e-",	 "1e1.5",
		"1e1k",	 "1Eii",  "1E3i",  "1,5", "0x10", "abc", "1m1",	 "1Km",	 "1GiB",
		"1e+-3", "1e++3", "NaN",   "Inf", "1Zi",  "1\n", "\xff", "1e 3",
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct quantity q = { 7 };
		struct err err = ERR_INIT;
		CHECKF(quantity_parse(cases[i], strlen(cases[i]), &q, &err) == -EINVAL, "\"%s\"",
		       cases[i]);
		CHECK(q.nano == 7);
		CHECK(strstr(err.text, "is not a quantity") && strstr(err.text, "Ki, Mi"));
	}
}

TEST(quantities_come_from_json_strings_and_numbers)
{
	static const char text[] = "{\"a\":\" 1.5Gi\\n\",\"b\":2,\"c\":0.1,\"d\":1e21,\"e\":-3,"
				   "\"f\":null,\"g\":true,\"h\":\"x\",\"i\":\"1\\u0000\"}";
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	CHECK(json_parse("x", text, strlen(text), NULL, &doc, NULL) == 0);
	const struct json *root = json_root(doc);
	struct quantity q;
	CHECK(quantity_from_json(json_get(root, "a"), &q, NULL) == 0);
	CHECK(quantity_value(q) == INT64_C(3) << 29);
	CHECK(quantity_from_json(json_get(root, "b"), &q, NULL) == 0);
	CHECK(quantity_milli(q) == 2000);
	CHECK(quantity_from_json(json_get(root, "c"), &q, NULL) == 0);
	CHECK(quantity_milli(q) == 100);
	CHECK(quantity_from_json(json_get(root, "d"), &q, NULL) == 0);
	CHECK(quantity_value(q) == INT64_MAX);
	CHECK(quantity_from_json(json_get(root, "e"), &q, NULL) == 0);
	CHECK(quantity_value(q) == -3);
	CHECK_INT(quantity_from_json(json_get(root, "f"), &q, NULL), -ENOENT);
	CHECK_INT(quantity_from_json(json_get(root, "none"), &q, NULL), -ENOENT);
	CHECK_INT(quantity_from_json(json_get(root, "g"), &q, NULL), -EINVAL);
	CHECK_INT(quantity_from_json(json_get(root, "h"), &q, NULL), -EINVAL);
	CHECK_INT(quantity_from_json(json_get(root, "i"), &q, NULL), -EINVAL);
}

TEST_MAIN()
