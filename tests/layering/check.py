#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks every #include against the layers and the rooms, each system call against the two tables of them, and two
rules about file names and licences.

check.py [ROOT]      prints each violation as file:line: ... and fails if there is one; else counts
                     rooms, floors and arrows
check.py --self-test proves that it can fail
"""

import collections
import os
import re
import sys
import tempfile

# The folders of src/, top first. A folder includes itself and the folders of the lines below it.
# include/ums may be included from everywhere.
LAYERS = [
    ["preload"],
    ["capi", "workers"],
    ["runtime"],
    ["sync", "io"],
    ["sched"],
    ["carry"],
    ["mem", "time"],
    ["arch", "os"],
    ["base"],
]
LEVEL = {folder: level for level, row in enumerate(reversed(LAYERS)) for folder in row}

# The rooms of a folder, top first; a row is a floor. A room includes itself and the rooms of the
# floors below it. "." is the folder itself, where its files do not all lie in rooms.
ROOMS = {
    "sched": [["life", "report"], ["record", "lock"], ["block"], ["run"], ["policies"], ["queue"], ["fiber"]],
    "io": [["net", "."], ["engine"], ["away"], ["wait"]],
    "workers": [["."], ["left"], ["scheduler"], ["worker"]],
    "sync": [["channel"], ["."]],
    "carry": [["detect"], ["."]],
    "os": [["cpu", "signal", "thread"], ["."]],
}
FLOOR = {
    folder: {room: floor for floor, row in enumerate(reversed(floors)) for room in row}
    for folder, floors in ROOMS.items()
}

# The upward includes that there still are. The list only shrinks: an include that is gone must go
# from here as well.
UPWARD = {
    "src/io/wait/descriptor.cpp": ["src/io/engine/engine.hpp"],
    "src/sched/fiber/exit_hooks.cpp": ["src/sched/run/park.hpp"],
    "src/sched/queue/timer_queue.cpp": ["src/sched/run/wake.hpp"],
    "src/sched/run/carrier.cpp": [
        "src/sched/block/carrier_pool.hpp",
        "src/sched/block/hand_off.hpp",
        "src/sched/block/stop.hpp",
        "src/sched/lock/bias.hpp",
    ],
    "src/sched/run/cluster.cpp": ["src/sched/lock/urgency.hpp"],
    "src/sched/run/cluster.hpp": ["src/sched/block/carrier_pool.hpp"],
    "src/sched/run/departure.hpp": ["src/sched/block/keep.hpp"],
    "src/sched/run/pause.cpp": ["src/sched/block/stop.hpp"],
    "src/sched/run/processor.cpp": ["src/sched/lock/bias.hpp"],
    "src/sched/run/processor.hpp": ["src/sched/record/trace.hpp"],
    "src/workers/scheduler/scheduler_thread.cpp": ["src/workers/left/stray.hpp"],
    "src/workers/scheduler/scheduler_thread.hpp": ["src/workers/left/watch.hpp"],
    "src/workers/worker/worker_thread.cpp": [
        "src/workers/left/crossing.hpp",
        "src/workers/left/stop_point.hpp",
        "src/workers/scheduler/seat.hpp",
    ],
}

# So that a room can be read at a sitting; tests do not count.
MOST_FILES = 25

# These have at least so many assertions in a thousand lines (docs/design/assertions.md).
ASSERTED = ["compat", "src/capi", "src/io", "src/mem", "tools/ums"]
LEAST_ASSERTIONS = 6
ASSERTION = re.compile(r"\b(UMS_(DEBUG_)?(ASSERT|CHECK)|compat::check|assert)\(")

# System calls go through os::system or os::io_system, where a test can make them fail
# (src/runtime/faults_test.cpp). These are made elsewhere, with the reason; the list only shrinks.
SYSTEM_CALL = re.compile(
    r"(?<![\w:>.])::(syscall|open|openat|close|read|write|readv|writev|pread|pwrite|lseek|pipe2?|poll|ppoll|fcntl|ioctl|"
    r"dup[23]?|mmap|munmap|mremap|mprotect|madvise|mincore|eventfd|epoll_\w+|timer_\w+|socket|socketpair|bind|listen|"
    r"accept4?|connect|send|sendto|sendmsg|recv|recvfrom|recvmsg|shutdown|fstat)\("
)
AROUND = {
    "src/os/system.cpp": "a table",
    "src/os/io_calls.cpp": "a table",
    "src/base/assert.cpp": "lies below the tables",
    "src/capi/posix.cpp": "on a plain thread it is the C library's call itself, errno and cancellation included",
    "src/os/source_lines.cpp": "a process of its own after a crash, which shares the memory but not the tables' promises",
    "src/os/thread/slice.cpp": "sched_setattr(), which the C library does not have",
}

# These include the public headers and what is their own.
TOPS = ["tools", "examples", "bench", "tests", "compat", "mpi"]

# What the folders of compat/ share; it includes nothing else of ours but public headers.
COMPAT_BASE = "compat/base"

# Helpers for tests of every layer: any NOUN_test.cpp may include them, as "support/NAME.hpp".
SUPPORT = "tests/support/"

# Helpers that see src/, as "internal/NAME.hpp": models and faults. For the tests in src/ and for
# themselves.
INTERNAL = "tests/internal/"

SOURCES = (".hpp", ".h", ".cpp", ".c", ".S", ".inc", ".ipp")
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
LICENCE = "// SPDX-License-Identifier: MIT"


def layer_of(path):
    """The layer a file belongs to: 'include', 'tools', 'src/sched', 'compat/windows', ...; None if it is not ours."""
    parts = path.split("/")
    if parts[0] in ("src", "compat"):
        return "/".join(parts[:2]) if len(parts) > 2 else parts[0]
    return parts[0] if parts[0] in TOPS + ["include"] else None


def room_of(path):
    """The folder of src/ and the room in it that a file belongs to: ('sched', 'run'), ('base', '.'), or None."""
    parts = path.split("/")
    if parts[0] != "src" or len(parts) < 3:
        return None
    # A folder without rooms is one, with all that lies in it.
    return parts[1], parts[2] if len(parts) > 3 and parts[1] in ROOMS else "."


def resolve(root, path, quote, name):
    """The files of ours that an #include may mean, best first, as the compiler searches them."""
    folders = ["include", "tests"]
    # Each has a folder base.
    folders.insert(1, "compat" if path.startswith("compat/") else "src")
    if quote == '"':
        folders.insert(0, os.path.dirname(path))
    found = []
    for folder in folders:
        target = os.path.normpath(os.path.join(folder, name))
        if os.path.isfile(os.path.join(root, target)) and target not in found:
            found.append(target)
    return found


def objection(path, target):
    """Why the file `path` may not include the file `target`, or None."""
    here, there = layer_of(path), layer_of(target)
    if there in (None, "include"):
        return None
    if here == there and not target.startswith(INTERNAL):
        return objection_to_room(path, target)
    if target.startswith(SUPPORT) and path.endswith("_test.cpp"):
        return None
    if target.startswith(INTERNAL):
        is_theirs = path.startswith(INTERNAL) or (here.startswith("src/") and path.endswith("_test.cpp"))
        return None if is_theirs else f"{INTERNAL} is for the tests in src/"
    if path.startswith(INTERNAL) and there.startswith("src/"):
        return None
    if here == "include":
        return "a public header includes public headers only"
    if here.startswith("compat/"):
        if there == COMPAT_BASE:
            return None
        return f"{here} includes public headers, its own and compat/base only"
    if here in TOPS:
        return f"{here}/ includes public headers only"
    if there.split("/")[0] in TOPS:
        return f"src/ does not include {there.split('/')[0]}/"
    mine, its = (LEVEL.get(layer[len("src/"):]) for layer in (here, there))
    if mine is None or its is None:
        return None  # Reported once, for the folder.
    if mine == its:
        return f"{here} and {there} are on the same level"
    return f"{there} is above {here}" if mine < its else None


def objection_to_room(path, target):
    """Why `path` may not include `target` of the same folder, or None."""
    here, there = room_of(path), room_of(target)
    if here == there or path.endswith("_test.cpp") or here[0] not in ROOMS:
        return None
    floors = FLOOR[here[0]]
    mine, its = floors.get(here[1]), floors.get(there[1])
    if mine is None or its is None or mine > its or target in UPWARD.get(path, ()):
        return None  # A room that is missing in the table is reported once for each of its files.
    how = "on the floor of" if mine == its else "above"
    return f"the room {there[1]} is {how} {here[1]}"


def check_file(root, path, counts=None):
    name = os.path.basename(path)
    layer = layer_of(path)
    if layer in ("src", "include") or layer.startswith("src/"):
        if re.match(r"scheduler\.", name):
            yield path, 1, "no file is called scheduler: name the noun it is"
    if layer == "src" or (layer.startswith("src/") and layer[len("src/"):] not in LEVEL):
        yield path, 1, "the folder is not in the table of layers"
    folder, room = room_of(path) or (None, None)
    if folder in ROOMS and room not in FLOOR[folder]:
        yield path, 1, "the room is not in the table of rooms"

    with open(os.path.join(root, path), encoding="utf-8") as file:
        lines = file.read().splitlines()
    if counts and not path.endswith("_test.cpp"):
        counts.look(path, lines)
    if path.endswith(".hpp") and lines[:1] != [LICENCE]:
        yield path, 1, f"does not start with '{LICENCE}'"

    holds_call = False
    for number, line in enumerate(lines, 1):
        if path.startswith("src/") and not path.endswith("_test.cpp"):
            if call := SYSTEM_CALL.search(line.split("//")[0]):
                holds_call = True
                if path not in AROUND:
                    yield path, number, f"makes the system call {call[1]}() itself: use os/system.hpp or os/io_calls.hpp"
        include = INCLUDE.match(line)
        if not include:
            continue
        found = resolve(root, path, *include.groups())
        if not found:
            continue
        if why := objection(path, found[0]):
            yield path, number, f"includes {found[0]}: {why}"
        elif counts and not path.endswith("_test.cpp"):
            counts.add(path, found[0])
    if path in AROUND and not holds_call:
        yield path, 1, "no longer makes a system call itself: take it off AROUND"


class Counts:
    """What lies in which room of src/, and which room includes which."""

    def __init__(self):
        self.files = collections.Counter()  # By room.
        self.arrows = collections.defaultdict(set)  # By folder: pairs of its rooms.
        self.upward = set()  # Pairs of files.
        self.text = collections.Counter()  # Lines, by folder of ASSERTED; and their assertions:
        self.assertions = collections.Counter()

    def look(self, path, lines):
        for folder in ASSERTED:
            if path.startswith(folder + "/"):
                self.text[folder] += len(lines)
                self.assertions[folder] += sum(
                    bool(ASSERTION.search(line)) for line in lines if not line.startswith("#define")
                )

    def add(self, path, target):
        here, there = room_of(path), room_of(target)
        if here is None or there is None or here[0] != there[0] or here == there:
            return
        self.arrows[here[0]].add((here[1], there[1]))
        if target in UPWARD.get(path, ()):
            self.upward.add((path, target))

    def objections(self):
        for path, targets in UPWARD.items():
            for target in targets:
                if (path, target) not in self.upward:
                    yield path, 1, f"no longer includes {target}: take it off UPWARD, the list of upward includes"
        for (folder, room), number in sorted(self.files.items()):
            if folder == "sched" and number > MOST_FILES:
                yield f"src/{folder}/{room}", 1, f"holds {number} files, more than {MOST_FILES}"
        for folder, lines in sorted(self.text.items()):
            if self.assertions[folder] * 1000 < lines * LEAST_ASSERTIONS:
                yield folder, 1, f"{self.assertions[folder]} assertions in {lines} lines: too few"

    def lines(self):
        for folder, floors in ROOMS.items():
            is_up = lambda pair: FLOOR[folder][pair[0]] <= FLOOR[folder][pair[1]]
            arrows = self.arrows[folder]
            rooms = ", ".join(f"{room} {self.files[folder, room]}" for row in floors for room in row)
            yield (
                f"src/{folder}: {sum(map(len, floors))} rooms on {len(floors)} floors, "
                f"{len(arrows)} arrows, {sum(map(is_up, arrows))} of them upward; files: {rooms}"
            )
        yield f"upward includes: {len(self.upward)}"
        each = [f"{one} {1000 * self.assertions[one] / self.text[one]:.1f}" for one in ASSERTED if self.text[one]]
        yield f"assertions a thousand lines: {', '.join(each)}"


def check(root, counts=None):
    for top in ["include", "src"] + TOPS:
        for folder, folders, files in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(files):
                if name.endswith(SOURCES):
                    path = os.path.relpath(os.path.join(folder, name), root)
                    if counts and (room := room_of(path)) and not name.endswith("_test.cpp"):
                        counts.files[room] += 1
                    yield from check_file(root, path, counts)


# Each case: a file, its text, and a part of the one complaint that it must cause, or None.
CASES = [
    ("include/ums/fiber.hpp", "#include <ums/impl/word.hpp>", None),
    ("include/ums/impl/word.hpp", "#include <atomic>", None),
    ("include/ums/down.hpp", '#include "sched/run/park.hpp"', "public headers only"),
    ("include/ums/scheduler.hpp", "", "scheduler"),
    ("src/base/list.hpp", "", None),
    ("src/base/up.cpp", '#include "sched/run/park.hpp"', "src/sched is above src/base"),
    ("src/base/angle.cpp", "#include <sched/run/park.hpp>", "src/sched is above src/base"),
    ("src/base/dots.cpp", '# include "../os/futex.hpp"', "src/os is above src/base"),
    ("src/base/tool.cpp", '#include "../../tools/ums/page.hpp"', "does not include tools/"),
    ("src/os/futex.hpp", '#include "base/list.hpp"', None),
    ("src/arch/x86_64/switch.S", '#include "os/futex.hpp"', "same level"),
    ("src/sched/run/park.hpp", '#include "os/futex.hpp"\n#include "base/list.hpp"', None),
    ("src/sched/run/park.cpp", '#include "park.hpp"\n#include <ums/fiber.hpp>', None),
    ("src/sched/run/scheduler.cpp", "", "scheduler"),
    ("src/sched/policies/fifo.cpp", '#include "sched/queue/ring.hpp"\n#include "../queue/ring.hpp"', None),
    ("src/sched/queue/ring.hpp", "", None),
    ("src/sched/policies/bad.cpp", '#include "io/engine/engine.hpp"', "src/io is above src/sched"),
    ("src/sched/fiber/up.cpp", '#include "sched/run/park.hpp"', "the room run is above fiber"),
    ("src/sched/fiber/up_test.cpp", '#include "sched/run/park.hpp"', None),
    ("src/sched/fiber/exit_hooks.cpp", '#include "sched/run/park.hpp"', None),
    ("src/sched/life/end.hpp", '#include "sched/run/park.hpp"\n#include "sched/report/crash.hpp"', "on the floor of"),
    ("src/sched/report/crash.hpp", "", None),
    ("src/sched/attic/old.hpp", "", "not in the table of rooms"),
    ("src/sched/loose.hpp", "", "not in the table of rooms"),
    ("src/os/cpu/topology.hpp", '#include "os/futex.hpp"', None),
    ("src/sched/run/park_test.cpp", '#include "gtest/gtest.h"\n#include "os/futex.hpp"', None),
    ("src/sched/run/bad_test.cpp", '#include "runtime/start.hpp"', "src/runtime is above src/sched"),
    ("src/sync/bad.cpp", '// 1\n\n#include "io/engine/engine.hpp"', "same level"),
    ("src/io/engine/engine.hpp", '#include "sched/run/park.hpp"\n// #include "runtime/start.hpp"', None),
    ("src/runtime/start.hpp", '#include "io/engine/engine.hpp"', None),
    ("src/workers/worker.hpp", '#include "runtime/start.hpp"', None),
    ("src/capi/bad.cpp", '#include "workers/worker.hpp"', "same level"),
    ("src/preload/all.cpp", '#include "workers/worker.hpp"\n#include "runtime/start.hpp"', None),
    ("src/other/new.cpp", "", "not in the table"),
    ("src/loose.cpp", "", "not in the table"),
    ("src/os/angle.cpp", '#include "compat/windows/word.hpp"', None),
    ("src/os/dots.cpp", '#include "../../compat/windows/word.hpp"', "does not include compat/"),
    ("compat/base/word.hpp", "", None),
    ("compat/base/bad.cpp", '#include "windows/word.hpp"', "compat/base includes public"),
    ("compat/windows/word.hpp", '#include "base/word.hpp"\n#include "ums/fiber.hpp"', None),
    ("compat/windows/bad.cpp", '#include "../../src/os/futex.hpp"', "compat/windows includes public"),
    ("compat/linux_ums/bad.cpp", '#include "windows/word.hpp"', "compat/linux_ums includes public"),
    ("tests/windows/bad_test.cpp", '#include "../../compat/base/word.hpp"', "tests/ includes public"),
    ("mpi/wait.hpp", "", None),
    ("mpi/wait.cpp", '#include "wait.hpp"\n#include <ums/fiber.hpp>', None),
    ("mpi/bad.cpp", '#include "../src/os/futex.hpp"', "mpi/ includes public"),
    ("tools/ums/page.hpp", "", None),
    ("tools/ums/main.cpp", '#include "page.hpp"\n#include <ums/fiber.hpp>', None),
    ("bench/yield/ums.cpp", '#include "../../tools/ums/page.hpp"', "bench/ includes public"),
    ("examples/hello.cpp", '#include "../src/sched/run/park.hpp"', "examples/ includes public"),
    ("tests/fiber/life_test.cpp", '#include "sched/run/park.hpp"', "tests/ includes public"),
    ("tests/support/child.hpp", '#include "sched/run/park.hpp"', "tests/ includes public"),
    ("tests/internal/model.hpp", '#include "sched/run/park.hpp"\n#include "support/child.hpp"', None),
    ("tests/internal/more.hpp", '#include "internal/model.hpp"', None),
    ("tests/fiber/model_test.cpp", '#include "internal/model.hpp"', "is for the tests in src/"),
    ("src/sched/run/model_test.cpp", '#include "internal/model.hpp"', None),
    ("src/sched/run/model.cpp", '#include "internal/model.hpp"', "is for the tests in src/"),
    ("src/sched/run/life_test.cpp", '#include "support/child.hpp"', None),
    ("src/sched/run/bad.hpp", '#include "support/child.hpp"', "does not include tests/"),
    ("src/io/net/dial.cpp", "int f() { return ::socket(1, 1, 0); }", "makes the system call socket() itself"),
    ("src/io/net/dial_test.cpp", "int f() { return ::socket(1, 1, 0); }", None),
    ("src/io/net/talk.cpp", "// As ::read() does.\nint g() { return io::read(1) + x->write(2) + other::close(3); }", None),
    ("src/os/system.cpp", "int h() { return ::close(3); }", None),
    ("src/os/io_calls.cpp", "int f() { return 0; }", "take it off AROUND"),
    ("src/base/bare.hpp", None, "does not start with"),
]


def self_test():
    wrong = 0
    with tempfile.TemporaryDirectory() as root:
        for path, text, _ in CASES:
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write("\n" if text is None else f"{LICENCE}\n{text}\n")
        complaints = {}
        counts = Counts()
        for path, line, what in check(root, counts):
            complaints.setdefault(path, []).append(f"{path}:{line}: {what}")
        stale = {path for path, _, _ in counts.objections()}
    for path, _, expected in CASES:
        got = complaints.get(path, [])
        if len(got) != (expected is not None) or (got and expected not in got[0]):
            wrong += 1
            print(f"self-test: {path}: expected {expected!r}, got {got}")
    if complaints["src/sync/bad.cpp"][0].split(":")[1] != "4":
        wrong += 1
        print("self-test: wrong line number:", complaints["src/sync/bad.cpp"][0])
    bare = {"compat", "src/capi", "src/io", "tools/ums"}  # None of the cases has an assertion.
    if stale != (set(UPWARD) | bare) - {"src/sched/fiber/exit_hooks.cpp"}:
        wrong += 1
        print("self-test: wrong list of upward includes that are gone, or of folders:", sorted(stale))
    print(f"self-test: {len(CASES)} cases, {wrong} wrong")
    return 1 if wrong else 0


def main(args):
    if args == ["--self-test"]:
        return self_test()
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.abspath(args[0]) if args else os.path.dirname(os.path.dirname(here))
    counts = Counts()
    violations = list(check(root, counts))
    violations += counts.objections()
    for path, line, what in violations:
        print(f"{path}:{line}: {what}")
    if not violations:
        print("\n".join(counts.lines()))
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
