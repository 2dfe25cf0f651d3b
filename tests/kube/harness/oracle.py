# SPDX-License-Identifier: Apache-2.0
"""Which nodes the real kube-scheduler finds feasible for a pod.

It runs with an extender that writes down the nodes that passed all filters and then
refuses them, so that no question changes the state for the next one.  A pod for which
the extender is not called has none.
"""
import itertools
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .client import Client
from .coverage import read_nodes, read_reasons
from .worlds import OVERHEAD, PRIORITIES, SANDBOX

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
STORAGE = {
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "CSIDriver": "/apis/storage.k8s.io/v1/csidrivers",
    "CSIStorageCapacity": "/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/namespaces/default/persistentvolumeclaims",
    "VolumeAttachment": "/apis/storage.k8s.io/v1/volumeattachments",
}
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
SANDBOXES = "/apis/node.k8s.io/v1/runtimeclasses"
ANSWER_TIMEOUT_S = 60
NO_PLUGINS = {"disabled": [{"name": "*"}]}
UNBOUND = "fieldSelector=spec.nodeName%3D"
MARK = "parity/world"
# A node of our own with room for anything, of no topology, so that it changes no answer.
PROBE = "probe"
ROOM = {"cpu": "64", "memory": "256Gi", "pods": "110"}
WAITS = "WaitForFirstConsumer"


class Recorder(ThreadingHTTPServer):
    """The extender.  seen: uid of a pod -> names of the nodes that passed."""

    def __init__(self):
        self.seen = {}
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def configuration(self):
        """Fields of KubeSchedulerConfiguration that make kube-scheduler ask us."""
        extender = {
            "urlPrefix": f"http://127.0.0.1:{self.server_address[1]}",
            "filterVerb": "filter",
            "nodeCacheCapable": True,
            "httpTimeout": "10s",
        }
        # Nobody is to be preempted; all nodes are to be looked at.
        profile = {"percentageOfNodesToScore": 100, "plugins": {"postFilter": NO_PLUGINS}}
        return {
            "clientConnection": {"qps": 1000, "burst": 1000},
            "extenders": [extender],
            "profiles": [{"schedulerName": "default-scheduler", **profile}],
        }


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):  # pylint: disable=invalid-name
        """ExtenderArgs in, ExtenderFilterResult out."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        names = sorted(request["NodeNames"] or [])
        self.server.seen.setdefault(request["Pod"]["metadata"]["uid"], names)
        failed = {name: "only asking" for name in names}
        body = json.dumps({"NodeNames": [], "FailedNodes": failed, "Error": ""}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments):  # pylint: disable=arguments-differ
        """Quiet."""


class Oracle:
    """Questions to the kube-scheduler of a cluster that was started for recorder."""

    def __init__(self, recorder, kubeconfig):
        self.recorder = recorder
        self.client = Client(kubeconfig)
        self.worlds = itertools.count()
        self.held = []
        for name, value in PRIORITIES.items():
            self._must(self.client.post(CLASSES, {"metadata": {"name": name}, "value": value}))
        sandbox = {"metadata": {"name": SANDBOX}, "handler": SANDBOX}
        sandbox["overhead"] = {"podFixed": OVERHEAD}
        self._must(self.client.post(SANDBOXES, sandbox))

    def _must(self, answer):
        if answer.code not in (200, 201):
            raise OSError(str(answer))
        return answer.json

    def clear(self):
        """Remove all pods, nodes and storage."""
        for path in (PODS, *reversed(STORAGE.values()), NODES):
            self._must(self.client.delete(path, {"gracePeriodSeconds": 0}))
        for path in self.held:
            patch = {"metadata": {"finalizers": None}}
            self._must(
                self.client.request("PATCH", path, patch, "application/merge-patch+json")
            )
        self.held = []

    def _make(self, made):
        """Make an object of STORAGE as it is, its status too, deleted or not."""
        path = STORAGE[made["kind"]]
        body = json.loads(json.dumps(made))
        deleting = body["metadata"].pop("deletionTimestamp", None)
        answer = self._must(self.client.post(path, body))
        path += "/" + body["metadata"]["name"]
        if "status" in body:
            answer["status"] = body["status"]
            self._must(self.client.put(path + "/status", answer))
        if deleting:
            self._must(self.client.delete(path))
            self.held.append(path)

    def build(self, nodes, pods, objects):
        """Make the nodes, the pods that are bound to them, and storage; wait until it is
        known."""
        world = next(self.worlds)
        mark = {MARK: str(world)}
        for made in objects:
            self._make(made)
        metadata = {"name": PROBE, "labels": mark}
        probe = {"metadata": metadata, "status": {"capacity": ROOM, "allocatable": ROOM}}
        for node in (*nodes, probe):
            self._must(self.client.post(NODES, node))
        for pod in pods:
            self._must(self.client.post(PODS, pod))
        self._wait_known(len(nodes), mark)
        if objects:
            self._wait_storage(f"mark-{world}", mark)

    def _wait_storage(self, name, mark):
        """Wait until kube-scheduler knows of all storage, by the last object of each kind.

        The claim of the first probe is bound to a volume that is attached to our node, which
        can attach one: it is rejected for that once claim, volume, attachment and CSINode
        are known.  The second asks for more than the driver has, which is known by class and
        driver; the third for as much as it has, which is known by the capacity.
        """
        size = {"capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"]}
        csi = {"csi": {"driver": name, "volumeHandle": name}}
        driver = {"name": name, "nodeID": "a", "topologyKeys": None, "allocatable": {"count": 1}}
        made = f"{name}-made"
        self._mark("StorageClass", name, provisioner=made, volumeBindingMode=WAITS)
        self._mark("CSIDriver", made, spec={"storageCapacity": True})
        self._mark(
            "CSIStorageCapacity", name, storageClassName=name, capacity="1Gi", nodeTopology={}
        )
        self._mark("CSINode", PROBE, spec={"drivers": [driver]})
        self._mark("PersistentVolume", name, spec={**size, **csi, "storageClassName": name})
        self._mark_claim(name, name, "1Gi", volumeName=name)
        self._mark_claim(f"{name}-more", name, "2Gi")
        self._mark_claim(f"{name}-less", name, "1Gi")
        attached = {"persistentVolumeName": name}
        spec = {"attacher": name, "nodeName": PROBE, "source": attached}
        self._mark("VolumeAttachment", name, spec=spec)
        self._wait_probe(mark, name, lambda probe: probe["rejected"].get("attached volumes"))
        self._wait_probe(mark, f"{name}-more", lambda probe: probe["rejected"].get("storage"))
        self._wait_probe(mark, f"{name}-less", lambda probe: probe["passed"])

    def _mark(self, kind, name, **fields):
        self._make({"kind": kind, "metadata": {"name": name}, **fields})

    def _mark_claim(self, name, storage_class, size, **spec):
        spec.update(
            accessModes=["ReadWriteOnce"],
            storageClassName=storage_class,
            resources={"requests": {"storage": size}},
        )
        annotations = {"pv.kubernetes.io/bind-completed": "yes"} if "volumeName" in spec else {}
        metadata = {"name": name, "annotations": annotations}
        self._make({"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})

    def _wait_probe(self, mark, claim, known):
        source = {"persistentVolumeClaim": {"claimName": claim}}
        spec = {
            "containers": [{"name": "main", "image": "example/any"}],
            "nodeSelector": mark,
            "tolerations": [{"operator": "Exists"}],
            "volumes": [{"name": "volume", **source}],
        }
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while not known(self.ask([{"metadata": {"name": "probe"}, "spec": spec}])[0]):
            if time.monotonic() > deadline:
                raise OSError(f"kube-scheduler does not know of all storage: {claim}")

    def _wait_known(self, nodes, mark):
        """Wait until kube-scheduler knows of our node, which is the last.

        It sees changes of one kind in their order: with the last node it knows of all
        others and that those before them are gone, and with a pod that it is asked
        about, of all pods before it.  A pod that wants the mark of our node is rejected for
        that by all others, and by all while that is not known.
        """
        spec = {
            "containers": [{"name": "main", "image": "example/any"}],
            "nodeSelector": mark,
            "tolerations": [{"operator": "Exists"}],
        }
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while True:
            probe = self.ask([{"metadata": {"name": "probe"}, "spec": spec}])[0]
            rejected = probe["rejected"].get("node affinity or selector", 0)
            if probe["nodes"] == nodes and rejected == nodes:
                return
            if time.monotonic() > deadline:
                raise OSError(f"kube-scheduler does not know of all nodes: {probe}")

    def ask(self, pods):
        """For each of the pods, what kube-scheduler says: feasible nodes, of how many, how
        many each kind of rule rejected, and whether our own passed.  All are asked at once:
        none of them is bound, so none changes the answer for another."""
        made = [self._must(self.client.post(PODS, pod)) for pod in pods]
        messages = self._wait_told({each["metadata"]["name"] for each in made})
        self._must(self.client.delete(f"{PODS}?{UNBOUND}", {"gracePeriodSeconds": 0}))
        answers = []
        for pod, each in zip(pods, made):
            message = messages[each["metadata"]["name"]]
            # The extender is asked before the pod is told.
            feasible = self.recorder.seen.get(each["metadata"]["uid"], [])
            answer = {"pod": pod, "feasible": [name for name in feasible if name != PROBE]}
            answer.update(nodes=read_nodes(message) - 1, rejected=read_reasons(message))
            answers.append({**answer, "passed": PROBE in feasible})
        return answers

    def _wait_told(self, names):
        """Why each of the pods was refused, once all were."""
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while True:
            told = {}
            for pod in self.client.get(f"{PODS}?{UNBOUND}").json["items"]:
                for condition in pod["status"].get("conditions", []):
                    if condition["type"] == "PodScheduled" and condition["status"] == "False":
                        told[pod["metadata"]["name"]] = condition.get("message", "")
            if names <= set(told):
                return told
            if time.monotonic() > deadline:
                raise OSError(f"kube-scheduler does not answer for {sorted(names - set(told))}")
            time.sleep(0.05)
