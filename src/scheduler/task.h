/* SPDX-License-Identifier: Apache-2.0 */
/* task.h - an unbound pod of ours, from when it is first seen until it is bound or gone. */
#ifndef GS_SCHEDULER_TASK_H
#define GS_SCHEDULER_TASK_H

#include <stdint.h>

/* Enough for a uid of the server, and some. */
#define TASK_UID_MAX 64

/* A number for one try to bind a pod, never 0: how it is known again. */
uint32_t task_attempt(uint64_t random);

#endif
