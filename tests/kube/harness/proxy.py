# SPDX-License-Identifier: Apache-2.0
"""The fault proxy (../proxy) in front of a cluster, for tests.

    with FaultProxy(os.environ["KUBECONFIG"], "on method=POST nth=3 cut after-write") as proxy:
        run_something_with(proxy.kubeconfig)
    proxy.stats["faults"]["cut"]

At the end of the block it is ended and must have gone without a complaint, of a sanitizer
for instance.  BUILD names the folder that it is built in (./build).
"""
import base64
import json
import os
import signal
import ssl
import subprocess
import tempfile
import urllib.request
from pathlib import Path

from harness.processes import die_with_parent

ROOT = Path(__file__).resolve().parent.parent.parent.parent
BUILD = Path(os.environ.get("BUILD") or ROOT / "build").resolve()
PROGRAM = BUILD / "tests" / "kube" / "proxy" / "fault-proxy"
END_S = 30


class ProxyError(Exception):
    """It did not start, or not end as it should."""


class FaultProxy:
    """A running proxy; `seed` and `replay` (a log of before) as on its command line."""

    def __init__(self, upstream, script="", seed=1, replay=None):
        # pylint: disable=consider-using-with
        self._folder = tempfile.TemporaryDirectory(prefix="fault-proxy.")
        folder = Path(self._folder.name)
        self.kubeconfig = folder / "kubeconfig"
        self.authority = folder / "ca.pem"
        self.log_file = folder / "log.jsonl"
        self.stats = {}
        (folder / "script").write_text(script, encoding="utf-8")
        self._errors = open(folder / "stderr", "w+", encoding="utf-8")
        command = [PROGRAM, "--kubeconfig", upstream, "--write-kubeconfig", self.kubeconfig]
        command += ["--script", folder / "script", "--log", self.log_file, "--seed", str(seed)]
        if replay:
            (folder / "replay").write_text(
                "".join(json.dumps(line) + "\n" for line in replay), encoding="utf-8"
            )
            command += ["--replay", folder / "replay"]
        parent = os.getpid()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            preexec_fn=lambda: die_with_parent(parent=parent),
        )

    def complaints(self):
        """What it has written to its standard error."""
        self._errors.seek(0)
        return self._errors.read().strip()

    def __enter__(self):
        if not self.process.stdout.readline():
            self.process.wait()
            complaints = self.complaints()
            self._clean()
            raise ProxyError(complaints)
        config = json.loads(self.kubeconfig.read_text(encoding="utf-8"))
        cluster = config["clusters"][0]["cluster"]
        self.server = cluster["server"]
        self.token = config["users"][0]["user"]["token"]
        self.authority.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
        return self

    def __exit__(self, kind, value, trace):
        try:
            self.process.send_signal(signal.SIGTERM)
            out, _ = self.process.communicate(timeout=END_S)
            complaints = self.complaints()
            if kind is None and (self.process.returncode or complaints):
                raise ProxyError(f"status {self.process.returncode}: {complaints}")
            self.stats = json.loads(out) if out else {}
            self.lines = self.log()
        finally:
            self.process.kill()
            self.process.wait()
            self._clean()

    def _clean(self):
        self.process.stdout.close()
        self._errors.close()
        self._folder.cleanup()

    def context(self):
        """For TLS to it."""
        return ssl.create_default_context(cafile=str(self.authority))

    def control(self, word):
        """`on`, `off`, `stats`: the counts after it."""
        request = urllib.request.Request(
            f"{self.server}/__proxy/{word}",
            headers={"Authorization": f"Bearer {self.token}"},
        )
        with urllib.request.urlopen(request, context=self.context(), timeout=30) as reply:
            return json.load(reply)

    def log(self):
        """All lines so far."""
        with open(self.log_file, encoding="utf-8") as file:
            return [json.loads(line) for line in file]


def faults(lines):
    """What was decided, without when: (identity, n, fault and its numbers)."""
    keys = ("point", "form", "count", "ms", "permille", "status", "bytes_per_s")
    return sorted(
        (line["identity"], line["n"], line["fault"], *(str(line.get(key)) for key in keys))
        for line in lines
        if "identity" in line
    )


def effects(lines, word):
    """The lines that say so, each with the decision that it belongs to."""
    decisions = {line["seq"]: line for line in lines if "identity" in line}
    return [{**decisions[line["of"]], **line} for line in lines if line.get("effect") == word]
