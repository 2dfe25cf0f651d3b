#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GpuClaims: every field of them, what contradicts, and what people see of them.

cluster: --nodes 4 --gpus 8 --history
"""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, kubectl, test  # noqa: E402
from harness.scene import (  # noqa: E402
    ADMIN,
    CLAIMS,
    MERGE,
    PODS,
    claim_status,
    claimed,
    decision,
    extra_node,
    label_node,
    make_claim,
    nodes_of,
    play,
    report,
    scene,
    unbound,
    visible,
    wait_claim,
)
from harness.scheduler import (  # noqa: E402
    create,
    delete_pod,
    gpus_of,
    make_pod,
    pod_object,
    wait_bound,
    wait_message,
)

ON = {"nodeSelector": {"kubernetes.io/hostname": "gpu-1"}}
# Two islands of four; inside of one, cards 4 to 7 are joined by twice as much.
ISLANDS = [
    [0 if a == b else (900 if a > 3 else 400) if a // 4 == b // 4 else 32 for b in range(8)]
    for a in range(8)
]
PEERS = {a: {"nvlinkPeers": [b for b in range(8) if b != a and a // 4 == b // 4]} for a in range(8)}


def busy(*ids):
    """These GPUs of gpu-1 are taken."""
    line = "0=gpu-1:" + ",".join(map(str, ids))
    make_pod("busy-0", annotations={"gpu-scheduling-map": line})
    equal(gpus_of(wait_bound("busy-0")), list(ids))


@test
def policies_choose_the_gpus():
    with scene():
        report("gpu-1", each=PEERS, linksGBps=ISLANDS)
        busy(1, 6)
        make_claim("runs", {"count": 2, "policy": "contiguous"})
        make_claim("apart", {"count": 2, "policy": "spread"})
        make_claim("wishes", {"count": 2, "policy": "preferIds", "preferIds": [6, 31, 7, 0, 2]})
        claimed("wishes", "wishes", **ON)
        equal(gpus_of(wait_bound("wishes")), [0, 7], "the first of the wishes that are free")
        delete_pod("wishes")
        claimed("runs", "runs", **ON)
        first, second = gpus_of(wait_bound("runs"))
        equal(second, first + 1, "the neighbour")
        claimed("apart", "apart", **ON)
        first, second = gpus_of(wait_bound("apart"))
        check(first // 4 != second // 4, f"{first} and {second} are of one island")


@test
def bandwidth_is_required_preferred_or_ignored():
    with scene():
        report("gpu-1", each=PEERS, linksGBps=ISLANDS)
        fast = {"minBandwidthGBps": 800}
        make_claim("required", {"count": 3}, topology={"mode": "Required", **fast})
        make_claim("preferred", {"count": 3}, topology={"mode": "Preferred", **fast})
        make_claim("ignored", {"count": 3}, topology={"mode": "Ignore", **fast})
        claimed("required", "required", **ON)
        check(set(gpus_of(wait_bound("required"))) <= {4, 5, 6, 7}, "not the fast ones")
        claimed("again", "required", **ON)
        wait_message("again", "0/4 nodes are available", "1 NVLink bandwidth below 800 GB/s")
        claimed("preferred", "preferred", **ON)
        wait_bound("preferred")
        delete_pod("required")
        wait_bound("again")
        delete_pod("preferred")
        claimed("ignored", "ignored", **ON)
        wait_bound("ignored")


@test
def shares_book_what_they_say_or_a_place():
    with scene(), extra_node("tiny", gpus=1):
        on_tiny = {"nodeSelector": {"kubernetes.io/hostname": "tiny"}}
        make_claim("half", {"count": 1, "exclusivity": "Shared", "core": 50, "memoryMiB": 40000})
        make_claim("memory", {"count": 1, "exclusivity": "Shared", "memoryMiB": 1500})
        make_claim("place", {"count": 1, "exclusivity": "Shared"})
        claimed("half-a", "half", **on_tiny)
        claimed("half-b", "half", **on_tiny)
        hold = decision(wait_bound("half-a"))["gpus"][0]
        equal((hold["coreMilli"], hold["memoryMiB"]), (500, 40000))
        wait_bound("half-b")
        claimed("half-c", "half", **on_tiny)
        wait_message("half-c", "0/5 nodes are available")
        # A little memory is left, and no core; who books memory alone needs no core.
        claimed("memory-a", "memory", **on_tiny)
        wait_bound("memory-a")
        claimed("memory-b", "memory", **on_tiny)
        wait_message("memory-b", "Insufficient GPU memory")
        delete_pod("half-a")
        wait_bound("half-c")
        wait_message("memory-b", "Insufficient GPU memory")
        for name in ("half-b", "half-c", "memory-b"):
            delete_pod(name)
        make_pod("whole", gpus=1, **on_tiny)
        wait_message("whole", "Insufficient free GPUs")
        delete_pod("memory-a")
        wait_bound("whole")
        delete_pod("whole")
        for number in range(8):
            claimed(f"place-{number}", "place", **on_tiny)
        for number in range(8):
            hold = decision(wait_bound(f"place-{number}"))["gpus"][0]
            equal((hold["coreMilli"], hold["memoryMiB"]), (0, 0))
        claimed("place-8", "place", **on_tiny)
        wait_message("place-8", "Too many pods on shared GPUs")
        make_pod("whole", gpus=1, **on_tiny)
        wait_message("whole", "Insufficient free GPUs")
        delete_pod("place-3")
        wait_bound("place-8")


def one_slice(start):
    """A card on which one small slice is made."""
    slices = [{"uuid": f"MIG-{start}", "profile": "1g.10gb", "start": start}]
    return {"migEnabled": True, "migDevices": slices}


@test
def slices_that_nobody_has_made_are_not_given_out():
    with scene():
        report("gpu-1", each={7: one_slice(6)})
        report("gpu-2", each={0: one_slice(3)})
        make_claim("small", {"count": 1, "exclusivity": "MIG", "migProfile": "1g.10gb"})
        for name in ("small-a", "small-b"):
            claimed(name, "small")
        seen = [visible(wait_bound(name)) for name in ("small-a", "small-b")]
        equal(sorted(seen), ["MIG-3", "MIG-6"])
        claimed("small-c", "small")
        wait_message("small-c", "2 Insufficient MIG slices of 1g.10gb")
        # Another one is made, by hand.
        more = one_slice(6)
        more["migDevices"] += one_slice(2)["migDevices"]
        report("gpu-1", each={7: more})
        equal(visible(wait_bound("small-c")), "MIG-2")


@test
def slices_come_from_gpus_in_mig_mode():
    slices = [
        {"uuid": f"MIG-{start}", "profile": "3g.40gb", "start": start} for start in (0, 4)
    ]
    with scene():
        report("gpu-1", each={7: {"migEnabled": True, "migDevices": slices}})
        make_claim("slice", {"count": 1, "exclusivity": "MIG", "migProfile": "3g.40gb"})
        make_claim("large", {"count": 1, "exclusivity": "MIG", "migProfile": "7g.80gb"})
        make_claim("strange", {"count": 1, "exclusivity": "MIG", "migProfile": "5g.55gb"})
        names = []
        for name in ("slice-a", "slice-b"):
            claimed(name, "slice")
            pod = wait_bound(name)
            equal((pod["spec"]["nodeName"], gpus_of(pod)), ("gpu-1", [7]))
            mig = decision(pod)["gpus"][0]["mig"]
            equal(visible(pod, "main"), f"MIG-{mig['start']}", "what it sees")
            names.append(visible(pod))
        equal(sorted(names), ["MIG-0", "MIG-4"])
        claimed("slice-c", "slice")
        wait_message("slice-c", "1 Insufficient MIG slices of 3g.40gb")
        # Slices are all that can be had from such a card.
        for name in ("card-0", "card-1"):
            make_pod(name, gpus=7 if name == "card-0" else 1, **ON)
        equal(gpus_of(wait_bound("card-0")), [0, 1, 2, 3, 4, 5, 6])
        wait_message("card-1", "0/4 nodes are available")
        claimed("strange", "strange")
        wait_message("strange", "didn't support MIG profile 5g.55gb")
        claimed("large", "large")
        wait_message("large", "1 Insufficient MIG slices of 7g.80gb")
        delete_pod("slice-a")
        wait_bound("slice-c")


@test
def the_selector_is_of_node_labels():
    with scene():
        make_claim("rack", {"count": 1}, selector={"matchLabels": {"rack": "r7"}})
        claimed("rack", "rack")
        wait_message("rack", "4 node(s) didn't match Pod's node affinity/selector")
        label_node("gpu-2", rack="r7")
        equal(wait_bound("rack")["spec"]["nodeName"], "gpu-2")
        claimed("both", "rack", nodeSelector={"rack": "r8"})
        wait_message("both", 'the node label rack is to be both "r8" and "r7"')
        label_node("gpu-2", rack=None)


@test
def the_fabric_is_what_the_agent_reports():
    with scene():
        make_claim("rdma", {"count": 1}, network={"rdmaRequired": True})
        make_claim("ports", {"count": 1}, network={"minPorts": 4})
        make_claim("cufile", {"count": 1}, storage={"cuFile": True})
        for name in ("rdma", "ports", "cufile"):
            claimed(name, name)
        wait_message("rdma", "4 fewer than 1 RDMA port(s)", "gpu.scheduling/rdma-ports")
        wait_message("ports", "4 fewer than 4 RDMA port(s)")
        wait_message("cufile", "4 node(s) had no GPUDirect Storage", "gpu.scheduling/cufile")
        report("gpu-0", network={"rdmaPorts": 2, "hcas": ["mlx5_0", "mlx5_1"]})
        equal(wait_bound("rdma")["spec"]["nodeName"], "gpu-0")
        report("gpu-3", network={"rdmaPorts": 8, "hcas": ["mlx5_9"]}, storage={"cuFile": True})
        equal(wait_bound("ports")["spec"]["nodeName"], "gpu-3")
        equal(wait_bound("cufile")["spec"]["nodeName"], "gpu-3")
        # Without an agent the labels say it.
        make_claim("label", {"count": 1}, network={"minPorts": 16}, storage={"cuFile": True})
        claimed("label", "label")
        wait_message("label", "RDMA")
        label_node("gpu-1", **{"gpu.scheduling/rdma-ports": "16", "gpu.scheduling/cufile": "true"})
        equal(wait_bound("label")["spec"]["nodeName"], "gpu-1")
        label_node("gpu-1", **{"gpu.scheduling/rdma-ports": None, "gpu.scheduling/cufile": None})


@test
def an_adapter_is_preferred_and_excludes_nothing():
    with scene():
        for number in range(4):
            hcas = [f"mlx5_{number}", "mlx5_all"]
            report(f"gpu-{number}", network={"rdmaPorts": 2, "hcas": hcas})
        # All else being equal they would be together, to leave whole nodes for others.
        for number in (2, 0, 3, 1):
            hcas = ["mlx5_absent", f"mlx5_{number}"]
            make_claim(f"hca-{number}", {"count": 1}, network={"preferredHcas": hcas})
            claimed(f"hca-{number}", f"hca-{number}")
            equal(wait_bound(f"hca-{number}")["spec"]["nodeName"], f"gpu-{number}")
        # Where the node that has it is full, and where none has it, any will do.
        make_pod("full", gpus=7, nodeSelector={"kubernetes.io/hostname": "gpu-2"})
        wait_bound("full")
        claimed("late", "hca-2")
        check(wait_bound("late")["spec"]["nodeName"] != "gpu-2", "a full node")
        make_claim("absent", {"count": 1}, network={"preferredHcas": ["mlx5_absent"]})
        claimed("absent", "absent")
        wait_bound("absent")


@test
def contradictions_are_told_and_mended():
    with scene():
        make_claim("two", {"count": 2})
        claimed("three", "two", gpus=3)
        wait_message("three", "GpuClaim two asks for 2 GPUs, but", "for 3")
        check("GpuClaim two asks for 2" in wait_claim("two", "Failed")["message"], "the message")
        claimed("share", "two", limits={"elasticgpu.io/gpu-core": "50"})
        wait_message("share", "GpuClaim two asks for")
        claimed("agreed", "two", gpus=2)
        wait_bound("agreed")
        ADMIN.request("PATCH", f"{CLAIMS}/two", {"spec": {"devices": {"count": 3}}}, MERGE)
        equal(len(gpus_of(wait_bound("three"))), 3)
        make_claim("none")
        claimed("none", "none")
        wait_message("none", "GpuClaim none: devices.count is missing")
        claimed("limits", "none", gpus=2)
        equal(len(gpus_of(wait_bound("limits"))), 2, "as many as the limits say")


@test
def claims_of_another_kind_are_refused_and_their_pods_counted():
    dra = [{"name": "gpu", "resourceClaimName": "gpu"}]
    with scene():
        make_pod("asks", resourceClaims=dra)
        wait_message("asks", "spec.resourceClaims (dynamic resource allocation) is not supported")
        pod = pod_object("other", resourceClaims=dra, gpus=8, nodeName="gpu-3")
        pod["spec"]["schedulerName"] = "default-scheduler"
        create(PODS.format("default"), pod)
        for number in range(3):
            make_pod(f"node-{number}", gpus=8)
        equal(nodes_of(*(f"node-{n}" for n in range(3))), {"gpu-0", "gpu-1", "gpu-2"})
        unbound("asks")


@test
def what_no_claim_can_mean_is_refused_by_the_server():
    for devices in (
        {"count": 0},
        {"count": -1},
        {"count": 1, "policy": "nearest"},
        {"count": 1, "exclusivity": "Mine"},
        {"count": 1, "exclusivity": "MIG"},
        {"count": 1, "migProfile": "1g.10gb"},
        {"count": 1, "core": 50},
        {"count": 1, "policy": "preferIds"},
    ):
        body = {
            "apiVersion": "gpu.scheduling/v1",
            "kind": "GpuClaim",
            "metadata": {"name": "wrong"},
            "spec": {"devices": devices},
        }
        equal(ADMIN.post(CLAIMS, body).code, 422, str(devices))


@test
def a_claim_serves_many_pods_and_says_where_it_stands():
    with scene():
        make_claim("many", {"count": 8, "policy": "spread"}, topology={"mode": "Required"})
        for number in range(5):
            claimed(f"many-{number}", "many")
            if number == 0:
                first = wait_bound("many-0")
        status = wait_claim("many", "Bound", allocated=f"{first['spec']['nodeName']}:"
                            "0,1,2,3,4,5,6,7 +3")
        equal(status["nodeName"], first["spec"]["nodeName"])
        equal(status["gpuIds"], list(range(8)))
        equal(len(status["allocations"]), 4)
        waiting = [n for n in range(5) if n and not wait_or_none(f"many-{n}")]
        equal(len(waiting), 1, "pods that wait")
        wait_message(f"many-{waiting[0]}", "4 Insufficient free GPUs")
        eventually(lambda: "free GPUs" in claim_status("many").get("message", ""), "the message")
        head, line = kubectl("get", "gclaim", "many").splitlines()
        equal(head.split()[:6], ["NAME", "REQ", "POLICY", "TOPOLOGY", "ALLOCATED", "PHASE"])
        equal(line.split()[:4], ["many", "8", "spread", "Required"])
        check("+3" in line and "Bound" in line, line)
        # The next moves up; a claim whose pods have gone waits for others.
        delete_pod("many-0")
        wait_bound(f"many-{waiting[0]}")
        wait_claim("many", "Bound")
        for number in range(1, 5):
            delete_pod(f"many-{number}")
        wait_claim("many", "Pending", allocated=None)


def wait_or_none(name):
    """Is it bound?"""
    return ADMIN.get(f"/api/v1/namespaces/default/pods/{name}").json["spec"].get("nodeName")


@test
def a_claim_is_of_its_namespace():
    with scene():
        create("/api/v1/namespaces", {"metadata": {"name": "team"}})
        make_claim("same", {"count": 2})
        body = {
            "apiVersion": "gpu.scheduling/v1",
            "kind": "GpuClaim",
            "metadata": {"name": "same"},
            "spec": {"devices": {"count": 3}},
        }
        claimed("here", "same")
        make_pod("there", annotations={"gpu.scheduling/claim": "same"}, namespace="team")
        equal(len(gpus_of(wait_bound("here"))), 2)
        wait_message("there", "GpuClaim same does not exist in namespace team", namespace="team")
        create("/apis/gpu.scheduling/v1/namespaces/team/gpuclaims", body)
        equal(len(gpus_of(wait_bound("there", namespace="team"))), 3)
        wait_claim("same", "Bound")
        delete_pod("there", namespace="team")


@test
def a_claim_that_comes_late_is_waited_for():
    with scene():
        claimed("early", "late")
        wait_message("early", "GpuClaim late does not exist in namespace default")
        unbound("early")
        make_claim("late", {"count": 1})
        wait_bound("early")
        wait_claim("late", "Bound")
        make_claim("unused", {"count": 1})
        check(claim_status("unused").get("phase") in (None, "Pending"), "phase of an unused one")


if __name__ == "__main__":
    sys.exit(play())
