#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where tests/kube/assets looks, and what it says when there is nothing.

cluster: none
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))
# pylint: disable=wrong-import-position
from harness.check import check, equal, main, test  # noqa: E402

OWN = ("KUBE_ASSETS", "KUBEBUILDER_ASSETS", "KUBE_VERSION")


def fake(folder, version, *names):
    """A folder with programs that only know their version."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or ("etcd", "kube-apiserver", "kubectl"):
        (folder / name).write_text(f"#!/bin/sh\necho Kubernetes v{version}.1\n", encoding="utf-8")
        (folder / name).chmod(0o755)


def assets(cache, *words, **variables):
    """Run it without Go, with this cache and these variables."""
    env = {name: value for name, value in os.environ.items() if name not in OWN}
    env.update(variables, GO="/nonexistent/go", XDG_CACHE_HOME=str(cache))
    command = [HERE / "assets", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@test
def a_folder_of_ones_own_comes_first():
    with tempfile.TemporaryDirectory() as folder:
        mine, envtest = Path(folder, "mine"), Path(folder, "envtest")
        fake(mine, "1.30")
        fake(envtest, "1.29")
        both = {"KUBE_ASSETS": str(mine), "KUBEBUILDER_ASSETS": str(envtest)}
        equal(assets(folder, **both).stdout.strip(), str(mine))
        del both["KUBE_ASSETS"]
        equal(assets(folder, **both).stdout.strip(), str(envtest))


@test
def a_folder_of_another_release_is_passed_over():
    with tempfile.TemporaryDirectory() as folder:
        mine, envtest = Path(folder, "mine"), Path(folder, "envtest")
        fake(mine, "1.30")
        fake(envtest, "1.29")
        both = {"KUBE_ASSETS": str(mine), "KUBEBUILDER_ASSETS": str(envtest)}
        equal(assets(folder, "1.29", **both).stdout.strip(), str(envtest))
        equal(assets(folder, KUBE_VERSION="1.30", **both).stdout.strip(), str(mine))
        done = assets(folder, "1.28", **both)
        check(done.returncode and "not pinned" in done.stderr, done.stderr)


@test
def the_cache_comes_next():
    pinned = sorted((HERE / "tools").glob("[0-9]*/go.mod"))[-1]
    words = pinned.read_text(encoding="utf-8").split()
    version = words[words.index("k8s.io/kubernetes") + 1]
    with tempfile.TemporaryDirectory() as folder:
        cached = Path(folder, "gpu-scheduler", "kube", version)
        fake(cached, pinned.parent.name)
        equal(assets(folder, pinned.parent.name).stdout.strip(), str(cached))


@test
def helm_is_beside_them_or_has_a_folder_of_its_own():
    words = (HERE / "tools/helm/go.mod").read_text(encoding="utf-8").split()
    version = words[words.index("helm.sh/helm/v3") + 1]
    with tempfile.TemporaryDirectory() as folder:
        mine = Path(folder, "mine")
        fake(mine, "1.30")
        done = assets(folder, "helm", KUBE_ASSETS=str(mine))
        check(done.returncode == 1 and "a folder with helm, or" in done.stderr, done.stderr)
        cached = Path(folder, "gpu-scheduler", "kube", f"helm-{version}")
        fake(cached, "1.30", "helm")
        equal(assets(folder, "helm", KUBE_ASSETS=str(mine)).stdout.strip(), str(cached))
        fake(mine, "1.30", "helm")
        equal(assets(folder, "helm", KUBE_ASSETS=str(mine)).stdout.strip(), str(mine))


@test
def without_go_one_sentence_says_what_is_missing():
    with tempfile.TemporaryDirectory() as folder:
        done = assets(folder)
        equal(done.returncode, 1)
        equal(done.stdout, "")
        equal(done.stderr.count("\n"), 1, done.stderr)
        check("KUBE_ASSETS" in done.stderr and "Go" in done.stderr, done.stderr)


@test
def a_folder_without_programs_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        done = assets(folder, KUBE_ASSETS=folder)
        equal(done.returncode, 1)
        check("has no etcd" in done.stderr, done.stderr)


if __name__ == "__main__":
    sys.exit(main())
