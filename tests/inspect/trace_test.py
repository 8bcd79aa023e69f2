#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records tests/inspect/paces.cpp, which does a known number of things, with `ums trace`.

trace_test.py UMS PACES [NAME_OF_A_TEST...]
"""

import collections
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

UMS = PACES = ""


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def fields(data):
    """The fields of a protocol buffer: their numbers and values. Raises if it is none."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length, "cut off"
        else:
            raise ValueError("wire type %d" % kind)
        yield key >> 3, value


class Trace:
    """A file in Perfetto's format, by the field numbers of its trace.proto."""

    def __init__(self, path):
        self.tracks, self.parents, self.names = {}, {}, {}
        self.events = []  # (time, track, type, name, flows, ending flows)
        with open(path, "rb") as file:
            for number, packet in fields(file.read()):
                assert number == 1
                self.packet(dict_of(packet))

    def packet(self, packet):
        if 60 in packet:
            track = dict_of(packet[60][0])
            self.tracks[track[1][0]] = track.get(2, [b""])[0].decode()
            self.parents[track[1][0]] = track.get(5, [None])[0]
        for interned in packet.get(12, []):
            for number, name in fields(interned):
                assert number == 2
                one = dict_of(name)
                self.names[one[1][0]] = one[2][0].decode()
        if 11 in packet:
            event = dict_of(packet[11][0])
            name = self.names[event[10][0]] if 10 in event else None
            self.events.append((packet[8][0], event[11][0], event[9][0], name, event.get(47, []),
                                event.get(48, [])))

    def slices(self, name):
        """How many begin on the fibers' tracks."""
        return sum(1 for _, track, kind, what, _, _ in self.events
                   if kind == 1 and what is not None and re.fullmatch(name, what) and track >= 1 << 32)

    def moments(self, name):
        return sum(1 for _, _, kind, what, _, _ in self.events if kind == 3 and re.fullmatch(name, what))


def dict_of(message):
    all_of = collections.defaultdict(list)
    for number, value in fields(message):
        all_of[number].append(value)
    return all_of


class TraceTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.environment = {**os.environ, "UMS_PROCESSORS": "2"}

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def ums(self, *words, check=True, **more):
        done = subprocess.run([UMS, *map(str, words)], capture_output=True, text=True, timeout=120, check=False,
                              env={**self.environment, **more})
        if check:
            self.assertEqual(done.returncode, 0, done)
        return done

    def start(self, **more):
        program = subprocess.Popen([PACES, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env={**self.environment, **more})
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        program.stdout.readline()
        return program

    @staticmethod
    def say(program, line):
        program.stdin.write(line + "\n")
        program.stdin.flush()

    def check_whole(self, trace, spawned):
        """All that paces does is in the trace, once."""
        names = collections.Counter(name for track, name in trace.tracks.items() if track >= 1 << 32)
        self.assertEqual(sum(names.values()), spawned)
        self.assertEqual(sum(n for name, n in names.items() if "ping-pong" in name), 4)
        self.assertEqual(trace.moments("only this"), 30)
        self.assertEqual(trace.moments("makes fiber [0-9]+"), spawned)
        self.assertEqual(trace.slices("sleep"), 20)
        self.assertEqual(trace.moments("deadline of fiber [0-9]+"), 20)
        # The first of each pair need not wait for its first permit, if it is not overtaken.
        self.assertGreaterEqual(trace.slices("semaphore 0x[0-9a-f]+"), 300)
        self.assertLessEqual(trace.slices("semaphore 0x[0-9a-f]+"), 400)
        self.check_consistent(trace)

    def check_consistent(self, trace):
        depth = collections.Counter()
        begun, ended = set(), []
        for _, track, kind, name, flows, ending in trace.events:
            self.assertIn(track, trace.tracks)
            if kind == 1:
                depth[track] += 1
                self.assertIsNotNone(name)
            elif kind == 2:
                depth[track] -= 1
            self.assertIn(depth[track], (0, 1), trace.tracks[track])
            begun.update(flows)
            ended += ending
        self.assertFalse(+depth)
        self.assertEqual(len(ended), len(set(ended)), "an arrow ends twice")
        self.assertLessEqual(set(ended), begun)
        self.assertTrue(ended)
        # What a fiber does is one thing at a time.
        last = {}
        by_time = sorted(range(len(trace.events)), key=lambda i: (trace.events[i][0], i))
        for i in by_time:
            when, track, kind, *_ = trace.events[i]
            if kind == 1:
                self.assertGreaterEqual(when, last.get(track, 0))
            if kind == 2:
                last[track] = when

    def test_a_command_is_recorded_from_begin_to_end(self):
        path = self.path("a.pftrace")
        # On one processor: on two a permit may be there before it is waited for.
        done = self.ums("trace", "-o", path, "--", PACES, UMS_PROCESSORS="1")
        spawned = int(done.stdout.split()[0])
        self.assertIn(" %d spawns, %d ends" % (spawned, spawned), done.stdout)
        self.assertIn("30 marks", done.stdout)
        self.assertEqual(done.stderr, "")
        self.check_whole(Trace(path), spawned)

    def test_the_command_keeps_its_exit_code_and_names_what_fails(self):
        done = self.ums("trace", "--", "/bin/sh", "-c", "exit 7", check=False)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done)
        self.assertIn("nothing was recorded", done.stderr)
        done = self.ums("trace", "--", "/no/such/program", check=False)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done)
        self.assertIn("No such file", done.stderr)

    def start_traced(self):
        """ums trace with a command that waits for its input, and the command's number."""
        tracer = subprocess.Popen([UMS, "trace", "-o", self.path("f"), "--", PACES, "wait"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True, env=self.environment)
        self.addCleanup(tracer.communicate)
        self.addCleanup(tracer.kill)
        tracer.stdout.readline()
        with open("/proc/%d/task/%d/children" % (tracer.pid, tracer.pid), encoding="ascii") as children:
            return tracer, int(children.read().split()[0])  # And the reader of the symbols.

    def test_the_command_can_be_stopped_and_continued(self):
        tracer, command = self.start_traced()
        os.kill(command, signal.SIGSTOP)
        state = ""
        while state not in ("t", "T"):
            with open("/proc/%d/stat" % command, encoding="ascii") as stat:
                state = stat.read().rpartition(")")[2].split()[0]
        os.kill(command, signal.SIGCONT)
        self.assertIn(" marks", tracer.communicate("", timeout=60)[0])
        self.assertEqual(tracer.returncode, 0)

    def test_a_signal_to_the_tracer_ends_the_command(self):
        tracer, command = self.start_traced()
        tracer.terminate()
        self.assertEqual(tracer.wait(timeout=60), 128 + signal.SIGTERM)
        self.assertFalse(os.path.exists("/proc/%d" % command))

    def test_google_s_own_messages_accept_the_file(self):
        try:
            from google.protobuf.unknown_fields import UnknownFieldSet
            from perfetto.protos.perfetto.trace import perfetto_trace_pb2
        except ImportError:
            self.skipTest("no python package perfetto")
        path = self.path("a.pftrace")
        self.ums("trace", "-o", path, "--", PACES)
        trace = perfetto_trace_pb2.Trace()
        with open(path, "rb") as file:
            trace.ParseFromString(file.read())
        self.assertGreater(len(trace.packet), 1000)
        for packet in trace.packet:
            for message in (packet, packet.track_event, packet.track_descriptor):
                self.assertEqual(len(UnknownFieldSet(message)), 0, packet)
            self.assertTrue(packet.HasField("track_event") or packet.HasField("track_descriptor"))

    def test_a_running_process_is_recorded_and_left_as_it_was(self):
        program = self.start()
        path = self.path("b.pftrace")
        tracer = subprocess.Popen([UMS, "trace", "-o", path, str(program.pid)], stdout=subprocess.PIPE, text=True)
        # Recording begins when its word is set; the flight recorder says when.
        while self.ums("trace", "--last", 1, "-o", self.path("c"), program.pid, check=False).returncode != 0:
            pass
        # A processor sees the switch when its round ends: the first time not everything is
        # recorded, the second time everything is.
        for _ in range(2):
            self.say(program, "again")
            program.stdout.readline()
        tracer.terminate()
        said = tracer.communicate(timeout=60)[0]
        self.assertIn(" marks", said)
        trace = Trace(path)
        self.assertIn(trace.moments("only this"), range(30, 61))
        self.assertIn(trace.slices("sleep"), range(20, 41))
        self.check_consistent(trace)
        # Off again: nothing to be had.
        done = self.ums("trace", "--last", 1, "-o", path, program.pid, check=False)
        self.assertIn("nothing is being recorded", done.stderr)

    def test_the_flight_recorder_gives_the_last_seconds(self):
        program = self.start()
        self.ums("trace", "--on", program.pid)
        for _ in range(2):
            self.say(program, "again")
            program.stdout.readline()
        path = self.path("d.pftrace")
        self.assertIn(" marks", self.ums("trace", "--last", 60, "-o", path, program.pid).stdout)
        self.assertIn(Trace(path).moments("only this"), range(30, 61))
        # What comes later is not in the last moments.
        self.ums("trace", "--last", 0.000001, "-o", path, program.pid)
        self.assertEqual(Trace(path).moments("only this"), 0)
        self.ums("trace", "--off", program.pid)

    def test_a_small_ring_loses_the_oldest_and_says_so(self):
        path = self.path("e.pftrace")
        program = self.start(UMS_TRACE="64K:on")
        for _ in range(5):
            self.say(program, "again")
            program.stdout.readline()
        self.ums("trace", "--last", 60, "-o", path, program.pid)
        self.check_consistent(Trace(path))
        self.assertLessEqual(len([e for e in Trace(path).events if e[2] == 3]), 3 * 2048)

    def test_chrome_s_json_says_the_same(self):
        path = self.path("a.json")
        self.ums("trace", "--chrome", "-o", path, "--", PACES)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)
        self.assertEqual(sum(e["name"] == "only this" for e in events), 30)
        self.assertEqual(sum(e["name"] == "sleep" and e["ph"] == "X" for e in events), 20)
        ends = {e["id"] for e in events if e["ph"] == "f"}
        self.assertTrue(ends)
        self.assertLessEqual(ends, {e["id"] for e in events if e["ph"] == "s"})

    def test_the_summary_adds_up_by_start_function(self):
        path = self.path("a.pftrace")
        self.ums("trace", "-o", path, "--", PACES)
        summary = json.loads(self.ums("trace", "summary", "--json", path).stdout)
        starts = {s["start"]: s for s in summary["starts"]}
        self.assertEqual(sum(s["fibers"] for s in starts.values()), 55)
        pairs = [s for s in starts.values() if "semaphore" in s["waits_ns"]]
        self.assertEqual([s["fibers"] for s in pairs], [4])
        sleepers = [s for s in starts.values() if "sleep" in s["waits_ns"]]
        self.assertGreaterEqual(sum(s["waits_ns"]["sleep"] for s in sleepers), 20 * 2_000_000)
        self.assertGreaterEqual(summary["wake_to_run"]["count"], 55)
        self.assertLessEqual(summary["wake_to_run"]["median_ns"], summary["wake_to_run"]["most_ns"])
        text = self.ums("trace", "summary", path).stdout
        self.assertIn("from wake to run", text)
        self.assertIn("semaphore: ", text)

    def test_a_crash_leaves_a_dump(self):
        dump = self.path("crash.umstrace")
        program = self.start(UMS_TRACE=dump)
        self.say(program, "crash")
        program.wait(timeout=60)
        self.assertLess(program.returncode, 0)
        self.assertIn("ums: the trace is in the file that UMS_TRACE names\n", program.stderr.read())
        path = self.path("crash.pftrace")
        done = self.ums("trace", "-o", path, dump)
        self.assertIn("30 marks", done.stdout)
        trace = Trace(path)
        self.check_consistent(trace)
        self.assertTrue(any("the wrong one" in name for name in trace.tracks.values()))
        self.assertIn("do_all", self.ums("trace", "summary", dump).stdout)
        with open(dump, "rb") as file:
            data = file.read()
        for length in (0, 7, 40, 100, 5_000, len(data) // 2):
            with open(dump, "wb") as file:
                file.write(data[:length])
            done = self.ums("trace", "-o", path, dump, check=False)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), (length, done))

    def test_a_dump_that_cannot_be_written_is_said_to_be_missing(self):
        dump = self.path("no/such/folder/crash.umstrace")
        program = self.start(UMS_TRACE=dump)
        self.say(program, "crash")
        program.wait(timeout=60)
        self.assertIn(f"ums: the trace could not be written to {dump}: No such file or directory\n",
                      program.stderr.read())


if __name__ == "__main__":
    UMS, PACES = (os.path.abspath(path) for path in sys.argv[1:3])
    unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[3:]])
