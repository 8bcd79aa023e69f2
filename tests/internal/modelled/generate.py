#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""generate.py SOURCES OUT LIST: copies of the library's text for models, with mutants that a test can switch on.

LIST names files, and for each what is replaced in it:

    @file sched/block/hand_off.cpp
    @without sched/run/park.hpp
                        the text of the model has no such include
    @only bool search::rob(
                        of the file that alone, up to its closing brace; several times: each
    @kept next first_   plain variables, or owned ones, that the model checks (internal/modelled/kept.hpp)
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
import re
import sys


def parse(lines):
    files, edit = {}, None
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\n")
        if line.startswith("@file "):
            edits, only = files.setdefault(line[6:].strip(), ([], []))
        elif line.startswith("@without "):
            edits.append({"name": None, "old": [f'#include "{line[9:].strip()}"\n'], "new": []})
        elif line.startswith("@kept "):
            edits.extend({"name": None, "kept": name} for name in line[6:].split())
        elif line.startswith("@only "):
            only.append(line[6:].strip())
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


def keep(text, names, file):
    """What begins in column 0 with one of the names, up to its brace or semicolon, with its template head."""
    parts = []
    for name in names:
        at = [i + 1 for i in range(len(text)) if text.startswith("\n" + name, i)]
        if len(at) != 1:
            sys.exit(f"{file}: not there exactly once: {name}")
        end = re.compile(r";\n|\{(?:.*\};?|[\0-\377]*?\n\};?)\n").search(text, at[0]).end()
        head = text.rindex("\n", 0, at[0] - 1) + 1
        parts.append(text[head if text.startswith("template", head) else at[0]:end])
    return "\n".join(parts)


def keep_checked(text, name, file):
    declared = rf"^( +)(?:base::owned<(.+)>|(\w[\w:<>* ]*)) ({name}(?: = |\{{|;))"
    text, found = re.subn(declared, lambda m: f"{m[1]}tso::kept<{m[2] or m[3]}> {m[4]}", text, flags=re.M)
    if found != 1:
        sys.exit(f"{file}: {found} declarations of {name}")
    return text


def main():
    sources, out, listed = (pathlib.Path(a) for a in sys.argv[1:4])
    mutants = []
    for name, (edits, only) in parse(listed.read_text().splitlines()).items():
        text = (sources / name).read_text().replace("private:", "public:")
        if only:
            text = keep(text, only, name)
        for edit in edits:
            if "kept" in edit:
                text = keep_checked(text, edit["kept"], name)
                continue
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
