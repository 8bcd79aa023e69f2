# SPDX-License-Identifier: MIT
"""gdb and libums: the fibers of a program or a core file.

    info fibers [REGEX]        all, or those whose line matches
    fiber [ID|off]             which is selected; select one: then bt, up and locals show it
    fiber apply all|ID.. CMD   a command for each
    fiber find REGEX           the fibers that are in a function, or wait for something, that matches
    $_fiber()                  the id of the fiber that the selected thread runs, or 0: break F if $_fiber() == 7

It lies beside libums.so, under the name by which gdb loads it by itself (in Python: ldconfig complains of
other files there). A static program needs `source FILE`. The layout of the fibers is what the program
says itself: see src/rt/root.hpp.
"""
import re
import struct

import gdb
import gdb.unwinder

# The highest real-time signal that nobody uses, unless the program or UMS_SIGNAL says otherwise.
gdb.execute("handle SIG63 nostop noprint pass", to_string=True)

VERSION = 2  # Of the constant ums_root.
KINDS = ["", "mutex", "shared_mutex (write)", "shared_mutex (read)", "semaphore", "condition variable",
         "send into channel", "receive from channel", "select", "latch, event or wait group", "barrier",
         "call_once", "scope", "future", "read from descriptor", "write to descriptor", "off-load",
         "name to be resolved", "free descriptor number", "carrier"]
NUMBERS = (8, 14, 15)  # Of these the mark holds no address.


def read(address, size):
    return gdb.selected_inferior().read_memory(address, size).tobytes()


def word(address):
    return struct.unpack("<Q", read(address, 8))[0]


def half(address):
    return struct.unpack("<I", read(address, 4))[0]


def text(address, most=256):
    found = b""
    while len(found) < most and (byte := read(address + len(found), 1)) != b"\0":
        found += byte
    return found.decode(errors="replace")


class Layout:
    """What ums_root says, in the runtime that has stacks."""

    def __init__(self):
        roots = list(self.roots(1))
        if not roots:
            raise gdb.GdbError("There is no libums in this program.")
        best = None
        for at in roots:
            self.load(at)
            best = best or at
            if word(self.places["slabs"]) != 0:
                return
        self.load(best)

    @staticmethod
    def roots(kind):
        """1: the runtime's; 2: the UMS API's."""
        for line in gdb.execute("info files", to_string=True).splitlines():
            if not (found := re.match(r"\s*(0x[0-9a-f]+) - (0x[0-9a-f]+) is \.note\.ums(?: in .*)?$", line)):
                continue
            try:
                # A note: its head, "libums" in words, and a distance from itself.
                for note in range(int(found[1], 16), int(found[2], 16) - 27, 28):
                    if half(note + 8) == kind:
                        yield (note + 20 + word(note + 20)) % (1 << 64)
            except gdb.MemoryError:
                pass

    def load(self, at, wanted=b"umsroot\0"):
        magic, version, _, _, values, places = struct.unpack("<8sII16sII", read(at, 40))
        if magic != wanted or version != VERSION:
            raise gdb.GdbError(f"This program's libums has layout {version}; this file knows layout {VERSION}.")
        at += 40
        name = lambda field: field.split(b"\0")[0].decode()
        self.places = {name(n): v for n, v in struct.iter_unpack("<24sQ", read(at, 32 * places))}
        at += 32 * 8
        self.values = {name(n): v for n, v in struct.iter_unpack("<28sI", read(at, 32 * values))}

    def __getitem__(self, name):
        return self.values[name]


class Fiber:
    def __init__(self, layout, at, bytes_):
        def get(name, form="<Q"):
            return struct.unpack_from(form, bytes_, layout[name])[0]

        self.at = at
        self.id = get("fiber.id")
        self.sp, self.ip, self.bp = get("fiber.sp"), get("fiber.ip"), get("fiber.bp")
        self.word = get("fiber.word", "<I")
        self.mark = get("fiber.mark")
        self.joiner = get("fiber.joiner")
        self.cluster = get("fiber.cluster")
        name = get("fiber.name")
        self.name = text(name) if at - 257 <= name < at else ""
        self.state, self.waits, self.tid = "ready", "", 0

    def title(self):
        return f'fiber {self.id}' + (f' "{self.name}"' if self.name else "")


class Picture:
    """All fibers. Made anew by each command: the program may have run."""

    def __init__(self):
        self.how = Layout()
        self.fibers = {}
        self.by_address = {}
        for fiber in self.descriptors():
            self.fibers[fiber.id] = fiber
            self.by_address[fiber.at] = fiber
        self.carriers()
        self.classify()

    def descriptors(self):
        how = self.how
        slab = word(how.places["slabs"])
        while slab != 0:
            stacks, stride = word(slab + how["slab.stacks"]), word(slab + how["slab.stride"])
            head, carved = word(slab + how["slab.head_bytes"]), half(slab + how["slab.carved"])
            for i in range(carved):
                colour = i * how["slab.colour_factor"] % how["slab.colours"] * 64
                at = (stacks + (i + 1) * stride - colour - head) & ~63
                bytes_ = read(at, how["fiber.size"])
                if struct.unpack_from("<Q", bytes_, how["fiber.id"])[0] != 0:
                    yield Fiber(how, at, bytes_)
            slab = word(slab + how["slab.next"])

    def carriers(self):
        how = self.how
        self.ready, self.policies = set(), set()
        self.running = {}  # By descriptor: thread, turn, whether it holds a processor.
        cluster = word(how.places["clusters"])
        while cluster != 0:
            if word(cluster + how["cluster.policy"]) != 0:
                self.policies.add(cluster)
            at = word(cluster + how["cluster.carriers"])
            while at != 0:
                if fiber := word(at + how["carrier.running"]):
                    self.running[fiber] = (half(at + how["carrier.tid"]), half(at + how["carrier.turn"]),
                                           word(at + how["carrier.processor"]) != 0)
                at = word(at + how["carrier.next"])
            self.chain(word(cluster + how["cluster.inbox"]))
            for i in range(half(cluster + how["cluster.size"])):
                processor = word(cluster + how["cluster.processors"] + 8 * i)
                self.ready.add(word(processor + how["processor.run_next"]))
                for ring in ("processor.queue", "processor.pinned_queue"):
                    self.ring(processor + how[ring])
                for inbox in ("processor.inbox", "processor.pinned_inbox", "processor.arrived"):
                    self.chain(word(processor + how[inbox]))
            cluster = word(cluster + how["cluster.next"])

    def ring(self, at):
        how = self.how
        head, tail, mask = (half(at + how[f"queue.{name}"]) for name in ("head", "tail", "mask"))
        slots = word(at + how["queue.slots"])
        for i in range((tail - head) % (1 << 32)):
            self.ready.add(word(slots + ((head + i) & mask) * 8))

    def chain(self, fiber):
        while fiber in self.by_address and fiber not in self.ready:
            self.ready.add(fiber)
            fiber = word(fiber + self.how["fiber.link"])

    def classify(self):
        how = self.how
        joins = {f.joiner - how["fiber.parkable"]: f for f in self.fibers.values() if f.joiner > 2}
        for f in self.fibers.values():
            kind, what = f.mark >> how["fiber.mark_shift"], f.mark & ((1 << how["fiber.mark_shift"]) - 1)
            marked = ""
            if 0 < kind < len(KINDS):
                marked = KINDS[kind] + (f" {what}" if kind in NUMBERS else f" {what:#x}" if what else "")
                if kind == 1:
                    marked += self.holder(what + how["mutex.owner"])
            if f.at in self.running:
                f.tid, turn, has_processor = self.running[f.at]
                f.state = "running"
                if turn in (how["carrier.turn_stopped"], how["carrier.turn_given"]):
                    f.state = "stopped"
                elif not has_processor:
                    f.state, f.waits = "blocked", "the kernel"
            elif f.joiner == how["fiber.joiner_finished"]:
                f.state = "ended"
            elif f.word & how["fiber.parked_user"]:
                f.state, f.waits = "parked", "unpark()"
            elif f.word & how["fiber.parked"]:
                f.state, f.waits = "parked", marked or "a deadline"
            elif f.at in joins:
                f.state, f.waits = "parked", "end of " + joins[f.at].title()
            elif marked and f.at not in self.ready and f.cluster not in self.policies:
                f.state, f.waits = "parked", marked

    def holder(self, owner_word):
        try:
            at = (word(owner_word) & ~self.how["mutex.flags"]) - self.how["fiber.parkable"]
        except gdb.MemoryError:
            return ""
        return f", held by {self.by_address[at].title()}" if at in self.by_address else ""

    def one(self, number):
        if number not in self.fibers:
            raise gdb.GdbError(f"There is no fiber {number}.")
        return self.fibers[number]


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


def line_of(fiber):
    chosen = "*" if selection.fiber and selection.fiber.id == fiber.id else " "
    where = f"thread {fiber.tid}" if fiber.tid else f"in {function_at(fiber.ip)}"
    return f"{chosen} {fiber.id:6} {fiber.state:8} {fiber.name:20} {fiber.waits or '-'}, {where}"


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
                if thread.ptid[1] == fiber.tid:
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
        print("  {:>6} {:8} {:20} {}".format("Id", "State", "Name", "Waits for"))
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
            print(f"{fiber.title()}: {fiber.state}{', waits for ' + fiber.waits if fiber.waits else ''}")
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
                print(f"\n{fiber.title()}: {fiber.state}{', waits for ' + fiber.waits if fiber.waits else ''}")
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
        picture = Picture()
        before = gdb.selected_thread()
        found = 0
        for number in sorted(picture.fibers):
            fiber = picture.fibers[number]
            where = next(("" for part in (fiber.name, fiber.waits) if re.search(argument, part)), None)
            if where is None and fiber.state != "ended":
                where = self.frame(fiber, argument)
            if where is not None:
                found += 1
                print(f"{line_of(fiber)}{where}")
        if before is not None:
            before.switch()
        print(f"{found} of {len(picture.fibers)} fibers")

    @staticmethod
    def frame(fiber, argument):
        try:
            selection.select(fiber)
            frame = gdb.selected_frame()
            while frame is not None:
                if re.search(argument, frame.name() or ""):
                    return f", below {frame.name()}"
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
        cluster = word(how.places["clusters"])
        while cluster != 0 and thread is not None:
            at = word(cluster + how["cluster.carriers"])
            while at != 0:
                fiber = word(at + how["carrier.running"])
                if fiber != 0 and half(at + how["carrier.tid"]) == thread.ptid[1]:
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
