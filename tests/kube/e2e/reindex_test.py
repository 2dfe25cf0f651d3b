#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cards that have other indexes since their node was started again, with a lock for each card.

cluster: --nodes 2 --gpus 4 --history
"""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, test  # noqa: E402
from harness.scene import play, report, scene, the_scheduler, unbound  # noqa: E402
from harness.scheduler import (  # noqa: E402
    delete_pod,
    get_pod,
    make_pod,
    wait_bound,
    wait_message,
)

HOST = "kubernetes.io/hostname"
CLOSED = "locks that are full, cannot be read or are of GPUs whose index changed"


def swap(node):
    """Its first two cards have changed places."""
    each = {0: {"uuid": f"GPU-{node}-1"}, 1: {"uuid": f"GPU-{node}-0"}}
    report(node, gpus=4, each=each)


@test
def where_nothing_can_be_locked_nobody_goes_until_it_can():
    with scene():
        for node in ("gpu-0", "gpu-1"):
            report(node, gpus=4)
        make_pod("first", gpus=1)
        home = wait_bound("first")["spec"]["nodeName"]
        other = "gpu-1" if home == "gpu-0" else "gpu-0"
        swap(home)
        make_pod("pinned", gpus=1, nodeSelector={HOST: home})
        wait_message("pinned", f"1 node(s) had {CLOSED}")
        # Each would fit beside the first, which is where they would rather go.
        for number in range(4):
            make_pod(f"next-{number}", gpus=1)
        for number in range(4):
            equal(wait_bound(f"next-{number}")["spec"]["nodeName"], other)
        make_pod("plain", nodeSelector={HOST: home})
        wait_bound("plain")
        unbound("pinned")
        make_pod("late", gpus=1)
        message = wait_message("late", f"1 node(s) had {CLOSED}")
        check("1 Insufficient free GPUs" in message, message)
        lost = the_scheduler().log().count("no GPU of a node can be locked")
        equal(lost, 1, "times that the node was tried")
        delete_pod("first")
        equal(wait_bound("pinned")["spec"]["nodeName"], home)
        equal(wait_bound("late")["spec"]["nodeName"], home)
        check(get_pod("first") is None, "the first was there until the end")


if __name__ == "__main__":
    sys.exit(play("--locks=gpu"))
