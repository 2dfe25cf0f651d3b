#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cluster is there, and each role can do its work and no more.

What is true of any API server is in contract_test.py.

cluster: --scheduler --history
"""
import json
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, kubectl, main, refused, test  # noqa: E402
from harness.client import Client, as_identity  # noqa: E402

PODS = "/api/v1/namespaces/smoke/pods"
LOCKS = "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler-locks/leases"
ADMIN, SCHEDULER, AGENT = (as_identity(name) for name in ("admin", "scheduler", "agent"))
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "gpu-1"},
    "status": {
        "capacity": {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "8"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


def prepare():
    """What every test here needs."""
    kubectl("create", "-f", "-", stdin=json.dumps(NODE))
    kubectl("create", "namespace", "smoke")


def make_pod(name, scheduler="gpu-scheduler"):
    """Create a pod with kubectl and return it as the server has it."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "smoke", "name": name},
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "main", "image": "example/train"}],
            "tolerations": [{"operator": "Exists"}],
        },
    }
    return json.loads(kubectl("create", "-o", "json", "-f", "-", stdin=json.dumps(pod)))


def binding(pod, **metadata):
    """A Binding of this pod to gpu-1."""
    name = pod["metadata"]["name"]
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": "smoke", "name": name, **metadata},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "gpu-1"},
    }


def bind(client, pod, **metadata):
    """POST the Binding."""
    return client.post(f"{PODS}/{pod['metadata']['name']}/binding", binding(pod, **metadata))


def version_and_uid(thing):
    """What makes a write conditional on the version that was read."""
    return {name: thing["metadata"][name] for name in ("resourceVersion", "uid")}


def lease(client, name):
    """A lock as a role creates it."""
    answer = client.post(
        LOCKS,
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name},
            "spec": {"holderIdentity": "nobody"},
        },
    )
    equal(answer.code, 201, str(answer))
    return answer.json


@test
def the_server_says_which_release_it_is():
    version = ADMIN.get("/version").json
    said = f"{version['major']}.{version['minor']}"
    check(version["gitVersion"].startswith(f"v{said}."), f"{version}")
    wanted = os.environ.get("KUBE_VERSION", said)
    equal(said, wanted, "release")


@test
def nodes_namespaces_and_pods_can_be_made():
    pod = make_pod("plain")
    equal(pod["status"]["phase"], "Pending")
    check("nodeName" not in pod["spec"], "a pod for our scheduler was bound by another")
    gpus = ADMIN.get("/api/v1/nodes/gpu-1").json["status"]["capacity"]["nvidia.com/gpu"]
    equal(gpus, "8", "GPUs of the node")


@test
def nobody_is_let_in_without_a_certificate():
    stranger = Client(os.path.join(os.environ["KUBE_DIR"], "admin.kubeconfig"), certificate=False)
    refused(stranger.get("/version"), 401, "Unauthorized")


@test
def a_binding_sets_node_and_annotations_in_one_step():
    pod = make_pod("train")
    watch = PODS + "?watch=1&timeoutSeconds=2&fieldSelector=metadata.name%3Dtrain"
    watch += f"&resourceVersion={pod['metadata']['resourceVersion']}"
    annotations = {"gpu.scheduling/allocated": "0,1,2,3"}
    answer = bind(SCHEDULER, pod, annotations=annotations, **version_and_uid(pod))
    equal(answer.code, 201, str(answer))
    events = [json.loads(line) for line in SCHEDULER.get(watch).text.splitlines()]
    check(events, "the watch saw no change")
    first = events[0]["object"]
    equal(first["spec"].get("nodeName"), "gpu-1", "node at the first change")
    equal(first["metadata"].get("annotations"), annotations, "annotations at the first change")


@test
def roles_can_do_their_work_and_no_more():
    pod = make_pod("guarded")
    for name in ("agent", "webhook", "controller"):
        answer = bind(as_identity(name), pod, **version_and_uid(pod))
        refused(answer, 403, "Forbidden")
    refused(SCHEDULER.get("/api/v1/namespaces/smoke/secrets"), 403, "Forbidden")
    patch = {"metadata": {"annotations": {"gpu.scheduling/allocated": "0"}}}
    for client in (SCHEDULER, AGENT):
        answer = client.request("PATCH", f"{PODS}/guarded", patch, "application/merge-patch+json")
        refused(answer, 403, "Forbidden")
    equal(AGENT.get(PODS).code, 200, "pods read by the agent")
    refused(AGENT.post(LOCKS, {"metadata": {"name": "mine"}}), 403, "Forbidden")
    equal(bind(as_identity("extender"), pod, **version_and_uid(pod)).code, 201)


@test
def locks_are_taken_by_some_and_collected_by_others():
    controller = as_identity("controller")
    for client in (SCHEDULER, as_identity("extender")):
        taken = lease(client, "gpus-role")
        taken = client.put(f"{LOCKS}/gpus-role", taken).json
        equal(AGENT.get(f"{LOCKS}/gpus-role").code, 200, "a lock read by the agent")
        refused(AGENT.put(f"{LOCKS}/gpus-role", taken), 403, "Forbidden")
        refused(controller.post(LOCKS, {"metadata": {"name": "gpus-more"}}), 403, "Forbidden")
        equal(controller.put(f"{LOCKS}/gpus-role", taken).code, 200, "changed by the controller")
        equal(controller.delete(f"{LOCKS}/gpus-role").code, 200, "collected by the controller")


@test
def the_default_scheduler_places_its_own_pods():
    ADMIN.request(
        "PATCH",
        "/api/v1/nodes/gpu-1",
        {"spec": {"taints": None}},
        content_type="application/merge-patch+json",
    )
    make_pod("other", scheduler="default-scheduler")

    def placed():
        return ADMIN.get(f"{PODS}/other").json["spec"].get("nodeName")

    equal(eventually(placed, "kube-scheduler binds a pod"), "gpu-1")


if __name__ == "__main__":
    sys.exit(main(prepare))
