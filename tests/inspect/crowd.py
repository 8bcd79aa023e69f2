# SPDX-License-Identifier: MIT
"""Runs tests/inspect/crowd.cpp, which names each fiber after what it waits for, and the command on it."""

import contextlib
import json
import os
import resource
import shutil
import subprocess

UMS = CROWD = SHARED = STATIC = ""


def ums(*words, **more):
    return subprocess.run([UMS, *map(str, words)], capture_output=True, text=True, timeout=120,
                          check=False, errors="replace", **more)


class Crowd:
    """A running program; `with` ends it."""

    def __init__(self, count=3, program=None, folder=None, words=(), under=()):
        """`under`: a command that runs the program as its child."""
        self.process = subprocess.Popen([*under, program or CROWD, str(count), *words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, cwd=folder,
                                        preexec_fn=lambda: resource.setrlimit(
                                            resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2))
        self.fibers = int(self.process.stdout.readline().split()[0])
        self.pid = self.process.pid
        if under:
            with open(f"/proc/{self.pid}/task/{self.pid}/children", encoding="utf-8") as file:
                self.pid = int(file.read())

    def settle(self):
        """Until all wait: those that have begun may be on their way to it."""
        while True:
            states = json.loads(ums("ps", self.pid, "--json", "--counts").stdout)["states"]
            if states == {"parked": self.fibers - 1, "blocked": 1}:
                return self

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def environment(**words):
    """For the programs that are started meanwhile."""
    before = dict(os.environ)
    os.environ.update(words)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def container():
    """A command that runs a program where its threads have other numbers than here; None: it cannot."""
    under = ["unshare", "--pid", "--fork", "--kill-child"]
    if not shutil.which(under[0]):
        return None
    return under if subprocess.run([*under, "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0 else None


def core_of(count, folder, program=None):
    """The path of a core file, or None where the kernel writes none there."""
    with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as file:
        pattern = file.read().strip()
    if "/" in pattern or "|" in pattern:
        return None
    with Crowd(count, program, folder=folder) as crowd:
        crowd.settle().tell("abort")
    cores = [name for name in os.listdir(folder) if name.startswith("core")]
    return os.path.join(folder, cores[0]) if cores else None


def take_arguments(words):
    """The paths that a test is given: of the command and of the three programs. The rest comes back."""
    global UMS, CROWD, SHARED, STATIC
    UMS, CROWD, SHARED, STATIC = (os.path.abspath(path) for path in words[1:5])
    return words[5:]
