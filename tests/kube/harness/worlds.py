# SPDX-License-Identifier: Apache-2.0
"""Random nodes and pods, the same for the same seed, for comparing schedulers.

Names and values are few, so that rules meet what they are about.  Everything that
decides where a pod may run is there: resources, taints, selectors and affinity with all
operators, affinity between pods, topology spread, host ports, unschedulable nodes.
"""
KEYS = {
    "topology.kubernetes.io/zone": ["a", "b", "c"],
    "disk": ["ssd", "hdd"],
    "generation": ["3", "7", "12", "new"],
}
TOPOLOGIES = ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
APPS = ["web", "train", "cache"]
EFFECTS = ["NoSchedule", "NoExecute", "PreferNoSchedule"]
TAINTS = [("dedicated", "gpu"), ("dedicated", "web"), ("spot", "")]
GPU = "nvidia.com/gpu"


def _some(rng, values, most):
    return rng.sample(values, rng.randint(1, min(most, len(values))))


def node(rng, number):
    """A node with labels, taints and room, each in some nodes only."""
    name = f"node-{number}"
    labels = {key: rng.choice(values) for key, values in KEYS.items() if rng.random() < 0.8}
    gpus = rng.choice([0, 0, 4, 8])
    room = {
        "cpu": str(rng.choice([2, 4, 8])),
        "memory": f"{rng.choice([4, 8, 16])}Gi",
        "pods": str(rng.choice([2, 4, 110])),
        **({GPU: str(gpus)} if gpus else {}),
    }
    taints = []
    if rng.random() < 0.3:
        key, value = rng.choice(TAINTS)
        taints = [{"key": key, "value": value, "effect": rng.choice(EFFECTS)}]
    return {
        "metadata": {"name": name, "labels": {**labels, "kubernetes.io/hostname": name}},
        "spec": {"taints": taints, "unschedulable": rng.random() < 0.1},
        "status": {"capacity": room, "allocatable": room},
    }


def _requirement(rng):
    key = rng.choice(list(KEYS))
    operator = rng.choice(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
    if operator in ("Gt", "Lt"):
        return {"key": rng.choice(["generation", key]), "operator": operator, "values": ["5"]}
    values = {} if "Exist" in operator else {"values": _some(rng, KEYS[key], 2)}
    return {"key": key, "operator": operator, **values}


def _node_affinity(rng):
    terms = []
    for _ in range(rng.randint(1, 2)):
        term = {"matchExpressions": [_requirement(rng) for _ in range(rng.randint(1, 2))]}
        if rng.random() < 0.1:
            field = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
            term["matchFields"] = [field]
        terms.append(term)
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def _selector(rng):
    if rng.random() < 0.3:
        operator = rng.choice(["In", "NotIn", "Exists", "DoesNotExist"])
        values = {} if "Exist" in operator else {"values": _some(rng, APPS, 2)}
        return {"matchExpressions": [{"key": "app", "operator": operator, **values}]}
    return {"matchLabels": {"app": rng.choice(APPS)}}


def _pod_affinity(rng):
    term = {"labelSelector": _selector(rng), "topologyKey": rng.choice(TOPOLOGIES)}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _toleration(rng):
    if rng.random() < 0.1:
        return {"operator": "Exists"}
    key, value = rng.choice(TAINTS)
    toleration = {"key": key, "operator": "Exists"}
    if rng.random() < 0.5:
        toleration = {"key": key, "operator": "Equal", "value": value}
    if rng.random() < 0.5:
        toleration["effect"] = rng.choice(EFFECTS)
    return toleration


def _spread(rng):
    spread = {
        "maxSkew": rng.randint(1, 2),
        "topologyKey": rng.choice(TOPOLOGIES),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": _selector(rng),
    }
    if rng.random() < 0.3:
        spread["minDomains"] = rng.randint(1, 4)
    if rng.random() < 0.3:
        spread["nodeAffinityPolicy"] = rng.choice(["Honor", "Ignore"])
        spread["nodeTaintsPolicy"] = rng.choice(["Honor", "Ignore"])
    return spread


def _container(rng, name):
    requests = {"cpu": f"{rng.choice([100, 500, 1500])}m", "memory": f"{rng.choice([1, 3])}Gi"}
    limits = {GPU: str(rng.choice([1, 2, 4]))} if rng.random() < 0.2 else {}
    container = {"name": name, "image": "example/any"}
    container["resources"] = {"requests": requests, "limits": limits}
    if rng.random() < 0.15:
        port = {"containerPort": 80, "hostPort": rng.choice([8080, 9090])}
        if rng.random() < 0.4:
            port["hostIP"] = rng.choice(["127.0.0.1", "10.0.0.1"])
        container["ports"] = [port]
    return container


def pod(rng, name):
    """A pod with some of the rules, most often one or two."""
    affinity = {}
    for field, make, chance in (
        ("nodeAffinity", _node_affinity, 0.3),
        ("podAffinity", _pod_affinity, 0.15),
        ("podAntiAffinity", _pod_affinity, 0.15),
    ):
        if rng.random() < chance:
            affinity[field] = make(rng)
    spec = {"containers": [_container(rng, "main")], "affinity": affinity}
    if rng.random() < 0.1:
        spec["initContainers"] = [_container(rng, "first")]
    if rng.random() < 0.2:
        key = rng.choice(list(KEYS))
        spec["nodeSelector"] = {key: rng.choice(KEYS[key])}
    if rng.random() < 0.4:
        spec["tolerations"] = [_toleration(rng) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.2:
        spec["topologySpreadConstraints"] = [_spread(rng)]
    return {"metadata": {"name": name, "labels": {"app": rng.choice(APPS)}}, "spec": spec}


def world(rng, nodes, pods):
    """Nodes, and pods that are bound to them, whether or not they fit there."""
    made = [node(rng, number) for number in range(nodes)]
    bound = [pod(rng, f"bound-{number}") for number in range(pods)]
    for each in bound:
        each["spec"]["nodeName"] = rng.choice(made)["metadata"]["name"]
    return made, bound
