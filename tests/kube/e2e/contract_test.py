#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the lock protocol relies on, asked of any API server.

Written out by hand rather than through our client: when one of these fails, the ground
has moved.  Pods are for a scheduler that nobody is and are bound to a node that is none,
so that nothing is run.

cluster: any
"""
import itertools
import random
import sys
import urllib.parse
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, main, refused, test  # noqa: E402
from harness.client import anywhere  # noqa: E402

CLIENT, NAMESPACE = anywhere()
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
NOBODY = f"gpu-scheduler-e2e-{random.randrange(1 << 32):08x}"
STRATEGIC = "application/strategic-merge-patch+json"
ENTRIES = "gpu.scheduling/entries"
ANNOTATIONS_BYTES = 256 << 10


def pod_object(name):
    """A pod that the strictest of clusters admits."""
    container = {
        "name": "main",
        "image": "example/train",
        "resources": {"limits": {"cpu": "1m", "memory": "1Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    security = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = {"schedulerName": NOBODY, "securityContext": security, "containers": [container]}
    return {"metadata": {"name": name, "labels": {"app": "contract"}}, "spec": spec}


def make_pod(name):
    """Create a pod; in a new namespace its service account may be yet to come."""

    def made():
        answer = CLIENT.post(PODS, pod_object(name))
        if answer.code == 403 and "serviceaccount" in answer.text:
            return None
        equal(answer.code, 201, str(answer))
        return answer.json

    return eventually(made, "a pod can be made")


def bind(pod, **metadata):
    """POST a Binding of this pod."""
    name = pod["metadata"]["name"]
    body = {"metadata": {"name": name, **metadata}, "target": {"name": NOBODY}}
    return CLIENT.post(f"{PODS}/{name}/binding", body)


def version_and_uid(thing):
    """What makes a write conditional on the version that was read."""
    return {name: thing["metadata"][name] for name in ("resourceVersion", "uid")}


def patch_status(pod, reason, uid=None):
    """Say why the pod is not scheduled."""
    condition = {"type": "PodScheduled", "status": "False", "reason": reason}
    body = {
        "metadata": {"uid": uid or pod["metadata"]["uid"]},
        "status": {"conditions": [condition]},
    }
    return CLIENT.request("PATCH", f"{PODS}/{pod['metadata']['name']}/status", body, STRATEGIC)


def make_lease(name, annotations=None):
    """A Lease that nobody holds."""
    body = {"metadata": {"name": name, "annotations": annotations or {}}, "spec": {}}
    answer = CLIENT.post(LEASES, body)
    equal(answer.code, 201, str(answer))
    return answer.json


def with_entries(lease, text):
    """The same Lease with other entries."""
    metadata = {**lease["metadata"], "annotations": {ENTRIES: text}}
    return {**lease, "metadata": metadata}


def watch(path, version, count, **more):
    """The first events since that version."""
    query = {"watch": "1", "timeoutSeconds": "30", "resourceVersion": version, **more}
    client, _ = anywhere()
    return list(itertools.islice(client.stream(f"{path}?{urllib.parse.urlencode(query)}"), count))


@test
def a_binding_sets_node_and_annotations_in_one_step():
    pod = make_pod("train")
    annotations = {"gpu.scheduling/allocated": f"{NOBODY}:0,1"}
    equal(bind(pod, annotations=annotations, **version_and_uid(pod)).code, 201)
    version = pod["metadata"]["resourceVersion"]
    events = watch(PODS, version, 1, fieldSelector="metadata.name=train")
    check(events, "the watch saw no change")
    first = events[0]["object"]
    equal(first["spec"].get("nodeName"), NOBODY, "node at the first change")
    seen = first["metadata"].get("annotations", {})
    equal({**seen, **annotations}, seen, "annotations at the first change")


@test
def a_binding_keeps_what_the_pod_carries_and_adds_to_it():
    make_pod("carries")
    body = {"metadata": {"annotations": {"user/own": "stays"}}}
    merge = "application/merge-patch+json"
    pod = CLIENT.request("PATCH", f"{PODS}/carries", body, merge).json
    annotations = {"gpu.scheduling/allocated": "x:0"}
    equal(bind(pod, annotations=annotations, **version_and_uid(pod)).code, 201)
    seen = CLIENT.get(f"{PODS}/carries").json["metadata"]["annotations"]
    equal((seen["user/own"], seen["gpu.scheduling/allocated"]), ("stays", "x:0"))


@test
def a_changed_pod_is_not_bound_by_a_late_binding():
    pod = make_pod("stale")
    answer = patch_status(pod, "Unschedulable")
    equal(answer.code, 200, str(answer))
    refused(bind(pod, **version_and_uid(pod)), 409, "Conflict")
    check("nodeName" not in CLIENT.get(f"{PODS}/stale").json["spec"], "it was bound")
    equal(bind(pod, **version_and_uid(answer.json)).code, 201)


@test
def a_patch_that_changes_nothing_fences_nothing():
    pod = make_pod("fenced")
    first = patch_status(pod, "Unschedulable").json["metadata"]["resourceVersion"]
    check(first != pod["metadata"]["resourceVersion"], "the first changed nothing")
    again = patch_status(pod, "Unschedulable").json["metadata"]["resourceVersion"]
    equal(again, first, "version after the same again")
    other = patch_status(pod, "SchedulerError").json["metadata"]["resourceVersion"]
    check(other != first, "another reason changed nothing")
    refused(bind(pod, uid=pod["metadata"]["uid"], resourceVersion=first), 409, "Conflict")


@test
def a_pod_of_the_same_name_is_not_taken_for_the_earlier_one():
    pod = make_pod("again")
    equal(CLIENT.delete(f"{PODS}/again", {"gracePeriodSeconds": 0}).code, 200)
    make_pod("again")
    refused(bind(pod, uid=pod["metadata"]["uid"]), 409, "Conflict")
    answer = patch_status(pod, "Unschedulable")
    check(answer.code in (409, 422), f"a patch with the uid of another: {answer}")
    options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
    refused(CLIENT.delete(f"{PODS}/again", options), 409, "Conflict")


@test
def a_bound_pod_is_not_bound_again():
    pod = make_pod("twice")
    uid = pod["metadata"]["uid"]
    equal(bind(pod, uid=uid).code, 201)
    refused(bind(pod, uid=uid), 409, "Conflict")


@test
def a_lock_is_created_once_and_replaced_by_who_read_it_last():
    taken = make_lease("gpus-once")
    again = {"metadata": {"name": "gpus-once"}, "spec": {}}
    refused(CLIENT.post(LEASES, again), 409, "AlreadyExists")
    equal(CLIENT.put(f"{LEASES}/gpus-once", with_entries(taken, "[1]")).code, 200)
    refused(CLIENT.put(f"{LEASES}/gpus-once", with_entries(taken, "[2]")), 409, "Conflict")
    seen = CLIENT.get(f"{LEASES}/gpus-once").json["metadata"]["annotations"]
    equal(seen, {ENTRIES: "[1]"})


@test
def a_put_to_a_deleted_lock_needs_the_uid_to_be_refused():
    taken = make_lease("gpus-gone")
    options = {"preconditions": version_and_uid(taken)}
    equal(CLIENT.delete(f"{LEASES}/gpus-gone", options).code, 200)
    refused(CLIENT.put(f"{LEASES}/gpus-gone", taken), 409, "Conflict")
    equal(CLIENT.get(f"{LEASES}/gpus-gone").code, 404)
    del taken["metadata"]["uid"]
    equal(CLIENT.put(f"{LEASES}/gpus-gone", taken).code, 201, "brought back")


@test
def a_put_without_a_version_is_refused():
    taken = make_lease("gpus-blind")
    del taken["metadata"]["resourceVersion"]
    refused(CLIENT.put(f"{LEASES}/gpus-blind", taken), 422, "Invalid")


@test
def a_lock_that_moved_on_is_not_deleted():
    taken = make_lease("gpus-moved")
    equal(CLIENT.put(f"{LEASES}/gpus-moved", with_entries(taken, "[1]")).code, 200)
    options = {"preconditions": version_and_uid(taken)}
    refused(CLIENT.delete(f"{LEASES}/gpus-moved", options), 409, "Conflict")


@test
def a_lock_holds_256_kib_and_no_more():
    room = ANNOTATIONS_BYTES - len(ENTRIES)
    taken = make_lease("gpus-full", {ENTRIES: "x" * room})
    equal(len(taken["metadata"]["annotations"][ENTRIES]), room)
    more = CLIENT.put(f"{LEASES}/gpus-full", with_entries(taken, "x" * (room + 1)))
    refused(more, 422, "Invalid")


@test
def the_name_of_a_lock_has_253_characters():
    make_lease("gpus-" + "a" * 248)
    body = {"metadata": {"name": "gpus-" + "a" * 249}, "spec": {}}
    refused(CLIENT.post(LEASES, body), 422, "Invalid")
    # A cut name must not end a label with a dot or a dash.
    refused(CLIENT.post(LEASES, {"metadata": {"name": "gpus-a.-0"}, "spec": {}}), 422, "Invalid")


@test
def pages_of_a_list_are_of_one_moment():
    for number in range(5):
        make_lease(f"page-{number}")
    first = CLIENT.get(f"{LEASES}?limit=2&labelSelector=!none").json
    version, token = first["metadata"]["resourceVersion"], first["metadata"]["continue"]
    make_lease("page-later")
    names = [item["metadata"]["name"] for item in first["items"]]
    while token:
        query = urllib.parse.urlencode({"limit": 2, "labelSelector": "!none", "continue": token})
        page = CLIENT.get(f"{LEASES}?{query}").json
        equal(page["metadata"]["resourceVersion"], version, "version of the next page")
        names += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue")
    pages = [name for name in names if name.startswith("page-")]
    equal(pages, [f"page-{number}" for number in range(5)])


@test
def a_watch_tells_every_change_since_the_list_in_order():
    version = CLIENT.get(LEASES).json["metadata"]["resourceVersion"]
    taken = make_lease("seen")
    taken = CLIENT.put(f"{LEASES}/seen", with_entries(taken, "[1]")).json
    CLIENT.put(f"{LEASES}/seen", with_entries(taken, "[2]"))
    CLIENT.delete(f"{LEASES}/seen")
    seen = [
        (event["type"], event["object"]["metadata"].get("annotations", {}).get(ENTRIES))
        for event in watch(LEASES, version, 4, fieldSelector="metadata.name=seen")
    ]
    expected = [("ADDED", None), ("MODIFIED", "[1]"), ("MODIFIED", "[2]"), ("DELETED", "[2]")]
    equal(seen, expected)


@test
def what_stops_to_match_a_selector_is_told_as_deleted():
    make_pod("selected")
    version = CLIENT.get(PODS).json["metadata"]["resourceVersion"]
    body = {"metadata": {"labels": {"app": "other"}}}
    CLIENT.request("PATCH", f"{PODS}/selected", body, "application/merge-patch+json")
    selector = {"labelSelector": "app=contract", "fieldSelector": "metadata.name=selected"}
    events = watch(PODS, version, 1, **selector)
    equal([event["type"] for event in events], ["DELETED"])
    check(CLIENT.get(f"{PODS}/selected").code == 200, "it was deleted")


if __name__ == "__main__":
    sys.exit(main())
