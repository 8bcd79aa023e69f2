#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/format --check finds what is wrong, and tools/hooks/pre-commit keeps it out of a commit.

format_test.py: in a repository of its own, with this project's settings."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LICENCE = "// SPDX-License-Identifier: MIT\n"


class FormatTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in (".clang-format", "tools/format", "tools/hooks/pre-commit"):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        # In place of the one that knows this tree: no file may be called upwards.hpp.
        check = self.root / "tests/layering/check.py"
        check.parent.mkdir(parents=True)
        check.write_text("#!/bin/sh\n! find $1 -name upwards.hpp | grep .\n")
        check.chmod(0o755)
        self.run_in("git", "init", "-q")
        self.run_in("git", "config", "core.hooksPath", "tools/hooks")
        self.stage("include/ums/one.hpp", LICENCE + "#pragma once\nint one();\n")
        self.stage("src/base/one.cpp", LICENCE + "int one() { return 1; }\n")

    def run_in(self, *command):
        # Without what a hook that runs these tests has in its environment.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment |= {f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        done = subprocess.run(command, cwd=self.root, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode == 77:
            self.skipTest(done.stdout.strip())
        return done

    def stage(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)
        self.run_in("git", "add", ".")

    def test_says_nothing_of_what_is_right(self):
        done = self.run_in("tools/format", "--check")
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_names_what_it_would_change_and_changes_nothing(self):
        text = LICENCE + "int  one() { return 1; }\n"
        self.stage("src/base/one.cpp", text)
        done = self.run_in("tools/format", "--check")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("src/base/one.cpp:2:", done.stdout)
        self.assertEqual((self.root / "src/base/one.cpp").read_text(), text)
        self.assertEqual(self.run_in("tools/format").returncode, 0)
        self.assertEqual((self.root / "src/base/one.cpp").read_text(), text.replace("int  ", "int "))

    def test_names_a_comment_of_more_than_100_columns(self):
        self.stage("src/base/one.cpp", LICENCE + "// " + "\u00e4" * 97 + "\n")
        self.assertEqual(self.run_in("tools/format", "--check").returncode, 0)
        self.stage("src/base/one.cpp", LICENCE + "// " + "\u00e4" * 98 + "\n")
        done = self.run_in("tools/format", "--check")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("src/base/one.cpp:2:", done.stdout)

    def test_the_hook_looks_at_what_is_staged(self):
        self.run_in("tools/format", "--check")  # Skips where there is no clang-format.
        done = self.run_in("git", "commit", "-qm", "base: one")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.stage("src/base/one.cpp", LICENCE + "int  one() { return 1; }\n")
        self.run_in("tools/format")  # In the working tree only.
        done = self.run_in("git", "commit", "-qm", "base: two blanks")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("src/base/one.cpp:2:", done.stdout)
        self.stage("src/base/upwards.hpp", LICENCE + "int one();\n")
        done = self.run_in("git", "commit", "-qm", "base: an include upwards")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("src/base/upwards.hpp", done.stdout)
        (self.root / "src/base/upwards.hpp").unlink()
        self.stage("src/base/one.cpp", LICENCE + "int one() { return 2; }\n")
        done = self.run_in("git", "commit", "-qm", "base: two")
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
