// SPDX-License-Identifier: MIT
#pragma once

// sched/run/idle_set.hpp: the processors of a cluster that have nothing to run.
//
// One word tells a waker all it needs: how many processors are idle and how many are searching. A
// wake takes at most one idle processor, and none while one is searching: the searcher will find
// the work, or look again after it has joined the set.
//
// Why no work is stranded while a processor sleeps: a producer makes work visible, then reads the
// word; an idler changes the word (it stops searching and becomes idle in one step), executes a
// heavy fence, then looks at every queue again. By the argument in os/cpu/membarrier.hpp either the
// producer sees no searcher and an idle processor, and wakes it, or the idler sees the work. The
// same holds for a producer that wakes no processor because it saw a searcher: that searcher has
// not yet changed the word, so its last look comes later.

#include <cstdint>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "os/lock.hpp"

namespace ums::sched {

class processor;

class idle_set {
public:
    struct counts {
        std::uint32_t idle;
        std::uint32_t searching;
    };

    // relaxed: the pairing fence is the idler's heavy fence; the caller has a compiler fence or a
    // read-modify-write between its work and this load.
    [[nodiscard]] counts look() const noexcept {
        const std::uint64_t w = word_.load(base::relaxed);
        return {static_cast<std::uint32_t>(w), static_cast<std::uint32_t>(w >> 32)};
    }
    [[nodiscard]] bool wants_waking() const noexcept {
        const counts c = look();
        return c.idle != 0 && c.searching == 0;
    }

    void start_searching() noexcept { word_.fetch_add(one_searching, base::seq_cst); }

    // Returns whether the caller was the last one.
    bool stop_searching() noexcept {
        return (word_.fetch_sub(one_searching, base::seq_cst) >> 32) == 1;
    }

    // The caller, which counts as searching, becomes idle.
    void join(processor& p) noexcept;

    // Makes it searching again. Returns false if a waker has already taken it out (it counts as
    // searching then too, and a notify is on its way).
    bool quit(processor& p) noexcept;

    // Takes an idle processor out; from now on it counts as searching. Returns null if there is
    // none, or (unless `even_if_searching`) if another is searching. The caller notifies its
    // driver.
    processor* claim_any(bool even_if_searching, const processor* except = nullptr) noexcept;

    // The same for one processor. Returns false if it is not idle.
    bool claim(processor& p) noexcept;

private:
    static constexpr std::uint64_t one_searching = std::uint64_t{1} << 32;

    void take_out(processor& p) noexcept;

    // Low half: idle. High half: searching. The idle half changes only under lock_.
    alignas(base::cache_line) base::atomic<std::uint64_t> word_;

    os::lock lock_{os::lock_rank::idle};
    // Guarded by lock_:
    // The last to come is woken first, because its cache is the warmest.
    processor* first_ = nullptr;
};

}  // namespace ums::sched
