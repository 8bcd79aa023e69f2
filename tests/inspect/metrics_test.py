#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds ums::metrics() to the OpenMetrics format, as Prometheus's own client library reads it, the
dashboard and the page to its names, and asks the HTTP server for it.

metrics_test.py METRICS_TEST HTTP_SERVER DASHBOARD PAGE. HTTP_SERVER may be "". Exit code 77: the
Python package prometheus_client is missing (tools/setup).
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

# Debian's packages, for a Python that is not Debian's.
sys.path.append("/usr/lib/python3/dist-packages")

PROGRAM = SERVER = DASHBOARD = PAGE = ""

COUNTERS = ("ums_fibers_spawned", "ums_fibers_finished", "ums_steals", "ums_switches", "ums_hand_offs", "ums_blocks",
            "ums_stops", "ums_preemptions", "ums_trace_records", "ums_trace_missed")
TIMES = ("ums_hand_off_latency_seconds", "ums_run_queue_latency_seconds", "ums_wake_to_run_seconds",
         "ums_lock_wait_seconds")


def families(text):
    """What the strict parser makes of it; it raises where the text breaks a rule."""
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
    return {family.name: family for family in text_string_to_metric_families(text)}


class Server:
    """A running HTTP server; `with` ends it."""

    def __init__(self, *words, **more):
        self.process = subprocess.Popen([SERVER, "--listen=127.0.0.1:0", *words], stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **more})
        self.at = self.process.stdout.readline().split()[-1]

    def get(self, path, method="GET"):
        asked = urllib.request.Request("http://%s%s" % (self.at, path), method=method)
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.headers["Content-Type"], answer.read().decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()


class MetricsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            plain, traced = os.path.join(folder, "a"), os.path.join(folder, "b")
            subprocess.run([PROGRAM, "--gtest_filter=*counted:*wake_to_run"], check=True, stdout=subprocess.DEVNULL,
                           env={**os.environ, "UMS_TEST_METRICS_FILE": plain, "UMS_TEST_METRICS_TRACED_FILE": traced})
            with open(plain, encoding="utf-8") as file:
                cls.plain = file.read()
            with open(traced, encoding="utf-8") as file:
                cls.traced = file.read()

    def check_types(self, found):
        for name in COUNTERS:
            self.assertEqual(found[name].type, "counter", name)
        for name in TIMES:
            self.assertEqual((found[name].type, found[name].unit), ("histogram", "seconds"), name)
        self.assertEqual(found["ums_build"].type, "info")
        self.assertEqual((found["ums_mapped_bytes"].type, found["ums_mapped_bytes"].unit), ("gauge", "bytes"))
        for name, family in found.items():
            self.assertRegex(family.documentation, r"\A[0-9A-Z].+\.\Z", name)
            self.assertTrue(family.samples, name)

    def test_the_parser_of_prometheus_accepts_the_text(self):
        for text in (self.plain, self.traced):
            self.check_types(families(text))
        counts = {s.name: s.value for s in families(self.traced)["ums_wake_to_run_seconds"].samples
                  if s.name.endswith("_count")}
        self.assertGreaterEqual(counts["ums_wake_to_run_seconds_count"], 200)

    def test_the_parser_of_prometheus_can_refuse(self):
        for wrong in (self.plain.replace("# EOF\n", ""),
                      self.plain.replace("# UNIT ums_mapped_bytes bytes", "# UNIT ums_mapped_bytes seconds"),
                      self.plain.replace("ums_steals_total", "ums_steals"),
                      re.sub(r'le="\+Inf"', 'le="1000"', self.plain)):
            self.assertNotEqual(wrong, self.plain)
            with self.assertRaises(ValueError):
                families(wrong)

    def test_the_dashboard_asks_for_what_there_is(self):
        known = {s.name for family in families(self.plain).values() for s in family.samples}
        with open(DASHBOARD, encoding="utf-8") as file:
            board = json.load(file)
        asked = re.findall(r"\bums_\w+", json.dumps([p["targets"] for p in board["panels"]]))
        self.assertGreater(len(set(asked)), 20)
        for name in asked:
            self.assertIn(name, known)
        labels = {label for family in families(self.plain).values() for s in family.samples for label in s.labels}
        # Prometheus adds that one.
        shown = set(re.findall(r"\{\{(\w+)\}\}", json.dumps(board))) - {"instance"}
        self.assertLessEqual(shown, labels)

    def test_the_page_lists_every_name(self):
        with open(PAGE, encoding="utf-8") as file:
            part = file.read().partition("## In a monitoring system")[2].partition("\n## ")[0]
        listed = re.findall(r"`(ums_\w+)`", part)
        listed.remove("ums_trace_missed")  # In the text below the table once more.
        self.assertEqual(sorted(listed), sorted(families(self.plain)))

    def test_the_server_answers_if_it_was_asked_to(self):
        if not SERVER:
            self.skipTest("no HTTP server was built")
        with Server("--metrics") as server:
            kind, text = server.get("/metrics")
            self.assertTrue(kind.startswith("application/openmetrics-text; version=1.0.0"), kind)
            self.check_types(families(text))
            before = families(text)["ums_fibers_spawned"].samples[0].value
            server.get("/")  # A connection of its own: a fiber.
            after = families(server.get("/metrics")[1])["ums_fibers_spawned"].samples[0].value
            self.assertEqual(after - before, 2)
            self.assertEqual(server.get("/metrics", "HEAD")[1], "")
            with self.assertRaises(urllib.error.HTTPError) as refused:
                server.get("/metrics", "POST")
            self.assertEqual(refused.exception.code, 405)
        with Server() as server:
            with self.assertRaises(urllib.error.HTTPError) as refused:
                server.get("/metrics")
            self.assertEqual(refused.exception.code, 404)

    def test_the_server_measures_times_while_a_trace_is_recorded(self):
        if not SERVER:
            self.skipTest("no HTTP server was built")
        with Server("--metrics", UMS_TRACE="on") as server:
            for _ in range(20):
                server.get("/")
            found = families(server.get("/metrics")[1])
            self.assertEqual(found["ums_recording"].samples[0].value, 1)
            for name in ("ums_run_queue_latency_seconds", "ums_wake_to_run_seconds"):
                count = [s.value for s in found[name].samples if s.name == name + "_count"]
                self.assertGreaterEqual(count[0], 20)


if __name__ == "__main__":
    try:
        import prometheus_client  # noqa: F401
    except ImportError:
        print("skipped: no Python package prometheus_client (tools/setup)")
        sys.exit(77)
    PROGRAM, SERVER, DASHBOARD, PAGE = sys.argv[1:5]
    unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[5:]])
