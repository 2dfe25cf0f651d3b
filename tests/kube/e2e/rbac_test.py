#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What deploy/rbac grants: all that a role needs, and nothing that it must not have.

cluster:
"""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, kubectl, main, refused, test  # noqa: E402
from harness.client import as_identity  # noqa: E402
from harness.plane import DEPLOY, IDENTITIES, ROLES  # noqa: E402

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
ADMIN, SCHEDULER = as_identity("admin"), as_identity("scheduler")
READ = ("get", "list", "watch")
LOCKS = "gpu-scheduler-locks"
OWN = "gpu-scheduler"
CONFIG = "topology-scheduler-config"

# group/resource of everything that the scheduler keeps a cache of, all over the cluster.
CACHED = (
    "/pods",
    "/nodes",
    "/namespaces",
    "/services",
    "/replicationcontrollers",
    "/persistentvolumes",
    "/persistentvolumeclaims",
    "apps/replicasets",
    "apps/statefulsets",
    "apps/deployments",
    "batch/jobs",
    "policy/poddisruptionbudgets",
    "storage.k8s.io/storageclasses",
    "storage.k8s.io/csinodes",
    "storage.k8s.io/csidrivers",
    "storage.k8s.io/csistoragecapacities",
    "storage.k8s.io/volumeattachments",
    "scheduling.k8s.io/priorityclasses",
    "scheduling.k8s.io/podgroups",
    "scheduling.x-k8s.io/podgroups",
    "gpu.scheduling/gpuclaims",
    "gpu.scheduling/gpunodestatuses",
)

# roles, verbs, what, where ("" is everywhere)
MAY = (
    ("scheduler extender", READ, CACHED, ""),
    ("scheduler extender", ("create",), ("/pods/binding",), ""),
    ("scheduler extender", ("patch",), ("/pods/status",), ""),
    ("scheduler", ("delete",), ("/pods",), ""),
    ("scheduler", ("create", "patch", "update"), ("/events", "events.k8s.io/events"), ""),
    ("scheduler extender", ("update", "patch"), ("gpu.scheduling/gpuclaims/status",), ""),
    ("scheduler extender", (*READ, "create", "update", "delete"), ("leases",), LOCKS),
    ("scheduler", ("create",), ("leases",), OWN),
    ("controller", (*READ, "update", "delete"), ("leases",), LOCKS),
    ("agent", ("get",), ("leases",), LOCKS),
    ("agent", ("patch",), ("gpu.scheduling/gpunodestatuses/status",), ""),
)
MAY_NOT = (
    ("scheduler extender controller agent webhook", ("get", "list"), ("/secrets",), ""),
    ("scheduler extender controller agent webhook", ("update", "patch"), ("/pods",), ""),
    ("scheduler extender controller agent webhook", ("create",), ("/pods",), ""),
    ("webhook", READ, CACHED, ""),
    ("extender agent webhook", ("delete",), ("/pods",), ""),
    ("controller agent webhook", ("create",), ("/pods/binding",), ""),
    ("scheduler extender webhook", ("patch", "update"), ("/nodes", "/nodes/status"), ""),
    ("agent", ("patch", "update"), ("/nodes",), ""),
    ("agent webhook", ("create", "update", "delete", "patch"), ("leases",), LOCKS),
    ("controller", ("create",), ("leases",), LOCKS),
    ("scheduler extender", ("update", "delete", "patch"), ("leases",), ""),
    ("scheduler extender", ("list", "watch"), ("/configmaps",), "kube-system"),
    ("scheduler extender", ("update", "patch", "create"), ("/configmaps",), "kube-system"),
    ("scheduler", ("update", "patch"), ("gpu.scheduling/gpunodestatuses",), ""),
)


def allowed(role, verb, what, where, name=""):
    """Whether the role may do that."""
    if what == "leases":
        what = "coordination.k8s.io/leases"
    group, _, resource = what.partition("/")
    resource, _, subresource = resource.partition("/")
    user, groups = IDENTITIES[role]
    attributes = {
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "namespace": where,
        "name": name,
    }
    spec = {"user": user, "groups": groups, "resourceAttributes": attributes}
    answer = ADMIN.post(REVIEWS, {"spec": spec})
    equal(answer.code, 201, str(answer))
    return answer.json["status"]["allowed"]


def each(rows):
    """role, verb, what, where of a table."""
    for roles, verbs, things, where in rows:
        for role in roles.split():
            for verb in verbs:
                for what in things:
                    yield role, verb, what, where


@test
def each_role_may_do_its_work():
    for row in each(MAY):
        check(allowed(*row), f"may not: {row}")


@test
def no_role_may_do_more():
    for row in each(MAY_NOT):
        check(not allowed(*row), f"may: {row}")


@test
def users_have_no_rights_where_the_locks_are():
    spec = {
        "user": "somebody",
        "groups": ["system:authenticated"],
        "resourceAttributes": {
            "verb": "update",
            "group": "coordination.k8s.io",
            "resource": "leases",
            "namespace": LOCKS,
        },
    }
    check(not ADMIN.post(REVIEWS, {"spec": spec}).json["status"]["allowed"], "a user may")


@test
def only_the_election_of_our_own_is_touched():
    for verb in ("get", "update"):
        check(allowed("scheduler", verb, "leases", OWN, "gpu-scheduler"), verb)
        check(not allowed("scheduler", verb, "leases", OWN, "another"), f"{verb} another")


@test
def the_configuration_is_followed_by_its_name_alone():
    kubectl("create", "-f", str(DEPLOY / "crds"))
    config = "/apis/topology.scheduler/v1alpha1/namespaces/kube-system/"
    for path in (
        "/api/v1/namespaces/kube-system/configmaps",
        config + "schedulerconfigs",
        config + "topologyschedulerconfigs",
    ):
        eventually(lambda p=path: ADMIN.get(p).code == 200, f"{path} is served")
        one = f"{path}?fieldSelector=metadata.name%3D{CONFIG}"
        equal(SCHEDULER.get(one).code, 200, one)
        equal(SCHEDULER.get(f"{one}&watch=1&timeoutSeconds=1").code, 200, f"watch {one}")
        refused(SCHEDULER.get(path), 403, "Forbidden")


def flow_of(role, path):
    """The FlowSchema that a request of the role is counted by."""
    schemas = {
        item["metadata"]["uid"]: item["metadata"]["name"]
        for item in ADMIN.get(FLOWS).json["items"]
    }
    answer = as_identity(role).get(path)
    return schemas.get(answer.headers.get("X-Kubernetes-PF-FlowSchema-UID"))


@test
def requests_wait_apart_from_those_of_workloads():
    locks, election = LEASES.format(LOCKS), LEASES.format(OWN) + "/gpu-scheduler"
    for role, path, flow in (
        ("scheduler", "/api/v1/pods?limit=1", "gpu-scheduler"),
        ("scheduler", "/api/v1/nodes?limit=1", "gpu-scheduler"),
        ("scheduler", locks, "gpu-scheduler-locks"),
        ("extender", locks, "gpu-scheduler-locks"),
        ("controller", locks, "gpu-scheduler-locks"),
        ("agent", f"{locks}/gpus-n", "gpu-scheduler-locks"),
        ("scheduler", election, "gpu-scheduler-leader-election"),
        ("agent", "/api/v1/pods?limit=1", "service-accounts"),
    ):
        eventually(lambda r=role, p=path, f=flow: flow_of(r, p) == f, f"{role} {path} is of {flow}")


@test
def every_role_has_a_file_and_an_account():
    for role in ROLES:
        check((DEPLOY / "rbac" / f"{role}.yaml").exists(), f"{role} has no file")
        path = f"/api/v1/namespaces/{OWN}/serviceaccounts/{role}"
        equal(ADMIN.get(path).code, 200, path)


if __name__ == "__main__":
    sys.exit(main())
