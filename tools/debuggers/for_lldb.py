# SPDX-License-Identifier: MIT
"""lldb and libums: the fibers of a program or a core file.

    fiber list [REGEX]   all, or those whose line matches
    fiber ID             selects one: then bt, up and frame variable show it, until the program continues
    fiber bt ID..|all    call stacks
    fiber find REGEX     the fibers that are in a function, or wait for something, that matches

`command script import FILE` loads it. A parked fiber becomes a thread of lldb's when it is asked for, by
lldb's plug-in for operating systems; nothing of the program is changed, and its steps cost no more. The
layout of the fibers is what the program says itself: see src/runtime/root.hpp.
"""
import os
import re
import struct

import lldb

MASK = (1 << 64) - 1
at_process = None  # Whose memory is read. Set by each command.


class Refused(Exception):
    pass


class Unreadable(Exception):
    pass


def read(address, size):
    error = lldb.SBError()
    found = at_process.ReadMemory(address, size, error)
    if error.Fail() or len(found) != size:
        raise Unreadable(f"There is no memory at {address:#x}.")
    return found


def note_sections():
    target = at_process.GetTarget()
    for module in target.module_iter():
        section = module.FindSection(".note.ums")
        if section.IsValid() and (at := section.GetLoadAddress(target)) != lldb.LLDB_INVALID_ADDRESS:
            yield at, at + section.GetByteSize()


def function_at(address):
    context = at_process.GetTarget().ResolveLoadAddress(address)
    name = context.GetFunction().GetName() or context.GetSymbol().GetName() or f"{address:#x}"
    return name.replace("(anonymous namespace)::", "").split("(")[0].split("<")[0]


# INCLUDE fibers.py


def is_selected(fiber):
    return at_process.GetSelectedThread().GetThreadID() == NUMBERS_FROM + fiber.id


class OperatingSystemPlugIn:
    """Fibers as threads. lldb asks for each by itself (thread_of()), so no step reads all of them."""

    REGISTERS = ("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12",
                 "r13", "r14", "r15", "rip")  # In the order of their numbers in the unwind tables.
    GENERIC = {"rbp": "fp", "rsp": "sp", "rip": "pc"}

    def __init__(self, process):
        self.fibers = {}

    def get_register_info(self):
        registers = []
        for i, name in enumerate(self.REGISTERS):
            one = {"name": name, "bitsize": 64, "offset": 8 * i, "encoding": "uint", "format": "hex", "set": 0,
                   "gcc": i, "dwarf": i}
            if name in self.GENERIC:
                one["generic"] = self.GENERIC[name]
            registers.append(one)
        return {"sets": ["saved by a switch"], "registers": registers}

    def get_thread_info(self):
        return []

    def create_thread(self, number, _):
        self.fibers[number] = fiber = asked_for
        return {"tid": number, "name": fiber.name or f"fiber {fiber.id}", "state": "stopped", "stop_reason": "none"}

    def get_register_data(self, number):
        fiber = self.fibers[number]
        saved = {"rsp": fiber.sp, "rip": fiber.ip, "rbp": fiber.bp}
        return struct.pack(f"<{len(self.REGISTERS)}Q", *(saved.get(name, 0) for name in self.REGISTERS))


NUMBERS_FROM = 1 << 40  # Of these threads: the kernel's have none so high.
asked_for = None  # The fiber that create_thread() makes a thread of.


def thread_of(fiber):
    global asked_for
    if fiber.tid:
        thread = at_process.GetThreadByID(fiber.tid)
    elif fiber.state == "ended":
        raise Refused(f"{fiber.title()} has ended: it has no frames.")
    else:
        asked_for = fiber
        thread = at_process.CreateOSPluginThread(NUMBERS_FROM + fiber.id, fiber.at)
    if not thread.IsValid():
        raise Refused(f"There is no thread for {fiber.title()}.")
    return thread


class FiberCommand:
    def __init__(self, debugger, _):
        pass

    def get_short_help(self):
        return "The fibers of libums: list [REGEX], ID, bt ID..|all, find REGEX."

    def __call__(self, debugger, command, context, result):
        global at_process
        at_process = context.GetProcess()
        words = command.split(None, 1)
        verb, rest = words[0] if words else "", words[1] if len(words) > 1 else ""
        try:
            if not at_process.is_alive:
                raise Refused("There is no process.")
            if verb == "list":
                self.list(rest, result)
            elif verb == "bt" and re.fullmatch(r"all|\d+(\s+\d+)*", rest):
                self.backtrace(rest, result)
            elif verb == "find" and rest:
                self.find(rest, result)
            elif re.fullmatch(r"\d+", verb) and not rest:
                self.select(int(verb), result)
            else:
                raise Refused("Expected: fiber list [REGEX], fiber ID, fiber bt ID..|all, fiber find REGEX")
        except (Refused, Unreadable, re.error) as error:
            result.SetError(str(error))

    def list(self, pattern, result):
        picture = Picture()
        lines = [line_of(picture.fibers[number]) for number in sorted(picture.fibers)]
        lines = [line for line in lines if not pattern or re.search(pattern, line)]
        print(HEADING, *lines, f"{len(lines)} of {len(picture.fibers)} fibers", sep="\n", file=result)

    def select(self, number, result):
        fiber = Picture().one(number)
        thread = thread_of(fiber)
        at_process.SetSelectedThread(thread)
        print(fiber.summary(), thread.GetFrameAtIndex(0), sep="\n", file=result)

    def backtrace(self, numbers, result):
        picture = Picture()
        for number in sorted(picture.fibers) if numbers == "all" else map(int, numbers.split()):
            fiber = picture.one(number)
            print("\n" + fiber.summary(), file=result)
            try:
                print(*thread_of(fiber), sep="\n", file=result)
            except Refused as error:
                print(error, file=result)

    def find(self, pattern, result):
        def function_below(fiber, wanted):
            names = (frame.GetFunctionName() or "" for frame in thread_of(fiber))
            return next((name for name in names if wanted.search(name)), None)

        search(Picture(), pattern, function_below, lambda line: print(line, file=result))


def __lldb_init_module(debugger, _):
    for command in (f"command script add -o -c {__name__}.FiberCommand fiber",
                    f"settings set target.process.python-os-plugin-path {os.path.abspath(__file__)}",
                    # 63, the highest real-time signal, unless UMS_SIGNAL says otherwise.
                    "process handle --stop false --notify false --pass true SIGRTMAX-1"):
        debugger.GetCommandInterpreter().HandleCommand(command, lldb.SBCommandReturnObject())
