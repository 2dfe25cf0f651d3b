/* SPDX-License-Identifier: Apache-2.0 */
/* volumes.c - claims and disks, who uses them, and whether another may. */
#include "engine/cluster_private.h"
#include "engine/volumes_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct volume *volume_at(const struct cluster *c, uint32_t volume)
{
	return &c->rules.volumes.volumes.items[volume];
}

int volumes_init(struct cluster *c)
{
	struct volumes_table *t = &c->rules.volumes;

	record_table_init(&t->volume_ids, c->config.seed, &c->rules.serials);
	record_table_init(&t->disk_ids, c->config.seed, &c->rules.serials);
	map_init(&t->nodes, c->config.seed);
	map_init(&t->attachments, c->config.seed);
	if (vec_push(&t->volumes, (struct volume){ 0 }) < 0 ||
	    vec_push(&t->disks, (struct disk){ 0 }) < 0)
		return -ENOMEM;
	return 0;
}

/* All rules are gone, and the claims with them. */
void volumes_done(struct cluster *c)
{
	struct volumes_table *t = &c->rules.volumes;

	attachments_done(c);
	vec_done(&t->volumes);
	vec_done(&t->disks);
	record_table_done(&t->volume_ids);
	record_table_done(&t->disk_ids);
	map_done(&t->nodes);
	map_done(&t->attachments);
}

uint32_t disk_take(struct cluster *c, const char *driver, const char *handle)
{
	struct volumes_table *t = &c->rules.volumes;
	struct strbuf *bytes = &c->rules.scratch;
	uint32_t id, name = cluster_intern(c, driver);

	strbuf_reset(bytes);
	strbuf_add(bytes, driver, strlen(driver) + 1);
	strbuf_add(bytes, handle, strlen(handle) + 1);
	if (bytes->failed || name == UINT32_MAX)
		return 0;
	id = record_find(&t->disk_ids, bytes);
	if (id) {
		t->disks.items[id].record.refs++;
		return id;
	}
	if (record_number(&t->disk_ids, &t->disks, struct disk, &id) < 0 ||
	    record_enter(&t->disk_ids, &t->disks.items[id].record, id, bytes) < 0)
		return 0;
	t->disks.items[id].driver = name;
	return id;
}

void disk_release(struct cluster *c, uint32_t disk)
{
	struct disk *d = &c->rules.volumes.disks.items[disk];

	if (!disk || --d->record.refs)
		return;
	record_leave(&c->rules.volumes.disk_ids, &d->record, disk);
	*d = (struct disk){ 0 };
}

static int volume_take(struct cluster *c, const char *key, uint32_t *ret)
{
	struct volumes_table *t = &c->rules.volumes;
	struct strbuf *bytes = &c->rules.scratch;

	strbuf_reset(bytes);
	strbuf_puts(bytes, key);
	if (bytes->failed)
		return -ENOMEM;
	*ret = record_find(&t->volume_ids, bytes);
	if (*ret) {
		volume_at(c, *ret)->record.refs++;
		return 0;
	}
	if (record_number(&t->volume_ids, &t->volumes, struct volume, ret) < 0)
		return -ENOMEM;
	return record_enter(&t->volume_ids, &volume_at(c, *ret)->record, *ret, bytes);
}

static void volume_release(struct cluster *c, uint32_t volume)
{
	struct volume *v = volume_at(c, volume);

	if (--v->record.refs)
		return;
	disk_release(c, v->disk);
	record_leave(&c->rules.volumes.volume_ids, &v->record, volume);
	*v = (struct volume){ 0 };
}

int volumes_take(struct cluster *c, uint32_t rules, const struct rules_spec *spec)
{
	struct rules *r = &c->rules.rules.items[rules];
	int rc = 0;

	if (!spec->volumes_count)
		return 0;
	r->volumes = calloc(spec->volumes_count, sizeof(*r->volumes));
	if (!r->volumes)
		return -ENOMEM;
	for (uint32_t i = 0; i < spec->volumes_count; i++) {
		struct volume_ref *ref = &r->volumes[i];

		rc = volume_take(c, spec->volumes[i].key, &ref->volume);
		if (rc < 0)
			return rc;
		ref->kind = spec->volumes[i].kind;
		r->volumes_count++;
	}
	return 0;
}

void volumes_drop(struct cluster *c, struct rules *r)
{
	for (uint32_t i = 0; i < r->volumes_count; i++)
		volume_release(c, r->volumes[i].volume);
	free(r->volumes);
	r->volumes = NULL;
	r->volumes_count = 0;
}

void volumes_used(struct cluster *c, const struct pod *pod, int sign)
{
	const struct rules *r = &c->rules.rules.items[pod->rules];

	for (uint32_t i = 0; i < r->volumes_count; i++)
		volume_at(c, r->volumes[i].volume)->pods += (uint32_t)sign;
}

int volumes_tell(struct cluster *c, const char *claim, const char *driver, const char *handle)
{
	uint32_t id, disk = 0, before;

	if (!map_get_u32(&c->rules.volumes.volume_ids.ids, claim, strlen(claim), &id))
		return 0;
	if (*driver && *handle) {
		disk = disk_take(c, driver, handle);
		if (!disk)
			return -ENOMEM;
	}
	before = volume_at(c, id)->disk;
	volume_at(c, id)->disk = disk;
	c->rules.loosened += before != disk;
	disk_release(c, before);
	return 0;
}

static bool among(const uint32_t *pods, uint32_t count, uint32_t pod)
{
	for (uint32_t i = 0; i < count; i++)
		if (pods[i] == pod)
			return true;
	return false;
}

static bool reads_only(const struct volume_ref *a, const struct volume_ref *b)
{
	return a->kind == VOLUME_DISK_TO_READ && b->kind == VOLUME_DISK_TO_READ;
}

static bool is_disk(const struct volume_ref *ref)
{
	return ref->kind == VOLUME_DISK || ref->kind == VOLUME_DISK_TO_READ;
}

static bool disks_conflict(const struct rules *a, const struct rules *b)
{
	for (uint32_t i = 0; i < a->volumes_count; i++)
		for (uint32_t j = 0; is_disk(&a->volumes[i]) && j < b->volumes_count; j++)
			if (a->volumes[i].volume == b->volumes[j].volume &&
			    !reads_only(&a->volumes[i], &b->volumes[j]))
				return true;
	return false;
}

static bool disks_free(const struct cluster *c, const struct rules *r, uint32_t node,
		       const uint32_t *without, uint32_t without_count)
{
	const struct pod *pod;
	bool any = false;

	for (uint32_t i = 0; i < r->volumes_count; i++)
		any |= is_disk(&r->volumes[i]);
	if (!any)
		return true;
	for (uint32_t p = cluster_node(c, node)->first_pod; p != POD_NONE; p = pod->next) {
		pod = c->pods.items[p];
		if (!among(without, without_count, p) &&
		    disks_conflict(r, &c->rules.rules.items[pod->rules]))
			return false;
	}
	return true;
}

static uint32_t uses(const struct rules *r, uint32_t volume)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < r->volumes_count; i++)
		count += r->volumes[i].volume == volume;
	return count;
}

/* A claim that one pod alone may use is used by nobody, wherever that were. */
static bool claims_free(const struct cluster *c, const struct rules *r, const uint32_t *without,
			uint32_t without_count)
{
	for (uint32_t i = 0; i < r->volumes_count; i++) {
		uint32_t volume = r->volumes[i].volume, pods = volume_at(c, volume)->pods;

		if (r->volumes[i].kind != VOLUME_CLAIM_ALONE)
			continue;
		for (uint32_t j = 0; pods && j < without_count; j++)
			pods -= uses(&c->rules.rules.items[c->pods.items[without[j]]->rules],
				     volume);
		if (pods)
			return false;
	}
	return true;
}

enum verdict volumes_fit(const struct cluster *c, const struct rules *r, uint32_t node,
			 const uint32_t *without, uint32_t without_count)
{
	if (!disks_free(c, r, node, without, without_count))
		return DISK_IN_USE;
	if (!claims_free(c, r, without, without_count))
		return CLAIM_IN_USE;
	if (!disks_attachable(c, r, node, without, without_count))
		return TOO_MANY_VOLUMES;
	return FITS;
}
