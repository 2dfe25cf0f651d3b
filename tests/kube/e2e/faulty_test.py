#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Schedulers that hear from the API server only what a faulty network lets through.

FAULTY_SEED chooses which requests fail.

cluster: --nodes 4 --gpus 8 --history
"""
import contextlib
import os
import random
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.chaos import Churn, check_cards, settle  # noqa: E402
from harness.check import eventually, main, test  # noqa: E402
from harness.proxy import FaultProxy  # noqa: E402
from harness.scheduler import Scheduler, delete_pods, entries, install_kinds  # noqa: E402

SEED = int(os.environ.get("FAULTY_SEED") or 1)
# The account may do what the scheduler may and no more.
UPSTREAM = Path(os.environ["KUBE_DIR"]) / "scheduler.kubeconfig"
WAVES = 12
FAULTS_MIN = 150
WRITES = "method=PUT,POST,PATCH,DELETE"
SCRIPT = f"""
on any p=0.05 delay=1..50ms
on verb=watch p=0.3 cut after=events:1..40
on verb=watch p=0.3 cut mid-event after=events:1..40
on verb=watch p=0.1 half-body
on verb=watch p=0.05 answer=410-event
on verb=watch p=0.03 answer=410
on verb=watch p=0.05 silence=1..4s after=events:1..20
on verb=list p=0.1 half-body
on verb=list p=0.05 answer=410
on method=GET p=0.05 answer=500
on method=GET p=0.05 half-body
on {WRITES} p=0.08 half-body
on {WRITES} p=0.06 cut after-write
on {WRITES} p=0.04 cut before-write
on {WRITES} p=0.05 answer=500
on {WRITES} p=0.05 answer=409
on {WRITES} p=0.02 answer=410
on {WRITES} p=0.02 answer=503
on {WRITES} p=0.02 silence=2..7s
on any p=0.02 answer=429 retry-after=1
on any p=0.01 answer=502-html
on any p=0.01 goaway
on any p=0.01 reset
on any p=0.003 silence=2s of=connection
"""


@contextlib.contextmanager
def behind_faults(count, seed, *options):
    """So many schedulers behind one proxy; its faults end before the schedulers do."""
    delete_pods()
    with FaultProxy(UPSTREAM, SCRIPT, seed) as proxy:
        with contextlib.ExitStack() as stack:
            for _ in range(count):
                each = Scheduler(*options, kubeconfig=proxy.kubeconfig)
                stack.enter_context(each)
            yield proxy
            proxy.control("off")
            delete_pods()
            eventually(lambda: not entries(), "all locks are gone", 120)
    print(f"# seed {seed}: {sum(proxy.stats['faults'].values())} faults: {proxy.stats['faults']}")


def count_faults(proxy):
    """So far."""
    return sum(proxy.control("stats")["faults"].values())


def churn_behind(proxy, seed, fillers=False):
    """Pods come and go; what stays is bound, faults and all."""
    churn = Churn(random.Random(seed), fillers)
    for _ in range(WAVES):
        churn.wave()
        time.sleep(1)
    took = settle(churn.left())
    check_cards()
    print(f"# {churn.made} pods; settled after {took:.1f} s, faults and all", flush=True)
    # Without pods that come little is asked, and so little fails.
    while count_faults(proxy) < FAULTS_MIN:
        churn.wave()
        settle(churn.left())


@test
def one_scheduler_behind_a_faulty_network():
    with behind_faults(1, SEED) as proxy:
        churn_behind(proxy, SEED)


@test
def two_schedulers_behind_a_faulty_network():
    with behind_faults(2, SEED + 1) as proxy:
        churn_behind(proxy, SEED + 1)


@test
def two_schedulers_preempt_behind_a_faulty_network():
    with behind_faults(2, SEED + 3) as proxy:
        churn_behind(proxy, SEED + 3, fillers=True)


@test
def two_schedulers_with_locks_of_cards_behind_a_faulty_network():
    with behind_faults(2, SEED + 2, "--locks", "gpu") as proxy:
        churn_behind(proxy, SEED + 2)


if __name__ == "__main__":
    sys.exit(main(install_kinds))
