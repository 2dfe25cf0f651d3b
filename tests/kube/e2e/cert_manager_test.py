#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Certificates of the webhook by the real cert-manager: deploy/webhook/optional/cert-manager.yaml,
and the chart that takes it in.

cluster: --bare
programs: helm cert-manager
"""
import base64
import os
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.admission import ROOT  # noqa: E402
from harness.chart import (  # noqa: E402
    RELEASE,
    SCRIPT,
    assets,
    bundles,
    helm,
    in_charge,
    make_secret,
    reach,
    secret,
    serving_as_deployed,
    try_upgrade,
    upgrade,
)
from harness.check import check, equal, eventually, kubectl, main, test  # noqa: E402
from harness.processes import Process  # noqa: E402
from harness.webhook import FOLDER, PROGRAM, serving  # noqa: E402

MANIFEST = ROOT / "deploy/webhook/optional/cert-manager.yaml"
KEEPER = "cert-manager.io/certificate-name"
RUNNING = []


def issued(namespace, before=""):
    """The Secret, as soon as it has another certificate than before, of cert-manager, and both
    configurations trust it."""

    def now():
        found = secret(namespace)
        if found.get("metadata", {}).get("annotations", {}).get(KEEPER) is None:
            return None
        good = found["data"]["tls.crt"] not in ("", before)
        return found if good and bundles() == {found["data"].get("ca.crt")} else None

    return eventually(now, "a certificate that is trusted", timeout_s=300)


def names_in(found):
    """Whom the certificate of a Secret is for, if its authority has signed it for servers."""
    for name in ("ca.crt", "tls.crt"):
        (FOLDER / name).write_bytes(base64.b64decode(found["data"][name]))
    verify = ["openssl", "verify", "-purpose", "sslserver", "-CAfile", FOLDER / "ca.crt"]
    done = subprocess.run([*verify, FOLDER / "tls.crt"], capture_output=True, check=False)
    equal(done.returncode, 0, done.stderr)
    shown = subprocess.run(
        ["openssl", "x509", "-in", FOLDER / "tls.crt", "-noout", "-ext", "subjectAltName"],
        capture_output=True,
        text=True,
        check=True,
    )
    return re.findall(r"DNS:([^,\s]+)", shown.stdout)


def names_of(namespace):
    """Those of the service."""
    short = f"gpu-scheduler-webhook.{namespace}.svc"
    return [short, short + ".cluster.local"]


@test
def the_manifest_of_deploy_makes_a_certificate_that_is_trusted():
    """By typing what stands at its top."""
    for path in ("crds", "rbac", "webhook"):
        kubectl("apply", "-f", str(ROOT / "deploy" / path))
    kubectl("apply", "-f", str(MANIFEST))
    typed = re.search(r"^# +(kubectl annotate .*\\)\n# +(.*)$", MANIFEST.read_text("utf-8"), re.M)
    subprocess.run(typed.expand(r"\1\n\2"), shell=True, check=True, stdout=subprocess.DEVNULL)
    found = issued("gpu-scheduler")
    equal(found["type"], "kubernetes.io/tls")
    equal(names_in(found), names_of("gpu-scheduler"))
    reach("gpu-scheduler")
    with serving():
        in_charge()


@test
def nobody_else_writes_the_secret_of_cert_manager():
    """Neither the program nor the script."""
    before = secret("gpu-scheduler")
    program = [PROGRAM, "certs", "-n", "gpu-scheduler"]
    for command in ([str(word) for word in program], ["bash", str(SCRIPT), "gpu-scheduler"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        check(done.returncode == 1 and "kept by cert-manager" in done.stderr, done.stderr)
    after = secret("gpu-scheduler")["data"]
    equal((after, bundles()), (before["data"], {before["data"]["ca.crt"]}))


@test
def the_chart_has_it_issued_and_trusted():
    """Where the script has made a Secret before, cert-manager takes that over."""
    make_secret("elsewhere")
    made = secret("elsewhere")["data"]["tls.crt"]
    upgrade("elsewhere", "--take-ownership", mode="cert-manager")
    equal(names_in(issued("elsewhere", made)), names_of("elsewhere"))
    reach("elsewhere")
    with serving_as_deployed("elsewhere"):
        in_charge()


@test
def an_upgrade_changes_nothing_of_it():
    """And a certificate that is lost comes again, from an authority that is trusted."""
    before = secret("elsewhere")
    upgrade("elsewhere", mode="cert-manager")
    equal((secret("elsewhere")["data"], bundles()), (before["data"], {before["data"]["ca.crt"]}))
    kubectl("-n", "elsewhere", "delete", "secret", "gpu-scheduler-webhook-cert")
    found = issued("elsewhere", before["data"]["tls.crt"])
    equal(found["data"]["ca.crt"], before["data"]["ca.crt"])


@test
def the_secret_stays_when_the_release_goes():
    """And a cluster without cert-manager is told in one sentence that it lacks it."""
    before = secret("elsewhere")
    helm("uninstall", RELEASE, "-n", "elsewhere")
    equal(secret("elsewhere")["data"], before["data"])
    for process in RUNNING:
        process.check()
        process.stop(grace_s=5)
    kubectl("delete", "crd", "certificates.cert-manager.io", "issuers.cert-manager.io")
    sentence = "cert-manager is not installed: install it, or set webhook.certs.mode"
    eventually(
        lambda: sentence in try_upgrade("elsewhere", mode="cert-manager").stderr,
        "Helm finds that its kinds are gone",
    )


def crds(folder):
    """The kinds of cert-manager, without the labels that only its own chart can fill in."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.yaml"))]
    lines = "\n---\n".join(texts).splitlines()
    return "\n".join(line for line in lines if "{{" not in line)


def prepare():
    """cert-manager itself, and a namespace for pods of users."""
    folder = assets("cert-manager")
    kubectl("create", "--validate=false", "-f", "-", stdin=crds(folder / "crds"))
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    options = ["--kubeconfig", os.environ["KUBECONFIG"], "--leader-elect=false"]
    metrics = "--metrics-listen-address=127.0.0.1:0"
    RUNNING.append(Process("controller", [folder / "controller", *options, metrics], FOLDER))
    RUNNING.append(Process("cainjector", [folder / "cainjector", *options], FOLDER))
    kubectl("create", "namespace", "hooks")


if __name__ == "__main__":
    sys.exit(main(prepare))
