#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What users write in our name, where neither the webhook nor the policy keeps them from it.

History is not checked: it would find just that.

cluster: --nodes 1 --gpus 8
"""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import equal, eventually, main, test  # noqa: E402
from harness.scheduler import (  # noqa: E402
    delete_pod,
    entries_of,
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


if __name__ == "__main__":
    sys.exit(main(install_kinds))
