// SPDX-License-Identifier: MIT
#pragma once

// os/signal/code_map.hpp: ranges of machine code, mostly of loaded libraries, in which a stop is
// put off.
//
// Both schedulers stop code that runs where it no longer belongs: a fiber on a carrier without a
// processor (sched/block/stop.hpp), a stray worker (workers/left/stray.hpp). Code that was stopped
// waits for a scheduler, so it must not hold a lock that the scheduler needs. Therefore neither
// scheduler stops code inside the C library and similar libraries.
//
// One thread learns a map, and signal handlers read it. While it is being learnt, and when it has
// no room for a range, it is not known(), and its readers must assume that any address may be in
// it.

#include <algorithm>
#include <cstdint>
#include <link.h>

#include "base/atomic.hpp"

namespace ums::os {

// Whether that file's object is the C library, the loader, the C++ runtime or the unwinder.
[[nodiscard]] bool is_runtime_library(const char* file) noexcept;

// Whether `at` lies in a segment of the object.
[[nodiscard]] bool contains(const dl_phdr_info& object, std::uintptr_t at) noexcept;

class code_map {
public:
    struct range {
        std::uintptr_t first, end;
        [[nodiscard]] bool has(std::uintptr_t at) const noexcept { return at >= first && at < end; }
    };

    // Forgets all ranges.
    void begin_learning() noexcept;
    void add(range code) noexcept;
    // Adds the executable segments of the object.
    void add(const dl_phdr_info& object) noexcept;
    // `complete` is false if ranges are missing that the caller could not find out.
    void end_learning(bool complete) noexcept;

    // sync(code_map): sees the ranges.
    [[nodiscard]] bool is_known() const noexcept { return is_known_.load(base::acquire); }
    [[nodiscard]] const range* begin() const noexcept { return ranges_; }
    // relaxed: is_known() orders; a handler that began before sees the earlier ranges.
    [[nodiscard]] const range* end() const noexcept { return ranges_ + count_.load(base::relaxed); }
    [[nodiscard]] bool has(std::uintptr_t at) const noexcept {
        return std::any_of(begin(), end(), [at](const range& r) { return r.has(at); });
    }

private:
    static constexpr int most = 32;
    range ranges_[most] = {};
    base::atomic<int> count_{0};
    base::atomic<bool> is_known_{false};
    // Owned by the thread that learns it:
    int learnt_ = 0;
    bool is_full_ = false;
};

}  // namespace ums::os
