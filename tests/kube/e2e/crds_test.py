#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The custom resources of deploy/crds: the server accepts what our readers accept and refuses
what they refuse, and people see what they look for.

Every claim goes to both the API server and `gpu-scheduler simulate`, which reads it as the
scheduler does.

cluster:
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, kubectl, main, test  # noqa: E402
from harness.client import as_identity  # noqa: E402
from harness.scenes import CLAIMS, MERGE, STATUSES  # noqa: E402

BUILD = Path(os.environ.get("BUILD") or ROOT / "build").resolve()
PROGRAM = BUILD / "gpu-scheduler"
CONFIGS = "/apis/topology.scheduler/v1alpha1/namespaces/kube-system/"
KINDS = ("gpuclaims", "gpunodestatuses", "schedulerconfigs", "topologyschedulerconfigs")
ADMIN = as_identity("admin")
ONE = {"count": 1}
SHARED = {"count": 1, "exclusivity": "Shared"}
MIG = {"count": 1, "exclusivity": "MIG"}


def prepare():
    """The definitions, and the server serves them."""
    kubectl("create", "-f", str(ROOT / "deploy" / "crds"))
    for kind in KINDS:
        group = "gpu.scheduling/v1" if kind.startswith("gpu") else "topology.scheduler/v1alpha1"
        eventually(lambda p=f"/apis/{group}/{kind}": ADMIN.get(p).code == 200, f"{kind} served")


# What both accept.
GOOD = (
    {"devices": ONE},
    {"devices": {"count": 32}},
    {"devices": {"count": 2, "policy": "contiguous"}},
    {"devices": {"count": 2, "policy": "spread", "exclusivity": "Exclusive"}},
    {"devices": {"count": 2, "policy": "preferIds", "preferIds": [5, 3, 99, 5]}},
    {"devices": {"count": 1, "preferIds": []}},
    {"devices": {"count": 1, "preferIds": list(range(2000))}},
    {"devices": SHARED},
    {"devices": {**SHARED, "core": 1}},
    {"devices": {**SHARED, "core": 100, "memoryMiB": 4294967295}},
    {"devices": {**SHARED, "memoryMiB": 1}},
    {"devices": {**MIG, "migProfile": "1g.10gb"}},
    {"devices": {"count": 1, "migProfile": ""}},
    {"devices": ONE, "selector": {}},
    {"devices": ONE, "selector": {"matchLabels": {"pool": "train"}}},
    {"devices": ONE, "topology": {}},
    {"devices": ONE, "topology": {"mode": "Required", "minBandwidthGBps": 65535}},
    {"devices": ONE, "topology": {"mode": "Preferred", "minBandwidthGBps": 0}},
    {"devices": ONE, "topology": {"mode": "Ignore"}},
    {"devices": ONE, "gangRef": "team", "gangMinMembers": 1},
    {"devices": ONE, "gangRef": {"name": "team"}, "gangMinMembers": 2147483647},
    {"devices": ONE, "gangRef": "", "gangMinMembers": 1},
    {"devices": ONE, "network": {"rdmaRequired": True, "minPorts": 1024}},
    {"devices": ONE, "network": {"minPorts": 0, "preferredHcas": ["mlx5_0", "mlx5_1"]}},
    {"devices": ONE, "network": {"preferredHcas": []}},
    {"devices": ONE, "storage": {"cuFile": True}},
    {"devices": ONE, "storage": {"cuFile": False}, "network": {"rdmaRequired": False}},
)

# What both refuse, and the field that the server names.
BAD = (
    ({"devices": {"count": 0}}, "spec.devices.count"),
    ({"devices": {"count": -1}}, "spec.devices.count"),
    ({"devices": {"count": 33}}, "spec.devices.count"),
    ({"devices": {"count": "two"}}, "spec.devices.count"),
    ({"devices": {"count": 1.5}}, "spec.devices.count"),
    ({"devices": {"count": 1, "policy": "best"}}, "spec.devices.policy"),
    ({"devices": {"count": 1, "policy": ""}}, "spec.devices.policy"),
    ({"devices": {"count": 1, "policy": 3}}, "spec.devices.policy"),
    ({"devices": {"count": 1, "exclusivity": "Half"}}, "spec.devices.exclusivity"),
    ({"devices": {"count": 1, "exclusivity": "exclusive"}}, "spec.devices.exclusivity"),
    ({"devices": {"count": 1, "preferIds": [-1]}}, "spec.devices.preferIds[0]"),
    ({"devices": {"count": 1, "preferIds": 3}}, "spec.devices.preferIds"),
    ({"devices": {**SHARED, "core": 0}}, "spec.devices.core"),
    ({"devices": {**SHARED, "core": 101}}, "spec.devices.core"),
    ({"devices": {**SHARED, "memoryMiB": 0}}, "spec.devices.memoryMiB"),
    ({"devices": {**SHARED, "memoryMiB": 4294967296}}, "spec.devices.memoryMiB"),
    ({"devices": {**MIG, "migProfile": "1g.10gb-but-much-too-long"}}, "spec.devices.migProfile"),
    ({"devices": {**MIG, "migProfile": 3}}, "spec.devices.migProfile"),
    ({"devices": ONE, "selector": {"matchLabels": {"a": 1}}}, "spec.selector.matchLabels.a"),
    ({"devices": ONE, "selector": {"matchLabels": ["a"]}}, "spec.selector.matchLabels"),
    ({"devices": ONE, "topology": {"mode": "Maybe"}}, "spec.topology.mode"),
    ({"devices": ONE, "topology": {"minBandwidthGBps": -1}}, "spec.topology.minBandwidthGBps"),
    ({"devices": ONE, "topology": {"minBandwidthGBps": 65536}}, "spec.topology.minBandwidthGBps"),
    ({"devices": ONE, "gangRef": "g", "gangMinMembers": 0}, "spec.gangMinMembers"),
    ({"devices": ONE, "gangRef": "g", "gangMinMembers": 2147483648}, "spec.gangMinMembers"),
    ({"devices": ONE, "network": {"rdmaRequired": 3}}, "spec.network.rdmaRequired"),
    ({"devices": ONE, "network": {"minPorts": -1}}, "spec.network.minPorts"),
    ({"devices": ONE, "network": {"minPorts": 1025}}, "spec.network.minPorts"),
    ({"devices": ONE, "network": {"preferredHcas": "mlx5_0"}}, "spec.network.preferredHcas"),
    ({"devices": ONE, "network": {"preferredHcas": [1]}}, "spec.network.preferredHcas[0]"),
    ({"devices": ONE, "storage": {"cuFile": "yes"}}, "spec.storage.cuFile"),
)

# What both refuse in the same words.
SAME_WORDS = (
    ({"devices": MIG}, "exclusivity MIG needs devices.migProfile"),
    ({"devices": {**MIG, "migProfile": ""}}, "exclusivity MIG needs devices.migProfile"),
    (
        {"devices": {"count": 1, "migProfile": "1g.10gb"}},
        "devices.migProfile needs exclusivity MIG",
    ),
    (
        {"devices": {"count": 1, "core": 50}},
        "devices.core and devices.memoryMiB need exclusivity Shared",
    ),
    (
        {"devices": {**MIG, "migProfile": "1g.10gb", "memoryMiB": 512}},
        "devices.core and devices.memoryMiB need exclusivity Shared",
    ),
    (
        {"devices": {"count": 1, "policy": "preferIds"}},
        "policy preferIds needs devices.preferIds",
    ),
    (
        {"devices": {"count": 1, "policy": "preferIds", "preferIds": []}},
        "policy preferIds needs devices.preferIds",
    ),
)


def claim(spec, name="c"):
    """A GpuClaim."""
    return {
        "apiVersion": "gpu.scheduling/v1",
        "kind": "GpuClaim",
        "metadata": {"namespace": "default", "name": name},
        "spec": spec,
    }


def server(spec):
    """None, or what the API server says against the claim."""
    answer = ADMIN.post(f"{CLAIMS}?dryRun=All", claim(spec))
    if answer.code == 201:
        return None
    equal((answer.code, answer.reason), (422, "Invalid"), f"{spec}: {answer}")
    return answer.json["message"]


def reader(*objects):
    """None, or what our reader says against a claim among these objects."""
    with tempfile.TemporaryDirectory() as folder:
        cluster, manifests = Path(folder, "cluster.yaml"), Path(folder, "manifests.yaml")
        cluster.write_text("nodes: [{machine: h100-pcie, mig: [0]}]\n", encoding="utf-8")
        manifests.write_text("\n---\n".join(map(json.dumps, objects)), encoding="utf-8")
        words = [PROGRAM, "simulate", "--cluster", cluster, "-f", manifests]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    check(done.returncode in (0, 2), f"{done.returncode}: {done.stderr}")
    if done.returncode == 0:
        return None
    check("GpuClaim c" in done.stderr, f"no word about the claim: {done.stderr}")
    return done.stderr.strip()


@test
def what_our_reader_accepts_the_server_accepts():
    for spec in GOOD:
        equal(server(spec), None, f"the server on {spec}")
        equal(reader(claim(spec)), None, f"the reader on {spec}")


@test
def what_our_reader_refuses_the_server_refuses():
    for spec, field in BAD:
        said, ours = server(spec), reader(claim(spec))
        check(said and f"{field}:" in said, f"the server on {spec}: {said}")
        check(ours, f"the reader accepts {spec}")


@test
def rules_between_fields_are_told_in_the_same_words():
    for spec, words in SAME_WORDS:
        said, ours = server(spec), reader(claim(spec))
        check(said and words in said, f"the server on {spec}: {said}")
        check(ours and words in ours, f"the reader on {spec}: {ours}")


@test
def a_count_may_be_left_to_the_limits():
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "default",
            "name": "p",
            "annotations": {"gpu.scheduling/claim": "c"},
        },
        "spec": {
            "schedulerName": "gpu-scheduler",
            "containers": [
                {
                    "name": "main",
                    "image": "example/train",
                    "resources": {"limits": {"nvidia.com/gpu": 2}},
                }
            ],
        },
    }
    for spec in ({}, {"devices": {}}, {"devices": {"policy": "spread"}}):
        equal(server(spec), None, f"the server on {spec}")
        equal(reader(claim(spec), pod), None, f"the reader on {spec}")
    check("devices.count is missing" in reader(claim({})), "a claim that nothing completes")


@test
def defaults_are_written_into_the_claim():
    for spec in ({}, {"devices": {}}, {"devices": ONE, "topology": {}}):
        answer = ADMIN.post(f"{CLAIMS}?dryRun=All", claim(spec))
        equal(answer.code, 201, str(answer))
        there = answer.json["spec"]
        equal(there["devices"]["policy"], "contiguous")
        equal(there["devices"]["exclusivity"], "Exclusive")
        equal(there["topology"]["mode"], "Preferred")


def patch_status(path, status):
    """Write it through the subresource."""
    return ADMIN.request("PATCH", f"{path}/status", {"status": status}, MERGE)


@test
def a_claim_shows_what_people_look_for():
    equal(ADMIN.post(CLAIMS, claim({"devices": {"count": 2}}, "shown")).code, 201)
    status = {
        "phase": "Bound",
        "nodeName": "dgx-1",
        "gpuIds": [0, 1],
        "allocated": "dgx-1:0,1 +1",
        "message": "",
        "observedGeneration": 1,
        "allocations": [
            {"pod": "a", "uid": "1", "nodeName": "dgx-1", "gpuIds": [0, 1]},
            {"pod": "b", "uid": "2", "nodeName": "dgx-2", "gpuIds": [4, 5]},
        ],
    }
    answer = patch_status(f"{CLAIMS}/shown", status)
    equal(answer.code, 200, str(answer))
    equal(answer.json["status"], status, "nothing of the status is dropped")
    header, row = kubectl("get", "gclaim", "shown").splitlines()
    equal(header.split()[:6], ["NAME", "REQ", "POLICY", "TOPOLOGY", "ALLOCATED", "PHASE"])
    equal(row.split()[:7], ["shown", "2", "contiguous", "Preferred", "dgx-1:0,1", "+1", "Bound"])
    for wrong in ({"phase": "Lost"}, {"gpuIds": [-1]}, {"allocations": [{"pod": "a"}]}):
        equal(patch_status(f"{CLAIMS}/shown", wrong).code, 422, f"{wrong}")


@test
def status_and_spec_are_written_apart():
    body = claim({"devices": ONE}, "apart")
    body["status"] = {"phase": "Bound"}
    answer = ADMIN.post(CLAIMS, body)
    equal(answer.code, 201, str(answer))
    check("status" not in answer.json, "a user wrote the status")
    changed = ADMIN.request(
        "PATCH", f"{CLAIMS}/apart", {"spec": {"devices": {"count": 2}}}, MERGE
    ).json
    equal(changed["metadata"]["generation"], 2, "generation after a change of the spec")
    changed = patch_status(f"{CLAIMS}/apart", {"phase": "Pending"}).json
    equal(changed["metadata"]["generation"], 2, "generation after a change of the status")


REPORT = {
    "injectionMode": "cdi",
    "mps": True,
    "driverVersion": "570.1",
    "observedGeneration": 1,
    "heartbeat": "2026-01-02T03:04:05Z",
    "summary": {"devices": 2, "healthy": 1, "used": 1, "model": "NVIDIA-H100-80GB-HBM3"},
    "devices": [
        {
            "id": 1,
            "uuid": "GPU-b",
            "model": "NVIDIA-H100-80GB-HBM3",
            "memoryMiB": 81559,
            "health": "Unhealthy",
            "healthMessage": "XID 79",
            "pciBusId": "0000:3b:00.0",
            "numaNode": -1,
            "loadPercent": 100,
            "memoryUsedMiB": 0,
            "migEnabled": True,
            "migDevices": [{"uuid": "MIG-a", "profile": "1g.10gb", "start": 7}],
            "nvlinkPeers": [0],
        },
        {
            "id": 0,
            "uuid": "GPU-a",
            "health": "Healthy",
            "inUseBy": [{"uid": "u", "namespace": "default", "name": "p"}],
        },
    ],
    "linksGBps": [[0, 900], [900, 0]],
    "network": {"bandwidthGbps": 400, "rdmaPorts": 8, "hcas": ["mlx5_0", "mlx5_1"]},
    "storage": {"cuFile": True},
}


@test
def a_report_is_kept_whole_and_shown():
    body = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuNodeStatus"}
    equal(ADMIN.post(STATUSES, {**body, "metadata": {"name": "dgx-1"}}).code, 201)
    answer = patch_status(f"{STATUSES}/dgx-1", REPORT)
    equal(answer.code, 200, str(answer))
    equal(answer.json["status"], REPORT, "nothing of the report is dropped")
    header, row = kubectl("get", "gns", "dgx-1").splitlines()
    equal(header.split()[:7], ["NAME", "NODE", "DEVICES", "HEALTHY", "USED", "MODEL", "MODE"])
    equal(row.split()[:5], ["dgx-1", "dgx-1", "2", "1", "1"])


@test
def reports_that_cannot_be_are_refused():
    one = {"id": 0, "uuid": "u"}
    rows = (
        ({"devices": [{"id": 1, "uuid": "u"}]}, "devices must have the ids from 0 on"),
        ({"devices": [one, {"id": 0, "uuid": "v"}]}, "Duplicate value"),
        ({"devices": [{"id": 0}]}, "status.devices[0].uuid"),
        ({"devices": [{"id": 0, "uuid": ""}]}, "status.devices[0].uuid"),
        ({"devices": [{**one, "memoryMiB": -1}]}, "status.devices[0].memoryMiB"),
        ({"devices": [{**one, "nvlinkPeers": [0]}]}, "an NVLink peer that is not there"),
        ({"devices": [{**one, "nvlinkPeers": [1]}]}, "an NVLink peer that is not there"),
        ({"devices": [one], "linksGBps": [[0, 1]]}, "as many rows and columns"),
        ({"devices": [one], "linksGBps": [[0], [0]]}, "as many rows and columns"),
        ({"injectionMode": "magic"}, "status.injectionMode"),
        ({"network": {"rdmaPorts": -1}}, "status.network.rdmaPorts"),
    )
    for status, words in rows:
        clear = {"linksGBps": None, "devices": None}
        answer = patch_status(f"{STATUSES}/dgx-1", {**clear, **status})
        check(answer.code == 422 and words in answer.text, f"{status}: {answer}")


@test
def kubectl_explains_every_field():
    for path, words in (
        ("gclaim.spec.devices.exclusivity", ("Exclusive\n    Shared\n    MIG", "whole GPUs")),
        ("gclaim.spec.topology.mode", ("Required", "Preferred", "Ignore")),
        ("gclaim.spec.network", ("rdmaRequired", "minPorts", "preferredHcas")),
        ("gns.status.devices", ("uuid", "inUseBy", "nvlinkPeers")),
        ("schedulerconfig.spec.scoringWeights", ("resourceAvailability", "topologyAlignment")),
        ("topologyschedulerconfig.spec", ("domainLabels", "maxPodsPerSharedGpu")),
    ):
        text = eventually(lambda p=path: explain(p), f"kubectl explain {path}")
        for word in words:
            check(word in text, f"{path}: no {word} in {text}")


def explain(path):
    """What kubectl says; None while the server has not published the schema."""
    done = subprocess.run(
        ["kubectl", "explain", path], capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else None


CONFIG = {
    "scoringWeights": {"resourceAvailability": 1, "historicalPerformance": 0.5},
    "topologyConstraints": {"maxNodesPerLeaf": 4, "maxGPUsPerLeaf": 32},
    "policy": "default",
    "maxPodsPerSharedGpu": 4,
    "domainLabels": ["rack", "row"],
    "gangReservationSeconds": 30,
    "podInitialBackoffSeconds": 1,
    "podMaxBackoffSeconds": 20,
}


@test
def both_kinds_of_configuration_are_the_same():
    definitions = [
        json.loads(kubectl("get", "crd", f"{plural}.topology.scheduler", "-o", "json"))["spec"]
        for plural in KINDS[2:]
    ]
    equal(definitions[0]["versions"], definitions[1]["versions"], "schemas")
    equal({each["scope"] for each in definitions}, {"Namespaced"})


@test
def configurations_that_cannot_be_are_refused():
    wrong = (
        ({"scoringWeights": {"resourceAvailability": -1}}, "resourceAvailability"),
        (
            {
                "scoringWeights": {
                    "resourceAvailability": 0,
                    "topologyAlignment": 0,
                    "domainUtilization": 0,
                    "historicalPerformance": 0,
                }
            },
            "scoringWeights are all 0",
        ),
        ({"policy": "best"}, "spec.policy"),
        ({"policy": "fgd"}, "spec.policy"),
        ({"maxPodsPerSharedGpu": 0}, "spec.maxPodsPerSharedGpu"),
        ({"domainLabels": []}, "spec.domainLabels"),
        ({"domainLabels": ["a"], "domainPreset": "kubernetes"}, "exclude each other"),
        ({"domainPreset": "mine"}, "spec.domainPreset"),
        ({"podMaxBackoffSeconds": 1, "podInitialBackoffSeconds": 2}, "is less than"),
        (
            {"topologyConstraints": {"maxNodesPerLeaf": 4, "maxNodesPerDomain": 5}},
            "maxNodesPerLeaf and maxNodesPerDomain differ",
        ),
    )
    for kind in ("SchedulerConfig", "TopologySchedulerConfig"):
        path = f"{CONFIGS}{kind.lower()}s?dryRun=All"
        body = {
            "apiVersion": "topology.scheduler/v1alpha1",
            "kind": kind,
            "metadata": {"name": "topology-scheduler-config"},
        }
        answer = ADMIN.post(path, {**body, "spec": CONFIG})
        equal(answer.code, 201, str(answer))
        weights = answer.json["spec"].pop("scoringWeights")
        rest = {key: value for key, value in CONFIG.items() if key != "scoringWeights"}
        equal(answer.json["spec"], rest, "nothing is dropped")
        equal(weights["topologyAlignment"], 0.3, "the default of a weight that is not given")
        for spec, words in wrong:
            answer = ADMIN.post(path, {**body, "spec": spec})
            check(answer.code == 422 and words in answer.text, f"{spec}: {answer}")


if __name__ == "__main__":
    sys.exit(main(prepare))
