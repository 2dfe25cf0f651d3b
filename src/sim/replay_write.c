/* SPDX-License-Identifier: Apache-2.0 */
/* replay_write.c - the result of a replay for programs and for people. */
#include <inttypes.h>
#include <stdio.h>

#include "base/attr.h"
#include "base/strbuf.h"
#include "sim/replay.h"
#include "wire/json_write.h"

#define DIGITS	  4
#define BAR_WIDTH 40

/* Where policies are compared. */
static const uint32_t reported[] = { 80, 90, 95, 100, 110, 130 };

bool replay_at(const struct replay *r, uint32_t load, double *ret)
{
	if (load >= r->loads_count || !r->loads[load].arrivals)
		return false;
	*ret = 100.0 * (double)r->loads[load].allocated_milli / r->loads[load].arrivals /
	       (double)r->capacity_milli;
	return true;
}

void replay_write_csv(const struct replay *r, struct strbuf *out)
{
	strbuf_puts(out, "load,allocated\n");
	for (uint32_t load = 0; load < r->loads_count; load++) {
		double allocated;

		if (replay_at(r, load, &allocated))
			strbuf_addf(out, "%" PRIu32 ",%.*f\n", load, DIGITS, allocated);
	}
}

void replay_write_json(const struct replay *r, struct strbuf *out)
{
	struct json_writer w = JSON_WRITER_INIT(out);

	json_open_object(&w);
	json_add_key(&w, "alloc");
	json_open_object(&w);
	for (size_t i = 0; i < ARRAY_SIZE(reported); i++) {
		char key[16];
		double allocated;

		snprintf(key, sizeof(key), "%" PRIu32, reported[i]);
		json_add_key(&w, key);
		if (replay_at(r, reported[i], &allocated))
			json_add_fixed(&w, allocated, DIGITS);
		else
			json_add_null(&w);
	}
	json_close_object(&w);
	json_add_key(&w, "rejected");
	json_add_u64(&w, r->rejected);
	json_add_key(&w, "rejected_cpu_only");
	json_add_u64(&w, r->rejected_cpu_only);
	json_add_key(&w, "decisions");
	json_add_u64(&w, r->decisions);
	json_add_key(&w, "seconds");
	json_add_fixed(&w, r->seconds, 6);
	json_close_object(&w);
	strbuf_putc(out, '\n');
}

/* Every tenth percent, and those where policies are compared. */
static bool is_shown(const struct replay *r, uint32_t load)
{
	if (load % 10 == 0 || load == r->loads_count - 1)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(reported); i++)
		if (reported[i] == load)
			return true;
	return false;
}

void replay_write_table(const struct replay *r, const char *policy, struct strbuf *out)
{
	double rate = r->seconds > 0 ? r->decisions / r->seconds : 0;

	strbuf_addf(out, "policy %s\n\n  load %%   allocated %%\n", policy);
	for (uint32_t load = 0; load < r->loads_count; load++) {
		double allocated;

		if (!is_shown(r, load) || !replay_at(r, load, &allocated))
			continue;
		strbuf_addf(out, "  %6" PRIu32 "   %11.2f  ", load, allocated);
		for (int i = 0; i < (int)(allocated * BAR_WIDTH / 100); i++)
			strbuf_putc(out, '#');
		strbuf_putc(out, '\n');
	}
	strbuf_addf(out,
		    "\n%" PRIu32 " pods arrived, %" PRIu32 " were rejected (%" PRIu32
		    " of them without GPUs)\n"
		    "%.3f s for the decisions, %.0f a second\n",
		    r->decisions, r->rejected, r->rejected_cpu_only, r->seconds, rate);
}
