#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What owns a pod may be heard of after the pod, or never.

cluster: --nodes 2 --gpus 8 --history
"""
import contextlib
import os
import sys
import uuid
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import equal, eventually, main, test  # noqa: E402
from harness.client import as_identity  # noqa: E402
from harness.proxy import FaultProxy  # noqa: E402
from harness.scene import OWNERS, delete_all, make_owner, unbound  # noqa: E402
from harness.scheduler import (  # noqa: E402
    MERGE,
    PODS,
    Scheduler,
    delete_pods,
    entries,
    get_pod,
    gpus_of,
    install_kinds,
    make_pod,
    scheduling,
    wait_bound,
    wait_message,
)

ADMIN = as_identity("admin")
UPSTREAM = Path(os.environ["KUBE_DIR"]) / "scheduler.kubeconfig"
MAP = "gpu-scheduling-map"
COUNT = "topology.scheduler/gpu-count"
SLOW_S = 120


def place(name, timeout_s=SLOW_S):
    """Where it is: node and ids."""
    pod = wait_bound(name, timeout_s=timeout_s)
    return pod["spec"]["nodeName"], gpus_of(pod)


def nobody(kind, name, **more):
    """A reference to what was never there."""
    version = {"Job": "batch/v1"}.get(kind, "apps/v1")
    reference = {"apiVersion": version, "kind": kind, "name": name, "uid": str(uuid.uuid4())}
    return {**reference, "controller": True, **more}


def change(path, body):
    """A merge patch that is accepted."""
    answer = ADMIN.request("PATCH", path, body, MERGE)
    equal(answer.code, 200, str(answer))


def disown(path):
    """Nothing owns it any more."""
    change(path, {"metadata": {"ownerReferences": None}})


def clear():
    """No owner is left of what was before."""
    delete_pods()
    for path in OWNERS.values():
        delete_all(path)


@contextlib.contextmanager
def deaf_to(resource, kind):
    """A scheduler whose watch of a resource was cut and cannot be resumed before the proxy's
    faults are off."""
    script = f"""
on verb=watch resource={resource} nth=1 cut after=events:2
on verb=watch resource={resource} answer=503
"""
    clear()
    with FaultProxy(UPSTREAM, script) as proxy:
        with Scheduler(kubeconfig=proxy.kubeconfig):
            # The first event ends the list, where that is a stream; with these it is cut.
            for name in ("first", "second"):
                make_owner(kind, name, **({} if kind == "Job" else {"replicas": 0}))
            eventually(
                lambda: proxy.control("stats")["faults"].get("answer"),
                "the watch is refused",
                SLOW_S,
            )
            yield proxy
            proxy.control("off")
            delete_pods()
            eventually(lambda: not entries(), "all locks are gone", SLOW_S)


@test
def a_pod_waits_for_its_replica_set():
    with deaf_to("replicasets", "ReplicaSet") as proxy:
        lines = {MAP: "0=gpu-1:2\n1=gpu-1:3\n"}
        deployment = make_owner("Deployment", "serve", annotations=lines, replicas=2)
        replicas = make_owner("ReplicaSet", "serve-5d9c", owner=deployment, replicas=2)
        for name in "ab":
            make_pod(f"serve-5d9c-{name}", owners=[replicas])
            wait_message(f"serve-5d9c-{name}", "its ReplicaSet default/serve-5d9c is not there")
        make_pod("alone", gpus=1)
        wait_bound("alone")
        unbound("serve-5d9c-a")
        unbound("serve-5d9c-b")
        proxy.control("off")
        both = sorted(place(f"serve-5d9c-{name}") for name in "ab")
        equal(both, [("gpu-1", [2]), ("gpu-1", [3])])


@test
def a_pod_waits_for_the_deployment_of_its_replica_set():
    with deaf_to("deployments", "Deployment") as proxy:
        lines = {MAP: "0=gpu-1:5\n"}
        deployment = make_owner("Deployment", "serve", annotations=lines, replicas=1)
        replicas = make_owner("ReplicaSet", "serve-5d9c", owner=deployment, replicas=1)
        make_pod("serve-5d9c-a", owners=[replicas])
        wait_message("serve-5d9c-a", "Deployment default/serve, which owns its ReplicaSet")
        unbound("serve-5d9c-a")
        proxy.control("off")
        equal(place("serve-5d9c-a"), ("gpu-1", [5]))


@test
def a_gang_has_the_size_of_a_job_that_comes_late():
    with deaf_to("jobs", "Job") as proxy:
        job = make_owner("Job", "train", annotations={COUNT: "8"}, parallelism=2, completions=2)
        make_pod("train-0", owners=[job], restartPolicy="Never")
        wait_message("train-0", "its Job default/train is not there")
        proxy.control("off")
        wait_message("train-0", "waits for 1 more of its 2 members", timeout_s=SLOW_S)
        unbound("train-0")
        make_pod("train-1", owners=[job], restartPolicy="Never")
        equal([len(place(f"train-{number}")[1]) for number in range(2)], [4, 4])


@test
def a_pod_of_nobody_waits_until_it_has_no_owner():
    clear()
    with scheduling():
        kinds = ("ReplicaSet", "StatefulSet", "Job", "Deployment")
        for number, kind in enumerate(kinds):
            make_pod(f"lost-{number}", owners=[nobody(kind, "gone")])
        for number, kind in enumerate(kinds):
            said = wait_message(f"lost-{number}", f"its {kind} default/gone is not there (yet): ")
            equal("metadata.ownerReferences" in said, True, said)
        # It was made anew, and is another.
        make_owner("ReplicaSet", "gone", replicas=1)
        wait_message("lost-0", "is not there (yet), only another one of that name")
        for number in range(len(kinds)):
            unbound(f"lost-{number}")
            disown(f"{PODS.format('default')}/lost-{number}")
            wait_bound(f"lost-{number}")


@test
def owners_that_nobody_follows_are_not_waited_for():
    clear()
    with scheduling():
        owners = [
            nobody("Job", "other", apiVersion="example.com/v1"),
            nobody("CronJob", "other", apiVersion="batch/v1"),
            nobody("ReplicaSet", "other", controller=False),
        ]
        for number, owner in enumerate(owners):
            make_pod(f"kept-{number}", gpus=1, owners=[owner])
            wait_bound(f"kept-{number}")


@test
def a_replica_set_without_its_deployment_is_mended():
    clear()
    with scheduling():
        replicas = make_owner(
            "ReplicaSet", "serve-5d9c", owner=nobody("Deployment", "serve"), replicas=1
        )
        make_pod("serve-5d9c-x", gpus=1, owners=[replicas])
        wait_message(
            "serve-5d9c-x",
            "Deployment default/serve, which owns its ReplicaSet serve-5d9c, is not there (yet)",
        )
        unbound("serve-5d9c-x")
        disown(f"{OWNERS['ReplicaSet']}/serve-5d9c")
        wait_bound("serve-5d9c-x")


@test
def a_bound_pod_keeps_its_gpus_when_its_owner_is_gone():
    lines = {MAP: "0=gpu-1:0,1,2,3,4\n1=gpu-0:0\n"}
    clear()
    with scheduling() as scheduler:
        owner = make_owner("StatefulSet", "web", annotations=lines, replicas=1)
        make_pod("web-0", owners=[owner])
        equal(place("web-0"), ("gpu-1", [0, 1, 2, 3, 4]))
        make_pod("web-1", owners=[owner], schedulingGates=[{"name": "example.com/later"}])
        answer = ADMIN.delete(f"{OWNERS['StatefulSet']}/web", {"propagationPolicy": "Orphan"})
        equal(answer.code, 200, str(answer))
        finish = {"metadata": {"finalizers": None}}  # nobody plays the garbage collector
        change(f"{OWNERS['StatefulSet']}/web", finish)
        scheduler.stop()
        with Scheduler():
            change(f"{PODS.format('default')}/web-1", {"spec": {"schedulingGates": None}})
            wait_message("web-1", "its StatefulSet default/web is not there (yet)")
            unbound("web-1")
            there = {"kubernetes.io/hostname": "gpu-1"}
            make_pod("four", gpus=4, nodeSelector=there)
            wait_message("four", "GPU")
            make_pod("three", gpus=3, nodeSelector=there)
            equal(place("three"), ("gpu-1", [5, 6, 7]))
            equal(gpus_of(get_pod("web-0")), [0, 1, 2, 3, 4])
            delete_pods()
            eventually(lambda: not entries(), "all locks are gone", SLOW_S)


if __name__ == "__main__":
    sys.exit(main(install_kinds))
