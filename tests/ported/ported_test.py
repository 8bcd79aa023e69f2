#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds a program of Debian twice, as it is and by the names of libums, and compares what the two say.

ported_test.py PROGRAM FOLDER CC LIBRARY    microsocks, civetweb or tinyproxy

No line of it is changed: -include brings the names, and start.c starts the runtime before main(). Skipped where
apt gives no sources."""

import concurrent.futures
import contextlib
import http.server
import os
import re
import socket
import socketserver
import subprocess
import sys
import threading
import time

import sources

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SKIPPED = 77
AT_ONCE = 40

# The files of FOLDER/data.
FILES = {"small.txt": b"hello\n", "large.bin": bytes(range(256)) * 4000, "empty.txt": b"",
         "folder/inner.html": b"<p>inner</p>\n"}


def run(*command, **more):
    made = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, **more)
    if made.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{made.stdout[-3000:]}")


# --- Building -------------------------------------------------------------------------------------

def flags(kind):
    if kind == "native":
        return ["-O2", "-g"]
    names = ["-D_GNU_SOURCE=", "-DUMS_PTHREAD_NAMES", "-DUMS_IO_NAMES", "-I", os.path.join(ROOT, "include")]
    return ["-O2", "-g", *names, "-include", "ums/ums_posix.h", "-include", "ums/ums_pthread.h"]


def libraries(kind, library):
    if kind == "native":
        return ["-lpthread"]
    include = os.path.join(ROOT, "include")
    start = os.path.join(ROOT, "tests/posix/start.c")
    return ["-I", include, start, library, "-Wl,-rpath," + os.path.dirname(library), "-lpthread"]


def with_cc(compiler, source, files, to, kind, library, *more):
    """Compiles the files with the names, start.c without."""
    objects = []
    for name in files:
        objects.append(f"{to}.{os.path.basename(name)}.o")
        run(compiler, *flags(kind), *more, "-w", "-c", os.path.join(source, name), "-o", objects[-1])
    run(compiler, *objects, *libraries(kind, library), "-ldl", "-o", to)


def build_microsocks(compiler, source, to, kind, library):
    files = [name for name in sorted(os.listdir(source)) if name.endswith(".c")]
    with_cc(compiler, source, files, to, kind, library, "-std=c99")


def build_civetweb(compiler, source, to, kind, library):
    with_cc(compiler, source, ["src/civetweb.c", "src/main.c"], to, kind, library, "-DNO_SSL",
            "-I" + os.path.join(source, "include"))


def build_tinyproxy(compiler, source, to, kind, library):
    folder = to + ".build"
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(os.path.join(folder, "config.h")):
        run(os.path.join(source, "configure"), "--disable-manpage_support", "CC=" + compiler, cwd=folder)
    files = [name for name in sorted(os.listdir(os.path.join(source, "src"))) if name.endswith(".c")]
    # At its end it interrupts the threads of open connections by signals, which fibers do not get.
    no_kill = os.path.join(folder, "no_kill.c")
    with open(no_kill, "w", encoding="utf-8") as file:
        file.write("int ums_pthread_kill_is_not_there(void) { return 0; }\n")
    files.append(no_kill)
    where = [f'-D{name}="{folder}"' for name in ("SYSCONFDIR", "LOCALSTATEDIR")]
    with_cc(compiler, os.path.join(source, "src"), files, to, kind, library, "-DHAVE_CONFIG_H", "-I" + folder,
            *where)


# --- Running --------------------------------------------------------------------------------------

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def connect(port):
    return socket.create_connection(("127.0.0.1", port))


@contextlib.contextmanager
def running(command, port, log):
    with open(log, "wb") as to:
        # The kernel threads are counted, so their number must not depend on the machine's CPUs.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=to, stderr=to,
                                   env=os.environ | {"UMS_PROCESSORS": "2"})
        try:
            while True:
                if process.poll() is not None:
                    sys.exit(f"{command} ended with {process.returncode}; {log} says why")
                try:
                    connect(port).close()
                    break
                except ConnectionRefusedError:
                    time.sleep(0.01)  # It does not say that it listens.
            yield process
            if process.poll() is not None:
                sys.exit(f"{command} ended with {process.returncode}; {log} says why")
        finally:
            process.kill()
            process.wait()


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)


class Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(handler):
    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 128

    with Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def to_its_end(s):
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while data := s.recv(65536):
            got += data
    return got


def exactly(s, count):
    got = b""
    while len(got) < count and (data := s.recv(count - len(got))):
        got += data
    return got


def ask(port, request):
    with connect(port) as s:
        s.sendall(request)
        return re.sub(rb"\r\n(Date|Last-Modified): [^\r]*", b"", to_its_end(s))


def echoed(s, size):
    """Whether that many bytes come back."""
    sent = os.urandom(size)
    sender = threading.Thread(target=s.sendall, args=(sent,))
    sender.start()
    got = exactly(s, size)
    sender.join()
    return got == sent


def kernel_threads(process, log):
    """How many it has while all connections are open. By names: as soon as those have ended that were made for a
    fiber that blocked on its way, and that nobody needs any more."""
    while True:
        count = len(os.listdir(f"/proc/{process.pid}/task"))
        if count < AT_ONCE // 2 or not log.endswith("names.out"):
            return count
        time.sleep(0.05)  # They say nothing when they end.


def all_at_once(call):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda _: call(), range(AT_ONCE)))


# --- What is said to each -------------------------------------------------------------------------

def socks(port, address, expect=10):
    s = connect(port)
    s.sendall(b"\5\1\0")
    assert exactly(s, 2) == b"\5\0"
    s.sendall(b"\5\1\0" + address)
    return s, exactly(s, expect)


def talk_to_microsocks(program, folder, log):
    port = free_port()
    with serving(Echo) as echo, running([program, "-i", "127.0.0.1", "-p", str(port)], port, log) as process:
        here = b"\1\x7f\0\0\1" + echo.to_bytes(2, "big")
        name = b"\3\x09localhost" + echo.to_bytes(2, "big")
        nobody = b"\1\x7f\0\0\1" + free_port().to_bytes(2, "big")

        def through(address, size=200_000):
            s, answer = socks(port, address)
            with s:
                return answer, echoed(s, size)

        yield "by address", through(here)
        yield "by name", through(name)
        yield "refused", socks(port, nobody)[1]
        yield "no such name", socks(port, b"\3\x0fno.such.invalid\0\1")[1]
        for what, greeting in (("no method", b"\5\1\2"), ("version 4", b"\4\1\0"), ("cut off", b"\5")):
            with connect(port) as s:
                s.sendall(greeting)
                s.shutdown(socket.SHUT_WR)
                yield what, to_its_end(s)
        with connect(port) as s:
            s.sendall(b"\5\1\0")
            exactly(s, 2)
            s.sendall(b"\5\2\0" + here)
            yield "bind", exactly(s, 10)
        yield "many", all_at_once(lambda: through(here))
        open_ones = [socks(port, here)[0] for _ in range(AT_ONCE)]
        yield "threads", kernel_threads(process, log)
        yield "still there", [echoed(s, 1000) for s in open_ones]
        for s in open_ones:
            s.close()


def talk_to_civetweb(program, folder, log):
    port = free_port()
    command = [program, "-listening_ports", f"127.0.0.1:{port}", "-document_root", os.path.join(folder, "data"),
               "-num_threads", str(AT_ONCE), "-enable_keep_alive", "yes"]
    with running(command, port, log) as process:
        for path in ("small.txt", "large.bin", "empty.txt", "", "folder", "folder/inner.html", "none", "../../etc/passwd"):
            for method in (b"GET", b"HEAD", b"OPTIONS", b"NONSENSE"):
                yield f"{method.decode()} {path}", ask(port, method + b" /" + path.encode() + b" HTTP/1.0\r\n\r\n")
        part = b"GET /large.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=100-299\r\nConnection: close\r\n\r\n"
        yield "a range", ask(port, part)
        yield "two in one", ask(port, b"GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n" + part)
        yield "cut off", ask(port, b"\r\n\r\n")
        yield "many", all_at_once(lambda: ask(port, b"GET /large.bin HTTP/1.0\r\n\r\n"))
        yield "threads", kernel_threads(process, log)


def talk_to_tinyproxy(program, folder, log):
    port = free_port()
    config = log + ".conf"
    with open(config, "w", encoding="utf-8") as file:
        file.write(f'Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 200\nLogFile "{log}.log"\n')
    os.chdir(os.path.join(folder, "data"))
    with serving(Files) as web, serving(Echo) as echo, running([program, "-d", "-c", config], port, log) as process:
        site = f"http://127.0.0.1:{web}/".encode()

        def hide(answer):
            return re.sub(rb"127\.0\.0\.1:\d+", b"(here)", answer)

        def get(path, method=b"GET", headers=b""):
            return hide(ask(port, method + b" " + site + path + b" HTTP/1.0\r\n" + headers + b"\r\n"))

        for path in (b"small.txt", b"large.bin", b"empty.txt", b"folder/inner.html", b"none"):
            yield f"GET {path.decode()}", get(path)
            yield f"HEAD {path.decode()}", get(path, b"HEAD")
        yield "POST", get(b"small.txt", b"POST", b"Content-Length: 3\r\n\r\nabc")
        yield "refused", re.sub(rb"\d+", b"", ask(port, b"GET http://127.0.0.1:1/ HTTP/1.0\r\n\r\n"))
        yield "nonsense", ask(port, b"nonsense\r\n\r\n")
        yield "no such name", ask(port, b"GET http://no.such.invalid/ HTTP/1.0\r\n\r\n")

        def tunnel():
            s = connect(port)
            s.sendall(f"CONNECT 127.0.0.1:{echo} HTTP/1.0\r\n\r\n".encode())
            answer = b""
            while not answer.endswith(b"\r\n\r\n") and (byte := s.recv(1)):
                answer += byte
            return s, answer

        s, answer = tunnel()
        with s:
            yield "CONNECT", (answer, echoed(s, 200_000))
        yield "many", all_at_once(lambda: get(b"large.bin"))
        open_ones = [tunnel()[0] for _ in range(AT_ONCE)]
        yield "threads", kernel_threads(process, log)
        yield "still there", [echoed(s, 1000) for s in open_ones]
        for s in open_ones:
            s.close()


PROGRAMS = {
    "microsocks": (build_microsocks, talk_to_microsocks),
    "civetweb": (build_civetweb, talk_to_civetweb),
    "tinyproxy": (build_tinyproxy, talk_to_tinyproxy),
}


def main(program, folder, compiler, library):
    build, talk = PROGRAMS[program]
    os.makedirs(folder, exist_ok=True)
    source = sources.obtain(program, folder)
    if source is None:
        print(f"skipped: apt gives no sources of {program}")
        return SKIPPED
    for name, content in FILES.items():
        path = os.path.join(folder, "data", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
    said = {}
    for kind in ("native", "names"):
        to = os.path.join(folder, kind)
        build(compiler, source, to, kind, library)
        said[kind] = dict(talk(to, folder, to + ".out"))
    native, names = said["native"], said["names"]
    threads = native.pop("threads"), names.pop("threads")
    complaints = [f"{what}: {native[what]!r:.400}\n   by names: {names.get(what)!r:.400}"
                  for what in native if native[what] != names.get(what)]
    if threads[0] < AT_ONCE or threads[1] >= AT_ONCE // 2:
        complaints.append(f"kernel threads: {threads[0]} natively, {threads[1]} by names")
    for complaint in complaints:
        print(complaint)
    print(f"{program}: {len(native)} answers, {len(complaints)} differ; kernel threads {threads[0]} and {threads[1]}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
