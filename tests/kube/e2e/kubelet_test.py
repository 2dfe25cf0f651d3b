#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The simulated kubelets: what later tests take for granted.

cluster: --nodes 2 --gpus 4 --scheduler --history
"""
import json
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, main, test  # noqa: E402
from harness.client import as_identity  # noqa: E402
from harness.environment import environment, expand  # noqa: E402

PODS = "/api/v1/namespaces/default/pods"
ADMIN = as_identity("admin")


def make_pod(name, annotations=None, spec=None, **container):
    """A pod for the default scheduler."""
    spec = {"restartPolicy": "Never", **(spec or {})}
    spec["containers"] = [{"name": "main", "image": "example/train", **container}]
    pod = {"metadata": {"name": name, "annotations": annotations or {}}, "spec": spec}
    answer = ADMIN.post(PODS, pod)
    equal(answer.code, 201, str(answer))
    return answer.json


def wait_phase(name, phase):
    """Wait until the pod is in this phase, and return it."""

    def reached():
        pod = ADMIN.get(f"{PODS}/{name}").json
        return pod if pod.get("status", {}).get("phase") == phase else None

    return eventually(reached, f"{name} is {phase}")


def starts(pod):
    """What was recorded of the containers of a pod."""
    with open(Path(os.environ["KUBE_DIR"], "environments.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [line for line in lines if line["uid"] == pod["metadata"]["uid"]]


def reference(path):
    """A fieldRef."""
    return {"fieldRef": {"fieldPath": path}}


@test
def nodes_are_ready_and_have_gpus():
    nodes = ADMIN.get("/api/v1/nodes").json["items"]
    equal([node["metadata"]["name"] for node in nodes], ["gpu-0", "gpu-1"])
    equal([node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes], ["4", "4"])
    check(not any(node["spec"].get("taints") for node in nodes), "tainted")
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/gpu-1"
    held = eventually(lambda: ADMIN.get(lease).json.get("spec"), "the node has a heartbeat")
    equal(held["holderIdentity"], "gpu-1")


@test
def a_pod_runs_for_ever_unless_told_otherwise():
    make_pod("runs")
    make_pod("ends", {"kubelet.test/seconds": "0.3"})
    make_pod("fails", {"kubelet.test/seconds": "0.3", "kubelet.test/exit-code": "7"})
    wait_phase("ends", "Succeeded")
    failed = wait_phase("fails", "Failed")
    code = failed["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"]
    equal(code, 7, "exit code")
    running = wait_phase("runs", "Running")
    check(running["status"]["podIP"].startswith("10.244."), "it has an address")


@test
def the_environment_is_resolved_at_the_start():
    env = [
        {"name": "CUDA_VISIBLE_DEVICES", "valueFrom": reference("metadata.annotations['a/gpus']")},
        {"name": "ABSENT", "valueFrom": reference("metadata.annotations['a/absent']")},
        {"name": "NODE", "valueFrom": reference("spec.nodeName")},
        {"name": "ON", "value": "$(NODE) has $(CUDA_VISIBLE_DEVICES), $$(NODE), $(NOBODY)"},
        {"name": "ADDRESS", "valueFrom": reference("status.podIP")},
    ]
    spec = {"schedulerName": "nobody"}
    pod = make_pod("sees", spec=spec, env=env)
    binding = {
        "metadata": {"name": "sees", "annotations": {"a/gpus": "0,3"}},
        "target": {"name": "gpu-1"},
    }
    equal(ADMIN.post(f"{PODS}/sees/binding", binding).code, 201)
    running = wait_phase("sees", "Running")
    expected = {
        "CUDA_VISIBLE_DEVICES": "0,3",
        "ABSENT": "",
        "NODE": "gpu-1",
        "ON": "gpu-1 has 0,3, $(NODE), $(NOBODY)",
        "ADDRESS": running["status"]["podIP"],
    }
    recorded = starts(pod)
    equal(len(recorded), 1, "starts")
    equal(recorded[0]["environment"], expected)
    equal(recorded[0]["node"], "gpu-1")


@test
def init_containers_see_theirs_too_and_a_restart_is_recorded():
    first = {"name": "first", "image": "example/prepare", "env": [{"name": "A", "value": "1"}]}
    spec = {"restartPolicy": "OnFailure", "initContainers": [first]}
    annotations = {"kubelet.test/seconds": "0.2", "kubelet.test/exit-code": "1"}
    pod = make_pod("again", annotations, spec)
    eventually(lambda: len(starts(pod)) >= 4, "it is started again")
    recorded = [(line["container"], line["init"], line["start"]) for line in starts(pod)[:4]]
    equal(recorded, [("first", True, 0)] + [("main", False, start) for start in range(3)])
    again = wait_phase("again", "Running")
    check(again["status"]["containerStatuses"][0]["restartCount"] >= 2, "restarts are counted")


@test
def a_deleted_pod_goes_when_its_containers_have_ended():
    pod = make_pod("slow", {"kubelet.test/stop-seconds": "1"})
    wait_phase("slow", "Running")
    equal(ADMIN.delete(f"{PODS}/slow").code, 200)
    left = ADMIN.get(f"{PODS}/slow").json
    check("deletionTimestamp" in left["metadata"], "it was deleted at once")
    equal(left["metadata"]["uid"], pod["metadata"]["uid"])
    eventually(lambda: ADMIN.get(f"{PODS}/slow").code == 404, "it goes")


@test
def a_pod_of_the_same_name_is_another():
    first = make_pod("name")
    wait_phase("name", "Running")
    ADMIN.delete(f"{PODS}/name", {"gracePeriodSeconds": 0})
    second = make_pod("name")
    wait_phase("name", "Running")
    equal([len(starts(first)), len(starts(second))], [1, 1], "starts")


@test
def references_are_expanded_as_the_kubelet_does():
    cases = [
        ("$(A)", "1"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$(B)", "$(B)"),
        ("$(A", "$(A"),
        ("$A $", "$A $"),
        ("$()", "$()"),
        ("x$(A)y$(A)", "x1y1"),
    ]
    for text, expected in cases:
        equal(expand(text, {"A": "1"}), expected, text)
    pod = {"metadata": {"name": "p", "labels": {"a.b/c": "d"}}, "spec": {}}
    env = [
        {"name": "LATER", "value": "$(EARLIER)"},
        {"name": "EARLIER", "valueFrom": reference("metadata.labels['a.b/c']")},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "EMPTY"},
    ]
    expected = {"LATER": "$(EARLIER)", "EARLIER": "d", "SECRET": None, "EMPTY": ""}
    equal(environment(pod, {"env": env}), expected)


if __name__ == "__main__":
    sys.exit(main())
