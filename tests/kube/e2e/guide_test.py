#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/README.md, word by word: who types what stands there has a scheduler and a webhook
that work together.

cluster: --nodes 1 --gpus 8 --controllers=* --history
"""
import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, kubectl, main, test  # noqa: E402
from harness.processes import die_with_parent  # noqa: E402
from harness.scheduler import PROGRAM, ROOT, wait_bound  # noqa: E402
from harness.webhook import answers, free_port  # noqa: E402

FOLDER = Path(os.environ["KUBE_DIR"]) / "guide"
PORTS = {"8443": str(free_port()), "8081": str(free_port()), "8080": str(free_port())}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "train"},
    "spec": {
        "schedulerName": "gpu-scheduler",
        "containers": [
            {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 2}}}
        ],
    },
}


def commands(word):
    """The block of shell commands in the guide that has the word, each in one string."""
    text = (ROOT / "deploy/README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    found = [block for block in blocks if word in block]
    equal(len(found), 1, word)
    return found[0].replace("\\\n", " ").splitlines()


def adapted(command):
    """For this machine: another folder, address and ports."""
    command = command.replace("192.0.2.10", "127.0.0.1")
    command = command.replace("build/gpu-scheduler", str(PROGRAM))
    for name in ("webhook-certs", "scheduler.kubeconfig"):
        command = command.replace(name, str(FOLDER / name))
    for port, other in PORTS.items():
        command = command.replace(f":{port}", f":{other}")
    return command


@contextlib.contextmanager
def typed(lines, stays):
    """Type them into one shell; the one that stays is ended with the block."""
    FOLDER.mkdir(exist_ok=True)
    parent = os.getpid()
    running, before = [], ""
    try:
        for line in map(adapted, lines):
            if line.startswith("ADDRESS="):
                before = line + "; "
            elif stays in line:
                # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
                with open(FOLDER / f"{stays}.log", "ab") as log:
                    words = before + "exec " + line.rstrip("& ")
                    running.append(
                        subprocess.Popen(
                            ["bash", "-c", words],
                            cwd=ROOT,
                            stderr=log,
                            preexec_fn=lambda: die_with_parent(parent=parent),
                        )
                    )
                if stays == "webhook ":
                    eventually(lambda: answers(int(PORTS["8443"])), "the webhook listens")
            else:
                done = subprocess.run(
                    ["bash", "-c", before + line],
                    cwd=ROOT,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                equal(done.returncode, 0, f"{line}: {done.stdout}{done.stderr}")
        equal(len(running), 1, stays)
        yield
        equal(running[0].poll(), None, (FOLDER / f"{stays}.log").read_text("utf-8")[-2000:])
    finally:
        for each in running:
            each.kill()
            each.wait()


def create_pod():
    """As soon as the API server has heard of the webhook."""
    done = subprocess.run(
        ["kubectl", "create", "-o", "json", "-f", "-"],
        input=json.dumps(POD),
        capture_output=True,
        text=True,
        check=False,
    )
    check(done.returncode == 0 or "failed calling webhook" in done.stderr, done.stderr)
    if done.returncode != 0:
        return None
    made = json.loads(done.stdout)
    if "env" in made["spec"]["containers"][0]:
        return made
    kubectl("delete", "pod", "train", "--grace-period=0", "--force")
    return None


@test
def the_guide_leads_to_a_scheduler_and_a_webhook_that_work_together():
    """With their defaults, on nodes that have no agent."""
    kubectl("apply", "-f", str(ROOT / "deploy/crds"), "-f", str(ROOT / "deploy/rbac"))
    webhook = commands("gpu-scheduler webhook")
    scheduler = commands("gpu-scheduler run")
    # It serves on a port that other tests may have, too.
    scheduler[-1] += " --health-addr :8080"
    with typed(webhook, "webhook "), typed(scheduler, " run "):
        eventually(create_pod, "a pod with its variables")
        pod = wait_bound("train")
        equal(len(pod["metadata"]["annotations"]["elasticgpu.io/container-main"].split(",")), 2)


if __name__ == "__main__":
    sys.exit(main())
