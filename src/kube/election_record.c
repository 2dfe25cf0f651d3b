/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/election_record.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/num.h"
#include "kube/time.h"
#include "wire/json.h"
#include "wire/json_write.h"

#include <errno.h>
#include <string.h>

void election_record_init(struct election_record *record)
{
	*record = (struct election_record){
		.lease = STRBUF_INIT_MAX(ELECTION_LEASE_MAX),
		.spec = STRBUF_INIT_MAX(ELECTION_LEASE_MAX),
		.holder = STRBUF_INIT_MAX(ELECTION_LEASE_MAX),
	};
}

void election_record_done(struct election_record *record)
{
	if (!record)
		return;
	strbuf_done(&record->lease);
	strbuf_done(&record->spec);
	strbuf_done(&record->holder);
}

static void add_members_but(struct json_writer *writer, const struct json *object,
			    const char *skipped)
{
	struct json_iter members = json_members(object);
	for (struct json_member member; json_next_member(&members, &member);) {
		if (strcmp(member.key, skipped) == 0)
			continue;
		json_add_key(writer, member.key);
		json_add_value(writer, member.value);
	}
}

/* Without managedFields: a PUT that does not name them leaves them alone. */
static void add_lease(struct strbuf *out, const struct json *lease)
{
	struct json_writer writer = JSON_WRITER_INIT(out);
	json_open_object(&writer);
	add_members_but(&writer, lease, "metadata");
	json_add_key(&writer, "metadata");
	json_open_object(&writer);
	add_members_but(&writer, json_get(lease, "metadata"), "managedFields");
	json_close_object(&writer);
	json_close_object(&writer);
}

static int check(const struct json *lease, struct err *err)
{
	const char *uid = json_str(lease, "metadata", "uid");
	const char *version = json_str(lease, "metadata", "resourceVersion");
	enum json_type spec = json_type(lease, "spec");
	if (!uid || !*uid || !version || !*version || (spec != JSON_OBJECT && spec > JSON_NULL))
		return err_set(err, EINVAL, "the answer is no Lease");
	return 0;
}

static int64_t spec_number(const struct json *lease, const char *key)
{
	int64_t number = 0;
	return json_i64(lease, &number, "spec", key) == 0 && number > 0 ? number : 0;
}

int election_record_read(struct election_record *record, const struct json *lease, bool *changed,
			 struct err *err)
{
	struct strbuf before CLEANUP(strbuf_done) = record->spec;
	const char *holder = json_str(lease, "spec", "holderIdentity");
	record->spec = (struct strbuf)STRBUF_INIT_MAX(ELECTION_LEASE_MAX);
	strbuf_reset(&record->lease);
	strbuf_reset(&record->holder);
	int result = check(lease, err);
	if (result < 0)
		return result;
	struct json_writer writer = JSON_WRITER_INIT(&record->spec);
	json_open_array(&writer);
	json_add_str(&writer, json_str(lease, "metadata", "uid"));
	json_add_value(&writer, json_get(lease, "spec"));
	json_close_array(&writer);
	add_lease(&record->lease, lease);
	strbuf_puts(&record->holder, holder ? holder : "");
	record->duration_s = spec_number(lease, "leaseDurationSeconds");
	record->transitions = spec_number(lease, "leaseTransitions");
	if (record->spec.failed || record->lease.failed || record->holder.failed) {
		election_record_done(record);
		election_record_init(record);
		return err_set(err, ENOMEM, "the Lease is too large, or out of memory");
	}
	*changed = before.len != record->spec.len || strcmp(before.s, record->spec.s) != 0;
	return 0;
}

static void add_time(struct json_writer *writer, const char *key, int64_t wall_ns)
{
	char text[KUBE_TIME_MAX];
	json_add_key(writer, key);
	json_add_str(writer, kube_microtime_format(wall_ns, text));
}

static bool is_ours(const char *key, bool acquires)
{
	if (strcmp(key, "acquireTime") == 0 || strcmp(key, "leaseTransitions") == 0)
		return acquires;
	return strcmp(key, "holderIdentity") == 0 || strcmp(key, "leaseDurationSeconds") == 0 ||
	       strcmp(key, "renewTime") == 0;
}

static void add_spec(struct json_writer *writer, const struct election_record *record,
		     const struct json *spec, const struct election_claim *claim)
{
	int64_t transitions;
	if (!record->lease.len || ADD_OVERFLOW(record->transitions, 1, &transitions) ||
	    transitions > INT32_MAX)
		transitions = 0;
	json_open_object(writer);
	struct json_iter members = json_members(spec);
	for (struct json_member member; json_next_member(&members, &member);) {
		if (is_ours(member.key, claim->acquires))
			continue;
		json_add_key(writer, member.key);
		json_add_value(writer, member.value);
	}
	json_add_key(writer, "holderIdentity");
	json_add_str(writer, claim->holder);
	json_add_key(writer, "leaseDurationSeconds");
	json_add_i64(writer, claim->duration_s);
	add_time(writer, "renewTime", claim->wall_ns);
	if (claim->acquires) {
		add_time(writer, "acquireTime", claim->wall_ns);
		json_add_key(writer, "leaseTransitions");
		json_add_i64(writer, transitions);
	}
	json_close_object(writer);
}

static void add_identity(struct json_writer *writer, const struct election_claim *claim)
{
	json_add_key(writer, "apiVersion");
	json_add_str(writer, "coordination.k8s.io/v1");
	json_add_key(writer, "kind");
	json_add_str(writer, "Lease");
	json_add_key(writer, "metadata");
	json_open_object(writer);
	json_add_key(writer, "name");
	json_add_str(writer, claim->name);
	json_add_key(writer, "namespace");
	json_add_str(writer, claim->namespace);
	json_close_object(writer);
}

int election_record_write(const struct election_record *record, const struct election_claim *claim,
			  struct strbuf *out)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct json_writer writer = JSON_WRITER_INIT(out);
	if (record->lease.len > 0 &&
	    json_parse("lease", record->lease.s, record->lease.len, NULL, &doc, NULL) < 0)
		return -ENOMEM;
	const struct json *lease = doc ? json_root(doc) : NULL;
	json_open_object(&writer);
	if (lease)
		add_members_but(&writer, lease, "spec");
	else
		add_identity(&writer, claim);
	json_add_key(&writer, "spec");
	add_spec(&writer, record, json_get(lease, "spec"), claim);
	json_close_object(&writer);
	return out->failed ? -ENOMEM : 0;
}
