#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the binary interface of the C API with the one that is kept here, libums.abi.

check.py LIBRARY              a program that was linked with the kept interface runs with LIBRARY
check.py --accept LIBRARY     keeps that of LIBRARY: in the first commit after a minor release
check.py --self-test LIBRARY  proves that the first can fail

What is added is no complaint, nor is a member at the end of a struct that begins with its size.
LIBRARY needs debug information. Without abigail-tools the test is skipped."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
HEADERS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "include/ums")
KEPT = os.path.join(HERE, "libums.abi")
SKIPPED = 77


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def functions(library):
    text = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    ).stdout
    # In 0.1 the names of Windows and the Linux modules were in here, too; now libums_compat has
    # them.
    return sorted(set(re.findall(r" T (ums_(?!win_|linux_)\w+)", text)))


def dump(library, to, folder):
    """The types and functions of the C headers. Types of any other file are none of the interface."""
    headers = os.path.join(folder, "headers")
    os.makedirs(headers, exist_ok=True)
    for header in glob.glob(os.path.join(HEADERS, "*.h")):
        shutil.copy(header, headers)
    names = os.path.join(folder, "functions")
    write(names, "[abi_whitelist]\n" + "".join(f"  {name}\n" for name in functions(library)))
    subprocess.run(
        [
            "abidw",
            "--exported-interfaces-only",
            "--no-show-locs",
            "--no-corpus-path",
            "--no-comp-dir-path",
            "--no-elf-needed",
            "--drop-private-types",
            "--headers-dir",
            headers,
            "--kmi-whitelist",
            names,
            "--out-file",
            to,
            library,
        ],
        check=True,
    )


def sized_structs():
    """Those that may grow: their first member is their size."""
    for header in sorted(glob.glob(os.path.join(HEADERS, "*.h"))):
        text = read(header)
        yield from re.findall(r"typedef struct (\w+) \{\n    size_t size;", text)
        yield from re.findall(r"typedef struct \{\n    size_t size;(?:[^}]*)\} (\w+);", text)


def suppressions(path):
    write(
        path,
        "".join(
            "[suppress_type]\n  type_kind = struct\n"
            f"  name = {name}\n  has_data_member_inserted_at = end\n\n"
            for name in sized_structs()
        ),
    )


def compare(kept, now, folder):
    """What abidiff says; nothing if all is as before or was added."""
    rules = os.path.join(folder, "rules")
    suppressions(rules)
    done = subprocess.run(
        ["abidiff", "--no-added-syms", "--suppressions", rules, kept, now],
        capture_output=True,
        text=True,
        check=False,
    )
    return (done.stdout + done.stderr) if done.returncode else ""


def self_test(now, folder):
    wrong = 0
    text = read(now)
    changed = os.path.join(folder, "changed.abi")
    cases = [
        ("a function that is gone", text.replace("'ums_run'", "'ums_walk'"), "ums_walk"),
        (
            "a smaller struct",
            re.sub(r"(<class-decl name='ums_mutex' size-in-bits=')\d+", r"\g<1>64", text),
            "ums_mutex",
        ),
        ("nothing", text, None),
    ]
    for what, before, part in cases:
        write(changed, before)
        got = compare(changed, now, folder)
        if bool(got) != (part is not None) or (part and part not in got):
            print(f"self-test: {what}: expected {part!r}, got {got!r}")
            wrong += 1
    print(f"self-test: {wrong} wrong")
    return 1 if wrong else 0


def main(words):
    if len(words) not in (1, 2) or (
        len(words) == 2 and words[0] not in ("--accept", "--self-test")
    ):
        print(__doc__, file=sys.stderr)
        return 2
    if not shutil.which("abidw") or not shutil.which("abidiff"):
        print("skipped: abigail-tools are not here (tools/setup package)")
        return SKIPPED
    library = words[-1]
    sections = subprocess.run(
        ["readelf", "-SW", library], capture_output=True, text=True, check=True
    ).stdout
    if ".debug_info" not in sections:
        print(f"skipped: {library} has no debug information")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        now = os.path.join(folder, "now.abi")
        dump(library, now, folder)
        if words[0] == "--accept":
            shutil.copy(now, KEPT)
            return 0
        if words[0] == "--self-test":
            return self_test(now, folder)
        complaint = compare(KEPT, now, folder)
        print(complaint or f"{len(functions(library))} functions: as kept, or added")
        return 1 if complaint else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
