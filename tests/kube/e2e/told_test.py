#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods are told why they wait by a server that refuses to write it, or takes its time; or that
does not accept their Binding.

cluster: --nodes 1 --gpus 8 --history
"""
import contextlib
import os
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, main, test  # noqa: E402
from harness.proxy import FaultProxy  # noqa: E402
from harness.scene import claimed, make_claim, wait_event  # noqa: E402
from harness.scheduler import (  # noqa: E402
    Scheduler,
    condition,
    create,
    delete_pod,
    delete_pods,
    entries,
    get_pod,
    install_kinds,
    make_pod,
    wait_bound,
    wait_message,
)

UPSTREAM = Path(os.environ["KUBE_DIR"]) / "scheduler.kubeconfig"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
SLOW_S = 120


@contextlib.contextmanager
def behind(script):
    """A scheduler behind a proxy with that script."""
    with FaultProxy(UPSTREAM, script) as proxy:
        with Scheduler(kubeconfig=proxy.kubeconfig) as scheduler:
            yield scheduler
            delete_pods()
            eventually(lambda: not entries(), "nothing is locked for the next one")


@test
def what_the_server_refused_is_told_later():
    """Nothing happens meanwhile that would have the pod decided on again."""
    with behind("on resource=pods/status nth=1 answer=409") as scheduler:
        make_pod("large", gpus=9)
        wait_message("large", "0/1 nodes are available")
        check("cannot be told why it waits" in scheduler.log(), "nothing was refused")


@test
def a_pod_is_told_one_thing_at_a_time():
    """What it waits for is another while a slow server is being told, and then it goes."""
    with behind("on resource=pods/status delay=14s"):
        make_claim("slow", {"count": 1}, gangRef="slow", gangMinMembers=4)
        claimed("slow-0", "slow")
        time.sleep(2)  # until it is on its way
        claimed("slow-1", "slow")
        wait_message("slow-0", "waits for 3 more", timeout_s=SLOW_S)
        delete_pod("slow-0")
        wait_message("slow-1", "waits for 3 more", timeout_s=SLOW_S)


@test
def a_binding_that_is_not_accepted_is_told_of():
    """An event alone: its condition would make another version of the pod, and the next Binding a
    decision anew."""
    with behind("on resource=pods/binding max=5 answer=500") as scheduler:
        make_pod("stuck", gpus=1)
        wait_event("stuck", "FailedScheduling", "cannot be bound to gpu-0 yet: ")
        pod = wait_bound("stuck")
        equal(condition(pod)["status"], "True", "by then")
        wait_event("stuck", "Scheduled", "to gpu-0")
        check("pod changed while it was decided on" not in scheduler.log(), "decided anew")


def disruption(name):
    """What the pod's condition of that type says, or None."""
    conditions = get_pod(name)["status"].get("conditions", [])
    return next((c["status"] for c in conditions if c["type"] == "DisruptionTarget"), None)


@test
def who_need_not_go_after_all_is_told():
    """Its preemptor is gone before the server has said that the victim knows."""
    create(CLASSES, {"metadata": {"name": "high"}, "value": 30})
    with behind("on resource=pods/status name=low nth=1 silence=30s"):
        make_pod("low", gpus=8)
        wait_bound("low")
        make_pod("urgent", gpus=8, priorityClassName="high")
        eventually(lambda: disruption("low") == "True", "low is marked")
        delete_pod("urgent")
        eventually(lambda: disruption("low") == "False", "low is not marked any more")
        equal(get_pod("low")["metadata"].get("deletionTimestamp"), None)


if __name__ == "__main__":
    sys.exit(main(install_kinds))
