#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several schedulers at once for the same pods on the same nodes, while pods come and go; one
of them killed, one asleep for longer than its locks are respected.  RACE_SEED chooses which.

cluster: --nodes 4 --gpus 8 --history
"""
import contextlib
import os
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
from harness.scene import OWNERS, decision, delete_all, make_owner  # noqa: E402
from harness.scheduler import (  # noqa: E402
    Scheduler,
    delete_pod,
    delete_pods,
    entries,
    get_pod,
    install_kinds,
    make_pod,
    wait_bound,
)

SEED = int(os.environ.get("RACE_SEED") or 1)
# Locks of others that have not changed for 5 s are taken down.
ASLEEP_S = 9
WAVES = 8
MAP = "gpu-scheduling-map"
LINES = 16
ROUNDS = 3
SAID = (
    "pod bound",
    "lock lost",
    "pod is locked by another",
    "pod was taken from us",
    "pod preempted",
)


@contextlib.contextmanager
def rivals(count, *options):
    """So many schedulers; at the end their pods are deleted, and all locks must go."""
    delete_pods()
    with contextlib.ExitStack() as stack:
        schedulers = [Scheduler(*options) for _ in range(count)]
        for each in schedulers:
            stack.enter_context(each)
        yield schedulers
        delete_pods()
        eventually(lambda: not entries(), "all locks are gone", 120)


def count(schedulers, words):
    """How often each has said so."""
    return [each.log().count(words) for each in schedulers]


def finish(churn, schedulers):
    """All that is left is bound, and nothing twice."""
    took = settle(churn.left())
    check_cards()
    for words in SAID:
        print(f"# {words}: {count(schedulers, words)}")
    print(f"# {churn.made} pods; settled after {took:.1f} s", flush=True)


def race(schedulers, seed, fillers=False):
    """Pods come and go; everything that stays is bound."""
    churn = Churn(random.Random(seed), fillers)
    for _ in range(WAVES):
        churn.wave()
        time.sleep(0.5)
    finish(churn, schedulers)


def race_with_losses(schedulers, seed):
    """The same while one dies and one sleeps."""
    killed, asleep = schedulers[0], schedulers[1]
    churn = Churn(random.Random(seed))
    for number in range(WAVES):
        churn.wave()
        if number == 2:
            asleep.kill(signal.SIGSTOP)
            slept = time.monotonic()
        if number == 3:
            killed.kill()
        time.sleep(0.5)
    time.sleep(max(0, slept + ASLEEP_S - time.monotonic()))
    asleep.kill(signal.SIGCONT)
    churn.wave()
    finish(churn, schedulers)
    equal(asleep.process.poll(), None, "the one that slept has ended")


@test
def two_schedulers_share_the_nodes():
    with rivals(2) as schedulers:
        race(schedulers, SEED)


@test
def of_three_schedulers_one_dies_and_one_sleeps():
    with rivals(3) as schedulers:
        race_with_losses(schedulers, SEED + 1)


@test
def two_schedulers_preempt():
    with rivals(2) as schedulers:
        race(schedulers, SEED + 4, fillers=True)
        check(sum(count(schedulers, "pod preempted")), "nobody has preempted")


@test
def a_scheduler_with_other_locks_ends_with_a_sentence():
    with rivals(1):
        make_pod("holder", gpus=1)
        wait_bound("holder", timeout_s=60)
        other = Scheduler("--locks", "gpu")
        equal(other.wait_end(120), 1, "status")
        check("--locks=node" in other.log(), other.log()[-2000:])


@test
def two_schedulers_share_the_nodes_with_locks_of_cards():
    with rivals(2, "--locks", "gpu") as schedulers:
        race(schedulers, SEED + 2)


@test
def of_three_schedulers_with_locks_of_cards_one_dies_and_one_sleeps():
    with rivals(3, "--locks", "gpu") as schedulers:
        race_with_losses(schedulers, SEED + 3)


def make_lines():
    """What owns the pods of a Deployment with a map; each card is of two lines."""
    lines = "\n".join(f"{line}=gpu-{line % 4}:{line // 8}" for line in range(LINES)) + "\n"
    for path in OWNERS.values():
        delete_all(path)
    deployment = make_owner("Deployment", "serve", annotations={MAP: lines}, replicas=LINES)
    return make_owner("ReplicaSet", "serve-5d9c", owner=deployment, replicas=LINES)


def race_for_lines(*options):
    """Pods of one Deployment are divided between two schedulers, which both give them the lowest
    line of its map that is free."""
    delete_pods()
    owner = make_lines()
    with Scheduler(*options, "--scheduler-name", "red") as red:
        with Scheduler(*options, "--scheduler-name", "blue") as blue:
            names = [f"serve-5d9c-{number:05}" for number in range(LINES)]
            for number, name in enumerate(names):
                make_pod(name, owners=[owner], schedulerName=("red", "blue")[number % 2])
            indexes = [decision(wait_bound(name, timeout_s=60))["index"] for name in names]
            equal(sorted(indexes), list(range(LINES)), "indexes")
            print(f"# lock lost: {count([red, blue], 'lock lost')}", flush=True)
            delete_pods()
            eventually(lambda: not entries(), "all locks are gone", 120)


@test
def two_schedulers_give_no_line_of_a_map_twice():
    for _ in range(ROUNDS):
        race_for_lines()


@test
def two_schedulers_with_locks_of_cards_give_no_line_of_a_map_twice():
    for _ in range(ROUNDS):
        race_for_lines("--locks", "gpu")


@test
def two_schedulers_leave_no_line_of_a_map_behind_one_that_is_busy():
    names = [f"serve-5d9c-{number:05}" for number in range(LINES)]

    def bound():
        return [name for name in names if get_pod(name)["spec"].get("nodeName")]

    with rivals(2) as schedulers:
        make_pod("busy-0", annotations={MAP: "0=gpu-0:0"})
        wait_bound("busy-0", timeout_s=60)
        owner = make_lines()
        for name in names:
            make_pod(name, owners=[owner])
        eventually(lambda: len(bound()) == LINES - 2, "the lines of the other cards are given")
        delete_pod("busy-0")
        indexes = [decision(wait_bound(name, timeout_s=60))["index"] for name in names]
        equal(sorted(indexes), list(range(LINES)), "indexes")
        print(f"# lock lost: {count(schedulers, 'lock lost')}", flush=True)


if __name__ == "__main__":
    sys.exit(main(install_kinds))
