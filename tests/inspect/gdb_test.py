#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Looks at fibers with gdb and tools/debuggers/for_gdb.py: a live program, a core file, a static one.

gdb_test.py UMS CROWD CROWD_SHARED CROWD_STATIC GDB_FILE [NAME_OF_A_TEST...]

Exit code 77: there is no gdb, or it may not trace.
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
from crowd import Crowd, container, core_of

SCRIPT = ""


def gdb(target, *commands, loads=True):
    words = ["gdb", "--batch", "-nx", "-iex", "set debuginfod enabled off"]
    words += ["-iex", "set auto-load no"] if loads else []
    words += target
    words += ["-ex", f"source {SCRIPT}"] if loads else []
    for command in commands:
        words += ["-ex", command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout + done.stderr


class GdbTest(unittest.TestCase):
    maxDiff = None

    def check(self, target, count, is_live=True):
        """The same session for everything that can be looked at."""
        out = gdb(target, "info fibers", "fiber 4", "bt", "up", "info frame", "fiber",
                  "fiber find semaphore-0", "fiber apply 4 5 bt 2", "fiber off", "fiber 999999")
        self.assertIn(f"{count} of {count} fibers", out)
        self.assertRegex(out, r"\n +3 parked +mutex-0 +mutex 0x[0-9a-f]+, held by fiber 2 \"holder-0\", in ")
        self.assertRegex(out, r"\n +4 parked +semaphore-0 +semaphore 0x[0-9a-f]+, in .*park")
        self.assertRegex(out, r"\n +12 parked +join-0 +end of fiber 11 \"park-0\", in ")
        self.assertIn('fiber 4 "semaphore-0": parked, waits for semaphore', out)
        # bt: from the park to the function of the program, and no frame of the thread's.
        trace = out.split("fiber 4 \"semaphore-0\": parked")[1].split("Stack level")[0]
        self.assertRegex(trace, r"#\d+ .*semaphore")
        self.assertRegex(trace, r"#\d+ .*start<")
        self.assertNotRegex(trace, r"\n#0 ")
        self.assertRegex(trace, r"crowd\.cpp:\d+")
        self.assertIn("is selected", out)
        self.assertIn("1 of", out.split("is selected")[1])
        self.assertIn('fiber 5 "receive-0": parked', out)
        self.assertIn("There is no fiber 999999.", out)
        return out

    def test_a_live_program(self):
        with Crowd(2) as crowd:
            crowd.settle()
            self.check(["-p", str(crowd.pid)], crowd.fibers)

    def test_workers_of_the_ums_api(self):
        program = os.path.join(os.path.dirname(programs.CROWD), "workers")
        try:
            crowd = Crowd(0, program)
        except IndexError:
            self.skipTest("no workers here")  # It has said why.
        with crowd:
            out = gdb(["-p", str(crowd.pid)], "info workers")
            lines = [line.split() for line in out.splitlines() if re.match(r" +0x[0-9a-f]+ \w", line)]
            self.assertEqual(sorted(line[1] for line in lines), ["blocked", "dequeued", "scheduler"], out)
            scheduler = [line[0] for line in lines if line[1] == "scheduler"]
            self.assertEqual([line[4] for line in lines if line[1] != "scheduler"], scheduler * 2)

    def test_a_static_program(self):
        with Crowd(2, programs.STATIC) as crowd:
            crowd.settle()
            self.check(["-p", str(crowd.pid)], crowd.fibers)

    def test_gdb_loads_the_file_beside_the_shared_library(self):
        with Crowd(1, programs.SHARED) as crowd:
            crowd.settle()
            folder = os.path.dirname(os.path.dirname(os.path.dirname(programs.SHARED)))
            out = gdb(["-iex", f"add-auto-load-safe-path {folder}", "-p", str(crowd.pid)], "info fibers",
                      loads=False)
            self.assertIn(f"{crowd.fibers} of {crowd.fibers} fibers", out)

    def test_a_core_file(self):
        with tempfile.TemporaryDirectory() as folder:
            core = core_of(2, folder)
            if core is None:
                self.skipTest("core files go elsewhere here")
            self.check([programs.CROWD, core], 22)

    def test_names_a_fiber_that_keeps_much_for_its_joiner(self):
        with Crowd("names") as crowd:
            crowd.settle()
            self.assertIn("k" * 250, gdb(["-p", str(crowd.pid)], "info fibers"))

    def test_locals_of_a_parked_fiber(self):
        with Crowd(1) as crowd:
            crowd.settle()
            out = gdb(["-p", str(crowd.pid)], "fiber 12", "bt -full")
            self.assertIn("mine = 1000", out)

    def test_a_fiber_that_runs_is_its_thread(self):
        with Crowd(1) as crowd:
            crowd.settle()
            out = gdb(["-p", str(crowd.pid)], "fiber 1", "bt", "print $_fiber()")
            self.assertRegex(out, r"#\d+ .*obey")
            self.assertIn("$1 = 1", out)

    def test_a_fiber_that_runs_in_a_container(self):
        if (under := container()) is None:
            self.skipTest("no new PID namespace can be made here")
        with Crowd(1, under=under) as crowd:
            crowd.settle()
            out = gdb(["-p", str(crowd.pid)], "fiber 1", "bt", "print $_fiber()")
            self.assertRegex(out, r"#\d+ .*obey")
            self.assertIn("$1 = 1", out)

    def test_fibers_that_compute(self):
        """One runs, the other was stopped in its signal's handler: the frames below that are its own."""
        with Crowd("states") as crowd:
            out = gdb(["-p", str(crowd.pid)], "fiber apply all bt")
            for number in range(2):
                trace = out.split(f'"compute-{number}": ')[1].split("\nfiber ")[0]
                # gdb stops one thread after the other: the library may find the first one blocked.
                self.assertRegex(trace, r"^(running|stopped|ready|blocked)")
                if not trace.startswith("ready"):  # On its way from one to the other.
                    self.assertRegex(trace, r"#\d+ .*compute")

    def test_the_program_goes_on_unchanged(self):
        with Crowd(1) as crowd:
            crowd.settle()
            gdb(["-p", str(crowd.pid)], "fiber 4", "bt", "fiber apply all bt")
            crowd.tell("end")
            self.assertEqual(crowd.process.returncode, 0)

    def test_the_command_looks_at_a_program_that_a_debugger_holds(self):
        with Crowd(1) as crowd:
            crowd.settle()
            out = gdb(["-p", str(crowd.pid)], f"shell cat /proc/{crowd.pid}/status",
                      f"shell {programs.UMS} ps --match semaphore-0 {crowd.pid}",
                      f"shell {programs.UMS} stack --match semaphore-0 {crowd.pid}")
            self.assertIn("State:\tt (tracing stop)", out)
            self.assertRegex(out, r"\n +4 parked .* semaphore-0 +semaphore 0x")
            self.assertRegex(out, r'fiber 4 "semaphore-0": parked, semaphore 0x.*\n    .* at \S*crowd\.cpp:\d+')

    def test_find_tells_of_names_and_waits_first(self):
        with Crowd(2) as crowd:
            crowd.settle()
            # The names of six fibers; of the others, only the first is in such a function.
            out = gdb(["-p", str(crowd.pid)], "fiber find ^(mutex|latch|join)-|obey", "fiber find no_such_thing",
                      "python STACKS_BETWEEN_REPORTS = 6", "fiber find no_such_thing", "fiber find (")
            lines = out[out.index(" parked   mutex-0"):].splitlines()
            self.assertEqual([re.sub(r".* ((mutex|join|latch)-\d) .*", r"\1", line) for line in lines[1:6]],
                             ["latch-0", "join-0", "mutex-1", "latch-1", "join-1"], out)
            others = crowd.fibers - 6
            self.assertEqual(lines[6], f"6 by name or wait; now the stacks of {others} others")
            self.assertRegex(lines[7], r"^  +1 blocked +main .*, below .*obey")
            self.assertEqual(lines[8], f"7 of {crowd.fibers} fibers")
            self.assertEqual(lines[9:11], [f"0 by name or wait; now the stacks of {crowd.fibers} others",
                                           f"0 of {crowd.fibers} fibers"])
            self.assertEqual([line for line in lines if line.endswith(" stacks left")],
                             [f"{left} stacks left" for left in (18, 12, 6)])
            self.assertIn("'(' is no regular expression", out)

    def test_a_breakpoint_for_one_fiber(self):
        out = gdb([programs.CROWD], "break obey if $_fiber() == 1", "run 1", "print $_fiber()")
        self.assertRegex(out, r"Breakpoint 1, .*obey")
        self.assertIn("$1 = 1", out)

    def test_a_program_without_libums(self):
        out = gdb(["/bin/true"], "break main", "starti", "info fibers")
        self.assertIn("There is no libums in this program.", out)


if __name__ == "__main__":
    names = programs.take_arguments(sys.argv)
    SCRIPT, names = os.path.abspath(names[0]), names[1:]
    if shutil.which("gdb") is None:
        sys.exit(77)
    try_it = subprocess.run(["gdb", "--batch", "-nx", "-ex", "run", "/bin/true"], capture_output=True,
                            text=True, check=False)
    if "exited normally" not in try_it.stdout:
        sys.exit(77)
    unittest.main(verbosity=2, argv=[sys.argv[0], *names])
