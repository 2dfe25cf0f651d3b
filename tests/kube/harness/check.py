# SPDX-License-Identifier: Apache-2.0
"""Tests of a running cluster, in TAP.

    @test
    def a_pod_is_bound_once(): ...

    if __name__ == "__main__":
        sys.exit(main())

They run in the order of the file; arguments of the program are patterns of names.
"""
import fnmatch
import shutil
import subprocess
import sys
import time
import traceback

TESTS = []


class Failed(Exception):
    """Something is not as the test says."""


class Skipped(Exception):
    """The test cannot run here; the reason counts as neither passed nor failed."""


def test(function):
    """Register a test; its name is a sentence."""
    TESTS.append(function)
    return function


def skip(reason):
    """End the test, which lacks what the reason says."""
    raise Skipped(reason)


def check(condition, note):
    """Fail with the note unless the condition holds."""
    if not condition:
        raise Failed(note)


def equal(actual, expected, note=""):
    """Fail with both unless they are equal."""
    if actual != expected:
        raise Failed(f"{note or 'value'}: {actual!r}, expected {expected!r}")


def refused(answer, code, reason):
    """Fail unless the API server refused with this code and reason."""
    if (answer.code, answer.reason) != (code, reason):
        raise Failed(f"expected {code} {reason}, got {answer}")


def eventually(condition, note, timeout_s=60):
    """Wait until the condition returns something true, and return that."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise Failed(f"not within {timeout_s} s: {note}")


def kubectl(*words, stdin=None):
    """Run kubectl as the administrator and return what it prints."""
    done = subprocess.run(
        ["kubectl", *words], input=stdin, capture_output=True, text=True, check=False
    )
    check(done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def check_metrics(text):
    """Prometheus can read them and its own linter has nothing to say, where that is installed."""
    if not shutil.which("promtool"):
        skip("promtool is not installed")
    command = ["promtool", "check", "metrics"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    equal(done.returncode, 0, done.stdout + done.stderr)


def _run(function):
    """The result as TAP says it, and why the test was skipped."""
    try:
        function()
        return "ok", ""
    except Skipped as skipped:
        return "ok", f" # SKIP {skipped}"
    except Failed as failure:
        line = traceback.extract_tb(failure.__traceback__)[1]
        print(f"{line.filename}:{line.lineno}: {failure}", file=sys.stderr)
    except Exception:  # pylint: disable=broad-exception-caught
        traceback.print_exc()
    return "not ok", ""


def main(prepare=None):
    """Run what the command line names, or all; 0 if everything passed.  prepare() makes
    what all of them need and runs first."""
    if prepare and _run(prepare) != ("ok", ""):
        return 1
    patterns = sys.argv[1:] or ["*"]
    chosen = [
        each
        for each in TESTS
        if any(fnmatch.fnmatch(each.__name__, pattern) for pattern in patterns)
    ]
    print(f"1..{len(chosen)}", flush=True)
    failed = 0
    for number, function in enumerate(chosen, 1):
        result, reason = _run(function)
        failed += result != "ok"
        print(f"{result} {number} - {function.__name__}{reason}", flush=True)
    return 1 if failed else 0
