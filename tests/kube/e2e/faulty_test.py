#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Schedulers that hear from the API server only what a faulty network lets through.

FAULTY_SEED chooses which requests fail.

cluster: --nodes 4 --gpus 8 --history
"""
import os
import random
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.chaos import Churn, check_cards, settle  # noqa: E402
from harness.check import main, test  # noqa: E402
from harness.faults import behind_faults  # noqa: E402
from harness.scheduler import install_kinds  # noqa: E402

SEED = int(os.environ.get("FAULTY_SEED") or 1)
WAVES = 12
FAULTS_MIN = 150


def count_faults(proxy):
    """So far."""
    return sum(proxy.control("stats")["faults"].values())


def churn_behind(proxy, seed, fillers=False):
    """Pods come and go; what stays is bound, faults and all."""
    churn = Churn(random.Random(seed), fillers)
    for _ in range(WAVES):
        churn.wave()
        time.sleep(1)
    took = settle(churn.left())
    check_cards()
    print(f"# {churn.made} pods; settled after {took:.1f} s, faults and all", flush=True)
    # Without pods that come little is asked, and so little fails.
    while count_faults(proxy) < FAULTS_MIN:
        churn.wave()
        settle(churn.left())


@test
def one_scheduler_behind_a_faulty_network():
    with behind_faults(1, SEED) as proxy:
        churn_behind(proxy, SEED)


@test
def two_schedulers_behind_a_faulty_network():
    with behind_faults(2, SEED + 1) as proxy:
        churn_behind(proxy, SEED + 1)


@test
def two_schedulers_preempt_behind_a_faulty_network():
    with behind_faults(2, SEED + 3) as proxy:
        churn_behind(proxy, SEED + 3, fillers=True)


@test
def two_schedulers_with_locks_of_cards_behind_a_faulty_network():
    with behind_faults(2, SEED + 2, "--locks", "gpu") as proxy:
        churn_behind(proxy, SEED + 2)


if __name__ == "__main__":
    sys.exit(main(install_kinds))
