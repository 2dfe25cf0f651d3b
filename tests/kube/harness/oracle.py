# SPDX-License-Identifier: Apache-2.0
"""Which nodes the real kube-scheduler finds feasible for a pod.

It runs with an extender that writes down the nodes that passed all filters and then
refuses them, so that no question changes the state for the next one.  A pod for which
the extender is not called has none.
"""
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .client import Client

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
ANSWER_TIMEOUT_S = 20
NO_PLUGINS = {"disabled": [{"name": "*"}]}
CACHE_SIZE = re.compile(r'^scheduler_cache_size\{type="(\w+)"\} (\d+)$', re.MULTILINE)


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

    def __init__(self, recorder, kubeconfig, scheduler):
        self.recorder = recorder
        self.client = Client(kubeconfig)
        self.metrics = Client(kubeconfig, server=scheduler)

    def _must(self, answer):
        if answer.code not in (200, 201):
            raise OSError(str(answer))
        return answer.json

    def clear(self):
        """Remove all pods and nodes."""
        now = {"gracePeriodSeconds": 0}
        for path in (PODS, NODES):
            for each in self.client.get(path).json["items"]:
                self._must(self.client.delete(f"{path}/{each['metadata']['name']}", now))
        self._wait_known(0, 0)

    def build(self, nodes, pods):
        """Make the nodes and the pods that are bound to them; wait until it is known."""
        for node in nodes:
            self._must(self.client.post(NODES, node))
            # Admission has added the taint not-ready.
            patch = {"spec": {"taints": node["spec"]["taints"]}}
            path = f"{NODES}/{node['metadata']['name']}"
            self._must(self.client.request("PATCH", path, patch, "application/merge-patch+json"))
        for pod in pods:
            self._must(self.client.post(PODS, pod))
        self._wait_known(len(nodes), len(pods))

    def _wait_known(self, nodes, pods):
        """Wait until kube-scheduler knows of as many; it counts them every second."""
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while True:
            sizes = dict(CACHE_SIZE.findall(self.metrics.get("/metrics").text))
            if (sizes.get("nodes"), sizes.get("pods")) == (str(nodes), str(pods)):
                return
            if time.monotonic() > deadline:
                raise OSError(f"kube-scheduler knows of {sizes}, not {nodes} nodes, {pods} pods")
            time.sleep(0.05)

    def ask(self, pod):
        """The names of all nodes on which the pod may run."""
        made = self._must(self.client.post(PODS, pod))
        uid, path = made["metadata"]["uid"], f"{PODS}/{made['metadata']['name']}"
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        try:
            while uid not in self.recorder.seen:
                conditions = self.client.get(path).json["status"].get("conditions", [])
                refused = any(each["status"] == "False" for each in conditions)
                # The extender is asked before the pod is told.
                if refused and uid not in self.recorder.seen:
                    return []
                if time.monotonic() > deadline:
                    raise OSError(f"kube-scheduler does not answer for {made}")
                time.sleep(0.005)
            return self.recorder.seen[uid]
        finally:
            self._must(self.client.delete(path, {"gracePeriodSeconds": 0}))
