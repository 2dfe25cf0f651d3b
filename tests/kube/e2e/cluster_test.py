#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/kube/cluster itself: several at once, quick to start, and nothing left behind.

cluster: none
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, main, test  # noqa: E402
from harness.client import Client  # noqa: E402

KEPT = re.compile(r"the logs are in (\S+)")


def launch():
    """Begin to start a cluster that this process holds by a pipe."""
    # pylint: disable=consider-using-with
    return subprocess.Popen(
        [HERE / "cluster", "up"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_ready(process):
    """What the cluster says when it is ready."""
    line = process.stdout.readline()
    check(line, "the cluster did not start")
    return json.loads(line)


def programs(info):
    """The processes that work in the folder of the cluster."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        if any(info["KUBE_DIR"] in word for word in words[1:]):
            found.append(Path(words[0]).name)
    return sorted(found)


def finish(process, say):
    """Let the cluster go with these last words; its errors and messages."""
    _, errors = process.communicate(say)
    return errors


@test
def two_clusters_run_at_once_and_know_nothing_of_each_other():
    start = time.monotonic()
    first, second = launch(), launch()
    infos = [wait_ready(first), wait_ready(second)]
    seconds = time.monotonic() - start
    admins = [Client(info["KUBECONFIG"]) for info in infos]
    space = {"metadata": {"name": "only-here"}}
    equal(admins[0].post("/api/v1/namespaces", space).code, 201)
    equal(admins[1].get("/api/v1/namespaces/only-here").code, 404)
    for process, info in zip((first, second), infos):
        equal(programs(info), ["etcd", "kube-apiserver"])
        finish(process, "done\n")
        equal(programs(info), [])
        check(not os.path.exists(info["KUBE_DIR"]), "its folder is still there")
    print(f"two clusters at once were ready in {seconds:.1f} s", file=sys.stderr)


@test
def nothing_outlives_a_cluster_that_is_killed():
    process = launch()
    info = wait_ready(process)
    equal(programs(info), ["etcd", "kube-apiserver"])
    process.kill()
    process.communicate()
    eventually(lambda: not programs(info), "the programs end")
    shutil.rmtree(info["KUBE_DIR"])


@test
def a_caller_that_crashed_leaves_the_logs_and_nothing_else():
    process = launch()
    info = wait_ready(process)
    match = KEPT.search(finish(process, ""))
    check(match, "it does not say where the logs are")
    folder = Path(match.group(1))
    equal(programs(info), [])
    check((folder / "audit.log").stat().st_size > 0, "the audit log is empty")
    equal([path.name for path in folder.iterdir() if path.is_dir()], [], "folders kept")
    equal(list(folder.glob("*.kubeconfig")), [], "credentials kept")
    shutil.rmtree(folder)


@test
def a_failed_command_gives_its_status_and_keeps_the_logs():
    command = [HERE / "cluster", "run", "--", "sh", "-c", "kubectl get namespaces; exit 3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    equal(done.returncode, 3, done.stderr)
    check("gpu-scheduler-locks" in done.stdout, f"kubectl printed {done.stdout}")
    match = KEPT.search(done.stderr)
    check(match, done.stderr)
    check(re.search(r"ready in ([\d.]+) s", done.stderr), done.stderr)
    shutil.rmtree(match.group(1))


@test
def a_command_that_is_not_there_is_a_sentence():
    command = [HERE / "cluster", "run", "--", "/dev/null/command"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    equal(done.returncode, 1, done.stderr)
    check("cluster: /dev/null/command: Not a directory" in done.stderr, done.stderr)
    shutil.rmtree(KEPT.search(done.stderr).group(1))


@test
def a_caller_of_run_that_dies_takes_the_cluster_with_it():
    # The shell in between is the caller; it stays to be killed.
    script = f"'{HERE / 'cluster'}' run -- sh -c 'echo $KUBE_DIR; sleep 600' 2>/dev/null; true"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True) as caller:
        info = {"KUBE_DIR": caller.stdout.readline().strip()}
        equal(programs(info), ["etcd", "kube-apiserver"])
        caller.send_signal(signal.SIGKILL)
    eventually(lambda: not programs(info), "the programs end")
    shutil.rmtree(info["KUBE_DIR"], ignore_errors=True)


@test
def what_a_command_leaves_running_is_ended():
    script = "sleep 600 >/dev/null & echo $!; setsid sleep 600 >/dev/null & echo $!"
    command = [HERE / "cluster", "run", "--", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    equal(done.returncode, 0, done.stderr)
    left = [pid for pid in done.stdout.split() if os.path.exists(f"/proc/{pid}")]
    equal(left, [], "processes left")


if __name__ == "__main__":
    sys.exit(main())
