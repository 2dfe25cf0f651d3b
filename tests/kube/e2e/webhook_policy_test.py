#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The policy of deploy/webhook decides as the webhook does.

tests/samples/webhook_cases.json is the table; tests/unit/webhook_validate_test.c runs it
through the webhook's own code, here it goes through the API server and its policy.

cluster: --controllers=validatingadmissionpolicy-status-controller,serviceaccount-controller
"""
import json
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, kubectl, main, test  # noqa: E402
from harness.client import Client  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
CASES = json.loads((ROOT / "tests/samples/webhook_cases.json").read_text(encoding="utf-8"))
PODS = "/api/v1/namespaces/policy/pods"
ACCOUNTS = "/api/v1/namespaces/policy/serviceaccounts"
DRY = "?dryRun=All"
ACCOUNT = "system:serviceaccount:gpu-scheduler:"


class As(Client):
    """The administrator under another name, who may do everything that admission lets
    pass."""

    def __init__(self, user):
        super().__init__(os.path.join(os.environ["KUBE_DIR"], "admin.kubeconfig"))
        self.user = user
        self.connection.request = self._impersonate(self.connection.request)

    def _impersonate(self, send):
        def request(method, path, data, headers):
            names = {"Impersonate-User": self.user, "Impersonate-Group": "system:masters"}
            send(method, path, data, {**headers, **names})

        return request


def prepare():
    """A namespace, and the policy in force."""
    kubectl("create", "namespace", "policy")
    eventually(lambda: As("alice").get(ACCOUNTS + "/default").code == 200, "the account")
    kubectl("apply", "-f", str(ROOT / "deploy/webhook/policy.yaml"))
    spoof = complete({"metadata": {"annotations": {"gpu.scheduling/allocated": "n:0"}}}, "x")
    spoof["spec"] = {"containers": [{"name": "a", "image": "example/train"}]}
    alice = As("alice")
    eventually(lambda: alice.post(PODS + DRY, spoof).code == 403, "the policy is in force")


def complete(pod, name):
    """A pod of the table with what the API server wants besides."""
    pod = json.loads(json.dumps(pod))
    pod = {"apiVersion": "v1", "kind": "Pod", **pod}
    pod.setdefault("metadata", {}).setdefault("name", name)
    pod["metadata"]["namespace"] = "policy"
    spec = pod.get("spec", {})
    spec["automountServiceAccountToken"] = False
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(kind, []):
            container["image"] = "example/train"
    return pod


def existing(case, name):
    """The pod as it was before: whoever decides may make it."""
    made = As(ACCOUNT + "scheduler").post(PODS, complete(case["old"], name))
    equal(made.code, 201, f"{case['name']}: {made}")
    return made.json


def changed(case, old):
    """What the case makes of the pod that exists."""
    new = complete(case["pod"], old["metadata"]["name"])
    pod = json.loads(json.dumps(old))
    pod["metadata"]["annotations"] = new["metadata"].get("annotations", {})
    if "status" in case["pod"]:
        pod["status"].update(case["pod"]["status"])
    if "ephemeralContainers" in new["spec"]:
        pod["spec"]["ephemeralContainers"] = new["spec"]["ephemeralContainers"]
    return pod


def ask(case, number):
    """The answer of the API server to the case."""
    user = As(ACCOUNT + case["user"] if "user" in case else "alice")
    on, name = case.get("on"), f"case-{number}x"
    if not on:
        return user.post(PODS + DRY, complete(case["pod"], name))
    old = existing(case, name)
    path, _, part = on.partition("/")
    equal(path, "pods")
    try:
        if part == "binding":
            body = {"apiVersion": "v1", "kind": "Binding", **case["pod"]}
            body["metadata"] = {**body["metadata"], "name": name}
            return user.post(f"{PODS}/{name}/binding{DRY}", body)
        suffix = f"/{part}" if part else ""
        return user.put(f"{PODS}/{name}{suffix}{DRY}", changed(case, old))
    finally:
        As("alice").delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})


@test
def every_case_is_decided_as_the_webhook_decides_it():
    """One test for the table: its rows have names of their own."""
    wrong = []
    for number, case in enumerate(CASES):
        answer = ask(case, number)
        reason = case.get("refused")
        if reason is None and answer.code in (200, 201):
            continue
        said = (answer.json or {}).get("message", "")
        if reason and "gpu-scheduler-guard" in said and reason in said:
            continue
        wrong.append(f"{case['name']}: expected {reason or 'allowed'}, got {answer}")
    check(not wrong, "\n".join(wrong))


@test
def a_map_of_a_large_job_costs_little_enough():
    """The API server ends an expression that takes too long, and refuses."""
    lines = "".join(f"{i}=gpu-node-{i // 8:04}:{i % 8}\n" for i in range(2000))
    for end, allowed in (("", True), ("2000=n\n", False)):
        pod = complete({"metadata": {"annotations": {"gpu-scheduling-map": lines + end}}}, "large")
        pod["spec"] = {"containers": [{"name": "a", "image": "example/train"}]}
        answer = As("alice").post(PODS + DRY, pod)
        equal(answer.code, 201 if allowed else 403, str(answer))
        check(allowed or "line 2001" in answer.json["message"], str(answer))


def checked():
    """The policy once its controller has looked at it."""
    answer = As("alice").get(
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/gpu-scheduler-guard"
    )
    seen = answer.json.get("status", {}).get("observedGeneration")
    return answer.json if seen == answer.json["metadata"]["generation"] else None


@test
def the_types_of_its_expressions_are_right():
    """As far as they are those of a pod; a Binding has no spec."""
    policy = eventually(checked, "the controller has looked at the policy")
    warnings = policy["status"].get("typeChecking", {}).get("expressionWarnings", [])
    check(not warnings, json.dumps(warnings, indent=1))


if __name__ == "__main__":
    sys.exit(main(prepare))
