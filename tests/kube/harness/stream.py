# SPDX-License-Identifier: Apache-2.0
"""stream.py - small pods that come all the time and run for a moment: nodes are never empty."""
import threading
import time

from .client import as_identity
from .scheduler import PODS, pod_object


class Stream(threading.Thread):
    """with Stream(12) as stream: so many at any time that run or wait, of four GPUs, each for
    about two seconds.  More than there is room for: all is in use, however slow the machine.
    No two that begin together end together, so no node is empty by chance."""

    def __init__(self, unfinished):
        super().__init__(daemon=True)
        self.client = as_identity("admin")
        self.unfinished = unfinished
        self.over = threading.Event()
        self.made = 0

    def _lacking(self):
        pods = self.client.get(PODS.format("default")).json["items"]
        phases = [p["status"]["phase"] for p in pods if p["metadata"]["name"].startswith("small-")]
        return self.unfinished - sum(phase in ("Pending", "Running") for phase in phases)

    def run(self):
        while not self.over.is_set():
            for _ in range(self._lacking()):
                pod = pod_object(
                    f"small-{self.made}",
                    gpus=4,
                    annotations={"kubelet.test/seconds": f"{1.5 + 0.23 * (self.made % 7):.2f}"},
                    restartPolicy="Never",
                )
                if self.client.post(PODS.format("default"), pod).code == 201:
                    self.made += 1
            time.sleep(0.1)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()
