# SPDX-License-Identifier: Apache-2.0
"""Simulated kubelets: pods that are bound to their nodes run, end and go away.

One process plays all nodes.  Nothing is executed; what a container would have seen in
its environment is written down at each of its starts.  Annotations of a pod steer it:

    kubelet.test/seconds        how long its containers run (without it: for ever)
    kubelet.test/exit-code      how they end (0)
    kubelet.test/stop-seconds   how long they take to end when the pod is deleted (0)

restartPolicy is followed.  There is no admission by resources: what does not fit is for
the history checker to find.
"""
import heapq
import itertools
import json
import queue
import threading
import time

from .client import Client
from .environment import environment

PREFIX = "kubelet.test/"
STRATEGIC = "application/strategic-merge-patch+json"
RETRY_S = 0.5
HEARTBEAT_S = 10
FINISHED = ("Succeeded", "Failed")


def now(micro=False):
    """The time as the API writes it."""
    seconds = time.time()
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return text + (f".{int(seconds % 1 * 1e6):06d}Z" if micro else "Z")


def node_object(name, gpus):
    """A node with this many GPUs and room for the rest."""
    resources = {"cpu": "128", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": str(gpus)}
    labels = {
        "kubernetes.io/hostname": name,
        "nvidia.com/gpu.count": str(gpus),
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.memory": "81559",
    }
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels if gpus else {}},
        "status": {"capacity": resources, "allocatable": resources, "conditions": [ready]},
    }


class PodWatch(threading.Thread):
    """Puts (`set`, pod), (`gone`, uid) into a queue, for ever."""

    def __init__(self, kubeconfig, events):
        super().__init__(daemon=True)
        self.kubeconfig = kubeconfig
        self.events = events
        self.known = set()

    def run(self):
        while True:
            try:
                self._list_and_watch(Client(self.kubeconfig, timeout_s=330))
            except (OSError, ValueError, KeyError):
                pass  # whatever cut it, a new list puts it right
            time.sleep(RETRY_S)

    def _set(self, pod):
        self.known.add(pod["metadata"]["uid"])
        self.events.put(("set", pod))

    def _gone(self, uid):
        self.known.discard(uid)
        self.events.put(("gone", uid))

    def _list_and_watch(self, client):
        pods = client.get("/api/v1/pods?fieldSelector=spec.nodeName!%3D").json
        listed = {pod["metadata"]["uid"] for pod in pods["items"]}
        for uid in self.known - listed:
            self._gone(uid)
        for pod in pods["items"]:
            self._set(pod)
        path = "/api/v1/pods?watch=1&timeoutSeconds=300&fieldSelector=spec.nodeName!%3D"
        path += f"&resourceVersion={pods['metadata']['resourceVersion']}"
        for event in client.stream(path):
            if event["type"] in ("ADDED", "MODIFIED"):
                self._set(event["object"])
            elif event["type"] == "DELETED":
                self._gone(event["object"]["metadata"]["uid"])
            else:
                return


class Kubelets:
    """All nodes of one process.  record is a file object for the environments."""

    def __init__(self, kubeconfig, nodes, record):
        self.kubeconfig = kubeconfig
        self.client = Client(kubeconfig)
        self.nodes = list(nodes)
        self.record = record
        self.events = queue.Queue()
        self.timers = []  # (when, number, function, arguments)
        self.numbers = itertools.count()
        self.pods = {}  # uid -> the pod as last seen
        self.runs = {}  # uid -> how often its containers have started
        self.stopping = set()
        self.addresses = {}

    def register(self, gpus):
        """Make the nodes, ready for pods."""
        for name in self.nodes:
            answer = self.client.post("/api/v1/nodes", node_object(name, gpus))
            if answer.code not in (201, 409):
                raise OSError(f"node {name}: {answer}")
            # Admission taints every new node; where the node controller runs it agrees.
            self._patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})

    def run(self):
        """For ever."""
        self._heartbeat()
        PodWatch(self.kubeconfig, self.events).start()
        while True:
            # A timer that is due comes before events, of which there may always be more.
            wait_s = self.timers[0][0] - time.monotonic()
            if wait_s <= 0:
                _, _, function, arguments = heapq.heappop(self.timers)
                function(*arguments)
                continue
            try:
                kind, what = self.events.get(timeout=wait_s)
            except queue.Empty:
                continue
            if kind == "set":
                self._set(what)
            else:
                self._gone(what)

    def _after(self, seconds, function, *arguments):
        entry = (time.monotonic() + seconds, next(self.numbers), function, arguments)
        heapq.heappush(self.timers, entry)

    def _heartbeat(self):
        base = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        for name in self.nodes:
            spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now(True)}
            answer = self._patch(f"{base}/{name}", {"spec": spec})
            if answer.code == 404:
                self.client.post(base, {"metadata": {"name": name}, "spec": spec})
        self._after(HEARTBEAT_S, self._heartbeat)

    def _patch(self, path, body):
        return self.client.request("PATCH", path, body, STRATEGIC)

    def _set(self, pod):
        uid = pod["metadata"]["uid"]
        if pod["spec"].get("nodeName") not in self.nodes:
            return
        self.pods[uid] = pod
        if pod["metadata"].get("deletionTimestamp"):
            if uid not in self.stopping:
                self.stopping.add(uid)
                self._after(self._annotated(pod, "stop-seconds", 0), self._stop, uid)
        elif pod["status"].get("phase") not in FINISHED and uid not in self.runs:
            self._start(uid)

    def _gone(self, uid):
        self.pods.pop(uid, None)
        self.runs.pop(uid, None)
        self.addresses.pop(uid, None)
        self.stopping.discard(uid)

    @staticmethod
    def _annotated(pod, name, default):
        try:
            return float((pod["metadata"].get("annotations") or {})[PREFIX + name])
        except (KeyError, ValueError):
            return default

    def _start(self, uid):
        """Start the containers, the first time or again."""
        pod = self.pods[uid]
        first = uid not in self.runs
        self.runs[uid] = self.runs.get(uid, -1) + 1
        number = next(self.numbers)
        address = f"10.244.{number // 250 % 250}.{number % 250 + 1}"
        address = self.addresses.setdefault(uid, address)
        addresses = {"hostIP": "127.0.0.1", "podIP": address, "podIPs": [{"ip": address}]}
        pod["status"].update(addresses)
        self._write_environments(pod, first)
        state = {"running": {"startedAt": now()}}
        start = {"startTime": now()} if first else {}
        self._write_status(uid, "Running", state, {**addresses, **start})
        seconds = self._annotated(pod, "seconds", None)
        if seconds is not None:
            self._after(seconds, self._end, uid, self.runs[uid])

    def _write_environments(self, pod, first):
        kinds = [("initContainers", True)] if first else []
        for kind, init in kinds + [("containers", False)]:
            for container in pod["spec"].get(kind, []):
                line = {
                    "uid": pod["metadata"]["uid"],
                    "namespace": pod["metadata"]["namespace"],
                    "pod": pod["metadata"]["name"],
                    "node": pod["spec"]["nodeName"],
                    "container": container["name"],
                    "init": init,
                    "start": self.runs[pod["metadata"]["uid"]],
                    "environment": environment(pod, container),
                }
                self.record.write(json.dumps(line) + "\n")
        self.record.flush()

    def _end(self, uid, run):
        """The containers of this run end by themselves."""
        pod = self.pods.get(uid)
        if pod is None or self.runs.get(uid) != run or uid in self.stopping:
            return
        code = int(self._annotated(pod, "exit-code", 0))
        policy = pod["spec"].get("restartPolicy", "Always")
        if policy == "Always" or (policy == "OnFailure" and code):
            self._start(uid)
        else:
            self._finish(uid, code)

    def _finish(self, uid, code):
        ended = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": now()}
        self._write_status(uid, "Failed" if code else "Succeeded", {"terminated": ended}, {})

    def _stop(self, uid):
        """The containers of a deleted pod have ended: let the pod go."""
        pod = self.pods.get(uid)
        if pod is None:
            return
        if pod["status"].get("phase") not in FINISHED:
            self._finish(uid, 143)
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        self.client.delete(self._path(pod), options)

    @staticmethod
    def _path(pod):
        return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"

    def _write_status(self, uid, phase, state, more):
        """Tell the API server; a pod of that name that is another is left alone."""
        pod = self.pods[uid]
        running = "running" in state
        conditions = [
            {"type": name, "status": "True" if running else "False", "lastTransitionTime": now()}
            for name in ("Ready", "ContainersReady")
        ]
        conditions.append({"type": "Initialized", "status": "True"})
        containers = [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": running,
                "restartCount": self.runs.get(uid, 0),
                "state": state,
            }
            for container in pod["spec"]["containers"]
        ]
        status = {"phase": phase, "conditions": conditions, "containerStatuses": containers}
        body = {"metadata": {"uid": uid}, "status": {**status, **more}}
        answer = self._patch(self._path(pod) + "/status", body)
        if answer.code == 200:
            pod["status"]["phase"] = phase
        elif answer.code not in (404, 409, 422):
            raise OSError(f"status of {self._path(pod)}: {answer}")
