#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gangs: who is in one, how many make it whole, and that none of them waits for ever.

cluster: --nodes 4 --gpus 8 --history --apiserver-flag=--runtime-config=api/alpha=true --apiserver-flag=--feature-gates=GenericWorkload=true
"""
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, kubectl, skip, test  # noqa: E402
from harness.scene import (  # noqa: E402
    ADMIN,
    MERGE,
    PODS,
    claimed,
    delete_all,
    extra_node,
    hold_nothing,
    make_claim,
    make_owner,
    metric,
    nodes_of,
    play,
    scene,
    unbound,
    wait_claim,
)
from harness.scheduler import (  # noqa: E402
    create,
    delete_pod,
    entries,
    get_pod,
    make_pod,
    wait_bound,
    wait_gone,
    wait_message,
)
from harness.stream import Stream  # noqa: E402

GROUP = "scheduling.x-k8s.io/pod-group"
GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
UPSTREAM = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
INDEX = "batch.kubernetes.io/job-completion-index"
HOST = "kubernetes.io/hostname"
PATIENCE_S = 2
CONFIG = Path(os.environ.get("KUBE_DIR", "/tmp")) / "gangs.yaml"
KIND = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "podgroups.scheduling.x-k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://example.com/for-a-test"},
    },
    "spec": {
        "group": "scheduling.x-k8s.io",
        "scope": "Namespaced",
        "names": {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def prepare():
    """The kind of the co-scheduling plugin, and little patience."""
    create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", KIND)
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    CONFIG.write_text(f"gangReservationSeconds: {PATIENCE_S}\n", encoding="utf-8")


def group(name, members):
    """A PodGroup."""
    body = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": members},
    }
    create(GROUPS, body)


def member(name, of, gpus=8, **kwargs):
    """A pod of a PodGroup."""
    make_pod(name, gpus=gpus, labels={GROUP: of}, **kwargs)


@test
def a_pod_group_says_how_many_make_it_whole():
    with scene():
        member("early-0", "late")
        wait_message("early-0", "the size of gang late is not known", "no PodGroup late")
        member("early-1", "late")
        group("late", 3)
        wait_message("early-0", "gang default/late waits for 1 more of its 3 members")
        hold_nothing("early-0", "early-1")
        member("early-2", "late")
        equal(len(nodes_of("early-0", "early-1", "early-2")), 3, "nodes")
        equal({e["gang"]["members"] for _, e in entries()}, {3}, "members in the locks")
        delete_all(GROUPS)


@test
def more_than_the_least_come_along_as_they_fit():
    with scene():
        group("more", 2)
        for number in range(5):
            member(f"more-{number}", "more")
        eventually(
            lambda: sum("nodeName" in get_pod(f"more-{n}")["spec"] for n in range(5)) == 4,
            "four of them are bound",
        )
        left = next(n for n in range(5) if "nodeName" not in get_pod(f"more-{n}")["spec"])
        wait_message(f"more-{left}", "no room for a further member of its gang")
        delete_pod(f"more-{(left + 1) % 5}")
        wait_bound(f"more-{left}")
        # Below its least number, what is missing is replaced, as soon as it comes.
        for number in range(5):
            if number != left and get_pod(f"more-{number}"):
                delete_pod(f"more-{number}")
        member("more-9", "more")
        wait_bound("more-9")
        delete_all(GROUPS)


@test
def one_that_finds_no_room_does_not_keep_the_others_waiting():
    with scene():
        group("mixed", 2)
        for number in range(2):
            member(f"mixed-{number}", "mixed")
        nodes_of("mixed-0", "mixed-1")
        make_pod("full", gpus=8)
        make_pod("nearly", gpus=6)
        wait_bound("full")
        wait_bound("nearly")
        member("mixed-2", "mixed")
        wait_message("mixed-2", "no room for a further member of its gang")
        member("mixed-3", "mixed", gpus=1)
        member("mixed-4", "mixed", gpus=1)
        wait_bound("mixed-3")
        wait_bound("mixed-4")
        unbound("mixed-2")
        delete_pod("full")
        wait_bound("mixed-2")
        delete_all(GROUPS)


@test
def the_size_comes_from_the_group_the_claim_or_the_owner():
    with scene():
        make_claim("owned", {"count": 1}, gangRef="owned")
        owner = make_owner("StatefulSet", "owned", replicas=2)
        claimed("owned-0", "owned", owners=[owner])
        wait_message("owned-0", "waits for 1 more of its 2 members")
        claimed("owned-1", "owned", owners=[owner])
        nodes_of("owned-0", "owned-1")
        make_claim("both", {"count": 1}, gangRef="both", gangMinMembers=5)
        group("both", 2)
        for number in range(2):
            claimed(f"both-{number}", "both")
        nodes_of("both-0", "both-1")
        make_claim("nobody", {"count": 1}, gangRef="nobody")
        claimed("nobody", "nobody")
        wait_message("nobody", "the size of gang nobody is not known", "no gangMinMembers")
        claimed("torn", "both", labels={GROUP: "other"})
        wait_message("torn", f"label {GROUP} puts the pod into gang other", "gang both")
        delete_all(GROUPS)


@test
def a_member_that_is_deleted_is_waited_for_again():
    with scene():
        make_claim("three", {"count": 8}, gangRef="three", gangMinMembers=3)
        for number in range(2):
            claimed(f"three-{number}", "three")
        wait_message("three-1", "waits for 1 more of its 3 members")
        delete_pod("three-0")
        wait_message("three-1", "waits for 2 more of its 3 members")
        hold_nothing("three-1")
        claimed("three-2", "three")
        claimed("three-3", "three")
        equal(len(nodes_of("three-1", "three-2", "three-3")), 3)


@test
def two_gangs_that_do_not_fit_together_go_one_after_the_other():
    with scene():
        for name in "ab":
            make_claim(name, {"count": 8}, gangRef=name, gangMinMembers=3)
        for number in range(3):
            for name in "ab":
                claimed(f"{name}-{number}", name)
        first = eventually(
            lambda: next((n for n in "ab" if "nodeName" in get_pod(f"{n}-0")["spec"]), None),
            "one of them is bound",
        )
        second = "b" if first == "a" else "a"
        equal(len(nodes_of(*(f"{first}-{n}" for n in range(3)))), 3)
        wait_message(f"{second}-0", "gang")
        hold_nothing(*(f"{second}-{n}" for n in range(3)))
        delete_pod(f"{first}-1")
        wait_gone(f"{first}-1")
        for number in (0, 2):
            delete_pod(f"{first}-{number}")
        equal(len(nodes_of(*(f"{second}-{n}" for n in range(3)))), 3)


def small_bound_after(moment):
    """How many of them were made after that and have a node."""
    pods = ADMIN.get(PODS.format("default")).json["items"]
    small = [p for p in pods if int(p["metadata"]["name"].partition("small-")[2] or -1) >= moment]
    return sum("nodeName" in p["spec"] for p in small)


@test
def a_big_gang_is_not_starved_by_small_pods():
    with scene():
        with Stream(12) as stream:
            # Two to a node, and more that wait: always full.
            eventually(lambda: stream.made >= 20, "the nodes are busy")
            make_claim("big", {"count": 8}, gangRef="big", gangMinMembers=3)
            for number in range(3):
                claimed(f"big-{number}", "big")
            wait_message("big-0", "gang")
            refused = stream.made
            for number in range(3):
                wait_bound(f"big-{number}", timeout_s=120)
            check(stream.is_alive(), "the small ones had ended")
            # Others that came meanwhile went on beside it.
            eventually(lambda: small_bound_after(refused) > 0, "one of those is bound")


@test
def a_big_pod_is_not_starved_by_small_ones():
    with scene():
        with Stream(12) as stream:
            eventually(lambda: stream.made >= 20, "the nodes are busy")
            make_pod("single", gpus=8)
            wait_message("single", "Insufficient free GPUs")
            # Nothing that happens would help it, so nothing wakes it but the time.
            wait_bound("single", timeout_s=120)
            check(stream.is_alive(), "the small ones had ended")


@test
def a_reservation_that_is_of_no_use_goes_to_others():
    with scene():
        # Each node has one that never ends, and no room for eight.
        for number in range(4):
            make_pod(f"lasting-{number}", gpus=5)
        for number in range(4):
            wait_bound(f"lasting-{number}")
        make_pod("first", gpus=8)
        wait_message("first", "a place is reserved", timeout_s=60)
        make_pod("second", gpus=8)
        wait_message("second", "Insufficient free GPUs")
        wait_message("second", "a place is reserved", timeout_s=120)


@test
def an_upstream_group_is_a_gang():
    body = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "upstream"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    with scene():
        made = ADMIN.post(UPSTREAM, body)
        if made.code != 201:
            skip(f"this release has no such PodGroup: {made.code}")
        kept = make_pod("up-0", gpus=8, schedulingGroup={"podGroupName": "upstream"})
        if "schedulingGroup" not in kept["spec"]:
            skip("this release keeps no schedulingGroup")
        wait_message("up-0", "gang default/upstream waits for 1 more of its 2 members")
        make_pod("up-1", gpus=8, schedulingGroup={"podGroupName": "upstream"})
        equal(len(nodes_of("up-0", "up-1")), 2)
        delete_all(UPSTREAM)


@test
def members_may_differ_and_some_need_no_gpu():
    with scene():
        group("mixed", 4)
        member("mixed-0", "mixed", gpus=8)
        member("mixed-1", "mixed", gpus=0)
        member("mixed-2", "mixed", gpus=0, limits={"elasticgpu.io/gpu-core": "50"})
        wait_message("mixed-1", "waits for 1 more of its 4 members")
        hold_nothing("mixed-0", "mixed-1", "mixed-2")
        member("mixed-3", "mixed", gpus=4)
        nodes_of("mixed-0", "mixed-1", "mixed-2", "mixed-3")
        delete_all(GROUPS)


def indexed(of, count, **kwargs):
    """Pods as an Indexed Job makes them: each has a label of its own."""
    group(of, count)
    for number in range(count):
        make_pod(f"{of}-{number}", labels={GROUP: of, INDEX: str(number)}, **kwargs)


@test
def members_with_labels_of_their_own_are_alike():
    with scene():
        indexed("many", 70, gpus=0, limits={"elasticgpu.io/gpu-core": "25"})
        nodes_of(*(f"many-{number}" for number in range(70)))
        delete_all(GROUPS)


def keeps_away(number):
    """Affinity: not beside the member with that index."""
    term = {"labelSelector": {"matchLabels": {INDEX: str(number)}}, "topologyKey": HOST}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@test
def members_that_a_rule_tells_apart_are_not():
    with scene():
        on = {"nodeSelector": {HOST: "gpu-0"}}
        for number in (2, 3):
            make_pod(f"full-{number}", gpus=8, nodeSelector={HOST: f"gpu-{number}"})
            wait_bound(f"full-{number}")
        make_pod("guard", gpus=0, affinity=keeps_away(0), **on)
        wait_bound("guard")
        indexed("apart", 2, gpus=5)
        places = [wait_bound(f"apart-{number}")["spec"]["nodeName"] for number in range(2)]
        equal(places, ["gpu-1", "gpu-0"])
        # They are booked as what they are, also for rules that come later.
        make_pod("not-beside-1", gpus=0, affinity=keeps_away(1), **on)
        wait_message("not-beside-1", "didn't match pod anti-affinity rules")
        make_pod("not-beside-0", gpus=0, affinity=keeps_away(0), **on)
        wait_bound("not-beside-0")
        delete_all(GROUPS)


@test
def a_member_that_is_gated_or_wrong_is_waited_for():
    with scene():
        group("held", 2)
        member("held-0", "held")
        member("held-1", "held", schedulingGates=[{"name": "example.com/hold"}])
        wait_message("held-0", "waits for 1 more of its 2 members")
        member("held-2", "held", annotations={"gpu.scheduling/claim": "nobody"})
        wait_message("held-2", "GpuClaim nobody does not exist")
        hold_nothing("held-0", "held-1", "held-2")
        patch = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
        path = f"{PODS.format('default')}/held-1"
        kind = "application/json-patch+json"
        equal(ADMIN.request("PATCH", path, patch, kind).code, 200)
        equal(len(nodes_of("held-0", "held-1")), 2)
        delete_all(GROUPS)


def patches():
    """How often the scheduler has patched something so far."""
    return metric("gpu_scheduler_kube_requests_total", "patch")


def readings():
    """How often it has translated a pod that waits."""
    return metric("gpu_scheduler_pod_readings_total")


@test
def a_crowd_is_not_told_of_each_that_comes():
    with scene():
        group("crowd", 100)
        before, read = patches(), readings()
        for number in range(60):
            member(f"crowd-{number}", "crowd", gpus=0, limits={"elasticgpu.io/gpu-core": "10"})
        for number in (0, 30, 59):
            wait_message(f"crowd-{number}", "waits for 40 more of its 100 members")
        made = patches() - before
        print(f"# {made:.0f} patches for 60 pods")
        check(made <= 60 * 4, f"{made} patches for 60 pods")
        read = readings() - read
        print(f"# {read:.0f} readings of 60 pods")
        check(60 <= read <= 60 * 2, f"{read} readings of 60 pods")
        hold_nothing("crowd-0", "crowd-59")
        # What another gang is made of is no reason to read them again.
        read = readings()
        for number in range(20):
            group(f"other-{number}", 2)
        for number in range(60, 100):
            member(f"crowd-{number}", "crowd", gpus=0)
        nodes_of(*(f"crowd-{n}" for n in range(0, 100, 9)))
        read = readings() - read
        check(read <= 40 + 100 * 2 + 60, f"{read} readings until 100 are bound")
        delete_all(GROUPS)


@test
def a_gang_waits_for_more_nodes():
    with scene():
        group("large", 5)
        for number in range(5):
            member(f"large-{number}", "large")
        wait_message("large-0", "gang")
        hold_nothing(*(f"large-{n}" for n in range(5)))
        with extra_node("fifth"):
            equal(len(nodes_of(*(f"large-{n}" for n in range(5)))), 5)
        delete_all(GROUPS)


@test
def a_gang_that_shrinks_its_claim_fits():
    with scene():
        make_claim("huge", {"count": 8}, gangRef="huge", gangMinMembers=5)
        for number in range(5):
            claimed(f"huge-{number}", "huge")
        wait_message("huge-0", "gang")
        hold_nothing(*(f"huge-{n}" for n in range(5)))
        path = "/apis/gpu.scheduling/v1/namespaces/default/gpuclaims/huge"
        body = {"spec": {"devices": {"count": 4}}}
        equal(ADMIN.request("PATCH", path, body, MERGE).code, 200)
        nodes_of(*(f"huge-{n}" for n in range(5)))


@test
def a_claim_that_its_gang_cannot_have_has_failed():
    path = "/apis/gpu.scheduling/v1/namespaces/default/gpuclaims/wrong"
    with scene():
        make_claim("wrong", {"count": 8}, gangRef="wrong", gangMinMembers=5)
        for number in range(5):
            claimed(f"wrong-{number}", "wrong", gpus=8)
        wait_message("wrong-0", "gang")
        wait_claim("wrong", "Pending")
        for count, phase in ((4, "Failed"), (8, "Pending")):
            body = {"spec": {"devices": {"count": count}}}
            equal(ADMIN.request("PATCH", path, body, MERGE).code, 200)
            status = wait_claim("wrong", phase)
            found = "GpuClaim wrong asks for 4" in status.get("message", "")
            equal(found, phase == "Failed", str(status))


if __name__ == "__main__":
    sys.exit(play("--config", str(CONFIG), prepare=prepare))
