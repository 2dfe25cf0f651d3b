#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""selftest.py COMPILER... - layers.py finds each fault that it is there to find.

Each row is a small tree that is wrong in one way (or right), and what is to be
said about it.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

import layers

TREES = [
    ("includes that point down pass", "wire/a.c", '#include "base/a.h"\n#include <stdio.h>', None),
    ("a folder includes itself", "engine/policy/a.c", '#include "engine/a.h"', None),
    ("base may not include wire", "base/a.c", '#include "wire/json.h"', "base/a.c:1: base/"),
    ("wire may not include the engine", "wire/a.h", '#include "engine/e.h"', "wire/a.h:1: wire/"),
    ("the engine may not include wire", "engine/a.c", '\n#include "wire/json.h"', "engine/a.c:2:"),
    ("nor may a folder below it", "engine/policy/a.c", '#include "wire/j.h"', "policy/a.c:1:"),
    ("kube may not include the engine", "kube/a.c", '#include "engine/e.h"', "kube/a.c:1:"),
    ("dialect may not include kube", "dialect/a.c", '#  include "kube/k.h"', "dialect/a.c:1:"),
    ("one role may not include another", "agent/a.c", '#include "webhook/w.h"', "agent/a.c:1:"),
    ("angle brackets hide nothing", "base/a.c", "#include <cli/main.h>", "base/a.c:1:"),
    ("dots hide nothing", "base/a.c", '#include "base/../wire/j.h"', "base/a.c:1:"),
    ("nor do dots in front", "base/a.c", '#include "../wire/j.h"', "base/a.c:1:"),
    ("an include without its folder fails", "base/a.c", '#include "err.h"', "base/a.c:1:"),
    ("an unknown folder fails", "new/a.c", '#include "base/err.h"', "new/ has no place"),
    ("a comment is no include", "base/a.c", '/*\n#include "wire/j.h"\n*/', None),
    ("a clock is found", "engine/a.c", "#include <time.h>", "engine includes time.h"),
    ("threads are found", "engine/a.h", "#include <pthread.h>", "engine includes pthread.h"),
    ("sockets are found", "engine/a.c", "#include <sys/socket.h>", "includes sys/socket.h"),
    ("the log is found", "engine/a.c", '#include "base/log.h"', "engine includes base/log.h"),
    ("formatting text is fine", "engine/a.c", "#include <stdio.h>", None),
    ("others may know the time", "base/a.c", "#include <time.h>", None),
]

OBJECTS = [
    ("a const variable passes", "const int a = 1; static const char *const b[] = { \"x\" };"
     "const char *f(int i) { return b[i]; }", None),
    ("a variable with a value is found", "int a = 1;", "variable a "),
    ("a variable without one is found", "int a;", "variable a "),
    ("a static one is found", "static int a; int f(void) { return ++a; }", "variable a "),
    ("one inside a function is found", "int f(void) { static int n; return ++n; }", "variable n"),
    ("one per thread is found", "_Thread_local int a;", "variable a "),
    ("pointers that can change are found", "const char *a[] = { \"x\" };", "variable a "),
    ("printing is found", "int puts(const char *s); void f(void) { puts(\"\"); }", "uses puts"),
    ("opening is found", "void *fopen(const char *, const char *);"
     "void *f(void) { return fopen(\"\", \"\"); }", "uses fopen"),
    ("the clock is found", "long time(long *); long f(void) { return time(0); }", "uses time"),
    ("formatting passes", "int snprintf(char *, unsigned long, const char *, ...);"
     "int f(char *s) { return snprintf(s, 1, \"%d\", 1); }", None),
]


def tree_faults(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True)
    path.write_text(text + "\n", encoding="utf-8")
    return [*layers.check_includes(folder), *layers.check_engine_headers(folder)]


def object_faults(folder, compiler, text):
    source, target = folder / "a.c", folder / "a.o"
    source.write_text(text, encoding="utf-8")
    subprocess.run([*compiler, "-O2", "-fPIC", "-c", source, "-o", target], check=True)
    return [*layers.check_engine_globals(target), *layers.check_engine_functions(target)]


def as_expected(faults, expected):
    """Nothing found when nothing is expected; else one fault with those words."""
    return not faults if expected is None else len(faults) == 1 and expected in faults[0]


def main(compiler):
    failed = False
    rows = [(name, expected, lambda f, p=path, t=text: tree_faults(f, p, t))
            for name, path, text, expected in TREES]
    rows += [(name, expected, lambda f, t=text: object_faults(f, compiler, t))
             for name, text, expected in OBJECTS]
    print(f"1..{len(rows)}")
    for number, (name, expected, find) in enumerate(rows, 1):
        with tempfile.TemporaryDirectory() as folder:
            faults = find(Path(folder))
        good = as_expected(faults, expected)
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
        if not good:
            print(f"{name}: expected {expected!r}, found {faults!r}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
