#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds docs/ums-conformance.md to the tests.

conformance.py [ROOT]      every test it names exists, every line has both names, every program has its variants
conformance.py self-test   proves that this can fail
"""

import os
import re
import sys

PAGE = "docs/ums-conformance.md"
LINES = 20
# Where a suite is, and the variants that its program must have.
SUITES = {
    "yield_test": ("src/workers/scheduler/yield_test.cpp", "monitor clang"),
    "blocking_test": ("tests/scheduling/blocking_test.cpp", "monitor clang"),
    "misuse_test": ("tests/scheduling/misuse_test.cpp", "monitor clang"),
    "unseen_test": ("src/workers/left/unseen_test.cpp", "clang"),
    "crowd_test": ("tests/scheduling/crowd_test.cpp", "clang"),
    "windows_ums": ("tests/windows/ums_test.cpp", "monitor clang"),
    "windows_unseen": ("tests/windows/unseen_test.cpp", "clang"),
    "windows_crowd": ("tests/windows/crowd_test.cpp", "clang"),
}
TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
NAME = re.compile(r"`(\w+)\.(\w+)`")


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def complaints(root, page):
    found = []
    known, variants = set(), {}
    for suite, (path, wanted) in SUITES.items():
        text = read(root, path)
        known |= {f"{of}.{name}" for of, name in TEST.findall(text)}
        line = re.search(r"^// variants: (.*)$", text, re.M)
        variants[suite] = set(line.group(1).split()) if line else set()
        for missing in set(wanted.split()) - variants[suite]:
            found.append(f"{path}: there is no variant {missing}")
    seen = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or not cells[0].isdigit():
            continue
        seen.append(int(cells[0]))
        if len(cells) != 4:
            found.append(f"{PAGE}: line {cells[0]} has {len(cells)} cells, expected 4")
            continue
        for names, is_windows in ((cells[2], False), (cells[3], True)):
            named = NAME.findall(names)
            if not named:
                found.append(f"{PAGE}: line {cells[0]} names no test")
            for suite, name in named:
                if f"{suite}.{name}" not in known:
                    found.append(f"{PAGE}: line {cells[0]}: there is no test {suite}.{name}")
                elif suite.startswith("windows") != is_windows:
                    found.append(f"{PAGE}: line {cells[0]}: {suite}.{name} is in the wrong column")
    if seen != list(range(1, LINES + 1)):
        found.append(f"{PAGE}: expected the lines 1 to {LINES}, found {seen}")
    return found


def self_test(root):
    page = read(root, PAGE)
    assert complaints(root, page) == [], complaints(root, page)
    broken = {
        "a test that is gone": page.replace("windows_ums.the_end_of_a_worker", "windows_ums.the_end"),
        "a column without a test": re.sub(r"\| `misuse_test.the_event[^|]*\|", "| |", page),
        "a line that is gone": re.sub(r"^\| 9 \|.*\n", "", page, flags=re.M),
        "the wrong column": page.replace("`blocking_test.created_suspended", "`windows_ums.what_kind_of_thread_it_is` `blocking_test.created_suspended"),
    }
    for what, text in broken.items():
        assert text != page and complaints(root, text), what
    print("each complaint is made")


def main(arguments):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if arguments == ["self-test"]:
        return self_test(root)
    if len(arguments) > 1:
        sys.exit(f"conformance.py: expected [ROOT] or self-test, got {' '.join(arguments)}")
    root = arguments[0] if arguments else root
    found = complaints(root, read(root, PAGE))
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main(sys.argv[1:])
