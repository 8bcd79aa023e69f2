#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs tests/run/subject.c with `ums run`: what it says of programs whose waits are known, and that they run as
they would without it.

run_test.py UMS SUBJECT SUBJECT_STATIC [NAME_OF_A_TEST...]
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

UMS = SUBJECT = STATIC = ""


def ums(*words, **more):
    more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
    return subprocess.run([UMS, "run", *map(str, words)], text=True, check=False, **more)


class Verdicts(unittest.TestCase):
    def report(self, *words, **more):
        done = ums("--trace", "--json", *words, **more)
        self.assertEqual(done.returncode, 0, done)
        return json.loads(done.stderr)

    def serving(self, connections, requests):
        """The report of a server whose client comes from elsewhere."""
        with tempfile.TemporaryDirectory() as folder:
            into = os.path.join(folder, "report")
            with subprocess.Popen([UMS, "run", "--trace", "--json", "-o", into, SUBJECT, "serve", str(connections)],
                                  stdout=subprocess.PIPE, text=True) as server:
                subprocess.run([SUBJECT, "load", server.stdout.readline().strip(), str(connections), str(requests)],
                               check=True)
            self.assertEqual(server.returncode, 0)
            with open(into, encoding="utf-8") as file:
                return json.load(file)

    def check_share(self, report, kind, least):
        """At least this share of the waits is of the kind; where the machine let it look, as it says itself."""
        if report["by"] == "unknown":
            self.skipTest(f"it could look too seldom: {report}")
        self.assertGreaterEqual(report["waits"].get(kind, 0), least * report["voluntary"], report)

    def test_a_queue_of_two_threads_gains_by_synchronisation(self):
        for program in (SUBJECT, STATIC):
            report = self.report(program, "queue", 30000)
            self.assertTrue(report["gains"], report)
            self.assertEqual(report["by"], "synchronisation", report)
            self.check_share(report, "futex", 0.9)
            self.assertEqual(report["most_threads"], 3)
            self.assertIn("ums_pthread.h", report["lines"][2])

    def test_a_thread_for_each_of_sixteen_connections_gains_by_sockets(self):
        report = self.serving(16, 30000)
        self.assertTrue(report["gains"], report)
        self.assertEqual(report["by"], "sockets", report)
        self.check_share(report, "socket", 0.9)
        self.assertEqual(report["most_threads"], 17)
        self.assertIn("UMS_IO_NAMES", report["lines"][2])

    def test_one_connection_gains_nothing(self):
        report = self.serving(1, 20000)
        self.assertFalse(report["gains"], report)
        self.assertEqual(report["by"], "nothing")
        self.check_share(report, "socket", 0.9)
        self.assertLess(report["any_ready"], 0.2, report)
        self.assertIn("no other was ready", report["lines"][1])

    def test_threads_that_yield_to_each_other_gain_by_synchronisation(self):
        one_cpu = {min(os.sched_getaffinity(0))}
        report = self.report(SUBJECT, "yield", 50000, preexec_fn=lambda: os.sched_setaffinity(0, one_cpu))
        self.assertEqual(report["by"], "synchronisation", report)
        self.assertIn("it yields", report["lines"][1])

    def test_what_is_not_looked_at_is_not_judged(self):
        report = self.report(SUBJECT, "unseen", 30000)
        self.assertFalse(report["gains"], report)
        self.assertEqual(report["by"], "unknown", report)
        self.assertIn("cannot be said", report["lines"][0])
        self.assertIn("too few of them were seen", report["lines"][1])

    def test_yields_need_no_looks(self):
        one_cpu = {min(os.sched_getaffinity(0))}
        report = self.report(SUBJECT, "unseen-yield", 50000, preexec_fn=lambda: os.sched_setaffinity(0, one_cpu))
        self.assertEqual(report["by"], "synchronisation", report)

    def test_what_computes_gains_nothing(self):
        report = self.report(SUBJECT, "compute", 40)
        self.assertFalse(report["gains"], report)
        self.assertLess(report["in_switches"], 0.05, report)
        self.assertEqual(report["most_threads"], 5)

    def test_waits_that_nobody_ends_gain_nothing(self):
        report = self.report(SUBJECT, "timer", 5000)
        self.assertFalse(report["gains"], report)
        self.check_share(report, "futex with a timeout", 0.9)

    def test_what_only_starts_others_is_told_to_trace_those(self):
        report = self.report("/bin/sh", "-c", f"{SUBJECT} compute 40; exit 0")
        self.assertFalse(report["gains"], report)
        self.assertIn("trace one of them", report["lines"][1])

    def test_a_program_that_becomes_another_is_that_other(self):
        report = self.report("/bin/sh", "-c", f"exec {SUBJECT} queue 30000")
        self.assertEqual(report["by"], "synchronisation", report)

    def test_what_ends_at_once_is_too_little_to_judge_by(self):
        report = self.report("true")
        self.assertFalse(report["gains"], report)
        self.assertIn("too little", report["lines"][1])


class AsItIs(unittest.TestCase):
    """The program runs as it would without the command."""

    def test_its_output_and_exit_code_are_its_own(self):
        done = ums("--trace", "sh", "-c", "echo out; echo err >&2; exit 7")
        self.assertEqual(done.returncode, 7)
        self.assertEqual(done.stdout, "out\n")
        lines = done.stderr.splitlines()
        self.assertEqual(lines[0], "err")
        self.assertEqual(len(lines), 8, lines)
        for line in lines[1:]:
            self.assertRegex(line, "^ums: ")

    def test_its_input_and_words_are_its_own(self):
        done = subprocess.run([UMS, "run", "--trace", "cat", "--number", "-"], input="a\n", capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.stdout.split(), ["1", "a"])
        done = ums("--trace", "echo", "--", "--help", "-o", "x", "--trace")
        self.assertEqual(done.stdout, "-- --help -o x --trace\n")
        done = ums("--trace", "--", "echo", "--json")
        self.assertEqual(done.stdout, "--json\n")

    def test_a_report_in_a_file_leaves_standard_error_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            into = os.path.join(folder, "report")
            done = ums("--trace", "-o", into, "sh", "-c", "echo err >&2")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", "err\n"))
            with open(into, encoding="utf-8") as file:
                self.assertEqual(len(file.read().splitlines()), 7)

    def test_a_signal_that_ends_it_ends_the_command(self):
        for number in (signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM):
            done = ums("--trace", "sh", "-c", f"kill -{int(number)} $$")
            self.assertEqual(done.returncode, -number, done)
            self.assertIn("ums: it would not gain", done.stderr)

    def test_a_signal_sent_to_the_command_reaches_it(self):
        with subprocess.Popen([UMS, "run", "--trace", SUBJECT, "tell"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as command:
            self.assertEqual(command.stdout.readline(), "ready\n")
            command.send_signal(signal.SIGTERM)
            self.assertEqual(command.stdout.read(), "ending\n")
        self.assertEqual(command.returncode, 5)

    def test_its_signals_are_as_they_were(self):
        native = subprocess.run([SUBJECT, "mask"], capture_output=True, text=True, check=True)
        self.assertEqual(ums("--trace", SUBJECT, "mask").stdout, native.stdout)
        ignoring = f"trap '' HUP INT; exec {SUBJECT} mask"
        native = subprocess.run(["sh", "-c", ignoring], capture_output=True, text=True, check=True)
        self.assertEqual(ums("--trace", "sh", "-c", ignoring).stdout, native.stdout)

    def test_a_program_that_may_not_be_looked_at_runs_all_the_same(self):
        # Nothing is hidden from root.
        more = {"user": 65534} if os.geteuid() == 0 else {}
        try:
            done = ums("--trace", SUBJECT, "hidden", **more)
        except PermissionError:
            self.skipTest("another user cannot start what was built here")
        self.assertEqual((done.returncode, done.stdout), (0, "unseen\n"), done)
        self.assertEqual(len(done.stderr.splitlines()), 1, done)
        self.assertIn("may not be looked at", done.stderr)

    def test_its_children_are_its_own(self):
        for program in (SUBJECT, STATIC):
            done = ums("--trace", program, "children")
            self.assertEqual(done.returncode, 0, done)

    def test_it_has_no_descriptors_and_variables_of_the_command(self):
        script = "ls -l /proc/self/fd | wc -l; env | grep -v '^_=' | sort; cat /proc/self/limits"
        native = subprocess.run(["sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                check=True)
        self.assertEqual(ums("--trace", "sh", "-c", script).stdout, native.stdout)


class BadInput(unittest.TestCase):
    def check(self, words, code, part):
        done = ums(*words)
        self.assertEqual(done.returncode, code, done)
        self.assertEqual(len(done.stderr.splitlines()), 1, done)
        self.assertRegex(done.stderr, "^ums: ")
        self.assertIn(part, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_each_has_a_line_that_names_it(self):
        self.check([], 2, "program")
        self.check(["true"], 2, "--trace")
        self.check(["--trace"], 2, "program")
        self.check(["--trace", "--"], 2, "program")
        self.check(["--trace", "--tarce", "true"], 2, "--tarce")
        self.check(["--trace", "-o"], 2, "--output")
        self.check(["--trace", "-o", "/no/such/file", "true"], 2, "/no/such/file")
        self.check(["--trace", ""], 1, "No such file")
        self.check(["--trace", "/no/such/program"], 1, "/no/such/program: No such file")
        self.check(["--trace", "/etc/passwd"], 1, "/etc/passwd: Permission denied")

    def test_a_program_that_cannot_be_started_leaves_no_report(self):
        with tempfile.TemporaryDirectory() as folder:
            into = os.path.join(folder, "report")
            self.check(["--trace", "-o", into, "/no/such/program"], 1, "/no/such/program")
            self.assertFalse(os.path.exists(into))


if __name__ == "__main__":
    UMS, SUBJECT, STATIC = sys.argv[1:4]
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
