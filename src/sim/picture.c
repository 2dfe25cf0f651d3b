/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "engine/cluster.h"

#define LETTERS	      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define WORKLOAD_NONE UINT32_MAX

/* Colours of the 256-colour palette that can be told apart on dark and light. */
static const uint8_t palette[] = { 39, 208, 41, 170, 220, 33, 203, 45, 141, 112, 214, 75 };

static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };

struct workload {
	const char *name;
	bool drawn; /* in the drawing that is being made */
};

struct picture {
	struct picture_style style;
	VEC(struct workload) workloads;
	uint32_t column; /* where the line being written stands */
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
	for (size_t i = 0; i < p->workloads.len; i++)
		if (strcmp(p->workloads.items[i].name, name) == 0)
			return (uint32_t)i;
	struct workload new = { .name = name };
	if (vec_push(&p->workloads, new) < 0)
		return WORKLOAD_NONE;
	return (uint32_t)p->workloads.len - 1;
}

/* The workload that holds the GPU, of several the one placed last. */
static uint32_t holder_of(struct picture *p, const struct cluster *c, const struct node *node,
			  unsigned gpu)
{
	for (uint32_t i = node->first_pod; i != POD_NONE; i = cluster_pod(c, i)->next) {
		const struct pod *pod = cluster_pod(c, i);

		for (unsigned h = 0; h < pod->holds_count; h++)
			if (pod->holds[h].gpu == gpu)
				return workload_of(p, pod);
	}
	return WORKLOAD_NONE;
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
	unsigned booked = (CORE_WHOLE - gpu->core_free_milli) * 8u / CORE_WHOLE;

	return MAX(booked, 1u);
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

	if (workload != WORKLOAD_NONE)
		p->workloads.items[workload].drawn = true;
	if (!gpu->healthy) {
		strbuf_puts(out, p->style.color ? "\033[1;31m" : "");
		strbuf_puts(out, p->style.unicode ? "✗" : "x");
		color_off(p, out);
	} else if (gpu->use == GPU_IDLE) {
		strbuf_puts(out, p->style.color ? "\033[2m" : "");
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

static void put_node(struct picture *p, const struct cluster *c, const struct node *node,
		     uint32_t indent, struct strbuf *out)
{
	uint32_t columns = (uint32_t)strlen(node->name) + 1 + node->gpus_count;

	if (p->column > indent && p->column + 2 + columns > p->style.width)
		line_end(p, out);
	else if (p->column > indent)
		put_indent(p, out, p->column + 2);
	put_indent(p, out, indent);
	strbuf_puts(out, node->name);
	strbuf_puts(out, node->unschedulable ? "!" : " ");
	for (unsigned i = 0; i < node->gpus_count; i++)
		put_gpu(p, c, node, i, out);
	p->column += columns;
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
	for (size_t i = 0; i < nodes.len; i++)
		put_node(p, c, nodes.items[i], indent, out);
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

/* The widest name at that level, so that nodes of neighbouring leaves stand in columns. */
static uint32_t names_width(const struct cluster *c, uint8_t level)
{
	size_t width = 0;

	for (uint32_t at = 0; at != DOMAIN_NONE; at = next_domain(c, at)) {
		const struct domain *d = cluster_domain(c, at);

		if (d->level == level)
			width = MAX(width, strlen(d->name));
	}
	return (uint32_t)MIN(width, 24);
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
		put_nodes(p, c, d, d->level ? indent + names_width(c, d->level) + 2 : 0, out);
	line_end(p, out);
}

static void put_legend(struct picture *p, struct strbuf *out)
{
	for (size_t i = 0; i < p->workloads.len; i++) {
		const struct workload *w = &p->workloads.items[i];
		uint32_t columns = (uint32_t)strlen(w->name) + 4;

		if (!w->drawn)
			continue;
		if (p->column && p->column + columns > p->style.width)
			line_end(p, out);
		color_on(p, out, (uint32_t)i);
		if (p->style.unicode && p->style.color)
			strbuf_puts(out, "█");
		else
			strbuf_putc(out, letter_of((uint32_t)i));
		color_off(p, out);
		strbuf_addf(out, " %s  ", w->name);
		p->column += columns;
	}
	line_end(p, out);
}

void picture_draw(struct picture *p, const struct cluster *c, struct strbuf *out)
{
	for (size_t i = 0; i < p->workloads.len; i++)
		p->workloads.items[i].drawn = false;
	p->column = 0;
	for (uint32_t at = 0; at != DOMAIN_NONE; at = next_domain(c, at))
		put_domain(p, c, cluster_domain(c, at), out);
	put_legend(p, out);
}

void picture_key(const struct picture *p, struct strbuf *out)
{
	if (p->style.unicode)
		strbuf_puts(out, "· idle  █ whole  ▂▄▆ shared, by the core booked  ▤ MIG slices"
				 "  ✗ unhealthy\n");
	else
		strbuf_puts(out, ". idle  A whole  1-8 shared, eighths of the core booked  m MIG "
				 "slices  x unhealthy\n");
}
