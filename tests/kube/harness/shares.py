# SPDX-License-Identifier: Apache-2.0
"""Shares of GPUs as decisions and locks write them (see LOCKS.md), and when they are too
many for one card."""
import re
from collections import namedtuple

CORE_WHOLE = 1000
# Compute slices of a profile -> memory slices, at least.
SLICES_LEAST = {1: 1, 2: 2, 3: 4, 4: 4, 7: 8}
PROFILE = re.compile(r"^(\d)g\.(\d+)gb(\+me)?$")
SMALL_CARD_GIB = 30  # the A30, which has four slices; all others have eight

Hold = namedtuple("Hold", "core memory profile start")


def read_hold(value):
    """(name of the card, Hold) of one element of `gpus`; ValueError says what is wrong."""
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is no hold of a GPU")
    card = value.get("uuid") or str(value.get("id", ""))
    if not card or not isinstance(card, str):
        raise ValueError(f"{value} names no GPU")
    if "mig" in value:
        slice_ = value["mig"]
        if not PROFILE.match(slice_["profile"]) or not 0 <= slice_["start"] < 8:
            raise ValueError(f"{slice_} is no MIG slice")
        return card, Hold(0, 0, slice_["profile"], slice_["start"])
    core, memory = value["coreMilli"], value["memoryMiB"]
    if not 0 <= core <= CORE_WHOLE or memory < 0:
        raise ValueError(f"{value} is no share of a GPU")
    return card, Hold(core, memory, None, None)


def read_holds(values):
    """All of `gpus`, in an order that does not depend on how it was written."""
    try:
        return sorted((read_hold(value) for value in values), key=repr)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{values} are no holds of GPUs: {error}") from error


def _slices(hold, memory_mib):
    """Which memory slices an instance takes; with an unknown card, those it takes on any."""
    compute, gigabytes, _ = PROFILE.match(hold.profile).groups()
    size = SLICES_LEAST.get(int(compute), 1)
    if memory_mib:
        card_gib = memory_mib / 1024
        parts = 4 if card_gib < SMALL_CARD_GIB else 8
        size = max(1, round(int(gigabytes) * parts / card_gib))
    return range(hold.start, hold.start + size)


def _overlap(holds, memory_mib):
    taken = {}
    for hold in holds:
        for number in _slices(hold, memory_mib):
            if number in taken:
                other = taken[number]
                return f"{hold.profile} at {hold.start} overlaps {other.profile} at {other.start}"
            taken[number] = hold
    return None


def _is_whole(hold, memory_mib):
    return hold.core == CORE_WHOLE and hold.memory in (0, memory_mib or hold.memory)


def overbooked(holds, memory_mib=None):
    """Why these holds cannot be of one card with that memory, if it is known; else None."""
    slices = [hold for hold in holds if hold.profile]
    shares = [hold for hold in holds if not hold.profile]
    core = sum(hold.core for hold in shares)
    memory = sum(hold.memory for hold in shares)
    if slices and shares:
        return "sliced and booked as a whole at once"
    if core > CORE_WHOLE:
        return f"booked {core} of {CORE_WHOLE} thousandths"
    if memory_mib and memory > memory_mib:
        return f"booked {memory} of {memory_mib} MiB"
    if len(shares) > 1 and any(_is_whole(hold, memory_mib) for hold in shares):
        return f"booked as a whole and {len(shares) - 1} times besides"
    return _overlap(slices, memory_mib)
