# SPDX-License-Identifier: MIT
"""What the files for gdb and lldb share: how the fibers of a program are read.

Each of them says before it how that debugger does it: read(address, size), note_sections() (begin and
end of each section .note.ums in memory), function_at(address), is_selected(fiber), the exceptions Refused (shown as a message)
and Unreadable (no such memory). cmake/install.cmake puts this text into both, because a file that gdb
loads by itself has to be a single one.
"""
VERSION = 2  # Of the constant ums_root.
KINDS = ["", "mutex", "shared_mutex (write)", "shared_mutex (read)", "semaphore", "condition variable",
         "send into channel", "receive from channel", "select", "latch, event or wait group", "barrier",
         "call_once", "scope", "future", "read from descriptor", "write to descriptor", "off-load",
         "name to be resolved", "free descriptor number", "carrier"]
NUMBERS = (8, 14, 15)  # Of these the mark holds no address.


def word(address):
    return struct.unpack("<Q", read(address, 8))[0]


def half(address):
    return struct.unpack("<I", read(address, 4))[0]


def text(address, most=256):
    found = b""
    while len(found) < most and (byte := read(address + len(found), 1)) != b"\0":
        found += byte
    # What could drive the terminal is shown as Python writes it.
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in found.decode(errors="replace"))


def own_number(process, thread):
    """What a live process itself calls its thread: in a container it has other numbers."""
    try:
        with open(f"/proc/{process}/task/{thread}/status", encoding="utf-8") as status:
            return int(re.search(r"^NSpid:.*\s(\d+)$", status.read(), re.MULTILINE)[1])
    except OSError:
        return thread


class Layout:
    """What ums_root says, in the runtime that has stacks."""

    def __init__(self):
        roots = list(self.roots(1))
        if not roots:
            raise Refused("There is no libums in this program.")
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
        for begin, end in note_sections():
            try:
                # A note: its head, "libums" in words, and a distance from itself.
                for note in range(begin, end - 27, 28):
                    if half(note + 8) == kind:
                        yield (note + 20 + word(note + 20)) % (1 << 64)
            except Unreadable:
                pass

    def load(self, at, wanted=b"umsroot\0"):
        magic, version, _, _, values, places = struct.unpack("<8sII16sII", read(at, 40))
        if magic != wanted or version != VERSION:
            raise Refused(f"This program's libums has layout {version}; this file knows layout {VERSION}.")
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
        # An older libums does not say how far below the descriptor a name may lie.
        self.name = text(name) if at - layout.values.get("fiber.top_bytes", 257) <= name < at else ""
        self.state, self.waits, self.tid = "ready", "", 0

    def title(self):
        return f'fiber {self.id}' + (f' "{self.name}"' if self.name else "")

    def summary(self):
        return f"{self.title()}: {self.state}{', waits for ' + self.waits if self.waits else ''}"


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
        head, size, mask = (half(at + how[f"queue.{name}"]) for name in ("head", "size", "mask"))
        slots = word(at + how["queue.slots"])
        for i in range(size):
            self.ready.add(word(slots + ((head + i) & mask) * 8))

    def chain(self, fiber):
        while fiber in self.by_address and fiber not in self.ready:
            self.ready.add(fiber)
            fiber = word(fiber + self.how["fiber.link"])

    def classify(self):
        how = self.how
        joins = {f.joiner - how["fiber.parkable"]: f for f in self.fibers.values()
                 if f.joiner > how["fiber.joiner_detached"]}
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
        except Unreadable:
            return ""
        return f", held by {self.by_address[at].title()}" if at in self.by_address else ""

    def one(self, number):
        if number not in self.fibers:
            raise Refused(f"There is no fiber {number}.")
        return self.fibers[number]


HEADING = "  {:>6} {:8} {:20} {}".format("Id", "State", "Name", "Waits for")


def line_of(fiber):
    chosen = "*" if is_selected(fiber) else " "
    where = f"thread {fiber.tid}" if fiber.tid else f"in {function_at(fiber.ip)}"
    return f"{chosen} {fiber.id:6} {fiber.state:8} {fiber.name:20} {fiber.waits or '-'}, {where}"


STACKS_BETWEEN_REPORTS = 2000


def search(picture, pattern, function_below, say):
    """Tells of the fibers with a name, a wait or a function that matches, each when it is found.

    Names and waits come first: the functions on a stack take a debugger about a millisecond.
    function_below(fiber, pattern) returns the name of the first that matches, or None.
    """
    try:
        pattern = re.compile(pattern)
    except re.error as error:
        raise Refused(f"'{pattern}' is no regular expression: {error}.") from None
    found, rest = 0, []
    for number in sorted(picture.fibers):
        fiber = picture.fibers[number]
        if pattern.search(fiber.name) or pattern.search(fiber.waits):
            found += 1
            say(line_of(fiber))
        elif fiber.state != "ended":
            rest.append(fiber)
    left = len(rest)
    if left:
        say(f"{found} by name or wait; now the stacks of {left} others")
    try:
        for fiber in rest:
            if (name := function_below(fiber, pattern)) is not None:
                found += 1
                say(f"{line_of(fiber)}, below {name}")
            left -= 1
            if left and left % STACKS_BETWEEN_REPORTS == 0:
                say(f"{left} stacks left")
    except KeyboardInterrupt:
        say(f"interrupted: {left} stacks were not looked at")
    say(f"{found} of {len(picture.fibers)} fibers")
