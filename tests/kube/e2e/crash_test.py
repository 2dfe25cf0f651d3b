#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A scheduler that dies after any of its writes, and another one that finds what it has left.

cluster: --nodes 4 --gpus 8 --history
"""
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.chaos import all_pods, check_cards, is_bound, settle, unsettled  # noqa: E402
from harness.check import check, equal, eventually, main, test  # noqa: E402
from harness.scheduler import (  # noqa: E402
    Scheduler,
    create,
    delete_pods,
    entries,
    gpus_of,
    install_kinds,
    make_pod,
    wait_bound,
)

CLAIMS = "/apis/gpu.scheduling/v1/namespaces/default/gpuclaims"
GANG = ["member-0", "member-1", "member-2"]
SHARES = ["share-0", "share-1"]
WANTED = ["urgent", "single", "plain", *SHARES, *GANG]
ON_FIRST = {"kubernetes.io/hostname": "gpu-0"}
# Fewer would mean that the scheduler does not do what is to be interrupted.
WRITES_MIN = 12
WRITES_MAX = 60
QUIET_S = 3


def prepare():
    """The custom resources, a claim for the gang, and priorities."""
    install_kinds()
    body = {
        "apiVersion": "gpu.scheduling/v1",
        "kind": "GpuClaim",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"devices": {"count": 4}, "gangRef": "train", "gangMinMembers": len(GANG)},
    }
    create(CLAIMS, body)
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    create(path, {"metadata": {"name": "high"}, "value": 1000, "globalDefault": False})


def start_over():
    """Nothing but a pod that stands in the way, with its lock."""
    delete_pods()
    eventually(lambda: not entries(), "all locks are gone")
    make_pod("low", gpus=8, nodeSelector=ON_FIRST)
    wait_bound("low", timeout_s=60)
    eventually(lambda: not unsettled(["low"]), "its lock is alone")


def make_scene():
    """One that must preempt, a single one, one without GPUs, two shares and a gang."""
    make_pod("urgent", gpus=8, priorityClassName="high", nodeSelector=ON_FIRST)
    make_pod("single", gpus=2)
    make_pod("plain")
    for name in SHARES:
        make_pod(name, limits={"elasticgpu.io/gpu-core": "25"})
    for name in GANG:
        make_pod(name, annotations={"gpu.scheduling/claim": "gang"})


def check_scene():
    """As it would have been without a crash."""
    pods = all_pods()
    check("low" not in pods, "the pod of low priority is still there")
    check_cards()
    for name in GANG:
        equal(len(gpus_of(pods[name])), 4, f"GPUs of {name}")


def wait_end(scheduler):
    """Whether it has died of its last write; not if all is done and it stays."""
    quiet = [None]

    def over():
        if scheduler.process.poll() is not None:
            return True
        if unsettled(WANTED):
            quiet[0] = None
        else:
            quiet[0] = quiet[0] or time.monotonic()
        return quiet[0] and time.monotonic() - quiet[0] > QUIET_S

    eventually(over, f"{scheduler.name} has ended or is done", 150)
    return scheduler.process.poll() is not None


def crash_after(writes):
    """Whether a scheduler that dies after so many writes got that far; what was bound then."""
    scheduler = Scheduler("--stop-after-writes", writes, name=f"crash-{writes}")
    died = wait_end(scheduler)
    if died:
        scheduler.wait_end()
    else:
        scheduler.stop()
    pods = all_pods()
    bound = [name for name in WANTED if is_bound(pods[name])]
    return died, bound, len(entries())


@test
def whatever_write_was_the_last_the_next_one_converges():
    longest, writes = 0.0, 0
    with Scheduler(name="before"):
        start_over()
    for writes in range(1, WRITES_MAX):
        make_scene()
        died, bound, locks = crash_after(writes)
        with Scheduler(name=f"after-{writes}"):
            took = settle(WANTED)
            print(f"# {writes}: {len(bound)} bound, {locks} locks; {took:.1f} s", flush=True)
            check_scene()
            longest = max(longest, took)
            if not died:
                break
            start_over()
    check(WRITES_MIN <= writes < WRITES_MAX - 1, f"{writes} writes")
    print(f"# {writes} writes; at most {longest:.1f} s until all was as it should be")


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
    sys.exit(main(prepare))
