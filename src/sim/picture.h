/* SPDX-License-Identifier: Apache-2.0 */
/* picture.h - the cluster as text: domain by domain, node by node, GPU by GPU.
 *
 *	spine-0
 *	  leaf-0  dgx-00 AAAAAAAA  dgx-01 AAAAAAAA  dgx-02 5.......  dgx-03 ........
 *	  leaf-1  dgx-04 BB..CCmm  ...
 *	A train  B serve  C notebook
 *
 * One character a GPU: idle, whole (in the letter or colour of the workload that holds
 * it), shared (by how much of its core is booked), sliced (MIG), in MIG mode and empty,
 * unhealthy.  Unicode blocks and colours where the terminal has them, letters elsewhere;
 * then the legend also says where a workload has parts of cards.
 *
 * A workload keeps its letter as long as the picture lives, so that successive drawings
 * can be compared.  Strings are borrowed from the callback.
 */
#ifndef GS_SIM_PICTURE_H
#define GS_SIM_PICTURE_H

#include <stdbool.h>
#include <stdint.h>

struct cluster;
struct pod;
struct strbuf;

#define PICTURE_WIDTH_MIN     40
#define PICTURE_WIDTH_DEFAULT 100

struct picture_style {
	bool unicode, color;
	uint32_t width; /* columns; 0: PICTURE_WIDTH_DEFAULT */
	/* The workload that a pod belongs to; NULL: the pod's name. */
	const char *(*workload)(void *context, const struct pod *pod);
	void *context;
};

struct picture;

struct picture *picture_new(const struct picture_style *style); /* NULL: out of memory */
void picture_free(struct picture *p);
void picture_freep(struct picture **p);

/* Appends the drawing, with a legend of the workloads that are in it.  `out->failed`
 * tells if memory ran out. */
void picture_draw(struct picture *p, const struct cluster *c, struct strbuf *out);

/* A node that has left the cluster is drawn as failed, in the domain of that name.  0,
 * -ENOMEM. */
int picture_add_failed(struct picture *p, const char *node, const char *domain, uint32_t gpus);
void picture_drop_failed(struct picture *p, const char *node);

/* What the characters mean, in two lines. */
void picture_key(const struct picture *p, struct strbuf *out);

#endif
