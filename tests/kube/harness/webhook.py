# SPDX-License-Identifier: Apache-2.0
"""`gpu-scheduler webhook` and `certs` as processes of a test.

    configure("MutatingWebhookConfiguration")
    with serving("--injection", "all"):
        pod = create({"spec": {"schedulerName": "gpu-scheduler", ...}})

`certs` runs with the rights of deploy/webhook/certs.yaml; its Secret is laid into a folder as
the kubelet does it, by the swap of a link.  The API server finds the webhook by its service,
which here is another name of localhost, and knows it by the service's name.  BUILD names the
folder that the program is built in (./build); what it logged is in $KUBE_DIR/webhook-*.log.
"""
import base64
import contextlib
import http.client
import http.server
import itertools
import json
import os
import signal
import socket
import ssl
import subprocess
import threading
from pathlib import Path

from .admission import ACCOUNT, DRY, ROOT, As, complete, pods
from .check import equal, eventually, kubectl
from .processes import die_with_parent

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
    """The administrator's, in the name of the account that keeps certificates; each time a
    file of its own, for several may be started at once."""
    config = json.loads((FOLDER / "admin.kubeconfig").read_text(encoding="utf-8"))
    config["users"][0]["user"]["as"] = ACCOUNT + "certs"
    path = FOLDER / f"certs-{next(NUMBERS)}.kubeconfig"
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


@contextlib.contextmanager
def keeping(*options):
    """`gpu-scheduler certs` until the end of the block, after which it has gone without
    complaint; where it says what it does."""
    command = [PROGRAM, "certs", "-n", "gpu-scheduler", "--kubeconfig", certs_kubeconfig()]
    parent = os.getpid()
    log_file = FOLDER / f"certs-{next(NUMBERS)}.log"
    with open(log_file, "ab") as log:
        # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
        process = subprocess.Popen(
            [str(word) for word in (*command, *options)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: die_with_parent(parent=parent),
        )
    try:
        yield log_file
        equal(process.poll(), None, log_file.read_text(encoding="utf-8")[-2000:])
        process.send_signal(signal.SIGTERM)
        equal(process.wait(60), 0, log_file.read_text(encoding="utf-8")[-2000:])
    finally:
        process.kill()
        process.wait()


def bundles():
    """The authorities that each webhook of both configurations trusts."""
    found = []
    for kind in KINDS:
        for hook in ALICE.get(CONFIGURATIONS + f"{kind}/{NAME}").json.get("webhooks", []):
            pem = base64.b64decode(hook["clientConfig"].get("caBundle", ""))
            found.append(pem.decode().count("BEGIN CERTIFICATE"))
    return found


def mount(secret=SECRET):
    """The Secret as the kubelet mounts it: a folder behind a link that is swapped."""
    data = ALICE.get(secret).json["data"]
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


class Webhook:
    """One that serves."""

    def __init__(self, process, health):
        self.process, self.health = process, health

    def get(self, path):
        """Status and text of a page beside the reviews, such as /ready."""
        connection = http.client.HTTPConnection("127.0.0.1", self.health, timeout=30)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def count(self, outcome):
        """How many pods it was shown to be changed, of which that became."""
        sample = f'gpu_scheduler_webhook_reviews_total{{path="mutate",outcome="{outcome}"}} '
        found = [line for line in self.get("/metrics")[1].splitlines() if line.startswith(sample)]
        return int(found[0].split()[1]) if found else 0


@contextlib.contextmanager
def serving(*options, linger_ms=0):
    """The webhook, until the end of the block, after which it has gone without complaint."""
    volume = mount()
    health = free_port()
    command = [PROGRAM, "webhook", "--addr", f"127.0.0.1:{PORT}", "--linger-ms", linger_ms]
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
        yield Webhook(process, health)
        process.send_signal(signal.SIGTERM)
        equal(process.wait(60), 0, log_file.read_text(encoding="utf-8")[-2000:])
    finally:
        process.kill()
        process.wait()


class _Adds(http.server.BaseHTTPRequestHandler):
    """Another webhook: every pod gets one container more, once."""

    container = {}

    def do_POST(self):  # pylint: disable=invalid-name
        """A review."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        response = {"uid": request["uid"], "allowed": True}
        names = [each["name"] for each in request["object"]["spec"]["containers"]]
        if self.container["name"] not in names:
            patch = [{"op": "add", "path": "/spec/containers/-", "value": self.container}]
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        body = json.dumps({**review, "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        """Nobody reads it."""


@contextlib.contextmanager
def adding(container):
    """A webhook of somebody else that is asked after ours, and shows our certificate."""
    volume = mount()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(volume / "tls.crt", volume / "tls.key")
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), type("Adds", (_Adds,), {"container": container})
    )
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    service = {"namespace": "gpu-scheduler", "name": NAME, "port": server.server_port}
    bundle = ALICE.get(SECRET).json["data"]["ca.crt"]
    pods_made = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    hook = {
        "name": "another.example.org",
        "failurePolicy": "Ignore",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"service": service, "caBundle": bundle},
        "rules": [{**pods_made, "resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "hooks"}},
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "z-after-" + NAME},
        "webhooks": [hook],
    }
    kubectl("create", "-f", "-", stdin=json.dumps(configuration))
    try:
        yield
    finally:
        ALICE.delete(CONFIGURATIONS + f"{KINDS[0]}/{configuration['metadata']['name']}")
        server.shutdown()
        server.server_close()


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


def install():
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
