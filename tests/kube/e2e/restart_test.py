#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our caches and requests while the API server ends and comes back, and while etcd forgets.

The caches are those of client/follow.c, which asks for something all the time and fails
if one request of all is lost.

cluster: none
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, main, test  # noqa: E402
from harness.client import Client  # noqa: E402
from harness.plane import ControlPlane  # noqa: E402
from harness.processes import adopt_orphans, end_orphans  # noqa: E402

BUILD = Path(os.environ.get("BUILD") or HERE.parent.parent / "build").resolve()
FOLLOW = BUILD / "tests" / "kube" / "client" / "follow"
MAPS = "/api/v1/namespaces/default/configmaps"


class Plane(ControlPlane):
    """A control plane whose API server can be ended and started again."""

    def end_server(self, number=signal.SIGKILL):
        """End the API server, as by a crash; it is known by its name."""
        (server,) = [each for each in self.processes if each.name == "kube-apiserver"]
        self.processes.remove(server)
        server.process.send_signal(number)
        server.process.wait()

    def start_server(self):
        """At the same address, with the same certificates; return when it is ready."""
        self._start_apiserver()
        self._wait_ready()

    def compact(self):
        """Make etcd forget all but the present; return the revision of that."""
        status = self._etcd("/v3/maintenance/status", {})
        revision = int(status["header"]["revision"])
        self._etcd("/v3/kv/compaction", {"revision": revision, "physical": True})
        return revision

    def _etcd(self, path, body):
        with urllib.request.urlopen(
            self.etcd_url + path, json.dumps(body).encode(), timeout=60
        ) as reply:
            return json.load(reply)


class Follower:
    """client/follow.c, running."""

    def __init__(self, plane):
        check(FOLLOW.exists(), f"{FOLLOW} has not been built")
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen(
            [FOLLOW],
            env={**os.environ, "KUBECONFIG": str(plane.kubeconfig("admin"))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def equal(self):
        """Wait until the caches are what the server has: objects, lists, watches, requests."""
        self.process.stdin.write("equal\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("equal "):
                return [int(word) for word in line.split()[1:]]
        raise AssertionError(f"follow ended with status {self.process.wait()}")

    def end(self):
        """Nothing was lost, and nothing leaks."""
        self.process.stdin.close()
        self.process.stdout.read()
        equal(self.process.wait(60), 0)


def put(plane, name, number):
    """Make or change a ConfigMap."""
    client = Client(plane.kubeconfig("admin"))
    body = {"metadata": {"name": name}, "data": {"n": str(number)}}
    if client.put(f"{MAPS}/{name}", body).code == 404:
        equal(client.post(MAPS, body).code, 201)


def remove(plane, name):
    """Delete a ConfigMap."""
    equal(Client(plane.kubeconfig("admin")).delete(f"{MAPS}/{name}").code, 200)


def with_plane(function):
    """Run function(plane, follower) on a control plane of its own."""
    assets = subprocess.run(
        [HERE / "assets"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()
    folder = Path(tempfile.mkdtemp(prefix="gpu-scheduler-kube."))
    plane = Plane(assets, folder)
    try:
        plane.start()
        for number in range(5):
            put(plane, f"same-{number}", 0)
        put(plane, "gone", 0)
        follower = Follower(plane)
        function(plane, follower)
        follower.end()
        plane.check()
    finally:
        plane.stop()
        end_orphans()
        plane.discard(False)


@test
def a_server_that_comes_back_is_followed_on():
    """Killed, and ended in good order; changed before, between and after."""

    def run(plane, follower):
        _, _, watches, asked = follower.equal()
        for turn, number in enumerate((signal.SIGKILL, signal.SIGTERM)):
            put(plane, "same-0", 10 * turn + 1)
            plane.end_server(number)
            plane.start_server()
            put(plane, f"new-{turn}", turn)
            put(plane, "same-0", 10 * turn + 2)
            if turn == 0:
                remove(plane, "gone")
            _, _, watches_now, asked_now = follower.equal()
            check(watches_now > watches, "the watches are open still")
            # What was asked while there was no server may pause for a while yet.
            if asked_now == asked:
                eventually(lambda old=asked: follower.equal()[3] > old, "what was asked is answered", 60)
            watches, asked = watches_now, follower.equal()[3]

    with_plane(run)


@test
def history_that_is_forgotten_is_made_up_for_by_a_list():
    """While the follower sleeps, the server restarts and etcd is compacted: the version at
    which the caches were is known to nobody any more."""

    def run(plane, follower):
        _, lists, _, _ = follower.equal()
        follower.process.send_signal(signal.SIGSTOP)
        for number in range(20):
            put(plane, f"same-{number % 5}", 100 + number)
        remove(plane, "gone")
        put(plane, "new", 0)
        plane.end_server()
        plane.compact()
        plane.start_server()
        follower.process.send_signal(signal.SIGCONT)
        _, lists_now, _, _ = follower.equal()
        check(lists_now > lists, f"{lists_now} lists after {lists}")

    with_plane(run)


@test
def compaction_under_a_live_watch_disturbs_nothing():
    """What is watched needs no history."""

    def run(plane, follower):
        _, lists, watches, _ = follower.equal()
        for number in range(3):
            put(plane, "same-1", number + 1)
            plane.compact()
        equal(follower.equal()[1:3], [lists, watches])

    with_plane(run)


if __name__ == "__main__":
    adopt_orphans()
    sys.exit(main())
