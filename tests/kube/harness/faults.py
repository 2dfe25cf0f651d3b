# SPDX-License-Identifier: Apache-2.0
"""Schedulers that hear from the API server only what a faulty network lets through.

    with behind_faults(2, seed=7) as proxy:
        make_pod("train", gpus=2)
"""
import contextlib
import os
from pathlib import Path

from .check import eventually
from .proxy import FaultProxy
from .scheduler import Scheduler, delete_pods, entries

# The account may do what the scheduler may and no more.
UPSTREAM = Path(os.environ["KUBE_DIR"]) / "scheduler.kubeconfig"
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
