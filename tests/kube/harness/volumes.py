# SPDX-License-Identifier: Apache-2.0
"""Random storage for comparing schedulers: classes, volumes, claims, drivers, capacities,
attachments, and the volumes of pods.

Sizes differ, all of them: of two volumes of one size kube-scheduler takes any.
"""
DRIVERS = ("disk.example", "tracked.example")
CLASSES = ("local", "dynamic", "zonal", "tracked", "immediate")
WAITING = ("local", "local", "dynamic", "zonal", "tracked")
ZONE = "topology.kubernetes.io/zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOST = "kubernetes.io/hostname"
IQN = "iqn.2026-01.example:disk"
MODES = (["ReadWriteOnce"], ["ReadWriteOnce", "ReadOnlyMany"], ["ReadWriteMany"])
VOLUMES = 18
CLAIMS = 22
HANDLES = 9
GIB = 1 << 30


def _class(name, provisioner, waits, **more):
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    return {
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **more,
    }


class Storage:
    """Makes the storage of a cluster of so many nodes, and pods that use it."""

    def __init__(self, rng, nodes):
        self.rng = rng
        self.nodes = nodes
        self.sizes = list(range(1, 200))
        rng.shuffle(self.sizes)
        self.claims = []

    def _size(self, least=0):
        return str(GIB + (least + self.sizes.pop()) * (1 << 20))

    def _hosts(self, most):
        numbers = self.rng.sample(range(self.nodes), self.rng.randint(1, most))
        return [f"node-{number}" for number in numbers]

    def _where(self):
        """Terms of a node affinity, of which one must hold."""
        rng = self.rng
        host = {"key": HOST, "operator": "In", "values": self._hosts(4)}
        zone = {"key": ZONE, "operator": "In", "values": rng.sample("abc", rng.randint(1, 2))}
        disk = {"key": "disk", "operator": rng.choice(["Exists", "DoesNotExist"])}
        young = {"key": "generation", "operator": rng.choice(["Gt", "Lt"]), "values": ["5"]}
        one = [[[host]], [[host]], [[zone]], [[zone, disk]]]
        terms = rng.choice([*one, [[host], [young]], [[zone], [disk]]])
        return [{"matchExpressions": term} for term in terms]

    def _source(self, number):
        rng = self.rng
        handle = f"handle-{rng.randrange(HANDLES)}"
        csi = {"csi": {"driver": rng.choice(DRIVERS), "volumeHandle": handle}}
        ebs = {"awsElasticBlockStore": {"volumeID": f"vol-{number}"}}
        disk = {"gcePersistentDisk": {"pdName": f"pd-{number}"}}
        return rng.choice([csi, csi, csi, csi, ebs, disk, {"nfs": {"server": "a", "path": "/"}}])

    def _labels(self):
        rng = self.rng
        labels = {"disk": rng.choice(["ssd", "hdd"])} if rng.random() < 0.7 else {}
        if rng.random() < 0.3:
            zones = rng.choice(["a", "b", "c", "a__b", "a____b"])
            labels[rng.choice([ZONE, ZONE, OLD_ZONE])] = zones
        if rng.random() < 0.1:
            labels[REGION] = "north"
        return labels

    def _volume(self, number):
        rng = self.rng
        spec = {
            "capacity": {"storage": self._size(least=60)},
            "accessModes": rng.choice(MODES),
            "storageClassName": rng.choice(["local", "local", "local", *CLASSES]),
            **self._source(number),
        }
        if rng.random() < 0.75:
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": self._where()}}
        if rng.random() < 0.1:
            spec["volumeMode"] = "Block"
        return {
            "kind": "PersistentVolume",
            "metadata": {"name": f"volume-{number}", "labels": self._labels()},
            "spec": spec,
            "status": {"phase": rng.choice(["Available"] * 7 + ["Released"])},
        }

    def _selector(self):
        rng = self.rng
        if rng.random() < 0.5:
            return {"matchLabels": {"disk": rng.choice(["ssd", "hdd"])}}
        operator = rng.choice(["In", "NotIn", "Exists", "DoesNotExist"])
        values = {} if "Exist" in operator else {"values": ["ssd"]}
        return {"matchExpressions": [{"key": "disk", "operator": operator, **values}]}

    def _claim(self, number):
        rng = self.rng
        spec = {
            "accessModes": rng.choice([*MODES, ["ReadWriteOnce"], ["ReadWriteOncePod"]]),
            "resources": {"requests": {"storage": self._size()}},
            "storageClassName": rng.choice(WAITING),
        }
        if rng.random() < 0.1:
            spec["volumeMode"] = "Block"
        if rng.random() < 0.2:
            spec["selector"] = self._selector()
        return {
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": f"claim-{number}", "namespace": "default", "annotations": {}},
            "spec": spec,
            "status": {"phase": "Pending"},
        }

    def _bind(self, claim, volume):
        """As the controller of volumes leaves them."""
        claim["spec"]["volumeName"] = volume["metadata"]["name"]
        claim["spec"]["accessModes"] = self.rng.choice([MODES[0], MODES[0], ["ReadWriteOncePod"]])
        claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
        claim["status"]["phase"] = volume["status"]["phase"] = "Bound"
        self._keep(claim, volume)

    def _keep(self, claim, volume):
        metadata = claim["metadata"]
        reference = {"namespace": metadata["namespace"], "name": metadata["name"]}
        volume["spec"]["claimRef"] = reference

    def _spoil(self, claim):
        """A claim that no pod can use, for one reason or another."""
        spec, metadata = claim["spec"], claim["metadata"]
        kind = self.rng.choice(["gone", "early", "lost", "deleting", "immediate", "class"])
        if kind in ("gone", "early"):
            spec["volumeName"] = "volume-that-is-gone"
        if kind == "gone":
            metadata["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
        elif kind == "lost":
            claim["status"]["phase"] = "Lost"
        elif kind == "deleting":
            metadata["finalizers"] = ["parity/held"]
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        elif kind in ("immediate", "class"):
            spec["storageClassName"] = {"immediate": "immediate", "class": "nobody"}[kind]

    def _use(self, claims, volumes):
        """Bind, keep, promise and spoil some of them."""
        rng = self.rng
        left = list(volumes)
        for claim in claims:
            chance = rng.random()
            if chance < 0.4:
                self._bind(claim, left.pop())
            elif chance < 0.5:
                self._spoil(claim)
            elif chance < 0.58:
                node = f"node-{rng.randrange(self.nodes)}"
                claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = node
            elif chance < 0.68:
                kept = left.pop()
                kept["spec"]["storageClassName"] = claim["spec"]["storageClassName"]
                self._keep(claim, kept)
                if rng.random() < 0.3:
                    kept["spec"]["claimRef"]["uid"] = "of-another"

    def _capacity(self, number):
        rng = self.rng
        size = {"capacity": self._size()}
        if rng.random() < 0.3:
            size["maximumVolumeSize"] = self._size()
        zone = {"key": ZONE, "operator": "In", "values": [rng.choice("abc")]}
        zones = {"matchExpressions": [zone]}
        host = {"matchLabels": {HOST: f"node-{rng.randrange(self.nodes)}"}}
        topology = rng.choice([{"nodeTopology": zones}, {"nodeTopology": host}, {}])
        return {
            "kind": "CSIStorageCapacity",
            "metadata": {"name": f"capacity-{number}", "namespace": "default"},
            "storageClassName": rng.choice(["tracked", "tracked", "dynamic"]),
            **size,
            **topology,
        }

    def _node(self, number):
        drivers = []
        for name in DRIVERS:
            driver = {"name": name, "nodeID": "a", "topologyKeys": None}
            if self.rng.random() < 0.7:
                driver["allocatable"] = {"count": self.rng.randint(0, 3)}
            drivers.append(driver)
        count = {"count": self.rng.randint(0, 2)}
        for name in ("ebs.csi.aws.com", "pd.csi.storage.gke.io"):
            driver = {"name": name, "nodeID": "a", "topologyKeys": None, "allocatable": count}
            if self.rng.random() < 0.5:
                drivers.append(driver)
        return {
            "kind": "CSINode",
            "metadata": {"name": f"node-{number}"},
            "spec": {"drivers": drivers},
        }

    def _attachment(self, number):
        rng = self.rng
        source = {"persistentVolumeName": f"volume-{rng.randrange(VOLUMES)}"}
        return {
            "kind": "VolumeAttachment",
            "metadata": {"name": f"attachment-{number}"},
            "spec": {
                "attacher": rng.choice(DRIVERS),
                "nodeName": f"node-{rng.randrange(self.nodes)}",
                "source": source,
            },
        }

    def objects(self):
        """All objects, in an order in which they can be made."""
        rng = self.rng
        zones = [{"matchLabelExpressions": [{"key": ZONE, "values": rng.sample("abc", 2)}]}]
        classes = [
            _class("local", "kubernetes.io/no-provisioner", True),
            _class("dynamic", "disk.example", True),
            _class("zonal", "disk.example", True, allowedTopologies=zones),
            _class("tracked", "tracked.example", True),
            _class("immediate", "disk.example", False),
        ]
        driver = {"kind": "CSIDriver", "metadata": {"name": "tracked.example"}}
        driver["spec"] = {"storageCapacity": True}
        volumes = [self._volume(number) for number in range(VOLUMES)]
        self.claims = [self._claim(number) for number in range(CLAIMS)]
        self._use(self.claims, volumes)
        return [
            *classes,
            driver,
            *(self._capacity(number) for number in range(6)),
            *(self._node(number) for number in range(self.nodes) if rng.random() < 0.7),
            *volumes,
            *self.claims,
            *(self._attachment(number) for number in range(12)),
        ]

    def _inline(self):
        rng = self.rng
        reads = {"readOnly": True} if rng.random() < 0.5 else {}
        monitors = rng.sample(["m1", "m2", "m3"], 2)
        return rng.choice(
            [
                {"gcePersistentDisk": {"pdName": rng.choice(["pd-1", "pd-2"]), **reads}},
                {"awsElasticBlockStore": {"volumeID": rng.choice(["vol-1", "vol-2"]), **reads}},
                {"iscsi": {"targetPortal": "10.0.0.1", "iqn": IQN, "lun": 0, **reads}},
                {"rbd": {"monitors": monitors, "image": rng.choice("xy"), **reads}},
            ]
        )

    def _pick(self, bound):
        """The name of a claim; of a pod that is there, one that it may have."""
        names = [
            claim["metadata"]["name"]
            for claim in self.claims
            if not bound or claim["status"]["phase"] == "Bound" or self.rng.random() < 0.3
        ]
        return self.rng.choice(names)

    def volumes(self, bound):
        """The volumes of a pod."""
        rng = self.rng
        made = {}
        for _ in range(rng.choice([1, 1, 2, 2, 3])):
            if rng.random() < 0.25:
                made[f"inline-{len(made)}"] = self._inline()
                continue
            name = self._pick(bound)
            made[name] = {"persistentVolumeClaim": {"claimName": name}}
        if not bound and rng.random() < 0.03:
            made["missing"] = {"persistentVolumeClaim": {"claimName": "missing"}}
        if not bound and rng.random() < 0.03:
            spec = {"accessModes": MODES[0], "resources": {"requests": {"storage": "1"}}}
            made["scratch"] = {"ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
        return [{"name": name, **source} for name, source in made.items()]
