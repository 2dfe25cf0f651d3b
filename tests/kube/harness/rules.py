# SPDX-License-Identifier: Apache-2.0
"""What must hold at every moment of a cluster's history.

A rule is an object with change(change, ledger), which is given every Change in order and the
Ledger as it is afterwards, and yields a sentence for each thing that is wrong from then on.
To add one: write the class, put it into the list of its kind (rules about pods are here,
others in lock_rules.py and claim_rules.py), give it a history that breaks it and one
that does not (e2e/history_test.py, e2e/locks_test.py, which does it on a real API server),
and a line in LOCKS.md.
"""
from .claim_rules import CLAIM_RULES
from .ledger import (
    DECISION,
    Ledger,
    annotations,
    decision_of,
    is_live,
    node_of,
    title,
)
from .lock_rules import LOCK_RULES
from .shares import overbooked

# What a Binding brings: nobody else may write these.
DECIDED = (
    DECISION,
    "gpu.scheduling/allocated",
    "gpu.scheduling/visible-devices",
    "elasticgpu.io/assumed",
)
DECIDED_PREFIX = "elasticgpu.io/container-"


def _decided(pod):
    """All annotations of the decision."""
    return {
        key: value
        for key, value in annotations(pod).items()
        if key in DECIDED or key.startswith(DECIDED_PREFIX)
    }


def _same_pod(change):
    """Was this pod there before and after?  A name may be used again within one write."""
    return (
        change.before is not None
        and change.after is not None
        and change.before["metadata"]["uid"] == change.after["metadata"]["uid"]
    )


class BoundOnce:
    """A pod stays on its node."""

    def change(self, change, _ledger):
        """See RULES."""
        if change.resource != "pods" or not _same_pod(change):
            return
        before, after = node_of(change.before), node_of(change.after)
        if before and before != after:
            yield f"{title(change.after)} moved from {before} to {after}"


class DecidedWhenBound:
    """The decision comes with the node, in one step, and never changes."""

    def change(self, change, _ledger):
        """See RULES."""
        pod = change.after
        if change.resource != "pods" or pod is None:
            return
        if _decided(pod) and not node_of(pod):
            yield f"{title(pod)} has a decision and no node"
        if not _same_pod(change) or not node_of(change.before):
            return
        before, after = _decided(change.before), _decided(pod)
        changed = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
        if changed:
            yield f"{title(pod)} got another decision after it was bound: {', '.join(changed)}"


class DecisionNamesItsNode:
    """What was decided can be read, and was decided for the node of the pod."""

    def change(self, change, _ledger):
        """See RULES."""
        pod = change.after
        if change.resource != "pods" or pod is None or not node_of(pod):
            return
        if DECISION not in annotations(pod):
            return
        decision = decision_of(pod)
        if decision is None:
            text = annotations(pod)[DECISION]
            yield f"{title(pod)} has a decision that cannot be read: {text}"
        elif decision[0] != node_of(pod):
            yield f"{title(pod)} is on {node_of(pod)} and has a decision for {decision[0]}"


class NoGpuBookedTwice:
    """No card is over its capacity by the decisions of pods.

    Counted are pods that are bound and not finished, deleted ones until they are gone.
    """

    def __init__(self):
        self.holds = {}  # (node, card) -> uid of the pod -> its holds

    def change(self, change, ledger):
        """See RULES."""
        if change.resource != "pods":
            return
        for gpu, _ in self._held(change.before):
            self.holds[gpu].pop(change.before["metadata"]["uid"], None)
        touched = sorted({gpu for gpu, _ in self._held(change.after)})
        for gpu, hold in self._held(change.after):
            uid = change.after["metadata"]["uid"]
            self.holds.setdefault(gpu, {}).setdefault(uid, []).append(hold)
        for gpu in touched:
            holds = [hold for each in self.holds[gpu].values() for hold in each]
            wrong = overbooked(holds, ledger.memory(*gpu))
            if wrong:
                yield f"GPU {gpu[1]} of {gpu[0]}: {wrong}, with {title(change.after)}"

    @staticmethod
    def _held(pod):
        if pod is None or not is_live(pod) or not node_of(pod):
            return []
        decision = decision_of(pod)
        return [((node_of(pod), card), hold) for card, hold in decision[2]] if decision else []


POD_RULES = (BoundOnce, DecidedWhenBound, DecisionNamesItsNode, NoGpuBookedTwice)
RULES = POD_RULES + LOCK_RULES + CLAIM_RULES


def violations(changes, rules=RULES):
    """Every violation, as (revision, sentence)."""
    rules = [rule() for rule in rules]
    ledger = Ledger()
    found = []
    for change in changes:
        ledger.apply(change)
        for rule in rules:
            found += [(change.revision, sentence) for sentence in rule.change(change, ledger)]
    return found
