# SPDX-License-Identifier: Apache-2.0
"""Every change that a cluster has seen, in the order in which it happened.

Read from etcd itself, after the fact: a watch of the API server is per resource, may
skip over changes when it is cut, and cannot say which of a pod and a lease came first.
The cluster has to be started with --history, which makes the API server store JSON
and forget nothing.
"""
import base64
import http.client
import json
import urllib.parse
from dataclasses import dataclass
from typing import Optional

# What the rules are about.
PREFIXES = (
    "/registry/pods/",
    "/registry/minions/",
    "/registry/leases/",
    "/registry/gpu.scheduling/",
)
MARK = "/gpu-scheduler-history-read"


@dataclass
class Change:
    """One write: before is None when it created, after is None when it deleted."""

    revision: int
    key: str
    before: Optional[dict]
    after: Optional[dict]

    @property
    def resource(self):
        """`pods`, `leases`, `minions` (which is what nodes are to etcd)..."""
        return self.key.split("/")[2]


def _encode(text):
    return base64.b64encode(text.encode()).decode()


def _value(pair):
    if not pair or "value" not in pair:
        return None
    value = json.loads(base64.b64decode(pair["value"]))
    # Stored objects do not know their version; the API server reads it from etcd.
    if isinstance(value, dict):
        value.setdefault("metadata", {})["resourceVersion"] = pair["mod_revision"]
    return value


class Etcd:
    """etcd by its JSON gateway."""

    def __init__(self, url):
        self.address = urllib.parse.urlsplit(url).netloc

    def _post(self, path, body):
        connection = http.client.HTTPConnection(self.address, timeout=60)
        connection.request("POST", path, json.dumps(body))
        response = connection.getresponse()
        if response.status != 200:
            raise OSError(f"etcd answers {response.status} to {path}: {response.read(300)}")
        return connection, response

    def mark(self):
        """Write a key that is nobody's; the revision of that."""
        connection, response = self._post("/v3/kv/put", {"key": _encode(MARK), "value": ""})
        revision = int(json.load(response)["header"]["revision"])
        connection.close()
        return revision

    def changes(self, prefixes):
        """All changes until now of keys that begin so, as a generator."""
        last = self.mark()
        request = {
            "key": _encode("/"),
            "range_end": _encode("0"),
            "start_revision": "1",
            "prev_kv": True,
            "progress_notify": False,
        }
        connection, response = self._post("/v3/watch", {"create_request": request})
        try:
            for line in response:
                result = json.loads(line)["result"]
                if result.get("canceled"):
                    raise OSError(f"etcd no longer has all of the history: {result}")
                for event in result.get("events", []):
                    pair = event["kv"]
                    if int(pair["mod_revision"]) >= last:
                        return
                    key = base64.b64decode(pair["key"]).decode()
                    if key.startswith(prefixes):
                        yield Change(
                            int(pair["mod_revision"]),
                            key,
                            _value(event.get("prev_kv")),
                            None if event.get("type") == "DELETE" else _value(pair),
                        )
        finally:
            connection.close()
