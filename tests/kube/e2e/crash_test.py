#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A scheduler that dies after any of its writes, or is told to stop at any time.

cluster: --nodes 4 --gpus 8 --history
"""
import contextlib
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.chaos import all_pods, is_bound  # noqa: E402
from harness.check import check, equal, eventually, main, test  # noqa: E402
from harness.crash import Crashes  # noqa: E402
from harness.proxy import FaultProxy  # noqa: E402
from harness.scene import claim_status, claimed, events_of, make_claim  # noqa: E402
from harness.scheduler import (  # noqa: E402
    Scheduler,
    delete_pods,
    entries,
    get_pod,
    make_pod,
    wait_bound,
)

CRASHES = Crashes(8, 4)
UPSTREAM = Path(os.environ.get("KUBE_DIR", "/tmp")) / "scheduler.kubeconfig"


@test
def whatever_write_was_the_last_the_next_one_converges():
    CRASHES.run()


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


@contextlib.contextmanager
def stopped_while(condition):
    """A scheduler that is told to stop when a request is on its way of which that is true, to a
    server that takes its time for those."""
    delete_pods()
    with FaultProxy(UPSTREAM, f"on {condition} delay=1s") as proxy:
        with Scheduler(kubeconfig=proxy.kubeconfig) as scheduler:
            yield
            eventually(lambda: any("delay" in line.values() for line in proxy.log()), condition)
            scheduler.stop()


@test
def an_event_that_is_on_its_way_at_the_end_gets_there():
    with stopped_while("verb=create resource=events"):
        make_pod("single", gpus=1)
        wait_bound("single")
    check("Scheduled" in [reason for reason, _ in events_of("single")], events_of("single"))


@test
def what_a_claim_says_gets_there_too():
    make_claim("alone", {"count": 1})
    with stopped_while("resource=gpuclaims/status"):
        claimed("claimed", "alone")
        wait_bound("claimed")
    check(claim_status("alone"), "the claim says nothing")


@test
def whoever_is_being_asked_to_go_is():
    with stopped_while("verb=delete resource=pods"):
        for number in range(4):
            make_pod(f"low-{number}", gpus=8, annotations={"kubelet.test/stop-seconds": "600"})
            wait_bound(f"low-{number}")
        make_pod("urgent", gpus=8, priorityClassName="high")
    going = [get_pod(f"low-{n}")["metadata"].get("deletionTimestamp") for n in range(4)]
    equal(sum(when is not None for when in going), 1, "victims that go")


if __name__ == "__main__":
    sys.exit(main(CRASHES.prepare))
