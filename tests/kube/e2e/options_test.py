#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`gpu-scheduler run`: its options and environment, what it serves and logs, how it ends.

cluster: --nodes 2 --gpus 8 --history
"""
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, check_metrics, equal, eventually, main, test  # noqa: E402
from harness.scene import ADMIN, CLAIMS, MERGE, claimed, make_claim  # noqa: E402
from harness.scheduler import (  # noqa: E402
    LOCKS,
    PROGRAM,
    Scheduler,
    create,
    delete_pod,
    entries,
    get_pod,
    gpus_of,
    install_kinds,
    make_pod,
    scheduling,
    wait_bound,
    wait_message,
)

FOLDER = Path(os.environ.get("KUBE_DIR", "/tmp"))
ELECTION = "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler/leases/gpu-scheduler"
HOST = "kubernetes.io/hostname"
CONFIGS = "/apis/topology.scheduler/v1alpha1/namespaces/kube-system"
USAGE = 2
METRICS = {
    "topology_scheduler_latency_seconds": "histogram",
    "topology_scheduler_placement_duration_seconds": "histogram",
    "topology_scheduler_recovery_duration_seconds": "histogram",
    "topology_domain_utilization_ratio": "gauge",
    "topology_scheduler_domain_fragmentation_ratio": "gauge",
    "topology_gpu_allocation_ratio": "gauge",
    "topology_placement_decisions_total": "counter",
    "gpu_scheduler_queue_pods": "gauge",
    "gpu_scheduler_bind_total": "counter",
    "gpu_scheduler_bind_duration_seconds": "histogram",
    "gpu_scheduler_attempts_total": "counter",
    "gpu_scheduler_leader": "gauge",
    "gpu_scheduler_lock_writes_total": "counter",
    "gpu_scheduler_lock_conflicts_total": "counter",
    "gpu_scheduler_locks_held": "gauge",
}


@contextlib.contextmanager
def environment(**values):
    """These variables, for what is started meanwhile."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def run(*words, **env):
    """Run it with just these options, for one that ends by itself: status and what it said."""
    done = subprocess.run(
        [PROGRAM, "run", "--health-addr", "none", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **env},
    )
    return done.returncode, done.stdout + done.stderr


def refused(*words, says, **env):
    """It does not start, and says why in one line."""
    status, text = run(*words, **env)
    equal(status, USAGE, f"status of {words}, which said {text!r}")
    check(says in text and text.count("\n") <= 2, f"{words} said {text!r}")


def config_file(text):
    """A file with these settings."""
    path = FOLDER / "options.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def place(name):
    """A pod that takes a place, and books nothing, on the one card of gpu-0 that is left."""
    claimed(name, "place", nodeSelector={HOST: "gpu-0"})


def leave_one_card():
    """Of gpu-0."""
    if ADMIN.get(f"{CLAIMS}/place").code == 404:
        make_claim("place", {"count": 1, "exclusivity": "Shared"})
    make_pod("cards", gpus=7, nodeSelector={HOST: "gpu-0"})
    wait_bound("cards")


@test
def names_are_those_that_were_given():
    with scheduling():
        make_pod("first", gpus=1)
        make_pod("second", gpus=1, schedulerName="topology-aware-scheduler")
        wait_bound("first")
        wait_bound("second")
    with environment(SCHEDULER_NAME="mine"), scheduling():
        make_pod("default", gpus=1)
        make_pod("mine", gpus=1, schedulerName="mine")
        wait_bound("mine")
        check("nodeName" not in get_pod("default")["spec"], "bound by the default name")
    names = ("--scheduler-name", "one", "--scheduler-name", "two")
    with environment(SCHEDULER_NAME="mine"), scheduling(*names):
        for name in ("mine", "one", "two"):
            make_pod(name, gpus=1, schedulerName=name)
        wait_bound("one")
        wait_bound("two")
        check("nodeName" not in get_pod("mine")["spec"], "bound by the name of the environment")


@test
def locks_of_cards_can_be_read_by_people():
    with scheduling("--locks=gpu"):
        made = make_pod("cards", gpus=2)
        pod = wait_bound("cards")
        node = pod["spec"]["nodeName"]
        for number in gpus_of(pod):
            lease = ADMIN.get(f"{LOCKS}/gpu-{node}-{number}").json
            equal(lease["spec"]["holderIdentity"], made["metadata"]["uid"])
            equal(lease["metadata"]["labels"]["gpu.scheduling/managed"], "true")
            equal(lease["metadata"]["labels"]["gpu.scheduling/pod"], "cards")
        # The other way is refused as long as something is locked.
        other = Scheduler()
        equal(other.wait_end(), 1, "status of one with other locks")
        check("the cluster is locked with --locks=gpu" in other.log(), other.log()[-1500:])
    with scheduling("--locks=node"):
        make_pod("again", gpus=2)
        node = wait_bound("again")["spec"]["nodeName"]
        check(any(name == f"gpus-{node}" for name, _ in entries()), f"{entries()}")


@test
def a_configuration_is_read_again_when_it_changes():
    path = config_file("maxPodsPerSharedGpu: 1\n")
    with scheduling("--config", path) as scheduler:
        leave_one_card()
        place("first")
        wait_bound("first")
        place("second")
        wait_message("second", "Too many pods on shared GPUs")
        config_file("maxPodsPerSharedGpu: none\n")
        eventually(lambda: "the configuration is refused" in scheduler.log(), "it says so")
        check("nodeName" not in get_pod("second")["spec"], "a wrong configuration holds")
        config_file("maxPodsPerSharedGpu: 2\n")
        wait_bound("second")
    refused("--config", config_file("maxPodsPerSharedGpu: none\n"), says="maxPodsPerSharedGpu")
    refused("--config", config_file("maxPodsPerSharedGpus: 1\n"), says="maxPodsPerSharedGpu")
    refused("--config", FOLDER / "missing.yaml", says="missing.yaml")


@test
def the_cluster_has_a_configuration_too():
    name = "topology-scheduler-config"
    metadata = {"name": name, "namespace": "kube-system"}
    with scheduling():
        leave_one_card()
        body = {"metadata": metadata, "data": {"config.yaml": "maxPodsPerSharedGpu: 1\n"}}
        create("/api/v1/namespaces/kube-system/configmaps", body)
        place("first")
        wait_bound("first")
        place("second")
        wait_message("second", "Too many pods on shared GPUs")
        # A custom resource counts more, and of the two kinds the first.
        version = {"apiVersion": "topology.scheduler/v1alpha1", "metadata": metadata}
        body = {**version, "kind": "TopologySchedulerConfig", "spec": {"maxPodsPerSharedGpu": 2}}
        create(f"{CONFIGS}/topologyschedulerconfigs", body)
        wait_bound("second")
        place("third")
        wait_message("third", "Too many pods on shared GPUs")
        body = {**version, "kind": "SchedulerConfig", "spec": {"maxPodsPerSharedGpu": 3}}
        create(f"{CONFIGS}/schedulerconfigs", body)
        wait_bound("third")
        for kind in ("topologyschedulerconfigs", "schedulerconfigs"):
            equal(ADMIN.delete(f"{CONFIGS}/{kind}/{name}").code, 200)
        delete_pod("third")
        delete_pod("second")
        place("fourth")
        wait_message("fourth", "Too many pods on shared GPUs")
        path = f"/api/v1/namespaces/kube-system/configmaps/{name}"
        equal(ADMIN.request("PATCH", path, {"data": {"config.yaml": ""}}, MERGE).code, 200)
        wait_bound("fourth")
        equal(ADMIN.delete(path).code, 200)


@test
def health_and_metrics_are_served():
    with scheduling() as scheduler:
        for path in ("/health", "/ready", "/healthz", "/readyz", "/livez"):
            equal(scheduler.get(path)[0], 200, path)
        equal(scheduler.get("/nothing")[0], 404)
        make_pod("one", gpus=1)
        wait_bound("one")
        make_pod("big", gpus=9)
        wait_message("big", "0/2 nodes are available")
        status, text = scheduler.get("/metrics")
        equal(status, 200)
        for name, kind in METRICS.items():
            check(f"# TYPE {name} {kind}\n" in text, f"no {kind} {name}")
            samples = [line for line in text.splitlines() if line.startswith(name)]
            check(samples, f"no sample of {name}")
        for result in ("scheduled", "unschedulable"):
            check(f'result="{result}"' in text, f"no decision {result}")
        equal(len([l for l in text.splitlines() if l.startswith("# TYPE")]),
              len({l.split()[2] for l in text.splitlines() if l.startswith("# TYPE")}), "types")


def attempts(scheduler, result):
    """So many of its decisions have ended like this."""
    start = f'gpu_scheduler_attempts_total{{result="{result}"}} '
    lines = scheduler.get("/metrics")[1].splitlines()
    return next(int(line[len(start) :]) for line in lines if line.startswith(start))


@test
def a_pod_that_is_wrong_is_an_attempt_too():
    with scheduling() as scheduler:
        equal(attempts(scheduler, "unschedulable"), 0)
        claimed("lost", "nowhere")
        wait_message("lost", "nowhere")
        equal(attempts(scheduler, "unschedulable"), 1)
        equal(attempts(scheduler, "error"), 0)


@test
def metrics_say_how_far_each_kind_is_followed():
    with scheduling() as scheduler:
        before = scheduler.version("nodes")
        check(before is not None, "no version of nodes")
        patch = {"metadata": {"labels": {"example.com/seen": "yes"}}}
        answer = ADMIN.request("PATCH", "/api/v1/nodes/gpu-0", patch, MERGE)
        equal(answer.code, 200, str(answer.text))
        version = int(answer.json["metadata"]["resourceVersion"])
        check(version > before, f"{version} after {before}")
        eventually(lambda: scheduler.version("nodes") >= version, f"nodes are at {version}")


@test
def metrics_can_have_a_port_of_their_own():
    with socket.socket() as each:
        each.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{each.getsockname()[1]}"
    with scheduling("--metrics-addr", address) as scheduler:
        equal(scheduler.get("/metrics")[0], 404, "/metrics beside /healthz")
        scheduler.health = f"http://{address}"
        equal(scheduler.get("/metrics")[0], 200)
        equal(scheduler.get("/healthz")[0], 404, "/healthz beside /metrics")


@test
def metrics_without_health_are_not_dropped_in_silence():
    for role in ("run", "webhook"):
        done = subprocess.run(
            [PROGRAM, role, "--health-addr", "none", "--metrics-addr", "127.0.0.1:0"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        check(done.returncode != 0, f"{role} goes on")
        check("--health-addr none serves no metrics" in done.stderr, done.stderr)


@test
def metrics_are_valid():
    with scheduling() as scheduler:
        # Most of them have values only when something has happened.
        make_pod("fits", gpus=1)
        make_pod("waits", gpus=9)
        make_pod("wrong", annotations={"gpu.scheduling/claim": "nobody"})
        wait_bound("fits")
        wait_message("waits", "2 node(s) had too few GPUs")
        wait_message("wrong", "GpuClaim nobody does not exist")
        check_metrics(scheduler.get("/metrics")[1])


@test
def logs_are_what_was_asked_for():
    with scheduling("--log-format", "json") as scheduler:
        make_pod("one", gpus=1)
        wait_bound("one")
        eventually(lambda: "pod bound" in scheduler.log(), "it logs")
        lines = [json.loads(line) for line in scheduler.log().splitlines()]
        (bound,) = [line for line in lines if line["msg"] == "pod bound"]
        equal((bound["level"], bound["pod"]), ("info", "default/one"))
    refused("--log-format", "xml", says="--log-format is logfmt or json")
    refused("--log-level", "loud", says="error, warn, info or debug")
    refused("--log-level", "info", "--locks", "both", says="locks")
    refused(LOG_LEVEL="loud", says="LOG_LEVEL")
    refused("--no-such-option", says="no-such-option")
    refused("--scheduler-name", "a", "--scheduler-name", "b c", says='--scheduler-name "b c"')
    refused("--lock-namespace", "Locks", says='--lock-namespace "Locks"')
    refused("--leader-elect-namespace", "a.b", says='--leader-elect-namespace "a.b"')


def log_of(level):
    """It runs without options about logs or the cluster, until it has bound a pod; its log."""
    path = FOLDER / f"level-{level}.log"
    words = ["--health-addr", "none", "--leader-elect", "false"]
    variables = {"LOG_LEVEL": level, "KUBECONFIG": str(FOLDER / "scheduler.kubeconfig")}
    with open(path, "w", encoding="utf-8") as log:
        # pylint: disable-next=consider-using-with
        process = subprocess.Popen(
            [PROGRAM, "run", *words], stderr=log, env={**os.environ, **variables}
        )
    try:
        make_pod("quiet", gpus=1)
        wait_bound("quiet")
        delete_pod("quiet")
        eventually(lambda: not entries(), "its lock is gone")
    finally:
        process.terminate()
        status = process.wait(60)
    equal(status, 0, "status")
    return path.read_text(encoding="utf-8")


@test
def the_environment_says_how_much_is_logged_and_where_the_cluster_is():
    equal(log_of("error"), "", "errors")
    text = log_of("info")
    check("level=info" in text and "level=debug" not in text, text)


def holder():
    """Who leads, by the Lease."""
    answer = ADMIN.get(ELECTION)
    return answer.json["spec"].get("holderIdentity") if answer.code == 200 else None


@test
def one_that_is_told_to_stop_hands_the_lease_back():
    for number in (signal.SIGTERM, signal.SIGINT):
        with Scheduler(leader_elect=True) as scheduler:
            eventually(holder, "it leads")
            make_pod("led", gpus=1)
            wait_bound("led")
            scheduler.kill(number)
            equal(scheduler.wait_end(), 0, f"status after {number}")
            check(not holder(), f"{holder()} still holds the lease")
        delete_pod("led")
    with scheduling():
        pass


@test
def what_is_not_said_has_its_default():
    """One leads by election, and port 8080 has health and metrics."""
    words = ["--kubeconfig", FOLDER / "scheduler.kubeconfig"]
    with socket.socket() as each:
        with contextlib.suppress(OSError):  # or somebody else has it
            each.bind(("", 8080))
            each.listen()
        done = subprocess.run(
            [PROGRAM, "run", *map(str, words)], capture_output=True, text=True, check=False,
            timeout=60,
        )
    equal(done.returncode, USAGE, done.stderr)
    check(":8080" in done.stderr and "--health-addr" in done.stderr, done.stderr)
    check("leader_election=gpu-scheduler\n" in done.stderr, done.stderr)


@test
def a_server_that_is_not_there_is_waited_for():
    scheduler = Scheduler("--master", "https://127.0.0.1:1")
    eventually(lambda: scheduler.get("/healthz")[0] == 200, "it is alive")
    status, text = scheduler.get("/readyz")
    equal(status, 503)
    check(text.startswith("not ready: "), text)
    check("the API server https://127.0.0.1:1 cannot be reached, or" in text, text)
    eventually(
        lambda: all(
            scheduler.log().count(f"resource={plural} ") >= 2 for plural in ("pods", "nodes")
        ),
        "every cache has tried again",
    )
    warned = [line for line in scheduler.log().splitlines() if "level=warn" in line]
    equal(len(warned), 1, f"{warned}")
    check("server=https://127.0.0.1:1 account=" in warned[0], warned[0])
    scheduler.stop()


@test
def the_first_line_says_who_works_where_and_how():
    with scheduling("--scheduler-name", "a", "--scheduler-name", "b", leader_elect=True) as one:
        lines = one.log().splitlines()
        first = next(line for line in lines if "level=info" in line)
        config = json.loads((FOLDER / "scheduler.kubeconfig").read_text(encoding="utf-8"))
        server = config["clusters"][0]["cluster"]["server"]
        version = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True)
        for words in (
            "msg=starting",
            f"version={version.stdout.split()[1]} ",
            f"server={server} ",
            "scheduler.kubeconfig",
            "scheduler_names=a,b ",
            "locks=node lock_namespace=gpu-scheduler-locks leader_election=gpu-scheduler",
        ):
            check(words in first, f"no {words} in {first}")
        eventually(lambda: f'msg="this one leads" identity={holder()}' in one.log(), "it leads")
        check(f"identity={holder()} " in first, first)
        with Scheduler(leader_elect=True) as other:
            words = f'msg="another one leads, this one waits to take over" leader={holder()} '
            eventually(lambda: words in other.log(), "who waits says so")
            check("this one leads" not in other.log(), other.log())


@test
def a_kubeconfig_that_cannot_be_is_told():
    wrong = FOLDER / "wrong.kubeconfig"
    wrong.write_text("clusters: [\n", encoding="utf-8")
    empty = FOLDER / "empty.kubeconfig"
    empty.write_text("apiVersion: v1\nkind: Config\n", encoding="utf-8")
    refused("--kubeconfig", FOLDER / "missing", says="missing")
    refused("--kubeconfig", wrong, says="wrong.kubeconfig")
    refused("--kubeconfig", empty, says="empty.kubeconfig")


@test
def the_master_is_reached_whatever_the_kubeconfig_says():
    config = json.loads((FOLDER / "scheduler.kubeconfig").read_text(encoding="utf-8"))
    server = config["clusters"][0]["cluster"]["server"]
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    path = FOLDER / "elsewhere.kubeconfig"
    path.write_text(json.dumps(config), encoding="utf-8")
    with scheduling("--master", server, kubeconfig=path):
        make_pod("one", gpus=1)
        wait_bound("one")


if __name__ == "__main__":
    sys.exit(main(install_kinds))
