#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The policy of deploy/webhook decides as the webhook does.

tests/samples/webhook_cases.json is the table; webhook_test.py asks the webhook the same,
and tests/unit/webhook_validate_test.c its code.

cluster: --controllers=validatingadmissionpolicy-status-controller,serviceaccount-controller
"""
import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# pylint: disable=wrong-import-position
from harness.admission import (  # noqa: E402
    DRY,
    ROOT,
    As,
    complete,
    decide_cases,
    decide_own,
    pods,
)
from harness.check import check, equal, eventually, kubectl, main, test  # noqa: E402

PODS = pods("policy")
ALICE = As("alice")


def prepare():
    """A namespace, and the policy in force."""
    kubectl("create", "namespace", "policy")
    account = "/api/v1/namespaces/policy/serviceaccounts/default"
    eventually(lambda: ALICE.get(account).code == 200, "the namespace has its account")
    kubectl("apply", "-f", str(ROOT / "deploy/webhook/policy.yaml"))
    spoof = {"metadata": {"annotations": {"gpu.scheduling/allocated": "n:0"}}}
    spoof = complete(spoof, "policy", "spoof")
    eventually(lambda: ALICE.post(PODS + DRY, spoof).code == 403, "the policy is in force")


@test
def every_case_is_decided_as_the_webhook_decides_it():
    """One test for the table: its rows have names of their own."""
    wrong = decide_cases("policy", "gpu-scheduler-guard")
    check(not wrong, "\n".join(wrong))


@test
def of_our_own_pods_the_agent_alone_may_see_every_gpu():
    """The others need none."""
    equal(decide_own(), {"agent"})


@test
def a_map_of_a_large_job_costs_little_enough():
    """The API server ends an expression that takes too long, and refuses."""
    # The last are as much as a pod's annotations may be.
    for count, gpus, node in (
        (2000, 1, "gpu-node-"),
        (200, 32, "gpu-node-"),
        (4000, 16, "gpu-node-"),
        (3600, 16, "gpu-node-of-long-n-"),
    ):
        ids = ",".join(str(gpu) for gpu in range(gpus))
        lines = "".join(f"{i}={node}{i:04}:{ids}\n" for i in range(count))
        for end, allowed in (("", True), ("2000=n\n", False)):
            pod = {"metadata": {"annotations": {"gpu-scheduling-map": lines + end}}}
            answer = ALICE.post(PODS + DRY, complete(pod, "policy", "large"))
            equal(answer.code, 201 if allowed else 403, f"{count} of {gpus}: {answer}")
            check(allowed or f"line {count + 1}" in answer.json["message"], str(answer))


def checked():
    """The policy once its controller has looked at it."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/gpu-scheduler-guard"
    policy = ALICE.get(path).json
    seen = policy.get("status", {}).get("observedGeneration")
    return policy if seen == policy["metadata"]["generation"] else None


@test
def the_types_of_its_expressions_are_right():
    """For every kind that it looks at."""
    policy = eventually(checked, "the controller has looked at the policy")
    warnings = policy["status"].get("typeChecking", {}).get("expressionWarnings", [])
    check(not warnings, json.dumps(warnings, indent=1))


if __name__ == "__main__":
    sys.exit(main(prepare))
