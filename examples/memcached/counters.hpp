// SPDX-License-Identifier: MIT
#pragma once

// counters: what `stats` shows about the commands. Each shard has its own, guarded by its lock, so
// that counting costs no atomic operation; `stats` adds them up.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace memcached {

struct counters {
    std::uint64_t cmd_get = 0;
    std::uint64_t cmd_set = 0;
    std::uint64_t cmd_flush = 0;
    std::uint64_t cmd_touch = 0;
    std::uint64_t cmd_meta = 0;
    std::uint64_t get_hits = 0;
    std::uint64_t get_misses = 0;
    std::uint64_t get_expired = 0;
    std::uint64_t get_flushed = 0;
    std::uint64_t delete_hits = 0;
    std::uint64_t delete_misses = 0;
    std::uint64_t incr_hits = 0;
    std::uint64_t incr_misses = 0;
    std::uint64_t decr_hits = 0;
    std::uint64_t decr_misses = 0;
    std::uint64_t cas_hits = 0;
    std::uint64_t cas_misses = 0;
    std::uint64_t cas_badval = 0;
    std::uint64_t touch_hits = 0;
    std::uint64_t touch_misses = 0;
    std::uint64_t total_items = 0;
    std::uint64_t evictions = 0;
    std::uint64_t expired_unfetched = 0;
    std::uint64_t evicted_unfetched = 0;

    void got(bool hit) noexcept {
        ++cmd_get;
        ++(hit ? get_hits : get_misses);
    }
    void touched(bool hit) noexcept {
        ++cmd_touch;
        ++(hit ? touch_hits : touch_misses);
    }

    counters& operator+=(const counters& other) noexcept {
        // The struct has nothing but these words, which are added one by one.
        using words = std::array<std::uint64_t, sizeof(counters) / sizeof(std::uint64_t)>;
        auto sum = std::bit_cast<words>(*this);
        const auto more = std::bit_cast<words>(other);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
        *this = std::bit_cast<counters>(sum);
        return *this;
    }
};

}  // namespace memcached
