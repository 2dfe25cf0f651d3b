#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fault proxy, as clients see it: HTTP/1.1 and HTTP/2, every fault, nothing else.

Clients are curl and Python, never ours: the proxy is what ours is tested with.

cluster: --history
"""
import base64
import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.check import check, equal, eventually, kubectl, main, test  # noqa: E402
from harness.client import as_identity  # noqa: E402
from harness.proxy import FaultProxy, ProxyError, effects, faults  # noqa: E402

ADMIN = as_identity("admin")
UPSTREAM = os.environ["KUBECONFIG"]
SPACE = "/api/v1/namespaces/proxied/configmaps"
FEW = "/api/v1/namespaces/few/configmaps"
WATCH_FEW = f"{FEW}?watch=1&resourceVersion=0"
FEW_COUNT = 6
BIG_COUNT = 40
VERSIONS = ("1.1", "2")


def config_map(name, data=None, **metadata):
    """A ConfigMap as it is sent."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata} if name else metadata,
        "data": data or {},
    }


def prepare():
    """Six small objects that stay as they are, and four megabytes of great ones."""
    for space in ("proxied", "few", "big"):
        kubectl("create", "namespace", space)
    for number in range(FEW_COUNT):
        equal(ADMIN.post(FEW, config_map(f"few-{number}", {"n": str(number)})).code, 201)
    for number in range(BIG_COUNT):
        data = {"text": f"{number} {'x' * 100000}"}
        made = ADMIN.post("/api/v1/namespaces/big/configmaps", config_map(f"big-{number}", data))
        equal(made.code, 201)


def start(script="", **options):
    """A proxy in front of the cluster, as its administrator."""
    return FaultProxy(UPSTREAM, script, **options)


class Reply:
    """What curl has seen."""

    def __init__(self, done):
        self.exit = done.returncode
        self.body = done.stdout
        self.errors = done.stderr.decode()
        facts = self.errors.rpartition("FACTS ")[2].split()
        self.code, self.version, self.connects = int(facts[0]), facts[1], int(facts[2])
        self.seconds = float(facts[3])
        self.retry_after = facts[4] if len(facts) > 4 else None

    @property
    def json(self):
        """The body."""
        return json.loads(self.body)

    @property
    def lines(self):
        """Whole lines of the body, and what comes after the last of them."""
        *lines, rest = self.body.split(b"\n")
        return [json.loads(line) for line in lines], rest

    def __str__(self):
        return f"curl {self.exit}, {self.code}: {self.body[:200]} {self.errors}"


FACTS = (
    "%{stderr}FACTS %{http_code} %{http_version} %{num_connects} %{time_total} "
    "%header{retry-after}\\n"
)


def curl_command(proxy, version, paths, *options, token=None):
    """The words of a call of curl; no retry, no configuration file."""
    return [
        *("curl", "-q", "-sS", "-N", "-A", "test", f"--http{version}", "--cacert", str(proxy.authority)),
        *("--max-time", "60", "-w", FACTS, "-H", f"Authorization: Bearer {token or proxy.token}"),
        *options,
        *(proxy.server + path for path in paths.split()),
    ]


def curl(proxy, version, paths, *options, token=None, stdin=None):
    """One request, or several, one after the other on a connection."""
    command = curl_command(proxy, version, paths, *options, token=token)
    done = subprocess.run(command, input=stdin, capture_output=True, check=False)
    return Reply(done)


def send(proxy, version, method, path, thing, *options):
    """The same with a body."""
    return curl(
        proxy,
        version,
        path,
        *("-X", method, "-H", "Content-Type: application/json", "--data-binary", "@-"),
        *options,
        stdin=json.dumps(thing).encode(),
    )


def names(lines):
    """Of the objects of events."""
    return [event["object"]["metadata"]["name"] for event in lines]


def made_by(prefix):
    """How many objects of the namespace have a name that begins so, asked of the server."""
    items = ADMIN.get(SPACE).json["items"]
    return sum(item["metadata"]["name"].startswith(prefix) for item in items)


def connection_of(proxy):
    """HTTP/1.1 with Python, which keeps the connection."""
    url = urllib.parse.urlsplit(proxy.server)
    return http.client.HTTPSConnection(
        url.hostname, url.port, timeout=60, context=proxy.context()
    )


def get(connection, proxy, path, **headers):
    """Status and body."""
    connection.request("GET", path, headers={"Authorization": f"Bearer {proxy.token}", **headers})
    reply = connection.getresponse()
    return reply.status, reply.read()


def raw(proxy):
    """A TLS connection without HTTP on it yet."""
    url = urllib.parse.urlsplit(proxy.server)
    plain = socket.create_connection((url.hostname, url.port), timeout=60)
    return proxy.context().wrap_socket(plain, server_hostname=url.hostname)


def head_of(proxy, path, method="GET", more=""):
    """A request of HTTP/1.1 in bytes, up to its body."""
    return (
        f"{method} {path} HTTP/1.1\r\nHost: proxy\r\nAuthorization: Bearer {proxy.token}\r\n"
        f"{more}\r\n"
    ).encode()


def at_version(path):
    """The list as of now and for ever: its bytes do not change with other writes."""
    now = ADMIN.get(f"{path}?limit=1").json["metadata"]["resourceVersion"]
    return f"{path}?resourceVersion={now}&resourceVersionMatch=Exact"


def direct(path):
    """The server's own bytes."""
    ADMIN.connection.request("GET", path, headers={"Accept": "*/*"})
    return ADMIN.connection.getresponse().read()


@test
def a_thousand_requests_pass_unchanged():
    paths = [at_version(FEW), "/version", "/api/v1/namespaces/few"]
    paths += [f"{FEW}/few-{number}" for number in range(FEW_COUNT)]
    wanted = {path: direct(path) for path in paths}
    with start() as proxy, tempfile.TemporaryDirectory() as folder:
        connection = connection_of(proxy)
        for number in range(500):
            path = paths[number % len(paths)]
            check(get(connection, proxy, path) == (200, wanted[path]), f"HTTP/1.1 {path}")
        lines = [f"url = {proxy.server}{paths[number % len(paths)]}\noutput = {folder}/{number}"
                 for number in range(500)]
        Path(folder, "config").write_text("\n".join(lines), encoding="utf-8")
        done = subprocess.run(
            curl_command(proxy, "2", "", "--parallel", "--config", f"{folder}/config"),
            capture_output=True,
            check=False,
        )
        equal(done.returncode, 0, done.stderr[-300:])
        for number in range(500):
            path = paths[number % len(paths)]
            body = Path(folder, str(number)).read_bytes()
            check(body == wanted[path], f"HTTP/2 {path}: {body[:200]}")
    equal(proxy.stats["faults"], {})
    equal(proxy.stats["requests"], 1000)


@test
def lists_of_megabytes_pass_unchanged_also_compressed():
    path = at_version("/api/v1/namespaces/big/configmaps")
    wanted = direct(path)
    check(len(wanted) > 4e6, "the list is small")
    with start() as proxy:
        for version in VERSIONS:
            reply = curl(proxy, version, path)
            check(reply.body == wanted, f"HTTP/{version}: {len(reply.body)} bytes")
            reply = curl(proxy, version, path, "-H", "Accept-Encoding: gzip")
            equal(reply.body[:2], b"\x1f\x8b", "the magic of gzip")
            reply = curl(proxy, version, path, "--compressed")
            check(reply.body == wanted, f"HTTP/{version}: {len(reply.body)} bytes, compressed")


@test
def bodies_go_up_in_any_form():
    text = "y" * 900000
    with start() as proxy:
        for version in VERSIONS:
            for form in ([], ["-H", "Transfer-Encoding: chunked"], ["-H", "Expect: 100-continue"]):
                if form and version == "2" and "Transfer" in form[1]:
                    continue
                thing = config_map(None, {"text": text}, generateName=f"up-{version[0]}-")
                reply = send(proxy, version, "POST", SPACE, thing, *form)
                equal(reply.code, 201, f"HTTP/{version} {form}: {reply}")
                check(reply.json["data"]["text"] == text, "not what was sent")
        for version in VERSIONS:
            equal(curl(proxy, version, "/version", "--head").code, 405, "a method to refuse")
        equal(curl(proxy, "1.1", f"{SPACE}/none").code, 404)
    equal(made_by("up-"), 5)


@test
def a_watch_passes_and_goes_on():
    with start() as proxy:
        for version in VERSIONS:
            command = curl_command(proxy, version, WATCH_FEW)
            with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
                first = [json.loads(process.stdout.readline()) for _ in range(FEW_COUNT)]
                equal(sorted(names(first)), [f"few-{n}" for n in range(FEW_COUNT)])
                ADMIN.post(FEW, config_map("more"))
                event = json.loads(process.stdout.readline())
                equal((event["type"], event["object"]["metadata"]["name"]), ("ADDED", "more"))
                ADMIN.delete(f"{FEW}/more")
                equal(json.loads(process.stdout.readline())["type"], "DELETED")
                process.kill()
        eventually(lambda: proxy.control("stats")["connections"] == 1, "the clients are gone")


@test
def a_client_is_who_its_authorization_says():
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    kubectl("-n", "few", "create", "serviceaccount", "robot")
    token = kubectl("-n", "few", "create", "token", "robot").strip()

    def who(version, *options, token=None):
        words = ["-H", "Content-Type: application/json", "--data-binary", json.dumps(review)]
        reply = curl(proxy, version, path, *words, *options, token=token)
        return reply.json["status"]["userInfo"]["username"] if reply.code == 201 else reply.code

    with start() as proxy:
        for version in VERSIONS:
            equal(who(version), "admin")
            equal(who(version, "-H", "Impersonate-User: bob"), "bob")
            equal(who(version, token=token), "system:serviceaccount:few:robot")
            equal(who(version, token="expired"), 401)
        equal(proxy.control("stats")["requests"], 8)
        with raw(proxy) as connection:
            connection.sendall(b"GET /api HTTP/1.1\r\nHost: proxy\r\n\r\n")
            check(connection.recv(100).startswith(b"HTTP/1.1 401 "), "nobody may pass")
        equal(proxy.control("stats")["requests"], 8)


@test
def after_some_events_a_watch_is_cut():
    with start("on verb=watch resource=configmaps cut after=events:3") as proxy:
        for version in VERSIONS:
            reply = curl(proxy, version, WATCH_FEW)
            check(reply.exit in (16, 18, 56, 92), str(reply))
            lines, rest = reply.lines
            equal((reply.code, len(lines), rest), (200, 3, b""))
            equal(curl(proxy, version, FEW).exit, 0)
    equal(proxy.stats["faults"], {"cut": 2})
    for effect in effects(proxy.lines, "cut"):
        equal(effect["events"], 3)


@test
def a_watch_is_cut_inside_an_event():
    with start("on verb=watch cut mid-event after=events:2") as proxy:
        for version in VERSIONS:
            reply = curl(proxy, version, WATCH_FEW)
            check(reply.exit != 0, str(reply))
            lines, rest = reply.lines
            equal(len(lines), 2)
            check(rest.startswith(b'{"type"'[: len(rest)]) and rest, f"rest: {rest}")
            whole = json.dumps(json.loads(ADMIN.get(f"{FEW}/few-0").text))
            check(len(rest) < len(whole) + 100, "more than an event")
        *_, effect = effects(proxy.log(), "cut")
        equal(effect["bytes"], len(reply.body), "bytes of the log")


@test
def a_write_that_is_cut_after_it_was_done_is_there_once():
    with start("on method=POST,PUT cut after-write") as proxy:
        for version in VERSIONS:
            prefix = f"after-{version[0]}-"
            reply = send(proxy, version, "POST", SPACE, config_map(None, generateName=prefix))
            check(reply.exit != 0 and reply.code == 0, str(reply))
            equal(made_by(prefix), 1, "objects")
        made = ADMIN.post(SPACE, config_map("updated", {"n": "1"})).json
        reply = send(proxy, "2", "PUT", f"{SPACE}/updated", {**made, "data": {"n": "2"}})
        check(reply.exit != 0 and reply.code == 0, str(reply))
        equal(ADMIN.get(f"{SPACE}/updated").json["data"], {"n": "2"})
    equal(proxy.stats, {"on": True, "requests": 3, "connections": 0, "faults": {"cut": 3}})


@test
def a_write_that_is_cut_before_never_happens():
    with start("on method=POST path=*/configmaps every=2 cut before-write") as proxy:
        for version in VERSIONS:
            codes = []
            for number in range(4):
                thing = config_map(f"before-{version[0]}-{number}")
                codes.append(send(proxy, version, "POST", SPACE, thing).code)
            equal(codes, [201, 0, 201, 0])
            equal(made_by(f"before-{version[0]}-"), 2)


@test
def answers_are_those_of_the_api_server():
    rows = [
        ("409", 409, "Conflict"),
        ("410", 410, "Expired"),
        ("429 retry-after=1", 429, "TooManyRequests"),
        ("500", 500, "InternalError"),
        ("503 retry-after=2", 503, "ServiceUnavailable"),
    ]
    for words, code, reason in rows:
        with start(f"on any answer={words}") as proxy:
            for version in VERSIONS:
                reply = send(proxy, version, "POST", SPACE, config_map("answered"))
                equal((reply.exit, reply.code), (0, code), str(reply))
                status = reply.json
                equal((status["kind"], status["code"], status["reason"]), ("Status", code, reason))
                after = words.rpartition("=")[2] if "=" in words else None
                equal(reply.retry_after, after, "Retry-After")
                if after:
                    equal(status["details"]["retryAfterSeconds"], int(after))
    equal(made_by("answered"), 0)


@test
def an_expired_watch_says_so_in_an_event_and_a_strange_proxy_in_html():
    script = "on verb=watch answer=410-event\non verb=list answer=502-html"
    with start(script) as proxy:
        for version in VERSIONS:
            reply = curl(proxy, version, WATCH_FEW)
            lines, rest = reply.lines
            equal((reply.code, len(lines), rest), (200, 1, b""))
            equal(lines[0]["type"], "ERROR")
            equal((lines[0]["object"]["code"], lines[0]["object"]["reason"]), (410, "Expired"))
            reply = curl(proxy, version, FEW)
            equal(reply.code, 502)
            check(reply.body.startswith(b"<html>"), f"{reply.body}")


@test
def silence_holds_and_then_goes_on_without_loss():
    with start("on verb=watch silence=1500ms after=events:2") as proxy:
        for version in VERSIONS:
            with subprocess.Popen(
                curl_command(proxy, version, WATCH_FEW), stdout=subprocess.PIPE
            ) as process:
                seen = [json.loads(process.stdout.readline()) for _ in range(2)]
                for number in range(20):
                    ADMIN.post(FEW, config_map(f"silent-{number}"))
                seen += [json.loads(process.stdout.readline()) for _ in range(FEW_COUNT + 18)]
                process.kill()
            equal(sorted(names(seen[:FEW_COUNT])), [f"few-{n}" for n in range(FEW_COUNT)])
            equal(names(seen[FEW_COUNT:]), [f"silent-{n}" for n in range(20)])
            for number in range(20):
                ADMIN.delete(f"{FEW}/silent-{number}")
    silent, resumed = effects(proxy.lines, "silent"), effects(proxy.lines, "resumed")
    equal((len(silent), len(resumed)), (2, 2))
    for begin, end in zip(silent, resumed):
        equal((begin["events"], end["events"], end["bytes"]), (2, 2, begin["bytes"]))
        check(end["at_ms"] - begin["at_ms"] >= 1500, f"{begin} {end}")


def silent_for_ever(proxy, version):
    """A watch that has its head and gets nothing else."""
    with tempfile.NamedTemporaryFile() as head:
        command = curl_command(proxy, version, WATCH_FEW, "-D", head.name)
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            eventually(lambda: b" 200" in Path(head.name).read_bytes(), "the head of the watch")
            os.set_blocking(process.stdout.fileno(), False)
            time.sleep(1)
            equal(process.stdout.read(), None, "bytes of a silent watch")
            process.kill()


@test
def silence_may_last_for_ever_or_take_the_connection_with_it():
    script = """
        on verb=watch silence=forever
        on resource=configmaps name=few-1 silence=1s
        on resource=configmaps name=few-2 silence=1s of=connection
    """
    with start(script) as proxy:
        for version in VERSIONS:
            silent_for_ever(proxy, version)
            reply = curl(proxy, version, f"{FEW}/few-1")
            check(reply.code == 200 and reply.seconds >= 0.99, str(reply))
            # Two streams of one connection: both wait.
            reply = curl(proxy, version, f"{FEW}/few-2 {FEW}/few-3", "--parallel")
            equal(reply.exit, 0, str(reply))
            seconds = [float(each) for each in re.findall(r"FACTS \S+ \S+ \S+ (\S+)", reply.errors)]
            check(max(seconds) >= 0.99 and (version == "1.1" or min(seconds) >= 0.99), f"{seconds}")


@test
def a_reset_is_a_reset():
    with start("on resource=configmaps reset") as proxy:
        for version in VERSIONS:
            reply = curl(proxy, version, FEW)
            # Sending or receiving, whichever finds out first.
            check(reply.exit in (55, 56), str(reply))
            check("Connection reset by peer" in reply.errors, str(reply))
        equal(curl(proxy, "2", "/version").code, 200)


@test
def a_connection_is_given_up_in_good_order():
    with start("on name=few-1 goaway\non name=few-2 nth=1 goaway refuse") as proxy:
        for version in VERSIONS:
            reply = curl(proxy, version, f"{FEW}/few-0 {FEW}/few-0")
            equal((reply.exit, reply.code, reply.connects), (0, 200, 0), "kept")
            reply = curl(proxy, version, f"{FEW}/few-1 {FEW}/few-0")
            equal((reply.exit, reply.code, reply.connects), (0, 200, 1), "given up")
        token = f"Authorization: Bearer {proxy.token}"
        command = ["nghttp", "-v", "-H", token, f"{proxy.server}{FEW}/few-2"]
        frames = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        for wanted in ("REFUSED_STREAM(0x07)", "recv GOAWAY", "error_code=NO_ERROR"):
            check(wanted in frames, f"no {wanted} in {frames}")


@test
def half_a_body_ends_the_stream_and_not_its_connection():
    path = "/api/v1/namespaces/big/configmaps/big-1"
    wanted = direct(path)
    with start("on name=big-1 half-body\non verb=list namespace=big half-body") as proxy:
        for version in VERSIONS:
            reply = curl(proxy, version, path)
            check(reply.exit in (18, 56, 92), str(reply.exit))
            check(0 < len(reply.body) < len(wanted), f"{len(reply.body)} bytes")
            check(wanted.startswith(reply.body), "other bytes")
        reply = curl(proxy, "2", f"{path} {FEW}/few-0")
        equal((reply.code, reply.connects), (200, 0), "the connection lives on")
        reply = curl(proxy, "2", "/api/v1/namespaces/big/configmaps")
        check(reply.exit == 92 and 0 < len(reply.body) < 1 << 20, f"{len(reply.body)} bytes")


@test
def after_some_bytes_an_answer_is_cut():
    path = "/api/v1/namespaces/big/configmaps/big-2"
    with start("on name=big-2 cut after=bytes:5000") as proxy:
        for version in VERSIONS:
            reply = curl(proxy, version, path)
            check(reply.exit != 0, str(reply.exit))
            equal(len(reply.body), 5000)
            check(reply.body == direct(path)[:5000], "other bytes")


@test
def a_slow_answer_is_whole():
    path = "/api/v1/namespaces/big/configmaps/big-3"
    wanted = direct(path)
    with start("on name=big-3 slow=50000/s") as proxy:
        for version in VERSIONS:
            reply = curl(proxy, version, path)
            check(reply.body == wanted, f"{len(reply.body)} of {len(wanted)} bytes")
            check(reply.seconds >= 0.9 * len(wanted) / 50000, f"{reply.seconds} s")


@test
def a_held_request_comes_after_a_later_one():
    with start("on method=POST path=*/configmaps nth=1 hold until=next for=60s") as proxy:
        answers = {}

        def make(name):
            answers[name] = send(proxy, "2", "POST", SPACE, config_map(name))

        first = threading.Thread(target=make, args=("held-first",))
        first.start()
        eventually(lambda: proxy.control("stats")["faults"], "the first request is there")
        make("held-second")
        first.join()
        versions = [
            int(answers[name].json["metadata"]["resourceVersion"])
            for name in ("held-first", "held-second")
        ]
        check(versions[0] > versions[1], f"{versions}")
    equal(len(effects(proxy.lines, "released")), 1)
    with start("on name=few-0 hold until=next for=200ms") as proxy:
        equal(curl(proxy, "2", f"{FEW}/few-0").code, 200, "a hold without a next one")
    equal(len(effects(proxy.lines, "expired")), 1)


@test
def a_delay_goes_with_another_fault():
    with start("on any delay=300..400ms\non name=few-1 answer=503") as proxy:
        for version in VERSIONS:
            reply = curl(proxy, version, f"{FEW}/few-0")
            check(reply.code == 200 and reply.seconds >= 0.29, str(reply))
            reply = curl(proxy, version, f"{FEW}/few-1")
            check(reply.code == 503 and reply.seconds >= 0.29, str(reply))
    equal(proxy.stats["faults"], {"delay": 4, "answer": 2})


@test
def faults_can_be_switched_off_limited_and_stopped():
    with start("on name=few-* answer=500\nlimit max=3") as proxy:
        connection = connection_of(proxy)

        def codes(count):
            return [get(connection, proxy, f"{FEW}/few-{n}")[0] for n in range(count)]

        equal(codes(1), [500])
        equal(proxy.control("off")["on"], False)
        equal(codes(3), [200] * 3)
        proxy.process.send_signal(signal.SIGUSR1)
        eventually(lambda: proxy.control("stats")["on"], "on again by a signal")
        equal(codes(5), [500, 500, 200, 200, 200])
    with start("on name=few-2 stop\non name=few-* answer=500") as proxy:
        connection = connection_of(proxy)
        equal(codes(5), [500, 500, 200, 200, 200])
        proxy.control("on")
        equal(codes(2), [500, 500])


LOTTERY = """
    on verb=get p=0.2 answer=503
    on verb=get p=0.1 cut before-write
    on verb=get p=0.1 cut after=bytes:10..300
    on verb=get p=0.3 delay=0..3ms
"""


def play(proxy, parallel):
    """30 requests for each of 6 identities, in turn or in a race; none is tried again."""
    context = proxy.context()

    def ask(number):
        url = urllib.parse.urlsplit(proxy.server)
        connection = http.client.HTTPSConnection(url.hostname, url.port, context=context)
        try:
            get(connection, proxy, f"{FEW}/few-{number}")
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()

    def ask_all(number):
        for turn in range(30):
            if turn % 3 == 0:
                curl(proxy, "2", f"{FEW}/few-{number}")
            else:
                ask(number)

    if parallel:
        threads = [threading.Thread(target=ask_all, args=(n,)) for n in range(FEW_COUNT)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    else:
        for number in list(range(FEW_COUNT)) * 30:
            ask(number)
    return faults(proxy.log())


@test
def the_same_seed_gives_the_same_faults_however_requests_race():
    runs = []
    for seed, parallel in ((7, False), (7, True), (8, False)):
        with start(LOTTERY, seed=seed) as proxy:
            runs.append(play(proxy, parallel))
    check(len(runs[0]) > 60, f"only {len(runs[0])} faults")
    check(runs[1] == runs[0], f"in a race: {sorted(set(runs[1]) ^ set(runs[0]))[:5]}")
    check(runs[2] != runs[0], "another seed gives the same")


@test
def a_log_is_replayed():
    with start(LOTTERY, seed=9) as proxy:
        wanted = play(proxy, False)
    with start("", seed=1, replay=proxy.lines) as proxy:
        again = play(proxy, True)
        check(again == wanted, f"replayed: {sorted(set(again) ^ set(wanted))[:5]}")
        equal(curl(proxy, "2", FEW).code, 200)


@test
def scripts_are_explained_to_who_writes_them():
    rows = [
        ("on any", "script:1: on which requests, but not what"),
        ("\non any cutt", 'script:2: unknown word "cutt": did you mean "cut"?'),
        ("on any cut", "script:1: cut when? write cut before-write"),
        ("on verb=wach reset", 'there is no verb "wach": write "watch"'),
        ("on p=2 reset", 'p does not take "2": write p=0.02'),
        ("on any delay=5", "write delay=200ms or delay=5..200ms"),
        ("on any reset delay=5ms", "two faults, reset and delay: write two rules"),
        ("when any reset", 'a line begins with "on" or "limit"'),
        ("limit p=1", "p is no limit"),
    ]
    for script, wanted in rows:
        try:
            with start(script):
                check(False, f"started: {script}")
        except ProxyError as error:
            check(wanted in str(error), f"{script!r}: {error}")


def leave_politely(connection):
    """FIN."""
    connection.close()


def leave_rudely(connection):
    """RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def leave_in_every_state(proxy, leave):
    """Connections that end before TLS, before a request, inside one, and inside a reply."""
    url = urllib.parse.urlsplit(proxy.server)
    leave(socket.create_connection((url.hostname, url.port)))
    plain = socket.create_connection((url.hostname, url.port))
    plain.sendall(b"\x16\x03\x01\x02\x00\x01")
    leave(plain)
    big = "/api/v1/namespaces/big/configmaps"
    sent = [
        b"",
        b"GET / HTT",
        head_of(proxy, FEW, "POST", "Content-Length: 100\r\n") + b"{",
        head_of(proxy, FEW, "POST", "Transfer-Encoding: chunked\r\n") + b"5\r\nab",
        *(head_of(proxy, f"{FEW}/few-{number}") for number in range(FEW_COUNT)),
        head_of(proxy, f"{FEW}/few-3", "PUT", "Content-Length: 100000\r\n") + b"{" * 50000,
        head_of(proxy, WATCH_FEW),
        head_of(proxy, big),
        head_of(proxy, big) * 3,
        b"garbage\r\n\r\n",
        b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
    ]
    for read in (0, 100):
        for bytes_sent in sent:
            with raw(proxy) as connection:
                connection.sendall(bytes_sent)
                if read and bytes_sent.endswith(b"\r\n\r\n"):
                    connection.settimeout(0.1)
                    try:
                        connection.recv(read)
                    except OSError:
                        pass
                leave(connection)
    for number in range(FEW_COUNT):
        # Ended by curl's own time limit, in the middle of HTTP/2.
        curl(proxy, "2", f"{FEW}/few-{number} {WATCH_FEW} {big}", "-Z", "--max-time", "0.1")


@test
def clients_that_leave_in_any_state_leave_nothing_behind():
    script = """
        on name=few-0 delay=60s
        on name=few-1 silence=forever
        on name=few-2 hold until=next for=60s
        on name=few-3 slow=10/s
        on name=few-4 silence=200ms of=connection
        on name=few-5 goaway
        on verb=watch silence=200ms after=events:1
    """
    with start(script) as proxy:
        for leave in (leave_politely, leave_rudely):
            leave_in_every_state(proxy, leave)
        eventually(lambda: proxy.control("stats")["connections"] == 1, "all are gone")
        equal(curl(proxy, "2", "/version").code, 200)


@test
def what_is_not_http_is_told_so():
    with start() as proxy:
        rows = [
            b"garbage\r\n\r\n",
            b"GET / HTTP/2.0\r\n\r\n",
            b"GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            b"GET / HTTP/1.1\r\nX: " + b"y" * 70000,
        ]
        for row in rows:
            with raw(proxy) as connection:
                connection.sendall(row)
                said = connection.recv(100)
                check(said.startswith(b"HTTP/1.1 400 "), f"{row[:40]}: {said}")


@test
def requests_one_behind_the_other_get_their_answers_in_order():
    with start() as proxy, raw(proxy) as connection:
        requests = [head_of(proxy, f"{FEW}/few-{n % FEW_COUNT}") for n in range(30)]
        last = head_of(proxy, "/version", more="Connection: close\r\n")
        connection.sendall(b"".join(requests) + last)
        said = b""
        while True:
            more = connection.recv(65536)
            if not more:
                break
            said += more
        equal(said.count(b"HTTP/1.1 200 OK"), 31)
        found = [said.find(f'"name":"few-{n % FEW_COUNT}"'.encode()) for n in range(FEW_COUNT)]
        check(found == sorted(found) and found[0] > 0, f"{found}")


@test
def kubectl_works_through_it():
    with start("on verb=list p=0.2 answer=503 max=3") as proxy:
        words = ["--kubeconfig", str(proxy.kubeconfig), "-n", "few"]
        equal(len(kubectl(*words, "get", "configmaps", "-o", "name").split()), FEW_COUNT)
        data = base64.b64encode(b"z" * 1000).decode()
        kubectl(*words, "create", "configmap", "by-kubectl", f"--from-literal=z={data}")
        equal(ADMIN.get(f"{FEW}/by-kubectl").json["data"]["z"], data)
        kubectl(*words, "delete", "configmap", "by-kubectl")


if __name__ == "__main__":
    sys.exit(main(prepare))
