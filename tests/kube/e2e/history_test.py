#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The history checker finds what it is there to find.

The histories of the table are made up; the last tests read one of a real cluster.

cluster: none
"""
import copy
import json
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))
# pylint: disable=wrong-import-position
from harness.check import check, equal, main, test  # noqa: E402
from harness.client import Client  # noqa: E402
from harness.etcd import Change  # noqa: E402
from harness.rules import violations  # noqa: E402


def decision(node, *holds):
    """The annotation, with holds as (GPU, thousandths) or (GPU, None, start of a slice)."""
    gpus = []
    for gpu, core, *start in holds:
        share = {"coreMilli": core}
        if start:
            share = {"mig": {"profile": "1g.10gb", "start": start[0]}}
        gpus.append({"id": 0, "uuid": gpu, "ask": 0, **share})
    return {"gpu.scheduling/decision": json.dumps({"node": node, "gpus": gpus})}


def pod(uid, node=None, annotations=None, phase="Pending"):
    """A pod as etcd has it."""
    return {
        "metadata": {"namespace": "n", "name": uid, "uid": uid, "annotations": annotations or {}},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase},
    }


def story(*versions):
    """Changes from successive versions of pods; a string deletes the pod of that name."""
    last, changes = {}, []
    for revision, version in enumerate(versions, 1):
        name = version if isinstance(version, str) else version["metadata"]["name"]
        after = None if isinstance(version, str) else copy.deepcopy(version)
        key = f"/registry/pods/n/{name}"
        changes.append(Change(revision, key, last.get(name), after))
        last[name] = after
    return changes


WHOLE = decision("a", ("GPU-1", 1000))
HALF = decision("a", ("GPU-1", 500))
SLICE_0 = decision("a", ("GPU-1", None, 0))
SLICE_1 = decision("a", ("GPU-1", None, 1))

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
        [pod("p", "a", WHOLE), pod("q", "b", decision("b", ("GPU-1", 1000)))],
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
    ("slices at one place", [pod("p", "a", SLICE_0), pod("q", "a", SLICE_0)], 2, "slices at"),
    ("sliced and whole", [pod("p", "a", SLICE_0), pod("q", "a", HALF)], 2, "sliced"),
    ("twice in one pod", [pod("p", "a", decision("a", ("G", 600), ("G", 600)))], 1, "1200"),
]


@test
def every_violation_is_found_when_it_happens_and_nothing_else():
    for title, versions, revision, why in STORIES:
        found = violations(story(*versions))
        if revision is None:
            equal(found, [], title)
            continue
        equal([each[0] for each in found], [revision], f"{title}: revisions in {found}")
        check(why in found[0][1], f"{title}: {found[0][1]} does not say {why}")


def make(admin, name, annotations):
    """Create a pod and bind it to node a with these annotations."""
    pods = "/api/v1/namespaces/default/pods"
    spec = {"containers": [{"name": "main", "image": "example/train"}]}
    equal(admin.post(pods, {"metadata": {"name": name}, "spec": spec}).code, 201)
    target = {"metadata": {"name": name, "annotations": annotations}, "target": {"name": "a"}}
    answer = admin.post(f"{pods}/{name}/binding", target)
    equal(answer.code, 201, str(answer))


def history(info):
    """Run the checker and return its status and what it says."""
    path = Path(info["KUBE_DIR"], "history.jsonl")
    command = [HERE / "history", info["KUBE_ETCD"], path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr, path.read_text(encoding="utf-8").splitlines()


@test
def a_real_history_is_read_whole_and_in_order():
    with subprocess.Popen(
        [HERE / "cluster", "up", "--history"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as cluster:
        info = json.loads(cluster.stdout.readline())
        admin = Client(info["KUBECONFIG"])
        make(admin, "first", WHOLE)
        status, said, lines = history(info)
        equal(status, 0, said)
        admin.delete("/api/v1/namespaces/default/pods/first", {"gracePeriodSeconds": 0})
        make(admin, "second", WHOLE)
        equal(history(info)[0], 0, "after deletion")
        make(admin, "third", HALF)
        status, said, lines = history(info)
        equal(status, 1, said)
        check("GPU GPU-1 of a: booked 1500 of 1000" in said, said)
        pods = [json.loads(line) for line in lines if '"/registry/pods/default/' in line]
        # A pod is created, bound and, in one write or two, deleted.
        seen = ["-" if line["object"] is None else line["key"][-5:] for line in pods]
        del seen[2 : seen.index("-")]
        equal(seen, ["first"] * 2 + ["-"] + ["econd"] * 2 + ["third"] * 2)
        revisions = [line["revision"] for line in pods]
        equal(revisions, sorted(revisions), "revisions")
        cluster.communicate("done\n")


if __name__ == "__main__":
    sys.exit(main())
