#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts the locked instructions and membarriers of an operation, with few processors and with many.

count.py PROGRAM            with 2, 8 and 64; fails if an operation needs over 0.1 more of them, and over 4 in
                            100 more, with 8 or 64 than with 2
count.py --where PROGRAM    and says where they are
count.py --self-test        proves that it can fail

A locked instruction is what a write to a line that others write as well costs: each read-modify-write
of the library is one (and each of its locks begins with one). PROGRAM (operations.cpp) runs under
callgrind, which counts every instruction that is executed; the difference of two runs, one with
twice as many operations, leaves out what starting and stopping costs. Without valgrind it is skipped.
"""

import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
PROCESSORS = (2, 8, 64)
# Operations of the shorter run, and how many more locked instructions each may need with 64
# processors than with 2: a tenth of one, as the runs differ in how often a cache of stacks runs
# empty and the like; or 4 in 100, because how often a post meets a target that waits depends on the
# order of the threads (9.00 to 9.19 in 20 runs, however long). One more shared line costs a whole
# one.
KINDS = {"yield": 60_000, "spawn": 30_000, "park": 30_000, "post": 10_000, "batch": 10_000}
ALLOWED = 0.1
ALLOWED_SHARE = 0.04
# The work of processors that have nothing to run, and of those that they take fibers from: how much
# there is of it depends on the order in which valgrind runs the threads.
IDLE = re.compile(r"(search|idle_set|driver|ownership|membarrier)\.[ch]pp")
FENCE = "heavy_fence"


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def locked_at(program):
    """{address: instruction} of those that are locked, and the addresses where a heavy fence begins."""
    locked, fences = {}, set()
    function = ""
    for line in run("objdump", "-d", "-C", "--no-show-raw-insn", program).splitlines():
        head = re.fullmatch(r"([0-9a-f]+) <(.*)>:", line)
        if head:
            function = head[2]
            if re.search(rf"::{FENCE}\(\)$", function):
                fences.add(int(head[1], 16))
            continue
        found = re.match(r"\s*([0-9a-f]+):\s+(lock |xchg +[^,]*\(|xchg +[^,]*,.*\()", line)
        if found:
            locked[int(found[1], 16)] = function
    return locked, fences


def executed(program, kind, processors, count):
    """{address: how often} of one run."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        subprocess.run(
            ["valgrind", "-q", "--tool=callgrind", "--dump-instr=yes", "--fair-sched=yes",
             f"--callgrind-out-file={out}", program, kind, str(processors), str(count)],
            check=True, capture_output=True, text=True)
        with open(out, encoding="utf-8") as file:
            return parse(file, os.path.basename(program))


def parse(lines, program):
    """Callgrind's format: 'ob=(id) name', 'calls=...' with a line of its own, 'address line cost'."""
    names, times = {}, collections.Counter()
    here, address, is_call = False, 0, False
    for line in lines:
        found = re.match(r"(c?)ob=\((\d+)\)(?: (.*))?$", line)
        if found:
            if found[3]:
                names[found[2]] = os.path.basename(found[3])
            if not found[1]:
                here = names[found[2]] == program
            continue
        if line.startswith("calls="):
            is_call = True
            continue
        found = re.match(r"(0x[0-9a-f]+|\+\d+|-\d+|\*)(?: (\S+))?(?: (\d+))?", line)
        if not found or not re.match(r"[0x+*\-]", line):
            continue
        word = found[1]
        if word.startswith("0x"):
            address = int(word, 16)
        elif word != "*":
            address += int(word)
        if is_call:
            is_call = False
        elif here:
            times[address] += int(found[3] or 0)
    return times


def frames(program, addresses):
    """{address: [(function, file:line)...], innermost first}."""
    found, here = {address: [] for address in addresses}, 0
    lines = iter(run("addr2line", "-e", program, "-a", "-f", "-i", "-C", "-s", *map(hex, found)).splitlines())
    for line in lines:
        if line.startswith("0x"):
            here = int(line, 16)
        else:
            found[here].append((line, next(lines)))
    return found


def shown(stack):
    """The innermost frame that is not the shim's, and the outermost."""
    own = [f"{re.sub(r'[<(].*', '', name)} {place.split(' ')[0]}" for name, place in stack
           if not re.match(r"(atomic|atomic_base|futex|lock)\.h|chain", place)]
    return " < ".join(dict.fromkeys([own[0], own[-1]])) if own else "?"


def per_operation(program, kind, processors, locked, fences):
    count = KINDS[kind]
    once, twice = (executed(program, kind, processors, n) for n in (count, 2 * count))
    wanted = set(locked) | fences
    return {a: (twice[a] - once[a]) / count for a in wanted if twice[a] != once[a]}


def measure(program, show):
    locked, fences = locked_at(program)
    if len(locked) < 50 or len(fences) != 1:
        return [f"{len(locked)} locked instructions and {len(fences)} fences found: wrong build?"]
    complaints = []
    print(f"{'operation':10} {'processors':>10} {'locked':>8} {'of idle':>8} {'fences':>8}")
    for kind in KINDS:
        first = None
        for processors in PROCESSORS:
            found = per_operation(program, kind, processors, locked, fences)
            stacks = frames(program, found)
            idle = sum(n for a, n in found.items() if a in locked and is_idle(stacks[a]))
            busy = sum(n for a, n in found.items() if a in locked) - idle
            fence = sum(n for a, n in found.items() if a in fences)
            print(f"{kind:10} {processors:10} {busy:8.3f} {idle:8.3f} {fence:8.4f}", flush=True)
            if show:
                for a, n in sorted(found.items(), key=lambda one: -abs(one[1])):
                    if abs(n) >= 0.005:
                        print(f"    {n:8.3f}  {shown(stacks[a])}")
            first = busy if first is None else first
            complaints += judge(kind, processors, first, busy)
    return complaints


def is_idle(stack):
    return any(IDLE.match(place) for _, place in stack)


def judge(kind, processors, first, now):
    if now > first + max(ALLOWED, ALLOWED_SHARE * first):
        yield f"{kind}: {now:.3f} locked instructions with {processors} processors, {first:.3f} with {PROCESSORS[0]}"


def self_test():
    text = ["cob=(1) /x/program\n", "ob=(1)\n", "fn=(1) f\n", "0x10 3 5\n", "+2 4 7\n", "calls=2 0x99 1\n", "* * 100\n",
            "* 4 1\n", "ob=(2) /x/other\n", "0x10 1 1000\n", "ob=(1)\n", "0x10 3 1\n"]
    assert parse(text, "program") == {0x10: 6, 0x12: 8}, parse(text, "program")
    assert list(judge("yield", 64, 1.0, 1.2)) and not list(judge("yield", 64, 1.0, 1.05))
    assert list(judge("post", 64, 9.0, 9.5)) and not list(judge("post", 64, 9.0, 9.2))
    assert is_idle([("f", "atomic.hpp:1"), ("g", "search.cpp:2")]) and not is_idle([("h", "inbox.hpp:3")])
    return 0


def main(words):
    if words == ["--self-test"]:
        return self_test()
    if any(shutil.which(tool) is None for tool in ("valgrind", "objdump", "addr2line")):
        print("skipped: there is no valgrind, objdump or addr2line")
        return SKIPPED
    complaints = measure(words[-1], "--where" in words)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
