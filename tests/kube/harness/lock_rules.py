# SPDX-License-Identifier: Apache-2.0
"""Rules about locks; see LOCKS.md, and rules.py for what a rule is."""
import re

from .ledger import decision_of, is_live, lock_or_none, node_of, read_lock, title
from .shares import CORE_WHOLE, overbooked

NAME_MAX = 253
LABEL_MAX = 63
CUT_NODE, CUT_LABEL = 220, 46
BYTES_MAX = 192 << 10
MANAGED, POD_LABEL = "gpu.scheduling/managed", "gpu.scheduling/pod"
HASHED = re.compile(r"^(.*[a-z0-9])-[0-9a-f]{16}$")


def _locks(change):
    """The lock before and after a change of a Lease."""
    return lock_or_none(change.before), lock_or_none(change.after)


def _stands_for(text, whole, limit, too_long):
    """Is text the whole, or, where that is too long, its beginning and a hash?"""
    match = HASHED.match(text)
    if not too_long:
        return text == whole
    return match is not None and match.group(1) == whole[:limit].rstrip(".-")


def _is_named(lock):
    """Does the Lease have the name of its node, and of its card's index?"""
    pattern = r"^gpus-(.*)()$" if lock.card is None else r"^gpu-(.*)(-\d+)$"
    match = re.match(pattern, lock.name)
    if match is None:
        return False
    around = len(lock.name) - len(match.group(1))
    return _stands_for(match.group(1), lock.node, CUT_NODE, around + len(lock.node) > NAME_MAX)


class LockCanBeRead:
    """Entries, names and labels have the form of LOCKS.md."""

    def change(self, change, _ledger):
        """See RULES."""
        if change.resource != "leases" or change.after is None:
            return
        name = change.after["metadata"].get("name")
        try:
            lock = read_lock(change.after)
        except ValueError as error:
            yield f"Lease {name} cannot be read: {error}"
            return
        for wrong in self._faults(lock) if lock else []:
            yield f"Lease {name} {wrong}"

    def _faults(self, lock):
        meta = lock.lease["metadata"]
        if not _is_named(lock):
            yield f"is not named after its node {lock.node}"
        if (meta.get("labels") or {}).get(MANAGED) != "true":
            yield f"lacks the label {MANAGED}"
        size = sum(len(key) + len(text) for key, text in meta["annotations"].items())
        if size > BYTES_MAX:
            yield f"has {size} bytes of annotations"
        pods = [entry.pod for entry in lock.entries]
        for pod in sorted({pod for pod in pods if pods.count(pod) > 1}):
            yield f"has two entries of pod {pod}"
        if lock.card is not None:
            yield from self._holder_faults(lock)

    @staticmethod
    def _holder_faults(lock):
        whole = [
            entry
            for entry in lock.entries
            if any(hold.core == CORE_WHOLE for _, hold in entry.holds)
        ]
        holder = (lock.lease.get("spec") or {}).get("holderIdentity") or None
        label = (lock.lease["metadata"].get("labels") or {}).get(POD_LABEL)
        if holder != (whole[0].pod if whole else None):
            yield f"says {holder} where its entries say {whole[0].pod if whole else 'nobody'}"
        name = whole[0].name if whole else ""
        if whole and not _stands_for(label or "", name, CUT_LABEL, len(name) > LABEL_MAX):
            yield f"has the label {label} where its pod is {name}"


class NoGpuLockedTwice:
    """No card is over its capacity by all entries there are."""

    def change(self, change, ledger):
        """See RULES."""
        _, lock = _locks(change) if change.resource == "leases" else (None, None)
        if lock is None:
            return
        cards = {}
        for entry in ledger.entries_on(lock.node):
            for card, hold in entry.holds:
                cards.setdefault(card, []).append(hold)
        for card in sorted({card for entry in lock.entries for card, _ in entry.holds}):
            wrong = overbooked(cards[card], ledger.memory(lock.node, card))
            if wrong:
                yield f"GPU {card} of {lock.node} is locked: {wrong}, with Lease {lock.name}"


class NoLineLockedTwice:
    """No two pods were given the same index of a map, which has both on the same cards."""

    def change(self, change, _ledger):
        """See RULES."""
        _, lock = _locks(change) if change.resource == "leases" else (None, None)
        given = {}
        for entry in lock.entries if lock else ():
            other = given.setdefault(entry.line, entry)
            if entry.line and other is not entry:
                yield f"index {entry.line[1]} of one map is in {entry.title} and in {other.title}"


class OneLockMode:
    """Locks are all of the mode that is recorded, from the first one on."""

    def change(self, change, ledger):
        """See RULES."""
        if change.resource != "leases":
            return
        _, lock = _locks(change)
        if lock and lock.entries:
            mode = "node" if lock.card is None else "gpu"
            if ledger.mode != mode:
                yield f"Lease {lock.name} has locks of mode {mode}, recorded is {ledger.mode}"
        elif change.key.endswith("/lock-mode") and change.before and change.after:
            if change.before.get("spec", {}).get("holderIdentity") != ledger.mode and any(
                each.entries for each in ledger.locks.values()
            ):
                yield f"the mode became {ledger.mode} while there are locks"


class CardStaysInItsLock:
    """With --locks=gpu a Lease is about one card for as long as it has entries."""

    def change(self, change, _ledger):
        """See RULES."""
        if change.resource != "leases":
            return
        before, after = _locks(change)
        if before and before.entries and after and before.card != after.card:
            yield f"Lease {after.name} with locks of {before.card} became one of {after.card}"
        for entry in after.entries if after and after.card is not None else ():
            strange = sorted({card for card, _ in entry.holds} - {after.card})
            if strange:
                yield f"Lease {after.name} of {after.card} has {entry.title} on {strange}"


def _binds(change):
    """Is this the moment at which a pod with a decision gets its node?"""
    return (
        change.resource == "pods"
        and change.after is not None
        and node_of(change.after)
        and not (change.before and node_of(change.before))
        and decision_of(change.after) is not None
    )


def _entries_of_attempt(pod, ledger):
    """The entries that the decision of a bound pod rests on."""
    _, attempt, _ = decision_of(pod)
    entries = ledger.entries_of(pod["metadata"]["uid"], node_of(pod))
    return [entry for entry in entries if entry.attempt == attempt]


class LockedWhenBound:
    """At the moment of binding just what was decided is locked, by the same attempt."""

    def change(self, change, ledger):
        """See RULES."""
        if not _binds(change):
            return
        pod = change.after
        _, attempt, decided = decision_of(pod)
        locked = [hold for entry in _entries_of_attempt(pod, ledger) for hold in entry.holds]
        if not decided and not locked:
            return  # a pod without GPUs
        if not locked:
            yield f"{title(pod)} is bound without a lock of attempt {attempt}"
        elif sorted(locked, key=repr) != decided:
            yield f"{title(pod)} is bound with {decided} and has locked {locked}"


class BoundAsItWasLocked:
    """A pod is bound from the very version that its entry names."""

    def change(self, change, ledger):
        """See RULES."""
        if not _binds(change) or change.before is None:
            return
        version = change.before["metadata"].get("resourceVersion")
        for entry in _entries_of_attempt(change.after, ledger):
            if entry.version != version:
                yield (
                    f"{title(change.after)} is bound from version {version}"
                    f" and was locked at {entry.version}"
                )


class GangLockedBeforeBound:
    """No pod of a gang is bound before all of it is locked."""

    def change(self, change, ledger):
        """See RULES."""
        if not _binds(change):
            return
        for entry in _entries_of_attempt(change.after, ledger)[:1]:
            if not entry.gang:
                continue
            (_, name), members = entry.gang
            there = len(ledger.gang_pods(entry.gang[0], entry.pod))
            if there < members:
                yield f"{title(change.after)} is bound with {there} of {members} of {name} locked"


def _released(change, same):
    """Entries of a Lease that are not there afterwards, and the node."""
    before, after = _locks(change) if change.resource == "leases" else (None, None)
    if before is None:
        return
    left = [same(entry) for entry in after.entries] if after and after.node == before.node else []
    for entry in before.entries:
        if same(entry) not in left:
            yield before.node, entry


class FencedBeforeReleased:
    """A Binding that is still on its way cannot land after its lock is gone."""

    def change(self, change, ledger):
        """See RULES."""
        for _, entry in _released(
            change, lambda each: (each.pod, each.version, each.attempt, each.holds)
        ):
            pod = ledger.pods.get(entry.pod)
            if not is_live(pod) or node_of(pod):
                continue
            if pod["metadata"].get("resourceVersion") == entry.version:
                yield f"{entry.title} is gone; the pod is unbound as it was at {entry.version}"


class LockedWhileBound:
    """What belongs to a live pod is never taken from it."""

    def change(self, change, ledger):
        """See RULES."""
        for node, entry in _released(change, lambda each: (each.pod, each.attempt, each.holds)):
            pod = ledger.pods.get(entry.pod)
            if not is_live(pod) or node_of(pod) != node or not decision_of(pod):
                continue
            if decision_of(pod)[1] == entry.attempt:
                yield f"{entry.title} is gone; the pod is bound to {node} and lives"


LOCK_RULES = (
    LockCanBeRead,
    NoGpuLockedTwice,
    NoLineLockedTwice,
    OneLockMode,
    CardStaysInItsLock,
    LockedWhenBound,
    BoundAsItWasLocked,
    GangLockedBeforeBound,
    FencedBeforeReleased,
    LockedWhileBound,
)
