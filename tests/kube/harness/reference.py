#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""reference [--without-no-execute] - a scheduler for ./parity to be compared with.

Knows taints, unschedulable nodes, node selectors and node affinity, and nothing else.
With the option it lets NoExecute pass, which somebody should notice.
"""
import json
import sys

UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}


def tolerated(taint, tolerations):
    """Does one of the tolerations cover the taint?"""
    for each in tolerations:
        effect = each.get("effect") in (None, taint["effect"])
        key = each.get("key") in (None, taint["key"])
        value = each.get("operator") == "Exists" or each.get("value", "") == taint["value"]
        if effect and key and value:
            return True
    return False


def repelled(spec, node, effects):
    """Does a taint with one of these effects keep the pod off?"""
    taints = node["spec"]["taints"]
    taints = taints + ([UNSCHEDULABLE] if node["spec"]["unschedulable"] else [])
    tolerations = spec.get("tolerations", [])
    return any(each["effect"] in effects and not tolerated(each, tolerations) for each in taints)


def number(text):
    """A label as a number, or None."""
    try:
        return int(text)
    except ValueError:
        return None


def holds(rule, labels):
    """Do these labels meet one requirement?"""
    operator, values = rule["operator"], rule.get("values", [])
    value = labels.get(rule["key"])
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) == (operator == "Exists")
    if operator in ("In", "NotIn"):
        return (value in values) == (operator == "In")
    has = number(value) if value is not None else None
    if has is None:
        return False
    return has > int(values[0]) if operator == "Gt" else has < int(values[0])


def wanted(spec, node):
    """Do selector and affinity of the pod allow the node?"""
    labels = node["metadata"]["labels"]
    if any(labels.get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
        return False
    affinity = spec["affinity"].get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    fields = {"metadata.name": node["metadata"]["name"]}
    return any(
        all(holds(rule, labels) for rule in term.get("matchExpressions", []))
        and all(holds(rule, fields) for rule in term.get("matchFields", []))
        for term in required["nodeSelectorTerms"]
    )


def main(words):
    """Answer every question."""
    effects = {"NoSchedule", "NoExecute"}
    if "--without-no-execute" in words:
        effects.remove("NoExecute")
    for line in sys.stdin:
        question = json.loads(line)
        spec = question["pod"]["spec"]
        feasible = [
            node["metadata"]["name"]
            for node in question["nodes"]
            if wanted(spec, node) and not repelled(spec, node, effects)
        ]
        print(json.dumps(feasible), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
