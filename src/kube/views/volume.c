/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/views/volume.h"

#include "base/attr.h"
#include "base/err.h"
#include "wire/json.h"

#include <errno.h>
#include <string.h>

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

/* Modes that we do not know are nobody's: a volume cannot be taken for more than it is. */
static unsigned access_of(const struct json *object)
{
	static const char *const words[] = { "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany",
					     "ReadWriteOncePod" };
	struct json_iter iter = json_items(object, "spec", "accessModes");
	unsigned set = 0;
	for (const struct json *item; (item = json_next(&iter));)
		for (unsigned i = 0; i < ARRAY_SIZE(words); i++)
			if (strcmp(or_empty(json_str(item)), words[i]) == 0)
				set |= 1U << i;
	return set;
}

static int read_block(const struct json *object, const char *kind, bool *ret, struct err *err)
{
	static const char *const words[] = { "Block", NULL };
	struct view_field field = { object, kind, "spec", "volumeMode" };
	int word;
	int rc = view_word(&field, words, &word, err);
	*ret = word == 1;
	return rc;
}

/* An amount of bytes below spec, such as spec.capacity.storage. */
static int read_bytes(const struct json *object, const char *kind, const struct json *amounts,
		      int64_t *ret, struct err *err)
{
	struct view_field field = { amounts, kind, NULL, "storage" };
	if (view_quantity(&field, 0, ret, NULL) == 0)
		return 0;
	field.object = object; /* whose name the sentence tells */
	return view_wrong(&field, "no quantity", err);
}

static void read_claim_marks(const struct json *claim, struct volume_claim_view *view)
{
	const struct json *annotations = json_get(claim, "metadata", "annotations");
	view->selected_node =
		or_empty(json_str(annotations, "volume.kubernetes.io/selected-node"));
	view->bind_completed = json_get(annotations, "pv.kubernetes.io/bind-completed") != NULL;
	view->access = access_of(claim);
	view->selector = json_get(claim, "spec", "selector");
	view_controller_read(claim, &view->controller);
}

int volume_claim_view_read(const struct json *claim, struct volume_claim_view *ret,
			   struct err *err)
{
	static const char kind[] = "PersistentVolumeClaim";
	static const char *const phases[] = { "Pending", "Bound", "Lost", NULL };
	struct view_field field = { claim, kind, "status", "phase" };
	struct volume_claim_view view;
	int rc, phase;
	if ((rc = view_meta_read(claim, kind, &view.meta, err)) < 0 ||
	    (rc = view_word(&field, phases, &phase, err)) < 0)
		return rc;
	view.phase = (enum volume_claim_phase)phase;
	field = (struct view_field){ claim, kind, "spec", "volumeName" };
	if ((rc = view_str(&field, &view.volume, err)) < 0)
		return rc;
	field.name = "storageClassName";
	if ((rc = view_str(&field, &view.class, err)) < 0)
		return rc;
	view.has_class = view_get(&field) != NULL;
	if ((rc = read_block(claim, kind, &view.block, err)) < 0 ||
	    (rc = read_bytes(claim, kind, json_get(claim, "spec", "resources", "requests"),
			     &view.requested_bytes, err)) < 0)
		return rc;
	read_claim_marks(claim, &view);
	*ret = view;
	return 0;
}

static void read_volume_source(const struct json *volume, struct volume_view *view)
{
	const struct json *reference = json_get(volume, "spec", "claimRef");
	view->claim_namespace = or_empty(json_str(reference, "namespace"));
	view->claim_name = or_empty(json_str(reference, "name"));
	view->claim_uid = or_empty(json_str(reference, "uid"));
	view->driver = or_empty(json_str(volume, "spec", "csi", "driver"));
	view->handle = or_empty(json_str(volume, "spec", "csi", "volumeHandle"));
	view->access = access_of(volume);
}

/* An affinity that cannot be read must not be taken for none. */
static int read_affinity(const struct json *volume, const struct json **ret, struct err *err)
{
	struct view_field field = { volume, "PersistentVolume", "spec", "nodeAffinity" };
	const struct json *affinity = view_get(&field);
	const struct json *required = json_get(affinity, "required");
	if ((affinity && json_type(affinity) != JSON_OBJECT) ||
	    (json_type(required) > JSON_NULL && json_type(required) != JSON_OBJECT))
		return view_wrong(&field, "no object", err);
	*ret = json_type(required) == JSON_OBJECT ? required : NULL;
	return 0;
}

int volume_view_read(const struct json *volume, struct volume_view *ret, struct err *err)
{
	static const char kind[] = "PersistentVolume";
	static const char *const phases[] = { "Pending",  "Available", "Bound",
					      "Released", "Failed",    NULL };
	struct view_field field = { volume, kind, "status", "phase" };
	struct volume_view view;
	int rc, phase;
	if ((rc = view_meta_read(volume, kind, &view.meta, err)) < 0 ||
	    (rc = view_word(&field, phases, &phase, err)) < 0)
		return rc;
	view.phase = (enum volume_phase)phase;
	field = (struct view_field){ volume, kind, "spec", "storageClassName" };
	if ((rc = view_str(&field, &view.class, err)) < 0 ||
	    (rc = read_block(volume, kind, &view.block, err)) < 0 ||
	    (rc = read_affinity(volume, &view.node_affinity, err)) < 0 ||
	    (rc = read_bytes(volume, kind, json_get(volume, "spec", "capacity"),
			     &view.capacity_bytes, err)) < 0)
		return rc;
	read_volume_source(volume, &view);
	*ret = view;
	return 0;
}

static bool is_default_class(const struct json *class)
{
	const struct json *annotations = json_get(class, "metadata", "annotations");
	const char *mark = json_str(annotations, "storageclass.kubernetes.io/is-default-class");
	if (!mark)
		mark = json_str(annotations, "storageclass.beta.kubernetes.io/is-default-class");
	return mark && strcmp(mark, "true") == 0;
}

int storage_class_view_read(const struct json *class, struct storage_class_view *ret,
			    struct err *err)
{
	static const char *const waits[] = { "WaitForFirstConsumer", NULL };
	struct view_field field = { class, "StorageClass", NULL, "provisioner" };
	struct storage_class_view view;
	int rc, word;
	if ((rc = view_meta_read(class, "StorageClass", &view.meta, err)) < 0 ||
	    (rc = view_str(&field, &view.provisioner, err)) < 0)
		return rc;
	field.name = "volumeBindingMode";
	if ((rc = view_word(&field, waits, &word, err)) < 0)
		return rc;
	view.waits = word == 1;
	field.name = "allowedTopologies";
	view.topologies = view_get(&field);
	if (view.topologies && json_type(view.topologies) != JSON_ARRAY)
		return view_wrong(&field, "no list", err);
	view.is_default = is_default_class(class);
	*ret = view;
	return 0;
}

int csi_driver_view_read(const struct json *driver, struct csi_driver_view *ret, struct err *err)
{
	struct view_field field = { driver, "CSIDriver", "spec", "attachRequired" };
	struct csi_driver_view view;
	int rc;
	if ((rc = view_meta_read(driver, "CSIDriver", &view.meta, err)) < 0 ||
	    (rc = view_bool(&field, &view.attaches, err)) < 0)
		return rc;
	view.attaches |= !view_get(&field);
	field.name = "storageCapacity";
	if ((rc = view_bool(&field, &view.capacities, err)) < 0)
		return rc;
	*ret = view;
	return 0;
}

int csi_node_limit(const struct json *csi_node, const char *driver, int64_t *ret, struct err *err)
{
	struct view_field field = { csi_node, "CSINode", "spec", "drivers" };
	struct json_iter iter = json_items(view_get(&field));
	int64_t limit = -1;
	for (const struct json *item; (item = json_next(&iter));) {
		if (strcmp(or_empty(json_str(item, "name")), driver) != 0)
			continue;
		int rc = json_i64(item, &limit, "allocatable", "count");
		if (rc == -EINVAL || (rc == 0 && limit < 0))
			return view_wrong(&field, "with a count that is no whole number", err);
		break;
	}
	*ret = limit;
	return 0;
}

int csi_capacity_view_read(const struct json *capacity, struct csi_capacity_view *ret,
			   struct err *err)
{
	struct view_field field = { capacity, "CSIStorageCapacity", NULL, "storageClassName" };
	struct csi_capacity_view view;
	int64_t all;
	int rc;
	if ((rc = view_meta_read(capacity, "CSIStorageCapacity", &view.meta, err)) < 0 ||
	    (rc = view_str(&field, &view.class, err)) < 0)
		return rc;
	field.name = "capacity";
	if ((rc = view_quantity(&field, -1, &all, err)) < 0)
		return rc;
	field.name = "maximumVolumeSize";
	if ((rc = view_quantity(&field, all, &view.volume_bytes, err)) < 0)
		return rc;
	field.name = "nodeTopology";
	view.topology = view_get(&field);
	if (view.topology && json_type(view.topology) != JSON_OBJECT)
		return view_wrong(&field, "no object", err);
	*ret = view;
	return 0;
}

int attachment_view_read(const struct json *attachment, struct attachment_view *ret,
			 struct err *err)
{
	struct view_field field = { attachment, "VolumeAttachment", "spec", "attacher" };
	struct attachment_view view;
	int rc;
	if ((rc = view_meta_read(attachment, "VolumeAttachment", &view.meta, err)) < 0 ||
	    (rc = view_str(&field, &view.attacher, err)) < 0)
		return rc;
	field.name = "nodeName";
	if ((rc = view_str(&field, &view.node, err)) < 0)
		return rc;
	field = (struct view_field){ attachment, "VolumeAttachment", "status", "attached" };
	if ((rc = view_bool(&field, &view.attached, err)) < 0)
		return rc;
	view.volume = or_empty(json_str(attachment, "spec", "source", "persistentVolumeName"));
	*ret = view;
	return 0;
}
