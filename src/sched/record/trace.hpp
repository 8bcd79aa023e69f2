// SPDX-License-Identifier: MIT
#pragma once

// sched/record/trace.hpp: what happens to fibers, as records in rings that a tool reads from
// outside.
//
// A processor has one word for this: the address of its ring, null while no tool traces. A recorded
// event costs a time stamp and five stores; while the word is null, a wait, a wake-up, a spawn and
// an end test it once each. A yield does not even test it: it passes the word on as the
// after-switch action that it has anyway, and a ring begins with such an action.
//
// Switched on from outside: a tool that may trace the process writes `trace_control.wanted`
// (runtime/root.hpp names the address), and each processor sees it when its round ends. Or by
// UMS_TRACE, when a runtime starts. Or by a tool that attaches to a probe (sched/record/probe.hpp).
//
// A ring has one writer at a time: the code inside the processor, or a thread with a claim on it.
// The newest records overwrite the oldest. A reader copies, then reads the count again: of what it
// has copied, the records that were the newest `capacity` at that moment are whole, except the one
// that is being written. Rings are never unmapped, so a reader may look after the runtime, or the
// process, has come to its end; the next runtime uses them again.
//
// Threads that hold no processor share a ring under a lock, because their events are rare.
//
// Rejected: a ring for each kernel thread. There may be 10,000 of those, and a processor's own
// order would have to be reconstructed from time stamps.

#include <cstdint>
#include <string_view>

#include "arch/sanitizer.hpp"
#include "arch/time_stamp.hpp"
#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "os/clock.hpp"
#include "sched/fiber/after_switch.hpp"
#include "sched/record/probe.hpp"

namespace ums::sched {

struct fiber;
class processor;

// Tools read these numbers: never give one a new meaning. `fiber` is the id in the record; 0: none.
enum class trace_event : std::uint8_t {
    none = 0,
    // It runs from now on; 0: the processor looks for work. The fiber that ran before has yielded,
    // unless a record of its own says otherwise.
    run = 1,
    yield = 2,  // It goes to a queue; `other` runs next (0: the processor looks for work).
    // It waits for `argument` (wait_record::what, or one of trace_wait); `other` runs next.
    park = 3,
    end = 4,  // Its function has returned; `other` runs next.
    // `other` made it (0: a plain thread); `argument` is the function that calls its own.
    spawn = 5,
    name = 6,      // The first 16 bytes of its name.
    unpark = 7,    // `other` has made it ready (0: a plain thread, whose number is `argument`).
    timer = 8,     // Its deadline has made it ready.
    io = 9,        // An event of a descriptor has made it ready.
    steal = 10,    // `argument` fibers came from the processor with the index `other`.
    migrate = 11,  // It goes to another cluster or processor; `other` runs next.
    // It is blocked in the kernel, on the thread `argument`; its processor goes to the thread
    // `other`.
    hand_off = 12,
    back = 13,  // Its call has returned, on the thread `argument`; it waits for a processor.
    stop = 14,  // It was stopped in favour of others.
    mark = 15,  // The first 16 bytes of a text of the program's.
    more = 16,  // 16 bytes more of the name or the text right before.
};

// What is waited for if wait_record::what is 0: kinds in the same byte.
enum class trace_wait : std::uint64_t {
    join = 101,  // Of the fiber whose id is in the lower bytes.
    user = 102,  // this_fiber::park()
    sleep = 103,
    library = 104,  // Something of the library's own.
};

struct trace_record {
    static constexpr unsigned event_shift = 56;
    // The time stamp; the event (the highest byte) with the fiber; the two arguments.
    base::atomic<std::uint64_t> when, what, argument, other;
};

struct alignas(base::cache_line) trace_ring : after_switch {
    // As a processor: stands for threads without one.
    static constexpr std::uint32_t outside = ~std::uint32_t{0};

    base::atomic<std::uint64_t> count;  // Of all records that were ever written.
    std::uint64_t mask = 0;
    trace_record* records = nullptr;
    base::atomic<trace_ring*> next;  // Link in the list of all rings.
    std::uint32_t processor = outside;
    std::uint32_t is_free = 0;  // Its processor is gone. Guarded by the lock of trace.cpp.
    char cluster[16] = {};
    // For the switch from a carrier's loop to a fiber: nothing has yielded.
    after_switch from_loop;
    // The record with which its processor has begun to record the last time. What it did before,
    // and what the last records before that did not see, is not known.
    base::atomic<std::uint64_t> begun_at;

    UMS_ALWAYS_INLINE void write(trace_event e, std::uint64_t id, std::uint64_t argument = 0,
                                 std::uint64_t further = 0) noexcept {
        const std::uint64_t n = count.load(base::relaxed);  // relaxed: it is the writer's own.
        trace_record& r = records[n & mask];
        // The slots have left the caches since they were written last. Measured: 3 ns of an event.
        __builtin_prefetch(&records[(n + 16) & mask], 1);
        // sync(trace): release keeps these behind the count's last store: a reader that finds one
        // of them in the slot's old record also finds that count, and drops the record.
        r.when.store(arch::time_stamp(), base::release);
        r.what.store(static_cast<std::uint64_t>(e) << trace_record::event_shift | id,
                     base::release);
        r.argument.store(argument, base::release);
        r.other.store(further, base::release);
        count.store(n + 1, base::release);  // sync(trace): publishes the record.
        if (is_probed()) [[unlikely]]
            probe(processor, e, id, argument, further);
    }
    // Up to 64 bytes.
    void write_text(trace_event e, std::uint64_t id, std::string_view text) noexcept;
};

// Tools read these; except for `wanted` and `ring_bytes`, they only read them.
struct trace_control {
    std::uint32_t version = 1;
    std::uint32_t record_bytes = sizeof(trace_record);
    base::atomic<std::uint32_t> wanted;  // 1: record. Tools write it.
    // The size of the rings to be made; a power of two. Tools write it.
    base::atomic<std::uint32_t> ring_bytes{16u << 20};
    base::atomic<trace_ring*> rings;  // The newest.
    // The two stamps of one moment, for tools that have no other pair; 0: nothing was recorded yet.
    base::atomic<std::uint64_t> began_stamp;
    base::atomic<std::int64_t> began_ns;  // CLOCK_MONOTONIC
};
extern constinit trace_control tracing;

// Called at a round's end, inside: begins or stops recording, as tools want it. Changes the word of
// the processor.
void follow_trace_control(processor& p) noexcept;
// In the child of a fork(): it is not traced unless somebody asks for it.
void leave_trace_behind() noexcept;

[[nodiscard]] UMS_ALWAYS_INLINE bool is_trace_wanted() noexcept {
    return tracing.wanted.load(base::relaxed) != 0 || is_probed();  // relaxed: in the end.
}
// The processor is about to disappear, so its ring is free for another one.
void give_back(trace_ring& ring) noexcept;

// For threads that hold no processor. Does nothing if no tool traces.
[[gnu::noinline]] void trace_outside_slow(trace_event e, std::uint64_t id, std::uint64_t argument,
                                          std::uint64_t other) noexcept;
[[gnu::noinline]] void trace_new_outside(const fiber& f) noexcept;
UMS_ALWAYS_INLINE void trace_outside(trace_event e, std::uint64_t id, std::uint64_t argument = 0,
                                     std::uint64_t other = 0) noexcept {
    if (is_trace_wanted()) [[unlikely]]
        trace_outside_slow(e, id, argument, other);
}

// Records a new fiber, with its name.
[[gnu::noinline]] void trace_new(trace_ring& ring, const fiber& f) noexcept;

// Records that a fiber waits; `next` runs then, if there is one.
[[gnu::noinline]] void trace_park(trace_ring& ring, const fiber& self, const fiber* next,
                                  trace_wait otherwise, std::uint64_t what = 0) noexcept;
// Records that it leaves for another reason.
[[gnu::noinline]] void trace_leave(trace_ring& ring, trace_event e, const fiber& self,
                                   const fiber* next) noexcept;
[[gnu::noinline]] void trace_wake(trace_ring& ring, const fiber& woken, const fiber* by) noexcept;
// Records a list of fibers.
[[gnu::noinline]] void trace_each(trace_ring& ring, trace_event e, const fiber* list) noexcept;

// --- Dumps (UMS_TRACE=FILE) ---

// Sets where dump_trace() writes; empty: nowhere. Requires: no dump is being made.
void set_trace_file(const char* path) noexcept;
// Writes all rings, and the process's mappings, into the file, anew each time, and says on standard
// error that it did or why it could not. Async-signal-safe.
void dump_trace() noexcept;

}  // namespace ums::sched
