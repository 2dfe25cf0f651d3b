#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every dialect, a gang that has to wait and a race for the last GPUs, behind a faulty network.

FAULTY_SEED chooses which requests fail.

cluster: --nodes 4 --gpus 8 --history
"""
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.chaos import settle  # noqa: E402
from harness.check import check, equal, eventually, main, test  # noqa: E402
from harness.faults import behind_faults  # noqa: E402
from harness.scene import (  # noqa: E402
    claimed,
    hold_nothing,
    make_claim,
    make_owner,
    report,
    visible,
)
from harness.scheduler import (  # noqa: E402
    delete_pod,
    get_pod,
    gpus_of,
    install_kinds,
    make_pod,
    wait_bound,
    wait_message,
)

SEED = int(os.environ.get("FAULTY_SEED") or 5)
MAP = "gpu-scheduling-map"
COUNT = "topology.scheduler/gpu-count"
SLOW_S = 120


def containers(**limits):
    """Containers by these limits."""
    return [
        {"name": name, "image": "example/train", "resources": {"limits": each}}
        for name, each in limits.items()
    ]


def place(name):
    """Where it is: node and ids."""
    pod = get_pod(name)
    return pod["spec"]["nodeName"], gpus_of(pod)


def speak():
    """One workload of each dialect; the names of their pods."""
    slices = [{"uuid": f"MIG-{start}", "profile": "3g.40gb", "start": start} for start in (0, 4)]
    report("gpu-3", each={7: {"migEnabled": True, "migDevices": slices}})
    make_claim("wishes", {"count": 2, "policy": "preferIds", "preferIds": [6, 3]})
    claimed("claim", "wishes", nodeSelector={"kubernetes.io/hostname": "gpu-1"})
    for number in range(2):
        make_pod(f"map-{number}", annotations={MAP: "0=gpu-2:0,1\n1=gpu-2:1\n"})
    lines = {MAP: "0=gpu-2:2\n1=gpu-2:3\n"}
    deployment = make_owner("Deployment", "serve", annotations=lines, replicas=2)
    replicas = make_owner("ReplicaSet", "serve-5d9c", owner=deployment, replicas=2)
    job = make_owner("Job", "train", annotations={COUNT: "8"}, parallelism=2, completions=2)
    for number in range(2):
        make_pod(f"serve-5d9c-{number}{number}", owners=[replicas])
        make_pod(f"train-{number}", owners=[job], restartPolicy="Never")
    limits = containers(
        card={"nvidia.com/gpu": "1"},
        share={"elasticgpu.io/gpu-core": "50", "elasticgpu.io/gpu-memory": "1000"},
        quarter={"elasticgpu.io/qgpu-core": "25"},
        whole={"elasticgpu.io/pgpu": "1"},
        slice={"nvidia.com/mig-3g.40gb": "1"},
    )
    make_pod("limits", containers=limits)
    names = ["claim", "map-0", "map-1", "serve-5d9c-00", "serve-5d9c-11", "train-0", "train-1"]
    return [*names, "limits"]


@test
def every_dialect_is_understood():
    with behind_faults(1, SEED):
        names = speak()
        print(f"# settled after {settle(names):.1f} s, faults and all", flush=True)
        equal(place("claim"), ("gpu-1", [3, 6]))
        equal([place("map-0"), place("map-1")], [("gpu-2", [0, 1]), ("gpu-2", [1])])
        both = sorted(place(f"serve-5d9c-{number}") for number in ("00", "11"))
        equal(both, [("gpu-2", [2]), ("gpu-2", [3])])
        equal([len(place(f"train-{number}")[1]) for number in range(2)], [4, 4])
        seen = {name: visible(get_pod("limits"), name) for name in ("card", "whole", "slice")}
        check(seen["slice"].startswith("MIG-") and seen["card"] != seen["whole"], f"{seen}")


@test
def a_gang_waits_for_room_and_holds_nothing():
    with behind_faults(1, SEED + 1):
        names = [f"small-{number}" for number in range(4)]
        for name in names:
            make_pod(name, gpus=5)
        settle(names)
        make_claim("large", {"count": 8}, gangRef="large", gangMinMembers=3)
        for number in range(3):
            claimed(f"large-{number}", "large")
        wait_message("large-0", "gang", timeout_s=SLOW_S)
        hold_nothing("large-0", "large-1", "large-2")
        for name in names:
            delete_pod(name)
        settle([f"large-{number}" for number in range(3)])


@test
def two_pods_race_for_the_last_gpus():
    with behind_faults(1, SEED + 2):
        names = [f"large-{number}" for number in range(3)]
        for name in names:
            make_pod(name, gpus=8)
        settle(names)
        for name in ("a", "b"):
            make_pod(name, gpus=7)
        won = eventually(
            lambda: next((n for n in "ab" if get_pod(n)["spec"].get("nodeName")), None),
            "one has them",
            SLOW_S,
        )
        lost = "b" if won == "a" else "a"
        wait_message(lost, "Insufficient free GPUs", timeout_s=SLOW_S)
        delete_pod(won)
        wait_bound(lost, timeout_s=SLOW_S)


if __name__ == "__main__":
    sys.exit(main(install_kinds))
