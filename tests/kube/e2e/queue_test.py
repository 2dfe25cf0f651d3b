#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The queue: who goes first, what wakes who waits; and the rules that every scheduler keeps.

cluster: --nodes 2 --gpus 8 --history
"""
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, test  # noqa: E402
from harness.scene import (  # noqa: E402
    ADMIN,
    MERGE,
    NODES,
    PODS,
    add_node,
    claimed,
    extra_node,
    label_node,
    make_claim,
    patch_node,
    play,
    remove_node,
    report,
    scene,
    the_scheduler,
    unbound,
    wait_event,
)
from harness.scheduler import (  # noqa: E402
    condition,
    create,
    delete_pod,
    get_pod,
    gpus_of,
    make_pod,
    wait_bound,
    wait_gone,
    wait_message,
)

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
HOST = "kubernetes.io/hostname"


def prepare():
    """Priorities that preempt nobody."""
    for name, value in (("low", 10), ("middle", 20), ("high", 30)):
        create(CLASSES, {"metadata": {"name": name}, "value": value, "preemptionPolicy": "Never"})


def fill(*names):
    """These nodes are full; the names of the pods."""
    names = names or ("gpu-0", "gpu-1")
    for name in names:
        make_pod(f"full-{name}", gpus=8, nodeSelector={HOST: name})
    for name in names:
        wait_bound(f"full-{name}")


def node_of(name):
    """Where it is bound."""
    return wait_bound(name)["spec"]["nodeName"]


@test
def priority_then_arrival():
    with scene():
        fill()
        order = [("a", "low"), ("b", "high"), ("c", "middle"), ("d", "high")]
        for name, priority in order:
            make_pod(name, gpus=8, priorityClassName=priority)
            wait_message(name, "2 Insufficient free GPUs")
        for holder, next_one in (("full-gpu-0", "b"), ("full-gpu-1", "d"), ("b", "c"), ("d", "a")):
            delete_pod(holder)
            wait_bound(next_one)
        equal(get_pod("full-gpu-0"), None, "preempted or not, it was deleted")


@test
def what_helps_wakes():
    """Each of these waits for just one thing, and that comes alone."""
    taint = {"key": "example.com/drain", "value": "x", "effect": "NoSchedule"}
    with scene():
        # A node that comes.
        make_pod("new", gpus=1, nodeSelector={HOST: "late"})
        wait_message("new", "2 node(s) didn't match Pod's node affinity/selector")
        add_node("late", gpus=2)
        equal(node_of("new"), "late")
        # A label.
        make_pod("label", gpus=1, nodeSelector={"disk": "fast"})
        wait_message("label", "3 node(s) didn't match Pod's node affinity/selector")
        label_node("late", disk="fast")
        equal(node_of("label"), "late")
        # Uncordoned.
        delete_pod("label")
        delete_pod("new")
        patch_node("late", {"spec": {"unschedulable": True}})
        make_pod("cordon", gpus=1, nodeSelector={"disk": "fast"})
        wait_message("cordon", "1 node(s) were unschedulable")
        patch_node("late", {"spec": {"unschedulable": None}})
        equal(node_of("cordon"), "late")
        delete_pod("cordon")
        # A taint that goes.
        patch_node("late", {"spec": {"taints": [taint]}})
        make_pod("taint", gpus=1, nodeSelector={"disk": "fast"})
        wait_message("taint", "1 node(s) had untolerated taint(s)")
        make_pod("tolerates", gpus=1, nodeSelector={"disk": "fast"}, tolerations=[
            {"key": "example.com/drain", "operator": "Exists"}])
        equal(node_of("tolerates"), "late")
        patch_node("late", {"spec": {"taints": None}})
        equal(node_of("taint"), "late")
        delete_pod("taint")
        delete_pod("tolerates")
        # A node that grows.
        make_pod("grow", limits={"cpu": "40"}, nodeSelector={"disk": "fast"})
        wait_message("grow", "1 Insufficient cpu")
        body = {"status": {"allocatable": {"cpu": "48"}, "capacity": {"cpu": "48"}}}
        equal(ADMIN.request("PATCH", f"{NODES}/late/status", body, MERGE).code, 200)
        equal(node_of("grow"), "late")
        # The pod itself: its selector cannot change, but its annotations can.
        make_pod("self", annotations={"gpu.scheduling/claim": "nobody"})
        wait_message("self", "GpuClaim nobody does not exist")
        body = {"metadata": {"annotations": {"gpu.scheduling/claim": None}}}
        equal(ADMIN.request("PATCH", f"{PODS.format('default')}/self", body, MERGE).code, 200)
        wait_bound("self")
        remove_node("late")


@test
def unhealthy_gpus_are_left_out_one_by_one():
    with scene(), extra_node("sick", gpus=4):
        sick = {1: {"health": "Unhealthy", "healthMessage": "XID 79"}, 2: {"health": "Unhealthy"}}
        report("sick", gpus=4, each=sick)
        on_sick = {"nodeSelector": {HOST: "sick"}}
        make_pod("two", gpus=2, **on_sick)
        equal(gpus_of(wait_bound("two")), [0, 3])
        make_pod("one", gpus=1, **on_sick)
        wait_message("one", "1 node(s) had unhealthy GPUs")
        report("sick", gpus=4, each={1: sick[1]})
        equal(gpus_of(wait_bound("one")), [2])


@test
def deleted_pods_are_dropped_and_gated_ones_not_looked_at():
    with scene():
        fill()
        make_pod("waits", gpus=8)
        make_pod("next", gpus=8)
        wait_message("waits", "2 Insufficient free GPUs")
        wait_message("next", "2 Insufficient free GPUs")
        gate = [{"name": "example.com/hold"}]
        make_pod("gated", gpus=8, schedulingGates=gate)
        delete_pod("waits")
        wait_gone("waits")
        delete_pod("full-gpu-0")
        wait_bound("next")
        equal(condition(get_pod("gated"))["reason"], "SchedulingGated", "who tells of the gate")
        delete_pod("full-gpu-1")
        wait_gone("full-gpu-1")
        make_pod("after", gpus=8)
        wait_bound("after")
        unbound("gated")
        delete_pod("next")
        wait_gone("next")
        patch = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
        path = f"{PODS.format('default')}/gated"
        kind = "application/json-patch+json"
        equal(ADMIN.request("PATCH", path, patch, kind).code, 200)
        wait_bound("gated")


@test
def backoff_is_not_in_the_way():
    """One that was refused often is bound at once when there is room for it."""
    with scene(), extra_node("small", gpus=1):
        on_small = {"nodeSelector": {HOST: "small"}}
        make_pod("holder", gpus=1, **on_small)
        wait_bound("holder")
        make_pod("often", gpus=1, **on_small)
        for number in range(6):
            wait_message("often", "1 Insufficient free GPUs")
            # Wakes it for nothing, each time.
            label_node("small", round=str(number))
        delete_pod("holder")
        wait_bound("often", timeout_s=10)


@test
def what_is_told_is_told_once():
    with scene():
        fill()
        make_pod("waits", gpus=8)
        message = wait_message("waits", "0/2 nodes are available: 2 Insufficient free GPUs")
        equal(condition(get_pod("waits"))["status"], "False")
        equal(condition(get_pod("waits"))["reason"], "Unschedulable")
        wait_event("waits", "FailedScheduling", "0/2 nodes are available")
        version = get_pod("waits")["metadata"]["resourceVersion"]
        # What changes nothing for it is no reason to write.
        label_node("gpu-0", nothing="new")
        make_pod("other")
        wait_bound("other")
        eventually(lambda: "other" in the_scheduler().log(), "its log")
        equal(condition(get_pod("waits"))["message"], message)
        equal(get_pod("waits")["metadata"]["resourceVersion"], version, "writes")


def refusals():
    """Decisions so far that ended with no."""
    text = the_scheduler().get("/metrics")[1]
    lines = [line for line in text.splitlines() if 'result="unschedulable"' in line]
    return sum(float(line.split()[-1]) for line in lines if "_total" in line)


def look_again(name, number):
    """The pod is decided on once more, because it is another one."""
    before = refusals()
    body = {"metadata": {"annotations": {"round": str(number)}, "labels": {"round": str(number)}}}
    answer = ADMIN.request("PATCH", f"{PODS.format('default')}/{name}", body, MERGE)
    equal(answer.code, 200, str(answer.text))
    eventually(lambda: refusals() > before, "it was decided on again")


@test
def figures_alone_are_told_now_and_then():
    """Who waits is not written to with every pod that comes or goes elsewhere."""
    with scene():
        make_pod("full", gpus=8, nodeSelector={HOST: "gpu-1"})
        make_pod("first", gpus=1, nodeSelector={HOST: "gpu-0"})
        wait_bound("full")
        wait_bound("first")
        began = time.monotonic()
        make_pod("figures", gpus=8)
        wait_message("figures", "2 Insufficient free GPUs (asked for 8, at most 7 free on one node)")
        for number in range(5):
            make_pod(f"more-{number}", gpus=1, nodeSelector={HOST: "gpu-0"})
            wait_bound(f"more-{number}")
            look_again("figures", number)
        told = the_scheduler().log().count('msg="pod waits" pod=default/figures ')
        allowed = 1 + (time.monotonic() - began) // 5
        check(told <= allowed, f"told {told} times, {allowed} were allowed")
        # Another reason is told at once, and the last figures are not forgotten.
        wait_message("figures", "(asked for 8, at most 2 free on one node)", timeout_s=60)
        patch_node("gpu-0", {"spec": {"unschedulable": True}})
        wait_message("figures", "1 node(s) were unschedulable", "(asked for 8, none free)")
        patch_node("gpu-0", {"spec": {"unschedulable": None}})


@test
def figures_of_a_gang_are_told_now_and_then():
    """What its members are to be told later is not told at once because it is tried again."""

    def told():
        return the_scheduler().log().count('msg="pod waits" pod=default/team-0 ')

    with scene():
        busy = [f"busy-{number}" for number in range(10)]
        for name in busy:
            make_pod(name, gpus=1)
        for name in busy:
            wait_bound(name)
        make_claim("team", {"count": 1}, gangRef="team", gangMinMembers=17)
        for number in range(17):
            claimed(f"team-{number}", "team")
        wait_message("team-0", "gang of 17", "only room for 6 members;")
        began, before = time.monotonic(), told()
        for name in busy[1:]:
            seen = refusals()
            delete_pod(name)
            eventually(lambda seen=seen: refusals() > seen, "the gang is tried again")
        more, allowed = told() - before, (time.monotonic() - began) // 5
        check(more <= allowed, f"told {more} times, {allowed} were allowed")
        # The last figures are not forgotten.
        wait_message("team-0", "only room for 15 members;", timeout_s=60)


def container(**more):
    """One container."""
    return [{"name": "main", "image": "example/train", **more}]


@test
def rules_of_every_scheduler_hold():
    with scene():
        # Node affinity.
        term = {"key": HOST, "operator": "In", "values": ["gpu-1"]}
        required = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        make_pod("near", gpus=1, affinity=affinity, labels={"app": "near"})
        equal(node_of("near"), "gpu-1")
        # Ports of the host.
        ports = [{"containerPort": 80, "hostPort": 8123}]
        for name in ("port-a", "port-b", "port-c"):
            make_pod(name, containers=container(ports=ports))
            if name != "port-c":
                wait_bound(name)
        wait_message("port-c", "2 node(s) didn't have free ports for the requested pod ports")
        delete_pod("port-a")
        wait_bound("port-c")
        # Affinity and anti-affinity to pods.
        to_near = {"labelSelector": {"matchLabels": {"app": "near"}}, "topologyKey": HOST}
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": [to_near]}
        make_pod("with", gpus=1, affinity={"podAffinity": rule})
        make_pod("apart", gpus=1, affinity={"podAntiAffinity": rule})
        equal(node_of("with"), "gpu-1")
        equal(node_of("apart"), "gpu-0")
        to_nobody = {"labelSelector": {"matchLabels": {"app": "later"}}, "topologyKey": HOST}
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": [to_nobody]}
        make_pod("follows", gpus=1, affinity={"podAffinity": rule})
        wait_message("follows", "2 node(s) didn't match pod affinity rules")
        make_pod("leads", gpus=1, labels={"app": "later"}, nodeSelector={HOST: "gpu-0"})
        equal(node_of("follows"), "gpu-0")
        # Spread.
        even = {
            "maxSkew": 1,
            "topologyKey": HOST,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "even"}},
        }
        for number in range(4):
            make_pod(f"even-{number}", labels={"app": "even"}, topologySpreadConstraints=[even])
        nodes = [node_of(f"even-{number}") for number in range(4)]
        equal([nodes.count(name) for name in ("gpu-0", "gpu-1")], [2, 2])
        # CPU and memory, of init containers and overhead too.
        resources = {"limits": {"cpu": "1"}}
        inits = [{"name": "i", "image": "example/i", "resources": {"limits": {"cpu": "127"}}}]
        make_pod("inits", containers=container(resources=resources), initContainers=inits)
        first = node_of("inits")
        make_pod("inits-b", containers=container(resources=resources), initContainers=inits)
        second = node_of("inits-b")
        check(first != second, "two on one node")
        make_pod("inits-c", containers=container(resources=resources), initContainers=inits)
        wait_message("inits-c", "2 Insufficient cpu")
        # A node by its name, and one that nobody has.
        make_pod("extended", limits={"example.com/widget": "1"})
        wait_message("extended", "2 Insufficient example.com/widget")


@test
def two_names_of_one_pod_are_two_pods():
    """A pod of the same name is another one, with another uid, and nothing of the first is left."""
    with scene():
        for _ in range(5):
            made = make_pod("again", gpus=8)
            pod = wait_bound("again")
            equal(pod["metadata"]["uid"], made["metadata"]["uid"])
            delete_pod("again")
            wait_gone("again")


if __name__ == "__main__":
    sys.exit(play(prepare=prepare))
