/* SPDX-License-Identifier: Apache-2.0 */
/* volumes_attach.c - how many disks a node has, and how many it can have.
 *
 * Each look at a node has its own numbers, with which the disks that were seen are marked, so
 * that a disk counts once however many use it: +0 used by a pod, +1 attached and used by
 * none, +2 needed more.  As with kube-scheduler, a disk that is attached and used by no
 * pod of the node counts twice for a pod that needs it. */
#include "engine/cluster_private.h"
#include "engine/volumes_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SEEN_USED, SEEN_ATTACHED, SEEN_NEEDED, SEEN_KINDS };

struct look {
	const struct cluster *cluster;
	struct node_volumes *node;
	uint64_t number;
};

static struct disk *disk_at(const struct cluster *c, uint32_t disk)
{
	return &c->rules.volumes.disks.items[disk];
}

static void node_free(struct cluster *c, struct node_volumes *n)
{
	map_del(&c->rules.volumes.nodes, n->name, strlen(n->name));
	vec_done(&n->limits);
	vec_done(&n->disks);
	free(n->name);
	free(n);
}

static void node_settle(struct cluster *c, struct node_volumes *n)
{
	if (!n->limits.len && !n->disks.len)
		node_free(c, n);
}

static struct node_volumes *node_get(struct cluster *c, const char *name)
{
	struct node_volumes *n = map_get(&c->rules.volumes.nodes, name, strlen(name));

	if (n)
		return n;
	n = calloc(1, sizeof(*n));
	if (n)
		n->name = strdup(name);
	if (n && n->name && map_put(&c->rules.volumes.nodes, n->name, strlen(name), n) == 0)
		return n;
	if (n)
		free(n->name);
	free(n);
	return NULL;
}

int volumes_limit(struct cluster *c, const char *node, const struct attach_limit *limits,
		  uint32_t count)
{
	struct node_volumes *n = node_get(c, node);
	int rc = n ? 0 : -ENOMEM;

	if (!n)
		return rc;
	if (vec_reserve(&n->limits, count) < 0)
		rc = -ENOMEM;
	for (uint32_t i = 0; rc == 0 && i < count; i++)
		if (cluster_intern(c, limits[i].driver) == UINT32_MAX)
			rc = -ENOMEM;
	if (rc == 0) {
		n->limits.len = 0;
		for (uint32_t i = 0; i < count; i++)
			n->limits.items[n->limits.len++] = (struct limit){
				.driver = cluster_intern(c, limits[i].driver),
				.count = limits[i].count,
			};
		c->rules.loosened++;
	}
	node_settle(c, n);
	return rc;
}

void volumes_detach(struct cluster *c, const char *name)
{
	struct attachment *a = map_get(&c->rules.volumes.attachments, name, strlen(name));

	if (!a)
		return;
	map_del(&c->rules.volumes.attachments, a->name, strlen(a->name));
	for (size_t i = 0; i < a->node->disks.len; i++) {
		if (a->node->disks.items[i] != a->disk)
			continue;
		a->node->disks.items[i] = a->node->disks.items[--a->node->disks.len];
		break;
	}
	node_settle(c, a->node);
	disk_release(c, a->disk);
	free(a->name);
	free(a);
	c->rules.loosened++;
}

/* What is missing of it is NULL or 0. */
static int attachment_fill(struct cluster *c, struct attachment *a, const char *name,
			   const char *node)
{
	a->name = strdup(name);
	a->node = a->name ? node_get(c, node) : NULL;
	if (!a->node)
		return -ENOMEM;
	if (vec_push(&a->node->disks, a->disk) < 0) {
		node_settle(c, a->node);
		return -ENOMEM;
	}
	if (map_put(&c->rules.volumes.attachments, a->name, strlen(a->name), a) == 0)
		return 0;
	a->node->disks.len--;
	node_settle(c, a->node);
	return -ENOMEM;
}

int volumes_attach(struct cluster *c, const char *name, const char *node, const char *driver,
		   const char *handle)
{
	struct attachment *a = calloc(1, sizeof(*a));

	volumes_detach(c, name);
	if (!a)
		return -ENOMEM;
	a->disk = disk_take(c, driver, handle);
	if (a->disk && attachment_fill(c, a, name, node) == 0)
		return 0;
	disk_release(c, a->disk);
	free(a->name);
	free(a);
	return -ENOMEM;
}

void attachments_done(struct cluster *c)
{
	struct volumes_table *t = &c->rules.volumes;
	struct map_entry entry;

	for (uint32_t at = 0; map_next(&t->attachments, &at, &entry);) {
		struct attachment *a = entry.value;

		disk_release(c, a->disk);
		free(a->name);
		free(a);
	}
	for (uint32_t at = 0; map_next(&t->nodes, &at, &entry);) {
		struct node_volumes *n = entry.value;

		vec_done(&n->limits);
		vec_done(&n->disks);
		free(n->name);
		free(n);
	}
}

static void count_disk(const struct look *l, uint32_t disk, unsigned as)
{
	struct disk *d = disk_at(l->cluster, disk);

	if (d->seen == l->number + SEEN_USED || d->seen == l->number + as)
		return;
	d->seen = l->number + as;
	for (size_t i = 0; i < l->node->limits.len; i++)
		if (l->node->limits.items[i].driver == d->driver)
			l->node->limits.items[i].used++;
}

static void count_rules(const struct look *l, const struct rules *r, unsigned as)
{
	for (uint32_t i = 0; i < r->volumes_count; i++) {
		uint32_t disk = l->cluster->rules.volumes.volumes.items[r->volumes[i].volume].disk;

		if (disk)
			count_disk(l, disk, as);
	}
}

static void count_pods(const struct look *l, uint32_t node, const uint32_t *without,
		       uint32_t without_count)
{
	const struct cluster *c = l->cluster;
	uint32_t next;

	for (uint32_t p = cluster_node(c, node)->first_pod; p != POD_NONE; p = next) {
		bool gone = false;

		next = c->pods.items[p]->next;
		for (uint32_t i = 0; i < without_count; i++)
			gone |= without[i] == p;
		if (!gone)
			count_rules(l, &c->rules.rules.items[c->pods.items[p]->rules], SEEN_USED);
	}
}

static bool needs_disk(const struct cluster *c, const struct rules *r)
{
	for (uint32_t i = 0; i < r->volumes_count; i++)
		if (c->rules.volumes.volumes.items[r->volumes[i].volume].disk)
			return true;
	return false;
}

/* Beyond a limit already, but for drivers that the pod has no more disks of: that is no
 * reason to refuse it. */
static bool within_limits(const struct look *l, const struct rules *r)
{
	const struct volumes_table *t = &l->cluster->rules.volumes;

	for (uint32_t i = 0; i < r->volumes_count; i++) {
		const struct disk *d =
			disk_at(l->cluster, t->volumes.items[r->volumes[i].volume].disk);

		if (d->seen != l->number + SEEN_NEEDED)
			continue;
		for (size_t j = 0; j < l->node->limits.len; j++)
			if (l->node->limits.items[j].driver == d->driver &&
			    l->node->limits.items[j].used > l->node->limits.items[j].count)
				return false;
	}
	return true;
}

bool disks_attachable(const struct cluster *c, const struct rules *r, uint32_t node,
		      const uint32_t *without, uint32_t without_count)
{
	struct volumes_table *t = (struct volumes_table *)&c->rules.volumes; /* marks are memos */
	const char *name = cluster_node(c, node)->name;
	struct look l = { .cluster = c };

	if (!needs_disk(c, r))
		return true;
	l.node = map_get(&t->nodes, name, strlen(name));
	if (!l.node || !l.node->limits.len)
		return true;
	t->looks += SEEN_KINDS;
	l.number = t->looks;
	for (size_t i = 0; i < l.node->limits.len; i++)
		l.node->limits.items[i].used = 0;
	count_pods(&l, node, without, without_count);
	for (size_t i = 0; i < l.node->disks.len; i++)
		count_disk(&l, l.node->disks.items[i], SEEN_ATTACHED);
	count_rules(&l, r, SEEN_NEEDED);
	return within_limits(&l, r);
}
