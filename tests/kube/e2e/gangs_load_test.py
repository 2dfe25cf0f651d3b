#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gangs: what a member costs the scheduler does not grow with its gang.

cluster: --history

The members come one by one, on a thousand nodes.  What is compared are the CPU seconds of the
scheduler for as many pods in gangs of different sizes, in one run: a busy machine disturbs all
alike.  How often pods are translated is counted, too: a few times each, whatever the size.
"""
import os
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, test  # noqa: E402
from harness.scene import (  # noqa: E402
    ADMIN,
    CLAIMS,
    NODES,
    PODS,
    delete_all,
    make_claim,
    play,
    the_scheduler,
)
from harness.scheduler import create, delete_pods, entries, pod_object  # noqa: E402

COUNT = int(os.environ.get("GANGS_NODES", "1000"))
PODS_EACH = int(os.environ.get("GANGS_PODS", "512"))  # of every size as many
SIZES = [int(size) for size in os.environ.get("GANGS_SIZES", "1,16,64,512").split(",")]
RATIO = 2.0
READINGS = 4  # of a member: when it comes, when it is bound, and some that were in vain


def prepare():
    """The nodes; nobody plays their kubelets."""
    for number in range(COUNT):
        name = f"node-{number:04}"
        amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "8"}
        labels = {"kubernetes.io/hostname": name, "topology.scheduler/leaf": f"leaf-{number // 16}"}
        labels["topology.scheduler/spine"] = f"spine-{number // 256}"
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True", "reason": "Test"}],
            },
        }
        create(NODES, body)
        path = f"{NODES}/{name}"
        patch = {"spec": {"taints": None}}
        equal(ADMIN.request("PATCH", path, patch, "application/merge-patch+json").code, 200)


def cpu_ns():
    """That the scheduler has used so far, all its threads."""
    tasks = Path(f"/proc/{the_scheduler().process.pid}/task")
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir())


def all_pods():
    """As they are."""
    return ADMIN.get(PODS.format("default")).json["items"]


def all_bound():
    """Whether every pod has a node."""
    return all("nodeName" in pod["spec"] for pod in all_pods())


def settled():
    """Once the scheduler has nothing to do, the CPU that it has used."""
    before = cpu_ns()
    while True:
        time.sleep(1)
        now = cpu_ns()
        if now - before < 20e6:
            return now
        before = now


def clear():
    """Nothing is left."""
    delete_pods()
    eventually(lambda: not entries(), "all locks are gone", 120)
    delete_all(CLAIMS)


def readings():
    """How often it has translated a pod that waits."""
    lines = the_scheduler().get("/metrics")[1].splitlines()
    return sum(float(l.split()[-1]) for l in lines if l.startswith("gpu_scheduler_pod_readings_"))


def spend(size):
    """CPU in microseconds for a member of gangs of that size, and how often it was read."""
    read, before = readings(), settled()
    for gang in range(PODS_EACH // size):
        claim = f"of-{size}-{gang}"
        make_claim(claim, {"count": 1}, gangRef=claim, gangMinMembers=size)
        for number in range(size):
            pod = pod_object(f"{claim}-{number}", annotations={"gpu.scheduling/claim": claim})
            create(PODS.format("default"), pod)
    eventually(all_bound, f"all in gangs of {size} are bound", 300)
    spent = (settled() - before) / 1e3 / PODS_EACH
    read = (readings() - read) / PODS_EACH
    print(f"# gangs of {size}: a member takes {spent:.0f} us of CPU, is read {read:.2f} times")
    sys.stdout.flush()
    clear()
    return spent, read


@test
def a_member_of_a_large_gang_costs_no_more_than_one_of_a_small_gang():
    spent = {size: spend(size) for size in SIZES}
    ratio = spent[512][0] / spent[16][0]
    print(f"# 512 to 16: {ratio:.2f}")
    check(ratio <= RATIO, f"a member costs {ratio:.2f} times as much: {spent}")
    check(all(read <= READINGS for _, read in spent.values()), f"read too often: {spent}")


if __name__ == "__main__":
    sys.exit(play(prepare=prepare))
