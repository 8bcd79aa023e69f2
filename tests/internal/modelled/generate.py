#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""generate.py SOURCES OUT LIST: copies of the library's text for models, with mutants that a test can switch on.

LIST names files, and for each what is replaced in it:

    @file sched/block/hand_off.cpp
    @always             the model needs it: a smaller bound, a call that it does not have
    - old text          (several lines are joined)
    + new text
    @mutant name        on while tso::mutant is its number
    - old text          a statement if it ends in ; or }, else an expression
    + new text          if it has $on in it, that is whether the mutant is on

Each old text must be there exactly once. One that is not is a mutant that its test reports as missing.
`private:` becomes `public:`, for the proof looks at everything.
"""
import pathlib
import sys


def parse(lines):
    files, edit = {}, None
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\n")
        if line.startswith("@file "):
            edits = files.setdefault(line[6:].strip(), [])
        elif line.startswith("@"):
            edit = {"name": line[8:].strip() if line.startswith("@mutant ") else None, "old": [], "new": []}
            edits.append(edit)
        elif line.startswith("- "):
            edit["old"].append(line[2:])
        elif line.startswith("+"):
            edit["new"].append(line[2:])
        elif line.strip() and not line.startswith("#"):
            sys.exit(f"line {number}: {line}")
    return files


def main():
    sources, out, listed = (pathlib.Path(a) for a in sys.argv[1:4])
    mutants = []
    for name, edits in parse(listed.read_text().splitlines()).items():
        text = (sources / name).read_text().replace("private:", "public:")
        for edit in edits:
            old, new = "\n".join(edit["old"]), "\n".join(edit["new"])
            is_there = text.count(old) == 1
            if edit["name"] is None:
                if not is_there:
                    sys.exit(f"{name}: not there exactly once: {old}")
                text = text.replace(old, new)
                continue
            mutants.append((edit["name"], is_there))
            here = f"ums::tso::is_on({len(mutants)})"
            if "$on" in new:
                made = new.replace("$on", here)
            elif old.rstrip().endswith((";", "}")):
                made = f"{{ if ({here}) {{ {new} }} else {{ {old} }} }}"
            else:
                made = f"({here} ? ({new}) : ({old}))"
            text = text.replace(old, made) if is_there else text
        to = out / name
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(text)
    rows = "".join(f'    {{"{name}", {str(is_there).lower()}}},\n' for name, is_there in mutants)
    (out / f"{listed.stem}.inc").write_text(rows)


main()
