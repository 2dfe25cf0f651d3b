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
from .worlds import PRIORITIES

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
ANSWER_TIMEOUT_S = 60
NO_PLUGINS = {"disabled": [{"name": "*"}]}
UNBOUND = "fieldSelector=spec.nodeName%3D"
MARK = "parity/world"


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
        for name, value in PRIORITIES.items():
            self._must(self.client.post(CLASSES, {"metadata": {"name": name}, "value": value}))

    def _must(self, answer):
        if answer.code not in (200, 201):
            raise OSError(str(answer))
        return answer.json

    def clear(self):
        """Remove all pods and nodes."""
        for path in (PODS, NODES):
            self._must(self.client.delete(path, {"gracePeriodSeconds": 0}))

    def build(self, nodes, pods):
        """Make the nodes and the pods that are bound to them; wait until it is known."""
        mark = {MARK: str(next(self.worlds))}
        for node in nodes[:-1]:
            self._must(self.client.post(NODES, node))
        last = json.loads(json.dumps(nodes[-1]))
        last["metadata"]["labels"].update(mark)
        self._must(self.client.post(NODES, last))
        for pod in pods:
            self._must(self.client.post(PODS, pod))
        self._wait_known(len(nodes), mark)

    def _wait_known(self, nodes, mark):
        """Wait until kube-scheduler knows of the last node.

        It sees changes of one kind in their order: with the last node it knows of all
        others and that those before them are gone, and with a pod that it is asked
        about, of all pods before it.  A pod that wants the mark of the last node is
        rejected for that by all nodes but one, and by all while that is not known.
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
            if probe["nodes"] == nodes and rejected == nodes - 1:
                return
            if time.monotonic() > deadline:
                raise OSError(f"kube-scheduler does not know of all nodes: {probe}")

    def ask(self, pods):
        """For each of the pods, what kube-scheduler says: feasible nodes, of how many, and
        how many each kind of rule rejected.  All are asked at once: none of them is bound,
        so none changes the answer for another."""
        made = [self._must(self.client.post(PODS, pod)) for pod in pods]
        messages = self._wait_told({each["metadata"]["name"] for each in made})
        self._must(self.client.delete(f"{PODS}?{UNBOUND}", {"gracePeriodSeconds": 0}))
        return [
            {
                "pod": pod,
                # The extender is asked before the pod is told.
                "feasible": self.recorder.seen.get(each["metadata"]["uid"], []),
                "nodes": read_nodes(messages[each["metadata"]["name"]]),
                "rejected": read_reasons(messages[each["metadata"]["name"]]),
            }
            for pod, each in zip(pods, made)
        ]

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
