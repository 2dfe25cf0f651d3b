/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/check.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
	return is_lower(c) || is_digit(c) || (c >= 'A' && c <= 'Z');
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Lower-case letters, digits and inner '-'; with dots, that between each two of them. */
static bool is_dns(const char *s, size_t len, bool dots, bool any_case)
{
	char before = '.';
	for (size_t i = 0; i < len; i++) {
		char c = any_case ? lower(s[i]) : s[i];
		bool edge = before == '.';
		if (c == '.' && (!dots || edge || before == '-'))
			return false;
		if (c == '-' && edge)
			return false;
		if (c != '.' && c != '-' && !is_lower(c) && !is_digit(c))
			return false;
		before = c;
	}
	return len > 0 && before != '.' && before != '-';
}

/* Letters, digits, and '-', '_', '.' inside. */
static bool is_word(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool edge = i == 0 || i == len - 1;
		if (!is_alnum(s[i]) && (edge || !strchr("-_.", s[i]) || !s[i]))
			return false;
	}
	return len > 0;
}

/* "`what` "shown" `problem`" */
static int refuse(const char *what, const char *s, const char *problem, struct err *err)
{
	char shown[UTF8_SHOW_MAX];
	return err_set(err, EINVAL, "%s \"%s\" %s", what, utf8_show(s, strlen(s), shown), problem);
}

int kube_check_subdomain(const char *what, const char *name, struct err *err)
{
	if (!name || !name[0])
		return err_set(err, EINVAL, "%s is missing", what);
	size_t len = strlen(name);
	if (len > KUBE_SUBDOMAIN_MAX)
		return refuse(what, name, "has more than 253 characters", err);
	if (!is_dns(name, len, true, false))
		return refuse(what, name,
			      "is no DNS name: lower-case letters, digits, '-' and '.', with a "
			      "letter or digit at both ends of each part",
			      err);
	return 0;
}

int kube_check_label_name(const char *what, const char *name, struct err *err)
{
	if (!name || !name[0])
		return err_set(err, EINVAL, "%s is missing", what);
	size_t len = strlen(name);
	if (len > KUBE_LABEL_MAX)
		return refuse(what, name, "has more than 63 characters", err);
	if (!is_dns(name, len, false, false))
		return refuse(what, name,
			      "is no DNS label: lower-case letters, digits and '-', with a letter "
			      "or digit at both ends",
			      err);
	return 0;
}

static int check_key(const char *what, const char *key, bool any_case, struct err *err)
{
	if (!key || !key[0])
		return err_set(err, EINVAL, "%s is missing", what);
	const char *slash = strchr(key, '/');
	const char *name = slash ? slash + 1 : key;
	size_t prefix_len = slash ? (size_t)(slash - key) : 0;
	if (strchr(name, '/'))
		return refuse(what, key, "has more than one '/'", err);
	if (slash && (prefix_len > KUBE_SUBDOMAIN_MAX || !is_dns(key, prefix_len, true, any_case)))
		return refuse(what, key,
			      "does not begin with a DNS name of at most 253 characters", err);
	if (strlen(name) > KUBE_LABEL_MAX)
		return refuse(what, key, "has a name of more than 63 characters", err);
	if (!is_word(name, strlen(name)))
		return refuse(what, key,
			      "has a name with other than letters, digits, '-', '_' and '.', or "
			      "without a letter or digit at both ends",
			      err);
	return 0;
}

int kube_check_label_key(const char *what, const char *key, struct err *err)
{
	return check_key(what, key, false, err);
}

int kube_check_annotation_key(const char *what, const char *key, struct err *err)
{
	return check_key(what, key, true, err);
}

int kube_check_label_value(const char *what, const char *value, struct err *err)
{
	if (!value)
		return err_set(err, EINVAL, "%s is missing", what);
	size_t len = strlen(value);
	if (len > KUBE_LABEL_MAX)
		return refuse(what, value, "has more than 63 characters", err);
	if (len && !is_word(value, len))
		return refuse(what, value,
			      "has other than letters, digits, '-', '_' and '.', or no letter or "
			      "digit at both ends",
			      err);
	return 0;
}

static int check_once(const char *what, const struct kube_pair *pairs, size_t count,
		      struct err *err)
{
	if (count > KUBE_PAIRS_MAX)
		return err_set(err, E2BIG, "%s are more than %d", what, KUBE_PAIRS_MAX);
	for (size_t i = 1; i < count; i++) {
		for (size_t j = 0; j < i; j++) {
			if (strcmp(pairs[i].key, pairs[j].key) == 0)
				return err_set(err, EINVAL, "%s have the key %s twice", what,
					       pairs[i].key);
		}
	}
	return 0;
}

int kube_check_labels(const char *what, const struct kube_pair *labels, size_t count,
		      struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		int result = kube_check_label_key("label key", labels[i].key, err);
		if (result == 0)
			result = kube_check_label_value("label value", labels[i].value, err);
		if (result < 0) {
			err_prefix(err, "%s", what);
			return result;
		}
	}
	return check_once(what, labels, count, err);
}

int kube_check_annotations(const char *what, const struct kube_pair *annotations, size_t count,
			   struct err *err)
{
	size_t total = 0;
	for (size_t i = 0; i < count; i++) {
		const struct kube_pair *pair = &annotations[i];
		int result = kube_check_annotation_key("annotation key", pair->key, err);
		if (result < 0) {
			err_prefix(err, "%s", what);
			return result;
		}
		if (!pair->value)
			return err_set(err, EINVAL, "%s: %s has no value", what, pair->key);
		size_t len = strlen(pair->value);
		if (utf8_valid(pair->value, len) != len)
			return err_set(err, EINVAL, "%s: the value of %s is not UTF-8", what,
				       pair->key);
		total += strlen(pair->key) + len; /* of strings in memory: cannot overflow */
	}
	if (total > KUBE_ANNOTATIONS_MAX)
		return err_set(err, E2BIG, "%s have %zu bytes, more than 256 KiB", what, total);
	return check_once(what, annotations, count, err);
}

int kube_check_uid(const char *what, const char *uid, struct err *err)
{
	if (!uid || !uid[0])
		return err_set(err, EINVAL, "%s is missing", what);
	if (strlen(uid) > KUBE_UID_MAX || !is_word(uid, strlen(uid)))
		return refuse(what, uid, "is no uid", err);
	return 0;
}

int kube_check_version(const char *what, const char *version, struct err *err)
{
	if (!version || !version[0])
		return err_set(err, EINVAL, "%s is missing", what);
	bool digits = version[0] != '0';
	for (const char *c = version; *c; c++)
		digits = digits && is_digit(*c);
	if (!digits || strlen(version) > KUBE_VERSION_MAX)
		return refuse(what, version, "is no version to rely on", err);
	return 0;
}

int kube_check_object_size(const char *what, size_t bytes, struct err *err)
{
	if (bytes > KUBE_OBJECT_MAX)
		return err_set(err, E2BIG,
			       "%s has %zu bytes, more than the 1.5 MiB that are stored", what,
			       bytes);
	return 0;
}

int kube_check_request_size(const char *what, size_t bytes, struct err *err)
{
	if (bytes > KUBE_REQUEST_MAX)
		return err_set(err, E2BIG,
			       "%s has %zu bytes, more than the 3 MiB that are accepted", what,
			       bytes);
	return 0;
}
