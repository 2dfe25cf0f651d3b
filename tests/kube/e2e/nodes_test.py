#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nodes that come, go, come back and have their GPUs counted anew.

cluster: --nodes 1 --gpus 2 --history
"""
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, test  # noqa: E402
from harness.scene import (  # noqa: E402
    ADDED,
    ADMIN,
    CLAIMS,
    NODES,
    add_node,
    claimed,
    decision,
    extra_node,
    make_claim,
    play,
    report,
    scene,
    the_scheduler,
    unbound,
    wait_claim,
)
from harness.scheduler import (  # noqa: E402
    delete_pod,
    entries,
    entries_of,
    get_pod,
    gpus_of,
    make_pod,
    wait_bound,
    wait_gone,
    wait_message,
)

BY_CARD = "--locks=gpu" in os.environ.get("SCENE_OPTIONS", "")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler-locks/leases"
NODE = "gpu.scheduling/node"
ON = {"nodeSelector": {"kubernetes.io/hostname": "more"}}


def uuids(pod):
    """Of its GPUs."""
    return sorted(hold["uuid"] for hold in decision(pod)["gpus"])


@test
def a_node_goes_and_comes_back():
    with scene():
        add_node("more", gpus=4)
        make_pod("old", gpus=3, **ON)
        wait_bound("old")
        # The Node goes, its pod is still there: it may run yet.
        equal(ADMIN.delete(f"{NODES}/more").code, 200)
        make_pod("new", gpus=2, **ON)
        wait_message("new", "0/1 nodes are available")
        held = [hold for entry in entries_of(get_pod("old")) for hold in entry["gpus"]]
        equal(len(held), 3, "locks of a pod without a node")
        ADDED.remove("more")
        add_node("more", gpus=4)
        wait_message("new", "0/2 nodes are available", "1 Insufficient free GPUs")
        delete_pod("old")
        wait_bound("new")


@test
def a_pod_that_goes_with_its_node_leaves_no_lock():
    with scene():
        add_node("more", gpus=4)
        make_pod("old", gpus=3, **ON)
        wait_bound("old")
        equal(ADMIN.delete(f"{NODES}/more").code, 200)
        ADDED.remove("more")
        delete_pod("old")
        wait_gone("old")
        eventually(lambda: not entries(), "its lock is gone")


def leases_of(node):
    """The uids of those in which the node's GPUs are locked."""
    items = ADMIN.get(LEASES).json["items"]
    metas = [item["metadata"] for item in items]
    return {m["uid"] for m in metas if m.get("annotations", {}).get(NODE) == node}


@test
def a_lease_goes_after_its_node_unless_it_holds_something():
    with scene():
        for name in ("more", "used"):
            add_node(name, gpus=4)
            make_pod(f"on-{name}", gpus=3, nodeSelector={"kubernetes.io/hostname": name})
            wait_bound(f"on-{name}")
            equal(ADMIN.delete(f"{NODES}/{name}").code, 200)
            ADDED.remove(name)
        former, used = leases_of("more"), leases_of("used")
        equal(len(former), 4 if BY_CARD else 1, "Leases of a node with a pod")
        delete_pod("on-more")
        eventually(lambda: not leases_of("more"), "its Leases are gone", 180)
        check(leases_of("used") & used, "the Lease of a live pod is gone")
        held = [hold for entry in entries_of(get_pod("on-used")) for hold in entry["gpus"]]
        equal(len(held), 3, "locks of a live pod without a node")
        # What comes back under that name is locked anew.
        add_node("more", gpus=4)
        make_pod("new", gpus=2, **ON)
        wait_bound("new")
        equal(leases_of("more") & former, set(), "Leases that were there before")


@test
def a_gpu_is_its_uuid_whatever_its_number():
    with scene(), extra_node("more", gpus=2):
        report("more", gpus=2)
        make_pod("first-0", annotations={"gpu-scheduling-map": "0=more:0"})
        equal(uuids(wait_bound("first-0")), ["GPU-more-0"])
        # After a boot they are numbered the other way round.
        report("more", gpus=2, each={0: {"uuid": "GPU-more-1"}, 1: {"uuid": "GPU-more-0"}})
        make_pod("same-0", annotations={"gpu-scheduling-map": "0=more:1"})
        wait_message("same-0", "requested GPU ids were in use")
        make_pod("second", gpus=1, **ON)
        if BY_CARD:
            # The Lease of an index is about its former card as long as that is held.
            wait_message("second", "of GPUs whose index changed")
            delete_pod("first-0")
        pod = wait_bound("second")
        equal((uuids(pod), gpus_of(pod)), (["GPU-more-1"], [0]))
        if not BY_CARD:
            unbound("same-0")
            delete_pod("first-0")
        pod = wait_bound("same-0")
        equal((uuids(pod), gpus_of(pod)), (["GPU-more-0"], [1]))


@test
def gpus_are_added_to_a_node():
    with scene(), extra_node("more", gpus=2):
        report("more", gpus=1)
        make_pod("pinned-0", annotations={"gpu-scheduling-map": "0=more:2"})
        make_pod("three", gpus=3, **ON)
        wait_message("pinned-0", "node more has no GPU 2, it has 1 GPUs")
        wait_message("three", "1 node(s) had too few GPUs")
        report("more", gpus=4)
        equal(gpus_of(wait_bound("pinned-0")), [2])
        equal(gpus_of(wait_bound("three")), [0, 1, 3])


@test
def a_card_that_is_gone_is_not_given_out():
    with scene(), extra_node("more", gpus=3):
        report("more", gpus=3)
        make_pod("first-0", annotations={"gpu-scheduling-map": "0=more:2"})
        wait_bound("first-0")
        report("more", gpus=2)
        make_pod("two", gpus=2, **ON)
        equal(gpus_of(wait_bound("two")), [0, 1])
        make_pod("more", gpus=1, **ON)
        wait_message("more", "0/2 nodes are available")
        delete_pod("first-0")
        wait_gone("first-0")
        unbound("more")
        delete_pod("two")
        wait_bound("more")


@test
def a_report_that_cannot_be_changes_nothing():
    with scene(), extra_node("more", gpus=2):
        report("more", gpus=2)
        make_pod("one", gpus=1, **ON)
        wait_bound("one")
        # Two cards of one UUID.
        report("more", gpus=2, each={1: {"uuid": "GPU-more-0"}})
        eventually(lambda: "a node cannot be read" in the_scheduler().log(), "it says so")
        make_pod("two", gpus=1, **ON)
        wait_bound("two")
        report("more", gpus=2)


@test
def a_claim_that_is_deleted_is_missed():
    with scene():
        make_claim("gone", {"count": 2})
        claimed("has", "gone")
        wait_bound("has")
        wait_claim("gone", "Bound")
        claimed("waits", "gone")
        wait_message("waits", "0/1 nodes are available")
        equal(ADMIN.delete(f"{CLAIMS}/gone").code, 200)
        delete_pod("has")
        wait_message("waits", "GpuClaim gone does not exist")
        make_claim("gone", {"count": 2})
        wait_bound("waits")
        wait_claim("gone", "Bound")


if __name__ == "__main__":
    sys.exit(play())
