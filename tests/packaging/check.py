#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One version everywhere, and packages that fit what is built.

check.py files            the version of CMakeLists.txt is the one of all other places; cmake/ums.map, the
                          kept interface and Debian's symbols files name the same functions
check.py library LIBRARY COMPAT   Debian's symbols files fit the libraries (by dpkg-gensymbols)
check.py command COMMAND  `ums --version` prints the version
check.py debian           debhelper and dpkg understand packaging/debian
check.py self-test        proves that the first can fail
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SKIPPED = 77
MAINTAINER = "libums developers <libums@example.org>"


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def version_of(root):
    return re.search(r"^project\(ums VERSION (\d+\.\d+\.\d+) ", read(root, "CMakeLists.txt"), re.MULTILINE)[1]


def minor(version):
    return version.rsplit(".", 1)[0]


# --- versions -------------------------------------------------------------------------------------

# Each place that repeats the version, with a pattern whose group is the version, and which part it
# repeats.
PLACES = [
    ("CHANGELOG.md", r"^## (\d+\.\d+\.\d+)", "full"),
    ("packaging/debian/changelog", r"^libums \(([^)-]+)-[^)-]+\) ", "full"),
    ("packaging/debian/libums0.symbols", r"^\| libums0 #MINVER#, libums0 \(<< (\S+)~\)$", "next"),
    ("packaging/vcpkg/ports/libums/vcpkg.json", r'^  "version": "([^"]+)"', "full"),
    ("cmake/ums.map", r"^UMS_CXX_(\S+) \{", "minor"),
    ("kernel/dkms.conf", r'^PACKAGE_VERSION="([^"]+)"', "full"),
    ("docs/debugging.md", r"libums\.so\.(\d+\.\d+\.\d+)-gdb\.py", "full"),
    ("docs/install.md", r"find_package\(ums (\S+) REQUIRED\)", "minor"),
    ("docs/porting.md", r"find_package\(ums (\S+) REQUIRED\)", "minor"),
    ("docs/c-api.md", r"`UMS_CXX_([\d.]+)`", "minor"),
    ("docs/look-inside.md", r"libums (\d+\.\d+\.\d+), ", "full"),
    ("tests/consumer/CMakeLists.txt", r"find_package\(ums (\S+) REQUIRED\)", "minor"),
    ("tests/consumer/fetch_content/CMakeLists.txt", r"find_package\(ums (\S+) REQUIRED\)", "minor"),
    ("tests/consumer/fetch_content/CMakeLists.txt", r"GIT_TAG v(\S+)\)", "full"),
]


def check_versions(root):
    version = version_of(root)
    major, second, _ = version.split(".")
    expected = {"full": version, "minor": minor(version), "next": f"{major}.{int(second) + 1}"}
    for path, pattern, part in PLACES:
        found = re.findall(pattern, read(root, path), re.MULTILINE)
        if path == "CHANGELOG.md" or path.endswith("/changelog"):
            found = found[:1]  # The newest; below it are the others.
        if not found:
            yield f"{path}: names no version where one is expected ({pattern})"
        for one in found:
            if one != expected[part]:
                yield f"{path}: has {one}, CMakeLists.txt has {version}"
    if not os.path.exists(os.path.join(root, f"docs/release-notes-{version}.md")):
        yield f"docs/release-notes-{version}.md is not there"
    # The recipe for Conan, version.hpp and the tools read CMakeLists.txt; none of them has a
    # number.
    for path in ("packaging/conan/conanfile.py", "src/runtime/version.hpp", "packaging/build-deb"):
        if re.search(r"\b\d+\.\d+\.\d+\b", read(root, path)):
            yield f"{path}: has a version of its own"


# --- names ----------------------------------------------------------------------------------------


def nodes_of(root):
    """The nodes of cmake/ums.map: name -> its functions, in order."""
    text = re.sub(r"/\*.*?\*/", "", read(root, "cmake/ums.map"), flags=re.DOTALL)
    return {
        name: re.findall(r"^        (\w+\*?);", body, re.MULTILINE)
        for name, body in re.findall(r"^(UMS_\S+) \{(.*?)^\}", text, re.DOTALL | re.MULTILINE)
    }


def declared(root):
    names = {"ums_root"}
    for header in glob.glob(os.path.join(root, "include/ums/*.h")):
        text = re.sub(r"/\*.*?\*/", "", read(root, header), flags=re.DOTALL)
        for declaration in re.findall(r"^UMS_API [^;]*;", text, re.MULTILINE):
            names.add(re.search(r"\b(ums_\w+)\(", declaration)[1])
    return names


def versions_of_names(root):
    """Each C name with the version it came in: that of the node that lists it, else the newest's."""
    nodes = {name: names for name, names in nodes_of(root).items() if not name.startswith("UMS_CXX")}
    listed = {one: node[4:] for node, names in nodes.items() for one in names if "*" not in one}
    newest = [node[4:] for node, names in nodes.items() if "ums_*" in names]
    return {one: listed.get(one, newest[0] if newest else "none") for one in declared(root)}, listed


def check_names(root):
    version = version_of(root)
    names, listed = versions_of_names(root)
    open_nodes = [node for node, those in nodes_of(root).items() if "ums_*" in those]
    if open_nodes != ["UMS_" + minor(version)]:
        yield f"cmake/ums.map: {open_nodes} take what is new, should be UMS_{minor(version)}"
    notes = f"docs/release-notes-{version}.md"
    if os.path.exists(os.path.join(root, notes)):
        for one in sorted(names):
            if names[one] == minor(version) and f"`{one}`" not in read(root, notes):
                yield f"{notes}: does not tell of {one}(), which is new"
    for one in sorted(set(listed) - set(names)):
        yield f"cmake/ums.map: {one} is listed, but no header declares it"
    kept = set(re.findall(r"<elf-symbol name='(ums_\w+)' version='", read(root, "tests/abi/libums.abi")))
    released = {one for one, since in names.items() if since != minor(version)} - {"ums_root"}
    for one in sorted(kept ^ released):
        where = "the kept interface" if one in kept else "a released node of cmake/ums.map"
        yield f"{one}: only {where} has it"
    symbols = dict(re.findall(r"^ (ums_\w+)@UMS_(\S+) \S+$", read(root, "packaging/debian/libums0.symbols"),
                              re.MULTILINE))
    for one in sorted(set(symbols) | set(names)):
        if symbols.get(one) != names.get(one):
            yield (f"packaging/debian/libums0.symbols: {one} is of {symbols.get(one)}, "
                   f"by cmake/ums.map of {names.get(one)}")
    for one, node, since in re.findall(r"^ (\S+)@UMS_(\S+) (\S+)$",
                                       read(root, "packaging/debian/libums0.symbols"), re.MULTILINE):
        if since != node + ".0":
            yield f"packaging/debian/libums0.symbols: {one} of {node} is said to be since {since}"


# --- packages -------------------------------------------------------------------------------------


def packages(root):
    return re.findall(r"^Package: (\S+)$", read(root, "packaging/debian/control"), re.MULTILINE)


def check_packages(root):
    for package in packages(root):
        if not os.path.exists(os.path.join(root, f"packaging/debian/{package}.install")):
            yield f"packaging/debian/{package}.install is not there"
    for path in glob.glob(os.path.join(root, "packaging/debian/*.*")):
        owner = os.path.basename(path).rsplit(".", 1)[0]
        if owner not in packages(root):
            yield f"packaging/debian/{os.path.basename(path)} belongs to no package"
    if f"Maintainer: {MAINTAINER}\n" not in read(root, "packaging/debian/control"):
        yield f"packaging/debian/control: the maintainer is not {MAINTAINER}"
    if not re.search(rf"^ -- {re.escape(MAINTAINER)}  \S", read(root, "packaging/debian/changelog"), re.MULTILINE):
        yield f"packaging/debian/changelog: nothing is signed by {MAINTAINER}"
    documented = read(root, "docs/install.md")
    for package in packages(root):
        if package not in documented:
            yield f"docs/install.md does not name the package {package}"
    tests = re.findall(r"^Tests: (.*)$", read(root, "packaging/debian/tests/control"), re.MULTILINE)
    for name in " ".join(tests).split():
        if not os.access(os.path.join(root, "packaging/debian/tests", name), os.X_OK):
            yield f"packaging/debian/tests/{name} is no program"


def check_files(root):
    json.loads(read(root, "packaging/vcpkg/ports/libums/vcpkg.json"))
    yield from check_versions(root)
    yield from check_names(root)
    yield from check_packages(root)


# --- what needs tools -----------------------------------------------------------------------------


def check_library(root, library, package):
    """dpkg-gensymbols compares a symbols file with a library: nothing is gone, nothing is missing in it."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "debian"))
        shutil.copy(os.path.join(root, "packaging/debian/control"), os.path.join(folder, "debian"))
        shutil.copy(os.path.join(root, "packaging/debian/changelog"), os.path.join(folder, "debian"))
        done = subprocess.run(
            ["dpkg-gensymbols", "-c4", f"-p{package}", f"-v{version_of(root)}", "-O/dev/null",
             f"-I{os.path.join(root, 'packaging/debian', package + '.symbols')}",
             f"-e{os.path.realpath(library)}"],
            cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode or done.stderr:
        yield f"{package}.symbols: {done.stdout}{done.stderr}"


def check_debian(root):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(os.path.join(root, "packaging/debian"), os.path.join(folder, "debian"))

        def run(*words):
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
            return done.stdout.split() if done.returncode == 0 else [done.stderr]

        got = run("dh_listpackages")
        if got != packages(root):
            yield f"dh_listpackages says {got}"
        got = run("dpkg-parsechangelog", "-S", "Version")
        if [one.rsplit("-", 1)[0] for one in got] != [version_of(root)]:
            yield f"dpkg-parsechangelog says {got}"
        got = run("env", "MAKELEVEL=1", "make", "--no-print-directory", "-n", "-f", "debian/rules", "clean")
        if not got or got[0] != "dh":
            yield f"debian/rules clean would run {got}"


# --- self-test ------------------------------------------------------------------------------------

# Each case: a file, what is replaced there by what, and a part of a complaint that follows.
CASES = [
    ("CMakeLists.txt", r"VERSION (\d+)\.(\d+)\.\d+ ", r"VERSION \1.\2.77 ", "CHANGELOG.md: has"),
    ("CMakeLists.txt", r"VERSION (\d+)\.\d+\.\d+ ", r"VERSION \1.77.0 ", "take what is new, should be UMS_0.77"),
    ("packaging/debian/changelog", r"libums \(", "libums (9", "packaging/debian/changelog: has 9"),
    ("packaging/vcpkg/ports/libums/vcpkg.json", r'"version": "', r'"version": "9', "vcpkg.json: has 9"),
    ("kernel/dkms.conf", r'VERSION="\d+\.', 'VERSION="9.', "kernel/dkms.conf: has 9"),
    ("docs/debugging.md", r"libums\.so\.\d+\.", "libums.so.9.", "docs/debugging.md: has 9"),
    ("docs/install.md", "libums-doc", "", "does not name the package libums-doc"),
    ("cmake/ums.map", r"        ums_run;\n", "", "ums_run: only the kept interface has it"),
    ("cmake/ums.map", r"        ums_run;\n", "        ums_run;\n        ums_walk;\n", "no header declares it"),
    ("docs/release-notes-0.2.0.md", "`ums_forget`", "`it`", "does not tell of ums_forget()"),
    ("packaging/debian/libums0.symbols", r" ums_run@.*\n", "", "ums_run is of None"),
    ("packaging/debian/libums0.symbols", r" ums_run@UMS_0.1 0.1.0", " ums_run@UMS_0.1 9.0.0", "since 9.0.0"),
    ("packaging/debian/control", "Maintainer: ", "Maintainer: not ", "the maintainer is not"),
    ("packaging/debian/control", "Package: libums0\n", "Package: libums1\n", "libums0.install belongs to no"),
    ("packaging/conan/conanfile.py", r"\Z", "# 1.2.3\n", "has a version of its own"),
]


def self_test():
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for part in ("CMakeLists.txt", "CHANGELOG.md", "cmake", "docs", "include", "packaging", "kernel", "src/runtime",
                     "tests/abi", "tests/consumer"):
            source, target = os.path.join(ROOT, part), os.path.join(folder, part)
            if os.path.isdir(source):
                shutil.copytree(source, target)
            else:
                shutil.copy(source, target)
        for path, pattern, instead, expected in CASES:
            before = read(folder, path)
            changed, count = re.subn(pattern, instead, before, count=1)
            with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
                file.write(changed)
            got = list(check_files(folder))
            if count != 1 or not any(expected in one for one in got):
                print(f"self-test: {path}: expected {expected!r}, got {got[:3]}")
                wrong += 1
            with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
                file.write(before)
    print(f"self-test: {wrong} wrong")
    return 1 if wrong else 0


def main(words):
    needs = {"library": "dpkg-gensymbols", "debian": "dh_listpackages"}
    what, rest = words[0] if words else "", words[1:]
    if what in needs and not shutil.which(needs[what]):
        print(f"skipped: there is no {needs[what]} here (tools/setup package)")
        return SKIPPED
    if what == "self-test" and not rest:
        return self_test()
    if what == "files" and not rest:
        complaints = list(check_files(ROOT))
    elif what == "library" and len(rest) == 2:
        complaints = [*check_library(ROOT, rest[0], "libums0"), *check_library(ROOT, rest[1], "libums-compat0")]
    elif what == "command" and len(rest) == 1:
        got = subprocess.run([rest[0], "--version"], capture_output=True, text=True, check=True).stdout
        complaints = [] if got == f"ums {version_of(ROOT)}\n" else [f"ums --version says {got!r}"]
    elif what == "debian" and not rest:
        complaints = list(check_debian(ROOT))
    else:
        print(__doc__, file=sys.stderr)
        return 2
    for complaint in complaints:
        print(complaint)
    print(f"{version_of(ROOT)}: {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
