#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Looks at fibers with lldb and tools/debuggers/for_lldb.py: a live program, a core file, a static one.

lldb_test.py UMS CROWD CROWD_SHARED CROWD_STATIC LLDB_FILE [NAME_OF_A_TEST...]

Exit code 77: there is no lldb, or it may not trace.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # Nothing is left in the source tree.
import crowd as programs
from crowd import Crowd, core_of

LLDB = SCRIPT = ""


def lldb(target, *commands):
    words = [LLDB, "--batch", "--no-lldbinit"]
    for command in (f"command script import {SCRIPT}", *commands):
        words += ["-o", command]
    done = subprocess.run([*words, *target], capture_output=True, text=True, timeout=120, check=False,
                          stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr


def said_to(command, out):
    """What followed one of the commands. lldb takes no more of them after one that fails."""
    return out.split(f"(lldb) {command}\n")[1].split("\n(lldb) ")[0]


class LldbTest(unittest.TestCase):
    maxDiff = None

    def check(self, target, count):
        """The same session for everything that can be looked at."""
        out = lldb(target, "fiber list", "fiber list semaphore-", "fiber bt 4 5", "fiber 4", "bt", "up",
                   "fiber find counting_semaphore", "fiber list semaphore-0", "fiber bt all", "fiber 999999")
        listed = said_to("fiber list", out)
        self.assertIn(f"{count} of {count} fibers", listed)
        self.assertRegex(listed, r"\n +3 parked +mutex-0 +mutex 0x[0-9a-f]+, held by fiber 2 \"holder-0\", in ")
        self.assertRegex(listed, r"\n +4 parked +semaphore-0 +semaphore 0x[0-9a-f]+, in .*park")
        self.assertRegex(listed, r"\n +12 parked +join-0 +end of fiber 11 \"park-0\", in ")
        self.assertIn(f"2 of {count} fibers", said_to("fiber list semaphore-", out))
        # From the park to the function of the program.
        for trace in (said_to("fiber bt 4 5", out).split("\nfiber 5 ")[0], said_to("bt", out)):
            self.assertRegex(trace, r"frame #0: .*park")
            self.assertRegex(trace, r"frame #\d+: .*semaphore_calls::acquire")
            self.assertRegex(trace, r"frame #\d+: .*crowd\.cpp:\d+")
        self.assertIn('fiber 5 "receive-0": parked, waits for receive', said_to("fiber bt 4 5", out))
        self.assertIn('fiber 4 "semaphore-0": parked, waits for semaphore', said_to("fiber 4", out))
        self.assertRegex(said_to("bt", out), r"\* thread #\d+, name = 'semaphore-0'")
        found = said_to("fiber find counting_semaphore", out)
        self.assertRegex(found, r" 4 parked +semaphore-0 .*, below .*counting_semaphore")
        self.assertIn(f"2 of {count} fibers", found)
        self.assertRegex(said_to("fiber list semaphore-0", out), r"\* +4 parked")
        self.assertIn("There is no fiber 999999.", out)
        self.assertEqual(len(re.findall(r"\nfiber \d+ \"", said_to("fiber bt all", out))), count)

    def test_a_live_program(self):
        with Crowd(2) as crowd:
            crowd.settle()
            self.check(["-p", str(crowd.pid)], crowd.fibers)

    def test_a_static_program(self):
        with Crowd(2, programs.STATIC) as crowd:
            crowd.settle()
            self.check(["-p", str(crowd.pid)], crowd.fibers)

    def test_a_program_with_the_shared_library(self):
        with Crowd(2, programs.SHARED) as crowd:
            crowd.settle()
            self.check(["-p", str(crowd.pid)], crowd.fibers)

    def test_a_core_file(self):
        with tempfile.TemporaryDirectory() as folder:
            core = core_of(2, folder)
            if core is None:
                self.skipTest("core files go elsewhere here")
            self.check([programs.CROWD, "-c", core], 22)

    def test_variables_of_a_parked_fiber(self):
        with Crowd(1) as crowd:
            crowd.settle()
            out = lldb(["-p", str(crowd.pid)], "fiber 4", "up 2", "frame variable")
            self.assertRegex(said_to("frame variable", out), r"\(ums::sched::\w+")

    def test_a_fiber_that_runs_is_its_thread(self):
        with Crowd(1) as crowd:
            crowd.settle()
            out = lldb(["-p", str(crowd.pid)], "fiber 1", "bt", "thread list")
            self.assertRegex(said_to("bt", out), r"frame #\d+: .*obey")
            self.assertNotIn("tid = 1099511", said_to("thread list", out))

    def test_the_program_goes_on_unchanged(self):
        with Crowd(1) as crowd:
            crowd.settle()
            lldb(["-p", str(crowd.pid)], "fiber 4", "fiber bt all")
            crowd.tell("end")
            self.assertEqual(crowd.process.returncode, 0)

    def test_a_program_that_runs_to_its_end(self):
        """A breakpoint, a selected fiber, then on. The stop's signal does not halt it."""
        paces = os.path.join(os.path.dirname(programs.CROWD), "paces")
        out = lldb([paces], "breakpoint set --one-shot true -n ums::this_fiber::sleep_until", "run", "fiber 1",
                   "process handle SIGRTMAX-1", "continue")
        self.assertIn("stop reason = one-shot breakpoint", out)
        self.assertIn("fiber 1", said_to("fiber 1", out))
        # Passed on, no stop, no message.
        self.assertRegex(out, r"\nSIGRTMAX-1 +true +false +false")
        self.assertRegex(out, r"exited with status = 0")

    def test_a_program_without_libums(self):
        at_entry = "process launch --stop-at-entry"
        self.assertIn("There is no process.", lldb(["/bin/true"], "fiber list"))
        self.assertIn("There is no libums in this program.", lldb(["/bin/true"], at_entry, "fiber list"))
        self.assertIn("Expected: fiber list", lldb(["/bin/true"], at_entry, "fiber bt x"))


def find_lldb():
    names = ["lldb", *(f"lldb-{version}" for version in range(30, 13, -1))]
    return next((path for name in names if (path := shutil.which(name))), None)


if __name__ == "__main__":
    names = programs.take_arguments(sys.argv)
    SCRIPT, names = os.path.abspath(names[0]), names[1:]
    LLDB = find_lldb()
    if LLDB is None:
        print("There is no lldb here.")
        sys.exit(77)
    try_it = subprocess.run([LLDB, "--batch", "-x", "-o", "script print(6 * 7)", "-o", "run", "/bin/true"],
                            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if "exited with status = 0" not in try_it.stdout or "\n42\n" not in try_it.stdout:
        print("lldb may not trace here, or it has no Python.")
        sys.exit(77)
    unittest.main(verbosity=2, argv=[sys.argv[0], *names])
