#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make e2e-remote` touches nothing but the namespace that it makes.

It is run as a user who may create namespaces, and gets rights in each only once it is
there, with a token and a kubeconfig in YAML, as people have them.

cluster: --controllers=namespace-controller,serviceaccount-controller
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, kubectl, main, test  # noqa: E402
from harness.client import as_identity  # noqa: E402

PEOPLE, USER = "people", "tester"
IDENTITY = f"system:serviceaccount:{PEOPLE}:{USER}"
PREFIX = "gpu-scheduler-e2e-"
NAMESPACES = "/api/v1/namespaces"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
# What is asked of every client, and changes nothing.
ABOUT = re.compile(r"^/(version|api|apis|openapi/.*)(\?|$)")


def make_user(folder):
    """A user who may create namespaces, and the kubeconfig of that user."""
    kubectl("create", "namespace", PEOPLE)
    kubectl("-n", PEOPLE, "create", "serviceaccount", USER)
    kubectl("create", "clusterrole", "make-namespaces", "--verb=create", "--resource=namespaces")
    account = f"--serviceaccount={PEOPLE}:{USER}"
    kubectl("create", "clusterrolebinding", USER, "--clusterrole=make-namespaces", account)
    token = kubectl("-n", PEOPLE, "create", "token", USER).strip()
    path = str(Path(folder, "user.yaml"))
    authority = str(Path(os.environ["KUBE_DIR"], "pki", "ca.crt"))
    config = ["config", f"--kubeconfig={path}"]
    server = f"--server={os.environ['KUBE_SERVER']}"
    trust = ["--embed-certs", f"--certificate-authority={authority}"]
    kubectl(*config, "set-cluster", "remote", server, *trust)
    kubectl(*config, "set-credentials", "me", f"--token={token}")
    kubectl(*config, "set-context", "remote", "--cluster=remote", "--user=me")
    kubectl(*config, "use-context", "remote")
    return path


class Granter(threading.Thread):
    """Gives the user all rights in each namespace that appears, as platforms do."""

    def __init__(self):
        super().__init__(daemon=True)
        self.granted = []
        version = as_identity("admin").get(NAMESPACES).json["metadata"]["resourceVersion"]
        self.path = f"{NAMESPACES}?watch=1&timeoutSeconds=600&resourceVersion={version}"

    def run(self):
        admin = as_identity("admin")
        watch = as_identity("admin")
        watch.connection.timeout = None
        rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
        subject = {"kind": "ServiceAccount", "namespace": PEOPLE, "name": USER}
        group = "rbac.authorization.k8s.io"
        for event in watch.stream(self.path):
            if event["type"] != "ADDED":
                continue
            name = event["object"]["metadata"]["name"]
            base = f"{RBAC}/namespaces/{name}"
            admin.post(f"{base}/roles", {"metadata": {"name": "all"}, "rules": [rule]})
            role = {"apiGroup": group, "kind": "Role", "name": "all"}
            body = {"metadata": {"name": "all"}, "roleRef": role, "subjects": [subject]}
            admin.post(f"{base}/rolebindings", body)
            self.granted.append(name)


def requests_of_user():
    """What the audit log has of the user."""
    with open(Path(os.environ["KUBE_DIR"], "audit.log"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [line for line in lines if line["user"]["username"] == IDENTITY]


def outside(line, namespace):
    """Did this request concern anything but the namespace?"""
    if ABOUT.match(line["requestURI"]):
        return False
    ref = line.get("objectRef", {})
    creates = line["verb"] == "create" and ref.get("resource") == "namespaces"
    return not creates and ref.get("namespace") != namespace


def run_remote(kubeconfig, *words):
    """What `make e2e-remote` runs, with the output and the status."""
    with tempfile.TemporaryDirectory() as logs:
        env = {**os.environ, "KUBECONFIG": kubeconfig, "E2E_LOG": logs}
        for name in [name for name in env if name.startswith("KUBE_")]:
            del env[name]
        command = [HERE / "namespace", HERE / "run", "--any", *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        return done.stdout, done.stderr, done.returncode


@test
def a_remote_run_stays_in_the_namespace_that_it_makes_and_deletes():
    admin = as_identity("admin")
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = make_user(folder)
        granter = Granter()
        granter.start()
        out, errors, status = run_remote(kubeconfig)
    equal(status, 0, out + errors)
    total = re.fullmatch(r"(\d+) passed, 0 failed", out.splitlines()[-1])
    check(total and int(total.group(1)) >= 15, f"too few tests: {out}")
    equal(len(granter.granted), 1, f"namespaces made: {granter.granted}")
    namespace = granter.granted[0]
    check(namespace.startswith(PREFIX), namespace)
    # The rights of the user go before it, and so the user's sight of it.
    eventually(lambda: admin.get(f"{NAMESPACES}/{namespace}").code == 404, "it is gone")
    lines = requests_of_user()
    made = [line for line in lines if line["requestURI"].startswith(f"{NAMESPACES}?")]
    made += [line for line in lines if line["requestURI"] == NAMESPACES]
    equal([line["verb"] for line in made], ["create"], "requests for all namespaces")
    strays = [line for line in lines if outside(line, namespace)]
    equal([(line["verb"], line["requestURI"]) for line in strays], [], "requests elsewhere")
    check(len(lines) > 50, f"the audit log has only {len(lines)} requests of the user")


@test
def a_failed_run_deletes_its_namespace_too():
    admin = as_identity("admin")
    command = [HERE / "namespace", "sh", "-c", "echo $KUBE_NAMESPACE; exit 3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    equal(done.returncode, 3, done.stderr)
    check(done.stdout.startswith(PREFIX), done.stdout)
    equal(admin.get(f"{NAMESPACES}/{done.stdout.strip()}").code, 404)


@test
def without_a_kubeconfig_one_sentence_refuses():
    for value in ("", "/dev/null/kubeconfig"):
        env = {**os.environ, "KUBECONFIG": value}
        command = [HERE / "namespace", "true"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        equal((done.returncode, done.stdout), (1, ""))
        equal(done.stderr.count("\n"), 1, done.stderr)
        check("KUBECONFIG" in done.stderr, done.stderr)


if __name__ == "__main__":
    sys.exit(main())
