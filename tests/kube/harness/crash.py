# SPDX-License-Identifier: Apache-2.0
"""A scheduler that dies after any of its writes, and another one that finds what it has left.

The scene is for four nodes: one that must preempt, a single one, one without GPUs, two shares and
a gang of three.
"""
import time

from .chaos import all_pods, check_cards, is_bound, settle, unsettled
from .check import check, equal, eventually
from .client import as_identity
from .scheduler import (
    LOCKS,
    Scheduler,
    create,
    delete_pods,
    entries,
    gpus_of,
    install_kinds,
    make_pod,
    wait_bound,
)

CLAIMS = "/apis/gpu.scheduling/v1/namespaces/default/gpuclaims"
GANG = ["member-0", "member-1", "member-2"]
SHARES = ["share-0", "share-1"]
WANTED = ["urgent", "single", "plain", *SHARES, *GANG]
ON_FIRST = {"kubernetes.io/hostname": "gpu-0"}
# What is evicted does not come back, so nobody may be where one comes who evicts: of what is freed
# for it after a crash others may have a part before it has all.
ELSEWHERE = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["gpu-0"]}
                    ]
                }
            ]
        }
    }
}
# Fewer would mean that the scheduler does not do what is to be interrupted.
WRITES_MIN = 12
WRITES_MAX = 80
QUIET_S = 3
THOROUGH = 5
# What is promised, beyond what the same scene takes on this machine if nobody dies.  A pause that
# is too long is there whenever the scheduler dies after that write; one that only the machine made
# is not, so a number of writes has failed when it took too long TRIES times in a row.
PROMISED_S = 30
TRIES = 3


class Crashes:
    """On nodes with so many cards, of which a member of the gang gets some, with these options."""

    def __init__(self, cards, member_cards, *options):
        self.cards = cards
        self.member_cards = member_cards
        self.options = options

    def prepare(self):
        """The custom resources, a claim for the gang, and priorities."""
        install_kinds()
        body = {
            "apiVersion": "gpu.scheduling/v1",
            "kind": "GpuClaim",
            "metadata": {"name": "gang", "namespace": "default"},
            "spec": {
                "devices": {"count": self.member_cards},
                "gangRef": "train",
                "gangMinMembers": len(GANG),
            },
        }
        create(CLAIMS, body)
        path = "/apis/scheduling.k8s.io/v1/priorityclasses"
        create(path, {"metadata": {"name": "high"}, "value": 1000, "globalDefault": False})

    def scheduler(self, *options, name):
        """One more of them."""
        return Scheduler(*self.options, *options, name=name)

    def start_over(self, thorough):
        """Only a pod that stands in the way, with its lock; and maybe locks of dead pods, of
        which the next one has to get rid."""
        delete_pods()
        if thorough:
            eventually(lambda: not entries(), "all locks are gone", 120)
            remove_leases()
        make_pod("low", gpus=self.cards, nodeSelector=ON_FIRST)
        wait_bound("low", timeout_s=60)

    def make_scene(self):
        """All at once, while nobody looks."""
        make_pod("urgent", gpus=self.cards, priorityClassName="high", nodeSelector=ON_FIRST)
        make_pod("single", gpus=1, affinity=ELSEWHERE)
        make_pod("plain")
        for name in SHARES:
            make_pod(name, limits={"elasticgpu.io/gpu-core": "25"}, affinity=ELSEWHERE)
        for name in GANG:
            make_pod(name, annotations={"gpu.scheduling/claim": "gang"}, affinity=ELSEWHERE)

    def check_scene(self):
        """As it would have been without a crash."""
        pods = all_pods()
        check("low" not in pods, "the pod of low priority is still there")
        check_cards()
        for name in GANG:
            equal(len(gpus_of(pods[name])), self.member_cards, f"GPUs of {name}")

    def crash_after(self, writes, name):
        """Whether a scheduler that dies after so many writes got that far; how many of its pods
        were bound then, and how many locks there were."""
        scheduler = self.scheduler("--stop-after-writes", writes, name=f"crash-{name}")
        died = wait_end(scheduler)
        if died:
            scheduler.wait_end()
        else:
            scheduler.stop()
        pods = all_pods()
        return died, sum(is_bound(pods[name]) for name in WANTED), len(entries())

    def undisturbed(self):
        """How long the scene takes a scheduler that finds it."""
        self.make_scene()
        with self.scheduler(name="calm"):
            took = settle(WANTED)
            self.check_scene()
            self.start_over(True)
        print(f"# nobody dies: {took:.1f} s", flush=True)
        return took

    def once(self, writes, name):
        """Whether one died after so many writes, and how long the next one took; where it did
        everything starts over."""
        self.make_scene()
        died, bound, locks = self.crash_after(writes, name)
        with self.scheduler(name=f"after-{name}"):
            took = settle(WANTED)
            print(f"# {name}: {bound} bound, {locks} locks; {took:.1f} s", flush=True)
            self.check_scene()
            if died:
                self.start_over(writes % THOROUGH == 0)
        return died, took

    def converge(self, writes, most_s):
        """The same, in no more time; tried again if it took longer."""
        fastest = None
        for number in range(TRIES):
            died, took = self.once(writes, f"{writes}.{number}" if number else str(writes))
            fastest = min(took, fastest or took)
            if took <= most_s or not died:
                break
        check(fastest <= most_s, f"{fastest:.1f} s after {writes} writes, at most {most_s:.1f}")
        return died, fastest

    def run(self):
        """For all numbers of writes until it gets to the end."""
        longest, writes = 0.0, 0
        with self.scheduler(name="before"):
            self.start_over(True)
        most_s = PROMISED_S + self.undisturbed()
        for writes in range(1, WRITES_MAX):
            died, took = self.converge(writes, most_s)
            longest = max(longest, took)
            if not died:
                break
        check(WRITES_MIN <= writes < WRITES_MAX - 1, f"{writes} writes")
        print(f"# {writes} writes; at most {longest:.1f} s until all was as it should be")


def leases():
    """The names of all Leases for locks."""
    found = as_identity("admin").get(LOCKS).json["items"]
    return [each["metadata"]["name"] for each in found if each["metadata"]["name"] != "lock-mode"]


def remove_leases():
    """They have to be made anew.  A scheduler must be there to agree."""
    for name in leases():
        as_identity("admin").delete(f"{LOCKS}/{name}")
    eventually(lambda: not leases(), "all Leases are gone")


def wait_end(scheduler):
    """Whether it has died of its last write; not if all is done and it stays."""
    quiet = [None]

    def over():
        if scheduler.process.poll() is not None:
            return True
        if unsettled(WANTED):
            quiet[0] = None
        else:
            quiet[0] = quiet[0] or time.monotonic()
        return quiet[0] and time.monotonic() - quiet[0] > QUIET_S

    eventually(over, f"{scheduler.name} has ended or is done", 150)
    return scheduler.process.poll() is not None
