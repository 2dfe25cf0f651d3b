# SPDX-License-Identifier: Apache-2.0
"""stream.py - small pods that come all the time and run for a moment: nodes are never empty."""
import threading
import time

from .client import as_identity
from .scheduler import PODS, pod_object


class Stream(threading.Thread):
    """with Stream(0.2) as stream: one every so many seconds, of four GPUs, for two seconds."""

    def __init__(self, every_s):
        super().__init__(daemon=True)
        self.client = as_identity("admin")
        self.every_s = every_s
        self.over = threading.Event()
        self.made = 0

    def run(self):
        while not self.over.is_set():
            pod = pod_object(
                f"small-{self.made}",
                gpus=4,
                annotations={"kubelet.test/seconds": "2"},
                restartPolicy="Never",
            )
            if self.client.post(PODS.format("default"), pod).code == 201:
                self.made += 1
            time.sleep(self.every_s)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()
