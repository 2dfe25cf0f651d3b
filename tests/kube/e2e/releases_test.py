#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two releases of Kubernetes side by side, and the same ground under our feet on each.

A release that has not been built yet is not built here, unless KUBE_RELEASES=all says
so, as `make e2e-releases` does: the test is skipped then.

cluster: none
"""
import json
import os
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))
# pylint: disable=wrong-import-position
from harness.check import check, equal, main, refused, skip, test  # noqa: E402
from harness.client import Client  # noqa: E402

PODS = "/api/v1/namespaces/default/pods"
LOCKS = "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler-locks/leases"


def pinned():
    """The releases that tools/ has, as in 1.36."""
    return sorted(path.parent.name for path in (HERE / "tools").glob("[0-9]*/go.mod"))


def need(release):
    """Skip the test where the release would have to be built first."""
    if os.environ.get("KUBE_RELEASES") == "all":
        return
    command = [HERE / "assets", "--cached", release]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        skip(done.stderr.strip().rpartition("assets: ")[2])


def launch(release):
    """Begin to start a cluster of that release."""
    # pylint: disable=consider-using-with
    return subprocess.Popen(
        [HERE / "cluster", "up", "--kube", release, "--scheduler"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def lock_and_bind(client, server):
    """Take a lock and bind a pod in the name of another, as the protocol does."""
    lease = client.post(LOCKS, {"metadata": {"name": "gpus-a"}, "spec": {}})
    equal(lease.code, 201, str(lease))
    held = lease.json
    held["metadata"]["annotations"] = {"gpu.scheduling/entries": "[]"}
    equal(client.put(f"{LOCKS}/gpus-a", held).code, 200, server)
    refused(client.put(f"{LOCKS}/gpus-a", held), 409, "Conflict")
    spec = {
        "schedulerName": "gpu-scheduler",
        "containers": [{"name": "main", "image": "example/train"}],
    }
    pod = client.post(PODS, {"metadata": {"name": "first"}, "spec": spec}).json
    metadata = {name: pod["metadata"][name] for name in ("name", "uid", "resourceVersion")}
    metadata["annotations"] = {"gpu.scheduling/allocated": "a:0"}
    binding = {"metadata": metadata, "target": {"name": "a"}}
    stale = {**binding, "metadata": {**metadata, "resourceVersion": "1"}}
    refused(client.post(f"{PODS}/first/binding", stale), 409, "Conflict")
    equal(client.post(f"{PODS}/first/binding", binding).code, 201, server)
    bound = client.get(f"{PODS}/first").json
    equal(bound["metadata"]["annotations"], metadata["annotations"], server)


@test
def releases_run_side_by_side_and_keep_the_same_promises():
    releases = pinned()
    check(len(releases) >= 2, f"only {releases} are pinned")
    for release in releases:
        need(release)
    clusters = [launch(release) for release in releases]
    try:
        infos = [json.loads(cluster.stdout.readline()) for cluster in clusters]
        clients = [Client(info["KUBECONFIG"]) for info in infos]
        versions = [client.get("/version").json for client in clients]
        equal([f"{each['major']}.{each['minor']}" for each in versions], releases)
        for client, info in zip(clients, infos):
            lock_and_bind(client, info["KUBE_SERVER"])
        # None has seen the pod of another: the uid differs.
        uids = {client.get(f"{PODS}/first").json["metadata"]["uid"] for client in clients}
        equal(len(uids), len(releases), "different pods")
    finally:
        for cluster in clusters:
            cluster.communicate("done\n")


if __name__ == "__main__":
    sys.exit(main())
