#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples/kubernetes: every manifest does what its comment says, to the letter.

The commands of the comment are run as they stand there, and what the last of them prints is
compared with the table below it, in which * stands for what controllers make up.

cluster: --nodes 2 --gpus 8 --history --controllers=*
"""
import fnmatch
import shlex
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, kubectl, test  # noqa: E402
from harness.scene import claim_status, events_of, play, scene, visible  # noqa: E402
from harness.scheduler import ROOT, wait_bound  # noqa: E402

EXAMPLES = ROOT / "examples" / "kubernetes"


def comment(name):
    """The commands of a manifest, and the lines of the table after them."""
    lines = []
    for line in (EXAMPLES / name).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line[1:])
    shown = [line.strip() for line in lines if line.startswith("   ")]
    commands = [line for line in shown if line.startswith("kubectl ")]
    table = [line.split() for line in shown if not line.startswith("kubectl ")]
    check(commands and len(table) > 1, f"{name}: no commands, or no table")
    return commands, table


def run(command):
    """As it stands there, in the folder of the README; what it prints."""
    words = shlex.split(command)
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    check(done.returncode == 0, f"{command}: {done.stderr}")
    return [line.split() for line in done.stdout.splitlines()]


def is_like(rows, table):
    """Whether they are the same, in any order of the pods."""
    left = rows[1:]
    for expected in table[1:]:
        found = [r for r in left if all(map(fnmatch.fnmatchcase, r, expected))]
        if not found:
            return False
        left.remove(found[0])
    return rows[:1] == table[:1] and not left


def follow(name):
    """Do what the comment says until it is as the comment says."""
    commands, table = comment(name)
    for command in commands[:-1]:
        run(command)
    try:
        eventually(lambda: is_like(run(commands[-1]), table), f"{name} is as it says", 60)
    except Exception:
        print(f"# {run(commands[-1])}\n# expected {table}")
        raise


@test
def whole_cards():
    with scene():
        follow("whole.yaml")
        note = "Successfully assigned default/whole to gpu-0 with GPUs 0-1"
        eventually(lambda: ("Scheduled", note) in events_of("whole"), note)


@test
def shares_of_a_card():
    with scene():
        follow("shares.yaml")
        kubectl("scale", "deployment", "shares", "--replicas=4")
        words = ["get", "pods", "-l", "app=shares", "-o"]
        words += [r"jsonpath={.items[*].metadata.annotations.gpu\.scheduling/allocated}"]
        eventually(lambda: sorted(kubectl(*words).split())[3:] == ["gpu-0:1"], "another card")


@test
def a_claim():
    with scene():
        follow("claim.yaml")
        eventually(lambda: claim_status("four-fast").get("phase") == "Bound", "the claim is bound")
        equal(claim_status("four-fast")["nodeName"], "gpu-0")


@test
def a_map_of_a_statefulset():
    with scene():
        follow("map.yaml")


@test
def a_gang_of_a_job():
    with scene():
        follow("gang.yaml")


@test
def slices_of_a_card():
    with scene():
        follow("mig.yaml")
        seen = visible(wait_bound("sliced")).split(",")
        equal(len(set(seen)), 2, f"slices in {seen}")
        check(all(one.startswith("MIG-") for one in seen), f"{seen}")


@test
def each_is_tested_and_named_in_the_readme():
    readme = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    here = Path(__file__).read_text(encoding="utf-8")
    for path in EXAMPLES.glob("*.yaml"):
        check(f"`kubernetes/{path.name}`" in readme, f"examples/README.md has no {path.name}")
        others = [each.read_text(encoding="utf-8") for each in EXAMPLES.glob("*.yaml")]
        used = any(f"=examples/kubernetes/{path.name}" in text for text in others)
        check(f'follow("{path.name}")' in here or used, f"{path.name} is not tested")


if __name__ == "__main__":
    sys.exit(play())
