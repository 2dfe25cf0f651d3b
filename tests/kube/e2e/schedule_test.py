#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scheduler on a real cluster: from a pending pod to a bound one with its GPUs locked.

cluster: --nodes 4 --gpus 8 --history
"""
import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, main, test  # noqa: E402
from harness.client import as_identity  # noqa: E402
from harness.scheduler import (  # noqa: E402
    MERGE,
    condition,
    create,
    delete_pod,
    entries_of,
    get_pod,
    gpus_of,
    install_kinds,
    make_pod,
    scheduling,
    wait_bound,
    wait_message,
)

ADMIN = as_identity("admin")
CLAIMS = "/apis/gpu.scheduling/v1/namespaces/default/gpuclaims"


def prepare():
    """The custom resources."""
    install_kinds()


def make_claim(name, **spec):
    """A GpuClaim."""
    body = {
        "apiVersion": "gpu.scheduling/v1",
        "kind": "GpuClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }
    return create(CLAIMS, body)


def events_of(name):
    """Reasons and notes of the events about a pod."""
    found = ADMIN.get("/apis/events.k8s.io/v1/namespaces/default/events").json["items"]
    return [(e["reason"], e["note"]) for e in found if e["regarding"]["name"] == name]


@test
def a_pod_gets_a_node_its_gpus_and_a_lock():
    with scheduling():
        make_pod("one", gpus=2)
        pod = wait_bound("one")
        equal(len(gpus_of(pod)), 2, "GPUs")
        (entry,) = entries_of(pod)
        decision = json.loads(pod["metadata"]["annotations"]["gpu.scheduling/decision"])
        equal(entry["attempt"], decision["attempt"], "attempt")
        equal(len(entry["gpus"]), 2, "GPUs that are locked")


@test
def the_event_of_a_bound_pod_begins_as_it_always_does_and_names_its_gpus():
    share = {"elasticgpu.io/gpu-core": "30", "elasticgpu.io/gpu-memory": "2048"}
    with scheduling() as scheduler:
        make_pod("two", gpus=2)
        make_pod("share", limits=share)
        make_pod("none")
        first, last = gpus_of(wait_bound("two"))
        (card,) = gpus_of(wait_bound("share"))
        equal(last, first + 1, "cards next to each other")
        has = {
            "two": f" with GPUs {first}-{last}",
            "share": f" with 30% and 2048 MiB of GPU {card}",
            "none": "",
        }
        for name, gpus in has.items():
            node = wait_bound(name)["spec"]["nodeName"]
            note = f"Successfully assigned default/{name} to {node}{gpus}"
            eventually(lambda: ("Scheduled", note) in events_of(name), note)
        check(f'gpus="GPUs {first}-{last}" attempt_id=' in scheduler.log(), "the log names none")


@test
def a_pod_without_gpus_needs_no_lock():
    with scheduling():
        make_pod("plain")
        pod = wait_bound("plain")
        equal(entries_of(pod), [], "locks")
        check("gpu.scheduling/allocated" not in pod["metadata"]["annotations"], "annotated")


@test
def pods_of_others_are_left_alone():
    with scheduling():
        make_pod("other", gpus=1, schedulerName="somebody-else")
        make_pod("ours", gpus=1)
        wait_bound("ours")
        check("nodeName" not in get_pod("other")["spec"], "bound a pod of another")


@test
def what_does_not_fit_is_told_and_waits_for_room():
    with scheduling():
        for number in range(4):
            make_pod(f"full-{number}", gpus=8)
        for number in range(4):
            wait_bound(f"full-{number}")
        make_pod("late", gpus=1)
        message = wait_message("late", "0/4 nodes are available: 4 Insufficient free GPUs")
        check(message.startswith("0/4 nodes are available"), message)
        equal(condition(get_pod("late"))["reason"], "Unschedulable")
        eventually(lambda: any(r == "FailedScheduling" for r, _ in events_of("late")), "event")
        place = get_pod("full-2")["spec"]["nodeName"]
        delete_pod("full-2")
        equal(wait_bound("late")["spec"]["nodeName"], place)


@test
def two_pods_race_for_the_last_gpu():
    with scheduling():
        for number in range(4):
            make_pod(f"full-{number}", gpus=8 if number else 7)
        for number in range(4):
            wait_bound(f"full-{number}")
        make_pod("a", gpus=1)
        make_pod("b", gpus=1)
        eventually(lambda: any("nodeName" in get_pod(n)["spec"] for n in "ab"), "one is bound")
        loser = "b" if "nodeName" in get_pod("a")["spec"] else "a"
        wait_message(loser, "0/4 nodes are available")
        check("nodeName" not in get_pod(loser)["spec"], "both are bound")


@test
def a_claim_says_what_its_pod_gets():
    with scheduling():
        make_claim("two", devices={"count": 2, "policy": "contiguous"})
        make_pod("claimed", annotations={"gpu.scheduling/claim": "two"})
        equal(gpus_of(wait_bound("claimed")), [0, 1], "GPUs")
        make_pod("lost", annotations={"gpu.scheduling/claim": "missing"})
        wait_message("lost", "missing")
        make_claim("missing", devices={"count": 1})
        wait_bound("lost")


@test
def annotations_that_leave_no_room_for_the_decision_are_told():
    with scheduling():
        note = "n" * ((256 << 10) - len("example.com/note") - 100)
        make_pod("wordy", gpus=1, annotations={"example.com/note": note})
        message = wait_message("wordy", "262044 bytes of annotations")
        check("at most 262144 are allowed" in message, message)
        make_pod("next", gpus=1)
        wait_bound("next")
        equal(get_pod("wordy")["spec"].get("nodeName"), None, "node of wordy")
        path = "/api/v1/namespaces/default/pods/wordy"
        shorter = {"metadata": {"annotations": {"example.com/note": "n" * (240 << 10)}}}
        equal(ADMIN.request("PATCH", path, shorter, MERGE).code, 200)
        pod = wait_bound("wordy")
        total = sum(len(k) + len(v) for k, v in pod["metadata"]["annotations"].items())
        check(total <= 256 << 10, f"{total} bytes")
        # A pod of more could not be updated any more.
        label = {"metadata": {"labels": {"seen": "yes"}}}
        equal(ADMIN.request("PATCH", path, label, MERGE).code, 200)


@test
def a_map_pins_pods_to_nodes_and_gpus():
    with scheduling():
        lines = "0=gpu-1:0,1\n1=gpu-1:2\n2=gpu-2:5\n"
        for number in range(3):
            make_pod(
                f"pinned-{number}",
                annotations={"gpu-scheduling-map": lines},
                labels={"apps.kubernetes.io/pod-index": str(number)},
            )
        wanted = [("gpu-1", [0, 1]), ("gpu-1", [2]), ("gpu-2", [5])]
        for number, (node, ids) in enumerate(wanted):
            pod = wait_bound(f"pinned-{number}")
            equal((pod["spec"]["nodeName"], gpus_of(pod)), (node, ids))
        make_pod(
            "nowhere",
            annotations={"gpu-scheduling-map": "0=gpu-9:0\n"},
            labels={"apps.kubernetes.io/pod-index": "0"},
        )
        wait_message("nowhere", "gpu-9")


@test
def shares_of_cards_lie_together():
    with scheduling():
        for number in range(4):
            make_pod(f"share-{number}", limits={"elasticgpu.io/gpu-core": "25"})
        pods = [wait_bound(f"share-{number}") for number in range(4)]
        places = {(pod["spec"]["nodeName"], tuple(gpus_of(pod))) for pod in pods}
        equal(len(places), 1, "cards")


@test
def a_gang_is_bound_whole_or_not_at_all():
    with scheduling():
        make_claim("gang", devices={"count": 8}, gangRef="train", gangMinMembers=3)
        annotations = {"gpu.scheduling/claim": "gang"}
        for number in range(2):
            make_pod(f"member-{number}", annotations=annotations)
        wait_message("member-0", "waits for 1 more of its 3 members")
        check("nodeName" not in get_pod("member-1")["spec"], "bound before its gang is whole")
        make_pod("member-2", annotations=annotations)
        nodes = {wait_bound(f"member-{n}")["spec"]["nodeName"] for n in range(3)}
        equal(len(nodes), 3, "nodes")


@test
def a_gang_that_does_not_fit_holds_nothing():
    with scheduling():
        make_claim("large", devices={"count": 8}, gangRef="large", gangMinMembers=4)
        make_pod("small", gpus=1)
        wait_bound("small")
        for number in range(4):
            make_pod(f"big-{number}", annotations={"gpu.scheduling/claim": "large"})
        wait_message("big-0", "gang")
        for number in range(4):
            equal(entries_of(get_pod(f"big-{number}")), [], "locks")
        delete_pod("small")
        for number in range(4):
            wait_bound(f"big-{number}")


@test
def a_pod_of_higher_priority_takes_the_place_of_others():
    create(
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"metadata": {"name": "high"}, "value": 1000, "globalDefault": False},
    )
    with scheduling():
        for number in range(4):
            make_pod(f"low-{number}", gpus=8)
        for number in range(4):
            wait_bound(f"low-{number}")
        make_pod("urgent", gpus=8, priorityClassName="high")
        pod = wait_bound("urgent")
        left = [n for n in range(4) if get_pod(f"low-{n}")]
        equal(len(left), 3, "pods that stayed")
        check(pod["spec"]["nodeName"], "no node")


@test
def gates_are_respected():
    with scheduling():
        make_pod("gated", gpus=1, schedulingGates=[{"name": "example.com/hold"}])
        make_pod("free", gpus=1)
        wait_bound("free")
        check("nodeName" not in get_pod("gated")["spec"], "bound a gated pod")
        ADMIN.request(
            "PATCH",
            "/api/v1/namespaces/default/pods/gated",
            [{"op": "remove", "path": "/spec/schedulingGates/0"}],
            "application/json-patch+json",
        )
        wait_bound("gated")


if __name__ == "__main__":
    prepare()
    sys.exit(main())
