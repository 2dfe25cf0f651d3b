#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods that cannot be placed as things are, and the one change that mends it: nothing else
happens, so it is by this that they are decided on again.

cluster: --nodes 4 --gpus 8 --history
"""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import equal, eventually, test  # noqa: E402
from harness.scene import (  # noqa: E402
    ADMIN,
    CLAIMS,
    MERGE,
    OWNERS,
    PODS,
    add_node,
    claimed,
    make_claim,
    make_owner,
    nodes_of,
    play,
    scene,
)
from harness.scheduler import (  # noqa: E402
    create,
    delete_pod,
    make_pod,
    wait_bound,
    wait_message,
)

COUNT = "topology.scheduler/gpu-count"
HOST = "kubernetes.io/hostname"
STORAGE = "/apis/storage.k8s.io/v1"
VOLUMES = "/api/v1/namespaces/default/persistentvolumeclaims"
SELECTED = "volume.kubernetes.io/selected-node"


def change(path, body, kind=MERGE):
    """Patch an object."""
    answer = ADMIN.request("PATCH", path, body, kind)
    equal(answer.code, 200, str(answer.text))


def annotate(kind, name, **annotations):
    """Change an owner."""
    change(f"{OWNERS[kind]}/{name}", {"metadata": {"annotations": annotations}})


def change_pod(name, body, kind=MERGE, part=""):
    """Change a pod."""
    change(f"{PODS.format('default')}/{name}{part}", body, kind)


def selected(claim):
    """The node on which its volume is to be made, or None."""
    metadata = ADMIN.get(f"{VOLUMES}/{claim}").json["metadata"]
    return metadata.get("annotations", {}).get(SELECTED)


def near(namespaces=None, **labels):
    """Affinity to pods with these labels on the same node."""
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOST, **(namespaces or {})}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@test
def the_size_of_a_gang():
    with scene():
        make_claim("team", {"count": 1}, gangRef="team")
        for number in range(2):
            claimed(f"team-{number}", "team")
        wait_message("team-0", "the size of gang team is not known")
        change(f"{CLAIMS}/team", {"spec": {"gangMinMembers": 2}})
        nodes_of("team-0", "team-1")


@test
def a_count_that_does_not_divide():
    with scene():
        for name, count, members in (("count", "7", 2), ("members", "3", 3)):
            owner = make_owner("Job", name, annotations={COUNT: count}, parallelism=2)
            for number in range(members):
                make_pod(f"{name}-{number}", owners=[owner], restartPolicy="Never")
            wait_message(f"{name}-0", f"{COUNT} of the Job is {count}")
        annotate("Job", "count", **{COUNT: "8"})
        change(f"{OWNERS['Job']}/members", {"spec": {"parallelism": 3}})
        nodes_of("count-0", "count-1", "members-0", "members-1", "members-2")


@test
def dialects_that_disagree():
    with scene():
        deployment = make_owner("Deployment", "serve", annotations={COUNT: "3"}, replicas=1)
        replicas = make_owner("ReplicaSet", "serve-5d9c", owner=deployment, replicas=1)
        make_pod("serve-5d9c-x", gpus=2, owners=[replicas])
        wait_message("serve-5d9c-x", f"{COUNT} comes to 3 GPUs a pod, but")
        make_claim("three", {"count": 3})
        claimed("map-0", "three", annotations={"gpu-scheduling-map": "0=gpu-3:1,2"})
        wait_message("map-0", "line 1 gives 2 GPUs, but GpuClaim three asks for 3")
        annotate("Deployment", "serve", **{COUNT: "2"})
        wait_bound("serve-5d9c-x")
        change(f"{CLAIMS}/three", {"spec": {"devices": {"count": 2}}})
        wait_bound("map-0")


@test
def what_a_pod_tolerates():
    with scene():
        add_node("kept", gpus=2, taints=[{"key": "k", "effect": "NoSchedule"}])
        make_pod("tolerates", gpus=1, nodeSelector={HOST: "kept"})
        wait_message("tolerates", "1 node(s) had untolerated taint(s)")
        more = {"key": "k", "operator": "Exists"}
        patch = [{"op": "add", "path": "/spec/tolerations/-", "value": more}]
        change_pod("tolerates", patch, "application/json-patch+json")
        wait_bound("tolerates")


@test
def labels_of_pods_and_namespaces():
    words = "4 node(s) didn't match pod affinity rules"
    with scene():
        make_pod("self", affinity=near(app="self"))
        wait_message("self", words)
        change_pod("self", {"metadata": {"labels": {"app": "self"}}})
        wait_bound("self")
        make_pod("other", affinity=near(app="renamed"))
        wait_message("other", words)
        change_pod("self", {"metadata": {"labels": {"app": "renamed"}}})
        wait_bound("other")
        create("/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})
        make_pod("there", namespace="elsewhere", labels={"app": "there"})
        wait_bound("there", namespace="elsewhere")
        of_team = {"namespaceSelector": {"matchLabels": {"team": "a"}}}
        make_pod("far", affinity=near(of_team, app="there"))
        wait_message("far", words)
        change("/api/v1/namespaces/elsewhere", {"metadata": {"labels": {"team": "a"}}})
        wait_bound("far")
        delete_pod("there", namespace="elsewhere")


@test
def a_pod_that_is_made_smaller():
    with scene():
        add_node("small", gpus=0)
        on_small = {"nodeSelector": {HOST: "small"}}
        make_pod("shrinks", limits={"cpu": "12"}, **on_small)
        wait_bound("shrinks")
        make_pod("waits", limits={"cpu": "8"}, **on_small)
        wait_message("waits", "1 Insufficient cpu")
        less = {"limits": {"cpu": "4"}, "requests": {"cpu": "4"}}
        body = {"spec": {"containers": [{"name": "main", "resources": less}]}}
        change_pod("shrinks", body, "application/strategic-merge-patch+json", "/resize")
        wait_bound("waits")


@test
def storage():
    with scene():
        spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "late"}
        spec["resources"] = {"requests": {"storage": "1Gi"}}
        create(VOLUMES, {"metadata": {"name": "data"}, "spec": spec})
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        make_pod("writer", gpus=1, volumes=[volume])
        wait_message("writer", "pod has unbound immediate PersistentVolumeClaims")
        driver = {"storageCapacity": True, "attachRequired": False}
        create(f"{STORAGE}/csidrivers", {"metadata": {"name": "disk.example"}, "spec": driver})
        late = {"provisioner": "disk.example", "volumeBindingMode": "WaitForFirstConsumer"}
        create(f"{STORAGE}/storageclasses", {"metadata": {"name": "late"}, **late})
        wait_message("writer", "4 node(s) did not have enough free storage")
        capacities = f"{STORAGE}/namespaces/default/csistoragecapacities"
        there = {"storageClassName": "late", "nodeTopology": {"matchLabels": {HOST: "gpu-2"}}}
        create(capacities, {"metadata": {"name": "room"}, "capacity": "1Mi", **there})
        change(f"{capacities}/room", {"capacity": "5Gi"})
        eventually(lambda: selected("data") == "gpu-2", "the node with room is selected")


if __name__ == "__main__":
    sys.exit(play())
