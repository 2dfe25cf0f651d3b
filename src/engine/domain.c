/* SPDX-License-Identifier: Apache-2.0 */
/* domain.c - the fabric as a tree, its figures, and the blocks of nodes in its leaves. */
#include "base/attr.h"
#include "engine/cluster_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char ch)
{
	return ch >= '0' && ch <= '9';
}

/* Like strcmp, but runs of digits compare as numbers: leaf-2 before leaf-10. */
static int natural_compare(const char *a, const char *b)
{
	const char *a0 = a, *b0 = b;

	while (*a && *b) {
		if (is_digit(*a) && is_digit(*b)) {
			size_t na, nb;
			int order;

			a += strspn(a, "0");
			b += strspn(b, "0");
			na = strspn(a, "0123456789");
			nb = strspn(b, "0123456789");
			if (na != nb)
				return na < nb ? -1 : 1;
			order = memcmp(a, b, na);
			if (order)
				return order;
			a += na;
			b += nb;
		} else if (*a != *b) {
			return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
		} else {
			a++;
			b++;
		}
	}
	if (*a || *b)
		return *a ? 1 : -1;
	return strcmp(a0, b0); /* leaf-1 and leaf-01 are two leaves */
}

void domain_renumber(struct cluster *c)
{
	c->positions_stale = false;
	for (uint32_t parent = 0; parent < c->domains.len; parent++) {
		const struct domain *p = &c->domains.items[parent];

		for (uint32_t i = 0; i < p->children_count; i++)
			c->domains.items[p->children[i]].position = i;
	}
}

/* Where a child of that name stands, or would, among its siblings. */
static uint32_t child_place(const struct cluster *c, const struct domain *parent, const char *name)
{
	uint32_t low = 0, high = parent->children_count;

	/* Names mostly come in order: then it is the last. */
	if (high && natural_compare(c->domains.items[parent->last_child].name, name) < 0)
		return high;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (natural_compare(c->domains.items[parent->children[middle]].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int child_reserve(struct domain *parent)
{
	uint32_t room = parent->children_room ? 2 * parent->children_room : 4;
	uint32_t *children;

	if (parent->children_count < parent->children_room)
		return 0;
	children = realloc(parent->children, room * sizeof(*children));
	if (!children)
		return -ENOMEM;
	parent->children = children;
	parent->children_room = room;
	return 0;
}

/* Puts the domain among its siblings, for whom there is room. */
static void link_sibling(struct cluster *c, uint32_t domain)
{
	struct domain *all = c->domains.items, *d = &all[domain];
	struct domain *parent = &all[d->parent];
	uint32_t at = child_place(c, parent, d->name), after = parent->children_count - at;

	d->next_sibling = after ? parent->children[at] : DOMAIN_NONE;
	d->position = at;
	*(at ? &all[parent->children[at - 1]].next_sibling : &parent->first_child) = domain;
	memmove(parent->children + at + 1, parent->children + at,
		after * sizeof(*parent->children));
	parent->children[at] = domain;
	parent->children_count++;
	if (!after)
		parent->last_child = domain;
	c->positions_stale |= after != 0;
}

/* The key of a child: the parent's number, then the name. */
static char *child_key(uint32_t parent, const char *name, size_t *len)
{
	size_t n = strlen(name);
	char *key = malloc(sizeof(parent) + n + 1);

	if (!key)
		return NULL;
	memcpy(key, &parent, sizeof(parent));
	memcpy(key + sizeof(parent), name, n + 1);
	*len = sizeof(parent) + n;
	return key;
}

static int domain_child(struct cluster *c, uint32_t parent, const char *name, uint32_t *ret)
{
	uint32_t number = (uint32_t)c->domains.len;
	struct domain d = {
		.parent = parent,
		.first_child = DOMAIN_NONE,
		.last_child = DOMAIN_NONE,
		.level = (uint8_t)(c->domains.items[parent].level + 1),
	};
	size_t len;
	char *key = child_key(parent, name, &len);

	if (!key)
		return -ENOMEM;
	if (map_get_u32(&c->domain_ids, key, len, ret)) {
		free(key);
		return 0;
	}
	d.name = key + sizeof(parent);
	if (vec_reserve(&c->domains, c->domains.len + 1) < 0 ||
	    vec_reserve(&c->domain_keys, c->domain_keys.len + 1) < 0 ||
	    child_reserve(&c->domains.items[parent]) < 0 ||
	    map_put_u32(&c->domain_ids, key, len, number) < 0) {
		free(key);
		return -ENOMEM;
	}
	c->domains.items[c->domains.len++] = d;
	c->domain_keys.items[c->domain_keys.len++] = key;
	link_sibling(c, number);
	*ret = number;
	return 0;
}

int domain_path(struct cluster *c, const char *const *path, uint32_t n, uint32_t *ret)
{
	uint32_t domain = 0;

	for (uint32_t i = 0; i < n; i++)
		if (domain_child(c, domain, path[i], &domain) < 0)
			return -ENOMEM;
	*ret = domain;
	return 0;
}

int domains_init(struct cluster *c)
{
	struct domain root = {
		.name = "",
		.parent = DOMAIN_NONE,
		.first_child = DOMAIN_NONE,
		.last_child = DOMAIN_NONE,
		.next_sibling = DOMAIN_NONE,
	};

	return vec_push(&c->domains, root);
}

void domains_done(struct cluster *c)
{
	for (size_t i = 0; i < c->domains.len; i++) {
		free(c->domains.items[i].blocks);
		free(c->domains.items[i].children);
	}
	for (size_t i = 0; i < c->domain_keys.len; i++)
		free(c->domain_keys.items[i]);
	vec_done(&c->domains);
	vec_done(&c->domain_keys);
	map_done(&c->domain_ids);
	vec_done(&c->block_domain);
	vec_done(&c->block_model);
	vec_done(&c->block_used);
	free(c->slot_node);
	free(c->slot_bucket);
	free(c->slot_state);
	free(c->slot_change);
	free(c->slot_rank);
}

uint32_t cluster_domains(const struct cluster *c)
{
	return (uint32_t)c->domains.len;
}

const struct domain *cluster_domain(const struct cluster *c, uint32_t domain)
{
	if (c->positions_stale)
		domain_renumber((struct cluster *)c); /* a memo */
	return &c->domains.items[domain];
}

uint32_t cluster_domain_find(const struct cluster *c, const char *const *path, uint32_t n)
{
	uint32_t domain = 0;

	for (uint32_t i = 0; i < n; i++) {
		size_t len;
		char *key = child_key(domain, path[i], &len);
		bool found = key && map_get_u32(&c->domain_ids, key, len, &domain);

		free(key);
		if (!found)
			return DOMAIN_NONE;
	}
	return domain;
}

uint32_t cluster_domain_named(const struct cluster *c, const char *name)
{
	uint32_t found = DOMAIN_NONE;

	for (uint32_t d = 1; d < c->domains.len; d++) {
		if (strcmp(c->domains.items[d].name, name))
			continue;
		if (found != DOMAIN_NONE)
			return DOMAIN_NONE;
		found = d;
	}
	return found;
}

bool cluster_below(const struct cluster *c, uint32_t domain, uint32_t above)
{
	while (domain != DOMAIN_NONE && domain != above)
		domain = c->domains.items[domain].parent;
	return domain == above;
}

uint32_t cluster_nodes_with(const struct cluster *c, uint32_t domain, uint32_t idle)
{
	const struct domain *d = &c->domains.items[domain];
	uint32_t nodes = 0;

	for (uint32_t i = idle; i <= GPU_MAX; i++)
		nodes += d->nodes_by_idle[i];
	return nodes;
}

uint32_t cluster_block_node(const struct cluster *c, uint32_t block, uint32_t i)
{
	return c->slot_node[block * BLOCK_NODES + i];
}

static int slots_reserve(void *array, size_t room, size_t need, size_t item_size)
{
	return vec_grow(array, &room, need, item_size);
}

/* Arrays by slot for one more block.  They grow alike. */
static int slots_grow(struct cluster *c)
{
	size_t room = c->slots_room, need = (c->block_domain.len + 1) * BLOCK_NODES;

	if (need <= room)
		return 0;
	need = MAX(need, 2 * room);
	if (slots_reserve(&c->slot_node, room, need, sizeof(*c->slot_node)) < 0 ||
	    slots_reserve(&c->slot_bucket, room, need, sizeof(*c->slot_bucket)) < 0 ||
	    slots_reserve(&c->slot_state, room, need, sizeof(*c->slot_state)) < 0 ||
	    slots_reserve(&c->slot_change, room, need, sizeof(*c->slot_change)) < 0 ||
	    slots_reserve(&c->slot_rank, room, need, sizeof(*c->slot_rank)) < 0)
		return -ENOMEM;
	c->slots_room = need;
	return 0;
}

static int block_new(struct cluster *c, uint32_t domain, uint16_t model, uint32_t *ret)
{
	struct domain *d = &c->domains.items[domain];
	uint32_t block = (uint32_t)c->block_domain.len;

	if (slots_grow(c) < 0 || vec_reserve(&c->block_domain, block + 1) < 0 ||
	    vec_reserve(&c->block_model, block + 1) < 0 ||
	    vec_reserve(&c->block_used, block + 1) < 0)
		return -ENOMEM;
	if (d->blocks_count == d->blocks_room) {
		uint32_t room = d->blocks_room ? d->blocks_room * 2 : 1;
		uint32_t *blocks = realloc(d->blocks, room * sizeof(*blocks));

		if (!blocks)
			return -ENOMEM;
		d->blocks = blocks;
		d->blocks_room = room;
	}
	d->blocks[d->blocks_count++] = block;
	c->block_domain.items[c->block_domain.len++] = domain;
	c->block_model.items[c->block_model.len++] = model;
	c->block_used.items[c->block_used.len++] = 0;
	for (uint32_t i = 0; i < BLOCK_NODES; i++) {
		c->slot_node[block * BLOCK_NODES + i] = NODE_NONE;
		c->slot_bucket[block * BLOCK_NODES + i] = BUCKET_EMPTY;
		c->slot_state[block * BLOCK_NODES + i] = 0;
		c->slot_change[block * BLOCK_NODES + i] = 0;
		c->slot_rank[block * BLOCK_NODES + i] = 0;
	}
	*ret = block;
	return 0;
}

int slot_take(struct cluster *c, uint32_t domain, uint16_t model, uint32_t *ret)
{
	const struct domain *d = &c->domains.items[domain];
	uint32_t block = UINT32_MAX, i;

	/* Nodes mostly come one after the other: the last block is the one with room. */
	for (uint32_t at = d->blocks_count; at-- && block == UINT32_MAX;)
		if (c->block_used.items[d->blocks[at]] != UINT32_MAX &&
		    c->block_model.items[d->blocks[at]] == model)
			block = d->blocks[at];
	if (block == UINT32_MAX && block_new(c, domain, model, &block) < 0)
		return -ENOMEM;
	i = (uint32_t)__builtin_ctz(~c->block_used.items[block]);
	c->block_used.items[block] |= 1u << i;
	*ret = block * BLOCK_NODES + i;
	return 0;
}

void slot_release(struct cluster *c, uint32_t slot)
{
	c->block_used.items[slot / BLOCK_NODES] &= ~(1u << slot % BLOCK_NODES);
	c->slot_node[slot] = NODE_NONE;
	c->slot_bucket[slot] = BUCKET_EMPTY;
}

void domain_account(struct cluster *c, const struct node *n, int sign)
{
	uint32_t one = (uint32_t)sign;

	if (n->gpus_count)
		c->model_free_milli[node_model(n)] += (uint64_t)((int64_t)n->free_milli * sign);
	for (uint32_t i = n->domain; i != DOMAIN_NONE; i = c->domains.items[i].parent) {
		struct domain *d = &c->domains.items[i];

		d->nodes += one;
		d->gpus += one * n->gpus_count;
		d->free_milli += (uint64_t)((int64_t)n->free_milli * sign);
		d->total_milli += (uint64_t)((int64_t)n->total_milli * sign);
		if (!n->unschedulable && !n->gpus_closed)
			d->nodes_by_idle[n->idle_gpus] += one;
	}
}

/* Tells the index of every block below the domain.  Depth first without recursion. */
static void log_below(struct cluster *c, uint32_t top)
{
	uint32_t i = top;

	for (;;) {
		const struct domain *d = &c->domains.items[i];

		for (uint32_t b = 0; b < d->blocks_count; b++)
			log_block(c, d->blocks[b]);
		if (d->first_child != DOMAIN_NONE) {
			i = d->first_child;
			continue;
		}
		while (i != top && c->domains.items[i].next_sibling == DOMAIN_NONE)
			i = c->domains.items[i].parent;
		if (i == top)
			return;
		i = c->domains.items[i].next_sibling;
	}
}

static uint32_t step_of(const struct domain *d)
{
	if (!d->total_milli)
		return 0;
	return (uint32_t)((d->total_milli - d->free_milli) * DOMAIN_STEPS / d->total_milli);
}

/* The root's own step concerns nobody's place, only what is balanced against it: those
 * who do look at it themselves.  A domain of many blocks would fill the log at a change
 * that most readers do not mind: it only says that something was. */
void domain_steps(struct cluster *c, uint32_t domain)
{
	uint32_t top = DOMAIN_NONE;

	for (uint32_t i = domain; i != DOMAIN_NONE; i = c->domains.items[i].parent) {
		struct domain *d = &c->domains.items[i];
		uint32_t step = step_of(d);

		if (step == d->step)
			continue;
		d->step = step;
		if (i && d->nodes > LOGGED_NODES)
			c->steps_epoch++;
		else if (i)
			top = i;
	}
	if (top != DOMAIN_NONE)
		log_below(c, top);
}
