#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods with volumes, with the real controllers of volumes beside the scheduler.

cluster: --nodes 3 --gpus 4 --history --controllers=*
"""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import equal, eventually, main, test  # noqa: E402
from harness.client import as_identity  # noqa: E402
from harness.scheduler import (  # noqa: E402
    create,
    entries_of,
    get_pod,
    install_kinds,
    make_pod,
    scheduling,
    wait_bound,
    wait_message,
)

ADMIN = as_identity("admin")
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


def prepare():
    """A class of local disks, which wait for their first consumer."""
    install_kinds()
    create(
        "/apis/storage.k8s.io/v1/storageclasses",
        {
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )


def make_disk(name, node):
    """A volume on one node."""
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "local": {"path": "/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
    }
    return create("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": spec})


def make_claim(name):
    """A claim for such a volume."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return create(CLAIMS, {"metadata": {"name": name}, "spec": spec})


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
        wait_message("early", 'persistentvolumeclaim "later" not found')
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


if __name__ == "__main__":
    prepare()
    sys.exit(main())
