#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Looks at the stacks and locks of processes and core files with `ums stack`.

stack_test.py UMS CROWD CROWD_SHARED CROWD_STATIC [NAME_OF_A_TEST...]
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True  # Nothing is left in the source tree.
import crowd as programs
from crowd import Crowd, core_of, environment, ums

# A function that must be among the frames of a fiber that waits for this.
INSIDE = {"mutex": "mutex", "semaphore": "semaphore", "receive": "channel", "send": "channel",
          "condition": "condition", "latch": "gate", "sleep": "sleep", "read": "descriptor",
          "park": "park", "join": "join"}


class StackTest(unittest.TestCase):
    maxDiff = None

    def check_groups(self, groups, fibers, count):
        self.assertEqual(sum(len(group["fibers"]) for group in groups), fibers)
        kinds = {}
        for group in groups:
            kinds.setdefault(group["waits"], []).append(group)
        for kind, inside in INSIDE.items():
            extra = 1 if kind == "park" else 0  # The holder of the mutex.
            self.assertEqual(sum(len(g["fibers"]) for g in kinds[kind]), count + extra, kind)
            for group in kinds[kind]:
                self.assertTrue(group["complete"], group)
                functions = [frame["function"] for frame in group["frames"]]
                self.assertTrue(any(inside in name for name in functions), functions)
                self.assertTrue(any("lambda" in name for name in functions), functions)
                self.assertIn("crowd.cpp", " ".join(frame["file"] for frame in group["frames"]))

    def test_groups_equal_stacks(self):
        with Crowd(50) as crowd:
            crowd.settle()
            groups = json.loads(ums("stack", crowd.pid, "--json").stdout)
            self.check_groups(groups, crowd.fibers, 50)
            self.assertLess(len(groups), 25)
            text = ums("stack", crowd.pid, "--waits", "semaphore").stdout
            self.assertRegex(text.splitlines()[0], r"^\d+ fibers: parked, semaphore: ")
            self.assertRegex(text, r"\n    .* at \S*crowd\.cpp:\d+")
            self.assertRegex(text, r"\(inlined\)\n")

    def test_begins_and_ends_with_the_programs_frames(self):
        for program in (programs.CROWD, programs.SHARED, programs.STATIC):
            with Crowd(1, program) as crowd:
                crowd.settle()
                short, whole = (ums("stack", crowd.pid, *words).stdout.split("\n\n") for words in ((), ("--whole",)))
                self.assertEqual(len(short), len(whole))
                for part, all_of_it in zip(short[:-1], whole):
                    lines = part.splitlines()
                    # The whole has the same frames, and others around them.
                    self.assertIn("\n".join(lines[1:]), all_of_it)
                    if "blocked" not in lines[0]:
                        self.assertIn("crowd.cpp:", lines[1], part)
                        self.assertRegex(all_of_it, r"\n    ums::.*\n")
                    self.assertIn("crowd.cpp:", lines[-1], part)
                    self.assertIn("ums_fiber_entry", all_of_it.splitlines()[-1])

    def test_a_stripped_library(self):
        with tempfile.TemporaryDirectory() as folder:
            loaded = re.search(r"(libums\.so\S*) => (\S+)", subprocess.run(
                ["ldd", programs.SHARED], check=True, capture_output=True, text=True).stdout)
            stripped = os.path.join(folder, loaded[1])
            shutil.copy(loaded[2], stripped)
            subprocess.run(["strip", "--strip-all", stripped], check=True)
            with environment(LD_LIBRARY_PATH=folder), Crowd(1, programs.SHARED) as crowd:
                crowd.settle()
                out = ums("stack", crowd.pid, "--match", "semaphore-0").stdout
                self.assertRegex(out, r'\Afiber \d+ "semaphore-0": .*\n    .* at \S*crowd\.cpp:\d+')
                self.assertIn("libums.so.", ums("stack", crowd.pid, "--match", "semaphore-0", "--whole").stdout)

    def test_shared_static_and_stopped(self):
        for program, words in ((programs.SHARED, []), (programs.STATIC, []), (programs.CROWD, ["--stop"])):
            with Crowd(3, program) as crowd:
                crowd.settle()
                groups = json.loads(ums("stack", crowd.pid, "--json", *words).stdout)
                self.check_groups(groups, crowd.fibers, 3)

    def test_a_stripped_program_has_addresses(self):
        with tempfile.TemporaryDirectory() as folder:
            stripped = os.path.join(folder, "stripped")
            shutil.copy(programs.CROWD, stripped)
            subprocess.run(["strip", "--strip-all", stripped], check=True)
            with Crowd(2, stripped) as crowd:
                crowd.settle()
                groups = json.loads(ums("stack", crowd.pid, "--json").stdout)
                self.assertEqual(sum(len(g["fibers"]) for g in groups), crowd.fibers)
                for group in groups:
                    if group["state"] == "parked":
                        self.assertTrue(group["complete"], group)
                        self.assertGreater(len(group["frames"]), 3)

    def test_a_fiber_in_a_system_call(self):
        with Crowd(1) as crowd:
            crowd.settle()
            done = ums("stack", crowd.pid, "1")
            self.assertIn('fiber 1 "main": blocked, read() in the kernel', done.stdout)
            self.assertIn("obey", done.stdout)

    def test_chosen_fibers(self):
        with Crowd(4) as crowd:
            crowd.settle()
            done = ums("stack", crowd.pid, "2", "3", "--each")
            self.assertEqual(re.findall(r"^fiber (\d+) ", done.stdout, re.MULTILINE), ["2", "3"])
            done = ums("stack", crowd.pid, "77777")
            self.assertEqual(done.returncode, 1)
            self.assertIn("there is no fiber 77777", done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_fibers_that_compute(self):
        """One runs, and is stopped by the command; the other was stopped by libums, in its signal's handler.

        Stops by the command count as time in which nothing switched, after which libums releases a stopped
        fiber: so with --stop both may be running each time."""
        with Crowd("states") as crowd:
            for words, states in (([], {"running", "stopped"}), (["--stop"], {"running"})):
                seen = set()
                while not states <= seen:
                    groups = json.loads(ums("stack", crowd.pid, "--match", "^compute", "--json", *words).stdout)
                    for group in groups:
                        functions = " ".join(frame["function"] for frame in group["frames"])
                        if "compute" in functions and group["complete"]:
                            seen.add(group["state"])

    def test_locks(self):
        with Crowd(12) as crowd:
            crowd.settle()
            lines = ums("stack", crowd.pid, "--locks").stdout.splitlines()
            self.assertRegex(lines[0], r'^mutex 0x[0-9a-f]+, held by fiber 2 "holder-0" '
                                       r"\(parked: unpark\(\)\): 12 wait$")
            self.assertEqual(lines[-1], "  and 2 more")

    def test_a_deadlock_is_named(self):
        with Crowd("deadlock") as crowd:
            while "deadlock" not in (text := ums("stack", crowd.pid, "--locks").stdout):
                pass
            lines = text.splitlines()
            self.assertEqual(lines[0], "deadlock: 3 wait for each other in a circle")
            for line in lines[1:4]:
                self.assertRegex(line, r'^  fiber \d+ "(one|two|three)" waits for mutex 0x[0-9a-f]+, '
                                       r'held by fiber \d+ "(one|two|three)"$')

    def test_locks_as_json(self):
        with Crowd("deadlock") as crowd:
            while not (graph := json.loads(ums("stack", crowd.pid, "--locks", "--json").stdout))["deadlocks"]:
                pass
            self.assertEqual([len(circle) for circle in graph["deadlocks"]], [3])
            self.assertEqual({one["name"] for one in graph["deadlocks"][0]}, {"one", "two", "three"})
            self.assertEqual(sorted(lock["waiting"] for lock in graph["locks"]),
                             sorted([one["fiber"]] for one in graph["deadlocks"][0]))
            for lock in graph["locks"]:
                self.assertEqual(lock["kind"], "mutex")
                self.assertNotEqual([lock["held_by"]["fiber"]], lock["waiting"])

    def test_says_that_frames_are_left_out(self):
        with Crowd("names") as crowd:
            crowd.settle()
            [group] = json.loads(ums("stack", crowd.pid, "--match", "^deep$", "--json").stdout)
            self.assertFalse(group["complete"])
            text = ums("stack", crowd.pid, "--match", "^deep$").stdout
            self.assertIn("\n    (from here on it cannot be followed)\n", text)

    def test_locks_are_of_all_fibers(self):
        for words in (["2"], ["--match", "x"], ["--top", "1"], ["--each"]):
            done = ums("stack", str(os.getpid()), "--locks", *words)
            self.assertEqual(done.returncode, 2, words)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_a_core_file(self):
        with tempfile.TemporaryDirectory() as folder:
            core = core_of(5, folder)
            if core is None:
                self.skipTest("core files go elsewhere here")
            groups = json.loads(ums("stack", core, "--json").stdout)
            self.check_groups(groups, 52, 5)
            crashed = [g for g in groups if g["state"] == "running"]
            self.assertIn("abort", " ".join(f["function"] for f in crashed[0]["frames"]))


class LargeTest(unittest.TestCase):
    """100,000 fibers, by hand: stack_test.py .. LargeTest. Prints what it takes; tests nothing by the clock."""

    def test_large(self):
        with Crowd(10_000) as crowd:
            crowd.settle()
            begin = time.monotonic()
            groups = json.loads(ums("stack", crowd.pid, "--json").stdout)
            took = time.monotonic() - begin
            print(f"ums stack of {crowd.fibers} fibers: {took:.2f} s", file=sys.stderr)
            StackTest.check_groups(self, groups, crowd.fibers, 10_000)


if __name__ == "__main__":
    names = programs.take_arguments(sys.argv)
    unittest.main(verbosity=2, argv=[sys.argv[0], *(names or ["StackTest"])])
