#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
""".ci/summary says what ctest ran and skipped; .ci/run says it at its end, also when a verb fails.

ci_test.py: with tests and verbs of its own."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# What a test program prints, and what ctest makes of it.
GOOGLE_TEST = """
../x_test.cpp:7: Skipped
one CPU

[  SKIPPED ] x_test.parts (0 ms)
../x_test.cpp:9: Skipped

[  SKIPPED ] x_test.meets (0 ms)
[  SKIPPED ] 2 tests, listed below:
"""
TESTS = f"""
add_test(src/x printf "%s" [==[{GOOGLE_TEST}]==])
add_test(src/x@p1 printf "%s" [==[{GOOGLE_TEST}]==])
add_test(tests/y printf "test_page (y.Y.test_page)\nShows it. ... skipped 'no pyte here'\n")
add_test(tests/part echo "skipped in part: no mandoc")
add_test(tests/code sh -c "echo 'skipped: no gdb'; exit 77")
set_tests_properties(tests/code PROPERTIES SKIP_RETURN_CODE 77)
add_test(tests/word echo "skipped: no clang")
set_tests_properties(tests/word PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped")
add_test(tests/good true)
add_test(tests/bad false)
"""


def run(*command, at, path=None):
    environment = dict(os.environ, PATH=f"{path}:{os.environ['PATH']}") if path else None
    return subprocess.run(command, cwd=at, env=environment, capture_output=True, text=True, check=False)


class SummaryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def make(self, where):
        (self.root / where).mkdir(parents=True)
        (self.root / where / "CTestTestfile.cmake").write_text(TESTS)

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)
        (self.root / name).chmod(0o755)

    def test_names_what_failed_and_what_was_skipped_and_why(self):
        self.make("build")
        run("ctest", at=self.root / "build")
        said = run(ROOT / ".ci/summary", "build", "nowhere", at=self.root)
        self.assertEqual((said.returncode, said.stderr), (0, ""))
        self.assertEqual(said.stdout, """\
== build: 6 of 8 tests ran: 5 passed, 1 failed, 2 skipped; 0 not chosen
  failed: tests/bad
  skipped: tests/code: no gdb
  skipped: tests/word: no clang
  skipped in tests that ran: 6 cases
    2 of src/x src/x@p1: one CPU
        x_test.parts
    2 of src/x src/x@p1: no reason given
        x_test.meets
    1 of tests/y: no pyte here
        test_page
    1 of tests/part: no mandoc
== nowhere: no test ran
""")

    def test_counts_what_was_not_chosen(self):
        self.make("build")
        run("ctest", "-E", "@|bad", at=self.root / "build")
        said = run(ROOT / ".ci/summary", "build", at=self.root).stdout
        self.assertIn("== build: 4 of 8 tests ran: 4 passed, 0 failed, 2 skipped; 2 not chosen\n", said)

    def test_ci_says_it_at_its_end_although_a_verb_fails(self):
        for name in ("run", "summary"):
            self.write(f".ci/{name}", "")
            shutil.copy(ROOT / ".ci" / name, self.root / ".ci" / name)
        self.make("build/release")
        self.make("build/asan")
        self.write("tools/setup", "#!/bin/sh\nexit 1\n")
        # The first verb passes, the second fails: there is no third.
        self.write("bin/make", """#!/bin/sh
case $1 in
    test-all) cd build/release && ctest -R good >/dev/null ;;
    asan) cd build/asan && ctest -R bad >/dev/null ;;
esac
""")
        done = run(".ci/run", at=self.root, path=self.root / "bin")
        self.assertNotEqual(done.returncode, 0)
        end = done.stdout[done.stdout.rindex("== build/release: "):].splitlines()
        self.assertEqual(end[0], "== build/release: 1 of 8 tests ran: 1 passed, 0 failed, 0 skipped; 7 not chosen")
        self.assertEqual(end[1], "== build/asan: 1 of 8 tests ran: 0 passed, 1 failed, 0 skipped; 7 not chosen")
        self.assertEqual(end[2:4], ["  failed: tests/bad", "== build/tsan: no test ran"])
        self.assertIn("packages are missing", end[4])
        self.assertRegex(end[5], r"^== make test-all: passed, \d+ s$")
        self.assertRegex(end[6], r"^== make asan .*SKIP=@.*: failed, \d+ s$")
        self.assertRegex(end[7], r"^== \.ci/run: failed, \d+ min \d+ s$")

    # Else what `make demo` did not find would stay unknown to `make test`, which installs it.
    def test_a_verb_configures_again_after_a_package_was_installed(self):
        shutil.copy(ROOT / "Makefile", self.root)
        self.write("CMakePresets.json", "")
        self.write("packages", "")
        self.write("tools/setup", "#!/bin/sh\n")
        self.write("bin/cmake", """#!/bin/sh
echo "$1" >>cmake.log
""")

        def build():
            done = run("make", "build", f"PACKAGES={self.root / 'packages'}", at=self.root, path=self.root / "bin")
            self.assertEqual(done.returncode, 0, done)
            log = self.root / "cmake.log"
            calls = log.read_text().split()
            log.unlink()
            return calls

        (self.root / "build/release").mkdir(parents=True)
        self.assertEqual(build(), ["--preset", "--build"])
        for name in ("packages", "CMakePresets.json"):
            os.utime(self.root / name, (1, 1))
        self.assertEqual(build(), ["--build"])
        for name in ("packages", "CMakePresets.json"):
            os.utime(self.root / name)
            self.assertEqual(build(), ["--preset", "--build"], name)
            os.utime(self.root / name, (1, 1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
