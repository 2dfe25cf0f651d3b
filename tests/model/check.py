#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check.py [NAME...] - the lock protocol as a model, checked with spin.  Speaks TAP.

The model holds in every configuration, over all of its states; with any one rule left
out there is a counterexample, by which we also know that the model can see one.  With
names, only those; with --trace NAME the counterexample is shown step by step.
"""
import concurrent.futures
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT_MIB = 1500
MAX_DEPTH = 2000000

# What holds: a name, the sentence, the configuration.
HOLDS = (
    ("two_leases", "two nodes with a GPU each, or --locks=gpu", "LEASES=2"),
    ("one_lease", "one node with two GPUs", "LEASES=1"),
    ("gang", "a gang of two on two nodes", "GANG LEASES=2"),
    ("gang_one_lease", "a gang of two on one node", "GANG LEASES=1"),
    ("deleted_lease", "a Lease is deleted by somebody, and made anew", "FINALIZER LEASES=2"),
    ("deleted_only_lease", "the same with both GPUs in it", "FINALIZER LEASES=1"),
    ("deleted_gang_lease", "the same with a gang of two", "GANG FINALIZER LEASES=1"),
    ("lost_lease", "a Lease is lost with what is in it", "LOSS LEASES=2"),
)

# What fails: the rule that is left out, what is done instead, where it is seen.
FAILS = (
    ("NO_BIND_VERSION", "a Binding without the pod's resourceVersion", ""),
    ("NO_BIND_UID", "a Binding without the pod's uid", ""),
    ("NO_PUT_VERSION", "a PUT of a Lease without its resourceVersion", ""),
    ("NO_PUT_UID", "a PUT of a Lease without its uid", "LOSS"),
    ("NO_FENCE", "an entry freed because a GET showed its pod unbound", ""),
    ("NOOP_FENCE", "a fence that changes nothing", ""),
    ("FREE_UNREAD", "an entry freed because its Binding was not answered", ""),
    ("CACHE_MISS", "a pod taken for gone because a cache lacks it", ""),
    ("POD_FIRST", "an entry judged by a pod that was read before the Lease", ""),
    ("NO_RENEWAL", "a Binding with a newer version than the entry's", ""),
    ("BLIND_RETRY", "a PUT sent again on the newest version, with the old content", ""),
    ("ASSUME_WON", "a PUT taken for done because it was refused", ""),
    ("ANY_ATTEMPT", "an entry of another attempt taken for one's own", ""),
    ("TAKE_EARLY", "a victim's GPU taken before it is gone", ""),
    ("NO_DELETE_UID", "a victim deleted by name alone", ""),
    ("GANG_EARLY", "one of a gang bound before all are locked", "GANG"),
    ("FENCE_ONE", "an entry of a gang dropped, the others' Bindings not fenced off", "GANG"),
    ("NO_FINALIZER", "a Lease that vanishes with the entries in it", "FINALIZER"),
    ("ONE_WRITE", "a Lease emptied and freed of its finalizer in one write", "FINALIZER"),
    ("ADD_TO_CLOSED", "an entry added to a Lease that is about to go", "FINALIZER"),
    ("BUILD_EMPTY", "a missing Lease built without the pods bound there", "LOSS"),
    ("BUILD_UNFENCED", "a missing Lease built while Bindings may be under way", "LOSS"),
)


class Broken(Exception):
    """The check itself could not be made."""


def run(command, folder, good=(0,)):
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", check=False)
    if done.returncode not in good:
        raise Broken(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def build(folder, defines, flags):
    """The verifier of one configuration, as `pan` in the folder."""
    for path in HERE.glob("*.pml"):
        (folder / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    run(["spin", *[f"-D{name}" for name in defines], "-a", "locks.pml"], folder)
    run(["gcc", "-w", "-DSAFETY", "-DNOREDUCE", f"-DMEMLIM={LIMIT_MIB}", *flags,
         "-o", "pan", "pan.c"], folder)


def errors(report):
    found = re.search(r"errors: (\d+)", report)
    if not found:
        raise Broken(report)
    return int(found.group(1))


def trace(folder, defines):
    """The steps that lead to the violation, and the state it ends in."""
    return run(["spin", *[f"-D{name}" for name in defines], "-t", "locks.pml"],
               folder, good=range(256))


def check_holds(folder, config):
    """(whether it holds, what to say of it)"""
    defines = config.split()
    build(folder, defines, ["-O2", "-DCOLLAPSE"])
    report = run(["./pan", "-E", f"-m{MAX_DEPTH}"], folder)
    if errors(report):
        return False, trace(folder, defines)
    if "Search not completed" in report or "max search depth too small" in report:
        raise Broken(report)
    states = re.search(r"(\d+) states, stored", report).group(1)
    return True, f"{states} states"


def check_fails(folder, rule, config):
    """(whether leaving the rule out is seen, what to say of it)"""
    defines = [rule, *config.split()]
    build(folder, defines, ["-DBFS"])  # breadth first: the shortest counterexample
    report = run(["./pan", "-E", f"-m{MAX_DEPTH}"], folder)
    if errors(report):
        return True, trace(folder, defines)
    return False, f"no counterexample\n{report}"


def check(test):
    name, _, config = test
    with tempfile.TemporaryDirectory(prefix="model.") as folder:
        try:
            if test in HOLDS:
                return check_holds(Path(folder), config)
            return check_fails(Path(folder), name, config)
        except Broken as why:
            return False, str(why)


def sentence(test):
    if test in HOLDS:
        return f"the protocol holds: {test[1]}"
    return f"seen to fail: {test[1]}"


def main(names):
    show = "--trace" in names
    names = [name for name in names if name != "--trace"]
    tests = [test for test in HOLDS + FAILS if not names or test[0] in names]
    good = bool(tests)
    print(f"1..{len(tests)}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for number, (test, (passed, text)) in enumerate(zip(tests, pool.map(check, tests)), 1):
            note = f" ({text})" if passed and test in HOLDS else ""
            print(f"{'ok' if passed else 'not ok'} {number} - {sentence(test)}{note}", flush=True)
            if show or not passed:
                print(f"{test[0]}:\n{text}", file=sys.stderr)
            good = good and passed
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
