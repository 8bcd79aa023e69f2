#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Looks at processes and core files with `ums ps`.

ps_test.py UMS CROWD CROWD_SHARED CROWD_STATIC [NAME_OF_A_TEST...]
"""

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True  # Nothing is left in the source tree.
import crowd as programs
from crowd import Crowd, container, core_of, environment, ums


HERE = os.path.dirname(os.path.abspath(__file__))


class PsTest(unittest.TestCase):
    maxDiff = None

    def check_all(self, picture, fibers):
        """Every fiber's line is what its name says."""
        self.assertEqual(len(picture["fibers"]), fibers)
        by_name = {one["name"]: one for one in picture["fibers"]}
        holder = by_name["holder-0"]
        self.assertEqual(holder["waits"]["kind"], "park")
        self.assertEqual(by_name["main"]["state"], "blocked")
        self.assertIn("read() in the kernel", by_name["main"]["waits"]["text"])
        objects = {}
        for one in picture["fibers"]:
            kind, _, number = one["name"].partition("-")
            if kind in ("holder", "main"):
                continue
            self.assertEqual(one["state"], "parked", one)
            self.assertEqual(one["waits"]["kind"], kind, one)
            self.assertEqual(one["spawned_by"], by_name["main"]["id"])
            self.assertGreater(one["stack_used"], 100)
            self.assertLess(one["stack_used"], one["stack_bytes"])
            if kind == "mutex":
                self.assertEqual(one["waits"]["by"], holder["id"])
                self.assertIn('held by fiber %d "holder-0"' % holder["id"], one["waits"]["text"])
            elif kind == "join":
                self.assertEqual(one["waits"]["by"], by_name["park-" + number]["id"])
            elif kind == "latch":
                self.assertIn("count 3", one["waits"]["text"])
            elif kind == "send":
                self.assertIn("1 of 1 full", one["waits"]["text"])
            objects.setdefault(kind, set()).add(one["waits"].get("object", one["waits"].get("number")))
        for kind in ("mutex", "semaphore", "receive", "send", "condition", "latch", "read"):
            self.assertEqual(len(objects[kind]), 1, kind)

    def check_line(self, done, words, code=1):
        self.assertEqual(done.returncode, code, done)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(words, done.stderr)

    def test_knows_what_every_fiber_waits_for(self):
        with Crowd(100) as crowd:
            crowd.settle()
            picture = json.loads(ums("ps", crowd.pid, "--json").stdout)
            self.check_all(picture, crowd.fibers)
            left = [f["waits"]["left_ns"] for f in picture["fibers"] if f["name"].startswith("sleep")]
            self.assertTrue(all(3_000e9 < ns < 3_600e9 for ns in left), left)
            pipe = [f["waits"]["text"] for f in picture["fibers"] if f["name"] == "read-0"]
            self.assertIn("to become readable (pipe)", pipe[0])
            self.assertEqual(picture["engine"], "epoll")
            self.assertEqual([len(c["processors"]) for c in picture["clusters"]], [2])

    def test_stop_shows_the_same(self):
        with Crowd(20) as crowd:
            crowd.settle()
            done = ums("ps", crowd.pid, "--json", "--stop")
            self.check_all(json.loads(done.stdout), crowd.fibers)
            self.assertRegex(done.stderr, rf"\Aprocess {crowd.pid} stood still for \d+\.\d ms\n\Z")
            # And it goes on: it still obeys.
            crowd.tell("end")
            self.assertEqual(crowd.process.returncode, 0)

    def test_a_stopped_process_goes_on_before_the_list_is_written(self):
        with Crowd(100) as crowd:
            for what in ("ps", "stack"):
                # The list is longer than the pipe, so the command waits for its reader.
                words = [programs.UMS, what, str(crowd.settle().pid), "--stop"] + ["--each"] * (what == "stack")
                with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tool:
                    self.assertEqual(len(tool.stdout.read(1)), 1)
                    folder = f"/proc/{crowd.pid}/task"
                    for tid in os.listdir(folder):
                        with open(f"{folder}/{tid}/status", encoding="utf-8") as file:
                            self.assertIn("TracerPid:\t0\n", file.read())
                    self.assertIn(b"stood still for", tool.communicate()[1])

    def test_prints_lines_and_counts(self):
        with Crowd(2) as crowd:
            crowd.settle()
            done = ums("ps", crowd.pid)
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = done.stdout.splitlines()
            version = ums("--version").stdout.split()[1]
            self.assertIn(f"process {crowd.pid} (crowd): libums {version}, {crowd.fibers} fibers", lines[0])
            self.assertEqual(lines[1], f"states: {crowd.fibers - 1} parked, 1 blocked")
            mutex = [line for line in lines if " mutex-1 " in line]
            self.assertEqual(len(mutex), 1, done.stdout)
            self.assertRegex(mutex[0], r'mutex 0x[0-9a-f]+, held by fiber \d+ "holder-0"')
            counts = ums("ps", crowd.pid, "--counts").stdout.splitlines()
            self.assertEqual(counts, lines[:len(counts)])

    def test_running_and_stopped_fibers_and_policies(self):
        with Crowd("states") as crowd:
            while True:  # Until a picture shows them in the states that last longest.
                picture = json.loads(ums("ps", crowd.pid, "--json").stdout)
                by_name = {one["name"]: one for one in picture["fibers"]}
                computing = sorted(by_name[f"compute-{i}"]["state"] for i in range(2))
                self.assertLessEqual(set(computing), {"ready", "running", "stopped", "blocked"})
                waiting = [by_name[f"receive-{i}"] for i in range(2)]
                if computing == ["running", "stopped"] and all(f["state"] == "parked" for f in waiting):
                    break
            for one in waiting:
                self.assertEqual((one["cluster"], one["waits"]["kind"]), ("own", "receive"))
            policies = {c["name"]: c["policy"] for c in picture["clusters"]}
            self.assertEqual(policies, {"main": False, "own": True})

    def test_workers_of_the_ums_api(self):
        program = os.path.join(os.path.dirname(programs.CROWD), "workers")
        try:
            crowd = Crowd(0, program)
        except IndexError:
            self.skipTest("no workers here")  # It has said why.
        with crowd:
            while True:  # The last one may be on its way home.
                workers = json.loads(ums("ps", crowd.pid, "--json").stdout)["workers"]
                states = sorted(w["state"] for w in workers)
                if [w for w in workers if w["state"] == "blocked" and "read() in" in w["waits"]]:
                    break
            self.assertEqual(states, ["blocked", "dequeued", "scheduler"])
            ids = {w["state"]: w["context"] for w in workers}
            self.assertEqual({w["partner"] for w in workers if w["state"] != "scheduler"},
                             {ids["scheduler"]})
            lines = ums("ps", crowd.pid).stdout.splitlines()
            self.assertEqual(sum(" read() in the kernel" in line for line in lines), 2, lines)
            stacks = ums("stack", crowd.pid).stdout
            self.assertRegex(stacks, r"1 worker of the UMS API: dequeued: 0x[0-9a-f]+\n(    .*\n)*    yielding")
            self.assertRegex(stacks, r"worker of the UMS API: blocked, read\(\) in the kernel: .*\n"
                                     r"(    .*\n)*    announcing")

    def test_times_while_a_trace_is_recorded(self):
        """Since when, and how long on a processor. The bounds hold however slow the machine is."""
        def look(crowd, *words):
            begin = time.monotonic_ns()
            picture = json.loads(ums("ps", crowd.pid, "--json", *words).stdout)
            return begin, picture, {f["name"]: f for f in picture["fibers"]}, time.monotonic_ns()

        born = time.monotonic_ns()
        with environment(UMS_TRACE="on"), Crowd("states") as crowd:
            first = second = third = None
            while first is None or first[2]["main"]["since_ns"] is None or any(
                    first[2][f"receive-{i}"]["state"] != "parked" for i in range(2)):
                first = look(crowd)
            # Stopped, a process may stand between a record and the change of state that it tells.
            while second is None or None in {f["since_ns"] for f in second[2].values()}:
                second = look(crowd, "--stop")
            computing = ("compute-0", "compute-1")
            while third is None or any(third[2][name]["cpu_ns"] <= second[2][name]["cpu_ns"]
                                       for name in computing):
                third = look(crowd)
            for _, picture, fibers, end in (first, second, third):
                recorded = picture["recorded_ns"]
                self.assertLessEqual(recorded, end - born)
                for f in fibers.values():
                    if f["since_ns"] is not None:
                        self.assertTrue(0 <= f["since_ns"] <= end - born, f)
                # These share one processor.
                self.assertLessEqual(sum(fibers[name]["cpu_ns"] for name in ("main", *computing)), recorded)
                for name in ("main", "receive-0", "receive-1"):
                    self.assertGreater(fibers[name]["cpu_ns"], 0)
                    self.assertLessEqual(fibers[name]["cpu_ns"] + fibers[name]["since_ns"], recorded, name)
                # The first to come to the one processor of their cluster has waited longer.
                self.assertGreater(fibers["receive-0"]["since_ns"], fibers["receive-1"]["since_ns"])
            for one, other in ((first, second), (second, third)):
                for name in ("main", "receive-0", "receive-1"):
                    passed = other[2][name]["since_ns"] - one[2][name]["since_ns"]
                    self.assertTrue(other[0] - one[3] <= passed <= other[3] - one[0], name)
            for key in ("since", "cpu"):
                listed = [f[key + "_ns"] for f in look(crowd, "--sort", key)[1]["fibers"]]
                listed = [-1 if ns is None else ns for ns in listed]
                self.assertEqual(listed, sorted(listed, reverse=True))
            lines = ums("ps", crowd.pid).stdout.splitlines()
            self.assertRegex(next(line for line in lines if line.startswith("      ID")),
                             "STACK +SINCE +CPU  CLUSTER")
            self.assertRegex(next(line for line in lines if " receive-0 " in line),
                             r"parked +- +\d+ +[\d.]+ \w+ +[\d.]+ \w+  own ")
            self.assertTrue([line for line in lines if line.startswith("recorded: ")], lines)

    def test_times_that_the_rings_do_not_reach(self):
        """Nothing is said that rests on records before one that is missing."""
        def look(crowd):
            self.assertEqual(crowd.ask("yield 100000"), "done\n")
            crowd.settle()
            return json.loads(ums("ps", crowd.pid, "--json", "--stop").stdout)["fibers"]

        # A second processor has a ring of its own, and what it ran last would still be there.
        with environment(UMS_TRACE="64K:on"), Crowd(3, words=["alone"]) as crowd:
            while True:  # The hand-off may come later, as may a processor's first record.
                fibers = look(crowd)
                if fibers[0]["since_ns"] is not None:
                    break
            self.assertEqual(fibers[0]["name"], "main")
            self.assertGreater(fibers[0]["cpu_ns"], 0)
            for f in fibers[1:]:  # They parked before all that is left in the rings.
                self.assertEqual((f["since_ns"], f["cpu_ns"]), (None, None), f)
            line = next(line for line in ums("ps", crowd.pid).stdout.splitlines() if " mutex-1 " in line)
            self.assertRegex(line, r"parked +- +\d+ +- +-  main ")

    def test_times_do_not_reach_over_a_gap(self):
        """What the rings still hold of a fiber is of no use after it has moved unseen."""
        # With two processors the ring of one that has run nothing since may tell of an earlier
        # time: known, not mended.
        for words in ([], ["ticker"]):  # Without a ticker no processor begins to record again.
            with environment(UMS_TRACE="on", UMS_PROCESSORS="1"), Crowd(1, words=words) as crowd:
                main = None
                while main is None or main["since_ns"] is None:
                    crowd.ask("late")
                    main = json.loads(ums("ps", crowd.pid, "--json").stdout)["fibers"][0]
                ums("trace", "--off", crowd.pid)
                begin = time.monotonic_ns()
                for _ in range(3):
                    crowd.ask("late")
                    crowd.ask("yield 1000")
                ums("trace", "--on", crowd.pid)
                for _ in range(10):
                    main = json.loads(ums("ps", crowd.pid, "--json").stdout)["fibers"][0]
                    self.assertEqual(main["name"], "main")
                    self.assertLessEqual(main["since_ns"] or 0, time.monotonic_ns() - begin)

    def test_no_times_where_nothing_is_recorded(self):
        with Crowd(1) as crowd:
            crowd.settle()
            picture = json.loads(ums("ps", crowd.pid, "--json").stdout)
            self.assertNotIn("recorded_ns", picture)
            self.assertNotIn("since_ns", picture["fibers"][0])
            self.assertNotIn("SINCE", ums("ps", crowd.pid).stdout)
            self.check_line(ums("ps", crowd.pid, "--sort", "since"), "ums trace --on PID")
            self.assertIn("ums trace --on", ums("ps", "--help").stdout)
            ums("trace", "--on", crowd.pid)
            # They all stay as they are, and when that began is not recorded.
            picture = json.loads(ums("ps", crowd.pid, "--json", "--sort", "cpu").stdout)
            self.assertEqual({f["since_ns"] for f in picture["fibers"]}, {None})
            self.assertIn(" SINCE ", ums("ps", crowd.pid).stdout)
            cpu = None
            while cpu is None:  # A processor may begin to record when all is over.
                self.assertEqual(crowd.ask("yield 1000"), "done\n")
                crowd.settle()
                cpu = json.loads(ums("ps", crowd.pid, "--json").stdout)["fibers"][0]["cpu_ns"]
            self.assertGreater(cpu, 0)

    def test_filters_and_sorts(self):
        with Crowd(4) as crowd:
            crowd.settle()

            def names(*words):
                return [f["name"] for f in json.loads(ums("ps", crowd.pid, "--json", *words).stdout)["fibers"]]

            self.assertEqual(sorted(names("--waits", "mutex,join")),
                             sorted(f"{k}-{i}" for k in ("mutex", "join") for i in range(4)))
            self.assertEqual(names("--state", "blocked"), ["main"])
            self.assertEqual(names("--match", "^sleep-[12]$", "--sort", "name"), ["sleep-1", "sleep-2"])
            self.assertEqual(names("--sort", "deadline", "--top", "4", "--waits", "sleep"),
                             [f"sleep-{i}" for i in range(4)])
            self.assertEqual(names("--cluster", "none"), [])
            used = [f["stack_used"] for f in json.loads(
                ums("ps", crowd.pid, "--json", "--sort", "stack", "--state", "parked").stdout)["fibers"]]
            self.assertEqual(used, sorted(used, reverse=True))
            self.check_line(ums("ps", crowd.pid, "--state", "asleep"), "'asleep' is none of", 2)
            self.check_line(ums("ps", crowd.pid, "--sort", "size"), "'size' is none of", 2)
            self.check_line(ums("ps", crowd.pid, "--match", "("), "no regular expression", 2)

    def test_shared_static_and_stripped_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            for program in (programs.SHARED, programs.STATIC):
                stripped = os.path.join(folder, "stripped")
                shutil.copy(program, stripped)
                subprocess.run(["strip", "--strip-all", stripped], check=True)
                for one in (program, stripped):
                    with Crowd(5, one) as crowd:
                        crowd.settle()
                        self.check_all(json.loads(ums("ps", crowd.pid, "--json").stdout), crowd.fibers)

    def test_names_the_start_function(self):
        with Crowd(1) as crowd:
            crowd.settle()
            done = ums("ps", crowd.pid, "--match", "main::.*lambda")
            self.assertRegex(done.stdout.splitlines()[-1], r" crowd\.cpp:\d+$")
            self.assertEqual(ums("ps", crowd.pid, "--match", r"crowd\.cpp:\d+").stdout.splitlines()[-1],
                             done.stdout.splitlines()[-1])

    def test_names_the_line_of_a_lambda(self):
        for what in (1, "names", "deadlock"):
            with Crowd(what) as crowd:
                for fiber in json.loads(ums("ps", crowd.pid, "--json").stdout)["fibers"]:
                    if "lambda" not in fiber["start"]:
                        continue
                    file, line = fiber["start_at"].rsplit(":", 1)
                    with open(os.path.join(HERE, os.path.basename(file)), encoding="utf-8") as source:
                        text = source.read().splitlines()[int(line) - 1]
                    self.assertRegex(text, r"\[[\w&, ]*\] \{", fiber)

    def test_names_a_plain_function(self):
        with Crowd("functions") as crowd:
            crowd.settle()
            fibers = json.loads(ums("ps", crowd.pid, "--json").stdout)["fibers"]
            starts = {f["name"]: f["start"].removeprefix("(anonymous namespace)::") for f in fibers}
            # Two functions, in the standard library's order: the type is all that is certain.
            self.assertEqual(starts.pop("either"), "void (*)(void (*)())")
            self.assertEqual(starts, {"main": "functions", "plain": "park_plainly", "given": "park_and_call",
                                      "value": "park_for_a_value", "child": "park_as_a_child", "c": "park_in_c",
                                      "thread": "park_as_a_thread"})
            self.assertFalse(any("start_at" in f for f in fibers), fibers)
            for name, start in starts.items():
                lines = ums("ps", crowd.pid, "--match", start).stdout.splitlines()
                self.assertRegex(lines[-1], rf" {name} .* {start}$")
            groups = json.loads(ums("top", crowd.pid, "--json", "-n", "1", "--interval", "0.1").stdout)["starts"]
            self.assertEqual({g["start"].removeprefix("(anonymous namespace)::"): g["fibers"] for g in groups},
                             {start: 1 for start in starts.values()} | {"void (*)(void (*)())": 1})

    def test_names_the_function_that_run_was_given(self):
        with Crowd(1) as crowd:
            crowd.settle()
            listed = json.loads(ums("ps", crowd.pid, "--json").stdout)["fibers"]
            main = next(f for f in listed if f["name"] == "main")
            self.assertRegex(main["start"], r"^main::\{lambda\(\)#\d+\}$")

    def test_names_a_function_given_by_reference_like_the_function(self):
        with Crowd("states") as crowd:
            listed = json.loads(ums("ps", crowd.pid, "--json").stdout)["fibers"]
            starts = {f["name"]: f["start"] for f in listed}
            self.assertRegex(starts["receive-0"], r"states\(\)::\{lambda\(\)#\d+\}$")
            self.assertEqual(starts["receive-1"], starts["receive-0"])

    def test_says_in_one_line_why_not(self):
        self.check_line(ums("ps", "999999999"), "there is no process")
        self.check_line(ums("ps", "0"), "there is no process 0")
        self.check_line(ums("trace", "99999999999"), "there is no process 99999999999")
        self.check_line(ums("trace", os.getpid(), "--for", "-1"), "--for", 2)
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "pipe")
            os.mkfifo(pipe)
            self.check_line(ums("ps", pipe), "not a core file")
        self.check_line(ums("ps", "/no/such/core"), "No such file")
        self.check_line(ums("ps", "/proc/self/exe"), "not a core file")
        self.check_line(ums("ps", __file__), "not a core file")
        self.check_line(ums("ps", os.getpid()), "there is no libums in it")
        self.check_line(ums("ps"), "target", 2)
        ended = subprocess.Popen(["true"])
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        self.check_line(ums("ps", ended.pid), "has ended")
        ended.wait()

    def test_another_users_process(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        with Crowd(1) as crowd, tempfile.TemporaryDirectory() as folder:
            mine = os.path.join(folder, "ums")
            shutil.copy(programs.UMS, mine)
            os.chmod(folder, 0o755)
            done = subprocess.run([mine, "ps", str(crowd.pid)], capture_output=True, text=True, check=False,
                                  user=65534, group=65534, extra_groups=[])
            self.check_line(done, "may not be looked at")

    def test_a_process_that_ends_meanwhile(self):
        for _ in range(20):
            with Crowd(200) as crowd:
                tool = subprocess.Popen([programs.UMS, "ps", str(crowd.pid)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
                crowd.process.kill()
                out, error = tool.communicate()
                self.assertIn(tool.returncode, (0, 1), error)
                if tool.returncode == 1:
                    self.assertEqual(len(error.splitlines()), 1, error)
                else:
                    self.assertIn("fibers", out)

    def test_another_version(self):
        with tempfile.TemporaryDirectory() as folder:
            other = os.path.join(folder, "other")
            with open(programs.CROWD, "rb") as file:
                image = file.read()
            at = image.index(b"umsroot\0") + 8
            while image[at:at + 4] != b"\x02\0\0\0":  # The tool's own text may be there, too.
                at = image.index(b"umsroot\0", at) + 8
            with open(other, "wb") as file:
                file.write(image[:at] + b"\x63\0\0\0" + image[at + 4:])
            os.chmod(other, 0o755)
            with Crowd(1, other) as crowd:
                self.check_line(ums("ps", crowd.pid), "has layout 99")

    def test_names_cannot_drive_the_terminal(self):
        raw = ["bell\a\x1b[31mred\nsecond line\t", "\ufffd\ufffd half \ufffd", "\u00fc \u65e5\u672c",
               "\x9b31m\u202e"]
        shown = [r"bell\x07\x1b[31mred\x0asecond line\x09", r"\xff\xfe half \xe6\x97", "\u00fc \u65e5\u672c",
                 r"\xc2\x9b31m\xe2\x80\xae"]
        with Crowd("names") as crowd:
            crowd.settle()
            listed = json.loads(ums("ps", crowd.pid, "--json").stdout)["fibers"]
            self.assertEqual([f["name"] for f in listed][-4:], raw)  # JSON has ways of its own.
            for words in (["ps"], ["stack", "--each"], ["top", "--batch", "-n", "1", "--interval", "0.1"]):
                out = ums(words[0], crowd.pid, *words[1:]).stdout
                self.assertNotRegex(out, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", words)
                for name in shown if words[0] != "top" else ():
                    self.assertEqual(out.count(name), 1, (words, name, out))
            lines = ums("ps", crowd.pid).stdout.splitlines()
            self.assertEqual(len(lines) - [line[:8] for line in lines].index("      ID"), 1 + crowd.fibers, lines)

    def test_names_the_function_of_a_scopes_child(self):
        with Crowd("names") as crowd:
            crowd.settle()
            listed = json.loads(ums("ps", crowd.pid, "--json").stdout)["fibers"]
            child = next(f for f in listed if f["name"] == "child")
            self.assertRegex(child["start"], r"names\(\)::\{lambda\(\)#1\}$")
            self.assertNotIn("scope", child["start"])

    def test_names_a_fiber_that_keeps_much_for_its_joiner(self):
        with Crowd("names") as crowd:
            crowd.settle()
            listed = json.loads(ums("ps", crowd.pid, "--json").stdout)["fibers"]
            self.assertIn("k" * 250, [f["name"] for f in listed])

    def test_a_container(self):
        """A process whose threads have other numbers there: what runs and blocks is found all the same."""
        if (under := container()) is None:
            self.skipTest("no new PID namespace can be made here")
        with Crowd(3, under=under) as crowd:
            for words in ([], ["--stop"]):
                crowd.settle()
                picture = json.loads(ums("ps", crowd.pid, "--json", *words).stdout)
                self.check_all(picture, crowd.fibers)
                main = next(f for f in picture["fibers"] if f["name"] == "main")
                self.assertIn(str(main["tid"]), os.listdir(f"/proc/{crowd.pid}/task"))
            done = ums("stack", crowd.pid, "1")
            self.assertIn('fiber 1 "main": blocked, read() in the kernel', done.stdout)
            self.assertIn("obey", done.stdout)
        with Crowd("work", under=under) as crowd:
            self.assertIn("compute", ums("stack", crowd.pid, "--match", "^compute-0$").stdout)
            done = ums("profile", crowd.pid, "--kind", "on", "--seconds", "0.5")
            self.assertIn("[fiber work()", done.stdout, done.stderr)

    def test_processes_that_come_and_go(self):
        """Fibers that run all the time: every picture holds together."""
        with Crowd(1) as crowd:
            for _ in range(20):
                picture = json.loads(ums("ps", crowd.pid, "--json").stdout)
                self.assertEqual(len(picture["fibers"]), crowd.fibers)

    def test_a_core_file(self):
        with tempfile.TemporaryDirectory() as folder:
            core = core_of(20, folder)
            if core is None:
                self.skipTest("core files go elsewhere here")
            picture = json.loads(ums("ps", core, "--json").stdout)
            by_name = {one["name"]: one for one in picture["fibers"]}
            main = by_name["main"]
            self.assertEqual(main["state"], "running")  # In abort().
            main["state"], main["waits"] = "blocked", {"text": "read() in the kernel"}
            self.check_all(picture, 202)
            self.check_broken_cores(core, folder)
            self.check_cut_cores(core, folder)

    def check_cut_cores(self, core, folder):
        """Where only the last bytes are missing, most can still be shown: then it says so."""
        size = os.path.getsize(core)
        cut = os.path.join(folder, "cut")
        shutil.copy(core, cut)
        for left in (size - 1, size * 99 // 100, size * 3 // 4, size // 2, size // 10, 4096):
            os.truncate(cut, left)
            for words in (["ps"], ["ps", "--json"], ["stack"], ["stack", "--locks"]):
                done = ums(words[0], cut, *words[1:])
                self.assertIn("cut off", done.stdout + done.stderr, (left, words))
                self.assertLessEqual(len(done.stderr.splitlines()), 1, (left, words))

    def test_a_core_file_of_a_program_that_has_changed_since(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "crowd")
            shutil.copy(programs.CROWD, program)
            core = core_of(1, folder, program)
            if core is None:
                self.skipTest("core files go elsewhere here")
            self.assertNotIn("build id", ums("ps", core).stdout)
            with open(program, "rb") as file:
                image = file.read()
            # The note of the build id.
            at = image.index(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0") + 16
            with open(program, "wb") as file:
                file.write(image[:at] + bytes(20) + image[at + 20:])
            done = ums("ps", core)
            self.assertIn("is not the file that this process ran", done.stdout + done.stderr)
            self.assertLessEqual(len(done.stderr.splitlines()), 1)
            self.assertNotIn("main::{lambda", done.stdout)  # A name from there would be a guess.

    def check_broken_cores(self, core, folder):
        """Cut off, or with bytes changed: an answer or one line, never a crash."""
        with open(core, "rb") as file:
            image = file.read()
        broken = os.path.join(folder, "broken")
        seed = int(os.environ.get("UMS_TEST_SEED", "1"))
        rng = random.Random(seed)
        for turn in range(120):
            if turn % 3 == 0:
                changed = image[:rng.randrange(len(image))] if turn else image[:5000]
            else:
                changed = bytearray(image)
                # The headers and notes matter most.
                reach = rng.choice([64, 4096, 1 << 16, len(image)])
                for _ in range(rng.choice([1, 8, 200])):
                    changed[rng.randrange(min(reach, len(image)))] = rng.randrange(256)
            with open(broken, "wb") as file:
                file.write(changed)
            done = ums("ps", broken)
            self.assertIn(done.returncode, (0, 1), f"seed {seed} turn {turn}: {done.stderr}")
            if done.returncode == 1:
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


class LargeTest(unittest.TestCase):
    """100,000 fibers, by hand: ps_test.py .. LargeTest. Prints what it takes; tests nothing by the clock."""

    def test_large(self):
        with Crowd(10_000) as crowd:
            crowd.settle()
            begin = time.monotonic()
            out = ums("ps", crowd.pid).stdout
            took = time.monotonic() - begin
            self.assertGreater(len(out.splitlines()), 100_000)
            print(f"ums ps of {crowd.fibers} fibers: {took:.2f} s", file=sys.stderr)
            PsTest.check_all(self, json.loads(ums("ps", crowd.pid, "--json").stdout), crowd.fibers)

    def test_lateness(self):
        """A fiber that wakes up each millisecond, by turns: while nobody looks, beside a neighbour that
        computes and has nothing to do with it, and while others look."""
        rounds = 12
        late = {what: [] for what in ("nobody looks", "a neighbour computes", "ums ps", "ums stack")}
        took = {what: [] for what in late}
        with Crowd(10_000, words=["ticker"]) as crowd:
            for _ in range(rounds):
                for what in late:
                    crowd.ask("late")
                    begin = time.monotonic()
                    if what.startswith("ums"):
                        # As from another terminal: each session has a share of its own.
                        # Reading megabytes of output would keep the other CPU busy.
                        subprocess.run([programs.UMS, what.split()[1], str(crowd.pid)], check=True,
                                       stdout=subprocess.DEVNULL, start_new_session=True)
                    elif what == "nobody looks":
                        time.sleep(0.5)
                    else:
                        subprocess.run(["timeout", "0.5", "sh", "-c", "while :; do :; done"], check=False,
                                       start_new_session=True)
                    took[what].append(time.monotonic() - begin)
                    late[what].append(int(crowd.ask("late")) / 1e6)
        for what, ms in late.items():
            print(f"{what:22} {statistics.median(took[what]):.2f} s; the latest wake-up in it: median "
                  f"{statistics.median(ms):.2f} ms, worst {max(ms):.2f} ms; over 1 ms in "
                  f"{sum(one > 1 for one in ms)} of {rounds}", file=sys.stderr)


if __name__ == "__main__":
    names = programs.take_arguments(sys.argv)
    unittest.main(verbosity=2, argv=[sys.argv[0], *(names or ["PsTest"])])
