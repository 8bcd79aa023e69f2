#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""command.py COMMAND OUT_DIR: the manual page of the ums command.

What a subcommand does and which options it has is asked of the command itself (--help), so the
list is always whole. The rest of the page is ums.1.in, beside this file."""

import os
import re
import subprocess
import sys

import mdoc

HERE = os.path.dirname(os.path.abspath(__file__))


def help_of(command, *words):
    done = subprocess.run([command, *words, "--help"], capture_output=True, text=True, check=True)
    return done.stdout


def entries(text, title):
    """The (name, description) pairs below a title. A name that is too long for its column has a
    line of its own.
    """
    found, inside = [], False
    for line in text.split("\n"):
        if re.match(r"\S", line):
            inside = line == f"{title}:"
        elif not inside or not line.strip():
            continue
        elif re.match(r"  \S", line):
            name, _, description = re.sub(r" {2,}", "\t", line.strip(), count=1).partition("\t")
            found.append((name, description))
        else:
            name, description = found[-1]
            found[-1] = name, f"{description} {line.strip()}".strip()
    return found


def full_stop(text):
    return text if text.endswith((".", "!")) else text + "."


def option_tag(name):
    """`-h,--help` and `--json FILE|-` as mdoc has them."""
    flags, _, argument = name.partition(" ")
    tag = " , ".join(f"Fl {flag.removeprefix('-')}" for flag in flags.split(","))
    return tag + (f" Ar {mdoc.argument(argument)}" if argument else "")


def operand_tag(name):
    return f"Ar {mdoc.argument(re.sub(r' REQUIRED', '', name))}"


def subcommand(command, name, description):
    text = help_of(command, name)
    usage = re.search(r"^Usage: ums [\w-]+(.*)$", text, re.MULTILINE)[1]
    operands = " ".join(word for word in usage.replace("[OPTIONS]", "").split())
    yield f".Ss ums {name}"
    yield from mdoc.paragraph(full_stop(description[0].upper() + description[1:]))
    yield ".Bd -ragged -offset indent"
    yield f".Nm Cm {name} Oo Ar options Oc" + (f" Ar {mdoc.argument(operands)}" if operands else "")
    yield ".Ed"
    listed = [(operand_tag(one), body) for one, body in entries(text, "Positionals")]
    listed += [
        (option_tag(one), body) for one, body in entries(text, "Options") if "--help" not in one
    ]
    if listed:
        yield from mdoc.items(
            "Ds", [(tag, mdoc.paragraph(full_stop(body))) for tag, body in listed]
        )


def main(command, out):
    template = os.path.join(HERE, "ums.1.in")
    subcommands = sorted(entries(help_of(command), "Subcommands"))
    chosen = {
        "@DATE@": [f".Dd {mdoc.date([template, command])}"],
        "@SUBCOMMANDS@": [
            line for name, text in subcommands for line in subcommand(command, name, text)
        ],
    }
    lines = []
    with open(template, encoding="utf-8") as file:
        for line in file.read().rstrip("\n").split("\n"):
            lines += chosen.get(line, [line])
    mdoc.write(out, 1, "ums", lines)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
