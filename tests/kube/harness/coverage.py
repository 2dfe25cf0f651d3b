# SPDX-License-Identifier: Apache-2.0
"""What a recording of kube-scheduler's answers is about: how often each kind of rule
rejected a node, by kube-scheduler's own word where that tells it."""
import re
from collections import Counter

# How kube-scheduler says it (a part of it) -> what we call it.
REASONS = {
    "Insufficient cpu": "cpu",
    "Insufficient memory": "memory",
    "Insufficient nvidia.com/gpu": "GPUs",
    "Too many pods": "number of pods",
    "untolerated taint": "taints",
    "were unschedulable": "unschedulable",
    "didn't match Pod's node affinity/selector": "node affinity or selector",
    "didn't have free ports": "host ports",
    "didn't match pod affinity rules": "pod affinity",
    "didn't match pod anti-affinity rules": "pod anti-affinity",
    "didn't satisfy existing pods anti-affinity": "anti-affinity of others",
    "topology spread constraints": "spread",
    "didn't match PersistentVolume's node affinity": "affinity of volumes",
    "had no available volume zone": "zones of volumes",
    "didn't find available persistent volumes": "volumes to bind",
    "did not have enough free storage": "storage",
    "had no available disk": "disks in use",
    "ReadWriteOncePod access mode already in-use": "claims in use",
    "exceed max volume count": "attached volumes",
}
# What all nodes are rejected for at once.
WHOLE = {
    "persistentvolumeclaim": "claims that are not ready",
    "persistentvolume": "volumes that are gone",
    "pod has unbound immediate": "claims that should be bound",
}
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
KINDS = (
    *sorted({*REASONS.values(), *WHOLE.values()}),
    *(f"operator {operator}" for operator in OPERATORS),
    "node selector",
    "taint NoSchedule",
    "taint NoExecute",
    "only PreferNoSchedule, which rejects nothing",
    "pods with a priority",
    "overhead",
    "resources of the pod",
    "pods without a node",
)
COUNTED = re.compile(r"(\d+) ([^\d,][^,]*)")


def read_nodes(message):
    """How many nodes there are, by such a message; -1 if it does not say."""
    match = re.match(r"0/(\d+) nodes are available", message)
    return int(match.group(1)) if match else -1


def read_reasons(message):
    """Kind -> number of nodes, of a message as in `0/12 nodes are available: ...`."""
    _, _, text = message.partition("nodes are available: ")
    found = Counter()
    for part, kind in WHOLE.items():
        if part in text.split("\"")[0]:
            found[kind] = read_nodes(message)
            break
    for number, words in COUNTED.findall(text):
        for part, kind in REASONS.items():
            if part in words:
                found[kind] += int(number)
    return dict(sorted(found.items()))


def _operators(pod):
    affinity = pod["spec"]["affinity"].get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms = required.get("nodeSelectorTerms", [])
    found = {rule["operator"] for term in terms for rule in term["matchExpressions"]}
    fields = any("matchFields" in term for term in terms)
    return found | ({"matchFields"} if fields else set())


def _count_case(counts, case):
    spec, rejected = case["pod"]["spec"], case["rejected"]
    for kind, number in rejected.items():
        counts[kind] += number
    by_node = rejected.get("node affinity or selector", 0)
    operators = _operators(case["pod"])
    # Only where nothing else can have done it.
    if len(operators) == 1 and "nodeSelector" not in spec:
        counts[f"operator {min(operators)}"] += by_node
    if not operators and "nodeSelector" in spec:
        counts["node selector"] += by_node
    for field, kind in (("overhead", "overhead"), ("resources", "resources of the pod")):
        if field in spec:
            counts[kind] += rejected.get("cpu", 0) + rejected.get("memory", 0)
    if "priority" in spec:
        counts["pods with a priority"] += 1
    if not case["feasible"]:
        counts["pods without a node"] += 1


def _count_taints(counts, world, case):
    if "tolerations" in case["pod"]["spec"]:
        return
    for node in world["nodes"]:
        effects = {taint["effect"] for taint in node["spec"]["taints"]}
        feasible = node["metadata"]["name"] in case["feasible"]
        if effects == {"PreferNoSchedule"} and feasible:
            counts["only PreferNoSchedule, which rejects nothing"] += 1
        elif len(effects) == 1 and not feasible and not node["spec"]["unschedulable"]:
            counts[f"taint {min(effects)}"] += 1


def coverage(worlds):
    """How often each of KINDS occurred."""
    counts = Counter({kind: 0 for kind in KINDS})
    for world in worlds:
        for case in world["cases"]:
            _count_case(counts, case)
            _count_taints(counts, world, case)
    return {kind: counts[kind] for kind in KINDS}
