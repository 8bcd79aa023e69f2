// SPDX-License-Identifier: MIT
#pragma once

// os/visitors.hpp: counts the threads that use something, so that the thread that ends it can wait
// for the last of them.
//
// A visitor comes while something else keeps the thing alive; or it looks only after it has come
// whether the thing is still there. Cost: two read-modify-writes for each visit.

#include <cstdint>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "os/futex.hpp"

namespace ums::os {

class visitors {
public:
    // seq_cst, here and in wait_for_all(): of a visitor that then looks whether the thing is still
    // there, and a thread that takes it away and then waits, at least one sees the other.
    void come() noexcept { word_.fetch_add(1, base::seq_cst); }
    void go() noexcept {
        // sync(visitors): all accesses to the thing are over. The word is not touched after this.
        const std::uint32_t were = word_.fetch_sub(1, base::release);
        UMS_DEBUG_ASSERT((were & ~awaited) != 0, "more visitors have gone than came");
        if (were == (awaited | 1)) futex_wake(word_.address());
    }

    void wait_for_all() noexcept {
        // sync(visitors), here and below: sees what they did.
        std::uint32_t seen = word_.fetch_or(awaited, base::seq_cst) | awaited;
        while (seen != awaited) {
            futex_wait(word_, seen);
            seen = word_.load(base::acquire);
        }
        // relaxed: no thread waits for it. Another visitor may have come since.
        word_.fetch_and(~awaited, base::relaxed);
    }

    // In the child of a fork(): there are none.
    void leave_behind() noexcept { word_.store(0, base::relaxed); }

    // Hints, for tests.
    [[nodiscard]] bool any() const noexcept { return (word_.load(base::relaxed) & ~awaited) != 0; }
    [[nodiscard]] bool are_awaited() const noexcept {
        return (word_.load(base::relaxed) & awaited) != 0;
    }

private:
    static constexpr std::uint32_t awaited = 1u << 31;
    base::atomic<std::uint32_t> word_;  // How many there are; and whether a thread waits for them.
};

class visit {
public:
    explicit visit(visitors& of) noexcept : of_{of} { of_.come(); }
    ~visit() { of_.go(); }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;

private:
    visitors& of_;
};

}  // namespace ums::os
