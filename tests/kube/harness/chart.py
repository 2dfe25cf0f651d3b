# SPDX-License-Identifier: Apache-2.0
"""Helm and the chart of this repository, on a cluster without deploy/rbac (`--bare`).

    upgrade("default", mode="secret")
    reach("default")
    with serving_as_deployed("default"):
        in_charge()

No image is pulled: the command of a Deployment is run here, as it stands there.
"""
import contextlib
import functools
import itertools
import json
import os
import signal
import subprocess
from pathlib import Path

from .admission import DRY, ROOT, As, complete, pods
from .check import check, equal, eventually, kubectl
from .processes import Process
from .webhook import (
    CONFIGURATIONS,
    FOLDER,
    GPU,
    KINDS,
    NAME,
    OURS,
    PORT,
    PROGRAM,
    answers,
    create,
    gets,
    mount,
    variables,
)

CHART = ROOT / "charts/gpu-scheduler"
RELEASE = "gpu-scheduler"
SECRET = "gpu-scheduler-webhook-cert"
SCRIPT = ROOT / "hack/gen-webhook-certs.sh"
ADMIN = As("alice")
IMAGE = ("--set", "image.repository=example/gpu-scheduler")
NUMBERS = itertools.count()
WITH_GPU = {"spec": {**OURS, "containers": [{"name": "a", "resources": GPU}]}}


@functools.lru_cache(maxsize=None)
def assets(name):
    """The folder of programs that are not Kubernetes' own."""
    done = subprocess.run(
        [ROOT / "tests/kube/assets", name], stdout=subprocess.PIPE, text=True, check=True
    )
    return Path(done.stdout.strip())


def try_helm(*words):
    """Run helm; status, output, and what it complained about."""
    homes = {f"HELM_{kind}_HOME": str(FOLDER / "helm") for kind in ("CACHE", "CONFIG", "DATA")}
    return subprocess.run(
        [str(word) for word in (assets("helm") / "helm", *words)],
        env={**os.environ, **homes},
        capture_output=True,
        text=True,
        check=False,
    )


def helm(*words):
    """What it prints."""
    done = try_helm(*words)
    check(done.returncode == 0, f"helm {' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


def try_upgrade(namespace, *words, mode):
    """Install the chart, or upgrade it; what came of it."""
    certs = ("--set", f"webhook.certs.mode={mode}")
    command = ("upgrade", "--install", RELEASE, CHART, "-n", namespace)
    return try_helm(*command, *IMAGE, *certs, *words)


def upgrade(namespace, *words, mode):
    """Install the chart, or upgrade it."""
    done = try_upgrade(namespace, *words, mode=mode)
    check(done.returncode == 0, done.stderr)


def template(namespace, *words, chart=CHART):
    """What the chart would make of these values, as text."""
    return helm("template", RELEASE, chart, "-n", namespace, *IMAGE, *words)


def objects(text):
    """Those of a text of YAML, by kind, namespace and name."""
    words = ("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-")
    said = kubectl(*words, stdin=text)
    decoder, found, at = json.JSONDecoder(), {}, 0
    while at < len(said):
        each, at = decoder.raw_decode(said, at)
        at += len(said[at:]) - len(said[at:].lstrip())
        for item in each["items"] if each["kind"] == "List" else [each]:
            meta = item["metadata"]
            found[item["kind"], meta.get("namespace"), meta["name"]] = item
    return found


def make_secret(namespace):
    """By the script from a pipe, as from curl."""
    done = subprocess.run(
        ["bash", "-s", "--", namespace],
        input=SCRIPT.read_text(encoding="utf-8"),
        capture_output=True,
        text=True,
        check=False,
    )
    equal(done.returncode, 0, done.stderr)
    return done.stdout


def secret(namespace):
    """The Secret, or the answer that there is none."""
    return ADMIN.get(f"/api/v1/namespaces/{namespace}/secrets/{SECRET}").json


def bundles():
    """What the webhooks of both configurations trust, each once."""
    return {
        hook["clientConfig"].get("caBundle")
        for kind in KINDS
        for hook in ADMIN.get(CONFIGURATIONS + f"{kind}/{NAME}").json["webhooks"]
    }


def reach(namespace):
    """The service leads to this machine, where the webhook of the test listens."""
    external = {"spec": {"type": "ExternalName", "externalName": "localhost"}}
    kubectl("-n", namespace, "patch", "service", NAME, "-p", json.dumps(external))
    for kind in KINDS:
        hooks = ADMIN.get(CONFIGURATIONS + f"{kind}/{NAME}").json["webhooks"]
        patch = [
            {"op": "replace", "path": f"/webhooks/{at}/clientConfig/service/port", "value": PORT}
            for at in range(len(hooks))
        ]
        kubectl("patch", kind, NAME, "--type=json", "-p", json.dumps(patch))


def account_kubeconfig(namespace, account):
    """The administrator's, in the name of a service account."""
    config = json.loads((FOLDER / "admin.kubeconfig").read_text(encoding="utf-8"))
    config["users"][0]["user"]["as"] = f"system:serviceaccount:{namespace}:{account}"
    path = FOLDER / f"{namespace}-{account}.kubeconfig"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


@contextlib.contextmanager
def as_deployed(namespace, name, *options):
    """What a Deployment would run, as its account and with these options besides, until the
    end of the block, after which it has gone without complaint."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    spec = ADMIN.get(path).json["spec"]["template"]["spec"]
    container = spec["containers"][0]
    equal(container["command"][0], "gpu-scheduler")
    kubeconfig = account_kubeconfig(namespace, spec["serviceAccountName"])
    process = Process(
        f"{name}-{next(NUMBERS)}",
        [PROGRAM, *container["command"][1:], *container["args"], *options],
        FOLDER,
        {"KUBECONFIG": str(kubeconfig), "POD_NAMESPACE": namespace},
    )
    try:
        yield process
        process.check()
        process.process.send_signal(signal.SIGTERM)
        equal(process.process.wait(60), 0, process.log.read_text(encoding="utf-8")[-2000:])
    finally:
        process.stop(grace_s=0)


@contextlib.contextmanager
def serving_as_deployed(namespace):
    """The webhook, with the Secret at another place and on other ports."""
    volume = mount(f"/api/v1/namespaces/{namespace}/secrets/{SECRET}")
    files = ("--tls-cert-file", volume / "tls.crt", "--tls-private-key-file", volume / "tls.key")
    where = ("--addr", f"127.0.0.1:{PORT}", "--health-addr", "none", "--linger-ms", "0")
    with as_deployed(namespace, "gpu-scheduler-webhook", *files, *where) as process:
        eventually(lambda: answers(PORT) or process.check(), "the webhook listens")
        yield


def in_charge():
    """The API server asks the webhook, and believes it."""
    pod = complete(WITH_GPU, "hooks", "dry")
    eventually(lambda: ADMIN.post(pods("hooks") + DRY, pod).code == 201, "the webhook is asked")
    equal(variables(create(WITH_GPU)), {"a": gets("a")})


def wait_pods(namespace, count):
    """Until the Deployments have so many pods: nothing of ours refuses them."""
    path = f"/api/v1/namespaces/{namespace}/pods?labelSelector=app.kubernetes.io/name=gpu-scheduler"
    eventually(lambda: len(ADMIN.get(path).json["items"]) == count, f"{count} pods of ours")
