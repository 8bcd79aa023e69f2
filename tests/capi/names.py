#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""names.py             each function of the C headers is called by a test in C
names.py --posix CC  each POSIX function of a type that UMS_PTHREAD_NAMES renames is renamed, too
names.py LIBRARY     the shared library shows exactly those functions, ums_root and the C++ API, with versions
"""

import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FUNCTION = re.compile(r"\b(ums_\w+)\(")
CXX = re.compile(r"_Z(N|NK|TIN|TSN|TVN)3ums")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def declared():
    names = set()
    for header in glob.glob(os.path.join(ROOT, "include/ums/*.h")):
        text = re.sub(r"/\*.*?\*/", "", read(header), flags=re.DOTALL)
        for declaration in re.findall(r"^UMS_API [^;]*;", text, flags=re.MULTILINE):
            names.add(FUNCTION.search(declaration)[1])
    return names


def check_calls():
    calls = set()
    for source in glob.glob(os.path.join(ROOT, "tests/capi/*_test.c")):
        calls.update(FUNCTION.findall(read(source)))
    calls.update(FUNCTION.findall(read(os.path.join(ROOT, "tests/capi/check.h"))))
    # That program calls the other names.
    program = read(os.path.join(ROOT, "tests/posix/table.c"))
    renamed = re.findall(r"^#pragma redefine_extname (\w+) (\w+)", read(os.path.join(ROOT, "include/ums/impl/io_names.h")),
                         flags=re.MULTILINE)
    called = set(re.findall(r"\b(\w+)\(", program))
    calls.update(new for old, new in renamed if old in called)
    if "errno" in program:
        calls.add("ums_errno_location")
    for name in sorted(declared() - calls):
        yield f"no test calls {name}()"


def check_posix(compiler):
    renamed = set(re.findall(r"^#define (\w+) ", read(os.path.join(ROOT, "include/ums/impl/pthread_names.h")),
                             flags=re.MULTILINE))
    types = re.compile(r"\b(" + "|".join(name for name in renamed if name.endswith("_t")) + r")\b")
    headers = "#define _GNU_SOURCE\n#include <pthread.h>\n#include <semaphore.h>\n#include <signal.h>\n"
    text = subprocess.run([compiler, "-E", "-P", "-"], input=headers, capture_output=True, text=True,
                          check=True).stdout
    found = 0
    for declaration in re.findall(r"\bextern\b[^;{]*;", text):
        name = re.search(r"\b(pthread_\w+|sem_\w+) ?\(", declaration)
        if name and types.search(declaration):
            found += 1
            if name[1] not in renamed:
                yield f"{name[1]}() would be the C library's"
    if found < 100:
        yield f"only {found} functions in the C library's headers"


def check_symbols(library):
    table = subprocess.run(["readelf", "--dyn-syms", "-V", "-W", library], capture_output=True,
                           text=True, check=True).stdout
    found = {}
    for line in table.splitlines():
        words = line.split()
        if len(words) >= 8 and words[0].rstrip(":").isdigit() and words[4] in ("GLOBAL", "WEAK") \
                and words[6] != "UND":
            name, _, version = words[7].partition("@@")
            found[name] = (words[3], version)
    # A released node of the map lists its names; the newest takes the others.
    text = re.sub(r"/\*.*?\*/", "", read(os.path.join(ROOT, "cmake/ums.map")), flags=re.DOTALL)
    nodes = dict(re.findall(r"^(UMS_\S+) \{(.*?)^\}", text, flags=re.DOTALL | re.MULTILINE))
    listed = {name: node for node, body in nodes.items() for name in re.findall(r"\b(ums_\w+);", body)}
    newest = next(node for node, body in nodes.items() if "ums_*;" in body)
    cxx = next(node for node in nodes if node.startswith("UMS_CXX_"))
    for name in sorted(declared() - set(found)):
        yield f"{name}() is not shown"
    for name, (kind, version) in sorted(found.items()):
        if name in nodes:
            continue
        if name in declared() or name == "ums_root":
            wanted = listed.get(name, newest)
        elif CXX.match(name):
            wanted = cxx
        else:
            yield f"{name} ({kind}) is shown and should not be"
            continue
        if version != wanted:
            yield f"{name} has the version {version or 'none'}, should have {wanted}"
    if not any(CXX.match(name) for name in found):
        yield "no C++ name is shown"


def main(words):
    if not declared():
        print("no function is declared")
        return 1
    if words[:1] == ["--posix"]:
        complaints = list(check_posix(words[1]))
    else:
        complaints = list(check_symbols(words[0]) if words else check_calls())
    for complaint in complaints:
        print(complaint)
    print(f"{len(declared())} functions of C, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
