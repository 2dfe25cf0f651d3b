#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The webhook between the real API server and kubectl: what pods have afterwards, what is
refused, what containers see at last, and what an outage stops.

cluster: --nodes 2 --gpus 4
"""
import http.client
import json
import os
import signal
import ssl
import sys
from collections import Counter
from pathlib import Path
from random import Random

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.admission import (  # noqa: E402
    ACCOUNT,
    DRY,
    ROOT,
    As,
    complete,
    decide_cases,
    decide_own,
    pods,
)
from harness.check import (  # noqa: E402
    check,
    check_metrics,
    equal,
    eventually,
    kubectl,
    main,
    test,
)
from harness.scheduler import install_kinds, scheduling, wait_bound  # noqa: E402
from harness.webhook import (  # noqa: E402
    ALICE,
    CONFIGURATIONS,
    FOLDER,
    GPU,
    KINDS,
    NAME,
    OURS,
    PORT,
    adding,
    bad_pod,
    configure,
    create,
    dry,
    gets,
    in_force,
    install,
    plain_gpu,
    serving,
    variables,
)

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
READER = "deploy/webhook/optional/reader.yaml"
LONG = "a-container-with-a-name-of-sixty-three-characters-as-allowed-63"
WITH_GPU = {"name": "a", "resources": GPU}
OWN = [
    {"name": "Y", "value": "$(CUDA_VISIBLE_DEVICES)"},
    {"name": "CUDA_VISIBLE_DEVICES", "value": "7"},
]
# Metadata, spec, and what the containers have afterwards.
ASKS = [
    ({}, {**OURS, "containers": [WITH_GPU, {"name": "b"}]}, {"a": gets("a"), "b": {}}),
    (
        {},
        {
            **OURS,
            "initContainers": [{"name": "i", "resources": GPU}],
            "containers": [{"name": "a", "env": [{"name": "X", "value": "x"}]}],
        },
        {"i": gets("i"), "a": {"X": "x"}},
    ),
    (
        {"annotations": {"gpu.scheduling/claim": "c"}},
        {"containers": [{"name": "a"}, {"name": "b"}]},
        {"a": gets("a"), "b": gets("b")},
    ),
    (
        {"generateName": "made-"},
        {**OURS, "containers": [{**WITH_GPU, "env": OWN}]},
        {"a": {**gets("a"), "Y": "$(CUDA_VISIBLE_DEVICES)"}},
    ),
    (
        {"name": "mapped-1", "annotations": {"gpu-scheduling-map": "1=n:3,2"}},
        {**OURS, "containers": [{"name": "a"}]},
        {"a": {**gets("a"), "CUDA_VISIBLE_DEVICES": "2,3"}},
    ),
    ({}, {"containers": [WITH_GPU]}, {"a": {}}),
]


@test
def pods_have_their_variables():
    """Every way to ask, created by kubectl and read back."""
    configure("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    with serving("--injection", "all"):
        in_force(bad_pod(), 403, "both configurations are in force")
        for metadata, spec, expected in ASKS:
            pod = create({"metadata": metadata, "spec": spec})
            equal(variables(pod), expected, json.dumps(spec))
        own = complete({"spec": {**OURS, "containers": [{**WITH_GPU, "env": OWN}]}}, "hooks", "own")
        said = ALICE.post(pods("hooks") + DRY, own).headers["Warning"] or ""
        check("CUDA_VISIBLE_DEVICES is set by gpu-scheduler" in said, f"users are told: {said}")
        pod = create({"spec": {**OURS, "containers": [{**WITH_GPU, "name": LONG}]}})
        value = variables(pod)[LONG]["CUDA_VISIBLE_DEVICES"]
        check(value.startswith("@elasticgpu.io/container-" + LONG[:36] + "-"), value)
        equal(len(value.partition("/")[2]), 63)


@test
def what_another_webhook_adds_is_completed_too():
    """Ours is asked again, and does nothing twice; ids of a map go when limits deal them out."""
    pod = {"spec": {**OURS, "containers": [WITH_GPU]}}
    mapped = {
        "metadata": {"name": "mapped-2", "annotations": {"gpu-scheduling-map": "2=n:3,2"}},
        "spec": {**OURS, "containers": [{"name": "a"}]},
    }
    rows = ((pod, GPU, (2, 0)), (pod, {}, (1, 1)), (mapped, GPU, (2, 0)))
    for asked, resources, outcomes in rows:
        more = {"name": "more", "image": "example/more", "resources": resources}
        expected = {"a": gets("a"), "more": gets("more") if resources else {}}
        with serving("--injection", "all") as webhook, adding(more):
            in_force(bad_pod(), 403, "both configurations are in force")
            eventually(lambda has=expected: variables(dry(pod)) == has, "the other one is asked")
            before = webhook.count("patched"), webhook.count("untouched")
            equal(variables(create(asked)), expected)
            after = webhook.count("patched"), webhook.count("untouched")
            equal((after[0] - before[0], after[1] - before[1]), outcomes, "reviews of one pod")


@test
def it_says_whether_it_is_ready():
    """One that ends says so first, and goes on for API servers that have not heard of it."""
    with serving(linger_ms=10000) as webhook:
        equal(webhook.get("/health"), (200, "ok\n"))
        equal(webhook.get("/ready"), (200, "ok\n"))
        webhook.process.send_signal(signal.SIGTERM)
        eventually(lambda: webhook.get("/ready")[0] == 503, "it is told to end")
        equal(webhook.get("/ready")[1], "not ready: stopping\n")
        equal(webhook.get("/health")[0], 200)
        pod = dry({"spec": {**OURS, "containers": [WITH_GPU]}})
        equal(variables(pod), {"a": gets("a")}, "served still")


@test
def its_metrics_are_valid():
    with serving() as webhook:
        in_force(bad_pod(), 403, "both configurations are in force")
        dry({"spec": {**OURS, "containers": [WITH_GPU]}})
        check(webhook.count("patched"), "no pod was changed")
        check_metrics(webhook.get("/metrics")[1])


def starts(pod):
    """What the containers of the pod saw when they were started, by name."""
    text = (FOLDER / "environments.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    uid = pod["metadata"]["uid"]
    return {line["container"]: line["environment"] for line in lines if line["uid"] == uid}


def clear():
    """Without pods that wait for a scheduler, or hold GPUs."""
    ALICE.delete(pods("hooks"), {"gracePeriodSeconds": 0})


@test
def containers_see_what_the_scheduler_decided():
    """From kubectl through webhook, scheduler and Binding to the kubelet's environment."""
    clear()
    with serving(), scheduling():
        in_force(bad_pod(), 403, "both configurations are in force")
        spec = {**OURS, "containers": [WITH_GPU, {**WITH_GPU, "name": "b"}, {"name": "c"}]}
        name = create({"spec": spec})["metadata"]["name"]
        pod = wait_bound(name, "hooks")
        env = eventually(lambda: starts(pod) if len(starts(pod)) == 3 else None, "it is started")
        decided = pod["metadata"]["annotations"]
        _, _, ids = decided["gpu.scheduling/allocated"].partition(":")
        seen = [env[each]["CUDA_VISIBLE_DEVICES"] for each in ("a", "b")]
        equal(sorted(seen), sorted(ids.split(",")), json.dumps(decided))
        equal(env["a"]["CUDA_DEVICE_ORDER"], "PCI_BUS_ID")
        check("CUDA_VISIBLE_DEVICES" not in env["c"], "a container without GPUs")
        # Nobody else may say otherwise, while the pod runs.
        pod = ALICE.get(f"{pods('hooks')}/{name}").json
        pod["metadata"]["annotations"]["elasticgpu.io/container-a"] = "0,1,2,3"
        del pod["metadata"]["resourceVersion"]  # the kubelet writes meanwhile
        answer = ALICE.put(f"{pods('hooks')}/{name}", pod)
        equal(answer.code, 403, str(answer))
        clear()


@test
def in_mode_cdi_containers_have_a_slot():
    """As limit and request, so that the API server takes it."""
    inject = ("--inject", "nvidia", "--inject", "runtimeclass=nvidia")
    with serving("--injection", "cdi", "--set-scheduler", "gpu-scheduler", *inject):
        runtime = {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": "nvidia"},
            "handler": "nvidia",
        }
        kubectl("create", "-f", "-", stdin=json.dumps(runtime))
        eventually(lambda: variables(dry(plain_gpu()))["a"], "the webhook is asked")
        pod = create(plain_gpu())
        equal(pod["spec"]["schedulerName"], "gpu-scheduler")
        equal(pod["spec"]["runtimeClassName"], "nvidia")
        equal(variables(pod), {"a": {**gets("a"), "NVIDIA_VISIBLE_DEVICES": "void"}})
        resources = pod["spec"]["containers"][0]["resources"]
        equal(resources["limits"], {"nvidia.com/gpu": "1", "gpu.scheduling/slot": "1"})
        equal(resources["requests"], resources["limits"])


def owned(job):
    """A pod as the controller of that Job makes it, without a word about GPUs."""
    reference = {"apiVersion": "batch/v1", "kind": "Job", "controller": True}
    reference.update({key: job["metadata"][key] for key in ("name", "uid")})
    return {
        "metadata": {"generateName": "owned-", "ownerReferences": [reference]},
        "spec": {**OURS, "containers": [{"name": "a"}]},
    }


def make_job():
    """Eight GPUs for four pods."""
    annotations = {"topology.scheduler/gpu-count": "8"}
    spec = {"restartPolicy": "Never", **OURS, "containers": [{"name": "a"}]}
    template = complete({"spec": spec}, "hooks", "x")["spec"]
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"namespace": "hooks", "name": "wide", "annotations": annotations},
        "spec": {"parallelism": 4, "template": {"spec": template}},
    }
    return json.loads(kubectl("create", "-o", "json", "-f", "-", stdin=json.dumps(job)))


@test
def claims_and_owners_count_where_they_may_be_read():
    """By the webhook's own account, with the rights of deploy/webhook/optional/reader.yaml."""
    install_kinds()
    claim = {
        "apiVersion": "gpu.scheduling/v1",
        "kind": "GpuClaim",
        "metadata": {"namespace": "hooks", "name": "fast"},
        "spec": {"devices": {"count": 1}, "network": {"rdmaRequired": True}},
    }
    kubectl("create", "-f", "-", stdin=json.dumps(claim))
    job = make_job()
    named = {"metadata": {"annotations": {"gpu.scheduling/claim": "fast"}}}
    config = ["--kubeconfig", FOLDER / "webhook.kubeconfig"]
    reads = ("--claims", "--copy-owner-annotations", *config)
    with serving():
        # Without reading it, since it may ask for GPUs.
        eventually(lambda: variables(dry(owned(job)))["a"] == gets("a"), "the Job may ask")
    with serving("--injection", "all", *reads) as webhook:
        # Without the rights it says which, and needs no restart when they come.
        eventually(lambda: READER in webhook.get("/ready")[1], "it lacks the rights")
        equal(webhook.get("/ready")[0], 503)
        kubectl("apply", "-f", str(ROOT / READER))
        eventually(lambda: webhook.get("/ready")[0] == 200, "it has them")
        expected = {**gets("a"), "NCCL_NET_GDR_LEVEL": "PHB"}
        eventually(lambda: variables(dry(named))["a"] == expected, "the claim is known")
        known = {"topology.scheduler/gpu-count": "2"}
        eventually(lambda: dry(owned(job))["metadata"].get("annotations") == known, "it is known")
        pod = create(owned(job))
        equal(pod["metadata"]["annotations"], known)
        equal(variables(pod)["a"], gets("a"))


@test
def every_case_is_decided_as_the_policy_decides_it():
    """The guards alone: what mutation would mend is refused here."""
    configure("ValidatingWebhookConfiguration")
    with serving():
        in_force(bad_pod(), 403, "the guard is in force")
        wrong = decide_cases("hooks", "guard.gpu.scheduling")
        check(not wrong, "\n".join(wrong))
        equal(decide_own(), {"agent"}, "of our own pods")


OWN_KEY = "elasticgpu.io/container-a"


def forge_by_patch(path, part, has):
    """A user changes what was decided, and removes it: 403 each, or it stays as it was."""
    codes = set()
    for value in ("0,1,2,3", None):
        body = {"metadata": {"annotations": {OWN_KEY: value}}}
        answer = ALICE.request("PATCH", path + part, body, MERGE)
        codes.add(answer.code)
        equal(ALICE.get(path).json["metadata"]["annotations"], has, f"{part}: {answer}")
    return codes


def forge_by_binding(path, name):
    """The same with a Binding."""
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "annotations": {OWN_KEY: "0,1,2,3"}},
        "target": {"kind": "Node", "name": "gpu-0"},
    }
    return ALICE.post(path, binding).code


@test
def no_way_into_a_pod_writes_a_decision():
    """Of ephemeral containers and resizes the API server takes no metadata at all."""
    has = {OWN_KEY: "0"}
    cpu = {"name": "a", "resources": {"requests": {"cpu": "1"}}}
    pod = {"metadata": {"annotations": has}, "spec": {"containers": [cpu]}}
    with serving():
        in_force(bad_pod(), 403, "the guard is in force")
        made = As(ACCOUNT + "scheduler").post(pods("hooks"), complete(pod, "hooks", "decided"))
        equal(made.code, 201, str(made))
        path = f"{pods('hooks')}/decided"
        for part in ("", "/status"):
            equal(forge_by_patch(path, part, has), {403}, part)
        for part in ("/ephemeralcontainers", "/resize"):
            equal(forge_by_patch(path, part, has), {200}, part)
        for binding in (f"{path}/binding", "/api/v1/namespaces/hooks/bindings"):
            equal(forge_by_binding(binding, "decided"), 403, binding)
        # What a resize is for passes, in pods that have decisions, too.
        cpu["resources"]["requests"]["cpu"] = "2"
        body = {"spec": {"containers": [cpu]}}
        answer = ALICE.request("PATCH", path + "/resize", body, STRATEGIC)
        equal(answer.code, 200, str(answer))
        ALICE.delete(path, {"gracePeriodSeconds": 0})


NOUGHTS = "0" * 20
LINES = [
    NOUGHTS + "1=n:3,2",
    *("0=n:0", "1=n:3,2", " 1 = n : 3 , 2 ", "\t2=n:1\r", "00=n:01", "0=n=m:1", "7=n:0,31"),
    *("# c", " #", "", "x=n:0", "0=:1", "0=n:", "0=n:32", "0=n:1,1", "0=n:1, 01", "1=n:2:3"),
    *("4294967296=n:0", "99999999999999999999=n:0", "0=n:1,", "=n:0", "0 1=n:0", "0=n:+1"),
    *("0=n: ", "0= :1", "0 n:1", "0=n\u00a0:1", "0=n:1\u00a0", "\u00a0", "0=n:1 2", "-1=n:0"),
    *("0=n\0:1", "# \0", "0=n:1\0"),
]
VALUES = [
    *("", "0", "1", "2,3", "3,2", "02,3", " 2,3", "2,3,", f"2,{NOUGHTS}3"),
    *("all", "-1", "none", "None", "void"),
]
FIELDS = ["a", "b", "a-container-whose-name-has-more-than-0123456789abcdef"]
NAMES = ["a", "a-container-whose-name-has-more-than-fifty-three-characters"]


def random_entry(random):
    """A variable, more often than not one that counts."""
    name = random.choice(["CUDA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"])
    if random.random() < 0.7:
        return {"name": name, "value": random.choice(VALUES)}
    key = random.choice(FIELDS)
    path = f"metadata.annotations['elasticgpu.io/container-{key}']"
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def random_map(random):
    """Every kind of line alone, or several, mostly good ones."""
    if random.random() < 0.5:
        return random.choice(LINES)
    return "\n".join(random.choices(LINES[:10] if random.random() < 0.7 else LINES, k=3))


def random_pod(random):
    """A pod that may be refused for several reasons, for one alone, or for none."""
    annotations, labels, spec = {}, {}, {"containers": [{"name": random.choice(NAMES)}]}
    pod = {"metadata": {"annotations": annotations, "labels": labels}, "spec": spec}
    if random.random() < 0.7:
        annotations["gpu-scheduling-map"] = random_map(random)
    pod["metadata"]["name"] = random.choice(
        ["w", "w-0", "w-1", "w-01", "w-1a", "w--1", "w-0-1", f"w-{NOUGHTS}1"]
    )
    if random.random() < 0.3:
        return pod
    spec["schedulerName"] = random.choice(["gpu-scheduler", "gpu-scheduler", "other"])
    if random.random() < 0.6:
        spec["containers"][0]["env"] = [random_entry(random) for _ in range(random.choice([1, 2]))]
    if random.random() < 0.3:
        annotations["batch.kubernetes.io/job-completion-index"] = random.choice(["0", "1", "x"])
    if random.random() < 0.3:
        labels["apps.kubernetes.io/pod-index"] = random.choice(
            ["0", "1", "", "01", "x1", NOUGHTS + "1"]
        )
    if random.random() < 0.2:
        labels["pod-template-hash"] = "x"
    if random.random() < 0.3:
        return pod
    for key, chance in (("gpu.scheduling/claim", 0.2), ("elasticgpu.io/assumed", 0.1)):
        if random.random() < chance:
            annotations[key] = "x"
    if random.random() < 0.3:
        quantity = random.choice(["0", "1", "1k", "0k"])
        spec["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": quantity}}
    if random.random() < 0.2:
        spec["nodeName"] = "n"
    return pod


def ask_webhook(connection, pod, old=None):
    """Whether the webhook itself would have it, and what it says."""
    request = {
        "uid": "u",
        "operation": "UPDATE" if old else "CREATE",
        "namespace": "random",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "userInfo": {"username": "alice"},
        "object": pod,
        "oldObject": old,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/validate", json.dumps(review), headers)
    answer = json.loads(connection.getresponse().read())["response"]
    return answer["allowed"], answer.get("status", {}).get("message", "")


def mapped_pod(random, number):
    """The pod u-<number>, whose containers have the ids of its map, or wait for them."""
    index, labels = random.choice(["0", "1"]), {}
    if random.random() < 0.3:
        index = str(number)
    else:
        labels = {"apps.kubernetes.io/pod-index": index}
    entry = {"name": "CUDA_VISIBLE_DEVICES", "value": "2,3"}
    if random.random() < 0.2:
        path = "metadata.annotations['elasticgpu.io/container-a']"
        entry = {"name": entry["name"], "valueFrom": {"fieldRef": {"fieldPath": path}}}
    lines = ["# map", f"{index}=n:3,2", "999=n:0"]
    annotations = {"gpu-scheduling-map": "\n".join(lines)}
    spec = {**OURS, "containers": [{"name": "a", "env": [entry]}]}
    if random.random() < 0.2:
        annotations, spec["containers"] = {}, random.choice([[{"name": "a"}], [WITH_GPU]])
    pod = {"metadata": {"annotations": annotations, "labels": labels}, "spec": spec}
    if random.random() < 0.2:
        spec["nodeName"] = "n"
    return pod


def change(random, pod):
    """Some of what users can change in a pod that exists."""
    annotations = pod["metadata"].setdefault("annotations", {})
    labels = pod["metadata"].setdefault("labels", {})
    index = "batch.kubernetes.io/job-completion-index"
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "u"}
    lines = [*LINES, "0=n:2,3\n1=n:3,2", "0=m:3,2", "1=m:2,3"]
    changes = [
        lambda: annotations.update({"gpu-scheduling-map": random.choice(lines)}),
        lambda: annotations.update({"gpu-scheduling-map": "0=n:2,3\n1=m:3,2"}),
        lambda: annotations.pop("gpu-scheduling-map", None),
        lambda: annotations.update({index: random.choice(["0", "1", "x"])}),
        lambda: annotations.update({"gpu.scheduling/claim": "c"}),
        lambda: annotations.update({"topology.scheduler/gpu-count": "1"}),
        lambda: annotations.update({"x": "y"}),
        lambda: labels.update({"apps.kubernetes.io/pod-index": random.choice("01x")}),
        lambda: labels.update({index: random.choice("01")}),
        lambda: labels.update({"pod-template-hash": "x"}),
        lambda: labels.pop("apps.kubernetes.io/pod-index", None),
        lambda: pod["metadata"].update({"ownerReferences": [owner]}),
        lambda: pod["metadata"].update({"generateName": random.choice(["u-", "v-"])}),
    ]
    for each in random.choices(changes, k=random.choice([1, 1, 2])):
        each()


def decide_updates(connection, random, count):
    """The same of pods that exist: what differs, and how many were allowed and refused."""
    scheduler, wrong, tally = As(ACCOUNT + "scheduler"), [], Counter()
    for number in range(count):
        pod = complete(mapped_pod(random, number), "random", f"u-{number}")
        made = scheduler.post(pods("random"), pod)
        equal(made.code, 201, str(made))
        pod = json.loads(json.dumps(made.json))
        change(random, pod)
        answer = ALICE.put(f"{pods('random')}/u-{number}{DRY}", pod)
        allowed, said = ask_webhook(connection, pod, made.json)
        tally[allowed] += 1
        if allowed != (answer.code == 200):
            wrong.append(f"update {number}: {json.dumps(pod)}: {answer}, but {said!r}")
    return wrong, tally


@test
def random_pods_are_decided_alike_by_webhook_and_policy():
    """The API server with the policy alone, the webhook asked by ourselves."""
    seed = int(os.environ.get("WEBHOOK_SEED", "1"))
    random = Random(seed)
    for kind in KINDS:
        ALICE.delete(CONFIGURATIONS + f"{kind}/{NAME}")
    kubectl("create", "namespace", "random")
    kubectl("apply", "-f", str(ROOT / "deploy/webhook/policy.yaml"))
    spoof = complete({"metadata": bad_pod()["metadata"]}, "random", "spoof")
    eventually(lambda: ALICE.post(pods("random") + DRY, spoof).code == 403, "the policy")
    tally, wrong = Counter(), []
    context = ssl._create_unverified_context()  # pylint: disable=protected-access
    with serving():
        connection = http.client.HTTPSConnection("localhost", PORT, context=context)
        for number in range(int(os.environ.get("WEBHOOK_CASES", "600"))):
            pod = complete(random_pod(random), "random", "x")
            answer = ALICE.post(pods("random") + DRY, pod)
            # What the API server makes of the pod, in its own words.
            allowed, said = ask_webhook(connection, pod)
            check(answer.code in (201, 403), f"seed {seed}, {number}: {answer}")
            tally[allowed] += 1
            if allowed != (answer.code == 201):
                wrong.append(f"seed {seed}, {number}: {json.dumps(pod)}: {answer}, but {said!r}")
        differ, updates = decide_updates(connection, random, 150)
        wrong += differ
        connection.close()
    kubectl("delete", "-f", str(ROOT / "deploy/webhook/policy.yaml"))
    check(not wrong, f"seed {seed}, {len(wrong)} differ: " + "\n".join(wrong[:5]))
    for each in (tally, updates):
        check(min(each[True], each[False]) * 5 > sum(each.values()), f"one-sided: {each}")


HIDDEN = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
# Pods that might be refused, at first sight.
HARMLESS = [
    {"spec": {"containers": [{"name": "a"}]}},
    plain_gpu(),
    {"spec": {"nodeName": "n", "containers": [{"name": "a"}]}},
    {"spec": {"containers": [{"name": "a", "env": HIDDEN}]}},
    {"metadata": {"annotations": {"elasticgpu.io/other": "x"}}, "spec": {**plain_gpu()["spec"]}},
]


def debug_in_an_outage():
    """A container that hides devices comes into a pod, whose kubelet tells of it."""
    pod = create({"spec": {"containers": [{"name": "a"}]}})
    path = f"{pods('hooks')}/{pod['metadata']['name']}"
    pod["spec"]["ephemeralContainers"] = [{"name": "debug", "image": "x", "env": HIDDEN}]
    answer = ALICE.put(f"{path}/ephemeralcontainers", pod)
    equal(answer.code, 200, str(answer))
    answer.json["status"]["message"] = "running"
    answer = ALICE.put(f"{path}/status", answer.json)
    equal(answer.code, 200, str(answer))


@test
def an_outage_stops_nothing_but_what_it_guards():
    """Nobody listens on the webhook's port."""
    configure("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    ours = complete({"spec": {**OURS, "containers": [{"name": "a"}]}}, "hooks", "ours")
    in_force(ours, 500, "pods of our scheduler wait for the webhook")
    in_force(bad_pod(), 500, "guards fail closed")
    path = pods("hooks") + DRY
    for pod in HARMLESS:
        answer = ALICE.post(path, complete(pod, "hooks", "plain"))
        equal(answer.code, 201, str(answer))
    debug_in_an_outage()
    for spec in ({}, {"containers": []}):
        answer = ALICE.post(path, complete({"spec": spec}, "hooks", "void"))
        equal(answer.code, 422, f"a mistake is told in the words of the API server: {answer}")
    answer = ALICE.post(
        pods("kube-system") + DRY, complete({"spec": ours["spec"]}, "kube-system", "system")
    )
    equal(answer.code, 201, str(answer))
    own = complete(
        {"spec": {**ours["spec"], "serviceAccountName": "scheduler"}}, "gpu-scheduler", "own"
    )
    equal(ALICE.post(pods("gpu-scheduler") + DRY, own).code, 201)
    plain = create({"spec": {"containers": [{"name": "a"}]}})
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": plain["metadata"]["name"],
            "annotations": {"gpu.scheduling/allocated": "n:0"},
        },
        "target": {"kind": "Node", "name": "n"},
    }
    answer = As(ACCOUNT + "scheduler").post(
        f"{pods('hooks')}/{plain['metadata']['name']}/binding", binding
    )
    equal(answer.code, 201, str(answer))


def prepare():
    """The webhook's surroundings, and the scheduler's."""
    install()
    install_kinds()


if __name__ == "__main__":
    sys.exit(main(prepare))
