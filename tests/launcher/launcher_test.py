#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What runs the test programs shows the fibers of one that hangs, and changes nothing for the others.

launcher_test.py LAUNCHER HANGS [UMS]"""

import os
import signal
import subprocess
import sys
import unittest

LAUNCHER, HANGS, UMS = (sys.argv[1:] + [None])[:3]
NAMES = ("first_to_wait", "second_to_wait")


def launch(*command, seconds="500", ums="/nowhere/ums", **options):
    return subprocess.run([LAUNCHER, seconds, ums, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, **options)


def processes_of(program):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.path.samefile(f"/proc/{pid}/exe", program):
                found.append(pid)
        except OSError:
            pass
    return found


class LauncherTest(unittest.TestCase):
    def check_shown(self, *command):
        if UMS is None:
            self.skipTest("the command ums is not built")
        # Two seconds are enough to start two fibers, and all of them are waited for.
        done = launch(*command, seconds="2", ums=UMS)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("not ended after 2 s", done.stdout)
        for name in NAMES:
            self.assertIn(name, done.stdout)
        self.assertIn("acquire", done.stdout)  # By `ums stack`.
        self.assertEqual(processes_of(HANGS), [])

    def test_shows_the_fibers_of_a_program_that_hangs_and_ends_it(self):
        self.check_shown(HANGS)

    def test_shows_the_fibers_of_its_child(self):
        self.check_shown(HANGS, "child")

    def test_says_in_a_line_that_there_is_no_command(self):
        done = launch(HANGS, seconds="1", env={**os.environ, "UMS_DEBUG": "deadlock=off"})
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "\n== launcher: not ended after 1 s\n== the fibers are not shown: "
                         "/nowhere/ums is not built (target ums_command)\n")

    def test_leaves_status_input_and_output_alone(self):
        done = launch("/bin/sh", "-c", "cat; echo $0 $1; exit 77", "a", "b c", input="in\n")
        self.assertEqual((done.returncode, done.stdout), (77, "in\na b c\n"))

    def test_dies_of_the_signal_that_the_program_died_of(self):
        self.assertEqual(launch("/bin/sh", "-c", "kill -SEGV $$").returncode, -signal.SIGSEGV)
        self.assertEqual(launch("/bin/sh", "-c", "kill -KILL $$").returncode, -signal.SIGKILL)

    def test_passes_signals_on(self):
        # The child may lose a signal that comes before it is sleep, and would keep the pipe.
        script = "trap 'echo got it; kill -9 $!; exit 3' TERM; sleep 500 >/dev/null & echo ready; wait"
        with subprocess.Popen([LAUNCHER, "500", "/nowhere/ums", "/bin/sh", "-c", script], stdout=subprocess.PIPE,
                              text=True) as run:
            self.assertEqual(run.stdout.readline(), "ready\n")
            run.terminate()
            self.assertEqual(run.stdout.read(), "got it\n")
        self.assertEqual(run.returncode, 3)

    def test_the_program_ends_with_it(self):
        with subprocess.Popen([LAUNCHER, "500", "/nowhere/ums", "/bin/sh", "-c", "echo ready; exec sleep 500"],
                              stdout=subprocess.PIPE, text=True) as run:
            self.assertEqual(run.stdout.readline(), "ready\n")
            run.kill()
            self.assertEqual(run.stdout.read(), "")  # The other end of the pipe is closed.

    def test_says_what_it_cannot_start(self):
        done = launch("/nowhere/program")
        self.assertEqual(done.returncode, 126)
        self.assertIn("/nowhere/program: No such file", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv[:1])
