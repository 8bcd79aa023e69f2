#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Profiles processes with `ums profile`, and holds its three files to each other.

profile_test.py UMS CROWD CROWD_SHARED CROWD_STATIC [NAME_OF_A_TEST...]

`go tool pprof` reads the pprof file where Go is installed; everywhere a few lines of Python do.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # Nothing is left in the source tree.
import crowd as programs
from crowd import Crowd, ums


def fields(data):
    """The fields of a message of protocol buffers: number, value."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        else:
            assert tag & 7 == 2, tag
            size = varint()
            yield tag >> 3, data[at:at + size]
            at += size


def numbers(packed):
    out, value, shift = [], 0, 0
    for byte in packed:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            out.append(value)
            value = shift = 0
    return out


class Pprof:
    def __init__(self, path):
        with gzip.open(path) as file:
            all_fields = list(fields(file.read()))
        self.strings = [value.decode() for number, value in all_fields if number == 6]
        functions = {}
        for number, value in all_fields:
            if number == 5:
                one = dict(fields(value))
                functions[one[1]] = self.strings[one[2]]
        locations = {}
        for number, value in all_fields:
            if number == 4:
                one = dict(fields(value))
                locations[one[1]] = functions[dict(fields(one[4]))[1]]
        self.types = [self.strings[dict(fields(value))[1]] for number, value in all_fields if number == 1]
        # Functions from the outermost, nanoseconds on and off CPUs, samples, label.
        self.samples = []
        for number, value in all_fields:
            if number == 2:
                one = dict(fields(value))
                label = dict(fields(one[3])) if 3 in one else {}
                self.samples.append(([locations[i] for i in reversed(numbers(one[1]))], *numbers(one[2]),
                                     self.strings[label[2]] if label else ""))
        self.duration = dict(all_fields)[10]


def folded(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n").rpartition(" ") for line in file]
    return {stack: int(us) for stack, _, us in lines}


class Profile:
    """One run, with all its files; `with` removes them."""

    def __init__(self, pid, *words):
        self.folder = tempfile.TemporaryDirectory()
        self.paths = {kind: os.path.join(self.folder.name, kind) for kind in ("pprof", "folded", "html")}
        files = [word for kind, path in self.paths.items() for word in ("--" + kind, path)]
        self.done = ums("profile", pid, *words, *files)
        assert self.done.returncode == 0, self.done.stderr
        self.pprof = Pprof(self.paths["pprof"])
        self.folded = folded(self.paths["folded"])
        with open(self.paths["html"], encoding="utf-8") as file:
            self.html = file.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()


class ProfileTest(unittest.TestCase):
    maxDiff = None

    def check_files(self, p):
        """All three say the same."""
        self.assertEqual(p.pprof.types, ["cpu", "off_cpu", "samples"])
        for which, root in ((1, "[on CPU]"), (2, "[off CPU]")):
            by_stack = {}
            for sample in p.pprof.samples:
                if sample[which]:
                    name = ";".join([root, *sample[0]])
                    by_stack[name] = by_stack.get(name, 0) + sample[which]
            in_folded = {stack: us for stack, us in p.folded.items() if stack.split(";")[0] == root}
            self.assertEqual(set(by_stack), set(in_folded))
            for stack, ns in by_stack.items():
                self.assertEqual(ns // 1000, in_folded[stack])
        data = json.loads(re.search('type="application/json">(.*?)</script>', p.html, re.DOTALL)[1])

        def check(node):
            name, us, _, above = node
            self.assertLessEqual(sum(child[1] for child in above), us + len(above), name)
            for child in above:
                check(child)

        for key, root in (("on", "[on CPU]"), ("off", "[off CPU]")):
            check(data[key])
            total = sum(us for stack, us in p.folded.items() if stack.startswith(root))
            self.assertAlmostEqual(data[key][1], total, delta=len(p.folded))
        # No other file is needed.
        self.assertNotRegex(p.html, r"""(src|href)=|@import|url\(""")

    def test_waits_weigh_what_they_last(self):
        with Crowd(5) as crowd:
            crowd.settle()
            with Profile(crowd.pid, "--seconds", 1, "--kind", "off") as p:
                self.check_files(p)
                by_wait = {}
                for sample in p.pprof.samples:
                    by_wait[sample[4]] = by_wait.get(sample[4], 0) + sample[2]
                # Nothing moves: five of each kind, all the time that was looked at.
                each = by_wait["mutex"]
                for kind in ("mutex", "semaphore", "receive", "send", "condition", "latch", "sleep", "read",
                             "join"):
                    self.assertAlmostEqual(by_wait[kind], each, delta=1000, msg=kind)
                self.assertAlmostEqual(by_wait["park"], each * 6 / 5, delta=1000)  # And the holder.
                self.assertAlmostEqual(by_wait["syscall"], each / 5, delta=1000)
                self.assertAlmostEqual(each / 5, p.pprof.duration, delta=0.01 * p.pprof.duration)

    def test_stacks_follow_spawns_and_joins(self):
        with Crowd(2) as crowd:
            crowd.settle()
            with Profile(crowd.pid, "--seconds", 0.5, "--kind", "off") as p:
                joins = [stack for stack in p.folded if stack.endswith("]") and "[waits: end of " in stack]
                self.assertEqual(len(joins), 1, p.folded)
                functions = joins[0].split(";")
                self.assertEqual(functions[1], "[fiber main]")
                starts = [name for name in functions if name.startswith("[fiber ")]
                self.assertEqual(len(starts), 2, functions)
                between = functions[2:functions.index(starts[1])]
                # The place where it was spawned.
                self.assertTrue(any("lambda" in name for name in between), functions)
                self.assertTrue(any("join" in name for name in functions), functions)

    def test_what_computes_is_on_a_cpu(self):
        with Crowd("work") as crowd:
            with Profile(crowd.pid, "--seconds", 1) as p:
                self.check_files(p)
                on = {stack: us for stack, us in p.folded.items() if stack.startswith("[on CPU]")}
                computing = sum(us for stack, us in on.items() if "compute" in stack)
                self.assertGreater(computing, 0.9 * sum(on.values()))
                kernel = float(re.search(r"the kernel counted ([0-9.]+) s", p.done.stdout)[1])
                self.assertLess(sum(on.values()) / 1e6, 1.05 * kernel + 0.05)
                self.assertGreater(sum(on.values()) / 1e6, 0.8 * kernel - 0.1)
                # It is what main spawned.
                stack = max(on, key=on.get)
                self.assertEqual(stack.count("[fiber "), 2, stack)
                self.assertTrue(stack.split(";")[-1].startswith("compute") or "compute" in stack, stack)
                self.assertRegex(p.done.stdout, r"on CPU: [0-9.]+ s in samples; the kernel counted")
                self.assertRegex(p.done.stdout, r"read")  # What main waits for.
            # And it goes on.
            self.assertEqual(crowd.ask("yield 100"), "done\n")

    def test_says_when_there_is_little_to_go_by(self):
        with Crowd("work") as crowd:
            done = ums("profile", crowd.pid, "--seconds", "0.2", "--frequency", "5")
            self.assertRegex(done.stdout, r"\n(no samples: nothing ran when the command looked|few samples \(\d\): a "
                                          r"share may be off by \d+ points; look for \d+ s)\n")
            self.assertRegex(done.stdout, r"\nfew looks: waits shorter than 0\.[0-2] s may be missing\n")

    def test_go_reads_it(self):
        go = shutil.which("go")
        if go is None:
            self.skipTest("no go here")
        with Crowd("work") as crowd, Profile(crowd.pid, "--seconds", 1) as p:
            environment = dict(os.environ, PPROF_TMPDIR=p.folder.name)
            for index, words in (("cpu", "compute"), ("off_cpu", "waits: read")):
                done = subprocess.run([go, "tool", "pprof", "-top", "-sample_index=" + index, p.paths["pprof"]],
                                      capture_output=True, text=True, check=False, env=environment)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(words, done.stdout)
                shown = re.search(r"Total samples = ([0-9.]+)(m?s)", done.stdout)
                total = float(shown[1]) * (1e-3 if shown[2] == "ms" else 1)
                mine = sum(sample[1 if index == "cpu" else 2] for sample in p.pprof.samples) / 1e9
                self.assertAlmostEqual(total, mine, delta=0.01 + 0.01 * mine)

    def check_line(self, done, words, code=1):
        self.assertEqual(done.returncode, code, done)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(words, done.stderr)

    def test_says_in_one_line_why_not(self):
        self.check_line(ums("profile", os.getpid(), "--seconds", 0.1), "no libums")
        with Crowd(1) as crowd:
            self.check_line(ums("profile", crowd.pid, "--kind", "some"), "'some' is none of", 2)
            self.check_line(ums("profile", crowd.pid, "--pprof", "/no/such/folder/file"), "--pprof", 2)
            self.check_line(ums("profile", crowd.pid, "--seconds", "0"), "--seconds", 2)

    def test_a_process_that_ends_meanwhile(self):
        with Crowd("work") as crowd:
            tool = subprocess.Popen([programs.UMS, "profile", str(crowd.pid), "--seconds", "3600"],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while True:  # Until it has been seen a few times.
                with open(f"/proc/{tool.pid}/io", encoding="utf-8") as file:
                    if int(re.search(r"syscr: (\d+)", file.read())[1]) > 500:
                        break
            crowd.process.kill()
            crowd.process.wait()
            out, error = tool.communicate()
            self.assertEqual(tool.returncode, 0, error)
            self.assertIn("on CPU", out)


if __name__ == "__main__":
    names = programs.take_arguments(sys.argv)
    unittest.main(verbosity=2, argv=[sys.argv[0], *names])
