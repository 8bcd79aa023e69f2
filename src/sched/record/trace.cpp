// SPDX-License-Identifier: MIT
#include "sched/record/trace.hpp"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/io_calls.hpp"
#include "os/lock.hpp"
#include "os/memory.hpp"
#include "os/own_number.hpp"
#include "os/say.hpp"
#include "os/system.hpp"
#include "sched/run/carrier.hpp"
#include "sched/run/cluster.hpp"
#include "sched/run/here.hpp"
#include "ums/trace.hpp"

namespace ums::sched {

constinit trace_control tracing;

namespace {

constexpr std::uint32_t least_ring_bytes = 64u << 10, most_ring_bytes = 1u << 31;

constinit os::lock rings_lock;  // Guards the list of rings, and is_free.
// Guards writing into the ring of the threads without a processor.
constinit os::lock outside_lock{os::lock_rank::carriers};
constinit base::atomic<trace_ring*> outside_ring;

char file_path[PATH_MAX];  // A longer path is refused, see runtime/environment.cpp.

std::uint64_t id_of(const fiber* f) noexcept { return f != nullptr ? f->id.get() : 0; }

// What the shortest yield leaves to do while somebody traces. The fiber that has yielded is the
// last of the queue.
void finish_yield(const after_switch& h, carrier_core& c) noexcept {
    auto& ring = static_cast<trace_ring&>(const_cast<after_switch&>(h));
    if (is_probed()) [[unlikely]]
        probe(ring.processor, trace_event::yield, id_of(c.proc.get()->ready.back()), 0, 0);
    ring.write(trace_event::run, id_of(c.running.get()));
}

// What a switch from a carrier's loop leaves to do.
void finish_start(const after_switch& h, carrier_core& c) noexcept {
    static_cast<trace_ring*>(h.other)->write(trace_event::run, id_of(c.running.get()));
}

void copy_name(char (&to)[16], const char* from) noexcept {
    const std::size_t n = ::strnlen(from, sizeof to - 1);
    std::memcpy(to, from, n);
    to[n] = 0;
}

// Returns null if there is no memory. Then nothing is recorded there.
trace_ring* make_ring(std::uint32_t processor, const char* cluster) noexcept {
    const os::lock_guard guard{rings_lock};
    // relaxed: under the lock.
    for (trace_ring* r = tracing.rings.load(base::relaxed); r != nullptr;
         r = r->next.load(base::relaxed)) {
        if (r->is_free == 0 || r->processor != processor ||
            std::strncmp(r->cluster, cluster, 15) != 0)
            continue;
        r->is_free = 0;
        // relaxed: count is its own from now on. A reader sees the records that follow it.
        r->begun_at.store(r->count.load(base::relaxed), base::relaxed);
        return r;
    }
    std::uint32_t bytes = least_ring_bytes;
    while (bytes < tracing.ring_bytes.load(base::relaxed) && bytes < most_ring_bytes) bytes *= 2;
    void* const at = os::map(sizeof(trace_ring) + bytes);
    if (at == nullptr) return nullptr;
    // This saves page faults, if the kernel can do it.
    os::system.madvise(at, sizeof(trace_ring) + bytes, MADV_HUGEPAGE);
    auto* const ring = new (at) trace_ring;
    ring->finish = &finish_yield;
    ring->from_loop.finish = &finish_start;
    ring->from_loop.other = ring;
    ring->records = reinterpret_cast<trace_record*>(ring + 1);
    ring->mask = bytes / sizeof(trace_record) - 1;
    ring->processor = processor;
    copy_name(ring->cluster, cluster);
    if (tracing.began_stamp.load(base::relaxed) == 0) {
        tracing.began_ns.store(os::now(), base::relaxed);
        tracing.began_stamp.store(arch::time_stamp(), base::relaxed);
    }
    ring->next.store(tracing.rings.load(base::relaxed), base::relaxed);
    tracing.rings.store(ring, base::release);  // sync(trace): publishes the ring to readers.
    return ring;
}

// The ring of the threads without a processor, locked. A stop is forbidden meanwhile: the lock sees
// to that.
class outside {
public:
    outside() noexcept : guard_{outside_lock} {
        ring = outside_ring.load(base::relaxed);  // relaxed: under the lock.
        if (ring != nullptr) return;
        ring = make_ring(trace_ring::outside, "");
        outside_ring.store(ring, base::relaxed);
    }
    trace_ring* ring;

private:
    const os::lock_guard guard_;
};

}  // namespace

void leave_trace_behind() noexcept {
    tracing.wanted.store(0, base::relaxed);  // relaxed: there is one thread.
    rings_lock.leave_behind();
    outside_lock.leave_behind();
    file_path[0] = 0;  // The parent writes it.
}

void trace_ring::write_text(trace_event e, std::uint64_t id, std::string_view text) noexcept {
    constexpr std::size_t most = 64;
    text = text.substr(0, most);
    if (e == trace_event::mark && is_probed()) [[unlikely]]
        probe_mark(id, text);
    do {
        std::uint64_t piece[2] = {};
        const std::size_t n = text.size() < sizeof piece ? text.size() : sizeof piece;
        std::memcpy(piece, text.data(), n);
        write(e, id, piece[0], piece[1]);
        e = trace_event::more;
        text.remove_prefix(n);
    } while (!text.empty());
}

void follow_trace_control(processor& p) noexcept {
    if (!is_trace_wanted()) {
        if (p.trace != nullptr) give_back(*p.trace);
        p.trace = nullptr;
    } else if (p.trace == nullptr) {
        p.trace = make_ring(p.index(), p.home().name().c_str());
        if (p.trace == nullptr) return;
        // What runs there, for a reader that has not seen it begin.
        const carrier* const c = p.holder();
        p.trace->write(trace_event::run, id_of(c != nullptr ? c->running.get() : nullptr));
    }
}

void give_back(trace_ring& ring) noexcept {
    const os::lock_guard guard{rings_lock};
    ring.is_free = 1;
}

void trace_outside_slow(trace_event e, std::uint64_t id, std::uint64_t argument,
                        std::uint64_t other) noexcept {
    const outside here;
    if (here.ring != nullptr) here.ring->write(e, id, argument, other);
}

void trace_new_outside(const fiber& f) noexcept {
    const outside here;
    if (here.ring != nullptr) trace_new(*here.ring, f);
}

void trace_new(trace_ring& ring, const fiber& f) noexcept {
    const std::uint64_t id = f.id.get();
    ring.write(trace_event::spawn, id, reinterpret_cast<std::uintptr_t>(f.run), f.spawner);
    if (f.name[0] != 0) ring.write_text(trace_event::name, id, f.name);
    if (is_probed()) [[unlikely]]
        probe_spawn(f);
}

void trace_park(trace_ring& ring, const fiber& self, const fiber* next, trace_wait otherwise,
                std::uint64_t what) noexcept {
    std::uint64_t waits = self.waits.what.get();
    if (waits == 0) waits = static_cast<std::uint64_t>(otherwise) << wait_record::kind_shift | what;
    ring.write(trace_event::park, self.id.get(), waits, id_of(next));
}

void trace_leave(trace_ring& ring, trace_event e, const fiber& self, const fiber* next) noexcept {
    ring.write(e, self.id.get(), 0, id_of(next));
}

void trace_wake(trace_ring& ring, const fiber& woken, const fiber* by) noexcept {
    ring.write(trace_event::unpark, woken.id.get(), 0, id_of(by));
}

void trace_each(trace_ring& ring, trace_event e, const fiber* list) noexcept {
    for (; list != nullptr; list = list->link.get()) ring.write(e, list->id.get());
}

// --- dumps ---

void set_trace_file(const char* path) noexcept {
    std::snprintf(file_path, sizeof file_path, "%s", path != nullptr ? path : "");
}

namespace {

// Async-signal-safe, because this file is for the last moments of a process.
class dump_file {
public:
    explicit dump_file(const char* path) noexcept
        : fd_{os::out_of_the_way(os::io_call(SYS_openat, AT_FDCWD, path,
                                             O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                                             0600))},
          error_{fd_ >= 0 ? 0 : static_cast<int>(-fd_)} {}
    ~dump_file() {
        if (fd_ >= 0) os::io_call(SYS_close, fd_);
    }
    dump_file(const dump_file&) = delete;
    dump_file& operator=(const dump_file&) = delete;

    void add(const void* from, std::size_t bytes) noexcept {
        const auto* at = static_cast<const char*>(from);
        while (error_ == 0 && bytes != 0) {
            const long n = os::io_call(SYS_write, fd_, at, bytes);
            if (n < 0) {
                if (n != -EINTR) error_ = static_cast<int>(-n);
                continue;
            }
            at += n;
            bytes -= static_cast<std::size_t>(n);
        }
    }
    void add_mappings() noexcept {
        const long maps = os::system.open_at(AT_FDCWD, "/proc/self/maps");
        char some[4096];
        long n = 0;
        while (maps >= 0 && (n = os::io_call(SYS_read, maps, some, sizeof some)) > 0)
            add(some, static_cast<std::size_t>(n));
        if (maps >= 0) os::io_call(SYS_close, maps);
    }
    // What went wrong first; 0: nothing.
    [[nodiscard]] int error() const noexcept { return error_; }

private:
    const long fd_;
    int error_;
};

// Written before the records of each ring, together with their number, and at the very beginning;
// see tools/ums/trace/dump_file.cpp.
struct dump_head {
    char magic[8] = {'u', 'm', 's', 't', 'r', 'c', '1', 0};
    std::uint64_t began_stamp = 0, now_stamp = 0;
    std::int64_t began_ns = 0, now_ns = 0;
    std::int64_t process = 0;
};
struct dump_ring {
    std::uint64_t processor = 0, count = 0, capacity = 0;
    char cluster[16] = {};
};

}  // namespace

void dump_trace() noexcept {
    if (file_path[0] == 0) return;
    dump_file file{file_path};
    dump_head head;
    head.began_stamp = tracing.began_stamp.load(base::relaxed);
    head.began_ns = tracing.began_ns.load(base::relaxed);
    head.now_ns = os::now();
    head.now_stamp = arch::time_stamp();
    head.process = ::getpid();
    file.add(&head, sizeof head);
    // sync(trace): sees the rings.
    for (const trace_ring* r = tracing.rings.load(base::acquire); r != nullptr;
         r = r->next.load(base::relaxed)) {
        dump_ring one;
        one.processor = r->processor;
        one.count = r->count.load(base::acquire);  // sync(trace)
        one.capacity = r->mask + 1;
        std::memcpy(one.cluster, r->cluster, sizeof one.cluster);
        file.add(&one, sizeof one);
        file.add(r->records,
                 (one.count < one.capacity ? one.count : one.capacity) * sizeof(trace_record));
        // Records that were overwritten meanwhile are not trusted.
        const std::uint64_t after = r->count.load(base::acquire);  // sync(trace)
        file.add(&after, sizeof after);
    }
    constexpr dump_ring last{.processor = ~std::uint64_t{0}};
    file.add(&last, sizeof last);
    file.add_mappings();
    if (file.error() == 0)
        os::say("the trace is in the file that UMS_TRACE names");
    else
        os::say("the trace could not be written to %s: %s", file_path,
                ::strerrordesc_np(file.error()));
}

}  // namespace ums::sched

namespace ums {

void trace_event(std::string_view text) noexcept {
    using namespace sched;
    if (!is_trace_wanted()) [[likely]]
        return;
    const sched::here at;
    const std::uint64_t id = id_of(at.self);
    // The caller is in a policy's method, so the processor stays.
    if (at.on != nullptr && at.on->ownership.is_inside()) {
        if (const processor* p = at.at(); p != nullptr && p->trace != nullptr)
            p->trace->write_text(sched::trace_event::mark, id, text);
        return;
    }
    if (at.self != nullptr) {
        if (processor* p = at.enter()) {
            if (p->trace != nullptr) p->trace->write_text(sched::trace_event::mark, id, text);
            at.leave();
            return;
        }
    }
    const outside ring_of_all;
    if (ring_of_all.ring != nullptr)
        ring_of_all.ring->write_text(sched::trace_event::mark, id, text);
}

}  // namespace ums
