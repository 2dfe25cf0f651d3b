#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Certificates of the webhook on a real API server: made with few rights, changed while
requests come, and by the script that needs nothing of ours.

cluster:
"""
import base64
import shutil
import subprocess
import sys
import threading
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.admission import DRY, ROOT, As, complete, pods  # noqa: E402
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
    mount,
    serving,
    variables,
)


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
    sys.exit(main(install))
