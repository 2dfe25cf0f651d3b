#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/kube/run: nothing that goes wrong is counted as passed, and nothing hangs it.

cluster: none
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))
# pylint: disable=wrong-import-position
from harness.check import check, equal, main, test  # noqa: E402

HEADER = "#!/bin/sh\n# cluster: none\n"

# what the test does, the total, what the runner says of it
TABLE = [
    ("echo 1..2; echo ok 1; echo ok 2", "2 passed, 0 failed", ""),
    ("echo 1..2; echo ok 1; echo not ok 2; exit 1", "1 passed, 1 failed", "failed; its output"),
    ("echo 1..2; echo ok 1", "1 passed, 1 failed", "failed; its output"),
    ("echo 1..1; echo ok 1; exit 3", "1 passed, 1 failed", "failed; its output"),
    ("echo 1..1; echo ok 1; kill -9 $$", "1 passed, 1 failed", "failed; its output"),
    ("true", "0 passed, 1 failed", ""),
    (
        "echo 1..2; echo ok 1 - works; echo 'ok 2 - other # SKIP no such release'",
        "1 passed, 0 failed",
        "skipped: some/other: no such release",
    ),
    ("echo 1..1; sleep 600", "0 passed, 1 failed", "ended after 1 s"),
    ("trap '' TERM; sleep 600 & echo 1..1; sleep 600", "0 passed, 1 failed", "ended after 1 s"),
    ("echo 1..1; echo ok 1; setsid sleep 600 &", "1 passed, 0 failed", ""),
]


def run(folder, script, timeout_s=60):
    """Run one test that is this shell script; the last line, the rest, the status."""
    path = Path(folder, "some_test.sh")
    path.write_text(HEADER + script + "\n", encoding="utf-8")
    path.chmod(0o755)
    env = {**os.environ, "E2E_LOG": str(Path(folder, "log")), "E2E_TIMEOUT_S": str(timeout_s)}
    done = subprocess.run(
        [HERE / "run", path], env=env, capture_output=True, text=True, check=False
    )
    return done.stdout.splitlines()[-1], done.stderr, done.returncode


@test
def a_result_counts_once_and_a_silent_end_is_a_failure():
    for script, total, says in TABLE:
        with tempfile.TemporaryDirectory() as folder:
            last, errors, status = run(folder, script, 1 if "ended" in says else 60)
            equal(last, total, script)
            equal(status == 0, total.endswith(" 0 failed"), f"status of {script}")
            check(says in errors, f"{script}: {errors}")


@test
def tests_that_run_at_once_are_counted_together():
    with tempfile.TemporaryDirectory() as folder:
        scripts = {
            "good": "echo 1..1; echo ok 1 - fine",
            "bad": "echo 1..2; echo ok 1; echo not ok 2; exit 1",
            "none": "echo 1..1; echo 'ok 1 - other # SKIP no such release'",
            "crash": "echo 1..1; kill -9 $$",
        }
        paths = []
        for name, script in scripts.items():
            paths.append(Path(folder, f"{name}_test.sh"))
            paths[-1].write_text(HEADER + script + "\n", encoding="utf-8")
            paths[-1].chmod(0o755)
        env = {**os.environ, "E2E_LOG": str(Path(folder, "log")), "E2E_JOBS": "3"}
        command = [HERE / "run", *paths]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        equal((lines[-1], done.returncode), ("2 passed, 2 failed", 1))
        equal(sum(line.endswith("failed") for line in lines), 1, f"totals in {lines}")
        check("skipped: none/other: no such release" in done.stderr, done.stderr)


@test
def a_test_that_lacks_a_program_fails_and_the_others_run():
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, "lacks_test.sh"), Path(folder, "other_test.sh")]
        for path in paths:
            more = "# programs: nothing\n" if path == paths[0] else ""
            path.write_text(HEADER + more + "echo 1..1; echo ok 1\n", encoding="utf-8")
            path.chmod(0o755)
        env = {**os.environ, "E2E_LOG": str(Path(folder, "log"))}
        command = [HERE / "run", *paths]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        equal((done.stdout.splitlines()[-1], done.returncode), ("1 passed, 1 failed", 1))
        check("nothing is not pinned" in done.stderr, done.stderr)


@test
def the_output_of_a_failed_test_is_kept():
    with tempfile.TemporaryDirectory() as folder:
        _, errors, _ = run(folder, "echo 1..1; echo 'why it fails' >&2; echo not ok 1; exit 1")
        match = re.search(r"its output is in (\S+)", errors)
        check(match, errors)
        kept = Path(match.group(1)).read_text(encoding="utf-8")
        check("why it fails" in kept and "not ok 1" in kept, kept)


@test
def a_program_of_meson_runs_as_its_source_says():
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "client", "some_test.c")
        program = Path(folder, "tests", "kube", "client", "some_test")
        source.parent.mkdir()
        program.parent.mkdir(parents=True)
        source.write_text("/* Says how many nodes there are.\n *\n * cluster: --nodes 2\n */\n")
        program.write_text(
            "#!/bin/sh\necho 1..2\necho ok 1 - $CMOCKA_MESSAGE_OUTPUT\n"
            "[ $(kubectl get nodes -o name | wc -l) = 2 ] && echo ok 2\n"
        )
        program.chmod(0o755)
        env = {**os.environ, "BUILD": folder, "E2E_LOG": str(Path(folder, "log"))}
        command = [HERE / "run", source]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        equal(done.stdout.splitlines()[-1], "2 passed, 0 failed", done.stderr)
        check("ok 1 - TAP" in done.stdout, done.stdout)


@test
def a_program_that_was_not_built_is_a_failure():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "absent_test.c")
        path.write_text("/* cluster: none */\n", encoding="utf-8")
        env = {**os.environ, "E2E_LOG": str(Path(folder, "log"))}
        command = [HERE / "run", path]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        equal(done.stdout.splitlines()[-1], "0 passed, 1 failed")
        check("has not been built" in done.stderr, done.stderr)


@test
def without_programs_of_kubernetes_one_sentence_says_so():
    with tempfile.TemporaryDirectory() as folder:
        hidden = ("KUBE_ASSETS", "KUBEBUILDER_ASSETS")
        env = {name: value for name, value in os.environ.items() if name not in hidden}
        env.update(E2E_LOG=folder, XDG_CACHE_HOME=folder, GO="/nonexistent/go")
        done = subprocess.run(
            [HERE / "run", "smoke"], env=env, capture_output=True, text=True, check=False
        )
        equal(done.stdout.splitlines(), ["0 passed, 1 failed"])
        equal(done.stderr.count("\n"), 1, done.stderr)
        equal(done.returncode, 1)


if __name__ == "__main__":
    sys.exit(main())
