#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The history checker finds what a real cluster shows: every rule of LOCKS.md, kept and
broken on a real API server.

cluster: none
"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))
# pylint: disable=wrong-import-position
from harness import rules  # noqa: E402
from harness.check import check, equal, eventually, main, test  # noqa: E402
from harness.client import Client  # noqa: E402
from harness.etcd import PREFIXES, Etcd  # noqa: E402
from harness.scenes import (  # noqa: E402
    CLAIMS,
    LEASES,
    PODS,
    SCENES,
    STATUSES,
    Stage,
    define,
    entry,
    part,
    scene,
    share,
)

GANG = {"name": "train", "members": 2}
LINE = {"of": "0123456789abcdef", "index": 0}
HALF = (share(core=500, memory=40),)
AT = re.compile(r"^history: at (\d+): (.*)$", re.MULTILINE)


# Locks and what they hold.


@scene()
def a_pod_is_locked_and_bound(stage):
    pod = stage.pod()
    stage.lock(entry(pod))
    stage.bind(pod)


@scene()
def halves_and_slices_are_locked_side_by_side(stage):
    pods = [stage.pod(name) for name in "pqrs"]
    stage.lock(
        entry(pods[0], HALF),
        entry(pods[1], HALF),
        entry(pods[2], [part(0, "3g.40gb", "GPU-2")]),
        entry(pods[3], [part(4, "1g.10gb", "GPU-2"), part(5, "1g.10gb", "GPU-2")]),
    )
    stage.bind(pods[0], HALF)
    stage.bind(pods[2], [part(0, "3g.40gb", "GPU-2")])


@scene("is locked: booked 2000 of 1000")
def a_card_is_locked_twice(stage):
    stage.lock(entry(stage.pod("p")), entry(stage.pod("q")))


@scene("is locked: booked 100 of 90 MiB")
def more_memory_is_locked_than_the_label_says(stage):
    stage.register(memory=90)
    holds = [share(core=100, memory=50)]
    stage.lock(entry(stage.pod("p"), holds), entry(stage.pod("q"), holds))


@scene("is locked: booked 100 of 70 MiB")
def more_memory_is_locked_than_the_agent_says(stage):
    stage.register(memory=1000)
    stage.report(**{"GPU-1": 70})
    holds = [share(core=100, memory=50)]
    stage.lock(entry(stage.pod("p"), holds), entry(stage.pod("q"), holds))


@scene("1g.10gb at 2 overlaps 3g.40gb at 0")
def a_slice_is_locked_inside_of_another(stage):
    first, second = [part(0, "3g.40gb")], [part(2)]
    stage.lock(entry(stage.pod("p"), first), entry(stage.pod("q"), second))


@scene("as a whole and 1 times besides")
def a_place_is_locked_beside_a_whole_card(stage):
    stage.lock(entry(stage.pod("p")), entry(stage.pod("q"), [share(core=0, memory=0)]))


@scene()
def lines_of_a_map_share_a_card(stage):
    first, second = LINE, {**LINE, "index": 1}
    stage.lock(entry(stage.pod("p"), HALF, map=first), entry(stage.pod("q"), HALF, map=second))


@scene("index 0 of one map is in")
def a_line_of_a_map_is_locked_twice(stage):
    stage.lock(entry(stage.pod("p"), HALF, map=LINE), entry(stage.pod("q"), HALF, map=LINE))


@scene("GPU GPU-1 of n", "is bound without a lock")
def a_card_is_booked_twice(stage):
    first, second = stage.pod("p"), stage.pod("q")
    stage.lock(entry(first))
    stage.bind(first)
    stage.bind(second, HALF)


# How locks are written.


@scene("cannot be read")
def entries_are_no_entries(stage):
    stage.lock(text='[{"pod":"x"}]')


@scene("cannot be read")
def a_hold_is_none(stage):
    stage.lock(entry(stage.pod(), [{"uuid": "GPU-1", "coreMilli": 1001, "memoryMiB": 1}]))


@scene("is not named after its node")
def a_lock_has_the_name_of_another_node(stage):
    stage.lock(entry(stage.pod()), name=f"gpus-other-{stage.number}")


@scene("lacks the label")
def a_lock_is_not_labelled(stage):
    stage.lock(entry(stage.pod()), labels={})


@scene("has two entries of pod")
def a_pod_is_locked_twice_in_one_lease(stage):
    pod = stage.pod()
    stage.lock(entry(pod, HALF), entry(pod, HALF, attempt=8))


@scene("bytes of annotations")
def a_lock_grows_too_large(stage):
    text = json.dumps([entry(stage.pod())])
    stage.lock(text=text + " " * (200 << 10))


@scene()
def a_long_node_has_a_lock_of_a_cut_name(stage):
    node = "a" * 219 + ".b" + "c" * 32
    stage.lock(entry(stage.pod()), node=node, name=f"gpus-{'a' * 219}-0123456789abcdef")


@scene("is not named after its node")
def a_long_node_has_a_lock_of_another_name(stage):
    node = "a" * 253
    stage.lock(entry(stage.pod()), node=node, name=f"gpus-{'a' * 200}-0123456789abcdef")


# One lock for each card.


@scene()
def cards_are_locked_one_by_one_and_collected(stage):
    stage.record_mode("gpu")
    pod = stage.pod()
    for number in range(2):
        card = f"GPU-{number}"
        stage.lock_card(number, card, entry(pod, [share(card)]), holder=pod)
    stage.bind(pod, [share("GPU-0"), share("GPU-1")])
    stage.finish(pod)
    stage.lock_card(0, "GPU-0")
    stage.lock_card(0, "GPU-9")


@scene("is bound with")
def one_of_two_cards_was_not_locked(stage):
    stage.record_mode("gpu")
    pod = stage.pod()
    stage.lock_card(0, "GPU-0", entry(pod, [share("GPU-0")]), holder=pod)
    stage.bind(pod, [share("GPU-0"), share("GPU-1")])


@scene("where its entries say", "has the label None")
def a_lock_names_no_holder(stage):
    stage.record_mode("gpu")
    stage.lock_card(0, "GPU-0", entry(stage.pod(), [share("GPU-0")]))


@scene("where its entries say nobody")
def a_lock_names_a_holder_that_left(stage):
    stage.record_mode("gpu")
    stage.lock_card(0, "GPU-0", holder=stage.pod())


@scene("has the label")
def a_lock_is_labelled_with_another_pod(stage):
    stage.record_mode("gpu")
    pod = stage.pod()
    stage.lock_card(0, "GPU-0", entry(pod, [share("GPU-0")]), holder=pod, label="other")


@scene()
def a_long_pod_has_a_label_of_a_cut_name(stage):
    stage.record_mode("gpu")
    pod = stage.pod("a" * 45 + "-b" + "c" * 30)
    label = "a" * 45 + "-0123456789abcdef"
    stage.lock_card(0, "GPU-0", entry(pod, [share("GPU-0")]), holder=pod, label=label)


@scene("became one of GPU-1")
def a_lock_changes_its_card(stage):
    stage.record_mode("gpu")
    pod = stage.pod()
    stage.lock_card(0, "GPU-0", entry(pod, [share("GPU-0")]), holder=pod)
    # Fenced, so that it may be locked anew; but that is another card.
    pod = stage.fence(pod)
    stage.lock_card(0, "GPU-1", entry(pod, [share("GPU-1")]), holder=pod)


@scene("of GPU-0 has the lock")
def a_lock_is_of_another_card(stage):
    stage.record_mode("gpu")
    pod = stage.pod()
    stage.lock_card(0, "GPU-0", entry(pod, [share("GPU-1")]), holder=pod)


@scene("GPU GPU-0 of n")
def a_card_is_locked_in_two_leases(stage):
    stage.record_mode("gpu")
    for number, name in enumerate("pq"):
        pod = stage.pod(name)
        stage.lock_card(number, "GPU-0", entry(pod, [share("GPU-0")]), holder=pod)


@scene("has locks of mode gpu, recorded is node")
def locks_of_both_modes_are_mixed(stage):
    pod = stage.pod()
    stage.lock_card(0, "GPU-0", entry(pod, [share("GPU-0")]), holder=pod)


@scene("the mode became gpu while there are locks")
def the_mode_changes_under_a_lock(stage):
    stage.lock(entry(stage.pod()))
    stage.record_mode("gpu")


# From a lock to a binding.


@scene("is bound without a lock of attempt 7")
def a_pod_is_bound_without_a_lock(stage):
    stage.bind(stage.pod())


@scene("is bound without a lock of attempt 8")
def a_pod_is_bound_by_another_attempt(stage):
    pod = stage.pod()
    stage.lock(entry(pod))
    stage.bind(pod, attempt=8)


@scene("and has locked")
def a_pod_is_bound_with_more_than_it_locked(stage):
    pod = stage.pod()
    stage.lock(entry(pod, HALF))
    stage.bind(pod)


@scene("has a decision for elsewhere")
def a_pod_is_bound_with_a_decision_for_another_node(stage):
    pod = stage.pod()
    stage.lock(entry(pod))
    stage.bind(pod, decided="elsewhere")


@scene()
def a_changed_pod_is_locked_anew_and_bound(stage):
    pod = stage.pod()
    stage.lock(entry(pod))
    pod = stage.fence(pod)
    stage.lock(entry(pod, attempt=8))
    stage.bind(pod, attempt=8)


@scene("and was locked at")
def a_changed_pod_is_bound_by_its_old_lock(stage):
    pod = stage.pod()
    stage.lock(entry(pod))
    stage.fence(pod)
    stage.bind(pod)


@scene()
def a_gang_is_bound_when_all_of_it_is_locked(stage):
    first, second = stage.pod("p"), stage.pod("q")
    locks = [entry(first, HALF, gang=GANG), entry(second, HALF, gang=GANG)]
    stage.lock(*locks)
    stage.bind(first, HALF)
    stage.bind(second, HALF)


@scene("with 1 of 2 of train locked")
def a_gang_is_bound_when_half_of_it_is_locked(stage):
    pod = stage.pod()
    stage.lock(entry(pod, gang=GANG))
    stage.bind(pod)


@scene()
def a_member_is_replaced_while_the_others_are_there(stage):
    first, second = stage.pod("p"), stage.pod("q")
    stage.lock(entry(first, HALF, gang=GANG), entry(second, HALF, gang=GANG))
    stage.bind(first, HALF)
    stage.bind(second, HALF)
    stage.finish(first)
    stage.remove(second)
    third = stage.pod("r")
    stage.lock(entry(third, gang=GANG))
    stage.bind(third)


@scene("with 1 of 2 of train locked")
def members_that_are_gone_do_not_count(stage):
    pods = [stage.pod("p"), stage.pod("q")]
    stage.lock(*[entry(pod, HALF, gang=GANG) for pod in pods])
    for pod in pods:
        stage.bind(pod, HALF)
        stage.remove(pod)
    third = stage.pod("r")
    stage.lock(entry(third, gang=GANG))
    stage.bind(third)


@scene()
def one_that_was_locked_and_is_deleted_counts_for_those_on_their_way(stage):
    """Who binds the other may not have heard of it."""
    first, second = stage.pod("p"), stage.pod("q")
    stage.lock(entry(first, HALF, gang=GANG), entry(second, HALF, gang=GANG))
    stage.remove(first)
    stage.lock(entry(second, HALF, gang=GANG))
    stage.bind(second, HALF)


# From a lock to nothing.


@scene()
def a_lock_is_collected_after_a_fence(stage):
    pod = stage.pod()
    stage.lock(entry(pod))
    stage.fence(pod)
    stage.lock()


@scene("the pod is unbound as it was")
def a_lock_is_collected_without_a_fence(stage):
    stage.lock(entry(stage.pod()))
    stage.lock()


@scene("the pod is unbound as it was")
def a_lock_is_deleted_without_a_fence(stage):
    stage.lock(entry(stage.pod()))
    stage.unlock()


@scene()
def a_lock_that_is_deleted_stays_as_long_as_it_holds_something(stage):
    pod, other = stage.pod(), stage.pod("q")
    kept = ["gpu.scheduling/locks"]
    stage.lock(entry(pod), finalizers=kept)
    stage.unlock()
    stage.bind(pod)
    stage.lock(entry(pod), entry(other, [share("GPU-2")]), finalizers=kept)
    stage.finish(pod)
    stage.fence(other)
    stage.lock()
    gone = stage.client.get(f"{LEASES}/gpus-{stage.node}")
    equal(gone.code, 404, "the Lease after its last entry has gone")


@scene("the pod is unbound as it was")
def a_lock_goes_to_another_attempt_at_the_same_version(stage):
    pod = stage.pod()
    stage.lock(entry(pod))
    stage.lock(entry(pod, attempt=8))


@scene()
def a_lock_is_collected_when_its_pod_is_gone_or_finished(stage):
    unbound, bound, finished = (stage.pod(name) for name in "pqr")
    others = [[share(f"GPU-{number}")] for number in (2, 3)]
    stage.lock(entry(unbound), entry(bound, others[0]), entry(finished, others[1]))
    stage.bind(bound, others[0])
    stage.bind(finished, others[1])
    stage.remove(unbound)
    stage.remove(bound)
    stage.finish(finished)
    stage.lock()


@scene("is bound to n")
def the_lock_of_a_live_pod_is_collected(stage):
    pod = stage.pod()
    stage.lock(entry(pod))
    stage.bind(pod)
    stage.lock()


@scene("is bound to n")
def the_lock_of_a_live_pod_is_deleted(stage):
    pod = stage.pod()
    stage.lock(entry(pod))
    stage.bind(pod)
    stage.unlock()


@scene()
def the_lock_that_lost_is_collected_beside_the_one_that_won(stage):
    stage.record_mode("gpu")
    pod = stage.pod()
    stage.lock_card(0, "GPU-0", entry(pod, [share("GPU-0")]), holder=pod)
    stage.lock_card(1, "GPU-1", entry(pod, [share("GPU-1")], attempt=8), holder=pod)
    stage.bind(pod, [share("GPU-0")])
    stage.lock_card(1, "GPU-1")


# What a pod carries.


@scene("another decision after it was bound: gpu.scheduling/decision")
def a_decision_changes_after_the_binding(stage):
    pod = stage.pod()
    stage.lock(entry(pod))
    stage.bind(pod)
    decision = {"node": stage.node, "gpus": list(HALF), "attempt": 7}
    stage.annotate(pod, decision=json.dumps(decision))


@scene("another decision after it was bound: gpu.scheduling/allocated")
def what_people_read_changes_after_the_binding(stage):
    pod = stage.pod()
    stage.lock(entry(pod))
    stage.bind(pod)
    stage.annotate(pod, allocated="elsewhere:0", other="1")


@scene("has a decision and no node")
def a_pod_brings_its_own_decision(stage):
    stage.pod(**{"gpu.scheduling/visible-devices": "0,1"})


# Claims.


@scene()
def a_claim_is_reserved_bound_and_given_back(stage):
    name = stage.claim("Pending")
    pods = [stage.pod("p", claim=name), stage.pod("q", claim=name)]
    stage.lock(*[entry(pod, HALF) for pod in pods])
    stage.claim("Reserved")
    for pod in pods:
        stage.bind(pod, HALF)
    stage.claim("Bound", allocated=f"{stage.node}:0 +1", nodeName=stage.node)
    for pod in pods:
        stage.remove(pod)
    stage.claim("Pending")
    stage.claim("Failed", message="no GPU of that kind")
    stage.claim("Pending")


@scene("went from Pending to Bound")
def a_claim_skips_its_reservation(stage):
    name = stage.claim("Pending")
    pod = stage.pod(claim=name)
    stage.lock(entry(pod))
    stage.bind(pod)
    stage.claim("Bound", allocated=f"{stage.node}:0")


@scene("is Lost")
def a_claim_is_in_a_phase_that_is_none(stage):
    stage.claim("Lost")


@scene("is Reserved and no pod of it is locked")
def a_claim_is_reserved_without_a_lock(stage):
    stage.pod(claim=stage.claim("Pending"))
    stage.claim("Reserved")


@scene("is allocated, its pods")
def a_claim_says_what_no_pod_has(stage):
    pod = stage.pod(claim=stage.claim("Pending"))
    stage.lock(entry(pod))
    stage.claim("Reserved")
    stage.bind(pod)
    stage.claim("Bound", allocated=f"{stage.node}:1")


@scene("of 1 pods")
def a_claim_counts_pods_that_it_does_not_have(stage):
    pod = stage.pod(claim=stage.claim("Pending"))
    stage.lock(entry(pod))
    stage.claim("Reserved")
    stage.bind(pod)
    stage.claim("Bound", allocated=f"{stage.node}:0 +1")


@scene("is Reserved and says")
def a_claim_tells_before_it_is_bound(stage):
    pod = stage.pod(claim=stage.claim("Pending"))
    stage.lock(entry(pod))
    stage.claim("Reserved", allocated=f"{stage.node}:0")


@scene("is Pending again and has 1 bound pods")
def a_claim_is_given_back_while_it_is_used(stage):
    pod = stage.pod(claim=stage.claim("Pending"))
    stage.lock(entry(pod))
    stage.claim("Reserved")
    stage.bind(pod)
    stage.claim("Bound", allocated=f"{stage.node}:0")
    stage.claim("Pending")


def play(client):
    """All scenes; the revision at which each ended."""
    ends = []
    for number, (function, _) in enumerate(SCENES):
        stage = Stage(client, number)
        function(stage)
        stage.leave()
        stage.record_mode("node")
        ends.append(int(client.get(PODS).json["metadata"]["resourceVersion"]))
    return ends


def check_history(info):
    """What the checker finds, as (revision, sentence), and the changes that it read."""
    with tempfile.NamedTemporaryFile() as file:
        command = [HERE / "history", info["KUBE_ETCD"], file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = Path(file.name).read_text(encoding="utf-8").splitlines()
    found = [(int(at), sentence) for at, sentence in AT.findall(done.stderr)]
    equal(done.returncode, 1 if found else 0, done.stderr)
    return found, [json.loads(line) for line in lines]


def unexpected(found, ends):
    """Scenes of which something else is said than they should be."""
    start = 0
    for (function, reasons), end in zip(SCENES, ends):
        said = [sentence for at, sentence in found if start < at <= end]
        start = end
        matched = {reason for reason in reasons if any(reason in each for each in said)}
        strange = [each for each in said if not any(reason in each for reason in reasons)]
        if strange or matched != set(reasons):
            yield f"{function.__name__}: said {said}, expected {list(reasons)}"


@test
def every_rule_is_found_broken_where_it_is_and_nowhere_else():
    with subprocess.Popen(
        [HERE / "cluster", "up", "--history"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as cluster:
        info = json.loads(cluster.stdout.readline())
        client = Client(info["KUBECONFIG"])
        define(client, "gpuclaims", "GpuClaim", "Namespaced")
        define(client, "gpunodestatuses", "GpuNodeStatus", "Cluster")
        for path in (CLAIMS, STATUSES):
            eventually(lambda path=path: client.get(path).code == 200, f"{path} is served")
        equal(check_history(info)[0], [], "before anything has happened")
        ends = play(client)
        found, lines = check_history(info)
        changes = list(Etcd(info["KUBE_ETCD"]).changes(PREFIXES))
        cluster.communicate("done\n")
    wrong = list(unexpected(found, ends))
    check(not wrong, "\n".join(wrong))
    revisions = [line["revision"] for line in lines]
    equal(revisions, sorted(revisions), "revisions")
    check(any(line["object"] is None for line in lines), "no deletion was read")
    # No API server moves a pod: history_test.py does.
    unbroken = [rule.__name__ for rule in rules.RULES if not rules.violations(changes, [rule])]
    equal(unbroken, ["BoundOnce"], "rules that no scene breaks")
    print(f"{len(SCENES)} scenes, {len(lines)} changes", file=sys.stderr)


@test
def every_rule_is_listed():
    names = {rule.__name__ for rule in rules.RULES}
    listed = set(re.findall(r"`(\w+)`", (HERE / "LOCKS.md").read_text(encoding="utf-8")))
    equal(sorted(names - listed), [], "rules that LOCKS.md does not have")


if __name__ == "__main__":
    sys.exit(main())
