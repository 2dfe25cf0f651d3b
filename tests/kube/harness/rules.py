# SPDX-License-Identifier: Apache-2.0
"""What must hold at every moment of a cluster's history.

A rule is an object with change(), which is given every Change in order and yields a
sentence for each thing that is wrong from then on.  To add one: write the class, put it
into RULES, and give it a history that breaks it in e2e/history_test.py.
"""
import json

DECISION = "gpu.scheduling/decision"
FINISHED = ("Succeeded", "Failed")
CORE_WHOLE = 1000


def _name(pod):
    meta = pod["metadata"]
    return f"pod {meta.get('namespace')}/{meta.get('name')} ({meta.get('uid')})"


def _node(pod):
    return pod.get("spec", {}).get("nodeName")


def _decision(pod):
    return pod["metadata"].get("annotations", {}).get(DECISION)


def _same_pod(change):
    """Was this pod there before and after?  A name may be used again within one write."""
    return (
        change.before is not None
        and change.after is not None
        and change.before["metadata"]["uid"] == change.after["metadata"]["uid"]
    )


class BoundOnce:
    """A pod stays on its node."""

    def change(self, change):
        """See RULES."""
        if change.resource != "pods" or not _same_pod(change):
            return
        before, after = _node(change.before), _node(change.after)
        if before and before != after:
            yield f"{_name(change.after)} moved from {before} to {after}"


class DecidedWhenBound:
    """The decision comes with the node, in one step, and never changes."""

    def change(self, change):
        """See RULES."""
        pod = change.after
        if change.resource != "pods" or pod is None:
            return
        if _decision(pod) and not _node(pod):
            yield f"{_name(pod)} has a decision and no node"
        if not _same_pod(change) or not _node(change.before):
            return
        if _decision(change.before) != _decision(pod):
            yield f"{_name(pod)} got another decision after it was bound"


class DecisionNamesItsNode:
    """What was decided can be read, and was decided for the node of the pod."""

    def change(self, change):
        """See RULES."""
        pod = change.after
        if change.resource != "pods" or pod is None or not _decision(pod) or not _node(pod):
            return
        try:
            node = json.loads(_decision(pod))["node"]
        except (ValueError, KeyError, TypeError):
            yield f"{_name(pod)} has a decision that cannot be read: {_decision(pod)}"
            return
        if node != _node(pod):
            yield f"{_name(pod)} is on {_node(pod)} and has a decision for {node}"


class NoGpuBookedTwice:
    """The shares of a GPU add up to at most one; slices begin at different places.

    Counted are pods that are bound and not finished, deleted ones until they are gone.
    """

    def __init__(self):
        self.holds = {}  # (node, GPU) -> uid of the pod -> its holds

    def change(self, change):
        """See RULES."""
        if change.resource != "pods":
            return
        for pod, add in ((change.before, False), (change.after, True)):
            for gpu, hold in self._held(pod):
                pods = self.holds.setdefault(gpu, {})
                if add:
                    pods.setdefault(pod["metadata"]["uid"], []).append(hold)
                else:
                    pods.pop(pod["metadata"]["uid"], None)
        for gpu in sorted({gpu for gpu, _ in self._held(change.after)}):
            wrong = self._overbooked(self.holds[gpu])
            if wrong:
                yield f"GPU {gpu[1]} of {gpu[0]}: {wrong}, with {_name(change.after)}"

    @staticmethod
    def _held(pod):
        if pod is None or not _node(pod) or not _decision(pod):
            return []
        if pod.get("status", {}).get("phase") in FINISHED:
            return []
        try:
            gpus = json.loads(_decision(pod))["gpus"]
            return [((_node(pod), gpu.get("uuid") or str(gpu["id"])), gpu) for gpu in gpus]
        except (ValueError, KeyError, TypeError, AttributeError):
            return []  # DecisionNamesItsNode has said so

    @staticmethod
    def _overbooked(pods):
        holds = [hold for each in pods.values() for hold in each]
        starts = [hold["mig"]["start"] for hold in holds if "mig" in hold]
        cores = [hold.get("coreMilli", 0) for hold in holds if "mig" not in hold]
        if starts and cores:
            return "sliced and booked as a whole at once"
        if len(set(starts)) < len(starts):
            return f"slices at {sorted(starts)}"
        if sum(cores) > CORE_WHOLE:
            return f"booked {sum(cores)} of {CORE_WHOLE} thousandths"
        return None


RULES = (BoundOnce, DecidedWhenBound, DecisionNamesItsNode, NoGpuBookedTwice)


def violations(changes):
    """Every violation, as (revision, sentence)."""
    rules = [rule() for rule in RULES]
    found = []
    for change in changes:
        for rule in rules:
            found += [(change.revision, sentence) for sentence in rule.change(change)]
    return found
