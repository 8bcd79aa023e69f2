#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lets `ums slow` tell of fibers that run for long.

slow_test.py UMS CROWD CROWD_SHARED CROWD_STATIC [NAME_OF_A_TEST...]
"""

import os
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # Nothing is left in the source tree.
import crowd as programs
from crowd import Crowd, ums

TOLD = re.compile(r' *[\d.]+ s  fiber \d+ "(.*)" has run for [\d.]+ m?s on processor \d+ of main: (.*)\n')


class Slow:
    """`ums slow` on a process; `with` ends it."""

    def __init__(self, *words):
        self.process = subprocess.Popen([programs.UMS, "slow", *map(str, words)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.title = self.process.stdout.readline()

    def __iter__(self):
        return iter(self.process.stdout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


class SlowTest(unittest.TestCase):
    def test_tells_once_with_the_stack_and_when_it_switches(self):
        for program in (programs.CROWD, programs.SHARED, programs.STATIC):
            with Crowd(1, program) as crowd, Slow(crowd.pid, "--over", 20) as slow:
                self.assertIn("more than 20 ms", slow.title)
                crowd.process.stdin.write("run\n")
                crowd.process.stdin.flush()
                told = TOLD.fullmatch(next(iter(slow)))
                self.assertEqual(told[1], "runner")
                self.assertIn("run_without_a_switch", told[2])
                for line in slow:
                    self.assertTrue(line.startswith("    "), line)
                    if re.search(r"run_without_a_switch.* at \S*crowd\.cpp:\d+", line):
                        break
                crowd.process.stdin.write("rest\n")
                crowd.process.stdin.flush()
                # No other line between the stack and this one tells of it again.
                for line in slow:
                    self.assertIsNone(TOLD.fullmatch(line))
                    if not line.startswith("    "):
                        self.assertRegex(line, r'"runner" has switched, after about [\d.]+ m?s')
                        break

    def test_tells_of_none_that_yields(self):
        with Crowd("work") as crowd, Slow(crowd.pid, "--over", 20) as slow:
            self.assertEqual(TOLD.fullmatch(next(iter(slow)))[1], "compute-0")
            self.assertEqual(crowd.ask("yield 2000000"), "done\n")
            crowd.process.kill()
            crowd.process.wait()
            self.assertFalse([line for line in slow if "yield" in line])
            self.assertEqual(slow.process.wait(), 1)
            self.assertEqual(slow.process.stderr.read(), f"ums: process {crowd.pid} has ended\n")

    def check_line(self, done, words, code):
        self.assertEqual(done.returncode, code, done)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(words, done.stderr)

    def test_ends_after_a_time_and_says_in_one_line_why_not(self):
        self.check_line(ums("slow", os.getpid()), "no libums", 1)
        with Crowd(1) as crowd:
            crowd.settle()
            self.assertEqual(ums("slow", crowd.pid, "--for", "0.1").stderr, "")
            self.check_line(ums("slow", crowd.pid, "--over", "0"), "--over", 2)
            self.check_line(ums("slow", crowd.pid, "--for", "0"), "--for", 2)


if __name__ == "__main__":
    names = programs.take_arguments(sys.argv)
    unittest.main(verbosity=2, argv=[sys.argv[0], *names])
