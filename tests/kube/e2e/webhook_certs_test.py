#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Certificates of the webhook on a real API server: made with few rights, changed while
requests come, and by the script that needs nothing of ours.

cluster:
"""
import base64
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.admission import DRY, ROOT, As, complete, pods  # noqa: E402
from harness.certificates import Authority  # noqa: E402
from harness.check import check, equal, eventually, kubectl, main, test  # noqa: E402
from harness.webhook import (  # noqa: E402
    ALICE,
    CONFIGURATIONS,
    FOLDER,
    GPU,
    KINDS,
    NAME,
    OURS,
    PORT,
    PROGRAM,
    SECRET,
    bundles,
    certs,
    configure,
    dry,
    install,
    keeping,
    mount,
    serving,
    variables,
)

NEXT = "kubectl apply -f deploy/webhook/configuration.yaml"
SCRIPT = ROOT / "hack/gen-webhook-certs.sh"


@test
def certificates_are_made_once_with_few_rights():
    """Each round does what is left to do, and says what people have to do next."""
    said = certs()
    check("made a certificate" in said and NEXT in said, said)
    kubectl("create", "-f", str(ROOT / "deploy/webhook/configuration.yaml"))
    equal(set(bundles()), {0})
    said = certs()
    check("configurations=2 changed=2" in said and NEXT not in said, said)
    equal(set(bundles()), {1})
    secret = ALICE.get(SECRET).json
    equal(secret["type"], "kubernetes.io/tls")
    equal(sorted(secret["data"]), ["ca.crt", "tls.crt", "tls.key"])
    said = certs()
    check("is good" in said and "configurations=2 changed=0" in said, said)
    equal(
        ALICE.get(SECRET).json["metadata"]["resourceVersion"], secret["metadata"]["resourceVersion"]
    )


def complaint(*options):
    """Of a webhook that does not start."""
    done = subprocess.run(
        [str(word) for word in (PROGRAM, "webhook", *options)],
        capture_output=True,
        text=True,
        check=False,
    )
    equal(done.returncode, 2, done.stderr)
    return done.stderr


@test
def a_webhook_that_cannot_start_says_what_to_change():
    """A certificate that is not there yet, and addresses that others have."""
    said = complaint("--addr", "127.0.0.1:0", "--health-addr", "none")
    check("/certs/tls.crt" in said, f"where it looks unless told otherwise: {said}")
    said = complaint("--tls-cert-file", FOLDER / "none.crt", "--health-addr", "none")
    check("none.crt" in said and "gpu-scheduler certs" in said, said)
    certs()
    volume = mount()
    files = ("--tls-cert-file", volume / "tls.crt", "--tls-private-key-file", volume / "tls.key")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        said = complaint(*files, "--health-addr", "none", "--addr", address)
        check("webhook: --addr: cannot listen" in said, said)
        said = complaint(*files, "--health-addr", address)
        check("webhook: --health-addr: cannot listen" in said, said)


@test
def configurations_that_come_later_are_told():
    """One that was deleted and is made anew trusts nobody, and what guards fails closed."""
    with keeping("--every", "24") as log_file:
        eventually(lambda: "is good" in log_file.read_text("utf-8"), "a first round")
        for kind in KINDS:
            ALICE.delete(CONFIGURATIONS + f"{kind}/{NAME}")
        kubectl("create", "-f", str(ROOT / "deploy/webhook/configuration.yaml"))
        eventually(lambda: set(bundles()) == {1}, "both are told", timeout_s=600)
        # Rounds that find nothing to do say nothing.
        equal(log_file.read_text("utf-8").count("configurations=2 changed=0"), 1)


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
        served = eventually(lambda: "second.example.org" in served_names(), "the new certificate")
        check(served, "the new certificate is served")
        certs("--name", "second.example.org", "--overlap", "0")
        equal(bundles()[:2], [1, 1])
        at = load.done
        eventually(lambda: load.done > at + 20, "requests go on")
        load.end.set()
        load.join()
        check(not load.wrong, "\n".join(load.wrong[:3]))


def served_names():
    """Those of the certificate that the webhook shows."""
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
    return re.findall(r"DNS:([^,\s]+)", text.stdout.decode())


def script(*words, **environment):
    """The script from a pipe, as from curl."""
    return subprocess.run(
        [shutil.which("bash"), "-s", "--", *words],
        input=SCRIPT.read_text(encoding="utf-8"),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def stored_bundles():
    """What each webhook of both configurations trusts, as it is written there."""
    return [
        hook["clientConfig"].get("caBundle")
        for kind in KINDS
        for hook in ALICE.get(CONFIGURATIONS + f"{kind}/{NAME}").json.get("webhooks", [])
    ]


@test
def the_script_changes_nothing_when_it_is_called_wrongly():
    """Who only asks for help, or mistypes, must not break what works."""
    before = stored_bundles()
    check(before and all(before), "there is something to lose")
    for words in (["-h"], ["--help"]):
        done = script(*words)
        check(done.returncode == 0 and "Usage:" in done.stdout, str(done))
    for words in (["--namespace"], ["a", "b"], ["Not A Name"], ["-n", "hooks"], [""]):
        done = script(*words)
        check(done.returncode == 2 and done.stderr.count("\n") == 1, str(done))
    for days in ("0", "-1", "1.5", "10000", "many"):
        done = script("default", DAYS=days)
        said = f"gen-webhook-certs.sh: DAYS is 1 to 9999, not '{days}'\n"
        equal((done.returncode, done.stderr), (2, said))
    equal(stored_bundles(), before)


@test
def the_script_says_which_program_it_lacks():
    """Before it does anything."""
    tools = ("openssl", "kubectl", "base64")
    for lacking in tools:
        folder = FOLDER / f"without-{lacking}"
        folder.mkdir()
        for tool in set(tools) - {lacking}:
            (folder / tool).symlink_to(shutil.which(tool))
        done = script("default", PATH=str(folder))
        said = f"gen-webhook-certs.sh: {lacking} is missing\n"
        equal((done.returncode, done.stdout, done.stderr), (1, "", said))


def trusted():
    """Whether every webhook trusts the certificate that is stored."""
    cert = FOLDER / "stored.crt"
    cert.write_bytes(base64.b64decode(ALICE.get(SECRET).json["data"]["tls.crt"]))
    for kind in KINDS:
        for hook in ALICE.get(CONFIGURATIONS + f"{kind}/{NAME}").json.get("webhooks", []):
            bundle = FOLDER / "bundle.crt"
            bundle.write_bytes(base64.b64decode(hook["clientConfig"]["caBundle"]))
            done = subprocess.run(
                ["openssl", "verify", "-CAfile", bundle, cert], capture_output=True, check=False
            )
            if done.returncode:
                return False
    return True


@test
def several_may_keep_certificates_at_once():
    """Those that come while another renews leave its authority where it is."""
    for turn in range(2):
        name = f"turn-{turn}.example.org"
        with ThreadPoolExecutor() as pool:
            keepers = [
                pool.submit(certs, "--name", name, "--settle", settle)
                for settle in ("2", "0", "1", "2", "1")
            ]
            while not all(each.done() for each in keepers):
                check(trusted(), "what is stored is trusted at every moment")
        made = ["made a certificate" in each.result() for each in keepers]
        check(any(made), "one of them has renewed")
        check(trusted(), "what is stored is trusted in the end")


@test
def who_only_looks_leaves_the_authority_of_who_renews():
    """Between the moment at which it is trusted and that at which it is used."""
    before = stored_bundles()
    with ThreadPoolExecutor() as pool:
        renewing = pool.submit(certs, "--name", "looked-at.example.org", "--settle", "10")
        eventually(lambda: stored_bundles() != before, "the new authority is trusted")
        said = certs()
        check("is good" in said and not renewing.done(), said)
        check("made a certificate" in renewing.result(), "it has renewed")
    check(trusted(), "what is stored is trusted")


def keep(*options):
    """A round of the program, by an administrator."""
    command = [PROGRAM, "certs", "--kubeconfig", FOLDER / "admin.kubeconfig", *options]
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False
    )


@test
def the_script_does_the_same_with_openssl():
    """From a pipe, for another namespace, before and after there is a configuration of it."""
    before = stored_bundles()
    done = script("default")
    check(done.returncode == 0 and NEXT in " ".join(done.stdout.split()), str(done))
    # These call the service of another namespace, whose certificate is another.
    equal(stored_bundles(), before)
    text = (ROOT / "deploy/webhook/configuration.yaml").read_text(encoding="utf-8")
    for kind in KINDS:
        ALICE.delete(CONFIGURATIONS + f"{kind}/{NAME}")
    text = text.replace("{namespace: gpu-scheduler,", "{namespace: default,")
    kubectl("create", "-f", "-", stdin=text)
    done = script("default")
    check(done.returncode == 0 and NEXT not in " ".join(done.stdout.split()), str(done))
    secret = ALICE.get(SECRET.replace("gpu-scheduler/secrets", "default/secrets")).json
    folder = FOLDER / "script"
    folder.mkdir()
    for name, text in secret["data"].items():
        (folder / name).write_bytes(base64.b64decode(text))
    equal((folder / "ca.crt").read_text().count("BEGIN"), 2)
    equal(set(stored_bundles()), {secret["data"]["ca.crt"]})
    # Nor does the program, for the namespace that they do not call.
    said = certs()
    check("no webhook configuration is there that calls it" in said, said)
    equal(set(stored_bundles()), {secret["data"]["ca.crt"]})
    # It finds nothing to mend in what the script has made.
    names = ("--dir", folder, "-n", "default")
    done = keep(*names)
    check(done.returncode == 0 and "is good" in done.stderr, done.stderr)
    # And it renews that in time.
    done = keep(*names, "--days", "400", "--renew-before", "399")
    check(done.returncode == 0 and "made a certificate" in done.stderr, done.stderr)
    shutil.rmtree(folder)


@test
def a_certificate_of_somebody_else_is_trusted_and_left_alone():
    """It is for the one name by which it is called, and ends in two days."""
    secret = SECRET.replace("gpu-scheduler/secrets", "default/secrets")
    theirs = Authority(FOLDER / "theirs")
    theirs.server("tls", [], ["gpu-scheduler-webhook.default.svc"])
    files = ("ca.crt", "tls.crt", "tls.key")
    data = {name: base64.b64encode(theirs.read(name)).decode() for name in files}
    merge = "application/merge-patch+json"
    stored = ALICE.request("PATCH", secret, {"data": data}, merge).json
    done = keep("-n", "default")
    check(done.returncode == 0 and "has to renew it" in done.stderr, done.stderr)
    equal(ALICE.get(secret).json, stored)
    for bundle in stored_bundles():
        check(theirs.read("ca.crt").strip() in base64.b64decode(bundle), "it is trusted")
    # Whom to trust cannot be said then, but the key is not thrown away.
    stored = ALICE.request("PATCH", secret, {"data": {"ca.crt": None}}, merge).json
    done = keep("-n", "default")
    check(done.returncode == 1 and "there is no ca.crt" in done.stderr, done.stderr)
    equal(ALICE.get(secret).json, stored)


@test
def the_script_leaves_a_secret_of_cert_manager_alone():
    """Which would write it again, signed by another."""
    secret = SECRET.replace("gpu-scheduler/secrets", "default/secrets")
    annotations = {"metadata": {"annotations": {"cert-manager.io/certificate-name": "x"}}}
    merge = "application/merge-patch+json"
    equal(ALICE.request("PATCH", secret, annotations, merge).code, 200)
    before = stored_bundles(), ALICE.get(secret).json["data"]
    done = script("default")
    check(done.returncode == 1 and "is kept by cert-manager" in done.stderr, str(done))
    equal((stored_bundles(), ALICE.get(secret).json["data"]), before)


if __name__ == "__main__":
    sys.exit(main(install))
