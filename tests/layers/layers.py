#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""layers.py SRC [LIBRARY] - the layers of src/ hold, or TAP that says where not.

Includes point down only: the table below says what each folder may include.  The
engine stays pure: no header and no function of time, threads, files or sockets,
and no variable that can change outside a function call.  LIBRARY is the engine as
compiled, to look for such variables and functions; without it (a build with
sanitizers adds its own) only the sources are read.
"""
import re
import subprocess
import sys
from pathlib import Path

ROLES = {"scheduler", "extender", "webhook", "agent", "controller"}
BELOW_ROLES = {"base", "wire", "engine", "dialect", "kube"}

# A folder of src/ -> the folders whose headers it may include besides its own.
MAY_INCLUDE = {
    "base": set(),
    "wire": {"base"},
    "engine": {"base"},
    "dialect": {"base", "wire", "engine"},
    "kube": {"base", "wire"},
    "sim": {"base", "wire", "engine", "dialect"},
    **{role: BELOW_ROLES for role in ROLES},
    "lab": BELOW_ROLES | ROLES | {"sim"},
    "cli": BELOW_ROLES | ROLES | {"sim", "lab"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)

# The engine formats text, so <stdio.h> is fine; reading and writing is not.
IMPURE_HEADER = re.compile(
    r"(time|pthread|threads|semaphore|signal|unistd|fcntl|poll|dirent|spawn|locale|stdatomic)\.h"
    r"|(sys|net|netinet|arpa|linux)/.*|base/(clock|log)\.h"
)
IMPURE_FUNCTION = re.compile(
    r"_?_?(v?f?d?printf|puts|putc|putchar|fputs|fputc|perror|f?d?open(at)?(64)?|f?re?open(64)?"
    r"|creat|f?read|f?write|pread|pwrite|fclose|close|fgets|getc|getline|scanf|stdin|stdout|stderr"
    r"|socket|connect|accept|bind|listen|send|recv|poll|epoll_.*|select|ioctl|mmap"
    r"|time|clock|clock_.*|gettimeofday|localtime(_r)?|gmtime(_r)?|(nano|u)?sleep"
    r"|pthread_.*|thrd_.*|mtx_.*|sem_.*|fork|exec.*|system|popen|kill|raise|signal|sigaction"
    r"|getenv|setenv|s?rand(om)?(_r)?|[dlm]rand48|getrandom|arc4random.*|setlocale|strtok)(_chk)?"
)
MUTABLE_SECTION = re.compile(r"\.(data(?!\.rel\.ro)|bss|tdata|tbss|sdata|sbss)\b.*|\*COM\*")


def without_comments(text):
    """The text with comments blanked, lines kept."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    return re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.DOTALL)


def includes(path):
    """(line, quoted by "", header) for each include of a file."""
    text = without_comments(path.read_text(encoding="utf-8"))
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start(2)) + 1, match.group(1) == '"', match.group(2)


def include_fault(folder, quoted, header):
    """What is wrong with an include, or None."""
    if folder not in MAY_INCLUDE:
        return f"{folder}/ has no place among the layers"
    target = header.split("/")[0]
    if target not in MAY_INCLUDE or "/" not in header:
        return f'"{header}" is not written from src/ on' if quoted else None
    if ".." in header.split("/"):
        return f'"{header}" is not written from src/ on'
    if target != folder and target not in MAY_INCLUDE[folder]:
        return f"{folder}/ includes {header}, which is not below it"
    return None


def sources(src):
    return sorted(path for path in src.rglob("*") if path.suffix in {".c", ".h"})


def check_includes(src):
    """All includes that do not point down."""
    for path in sources(src):
        place = path.relative_to(src)
        folder = place.parts[0] if len(place.parts) > 1 else "src"
        for line, quoted, header in includes(path):
            fault = include_fault(folder, quoted, header)
            if fault:
                yield f"{place}:{line}: {fault}"


def check_engine_headers(src):
    """All headers in the engine that bring time, threads, files or sockets."""
    for path in sources(src / "engine"):
        for line, _, header in includes(path):
            if IMPURE_HEADER.fullmatch(header):
                yield f"{path.relative_to(src)}:{line}: the engine includes {header}"


def symbols(library):
    """(section, name) of each symbol of a library."""
    table = subprocess.run(
        ["objdump", "-t", library], check=True, capture_output=True, text=True, errors="replace"
    ).stdout
    for line in table.splitlines():
        match = re.match(r"[0-9a-f]+ (.{7}) (\S+)\t[0-9a-f]+\s+(?:\.hidden )?(.+)", line)
        if match and "d" not in match.group(1):  # 'd': the sections themselves, file names
            yield match.group(2), match.group(3)


def check_engine_globals(library):
    """All variables of the engine that can change."""
    for section, name in symbols(library):
        if MUTABLE_SECTION.fullmatch(section):
            yield f"the variable {name} ({section}) outlives a call and is not const"


def check_engine_functions(library):
    """All functions of time, threads, files and sockets that the engine calls."""
    for name in sorted({name for section, name in symbols(library) if section == "*UND*"}):
        if IMPURE_FUNCTION.fullmatch(name):
            yield f"the engine uses {name}"


def main(arguments):
    src = Path(arguments[0])
    checks = [
        ("includes point down", check_includes(src)),
        ("the engine includes nothing of the world", check_engine_headers(src)),
    ]
    for library in arguments[1:]:
        checks += [
            ("the engine has no variables of its own", check_engine_globals(library)),
            ("the engine calls nothing of the world", check_engine_functions(library)),
        ]
    failed = False
    print(f"1..{len(checks)}")
    for number, (name, faults) in enumerate(checks, 1):
        faults = list(faults)
        print(f"{'not ok' if faults else 'ok'} {number} - {name}")
        for fault in faults:
            print(fault, file=sys.stderr)
        failed = failed or bool(faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
