/* SPDX-License-Identifier: Apache-2.0 */
/* Any document becomes a view, all of whose strings are there, or one sentence.  The first
 * byte chooses the view. */
#include "fuzz.h"

#include "base/attr.h"
#include "base/err.h"
#include "kube/views/gpu.h"
#include "kube/views/lease.h"
#include "kube/views/node.h"
#include "kube/views/pod.h"
#include "kube/views/volume.h"
#include "kube/views/workload.h"
#include "wire/json.h"

#include <errno.h>
#include <string.h>

/* Touches every byte. */
static size_t sum;
#define TEXT(s) (sum += strlen(s))

static void check_meta(const struct view_meta *meta)
{
	REQUIRE(TEXT(meta->name) > 0);
	TEXT(meta->namespace);
	TEXT(meta->uid);
	TEXT(meta->version);
	REQUIRE(meta->deleting || meta->deleted_ns == VIEW_TIME_NONE);
}

static void check_controller(const struct view_controller *controller)
{
	TEXT(controller->api_version);
	TEXT(controller->kind);
	TEXT(controller->name);
	TEXT(controller->uid);
}

static int try_pod(const struct json *object, struct err *err)
{
	struct pod_view v;
	int rc = pod_view_read(object, &v, err);

	if (rc < 0)
		return rc;
	check_meta(&v.meta);
	check_controller(&v.controller);
	TEXT(v.node);
	TEXT(v.scheduler);
	TEXT(v.nominated);
	TEXT(v.priority_class);
	TEXT(v.scheduled_reason);
	TEXT(v.disrupted_reason);
	REQUIRE(v.phase <= POD_FAILED);
	return 0;
}

static int try_node(const struct json *object, struct err *err)
{
	struct node_view v;
	int rc = node_view_read(object, &v, err);

	if (rc == 0) {
		check_meta(&v.meta);
		TEXT(v.ready_reason);
	}
	return rc;
}

static int try_lease(const struct json *object, struct err *err)
{
	struct lease_view v;
	int rc = lease_view_read(object, &v, err);

	if (rc == 0) {
		check_meta(&v.meta);
		TEXT(v.holder);
		REQUIRE(v.duration_s >= 0 && v.transitions >= 0);
	}
	return rc;
}

static int try_claim(const struct json *object, struct err *err)
{
	struct claim_view v;
	int rc = claim_view_read(object, &v, err);

	if (rc == 0) {
		check_meta(&v.meta);
		TEXT(v.node);
		TEXT(v.allocated);
		TEXT(v.message);
		REQUIRE(v.phase <= CLAIM_FAILED);
	}
	return rc;
}

static int try_node_status(const struct json *object, struct err *err)
{
	struct node_status_view v;
	int rc = node_status_view_read(object, &v, err);

	if (rc == 0) {
		check_meta(&v.meta);
		REQUIRE(v.injection <= INJECTION_ALL);
	}
	return rc;
}

static int try_config(const struct json *object, struct err *err)
{
	struct config_view v;
	int rc = config_view_read(object, "SchedulerConfig", &v, err);

	if (rc == 0)
		REQUIRE(!v.spec || json_type(v.spec) == JSON_OBJECT);
	config_map_text(object, "config.yaml");
	return rc;
}

static int try_owner(const struct json *object, struct err *err)
{
	struct owner_view v;
	int rc = owner_view_read(object, "Job", &v, err);

	if (rc == 0) {
		check_meta(&v.meta);
		check_controller(&v.controller);
		REQUIRE(v.replicas >= 0 && v.parallelism >= 0 && v.completions >= -1);
	}
	return rc;
}

static int try_group(const struct json *object, struct err *err)
{
	struct group_view v;
	int rc = group_view_read(object, &v, err);

	if (rc == 0)
		REQUIRE(v.min_members >= 0);
	return rc;
}

static int try_priority(const struct json *object, struct err *err)
{
	struct priority_view v;

	return priority_view_read(object, &v, err);
}

static int try_budget(const struct json *object, struct err *err)
{
	struct budget_view v;
	int rc = budget_view_read(object, &v, err);

	if (rc == 0) {
		REQUIRE(v.disruptions_allowed >= 0);
		budget_view_has_disrupted(&v, "pod");
	}
	return rc;
}

static int try_namespace(const struct json *object, struct err *err)
{
	struct namespace_view v;

	return namespace_view_read(object, &v, err);
}

static int try_volume_claim(const struct json *object, struct err *err)
{
	struct volume_claim_view v;
	int rc = volume_claim_view_read(object, &v, err);

	if (rc == 0) {
		check_controller(&v.controller);
		TEXT(v.volume);
		TEXT(v.class);
		TEXT(v.selected_node);
		REQUIRE(v.phase <= VOLUME_CLAIM_LOST && v.access < 16);
	}
	return rc;
}

static int try_volume(const struct json *object, struct err *err)
{
	struct volume_view v;
	int rc = volume_view_read(object, &v, err);

	if (rc == 0) {
		TEXT(v.class);
		TEXT(v.claim_namespace);
		TEXT(v.claim_name);
		TEXT(v.claim_uid);
		TEXT(v.driver);
		TEXT(v.handle);
		REQUIRE(v.phase <= VOLUME_FAILED && v.access < 16);
	}
	return rc;
}

static int try_storage_class(const struct json *object, struct err *err)
{
	struct storage_class_view v;
	int rc = storage_class_view_read(object, &v, err);

	if (rc == 0)
		TEXT(v.provisioner);
	return rc;
}

static int try_csi_driver(const struct json *object, struct err *err)
{
	struct csi_driver_view v;

	return csi_driver_view_read(object, &v, err);
}

static int try_csi_node(const struct json *object, struct err *err)
{
	int64_t limit;
	int rc = csi_node_limit(object, "d", &limit, err);

	REQUIRE(rc < 0 || limit >= -1);
	return rc;
}

static int try_csi_capacity(const struct json *object, struct err *err)
{
	struct csi_capacity_view v;
	int rc = csi_capacity_view_read(object, &v, err);

	if (rc == 0)
		TEXT(v.class);
	return rc;
}

static int try_attachment(const struct json *object, struct err *err)
{
	struct attachment_view v;
	int rc = attachment_view_read(object, &v, err);

	if (rc == 0) {
		TEXT(v.attacher);
		TEXT(v.node);
		TEXT(v.volume);
	}
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int (*const views[])(const struct json *object, struct err *err) = {
		try_pod,	  try_node,	     try_lease,	     try_claim,
		try_node_status,  try_config,	     try_owner,	     try_group,
		try_priority,	  try_budget,	     try_namespace,  try_volume_claim,
		try_volume,	  try_storage_class, try_csi_driver, try_csi_node,
		try_csi_capacity, try_attachment,
	};
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct err err = ERR_INIT;

	if (size < 1 || json_parse("fuzz", (const char *)data + 1, size - 1, NULL, &doc, NULL) < 0)
		return 0;
	int rc = views[data[0] % ARRAY_SIZE(views)](json_root(doc), &err);
	REQUIRE(rc == 0 || (rc == -EINVAL && err.text[0]));
	return 0;
}
