# SPDX-License-Identifier: Apache-2.0
"""The environment of a container, resolved as the kubelet does at each of its starts.

Order counts: a value may refer to variables above it.  A fieldRef to an annotation that
is not there gives the empty string.  What comes from ConfigMaps, Secrets and
resourceFieldRef is not looked up: such a variable is None.
"""
import re

KEYED = re.compile(r"^metadata\.(annotations|labels)\['(.*)'\]$")


def field(pod, path):
    """The value of a fieldRef, or None for a path that is none."""
    match = KEYED.match(path)
    if match:
        return (pod["metadata"].get(match.group(1)) or {}).get(match.group(2), "")
    section, _, name = path.partition(".")
    if path in ("metadata.name", "metadata.namespace", "metadata.uid"):
        return pod[section].get(name, "")
    if path in ("spec.nodeName", "spec.serviceAccountName"):
        return pod[section].get(name, "")
    status = pod.get("status", {})
    if path in ("status.hostIP", "status.podIP"):
        return status.get(name, "")
    if path in ("status.hostIPs", "status.podIPs"):
        return ",".join(each["ip"] for each in status.get(name, []))
    return None


def expand(text, variables):
    """Replace $(NAME) by variables; $$ is a dollar; what is not there stays as written."""

    def replace(match):
        if match.group(0) == "$$":
            return "$"
        value = variables.get(match.group(1))
        return match.group(0) if value is None else value

    return re.sub(r"\$\$|\$\(([^)]*)\)", replace, text)


def environment(pod, container):
    """Name to value, in the order of the container."""
    variables = {}
    for each in container.get("env", []):
        source = each.get("valueFrom")
        if not source:
            variables[each["name"]] = expand(each.get("value", ""), variables)
        elif "fieldRef" in source:
            variables[each["name"]] = field(pod, source["fieldRef"]["fieldPath"])
        else:
            variables[each["name"]] = None
    return variables
