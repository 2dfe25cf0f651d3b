# SPDX-License-Identifier: Apache-2.0
"""A plain HTTPS client for the API server, as one identity.

It shows what the server says and does nothing about it: no retry, no cache.  Tests use
it where the exact request matters, and kubectl where it does not.
"""
import base64
import http.client
import json
import os
import socket
import ssl
import tempfile
import time
import urllib.parse

# The API server ends a connection that nobody has used for 90 s.
IDLE_S = 30


class Answer:
    """A status code, and the body as JSON where it is JSON."""

    def __init__(self, code, body, headers=None):
        self.code = code
        self.headers = headers or {}
        self.text = body.decode("utf-8", "replace")
        try:
            self.json = json.loads(body)
        except ValueError:
            self.json = None

    @property
    def reason(self):
        """The reason of a Status, as in `Conflict`; None of anything else."""
        return self.json.get("reason") if isinstance(self.json, dict) else None

    def __str__(self):
        return f"{self.code} {self.text[:400]}"


def _context(cluster, user):
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    if user is None:
        return context
    # The ssl module takes a client's key from a file only.
    with tempfile.NamedTemporaryFile() as file:
        for field in ("client-certificate-data", "client-key-data"):
            file.write(base64.b64decode(user[field]))
        file.flush()
        context.load_cert_chain(file.name)
    return context


class _SocketConnection(http.client.HTTPConnection):
    """HTTP over a socket of the file system."""

    def __init__(self, path, timeout_s):
        super().__init__("localhost", timeout=timeout_s)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Client:
    """Requests with the kubeconfig at path, one of those that the cluster wrote; as
    nobody without its certificate; to another server of the cluster if one is named.
    Or by the socket of `kubectl proxy` at path."""

    def __init__(self, path, timeout_s=30, certificate=True, server=None):
        self.used_s = time.monotonic()
        if server is None and str(path).endswith(".sock"):
            self.connection = _SocketConnection(str(path), timeout_s)
            return
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        cluster = config["clusters"][0]["cluster"]
        user = config["users"][0]["user"] if certificate else None
        url = urllib.parse.urlsplit(server or cluster["server"])
        self.connection = http.client.HTTPSConnection(
            url.hostname,
            url.port,
            timeout=timeout_s,
            context=_context(cluster, user),
        )

    def request(self, method, path, body=None, content_type="application/json"):
        """Send one request; body is JSON as Python has it."""
        headers = {"Accept": "application/json"}
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = json.dumps(body).encode()
        if time.monotonic() - self.used_s > IDLE_S:
            self.connection.close()  # it opens another by itself
        try:
            self.connection.request(method, path, data, headers)
            response = self.connection.getresponse()
            return Answer(response.status, response.read(), response.headers)
        except BaseException:
            self.connection.close()
            raise
        finally:
            self.used_s = time.monotonic()

    def stream(self, path):
        """The events of a watch, until the server ends it; then the client is used up."""
        self.connection.request("GET", path, headers={"Accept": "application/json"})
        response = self.connection.getresponse()
        if response.status != 200:
            raise OSError(f"watch: {response.status} {response.read(300)}")
        try:
            for line in response:
                yield json.loads(line)
        finally:
            self.connection.close()

    def get(self, path):
        """GET."""
        return self.request("GET", path)

    def post(self, path, body):
        """POST."""
        return self.request("POST", path, body)

    def put(self, path, body):
        """PUT."""
        return self.request("PUT", path, body)

    def delete(self, path, body=None):
        """DELETE; body may be DeleteOptions."""
        return self.request("DELETE", path, body)


def anywhere():
    """A client of the cluster in which ./namespace has made one, and its name."""
    return Client(os.environ["KUBE_API_SOCKET"]), os.environ["KUBE_NAMESPACE"]


def as_identity(name):
    """A client of the cluster that `cluster run` started, as admin, scheduler, agent..."""
    return Client(os.path.join(os.environ["KUBE_DIR"], f"{name}.kubeconfig"))
