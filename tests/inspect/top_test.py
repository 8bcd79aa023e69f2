#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Watches processes with `ums top`: its pictures in a batch, and its page on a terminal.

top_test.py UMS CROWD CROWD_SHARED CROWD_STATIC [NAME_OF_A_TEST...]

The terminal is a pseudo-terminal, read by pyte (Debian: python3-pyte); without it the tests of the page are skipped.
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import unittest

sys.dont_write_bytecode = True  # Nothing is left in the source tree.
import crowd as programs
from crowd import Crowd, ums

try:
    import pyte
except ImportError:
    pyte = None


def pictures(*words):
    done = ums("top", *words, "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


class BatchTest(unittest.TestCase):
    maxDiff = None

    def test_counts_what_waits(self):
        with Crowd(5) as crowd:
            crowd.settle()
            for one in pictures(crowd.pid, "-n", 2, "--interval", 0.1):
                self.assertEqual(one["states"], {"parked": crowd.fibers - 1, "blocked": 1})
                self.assertEqual(one["waits"]["mutex"], 5)
                self.assertEqual(sum(start["fibers"] for start in one["starts"]), crowd.fibers)
                self.assertEqual(len(one["processors"]), 2)
                self.assertGreater(one["samples"], 0)

    def test_rates_add_up_to_what_was_done(self):
        with Crowd("work") as crowd:
            tool = subprocess.Popen([programs.UMS, "top", str(crowd.pid), "--json", "--interval", "0.1"],
                                    stdout=subprocess.PIPE, text=True)
            tool.stdout.readline()
            self.assertEqual(crowd.ask("yield 200000"), "done\n")
            done = []

            def total(name):
                return sum(one["seconds"] * one["clusters"][0][name] for one in done)

            # The lines of while they yielded may be waiting to be read.
            while total("ended_per_s") < 9.5:
                done.append(json.loads(tool.stdout.readline()))
            done.append(json.loads(tool.stdout.readline()))
            tool.kill()
            tool.communicate()

            # Ten fibers spawned and ended; and each yield is a switch, except those of a fiber that
            # is alone.
            self.assertAlmostEqual(total("ended_per_s"), 10)
            self.assertAlmostEqual(total("spawned_per_s"), 10)
            self.assertGreaterEqual(total("switches_per_s"), 200_000)
            self.assertLess(total("switches_per_s"), 220_000)

    def test_the_busiest_fiber_comes_first(self):
        with Crowd("work") as crowd:
            for words in (("--by", "fiber"), ()):
                [one] = pictures(crowd.pid, "-n", 1, "--interval", 0.3, *words)
                first = one["fibers" if words else "starts"][0]
                self.assertGreater(first["busy"], 0.5, one)
                if words:
                    self.assertEqual(first["name"], "compute-0")
                    self.assertEqual(one["fibers"][1]["state"], "blocked")
                self.assertGreater(sum(p["busy"] for p in one["processors"]), 0.5)

    def test_fibers_that_have_not_moved(self):
        with Crowd(2) as crowd:
            crowd.settle()
            *_, one = pictures(crowd.pid, "-n", 3, "--interval", 0.1, "--by", "fiber", "--sort", "unmoved",
                               "--match", "^sleep")
            self.assertEqual([f["name"] for f in one["fibers"]], ["sleep-0", "sleep-1"])
            self.assertTrue(all(f["unmoved_s"] >= 0.3 for f in one["fibers"]), one["fibers"])

    def test_names_and_the_width_of_the_terminal(self):
        with Crowd(3) as crowd:
            crowd.settle()
            for width, holder in ((80, False), (200, True)):
                batch = ("--batch", "-n", 1, "--interval", 0.1, "--width", width)
                out = ums("top", crowd.pid, *batch).stdout
                self.assertRegex(out, r"\n +BUSY +FIBERS +STACK +NAMES +STATES AND WAITS +START\n")
                self.assertRegex(out, r"\n +0% +3 .* semaphore-\* .*3 parked.*crowd\.cpp")
                out = ums("top", crowd.pid, *batch, "--by", "fiber").stdout
                # A long wait gets what the shorter columns leave.
                self.assertEqual('held by fiber 2 "holder-0" ' in out, holder, out)
                self.assertRegex(out, r" mutex-0 +mutex 0x[0-9a-f]+.* crowd\.cpp")
                self.assertLessEqual(max(map(len, out.splitlines())), width)

    def test_prints_lines(self):
        with Crowd(3) as crowd:
            crowd.settle()
            for width in (80, 160):
                done = ums("top", crowd.pid, "--batch", "-n", 2, "--interval", 0.1, "--width", width, "--by",
                           "fiber", "--rows", 5)
                self.assertEqual(done.returncode, 0, done.stderr)
                lines = done.stdout.splitlines()
                self.assertEqual(sum(f"({os.path.basename(programs.CROWD)}): {crowd.fibers} fibers" in line
                                     for line in lines), 2, lines)
                self.assertLessEqual(max(map(len, lines)), width)
                at = [i for i, line in enumerate(lines) if line.lstrip().startswith("ID ")]
                self.assertEqual(len(at), 2)
                self.assertEqual(lines[at[0] + 6], "")  # Five rows, and the end of the picture.

    def check_line(self, done, words, code):
        self.assertEqual(done.returncode, code, done)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(words, done.stderr)

    def test_says_in_one_line_why_not(self):
        self.check_line(ums("top", os.getpid(), "--batch"), "no libums", 1)
        with Crowd(1) as crowd:
            self.check_line(ums("top", crowd.pid, "--batch", "--by", "age"), "'age' is none of", 2)
            self.check_line(ums("top", crowd.pid, "--batch", "--sort", "id"), "'id' is none of", 2)
            self.check_line(ums("top", crowd.pid, "--batch", "--match", "("), "no regular expression", 2)
            self.check_line(ums("top", crowd.pid, "--interval", "0"), "--interval", 2)
            self.check_line(ums("top", crowd.pid), "this is no terminal", 2)
            tool = subprocess.Popen([programs.UMS, "top", str(crowd.pid), "--batch", "--interval", "0.05"],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            tool.stdout.readline()
            crowd.process.kill()
            _, error = tool.communicate()
            self.assertEqual((tool.returncode, error), (1, f"ums: process {crowd.pid} has ended\n"))


class Page:
    """`ums top` on a terminal; `with` ends it."""

    def __init__(self, *words, columns=80, rows=24, term="xterm-256color"):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM=term, LC_ALL="C.UTF-8")
            os.environ.pop("COLUMNS", None)
            os.environ.pop("LINES", None)
            os.execv(programs.UMS, [programs.UMS, "top", *map(str, words)])
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.code = None
        self.resize(columns, rows)

    def resize(self, columns, rows):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys):
        os.write(self.terminal, keys.encode())

    def read(self):
        """False: it has ended."""
        select.select([self.terminal], [], [])
        try:
            data = os.read(self.terminal, 65536)
        except OSError:
            data = b""
        self.stream.feed(data)
        return bool(data)

    def until(self, holds):
        while not holds(self.screen.display):
            assert self.read(), "it has ended:\n" + "\n".join(self.screen.display)
        return self.screen.display

    def until_text(self, words):
        return self.until(lambda lines: any(words in line for line in lines))

    def wait(self):
        while self.read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        os.close(self.terminal)


@unittest.skipIf(pyte is None, "no pyte here")
class PageTest(unittest.TestCase):
    def test_keys_at_80_and_160_columns(self):
        for columns in (80, 160):
            with Crowd(4) as crowd, Page(crowd.settle().pid, "--interval", 0.1, columns=columns) as page:
                page.until_text("STATES AND WAITS")
                page.until_text(f"{crowd.fibers} fibers")
                page.until(lambda all: "q quit" in all[-1])
                page.press("\t")
                page.until_text("UNMOVED")
                page.press("s")
                page.until_text("sort: unmoved")
                page.press("/sleep-\r")
                lines = page.until(lambda all: sum("sleep-" in line for line in all[:-1]) == 4)
                self.assertFalse(any("mutex-" in line for line in lines))
                page.press("/\x15^mutex-2$\r")
                page.until(lambda all: sum("mutex-" in line for line in all[:-1]) == 1)
                page.press("\r")
                page.until_text("held by fiber")
                page.until_text("operator() at ")
                page.press("q")
                page.until_text("UNMOVED")
                page.press("/\x15(\r")
                page.until_text("no regular expression")
                page.press("h")
                page.until_text("the stacks of the selected line")
                page.press("q")
                page.until_text("UNMOVED")
                page.press(" ")
                page.until_text("FROZEN")
                page.press(" ")
                page.until(lambda all: "FROZEN" not in all[-1])
                page.press("q")
                self.assertEqual(page.wait(), 0)

    def selected(self, page):
        return [y for y in range(page.screen.lines)
                if all(page.screen.buffer[y][x].reverse for x in range(page.screen.columns))]

    def test_selects_and_scrolls(self):
        with Crowd(10) as crowd, Page(crowd.settle().pid, "--interval", 0.1, "--by", "fiber", "--sort",
                                      "id") as page:
            page.until(lambda _: self.selected(page))
            [top] = self.selected(page)
            page.press("j")
            page.until(lambda _: self.selected(page) == [top + 1])
            page.press("\x1bOF")  # End, as ncurses asks the terminal to send it.
            page.until_text("join-9")
            page.press("\x1bOH")
            page.until_text(" main ")

    def test_follows_the_size_of_the_terminal(self):
        with Crowd(4) as crowd, Page(crowd.settle().pid, "--interval", 0.1) as page:
            page.until_text("STATES AND WAITS")
            for columns, rows in ((160, 50), (40, 10), (12, 4), (80, 24)):
                page.resize(columns, rows)
                page.until(lambda lines: lines[-1].startswith("q quit") and lines[0].startswith("process"))
            page.until_text("STATES AND WAITS")

    def test_leaves_the_terminal_when_the_process_ends(self):
        with Crowd(2) as crowd, Page(crowd.settle().pid, "--interval", 0.1) as page:
            page.until_text("STATES AND WAITS")
            crowd.process.kill()
            crowd.process.wait()
            self.assertEqual(page.wait(), 1)
            self.assertTrue(any(f"process {crowd.pid} has ended" in line for line in page.screen.display),
                            page.screen.display)

    def test_needs_only_a_plain_terminal(self):
        with Crowd(2) as crowd:
            with Page(crowd.settle().pid, "--interval", 0.1, term="vt100") as page:
                page.until_text("STATES AND WAITS")
                page.press("q")
                self.assertEqual(page.wait(), 0)
            with Page(crowd.pid, term="no-such-terminal") as page:
                self.assertEqual(page.wait(), 2)
                self.assertTrue(any("is not known" in line for line in page.screen.display))


if __name__ == "__main__":
    names = programs.take_arguments(sys.argv)
    unittest.main(verbosity=2, argv=[sys.argv[0], *names])
