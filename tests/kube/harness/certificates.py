# SPDX-License-Identifier: Apache-2.0
"""A certificate authority for one cluster, made with openssl.

Everything is valid for two days and lies in one folder: ca.crt, <name>.crt and
<name>.key of each certificate, service-account.key.
"""
import subprocess

EC_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def _openssl(*words):
    return subprocess.run(
        ["openssl", *[str(word) for word in words]], check=True, capture_output=True
    )


class Authority:
    """Signs certificates for servers and for clients."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(mode=0o700)
        self._request("ca", "/CN=test cluster", ["basicConstraints=critical,CA:TRUE"])
        _openssl("genpkey", "-algorithm", "RSA", "-out", folder / "service-account.key")

    def _request(self, name, subject, extensions, signer=()):
        words = ["req", "-x509", "-new", *EC_KEY, "-sha256", "-days", "2", "-subj", subject]
        for extension in extensions:
            words += ["-addext", extension]
        words += ["-keyout", self.folder / f"{name}.key", "-out", self.folder / f"{name}.crt"]
        _openssl(*words, *signer)

    def _sign(self, name, subject, extensions):
        signer = ["-CA", self.folder / "ca.crt", "-CAkey", self.folder / "ca.key"]
        extensions = ["basicConstraints=critical,CA:FALSE", *extensions]
        self._request(name, subject, extensions, signer)

    def server(self, name, addresses, hosts):
        """A certificate for a server that is reached by these addresses and names."""
        names = [f"IP:{address}" for address in addresses] + [f"DNS:{host}" for host in hosts]
        self._sign(
            name,
            f"/CN={name}",
            ["extendedKeyUsage=serverAuth", "subjectAltName=" + ",".join(names)],
        )

    def client(self, name, user, groups):
        """A certificate with which the API server knows its holder as user, in groups."""
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
        self._sign(name, subject, ["extendedKeyUsage=clientAuth"])

    def read(self, file):
        """The bytes of one file of the folder."""
        return (self.folder / file).read_bytes()
