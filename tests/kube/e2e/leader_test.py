#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Schedulers of which one leads: it dies, or sleeps past its lease, and another goes on.

cluster: --nodes 4 --gpus 8 --history
"""
import contextlib
import random
import signal
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.chaos import Churn, check_cards, settle  # noqa: E402
from harness.check import check, equal, eventually, main, test  # noqa: E402
from harness.crash import PROMISED_S, TRIES  # noqa: E402
from harness.scheduler import (  # noqa: E402
    Scheduler,
    delete_pods,
    entries,
    install_kinds,
    make_pod,
    wait_bound,
)

# A lease that has not been renewed for 15 s may be taken.
ASLEEP_S = 20


@contextlib.contextmanager
def leader_and_heir(*options):
    """Both are running, and the first leads."""
    delete_pods()
    with Scheduler(*options, leader_elect=True) as leader:
        eventually(lambda: "scheduling" in leader.log(), "the first one leads")
        with Scheduler(*options, leader_elect=True) as heir:
            yield leader, heir
            delete_pods()
            eventually(lambda: not entries(), "all locks are gone", 120)


def check_heir(churn, heir):
    """It has taken over, and all that was left is done."""
    took = settle(churn.left())
    check_cards()
    check("pod bound" in heir.log(), f"{heir.name} has bound nothing")
    print(f"# {churn.made} pods; settled after {took:.1f} s", flush=True)


def leader_dies_once(*options):
    """In the middle of its work; how much longer two waves take than by themselves, in seconds."""
    churn = Churn(random.Random(11))
    with leader_and_heir(*options) as (leader, heir):
        begun = time.monotonic()
        churn.wave()
        settle(churn.left())
        calm = time.monotonic() - begun
        check("pod bound" not in heir.log(), "both work")
        churn.wave()
        leader.kill()
        begun = time.monotonic()
        churn.wave()
        check_heir(churn, heir)
        return time.monotonic() - begun - 2 * calm


def leader_dies(*options):
    """All is as it should be in the time that is promised, that of its lease included."""
    late = []
    while len(late) < TRIES and (not late or late[-1] > PROMISED_S):
        late.append(leader_dies_once(*options))
    check(late[-1] <= PROMISED_S, f"{late} s each time, more than {PROMISED_S}")


def leader_sleeps(*options):
    """And has lost its lease when it wakes."""
    churn = Churn(random.Random(12))
    with leader_and_heir(*options) as (leader, heir):
        churn.wave()
        eventually(lambda: "pod bound" in leader.log(), "the leader works")
        churn.wave()
        leader.kill(signal.SIGSTOP)
        slept = time.monotonic()
        churn.wave()
        check_heir(churn, heir)
        time.sleep(max(0, slept + ASLEEP_S - time.monotonic()))
        churn.wave()
        leader.kill(signal.SIGCONT)
        equal(leader.wait_end(120), 1, "status of the one that slept")
        check("no longer leading" in leader.log(), leader.log()[-2000:])
        settle(churn.left())
        check_cards()


@test
def a_leader_dies_and_its_heir_goes_on():
    leader_dies()


@test
def a_leader_that_has_slept_past_its_lease_ends_itself():
    leader_sleeps()


@test
def a_leader_that_is_told_to_stop_hands_over_at_once():
    with leader_and_heir() as (leader, heir):
        leader.stop()
        make_pod("next", gpus=1)
        wait_bound("next", timeout_s=60)
        check("pod bound" in heir.log(), "who has bound it?")


@test
def a_leader_with_locks_of_cards_dies_and_its_heir_goes_on():
    leader_dies("--locks", "gpu")


@test
def a_leader_with_locks_of_cards_that_has_slept_ends_itself():
    leader_sleeps("--locks", "gpu")


if __name__ == "__main__":
    sys.exit(main(install_kinds))
