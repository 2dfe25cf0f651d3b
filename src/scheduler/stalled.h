/* SPDX-License-Identifier: Apache-2.0 */
/* stalled.h - what pods are told while it leads and cannot begin.
 *
 * Something cannot be read, or the namespace of the locks is missing: pods would wait without a
 * word.  After some seconds each is told what an administrator has to do, in the way and at the
 * pace of report.c.  A list that merely takes long is no reason.
 */
#ifndef GS_SCHEDULER_STALLED_H
#define GS_SCHEDULER_STALLED_H

#include <stdint.h>

struct scheduler;

void stalled_tick(struct scheduler *s, uint64_t now_ms);

#endif
