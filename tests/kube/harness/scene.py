# SPDX-License-Identifier: Apache-2.0
"""What scenarios of the scheduler are made of: claims, reports of nodes, owners, more nodes.

One scheduler runs all along a file, for many scenarios fit into the time that it takes to start
one.  Each begins with no pods, claims, owners and reports of the last:

    @test
    def a_pod_is_bound():
        with scene():
            make_pod("train", gpus=2)
            wait_bound("train")

    if __name__ == "__main__":
        sys.exit(play("--config", "some.yaml"))

SCENE_OPTIONS has more options of the scheduler, as in SCENE_OPTIONS=--locks=gpu.
"""
import contextlib
import json
import os
import time

from .check import equal, eventually, main, test
from .client import Client
from .scheduler import (
    DECISION,
    MERGE,
    PODS,
    RUNNING,
    Scheduler,
    create,
    delete_pod,
    delete_pods,
    entries,
    entries_of,
    get_pod,
    heard,
    install_kinds,
    pod_object,
    wait_bound,
)

CLAIMS = "/apis/gpu.scheduling/v1/namespaces/default/gpuclaims"
REPORTS = "/apis/gpu.scheduling/v1/gpunodestatuses"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
NODES = "/api/v1/nodes"
OWNERS = {
    "Job": "/apis/batch/v1/namespaces/default/jobs",
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "ReplicaSet": "/apis/apps/v1/namespaces/default/replicasets",
    "StatefulSet": "/apis/apps/v1/namespaces/default/statefulsets",
}
MODEL = "NVIDIA-H100-80GB-HBM3"
MEMORY_MIB = 81559
IDLE_S = 20
ADDED = []  # nodes


class Administrator(Client):
    """One that is used now and then: the server closes connections that are idle for long."""

    def __init__(self):
        super().__init__(os.path.join(os.environ["KUBE_DIR"], "admin.kubeconfig"))
        self.used = time.monotonic()

    def request(self, method, path, *args, **kwargs):
        if time.monotonic() - self.used > IDLE_S:
            self.connection.close()
        self.used = time.monotonic()
        answer = super().request(method, path, *args, **kwargs)
        if method in ("POST", "PUT", "PATCH"):
            heard(path, answer)
        return answer


ADMIN = Administrator()


def make_claim(name, devices=None, **spec):
    """A GpuClaim."""
    body = {
        "apiVersion": "gpu.scheduling/v1",
        "kind": "GpuClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": devices or {}, **spec},
    }
    return create(CLAIMS, body)


def claimed(name, claim, **kwargs):
    """A pod that names the claim, and nothing else unless told."""
    annotations = {"gpu.scheduling/claim": claim, **kwargs.pop("annotations", {})}
    pod = pod_object(name, annotations=annotations, **kwargs)
    return create(PODS.format("default"), pod)


def claim_status(name):
    """Where it stands."""
    return ADMIN.get(f"{CLAIMS}/{name}").json.get("status", {})


def wait_claim(name, phase, **fields):
    """Until the claim is so; its status."""

    def there():
        status = claim_status(name)
        same = all(status.get(key) == value for key, value in fields.items())
        return status if status.get("phase") == phase and same else None

    try:
        return eventually(there, f"claim {name} is {phase} {fields}", 30)
    except Exception:
        print(f"# {name}: {json.dumps(claim_status(name))}")
        raise


def decision(pod):
    """What was decided for a bound pod."""
    return json.loads(pod["metadata"]["annotations"][DECISION])


def visible(pod, container=None):
    """The value of the variable, of the pod or of one of its containers."""
    key = f"elasticgpu.io/container-{container}" if container else "gpu.scheduling/visible-devices"
    return pod["metadata"]["annotations"].get(key)


def unbound(*names):
    """None of these is bound now."""
    for name in names:
        equal(get_pod(name)["spec"].get("nodeName"), None, f"node of {name}")


def nodes_of(*names):
    """Where they are bound."""
    return {wait_bound(name)["spec"]["nodeName"] for name in names}


def hold_nothing(*names):
    """Neither a node nor a lock."""
    unbound(*names)
    for name in names:
        equal(entries_of(get_pod(name)), [], f"locks of {name}")


def events_of(name):
    """Reasons and notes of the events about an object."""
    found = ADMIN.get(EVENTS).json["items"]
    return [(e["reason"], e.get("note", "")) for e in found if e["regarding"]["name"] == name]


def wait_event(name, reason, *words):
    """Until there is such an event; its note."""

    def there():
        notes = [note for r, note in events_of(name) if r == reason]
        return next((note for note in notes if all(word in note for word in words)), None)

    try:
        return eventually(lambda: there() is not None and [there()], f"{reason} of {name}", 30)[0]
    except Exception:
        print(f"# events of {name}: {events_of(name)}")
        raise


def report(node, gpus=8, model=MODEL, memory=MEMORY_MIB, each=None, **status):
    """What the node's agent says; each: {id: more about that device}."""
    devices = []
    for number in range(gpus):
        device = {"id": number, "uuid": f"GPU-{node}-{number}", "model": model}
        device.update(memoryMiB=memory, health="Healthy")
        device.update((each or {}).get(number, {}))
        devices.append(device)
    body = {
        "apiVersion": "gpu.scheduling/v1",
        "kind": "GpuNodeStatus",
        "metadata": {"name": node},
    }
    ADMIN.post(REPORTS, body)
    status = {"injectionMode": "all", "devices": devices, **status}
    answer = ADMIN.request("PATCH", f"{REPORTS}/{node}/status", {"status": status}, MERGE)
    equal(answer.code, 200, str(answer.text))


def unreport(*nodes):
    """No agent says anything, of these or of all."""
    for one in ADMIN.get(REPORTS).json["items"]:
        if not nodes or one["metadata"]["name"] in nodes:
            ADMIN.delete(f"{REPORTS}/{one['metadata']['name']}")


def patch_node(name, body):
    """Change a node."""
    answer = ADMIN.request("PATCH", f"{NODES}/{name}", body, MERGE)
    equal(answer.code, 200, str(answer.text))


def label_node(name, **labels):
    """Labels whose keys have no prefix, or topology.scheduler's; None takes one away."""
    patch_node(name, {"metadata": {"labels": labels}})


def add_node(name, gpus=8, labels=None, taints=None, **resources):
    """A node that nobody plays the kubelet of."""
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", **resources}
    if gpus:
        amounts["nvidia.com/gpu"] = str(gpus)
    known = {"kubernetes.io/hostname": name, "nvidia.com/gpu.product": MODEL}
    known["nvidia.com/gpu.memory"] = str(MEMORY_MIB)
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**known, **(labels or {})}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Test"}],
        },
    }
    create(NODES, body)
    ADDED.append(name)
    # Admission taints every new node.
    patch_node(name, {"spec": {"taints": taints}})


def remove_node(name):
    """It is gone, and so are its pods."""
    for pod in ADMIN.get(PODS.format("default")).json["items"]:
        if pod["spec"].get("nodeName") == name:
            delete_pod(pod["metadata"]["name"])
    ADMIN.delete(f"{NODES}/{name}")
    ADDED.remove(name)


@contextlib.contextmanager
def extra_node(name, *args, **kwargs):
    """Such a node for some time."""
    add_node(name, *args, **kwargs)
    yield name
    remove_node(name)


def make_owner(kind, name, annotations=None, owner=None, **spec):
    """An owner by hand; nobody makes pods for it.  The reference to it."""
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "example/train"}]},
    }
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
        spec = {"template": template, **spec}
    else:
        spec = {"selector": {"matchLabels": labels}, "template": template, **spec}
        if kind == "StatefulSet":
            spec["serviceName"] = name
    metadata = {"name": name, "annotations": annotations or {}}
    metadata["ownerReferences"] = [owner] if owner else []
    version = "batch/v1" if kind == "Job" else "apps/v1"
    body = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
    made = create(OWNERS[kind], body)
    return {
        "apiVersion": version,
        "kind": kind,
        "name": name,
        "uid": made["metadata"]["uid"],
        "controller": True,
    }


def delete_all(path):
    """All objects there."""
    for one in ADMIN.get(path).json["items"]:
        ADMIN.delete(
            f"{path}/{one['metadata']['name']}",
            {"gracePeriodSeconds": 0, "propagationPolicy": "Background"},
        )


@contextlib.contextmanager
def scene():
    """Nothing is left of what was before."""
    for path in OWNERS.values():
        delete_all(path)
    delete_pods()
    for name in list(ADDED):
        remove_node(name)
    delete_all(CLAIMS)
    unreport()
    eventually(lambda: not entries(), "all locks are gone")
    yield


def the_scheduler():
    """The one that runs."""
    return RUNNING[0]


def metric(name, word=""):
    """The sum of the series of that metric whose labels have the word."""
    lines = the_scheduler().get("/metrics")[1].splitlines()
    lines = [l for l in lines if l.startswith((name + "{", name + " "))]
    return sum(float(line.split()[-1]) for line in lines if word in line.lower())


def play(*options, prepare=None, **kwargs):
    """Run the tests of the file with one scheduler; the exit status."""

    def begin():
        install_kinds()
        if prepare:
            prepare()
        more = os.environ.get("SCENE_OPTIONS", "").split()
        RUNNING.append(Scheduler(*options, *more, **kwargs).wait_ready())

    def the_scheduler_leaves_nothing_and_ends_well():
        with scene():
            RUNNING[0].stop()

    test(the_scheduler_leaves_nothing_and_ends_well)
    return main(begin)
