#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compile_cost.py COMPILER INCLUDE...  what starts a fiber costs the compiler no more than std's

Each spawn of a program has its own types. Counts the functions that the compiler makes for one, as
std does for a thread or a future: a number that is the same on each machine. And counts the lines
that it reads for the headers, which is nearly all that a small program costs.
"""

import re
import subprocess
import sys

BOTH = "#include <future>\n#include <thread>\n#include <ums/ums.hpp>\nint g;\n"
# (what, the same of std)
PAIRS = (
    ("ums::fiber t{[&] { g += k; }}; t.join();", "std::thread t{[&] { g += k; }}; t.join();"),
    ("ums::fiber t{{}, [&] { g += k; }}; t.join();", "std::thread t{[&] { g += k; }}; t.join();"),
    (
        "ums::fiber t{[&](int n) { g += n; }, k}; t.join();",
        "std::thread t{[&](int n) { g += n; }, k}; t.join();",
    ),
    ("ums::jfiber t{[&] { g += k; }};", "std::jthread t{[&] { g += k; }};"),
    ("ums::run([&] { g += k; });", "std::jthread t{[&] { g += k; }};"),
    ("ums::run({.processors = 2}, [&] { g += k; });", "std::jthread t{[&] { g += k; }};"),
    ("c.post([&] { g += k; });", "std::thread t{[&] { g += k; }}; t.detach();"),
    ("s.spawn([&] { g += k; });", "auto f = std::async([&] { g += k; });"),
    (
        "g += ums::spawn([&] { return k; }).join();",
        "g += std::async([&] { return k; }).get();",
    ),
    (
        "ums::fork_join([&] { g += k; }, [&] { g -= k; });",
        "auto f = std::async([&] { g += k; }); g -= k; f.get();",
    ),
    ("ums::async([&] { g += k; }).get();", "std::async([&] { g += k; }).get();"),
    (
        "ums::packaged_task<void()> p{[&] { g += k; }};",
        "std::packaged_task<void()> p{[&] { g += k; }};",
    ),
)

# A header, and how many times the lines of <thread> it may have.
HEADERS = (("ums/run.hpp", 1.8), ("ums/ums.hpp", 2.1))


def lines_of(header):
    command = [sys.argv[1], "-std=c++20", "-E", "-P", "-x", "c++", "-"]
    command += [f"-I{i}" for i in sys.argv[2:]]
    text = f"#include <cstdio>\n#include <{header}>\n"
    run = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return run.stdout.count("\n")


program = BOTH
for i, pair in enumerate(PAIRS):
    for who, code in zip(("ours", "stds"), pair):
        program += (
            f"void {who}{i:02}([[maybe_unused]] ums::cluster& c, [[maybe_unused]] ums::scope& s) "
            f"{{ int k = {i}; {code} }}\n"
        )
command = [sys.argv[1], "-std=c++20", "-O0", "-S", "-o", "-", "-x", "c++", "-"]
command += [f"-I{i}" for i in sys.argv[2:]]
run = subprocess.run(command, input=program, capture_output=True, text=True, check=False)
if run.returncode:
    sys.exit(run.stderr)
# The lambda's type is in the name of each function that is made for it.
made = re.findall(r"^\t\.type\t(\S+),\s*@function", run.stdout, re.MULTILINE)

failed = False
least = lines_of("thread")
for header, most in HEADERS:
    times = lines_of(header) / least
    print(f"<{header}> has {times:.2f} times the lines of <thread>")
    if times > most:
        failed = True
        print(f"     more than {most} times")
if any("8spawningC" in name for name in made):
    failed = True
    print("impl::spawning's constructor is not inlined: each spawn would be shown at one place")
for i, pair in enumerate(PAIRS):
    each = [sum(f"{who}{i:02}" in name for name in made) for who in ("ours", "stds")]
    print(f"{each[0]:4} functions: {pair[0]}\n{each[1]:4} {'':9}: {pair[1]}")
    if not 0 < each[0] <= each[1]:
        failed = True
        print("     more than std's")
sys.exit(failed)
