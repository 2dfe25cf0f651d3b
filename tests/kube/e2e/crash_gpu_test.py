#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A scheduler with locks of cards that dies after any of its writes.

cluster: --nodes 4 --gpus 2 --history
"""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import main, test  # noqa: E402
from harness.crash import Crashes  # noqa: E402

CRASHES = Crashes(2, 1, "--locks", "gpu")


@test
def whatever_write_was_the_last_the_next_one_converges():
    CRASHES.run()


if __name__ == "__main__":
    sys.exit(main(CRASHES.prepare))
