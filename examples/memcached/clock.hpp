// SPDX-License-Identifier: MIT
#pragma once

// clock: seconds since shortly before the start of the server, and what an expiry time means.
//
// It follows CLOCK_MONOTONIC, so a change of the wall clock expires nothing. Nothing ticks; a
// session reads the clock once for each piece of input.

#include <ctime>

#include <atomic>
#include <cstdint>

#include "item.hpp"

namespace memcached {

class clock {
public:
    clock() noexcept : monotonic_start_(monotonic()), wall_start_(std::time(nullptr)) {}
    // A clock that stands still except for advance(), for tests.
    static clock stopped() noexcept { return clock{true}; }

    // Never 0, which means "never" as an expiry, nor 1, which has always passed.
    [[nodiscard]] seconds now() const noexcept {
        // relaxed: only tests move the clock, and they wait for the reply.
        const auto ahead = ahead_.load(std::memory_order_relaxed);
        const std::int64_t passed = stands_ ? 0 : monotonic() - monotonic_start_;
        return static_cast<seconds>(passed) + first + ahead;
    }

    // The time that the `exptime` of a command stands for: 0 means never; up to 30 days counts from
    // now; above that it is a Unix time; a negative one has passed.
    [[nodiscard]] seconds expiry(std::int64_t exptime, seconds now) const noexcept {
        if (exptime == 0) return 0;
        if (exptime < 0) return 1;
        if (exptime <= 60 * 60 * 24 * 30) return now + static_cast<seconds>(exptime);
        const std::int64_t since_start = exptime - (wall_start_ - first);
        return since_start <= 1 ? 1 : static_cast<seconds>(since_start);
    }

    [[nodiscard]] seconds uptime() const noexcept { return now() - first; }

    // For tests: lets time pass.
    void advance(seconds by) noexcept {
        ahead_.fetch_add(by, std::memory_order_relaxed);  // relaxed: see now().
    }

private:
    static constexpr seconds first = 62;

    static std::int64_t monotonic() noexcept {
        timespec t{};
        clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
        return t.tv_sec;
    }

    explicit clock(bool stands) noexcept : clock() { stands_ = stands; }

    std::int64_t monotonic_start_;
    std::int64_t wall_start_;
    bool stands_ = false;
    std::atomic<seconds> ahead_ = 0;
};

}  // namespace memcached
