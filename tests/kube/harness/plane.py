# SPDX-License-Identifier: Apache-2.0
"""A control plane on loopback: etcd, kube-apiserver and, when asked for, kube-scheduler
and kube-controller-manager.

Each cluster has a folder and a loopback address of its own, drawn from 127.0.0.0/8, so
that any number of them run at once.  Authorization is Node and RBAC, anonymous requests
are refused.  The folder holds

    admin.kubeconfig        a cluster administrator (group system:masters)
    <role>.kubeconfig       the service account of each role, with what deploy/rbac grants it
    pki/                    ca.crt; webhook-server.crt and .key, for servers of tests
    audit.log, *.log        what was asked and what the programs said
    environments.jsonl      what each container would have seen (see kubelet.py)
    etcd/                   the data

All kubeconfigs are JSON, which is YAML, and carry their certificates inside.
"""
import base64
import json
import random
import shutil
import socket
import subprocess
import time
from pathlib import Path

from .certificates import Authority
from .client import Client
from .processes import Process, StartError

HERE = Path(__file__).resolve().parent.parent
DEPLOY = HERE.parent.parent / "deploy"
NAMESPACE = "gpu-scheduler"
ROLES = ["scheduler", "extender", "webhook", "agent", "controller"]
READY_TIMEOUT_S = 120

# name of the kubeconfig -> user, groups
IDENTITIES = {
    "admin": ("admin", ["system:masters"]),
    "kube-scheduler": ("system:kube-scheduler", []),
    "kube-controller-manager": ("system:kube-controller-manager", []),
    # One for all nodes, which the Node authorizer does not know; so it may do anything.
    "kubelet": ("simulated-kubelet", ["system:masters"]),
    **{
        role: (
            f"system:serviceaccount:{NAMESPACE}:{role}",
            ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}"],
        )
        for role in ROLES
    },
}

# Reads are many: who and what.  Writes also with what was sent.
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "verbs": ["get", "list", "watch"]},
        {"level": "Metadata", "resources": [{"group": "", "resources": ["secrets"]}]},
        {"level": "Request", "omitManagedFields": True},
    ],
}

# Objects in etcd as JSON, and every version of them.
HISTORY_FLAGS = ["--storage-media-type=application/json", "--etcd-compaction-interval=0"]


def free_address():
    """A loopback address that nobody is likely to use, for this cluster alone."""
    return f"127.{random.randint(16, 254)}.{random.randint(0, 254)}.{random.randint(1, 254)}"


def free_ports(address, count):
    """Different ports of address on which nobody listens."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind((address, 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class ControlPlane:
    """Start with start(); stop() ends everything.  All from the main thread."""

    # pylint: disable-next=too-many-arguments
    def __init__(
        self,
        assets,
        folder,
        *,
        scheduler=None,
        controllers=None,
        nodes=0,
        gpus=8,
        history=False,
        bare=False,
        flags=(),
    ):
        """scheduler: None, or a dict with fields of KubeSchedulerConfiguration;
        controllers: None, or what kube-controller-manager takes as --controllers;
        nodes: how many simulated kubelets, gpu-0, gpu-1..., with so many gpus each;
        history: keep all of it, readable; bare: leave out what deploy/rbac has;
        flags: more of them for kube-apiserver."""
        self.assets = Path(assets)
        self.folder = Path(folder)
        self.scheduler = scheduler
        self.controllers = controllers
        self.nodes = [f"gpu-{number}" for number in range(nodes)]
        self.gpus = gpus
        self.bare = bare
        self.apiserver_flags = list(flags)
        if history:
            self.apiserver_flags += HISTORY_FLAGS
        self.address = free_address()
        ports = free_ports(self.address, 5)
        self.etcd_url, self.peer_url = (f"http://{self.address}:{port}" for port in ports[:2])
        self.apiserver_port, self.scheduler_port, self.controllers_port = ports[2:]
        self.server = f"https://{self.address}:{self.apiserver_port}"
        self.scheduler_url = f"https://{self.address}:{self.scheduler_port}"
        self.processes = []
        self.authority = None

    def start(self):
        """Return when the API server is ready and every role has its rights."""
        wanted = ["etcd", "kube-apiserver", "kubectl"]
        wanted += ["kube-scheduler"] if self.scheduler is not None else []
        wanted += ["kube-controller-manager"] if self.controllers is not None else []
        for program in wanted:
            if not (self.assets / program).exists():
                raise StartError(f"{self.assets} has no {program}")
        if not shutil.which("openssl"):
            raise StartError("install openssl, which makes the certificates")
        self._start_etcd()
        self._make_identities()
        self._start_apiserver()
        self._wait_ready()
        if not self.bare:
            self.kubectl("create", "--validate=false", "-f", DEPLOY / "rbac")
        if self.controllers is not None:
            self._start_controllers()
        if self.nodes:
            self._start_kubelets()
        if self.scheduler is not None:
            self._start_scheduler()

    def stop(self):
        """End all programs, those that write first."""
        for process in reversed(self.processes):
            # The API server waits for its watches to end when asked politely; etcd has
            # everything and the audit log is written as it goes.
            process.stop(grace_s=1)
        self.processes = []

    def check(self):
        """Raise StartError if one of the programs has ended."""
        for process in self.processes:
            process.check()

    def kubeconfig(self, name):
        """The path of the kubeconfig of an identity."""
        return self.folder / f"{name}.kubeconfig"

    def kubectl(self, *words):
        """Run kubectl as admin and return what it prints."""
        command = [self.assets / "kubectl", "--kubeconfig", self.kubeconfig("admin"), *words]
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise StartError(f"kubectl {words[0]}: {done.stderr.strip()}")
        return done.stdout

    def discard(self, keep_logs):
        """Delete the folder, or all but the logs."""
        if not keep_logs:
            shutil.rmtree(self.folder, ignore_errors=True)
            return
        for name in ("etcd", "pki"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for path in self.folder.glob("*.kubeconfig"):
            path.unlink()

    def _start(self, name, flags):
        process = Process(name, [self.assets / name, *flags], self.folder)
        self.processes.append(process)

    def _start_etcd(self):
        self._start(
            "etcd",
            [
                f"--data-dir={self.folder / 'etcd'}",
                f"--listen-client-urls={self.etcd_url}",
                f"--advertise-client-urls={self.etcd_url}",
                f"--listen-peer-urls={self.peer_url}",
                f"--initial-advertise-peer-urls={self.peer_url}",
                f"--initial-cluster=default={self.peer_url}",
                # The data of a test need not survive a power cut.
                "--unsafe-no-fsync",
                "--log-level=warn",
            ],
        )

    def _make_identities(self):
        self.authority = Authority(self.folder / "pki")
        hosts = ["localhost", "kubernetes", "kubernetes.default.svc"]
        self.authority.server("apiserver", [self.address, "127.0.0.1"], hosts)
        self.authority.server("webhook-server", [self.address, "127.0.0.1"], ["localhost"])
        for name, (user, groups) in IDENTITIES.items():
            self.authority.client(name, user, groups)
            self._write_json(f"{name}.kubeconfig", self._kubeconfig(name))

    def _kubeconfig(self, name):
        def data(file):
            return base64.b64encode(self.authority.read(file)).decode()

        cluster = {"server": self.server, "certificate-authority-data": data("ca.crt")}
        user = {
            "client-certificate-data": data(f"{name}.crt"),
            "client-key-data": data(f"{name}.key"),
        }
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
            "current-context": "test",
        }

    def _write_json(self, name, value):
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
        return path

    def _start_apiserver(self):
        pki = self.folder / "pki"
        flags = [
            f"--etcd-servers={self.etcd_url}",
            f"--bind-address={self.address}",
            f"--secure-port={self.apiserver_port}",
            f"--tls-cert-file={pki / 'apiserver.crt'}",
            f"--tls-private-key-file={pki / 'apiserver.key'}",
            f"--client-ca-file={pki / 'ca.crt'}",
            f"--service-account-key-file={pki / 'service-account.key'}",
            f"--service-account-signing-key-file={pki / 'service-account.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=Node,RBAC",
            "--anonymous-auth=false",
            "--allow-privileged=true",
            # Nobody uses the service `kubernetes`, and its endpoint cannot be loopback.
            "--endpoint-reconciler-type=none",
            f"--audit-policy-file={self._write_json('audit-policy.json', AUDIT_POLICY)}",
            f"--audit-log-path={self.folder / 'audit.log'}",
            "--audit-log-maxsize=1024",
        ]
        if self.controllers is None:
            # It refuses pods of namespaces in which nobody made the default account.
            flags.append("--disable-admission-plugins=ServiceAccount")
        self._start("kube-apiserver", flags + self.apiserver_flags)

    def _wait_ready(self):
        def ready():
            try:
                client = Client(self.kubeconfig("admin"), timeout_s=5)
                # It makes that namespace by itself, a little later than it is ready.
                paths = ("/readyz", "/api/v1/namespaces/kube-system")
                return all(client.get(path).code == 200 for path in paths)
            except OSError:
                return False

        self._wait(ready, "kube-apiserver is not ready")

    def _wait(self, condition, otherwise):
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not condition():
            self.check()
            if time.monotonic() > deadline:
                raise StartError(f"{otherwise} after {READY_TIMEOUT_S} s")
            time.sleep(0.1)

    def _start_scheduler(self):
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            **self.scheduler,
        }
        config.setdefault("clientConnection", {})
        config["clientConnection"]["kubeconfig"] = str(self.kubeconfig("kube-scheduler"))
        path = self._write_json("kube-scheduler.json", config)
        self._start(
            "kube-scheduler",
            [f"--config={path}", *self._serving("kube-scheduler", self.scheduler_port)],
        )

    def _start_controllers(self):
        name = "kube-controller-manager"
        flags = [
            f"--kubeconfig={self.kubeconfig(name)}",
            f"--controllers={self.controllers}",
            f"--service-account-private-key-file={self.folder / 'pki' / 'service-account.key'}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
        ]
        self._start(name, flags + self._serving(name, self.controllers_port))
        if self.controllers == "*" or "serviceaccount-controller" in self.controllers.split(","):
            self._wait_account()

    def _wait_account(self):
        """Pods of the default namespace are refused before it has its account."""
        admin = Client(self.kubeconfig("admin"))
        path = "/api/v1/namespaces/default/serviceaccounts/default"
        self._wait(lambda: admin.get(path).code == 200, "nobody made the default account")

    def _start_kubelets(self):
        record = self.folder / "environments.jsonl"
        command = [HERE / "kubelet", f"--gpus={self.gpus}", f"--record={record}", *self.nodes]
        variables = {"KUBECONFIG": str(self.kubeconfig("kubelet"))}
        self.processes.append(Process("kubelet", command, self.folder, variables))
        admin = Client(self.kubeconfig("admin"))

        def registered():
            node = admin.get(f"/api/v1/nodes/{self.nodes[-1]}")
            return node.code == 200 and "taints" not in node.json["spec"]

        self._wait(registered, "the simulated kubelets are not ready")

    def _serving(self, name, port):
        return [
            f"--authentication-kubeconfig={self.kubeconfig(name)}",
            f"--authorization-kubeconfig={self.kubeconfig(name)}",
            f"--bind-address={self.address}",
            f"--secure-port={port}",
            f"--tls-cert-file={self.folder / 'pki' / 'webhook-server.crt'}",
            f"--tls-private-key-file={self.folder / 'pki' / 'webhook-server.key'}",
        ]
