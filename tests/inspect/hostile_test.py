#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Looks at tests/inspect/hostile.cpp, which means ill to the command.

hostile_test.py UMS HOSTILE [NAME_OF_A_TEST...]
"""

import fcntl
import json
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

UMS = HOSTILE = ""
# For a command that hangs, and one that fills the memory. A sanitizer's own is beyond every bound.
SECONDS, BYTES = 60, 4 << 30


class HostileTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def start(self, *words):
        program = subprocess.Popen([HOSTILE, self.folder.name, *words], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end, program)
        return program, program.stdout.readline()

    @staticmethod
    def end(program):
        """With the child that it has not waited for."""
        children = []
        for tid in os.listdir(f"/proc/{program.pid}/task") if program.poll() is None else ():
            with open(f"/proc/{program.pid}/task/{tid}/children", encoding="utf-8") as file:
                children += map(int, file.read().split())
        program.kill()
        for child in children:
            os.kill(child, signal.SIGKILL)
        program.communicate()

    def ums(self, *words, code=0):
        done = subprocess.run([UMS, *map(str, words)], capture_output=True, text=True, timeout=SECONDS, check=False,
                              errors="replace",
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES)))
        self.assertEqual(done.returncode, code, done)
        self.assertNotRegex(done.stdout + done.stderr, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", words)
        return done

    def test_it_is_looked_at(self):
        program, ready = self.start()
        self.assertEqual(ready, "8 fibers\n")
        listed = json.loads(self.ums("ps", program.pid, "--json").stdout)["fibers"]
        self.assertEqual(len(listed), 8)
        text = {f["name"]: f.get("waits", {}).get("text") for f in listed}
        self.assertIn("held by 1 reader", text["writer"])
        self.assertIn(r"\x1b[31mpipe\x0afiber 77: parked", text["pipe"])
        self.assertIn(r"ums\x1b[31msocket-", text["socket"])
        lines = self.ums("ps", program.pid).stdout.splitlines()
        self.assertFalse(any(line.startswith("fiber 77") for line in lines), lines)
        # A name that would not fit into the memory stays as it is.
        stack = self.ums("stack", program.pid).stdout
        self.assertIn("    _Z1f1AIiiE", stack)
        self.assertIn("hostile.cpp:", stack)
        self.assertNotRegex(stack + "\n".join(lines), r"(?m)^fiber 7[78]")
        self.ums("ps", program.pid, "--match", "(.*)x")
        self.ums("top", program.pid, "--batch", "-n", "1", "--interval", "0.1", "--by", "fiber")
        self.ums("trace", "summary", program.pid, "--for", "0.1")
        files = [os.path.join(self.folder.name, name) for name in ("folded", "html", "chrome", "perfetto")]
        self.ums("profile", program.pid, "--seconds", "0.3", "--folded", files[0], "--html", files[1])
        for path, words in ((files[2], ["--chrome"]), (files[3], [])):
            self.ums("trace", program.pid, "--for", "0.2", "-o", path, *words)
        for path in files[:3]:
            with open(path, encoding="ascii") as file:
                self.assertNotRegex(file.read(), "[\x00-\x08\x0b-\x1f\x7f]")

    def test_a_thread_in_vfork_does_not_keep_the_others_stopped(self):
        program, _ = self.start()
        done = self.ums("stack", "--stop", program.pid)
        self.assertIn("did not stop", done.stderr)
        self.assertIn("hostile.cpp:", done.stdout)
        states = {}
        for tid in os.listdir(f"/proc/{program.pid}/task"):
            with open(f"/proc/{program.pid}/task/{tid}/stat", encoding="utf-8") as file:
                states[tid] = file.read().rsplit(")", 1)[1].split()[0]
        self.assertNotIn("t", states.values())
        self.assertIn("D", states.values())

    def test_a_thread_that_stops_late_is_let_go_while_the_output_waits(self):
        program, _ = self.start()
        into, out = os.pipe()
        os.set_blocking(into, False)
        with subprocess.Popen([UMS, "stack", "--stop", str(program.pid)], stdout=out,
                              stderr=subprocess.PIPE, text=True) as tool:
            os.close(out)
            self.assertIn("did not stop", tool.stderr.readline())
            self.assertIn("stood still", tool.stderr.readline())
            # The thread comes back from vfork() only now.
            late = next(tid for tid in os.listdir(f"/proc/{program.pid}/task")
                        if "D (" in self.status(program.pid, tid))
            self.kill_children(program)
            # It ends; stopped, it would not.
            while os.path.exists(f"/proc/{program.pid}/task/{late}"):
                self.assertNotIn("State:\tt", self.status(program.pid, late))
            tool.kill()
        os.close(into)

    @staticmethod
    def status(pid, tid):
        try:
            with open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8") as file:
                return file.read()
        except (FileNotFoundError, ProcessLookupError):
            return ""

    @staticmethod
    def kill_children(program):
        for tid in os.listdir(f"/proc/{program.pid}/task"):
            with open(f"/proc/{program.pid}/task/{tid}/children", encoding="utf-8") as file:
                for child in file.read().split():
                    os.kill(int(child), signal.SIGKILL)

    def test_without_the_reader_of_symbols_there_are_addresses(self):
        program, _ = self.start()
        into, out = os.pipe()
        fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, 4096)
        with subprocess.Popen([UMS, "stack", "--each", "--whole", str(program.pid)], stdout=out, stderr=subprocess.PIPE,
                              text=True) as tool, os.fdopen(into, encoding="utf-8") as text:
            os.close(out)
            begun = os.read(into, 1).decode()
            # By now there is more than fits into the pipe.
            with open(f"/proc/{tool.pid}/task/{tool.pid}/children", encoding="utf-8") as file:
                os.kill(int(file.read()), signal.SIGKILL)
            shown = begun + text.read()
            error = tool.stderr.read()
        self.assertEqual(tool.returncode, 0, error)
        self.assertIn("hostile.cpp:", shown)
        self.assertRegex(shown, r"\n    /\S+\+0x[0-9a-f]+\n")
        self.assertEqual(error, "ums: names and calls are missing: the program's files could not be read within "
                                "bounds of time and memory\n")

    def dump(self, maps, rings=b""):
        """A file as UMS_TRACE names it."""
        path = os.path.join(self.folder.name, "dump")
        with open(path, "wb") as file:
            file.write(b"umstrc1\0" + struct.pack("<QQqqq", 1, 2, 1, 2, 1) + rings)
            file.write(struct.pack("<QQQ16x", 2**64 - 1, 0, 0) + maps.encode())
        return path

    def test_a_dump_names_a_pipe(self):
        pipe = os.path.join(self.folder.name, "pipe")
        os.mkfifo(pipe)
        dump = self.dump(f"10000-20000 r-xp 00000000 00:00 1 {pipe}\n")
        self.ums("trace", dump, "-o", os.path.join(self.folder.name, "out"))
        self.ums("trace", "summary", dump)

    def test_a_dump_counts_to_the_end_of_numbers(self):
        for count, after in ((2**64 - 1, 0), (2**64 - 1, 2**64 - 1), (2**40, 1), (1, 2**64 - 2)):
            kept = min(count, 4)
            ring = struct.pack("<QQQ16x", 0, count, 4) + bytes(32 * kept) + struct.pack("<Q", after)
            self.ums("trace", "summary", self.dump("", ring))

    def test_a_trace_of_another_file_is_answered_in_one_line(self):
        path = os.path.join(self.folder.name, "trace")
        with open(path, "wb") as file:
            file.write(b"\x0a\xff\xff\xff\xff\x7f")
        os.truncate(path, 1 << 40)
        self.assertEqual(len(self.ums("trace", "summary", path, code=1).stderr.splitlines()), 1)

    def test_a_page_that_is_never_supplied_ends_the_look(self):
        program, ready = self.start("slow")
        if ready == "skip\n":
            self.skipTest("a page's supply needs a right that this test does not have")
        page = int(ready.split()[1], 16)
        program.stdout.readline()
        # The list of slabs seems to begin there.
        with open(f"/proc/{program.pid}/maps", encoding="utf-8") as file:
            base = int(next(line for line in file if "/hostile" in line).split("-")[0], 16)
        with open(HOSTILE, "rb") as file:
            image = file.read()
        self.assertIn(b"umsroot\0", image)
        with open(f"/proc/{program.pid}/mem", "r+b", buffering=0) as memory:
            slabs = self.place(memory, base, image, b"slabs")
            memory.seek(slabs)
            memory.write(struct.pack("<Q", page))
        begun = time.monotonic()
        done = self.ums("ps", program.pid, code=1)
        self.assertIn("keeps the reader of its memory waiting", done.stderr)
        self.assertLess(time.monotonic() - begun, SECONDS)

    @staticmethod
    def place(memory, base, image, name):
        """The address that the constant of libums has under this name, as the dynamic linker wrote it."""
        at = 0
        while True:
            at = image.index(b"umsroot\0", at)
            # The constant may lie in a segment whose address differs from its place in the file.
            for low in (0, 0x1000, 0x2000, 0x3000):
                try:
                    memory.seek(base + at + low)
                    found = memory.read(1024)
                except OSError:
                    continue
                entry = found.find(name + bytes(24 - len(name)))
                if not found.startswith(b"umsroot\0") or entry < 0:
                    continue
                address = struct.unpack("<Q", found[entry + 24:entry + 32])[0]
                try:  # The page may be mapped twice, once as it is in the file.
                    memory.seek(address)
                    memory.read(8)
                    return address
                except (OSError, OverflowError):
                    continue
            at += 1

    def test_a_signal_ends_a_trace(self):
        program, _ = self.start()
        tool = subprocess.Popen([UMS, "trace", str(program.pid), "-o", os.path.join(self.folder.name, "out")],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not self.catches(tool.pid, signal.SIGTERM):
            pass
        tool.send_signal(signal.SIGTERM)
        out, _ = tool.communicate(timeout=SECONDS)
        self.assertEqual(tool.returncode, 0, out)
        self.assertIn("records", out)

    @classmethod
    def catches(cls, pid, number):
        caught = re.search(r"SigCgt:\s*([0-9a-f]+)", cls.status(pid, pid))
        return caught is not None and int(caught[1], 16) >> number - 1 & 1


if __name__ == "__main__":
    UMS, HOSTILE = (os.path.abspath(path) for path in sys.argv[1:3])
    with open(UMS, "rb") as command:
        if b"__asan_init" in (code := command.read()) or b"__tsan_init" in code:
            BYTES = resource.RLIM_INFINITY
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
