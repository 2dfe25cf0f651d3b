# SPDX-License-Identifier: Apache-2.0
"""Rules about GpuClaims; see rules.py for what a rule is."""
import re

from .ledger import ALLOCATED, annotations, is_live, node_of

CLAIM = "gpu.scheduling/claim"
KEY = "/registry/gpu.scheduling/gpuclaims/"
# From -> to.  A claim without a status is Pending; Bound ends when its pods have.
WAYS = {
    "Pending": ("Reserved", "Failed"),
    "Reserved": ("Bound", "Failed"),
    "Failed": ("Pending",),
    "Bound": ("Pending",),
}
SHOWN = re.compile(r"^(?P<first>\S+:[\d,]*)(?: \+(?P<more>\d+))?$")


def _title(claim):
    return f"claim {claim['metadata'].get('namespace')}/{claim['metadata']['name']}"


def _status(claim):
    return (claim or {}).get("status") or {}


def _phase(claim):
    return _status(claim).get("phase") or "Pending"


def _pods(ledger, claim):
    """Those that name the claim."""
    meta = claim["metadata"]
    return [
        pod
        for pod in ledger.pods.values()
        if pod["metadata"].get("namespace") == meta.get("namespace")
        and annotations(pod).get(CLAIM) == meta["name"]
    ]


class ClaimGoesItsWay:
    """Pending -> Reserved -> Bound or Failed -> Pending."""

    def change(self, change, ledger):
        """See RULES."""
        if not change.key.startswith(KEY) or change.after is None:
            return
        before, after = _phase(change.before), _phase(change.after)
        if after not in WAYS:
            yield f"{_title(change.after)} is {after}"
        elif before != after and after not in WAYS.get(before, ()):
            yield f"{_title(change.after)} went from {before} to {after}"
        elif before == "Bound" and after == "Pending":
            left = [pod for pod in _pods(ledger, change.after) if is_live(pod) and node_of(pod)]
            if left:
                yield f"{_title(change.after)} is Pending again and has {len(left)} bound pods"


class ClaimAgreesWithItsPods:
    """What a claim says was allocated or reserved is what pods of it have, or had when they were
    read: who writes it cannot know that a pod has been deleted a moment ago."""

    def __init__(self):
        self.had = {}  # (namespace, claim) -> uid of a pod -> its annotation
        self.named = {}  # (namespace, claim) -> uids of all pods that ever named it
        self.locked = set()  # uids of all pods that ever had a lock

    def change(self, change, ledger):
        """See RULES."""
        if change.resource == "pods" and change.after is not None:
            self._note(change.after)
        if change.resource == "leases":
            for lock in ledger.locks.values():
                self.locked.update(entry.pod for entry in lock.entries)
        if change.key.startswith(KEY) and change.after is not None:
            if _status(change.after) != _status(change.before):
                yield from self._faults(change.after)

    def _note(self, pod):
        meta, notes = pod["metadata"], annotations(pod)
        if CLAIM in notes:
            uids = self.named.setdefault((meta.get("namespace"), notes[CLAIM]), set())
            uids.add(meta["uid"])
        if CLAIM in notes and ALLOCATED in notes and node_of(pod):
            pods = self.had.setdefault((meta.get("namespace"), notes[CLAIM]), {})
            pods[meta["uid"]] = notes[ALLOCATED]

    def _faults(self, claim):
        status, phase = _status(claim), _phase(claim)
        key = (claim["metadata"].get("namespace"), claim["metadata"]["name"])
        had = self.had.get(key, {})
        shown = SHOWN.match(status.get("allocated") or "")
        if phase == "Reserved" and not self.named.get(key, set()) & self.locked:
            yield f"{_title(claim)} is Reserved and no pod of it is locked"
        if phase != "Bound":
            if status.get("allocated"):
                yield f"{_title(claim)} is {phase} and says {status['allocated']} is allocated"
        elif not shown or shown["first"] not in had.values():
            yield (
                f"{_title(claim)} says {status.get('allocated')} is allocated,"
                f" its pods {sorted(had.values())}"
            )
        elif int(shown["more"] or 0) >= len(had):
            yield f"{_title(claim)} says {status['allocated']} of {len(had)} pods"
        elif status.get("nodeName") not in (None, shown["first"].rpartition(":")[0]):
            yield f"{_title(claim)} says {status['allocated']} and {status['nodeName']}"


CLAIM_RULES = (ClaimGoesItsWay, ClaimAgreesWithItsPods)
