# SPDX-License-Identifier: Apache-2.0
"""`gpu-scheduler run` as a process of a test, and pods for it.

    with scheduling():
        make_pod("train", gpus=2)
        wait_bound("train")

At the end of the block it is told to stop and must go without a complaint, of a sanitizer for
instance, unless the test has ended it itself.  BUILD names the folder that it is built in
(./build).  What it logged is in $KUBE_DIR/<name>.log.
"""
import contextlib
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from .check import check, equal, eventually, kubectl
from .client import as_identity
from .processes import die_with_parent

ROOT = Path(__file__).resolve().parent.parent.parent.parent
BUILD = Path(os.environ.get("BUILD") or ROOT / "build").resolve()
PROGRAM = BUILD / "gpu-scheduler"
PODS = "/api/v1/namespaces/{}/pods"
LOCKS = "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler-locks/leases"
MERGE = "application/merge-patch+json"
ENTRIES = "gpu.scheduling/entries"
DECISION = "gpu.scheduling/decision"
END_S = 60
NUMBERS = itertools.count()
RUNNING = []  # the one that a whole file of tests has (scene.py)


def install_kinds():
    """The custom resources, served."""
    kubectl("apply", "-f", str(ROOT / "deploy" / "crds"))
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")


def _free_port():
    with socket.socket() as each:
        each.bind(("127.0.0.1", 0))
        return each.getsockname()[1]


class Scheduler:
    """A running scheduler, alone unless told otherwise."""

    def __init__(self, *options, name=None, kubeconfig=None, leader_elect=False):
        folder = Path(os.environ["KUBE_DIR"])
        self.name = name or f"gpu-scheduler-{next(NUMBERS)}"
        self.log_file = folder / f"{self.name}.log"
        self.health = f"http://127.0.0.1:{_free_port()}"
        command = [PROGRAM, "run", "--log-level", "debug"]
        command += ["--kubeconfig", kubeconfig or folder / "scheduler.kubeconfig"]
        command += ["--health-addr", self.health[len("http://") :]]
        command += ["--leader-elect", "true" if leader_elect else "false"]
        # The lease of the election is where the account may write one.
        command += ["--leader-elect-namespace", "gpu-scheduler", *options]
        parent = os.getpid()
        with open(self.log_file, "ab") as log:
            # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
            self.process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=lambda: die_with_parent(parent=parent),
            )
        self.ended = False

    def get(self, path):
        """Status and text of what it serves; (0, "") if it does not answer."""
        try:
            with urllib.request.urlopen(self.health + path, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def version(self, kind):
        """How far it has followed the objects of a kind; None if it does not say."""
        found = re.search(
            rf'^gpu_scheduler_kube_cache_resource_version{{resource="{kind}"}} (\d+)$',
            self.get("/metrics")[1],
            re.MULTILINE,
        )
        return int(found.group(1)) if found else None

    def log(self):
        """What it has logged so far."""
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def wait_ready(self, timeout_s=240):
        """Until it knows everything and decides."""

        def ready():
            check(self.process.poll() is None, f"{self.name} has ended:\n{self.log()[-2000:]}")
            return self.get("/readyz")[0] == 200

        eventually(ready, f"{self.name} is ready", timeout_s)
        return self

    def kill(self, number=signal.SIGKILL):
        """Send it a signal; SIGKILL is awaited."""
        self.process.send_signal(number)
        if number == signal.SIGKILL:
            self.process.wait()
            self.ended = True

    def wait_end(self, timeout_s=END_S):
        """Until it has ended by itself; its status."""
        status = self.process.wait(timeout_s)
        self.ended = True
        return status

    def stop(self):
        """Politely; it must end well."""
        if self.ended:
            return
        self.ended = True
        self.process.terminate()
        try:
            status = self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = "none: it had to be killed"
        equal(status, 0, f"status of {self.name}, which logged\n{self.log()[-3000:]}\n")

    def __enter__(self):
        return self.wait_ready()

    def __exit__(self, kind, *_):
        if kind is not None:
            self.process.kill()
            self.process.wait()
            print(f"# {self.name}:\n# " + self.log()[-4000:].replace("\n", "\n# "))
            return
        self.stop()


def pod_object(name, gpus=0, annotations=None, limits=None, namespace="default", **spec):
    """A pod of ours, without a service account's token to wait for."""
    limits = dict(limits or {})
    if gpus:
        limits["nvidia.com/gpu"] = str(gpus)
    container = {"name": "main", "image": "example/train", "resources": {"limits": limits}}
    labels = spec.pop("labels", {})
    owners = spec.pop("owners", [])
    metadata = {"name": name, "namespace": namespace, "annotations": annotations or {}}
    metadata.update(labels=labels, ownerReferences=owners)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"schedulerName": "gpu-scheduler", "containers": [container], **spec},
    }


def heard(path, answer):
    """Until the scheduler of the tests knows of a write that was answered so.

    It hears of each kind on a stream of its own: of a pod perhaps sooner than of the label,
    the report or the budget that decides where the pod goes.  Among pods there is an order.
    """
    words = path.split("?")[0].strip("/").split("/")
    group, words = ("", words[2:]) if words[0] == "api" else ("." + words[1], words[3:])
    kind = (words[2] if words[0] == "namespaces" and len(words) > 2 else words[0]) + group
    if not RUNNING or kind == "pods" or answer.code not in (200, 201) or "dryRun" in path:
        return
    version = int(answer.json["metadata"]["resourceVersion"])

    def there():
        known = RUNNING[0].version(kind)
        return known is None or known >= version

    eventually(there, f"the scheduler has heard of {path}, version {version}", 30)


def create(path, body):
    """POST as admin; the object."""
    answer = as_identity("admin").post(path, body)
    equal(answer.code, 201, str(answer))
    heard(path, answer)
    return answer.json


def make_pod(name, *args, **kwargs):
    """Create such a pod and return it."""
    pod = pod_object(name, *args, **kwargs)
    return create(PODS.format(pod["metadata"]["namespace"]), pod)


def get_pod(name, namespace="default"):
    """The pod now, or None."""
    answer = as_identity("admin").get(f"{PODS.format(namespace)}/{name}")
    return answer.json if answer.code == 200 else None


def delete_pod(name, namespace="default", grace_s=0):
    """Delete it; no kubelet need agree."""
    path = f"{PODS.format(namespace)}/{name}"
    return as_identity("admin").delete(path, {"gracePeriodSeconds": grace_s})


def wait_gone(name, namespace="default"):
    """Until there is no such pod."""
    eventually(lambda: get_pod(name, namespace) is None, f"{name} is gone")


def wait_bound(name, namespace="default", timeout_s=30):
    """Until the pod has a node; the pod."""

    def bound():
        pod = get_pod(name, namespace)
        return pod if pod and pod["spec"].get("nodeName") else None

    try:
        return eventually(bound, f"{name} is bound", timeout_s)
    except Exception:
        print(f"# {name}: {json.dumps((get_pod(name, namespace) or {}).get('status'))}")
        raise


def condition(pod):
    """The condition PodScheduled, or {}."""
    found = [c for c in pod["status"].get("conditions", []) if c["type"] == "PodScheduled"]
    return found[0] if found else {}


def check_form(told):
    """People and autoscalers know what begins so; kube-scheduler says it of wrong pods, too."""
    message = told["message"]
    if told["reason"] == "Unschedulable" and message != "no nodes available to schedule pods":
        check(re.match(r"0/\d+ nodes are available: ", message), f"the form of: {message}")
        check(message[-1] in ".?!" and not message.endswith(".."), f"the end of: {message}")


def wait_message(name, *words, namespace="default", timeout_s=30):
    """Until the pod is told why it waits, with all these words and in the known form; the
    message."""

    def told():
        pod = get_pod(name, namespace)
        message = condition(pod).get("message", "") if pod else ""
        return pod if message and all(word in message for word in words) else None

    try:
        pod = eventually(told, f"{name} is told {words}", timeout_s)
        check_form(condition(pod))
        return condition(pod)["message"]
    except Exception:
        print(f"# {name}: {json.dumps((get_pod(name, namespace) or {}).get('status'))}")
        raise


def gpus_of(pod):
    """The ids that a bound pod was given."""
    allocated = pod["metadata"]["annotations"]["gpu.scheduling/allocated"]
    node, _, ids = allocated.partition(":")
    equal(node, pod["spec"]["nodeName"], "the node of the decision")
    return [int(each) for each in ids.split(",") if each]


def entries():
    """All locks: (Lease, entry)."""
    leases = as_identity("admin").get(LOCKS).json["items"]
    found = []
    for lease in leases:
        text = lease["metadata"].get("annotations", {}).get(ENTRIES, "[]")
        found += [(lease["metadata"]["name"], entry) for entry in json.loads(text)]
    return found


def entries_of(pod):
    """The locks of one pod."""
    return [entry for _, entry in entries() if entry["pod"] == pod["metadata"]["uid"]]


def delete_pods(namespace="default"):
    """All of them, whatever they are bound to."""
    admin = as_identity("admin")
    path = PODS.format(namespace)
    for pod in admin.get(path).json["items"]:
        delete_pod(pod["metadata"]["name"], namespace)
    eventually(lambda: not admin.get(path).json["items"], "all pods are gone")


@contextlib.contextmanager
def scheduling(*options, **kwargs):
    """A scheduler in a cluster without pods; at the end its pods are deleted, and their locks
    must go."""
    delete_pods()
    with Scheduler(*options, **kwargs) as scheduler:
        yield scheduler
        delete_pods()
        eventually(lambda: not entries(), "all locks are gone")
