#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The history checker finds what pods can do wrong.

The histories are made up: no API server would let a pod move.  Those of locks_test.py
are real.

cluster: none
"""
import copy
import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))
# pylint: disable=wrong-import-position
from harness.check import check, equal, main, test  # noqa: E402
from harness.etcd import Change  # noqa: E402
from harness.rules import POD_RULES, violations  # noqa: E402


def decision(node, *holds):
    """The annotation, with holds as (GPU, thousandths, MiB) or (GPU, profile, start)."""
    gpus = []
    for gpu, what, number in holds:
        share = {"coreMilli": what, "memoryMiB": number}
        if isinstance(what, str):
            share = {"mig": {"profile": what, "start": number}}
        gpus.append({"id": 0, "uuid": gpu, "ask": 0, **share})
    return {"gpu.scheduling/decision": json.dumps({"node": node, "gpus": gpus})}


def node(name, memory):
    """A node whose cards have so many MiB."""
    return {"metadata": {"name": name, "labels": {"nvidia.com/gpu.memory": str(memory)}}}


def pod(uid, node=None, annotations=None, phase="Pending"):
    """A pod as etcd has it."""
    return {
        "metadata": {"namespace": "n", "name": uid, "uid": uid, "annotations": annotations or {}},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase},
    }


def story(*versions):
    """Changes from successive versions of pods and nodes; a string deletes the pod of that
    name."""
    last, changes = {}, []
    for revision, version in enumerate(versions, 1):
        name = version if isinstance(version, str) else version["metadata"]["name"]
        after = None if isinstance(version, str) else copy.deepcopy(version)
        key = f"/registry/pods/n/{name}"
        if after and "spec" not in after:
            key = f"/registry/minions/{name}"
        changes.append(Change(revision, key, last.get(name), after))
        last[name] = after
    return changes


WHOLE = decision("a", ("GPU-1", 1000, 80))
HALF = decision("a", ("GPU-1", 500, 40))
MEMORY = decision("a", ("GPU-1", 0, 50))
NOTHING = decision("a", ("GPU-1", 0, 0))
SLICE_0 = decision("a", ("GPU-1", "1g.10gb", 0))
SLICE_1 = decision("a", ("GPU-1", "1g.10gb", 1))
SLICE_2 = decision("a", ("GPU-1", "1g.10gb", 2))
BIG_SLICE = decision("a", ("GPU-1", "3g.40gb", 0))
OTHER_BIG_SLICE = decision("a", ("GPU-1", "3g.40gb", 4))
CONTAINER = {"elasticgpu.io/container-main": "0"}

# what happens, versions, the revision at which it goes wrong (None: never), a word of why
STORIES = [
    ("bound with a decision", [pod("p"), pod("p", "a", WHOLE)], None, ""),
    ("bound elsewhere", [pod("p", "a"), pod("p", "b")], 2, "moved"),
    ("unbound", [pod("p", "a"), pod("p")], 2, "moved"),
    ("a name used again", [pod("p", "a"), "p", pod("p", "b")], None, ""),
    ("decided before bound", [pod("p", None, WHOLE)], 1, "no node"),
    ("decided after bound", [pod("p", "a"), pod("p", "a", WHOLE)], 2, "another decision"),
    ("decided for another node", [pod("p", "b", WHOLE)], 1, "decision for a"),
    ("decided in no language", [pod("p", "a", {"gpu.scheduling/decision": "x"})], 1, "cannot"),
    ("booked twice", [pod("p", "a", WHOLE), pod("q", "a", WHOLE)], 2, "2000 of 1000"),
    ("two halves", [pod("p", "a", HALF), pod("q", "a", HALF)], None, ""),
    ("three halves", [pod(name, "a", HALF) for name in "pqr"], 3, "1500 of 1000"),
    ("whole and half", [pod("p", "a", HALF), pod("q", "a", WHOLE)], 2, "1500 of 1000"),
    (
        "the same id elsewhere",
        [pod("p", "a", WHOLE), pod("q", "b", decision("b", ("GPU-1", 1000, 80)))],
        None,
        "",
    ),
    ("after deletion", [pod("p", "a", WHOLE), "p", pod("q", "a", WHOLE)], None, ""),
    (
        "after the end",
        [pod("p", "a", WHOLE), pod("p", "a", WHOLE, "Succeeded"), pod("q", "a", WHOLE)],
        None,
        "",
    ),
    (
        "while it runs",
        [pod("p", "a", WHOLE), pod("p", "a", WHOLE, "Running"), pod("q", "a", WHOLE)],
        3,
        "2000 of 1000",
    ),
    ("slices apart", [pod("p", "a", SLICE_0), pod("q", "a", SLICE_1)], None, ""),
    ("slices at one place", [pod("p", "a", SLICE_0), pod("q", "a", SLICE_0)], 2, "overlaps"),
    ("a slice in a larger one", [pod("p", "a", BIG_SLICE), pod("q", "a", SLICE_2)], 2, "overlaps"),
    ("slices side by side", [pod("p", "a", BIG_SLICE), pod("q", "a", OTHER_BIG_SLICE)], None, ""),
    (
        "twice the memory on a card with half of it",
        [node("a", 40960), pod("p", "a", SLICE_0), pod("q", "a", SLICE_1)],
        3,
        "overlaps",
    ),
    (
        "the same on one with all of it",
        [node("a", 81559), pod("p", "a", SLICE_0), pod("q", "a", SLICE_1)],
        None,
        "",
    ),
    (
        "more memory than there is",
        [node("a", 80), pod("p", "a", MEMORY), pod("q", "a", MEMORY)],
        3,
        "booked 100 of 80 MiB",
    ),
    ("memory of an unknown card", [pod("p", "a", MEMORY), pod("q", "a", MEMORY)], None, ""),
    (
        "memory beside a whole card",
        [node("a", 80), pod("p", "a", MEMORY), pod("q", "a", WHOLE)],
        3,
        "130 of 80",
    ),
    (
        "nothing beside a whole card",
        [node("a", 80), pod("p", "a", NOTHING), pod("q", "a", WHOLE)],
        3,
        "as a whole and 1 times besides",
    ),
    ("nothing twice", [pod("p", "a", NOTHING), pod("q", "a", NOTHING)], None, ""),
    ("a container's share later", [pod("p", "a"), pod("p", "a", CONTAINER)], 2, "container-main"),
    ("a container's share at once", [pod("p"), pod("p", "a", CONTAINER)], None, ""),
    ("sliced and whole", [pod("p", "a", SLICE_0), pod("q", "a", HALF)], 2, "sliced"),
    ("twice in one pod", [pod("p", "a", decision("a", ("G", 600, 1), ("G", 600, 1)))], 1, "1200"),
]


@test
def every_violation_is_found_when_it_happens_and_nothing_else():
    for title, versions, revision, why in STORIES:
        found = violations(story(*versions), POD_RULES)
        if revision is None:
            equal(found, [], title)
            continue
        equal([each[0] for each in found], [revision], f"{title}: revisions in {found}")
        check(why in found[0][1], f"{title}: {found[0][1]} does not say {why}")


if __name__ == "__main__":
    sys.exit(main())
