#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The answers of kube-scheduler that others are compared with can be relied on, and a
scheduler that answers otherwise is found out.

cluster: none
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))
# pylint: disable=wrong-import-position
from harness.check import check, equal, main, test  # noqa: E402
from harness.coverage import coverage  # noqa: E402
from harness.reference import repelled  # noqa: E402

REFERENCE = HERE / "harness" / "reference.py"
BUILD = Path(os.environ.get("BUILD") or HERE.parent.parent / "build").resolve()
OURS = BUILD / "tests" / "kube" / "fit" / "fit"
KNOWN = "taints,unschedulable,selector,affinity,priorities"


def parity(*words):
    """Run it; its status and what it prints."""
    command = [HERE / "parity", *[str(word) for word in words]]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout


def record(seed, cases, against=None):
    """The clusters and answers of these seeds; those of another scheduler are the same."""
    with tempfile.NamedTemporaryFile() as file:
        status, said = parity(f"--seed={seed}", f"--cases={cases}", file.name)
        equal(status, 0, said)
        if against:
            answer = parity(f"--against={against}", f"--from={file.name}")
            equal(answer, (0, f"parity: {cases} cases, 0 differ\n"))
        return [json.loads(line) for line in Path(file.name).read_text("utf-8").splitlines()]


def excluded(world, pod, node):
    """A reason why the pod may not run on the node, of those that are easy to tell."""
    spec = pod["spec"]
    if repelled(spec, node, ("NoSchedule", "NoExecute")):
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
def our_answers_are_those_of_kube_scheduler_about_everything():
    worlds = record(seed=20, cases=500, against=OURS)
    equal([len(world["cases"]) for world in worlds], [50] * 10, "cases")
    sizes = set()
    for world in worlds:
        for case in world["cases"]:
            sizes.add(len(case["feasible"]))
            for node in world["nodes"]:
                if node["metadata"]["name"] in case["feasible"]:
                    reason = excluded(world, case["pod"], node)
                    check(not reason, f"seed {world['seed']}: {reason} forbids {case} on {node}")
    check(0 in sizes and len(sizes) >= 5, f"feasible nodes are always {sizes}")
    rare = {kind: number for kind, number in coverage(worlds).items() if number < 5}
    equal(rare, {}, "what is hardly asked")
    again = record(seed=21, cases=10)[0]
    equal(again["cases"], worlds[1]["cases"][:10], "the second cluster made again")


@test
def another_scheduler_is_compared_and_found_out():
    with tempfile.NamedTemporaryFile() as file:
        options = ["--seed=40", "--cases=100", f"--features={KNOWN}"]
        status, said = parity(*options, f"--against={REFERENCE}", file.name)
        equal((status, said), (0, "parity: 100 cases, 0 differ\n"))
        wrong = f"{REFERENCE} --without-no-execute"
        status, said = parity(f"--against={wrong}", f"--from={file.name}")
        equal(status, 1, said)
        total = re.search(r"100 cases, (\d+) differ", said)
        check(total and 0 < int(total.group(1)) < 100, said)
        first = re.search(
            r"seed 4[01], case \d+: {.*\n +kube-scheduler says (.*)\n +the other says +(.*)", said
        )
        check(first, said)
        # It lets more pass, and both answers are there to see that.
        fewer, more = ({word for word in text.split() if word != "none"} for text in first.groups())
        check(fewer < more, first.group(0))


@test
def a_scheduler_that_does_not_answer_differs():
    world = {"seed": 1, "nodes": [], "bound": [], "cases": [{"pod": {}, "feasible": []}]}
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(json.dumps(world))
        file.flush()
        for program, agrees in (
            ("sh -c 'while read line; do echo []; done'", True),
            ("sh -c 'while read line; do echo []; done; exit 3'", False),
            ("sh -c 'while read line; do echo [; done'", False),
            ("sh -c 'while read line; do echo 7; done'", False),
            ("sh -c 'while read line; do echo {}; done'", False),
            ("sh -c 'while read line; do echo [7]; done'", False),
            ("/dev/null/program", False),
            ("true", False),
        ):
            status, said = parity(f"--against={program}", f"--from={file.name}")
            equal(status, 0 if agrees else 1, f"{program}: {said}")


if __name__ == "__main__":
    sys.exit(main())
