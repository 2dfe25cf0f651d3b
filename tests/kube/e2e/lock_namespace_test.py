#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--lock-namespace: locks where they are wanted, and what is said when they cannot be there.

cluster: --nodes 1 --gpus 8 --history --controllers=namespace-controller,serviceaccount-controller
"""
import json
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, main, test  # noqa: E402
from harness.client import as_identity  # noqa: E402
from harness.scheduler import (  # noqa: E402
    ENTRIES,
    Scheduler,
    create,
    delete_pod,
    delete_pods,
    entries,
    get_pod,
    install_kinds,
    make_pod,
    wait_bound,
    wait_message,
)

ADMIN = as_identity("admin")
ADMINISTRATOR = Path(os.environ.get("KUBE_DIR", "/tmp")) / "admin.kubeconfig"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"


def locked(namespace):
    """The names of the pods that have a lock there."""
    items = ADMIN.get(LEASES.format(namespace)).json["items"]
    texts = [item["metadata"].get("annotations", {}).get(ENTRIES, "[]") for item in items]
    return sorted(entry["name"] for text in texts for entry in json.loads(text))


def leases(namespace):
    """The names of those there."""
    items = ADMIN.get(LEASES.format(namespace)).json["items"]
    return sorted(item["metadata"]["name"] for item in items)


@test
def locks_are_in_the_namespace_that_was_given():
    create("/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})
    with Scheduler("--lock-namespace", "elsewhere", kubeconfig=ADMINISTRATOR):
        make_pod("one", gpus=1)
        wait_bound("one")
        equal(leases("elsewhere"), ["gpus-gpu-0", "lock-mode"])
        equal(entries(), [], "locks in the usual namespace")
        equal(locked("elsewhere"), ["one"])
        delete_pods()
        # Nobody looks there any more: what is left would count for nobody.
        eventually(lambda: not locked("elsewhere"), "the lock is gone")


@test
def a_namespace_that_is_not_there_is_named_and_waited_for():
    scheduler = Scheduler("--lock-namespace", "later", kubeconfig=ADMINISTRATOR)
    make_pod("two", gpus=1)
    eventually(lambda: "namespace later is missing" in scheduler.log(), "it says what is missing")
    status, why = scheduler.get("/readyz")
    equal(status, 503)
    check("namespace later is missing" in why, why)
    wait_message("two", "namespace later is missing", "create namespace later")
    check("nodeName" not in get_pod("two")["spec"], "bound without a lock")
    create("/api/v1/namespaces", {"metadata": {"name": "later"}})
    with scheduler:
        wait_bound("two", timeout_s=60)
        equal(locked("later"), ["two"])
        delete_pod("two")
        eventually(lambda: not locked("later"), "the lock is gone")


@test
def rights_that_are_missing_are_told():
    """The account of the scheduler may write Leases in the usual namespace alone."""
    scheduler = Scheduler("--lock-namespace", "elsewhere")
    words = "create namespace elsewhere if it is missing, and let this account get, list, watch,"
    eventually(lambda: words in scheduler.log(), "it says what to do")
    eventually(lambda: scheduler.log().count("resource=leases") >= 3, "it has tried again")
    told = [line for line in scheduler.log().splitlines() if "level=warn" in line]
    equal(len(told), 1, f"{told}")
    status, why = scheduler.get("/readyz")
    check(status == 503 and words in why, f"{status}: {why}")
    make_pod("three", gpus=1)
    wait_message("three", words)
    scheduler.stop()
    delete_pods()


@test
def a_namespace_that_is_deleted_goes_with_the_last_lock_and_is_waited_for():
    path = "/api/v1/namespaces/fleeting"
    create("/api/v1/namespaces", {"metadata": {"name": "fleeting"}})
    with Scheduler("--lock-namespace", "fleeting", kubeconfig=ADMINISTRATOR):
        make_pod("four", gpus=1)
        wait_bound("four")
        equal(ADMIN.delete(path).code, 200)
        eventually(lambda: leases("fleeting") == ["gpus-gpu-0"], "the mode is gone")
        make_pod("five", gpus=1)
        wait_message("five", "leases of namespace fleeting may not be written")
        equal(locked("fleeting"), ["four"], "what belongs to a live pod")
        delete_pod("four")
        eventually(lambda: ADMIN.get(path).code == 404, "the namespace is gone", 60)
        wait_message("five", "namespace fleeting is missing", timeout_s=60)
        create("/api/v1/namespaces", {"metadata": {"name": "fleeting"}})
        wait_bound("five", timeout_s=60)
        equal(locked("fleeting"), ["five"])
        delete_pod("five")
        eventually(lambda: not locked("fleeting"), "the lock is gone")


if __name__ == "__main__":
    sys.exit(main(install_kinds))
