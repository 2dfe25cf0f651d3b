#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What pods would rather have: taints that discourage, preferred affinity of nodes and pods, and
topology spread that is not required. The scheduler packs, so without a preference every pod would
go where another one is.

cluster: --nodes 4 --gpus 8 --history
"""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import equal, main, test  # noqa: E402
from harness.client import as_identity  # noqa: E402
from harness.scene import patch_node  # noqa: E402
from harness.scheduler import (  # noqa: E402
    delete_pod,
    install_kinds,
    make_pod,
    scheduling,
    wait_bound,
    wait_gone,
)

ADMIN = as_identity("admin")
NODES = "/api/v1/nodes"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"
WEB = {"app": "web"}


def prepare():
    """The custom resources."""
    install_kinds()


def names():
    """All nodes, by name."""
    return sorted(node["metadata"]["name"] for node in ADMIN.get(NODES).json["items"])


def mark(node, labels=None, taints=None):
    """Label the node; its taints are these and no others."""
    patch_node(node, {"metadata": {"labels": labels or {}}, "spec": {"taints": taints or []}})


def place(name, **spec):
    """The node of a new pod of one GPU."""
    make_pod(name, gpus=1, labels=WEB, **spec)
    return wait_bound(name)["spec"]["nodeName"]


def prefer_nodes(*terms):
    """Affinity to nodes by label, each (weight, key, value)."""
    preferred = [
        {
            "weight": weight,
            "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]},
        }
        for weight, key, value in terms
    ]
    return {"nodeAffinity": {PREFERRED: preferred}}


def prefer_pods(kind, key):
    """Affinity or anti-affinity to the pods of the test."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": WEB}}
    return {kind: {PREFERRED: [{"weight": 100, "podAffinityTerm": term}]}}


@test
def a_node_whose_taint_discourages_is_taken_last():
    first, *others = names()
    mark(first, taints=[{"key": "old", "effect": "PreferNoSchedule"}])
    with scheduling():
        for number in range(8 * len(others)):
            node = place(f"p{number}")
            equal(node == first, False, f"p{number} on the node that discourages")
        equal(place("last"), first, "when all others are full")
        make_pod("tolerant", gpus=1, tolerations=[{"key": "old", "operator": "Exists"}])
        equal(wait_bound("tolerant")["spec"]["nodeName"], first)
    mark(first)


@test
def preferred_nodes_are_taken_by_weight_while_there_is_room():
    first, _, third, last = names()
    mark(third, {"disk": "fast"})
    mark(last, {"disk": "faster"})
    with scheduling():
        equal(place("there"), first, "without a preference")
        wish = prefer_nodes((10, "disk", "fast"), (90, "disk", "faster"), (50, "disk", "none"))
        for number in range(8):
            equal(place(f"p{number}", affinity=wish), last, f"the heavier, p{number}")
        equal(place("p8", affinity=wish), third, "the lighter, once the other is full")
    mark(third, {"disk": None})
    mark(last, {"disk": None})


@test
def pods_that_would_rather_be_apart_are_until_there_is_no_other_way():
    with scheduling():
        wish = prefer_pods("podAntiAffinity", HOST)
        apart = {place(f"p{number}", affinity=wish) for number in range(4)}
        equal(sorted(apart), names(), "one on each")
        place("fifth", affinity=wish)
        equal(place("near", affinity=prefer_pods("podAffinity", HOST)) in apart, True)


@test
def pods_that_are_there_keep_others_away_if_it_can_be():
    with scheduling():
        first = place("before")
        delete_pod("before")
        wait_gone("before")
        wish = prefer_pods("podAntiAffinity", HOST)
        make_pod("shy", affinity=wish, nodeSelector={HOST: first})
        wait_bound("shy")
        equal(place("after") == first, False, "beside one that would rather be alone")


@test
def a_spread_that_is_not_required_is_even_where_it_can_be():
    nodes = names()
    for number, node in enumerate(nodes):
        mark(node, {"zone": "a" if number < 3 else "b"})
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": WEB},
        }
    ]
    with scheduling():
        placed = [place(f"p{number}", topologySpreadConstraints=spread) for number in range(16)]
        equal(placed.count(nodes[3]), 8, "in the zone of one node")
        for number in range(16, 18):
            node = place(f"p{number}", topologySpreadConstraints=spread)
            equal(node == nodes[3], False, "in the zone that is full")
    for node in nodes:
        mark(node, {"zone": None})


if __name__ == "__main__":
    prepare()
    sys.exit(main())
