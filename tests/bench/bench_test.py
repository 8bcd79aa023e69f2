#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs `ums bench` as its users do: the schema of its rows, its pages, and what it says to bad input.

bench_test.py PATH_OF_UMS [NAME_OF_A_TEST...]

The peers beside the command are run with --quick; tests of what happens when a peer misbehaves copy the
command beside peers of their own.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

UMS = ""

# The runtimes of each bench, those first that are always built, and the figures every row has.
NATIVE = {"std::thread", "ums"}
BOTH_BOOSTS = {"boost.fiber", "boost.fiber static", "go"}
SPEED = {"ns_per_op", "ops_per_s"}
SERVING = {"ops_per_s", "cpu_us_per_request", "p50_us", "p99_us", "p999_us", "bytes_per_connection"}
# The system calls of each operation are not counted in every row.
CALLS = {"calls_per_op", "reads_per_op", "writes_per_op", "waits_per_op", "futexes_per_op", "controls_per_op",
         "masks_per_op", "others_per_op"}
LONE = {"ops_per_s", "cpu_us_per_op", "all_cpu_us_per_op", "p50_us", "p99_us", "p999_us", "max_us", "voluntary_per_op",
        "involuntary_per_op"}
POLICIES = {"ums"} | {"ums " + policy for policy in (
    "global_fifo", "local_locked", "local_mpsc", "local_mpsc_intrusive", "priority", "earliest_deadline_first",
    "fair_share")}
# The peers of the policies.
SCHEDULERS = BOTH_BOOSTS | {one + " shared_work" for one in BOTH_BOOSTS - {"go"}}
# Of ums to fork and join.
WAYS = {"ums" + how + launch for how in ("", " scope", " spawn") for launch in ("", " dispatch")} | {"ums fork_join"}
# On one CPU it would be the same as ums.
ONE = {"ums one"} if len(os.sched_getaffinity(0)) > 1 else set()
BENCHES = {
    "yield": (NATIVE, BOTH_BOOSTS, SPEED),
    "spawn": (NATIVE, BOTH_BOOSTS, SPEED),
    "pingpong": (NATIVE, BOTH_BOOSTS, SPEED),
    "skynet": (NATIVE, BOTH_BOOSTS, SPEED | {"total_ns", "peak_rss_bytes"}),
    "forkjoin": (WAYS | {"serial", "std::async"}, {"boost.fiber static", "go", "openmp", "tbb"},
                 SPEED | {"total_ns", "cpu_ns", "stacks", "peak_above_start_bytes"}),
    "memory": (NATIVE | {"bare stack"}, {"boost.fiber", "go"},
               SPEED | {"bytes_per_fiber", "pte_bytes_per_fiber", "maps_lines", "peak_rss_bytes"}),
    "sleepers": (NATIVE, {"boost.fiber", "go"},
                 {"lateness_p50_us", "lateness_p99_us", "lateness_max_us", "cpu_us_per_op"}),
    "scaling": ({"bare switch", "ums"}, {"boost.fiber", "go"}, SPEED),
    "mutex": (NATIVE | {"ums fair"}, BOTH_BOOSTS, SPEED | {"sharers"}),
    "channel": (NATIVE, BOTH_BOOSTS, SPEED),
    "condvar": (NATIVE, BOTH_BOOSTS, SPEED),
    "semaphore": (NATIVE, BOTH_BOOSTS - {"go"}, SPEED),
    "select": (NATIVE, {"go"}, SPEED),
    "blocking": (NATIVE | {"ums-worker"}, {"boost.fiber", "go"}, {"throughput_kept", "p50_us", "p99_us", "blocks_per_s"}),
    "preemption": (NATIVE, {"boost.fiber", "go"},
                   {"lateness_p50_us", "lateness_p99_us", "lateness_max_us", "turns_per_us"}),
    "http": ({"epoll", "ums"}, {"epoll_parser", "io_uring", "nginx", "fasthttp", "node"}, SERVING),
    "memcached": ({"ums"}, {"memcached"}, SERVING),
    "echo": ({"epoll", "ums"}, {"boost.fiber", "go"}, SERVING),
    "connections": ({"epoll", "ums"}, {"boost.fiber", "go"},
                    {"bytes_per_connection", "connects_per_s", "idle_cpu_us_per_s"}),
    "lone": (NATIVE | {"epoll", "ums elsewhere", "ums adopted", "ums-worker"} | ONE, {"go"}, LONE),
    "workers": (NATIVE | {"ums-worker"}, BOTH_BOOSTS, SPEED),
    "completion": ({"std::thread", "thread pool", "ums-worker"}, set(), SPEED),
    "migrate": (POLICIES, set(), SPEED),
    "policies": (POLICIES, SCHEDULERS, SPEED | {"wake_p50_us", "wake_p99_us"}),
    "jobs": (POLICIES, SCHEDULERS, {"short_p50_us", "short_p99_us", "long_p99_us", "late"}),
    "shares": ({"ums", "ums fair_share"}, set(), {"share_error"}),
}
SERVERS = {"http", "memcached", "echo", "connections"}
SETTINGS = {"runtime", "processors", "fibers", "yields", "yields_run", "section_ns", "way", "variant",
            "detector", "beside", "rate", "gap_us", "compute_us", "block_ms", "slice_us", "steps", "schedulers", "repetitions", "connections",
            "pipeline", "client", "size", "cut_off"}

# What is wrong, and what the one line on stderr has to name.
BAD_INPUT = [
    ([], "bench, check-policy, info, profile, ps, slow, stack, top or trace"),
    (["bank"], "bank"),
    (["--frobnicate"], "--frobnicate"),
    (["info", "extra"], "extra"),
    (["profile"], "see ums profile --help"),
    (["slow"], "see ums slow --help"),
    (["bench"], "bench"),
    (["bench", "yeild"], "yield"),
    (["bench", "yeild"], "yeild"),
    (["bench", ""], "''"),
    (["bench", "yield", "spawn"], "spawn"),
    (["bench", "yield", "--frobnicate"], "--frobnicate"),
    (["bench", "list", "--quick"], "list"),
    (["bench", "yield", "--processors"], "--processors"),
    (["bench", "yield", "--processors", "0"], "--processors"),
    (["bench", "yield", "--processors", "1025"], "--processors"),
    (["bench", "yield", "--processors", str(len(os.sched_getaffinity(0)) + 1)], "CPUs"),
    (["bench", "yield", "--processors", "one"], "'one'"),
    (["bench", "yield", "--processors", "1,"], "--processors"),
    (["bench", "yield", "--fibers", "0"], "--fibers"),
    (["bench", "yield", "--fibers", "-1"], "'-1'"),
    (["bench", "yield", "--fibers", "10000001"], "10000000"),
    (["bench", "yield", "--fibers", "1e3"], "'1e3'"),
    (["bench", "yield", "--fibers", "99999999999999999999999"], "--fibers"),
    (["bench", "yield", "--fibers", ""], "--fibers"),
    (["bench", "yield", "--fibers", "1", "--fibers", "2"], "--fibers"),
    (["bench", "yield", "--yields", "0"], "--yields"),
    (["bench", "spawn", "--yields", "10"], "--yields"),
    (["bench", "yield", "--repetitions", "0"], "--repetitions"),
    (["bench", "yield", "--repetitions", "1001"], "1000"),
    (["bench", "yield", "--repetitions", "1,2"], "--repetitions"),
    (["bench", "yield", "--runtimes", "ums,perl"], "'perl'"),
    (["bench", "yield", "--runtimes", "bare switch"], "'bare switch'"),
    (["bench", "spawn", "--cycles"], "--cycles"),
    (["bench", "yield", "--detectors", "off,kqueue"], "'kqueue'"),
    (["bench", "yield", "--detectors", ""], "--detectors"),
    (["bench", "semaphore", "--detectors", "off"], "--detectors"),
    (["bench", "all", "--detectors", "off"], "--detectors"),
    (["bench", "demo", "--detectors", "off"], "--detectors"),
    (["bench", "demo", "--fibers", "10"], "demo"),
    (["bench", "demo", "--yields", "10"], "--yields"),
    (["bench", "demo", "--cycles"], "--cycles"),
    (["bench", "all", "--fibers", "10"], "--fibers"),
    (["bench", "pingpong", "--fibers", "3"], "--fibers"),
    (["bench", "skynet", "--fibers", "15"], "'15'"),
    (["bench", "channel", "--fibers", "2,3"], "3"),
    (["bench", "semaphore", "--fibers", "3"], "--fibers"),
    (["bench", "policies", "--fibers", "15"], "15"),
    (["bench", "shares", "--fibers", "6"], "--fibers"),
    (["bench", "jobs", "--fibers", "10,1"], "--fibers"),
    (["bench", "migrate", "--runtimes", "go"], "'go'"),
    (["bench", "select", "--fibers", "4"], "4"),
    (["bench", "condvar", "--runtimes", "ums fair"], "'ums fair'"),
    (["bench", "blocking", "--yields", "3"], "--yields"),
    (["bench", "yield", "--connections", "10"], "--connections"),
    (["bench", "spawn", "--client", "wrk"], "--client"),
    (["bench", "all", "--pipeline", "2"], "--pipeline"),
    (["bench", "http", "--fibers", "10"], "--fibers"),
    (["bench", "http", "--connections", "0"], "--connections"),
    (["bench", "http", "--connections", "1000001"], "1000000"),
    (["bench", "http", "--pipeline", "1025"], "'1025'"),
    (["bench", "http", "--client", "ab"], "'ab'"),
    (["bench", "echo", "--client", "wrk"], "'wrk'"),
    (["bench", "http", "--client", "ums"], "'ums'"),
    (["bench", "connections", "--client", "own"], "--client"),
    (["bench", "lone", "--ways", "pipe,fifo"], "'fifo'"),
    (["bench", "lone", "--ways", "pipe,"], "--ways"),
    (["bench", "lone", "--rates", "0"], "--rates"),
    (["bench", "lone", "--fibers", "10"], "--fibers"),
    (["bench", "lone", "--runtimes", "nginx"], "'nginx'"),
    (["bench", "echo", "--ways", "pipe"], "--ways"),
    (["bench", "forkjoin", "--ways", "fib,fob"], "'fob'"),
    (["bench", "forkjoin", "--ways", "fib:"], "'fib:'"),
    (["bench", "forkjoin", "--ways", "fib:x"], "'fib:x'"),
    (["bench", "forkjoin", "--fibers", "10"], "--fibers"),
    (["bench", "yield", "--rates", "10"], "--rates"),
    (["bench", "all", "--ways", "pipe"], "--ways"),
    (["bench", "list", "--ways", "pipe"], "list"),
    (["bench", "echo", "--cycles"], "--cycles"),
    (["bench", "connections", "--pipeline", "1"], "--pipeline"),
    (["bench", "memcached", "--runtimes", "nginx"], "'nginx'"),
    (["bench", "yield", "--json"], "--json"),
    (["bench", "yield", "--json", ""], "--json"),
    (["bench", "yield", "--json", "--quick"], "--json"),
    (["bench", "yield", "--json", "/no/such/folder/rows.json"], "/no/such/folder/rows.json"),
    (["bench", "yield", "--json", "/"], "--json"),
    (["bench", "yield", "--html", "/no/such/folder/page.html"], "/no/such/folder/page.html"),
]
if len(os.sched_getaffinity(0)) > 1:
    BAD_INPUT.append((["bench", "yield", "--cycles", "--processors", "2"], "--cycles"))


def run(*args, ums=None, timeout=300):
    return subprocess.run([ums or UMS, *args], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, check=False)


def has_peer(bench, runtime):
    if runtime in ("nginx", "memcached", "node"):
        return shutil.which(runtime, path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin") is not None
    bench = {"connections": "echo", "workers": "yield"}.get(bench, bench)
    peer = runtime.removesuffix(" shared_work").replace("::", "_").replace(".", "_").replace(" ", "_")
    return (pathlib.Path(UMS).resolve().parent / "bench" / f"{bench}-{peer}").exists()


class Rows(unittest.TestCase):
    """What is written about a run."""

    def check_document(self, document, bench):
        self.assertEqual(list(document), ["bench", "machine", "rows"])
        self.assertEqual(document["bench"], bench)
        self.assertEqual(list(document["machine"]), ["cpu", "cpus", "kernel", "compiler", "build"])
        always, where_built, figures = BENCHES[bench]
        expected = always | {one for one in where_built if has_peer(bench, one)}
        self.assertEqual({row["runtime"] for row in document["rows"]}, expected)
        for row in document["rows"]:
            self.check_row(row, figures, {"lone": "connections", "forkjoin": "size"}.get(
                bench, "connections" if bench in SERVERS else "fibers"))

    def check_row(self, row, figures, runners="fibers"):
        self.assertNotIn("error", row)
        self.assertIn("processors", row)
        self.assertIn(runners, row)
        found = {key for key in row if key not in SETTINGS and not key.endswith(("_min", "_max"))}
        # Figures of the UMS API's rows.
        own = {"told_p50_us", "told_p99_us", "switch_us", "worst_switch_us"}
        found -= own if row["runtime"] == "ums-worker" else set()
        if figures is LONE and CALLS <= found:
            found -= CALLS
        self.assertEqual(found, figures, row)
        for figure in found:
            self.assertLessEqual(row[figure + "_min"], row[figure], row)
            self.assertLessEqual(row[figure], row[figure + "_max"], row)
            if figure in SPEED:
                self.assertGreater(row[figure + "_min"], 0, row)
        if "yields_run" in row:
            self.assertLess(row["yields_run"], row["yields"])

    def test_every_peer_is_there(self):
        """Or the other tests go without it, and this one says so."""
        missing = sorted(f"{bench}: {one}" for bench, (_, where_built, _) in BENCHES.items()
                         for one in where_built if not has_peer(bench, one))
        if missing:
            self.skipTest("not compared with " + ", ".join(missing))

    def test_a_median_lies_between_its_extremes_and_progress_is_a_few_lines(self):
        done = run("bench", "pingpong", "--quick", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_document(json.loads(done.stdout), "pingpong")
        self.assertIn("pingpong: ", done.stderr)
        self.assertNotIn("\r", done.stderr)
        steps = [line for line in done.stderr.splitlines() if line.startswith("[pingpong ")]
        self.assertEqual(len(steps), 4)
        self.assertTrue(steps[0].startswith("[pingpong 0/"), steps)

    def test_all_writes_every_bench_and_a_page_that_needs_no_network(self):
        with tempfile.TemporaryDirectory() as folder:
            rows, page = os.path.join(folder, "rows.json"), os.path.join(folder, "page.html")
            done = run("bench", "all", "--quick", "--repetitions", "1", "--json", rows, "--html", page)
            # The tables' notes say which runtime failed, and how.
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
            for line in done.stderr.splitlines():
                self.assertRegex(line, r"^\[\w+ \d+/\d+\] ")
            documents = json.loads(pathlib.Path(rows).read_text())["benches"]
            self.assertEqual([one["bench"] for one in documents], list(BENCHES))
            for one in documents:
                with self.subTest(one["bench"]):
                    self.check_document(one, one["bench"])
            html = pathlib.Path(page).read_text()
        self.assertIn("--repetitions 1", html)
        for bench in BENCHES:
            self.assertIn(f'<details id="{bench}"', html)
        for loads in ("<link", "<img", " src=", "@import", "url(", "{{"):
            self.assertNotIn(loads, html, loads)

    def test_cycles_counts_cycles(self):
        done = run("bench", "yield", "--cycles", "--quick", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        for row in json.loads(done.stdout)["rows"]:
            self.assertEqual(row["fibers"], 4)
            self.check_row(row, SPEED | {"cycles_per_op"})

    def test_detectors_are_compared_within_one_run(self):
        for bench in ("yield", "spawn", "pingpong"):
            with self.subTest(bench):
                done = run("bench", bench, "--quick", "--runtimes", "ums", "--detectors", "off,monitor",
                           "--json", "-")
                self.assertEqual(done.returncode, 0, done.stderr)
                document = json.loads(done.stdout)
                for row in document["rows"]:
                    self.check_row(row, SPEED)
                detectors = ["off", "monitor"]
                # Next to each other, so that they are measured one after the other.
                self.assertEqual([row["detector"] for row in document["rows"]],
                                 detectors * (len(document["rows"]) // len(detectors)))
                self.assertIn("with monitor / with off", done.stderr)

    def test_detectors_leave_the_other_runtimes_as_they_are(self):
        done = run("bench", "pingpong", "--quick", "--runtimes", "ums,std::thread", "--detectors", "off,monitor",
                   "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([(row["runtime"], row.get("detector")) for row in json.loads(done.stdout)["rows"]],
                         [("std::thread", None), ("ums", "off"), ("ums", "monitor")])

    def test_a_cell_that_would_take_too_long_says_what_it_ran(self):
        done = run("bench", "yield", "--fibers", "100", "--yields", "1000000000", "--repetitions", "1",
                   "--runtimes", "ums", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        (row,) = json.loads(done.stdout)["rows"]
        self.assertIn("yields_run", row)

    def test_cells_that_ran_as_many_yields_are_measured_once(self):
        done = run("bench", "yield", "--fibers", "100", "--yields", "10000,900000000,1000000000",
                   "--repetitions", "1", "--runtimes", "ums", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)["rows"]
        self.assertEqual(len(rows), 3)
        of_few, *of_many = rows
        self.assertNotIn("yields_run", of_few)
        for row in of_many:
            self.assertEqual(row["yields"] > row["yields_run"], True)
        same = [{k: v for k, v in row.items() if k != "yields"} for row in of_many]
        self.assertEqual(same[0], same[1])
        self.assertEqual(len([line for line in done.stderr.splitlines() if "repetition 1" in line]), 2, done.stderr)

    def test_a_contended_mutex_says_among_how_many_it_went_round(self):
        done = run("bench", "mutex", "--quick", "--fibers", "4", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)["rows"]
        self.assertEqual({row["way"] for row in rows}, {"uncontended", "contended", "contended_yield"})
        for row in rows:
            self.assertEqual(row["fibers"], 1 if row["way"] == "uncontended" else 4)
            self.assertGreaterEqual(row["sharers_min"], 1, row)
            self.assertLessEqual(row["sharers_max"], row["fibers"] * 1.001, row)
            # The loop that computes may be off a little; a section that was left out is not.
            self.assertGreater(row["ns_per_op"], row["section_ns"] / 3, row)

    def test_completion_has_a_row_for_each_number_of_schedulers_and_way(self):
        done = run("bench", "completion", "--quick", "--fibers", "50", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.check_document(document, "completion")
        self.assertEqual({(row["way"], row["schedulers"]) for row in document["rows"]},
                         {(way, n) for way in ("run", "yield") for n in (1, 4)})
        for row in document["rows"]:
            if row["runtime"] == "ums-worker":
                self.assertGreater(row["switch_us"], 0, row)
                self.assertLessEqual(row["switch_us"], row["worst_switch_us"], row)

    def test_policies_and_their_peers_do_the_same_shapes_of_work(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("one CPU")
        done = run("bench", "policies", "--quick", "--processors", "1,2", "--fibers", "20", "--repetitions", "1",
                   "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.check_document(document, "policies")
        shapes = {"cycle", "yield", "churn", "locality", "locks", "load", "outside"}
        for runtime in {row["runtime"] for row in document["rows"]}:
            found = {(row["processors"], row["way"]) for row in document["rows"] if row["runtime"] == runtime}
            expected = {(n, shape) for n in (1, 2) for shape in shapes} | {(2, "transfer")}
            if runtime in BOTH_BOOSTS - {"go"}:
                expected -= {(2, "transfer")}
                self.assertIn(f"{runtime} has no transfer", done.stderr)
            if runtime == "go":
                expected -= {(1, "outside"), (2, "outside")}
                self.assertIn("go has no outside", done.stderr)
            self.assertEqual(found, expected)
        for row in document["rows"]:
            # Work is never left out: 10 us, 600 ns, on each processor.
            least = {"load": 10_000, "locks": 600}.get(row["way"], 0) / row["processors"]
            self.assertGreater(row["ns_per_op"], least / 2, row)
        self.assertIn("transfer takes two processors", done.stderr)

    def test_migrate_says_why_it_has_no_peers(self):
        done = run("bench", "migrate", "--quick", "--runtimes", "ums", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_row(json.loads(done.stdout)["rows"][0], SPEED)
        self.assertIn("Boost.Fiber and Go have no clusters", done.stderr)

    def test_jobs_take_at_least_their_work_and_shares_follow_weights(self):
        done = run("bench", "jobs", "--quick", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        for row in json.loads(done.stdout)["rows"]:
            self.assertGreaterEqual(row["late_min"], 0, row)
            self.assertLessEqual(row["late_max"], 1, row)
            if row["way"] == "requests":
                self.assertGreater(row["short_p50_us_min"], 10, row)
                self.assertGreater(row["long_p99_us_min"], 1000, row)
        done = run("bench", "shares", "--repetitions", "1", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        error = {(row["runtime"], row["way"]): row["share_error"] for row in json.loads(done.stdout)["rows"]}
        for way in ("fibers", "groups"):
            self.assertLess(error["ums fair_share", way], error["ums", way])

    def test_ways_that_a_runtime_does_not_have_are_no_rows(self):
        done = run("bench", "channel", "--quick", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        unbounded = {row["runtime"] for row in json.loads(done.stdout)["rows"] if row["way"] == "unbounded"}
        self.assertEqual(unbounded, NATIVE)

    def test_blocking_shows_every_detector_in_every_way(self):
        done = run("bench", "blocking", "--quick", "--fibers", "4", "--runtimes", "ums,ums-worker", "--json",
                   "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)["rows"]
        left_out = {word for word in ("fault", "getaddrinfo") if f"{word} was not run" in done.stderr}
        ways = {"nanosleep", "read", "fault", "getaddrinfo", "fsync"} - left_out
        detectors = {"monitor", "off", "marked"}
        found = [(row["runtime"], row["way"], row["beside"], row["detector"]) for row in rows]
        settings = [(way, "nobody") for way in ways] + [("nanosleep", "loop")]
        self.assertEqual(sorted(found), sorted(
            (runtime, *setting, detector) for setting in settings for detector in detectors
            for runtime in ("ums", "ums-worker") if runtime == "ums" or detector in ("monitor", "marked")))
        for row in rows:
            self.assertGreater(row["blocks_per_s"], 0, row)
            # An fsync() may be over before a monitor looks.
            if row["runtime"] == "ums-worker" and (row["detector"], row["way"]) != ("monitor", "fsync"):
                self.assertGreater(row["told_p50_us"], 0, row)
                self.assertLessEqual(row["told_p50_us"], row["told_p99_us"], row)

    def test_fibers_are_the_waiters_of_notify_all(self):
        done = run("bench", "condvar", "--quick", "--fibers", "5,50", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {(row["way"], row["fibers"]) for row in json.loads(done.stdout)["rows"]}
        self.assertEqual(found, {("round_trip", 2), ("notify_all", 5), ("notify_all", 50)})

    def test_a_server_is_measured_for_every_number_of_connections_and_requests(self):
        done = run("bench", "echo", "--quick", "--runtimes", "epoll", "--connections", "1,40", "--pipeline", "1,3",
                   "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {(row["connections"], row["pipeline"]) for row in json.loads(done.stdout)["rows"]}
        self.assertEqual(found, {(1, 1), (1, 3), (40, 1), (40, 3)})

    def test_of_idle_connections_beyond_the_limit_as_many_as_can_be_are_measured_and_a_note_says_so(self):
        done = subprocess.run(["sh", "-c", 'ulimit -n 1000; exec "$0" "$@"', UMS, "bench", "connections", "--quick",
                               "--runtimes", "epoll", "--connections", "100,2000", "--json", "-"],
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = [row["connections"] for row in json.loads(done.stdout)["rows"]]
        if found == [100, 2000]:  # As root the limit can be raised.
            self.assertEqual(os.geteuid(), 0)
            return
        self.assertEqual(found, [100, 800])
        self.assertIn("2000 connections were not possible: they take 2200 descriptors of one process", done.stderr)
        self.assertIn("Measured instead: 800.", done.stderr)

    def test_busy_connections_beyond_the_limit_are_left_out_with_a_note(self):
        done = subprocess.run(["sh", "-c", 'ulimit -n 1000; exec "$0" "$@"', UMS, "bench", "echo", "--quick",
                               "--runtimes", "epoll", "--pipeline", "1", "--connections", "16,2000", "--json", "-"],
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        if [row["connections"] for row in json.loads(done.stdout)["rows"]] == [16, 2000]:
            self.assertEqual(os.geteuid(), 0)
        else:
            self.assertIn("2000 connections were left out", done.stderr)

    def test_lone_has_a_row_for_each_way_value_and_runtime(self):
        cpus = len(os.sched_getaffinity(0))
        done = run("bench", "lone", "--quick", "--ways", "pipe,echo,open", "--connections", "1,3", "--rates", "500,2000",
                   "--processors", f"1,{cpus}" if cpus > 1 else "1", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)["rows"]
        for runtime in {row["runtime"] for row in rows}:
            found = {(row["processors"], row["way"], row["connections"], row.get("rate"))
                     for row in rows if row["runtime"] == runtime}
            closed = {(p, way, n, None) for p in {1, cpus} for way in ("pipe", "echo") for n in (1, 3)}
            expected = closed | {(cpus, "open", n, rate) for n in (1, 3) for rate in (500, 2000)}
            # On one CPU it is ums.
            self.assertEqual(found, {one for one in expected if one[0] > 1 or runtime != "ums one"}, runtime)
        for row in rows:
            self.check_row(row, LONE, "connections")
            # The load is not of this process, except where both ends are.
            if row["way"] == "pipe":
                self.assertEqual(row["cpu_us_per_op"], row["all_cpu_us_per_op"], row)
            else:
                self.assertLess(row["cpu_us_per_op"], row["all_cpu_us_per_op"], row)
            self.assertLessEqual(row["p50_us"], row["p99_us"], row)
            self.assertLessEqual(row["p99_us"], row["p999_us"], row)
            if row["way"] == "open":
                self.assertLess(row["ops_per_s"], 3 * row["rate"], row)

    def test_lone_counts_the_system_calls_of_a_thread(self):
        done = run("bench", "lone", "--quick", "--ways", "pipe,echo", "--connections", "1", "--runtimes", "std::thread",
                   "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)["rows"]
        if not all(CALLS <= row.keys() for row in rows):
            self.skipTest("the kernel does not let one process trace another")
        for row in rows:
            # A round trip is two of each, an answer one; the window begins and ends within one.
            each = {"pipe": 2, "echo": 1}[row["way"]]
            for kind in ("reads_per_op", "writes_per_op"):
                self.assertAlmostEqual(row[kind], each, delta=0.3, msg=row)
            for kind in ("waits_per_op", "controls_per_op", "masks_per_op"):
                self.assertLess(row[kind], 0.3, row)

    def test_lone_keeps_what_a_peer_says_of_its_failure(self):
        measure = pathlib.Path(UMS).resolve().parent / "bench" / "lone-measure"
        done = run("runtime=epoll", "way=condvar", ums=measure)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "way=condvar: expected one of pipe, unix, tcp, echo, echo_unix, http, proxy\n")

    def test_forkjoin_has_two_rows_for_each_way_and_runtime(self):
        done = run("bench", "forkjoin", "--quick", "--repetitions", "2", "--processors", "1", "--ways", "fib:12,uts",
                   "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)["rows"]
        for runtime in {row["runtime"] for row in rows}:
            found = sorted((row["way"], row["cut_off"] > 0) for row in rows if row["runtime"] == runtime)
            both = [(way, has) for way in ("fib", "uts") for has in (False, True)]
            self.assertEqual(found, [one for one in both if one[1] or runtime != "std::async"], runtime)
        self.assertEqual({row["size"] for row in rows if row["way"] == "fib"}, {12})
        self.assertIn("std::async was run with a cut-off only", done.stderr)
        # These have a stack for each task that waits; ums makes 64 at a time.
        for runtime in ("go", "boost.fiber static"):
            stacks = {row["cut_off"] > 0: row["stacks"] for row in rows
                      if (row["runtime"], row["way"]) == (runtime, "uts")}
            if stacks:
                self.assertGreater(stacks[False], stacks[True], runtime)

    def test_http_can_be_loaded_by_wrk(self):
        if not shutil.which("wrk"):
            self.skipTest("wrk is not installed")
        done = run("bench", "http", "--quick", "--runtimes", "epoll", "--client", "wrk", "--pipeline", "1", "--json",
                   "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        (row,) = json.loads(done.stdout)["rows"]
        self.assertEqual(row["client"], "wrk")
        self.check_row(row, SERVING, "connections")

    def test_echo_can_be_loaded_by_fibers(self):
        done = run("bench", "echo", "--quick", "--runtimes", "epoll,ums", "--client", "ums", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        for row in json.loads(done.stdout)["rows"]:
            self.assertEqual(row["client"], "ums")
            self.check_row(row, SERVING, "connections")

    def test_a_signal_ends_server_and_load(self):
        before = self.servers()
        with subprocess.Popen([UMS, "bench", "echo", "--runtimes", "epoll", "--json", "-"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as bench:
            until = time.monotonic() + 60
            # Once: a moment later it may be between two measurements, with neither.
            while len(running := self.servers()) < len(before) + 2 and time.monotonic() < until:
                time.sleep(0.01)
            self.assertEqual(len(running), len(before) + 2)
            bench.send_signal(signal.SIGTERM)
            self.assertEqual(bench.wait(60), 128 + signal.SIGTERM)
        until = time.monotonic() + 60
        while self.servers() != before and time.monotonic() < until:
            time.sleep(0.01)
        self.assertEqual(self.servers(), before)

    @staticmethod
    def servers():
        """The processes that run a program of the echo bench of this build."""
        found = set()
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                program = os.readlink(process / "exe")
            except OSError:
                continue
            if program.startswith(str(pathlib.Path(UMS).resolve().parent / "bench" / "echo-")):
                found.add(process.name)
        return found

    def test_runtimes_selects(self):
        done = run("bench", "pingpong", "--quick", "--runtimes", "ums,std_thread", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({row["runtime"] for row in json.loads(done.stdout)["rows"]}, NATIVE)

    def test_more_processors_are_more_rows(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("one CPU")
        done = run("bench", "pingpong", "--quick", "--processors", "1,2", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({row["processors"] for row in json.loads(done.stdout)["rows"]}, {1, 2})


class Words(unittest.TestCase):
    """What it answers without measuring."""

    def test_every_bad_input_is_named_in_one_line(self):
        for args, named in BAD_INPUT:
            with self.subTest(" ".join(args)):
                done = run(*args, timeout=20)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(done.stdout, "")
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertIn(named, done.stderr)

    def test_list_names_every_bench(self):
        done = run("bench", "list")
        benches = [line for line in done.stdout.splitlines() if line.startswith("  ")]
        self.assertEqual([line.split()[0] for line in benches], list(BENCHES))
        for line in benches:
            self.assertRegex(line, r"^  \w+ +\d+ (s|min)  \S")
            self.assertLessEqual(len(line), 100)
        self.assertEqual(run("list", ums=UMS + "-bench").stdout, done.stdout)

    def test_ums_bench_refuses_what_ums_bench_refuses(self):
        for args in ([], ["yeild"], ["yield", "--fibers", "0"], ["demo", "extra"]):
            with self.subTest(" ".join(args)):
                alone, asked = run(*args, ums=UMS + "-bench"), run("bench", *args)
                self.assertEqual(alone.returncode, 2)
                self.assertEqual(alone.stderr, asked.stderr.replace("ums bench --help", "ums-bench --help"))

    def test_version_help_and_info(self):
        self.assertRegex(run("--version").stdout, r"^ums \d+\.\d+\.\d+\n$")
        for args in (["--help"], ["bench", "--help"]):
            self.assertEqual(run(*args).returncode, 0)
        info = run("info")
        self.assertEqual(info.returncode, 0, info.stderr)
        for what in ("ums ", "cpu: ", "kernel: ", "processors: "):
            self.assertIn(what, info.stdout)

    def test_an_error_of_the_library_has_one_prefix(self):
        done = subprocess.run([UMS, "info"], env=dict(os.environ, UMS_CPUS="1023"), capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^ums: cpus: [^\n]+\n$")

    def test_a_full_disk_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        done = run("bench", "pingpong", "--quick", "--runtimes", "ums", "--json", "/dev/full")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/dev/full", done.stderr)
        for what in ("info", "--version", "--help"):
            with self.subTest(what), open("/dev/full", "w") as full:
                done = subprocess.run([UMS, what], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)


class Peers(unittest.TestCase):
    """What it does with peers that misbehave."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.ums = os.path.join(self.folder.name, "ums")
        shutil.copy(UMS, self.ums)
        os.mkdir(os.path.join(self.folder.name, "bench"))

    def peer(self, runtime, script):
        path = pathlib.Path(self.folder.name, "bench", f"pingpong-{runtime}")
        path.write_text("#!/bin/sh\n" + script + "\n")
        path.chmod(0o755)

    def errors(self, *args):
        done = run("bench", "pingpong", "--quick", "--json", "-", *args, ums=self.ums)
        rows = json.loads(done.stdout)["rows"]
        return done.returncode, {row["runtime"]: row.get("error", "") for row in rows}, done.stderr

    def test_a_failing_peer_keeps_its_row(self):
        good = """echo '{"ops":10,"ns":1000}'"""
        self.peer("ums", good)
        self.peer("std_thread", "kill -SEGV $$")
        self.peer("boost_fiber", "echo out of luck >&2; exit 3")
        self.peer("boost_fiber_static", "echo hello")
        self.peer("go", good + "; " + good)
        code, errors, table = self.errors()
        self.assertEqual(code, 0, "ums itself was fine")
        self.assertEqual(errors["ums"], "")
        self.assertIn("signal 11", errors["std::thread"])
        self.assertIn("exit code 3: out of luck", errors["boost.fiber"])
        self.assertIn("one line of JSON", errors["boost.fiber static"])
        self.assertIn("one line of JSON", errors["go"])
        self.assertIn("FAILED: std::thread", table)

    def test_a_failing_ums_is_a_failure(self):
        self.peer("ums", "exit 1")
        code, errors, _ = self.errors()
        self.assertEqual(code, 1)
        self.assertIn("exit code 1", errors["ums"])

    def test_a_missing_ums_is_a_failure_and_missing_others_are_not(self):
        code, errors, table = self.errors()
        self.assertEqual(code, 1)
        self.assertEqual(list(errors), ["ums"])
        self.assertIn("go was not run", table)
        code, errors, _ = self.errors("--runtimes", "go")
        self.assertIn("pingpong-go is not there", errors["go"])

    def test_an_interrupt_kills_the_peer(self):
        pid_file = pathlib.Path(self.folder.name, "pid")
        rows = pathlib.Path(self.folder.name, "rows.json")
        self.peer("ums", f"echo $$ >{pid_file}.new; mv {pid_file}.new {pid_file}; exec sleep 1000")
        with subprocess.Popen([self.ums, "bench", "pingpong", "--runtimes", "ums", "--json", rows]) as bench:
            until = time.monotonic() + 60
            while not pid_file.exists() and time.monotonic() < until:
                time.sleep(0.01)
            bench.send_signal(signal.SIGINT)
            self.assertEqual(bench.wait(60), 128 + signal.SIGINT)
        self.assertRaises(ProcessLookupError, os.kill, int(pid_file.read_text()), 0)
        self.assertFalse(rows.exists())


if __name__ == "__main__":
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
        sys.exit("usage: bench_test.py PATH_OF_UMS [NAME_OF_A_TEST...]")
    UMS = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
