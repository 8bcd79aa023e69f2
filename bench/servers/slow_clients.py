#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What slow clients cost a good one: slow_clients.py BUILD [SLOW] [ROUNDS]

BUILD is a build's folder, build/release say. SLOW (4000) clients of slowhttptest send the headers of a request, or a
body, a few bytes at a time, or read an answer so; the p99 of a good client (16 connections, one request after the
other) is taken before, with them, and after they have gone, ROUNDS (3) times for each of the three.
"""

import json
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time

WAYS = {"headers": ["-H", "-i", "5"], "body": ["-B", "-i", "5", "-s", "8192"], "read": ["-X", "-w", "512", "-y", "1024", "-n", "5", "-z", "32", "-k", "3"]}


def good(build, port, server):
    answer = subprocess.run([build / "bench/http-client", f"port={port}", f"server={server}", "connections=16",
                             "pipeline=1", "ms=1500"], check=True, capture_output=True, text=True)
    return json.loads(answer.stdout)["p99_us"]


def connections(server):
    return sum(1 for _ in pathlib.Path(f"/proc/{server}/fd").iterdir())


def main():
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1])
    slow, rounds = (int(word) for word in (sys.argv[2:] + ["4000", "3"][len(sys.argv) - 2:]))
    if not shutil.which("slowhttptest"):
        sys.exit("slow_clients.py: slowhttptest is not installed")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with subprocess.Popen([build / "examples/http-server", "-l", "127.0.0.1", "-p", "0", "-t", "1",
                           "--header-timeout", "600", "--body-timeout", "600", "--write-timeout", "600"],
                          stdout=subprocess.PIPE, text=True) as server:
        try:
            port = re.search(r":(\d+)$", server.stdout.readline().strip()).group(1)
            for way, how in WAYS.items():
                ratios = []
                for _ in range(rounds):
                    before = good(build, port, server.pid)
                    few = connections(server.pid)
                    attack = subprocess.Popen(
                        ["slowhttptest", "-c", str(slow), "-r", "2000", "-l", "600", "-p", "60", *how,
                         "-u", f"http://127.0.0.1:{port}/{'echo' if way == 'body' else ''}"],
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    try:
                        until = time.monotonic() + 60
                        while connections(server.pid) - few < 0.95 * slow and time.monotonic() < until:
                            time.sleep(0.2)
                        held = connections(server.pid) - few
                        during = good(build, port, server.pid)
                    finally:
                        attack.kill()
                        attack.wait()
                    while connections(server.pid) > few + 16:
                        time.sleep(0.1)
                    after = good(build, port, server.pid)
                    ratios.append(during / statistics.mean([before, after]))
                    print(f"slow {way}: {held} held; p99 {before:.0f} us before, {during:.0f} with them, "
                          f"{after:.0f} after", flush=True)
                print(f"slow {way}: ratio {statistics.median(ratios):.2f}", flush=True)
        finally:
            server.terminate()


main()
