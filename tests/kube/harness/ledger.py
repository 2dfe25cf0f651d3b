# SPDX-License-Identifier: Apache-2.0
"""A cluster at one moment of its history, as far as GPUs are concerned: its pods, its
locks (see LOCKS.md), and how much memory its cards have."""
import json
from dataclasses import dataclass
from typing import Optional

from .shares import read_holds

PREFIX = "gpu.scheduling/"
DECISION = PREFIX + "decision"
ALLOCATED = PREFIX + "allocated"
ENTRIES, NODE, GPU = PREFIX + "entries", PREFIX + "node", PREFIX + "gpu"
MODE_LEASE = "lock-mode"
MEMORY_LABEL = "nvidia.com/gpu.memory"
FINISHED = ("Succeeded", "Failed")


def annotations(thing):
    """Of any object, or nothing."""
    return thing["metadata"].get("annotations") or {}


def title(pod):
    """How a pod is called in a sentence."""
    meta = pod["metadata"]
    return f"pod {meta.get('namespace')}/{meta.get('name')} ({meta.get('uid')})"


def node_of(pod):
    """The node to which it is bound, or None."""
    return pod.get("spec", {}).get("nodeName")


def is_live(pod):
    """Is it there and not finished?"""
    return pod is not None and pod.get("status", {}).get("phase") not in FINISHED


def decision_of(pod):
    """What was decided for a pod, as (node, attempt, holds); None without a decision or
    with one that cannot be read."""
    text = annotations(pod).get(DECISION)
    try:
        value = json.loads(text) if text else None
        return value and (value["node"], value.get("attempt"), read_holds(value["gpus"]))
    except (ValueError, KeyError, TypeError):
        return None


@dataclass
class Entry:
    """One lock of one pod."""

    pod: str
    namespace: str
    name: str
    version: str
    attempt: int
    gang: Optional[tuple]  # (namespace, name), members
    line: Optional[tuple]  # the map, and the index of it that the pod was given
    holds: list

    @property
    def title(self):
        """How it is called in a sentence."""
        return f"the lock of pod {self.namespace}/{self.name} ({self.pod})"


@dataclass
class Lock:
    """A Lease with entries."""

    name: str
    node: str
    card: Optional[str]  # with --locks=gpu
    entries: list
    lease: dict


def _read_entry(value):
    gang, line = value.get("gang"), value.get("map")
    strings = [value[key] for key in ("pod", "ns", "name", "rv")]
    if not all(isinstance(each, str) and each for each in strings):
        raise ValueError(f"{value} lacks a pod")
    if not isinstance(value["attempt"], int) or not 0 < value["attempt"] < 1 << 32:
        raise ValueError(f"{value} lacks an attempt")
    if gang is not None:
        gang = ((value["ns"], gang["name"]), int(gang["members"]))
    if line is not None:
        line = (str(line["of"]), int(line["index"]))
    holds = read_holds(value["gpus"])
    if not holds:
        raise ValueError(f"{value} holds nothing")
    return Entry(*strings, value["attempt"], gang, line, holds)


def read_lock(lease):
    """The Lock that a Lease is; None if it is none; ValueError says what is wrong."""
    text = annotations(lease).get(ENTRIES)
    if text is None:
        return None
    try:
        entries = [_read_entry(value) for value in json.loads(text)]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"an entry of {text} cannot be read: {error!r}") from error
    node = annotations(lease).get(NODE)
    if not node:
        raise ValueError(f"it has entries and no annotation {NODE}")
    return Lock(lease["metadata"]["name"], node, annotations(lease).get(GPU), entries, lease)


def lock_or_none(lease):
    """The same, and None of what cannot be read (LockCanBeRead says so)."""
    try:
        return read_lock(lease) if lease else None
    except ValueError:
        return None


class Ledger:
    """All of it, after each change."""

    def __init__(self):
        self.pods = {}  # uid -> pod
        self.locks = {}  # key in etcd -> Lock
        self._keys = {}  # node -> keys of its locks
        self.mode = None  # `node` or `gpu`, once it is recorded
        self.members = {}  # gang -> uids of pods that were bound as its members
        self._locked = {}  # gang -> uids of pods that were ever locked as its members
        self._born, self._died = {}, {}  # uid -> revision at which that happened to the pod
        self._labels = {}  # node -> MiB of each of its cards
        self._devices = {}  # node -> UUID -> MiB

    def memory(self, node, card):
        """Of a card, in MiB, or None."""
        return self._devices.get(node, {}).get(card) or self._labels.get(node)

    def entries_on(self, node):
        """All that is locked on a node, in one Lease or several."""
        locks = [self.locks[key] for key in sorted(self._keys.get(node, ()))]
        return [entry for lock in locks for entry in lock.entries]

    def entries_of(self, uid, node):
        """What a pod has locked on a node."""
        return [entry for entry in self.entries_on(node) if entry.pod == uid]

    def gang_pods(self, gang, uid):
        """uids of those that are locked, of those that were bound and are there, and of those
        that were locked and have been deleted since the pod of that uid was made: who binds it
        may not have heard of that."""
        ever = self._locked.get(gang, ())
        gone = {each for each in ever if self._died.get(each, 0) > self._born[uid]}
        locked = {
            entry.pod
            for lock in self.locks.values()
            for entry in lock.entries
            if entry.gang and entry.gang[0] == gang
        }
        there = {each for each in self.members.get(gang, ()) if each in self.pods}
        return locked | there | gone

    def apply(self, change):
        """The next change has happened."""
        apply = getattr(self, f"_apply_{change.resource.split('.')[0]}", None)
        if change.key.startswith("/registry/gpu.scheduling/gpunodestatuses/"):
            apply = self._apply_status
        if apply:
            apply(change)

    def _apply_pods(self, change):
        if change.before:
            self.pods.pop(change.before["metadata"]["uid"], None)
        pod = change.after
        if pod is None:
            self._died[change.before["metadata"]["uid"]] = change.revision
            return
        uid = pod["metadata"]["uid"]
        self.pods[uid] = pod
        self._born.setdefault(uid, change.revision)
        if node_of(pod) and not (change.before and node_of(change.before)):
            for entry in self.entries_of(uid, node_of(pod)):
                if entry.gang:
                    self.members.setdefault(entry.gang[0], set()).add(uid)

    def _apply_leases(self, change):
        old = self.locks.pop(change.key, None)
        if old:
            self._keys[old.node].discard(change.key)
        lock = lock_or_none(change.after)
        if lock:
            self.locks[change.key] = lock
            self._keys.setdefault(lock.node, set()).add(change.key)
            for entry in lock.entries:
                if entry.gang:
                    self._locked.setdefault(entry.gang[0], set()).add(entry.pod)
        if change.key.endswith("/" + MODE_LEASE):
            self.mode = (change.after or {}).get("spec", {}).get("holderIdentity")

    def _apply_minions(self, change):
        name = change.key.rpartition("/")[2]
        labels = (change.after or {"metadata": {}})["metadata"].get("labels") or {}
        text = labels.get(MEMORY_LABEL, "")
        self._labels[name] = int(text) if text.isdigit() else None

    def _apply_status(self, change):
        devices = ((change.after or {}).get("status") or {}).get("devices") or []
        self._devices[change.key.rpartition("/")[2]] = {
            each.get("uuid"): each.get("memoryMiB") for each in devices
        }
