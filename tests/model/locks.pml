/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LEASES
#define LEASES 2
#endif
#include "server.pml"
#include "network.pml"
#include "scheduler.pml"

init {
	atomic {
		pod[0].state = PENDING;
		pod[1].state = PENDING;
		run scheduler(0);
		run scheduler(1);
		run network();
		run world()
	}
}
