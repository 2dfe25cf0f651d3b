/* SPDX-License-Identifier: Apache-2.0 */
/* mig.h - parts of GPUs (Multi-Instance GPU): which fit, and where they go best.
 *
 * A GPU with MIG has memory slices (8; 4 on an A30) and compute slices (7; 4).
 * An instance of a profile takes a run of memory slices that begins at one of the
 * profile's legal starts, and a number of compute slices.  Profiles with the
 * media extensions ("+me") also take the one set of these that a GPU has.
 *
 * Names belong to a geometry: "1g.10gb" is the plain slice of an A100 80GB and the
 * double-memory slice of an A100 40GB.
 *
 * The tables serve simulated nodes and defaults; where NVML answers, it wins.
 * States are values; nothing here allocates.
 */
#ifndef GS_ENGINE_MIG_H
#define GS_ENGINE_MIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIG_PROFILES_MAX 16 /* of these at most 10 without "+me", see mig_worth() */
#define MIG_SLICES_MAX	 8

struct mig_profile {
	char name[16];	   /* "1g.10gb+me" */
	uint8_t id;	   /* NVML GPU instance profile */
	uint8_t size;	   /* memory slices */
	uint8_t compute;   /* compute slices */
	uint8_t starts;	   /* bit s: may begin at memory slice s */
	uint8_t max_count; /* on an empty GPU */
	bool media;	   /* takes the media extensions */
	uint16_t sm_count;
	uint32_t mem_mib; /* that a program in it can use */
};

struct mig_geometry {
	const char *name; /* "a100-40gb" */
	uint8_t slices;	  /* memory slices of a GPU */
	uint8_t compute;  /* compute slices of a GPU */
	uint8_t profile_count;
	const struct mig_profile *profiles; /* largest first: by size, then compute */
};

/* What can be had from a GPU. */
enum mig_mode {
	MIG_OFF,  /* no slices */
	MIG_ANY,  /* only slices, which are made as they are given out */
	MIG_MADE, /* only the slices that somebody has made */
};

/* What is taken on one GPU.  Zero is an empty GPU. */
struct mig_state {
	uint8_t used;	 /* bit s: memory slice s is taken */
	uint8_t compute; /* compute slices taken */
	uint8_t media;	 /* 1: media extensions taken */
};

struct mig_choice {
	uint8_t start; /* memory slice */
	uint32_t loss; /* what the GPU can no longer take afterwards; to be
					   compared between GPUs of one geometry: less is
					   better, see mig_worth() */
};

/* The known ones.  Profiles' names and places are NVIDIA's; memory differs a little
 * between driver releases. */
extern const struct mig_geometry mig_a30_24gb, mig_a100_40gb, mig_a100_80gb, mig_h100_80gb,
	mig_h100_94gb, mig_h200_141gb, mig_b200_180gb, mig_gb200_186gb;

/* By name ("a100-40gb"): NULL if there is none of that name; the i-th, NULL past the last. */
const struct mig_geometry *mig_geometry_find(const char *name);
const struct mig_geometry *mig_geometry_at(size_t i);

/* The geometry of a GPU model as GPU Feature Discovery prints it, for example
 * "NVIDIA-A100-SXM4-40GB", also with its "-SHARED" or "-MIG-<profile>" behind; NULL if
 * that model has no MIG or is unknown.  Case does not matter. */
const struct mig_geometry *mig_geometry_of_model(const char *model);

/* The index of a profile, or -ENOENT.  Takes "1g.5gb", "mig-1g.5gb" and, for the
 * media extensions, "1g.5gb+me" and "1g.5gb.me", which is how labels and resource
 * names have to write it.  `name` needs no terminating zero. */
int mig_profile_find(const struct mig_geometry *geometry, const char *name, size_t len);

/* Whether an instance of the profile can be placed anywhere, or just there. */
bool mig_fits(const struct mig_geometry *geometry, struct mig_state state, unsigned profile);
bool mig_fits_at(const struct mig_geometry *geometry, struct mig_state state, unsigned profile,
		 unsigned start);

/* What a GPU in this state can still take: for each profile, largest first, how many
 * of it alone would fit, as digits of one number.  So a state that keeps one more of
 * a large profile is worth more than any number of small ones.  Profiles with "+me"
 * have no digit of their own: they are as large as those without. */
uint32_t mig_worth(const struct mig_geometry *geometry, struct mig_state state);

/* The start that leaves the GPU worth most; of equals the highest, so that small
 * instances gather at the end and slices 0-3 stay whole for 4g and 3g.  False, and
 * nothing written, if the profile does not fit.
 * Among several GPUs take the one with the least `loss`. */
bool mig_pick(const struct mig_geometry *geometry, struct mig_state state, unsigned profile,
	      struct mig_choice *ret);

/* The same on a GPU whose slices are made: `made` has, for each memory slice, the profile that
 * begins there, counted from 1, or 0.  The highest that is free; `loss` is 0, for it can serve
 * nothing else. */
bool mig_pick_made(const struct mig_geometry *geometry, struct mig_state state,
		   const uint8_t made[MIG_SLICES_MAX], unsigned profile, struct mig_choice *ret);

/* Take or give back an instance.  mig_place() needs mig_fits_at(); mig_free() is its
 * exact inverse and needs that the instance is there. */
void mig_place(const struct mig_geometry *geometry, struct mig_state *state, unsigned profile,
	       unsigned start);
void mig_free(const struct mig_geometry *geometry, struct mig_state *state, unsigned profile,
	      unsigned start);

#endif
