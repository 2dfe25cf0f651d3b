#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Room that is made for what is more important, and pods of other schedulers beside ours.

cluster: --nodes 3 --gpus 8 --history
"""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, test  # noqa: E402
from harness.scene import (  # noqa: E402
    ADMIN,
    EVENTS,
    MERGE,
    PODS,
    RUNNING,
    claimed,
    delete_all,
    events_of,
    make_claim,
    play,
    report,
    scene,
    the_scheduler,
    unbound,
    wait_event,
)
from harness.scheduler import (  # noqa: E402
    Scheduler,
    create,
    delete_pod,
    get_pod,
    gpus_of,
    make_pod,
    pod_object,
    wait_bound,
    wait_gone,
    wait_message,
)

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
HOST = "kubernetes.io/hostname"
NODES = ("gpu-0", "gpu-1", "gpu-2")


def prepare():
    """Priorities."""
    for name, value in (("low", 10), ("middle", 20), ("high", 30)):
        create(CLASSES, {"metadata": {"name": name}, "value": value})
    create(CLASSES, {"metadata": {"name": "calm"}, "value": 30, "preemptionPolicy": "Never"})
    create(CLASSES, {"metadata": {"name": "meek"}, "value": 40, "preemptionPolicy": "Never"})


def fill(priority="low", gpus=8, stop_s=None, **kwargs):
    """One such pod on each node: on-gpu-0, ..."""
    notes = {"kubelet.test/stop-seconds": str(stop_s)} if stop_s else {}
    for name in NODES:
        make_pod(
            f"on-{name}",
            gpus=gpus,
            priorityClassName=priority,
            nodeSelector={HOST: name},
            annotations=notes,
            labels={"app": f"on-{name}"},
            **kwargs,
        )
    for name in NODES:
        wait_bound(f"on-{name}")


def budget(app, allowed):
    """A PodDisruptionBudget, with the status that its controller would give it."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}}
    made = create(BUDGETS, {"metadata": {"name": app}, "spec": spec})
    status = {
        "disruptionsAllowed": allowed,
        "currentHealthy": 1,
        "desiredHealthy": 1 - allowed,
        "expectedPods": 1,
        "observedGeneration": made["metadata"]["generation"],
    }
    answer = ADMIN.request("PATCH", f"{BUDGETS}/{app}/status", {"status": status}, MERGE)
    equal(answer.code, 200, answer.text)


def left():
    """Which of the pods that filled the nodes are still there."""
    return [name for name in NODES if get_pod(f"on-{name}")]


@test
def the_least_important_goes_and_is_told():
    with scene():
        fill("middle")
        delete_pod("on-gpu-1")
        wait_gone("on-gpu-1")
        make_pod("cheap", gpus=8, priorityClassName="low")
        equal(wait_bound("cheap")["spec"]["nodeName"], "gpu-1")
        make_pod("urgent", gpus=4, priorityClassName="high")
        equal(wait_bound("urgent")["spec"]["nodeName"], "gpu-1")
        wait_gone("cheap")
        equal(left(), ["gpu-0", "gpu-2"])
        wait_event("cheap", "Preempted", "Preempted by pod default/urgent")
        found = ADMIN.get(EVENTS).json["items"]
        found = [e for e in found if e["reason"] == "Preempted"]
        (event,) = [e for e in found if e["regarding"]["name"] == "cheap"]
        equal((event["related"]["kind"], event["related"]["name"]), ("Pod", "urgent"))
        # Equals are left alone.
        make_pod("equal", gpus=8, priorityClassName="middle")
        message = wait_message("equal", "0/3 nodes are available")
        end = "preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
        check(message.endswith(f". {end}"), message)
        status, text = the_scheduler().get("/metrics")
        equal(status, 200)
        line = next(l for l in text.splitlines()
                    if l.startswith("gpu_scheduler_preemption_victims_total"))
        check(float(line.split()[1]) >= 1, line)


@test
def budgets_are_kept_where_they_can_be():
    with scene():
        fill()
        for name in ("gpu-0", "gpu-2"):
            budget(f"on-{name}", 0)
        budget("on-gpu-1", 1)
        make_pod("first", gpus=8, priorityClassName="high")
        equal(wait_bound("first")["spec"]["nodeName"], "gpu-1")
        equal(left(), ["gpu-0", "gpu-2"])
        # Where there is no other way, they are not.
        make_pod("second", gpus=8, priorityClassName="high")
        wait_bound("second")
        equal(len(left()), 1)
        delete_all(BUDGETS)


@test
def no_more_of_a_budget_go_than_it_allows():
    with scene():
        for name in ("one", "two"):
            make_pod(
                name,
                gpus=4,
                priorityClassName="low",
                nodeSelector={HOST: "gpu-0"},
                labels={"app": "web"},
            )
        for name in NODES[1:]:
            make_pod(f"on-{name}", gpus=8, priorityClassName="middle", nodeSelector={HOST: name})
        for name in ("one", "two", "on-gpu-1", "on-gpu-2"):
            wait_bound(name)
        budget("web", 1)
        make_pod("wide", gpus=8, priorityClassName="high")
        check(wait_bound("wide")["spec"]["nodeName"] != "gpu-0", "both of the budget went")
        make_pod("small", gpus=4, priorityClassName="high")
        equal(wait_bound("small")["spec"]["nodeName"], "gpu-0")
        delete_all(BUDGETS)


@test
def who_must_not_preempt_waits():
    with scene():
        fill()
        make_pod("meek", gpus=8, priorityClassName="meek")
        wait_message("meek", "preemption: not eligible due to preemptionPolicy=Never.")
        equal(left(), list(NODES))
        delete_pod("on-gpu-1")
        equal(wait_bound("meek")["spec"]["nodeName"], "gpu-1")


@test
def the_victims_grace_is_awaited_and_the_place_kept():
    with scene():
        fill(stop_s=6)
        make_pod("urgent", gpus=8, priorityClassName="high")
        nominated = eventually(
            lambda: get_pod("urgent")["status"].get("nominatedNodeName"), "it is nominated"
        )
        eventually(
            lambda: get_pod(f"on-{nominated}")["metadata"].get("deletionTimestamp"), "asked to go"
        )
        victim = get_pod(f"on-{nominated}")
        targets = [c for c in victim["status"]["conditions"] if c["type"] == "DisruptionTarget"]
        equal([c["reason"] for c in targets], ["PreemptionByScheduler"])
        unbound("urgent")
        # Who comes now, as important or less, does not get what is kept for the other.
        make_pod("late", gpus=8, priorityClassName="low")
        wait_message("late", "0/3 nodes are available")
        pod = wait_bound("urgent")
        equal(pod["spec"]["nodeName"], nominated)
        equal(get_pod(f"on-{nominated}"), None, "the victim, when its successor was bound")
        unbound("late")
        equal(len(left()), 2)


def one_is_low(others, stop_s):
    """One pod on each node, of which on-gpu-0 is the least important and takes time to end."""
    notes = {"kubelet.test/stop-seconds": str(stop_s)}
    make_pod(
        "on-gpu-0",
        gpus=8,
        priorityClassName="low",
        nodeSelector={HOST: "gpu-0"},
        annotations=notes,
    )
    for name in NODES[1:]:
        make_pod(f"on-{name}", gpus=8, priorityClassName=others, nodeSelector={HOST: name})
    for name in NODES:
        wait_bound(f"on-{name}")


def wait_nominated(name, node):
    """Until the pod is nominated for the node."""
    eventually(
        lambda: get_pod(name)["status"].get("nominatedNodeName") == node,
        f"{name} is nominated for {node}",
    )


@test
def who_is_more_important_inherits_the_room_that_is_being_made():
    with scene():
        one_is_low("high", stop_s=15)
        make_pod("lesser", gpus=8, priorityClassName="middle")
        wait_nominated("lesser", "gpu-0")
        make_pod("greater", gpus=8, priorityClassName="high")
        wait_nominated("greater", "gpu-0")
        wait_nominated("lesser", None)
        check(get_pod("on-gpu-0"), "on-gpu-0 was gone too early to tell")
        equal(wait_bound("greater", timeout_s=60)["spec"]["nodeName"], "gpu-0")
        unbound("lesser")
        equal([e for e in events_of("lesser") if e[0] == "Scheduled"], [])
        equal(left(), ["gpu-1", "gpu-2"])


@test
def a_gang_inherits_the_room_that_is_being_made():
    with scene():
        fill(stop_s=15)
        for number in range(3):
            make_pod(f"first-{number}", gpus=8, priorityClassName="middle")
        for number in range(3):
            eventually(
                lambda n=number: get_pod(f"first-{n}")["status"].get("nominatedNodeName"),
                f"first-{number} is nominated",
            )
        make_claim("whole", {"count": 8}, gangRef="whole", gangMinMembers=3)
        for number in range(3):
            claimed(f"second-{number}", "whole", priorityClassName="high")
        for number in range(3):
            wait_bound(f"second-{number}", timeout_s=60)
        for number in range(3):
            unbound(f"first-{number}")
            equal([e for e in events_of(f"first-{number}") if e[0] == "Scheduled"], [])


@test
def who_waits_for_victims_takes_other_room_before_the_less_important():
    with scene():
        one_is_low("high", stop_s=30)
        make_pod("urgent", gpus=8, priorityClassName="middle")
        wait_nominated("urgent", "gpu-0")
        make_pod("late", gpus=8, priorityClassName="low")
        wait_message("late", "0/3 nodes are available")
        delete_pod("on-gpu-1")
        equal(wait_bound("urgent")["spec"]["nodeName"], "gpu-1")
        check(get_pod("on-gpu-0"), "on-gpu-0 was gone too early to tell")
        equal(wait_bound("late", timeout_s=60)["spec"]["nodeName"], "gpu-0")


@test
def who_waits_for_victims_on_a_node_that_is_cordoned_looks_for_others():
    with scene():
        one_is_low("middle", stop_s=30)
        make_pod("urgent", gpus=8, priorityClassName="high")
        wait_nominated("urgent", "gpu-0")
        set_cordon("gpu-0", True)
        try:
            check(wait_bound("urgent")["spec"]["nodeName"] != "gpu-0", "it is bound on gpu-0")
            check(get_pod("on-gpu-0"), "on-gpu-0 was gone too early to tell")
        finally:
            set_cordon("gpu-0", False)


@test
def two_wait_for_the_same_victim():
    with scene():
        one_is_low("high", stop_s=15)
        for name in ("one", "two"):
            make_pod(name, gpus=4, priorityClassName="middle")
        for name in ("one", "two"):
            wait_nominated(name, "gpu-0")
        make_pod("late", gpus=4, priorityClassName="low")
        wait_message("late", "0/3 nodes are available")
        check(get_pod("on-gpu-0"), "on-gpu-0 was gone too early to tell")
        for name in ("one", "two"):
            equal(wait_bound(name, timeout_s=60)["spec"]["nodeName"], "gpu-0")
        unbound("late")
        equal(left(), ["gpu-1", "gpu-2"])


@test
def who_cannot_preempt_is_told_of_every_node():
    with scene():
        one_is_low("high", stop_s=0)
        on = {"nodeSelector": {HOST: "gpu-1"}, "priorityClassName": "middle"}
        make_pod("picky", gpus=8, **on)
        nodes = "preemption: 0/3 nodes are available"
        none = "1 No preemption victims found for incoming pod"
        helpless = "2 Preemption is not helpful for scheduling"
        message = wait_message("picky", "preemption: ")
        check(message.endswith(f". {nodes}: {none}, {helpless}."), message)
        make_claim("pair", {"count": 8}, gangRef="pair", gangMinMembers=2)
        for number in range(2):
            claimed(f"pair-{number}", "pair", **on)
        message = wait_message("pair-0", "preemption: ")
        check(message.endswith(f". {nodes}: {none}, {helpless}."), message)
        equal(message.count("preemption: "), 1, message)


def set_cordon(name, cordoned):
    """Nothing is to be placed on the node, or something may be again."""
    body = {"spec": {"unschedulable": cordoned or None}}
    answer = ADMIN.request("PATCH", f"/api/v1/nodes/{name}", body, MERGE)
    equal(answer.code, 200, answer.text)


def nominated_and_killed(victim_s):
    """A pod that waits for the end of on-gpu-0, and no scheduler."""
    one_is_low("middle", victim_s)
    make_pod("urgent", gpus=8, priorityClassName="high")
    wait_nominated("urgent", "gpu-0")
    eventually(
        lambda: not get_pod("on-gpu-0") or get_pod("on-gpu-0")["metadata"].get("deletionTimestamp"),
        "on-gpu-0 is asked to go",
    )
    the_scheduler().kill()


def start_again():
    """Another scheduler instead of the one that was killed."""
    RUNNING[0] = Scheduler().wait_ready()


@test
def a_scheduler_that_begins_waits_for_those_who_were_asked_to_go():
    with scene():
        nominated_and_killed(20)
        # The cheapest of all that could be asked to go, if anybody had to be.
        delete_pod("on-gpu-1")
        wait_gone("on-gpu-1")
        foreign("cheap", "gpu-1", gpus=8)
        make_pod("late", gpus=8)
        start_again()
        wait_message("urgent", "waiting for 1 victim to leave, for a place on gpu-0")
        check(get_pod("on-gpu-0"), "on-gpu-0 was gone too early to tell")
        pod = wait_bound("urgent", timeout_s=60)
        equal(pod["spec"]["nodeName"], "gpu-0")
        check(not get_pod("cheap")["metadata"].get("deletionTimestamp"), "cheap was asked to go")
        unbound("late")


@test
def room_that_was_made_before_a_scheduler_began_is_for_whom_it_was_made():
    with scene():
        nominated_and_killed(2)
        wait_gone("on-gpu-0")
        for number in range(4):
            make_pod(f"equal-{number}", gpus=8, priorityClassName="calm")
        start_again()
        equal(wait_bound("urgent")["spec"]["nodeName"], "gpu-0")
        equal(left(), ["gpu-1", "gpu-2"])
        for number in range(4):
            wait_message(f"equal-{number}", "0/3 nodes are available")


@test
def a_nomination_for_a_node_that_is_gone_is_taken_back():
    with scene():
        fill("high")
        the_scheduler().kill()
        make_pod("lost", gpus=8, priorityClassName="high")
        status = {"status": {"nominatedNodeName": "gone"}}
        path = f"{PODS.format('default')}/lost/status"
        equal(ADMIN.request("PATCH", path, status, MERGE).code, 200)
        start_again()
        wait_message("lost", "0/3 nodes are available")
        equal(get_pod("lost")["status"].get("nominatedNodeName"), None)
        delete_pod("on-gpu-1")
        equal(wait_bound("lost")["spec"]["nodeName"], "gpu-1")


@test
def room_that_nobody_needs_any_more_is_for_others():
    with scene():
        fill(stop_s=4)
        make_pod("urgent", gpus=8, priorityClassName="high")
        nominated = eventually(
            lambda: get_pod("urgent")["status"].get("nominatedNodeName"), "it is nominated"
        )
        make_pod("late", gpus=8, priorityClassName="low")
        wait_message("late", "0/3 nodes are available")
        delete_pod("urgent")
        equal(wait_bound("late")["spec"]["nodeName"], nominated)
        equal(len(left()), 2)


@test
def gangs_come_and_go_as_a_whole():
    with scene():
        make_claim("old", {"count": 8}, gangRef="old", gangMinMembers=2)
        make_claim("new", {"count": 8}, gangRef="new", gangMinMembers=2)
        for number in range(2):
            claimed(f"old-{number}", "old", priorityClassName="low")
        for number in range(2):
            wait_bound(f"old-{number}")
        make_pod("single", gpus=8, priorityClassName="middle")
        wait_bound("single")
        for number in range(2):
            claimed(f"new-{number}", "new", priorityClassName="high")
        for number in range(2):
            wait_bound(f"new-{number}")
        for number in range(2):
            wait_gone(f"old-{number}")
        check(get_pod("single"), "one of a higher priority went for a gang of a lower")
        wait_event("old-0", "Preempted")
        wait_event("old-1", "Preempted")


def foreign(name, node, gpus=0, **kwargs):
    """A pod of another scheduler, bound."""
    pod = pod_object(name, gpus=gpus, schedulerName="somebody-else", nodeName=node, **kwargs)
    return create(PODS.format("default"), pod)


@test
def pods_of_other_schedulers_count():
    on = {"nodeSelector": {HOST: "gpu-0"}}
    with scene():
        foreign("cards", "gpu-0", gpus=3)
        foreign("cores", "gpu-0", limits={"cpu": "100", "memory": "900Gi"})
        make_pod("five", gpus=5, **on)
        make_pod("cpu", limits={"cpu": "40"}, **on)
        make_pod("memory", limits={"memory": "200Gi"}, **on)
        wait_bound("five")
        wait_message("cpu", "1 Insufficient cpu")
        wait_message("memory", "1 Insufficient memory")
        make_pod("six", gpus=1, **on)
        wait_message("six", "1 Insufficient free GPUs")
        delete_pod("cards")
        wait_bound("six")
        delete_pod("cores")
        wait_bound("cpu")
        wait_bound("memory")


@test
def what_the_agent_sees_in_use_is_in_use():
    on = {"nodeSelector": {HOST: "gpu-2"}}
    with scene():
        pod = foreign("cards", "gpu-2", gpus=3)
        used = [{"uid": pod["metadata"]["uid"], "namespace": "default", "name": "cards"}]
        report("gpu-2", each={n: {"inUseBy": used} for n in (1, 4, 6)})
        make_pod("rest", gpus=5, **on)
        equal(gpus_of(wait_bound("rest")), [0, 2, 3, 5, 7])
        make_pod("more", gpus=1, **on)
        wait_message("more", "1 Insufficient free GPUs")
        delete_pod("cards")
        pod = wait_bound("more")
        check(gpus_of(pod)[0] in (1, 4, 6), f"{gpus_of(pod)}")


if __name__ == "__main__":
    sys.exit(play(prepare=prepare))
