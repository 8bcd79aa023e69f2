#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records the HTTP server under load, and holds what the trace counts to the server's statistics.

trace_counts_test.py UMS HTTP_SERVER [NAME_OF_A_TEST...]

The statistics are asked for when all connections but one have ended: before and after a recording
begins, and before and after it ends. What a trace counts lies between what the statistics count from
the inner two and from the outer two, and mostly these are the same.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from trace_test import Trace

UMS = SERVER = ""
CONNECTIONS, BATCHES, BATCH = 40, 10, 50
REQUEST = b"GET /plaintext HTTP/1.1\r\nHost: a\r\n\r\n"

# What `ums trace` prints, and the statistics that count the same.
SAME = {"spawns": "ums_fibers_spawned_total", "ends": "ums_fibers_finished_total", "steals": "ums_steals_total",
        "hand-offs": "ums_hand_offs_total", "stops": "ums_preemptions_total"}


class Connection:
    def __init__(self, at):
        host, _, port = at.rpartition(":")
        self.socket = socket.create_connection((host, int(port)))
        self.file = self.socket.makefile("rb")

    def send(self, request, count=1):
        self.socket.sendall(request * count)

    def answer(self):
        length = 0
        while (line := self.file.readline()) != b"\r\n":
            assert line, "the server has closed the connection"
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return self.file.read(length)

    def close(self):
        self.file.close()
        self.socket.close()


class TraceCountsTest(unittest.TestCase):
    def start(self, **more):
        server = subprocess.Popen([SERVER, "--listen=127.0.0.1:0", "--metrics", "--processors=2"],
                                  stdout=subprocess.PIPE, text=True, env={**os.environ, **more})
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        self.at = server.stdout.readline().split()[-1]
        self.one = Connection(self.at)
        self.addCleanup(self.one.close)
        self.statistics()  # Now there is no other connection.
        return server

    def statistics(self):
        """By name; of the moment when no connection but this one is left."""
        while True:
            self.one.send(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
            values = {name: float(value) for name, value in
                      re.findall(r"^(ums_\w+) (\S+)$", self.one.answer().decode(), re.MULTILINE)}
            self.alone = getattr(self, "alone", values["ums_fibers"])
            if values["ums_fibers"] == self.alone:
                return values

    def load(self):
        def ask():
            connection = Connection(self.at)
            for _ in range(BATCHES):
                connection.send(REQUEST, BATCH)
                for _ in range(BATCH):
                    assert connection.answer() == b"Hello, World!"
            connection.close()
        threads = [threading.Thread(target=ask) for _ in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def check(self, line, path, began, ended):
        """began, ended: the statistics before and after that."""
        counts = {word: int(n) for n, word in re.findall(r"(\d+) ([a-z-]+)", line)}
        for name, statistics in SAME.items():
            self.assertGreaterEqual(counts[name], ended[0][statistics] - began[1].get(statistics, 0), name)
            self.assertLessEqual(counts[name], ended[1][statistics] - began[0].get(statistics, 0), name)
        self.assertGreaterEqual(counts["spawns"], CONNECTIONS)
        self.assertGreaterEqual(counts["ends"], CONNECTIONS)
        # Whatever waited was woken, or waits still: the fibers that were there before, and joiners
        # that go on right after the fiber they wait for.
        wakes = counts["wake-ups"] + counts["deadlines"] + counts["events"]
        self.assertLessEqual(abs(counts["waits"] - wakes), self.alone + counts["ends"])
        trace = Trace(path)
        self.assertEqual(trace.moments("makes fiber [0-9]+"), counts["spawns"])
        self.assertEqual(trace.moments("deadline of fiber [0-9]+"), counts["deadlines"])
        self.assertEqual(sum(1 for t, name in trace.tracks.items() if t >= 1 << 32 and name.startswith("?")), 0)

    def test_the_flight_recorder_counts_what_the_server_counts(self):
        server = self.start(UMS_TRACE="64M:on")
        self.load()
        before = self.statistics()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.pftrace")
            done = subprocess.run([UMS, "trace", "--last", "600", "-o", path, str(server.pid)], capture_output=True,
                                  text=True, timeout=240, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done)
            self.check(done.stdout, path, ({}, {}), (before, self.statistics()))

    def test_a_recording_that_begins_and_ends_counts_the_difference(self):
        server = self.start()
        began = [self.statistics()]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.pftrace")
            with subprocess.Popen([UMS, "trace", "-o", path, str(server.pid)], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) as tracer:
                # The flight recorder says when recording has begun. A processor that sleeps begins
                # when it wakes.
                while subprocess.run([UMS, "trace", "--last", "1", "-o", path + ".b", str(server.pid)], timeout=240,
                                     capture_output=True, check=False).returncode != 0:
                    pass
                began.append(self.statistics())
                self.load()
                before = self.statistics()
                tracer.terminate()
                said, errors = tracer.communicate(timeout=240)
            self.assertEqual(errors, "")
            self.check(said, path, began, (before, self.statistics()))


if __name__ == "__main__":
    UMS, SERVER = (os.path.abspath(path) for path in sys.argv[1:3])
    unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[3:]])
