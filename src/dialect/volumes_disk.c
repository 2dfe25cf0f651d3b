/* SPDX-License-Identifier: Apache-2.0 */
/* volumes_disk.c - which disk of which driver a claim or a volume is.
 *
 * The kinds of disk that Kubernetes once attached by itself are attached by CSI drivers now,
 * under other names. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/err.h"
#include "dialect/dialect.h"
#include "dialect/volumes.h"
#include "dialect/volumes_private.h"
#include "engine/volumes.h"
#include "wire/json.h"

#define LIMITS_MAX 256

/* Its provisioner's name -> its driver. */
static const char *const migrated[][2] = {
	{ "kubernetes.io/aws-ebs", "ebs.csi.aws.com" },
	{ "kubernetes.io/gce-pd", "pd.csi.storage.gke.io" },
	{ "kubernetes.io/azure-disk", "disk.csi.azure.com" },
	{ "kubernetes.io/cinder", "cinder.csi.openstack.org" },
	{ "kubernetes.io/portworx-volume", "pxd.portworx.com" },
	/* Whose volumes do not count. */
	{ "kubernetes.io/azure-file", "" },
	{ "kubernetes.io/vsphere-volume", "" },
};

static const struct disk_name none = { "", "" };

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static char *join(struct arena *arena, const char *const *parts, unsigned count)
{
	size_t len = 0;
	char *text, *at;

	for (unsigned i = 0; i < count; i++)
		len += strlen(parts[i]);
	text = at = arena_alloc(arena, len + 1);
	for (unsigned i = 0; text && i < count; i++) {
		memcpy(at, parts[i], strlen(parts[i]));
		at += strlen(parts[i]);
	}
	return text;
}

/* "aws://zone/vol-1" and "vol-1" are the same. */
static struct disk_name ebs_disk(const struct json *source)
{
	const char *id = or_empty(json_str(source, "volumeID")), *last;

	if (strncmp(id, "aws://", 6) == 0) {
		last = strrchr(id, '/');
		id = last + 1;
	}
	return (struct disk_name){ migrated[0][1], id };
}

/* Of several zones, "europe-west1-b__europe-west1-c", their region. */
static struct disk_name gce_disk(const struct json *source, const struct json *volume,
				 struct arena *arena)
{
	const char *disk = or_empty(json_str(source, "pdName"));
	const char *zone =
		json_str(volume, "metadata", "labels", "failure-domain.beta.kubernetes.io/zone");
	const char *many, *dash;
	char *region;

	if (!zone || !*zone)
		zone = json_str(volume, "metadata", "labels", "topology.kubernetes.io/zone");
	if (!zone || !*zone)
		zone = "UNSPECIFIED";
	many = strstr(zone, "__");
	if (!many)
		return (struct disk_name){
			migrated[1][1], join(arena,
					     (const char *const[]){ "projects/UNSPECIFIED/zones/",
								    zone, "/disks/", disk },
					     4)
		};
	region = arena_strndup(arena, zone, (size_t)(many - zone));
	dash = region ? strrchr(region, '-') : NULL;
	if (!dash)
		return none;
	region[dash - region] = '\0';
	return (struct disk_name){ migrated[1][1],
				   join(arena,
					(const char *const[]){ "projects/UNSPECIFIED/regions/",
							       region, "/disks/", disk },
					4) };
}

static struct disk_name azure_disk(const struct json *source)
{
	const char *kind = json_str(source, "kind");

	if (kind && strcasecmp(kind, "Managed") != 0)
		return none;
	return (struct disk_name){ migrated[2][1], or_empty(json_str(source, "diskURI")) };
}

/* `spec` has the source: that of a volume of a pod, or of a PersistentVolume, whose labels say
 * its zone. */
static struct disk_name source_disk(const struct json *spec, const struct json *volume,
				    struct arena *arena)
{
	const struct json *source;

	if ((source = json_get(spec, "awsElasticBlockStore")))
		return ebs_disk(source);
	if ((source = json_get(spec, "gcePersistentDisk")))
		return gce_disk(source, volume, arena);
	if ((source = json_get(spec, "azureDisk")))
		return azure_disk(source);
	if ((source = json_get(spec, "cinder")))
		return (struct disk_name){ migrated[3][1],
					   or_empty(json_str(source, "volumeID")) };
	return none;
}

/* One that is still to be made has a name of its own meanwhile. */
static struct disk_name class_disk(const struct dialect_lookup *lookup, const char *namespace,
				   const struct json *claim, struct arena *arena)
{
	const char *name = volumes_class(claim);
	const struct json *class =
		*name ? lookup->find(lookup->context, "StorageClass", "", name) : NULL;
	const char *driver = or_empty(json_str(class, "provisioner"));

	for (unsigned i = 0; i < ARRAY_SIZE(migrated); i++)
		if (strcmp(driver, migrated[i][0]) == 0)
			driver = migrated[i][1];
	return (struct disk_name){ driver,
				   join(arena,
					(const char *const[]){
						"\001", namespace, "/",
						or_empty(json_str(claim, "metadata", "name")) },
					4) };
}

struct disk_name disk_of_claim(const struct dialect_lookup *lookup, const char *namespace,
			       const char *name, struct arena *arena)
{
	const struct json *claim =
		lookup->find(lookup->context, "PersistentVolumeClaim", namespace, name);
	const char *volume_name = or_empty(json_str(claim, "spec", "volumeName"));
	const struct json *volume, *csi;

	if (!claim)
		return none;
	volume = *volume_name ? lookup->find(lookup->context, "PersistentVolume", "", volume_name)
			      : NULL;
	if (!volume)
		return class_disk(lookup, namespace, claim, arena);
	csi = json_get(volume, "spec", "csi");
	if (json_type(csi) == JSON_OBJECT)
		return (struct disk_name){ or_empty(json_str(csi, "driver")),
					   or_empty(json_str(csi, "volumeHandle")) };
	return source_disk(json_get(volume, "spec"), volume, arena);
}

static struct volume_use disk_use(struct draft *d, const struct json *source, const char *kind,
				  const char *name)
{
	bool reads = false;

	return (struct volume_use){
		.key = draft_printf(d, "%s:%s", kind, or_empty(name)),
		.kind = json_bool(source, &reads, "readOnly") == 0 && reads ? VOLUME_DISK_TO_READ
									    : VOLUME_DISK,
	};
}

/* One key for each monitor: those that share one are the same. */
static uint32_t rbd_uses(struct draft *d, const struct json *rbd, struct volume_use *ret,
			 uint32_t max)
{
	const char *pool = json_str(rbd, "pool"), *image = or_empty(json_str(rbd, "image"));
	struct json_iter iter = json_items(rbd, "monitors");
	uint32_t count = 0;

	for (const struct json *monitor; count < max && (monitor = json_next(&iter));)
		ret[count++] = disk_use(d, rbd, "rbd",
					draft_printf(d, "%s\n%s\n%s", pool ? pool : "rbd", image,
						     or_empty(json_str(monitor))));
	return count;
}

uint32_t disks_of_volume(struct draft *d, const struct json *volume, struct disk_name *attached,
			 struct volume_use *ret, uint32_t max)
{
	const struct json *source;

	*attached = source_disk(volume, NULL, d->arena);
	if ((source = json_get(volume, "gcePersistentDisk"))) {
		ret[0] = disk_use(d, source, "gce", json_str(source, "pdName"));
		return 1;
	}
	if ((source = json_get(volume, "awsElasticBlockStore"))) {
		ret[0] = disk_use(d, source, "ebs", json_str(source, "volumeID"));
		ret[0].kind = VOLUME_DISK;
		return 1;
	}
	if ((source = json_get(volume, "iscsi"))) {
		ret[0] = disk_use(d, source, "iscsi", json_str(source, "iqn"));
		return 1;
	}
	source = json_get(volume, "rbd");
	return source ? rbd_uses(d, source, ret, max) : 0;
}

int volumes_claim_changed(struct cluster *cluster, const struct dialect_lookup *lookup,
			  const char *namespace, const char *name, struct arena *arena)
{
	struct disk_name disk = disk_of_claim(lookup, namespace, name, arena);
	const char *key = join(arena, (const char *const[]){ namespace, "/", name }, 3);

	if (!key || !disk.driver || !disk.handle)
		return -ENOMEM;
	return volumes_tell(cluster, key, disk.driver, disk.handle);
}

int volumes_node_changed(struct cluster *cluster, const char *name, const struct json *csi_node,
			 struct arena *arena)
{
	struct json_iter iter = json_items(csi_node, "spec", "drivers");
	struct attach_limit *limits = arena_array(arena, LIMITS_MAX, sizeof(*limits));
	uint32_t count = 0;
	int64_t most;

	if (!limits)
		return -ENOMEM;
	for (const struct json *item; count < LIMITS_MAX && (item = json_next(&iter));) {
		const char *driver = json_str(item, "name");

		if (driver && json_i64(item, &most, "allocatable", "count") == 0 && most >= 0)
			limits[count++] = (struct attach_limit){
				driver, most > UINT32_MAX ? UINT32_MAX : (uint32_t)most
			};
	}
	return volumes_limit(cluster, name, limits, count);
}

int volumes_attachment_changed(struct cluster *cluster, const struct dialect_lookup *lookup,
			       const char *name, const struct json *attachment)
{
	const struct json *spec = json_get(attachment, "spec");
	const char *driver = or_empty(json_str(spec, "attacher"));
	const char *node = json_str(spec, "nodeName");
	const char *volume_name = json_str(spec, "source", "persistentVolumeName");
	const struct json *volume =
		volume_name ? lookup->find(lookup->context, "PersistentVolume", "", volume_name)
			    : NULL;
	const char *handle = json_str(volume, "spec", "csi", "volumeHandle");

	if (*driver && node && handle)
		return volumes_attach(cluster, name, node, driver, handle);
	volumes_detach(cluster, name);
	return 0;
}
