/* SPDX-License-Identifier: Apache-2.0 */
/* review.h - one AdmissionReview in, its answer out.
 *
 *	struct strbuf answer CLEANUP(strbuf_done) = STRBUF_INIT_MAX(WEBHOOK_ANSWER_MAX);
 *	int rc = webhook_review(&options, WEBHOOK_MUTATE, body, len, &answer, &err);
 *	if (rc < 0)
 *		send(webhook_http_status(rc), "text/plain", err.text);
 *	else
 *		send(200, "application/json", answer.s, answer.len);
 *
 * Mutate completes pods as they are created: each container that gets GPUs learns through
 * CUDA_VISIBLE_DEVICES which ones, from the annotation that the scheduler writes with the
 * Binding.  It never refuses.  Validate changes nothing and refuses what would let users
 * grant themselves GPUs, and what the scheduler could never place.
 *
 * Pure: no I/O, no clock, no state.  Any number of threads may call with the same options
 * as long as nobody writes to them.
 */
#ifndef GS_WEBHOOK_REVIEW_H
#define GS_WEBHOOK_REVIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "kube/views/gpu.h"

struct dialect_lookup;
struct err;
struct strbuf;

#define WEBHOOK_BODY_MAX   ((size_t)3 << 20) /* of a review: what the API server reads */
#define WEBHOOK_ANSWER_MAX ((size_t)4 << 20) /* 64 containers, all of them ours */

enum webhook_path {
	WEBHOOK_MUTATE,	  /* /mutate */
	WEBHOOK_VALIDATE, /* /validate */
};

/* What else goes into containers with GPUs, since nodes differ. */
enum webhook_inject {
	/* NVIDIA_VISIBLE_DEVICES: the annotation in mode env, where it is always set; "void" in
	 * mode cdi, so that a runtime in its old mode adds nothing; also "void" in containers
	 * without GPUs of the same pod, whose image may say "all". */
	INJECT_NVIDIA = 1,
	/* CUDA_MPS_*: the daemon's folder and the limits of containers that have a share of a
	 * card.  Not in mode cdi, where the agent sets them. */
	INJECT_MPS = 2,
};

/* All strings and objects are borrowed. */
struct webhook_options {
	const char *const *schedulers; /* spec.schedulerName of ours */
	size_t schedulers_count;
	const char *const *accounts; /* users who may write decisions: scheduler, extender ... */
	size_t accounts_count;
	enum injection_mode injection; /* how GPUs get into the containers of the nodes */
	unsigned inject;	       /* of enum webhook_inject */
	const char *runtime_class;     /* for pods with GPUs that name none; NULL: leave it */
	const char *mps_directory;     /* of the MPS daemon's pipes */
	const char *gdr_level;	       /* NCCL_NET_GDR_LEVEL of claims that need RDMA */
	const char *cufile_path;       /* the cuFile configuration, of claims that need it */
	const char *set_scheduler;     /* for pods that ask for GPUs and name no scheduler of their
				    * own (or default-scheduler); NULL: leave it */
	/* Pods of other schedulers that ask for nvidia.com/gpu get variables too: where
	 * kube-scheduler asks our extender.  Else nobody would fill the annotation, and the
	 * variable would hide every GPU. */
	bool other_schedulers;
	bool copy_owner_annotations; /* topology.scheduler/ of what owns the pod */
	/* Claims and owners, as far as they are known; found objects must live until
	 * webhook_review() returns, on the thread that called it.  NULL: none are, and
	 * variables that only a claim asks for are not set.  index_taken() is not called. */
	const struct dialect_lookup *lookup;
};

/* The defaults of the options: both names of the scheduler, no accounts, and no mode: the
 * variable refers to what the scheduler writes for the node's own.  No slot, which only
 * mode cdi has, and no ids of a map, which are right where every GPU is visible alone. */
extern const struct webhook_options webhook_options_default;

/* Takes one value of --inject: "nvidia", "mps", "mps=/run/nvidia/mps" or
 * "runtimeclass=nvidia".  0, -EINVAL. */
int webhook_inject_add(struct webhook_options *options, const char *word, struct err *err);

/* The mode of that name ("cdi", "env", "external", "all"): 0, -EINVAL. */
int webhook_injection_parse(const char *word, enum injection_mode *ret, struct err *err);

/* Whether the scheduler of that name is one of ours. */
bool webhook_is_ours(const struct webhook_options *options, const char *scheduler);

/* Whether they go together; to be asked once.  0, -EINVAL. */
int webhook_options_check(const struct webhook_options *options, struct err *err);

enum webhook_outcome {
	WEBHOOK_UNTOUCHED, /* allowed as it is */
	WEBHOOK_PATCHED,   /* allowed, with changes */
	WEBHOOK_REFUSED,   /* not allowed */
	WEBHOOK_OUTCOMES,
};

/* Adds the answer to `answer` and returns an outcome; or -EINVAL for what is no
 * AdmissionReview of admission.k8s.io/v1, -E2BIG past a limit, -ENOMEM, and then the
 * answer is as it was. */
int webhook_review(const struct webhook_options *options, enum webhook_path path, const char *body,
		   size_t len, struct strbuf *answer, struct err *err);

/* What such an error is to HTTP: 400, 413, 500; 200 for an outcome. */
int webhook_http_status(int rc);

#endif
