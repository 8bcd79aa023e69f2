#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds the manual pages to what there is.

check.py functions LIBRARY   each function that libums.so shows has a page and a text; mandoc lints all
check.py command COMMAND     the page of the command has each subcommand and option; mandoc lints it
check.py self-test           proves that each of them can fail

Without mandoc all else is checked, and the test then counts as skipped.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MAN = os.path.join(ROOT, "tools/man")
SKIPPED = 77


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def shown(library):
    """The C functions of the library's symbol table."""
    lines = run("nm", "-D", "--defined-only", library).splitlines()
    return sorted(
        re.sub(r"@.*", "", line.split()[2]) for line in lines if re.search(r" T ums_", line)
    )


def pages_of(folder):
    """{name.section: text}, with the links followed."""
    texts = {}
    for section in sorted(os.listdir(folder)):
        for name in sorted(os.listdir(os.path.join(folder, section))):
            texts[f"{section}/{name}"] = read(os.path.join(folder, section, name))
    followed = {}
    for name, text in texts.items():
        link = re.fullmatch(r"\.so (\S+)\n", text)
        followed[name] = texts.get(link[1], "") if link else text
    return texts, followed


def described(page, name):
    """Whether the list of functions on the page has something to say of this one."""
    lines = page.split("\n")
    for at, line in enumerate(lines):
        if re.fullmatch(rf"\.(It )?Fn {name}( ,)?", line):
            # Past the other functions that share the text.
            rest = [one for one in lines[at + 1 :] if not re.match(r"\.(Fn|Xc)\b", one)]
            return bool(rest) and not rest[0].startswith((".It", ".El"))
    return False


def lint(folder):
    """What mandoc says of the pages. It looks for those they refer to in its working folder."""
    with tempfile.TemporaryDirectory() as flat:
        for section in os.listdir(folder):
            for name in os.listdir(os.path.join(folder, section)):
                shutil.copy(os.path.join(folder, section, name), flat)
        pages = [
            name
            for name in sorted(os.listdir(flat))
            if not read(os.path.join(flat, name)).startswith(".so ")
        ]
        done = subprocess.run(
            ["mandoc", "-T", "lint", *pages], cwd=flat, capture_output=True, text=True, check=False
        )
        return (done.stdout + done.stderr).splitlines()


def check_functions(folder, names):
    texts, followed = pages_of(folder)
    for name in names:
        page = followed.get(f"man3/{name}.3")
        if page is None:
            yield f"{name}() has no page"
        elif not described(page, name):
            yield f"the page of {name}() says nothing of it"
    for name, text in texts.items():
        if text.startswith(".so ") and not followed[name]:
            yield f"{name} is a link to nothing: {text.strip()}"


def words_of_help(text):
    """The subcommands and the long options that a --help lists."""
    for line in text.splitlines():
        if match := re.match(r"  (?:-\w,)?(--[\w-]+)|  ([\w-]+)  +\S", line):
            yield match[1] or match[2]


def check_command(page, command):
    for subcommand in re.findall(
        r"^  ([\w-]+)  ", run(command, "--help").partition("Subcommands:")[2], re.MULTILINE
    ):
        part = page.partition(f".Ss ums {subcommand}\n")[2].partition("\n.S")[0]
        if not part:
            yield f"the page tells nothing of ums {subcommand}"
            continue
        if re.search(r"\bAr \"?\\?-", part):
            yield f"the synopsis of ums {subcommand} has an operand that looks like an option"
        for word in words_of_help(run(command, subcommand, "--help")):
            if word.startswith("--") and word != "--help" and f"Fl {word[1:]}" not in part:
                yield f"the page does not tell of ums {subcommand} {word}"


def report(complaints, folder):
    complaints = list(complaints)
    linted = shutil.which("mandoc") is not None
    if linted:
        complaints += lint(folder)
    for complaint in complaints:
        print(complaint)
    count = sum(len(names) for _, _, names in os.walk(folder))
    print(f"{count} pages and links, {len(complaints)} complaints")
    if complaints:
        return 1
    if not linted:
        print("skipped in part: there is no mandoc here to lint them (tools/setup docs)")
    return 0 if linted else SKIPPED


def self_test():
    wrong = []

    def expect(what, got, part):
        got = list(got)
        if not any(part in one for one in got):
            wrong.append(f"{what}: expected {part!r}, got {got}")

    with tempfile.TemporaryDirectory() as folder:
        run(os.path.join(MAN, "functions.py"), os.path.join(ROOT, "include"), "0.0.0", folder)
        expect(
            "a function without a page",
            check_functions(folder, ["ums_nothing"]),
            "ums_nothing() has no page",
        )
        page = os.path.join(folder, "man3/ums_mutex.3")
        text = read(page)
        if list(check_functions(folder, ["ums_mutex_lock"])):
            wrong.append("a page that is right is complained about")
        entry = ".It Fn ums_mutex_trylock\n"
        head, _, tail = text.partition(entry)
        with open(page, "w", encoding="utf-8") as file:
            file.write(head + entry + tail[tail.index(".It Fn") :])
        expect(
            "a function without a text",
            check_functions(folder, ["ums_mutex_trylock"]),
            "says nothing of it",
        )
        os.remove(page)
        expect("a link to nothing", check_functions(folder, []), "is a link to nothing")
        if shutil.which("mandoc"):
            expect("a page that lacks", lint(folder), "referenced manual not found: Xr ums_mutex 3")
        command = os.path.join(folder, "command")
        with open(command, "w", encoding="utf-8") as file:
            file.write(
                "#!/bin/sh\n[ $1 != x ] && { echo 'Subcommands:'; echo '  x     does x'; exit; }\n"
                "printf 'Options:\\n  -h,--help    help\\n  --deep N     how deep\\n'\n"
            )
        os.chmod(command, 0o755)
        expect("a subcommand", check_command("", command), "tells nothing of ums x")
        expect(
            "an option",
            check_command(".Ss ums x\nText.\n", command),
            "does not tell of ums x --deep",
        )
        expect(
            "an operand",
            check_command(".Ss ums x\n.Nm Cm x Ar -y\n.It Fl -deep Ar N\n", command),
            "has an operand that looks like an option",
        )
        if list(check_command(".Ss ums x\n.It Fl -deep Ar N\n", command)):
            wrong.append("a page of the command that is right is complained about")
    for one in wrong:
        print(one)
    print(f"self-test: {len(wrong)} wrong")
    return 1 if wrong else 0


def main(words):
    with tempfile.TemporaryDirectory() as folder:
        if words[:1] == ["functions"] and len(words) == 2:
            names = shown(words[1])
            run(os.path.join(MAN, "functions.py"), os.path.join(ROOT, "include"), "0.0.0", folder)
            if len(names) < 200:
                print(f"only {len(names)} functions in {words[1]}")
                return 1
            return report(check_functions(folder, names), folder)
        if words[:1] == ["command"] and len(words) == 2:
            run(os.path.join(MAN, "functions.py"), os.path.join(ROOT, "include"), "0.0.0", folder)
            run(os.path.join(MAN, "command.py"), words[1], folder)
            return report(check_command(read(os.path.join(folder, "man1/ums.1")), words[1]), folder)
    if words == ["self-test"]:
        return self_test()
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
