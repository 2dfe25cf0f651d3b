/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/show.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/strbuf.h"
#include "base/suggest.h"
#include "engine/machine.h"
#include "engine/policy/policy.h"
#include "sim/terminal.h"

#define BAR_MAX	      40
#define POLICIES_MAX  32
#define POLICY_COLUMN 15
#define HELP_WIDTH    80

static void put_links(const struct machine *m, struct strbuf *out)
{
	uint16_t slowest = UINT16_MAX, fastest = 0;

	for (uint8_t i = 0; i < m->pair_count; i++) {
		slowest = MIN(slowest, m->pairs[i].gbps);
		fastest = MAX(fastest, m->pairs[i].gbps);
	}
	if (m->nvlink_gbps)
		strbuf_addf(out, "NVLink %u GB/s", m->nvlink_gbps);
	else if (m->pair_count && slowest == fastest)
		strbuf_addf(out, "NVLink %u GB/s in pairs", fastest);
	else if (m->pair_count)
		strbuf_addf(out, "NVLink %u-%u GB/s in pairs", slowest, fastest);
	else
		strbuf_puts(out, m->gpu_count > 1 ? "PCIe" : "-");
	if (m->nvlink_domain_nodes > 1)
		strbuf_addf(out, " over %u nodes", m->nvlink_domain_nodes);
}

void show_machines(struct strbuf *out)
{
	const struct machine *m;

	strbuf_addf(out, "%-13s %4s %-28s %4s  %-3s  %s\n", "MACHINE", "GPUS", "MODEL", "GIB",
		    "MIG", "LINKS");
	for (size_t i = 0; (m = machine_at(i)); i++) {
		strbuf_addf(out, "%-13s %4u %-28s %4u  %-3s  ", m->name, m->gpu_count, m->model,
			    (m->gpu_mem_mib + 512) / 1024, m->mig ? "yes" : "no");
		put_links(m, out);
		strbuf_putc(out, '\n');
	}
}

void show_wrapped(const char *text, uint32_t column, uint32_t indent, uint32_t width,
		  struct strbuf *out)
{
	bool first = true; /* of its line */

	for (const char *end; *text; text = end + strspn(end, " ")) {
		end = text + strcspn(text, " ");
		uint32_t length = (uint32_t)(end - text);

		if (!first && column + 1 + length > width) {
			strbuf_addf(out, "\n%*s", (int)indent, "");
			column = indent;
			first = true;
		}
		strbuf_addf(out, "%s%.*s", first ? "" : " ", (int)length, text);
		column += length + !first;
		first = false;
	}
}

void show_policies(struct strbuf *out)
{
	const struct policy *p;

	strbuf_puts(out, "Policies:\n");
	for (size_t i = 0; (p = policy_at(i)); i++) {
		strbuf_addf(out, "  %-12s ", p->name);
		show_wrapped(p->summary, POLICY_COLUMN, POLICY_COLUMN, HELP_WIDTH, out);
		strbuf_putc(out, '\n');
	}
}

const struct policy *show_find_policy(const char *name, struct strbuf *complaint)
{
	const struct policy *found = policy_find(name), *p;
	const char *names[POLICIES_MAX];
	size_t count = 0;

	if (found)
		return found;
	for (; count < POLICIES_MAX && (p = policy_at(count)); count++)
		names[count] = p->name;
	const char *near = suggest(name, names, count);
	strbuf_addf(complaint, "there is no policy %.60s", name);
	if (near)
		strbuf_addf(complaint, ", did you mean %s?", near);
	for (size_t i = 0; i < count; i++)
		strbuf_addf(complaint, "%s%s",
			    i	   ? ", "
			    : near ? " They are "
				   : "; they are ",
			    names[i]);
	return NULL;
}

void show_progress_line(uint32_t done, uint32_t total, uint32_t width, struct strbuf *out)
{
	char count[48];
	uint32_t percent = total ? (uint32_t)((uint64_t)done * 100 / total) : 100;
	int n = snprintf(count, sizeof(count), "%3u%% %u of %u pods", percent, done, total);

	/* Past the last column the cursor would go on to the next line. */
	if ((uint32_t)n + 12 > width)
		n = snprintf(count, sizeof(count), "%3u%%", percent);
	uint32_t bar = width > (uint32_t)n + 4 ? MIN(width - (uint32_t)n - 4, BAR_MAX) : 0;
	if (bar)
		strbuf_putc(out, '[');
	for (uint32_t i = 0; i < bar; i++)
		strbuf_putc(out, i < percent * bar / 100 ? '#' : ' ');
	strbuf_addf(out, "%s%s", bar ? "] " : "", count);
}

void show_progress(void *context, uint32_t done, uint32_t total)
{
	struct strbuf line CLEANUP(strbuf_done) = STRBUF_INIT;

	(void)context;
	show_progress_line(done, total, terminal_width(stderr), &line);
	fprintf(stderr, "\r%s\033[K", done < total ? line.s : "");
	fflush(stderr);
}
