# SPDX-License-Identifier: MIT
"""gdb and libums: the fibers of a program or a core file.

    info fibers [REGEX]        all, or those whose line matches
    fiber [ID|off]             which is selected; select one: then bt, up and locals show it
    fiber apply all|ID.. CMD   a command for each
    fiber find REGEX           the fibers that are in a function, or wait for something, that matches
    $_fiber()                  the id of the fiber that the selected thread runs, or 0: break F if $_fiber() == 7

It lies beside libums.so, under the name by which gdb loads it by itself (in Python: ldconfig complains of
other files there). A static program needs `source FILE`. The layout of the fibers is what the program
says itself: see src/runtime/root.hpp.
"""
import re
import struct

import gdb
import gdb.unwinder

# The highest real-time signal that nobody uses, unless the program or UMS_SIGNAL says otherwise.
gdb.execute("handle SIG63 nostop noprint pass", to_string=True)

Refused, Unreadable = gdb.GdbError, gdb.MemoryError


def read(address, size):
    return gdb.selected_inferior().read_memory(address, size).tobytes()


def note_sections():
    for line in gdb.execute("info files", to_string=True).splitlines():
        if found := re.match(r"\s*(0x[0-9a-f]+) - (0x[0-9a-f]+) is \.note\.ums(?: in .*)?$", line):
            yield int(found[1], 16), int(found[2], 16)


def function_at(address):
    block, name = gdb.block_for_pc(address), None
    while block and not block.is_static and not block.is_global:
        # Of inlined functions, the outermost.
        name = block.function.print_name if block.function else name
        block = block.superblock
    if name:
        return name.replace("(anonymous namespace)::", "").split("(")[0].split("<")[0]
    found = re.match(r"(.*) in section", gdb.execute(f"info symbol {address}", to_string=True))
    return re.sub(r" \+ \d+$", "", found[1]) if found else f"{address:#x}"


def own_number_of(thread):
    inferior = gdb.selected_inferior()
    is_live = inferior.connection is not None and inferior.connection.type == "native"
    return own_number(inferior.pid, thread.ptid[1]) if is_live else thread.ptid[1]


def is_selected(fiber):
    return selection.fiber is not None and selection.fiber.id == fiber.id


# INCLUDE fibers.py


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class Selection(gdb.unwinder.Unwinder):
    """Makes the selected fiber's frames the callers of the thread's own innermost one, which is hidden.

    Nothing of the program is changed: it works for core files, and there is nothing to undo."""

    def __init__(self):
        super().__init__("libums")
        self.fiber, self.thread, self.top = None, None, None

    def __call__(self, pending):
        if self.fiber is None or gdb.selected_thread() is None or gdb.selected_thread().num != self.thread:
            return None
        sp, pc = (int(pending.read_register(name)) % (1 << 64) for name in ("rsp", "rip"))
        if (sp, pc) != self.top:
            return None
        # Below the fiber's frames, as a callee is: else gdb takes the stack for a broken one.
        kind = pending.read_register("rsp").type
        info = pending.create_unwind_info(FrameId(gdb.Value(self.fiber.sp - 16).cast(kind), gdb.Value(pc).cast(kind)))
        for name, value in (("rsp", self.fiber.sp), ("rip", self.fiber.ip), ("rbp", self.fiber.bp)):
            info.add_saved_register(name, gdb.Value(value).cast(kind))
        return info

    def clear(self):
        if self.fiber is not None:
            self.fiber = None
            gdb.invalidate_cached_frames()

    def select(self, fiber):
        self.clear()
        if fiber.tid:
            for thread in gdb.selected_inferior().threads():
                if own_number_of(thread) == fiber.tid:
                    thread.switch()
                    gdb.newest_frame().select()
                    return
            raise gdb.GdbError(f"The thread {fiber.tid} of {fiber.title()} is not there.")
        if fiber.state == "ended":
            raise gdb.GdbError(f"{fiber.title()} has ended: it has no frames.")
        newest = gdb.newest_frame()
        mask = (1 << 64) - 1
        self.top = (int(newest.read_register("rsp")) & mask, int(newest.read_register("rip")) & mask)
        self.thread = gdb.selected_thread().num
        self.fiber = fiber
        gdb.invalidate_cached_frames()
        caller = gdb.newest_frame().older()
        if caller is None:
            self.clear()
            raise gdb.GdbError(f"The frames of {fiber.title()} cannot be read.")
        caller.select()


selection = Selection()
gdb.unwinder.register_unwinder(None, selection, replace=True)
gdb.events.cont.connect(lambda _: selection.clear())
gdb.events.exited.connect(lambda _: selection.clear())


class HideThread:
    """A frame filter: bt of a selected fiber begins with the fiber's own frames."""

    def __init__(self):
        self.name, self.priority, self.enabled = "libums", 100, True
        gdb.frame_filters[self.name] = self

    def filter(self, frames):
        for frame in frames:
            if selection.fiber is None or frame.inferior_frame().level() != 0:
                yield frame


HideThread()


class InfoFibers(gdb.Command):
    """List the fibers, or those whose line matches a regular expression."""

    def __init__(self):
        super().__init__("info fibers", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        picture = Picture()
        shown = 0
        print(HEADING)
        for number in sorted(picture.fibers):
            line = line_of(picture.fibers[number])
            if not argument or re.search(argument, line):
                print(line)
                shown += 1
        print(f"{shown} of {len(picture.fibers)} fibers")


class InfoWorkers(gdb.Command):
    """List the workers and schedulers of the UMS API."""

    STATES = ("none", "suspended", "ready", "dequeued", "running", "blocked", "terminated", "?")

    def __init__(self):
        super().__init__("info workers", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        print("  {:>18} {:10} {:>8} {:>10} {:>18}  {}".format("Context", "State", "Thread", "Switches",
                                                             "Executed by", "In"))
        for root in Layout.roots(2):
            how = Layout.__new__(Layout)
            how.load(root, b"umswork\0")
            table = how.places["contexts"] + how["contexts.blocks"]
            for block in range(how["contexts.blocks_most"]):
                if (first := word(table + 8 * block)) == 0:
                    break
                for i in range(how["contexts.per_block"]):
                    self.show(how, first + i * how["context.size"])

    def show(self, how, at):
        handle, is_scheduler = word(at + how["context.self"]), word(at + how["context.scheduler"]) != 0
        if handle == 0 or not (is_scheduler or word(at + how["context.worker"])):
            return
        flags = half(at + how["context.state"])
        number = flags & how["context.state_mask"]
        partner, place = word(at + how["context.partner"]), ""
        if not is_scheduler and 1 <= number <= 3 and not flags & how["context.locked"]:
            place = function_at(word(at + how["context.ip"])) if word(at + how["context.ip"]) else ""
        print("  {:#18x} {:10} {:8} {:10} {:>18}  {}".format(
            handle, "scheduler" if is_scheduler else self.STATES[number % 8],
            half(at + how["context.tid"]), word(at + how["context.switches"]),
            "-" if is_scheduler else f"{partner:#x}", place))


class FiberCommand(gdb.Command):
    """Select a fiber, or show which is: fiber [ID|off]."""

    def __init__(self):
        super().__init__("fiber", gdb.COMMAND_STACK, gdb.COMPLETE_NONE, True)

    def invoke(self, argument, from_tty):
        if not argument:
            print(f"{selection.fiber.title()} is selected" if selection.fiber else "No fiber is selected.")
        elif argument == "off":
            selection.clear()
        elif re.fullmatch(r"\d+", argument):
            fiber = Picture().one(int(argument))
            selection.select(fiber)
            print(fiber.summary())
            gdb.execute("frame")
        else:
            raise gdb.GdbError("Expected: fiber [ID|off], fiber apply, fiber find; see help fiber.")


class FiberApply(gdb.Command):
    """A command for each fiber: fiber apply all|ID.. COMMAND."""

    def __init__(self):
        super().__init__("fiber apply", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        parts = re.fullmatch(r"(all|\d+(?:\s+\d+)*)\s+(.+)", argument)
        if not parts:
            raise gdb.GdbError("Expected: fiber apply all|ID.. COMMAND")
        picture = Picture()
        numbers = sorted(picture.fibers) if parts[1] == "all" else [int(n) for n in parts[1].split()]
        before = gdb.selected_thread()
        try:
            for number in numbers:
                fiber = picture.one(number)
                print("\n" + fiber.summary())
                try:
                    selection.select(fiber)
                    gdb.execute(parts[2])
                except gdb.error as error:
                    print(error)
                finally:
                    selection.clear()
        finally:
            if before is not None:
                before.switch()


class FiberFind(gdb.Command):
    """The fibers with a frame, a name or a wait that matches: fiber find REGEX."""

    def __init__(self):
        super().__init__("fiber find", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        if not argument:
            raise gdb.GdbError("Expected: fiber find REGEX")
        before = gdb.selected_thread()
        try:
            search(Picture(), argument, self.function_below, lambda line: print(line, flush=True))
        finally:
            if before is not None:
                before.switch()

    @staticmethod
    def function_below(fiber, pattern):
        try:
            selection.select(fiber)
            frame = gdb.selected_frame()
            while frame is not None:
                if pattern.search(frame.name() or ""):
                    return frame.name()
                frame = frame.older()
        except (gdb.error, gdb.GdbError):
            pass
        finally:
            selection.clear()
        return None


class CurrentFiber(gdb.Function):
    """The id of the fiber that the selected thread runs, or 0."""

    def __init__(self):
        super().__init__("_fiber")

    def invoke(self):
        how = Layout()
        thread = gdb.selected_thread()
        number = own_number_of(thread) if thread is not None else 0
        cluster = word(how.places["clusters"])
        while cluster != 0 and number != 0:
            at = word(cluster + how["cluster.carriers"])
            while at != 0:
                fiber = word(at + how["carrier.running"])
                if fiber != 0 and half(at + how["carrier.tid"]) == number:
                    return word(fiber + how["fiber.id"])
                at = word(at + how["carrier.next"])
            cluster = word(cluster + how["cluster.next"])
        return 0


InfoFibers()
InfoWorkers()
FiberCommand()
FiberApply()
FiberFind()
CurrentFiber()
