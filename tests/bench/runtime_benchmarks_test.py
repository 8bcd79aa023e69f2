#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds and runs bench/runtime-benchmarks as the suite tzcnt/runtime-benchmarks does, on the library of this build.

runtime_benchmarks_test.py LIBRARY INCLUDE_DIR [LINK_FLAG...]

Here is what the suite has beside a runtime's folder, in the least form: the package manager, which gives the built
library instead of fetching one, and the two headers that all runtimes share.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "bench/runtime-benchmarks/cpp/libums"
STAND_INS = {
    "1CMake/CPM.cmake": """
add_library(ums::ums STATIC IMPORTED)
set_target_properties(ums::ums PROPERTIES IMPORTED_LOCATION $ENV{UMS_LIBRARY})
target_include_directories(ums::ums INTERFACE $ENV{UMS_INCLUDE})
target_link_libraries(ums::ums INTERFACE $ENV{UMS_LINK} -pthread)
function(CPMAddPackage)
endfunction()
""",
    "2common/memusage.hpp": """
#pragma once
#include <sys/resource.h>
static inline long peak_memory_usage() {
    rusage usage{};
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss : -1;
}
""",
    "2common/matmul.hpp": """
#pragma once
static inline void matmul_small(int* a, int* b, int* c, int n, int stride) {
    for (int at = 0; at < n * n; ++at)
        for (int k = 0; k < n; ++k)
            c[at / n * stride + at % n] += a[at / n * stride + k] * b[k * stride + at % n];
}
""",
}
# The arguments that the suite gives, in their order, with small sizes.
PROGRAMS = {
    "fib": ["15", "2"],
    "skynet": ["2", "3"],
    "nqueens": ["2", "8"],
    "matmul": ["128", "2"],
    "channel": ["2", "10000"],
    "io_socket_st": ["3", "1000"],
}


class Suite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        beside = pathlib.Path(cls.folder.name, "cpp")
        for name, text in STAND_INS.items():
            path = beside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        cls.here = beside / "libums"
        shutil.copytree(FOLDER, cls.here, ignore=shutil.ignore_patterns("build"))
        built = subprocess.run(["./build_all.sh", "gcc-linux-release"], cwd=cls.here, capture_output=True, text=True,
                               stdin=subprocess.DEVNULL, check=False)
        if built.returncode != 0:
            raise AssertionError(built.stdout + built.stderr)

    def test_every_program_is_built_and_says_what_the_suite_reads(self):
        self.assertEqual({path.stem for path in FOLDER.glob("*.cpp")}, set(PROGRAMS))
        for name, words in PROGRAMS.items():
            with self.subTest(name):
                done = subprocess.run([self.here / "build" / name, *words], capture_output=True, text=True,
                                      stdin=subprocess.DEVNULL, timeout=120, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                # As YAML: a list `runs`, of which the first has these.
                runs = done.stdout[done.stdout.index("runs:\n"):]
                self.assertRegex(runs, r"\Aruns:\n  - \w+: \d+\n(    [\w/]+: \d+( us| KiB)?\n)+\Z")
                self.assertRegex(runs, r"\n    duration: \d+ us\n")
                self.assertRegex(runs, r"\n    max_rss: \d+ KiB\n")
                self.assertEqual("/sec: " in runs, name in ("channel", "io_socket_st"))
                for line in done.stdout[:-len(runs)].splitlines():
                    self.assertRegex(line, r"^\w+: \d+$")

    def test_a_wrong_word_prints_the_usage(self):
        for name in ("fib", "matmul"):
            done = subprocess.run([self.here / "build" / name], capture_output=True, text=True, check=False)
            self.assertTrue(re.match(f"Usage: {name} ", done.stdout), done.stdout)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: runtime_benchmarks_test.py LIBRARY INCLUDE_DIR [LINK_FLAG...]")
    os.environ.update(UMS_LIBRARY=sys.argv[1], UMS_INCLUDE=sys.argv[2], UMS_LINK=";".join(sys.argv[3:]))
    unittest.main(argv=sys.argv[:1], verbosity=2)
