// SPDX-License-Identifier: MIT
#pragma once

// sync/child_count.hpp: counts the children of a scope, for one read-modify-write a child.
//
// A scope's owner, a fiber, counts the children that it begins in a word of its own, `begun`, by
// plain stores. All else is in one shared word: minus one for each child that has ended, plus one
// for each that another fiber or thread has begun, plus those of the owner's that it was told of
// (`told`, under the scope's lock). So there are
//
//     children = count(word) + begun - told
//
// The shared word also has three marks:
//
//   awaited   joiners are queued, and count(word) is positive. The child whose end brings it to
//             zero turns this into `waking` in the same step, so exactly one child does, and comes
//             to the lock. All others have nothing to do with the scope after their step.
//   waking    that child is on its way to the lock, where it looks again. Joiners stay queued.
//   failed    an exception is kept.
//
// Without marks and without children the scope may be destroyed: nobody will touch it.
//
// No wake-up is lost. A joiner queues itself and sets `awaited` in one section under the lock, with
// the count that it saw, by a compare-and-swap: the count was positive in that step. While
// `awaited` is set, the word's count only falls below the number of children there are by children
// of the owner's that the word does not know of. It reaches zero before it could fall below that,
// and then the child that is waking adds those. It sees the `begun` of each child whose end is in
// the word: the owner wrote it before the child was made, and the ends are released to the word.
//
// A begin of the owner's that is not ordered before another fiber's join() may be missed by that,
// as if it came after. The owner never misses one.

#include <cstdint>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "ums/impl/child_count.hpp"

namespace ums::sync {

template <class Word>  // base::atomic_ref, or in its test a reference to an atomic.
struct child_counter {
    using number = std::uint64_t;

    Word word, begun, told;

    // The owner begins a child.
    void begin_own() noexcept {
        // relaxed: the making of the child publishes it.
        begun.store(begun.load(base::relaxed) + 1, base::relaxed);
    }
    // Any other fiber or thread does.
    void begin() noexcept { word.fetch_add(one, base::relaxed); }  // relaxed: as above.

    // A child ends. Returns whether it is to call next_of_waking() under the lock. Otherwise the
    // scope may be gone.
    [[nodiscard]] bool end() noexcept {
        number seen = word.load(base::relaxed);  // relaxed: the next step looks again.
        for (;;) {
            const bool wakes = (seen & ~failed) == (one | awaited);
            // sync(scope): release publishes what the child did.
            if (word.compare_exchange(seen, wakes ? (seen & failed) | waking : seen - one,
                                      base::release, base::relaxed))
                return wakes;
        }
    }

    // Without the lock: whether no child is left and there is no mark.
    [[nodiscard]] bool is_done() const noexcept {
        // sync(scope): acquire orders the two: the word is as old as `told`, or younger. A younger
        // one has a mark, or counts more children than there are.
        const number known = told.load(base::acquire);
        // sync(scope): sees what the children did that have ended, and that they were begun.
        const number seen = word.load(base::acquire);
        return seen + (begun.load(base::relaxed) - known) * one == 0;
    }

    // --- Under the lock ---
    [[nodiscard]] bool is_left() const noexcept {
        // sync(scope): sees the begun of the children that have ended.
        return left_of(word.load(base::acquire)) != 0;
    }
    // Whether children are left. If so, the caller is to queue itself, and the last one will come
    // to next_of_waking().
    [[nodiscard]] bool await() noexcept {
        // sync(scope): sees what the children did, here and where the exchange fails.
        number seen = word.load(base::acquire);
        while ((seen & waking) == 0) {
            if (left_of(seen) == 0) return false;
            if (keep_awaiting(seen)) break;
        }
        return true;
    }
    // Whether the joiners are to be woken. If not, children were begun meanwhile, and the last of
    // them will come. Requires: end() has returned true to the caller.
    [[nodiscard]] bool next_of_waking() noexcept {
        // sync(scope): as in await().
        number seen = word.load(base::acquire);
        for (;;) {
            UMS_ASSERT((seen & (waking | awaited)) == waking, "two children of a scope ended last");
            if (left_of(seen) != 0) {
                if (keep_awaiting(seen)) return false;
            } else if (word.compare_exchange(seen, seen - waking, base::relaxed, base::acquire)) {
                // relaxed: the lock publishes it.
                return true;
            }
        }
    }
    // relaxed: the lock orders what the mark stands for.
    void set_failed() noexcept { word.fetch_or(failed, base::relaxed); }
    void clear_failed() noexcept { word.fetch_and(~number{failed}, base::relaxed); }

private:
    static constexpr number awaited = 1, waking = 2, failed = 4, one = 8;
    static constexpr number marks = awaited | waking | failed;

    // How many there are, times `one`. Never less than that (see above).
    [[nodiscard]] number left_of(number seen) const noexcept {
        // relaxed: see above.
        return (seen & ~marks) + (begun.load(base::relaxed) - told.load(base::relaxed)) * one;
    }
    // Tells the word of the owner's children, and awaits all. Returns false if it has changed.
    [[nodiscard]] bool keep_awaiting(number& seen) noexcept {
        const number known = begun.load(base::relaxed);
        const number left = (seen & ~marks) + (known - told.load(base::relaxed)) * one;
        if (!word.compare_exchange(seen, left | (seen & failed) | awaited, base::relaxed,
                                   base::acquire))
            return false;
        told.store(known, base::release);  // sync(scope): it comes after the word. See is_done().
        return true;
    }
};

}  // namespace ums::sync
