#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""charts/gpu-scheduler with the real Helm: it is what deploy/ has, it goes on with the Secret
that hack/gen-webhook-certs.sh has made, and what it deploys works.

cluster: --bare --nodes 1 --controllers=*
programs: helm
"""
import base64
import json
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.chart import (  # noqa: E402
    ADMIN,
    CHART,
    IMAGE,
    RELEASE,
    WITH_GPU,
    as_deployed,
    bundles,
    helm,
    in_charge,
    make_secret,
    objects,
    reach,
    secret,
    serving_as_deployed,
    template,
    try_helm,
    upgrade,
    wait_pods,
)
from harness.admission import DRY, ROOT, complete, pods  # noqa: E402
from harness.check import check, equal, eventually, kubectl, main, test  # noqa: E402
from harness.webhook import CONFIGURATIONS, FOLDER, KINDS, NAME, create  # noqa: E402

HOME = "default"  # where the release is, as in the script's own example
LEASES = "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler-locks/leases"
SHARED = (
    "crds/*.yaml",
    "rbac/00-namespaces.yaml",
    "rbac/flowschemas.yaml",
    "rbac/scheduler.yaml",
    "rbac/webhook.yaml",
    "webhook/*.yaml",
)
OWN_NAMES = (
    "app.kubernetes.io/name: gpu-scheduler",
    "name: gpu-scheduler",
    "[gpu-scheduler]",  # the Lease of the election
    "[gpu-scheduler, ",  # the command
    "example/gpu-scheduler",
    "gpu-scheduler webhook CA",
)


WRONG = {
    "webhook.certs.mode=magic": "'/webhook/certs/mode': value must be one of 'certs', 'secret', ",
    "webhook.replicas=0": "'/webhook/replicas': minimum: got 0, want 1",
    "scheduler.locks=all": "'/scheduler/locks': value must be one of 'node', 'gpu'",
    "webhok.enabled=false": "additional properties 'webhok' not allowed",
    "lockNamespace=A_b": "'/lockNamespace': 'A_b' does not match pattern",
    "schedulerNames={it's}": "'/schedulerNames/0': 'it\\'s' does not match pattern",
    "webhook.certs.caBundle=x": "'/webhook/certs/caBundle': 'x' does not match pattern",
    "image.repository=": "set image.repository to an image with gpu-scheduler in its PATH",
    "webhook.certs.mode=secret": "there is no Secret default/gpu-scheduler-webhook-cert: make it",
    "lockNamespace=default": "lockNamespace is default: set it to one that holds nothing but",
    "image.repository=a/b:1.0": "'/image/repository': 'a/b:1.0' does not match pattern",
    "schedulerNames=null": "missing property 'schedulerNames'",
    "webhook.certs.mode=null": "'/webhook/certs': missing property 'mode'",
    "webhook.inject={rubbish}": "'/webhook/inject/0': 'rubbish' does not match pattern",
    "webhook.inject={nvidia}": "webhook.inject is nvidia: it goes with webhook.injection cdi and",
    "webhook.inject={nvidia},webhook.injection=all": "webhook.inject is nvidia: it goes with",
    "webhook.inject={mps=/x},webhook.injection=cdi": "webhook.inject is mps=/x: it does not go",
    "webhook.setScheduler=nope": "webhook.setScheduler is nope, which is none of schedulerNames",
    "log.level=warn": "install into another namespace than kube-system",
}


@test
def the_chart_has_no_fault_that_helm_knows():
    """Alone and with values."""
    for words in ([], IMAGE):
        helm("lint", "--strict", CHART, *words)


def of_deploy():
    """What deploy/ has, but for what is not there yet and the namespace, which Helm makes."""
    files = [path for pattern in SHARED for path in sorted((ROOT / "deploy").glob(pattern))]
    found = objects("\n---\n".join(path.read_text(encoding="utf-8") for path in files))
    del found["Namespace", None, "gpu-scheduler"]
    return found


@test
def the_chart_is_what_deploy_has():
    """The same objects, and its own Deployments beside them."""
    rendered = objects(template("gpu-scheduler"))
    for each in rendered.values():
        annotations = each["metadata"].get("annotations", {})
        if annotations.pop("helm.sh/resource-policy", None) and not annotations:
            del each["metadata"]["annotations"]
    expected = of_deploy()
    own = {key: rendered.pop(key) for key in set(rendered) - set(expected)}
    equal(sorted({kind for kind, _, _ in own}), ["Deployment", "PodDisruptionBudget"])
    equal(sorted(rendered), sorted(expected))
    for key, each in expected.items():
        equal(rendered[key], each, key)


@test
def a_package_has_all_that_the_folder_has():
    """Also what the link leads to."""
    helm("package", CHART, "-d", FOLDER)
    (package,) = FOLDER.glob("gpu-scheduler-*.tgz")
    equal(template("a", chart=package), template("a"))


@test
def no_name_of_deploy_is_left_where_others_are_given():
    """Of its namespaces and of the schedulers."""
    names = "lockNamespace=odd-locks,schedulerNames={odd-one},excludedNamespaces={odd-plugin}"
    text = template("odd", "--set", names)
    text += template("odd", "--set", names + ",webhook.certs.mode=cert-manager")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in lines:
        for name in OWN_NAMES:
            line = line.replace(name, "")
        check(not re.search(r"(?<![\w-])gpu-scheduler(?![\w-])", line), line)
        check("topology-aware" not in line, line)
        check(not re.search(r"namespaces?: .*gpu-scheduler-locks", line), line)
        check("kube-system]" not in line, line)
    check(sum('["kube-system","odd-plugin"]' in line for line in lines) == 6, "excluded by all")


@test
def the_policy_knows_the_mode_of_the_webhook():
    """What the webhook sets in mode env is refused elsewhere."""
    for mode in ("", "cdi", "env", "external", "all"):
        text = template("gpu-scheduler", "--set", f"webhook.injection={mode}")
        policy = objects(text)["ValidatingAdmissionPolicy", None, "gpu-scheduler-guard"]
        found = {each["name"]: each["expression"] for each in policy["spec"]["variables"]}
        equal("NVIDIA_VISIBLE_DEVICES" in found["refer"], mode == "env", mode)


@test
def every_kind_of_certificates_is_accepted_by_the_server():
    """Also where Helm sees no cluster, so knows nothing of the Secret."""
    for name in ("dry", "dry-locks"):
        kubectl("create", "namespace", name)
    more = "webhook.claims=true,webhook.inject={mps},config.maxPodsPerSharedGpu=4"
    for values in ("mode=certs", "mode=secret", "mode=certs," + more):
        values = f"lockNamespace=dry-locks,webhook.certs.{values}"
        text = template("dry", "--set", values)
        check("caBundle: " not in text, "nobody is known")
        kubectl("apply", "--dry-run=server", "-f", "-", stdin=text)


@test
def what_cannot_be_is_said_in_one_sentence():
    """Before anything has been changed."""
    for values, sentence in WRONG.items():
        namespace = "kube-system" if "kube-system" in sentence else HOME
        done = try_helm("install", RELEASE, CHART, "-n", namespace, *IMAGE, "--set", values)
        check(done.returncode == 1 and sentence in done.stderr, f"{values}: {done.stderr}")
    equal(helm("list", "-A", "-q"), "")


@test
def the_secret_of_the_script_is_taken_as_it_is():
    """It is neither refused nor changed, and its authority is trusted at once."""
    said = make_secret(HOME)
    check("the chart" in said, said)
    before = secret(HOME)
    upgrade(HOME, mode="secret")
    equal(secret(HOME), before)
    equal(bundles(), {before["data"]["ca.crt"]})
    other = FOLDER / "pki/ca.crt"
    upgrade(HOME, "--set-file", f"webhook.certs.caBundle={other}", mode="secret")
    said = base64.b64encode(other.read_bytes()).decode()
    equal(bundles(), {said}, "what is said goes before what is found")
    upgrade(HOME, mode="secret")
    equal((secret(HOME), bundles()), (before, {before["data"]["ca.crt"]}))
    # Four of ours; the webhook, whom nobody answers for yet, is not asked about them.
    wait_pods(HOME, 4)
    reach(HOME)
    answer = ADMIN.post(pods("hooks") + DRY, complete(WITH_GPU, "hooks", "early"))
    check("failed calling webhook" in answer.text, str(answer))
    with serving_as_deployed(HOME):
        in_charge()


@test
def an_upgrade_keeps_the_secret_and_what_is_trusted():
    """Also what has been renewed since, and a change to another way of keeping it."""
    make_secret(HOME)
    before = secret(HOME)
    text = base64.b64decode(before["data"]["ca.crt"]).decode()
    equal(text.count("BEGIN CERTIFICATE"), 2, "the old authority beside the new")
    for mode in ("secret", "certs", "certs"):
        upgrade(HOME, mode=mode)
        equal((secret(HOME), bundles()), (before, {before["data"]["ca.crt"]}), mode)
    # An older revision says what was trusted then; the next upgrade mends that.
    helm("rollback", RELEASE, "1", "-n", HOME)
    check(bundles() != {before["data"]["ca.crt"]}, "as it was")
    upgrade(HOME, mode="certs")
    equal((secret(HOME), bundles()), (before, {before["data"]["ca.crt"]}))


@test
def the_program_goes_on_with_the_secret_of_the_script():
    """As it is deployed, with the rights that the chart gives it."""
    before = secret(HOME)
    with as_deployed(HOME, "gpu-scheduler-certs") as keeper:
        eventually(lambda: "is good" in keeper.log.read_text(encoding="utf-8"), "a round")
        for kind in KINDS:
            patch = [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]
            kubectl("patch", kind, NAME, "--type=json", "-p", json.dumps(patch))
        eventually(lambda: bundles() == {before["data"]["ca.crt"]}, "it tells both again")
    equal(secret(HOME), before)


@test
def what_is_deployed_schedules():
    """A pod gets its variable, and a node with GPUs, from accounts of this namespace."""
    upgrade(HOME, "--set", "config.maxPodsPerSharedGpu=4", mode="certs")
    reach(HOME)
    scheduler = as_deployed(HOME, "gpu-scheduler", "--health-addr", "none")
    with serving_as_deployed(HOME), scheduler as process:
        in_charge()
        path = f"{pods('hooks')}/{create(WITH_GPU)['metadata']['name']}"
        eventually(lambda: ADMIN.get(path).json["spec"].get("nodeName") == "gpu-0", "it is bound")
        pod = ADMIN.get(path).json
        check(pod["metadata"]["annotations"]["elasticgpu.io/container-a"], str(pod["metadata"]))
        check(ADMIN.get(LEASES).json["items"], "and its GPU is locked")
        said = process.log.read_text(encoding="utf-8")
        check('source="ConfigMap kube-system/topology-scheduler-config"' in said, said)
        # Who decides is who has the account of this namespace.
        forged = {"metadata": {"annotations": {"gpu.scheduling/allocated": "n:0"}}}
        answer = ADMIN.post(pods("hooks"), complete(forged, "hooks", "forged"))
        check(answer.code == 403 and "gpu-scheduler-guard" in answer.text, str(answer))


@test
def what_pods_need_stays_when_the_release_goes():
    """The locks of their GPUs, claims, and the Secret, with which another release goes on."""
    before = secret(HOME)
    locks = [each["metadata"]["name"] for each in ADMIN.get(LEASES).json["items"]]
    kept = helm("uninstall", RELEASE, "-n", HOME)
    check("[Namespace] gpu-scheduler-locks" in kept, kept)
    equal(kept.count("[CustomResourceDefinition]"), 4)
    equal(secret(HOME), before)
    equal([each["metadata"]["name"] for each in ADMIN.get(LEASES).json["items"]], locks)
    check(locks, "there is something to lose")
    for kind in KINDS:
        equal(ADMIN.get(CONFIGURATIONS + f"{kind}/{NAME}").code, 404)
    upgrade(HOME, mode="secret")
    equal((secret(HOME), bundles()), (before, {before["data"]["ca.crt"]}))
    helm("uninstall", RELEASE, "-n", HOME)


@test
def what_kubectl_has_applied_can_be_taken_over():
    """Into the namespace of deploy/, without a certificate: its keeper makes one."""
    deploy = ROOT / "deploy"
    for folder in ("crds", "rbac", "webhook"):
        kubectl("apply", "-f", str(deploy / folder))
    upgrade("gpu-scheduler", "--take-ownership", mode="certs")
    equal(bundles(), {None})
    with as_deployed("gpu-scheduler", "gpu-scheduler-certs"):
        eventually(lambda: None not in bundles(), "it has told both")
    made = secret("gpu-scheduler")["data"]
    upgrade("gpu-scheduler", mode="certs")
    equal((secret("gpu-scheduler")["data"], bundles()), (made, {made["ca.crt"]}))


def prepare():
    """A namespace for pods of users."""
    kubectl("create", "namespace", "hooks")
    account = "/api/v1/namespaces/hooks/serviceaccounts/default"
    eventually(lambda: ADMIN.get(account).code == 200, "its account")


if __name__ == "__main__":
    sys.exit(main(prepare))
