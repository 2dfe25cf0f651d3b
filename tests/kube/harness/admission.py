# SPDX-License-Identifier: Apache-2.0
"""What is admitted and what is refused: tests/samples/webhook_cases.json, asked of the API
server.

    wrong = decide_cases("policy", "gpu-scheduler-guard")

Each case says who does what with a pod and, if it is to be refused, what is said.
"""
import copy
import json
import os
from pathlib import Path

from .check import equal
from .client import Client

ROOT = Path(__file__).resolve().parents[3]
CASES = json.loads((ROOT / "tests/samples/webhook_cases.json").read_text(encoding="utf-8"))
DRY = "?dryRun=All"
ACCOUNT = "system:serviceaccount:gpu-scheduler:"


class As(Client):
    """The administrator under another name, who may do everything that admission lets
    pass."""

    def __init__(self, user):
        super().__init__(os.path.join(os.environ["KUBE_DIR"], "admin.kubeconfig"))
        send = self.connection.request

        def request(method, path, data, headers):
            names = {"Impersonate-User": user, "Impersonate-Group": "system:masters"}
            send(method, path, data, {**headers, **names})

        self.connection.request = request


def pods(namespace):
    """Their path."""
    return f"/api/v1/namespaces/{namespace}/pods"


def complete(pod, namespace, name):
    """A pod of the table with what the API server wants besides."""
    pod = {"apiVersion": "v1", "kind": "Pod", **copy.deepcopy(pod)}
    pod.setdefault("metadata", {})
    if "generateName" not in pod["metadata"]:
        pod["metadata"].setdefault("name", name)
    pod["metadata"]["namespace"] = namespace
    spec = pod.setdefault("spec", {"containers": [{"name": "a"}]})
    spec["automountServiceAccountToken"] = False
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(kind, []):
            container["image"] = "example/train"
    return pod


def _existing(case, namespace, name):
    """The pod as it was before: whoever decides may make it."""
    made = As(ACCOUNT + "scheduler").post(pods(namespace), complete(case["old"], namespace, name))
    equal(made.code, 201, f"{case['name']}: {made}")
    return made.json


def _changed(case, namespace, old):
    """What the case makes of the pod that exists."""
    new = complete(case["pod"], namespace, old["metadata"]["name"])
    pod = copy.deepcopy(old)
    for key in ("annotations", "labels"):
        pod["metadata"][key] = new["metadata"].get(key, {})
    pod["metadata"]["generateName"] = case["pod"].get("metadata", {}).get("generateName", "")
    pod["status"].update(case["pod"].get("status", {}))
    if "ephemeralContainers" in new["spec"]:
        pod["spec"]["ephemeralContainers"] = new["spec"]["ephemeralContainers"]
    return pod


def _ask(case, namespace, name):
    """The answer of the API server to the case."""
    user = As(ACCOUNT + case["user"] if "user" in case else "alice")
    on, path = case.get("on"), pods(namespace)
    if not on:
        return user.post(path + DRY, complete(case["pod"], namespace, name))
    old = _existing(case, namespace, name)
    name = old["metadata"]["name"]
    _, _, part = on.partition("/")
    try:
        if part == "binding":
            body = {"apiVersion": "v1", "kind": "Binding", **case["pod"]}
            body["metadata"] = {**body["metadata"], "name": name}
            return user.post(f"{path}/{name}/binding{DRY}", body)
        suffix = f"/{part}" if part else ""
        return user.put(f"{path}/{name}{suffix}{DRY}", _changed(case, namespace, old))
    finally:
        As("alice").delete(f"{path}/{name}", {"gracePeriodSeconds": 0})


def decide_own():
    """The accounts of ours with which a pod in our namespace may see every GPU."""
    env = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    found = set()
    for account in ("scheduler", "extender", "webhook", "agent", "controller", "certs"):
        spec = {"serviceAccountName": account, "containers": [{"name": "a", "env": env}]}
        pod = complete({"spec": spec}, "gpu-scheduler", f"own-{account}")
        if As("alice").post(pods("gpu-scheduler") + DRY, pod).code == 201:
            found.add(account)
    return found


def decide_cases(namespace, who):
    """A line for each case that is not decided as it should be, or not by whom."""
    wrong = []
    for number, case in enumerate(CASES):
        answer = _ask(case, namespace, f"case-{number}x")
        reason = case.get("refused")
        if reason is None and answer.code in (200, 201):
            continue
        said = (answer.json or {}).get("message", "")
        if reason and answer.code == 403 and who in said and reason in said:
            continue
        wrong.append(f"{case['name']}: expected {reason or 'allowed'}, got {answer}")
    return wrong
