#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds the USDT probes to the table of docs/look-inside.md, and attaches to them with gdb.

probes_test.py PACES LIBRARY PAGE HAS_PROBES. Exit code 77: built without <sys/sdt.h>.
"""

import os
import re
import subprocess
import sys
import unittest

PACES = LIBRARY = PAGE = ""


def notes(path):
    """The probes of a file: {name: {count of arguments}}, and the addresses of their semaphores."""
    text = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    found, semaphores = {}, set()
    for name, semaphore, arguments in re.findall(
            r"Provider: libums\n\s+Name: (\w+)\n.*Semaphore: (\w+)\n\s+Arguments: ?(.*)\n", text):
        found.setdefault(name, set()).add(len(arguments.split()))
        semaphores.add(semaphore)
    return found, semaphores


def documented():
    with open(PAGE, encoding="utf-8") as file:
        part = file.read().partition("\n### Probes\n")[2].partition("\n## ")[0]
    return {name: {len(arguments.split(","))}
            for name, arguments in re.findall(r"^\| `(\w+)` \| ([^|]+) \|", part, re.MULTILINE)}


class ProbesTest(unittest.TestCase):
    def test_there_are_those_that_the_page_lists(self):
        self.assertGreater(len(documented()), 12)
        for path in (PACES, LIBRARY):
            found, semaphores = notes(path)
            self.assertEqual(found, documented())
            self.assertEqual(len(semaphores), 1)
            self.assertNotIn("0x0000000000000000", semaphores)

    def hits(self, *names):
        """How often each probe of paces fires, as gdb counts."""
        words = []
        for number, name in enumerate(names, 1):
            words += ["-ex", "break -probe-stap libums:%s" % name, "-ex", "ignore %d 1000000" % number]
        done = subprocess.run(["gdb", "-nx", "-batch", *words, "-ex", "run", "-ex", "info breakpoints", PACES],
                              capture_output=True, text=True, timeout=120, check=False,
                              env={**os.environ, "UMS_PROCESSORS": "1", "UMS_BLOCK": "off"})
        self.assertIn("55 spawned", done.stdout, done)
        told = dict(re.findall(r"^(\d+) .*-probe-stap libums:\w+\n(?:\s+breakpoint already hit (\d+) times?)?",
                               done.stdout, re.MULTILINE))
        if not told:
            self.skipTest("this gdb knows no probes: " + done.stdout + done.stderr)
        return [int(told[str(number)] or 0) for number in range(1, len(names) + 1)]

    def test_a_debugger_that_attaches_sees_all_that_happens(self):
        spawn, end, mark, timer, steal = self.hits("spawn", "end", "mark", "timer", "steal")
        # The first fiber is made before any processor has looked whether it is to record.
        self.assertIn(spawn, (54, 55))
        self.assertEqual((end, mark, timer, steal), (55, 30, 20, 0))

    def test_what_runs_has_been_woken_or_has_yielded(self):
        run, park, yielded, end, unpark, timer, spawn = self.hits("run", "park", "yield", "end", "unpark", "timer",
                                                                  "spawn")
        self.assertGreaterEqual(park, 200 + 20)
        # Each fiber that stops lets another run, or the processor idles first; all have ended at
        # last.
        self.assertEqual(run, park + yielded + end)
        # What waited was woken; a joiner of a fiber that ends just then continues without.
        self.assertLessEqual(unpark + timer, park)
        self.assertGreaterEqual(unpark + timer, park - spawn)


if __name__ == "__main__":
    PACES, LIBRARY, PAGE, has_probes = sys.argv[1:5]
    if has_probes != "1" and not notes(LIBRARY)[0]:
        print("skipped: built without <sys/sdt.h> (tools/setup installs systemtap-sdt-dev)")
        sys.exit(77)
    unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[5:]])
