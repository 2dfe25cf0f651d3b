#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs, Deployments and StatefulSets with their real controllers.

cluster: --nodes 4 --gpus 8 --history --controllers=*
"""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import equal, eventually, kubectl, test  # noqa: E402
from harness.scene import ADMIN, MERGE, OWNERS, PODS, claim_status, play, scene  # noqa: E402
from harness.scheduler import delete_pod, entries, gpus_of, wait_bound  # noqa: E402

JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  name: pair
  annotations:
    topology.scheduler/gpu-count: "16"
    topology.scheduler/placement-strategy: consolidated
spec:
  parallelism: 2
  completions: 2
  completionMode: Indexed
  template:
    metadata:
      annotations: {kubelet.test/seconds: "%(seconds)s"}
    spec:
      schedulerName: topology-aware-scheduler
      restartPolicy: Never
      containers: [{name: worker, image: example/worker}]
"""

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve}
spec:
  replicas: 3
  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
  selector: {matchLabels: {app: serve}}
  template:
    metadata:
      labels: {app: serve}
      annotations:
        gpu-scheduling-map: |
          0=gpu-0:0,1
          1=gpu-1:2
          2=gpu-1:2
    spec:
      schedulerName: gpu-scheduler
      containers: [{name: model, image: "example/model:%(version)s"}]
"""

STATEFULSET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: pinned}
spec:
  replicas: 4
  serviceName: pinned
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: pinned}}
  template:
    metadata:
      labels: {app: pinned}
      annotations:
        gpu-scheduling-map: |
          0=gpu-0:0,1
          1=gpu-0:2,3
          2=gpu-1:0
          3=gpu-1:0
    spec:
      schedulerName: gpu-scheduler
      containers: [{name: worker, image: example/worker}]
"""

INDEXED = """
apiVersion: batch/v1
kind: Job
metadata: {name: shards}
spec:
  parallelism: 3
  completions: 3
  completionMode: Indexed
  template:
    metadata:
      annotations: {gpu-scheduling-map: "0=gpu-3:7\\n1=gpu-2:6\\n2=gpu-1:5\\n"}
    spec:
      schedulerName: gpu-scheduler
      restartPolicy: Never
      containers: [{name: worker, image: example/worker}]
"""

CLAIMED = """
apiVersion: gpu.scheduling/v1
kind: GpuClaim
metadata: {name: four}
spec:
  devices: {count: 4, policy: contiguous, exclusivity: Exclusive}
  gangRef: trainers
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: trainer}
spec:
  replicas: 3
  serviceName: trainer
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: trainer}}
  template:
    metadata:
      labels: {app: trainer}
      annotations: {gpu.scheduling/claim: four}
    spec:
      schedulerName: gpu-scheduler
      containers: [{name: worker, image: example/worker}]
"""


def apply(text, **values):
    """As people do."""
    kubectl("apply", "-f", "-", stdin=text % values if values else text)


def pods(selector):
    """Pods by labels, without those that go."""
    found = ADMIN.get(f"{PODS.format('default')}?labelSelector={selector}").json["items"]
    return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]


def places(selector, count):
    """Where so many of them are, once all are bound."""

    def bound():
        found = pods(selector)
        return found if len(found) == count and all(p["spec"].get("nodeName") for p in found) else 0

    found = eventually(bound, f"{count} of {selector} are bound", 60)
    return sorted((pod["spec"]["nodeName"], gpus_of(pod)) for pod in found)


@test
def a_job_runs_as_a_gang_and_leaves():
    with scene():
        apply(JOB, seconds=2)
        equal([len(ids) for _, ids in places("job-name=pair", 2)], [8, 8])
        kubectl("wait", "--for=condition=Complete", "job/pair", "--timeout=60s")
        eventually(lambda: not entries(), "locks of pods that have ended are gone")


@test
def a_deployment_rolls_over_its_map():
    wanted = [("gpu-0", [0, 1]), ("gpu-1", [2]), ("gpu-1", [2])]
    with scene():
        apply(DEPLOYMENT, version=1)
        equal(places("app=serve", 3), wanted)
        apply(DEPLOYMENT, version=2)
        kubectl("rollout", "status", "deployment/serve", "--timeout=120s")
        equal(places("app=serve", 3), wanted)
        images = {pod["spec"]["containers"][0]["image"] for pod in pods("app=serve")}
        equal(images, {"example/model:2"})
        # Each index is there once: two lines are alike, the pods have one each.
        kubectl("scale", "deployment/serve", "--replicas=2")
        eventually(lambda: len(pods("app=serve")) == 2, "one has gone")
        kubectl("scale", "deployment/serve", "--replicas=3")
        equal(places("app=serve", 3), wanted)


@test
def a_stateful_set_keeps_its_places():
    with scene():
        apply(STATEFULSET)
        wanted = [("gpu-0", [0, 1]), ("gpu-0", [2, 3]), ("gpu-1", [0]), ("gpu-1", [0])]
        equal(places("app=pinned", 4), wanted)
        uid = wait_bound("pinned-1")["metadata"]["uid"]
        delete_pod("pinned-1")
        eventually(
            lambda: any(p["metadata"]["name"] == "pinned-1" and p["metadata"]["uid"] != uid
                        for p in pods("app=pinned")),
            "there is another one",
        )
        pod = wait_bound("pinned-1")
        equal((pod["spec"]["nodeName"], gpus_of(pod)), ("gpu-0", [2, 3]))


@test
def an_indexed_job_follows_its_map():
    with scene():
        apply(INDEXED)
        equal(places("job-name=shards", 3), [("gpu-1", [5]), ("gpu-2", [6]), ("gpu-3", [7])])
        by_index = {
            pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]:
            pod["spec"]["nodeName"]
            for pod in pods("job-name=shards")
        }
        equal(by_index, {"0": "gpu-3", "1": "gpu-2", "2": "gpu-1"})


@test
def a_claim_of_a_stateful_set_is_a_gang_of_its_replicas():
    with scene():
        apply(CLAIMED)
        equal([len(ids) for _, ids in places("app=trainer", 3)], [4, 4, 4])
        equal({entry["gang"]["members"] for _, entry in entries()}, {3})
        eventually(lambda: len(claim_status("four").get("allocations", [])) == 3, "its claim")
        # A member that is lost is replaced where the others are.
        delete_pod("trainer-1")
        equal([len(ids) for _, ids in places("app=trainer", 3)], [4, 4, 4])
        path = f"{OWNERS['StatefulSet']}/trainer"
        equal(ADMIN.request("PATCH", path, {"spec": {"replicas": 4}}, MERGE).code, 200)
        equal([len(ids) for _, ids in places("app=trainer", 4)], [4] * 4)


if __name__ == "__main__":
    sys.exit(play())
