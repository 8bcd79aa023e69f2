// SPDX-License-Identifier: MIT
#include "sched/record/probe.hpp"

#include "sched/fiber/fiber.hpp"
#include "sched/record/trace.hpp"

#if UMS_HAS_PROBES

// Each probe names the address of its semaphore: here the same one.
extern "C" {
[[gnu::used, gnu::section(".probes")]] unsigned short ums_probe_users = 0;
}

#define UMS_SEMAPHORE(name)                              \
    extern "C" unsigned short libums_##name##_semaphore; \
    asm(".globl libums_" #name                           \
        "_semaphore\n"                                   \
        ".hidden libums_" #name                          \
        "_semaphore\n"                                   \
        ".set libums_" #name "_semaphore, ums_probe_users\n")
UMS_SEMAPHORE(spawn);
UMS_SEMAPHORE(end);
UMS_SEMAPHORE(run);
UMS_SEMAPHORE(yield);
UMS_SEMAPHORE(park);
UMS_SEMAPHORE(io_wait);
UMS_SEMAPHORE(unpark);
UMS_SEMAPHORE(timer);
UMS_SEMAPHORE(io);
UMS_SEMAPHORE(steal);
UMS_SEMAPHORE(migrate);
UMS_SEMAPHORE(block);
UMS_SEMAPHORE(hand_off);
UMS_SEMAPHORE(back);
UMS_SEMAPHORE(stop);
UMS_SEMAPHORE(mark);

#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

#endif

namespace ums::sched {

#if UMS_HAS_PROBES

namespace {

void probe_park(std::uint64_t id, std::uint64_t waits) noexcept {
    const std::uint64_t kind = waits >> wait_record::kind_shift;
    const std::uint64_t object = waits & ((std::uint64_t{1} << wait_record::kind_shift) - 1);
    STAP_PROBE3(libums, park, id, kind, object);
    const bool writes = kind == static_cast<std::uint64_t>(wait_kind::writable);
    if (writes || kind == static_cast<std::uint64_t>(wait_kind::readable))
        STAP_PROBE3(libums, io_wait, id, object, static_cast<std::uint64_t>(writes));
}

// The event itself; probe() adds what runs next.
void probe_event(std::uint32_t processor, trace_event e, std::uint64_t id, std::uint64_t argument,
                 std::uint64_t other) noexcept {
    switch (e) {
        case trace_event::yield:
            STAP_PROBE1(libums, yield, id);
            break;
        case trace_event::park:
            probe_park(id, argument);
            break;
        case trace_event::end:
            STAP_PROBE1(libums, end, id);
            break;
        case trace_event::unpark:
            STAP_PROBE2(libums, unpark, id, other);
            break;
        case trace_event::timer:
            STAP_PROBE1(libums, timer, id);
            break;
        case trace_event::io:
            STAP_PROBE1(libums, io, id);
            break;
        case trace_event::steal:
            STAP_PROBE3(libums, steal, processor, other, argument);
            break;
        case trace_event::migrate:
            STAP_PROBE1(libums, migrate, id);
            break;
        case trace_event::hand_off:
            STAP_PROBE2(libums, block, id, argument);
            STAP_PROBE3(libums, hand_off, processor, argument, other);
            break;
        case trace_event::back:
            STAP_PROBE2(libums, back, id, argument);
            break;
        case trace_event::stop:
            STAP_PROBE1(libums, stop, id);
            break;
        default:  // The other events have functions of their own, or are only for the rings.
            break;
    }
}

// Returns the fiber that runs from now on, according to the record; 0: none.
std::uint64_t runs_next(trace_event e, std::uint64_t id, std::uint64_t other) noexcept {
    switch (e) {
        case trace_event::run:
            return id;
        case trace_event::yield:
        case trace_event::park:
        case trace_event::end:
        case trace_event::migrate:
            return other;
        default:
            return 0;
    }
}

}  // namespace

void probe(std::uint32_t processor, trace_event e, std::uint64_t id, std::uint64_t argument,
           std::uint64_t other) noexcept {
    probe_event(processor, e, id, argument, other);
    const std::uint64_t next = runs_next(e, id, other);
    if (next != 0) STAP_PROBE2(libums, run, next, processor);
}

void probe_spawn(const fiber& f) noexcept {
    STAP_PROBE4(libums, spawn, f.id.get(), f.spawner, f.run, f.name);
}

void probe_mark(std::uint64_t id, std::string_view text) noexcept {
    STAP_PROBE3(libums, mark, id, text.data(), text.size());
}

#else

void probe(std::uint32_t, trace_event, std::uint64_t, std::uint64_t, std::uint64_t) noexcept {}
void probe_spawn(const fiber&) noexcept {}
void probe_mark(std::uint64_t, std::string_view) noexcept {}

#endif

}  // namespace ums::sched
