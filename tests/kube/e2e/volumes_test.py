#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods with volumes, with the real controllers of volumes beside the scheduler.

cluster: --nodes 3 --gpus 4 --history --controllers=*
"""
import contextlib
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, main, test  # noqa: E402
from harness.client import as_identity  # noqa: E402
from harness.scene import REPORTS, report, unreport  # noqa: E402
from harness.scheduler import (  # noqa: E402
    MERGE,
    PODS,
    Scheduler,
    create,
    delete_pod,
    delete_pods,
    entries,
    entries_of,
    get_pod,
    install_kinds,
    make_pod,
    pod_object,
    scheduling,
    wait_bound,
    wait_gone,
    wait_message,
)

ADMIN = as_identity("admin")
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
GPU_CLAIMS = "/apis/gpu.scheduling/v1/namespaces/default/gpuclaims"
SELECTED = "volume.kubernetes.io/selected-node"
DRIVER = "disk.example"
FINALIZER = "example.com/tracking"
QUIET_S = 3
# Fewer would mean that the scheduler does not do what is to be interrupted.
WRITES_MIN = 4
WRITES_MAX = 40


def prepare():
    """Classes of local disks and of such as are made: both wait for their first consumer."""
    install_kinds()
    none = "kubernetes.io/no-provisioner"
    for name, provisioner in (("local", none), ("last", none), ("made", DRIVER)):
        create(
            "/apis/storage.k8s.io/v1/storageclasses",
            {
                "metadata": {"name": name},
                "provisioner": provisioner,
                "volumeBindingMode": "WaitForFirstConsumer",
            },
        )


def make_disk(name, node, storage_class="local"):
    """A volume on one node."""
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "local": {"path": "/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
    }
    return create("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": spec})


def make_claim(name, storage_class="local", mode="ReadWriteOnce"):
    """A claim for such a volume."""
    spec = {
        "accessModes": [mode],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return create(CLAIMS, {"metadata": {"name": name}, "spec": spec})


def wait_selected(name):
    """Until a node was selected for the claim; its name."""
    path = f"{CLAIMS}/{name}"
    return eventually(
        lambda: ADMIN.get(path).json["metadata"].get("annotations", {}).get(SELECTED),
        f"a node is selected for {name}",
    )


def provision(name, mode="ReadWriteOnce", nodes=None):
    """What a provisioner does for a claim for which a node was selected."""
    uid = ADMIN.get(f"{CLAIMS}/{name}").json["metadata"]["uid"]
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": [mode],
        "storageClassName": "made",
        "claimRef": {"namespace": "default", "name": name, "uid": uid},
        "csi": {"driver": DRIVER, "volumeHandle": f"handle-{name}"},
    }
    if nodes:
        here = {"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}
        terms = [{"matchExpressions": [here]}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    metadata = {"name": f"made-{name}"}
    metadata["annotations"] = {"pv.kubernetes.io/provisioned-by": DRIVER}
    return create("/api/v1/persistentvolumes", {"metadata": metadata, "spec": spec})


def uses(claim):
    """The volumes of a pod that uses the claim."""
    return [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]


@test
def a_pod_goes_where_its_volume_can_be_and_takes_it_along():
    with scheduling():
        make_disk("disk-2", "gpu-2")
        make_claim("data")
        make_pod("writer", gpus=2, volumes=uses("data"))
        equal(wait_bound("writer")["spec"]["nodeName"], "gpu-2", "node")
        claim = ADMIN.get(f"{CLAIMS}/data").json
        equal((claim["status"]["phase"], claim["spec"]["volumeName"]), ("Bound", "disk-2"))
        # The claim is bound by now: whoever uses it goes there too.
        make_pod("reader", gpus=1, volumes=uses("data"))
        equal(wait_bound("reader")["spec"]["nodeName"], "gpu-2", "node")


@test
def a_pod_waits_for_its_claim_and_for_a_volume():
    with scheduling():
        make_pod("early", gpus=1, volumes=uses("later"))
        known = '0/3 nodes are available: persistentvolumeclaim "later" not found.'
        equal(wait_message("early", "later"), known)
        make_claim("later")
        wait_message("early", "didn't find available persistent volumes to bind")
        equal(entries_of(get_pod("early")), [], "locks")
        make_disk("disk-1", "gpu-1")
        equal(wait_bound("early")["spec"]["nodeName"], "gpu-1", "node")


@test
def two_pods_never_get_one_volume():
    with scheduling():
        make_disk("disk-0", "gpu-0")
        for number in range(2):
            make_claim(f"one-{number}")
            make_pod(f"rival-{number}", gpus=1, volumes=uses(f"one-{number}"))
        bound = eventually(
            lambda: [n for n in range(2) if get_pod(f"rival-{n}")["spec"].get("nodeName")],
            "one is bound",
        )
        wait_message(f"rival-{1 - bound[0]}", "didn't find available persistent volumes")
        make_disk("disk-0b", "gpu-0")
        wait_bound(f"rival-{1 - bound[0]}")


@test
def a_volume_is_made_on_the_node_that_was_chosen():
    with scheduling():
        make_claim("fresh", "made")
        make_pod("first", gpus=2, volumes=uses("fresh"))
        node = wait_selected("fresh")
        equal(get_pod("first")["spec"].get("nodeName"), None, "node, before there is a volume")
        provision("fresh", nodes=[node])
        equal(wait_bound("first")["spec"]["nodeName"], node, "node")


def give_up(name):
    """What a provisioner does that cannot make the volume there."""
    patch = {"metadata": {"annotations": {SELECTED: None}}}
    equal(ADMIN.request("PATCH", f"{CLAIMS}/{name}", patch, MERGE).code, 200)


@test
def a_provisioner_that_gives_up_has_the_pod_decided_again():
    with scheduling():
        make_claim("hard", "made")
        make_pod("stubborn", gpus=1, volumes=uses("hard"))
        wait_selected("hard")
        give_up("hard")
        node = wait_selected("hard")
        provision("hard", nodes=[node])
        equal(wait_bound("stubborn")["spec"]["nodeName"], node, "node")


@test
def a_pod_that_is_deleted_meanwhile_leaves_no_lock():
    with scheduling():
        make_claim("idle", "made")
        pod = make_pod("brief", gpus=4, volumes=uses("idle"))
        wait_selected("idle")
        delete_pod("brief")
        eventually(lambda: not entries_of(pod), "its locks are gone")


@contextlib.contextmanager
def reported():
    """Agents report what the nodes have."""
    for number in range(3):
        report(f"gpu-{number}", gpus=4)
    yield
    unreport()


@test
def a_gpu_that_turns_bad_meanwhile_has_the_pod_decided_again():
    with reported(), scheduling() as scheduler:
        make_claim("slow", "made")
        make_pod("patient", gpus=4, volumes=uses("slow"))
        node = wait_selected("slow")
        report(node, gpus=4, each={2: {"health": "Unhealthy"}})
        version = int(ADMIN.get(f"{REPORTS}/{node}").json["metadata"]["resourceVersion"])
        eventually(
            lambda: scheduler.version("gpunodestatuses.gpu.scheduling") >= version,
            "the scheduler knows",
        )
        provision("slow")
        bound = wait_bound("patient")["spec"]["nodeName"]
        check(bound != node, f"bound to {node}, of which a GPU is unhealthy")


def make_pair(name):
    """A claim for two pods that start together or not at all; their annotations."""
    spec = {"devices": {"count": 4}, "gangRef": {"name": name}, "gangMinMembers": 2}
    kind = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim"}
    create(GPU_CLAIMS, {**kind, "metadata": {"name": name}, "spec": spec})
    return {"gpu.scheduling/claim": name}


@test
def of_a_gang_nobody_is_bound_before_all_have_their_volumes():
    with scheduling():
        annotations = make_pair("half")
        make_claim("half", "made")
        make_pod("half-0", annotations=annotations)
        make_pod("half-1", annotations=annotations, volumes=uses("half"))
        wait_selected("half")
        give_up("half")
        for number in range(2):
            wait_message(f"half-{number}", "its gang lacks volumes of half-1", "provisioning")
        wait_selected("half")
        equal(get_pod("half-0")["spec"].get("nodeName"), None, "node of the first")
        provision("half")
        for number in range(2):
            wait_bound(f"half-{number}")


def make_tracked(name, **kwargs):
    """A pod that is not gone when it is deleted: a Job's has such a finalizer."""
    pod = pod_object(name, **kwargs)
    pod["metadata"]["finalizers"] = [FINALIZER]
    return create(PODS.format("default"), pod)


def untrack(name):
    """Nobody needs it any more."""
    path = f"{PODS.format('default')}/{name}"
    patch = {"metadata": {"finalizers": None}}
    equal(ADMIN.request("PATCH", path, patch, MERGE).code, 200)
    wait_gone(name)


@test
def a_pod_that_is_being_deleted_meanwhile_holds_nothing():
    phases = set()
    with scheduling():
        for turn in range(2):
            name = f"lost-{turn}"
            make_claim(name, "made")
            pod = make_tracked(name, gpus=4, volumes=uses(name))
            wait_selected(name)
            equal(len(entries_of(pod)), 1, "locks")
            delete_pod(name)
            eventually(lambda: not entries(), "its locks are gone")
            phases.add(get_pod(name)["status"]["phase"])
            untrack(name)
    # Every 20 s a controller has such pods fail, and then it is no wonder.
    check("Pending" in phases, f"it was {phases} by then")


@test
def a_gang_of_which_one_is_being_deleted_holds_nothing():
    with scheduling():
        annotations = make_pair("torn")
        make_claim("torn", "made")
        pods = [
            make_tracked("torn-0", annotations=annotations),
            make_pod("torn-1", annotations=annotations, volumes=uses("torn")),
        ]
        wait_selected("torn")
        equal([len(entries_of(pod)) for pod in pods], [1, 1], "locks")
        delete_pod("torn-0")
        eventually(lambda: not entries(), "their locks are gone")
        wait_message("torn-1", "waits for 1 more of its 2 members")
        check(get_pod("torn-0"), "it is gone itself")
        # Another may take its place while it is there.
        make_pod("torn-2", annotations=annotations)
        provision("torn")
        for number in (1, 2):
            wait_bound(f"torn-{number}")
        untrack("torn-0")


@test
def a_gang_shares_a_volume_that_is_made_for_its_first():
    with scheduling():
        make_claim("shared", "made", "ReadWriteMany")
        annotations = make_pair("member")
        for number in range(2):
            make_pod(f"member-{number}", annotations=annotations, volumes=uses("shared"))
        wait_selected("shared")
        provision("shared", "ReadWriteMany")
        nodes = {wait_bound(f"member-{number}")["spec"]["nodeName"] for number in range(2)}
        equal(len(nodes), 2, f"nodes of {nodes}")


@test
def a_claim_for_one_pod_alone_waits_for_that_pod():
    with scheduling():
        make_claim("alone", "made", "ReadWriteOncePod")
        make_pod("owner", gpus=1, volumes=uses("alone"))
        wait_selected("alone")
        provision("alone", "ReadWriteOncePod")
        wait_bound("owner")
        make_pod("heir", gpus=1, volumes=uses("alone"))
        wait_message("heir", "ReadWriteOncePod access mode already in-use by another pod")
        delete_pod("owner")
        wait_bound("heir")


@test
def a_node_attaches_no_more_than_it_can():
    drivers = [{"name": DRIVER, "nodeID": "a", "topologyKeys": None, "allocatable": {"count": 1}}]
    for number in range(3):
        body = {"metadata": {"name": f"gpu-{number}"}, "spec": {"drivers": drivers}}
        create("/apis/storage.k8s.io/v1/csinodes", body)
    with scheduling():
        for number in range(4):
            make_claim(f"each-{number}", "made")
            make_pod(f"each-{number}", gpus=1, volumes=uses(f"each-{number}"))
            if number < 3:
                wait_selected(f"each-{number}")
                provision(f"each-{number}")
                wait_bound(f"each-{number}")
        wait_message("each-3", "3 node(s) exceed max volume count")
        nodes = {get_pod(f"each-{number}")["spec"]["nodeName"] for number in range(3)}
        equal(len(nodes), 3, f"nodes of {nodes}")
        delete_pod("each-1")
        wait_selected("each-3")
        provision("each-3")
        wait_bound("each-3")


def is_selected(name):
    """Whether a node was selected for the claim."""
    return SELECTED in ADMIN.get(f"{CLAIMS}/{name}").json["metadata"].get("annotations", {})


def crash_after(writes):
    """Whether a scheduler that dies after so many writes got that far with the two pods."""
    scheduler = Scheduler("--stop-after-writes", writes, name=f"crash-{writes}")
    since = [None]

    def over():
        if scheduler.process.poll() is not None:
            return True
        if "nodeName" not in get_pod("disk")["spec"] or not is_selected(f"made-{writes}"):
            since[0] = None
            return False
        since[0] = since[0] or time.monotonic()
        return time.monotonic() - since[0] > QUIET_S

    eventually(over, f"{scheduler.name} has died or is done", 90)
    if scheduler.process.poll() is None:
        scheduler.stop()
        return False
    scheduler.wait_end()
    return True


@test
def whatever_write_was_the_last_the_volumes_come_with_their_pods():
    for writes in range(1, WRITES_MAX):
        disk, made = f"last-{writes}", f"made-{writes}"
        make_disk(disk, "gpu-2", "last")
        make_claim(disk, "last")
        make_claim(made, "made")
        make_pod("disk", gpus=1, volumes=uses(disk))
        make_pod("made", gpus=1, volumes=uses(made))
        died = crash_after(writes)
        with Scheduler(name=f"after-{writes}"):
            equal(wait_bound("disk")["spec"]["nodeName"], "gpu-2")
            equal(ADMIN.get(f"{CLAIMS}/{disk}").json["spec"]["volumeName"], disk)
            node = wait_selected(made)
            provision(made, nodes=[node])
            equal(wait_bound("made")["spec"]["nodeName"], node)
            for name in ("disk", "made"):
                equal(len(entries_of(get_pod(name))), 1, f"locks of {name}")
            delete_pods()
            eventually(lambda: not entries(), "all locks are gone")
        if not died:
            break
    check(WRITES_MIN <= writes < WRITES_MAX - 1, f"{writes} writes")
    print(f"# {writes} writes")


if __name__ == "__main__":
    prepare()
    sys.exit(main())
