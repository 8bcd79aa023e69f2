#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What slow clients cost a good one.

Clients of slowhttptest send the headers of a request, or a body, a few bytes at a time, or read an answer so. The p99
of a good client (16 connections, one request after the other) is taken before them, with them and after they have gone; and each time at a second server, too, which has no slow clients. slowhttptest itself
takes a part of the CPUs, from both servers: the second ratio is without that.
"""

import argparse
import json
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import time

WAYS = {"headers": ["-H", "-i", "5"], "body": ["-B", "-i", "5", "-s", "8192"], "read": ["-X", "-w", "512", "-y", "1024", "-n", "5", "-z", "32", "-k", "3"]}


def command(build, server):
    if server == "epoll":
        return [build / "bench/http-epoll"]
    return [build / "examples/http-server", "-l", "127.0.0.1", "-p", "0", "-t", "1",
            "--header-timeout", "600", "--body-timeout", "600", "--write-timeout", "600"]


class Server:
    def __init__(self, build, server):
        self.client = build / "bench/http-client"
        self.process = subprocess.Popen(command(build, server), stdout=subprocess.PIPE, text=True)
        self.port = re.search(r"(\d+)$", self.process.stdout.readline().strip()).group(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def p99(self):
        answer = subprocess.run([self.client, f"port={self.port}", f"server={self.process.pid}", "connections=16",
                                 "pipeline=1", "ms=1500"], check=True, capture_output=True, text=True)
        return json.loads(answer.stdout)["p99_us"]

    def connections(self):
        return sum(1 for _ in pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir())


def cpu_seconds(process):
    """By the clock of the process's CPU time (see clock_getcpuclockid)."""
    return time.clock_gettime((~process.pid << 3) | 2)


def attack(way, slow, port):
    return subprocess.Popen(["slowhttptest", "-c", str(slow), "-r", "2000", "-l", "600", "-p", "60", *WAYS[way],
                             "-u", f"http://127.0.0.1:{port}/{'echo' if way == 'body' else ''}"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def compare(way, slow, rounds, attacked, other):
    pairs = lambda: [(attacked.p99(), other.p99()) for _ in range(rounds)]
    quiet = pairs()
    few = attacked.connections()
    clients = attack(way, slow, attacked.port)
    try:
        until = time.monotonic() + 60
        while attacked.connections() - few < 0.95 * slow and time.monotonic() < until:
            time.sleep(0.2)
        held, begun, before = attacked.connections() - few, time.monotonic(), cpu_seconds(clients)
        loaded = pairs()
        cpu = (cpu_seconds(clients) - before) / (time.monotonic() - begun)
        held = min(held, attacked.connections() - few)
    finally:
        clients.kill()
        clients.wait()
    while attacked.connections() > few + 16:
        time.sleep(0.1)
    quiet += pairs()
    alone = statistics.median(here for here, _ in quiet)
    here, there = (statistics.median(column) for column in zip(*loaded))
    beside = statistics.median(a / b for a, b in loaded)
    print(f"slow {way}: {held} held; p99 {alone:.0f} us without them, {here:.0f} with them, {there:.0f} at the same time "
          f"where there are none; slowhttptest takes {100 * cpu:.0f} % of a CPU", flush=True)
    print(f"slow {way}: ratio {here / alone:.2f}; to the server that has none {beside:.2f}", flush=True)


def positive(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a number from 1, got '{text}'")
    return int(text)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("build", type=pathlib.Path, help="a build's folder, such as build/release")
    options.add_argument("slow", type=positive, nargs="?", default=4000, help="how many slow clients (4000)")
    options.add_argument("rounds", type=positive, nargs="?", default=5, help="how often each p99 is taken (5)")
    options.add_argument("server", choices=["http-server", "epoll"], nargs="?", default="http-server",
                         help="epoll: the hand-written loop")
    given = options.parse_args()
    for program in (command(given.build, given.server)[0], given.build / "bench/http-client", "slowhttptest"):
        if not shutil.which(program):
            options.error(f"{program}: no such program")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with Server(given.build, given.server) as attacked, Server(given.build, given.server) as other:
        for way in WAYS:
            compare(way, given.slow, given.rounds, attacked, other)


main()
