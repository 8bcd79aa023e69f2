#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""names.py            each function of the compatibility headers is called by a test
names.py LIBRARY    the library has exactly those functions, under their own prefix, and none of the plain names
names.py headers    the headers compile without a warning with each compiler that is there, in C11, C++17 and C++20,
                    with narrow and with wide text
"""

import glob
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "include/ums/compat/windows")
OWN = os.path.join(ROOT, "include/ums")
LINUX = os.path.join(ROOT, "include/ums/compat/linux_ums.h")
DECLARED = {"UMS_WIN": "ums_win_", "UMS_LINUX": "ums_linux_"}


def read(path):
    with open(path, encoding="utf-8") as file:
        return re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)


def headers():
    return glob.glob(os.path.join(FOLDER, "*.h"))


def declared():
    """Each plain name with its symbol."""
    names = {}
    for path in headers() + glob.glob(os.path.join(FOLDER, "impl/*.h")) + [LINUX]:
        text = re.sub(r"^#define.*(\\\n.*)*", "", read(path), flags=re.MULTILINE)
        for macro, name in re.findall(r"\b(UMS_WIN|UMS_LINUX)\([^,;]*?,\s*(\w+),", text):
            names[name] = DECLARED[macro] + name
    return names


def inline():
    """The functions whose bodies are in the headers; those of a width come from a macro."""
    text = read(os.path.join(FOLDER, "impl/interlocked.h"))
    widths = set(re.findall(r"^UMS_WIN_INTERLOCKED\(\w+, *(\w*)\)", text, flags=re.MULTILINE))
    of_a_width = re.findall(r"UMS_WIN_INLINE \w+ (\w+)##bits\(", text)
    return {name + width for name in of_a_width for width in widths} | set(
        re.findall(r"^UMS_WIN_INLINE \w+ (\w+)\(", text, flags=re.MULTILINE))


def check_calls():
    tests = ["tests/windows/*_test.c*", "tests/windows/*.hpp", "tests/windows/programs/*", "tests/linux_ums/*_test.cpp"]
    text = " ".join(read(path) for pattern in tests for path in glob.glob(os.path.join(ROOT, pattern)))
    words = set(re.findall(r"\b(\w+)\(", text))
    for name in sorted(set(declared()) | inline()):
        # A name with two forms of text is a macro for one of them too.
        plain = name[:-1] if name[-1] in "AW" and name[:-1] + "A" in declared() else name
        if name not in words and not (plain != name and name.endswith("A") and plain in words):
            yield f"no test calls {name}()"


def own_names():
    """What libums's own C headers declare: ums_close() is both theirs and the Linux modules'."""
    found = set()
    for header in glob.glob(os.path.join(OWN, "*.h")):
        found.update(re.findall(r"\b(ums_\w+)\(", read(header)))
    return found


def check_symbols(library):
    command = ["nm", "--defined-only", "-g"] + (["-D"] if ".so" in library else []) + [library]
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    symbols = {words[2].partition("@")[0] for words in map(str.split, table.splitlines()) if len(words) == 3}
    names = declared()
    own = own_names()
    for name, symbol in sorted(names.items()):
        if symbol not in symbols:
            yield f"{name}() is declared, and {symbol} is not in the library"
        if name in symbols and name not in own:
            yield f"{name} is in the library under its plain name"
    wanted = set(names.values())
    for symbol in sorted(symbols):
        if symbol.startswith(tuple(DECLARED.values())) and symbol not in wanted:
            yield f"{symbol} is in the library, and no header declares it"


def check_headers():
    compilers = [c for c in ("gcc", "clang-19", "clang") if shutil.which(c)][:2]
    text = "".join(f"#include <{os.path.basename(path)}>\n" for path in sorted(headers()))
    text += '#include <ums/compat/linux_ums.h>\n'
    # Macros of tchar.h and of functions, as sources use them.
    text += ('static FORCEINLINE int same(void) { return _tcsicmp(_T("a"), _T("A")); }\n'
             'int used(void);\nint used(void) { return same(); }\n')
    for compiler in compilers:
        for language, standard in (("c", "c11"), ("c", "gnu17"), ("c++", "c++17"), ("c++", "c++20")):
            for wide in ([], ["-DUNICODE", "-D_UNICODE"]):
                command = [compiler, f"-std={standard}", "-x", language, "-Wall", "-Wextra", "-Wshadow", "-pedantic",
                           "-Werror", f"-I{FOLDER}", f"-I{os.path.join(ROOT, 'include')}", *wide,
                           "-fsyntax-only", "-"]
                done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    yield f"{' '.join(command[:2] + wide)}:\n{done.stderr}"


def main(words):
    if not declared():
        print("no function is declared")
        return 1
    if not words:
        complaints = list(check_calls())
    elif words == ["headers"]:
        complaints = list(check_headers())
    else:
        complaints = list(check_symbols(words[0]))
    for complaint in complaints:
        print(complaint)
    print(f"{len(declared())} functions and {len(inline())} in the headers, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
