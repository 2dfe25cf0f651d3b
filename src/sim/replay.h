/* SPDX-License-Identifier: Apache-2.0 */
/* replay.h - a trace, pod by pod, on an engine; and how well it packed.
 *
 * Each pod is placed at once or rejected for good: nothing leaves, nothing is tried
 * again.  After every arrival the GPU that has arrived and the GPU that is allocated
 * are taken as shares of the capacity; the figure at load L is the mean allocation over
 * the arrivals at which the arrived share rounds to L percent.
 *
 * The engine learns the mix of work from what arrives.  Only policies that say so are
 * shown the list in advance.
 */
#ifndef GS_SIM_REPLAY_H
#define GS_SIM_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

struct clock;
struct err;
struct policy;
struct strbuf;
struct trace;

struct replay_config {
	const struct policy *policy; /* NULL: the default */
	uint64_t seed;
	const struct clock *clock; /* for `seconds` alone */
	/* Called now and then, in all about 200 times.  May be NULL. */
	void (*progress)(void *context, uint32_t done, uint32_t total);
	void *context;
};

struct replay_load {
	uint64_t allocated_milli; /* sum over its arrivals */
	uint32_t arrivals;	  /* 0: this load was never reached */
};

struct replay {
	uint64_t capacity_milli;
	struct replay_load *loads; /* by whole percent */
	uint32_t loads_count;
	uint32_t decisions, rejected, rejected_cpu_only;
	double seconds; /* learning, deciding and booking */
};

/* 0, -ENOMEM, -EINVAL when the engine refuses a node. */
int replay_run(const struct trace *trace, const struct replay_config *config, struct replay *ret,
	       struct err *err);
void replay_done(struct replay *r);

/* The mean allocation in percent at that load; false if it was never reached. */
bool replay_at(const struct replay *r, uint32_t load, double *ret);

void replay_write_csv(const struct replay *r, struct strbuf *out);
void replay_write_json(const struct replay *r, struct strbuf *out);
void replay_write_table(const struct replay *r, const char *policy, struct strbuf *out);

#endif
