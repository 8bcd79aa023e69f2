#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares what POSIX's functions return natively and by the names of libums.

table_test.py NATIVE NAMES OBJECT

NATIVE and NAMES are table.c, compiled in two ways; OBJECT is the latter's. It must not call the C
library by a name that has another one."""

import difflib
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = os.path.join(HERE, "../../include/ums/impl/io_names.h")


def renamed():
    with open(NAMES, encoding="utf-8") as file:
        return set(re.findall(r"^#pragma redefine_extname (\w+) ", file.read(), flags=re.MULTILINE))


def missed(obj):
    text = subprocess.run(["nm", "-u", obj], capture_output=True, text=True, check=True).stdout
    wanted = {line.split()[-1] for line in text.splitlines() if line.strip()}
    if not any(name.startswith("ums_posix_") for name in wanted):
        yield "no function is renamed"
    for name in sorted(wanted & (renamed() | {"__errno_location"})):
        yield f"{name}() is the C library's"
    for name in sorted(wanted):
        if re.fullmatch(r"__(read|recv|recvfrom|poll|ppoll)_chk", name):
            yield f"{name}() is the C library's"


def printed(program, where, **environment):
    run = subprocess.run([program, where], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                         env=os.environ | environment, check=False)
    if run.returncode != 0:
        return run.stdout.splitlines() + [f"ended with {run.returncode}"]
    return run.stdout.splitlines()


def main(native, names, obj):
    complaints = list(missed(obj))
    lines = 0
    for where in ("thread", "main"):
        expected = printed(native, where)
        lines += len(expected)
        if len(expected) < 150:
            complaints.append(f"only {len(expected)} lines natively")
        for environment in ({}, {"UMS_PROCESSORS": "1"}, {"UMS_DEBUG": "migrate"}):
            got = printed(names, where, **environment)
            for line in difflib.unified_diff(expected, got, "native", "names", lineterm="", n=0):
                complaints.append(f"{where} {environment}: {line}")
    for complaint in complaints:
        print(complaint)
    print(f"{lines} lines, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
