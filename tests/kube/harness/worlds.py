# SPDX-License-Identifier: Apache-2.0
"""Random nodes and pods, the same for the same seed, for comparing schedulers.

Names and values are few, so that rules meet what they are about.  Everything that
decides where a pod may run is there, each kind by itself one of FEATURES, so that a
scheduler that knows some of them can be compared in those.
"""
import random

from .volumes import Storage

KEYS = {
    "topology.kubernetes.io/zone": ["a", "b", "c"],
    "disk": ["ssd", "hdd"],
    "generation": ["3", "7", "12", "new"],
}
TOPOLOGIES = ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
APPS = ["web", "train", "cache"]
EFFECTS = ["NoSchedule", "NoExecute", "PreferNoSchedule"]
TAINTS = [("dedicated", "gpu"), ("dedicated", "web"), ("spot", "")]
GPU = "nvidia.com/gpu"
# Name -> priority; the API server writes the number into each pod of a class.
PRIORITIES = {"parity-low": -10, "parity-high": 1000}
# Likewise, of a RuntimeClass, what each pod takes beside its containers.
SANDBOX = "parity-sandbox"
OVERHEAD = {"cpu": "500m", "memory": "1Gi"}
FEATURES = (
    "resources",
    "taints",
    "unschedulable",
    "selector",
    "affinity",
    "pod-affinity",
    "spread",
    "ports",
    "priorities",
    "volumes",
)
ROOM = {"cpu": "64", "memory": "256Gi", "pods": "110"}


def _some(rng, values, most):
    return rng.sample(values, rng.randint(1, min(most, len(values))))


def _requirement(rng):
    key = rng.choice(list(KEYS))
    operator = rng.choice(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
    if operator in ("Gt", "Lt"):
        return {"key": rng.choice(["generation", key]), "operator": operator, "values": ["5"]}
    values = {} if "Exist" in operator else {"values": _some(rng, KEYS[key], 2)}
    return {"key": key, "operator": operator, **values}


def _node_affinity(rng):
    terms = []
    for _ in range(rng.choice([1, 1, 2])):
        term = {"matchExpressions": [_requirement(rng) for _ in range(rng.choice([1, 1, 2]))]}
        if rng.random() < 0.1:
            operator = rng.choice(["In", "NotIn"])
            field = {"key": "metadata.name", "operator": operator, "values": ["node-1"]}
            term["matchFields"] = [field]
        terms.append(term)
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def _selector(rng):
    if rng.random() < 0.3:
        operator = rng.choice(["In", "NotIn", "Exists", "DoesNotExist"])
        values = {} if "Exist" in operator else {"values": _some(rng, APPS, 2)}
        return {"matchExpressions": [{"key": "app", "operator": operator, **values}]}
    return {"matchLabels": {"app": rng.choice(APPS)}}


def _pod_affinity(rng):
    terms = [
        {"labelSelector": _selector(rng), "topologyKey": rng.choice(TOPOLOGIES)}
        for _ in range(rng.choice([1, 1, 1, 2]))
    ]
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def _taint(rng):
    key, value = rng.choice(TAINTS)
    return {"key": key, "value": value, "effect": rng.choice(EFFECTS)}


def _toleration(rng):
    if rng.random() < 0.1:
        return {"operator": "Exists"}
    key, value = rng.choice(TAINTS)
    toleration = {"key": key, "operator": "Exists"}
    if rng.random() < 0.5:
        toleration = {"key": key, "operator": "Equal", "value": value}
    if rng.random() < 0.5:
        toleration["effect"] = rng.choice(EFFECTS)
    return toleration


def _spread(rng):
    spread = {
        "maxSkew": rng.randint(1, 2),
        "topologyKey": rng.choice(TOPOLOGIES),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": _selector(rng),
    }
    if rng.random() < 0.3:
        spread["minDomains"] = rng.randint(1, 4)
    if rng.random() < 0.3:
        spread["nodeAffinityPolicy"] = rng.choice(["Honor", "Ignore"])
        spread["nodeTaintsPolicy"] = rng.choice(["Honor", "Ignore"])
    return spread


def _resources(rng):
    requests = {"cpu": f"{rng.choice([100, 500, 1500])}m", "memory": f"{rng.choice([1, 3])}Gi"}
    limits = {GPU: str(rng.choice([1, 2, 4]))} if rng.random() < 0.2 else {}
    return {"requests": requests, "limits": limits}


def _pod_resources(rng):
    """Of the pod as a whole: no less than its containers ask for, at most two of _resources()."""
    return {"requests": {"cpu": f"{rng.choice([3, 4])}", "memory": f"{rng.choice([6, 8])}Gi"}}


def _port(rng):
    port = {"containerPort": 80, "hostPort": rng.choice([8080, 9090])}
    if rng.random() < 0.4:
        port["hostIP"] = rng.choice(["127.0.0.1", "10.0.0.1"])
    if rng.random() < 0.2:
        port["protocol"] = "UDP"
    return port


class Maker:
    """Makes nodes and pods with some features, by a random number generator."""

    def __init__(self, rng, features=FEATURES):
        self.rng = rng
        self.features = features
        self.storage = None

    def _has(self, feature, chance):
        return feature in self.features and self.rng.random() < chance

    def node(self, number):
        """A node with labels, taints and room, each in some nodes only."""
        rng = self.rng
        name = f"node-{number}"
        labels = {key: rng.choice(values) for key, values in KEYS.items() if rng.random() < 0.8}
        room = ROOM
        if "resources" in self.features:
            gpus = rng.choice([0, 0, 4, 8])
            room = {
                "cpu": str(rng.choice([2, 4, 8])),
                "memory": f"{rng.choice([4, 8, 16])}Gi",
                "pods": str(rng.choice([2, 4, 110])),
                **({GPU: str(gpus)} if gpus else {}),
            }
        taints = {}
        for _ in range(rng.choice([1, 1, 2]) if self._has("taints", 0.4) else 0):
            taint = _taint(rng)
            # A node has a key and an effect once.
            taints[taint["key"], taint["effect"]] = taint
        unschedulable = self._has("unschedulable", 0.1)
        return {
            "metadata": {"name": name, "labels": {**labels, "kubernetes.io/hostname": name}},
            "spec": {"taints": list(taints.values()), "unschedulable": unschedulable},
            "status": {"capacity": room, "allocatable": room},
        }

    def _container(self, name):
        container = {"name": name, "image": "example/any", "resources": {}}
        if "resources" in self.features:
            container["resources"] = _resources(self.rng)
        if self._has("ports", 0.2):
            container["ports"] = [_port(self.rng)]
        return container

    def _affinity(self):
        kinds = (
            ("nodeAffinity", "affinity", _node_affinity, 0.3),
            ("podAffinity", "pod-affinity", _pod_affinity, 0.15),
            ("podAntiAffinity", "pod-affinity", _pod_affinity, 0.15),
        )
        return {
            field: make(self.rng)
            for field, feature, make, chance in kinds
            if self._has(feature, chance)
        }

    def pod(self, name):
        """A pod with some of the rules, most often one or two."""
        rng = self.rng
        spec = {"containers": [self._container("main")], "affinity": self._affinity()}
        if self._has("resources", 0.15):
            first = self._container("first")
            # One that stays counts beside the others, not instead of them.
            first.update({"restartPolicy": "Always"} if rng.random() < 0.5 else {})
            spec["initContainers"] = [first]
        if self._has("resources", 0.1):
            spec.update(runtimeClassName=SANDBOX, overhead=OVERHEAD)
        if self._has("resources", 0.1):
            spec["resources"] = _pod_resources(rng)
        if self._has("selector", 0.25):
            key = rng.choice(list(KEYS))
            spec["nodeSelector"] = {key: rng.choice(KEYS[key])}
        if self._has("taints", 0.4):
            spec["tolerations"] = [_toleration(rng) for _ in range(rng.randint(1, 2))]
        if self._has("spread", 0.2):
            spec["topologySpreadConstraints"] = [_spread(rng)]
        if self._has("priorities", 0.4):
            spec["priorityClassName"] = rng.choice(sorted(PRIORITIES))
            spec["priority"] = PRIORITIES[spec["priorityClassName"]]
        if self._has("volumes", 0.5):
            spec["volumes"] = self.storage.volumes(bound=name.startswith("bound"))
        return {"metadata": {"name": name, "labels": {"app": rng.choice(APPS)}}, "spec": spec}

    def world(self, nodes, pods):
        """Nodes, pods that are bound to them, whether or not they fit there, and storage."""
        self.storage = Storage(random.Random(self.rng.random()), nodes)
        objects = self.storage.objects() if "volumes" in self.features else []
        made = [self.node(number) for number in range(nodes)]
        bound = [self.pod(f"bound-{number}") for number in range(pods)]
        for each in bound:
            each["spec"]["nodeName"] = self.rng.choice(made)["metadata"]["name"]
        return made, bound, objects
