#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""listed_test.py TESTS - every test, fuzz target and benchmark is in its list.

A file that nobody builds passes for ever.
"""
import re
import sys
from pathlib import Path

SUFFIXES = {"unit": "_test", "prop": "_test", "fuzz": "_fuzz", "bench": "_bench"}


def unlisted(folder, suffix):
    build = folder / "meson.build"
    text = build.read_text(encoding="utf-8") if build.exists() else ""
    listed = set(re.findall(r"^\s*'(\w+)',?\s*$", text, re.MULTILINE))
    names = (path.stem[: -len(suffix)] for path in folder.glob(f"*{suffix}.c"))
    return sorted(set(names) - listed)


def main(tests):
    failed = False
    print(f"1..{len(SUFFIXES)}")
    for number, (kind, suffix) in enumerate(SUFFIXES.items(), 1):
        missing = unlisted(tests / kind, suffix)
        print(f"{'not ok' if missing else 'ok'} {number} - every file of {kind} is built")
        for name in missing:
            print(f"{kind}/{name}{suffix}.c is not in {kind}/meson.build", file=sys.stderr)
        failed = failed or bool(missing)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
