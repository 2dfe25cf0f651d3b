#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The answers of kube-scheduler that others will be compared with can be relied on.

cluster: none
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))
# pylint: disable=wrong-import-position
from harness.check import check, equal, main, test  # noqa: E402

UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}


def record(seed, cases):
    """The clusters and answers of these seeds."""
    with tempfile.NamedTemporaryFile() as file:
        command = [HERE / "parity", f"--seed={seed}", f"--cases={cases}", file.name]
        equal(subprocess.run(command, check=False).returncode, 0, "status of parity")
        return [json.loads(line) for line in Path(file.name).read_text("utf-8").splitlines()]


def tolerated(taint, tolerations):
    """Does one of the tolerations cover the taint?"""
    for each in tolerations:
        effect = each.get("effect") in (None, taint["effect"])
        key = each.get("key") in (None, taint["key"])
        value = each["operator"] == "Exists" or each.get("value") == taint["value"]
        if effect and key and value:
            return True
    return False


def excluded(world, pod, node):
    """A reason why the pod may not run on the node, of those that are easy to tell."""
    spec = pod["spec"]
    taints = [each for each in node["spec"]["taints"] if each["effect"] != "PreferNoSchedule"]
    taints += [UNSCHEDULABLE] if node["spec"]["unschedulable"] else []
    if not all(tolerated(taint, spec.get("tolerations", [])) for taint in taints):
        return "a taint"
    labels = node["metadata"]["labels"]
    if any(labels.get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
        return "its node selector"
    name = node["metadata"]["name"]
    there = [each for each in world["bound"] if each["spec"]["nodeName"] == name]
    if len(there) >= int(node["status"]["allocatable"]["pods"]):
        return "the number of pods"
    wanted = [each["resources"]["limits"] for each in spec["containers"]]
    gpus = max(int(limits.get("nvidia.com/gpu", 0)) for limits in wanted)
    if gpus > int(node["status"]["allocatable"].get("nvidia.com/gpu", 0)):
        return "its GPUs"
    return None


@test
def answers_make_sense_and_are_the_same_for_the_same_seed():
    worlds = record(seed=20, cases=60)
    equal([len(world["cases"]) for world in worlds], [50, 10], "cases")
    sizes = set()
    for world in worlds:
        for case in world["cases"]:
            sizes.add(len(case["feasible"]))
            for node in world["nodes"]:
                if node["metadata"]["name"] in case["feasible"]:
                    reason = excluded(world, case["pod"], node)
                    check(not reason, f"seed {world['seed']}: {reason} forbids {case} on {node}")
    check(0 in sizes and len(sizes) >= 5, f"feasible nodes are always {sizes}")
    equal(record(seed=21, cases=10)[0], worlds[1], "the second cluster made again")


if __name__ == "__main__":
    sys.exit(main())
