#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks every #include against the layers, and two rules about file names and licences.

check.py [ROOT]      prints each violation as file:line: ..., and fails if there is one
check.py --self-test proves that it can fail
"""

import os
import re
import sys
import tempfile

# The folders of src/, top first. A folder includes itself and the folders of the lines below it.
# include/ums may be included from everywhere.
LAYERS = [
    ["preload"],
    ["capi", "scheduling"],
    ["rt"],
    ["sync", "io"],
    ["sched"],  # With sched/policies.
    ["carry"],
    ["mem", "time"],
    ["arch", "os"],
    ["base"],
]
LEVEL = {folder: level for level, row in enumerate(reversed(LAYERS)) for folder in row}

# These include the public headers and what is their own.
TOPS = ["tools", "examples", "bench", "tests", "compat"]

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
    if there in (None, "include") or (here == there and not target.startswith(INTERNAL)):
        return None
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


def check_file(root, path):
    name = os.path.basename(path)
    layer = layer_of(path)
    if layer in ("src", "include") or layer.startswith("src/"):
        if re.match(r"scheduler\.", name):
            yield path, 1, "no file is called scheduler: name the noun it is"
    if layer == "src" or (layer.startswith("src/") and layer[len("src/"):] not in LEVEL):
        yield path, 1, "the folder is not in the table of layers"

    with open(os.path.join(root, path), encoding="utf-8") as file:
        lines = file.read().splitlines()
    if path.endswith(".hpp") and lines[:1] != [LICENCE]:
        yield path, 1, f"does not start with '{LICENCE}'"

    for number, line in enumerate(lines, 1):
        include = INCLUDE.match(line)
        if not include:
            continue
        found = resolve(root, path, *include.groups())
        if found and (why := objection(path, found[0])):
            yield path, number, f"includes {found[0]}: {why}"


def check(root):
    for top in ["include", "src"] + TOPS:
        for folder, folders, files in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(files):
                if name.endswith(SOURCES):
                    path = os.path.relpath(os.path.join(folder, name), root)
                    yield from check_file(root, path)


# Each case: a file, its text, and a part of the one complaint that it must cause, or None.
CASES = [
    ("include/ums/fiber.hpp", "#include <ums/impl/word.hpp>", None),
    ("include/ums/impl/word.hpp", "#include <atomic>", None),
    ("include/ums/down.hpp", '#include "sched/park.hpp"', "public headers only"),
    ("include/ums/scheduler.hpp", "", "scheduler"),
    ("src/base/list.hpp", "", None),
    ("src/base/up.cpp", '#include "sched/park.hpp"', "src/sched is above src/base"),
    ("src/base/angle.cpp", "#include <sched/park.hpp>", "src/sched is above src/base"),
    ("src/base/dots.cpp", '# include "../os/futex.hpp"', "src/os is above src/base"),
    ("src/base/tool.cpp", '#include "../../tools/ums/page.hpp"', "does not include tools/"),
    ("src/os/futex.hpp", '#include "base/list.hpp"', None),
    ("src/arch/x86_64/switch.S", '#include "os/futex.hpp"', "same level"),
    ("src/sched/park.hpp", '#include "os/futex.hpp"\n#include "base/list.hpp"', None),
    ("src/sched/park.cpp", '#include "park.hpp"\n#include <ums/fiber.hpp>', None),
    ("src/sched/scheduler.cpp", "", "scheduler"),
    ("src/sched/policies/fifo.cpp", '#include "sched/park.hpp"\n#include "../park.hpp"', None),
    ("src/sched/policies/bad.cpp", '#include "io/engine.hpp"', "src/io is above src/sched"),
    ("src/sched/park_test.cpp", '#include "gtest/gtest.h"\n#include "os/futex.hpp"', None),
    ("src/sched/bad_test.cpp", '#include "rt/start.hpp"', "src/rt is above src/sched"),
    ("src/sync/bad.cpp", '// 1\n\n#include "io/engine.hpp"', "same level"),
    ("src/io/engine.hpp", '#include "sched/park.hpp"\n// #include "rt/start.hpp"', None),
    ("src/rt/start.hpp", '#include "io/engine.hpp"', None),
    ("src/scheduling/worker.hpp", '#include "rt/start.hpp"', None),
    ("src/capi/bad.cpp", '#include "scheduling/worker.hpp"', "same level"),
    ("src/preload/all.cpp", '#include "scheduling/worker.hpp"\n#include "rt/start.hpp"', None),
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
    ("tools/ums/page.hpp", "", None),
    ("tools/ums/main.cpp", '#include "page.hpp"\n#include <ums/fiber.hpp>', None),
    ("bench/yield/ums.cpp", '#include "../../tools/ums/page.hpp"', "bench/ includes public"),
    ("examples/hello.cpp", '#include "../src/sched/park.hpp"', "examples/ includes public"),
    ("tests/fiber/life_test.cpp", '#include "sched/park.hpp"', "tests/ includes public"),
    ("tests/support/child.hpp", '#include "sched/park.hpp"', "tests/ includes public"),
    ("tests/internal/model.hpp", '#include "sched/park.hpp"\n#include "support/child.hpp"', None),
    ("tests/internal/more.hpp", '#include "internal/model.hpp"', None),
    ("tests/fiber/model_test.cpp", '#include "internal/model.hpp"', "is for the tests in src/"),
    ("src/sched/model_test.cpp", '#include "internal/model.hpp"', None),
    ("src/sched/model.cpp", '#include "internal/model.hpp"', "is for the tests in src/"),
    ("src/sched/life_test.cpp", '#include "support/child.hpp"', None),
    ("src/sched/bad.hpp", '#include "support/child.hpp"', "does not include tests/"),
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
        for path, line, what in check(root):
            complaints.setdefault(path, []).append(f"{path}:{line}: {what}")
    for path, _, expected in CASES:
        got = complaints.get(path, [])
        if len(got) != (expected is not None) or (got and expected not in got[0]):
            wrong += 1
            print(f"self-test: {path}: expected {expected!r}, got {got}")
    if complaints["src/sync/bad.cpp"][0].split(":")[1] != "4":
        wrong += 1
        print("self-test: wrong line number:", complaints["src/sync/bad.cpp"][0])
    print(f"self-test: {len(CASES)} cases, {wrong} wrong")
    return 1 if wrong else 0


def main(args):
    if args == ["--self-test"]:
        return self_test()
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.abspath(args[0]) if args else os.path.dirname(os.path.dirname(here))
    violations = list(check(root))
    for path, line, what in violations:
        print(f"{path}:{line}: {what}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
