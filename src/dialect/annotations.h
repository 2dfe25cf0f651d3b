/* SPDX-License-Identifier: Apache-2.0 */
/* annotations.h - a decision, as the pod will carry it.
 *
 * The annotations travel inside the Binding, so that they and the node's name become
 * visible at the same moment.  Every key and the total size are checked here: the API
 * server takes an illegal key with a Binding, and the pod can never be changed again.
 *
 *	gpu.scheduling/allocated          dgx-07:0,1            for people
 *	gpu.scheduling/visible-devices    0,1                   what CUDA may see
 *	elasticgpu.io/container-<name>    0                     the same for one container
 *	elasticgpu.io/assumed             true
 *	gpu.scheduling/decision           {"node":...}          for the agent
 *
 * The decision lists what the pod holds as "gpus" and for each container, under
 * "containers", the places in that list (from 0) of just what it may see, and, where it
 * asked for a share, how much of that it may use:
 *
 *	{"node":"dgx-07","gpus":[{"id":0,...},{"id":1,...}],
 *	 "containers":{"main":{"gpus":[0,1]}},...}
 *
 * and for which pod it was made, by uid: a copy of it elsewhere is nobody's decision.
 *
 * A pod that a map pins has its "index" there too, for pods of a Deployment have it nowhere
 * else.  What a pod carries is read back by decided.h.
 *
 * MIG slices and shares under MPS are named by UUID, as is all else in the same value.
 */
#ifndef GS_DIALECT_ANNOTATIONS_H
#define GS_DIALECT_ANNOTATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct cluster;
struct decision;
struct err;
struct hold;
struct wish;

#define ANNOTATIONS_MAX	      (4 + 64)	  /* one per container and four of the pod */
#define ANNOTATION_KEY_MAX    320	  /* with the final NUL */
#define ANNOTATIONS_BYTES_MAX (64 << 10)  /* ours */
#define ANNOTATIONS_BYTES_ALL (256 << 10) /* all that a pod may have, keys and values */

/* What a container sees before CUDA looks at the variable. */
enum visibility {
	VISIBLE_ALL,	 /* every GPU of the node: the value names ids */
	VISIBLE_DECIDED, /* only what was decided: the value counts from 0 */
	VISIBLE_NAMED,	 /* what the value names, for the runtime reads it too: UUIDs, which mean
			  * the same to both */
};

struct annotations_input {
	const struct cluster *cluster;
	const struct wish *wish;
	const struct decision *decision;
	const char *scheduler; /* who decided */
	const char *pod_uid;   /* for whom; NULL: nobody will ask */
	uint32_t attempt;
	enum visibility visibility;
	bool mps;	       /* shares go through MPS, which wants UUIDs */
	size_t existing_bytes; /* keys and values of the annotations that the pod has */
	/* The UUID of the slice that such a hold stands for, or NULL if it is not known (the
	 * agent has yet to make it).  May be NULL. */
	const char *(*slice_uuid)(void *context, uint32_t node, const struct hold *hold);
	void *context;
};

struct annotation {
	const char *key, *value;
};

struct annotations {
	uint32_t count;
	struct annotation items[ANNOTATIONS_MAX];
};

/* 0 with the annotations in the order above, memory from the arena; -ENOENT a UUID is
 * needed and not known; -E2BIG they are too many bytes; -EINVAL a key would be
 * illegal; -ENOMEM. */
int annotations_make(const struct annotations_input *input, struct arena *arena,
		     struct annotations *ret, struct err *err);

/* Whether only we write such a key. */
bool annotation_is_decision(const char *key);

/* The key for one container, as the webhook refers to it too.  A name that would make
 * the key too long is cut and its hash appended.  Returns `key`. */
char *annotation_container_key(const char *container, char key[ANNOTATION_KEY_MAX]);

/* 0, or -EINVAL if Kubernetes would refuse the key. */
int annotation_key_check(const char *key, struct err *err);

/* The value of one key, or NULL. */
const char *annotations_find(const struct annotations *list, const char *key);

#endif
