#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What users write in our name, where neither the webhook nor the policy keeps them from it.

History is not checked: it would find just that.

cluster: --nodes 1 --gpus 8
"""
import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import equal, eventually, main, test  # noqa: E402
from harness.client import as_identity  # noqa: E402
from harness.scene import add_node, remove_node  # noqa: E402
from harness.scheduler import (  # noqa: E402
    ENTRIES,
    LOCKS,
    MERGE,
    PODS,
    delete_pod,
    entries,
    entries_of,
    get_pod,
    gpus_of,
    install_kinds,
    make_pod,
    scheduling,
    wait_bound,
    wait_gone,
    wait_message,
)

FORGED = {
    "gpu.scheduling/allocated": "gpu-0:0,1",
    "gpu.scheduling/visible-devices": "0,1",
    "elasticgpu.io/container-main": "0,1",
    "elasticgpu.io/container-other": "2",
    "elasticgpu.io/assumed": "true",
}


@test
def a_pod_without_gpus_says_that_it_has_none():
    with scheduling():
        make_pod("liar", annotations=FORGED)
        pod = wait_bound("liar")
        found = {key: pod["metadata"]["annotations"].get(key) for key in FORGED}
        equal(found, dict.fromkeys(FORGED, ""), "annotations")
        equal(entries_of(pod), [], "locks")
        make_pod("full", gpus=8)
        wait_bound("full")


@test
def a_pod_with_gpus_says_which_ones():
    with scheduling():
        make_pod("other", gpus=2)
        wait_bound("other")
        make_pod("honest", gpus=1, annotations=FORGED)
        pod = wait_bound("honest")
        (card,) = gpus_of(pod)
        equal(pod["metadata"]["annotations"]["elasticgpu.io/container-main"], str(card))
        equal(pod["metadata"]["annotations"]["elasticgpu.io/container-other"], "")


@test
def more_of_them_than_can_be_emptied_are_refused():
    many = {f"elasticgpu.io/container-{number}": "0" for number in range(80)}
    with scheduling():
        make_pod("full", gpus=8, annotations=many)
        wait_message("full", "too many annotations that only the scheduler writes")
        equal(entries_of(get_pod("full")), [], "locks")
        make_pod("small", gpus=8)
        wait_bound("small")
        delete_pod("small")
        wait_gone("small")
        body = {"metadata": {"annotations": dict.fromkeys(many, None)}}
        answer = as_identity("admin").request("PATCH", f"{PODS.format('default')}/full", body, MERGE)
        equal(answer.code, 200, str(answer.text))
        wait_bound("full")
        delete_pod("full")
        wait_gone("full")


@test
def a_copy_of_a_decision_books_nothing():
    """As in a manifest that was made from a pod that runs."""
    with scheduling() as scheduler:
        make_pod("first", gpus=8)
        first = wait_bound("first")
        copied = dict(first["metadata"]["annotations"])
        make_pod("copy", annotations=copied, nodeName="gpu-0")
        eventually(lambda: "was made for another pod" in scheduler.log(), "it says so")
        delete_pod("first")
        wait_gone("first")
        make_pod("next", gpus=8)
        equal(entries_of(wait_bound("next")) != [], True, "it is locked")
        equal(entries_of(wait_bound("copy")), [], "locks of the copy")
        make_pod("late", gpus=1)
        wait_message("late", "1 Insufficient free GPUs (asked for 1, none free)")


def write_lock(path, text):
    """The entries of a Lease, whatever they are."""
    body = {"metadata": {"annotations": {ENTRIES: text}}}
    answer = as_identity("admin").request("PATCH", path, body, MERGE)
    equal(answer.code, 200, str(answer.text))


@test
def a_lock_that_cannot_be_read_closes_its_node_also_when_that_comes_back():
    on = {"nodeSelector": {"kubernetes.io/hostname": "more"}}
    with scheduling() as scheduler:
        add_node("more", gpus=2)
        make_pod("first", gpus=1, **on)
        pod = wait_bound("first")
        ((name, before),) = [
            (name, entry) for name, entry in entries() if entry["pod"] == pod["metadata"]["uid"]
        ]
        write_lock(f"{LOCKS}/{name}", "who can read this")
        make_pod("second", gpus=1, **on)
        wait_message("second", "1 node(s) had locks that are full, cannot be read")
        equal(as_identity("admin").delete("/api/v1/nodes/more").code, 200)
        wait_message("second", "0/1 nodes are available")
        add_node("more", gpus=2)
        wait_message("second", "1 node(s) had locks that are full, cannot be read")
        # It is not tried again and again.
        equal(scheduler.log().count("no GPU of a node can be locked"), 1, "told")
        write_lock(f"{LOCKS}/{name}", json.dumps([before]))
        wait_bound("second")
        remove_node("more")


if __name__ == "__main__":
    sys.exit(main(install_kinds))
