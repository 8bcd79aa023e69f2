#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds the transcripts of docs/look-inside.md to what the command prints.

transcripts_test.py UMS CROWD CROWD_SHARED CROWD_STATIC PAGE [--write]

A ```text block that begins with "$ ums" is a transcript of the command on `crowd 2`; on `crowd deadlock` if it
asks for --locks, on `crowd work` if it is about what runs; of `ums trace` on `paces`. Numbers, addresses and paths differ
from run to run and are not compared; nor are the frames of
libums itself, which change with it. With --write the page gets what was printed.
"""

import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # Nothing is left in the source tree.
import crowd as programs
from crowd import Crowd, ums

BLOCK = re.compile(r"```text\n(\$ ums [^\n]*)\n(.*?)```", re.DOTALL)
SHARE = re.compile(r"^ *[\d.]+s +([\d.]+)%( +[\d.]+s +([\d.]+)%)?")  # A line of a profile.


def plain(text):
    """Without what differs from run to run, such as the small shares of a profile."""
    text = "\n".join(line for line in text.splitlines()
                     if not (found := SHARE.match(line)) or float(found[3] or found[1]) > 10)
    text = re.sub(r"\[\|* *\]", "BAR", text)
    text = re.sub(r"\d+\.\d+", "N", text)
    text = re.sub(r"0x[0-9a-f]+", "ADDRESS", text)
    text = re.sub(r" at \S*/", " at ", text)
    text = re.sub(r"[\d.]+ (ns|us|ms|s)\b", "TIME", text)
    text = re.sub(r"\d+[KM]?", "N", text)
    text = re.sub(r"\b(idle|busy)\b", "IDLE", text)
    text = text.replace(", its processor was handed off", "")
    # Whether a hand-off falls into the time that top looks at.
    text = text.replace("; half of the hand-offs within TIME", "")
    # Whether a busy machine let it take enough samples.
    text = re.sub(r"^few .*\n", "", text, flags=re.MULTILINE)
    return [re.sub(r"\s+", " ", line).strip()[:90] for line in text.splitlines()
            if not re.match(r"    \S", line) or "crowd.cpp" in line]


def shortened(text):
    """As the page shows it: lines of the middle left out where there are many, none too long."""
    lines = [re.sub(r"(at )/\S*/((?:src|tests|include)/)", r"\1\2", line.replace("../../", ""))[:118].rstrip()
             for line in text.splitlines()]
    return lines if len(lines) <= 24 else [*lines[:21], "...", *lines[-2:]]


def trace(words):
    """In a folder with a trace of paces."""
    with tempfile.TemporaryDirectory() as folder:
        def run(*some):
            return subprocess.run([programs.UMS, "trace", *some], cwd=folder, capture_output=True, text=True, timeout=120,
                                  check=True, env={**os.environ, "UMS_PROCESSORS": "2",
                                                   "PATH": os.path.dirname(programs.CROWD) + ":" + os.environ["PATH"]})
        run("-o", "ums.pftrace", "--", "paces")
        return "\n".join(shortened(run(*words).stdout)) + "\n"


def printed(command):
    words = command.replace("$(pidof crowd)", "PID").split()[2:]
    if command.startswith("$ ums trace "):
        return trace(command.split()[3:])
    is_busy = "top" in words or "on" in words
    with Crowd("deadlock" if "--locks" in words else "work" if is_busy else 2) as crowd:
        if is_busy:
            pass
        elif "--locks" in words:
            while "deadlock" not in ums("stack", crowd.pid, "--locks").stdout:
                pass
        else:
            crowd.settle()
        done = ums(*(crowd.pid if word == "PID" else word for word in words))
        assert done.returncode == 0, done.stderr
        return "\n".join(shortened(done.stdout)) + "\n"


def main():
    page, *rest = programs.take_arguments(sys.argv)
    with open(page, encoding="utf-8") as file:
        text = file.read()
    wrong = count = 0

    def renewed(block):
        nonlocal wrong, count
        count += 1
        now = printed(block[1])
        # What ran longer comes first: that may differ.
        order = sorted if block[1].startswith("$ ums trace ") else list
        if order(plain(now)) != order(plain(block[2])):
            wrong += 1
            print(f"{block[1]} prints\n{now}\nbut the page shows\n{block[2]}")
        return f"```text\n{block[1]}\n{now}```"

    text = BLOCK.sub(renewed, text)
    print(f"{count} transcripts, {wrong} wrong")
    if rest == ["--write"]:
        with open(page, "w", encoding="utf-8") as file:
            file.write(text)
        return 0
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
