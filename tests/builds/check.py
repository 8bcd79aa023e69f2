#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check.py BUILD [COMPILER]...  programs are compiled as users compile theirs, linked with the library in BUILD, and run
check.py BUILD subprojects    projects that have libums inside are built, each with its own ideas of how, and run

A row for each combination. One whose compiler, library or linker is not on this machine is skipped, with a line.
"""

import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
INCLUDE = ["-I", os.path.join(ROOT, "include")]
WARN = ["-Wall", "-Wextra", "-Werror"]
LIBCXX = ["-stdlib=libc++", "-fexperimental-library"]  # std::stop_token is behind that flag.


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    return done.returncode, (done.stdout + done.stderr).strip()


def has_libcxx(compiler):
    # -Werror: the library warns of a compiler that is older than it supports.
    code, _ = run([compiler, "-x", "c++", "-std=c++20", "-fsyntax-only", "-Werror", *LIBCXX, "-include", "stop_token",
                   "/dev/null"])
    return code == 0


def compilers(wanted):
    return [name for name in wanted or ("g++", "clang++-16", "clang++-19") if shutil.which(name)]


def programs(build, wanted):
    """Yields name, command to compile, and whether to run the result; or name and why it is skipped."""
    static = [os.path.join(build, "libums.a"), "-pthread", "-ldl"]
    shared = ["-L", build, "-lums", "-Wl,-rpath," + build, "-pthread"]
    source = os.path.join(HERE, "program.cpp")
    for compiler in compilers(wanted):
        for standard, flags in (("c++20", "-O0"), ("c++20", "-O2"), ("c++2b", "-O2"), ("c++20", "-O3 -flto"),
                                ("c++20", "-O2 -fno-exceptions"), ("c++20", "-O2 -fcf-protection=full"),
                                ("c++20", "-O2 -DBUILD_MACROS")):
            linker = ["-fuse-ld=lld"] if "-flto" in flags and compiler.startswith("clang") else []
            if linker and not shutil.which("ld.lld" + compiler[7:]):
                yield f"{compiler} {standard} {flags}", None, "no lld"
                continue
            yield (f"{compiler} {standard} {flags}",
                   [compiler, "-std=" + standard, *flags.split(), *WARN, *INCLUDE, source, *linker, *static], True)
        for flags, libraries in ((["-static"], static), ([], shared)):
            yield (f"{compiler} {' '.join(flags) or 'shared'}",
                   [compiler, "-std=c++20", "-O2", *flags, *WARN, *INCLUDE, source, *libraries], True)
        if compiler.startswith("clang"):
            name = f"{compiler} libc++"  # A library for it is built below.
            if has_libcxx(compiler):
                yield name, [compiler, "-std=c++20", "-O2", *LIBCXX, *WARN, *INCLUDE, "-c", source], False
            else:
                yield name, None, "no libc++ with std::stop_token"
    for compiler in ("gcc", "clang-19"):
        for standard in ("c99", "c11"):
            for header in ("ums.h", "ums_io.h", "ums_posix.h", "ums_pthread.h", "ums_scheduling.h", "ums_stack.h"):
                if not os.path.exists(os.path.join(ROOT, "include/ums", header)) or not shutil.which(compiler):
                    continue
                yield (f"{compiler} {standard} -pedantic {header}",
                       [compiler, "-std=" + standard, "-pedantic", *WARN, *INCLUDE, "-x", "c", "-include", "ums/" + header,
                        "-c", "/dev/null"], False)


SUBPROJECT = """cmake_minimum_required(VERSION 3.22)
project(parent LANGUAGES C CXX)
add_subdirectory({root} ums EXCLUDE_FROM_ALL)
add_executable(program {here}/program.cpp)
target_link_libraries(program PRIVATE ums::ums)
"""


def subprojects():
    clang = ["-DCMAKE_C_COMPILER=clang-19", "-DCMAKE_CXX_COMPILER=clang++-19", "-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld"]
    yield "g++, link-time optimisation", "g++", ["-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON"]
    yield "clang, link-time optimisation", "clang++-19", [*clang, "-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON"]
    yield "g++, unity build, C++23", "g++", ["-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_CXX_STANDARD=23"]
    yield "clang, libc++", "clang++-19", [*clang, "-DCMAKE_CXX_FLAGS=" + " ".join(LIBCXX)]


def build_inside(arguments, folder):
    with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write(SUBPROJECT.format(root=ROOT, here=HERE))
    out = os.path.join(folder, "out")
    for command in (["cmake", "-G", "Ninja", "-S", folder, "-B", out, "-DCMAKE_BUILD_TYPE=Release", *arguments],
                    ["cmake", "--build", out, "--target", "program"], [os.path.join(out, "program")]):
        code, text = run(command)
        if code != 0:
            return text
    if text != "ok":
        return text
    # What a linker that optimises makes of thread_local variables and errno.
    code, text = run([os.path.join(HERE, "kept_addresses.py"), os.path.join(out, "program")])
    return text if code not in (0, 77) else ""


def main():
    build, what = os.path.abspath(sys.argv[1]), sys.argv[2:]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        if what == ["subprojects"]:
            for name, needs, arguments in subprojects():
                if not shutil.which(needs) or ("libc++" in name and not has_libcxx(needs)):
                    print(f"skipped   {name}: it is not on this machine")
                    continue
                with tempfile.TemporaryDirectory() as inside:
                    said = build_inside(arguments, inside)
                print(f"{'failed' if said else 'ok':9} {name}", flush=True)
                if said:
                    print(said[-3000:])
                failed += bool(said)
        else:
            made = os.path.join(folder, "program")
            for name, command, runs in programs(build, what):
                if command is None:
                    print(f"skipped   {name}: {runs}")
                    continue
                code, said = run([*command, "-o", made])
                if code == 0 and runs:
                    code, said = run([made])
                    code = code or said != "ok"
                print(f"{'failed' if code else 'ok':9} {name}", flush=True)
                if code:
                    print(said[-2000:])
                failed += bool(code)
            said = split_stack(folder, build)
            print(f"{'failed' if said else 'ok':9} -fsplit-stack is refused")
            failed += bool(said)
    return failed != 0


def split_stack(folder, build):
    """Nothing tells a header that the flag is there, so the start refuses it."""
    made = os.path.join(folder, "split")
    code, said = run(["g++", "-std=c++20", "-O2", "-fsplit-stack", *INCLUDE, os.path.join(HERE, "program.cpp"),
                      os.path.join(build, "libums.a"), "-pthread", "-ldl", "-o", made])
    if code == 0:
        code, said = run([made])
        if code != 0 and "-fsplit-stack" in said and said.count("\n") == 0:
            return ""
    return said or "it ran"


if __name__ == "__main__":
    sys.exit(main())
