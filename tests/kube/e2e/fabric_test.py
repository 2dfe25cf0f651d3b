#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""topology.scheduler/* on pods and on their owners, on a fabric of two spines and six leaves.

cluster: --nodes 12 --gpus 4 --history
"""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, test  # noqa: E402
from harness.scene import (  # noqa: E402
    ADMIN,
    claimed,
    hold_nothing,
    label_node,
    make_claim,
    make_owner,
    play,
    report,
    scene,
    the_scheduler,
    unbound,
)
from harness.scheduler import (  # noqa: E402
    create,
    delete_pod,
    entries_of,
    get_pod,
    gpus_of,
    make_pod,
    wait_bound,
    wait_message,
)

T = "topology.scheduler/"
LEAVES = {f"gpu-{n}": f"leaf-{n // 2}" for n in range(12)}
SPINES = {f"gpu-{n}": f"spine-{n // 6}" for n in range(12)}


def prepare():
    """Two nodes to a leaf, three leaves to a spine."""
    for name in LEAVES:
        label_node(name, **{T + "leaf": LEAVES[name], T + "spine": SPINES[name]})


def job(name, count, parallelism, more=None, **kwargs):
    """A Job of the dialect and its pods; their names."""
    annotations = {T + "gpu-count": str(count), **(more or {})}
    owner = make_owner("Job", name, annotations=annotations, parallelism=parallelism,
                       completions=parallelism)
    names = [f"{name}-{n}" for n in range(parallelism)]
    for each in names:
        make_pod(each, owners=[owner], restartPolicy="Never", **kwargs)
    return names


def nodes_of(names):
    """Where they are bound."""
    return [wait_bound(name)["spec"]["nodeName"] for name in names]


def leaves(nodes):
    """The leaves of these."""
    return {LEAVES[node] for node in nodes}


@test
def a_job_is_a_gang_and_its_count_a_total():
    with scene():
        names = job("two", 8, 2)
        nodes = nodes_of(names)
        equal(len(set(nodes)), 2)
        equal(len(leaves(nodes)), 1, "leaves of two nodes")
        equal([len(gpus_of(get_pod(name))) for name in names], [4, 4])
        names = job("four", 16, 4)
        nodes = nodes_of(names)
        equal((len(set(nodes)), len(leaves(nodes))), (4, 2), "nodes and leaves")
        equal(len({SPINES[node] for node in nodes}), 1, "spines")
        numbers = sorted(int(leaf[-1]) for leaf in leaves(nodes))
        equal(numbers[1] - numbers[0], 1, "adjacent leaves")
        entry = entries_of(get_pod("four-0"))[0]
        equal(entry["gang"]["members"], 4, "members in the lock")
        job("uneven", 7, 2)
        wait_message("uneven-0", T + "gpu-count of the Job is 7", "2 pods")


@test
def strategies_consolidate_or_distribute():
    with scene():
        spread = leaves(nodes_of(job("wide", 16, 4, {T + "placement-strategy": "distributed"})))
        equal(len(spread), 4, "leaves of distributed")
        dense = leaves(nodes_of(job("dense", 8, 2, {T + "placement-strategy": "consolidated"})))
        equal(len(dense), 1, "leaves of consolidated")
        nodes_of(job("even", 4, 2, {T + "placement-strategy": "balanced"}))
        make_pod("odd", annotations={T + "gpu-count": "1", T + "placement-strategy": "nearby"})
        wait_message("odd", T + 'placement-strategy is "nearby"', "consolidated")


def fill(numbers):
    """These nodes are full."""
    for number in numbers:
        make_pod(f"full-{number}", gpus=4,
                 nodeSelector={"kubernetes.io/hostname": f"gpu-{number}"})
    for number in numbers:
        wait_bound(f"full-{number}")


@test
def leaf_rules_are_required_and_waited_for():
    with scene():
        # One node of each leaf is full: nowhere are two in one leaf.
        fill(range(0, 12, 2))
        names = job("pair", 8, 2)
        wait_message(names[0], "gang")
        unbound(*names)
        for name in names:
            equal(entries_of(get_pod(name)), [], "locks of a gang that waits")
        # A claim that does not require it takes what there is.
        make_claim("loose", {"count": 4}, gangRef="loose", gangMinMembers=2)
        for number in range(2):
            claimed(f"loose-{number}", "loose")
        equal(len(set(nodes_of(["loose-0", "loose-1"]))), 2)
        taken = set(nodes_of(["loose-0", "loose-1"]))
        free = next(n for n in range(0, 12, 2) if f"gpu-{n + 1}" not in taken)
        delete_pod(f"full-{free}")
        equal(sorted(nodes_of(names)), sorted([f"gpu-{free}", f"gpu-{free + 1}"]))


def whole_nodes(name, members, mode):
    """A gang that its claim makes, of so many nodes; the names of its pods."""
    make_claim(name, {"count": 4}, topology={"mode": mode}, gangRef=name, gangMinMembers=members)
    names = [f"{name}-{number}" for number in range(members)]
    for each in names:
        claimed(each, name)
    return names


@test
def a_claim_requires_leaf_rules_or_would_rather_have_them():
    with scene():
        fill(range(0, 12, 2))
        strict = whole_nodes("strict", 2, "Required")
        wait_message(strict[0], "gang of 2")
        taken = []
        for mode in ("Preferred", "Ignore"):
            taken += nodes_of(whole_nodes(mode.lower(), 2, mode))
        equal(len(leaves(taken)), 4, f"leaves of {taken}")
        hold_nothing(*strict)
        free = next(n for n in range(0, 12, 2) if f"gpu-{n + 1}" not in taken)
        delete_pod(f"full-{free}")
        equal(sorted(nodes_of(strict)), sorted([f"gpu-{free}", f"gpu-{free + 1}"]))


@test
def leaves_of_a_claim_that_requires_it_are_adjacent():
    with scene():
        # Of leaves 0 and 2 both nodes are free, of the others one.
        fill((2, 6, 8, 10))
        strict = whole_nodes("strict", 4, "Required")
        wait_message(strict[0], "gang of 4")
        hold_nothing(*strict)
        delete_pod("full-2")
        nodes = nodes_of(strict)
        equal(len(set(nodes)), 4, f"nodes of {nodes}")
        check(leaves(nodes) in ({"leaf-0", "leaf-1"}, {"leaf-1", "leaf-2"}), f"leaves of {nodes}")


@test
def owners_pass_their_annotations_on():
    with scene():
        want = {T + "gpu-count": "2", T + "preferred-domain": "leaf-4"}
        deployment = make_owner("Deployment", "serve", annotations=want, replicas=3)
        replicas = make_owner("ReplicaSet", "serve-77d", owner=deployment, replicas=3)
        single = make_owner("ReplicaSet", "alone", annotations={T + "gpu-count": "3"}, replicas=1)
        stateful = make_owner("StatefulSet", "db", annotations=want, replicas=1)
        make_pod("serve-77d-abcde", owners=[replicas])
        make_pod("db-0", owners=[stateful])
        make_pod("alone-xyz", owners=[single])
        # What the pod says itself counts more.
        make_pod("serve-77d-fghij", owners=[replicas], annotations={T + "gpu-count": "1"})
        for name, count in (("serve-77d-abcde", 2), ("db-0", 2), ("serve-77d-fghij", 1)):
            pod = wait_bound(name)
            equal(len(gpus_of(pod)), count, f"GPUs of {name}")
            equal(LEAVES[pod["spec"]["nodeName"]], "leaf-4", f"preferred domain of {name}")
        equal(len(gpus_of(wait_bound("alone-xyz"))), 3)


@test
def a_preferred_domain_is_a_leaf_or_a_spine_and_excludes_nothing():
    with scene():
        for name, domain in (("leaf", "leaf-2"), ("spine", "spine-1"), ("path", "spine-1/leaf-3")):
            make_pod(name, annotations={T + "gpu-count": "1", T + "preferred-domain": domain})
        equal(leaves(nodes_of(["leaf"])), {"leaf-2"})
        equal({SPINES[n] for n in nodes_of(["spine"])}, {"spine-1"})
        equal(leaves(nodes_of(["path"])), {"leaf-3"})
        make_pod("nowhere", annotations={T + "gpu-count": "1", T + "preferred-domain": "leaf-99"})
        wait_bound("nowhere")
    with scene():
        for number in range(2):
            make_pod(f"fill-{number}", annotations={
                T + "gpu-count": "4", T + "preferred-domain": "leaf-5"})
        equal(leaves(nodes_of(["fill-0", "fill-1"])), {"leaf-5"})
        make_pod("over", annotations={T + "gpu-count": "4", T + "preferred-domain": "leaf-5"})
        wait_bound("over")


@test
def network_bandwidth_is_what_the_agent_or_the_label_says():
    with scene():
        want = {T + "gpu-count": "1", T + "network-bandwidth": "200Gbps"}
        make_pod("label", annotations=want)
        make_pod("agent", annotations={**want, T + "network-bandwidth": "400"})
        message = wait_message("label", "0/12 nodes are available")
        check(T + "network-bandwidth" in message and "200 Gbit/s" in message, message)
        label_node("gpu-3", **{T + "network-bandwidth": "100"})
        label_node("gpu-4", **{T + "network-bandwidth": "200Gbps"})
        equal(nodes_of(["label"]), ["gpu-4"])
        unbound("agent")
        report("gpu-9", gpus=4, network={"bandwidthGbps": 400})
        equal(nodes_of(["agent"]), ["gpu-9"])
        make_pod("odd", annotations={**want, T + "network-bandwidth": "fast"})
        wait_message("odd", T + 'network-bandwidth is "fast"')
        for name in ("gpu-3", "gpu-4"):
            label_node(name, **{T + "network-bandwidth": None})


@test
def what_disagrees_is_told():
    with scene():
        make_pod("limits", gpus=2, annotations={T + "gpu-count": "3"})
        make_pod("shares", limits={"elasticgpu.io/gpu-core": "50"},
                 annotations={T + "gpu-count": "1"})
        make_pod("none", annotations={T + "gpu-count": "0"})
        make_pod("late", annotations={T + "gpu-count": "1", T + "latency-sensitive": "very"})
        make_pod("typo", annotations={T + "gpu-cuont": "1"})
        wait_message("limits", T + "gpu-count comes to 3 GPUs a pod, but", "for 2")
        wait_message("shares", T + "gpu-count asks for whole GPUs, but")
        wait_message("none", T + 'gpu-count is "0", it must be a whole number, 1 or more')
        wait_message("late", T + 'latency-sensitive is "very", it must be true or false')
        wait_message("typo", "did you mean " + T + "gpu-count?")
        agree = {T + "gpu-count": "2", T + "latency-sensitive": "true"}
        make_pod("agree", gpus=2, annotations=agree)
        wait_bound("agree")


@test
def a_leaf_has_no_more_nodes_than_are_allowed():
    path = "/api/v1/namespaces/kube-system/configmaps"
    text = "topologyConstraints: {maxNodesPerLeaf: 1}\n"
    body = {"metadata": {"name": "topology-scheduler-config"}, "data": {"config.yaml": text}}
    with scene():
        create(path, body)
        eventually(lambda: "ConfigMap kube-system" in the_scheduler().log(), "it is in force")
        nodes = nodes_of(job("apart", 8, 2))
        equal((len(set(nodes)), len(leaves(nodes))), (2, 2), "nodes and leaves")
        ADMIN.delete(f"{path}/topology-scheduler-config")
        eventually(lambda: 'source="the defaults"' in the_scheduler().log(), "it no longer is")
        equal(len(leaves(nodes_of(job("near", 8, 2)))), 1, "leaves")


@test
def leaves_that_change_are_seen():
    with scene():
        fill(range(0, 12, 2))
        names = job("pair", 8, 2)
        wait_message(names[0], "gang")
        label_node("gpu-3", **{T + "leaf": "leaf-0"})
        equal(sorted(nodes_of(names)), ["gpu-1", "gpu-3"])
        label_node("gpu-3", **{T + "leaf": LEAVES["gpu-3"]})


if __name__ == "__main__":
    sys.exit(play(prepare=prepare))
