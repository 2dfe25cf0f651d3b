# SPDX-License-Identifier: Apache-2.0
"""What must be true again after schedulers crashed, raced or were lied to.

    with Scheduler() as scheduler:
        print(f"# after {settle(pods, gangs):.1f} s")

Of what was before, the history checker knows more.
"""
import json
import time

from .check import check, equal, eventually
from .client import as_identity
from .scheduler import DECISION, PODS, delete_pod, entries, gpus_of, make_pod, pod_object

# Of a machine that has other things to do; what was measured is printed.  That what is promised is
# kept after a crash, crash.py sees to.
PATIENCE_S = 150


def all_pods(namespace="default"):
    """name -> pod, as they are now."""
    found = as_identity("admin").get(PODS.format(namespace)).json["items"]
    return {pod["metadata"]["name"]: pod for pod in found}


def is_bound(pod):
    """Whether it has a node."""
    return bool(pod["spec"].get("nodeName"))


def holds_gpus(pod):
    """Whether it was bound with GPUs."""
    return is_bound(pod) and "gpu.scheduling/allocated" in pod["metadata"]["annotations"]


def unsettled(wanted):
    """What is not yet as it must be, or an empty text: all these pods are bound, and locks are
    there for just the pods that hold GPUs, by the attempt that bound them."""
    pods = all_pods()
    missing = [name for name in wanted if name not in pods or not is_bound(pods[name])]
    if missing:
        return f"{len(missing)} pods are not bound: {', '.join(missing[:5])}"
    holders = {p["metadata"]["uid"]: p for p in pods.values() if holds_gpus(p)}
    locked = set()
    for lease, entry in entries():
        pod = holders.get(entry["pod"])
        if not pod:
            return f"{lease} has a lock of {entry['name']}, which holds nothing"
        decision = json.loads(pod["metadata"]["annotations"][DECISION])
        if decision["attempt"] != entry["attempt"]:
            return f"{lease} has a lock of {entry['name']} by another attempt"
        locked.add(entry["pod"])
    if len(locked) < len(holders):
        return f"{len(holders) - len(locked)} pods have no lock"
    return ""


def settle(wanted, patience_s=PATIENCE_S):
    """Wait until everything is as it must be; how long that took, in seconds."""
    begun, said = time.monotonic(), [""]

    def settled():
        said[0] = unsettled(wanted)
        return not said[0]

    try:
        eventually(settled, "all is settled", patience_s)
    except Exception:
        print(f"# {said[0]}")
        raise
    return time.monotonic() - begun


def check_cards():
    """No card of a bound pod is of another one too, as far as whole cards go."""
    used = {}
    for name, pod in all_pods().items():
        if not holds_gpus(pod) or "elasticgpu.io/gpu-core" in json.dumps(pod["spec"]):
            continue
        for card in gpus_of(pod):
            place = (pod["spec"]["nodeName"], card)
            check(place not in used, f"{name} and {used.get(place)} both have {place}")
            used[place] = name


class Churn:
    """Pods that come in waves, alone and in gangs, and go, whatever has become of them.  What is
    left at any time fits 32 cards of four nodes, wherever it was put; with fillers, only if
    those make room, which are of low priority and not counted on."""

    CARDS = 22
    FILLERS = 4  # of four cards each

    def __init__(self, rng, fillers=False):
        self.rng = rng
        self.fillers = fillers
        self.units = []  # (names, cards), in the order in which they came
        self.made = 0
        if fillers:
            body = {"metadata": {"name": "filler"}, "value": -10, "globalDefault": False}
            self._create("/apis/scheduling.k8s.io/v1/priorityclasses", body)

    @staticmethod
    def _create(path, body):
        """If it is not there yet."""
        code = as_identity("admin").post(path, body).code
        check(code in (201, 409), f"{path}/{body['metadata']['name']}: {code}")

    def _add(self, names, cards, **kwargs):
        for name in names:
            make_pod(name, **kwargs)
        self.units.append((names, cards))
        self.made += len(names)

    def _make_gang(self, number):
        """Three pods of two cards each, or none."""
        name = f"gang-{number}"
        body = {
            "apiVersion": "gpu.scheduling/v1",
            "kind": "GpuClaim",
            "metadata": {"name": name},
            "spec": {"devices": {"count": 2}, "gangRef": name, "gangMinMembers": 3},
        }
        self._create("/apis/gpu.scheduling/v1/namespaces/default/gpuclaims", body)
        members = [f"{name}-{member}" for member in range(3)]
        self._add(members, 6, annotations={"gpu.scheduling/claim": name})

    def _remove(self):
        """Some unit goes, of a gang all members at nearly the same time."""
        names, _ = self.units.pop(self.rng.randrange(len(self.units)))
        for name in names:
            equal(delete_pod(name).code, 200, f"deleting {name}")

    def _fill(self):
        """What has been preempted comes again."""
        for number in range(self.FILLERS):
            pod = pod_object(f"filler-{number}", gpus=4, priorityClassName="filler")
            self._create(PODS.format("default"), pod)

    def wave(self):
        """Some eight pods come; as many go that what is left has room."""
        number = self.made
        if self.fillers:
            self._fill()
        self._make_gang(number)
        for each in range(3):
            cards = self.rng.choice((1, 1, 2))
            self._add([f"single-{number}-{each}"], cards, gpus=cards)
        self._add([f"share-{number}"], 1, limits={"elasticgpu.io/gpu-core": "25"})
        self._add([f"plain-{number}"], 0)
        while sum(cards for _, cards in self.units) > self.CARDS:
            self._remove()

    def left(self):
        """The names of all that have not gone."""
        return [name for names, _ in self.units for name in names]
