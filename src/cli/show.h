/* SPDX-License-Identifier: Apache-2.0 */
/* show.h - what `simulate` shows beside its results: lists and a progress bar. */
#ifndef GS_CLI_SHOW_H
#define GS_CLI_SHOW_H

#include <stdint.h>

struct policy;
struct strbuf;

/* The presets of clusters, one a line: GPUs, their model and memory, how they are joined. */
void show_machines(struct strbuf *out);

/* The names of all policies, with what they do. */
void show_policies(struct strbuf *out);
/* The policy; NULL with a sentence in `complaint` that has all names, and the nearest. */
const struct policy *show_find_policy(const char *name, struct strbuf *complaint);

/* Appends the text, which begins at `column`, and goes on in lines of at most `width`
 * columns that begin at `indent`.  A word that is wider than that has a line of its own;
 * there is no newline at the end. */
void show_wrapped(const char *text, uint32_t column, uint32_t indent, uint32_t width,
		  struct strbuf *out);

/* One line on the standard error stream that is written over again, as wide as the
 * terminal; it is wiped when done is total.  For replay_config. */
void show_progress(void *context, uint32_t done, uint32_t total);
/* The same as text without the control characters, `width` columns at most. */
void show_progress_line(uint32_t done, uint32_t total, uint32_t width, struct strbuf *out);

#endif
