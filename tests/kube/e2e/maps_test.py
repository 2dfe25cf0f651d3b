#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu-scheduling-map and container resources: which pod gets which GPUs, container by container.

cluster: --nodes 4 --gpus 8 --history
"""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, test  # noqa: E402
from harness.scene import (  # noqa: E402
    ADMIN,
    MERGE,
    OWNERS,
    PODS,
    claimed,
    decision,
    extra_node,
    make_claim,
    make_owner,
    metric,
    play,
    report,
    scene,
    unbound,
    visible,
)
from harness.scheduler import (  # noqa: E402
    create,
    delete_pod,
    get_pod,
    gpus_of,
    make_pod,
    pod_object,
    wait_bound,
    wait_message,
)

MAP = "gpu-scheduling-map"
INDEX = "apps.kubernetes.io/pod-index"
COMPLETION = "batch.kubernetes.io/job-completion-index"
MAIN = "example/train"
ON = {"nodeSelector": {"kubernetes.io/hostname": "gpu-1"}}


def pinned(name, text, **kwargs):
    """A pod with that map."""
    return make_pod(name, annotations={MAP: text}, **kwargs)


def place(name):
    """Where it is: node and ids."""
    pod = wait_bound(name)
    return pod["spec"]["nodeName"], gpus_of(pod)


def annotate(name, **annotations):
    """Change a pod."""
    path = f"{PODS.format('default')}/{name}"
    body = {"metadata": {"annotations": annotations}}
    equal(ADMIN.request("PATCH", path, body, MERGE).code, 200)


@test
def the_index_has_many_sources():
    lines = "\n".join(f"{n}=gpu-{n % 4}:{n % 8},{(n + 1) % 8}" for n in (0, 2, 4, 6, 7))
    with scene():
        pinned("by-label-9", lines, labels={INDEX: "2"})
        pinned("by-job-label-9", lines, labels={COMPLETION: "4"})
        pod = pod_object("by-job-annotation-9", annotations={MAP: lines, COMPLETION: "6"})
        create(PODS.format("default"), pod)
        pinned("by-ordinal-0", lines)
        owner = make_owner("StatefulSet", "web", annotations={MAP: lines}, replicas=1)
        make_pod("web-7", owners=[owner], labels={"app": "web"})
        equal(place("by-label-9"), ("gpu-2", [2, 3]))
        equal(place("by-job-label-9"), ("gpu-0", [4, 5]))
        equal(place("by-job-annotation-9"), ("gpu-2", [6, 7]))
        equal(place("by-ordinal-0"), ("gpu-0", [0, 1]))
        equal(place("web-7"), ("gpu-3", [0, 7]), "the map of its StatefulSet")
        pinned("lost-5", lines)
        wait_message("lost-5", f"{MAP} has no line for pod index 5")


@test
def pods_of_a_deployment_have_the_lowest_free_index():
    lines = "0=gpu-0:0\n1=gpu-1:1\n2=gpu-2:2\n"
    with scene():
        deployment = make_owner("Deployment", "serve", annotations={MAP: lines}, replicas=3)
        owner = make_owner("ReplicaSet", "serve-5d9c", owner=deployment, replicas=3)
        # A random suffix is no ordinal, even if it is all digits.
        names = ["serve-5d9c-22222", "serve-5d9c-11111", "serve-5d9c-00001"]
        for name in names:
            make_pod(name, owners=[owner], labels={"app": "serve"})
        places = sorted(place(name) for name in names)
        equal(places, [("gpu-0", [0]), ("gpu-1", [1]), ("gpu-2", [2])])
        make_pod("serve-5d9c-00000", owners=[owner], labels={"app": "serve"})
        wait_message("serve-5d9c-00000", "has no line for pod index 3")
        gone = next(name for name in names if place(name) == ("gpu-1", [1]))
        delete_pod(gone)
        equal(place("serve-5d9c-00000"), ("gpu-1", [1]), "the index that became free")


def serve(lines, names):
    """Pods of a Deployment with that map."""
    deployment = make_owner("Deployment", "serve", annotations={MAP: lines}, replicas=len(names))
    owner = make_owner("ReplicaSet", "serve-5d9c", owner=deployment, replicas=len(names))
    for name in names:
        make_pod(name, owners=[owner], labels={"app": "serve"})


def bound_of(names):
    """Those of them that are bound now."""
    return [name for name in names if get_pod(name)["spec"].get("nodeName")]


@test
def a_busy_line_of_a_deployment_stops_one_pod_and_not_its_siblings():
    with scene():
        pinned("busy-0", "0=gpu-0:0\n")
        wait_bound("busy-0")
        names = [f"serve-5d9c-{one}" for one in ("aaaaa", "bbbbb", "ccccc")]
        serve("0=gpu-0:0\n1=gpu-1:1\n2=gpu-2:2\n", names)
        eventually(lambda: len(bound_of(names)) == 2, "the lines that are free have their pods")
        bound = bound_of(names)
        waits = next(name for name in names if name not in bound)
        equal(sorted(place(name) for name in bound), [("gpu-1", [1]), ("gpu-2", [2])])
        wait_message(waits, "requested GPU ids were in use")
        make_pod("serve-5d9c-ddddd", owners=get_pod(waits)["metadata"]["ownerReferences"])
        wait_message("serve-5d9c-ddddd", "has no line for pod index 3")
        delete_pod("busy-0")
        equal(place(waits), ("gpu-0", [0]))
        unbound("serve-5d9c-ddddd")


@test
def a_line_that_is_free_concerns_one_of_those_that_wait():
    count = 40
    with scene():
        make_pod("full", gpus=8, nodeSelector={"kubernetes.io/hostname": "gpu-0"})
        wait_bound("full")
        for number in range(count):
            claimed(f"lost-{number}", "missing")
        names = [f"serve-5d9c-b{number:04}" for number in range(count)]
        serve("".join(f"{n}=gpu-0:{n % 8}\n" for n in range(count)), names)
        for name in names:
            wait_message(name, "requested GPU ids were in use")
        before = metric("gpu_scheduler_pod_readings_total")
        for name in names:
            delete_pod(name)
            eventually(lambda one=name: get_pod(one) is None, f"{name} is gone")
        read = metric("gpu_scheduler_pod_readings_total") - before
        print(f"# {read:.0f} readings when {count} lines became free one by one")
        check(read <= 8 * count, f"{read} readings")


@test
def a_line_whose_node_is_not_there_stops_one_pod_and_not_its_siblings():
    with scene():
        names = [f"serve-5d9c-{one}" for one in ("aaaaa", "bbbbb", "ccccc")]
        serve("0=late:3\n1=gpu-1:8\n2=gpu-2:2\n", names)
        eventually(lambda: bound_of(names), "the line that is there has its pod")
        (bound,) = bound_of(names)
        equal(place(bound), ("gpu-2", [2]))
        with extra_node("late", gpus=4):
            eventually(lambda: len(bound_of(names)) == 2, "the node that came has its pod")
            (other,) = [name for name in bound_of(names) if name != bound]
            equal(place(other), ("late", [3]))
            (waits,) = [name for name in names if name not in (bound, other)]
            wait_message(waits, "line 2: node gpu-1 has no GPU 8")


@test
def a_pod_that_waits_for_a_line_takes_one_that_is_free_before_it():
    with scene():
        for number in range(2):
            pinned(f"busy{number}-0", f"0=gpu-{number}:{number}\n")
            wait_bound(f"busy{number}-0")
        serve("0=gpu-0:0\n1=gpu-1:1\n", ["serve-5d9c-aaaaa"])
        wait_message("serve-5d9c-aaaaa", "requested GPU ids were in use")
        owners = get_pod("serve-5d9c-aaaaa")["metadata"]["ownerReferences"]
        make_pod("serve-5d9c-bbbbb", owners=owners)
        wait_message("serve-5d9c-bbbbb", "requested GPU ids were in use")
        make_pod("serve-5d9c-ccccc", owners=owners)
        wait_message("serve-5d9c-ccccc", "has no line for pod index 2")
        # Nothing runs that leaves, and yet there is a line for the others.
        delete_pod("serve-5d9c-aaaaa")
        wait_message("serve-5d9c-ccccc", "requested GPU ids were in use")
        delete_pod("busy0-0")
        names = ["serve-5d9c-bbbbb", "serve-5d9c-ccccc"]
        eventually(lambda: bound_of(names), "the line that is free has a pod")
        delete_pod("busy1-0")
        equal(sorted(place(name) for name in names), [("gpu-0", [0]), ("gpu-1", [1])])


@test
def lines_of_one_map_share_a_gpu_and_others_wait():
    lines = "0=gpu-1:0,1\n1=gpu-1:1\n2=gpu-1:1,2\n"
    with scene():
        pinned("share-0", lines)
        equal(place("share-0"), ("gpu-1", [0, 1]))
        holds = {hold["id"]: hold["coreMilli"] for hold in decision(wait_bound("share-0"))["gpus"]}
        equal(holds, {0: 1000, 1: 333}, "its part from the first on")
        # There would be room by numbers, but not for others.
        other = {"elasticgpu.io/gpu-core": "30"}
        pinned("other-0", "0=gpu-1:1", limits=other)
        wait_message("other-0", "requested GPU ids were in use")
        pinned("share-1", lines)
        pinned("share-2", lines)
        equal(place("share-1"), ("gpu-1", [1]))
        equal(place("share-2"), ("gpu-1", [1, 2]))
        unbound("other-0")
        for number in range(3):
            delete_pod(f"share-{number}")
        equal(place("other-0"), ("gpu-1", [1]))


@test
def what_is_wrong_with_a_map_is_told_with_its_line_and_mended():
    with scene():
        wrong = {
            "line-0": ("0=gpu-0:0\n\n1=gpu-0;1\n", f"{MAP} line 3", 'found "1=gpu-0;1"'),
            "id-0": ("0=gpu-0:8\n", f"{MAP} line 1: node gpu-0 has no GPU 8, it has 8 GPUs"),
            "twice-0": ("0=gpu-0:1,1\n", f"{MAP} line 1: GPU 1 is there twice"),
            "index-0": ("0=gpu-0:1\n0=gpu-0:2\n", "line 2: index 0 is on line 1 already"),
            "empty-0": ("\n", f"{MAP} is empty"),
            "node-0": ("0=late:3\n", f"{MAP} line 1: node late does not exist"),
        }
        for name, (text, *_) in wrong.items():
            pinned(name, text)
        pinned("count-0", "0=gpu-0:4,5\n", gpus=3)
        for name, (_, *words) in wrong.items():
            wait_message(name, *words)
        wait_message("count-0", f"{MAP} line 1 gives 2 GPUs, but", "for 3")
        annotate("line-0", **{MAP: "0=gpu-3:7\n"})
        annotate("id-0", **{MAP: "0=gpu-3:6\n"})
        equal(place("line-0"), ("gpu-3", [7]))
        equal(place("id-0"), ("gpu-3", [6]))
        with extra_node("late", gpus=4):
            equal(place("node-0"), ("late", [3]))


@test
def a_busy_gpu_of_a_map_is_waited_for():
    with scene():
        pinned("first-0", "0=gpu-2:4\n")
        wait_bound("first-0")
        pinned("second-0", "0=gpu-2:4,5\n")
        wait_message("second-0", "1 requested GPU ids were in use")
        make_claim("two", {"count": 2})
        claimed("claim-0", "two", annotations={MAP: "0=gpu-2:6,7\n"})
        equal(place("claim-0"), ("gpu-2", [6, 7]))
        delete_pod("first-0")
        equal(place("second-0"), ("gpu-2", [4, 5]))


def containers(**limits):
    """Containers by these limits."""
    return [
        {"name": name.replace("_", "-"), "image": MAIN, "resources": {"limits": each}}
        for name, each in limits.items()
    ]


@test
def containers_of_a_pod_have_their_own_gpus():
    with scene():
        boxes = containers(
            trainer={"nvidia.com/gpu": "2"},
            server={"elasticgpu.io/gpu-core": "50", "elasticgpu.io/gpu-memory": "1000"},
            sidecar={"cpu": "1"},
            cache={"elasticgpu.io/qgpu-core": "30", "elasticgpu.io/qgpu-memory": "500"},
            card={"elasticgpu.io/pgpu": "1"},
            cards={"elasticgpu.io/gpu-core": "200"},
        )
        make_pod("mixed", containers=boxes)
        pod = wait_bound("mixed")
        names = ("trainer", "server", "cache", "card", "cards")
        seen = {name: visible(pod, name) for name in names}
        equal(visible(pod, "sidecar"), None, "what a container without GPUs sees")
        equal([len(seen[n].split(",")) for n in ("trainer", "card", "cards")], [2, 1, 2])
        whole = [one for n in ("trainer", "card", "cards") for one in seen[n].split(",")]
        equal(len(set(whole)), 5, "whole cards, each once")
        check(not {seen["server"], seen["cache"]} & set(whole), f"shares on whole cards: {seen}")
        equal(visible(pod), ",".join(map(str, gpus_of(pod))))
        equal(pod["metadata"]["annotations"]["elasticgpu.io/assumed"], "true")
        decided = decision(pod)
        equal(sorted(decided["containers"]), ["cache", "card", "cards", "server", "trainer"])
        equal(decided["scheduler"], "gpu-scheduler")
        check(decided["attempt"] > 0 and "score" in decided, f"{decided}")
        by_id = {hold["id"]: hold["uuid"] for hold in decided["gpus"]}
        equal(by_id, {n: f"GPU-{pod['spec']['nodeName']}-{n}" for n in gpus_of(pod)})


@test
def without_limits_every_container_has_all_of_them():
    with scene():
        make_claim("two", {"count": 2})
        claimed("claimed", "two", containers=containers(a={}, b={"cpu": "1"}))
        pinned("pinned-0", "0=gpu-3:5,6", containers=containers(a={}, b={}))
        for name in ("claimed", "pinned-0"):
            pod = wait_bound(name)
            ids = ",".join(map(str, gpus_of(pod)))
            equal((visible(pod, "a"), visible(pod, "b"), visible(pod)), (ids, ids, ids))


@test
def init_containers_take_nothing_beside_the_others():
    with scene():
        boxes = containers(main={"nvidia.com/gpu": "3"})
        inits = containers(prepare={"nvidia.com/gpu": "5"}, warm={"elasticgpu.io/gpu-core": "50"})
        make_pod("init", containers=boxes, initContainers=inits)
        pod = wait_bound("init")
        equal(len(gpus_of(pod)), 5, "the greater of both")
        equal(len(visible(pod, "main").split(",")), 3)
        equal(len(visible(pod, "prepare").split(",")), 5)
        equal(len(visible(pod, "warm").split(",")), 1)
        check(set(visible(pod, "main").split(",")) <= set(visible(pod, "prepare").split(",")), "")


@test
def limits_that_cannot_be_are_told():
    wrong = {
        "between": ({"elasticgpu.io/gpu-core": "150"}, "elasticgpu.io/gpu-core"),
        "bytes": ({"elasticgpu.io/gpu-memory": "8Gi"}, "elasticgpu.io/gpu-memory"),
        "unknown": ({"elasticgpu.io/gpu-cores": "50"}, "elasticgpu.io/gpu-cores is unknown"),
        "both": ({"nvidia.com/gpu": "2", "elasticgpu.io/gpu-core": "100"}, "different GPUs"),
    }
    with scene():
        for name, (limits, _) in wrong.items():
            make_pod(name, limits=limits)
        for name, (_, word) in wrong.items():
            wait_message(name, "container main", word)
        make_pod("none", limits={"nvidia.com/gpu": "0"})
        pod = wait_bound("none")
        check("gpu.scheduling/allocated" not in pod["metadata"]["annotations"], "GPUs for nobody")


@test
def slices_by_limits():
    slices = [{"uuid": f"MIG-{s}", "profile": "1g.10gb", "start": s} for s in range(7)]
    with scene():
        report("gpu-2", each={0: {"migEnabled": True, "migDevices": slices}})
        make_pod("three", limits={"nvidia.com/mig-1g.10gb": "3"})
        pod = wait_bound("three")
        equal((pod["spec"]["nodeName"], gpus_of(pod)), ("gpu-2", [0]))
        seen = visible(pod, "main").split(",")
        equal(len(set(seen)), 3, "slices")
        check(all(one.startswith("MIG-") for one in seen), f"{seen}")
        make_pod("five", limits={"nvidia.com/mig-1g.10gb": "5"})
        wait_message("five", "1 Insufficient MIG slices of 1g.10gb")
        make_pod("beside", containers=containers(
            slice={"nvidia.com/mig-1g.10gb": "1"}, card={"nvidia.com/gpu": "1"}))
        pod = wait_bound("beside")
        check(visible(pod, "slice").startswith("MIG-"), visible(pod, "slice"))
        check(visible(pod, "card").isdigit(), visible(pod, "card"))
        delete_pod("three")
        wait_bound("five")


@test
def what_a_container_sees_depends_on_the_node():
    with scene():
        report("gpu-1", injectionMode="cdi")
        pinned("decided-0", "0=gpu-1:3,6\n")
        pod = wait_bound("decided-0")
        equal((gpus_of(pod), visible(pod), visible(pod, "main")), ([3, 6], "0,1", "0,1"))
        report("gpu-2", injectionMode="cdi", mps=True)
        make_pod("share", limits={"elasticgpu.io/gpu-core": "50"},
                 nodeSelector={"kubernetes.io/hostname": "gpu-2"})
        pod = wait_bound("share")
        equal(visible(pod, "main"), f"GPU-gpu-2-{gpus_of(pod)[0]}", "by UUID under MPS")
        long = "c" * 60
        boxes = containers(**{long: {"nvidia.com/gpu": "1"}})
        make_pod("long", containers=boxes, **ON)
        notes = wait_bound("long")["metadata"]["annotations"]
        keys = [key for key in notes if key.startswith("elasticgpu.io/container-")]
        equal(len(keys), 1)
        check(len(keys[0].partition("/")[2]) <= 63, keys[0])


@test
def owners_that_change_are_looked_at_again():
    with scene():
        owner = make_owner("StatefulSet", "late", replicas=2, annotations={MAP: "1=gpu-0:0"})
        make_pod("late-0", owners=[owner])
        wait_message("late-0", f"{MAP} has no line for pod index 0")
        body = {"metadata": {"annotations": {MAP: "0=gpu-3:5"}}}
        equal(ADMIN.request("PATCH", f"{OWNERS['StatefulSet']}/late", body, MERGE).code, 200)
        equal(place("late-0"), ("gpu-3", [5]))


if __name__ == "__main__":
    sys.exit(play())
