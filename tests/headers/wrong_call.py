#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""wrong_call.py COMPILER INCLUDE...  a fiber whose function cannot be called so is one error that says it, not dozens of lines"""

import os
import subprocess
import sys
import tempfile

SAYS = ("must be callable with copies of its arguments", "must be callable without arguments",
        "must not return an rvalue reference", "expects integers of at most 64 bits or random-access iterators")
MOST_LINES = 25
CALLS = {
    "fiber": "ums::fiber f{[](int) {}};",
    "fiber with options": 'ums::fiber f{ums::fiber_options{.name = "x"}, [](int) {}, "text"};',
    "reference": "int n = 0; ums::fiber f{[](int&) {}, n};",
    "jfiber": "ums::jfiber f{[](int) {}};",
    "spawn": "auto f = ums::spawn([](int) { return 1; });",
    "spawn with options": "auto f = ums::spawn(ums::fiber_options{}, [](int) { return 1; }, nullptr);",
    "scope": "ums::scope s; s.spawn([](int) {});",
    "rvalue reference": "struct s { int m; }; auto f = ums::spawn(&s::m, s{});",
    "run with an rvalue reference": "int n = 0; ums::run([&]() -> int&& { return std::move(n); });",
    "run": "ums::run([](int) {});",
    "run with options": "ums::run({.processors = 1}, [](int) {});",
    "fork_join": "ums::fork_join([](int) {}, [] {});",
    "fork_join with an rvalue reference": "int n = 0; ums::fork_join([&]() -> int&& { return std::move(n); });",
    "loop over floating-point numbers": "ums::parallel_for(0, 1.0, [](double) {});",
    "loop over large numbers": "ums::parallel_for(0, __int128{1}, [](__int128) {});",
    "loop over large numbers in GNU's mode": "ums::parallel_for(0, __int128{1}, [](__int128) {});",
}

compiler = [sys.argv[1], "-std=c++20", *(f"-I{i}" for i in sys.argv[2:])]
failed = False
folder = tempfile.TemporaryDirectory()
# The headers are compiled once: g++ takes ums.hpp.gch for ums.hpp.
os.mkdir(f"{folder.name}/ums")
with open(f"{folder.name}/all.hpp", "w", encoding="utf-8") as file:
    file.write("#include <ums/ums.hpp>\n")
subprocess.run([*compiler, "-x", "c++-header", "-o", f"{folder.name}/ums/ums.hpp.gch", file.name], check=True)
for name, call in CALLS.items():
    program = f"#include <ums/ums.hpp>\nvoid f() {{ {call} }}\n"
    command = [compiler[0], f"-I{folder.name}", *compiler[1:], "-fsyntax-only", "-x", "c++", "-"]
    if "GNU" in name:
        command.append("-std=gnu++20")  # There std::integral holds for it.
    run = subprocess.run(command, input=program, capture_output=True, text=True, check=False)
    lines = run.stderr.splitlines()
    errors = [line for line in lines if "error:" in line]
    if run.returncode == 0 or len(errors) != 1 or not any(says in errors[0] for says in SAYS) or len(lines) > MOST_LINES:
        failed = True
        print(f"{name}: {len(lines)} lines, {len(errors)} errors:")
        print(run.stderr)
sys.exit(failed)
