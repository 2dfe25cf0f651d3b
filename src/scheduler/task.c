/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/task.h"

uint32_t task_attempt(uint64_t random)
{
	uint32_t attempt = (uint32_t)(random ^ random >> 32);

	return attempt ? attempt : 1;
}
