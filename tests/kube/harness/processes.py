# SPDX-License-Identifier: Apache-2.0
"""Child processes that never outlive this one.

Linux ends each of them with SIGKILL the moment the process that started it is gone,
however it went (PR_SET_PDEATHSIG).  Start them from the main thread: to the kernel the
parent is the thread.
"""
import ctypes
import os
import signal
import subprocess
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LIBC = ctypes.CDLL(None, use_errno=True)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StartError(Exception):
    """A sentence for whoever runs the tests."""


class Ended(BaseException):
    """A signal asked us to end."""


def _on_signal(number, _frame):
    """Once: ending must not be interrupted."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise Ended(number)


def raise_signals():
    """From now on the signals that ask us to end are the exception Ended."""
    for each in SIGNALS:
        signal.signal(each, _on_signal)


def die_with_parent(number=signal.SIGKILL, parent=None):
    """Get the signal when the parent dies, and at once if it already has."""
    LIBC.prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os.kill(os.getpid(), number)


def adopt_orphans():
    """From now on become the parent of what our children leave behind."""
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _children():
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, in parentheses, may contain anything; the state and the parent follow.
            parent = int(path.read_text(encoding="utf-8").rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if parent == os.getpid():
            yield int(path.parent.name)


def end_orphans():
    """End all children, and theirs as they become ours."""
    while children := list(_children()):
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


class Process:
    """A program of the control plane, with its output in <folder>/<name>.log."""

    def __init__(self, name, command, folder, variables=None):
        self.name = name
        self.log = folder / f"{name}.log"
        parent = os.getpid()
        with open(self.log, "ab") as log:
            # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
            self.process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**os.environ, **(variables or {})},
                # A terminal's ^C is for us; these end when we say so.
                start_new_session=True,
                preexec_fn=lambda: die_with_parent(parent=parent),
            )

    def check(self):
        """Raise StartError with the end of the log if the process has ended."""
        status = self.process.poll()
        if status is not None:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
            raise StartError(
                f"{self.name} ended with status {status}:\n" + "\n".join(lines[-15:])
            )

    def stop(self, grace_s):
        """End it: politely, and after grace_s seconds for certain."""
        if self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
