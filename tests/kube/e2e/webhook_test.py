#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The webhook between the real API server and kubectl: what pods have afterwards, what is
refused, what an outage stops, and new certificates while requests come.

`gpu-scheduler certs` runs with the rights of deploy/webhook/certs.yaml; its Secret is laid
into a folder as the kubelet does it, by the swap of a link.  The API server finds the webhook
by its service, which here is another name of localhost, and knows it by the service's name.

cluster:
"""

import base64
import contextlib
import http.client
import itertools
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from random import Random

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.admission import ACCOUNT, DRY, ROOT, As, complete, decide_cases, pods  # noqa: E402
from harness.check import check, equal, eventually, kubectl, main, test  # noqa: E402
from harness.processes import die_with_parent  # noqa: E402
from harness.scheduler import install_kinds  # noqa: E402

BUILD = Path(os.environ.get("BUILD") or ROOT / "build").resolve()
PROGRAM = BUILD / "gpu-scheduler"
FOLDER = Path(os.environ["KUBE_DIR"])
SECRET = "/api/v1/namespaces/gpu-scheduler/secrets/gpu-scheduler-webhook-cert"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/"
KINDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
NAME = "gpu-scheduler-webhook"
ALICE = As("alice")
NUMBERS = itertools.count()
GPU = {"limits": {"nvidia.com/gpu": "1"}}
OURS = {"schedulerName": "gpu-scheduler"}


def free_port():
    """A port of loopback that nobody has."""
    with socket.socket() as each:
        each.bind(("127.0.0.1", 0))
        return each.getsockname()[1]


PORT = free_port()


def certs_kubeconfig():
    """The administrator's, in the name of the account that keeps certificates."""
    config = json.loads((FOLDER / "admin.kubeconfig").read_text(encoding="utf-8"))
    config["users"][0]["user"]["as"] = ACCOUNT + "certs"
    path = FOLDER / "certs.kubeconfig"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def certs(*options):
    """One round of `gpu-scheduler certs`; what it said."""
    command = [PROGRAM, "certs", "-n", "gpu-scheduler", "--kubeconfig", certs_kubeconfig()]
    done = subprocess.run(
        [str(word) for word in (*command, *options)], capture_output=True, text=True, check=False
    )
    equal(done.returncode, 0, done.stderr)
    return done.stderr


def bundles():
    """The authorities that each webhook of both configurations trusts."""
    found = []
    for kind in KINDS:
        for hook in ALICE.get(CONFIGURATIONS + f"{kind}/{NAME}").json.get("webhooks", []):
            pem = base64.b64decode(hook["clientConfig"].get("caBundle", ""))
            found.append(pem.decode().count("BEGIN CERTIFICATE"))
    return found


def mount():
    """The Secret as the kubelet mounts it: a folder behind a link that is swapped."""
    data = ALICE.get(SECRET).json["data"]
    volume = FOLDER / "certs"
    fresh = volume / f"..data-{next(NUMBERS)}"
    fresh.mkdir(parents=True)
    for name, text in data.items():
        (fresh / name).write_bytes(base64.b64decode(text))
        if not (volume / name).is_symlink():
            (volume / name).symlink_to(f"..data/{name}")
    link = volume / "..data-new"
    link.symlink_to(fresh.name)
    os.replace(link, volume / "..data")
    return volume


@contextlib.contextmanager
def serving(*options):
    """The webhook, until the end of the block, after which it has gone without complaint."""
    volume = mount()
    health = free_port()
    command = [PROGRAM, "webhook", "--addr", f"127.0.0.1:{PORT}", "--linger-ms", "0"]
    command += ["--tls-cert-file", volume / "tls.crt"]
    command += ["--tls-private-key-file", volume / "tls.key"]
    command += ["--health-addr", f"127.0.0.1:{health}", *options]
    parent = os.getpid()
    log_file = FOLDER / f"webhook-{next(NUMBERS)}.log"
    with open(log_file, "ab") as log:
        # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: die_with_parent(parent=parent),
        )
    try:
        eventually(lambda: answers(PORT) or process.poll() is not None, "the webhook listens")
        yield process
        process.send_signal(signal.SIGTERM)
        equal(process.wait(60), 0, log_file.read_text(encoding="utf-8")[-2000:])
    finally:
        process.kill()
        process.wait()


def answers(port):
    """Whether somebody listens there."""
    with socket.socket() as each:
        return each.connect_ex(("127.0.0.1", port)) == 0


def configure(*kinds):
    """deploy/webhook/configuration.yaml, of these kinds alone, with the port that is used."""
    text = (ROOT / "deploy/webhook/configuration.yaml").read_text(encoding="utf-8")
    kept = [
        part
        for part in text.replace("port: 443", f"port: {PORT}").split("\n---\n")
        if any(f"kind: {kind}" in part for kind in kinds)
    ]
    equal(len(kept), len(kinds))
    for kind in KINDS:
        ALICE.delete(CONFIGURATIONS + f"{kind}/{NAME}")
    kubectl("create", "-f", "-", stdin="\n---\n".join(kept))
    certs()


def in_force(pod, wanted, note):
    """Wait until the API server asks the webhook about such a pod."""
    eventually(lambda: ALICE.post(pods("hooks") + DRY, pod).code == wanted, note)


def prepare():
    """The namespaces, the service as a name of localhost, and the rights of certs."""
    kubectl("create", "namespace", "hooks")
    kubectl("apply", "-f", str(ROOT / "deploy/webhook/certs.yaml"))
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"namespace": "gpu-scheduler", "name": NAME},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }
    kubectl("create", "-f", "-", stdin=json.dumps(service))


@test
def certificates_are_made_once_with_few_rights():
    """A first round makes them, a second one has nothing to do."""
    kubectl("create", "-f", str(ROOT / "deploy/webhook/configuration.yaml"))
    equal(set(bundles()), {0})
    check("made a certificate" in certs(), "the first round")
    equal(set(bundles()), {1})
    secret = ALICE.get(SECRET).json
    equal(secret["type"], "kubernetes.io/tls")
    equal(sorted(secret["data"]), ["ca.crt", "tls.crt", "tls.key"])
    check("is good" in certs(), "the second round")
    equal(
        ALICE.get(SECRET).json["metadata"]["resourceVersion"], secret["metadata"]["resourceVersion"]
    )


def create(pod):
    """Through kubectl; the pod as the server has it."""
    pod = complete(pod, "hooks", f"pod-{next(NUMBERS)}")
    return json.loads(kubectl("create", "-o", "json", "-f", "-", stdin=json.dumps(pod)))


def variables(pod):
    """By container, what its env says: values, and annotations with an @."""
    found = {}
    for container in pod["spec"].get("initContainers", []) + pod["spec"]["containers"]:
        env = found[container["name"]] = {}
        for each in container.get("env", []):
            path = each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
            path = path.replace("metadata.annotations['", "@").replace("']", "")
            env[each["name"]] = path or each.get("value", "")
    return found


def gets(name):
    """What a container with GPUs has."""
    return {
        "CUDA_VISIBLE_DEVICES": f"@elasticgpu.io/container-{name}",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }


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
        pod = create({"spec": {**OURS, "containers": [{**WITH_GPU, "name": LONG}]}})
        value = variables(pod)[LONG]["CUDA_VISIBLE_DEVICES"]
        check(value.startswith("@elasticgpu.io/container-" + LONG[:36] + "-"), value)
        equal(len(value.partition("/")[2]), 63)


@test
def in_mode_cdi_containers_have_a_slot():
    """As limit and request, so that the API server takes it."""
    with serving(
        "--set-scheduler", "gpu-scheduler", "--inject", "nvidia", "--inject", "runtimeclass=nvidia"
    ):
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


def plain_gpu():
    """A pod of nobody's scheduler that asks for a GPU."""
    return {"spec": {"containers": [{"name": "a", "resources": GPU}]}}


def bad_pod():
    """One that is refused."""
    return complete(
        {"metadata": {"annotations": {"gpu.scheduling/allocated": "n:0"}}}, "hooks", "bad"
    )


def dry(pod):
    """The pod as the server would have it."""
    return ALICE.post(pods("hooks") + DRY, complete(pod, "hooks", "dry")).json


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
    kubectl("apply", "-f", str(ROOT / "deploy/webhook/optional/reader.yaml"))
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
    with serving("--injection", "all", "--claims", "--copy-owner-annotations", *config):
        expected = {**gets("a"), "NCCL_NET_GDR_LEVEL": "PHB"}
        eventually(lambda: variables(dry(named))["a"] == expected, "the claim is known")
        eventually(lambda: variables(dry(owned(job)))["a"] == gets("a"), "the Job is known")
        pod = create(owned(job))
        equal(pod["metadata"]["annotations"], {"topology.scheduler/gpu-count": "2"})


@test
def every_case_is_decided_as_the_policy_decides_it():
    """The guards alone: what mutation would mend is refused here."""
    configure("ValidatingWebhookConfiguration")
    with serving():
        in_force(bad_pod(), 403, "the guard is in force")
        wrong = decide_cases("hooks", "guard.gpu.scheduling")
        check(not wrong, "\n".join(wrong))


LINES = [
    *("0=n:0", "1=n:3,2", " 1 = n : 3 , 2 ", "\t2=n:1\r", "00=n:01", "0=n=m:1", "7=n:0,31"),
    *("# c", " #", "", "x=n:0", "0=:1", "0=n:", "0=n:32", "0=n:1,1", "0=n:1, 01", "1=n:2:3"),
    *("4294967296=n:0", "99999999999999999999=n:0", "0=n:1,", "=n:0", "0 1=n:0", "0=n:+1"),
    *("0=n: ", "0= :1", "0 n:1", "0=n\u00a0:1", "0=n:1\u00a0", "\u00a0", "0=n:1 2", "-1=n:0"),
]
VALUES = ["", "0", "1", "2,3", "3,2", "02,3", " 2,3", "2,3,", "all", "-1", "none", "None", "void"]
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
    return "\n".join(random.choices(LINES[:9] if random.random() < 0.7 else LINES, k=3))


def random_pod(random):
    """A pod that may be refused for several reasons, for one alone, or for none."""
    annotations, labels, spec = {}, {}, {"containers": [{"name": random.choice(NAMES)}]}
    pod = {"metadata": {"annotations": annotations, "labels": labels}, "spec": spec}
    if random.random() < 0.7:
        annotations["gpu-scheduling-map"] = random_map(random)
    pod["metadata"]["name"] = random.choice(["w", "w-0", "w-1", "w-01", "w-1a", "w--1", "w-0-1"])
    if random.random() < 0.3:
        return pod
    spec["schedulerName"] = random.choice(["gpu-scheduler", "gpu-scheduler", "other"])
    if random.random() < 0.6:
        spec["containers"][0]["env"] = [random_entry(random) for _ in range(random.choice([1, 2]))]
    if random.random() < 0.3:
        annotations["batch.kubernetes.io/job-completion-index"] = random.choice(["0", "1", "x"])
    if random.random() < 0.3:
        labels["apps.kubernetes.io/pod-index"] = random.choice(["0", "1", "", "01", "x1"])
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


def ask_webhook(connection, pod):
    """Whether the webhook itself would have it, and what it says."""
    request = {
        "uid": "u",
        "operation": "CREATE",
        "namespace": "random",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "userInfo": {"username": "alice"},
        "object": pod,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/validate", json.dumps(review), headers)
    answer = json.loads(connection.getresponse().read())["response"]
    return answer["allowed"], answer.get("status", {}).get("message", "")


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
        connection.close()
    kubectl("delete", "-f", str(ROOT / "deploy/webhook/policy.yaml"))
    check(not wrong, f"{len(wrong)} differ: " + "\n".join(wrong[:5]))
    check(min(tally[True], tally[False]) * 5 > sum(tally.values()), f"one-sided: {tally}")


@test
def an_outage_stops_nothing_but_what_it_guards():
    """Nobody listens on the webhook's port."""
    configure("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    ours = complete({"spec": {**OURS, "containers": [{"name": "a"}]}}, "hooks", "ours")
    in_force(ours, 500, "pods of our scheduler wait for the webhook")
    in_force(bad_pod(), 500, "guards fail closed")
    path = pods("hooks") + DRY
    for pod in ({"spec": {"containers": [{"name": "a"}]}}, plain_gpu()):
        answer = ALICE.post(path, complete(pod, "hooks", "plain"))
        equal(answer.code, 201, str(answer))
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


class Load(threading.Thread):
    """Pods, one after the other, all of which must be admitted and changed."""

    def __init__(self):
        super().__init__(daemon=True)
        self.client = As("alice")
        self.pod = complete(
            {"spec": {**OURS, "containers": [{"name": "a", "resources": GPU}]}}, "hooks", "load"
        )
        self.end = threading.Event()
        self.done, self.wrong = 0, []

    def run(self):
        while not self.end.is_set():
            answer = self.client.post(pods("hooks") + DRY, self.pod)
            self.done += 1
            if answer.code != 201 or not variables(answer.json)["a"]:
                self.wrong.append(str(answer))


@test
def certificates_change_while_requests_come():
    """Twice: not one request fails, and in the end only the newest authority is trusted."""
    configure("MutatingWebhookConfiguration")
    with serving():
        eventually(
            lambda: variables(
                dry({"spec": {**OURS, "containers": [{"name": "a", "resources": GPU}]}})
            )["a"],
            "the webhook is asked",
        )
        load = Load()
        load.start()
        for name in ("first.example.org", "second.example.org"):
            before = load.done
            certs("--name", name, "--settle", "3")
            check(all(count > 1 for count in bundles()[:2]), str(bundles()))
            mount()
            eventually(lambda at=before: load.done > at + 50, "requests go on")
        # The webhook looks at its files once a second.
        served = eventually(lambda: served_name() == "second.example.org", "the new certificate")
        check(served, "the new certificate is served")
        certs("--name", "second.example.org", "--overlap", "0")
        equal(bundles()[:2], [1, 1])
        at = load.done
        eventually(lambda: load.done > at + 20, "requests go on")
        load.end.set()
        load.join()
        check(not load.wrong, "\n".join(load.wrong[:3]))


def served_name():
    """The last name of the certificate that the webhook shows."""
    shown = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{PORT}", "-servername", "localhost"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    text = subprocess.run(
        ["openssl", "x509", "-noout", "-ext", "subjectAltName"],
        input=shown.stdout,
        capture_output=True,
        check=False,
    )
    return text.stdout.decode().strip().rpartition("DNS:")[2]


@test
def the_script_does_the_same_with_openssl():
    """From a pipe, for another namespace, before and after there is a configuration."""
    script = (ROOT / "hack/gen-webhook-certs.sh").read_bytes()
    for _ in range(2):
        done = subprocess.run(
            ["bash", "-s", "--", "hooks"], input=script, capture_output=True, check=False
        )
        equal(done.returncode, 0, done.stderr.decode())
    secret = ALICE.get(SECRET.replace("gpu-scheduler/secrets", "hooks/secrets")).json
    folder = FOLDER / "script"
    folder.mkdir()
    for name, text in secret["data"].items():
        (folder / name).write_bytes(base64.b64decode(text))
    equal((folder / "ca.crt").read_text().count("BEGIN"), 2)
    for kind in KINDS[:1]:
        for hook in ALICE.get(CONFIGURATIONS + f"{kind}/{NAME}").json.get("webhooks", []):
            equal(hook["clientConfig"]["caBundle"], secret["data"]["ca.crt"])
    # The program finds nothing to mend in what the script has made.
    names = ["--dir", folder, "-n", "hooks"]
    done = subprocess.run(
        [str(word) for word in (PROGRAM, "certs", *names)],
        capture_output=True,
        text=True,
        check=False,
    )
    check(done.returncode == 0 and "is good" in done.stderr, done.stderr)
    shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main(prepare))
