#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gangs while their members come, end, fail and come again, and while their owners change.

cluster: --nodes 4 --gpus 8 --history
"""
import os
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, test  # noqa: E402
from harness.scene import (  # noqa: E402
    ADMIN,
    CLAIMS,
    MERGE,
    OWNERS,
    PODS,
    claimed,
    extra_node,
    hold_nothing,
    make_claim,
    make_owner,
    nodes_of,
    play,
    scene,
    the_scheduler,
)
from harness.scheduler import (  # noqa: E402
    create,
    delete_pod,
    get_pod,
    make_pod,
    wait_bound,
    wait_gone,
    wait_message,
)
from harness.stream import Stream  # noqa: E402

T = "topology.scheduler/"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
POLICY_BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
PATIENCE_S = 2
CONFIG = Path(os.environ.get("KUBE_DIR", "/tmp")) / "gangs-life.yaml"


def prepare():
    """Priorities, and little patience."""
    for name, value in (("low", 10), ("middle", 100), ("high", 1000)):
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        create(CLASSES, {**body, "metadata": {"name": name}, "value": value})
    CONFIG.write_text(f"gangReservationSeconds: {PATIENCE_S}\n", encoding="utf-8")


def make_job(name, gpus, **spec):
    """A Job of the topology dialect: so many GPUs for all of its pods."""
    return make_owner("Job", name, annotations={T + "gpu-count": str(gpus)}, **spec)


def patch_job(name, body, part=""):
    """Change it, or its status."""
    equal(ADMIN.request("PATCH", f"{OWNERS['Job']}/{name}{part}", body, MERGE).code, 200)


def finish(name):
    """It has succeeded."""
    body = {"status": {"phase": "Succeeded"}}
    path = f"{PODS.format('default')}/{name}/status"
    equal(ADMIN.request("PATCH", path, body, MERGE).code, 200)


@test
def one_that_failed_is_replaced_when_others_have_succeeded():
    with scene():
        owner = make_job("train", 24, parallelism=3, completions=3)
        for number in range(3):
            make_pod(f"train-{number}", owners=[owner])
        nodes_of("train-0", "train-1", "train-2")
        finish("train-0")
        delete_pod("train-1")
        wait_gone("train-1")
        make_pod("train-1b", owners=[owner])
        wait_message("train-1b", "waits for 1 more of its 3 members")
        patch_job("train", {"status": {"succeeded": 1}}, "/status")
        wait_bound("train-1b")


@test
def the_last_of_a_job_need_no_more_than_are_left():
    with scene():
        owner = make_job("tail", 16, parallelism=2, completions=3)
        for number in range(2):
            make_pod(f"tail-{number}", owners=[owner])
        nodes_of("tail-0", "tail-1")
        for number in range(2):
            finish(f"tail-{number}")
        make_pod("tail-2", owners=[owner])
        patch_job("tail", {"status": {"succeeded": 2}}, "/status")
        wait_bound("tail-2")


@test
def a_job_that_is_made_smaller_or_larger_is_a_gang_of_that_size():
    with scene():
        owner = make_job("size", 32, parallelism=4)
        for number in range(3):
            make_pod(f"size-{number}", owners=[owner])
        wait_message("size-0", "waits for 1 more of its 4 members")
        hold_nothing("size-0", "size-1", "size-2")
        body = {"spec": {"parallelism": 3}, "metadata": {"annotations": {T + "gpu-count": "24"}}}
        patch_job("size", body)
        equal(len(nodes_of("size-0", "size-1", "size-2")), 3, "nodes")
        body = {"spec": {"parallelism": 4}, "metadata": {"annotations": {T + "gpu-count": "32"}}}
        patch_job("size", body)
        make_pod("size-3", owners=[owner])
        wait_bound("size-3")


@test
def a_suspended_job_comes_back_as_a_whole():
    with scene():
        owner = make_job("pause", 32, parallelism=4)
        for number in range(4):
            make_pod(f"pause-{number}", owners=[owner])
        nodes_of(*(f"pause-{n}" for n in range(4)))
        patch_job("pause", {"spec": {"suspend": True}})
        for number in range(4):
            delete_pod(f"pause-{number}")
        for number in range(4):
            wait_gone(f"pause-{number}")
        patch_job("pause", {"spec": {"suspend": False}})
        for number in range(3):
            make_pod(f"again-{number}", owners=[owner])
        wait_message("again-0", "waits for 1 more of its 4 members")
        hold_nothing(*(f"again-{n}" for n in range(3)))
        make_pod("again-3", owners=[owner])
        equal(len(nodes_of(*(f"again-{n}" for n in range(4)))), 4, "nodes")


@test
def members_that_are_deleted_on_their_way_are_replaced():
    with scene():
        make_claim("torn", {"count": 8}, gangRef="torn", gangMinMembers=4)
        for turn in range(12):
            names = [f"torn-{turn}-{number}" for number in range(4)]
            for name in names:
                claimed(name, "torn")
            time.sleep(0.01 * turn)
            gone = names[turn % 4]
            delete_pod(gone)
            wait_gone(gone)
            claimed(gone, "torn")  # the same name, another pod
            equal(len(nodes_of(*names)), 4, f"nodes in turn {turn}")
            for name in names:
                delete_pod(name)
            for name in names:
                wait_gone(name)


@test
def a_gang_takes_the_place_of_others_with_its_lowest_priority():
    with scene():
        for number in range(4):
            make_pod(f"old-{number}", gpus=8, priorityClassName="middle")
            wait_bound(f"old-{number}")
        make_claim("mixed", {"count": 8}, gangRef="mixed", gangMinMembers=2)
        claimed("mixed-0", "mixed", priorityClassName="high")
        claimed("mixed-1", "mixed", priorityClassName="low")
        wait_message("mixed-0", "gang")
        check(all(get_pod(f"old-{n}") for n in range(4)), "one of a higher priority went")
        hold_nothing("mixed-0", "mixed-1")
        # Without the low one it may.
        delete_pod("mixed-1")
        wait_gone("mixed-1")
        claimed("mixed-2", "mixed", priorityClassName="high")
        equal(len(nodes_of("mixed-0", "mixed-2")), 2, "nodes")
        left = [n for n in range(4) if get_pod(f"old-{n}")]
        equal(len(left), 2, "pods that stayed")


@test
def a_larger_gang_has_its_place_as_the_cluster_grows():
    with scene():
        make_claim("grow", {"count": 8}, gangRef="grow", gangMinMembers=6)
        names = [f"grow-{number}" for number in range(6)]
        for name in names:
            claimed(name, "grow")
        wait_message("grow-0", "gang")
        with extra_node("fifth"):
            time.sleep(1)
            hold_nothing(*names)
            with extra_node("sixth"):
                equal(len(nodes_of(*names)), 6, "nodes")


@test
def a_member_that_was_lost_is_not_starved_by_small_pods():
    with scene():
        make_claim("lost", {"count": 8}, gangRef="lost", gangMinMembers=3)
        for number in range(3):
            claimed(f"lost-{number}", "lost")
        nodes_of(*(f"lost-{n}" for n in range(3)))
        with Stream(8) as stream:
            eventually(lambda: stream.made >= 10, "the other node is busy")
            delete_pod("lost-1")
            wait_gone("lost-1")
            eventually(lambda: stream.made >= 25, "and so is its own")
            claimed("lost-3", "lost")
            wait_bound("lost-3", timeout_s=90)
            check(stream.is_alive(), "the small ones had ended")


@test
def a_member_that_was_lost_takes_the_place_of_a_lower_priority():
    with scene():
        make_claim("high", {"count": 8}, gangRef="high", gangMinMembers=3)
        for number in range(3):
            claimed(f"high-{number}", "high", priorityClassName="high")
        nodes_of(*(f"high-{n}" for n in range(3)))
        delete_pod("high-1")
        wait_gone("high-1")
        for number in range(2):
            make_pod(f"low-{number}", gpus=8, priorityClassName="low")
            wait_bound(f"low-{number}")
        claimed("high-3", "high", priorityClassName="high")
        wait_bound("high-3")
        check(get_pod("high-0") and get_pod("high-2"), "one of its own went")
        equal(sum(get_pod(f"low-{n}") is not None for n in range(2)), 1, "that stayed")


def refuse_binding(name):
    """From now on the API server refuses to bind pods whose name begins so."""
    body = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "not-this"}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    policy = {
        "matchConstraints": {"resourceRules": [{**rule, "resources": ["pods/binding"]}]},
        "validations": [{"expression": f"!object.metadata.name.startsWith('{name}')"}],
    }
    create(POLICIES, {**body, "kind": "ValidatingAdmissionPolicy", "spec": policy})
    binding = {"policyName": "not-this", "validationActions": ["Deny"]}
    create(
        POLICY_BINDINGS,
        {**body, "kind": "ValidatingAdmissionPolicyBinding", "spec": binding},
    )
    make_pod(f"{name}-probe", schedulerName="nobody")
    probe = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": f"{name}-probe"}}
    probe["target"] = {"kind": "Node", "name": "gpu-0"}
    path = f"{PODS.format('default')}/{name}-probe/binding?dryRun=All"
    eventually(lambda: ADMIN.post(path, probe).code == 422, "the policy is in force")
    delete_pod(f"{name}-probe")


@test
def one_that_cannot_be_bound_disturbs_none_that_waits_for_victims():
    with scene():
        make_claim("high", {"count": 8}, gangRef="high", gangMinMembers=2)
        for number in range(2):
            claimed(f"high-{number}", "high", priorityClassName="high")
        nodes_of("high-0", "high-1")
        make_pod(
            "low",
            gpus=8,
            annotations={"kubelet.test/stop-seconds": "40"},
            priorityClassName="low",
            terminationGracePeriodSeconds=60,
        )
        wait_bound("low")
        refuse_binding("high-2")
        claimed("high-2", "high", priorityClassName="high")
        wait_message("high-2", "not-this")
        claimed("high-3", "high", priorityClassName="high")
        eventually(lambda: get_pod("low")["metadata"].get("deletionTimestamp"), "it is to go")
        # While the one waits, the other is tried and refused again and again.
        seen = the_scheduler().log().count("high-2")
        eventually(lambda: the_scheduler().log().count("high-2") > seen + 2, "it is tried again")
        delete_pod("high-3")
        wait_gone("high-3")
        ADMIN.delete(f"{POLICIES}/not-this")
        ADMIN.delete(f"{POLICY_BINDINGS}/not-this")
        wait_bound("high-2", timeout_s=90)


@test
def one_that_was_wrong_meanwhile_has_not_waited_for_room():
    """Others are before it when room is reserved, and it is not tried in its turn."""

    def told():
        lines = the_scheduler().log().splitlines()
        return [line for line in lines if 'msg="pod waits" pod=default/big ' in line]

    with scene():
        # Each node has one that never ends, and no room for eight.
        for number in range(4):
            make_pod(f"lasting-{number}", gpus=5)
        nodes_of(*(f"lasting-{number}" for number in range(4)))
        make_claim("big", {"count": 8})
        claimed("big", "big")
        wait_message("big", "Insufficient free GPUs")
        equal(ADMIN.delete(f"{CLAIMS}/big").code, 200)
        wait_message("big", "GpuClaim big does not exist")
        wrong = len(told())
        time.sleep(2 * PATIENCE_S)
        make_claim("big", {"count": 8})
        eventually(lambda: len(told()) > wrong, "it is told something else")
        check("Insufficient free GPUs" in told()[wrong], told()[wrong])
        wait_message("big", "a place is reserved", timeout_s=60)


def queue(place):
    """How many wait there; a gang counts once."""
    sample = f'gpu_scheduler_queue_pods{{place="{place}"}} '
    (line,) = [x for x in the_scheduler().get("/metrics")[1].splitlines() if x.startswith(sample)]
    return int(line[len(sample) :])


@test
def one_that_has_no_room_for_its_decision_is_left_out_and_not_tried_again():
    with scene():
        note = {"example.com/note": "n" * ((256 << 10) - len("example.com/note") - 100)}
        make_claim("wordy", {"count": 4}, gangRef="wordy", gangMinMembers=2)
        claimed("wordy-0", "wordy", annotations=note)
        claimed("wordy-1", "wordy")
        wait_message("wordy-0", "bytes of annotations", "at most 262144 are allowed")
        wait_message("wordy-1", "waits for 1 more of its 2 members")
        # Something must change: what only pauses is never parked.
        eventually(lambda: queue("parked") == 1, "the gang is parked")
        equal(queue("backoff"), 0, "gangs that pause")
        hold_nothing("wordy-0", "wordy-1")
        # It came first, but those who come after it need not wait for it: nor one too many.
        claimed("wordy-2", "wordy")
        nodes_of("wordy-1", "wordy-2")
        claimed("wordy-3", "wordy")
        nodes_of("wordy-3")
        hold_nothing("wordy-0")
        shorter = {"metadata": {"annotations": {"example.com/note": "n"}}}
        path = f"{PODS.format('default')}/wordy-0"
        equal(ADMIN.request("PATCH", path, shorter, MERGE).code, 200)
        nodes_of("wordy-0")


if __name__ == "__main__":
    sys.exit(play("--config", str(CONFIG), prepare=prepare))
