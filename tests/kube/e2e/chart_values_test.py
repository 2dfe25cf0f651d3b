#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the values of charts/gpu-scheduler turn on and off, with the real Helm, and whether the
program takes what they make of it.

cluster: --bare
programs: helm
"""
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.admission import ROOT  # noqa: E402
from harness.chart import CHART, IMAGE, RELEASE, SECRET, objects, template, try_helm  # noqa: E402
from harness.check import check, equal, main, test  # noqa: E402
from harness.webhook import FOLDER, PROGRAM  # noqa: E402

HOME = "gpu-scheduler"
DEPLOYMENTS = ("gpu-scheduler", "gpu-scheduler-certs", "gpu-scheduler-webhook")

# What a value takes away: files of deploy/, and objects that only the chart has.
OFF = {
    "crds.enabled=false": (["crds/*.yaml"], []),
    "policy.enabled=false": (["webhook/policy.yaml"], []),
    "scheduler.enabled=false": (["rbac/scheduler.yaml"], [("Deployment", "gpu-scheduler")]),
    "webhook.certs.mode=secret": (
        ["webhook/certs.yaml"],
        [("Deployment", "gpu-scheduler-certs")],
    ),
    "webhook.enabled=false": (
        ["rbac/webhook.yaml", "webhook/[cs]*.yaml"],
        [
            ("Deployment", "gpu-scheduler-certs"),
            ("Deployment", "gpu-scheduler-webhook"),
            ("PodDisruptionBudget", "gpu-scheduler-webhook"),
        ],
    ),
}

# What a value adds to the words of a container.
WEBHOOK = {
    "webhook.injection=all": ["--injection=all"],
    "webhook.injection=external": ["--injection=external"],
    "webhook.injection=null": [],
    "webhook.injection=cdi,webhook.inject={nvidia}": ["--injection=cdi", "--inject=nvidia"],
    "webhook.injection=env,webhook.inject={nvidia,runtimeclass=nvidia}": [
        "--injection=env",
        "--inject=nvidia",
        "--inject=runtimeclass=nvidia",
    ],
    "webhook.inject={mps=/var/run/mps}": ["--inject=mps=/var/run/mps"],
    "webhook.setScheduler=gpu-scheduler": ["--set-scheduler=gpu-scheduler"],
    "webhook.otherSchedulers=true": ["--other-schedulers"],
    "webhook.otherSchedulers=true,webhook.setScheduler=another": [
        "--set-scheduler=another",
        "--other-schedulers",
    ],
    "webhook.claims=true": ["--claims"],
    "webhook.copyOwnerAnnotations=true": ["--copy-owner-annotations"],
    "webhook.extraArgs={--linger-ms=1,--account=somebody}": ["--linger-ms=1", "--account=somebody"],
    "schedulerNames={gpu-scheduler,topology-aware-scheduler,third}": ["--scheduler-name=third"],
}
SCHEDULER = {
    "scheduler.extraArgs={--leader-elect=false}": ["--leader-elect=false"],
    "schedulerNames={gpu-scheduler,topology-aware-scheduler,third}": ["--scheduler-name=third"],
}
MODES = ("", "all", "cdi", "env", "external")
INJECTED = ("nvidia", "mps", "mps=/x", "runtimeclass=x")


def rendered(values=""):
    """The objects of a release with these values."""
    return objects(template(HOME, *(("--set", values) if values else ())))


def deployment(found, name):
    """The pod of a Deployment."""
    return found["Deployment", HOME, name]["spec"]["template"]["spec"]


def words_of(found, name):
    """What its container is called with."""
    container = deployment(found, name)["containers"][0]
    equal(container["command"][0], "gpu-scheduler")
    return container["command"][1:] + container["args"]


def complaint(*words):
    """Of the program that cannot start."""
    done = subprocess.run(
        [str(word) for word in (PROGRAM, *words)], capture_output=True, text=True, check=False
    )
    equal(done.returncode, 2, done.stderr)
    return done.stderr


def help_of(command):
    """Its words, one space between them."""
    done = subprocess.run(
        [str(PROGRAM), command, "--help"], capture_output=True, text=True, check=True
    )
    return " ".join(done.stdout.split())


def refusal(words):
    """What the webhook says to these words, if it is more than that its certificate is missing."""
    said = complaint("webhook", *words, "--addr", "127.0.0.1:0", "--health-addr", "none")
    return "" if "/certs/tls.crt" in said else said


@test
def each_part_can_be_left_out():
    """It goes whole, and nothing else does."""
    everything = rendered()
    for values, (patterns, own) in OFF.items():
        files = [path for each in patterns for path in sorted((ROOT / "deploy").glob(each))]
        text = "\n---\n".join(path.read_text(encoding="utf-8") for path in files)
        gone = {(kind, name) for kind, _, name in objects(text)} | set(own)
        left = rendered(values)
        equal({(kind, name) for kind, _, name in set(everything) - set(left)}, gone, values)
        equal(set(left) - set(everything), set(), values)


@test
def values_become_words_that_the_program_takes():
    """Each of the webhook and of the scheduler: all that it had, and what is said."""
    before = rendered()
    for values, more in WEBHOOK.items():
        words = words_of(rendered(values), "gpu-scheduler-webhook")
        equal(sorted(words), sorted(words_of(before, "gpu-scheduler-webhook") + more), values)
        equal(refusal(words[1:]), "", values)
    nowhere = FOLDER / "nowhere.kubeconfig"
    for values, more in SCHEDULER.items():
        words = words_of(rendered(values), "gpu-scheduler")
        equal(sorted(words), sorted(words_of(before, "gpu-scheduler") + more), values)
        said = complaint(*words, "--health-addr", "none", "--kubeconfig", nowhere)
        check(str(nowhere) in said, f"{values}: {said}")


@test
def the_chart_refuses_what_the_webhook_would_not_start_with():
    """And nothing else, of what can be injected and how."""
    for mode in MODES:
        for what in INJECTED:
            values = f"webhook.injection={mode},webhook.inject={{{what}}}"
            done = try_helm("template", RELEASE, CHART, "-n", HOME, *IMAGE, "--set", values)
            said = refusal([f"--inject={what}", *([f"--injection={mode}"] if mode else [])])
            check((done.returncode == 0) == (said == ""), f"{values}: {done.stderr} {said}")


@test
def ports_and_files_are_those_of_the_program():
    """Where nothing is said, which the chart does not."""
    found = rendered()
    addr, cert, key, health = (
        re.search(rf"--{name} \S+ .*?\(default ([^);]+)[);]", help_of("webhook")).group(1)
        for name in ("addr", "tls-cert-file", "tls-private-key-file", "health-addr")
    )
    pod = deployment(found, "gpu-scheduler-webhook")
    container = pod["containers"][0]
    ports = {each["name"]: f":{each['containerPort']}" for each in container["ports"]}
    equal(ports, {"https": addr, "health": health})
    service = found["Service", HOME, "gpu-scheduler-webhook"]["spec"]["ports"][0]
    equal(f":{service['targetPort']}", addr)
    (mounted,) = container["volumeMounts"]
    equal([cert, key], [f"{mounted['mountPath']}/{name}" for name in ("tls.crt", "tls.key")])
    equal([each["secret"]["secretName"] for each in pod["volumes"]], [SECRET])
    for name in ("gpu-scheduler", "gpu-scheduler-webhook"):
        container = deployment(found, name)["containers"][0]
        named = {each["name"]: f":{each['containerPort']}" for each in container["ports"]}
        for probe in ("livenessProbe", "readinessProbe"):
            equal(named[container[probe]["httpGet"]["port"]], health, f"{name} {probe}")
        given = [word.partition("=")[0] for word in words_of(found, name)]
        check(not {"--addr", "--health-addr", "--tls-cert-file"} & set(given), str(given))


@test
def the_webhook_has_a_token_only_where_it_reads():
    """And the rights to do so."""
    reader = ("ClusterRoleBinding", None, "gpu-scheduler-webhook-reader")
    for values in ("", "webhook.claims=true", "webhook.copyOwnerAnnotations=true"):
        found = rendered(values)
        pod = deployment(found, "gpu-scheduler-webhook")
        equal(pod["automountServiceAccountToken"], bool(values), values)
        equal(reader in found, bool(values), values)


@test
def every_pod_pulls_with_the_secrets_that_are_said():
    """Of the registry with the image."""
    found = rendered("imagePullSecrets[0].name=pull,imagePullSecrets[1].name=more")
    for name in DEPLOYMENTS:
        equal(deployment(found, name)["imagePullSecrets"], [{"name": "pull"}, {"name": "more"}])


if __name__ == "__main__":
    sys.exit(main())
