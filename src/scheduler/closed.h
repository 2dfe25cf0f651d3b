/* SPDX-License-Identifier: Apache-2.0 */
/* closed.h - nodes on which no GPU can be locked for now, by whatever pod.
 *
 * With --locks=gpu that is a node whose cards have other indexes since it was started again, while
 * a Lease still holds something for the card that was there; in either mode one whose Lease
 * cannot be read, is being taken away, or has no room for another entry.  The engine places nothing with GPUs there until the
 * locks say that it is over, which is asked about every second.  Expect none, or a few.
 */
#ifndef GS_SCHEDULER_CLOSED_H
#define GS_SCHEDULER_CLOSED_H

#include <stdint.h>

struct scheduler;

/* Locking there failed; `why` is for the log.  Fine if it is closed already. */
void closed_add(struct scheduler *s, const char *node, const char *why);
void closed_tick(struct scheduler *s, uint64_t now_ms);
void closed_done(struct scheduler *s);

#endif
