#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""count_test.py COUNT-TESTS - the total that closes a CI run is the true one."""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

TAP = "1..3\nok 1 - a\nnot ok 2 - b\n# not ok 9\nok 3 - c # SKIP no network\n"
GOOD = {"result": "OK", "stdout": "1..2\nok 1 - a\nok 2 - b\n"}

# Name, what ran (None: the folder has no log), the line, the exit status.
ROWS = [
    ("results of TAP count one by one", [GOOD], "2 passed, 0 failed", 0),
    ("skipped results do not count", [{"result": "FAIL", "stdout": TAP}], "1 passed, 1 failed", 1),
    ("a plain test counts once", [{"result": "OK", "stdout": "hello"}], "1 passed, 0 failed", 0),
    ("a plain failure counts once", [{"result": "FAIL"}, GOOD], "2 passed, 1 failed", 1),
    ("a crash after good results is a failure", [dict(GOOD, result="ERROR")],
     "2 passed, 1 failed", 1),
    ("a time-out is a failure", [{"result": "TIMEOUT", "stdout": ""}], "0 passed, 1 failed", 1),
    ("a skipped test does not count", [{"result": "SKIP"}, GOOD], "2 passed, 0 failed", 0),
    ("TAP without a result is a failure", [{"result": "SKIP", "stdout": "1..0\n"}, GOOD],
     "2 passed, 1 failed", 1),
    ("a plan alone is a failure", [{"result": "OK", "stdout": "1..2\n"}, GOOD],
     "2 passed, 1 failed", 1),
    ("TAP without a word is a failure", [{"result": "OK", "name": "p:unit / tap"}, GOOD],
     "2 passed, 1 failed", 1),
    ("TAP that says why it skips all does not count",
     [{"result": "SKIP", "name": "p:unit / tap", "stdout": "1..0 # SKIP no network\n"}, GOOD],
     "2 passed, 0 failed", 0),
    ("skipped results are results", [{"result": "SKIP", "stdout": "1..1\nok 1 # SKIP x\n"}, GOOD],
     "2 passed, 0 failed", 0),
    ("nothing ran is a failure", [], "0 passed, 0 failed", 1),
    ("a build without results is a failure", None, "0 passed, 0 failed", 1),
]


def count(program, tests):
    with tempfile.TemporaryDirectory() as build:
        if tests is not None:
            logs = Path(build) / "meson-logs"
            logs.mkdir()
            lines = "".join(json.dumps(test) + "\n" for test in tests)
            info = Path(build) / "meson-info"
            info.mkdir()
            (info / "intro-tests.json").write_text(
                json.dumps([{"name": "tap", "protocol": "tap"}]), encoding="utf-8")
            (logs / "testlog.json").write_text(lines, encoding="utf-8")
        done = subprocess.run([program, build], capture_output=True, text=True, check=False)
    return done.stdout.strip(), done.returncode


def main(program):
    failed = False
    print(f"1..{len(ROWS)}")
    for number, (name, tests, line, status) in enumerate(ROWS, 1):
        seen = count(program, tests)
        good = seen == (line, status)
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
        if not good:
            print(f"{name}: expected {(line, status)}, seen {seen}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
