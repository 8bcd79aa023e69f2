// SPDX-License-Identifier: MIT
#pragma once

// os/perf.hpp: records of context switches, from perf_event_open(2).
//
// A switch_ring is one event and its ring: each time a thread of a tree of threads is taken off one
// CPU, or put onto it, the kernel writes a record into the ring, and the descriptor becomes readable.
// The tree is a root thread and all that it, or they, create after the event was opened. An event for
// each CPU covers the tree; an event for each thread needs a ring for each thread: of a few, for an
// unprivileged process may lock 516 KiB for each CPU.
//
// Needs kernel.perf_event_paranoid <= 2, and a seccomp filter that permits it.
// The ring's memory is the kernel's on one side: its two positions are atomics, the records plain.

#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "os/clock.hpp"

namespace ums::os {

struct switch_record {
    int tid;
    bool is_out;        // Off the CPU; else onto it.
    bool is_preempted;  // Out, though it could have run on.
    nanoseconds when;
};

class switch_ring {
public:
    switch_ring() noexcept = default;
    ~switch_ring() { close(); }
    switch_ring(const switch_ring&) = delete;
    switch_ring& operator=(const switch_ring&) = delete;

    // For the tree below the thread `root`, on one CPU; or, with -1, for that thread alone, on any. `pages`: a power of two; halved until the
    // kernel locks that many. 0 or -errno; -ENODEV: the CPU is offline. `failed_at`: the call that
    // failed.
    [[nodiscard]] long open(int root, int cpu, std::size_t pages, const char*& failed_at) noexcept;
    void close() noexcept;

    // While it is paused nothing is recorded, and nobody is interrupted.
    void pause(bool is_paused) noexcept;

    // Readable when there are records; hung up once the root has ended.
    [[nodiscard]] int fd() const noexcept { return fd_; }

    // Calls f(const switch_record&) for each record there is now, oldest first. Returns false if others may
    // have been refused since the last call, for want of room.
    template <class F>
    bool drain(F f) noexcept {
        const std::uint64_t before = tail_, head = written();
        bool all = true;
        switch_record record{};
        while (tail_ != head)
            if (next(record, all)) f(static_cast<const switch_record&>(record));
        give_back();
        // Only now: the ring may have become full while it was read. What is refused from here on finds
        // no room in spite of what was given back, and the next call sees that.
        base::full_fence();
        return all && written() - before <= data_bytes_ - slack_bytes;
    }

private:
    // No record of this event is larger than half of this; a ring with more room has lost none.
    static constexpr std::uint64_t slack_bytes = 128;

    std::uint64_t written() const noexcept;
    bool next(switch_record& record, bool& all) noexcept;
    void give_back() noexcept;
    [[nodiscard]] std::uint64_t word(std::uint64_t at) const noexcept;

    int fd_ = -1;
    void* map_ = nullptr;
    std::size_t map_bytes_ = 0;
    std::uint64_t data_bytes_ = 0;
    std::uint64_t tail_ = 0;
};

// Whether the kernel would make such an event for the calling thread: 0 or -errno, and the call that
// failed.
[[nodiscard]] long try_switch_records(const char*& failed_at) noexcept;

// kernel.perf_event_paranoid; -1000 if it cannot be read.
[[nodiscard]] int perf_event_paranoid() noexcept;

}  // namespace ums::os
