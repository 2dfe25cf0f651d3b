/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "engine/cluster.h"

#define LETTERS	      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define WORKLOAD_NONE UINT32_MAX
#define LEGEND_MAX    60 /* workloads */
#define PLACES_SHOWN  3
#define PLACES_MAX    96
#define NAME_SHOWN    64

/* Colours of the 256-colour palette that can be told apart on dark and light. */
static const uint8_t palette[] = { 39, 208, 41, 170, 220, 33, 203, 45, 141, 112, 214, 75 };

static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };

struct workload {
	const char *name;
	bool drawn;	 /* in the drawing that is being made */
	uint32_t shared; /* cards that it has parts of in it */
	const struct node *last_node;
	unsigned last_gpu;
	char places[PLACES_MAX]; /* the first of these, where letters cannot tell */
};

/* A node that is not in the cluster any more. */
struct ghost {
	char name[NAME_SHOWN], leaf[NAME_SHOWN];
	uint32_t gpus;
};

struct picture {
	struct picture_style style;
	VEC(struct workload) workloads;
	VEC(struct ghost) ghosts;
	struct map names;		/* of workloads -> number */
	uint32_t widths[UINT8_MAX + 1]; /* of the widest name, by level */
	uint32_t column;		/* where the line being written stands */
};

struct picture *picture_new(const struct picture_style *style)
{
	struct picture *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->style = *style;
	if (!p->style.width)
		p->style.width = PICTURE_WIDTH_DEFAULT;
	p->style.width = MAX(p->style.width, PICTURE_WIDTH_MIN);
	return p;
}

void picture_free(struct picture *p)
{
	if (!p)
		return;
	vec_done(&p->workloads);
	vec_done(&p->ghosts);
	map_done(&p->names);
	free(p);
}

void picture_freep(struct picture **p)
{
	picture_free(*p);
}

/* The number of the pod's workload; new names get the next one. */
static uint32_t workload_of(struct picture *p, const struct pod *pod)
{
	const char *name = pod->name;

	if (p->style.workload)
		name = p->style.workload(p->style.context, pod);
	uint32_t number;
	if (map_get_u32(&p->names, name, strlen(name), &number))
		return number;
	struct workload new = { .name = name };
	number = (uint32_t)p->workloads.len;
	if (vec_push(&p->workloads, new) < 0)
		return WORKLOAD_NONE;
	if (map_put_u32(&p->names, name, strlen(name), number) < 0) {
		p->workloads.len--;
		return WORKLOAD_NONE;
	}
	return number;
}

/* It has a part of the card: without colours only the legend can say so. */
static void note_part(struct picture *p, uint32_t workload, const struct node *node, unsigned gpu)
{
	struct workload *w = &p->workloads.items[workload];
	char place[NAME_SHOWN + 8];
	size_t used = strlen(w->places);

	/* Two of its pods on one card come one after the other. */
	if (w->shared && w->last_node == node && w->last_gpu == gpu)
		return;
	w->last_node = node;
	w->last_gpu = gpu;
	snprintf(place, sizeof(place), "%s%.40s:%u", used ? ", " : "", node->name, gpu);
	if (w->shared++ < PLACES_SHOWN && used + strlen(place) < PLACES_MAX)
		memcpy(w->places + used, place, strlen(place) + 1);
}

/* The workload that holds the GPU, of several the one placed last. */
static uint32_t holder_of(struct picture *p, const struct cluster *c, const struct node *node,
			  unsigned gpu)
{
	bool parts = node->gpus[gpu].use != GPU_WHOLE;
	uint32_t last = WORKLOAD_NONE;

	for (uint32_t i = node->first_pod; i != POD_NONE; i = cluster_pod(c, i)->next) {
		const struct pod *pod = cluster_pod(c, i);

		for (unsigned h = 0; h < pod->holds_count; h++) {
			if (pod->holds[h].gpu != gpu)
				continue;
			uint32_t workload = workload_of(p, pod);
			if (workload == WORKLOAD_NONE)
				continue;
			p->workloads.items[workload].drawn = true;
			last = last == WORKLOAD_NONE ? workload : last;
			if (parts)
				note_part(p, workload, node, gpu);
			break;
		}
	}
	return last;
}

static void color_on(const struct picture *p, struct strbuf *out, uint32_t workload)
{
	if (p->style.color && workload != WORKLOAD_NONE)
		strbuf_addf(out, "\033[38;5;%um", palette[workload % ARRAY_SIZE(palette)]);
}

static void color_off(const struct picture *p, struct strbuf *out)
{
	if (p->style.color)
		strbuf_puts(out, "\033[0m");
}

static char letter_of(uint32_t workload)
{
	return workload == WORKLOAD_NONE ? '#' : LETTERS[workload % (sizeof(LETTERS) - 1)];
}

/* Booked core in eighths, at least one: a seat or a memory-only tenant shows too. */
static unsigned eighths(const struct gpu *gpu)
{
	int booked = ((int)CORE_WHOLE - (int)gpu->core_free_milli) * 8 / (int)CORE_WHOLE;

	return booked < 1 ? 1u : (unsigned)MIN(booked, 8);
}

static void put_used(const struct picture *p, struct strbuf *out, const struct gpu *gpu,
		     uint32_t workload)
{
	unsigned part = eighths(gpu);

	color_on(p, out, workload);
	if (gpu->use == GPU_WHOLE && p->style.unicode && p->style.color)
		strbuf_puts(out, "█");
	else if (gpu->use == GPU_WHOLE)
		strbuf_putc(out, letter_of(workload));
	else if (gpu->use == GPU_SLICED)
		strbuf_puts(out, p->style.unicode ? "▤" : "m");
	else if (p->style.unicode)
		strbuf_puts(out, blocks[part - 1]);
	else
		strbuf_addf(out, "%u", part);
	color_off(p, out);
}

static void put_gpu(struct picture *p, const struct cluster *c, const struct node *node,
		    unsigned id, struct strbuf *out)
{
	const struct gpu *gpu = &node->gpus[id];
	uint32_t workload = holder_of(p, c, node, id);

	if (!gpu->healthy) {
		strbuf_puts(out, p->style.color ? "\033[1;31m" : "");
		strbuf_puts(out, p->style.unicode ? "✗" : "x");
		color_off(p, out);
	} else if (gpu->use == GPU_IDLE) {
		strbuf_puts(out, p->style.color ? "\033[2m" : "");
		if (gpu->mig_mode)
			strbuf_puts(out, p->style.unicode ? "▫" : "o");
		else
			strbuf_puts(out, p->style.unicode ? "·" : ".");
		color_off(p, out);
	} else {
		put_used(p, out, gpu, workload);
	}
}

static void line_end(struct picture *p, struct strbuf *out)
{
	if (p->column)
		strbuf_putc(out, '\n');
	p->column = 0;
}

static void put_indent(struct picture *p, struct strbuf *out, uint32_t columns)
{
	for (; p->column < columns; p->column++)
		strbuf_putc(out, ' ');
}

/* Room for a node's name and GPUs, on this line or the next. */
static void begin_node(struct picture *p, const char *name, uint32_t gpus, uint32_t indent,
		       struct strbuf *out)
{
	uint32_t columns = (uint32_t)strlen(name) + 1 + gpus;

	if (p->column > indent && p->column + 2 + columns > p->style.width)
		line_end(p, out);
	else if (p->column > indent)
		put_indent(p, out, p->column + 2);
	put_indent(p, out, indent);
	strbuf_puts(out, name);
	p->column += columns;
}

static void put_node(struct picture *p, const struct cluster *c, const struct node *node,
		     uint32_t indent, struct strbuf *out)
{
	begin_node(p, node->name, node->gpus_count, indent, out);
	strbuf_puts(out, node->unschedulable ? "!" : " ");
	for (unsigned i = 0; i < node->gpus_count; i++)
		put_gpu(p, c, node, i, out);
}

/* The nodes that failed in the domain and whose names come before this one. */
static void put_ghosts(struct picture *p, const char *domain, const char *after,
		       const char *before, uint32_t indent, struct strbuf *out)
{
	for (size_t i = 0; i < p->ghosts.len; i++) {
		const struct ghost *g = &p->ghosts.items[i];

		if (strcmp(g->leaf, domain) != 0 || (after && strcmp(g->name, after) <= 0) ||
		    (before && strcmp(g->name, before) >= 0))
			continue;
		begin_node(p, g->name, g->gpus, indent, out);
		strbuf_puts(out, p->style.color ? " \033[1;31m" : " ");
		for (uint32_t k = 0; k < g->gpus; k++)
			strbuf_puts(out, p->style.unicode ? "✗" : "x");
		color_off(p, out);
	}
}

static int by_rank(const void *a, const void *b)
{
	const struct node *const *x = a, *const *y = b;

	return (*x)->rank < (*y)->rank ? -1 : (*x)->rank > (*y)->rank;
}

/* The nodes directly in a domain, in the order of their names. */
static void put_nodes(struct picture *p, const struct cluster *c, const struct domain *d,
		      uint32_t indent, struct strbuf *out)
{
	VEC(const struct node *) nodes CLEANUP(vec_cleanup) = { 0 };

	for (uint32_t b = 0; b < d->blocks_count; b++) {
		for (uint32_t i = 0; i < BLOCK_NODES; i++) {
			uint32_t node = cluster_block_node(c, d->blocks[b], i);

			if (node != NODE_NONE && vec_push(&nodes, cluster_node(c, node)) < 0)
				return;
		}
	}
	if (nodes.len)
		qsort(nodes.items, nodes.len, sizeof(nodes.items[0]), by_rank);
	const char *last = NULL;
	for (size_t i = 0; i < nodes.len; i++) {
		put_ghosts(p, d->name, last, nodes.items[i]->name, indent, out);
		put_node(p, c, nodes.items[i], indent, out);
		last = nodes.items[i]->name;
	}
	put_ghosts(p, d->name, last, NULL, indent, out);
	line_end(p, out);
}

/* The next domain in a walk over the tree, parents first; DOMAIN_NONE after the last. */
static uint32_t next_domain(const struct cluster *c, uint32_t at)
{
	const struct domain *d = cluster_domain(c, at);

	if (d->first_child != DOMAIN_NONE)
		return d->first_child;
	while (d->next_sibling == DOMAIN_NONE) {
		if (d->parent == DOMAIN_NONE)
			return DOMAIN_NONE;
		d = cluster_domain(c, d->parent);
	}
	return d->next_sibling;
}

/* The widest names, so that nodes of neighbouring leaves stand in columns. */
static void measure_names(struct picture *p, const struct cluster *c)
{
	memset(p->widths, 0, sizeof(p->widths));
	for (uint32_t at = 0; at != DOMAIN_NONE; at = next_domain(c, at)) {
		const struct domain *d = cluster_domain(c, at);
		uint32_t *width = &p->widths[d->level];

		*width = MAX(*width, (uint32_t)MIN(strlen(d->name), 24));
	}
}

static void put_domain(struct picture *p, const struct cluster *c, const struct domain *d,
		       struct strbuf *out)
{
	uint32_t indent = d->level ? 2u * (d->level - 1u) : 0;

	if (d->level) {
		put_indent(p, out, indent);
		strbuf_puts(out, d->name);
		p->column += (uint32_t)strlen(d->name);
	}
	if (d->blocks_count)
		put_nodes(p, c, d, d->level ? indent + p->widths[d->level] + 2 : 0, out);
	line_end(p, out);
}

/* "B serve", and without colours "B serve (part of n-0:2, n-0:3 and 4 more)". */
static void put_workload(struct picture *p, uint32_t number, struct strbuf *out)
{
	const struct workload *w = &p->workloads.items[number];
	char text[NAME_SHOWN + PLACES_MAX + 64];
	int n = snprintf(text, sizeof(text), " %.63s", w->name);

	if (w->shared && !p->style.color)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " (part of %s", w->places);
	if (w->shared > PLACES_SHOWN && !p->style.color)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " and %u more",
			      w->shared - PLACES_SHOWN);
	if (w->shared && !p->style.color)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ")");
	if (p->column && p->column + (uint32_t)n + 3 > p->style.width)
		line_end(p, out);
	color_on(p, out, number);
	if (p->style.unicode && p->style.color)
		strbuf_puts(out, "█");
	else
		strbuf_putc(out, letter_of(number));
	color_off(p, out);
	strbuf_addf(out, "%s  ", text);
	p->column += (uint32_t)n + 3;
}

static void put_legend(struct picture *p, struct strbuf *out)
{
	size_t shown = 0, left = 0;

	for (size_t i = 0; i < p->workloads.len; i++) {
		if (!p->workloads.items[i].drawn)
			continue;
		if (shown++ < LEGEND_MAX)
			put_workload(p, (uint32_t)i, out);
		else
			left++;
	}
	line_end(p, out);
	if (left)
		strbuf_addf(out, "and %zu more workloads\n", left);
}

int picture_add_failed(struct picture *p, const char *node, const char *domain, uint32_t gpus)
{
	struct ghost g = { .gpus = gpus };

	picture_drop_failed(p, node);
	snprintf(g.name, sizeof(g.name), "%s", node);
	snprintf(g.leaf, sizeof(g.leaf), "%s", domain);
	return vec_push(&p->ghosts, g);
}

void picture_drop_failed(struct picture *p, const char *node)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->ghosts.len; i++)
		if (strcmp(p->ghosts.items[i].name, node) != 0)
			p->ghosts.items[kept++] = p->ghosts.items[i];
	p->ghosts.len = kept;
}

void picture_draw(struct picture *p, const struct cluster *c, struct strbuf *out)
{
	for (size_t i = 0; i < p->workloads.len; i++) {
		p->workloads.items[i].drawn = false;
		p->workloads.items[i].shared = 0;
		p->workloads.items[i].places[0] = 0;
	}
	p->column = 0;
	measure_names(p, c);
	for (uint32_t at = 0; at != DOMAIN_NONE; at = next_domain(c, at))
		put_domain(p, c, cluster_domain(c, at), out);
	put_legend(p, out);
}

void picture_key(const struct picture *p, struct strbuf *out)
{
	if (p->style.unicode)
		strbuf_puts(out, "· idle  █ whole  ▂▄▆ shared, by the core booked\n"
				 "▤ MIG slices  ▫ MIG mode, empty  ✗ failed  ! cordoned\n");
	else
		strbuf_puts(out, ". idle  A whole  1-8 shared, eighths of the core booked\n"
				 "m MIG slices  o MIG mode, empty  x failed  ! cordoned\n");
}
