#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A scheduler that dies after any of its writes, or is told to stop at any time.

cluster: --nodes 4 --gpus 8 --history
"""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.chaos import all_pods, is_bound  # noqa: E402
from harness.check import equal, eventually, main, test  # noqa: E402
from harness.crash import Crashes  # noqa: E402
from harness.scheduler import Scheduler, delete_pods, entries, make_pod  # noqa: E402

CRASHES = Crashes(8, 4)


@test
def whatever_write_was_the_last_the_next_one_converges():
    CRASHES.run()


@test
def one_that_is_told_to_stop_leaves_nothing_half_done():
    for turn in range(3):
        with Scheduler(name=f"told-{turn}") as scheduler:
            delete_pods()
            eventually(lambda: not entries(), "all locks are gone")
            for number in range(16):
                make_pod(f"one-{number}", gpus=1)
            # What is on its way then differs; nothing may be left of it.
            eventually(lambda: scheduler.log().count("pod bound") > 5 * turn, "it works")
            scheduler.stop()
        bound = [name for name, pod in all_pods().items() if is_bound(pod)]
        equal(sorted(entry["name"] for _, entry in entries()), sorted(bound), "locks")


if __name__ == "__main__":
    sys.exit(main(CRASHES.prepare))
