/* SPDX-License-Identifier: Apache-2.0 */
/* rules.h - what a pod demands of its node besides resources and GPUs: labels of the node,
 * host ports, pods that must or must not be near, even spread, volumes.
 *
 * A pod brings two things.  Its *subject* is what others may select it by: its namespace
 * and labels.  Its *rules* are what it demands.  Both are interned and counted: pods made
 * from one template share them, and they go with the last pod that has them.  Requests
 * name them by number (request.h), so that they are part of the class.
 *
 * Rules about nodes depend on the node alone and belong to its identity.  Rules about pods
 * are answered from counters: for every selector that some rule uses and every topology
 * key, how many pods match it for each value of the label.  A pod that comes or goes
 * touches the counters of the selectors that match its subject, which are looked up once
 * for each subject; no answer visits nodes or pods.  Where a volume can be used is a rule
 * about nodes; who else uses it, and how many a node has, is in volumes.h.
 *
 * The meaning is that of kube-scheduler's NodeAffinity, NodePorts, InterPodAffinity,
 * PodTopologySpread, VolumeZone, VolumeRestrictions, NodeVolumeLimits and (as far as it is a
 * matter of labels) VolumeBinding filters.
 */
#ifndef GS_ENGINE_RULES_H
#define GS_ENGINE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/request.h"
#include "engine/verdict.h"

struct cluster;

enum match_op {
	MATCH_IN,
	MATCH_NOT_IN, /* also where the key is missing */
	MATCH_EXISTS,
	MATCH_NOT_EXISTS,
	MATCH_GREATER, /* one whole number; nodes only, as the next three */
	MATCH_LESS,
	MATCH_NAME_IN, /* the node's name; `key` does not count */
	MATCH_NAME_NOT_IN,
};

/* One demand on labels.  Everything below borrows its strings and arrays. */
struct match {
	const char *key;
	const char *const *values;
	uint32_t values_count;
	uint8_t op; /* enum match_op */
};

struct node_term { /* all of them hold; without any, nothing matches */
	const struct match *matches;
	uint32_t count;
};

struct node_group { /* one of its terms holds; without any, nothing matches */
	const struct node_term *terms;
	uint32_t count;
	uint8_t refusal; /* enum verdict of a node for which it does not hold; 0: WRONG_LABELS.
			  * Any other: of a volume, which does not count for even spread */
};

struct pod_selector {
	const char *const *namespaces;
	uint32_t namespaces_count;
	const struct match *namespace_labels; /* further namespaces, by their labels */
	uint32_t namespace_labels_count;
	bool by_namespace_labels;   /* the above counts: without any match, all namespaces */
	const struct match *labels; /* all of them hold */
	uint32_t labels_count;
	bool nobody; /* matches no pod, whatever stands above */
};

struct pod_term {
	struct pod_selector pods;
	const char *topology_key;
};

struct spread_rule {		    /* DoNotSchedule */
	const struct match *labels; /* of pods in the same namespace */
	uint32_t labels_count;
	bool nobody; /* without a selector */
	const char *topology_key;
	uint32_t max_skew;
	uint32_t min_domains; /* 0: 1 */
	bool ignore_affinity; /* nodes that the pod may not use count too */
	bool honor_taints;    /* nodes whose taints it does not tolerate do not count */
};

enum port_protocol { PORT_TCP, PORT_UDP, PORT_SCTP };

struct host_port {
	char ip[46]; /* "0.0.0.0" or empty: all of them */
	uint8_t protocol;
	uint8_t unused;
	uint16_t port;
};

enum volume_kind {
	VOLUME_CLAIM,	     /* "namespace/name", or a disk of the pod's own: attached */
	VOLUME_CLAIM_ALONE,  /* and no other pod may use it */
	VOLUME_DISK,	     /* one pod of a node may use it, ... */
	VOLUME_DISK_TO_READ, /* ... or all who only read it */
};

struct volume_use {
	const char *key;
	uint8_t kind; /* enum volume_kind */
};

struct rules_spec {
	const struct node_group *groups; /* all of them hold; the pod's own come first */
	uint32_t groups_count;
	const struct volume_use *volumes;
	uint32_t volumes_count;
	const struct host_port *ports;
	uint32_t ports_count;
	const struct pod_term *near; /* affinity: a pod that matches all of these */
	uint32_t near_count;
	const struct pod_term *apart; /* anti-affinity */
	uint32_t apart_count;
	const struct spread_rule *spread;
	uint32_t spread_count;
	const char *namespace;		      /* of the pod, for `spread` */
	const struct toleration *tolerations; /* for honor_taints */
	uint32_t tolerations_count;
};

#define RULES_BYTES_MAX	 65536	       /* of all its strings and figures */
#define VOLUME_BYTES_MAX (1024 * 1024) /* the same, with rules of volumes among them */
#define RULES_ITEMS_MAX	 64	       /* of each list */

struct pod_label {
	const char *key, *value;
};

/* The number of the subject, or of the rules, counted once more; 0 for rules that demand
 * nothing.  0; -E2BIG; -EINVAL for a number that is none or a list that is too long;
 * -ENOMEM. */
int subject_take(struct cluster *c, const char *namespace, const struct pod_label *labels,
		 uint32_t labels_count, uint32_t *ret);
int rules_take(struct cluster *c, const struct rules_spec *spec, uint32_t *ret);
/* Counts one user more, or less; 0 is fine. */
void subject_hold(struct cluster *c, uint32_t subject);
void rules_hold(struct cluster *c, uint32_t rules);
void subject_release(struct cluster *c, uint32_t subject);
void rules_release(struct cluster *c, uint32_t rules);

/* What namespaces are labelled with, for selectors by namespace labels.  Unknown ones have
 * no labels.  0, -ENOMEM. */
int rules_namespace(struct cluster *c, const char *namespace, const struct pod_label *labels,
		    uint32_t labels_count);
void rules_namespace_gone(struct cluster *c, const char *namespace);

/* Another number for every set of rules and every subject there ever was: theirs are used
 * again. */
uint64_t rules_serial(const struct cluster *c, uint32_t rules);
uint64_t subject_serial(const struct cluster *c, uint32_t subject);

/* Whether the rules look at the node's labels or name; at the pods that are there. */
bool rules_of_nodes(const struct cluster *c, uint32_t rules);
bool rules_of_pods(const struct cluster *c, uint32_t rules);
/* Whether pods that are there keep others like this one at a distance. */
bool subject_matters(const struct cluster *c, uint32_t subject);
/* Whether no rule that is there tells pods of the two from each other. */
bool subjects_alike(const struct cluster *c, uint32_t a, uint32_t b);
/* A pod that was placed as one of a subject that is alike is of this one. */
void subject_give(struct cluster *c, uint32_t pod, uint32_t subject);

/* Labels and name of the node: FITS or what the first group that does not hold says. */
enum verdict rules_fit_node(const struct cluster *c, uint32_t rules, uint32_t node);

/* The pods that are there: FITS or which rule is broken.  `without`: pods of this node to be
 * taken as gone already. */
enum verdict rules_fit_pods(const struct cluster *c, uint32_t rules, uint32_t subject,
			    uint32_t node, const uint32_t *without, uint32_t without_count);

/* Moves whenever a node that rules_fit_pods() has refused might be accepted now. */
uint64_t rules_loosened(const struct cluster *c);

#endif
