# SPDX-License-Identifier: Apache-2.0
"""Short histories on a real API server, written by hand as a scheduler would write them, or
as none should.

    @scene("why it is wrong", ...)
    def a_sentence(stage): ...

A scene without a reason keeps all rules.  Each has a Stage: nodes, pods and locks of its
own, all of which are gone, as the rules want it, before the next scene begins.
"""
import json

from .check import check, equal

PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler-locks/leases"
CLAIMS = "/apis/gpu.scheduling/v1/namespaces/default/gpuclaims"
STATUSES = "/apis/gpu.scheduling/v1/gpunodestatuses"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
CLAIM_TYPE = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim"}
STATUS_TYPE = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuNodeStatus"}
ATTEMPT = 7
SCENES = []


def scene(*reasons):
    """Register a scene, with a part of each sentence that the checker must say of it."""

    def register(function):
        SCENES.append((function, reasons))
        return function

    return register


def share(card="GPU-1", core=1000, memory=80):
    """A hold on a card."""
    return {"uuid": card, "coreMilli": core, "memoryMiB": memory}


def part(start, profile="1g.10gb", card="GPU-1"):
    """A hold on a slice."""
    return {"uuid": card, "mig": {"profile": profile, "start": start}}


WHOLE = (share(),)


def entry(pod, holds=WHOLE, attempt=ATTEMPT, **more):
    """The lock of a pod, at the version at which it was last read."""
    meta = pod["metadata"]
    return {
        "pod": meta["uid"],
        "ns": meta["namespace"],
        "name": meta["name"],
        "rv": meta["resourceVersion"],
        "attempt": attempt,
        **more,
        "gpus": list(holds),
    }


def define(client, plural, kind, scope):
    """Make the API server know a custom resource, whatever is in it."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": anything},
        "subresources": {"status": {}},
    }
    spec = {
        "group": "gpu.scheduling",
        "scope": scope,
        "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
        "versions": [version],
    }
    body = {"metadata": {"name": f"{plural}.gpu.scheduling"}, "spec": spec}
    answer = client.post(DEFINITIONS, body)
    equal(answer.code, 201, str(answer))


class Stage:
    """Where one scene plays: node() is its node, on which it locks and binds."""

    def __init__(self, client, number, mode="node"):
        self.client = client
        self.number = number
        self.node = f"n{number}"
        self.made = []  # paths of Leases, claims and nodes
        self.pods = {}  # path -> pod
        self.record_mode(mode)

    def must(self, answer, code=200):
        """The object that the server answers with."""
        check(answer.code == code, f"expected {code}, got {answer}")
        return answer.json

    def put(self, path, body):
        """Create it, or replace what is there."""
        there = self.client.get(f"{path}/{body['metadata']['name']}")
        if there.code == 404:
            self.made.append(f"{path}/{body['metadata']['name']}")
            return self.must(self.client.post(path, body), 201)
        for field in ("uid", "resourceVersion"):
            body["metadata"][field] = there.json["metadata"][field]
        return self.must(self.client.put(f"{path}/{body['metadata']['name']}", body))

    def record_mode(self, mode):
        """Which locks are used from now on."""
        body = {"metadata": {"name": "lock-mode"}, "spec": {"holderIdentity": mode}}
        self.put(LEASES, body)

    def register(self, memory):
        """The node, with cards of so many MiB."""
        labels = {"nvidia.com/gpu.memory": str(memory)}
        self.put("/api/v1/nodes", {"metadata": {"name": self.node, "labels": labels}})

    def report(self, **devices):
        """What an agent says of the memory of cards."""
        self.put(STATUSES, {**STATUS_TYPE, "metadata": {"name": self.node}})
        found = [{"uuid": card, "memoryMiB": size} for card, size in devices.items()]
        body = {"status": {"devices": found}}
        path = f"{STATUSES}/{self.node}/status"
        self.must(self.client.request("PATCH", path, body, MERGE))

    def pod(self, name="p", claim=None, **annotations):
        """A pod that nobody schedules."""
        spec = {
            "schedulerName": "gpu-scheduler",
            "containers": [{"name": "main", "image": "example/train"}],
        }
        if claim:
            annotations = {"gpu.scheduling/claim": claim}
        name = f"{name}-{self.number}"
        body = {"metadata": {"name": name, "annotations": annotations}, "spec": spec}
        pod = self.must(self.client.post(PODS, body), 201)
        self.pods[f"{PODS}/{name}"] = pod
        return pod

    def lock(self, *entries, name=None, node=None, labels=None, text=None, finalizers=None):
        """Write just these entries into the Lease of the node."""
        node = node or self.node
        notes = {
            "gpu.scheduling/node": node,
            "gpu.scheduling/entries": text or json.dumps(entries, separators=(",", ":")),
        }
        labels = {"gpu.scheduling/managed": "true"} if labels is None else labels
        metadata = {"name": name or f"gpus-{node}", "annotations": notes, "labels": labels}
        if finalizers:
            metadata["finalizers"] = finalizers
        return self.put(LEASES, {"metadata": metadata, "spec": {}})

    def lock_card(self, number, card, *entries, holder=None, label=None):
        """The same with --locks=gpu."""
        notes = {
            "gpu.scheduling/node": self.node,
            "gpu.scheduling/gpu": card,
            "gpu.scheduling/entries": json.dumps(entries),
        }
        labels = {"gpu.scheduling/managed": "true"}
        if holder:
            labels["gpu.scheduling/pod"] = label or holder["metadata"]["name"]
        metadata = {"name": f"gpu-{self.node}-{number}", "annotations": notes, "labels": labels}
        spec = {"holderIdentity": holder["metadata"]["uid"]} if holder else {}
        return self.put(LEASES, {"metadata": metadata, "spec": spec})

    def unlock(self):
        """Delete the Lease of the node."""
        self.must(self.client.delete(f"{LEASES}/gpus-{self.node}"))

    def bind(self, pod, holds=WHOLE, attempt=ATTEMPT, decided=None, allocated="0"):
        """Bind the pod, whatever has become of it since it was read."""
        decision = {"node": decided or self.node, "gpus": list(holds), "attempt": attempt}
        notes = {
            "gpu.scheduling/decision": json.dumps(decision),
            "gpu.scheduling/allocated": f"{self.node}:{allocated}",
        }
        name = pod["metadata"]["name"]
        body = {"metadata": {"name": name, "annotations": notes}, "target": {"name": self.node}}
        self.must(self.client.post(f"{PODS}/{name}/binding", body), 201)

    def annotate(self, pod, **annotations):
        """Change annotations of a pod, a key of which is `gpu.scheduling/` and the name."""
        notes = {f"gpu.scheduling/{key}": value for key, value in annotations.items()}
        path = f"{PODS}/{pod['metadata']['name']}"
        self.must(self.client.request("PATCH", path, {"metadata": {"annotations": notes}}, MERGE))

    def fence(self, pod):
        """Change the pod; as it is then."""
        condition = {"type": "PodScheduled", "status": "False", "reason": "Fenced"}
        return self._status(pod, {"conditions": [condition]})

    def finish(self, pod):
        """Its containers have ended."""
        return self._status(pod, {"phase": "Succeeded"})

    def _status(self, pod, status):
        path = f"{PODS}/{pod['metadata']['name']}/status"
        return self.must(self.client.request("PATCH", path, {"status": status}, STRATEGIC))

    def remove(self, pod):
        """Delete it at once."""
        path = f"{PODS}/{pod['metadata']['name']}"
        self.must(self.client.delete(path, {"gracePeriodSeconds": 0}))
        del self.pods[path]

    def claim(self, phase=None, **status):
        """The claim c of this scene, now with this status."""
        name = f"c-{self.number}"
        if f"{CLAIMS}/{name}" not in self.made:
            self.put(CLAIMS, {**CLAIM_TYPE, "metadata": {"name": name}, "spec": {}})
        if phase:
            body = {"status": {"allocated": None, "nodeName": None, "phase": phase, **status}}
            path = f"{CLAIMS}/{name}/status"
            self.must(self.client.request("PATCH", path, body, MERGE))
        return name

    def leave(self):
        """Nothing is left: first the pods, then what they held."""
        for path in list(self.pods):
            self.must(self.client.delete(path, {"gracePeriodSeconds": 0}))
        for path in reversed(self.made):
            if not path.endswith("/lock-mode"):
                self.client.delete(path)
