#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures one server once: starts it on one CPU and its load on another, and answers as a peer does.

measure.py bench=http runtime=nginx connections=256 pipeline=1 ms=2000

Everything listens on 127.0.0.1 at a port that nobody else has. The server and the load are ended before the
answer is written, and die with this program whatever happens to it: they are told to when its life ends, and
stay in its process group.

The load is a program of our own (bench/BENCH/client.cpp). It takes the server's CPU time itself, over a window
inside of its run, and counts what was answered in it. client=wrk, for http, is wrk instead, to compare with:
- Its window is its whole run: the CPU time from before the first connection to after the last has ended, and
  all requests that were answered meanwhile.
- It has no percentiles of pipelined requests (its correction for omitted requests takes each response of a
  batch for one of its own, and breaks), and those of single ones are corrected.
- It makes all connections at once: with thousands, more than a server's backlog.
client=ums, for echo, is the same load on fibers.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
START_S = 60  # For a server to listen.
PAGE = os.sysconf("SC_PAGESIZE")
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1


class Failure(Exception):
    """Ends the program with one line."""


def arguments():
    """The key=value words of the command line; as for every peer, the later of two counts."""
    given = {"ms": "2000", "pipeline": "1", "way": "", "client": "own", "processors": "2"}
    for word in sys.argv[1:]:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise Failure(f"expected key=value, got '{word}'")
        given[key] = value
    known = {"bench", "runtime", "connections", "pipeline", "way", "client", "ms", "processors"}
    for key in given:
        if key not in known:
            raise Failure(f"unknown argument '{key}'")
    for key in ("bench", "runtime", "connections"):
        if key not in given:
            raise Failure(f"expected {key}=")
    for key in ("connections", "pipeline", "ms"):
        if not given[key].isdecimal() or not 0 < int(given[key]) <= 1_000_000:
            raise Failure(f"{key}={given[key]}: expected a number from 1 to 1000000")
        given[key] = int(given[key])
    clients = ["own"] + [client for bench, client in (("http", "wrk"), ("echo", "ums")) if bench == given["bench"]]
    if given["client"] not in clients:
        raise Failure(f"client={given['client']}: expected one of {', '.join(clients)}")
    return given


def raise_descriptor_limit(needed):
    """A process of root may raise its hard limit; any may use all of it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < needed:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, needed))
            return
        except (ValueError, OSError):
            raise Failure(f"it needs {needed} descriptors in one process, and the limit (ulimit -Hn) is "
                          f"{hard}") from None
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(needed, hard)), hard))


def cpus():
    """Of the server and of the load: the last two, because the first take most interrupts."""
    available = sorted(os.sched_getaffinity(0))
    return available[-1], available[-2 if len(available) > 1 else -1]


class Child:
    """A program on one CPU. Its output is read as it comes; the last lines are kept."""

    def __init__(self, command, cpu, **environment):
        def before():
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.sched_setaffinity(0, {cpu})

        one = {"GOMAXPROCS": "1", "UMS_PROCESSORS": "1"}
        self.name = os.path.basename(command[0])
        self.lines = []
        self.ready = threading.Event()
        self.pattern = None
        self.found = None
        self.process = subprocess.Popen(
            [str(word) for word in command], preexec_fn=before, env={**os.environ, **one, **environment},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        if self.reader.ident:
            self.reader.join()
        self.process.stdout.close()

    def read(self):
        for line in self.process.stdout:
            self.lines = self.lines[-50:] + [line.rstrip("\n")]
            if self.pattern and not self.found:
                self.found = re.search(self.pattern, line)
                if self.found:
                    self.ready.set()
        self.ready.set()

    def start(self, pattern=None):
        """Reads on until a line matches, if there is a pattern. Returns the match."""
        self.pattern = pattern
        self.reader.start()
        if not pattern:
            return None
        if not self.ready.wait(START_S) or not self.found:
            self.complain("did not begin to listen")
        return self.found

    def complain(self, what):
        said = [line for line in self.lines if line.strip()]
        raise Failure(f"{self.name} {what}" + (f": {said[-1]}" if said else ""))

    def cpu_ns(self):
        """All CPU time of the process, by its clock (see clock_getcpuclockid)."""
        return time.clock_gettime_ns((~self.process.pid << 3) | 2)

    def resident_bytes(self):
        return int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * PAGE

    def end(self):
        """Waits for a program that ends by itself, and returns the last line it said."""
        status = self.process.wait()
        self.reader.join()
        if status != 0:
            self.complain(f"was killed by signal {-status}" if status < 0 else f"failed with {status}")
        return self.lines[-1] if self.lines else ""


def installed(program):
    path = shutil.which(program, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/usr/local/sbin")
    if not path:
        raise Failure(f"{program} is not installed")
    return path


def built(program):
    """A program of this project: beside this one, or an example of the same build."""
    for folder in (HERE, HERE.parent / "examples"):
        if os.access(folder / program, os.X_OK):
            return folder / program
    raise Failure(f"{program} is not there")


NGINX = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr notice;
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    keepalive_timeout 1h;
    keepalive_requests 1000000000;
    default_type text/plain;
    server {{
        listen 127.0.0.1:{port} reuseport backlog=4096;
        location / {{ return 200 "Hello, World!"; }}
    }}
}}
"""


def start_nginx(cell, cpu, folder):
    """One process, which is a worker: with a master beside it, the worker would outlive a master that was killed.

    nginx cannot choose a free port, so one is kept for it by a socket that is bound and does not listen. It closes
    idle connections when few of those it may have are left, so it may have many more.
    """
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    kept.bind(("127.0.0.1", 0))
    port = kept.getsockname()[1]
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port, connections=2 * cell["connections"] + 100))
    server = Child([installed("nginx"), "-e", "stderr", "-p", folder, "-c", config], cpu)
    server.kept = kept
    return server, lambda: server.start("event method") and port


def start_memcached(cell, cpu, folder):
    """It writes its port into a file, under another name until it is complete, and says nothing."""
    file = folder / "port"
    server = Child([installed("memcached"), "-l", "127.0.0.1", "-p", "-1", "-U", "0", "-t", "1", "-m", "1024",
                    "-c", cell["connections"] + 100, *(["-u", "root"] if os.geteuid() == 0 else [])],
                   cpu, MEMCACHED_PORT_FILENAME=str(file))

    def port():
        server.start()
        until = time.monotonic() + START_S
        while time.monotonic() < until and server.process.poll() is None:
            if file.exists():
                return int(re.search(r"TCP INET: (\d+)", file.read_text()).group(1))
            time.sleep(0.002)
        server.complain("did not begin to listen")

    return server, port


def own_server(cell):
    """The servers of examples/, as their users start them."""
    where = ["-l", "127.0.0.1", "-p", "0" if cell["bench"] == "http" else "-1", "-t", "1"]
    if cell["bench"] == "http":
        return [built("http-server"), *where]
    if cell["bench"] == "memcached":
        return [built("memcached-server"), *where, "-m", "1024", "-c", cell["connections"] + 100]
    return [built("echo-ums")]


def start_server(cell, cpu, folder):
    """The server, and a function that starts to read what it says and returns its port."""
    bench, runtime = cell["bench"], cell["runtime"]
    if runtime == "nginx":
        return start_nginx(cell, cpu, folder)
    if runtime == "memcached":
        return start_memcached(cell, cpu, folder)
    if runtime == "node":
        command = [installed("node"), HERE / f"{bench}-node.js"]
    else:
        command = own_server(cell) if runtime == "ums" else [built(f"{bench}-{runtime.replace('.', '_')}")]
    server = Child(command, cpu)
    return server, lambda: int(server.start(r"listening on 127\.0\.0\.1:(\d+)").group(1))


WRK = """
function init(args)
    local all = {}
    for i = 1, PIPELINE do all[i] = wrk.format() end
    batch = table.concat(all)
end
if PIPELINE > 1 then
    function request() return batch end
end
function done(summary, latency, requests)
    local e = summary.errors
    io.write(string.format('{"requests":%d,"us":%d,"p50":%d,"p99":%d,"p999":%d,"errors":%d}\\n', summary.requests,
        summary.duration, latency:percentile(50), latency:percentile(99), latency:percentile(99.9),
        e.connect + e.read + e.write + e.status + e.timeout))
end
"""


def load_wrk(cell, cpu, folder, server, port):
    script = folder / "load.lua"
    script.write_text(WRK.replace("PIPELINE", str(cell["pipeline"])))
    rss, cpu_ns = server.resident_bytes(), server.cpu_ns()
    with Child([installed("wrk"), "-t1", f"-c{cell['connections']}", "-d600s", "--timeout", "30s", "-s", script,
                f"http://127.0.0.1:{port}/"], cpu) as wrk:
        wrk.start()
        # The time is over when its signal comes; a load that ends before has failed.
        try:
            wrk.process.wait(cell["ms"] / 1000)
            wrk.complain("ended too early")
        except subprocess.TimeoutExpired:
            pass
        rss = server.resident_bytes() - rss
        wrk.process.send_signal(signal.SIGINT)
        answer = json.loads(wrk.end())
    cpu_ns = server.cpu_ns() - cpu_ns
    if answer["errors"]:
        raise Failure(f"wrk counts {answer['errors']} errors")
    if answer["requests"] == 0:
        raise Failure("wrk got no response")
    figures = {
        "ops_per_s": round(answer["requests"] / answer["us"] * 1e6, 1),
        "cpu_us_per_request": round(cpu_ns / 1000 / answer["requests"], 4),
        "bytes_per_connection": round(rss / cell["connections"], 1),
    }
    if cell["pipeline"] == 1:
        figures |= {"p50_us": answer["p50"], "p99_us": answer["p99"], "p999_us": answer["p999"]}
    return figures


def load_own(cell, cpu, folder, server, port):
    words = [f"{key}={cell[key]}" for key in ("connections", "pipeline", "ms", "way") if cell[key]]
    with Child([built(f"{cell['load']}-{'ums_' if cell['client'] == 'ums' else ''}client"), f"port={port}", f"server={server.process.pid}", *words],
               cpu) as load:
        load.start()
        return json.loads(load.end())


def measure(cell):
    raise_descriptor_limit(cell["connections"] + 200)
    server_cpu, load_cpu = cpus()
    load = load_wrk if cell["client"] == "wrk" else load_own
    # The idle connections are those of the echo servers.
    cell["load"] = cell["bench"]
    if cell["bench"] == "connections":
        cell["bench"] = cell["load"] = "echo"
        cell["way"] = "idle"
    with contextlib.ExitStack() as last:
        folder = None
        if cell["client"] == "wrk" or cell["runtime"] in ("nginx", "memcached"):
            folder = pathlib.Path(last.enter_context(tempfile.TemporaryDirectory(prefix="ums-bench-")))
        server, listens = start_server(cell, server_cpu, folder)
        with server:
            figures = load(cell, load_cpu, folder, server, listens())
            if server.process.poll() is not None:
                server.complain("ended under its load")
        return figures


def main():
    # A signal ends it like an exception, so that the folder is removed and the children end.
    def stop(number, _):
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, stop)
    try:
        print(json.dumps(measure(arguments()), separators=(",", ":")))
    except (Failure, OSError) as error:
        sys.exit(" ".join(str(error).split()))


main()
