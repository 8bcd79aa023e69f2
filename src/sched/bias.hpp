// SPDX-License-Identifier: MIT
#pragma once

// sched/bias.hpp: a primitive's lock that is biased to a processor.
//
// Who works on a processor is alone there (carry/ownership.hpp), and pays two plain stores and a load for that; and a wait
// or a wake-up, which most operations of a channel end in, pays them anyway. So a lock's word (os/lock.hpp) may say, instead
// of "free" or "held", "belongs to processor number n": then who is inside that processor may use what the lock guards, and
// nobody else. To everybody else the word is held.
//
//   inside: enter() the processor;            anybody else: acquire(), which fails, for the word is not free;
//     load the word: this processor's           claim the processor's holder (a heavy fence);
//     ... section, perhaps a switch ...         the word: from the bias to held, by compare-and-swap;
//   leave()                                     unclaim; now the lock is the caller's, as ever
//
// Exclusion is the ownership's. The word changes from a processor's bias only by who is inside it or has a claim on its
// holder, so from enter() to leave() what was read there stays true. It changes to a bias only by who holds the lock, with a
// release store in place of the one that would free it; inside, the load acquires that. Whether the storing thread works on that
// processor, or on any, does not matter. So a bias survives that its processor moves to another carrier (a hand-off): it names
// the processor, and who works on that has seen, by the ownership, all that was done there before.
//
// Who parks inside (inside::park()) leaves the lock with the switch, for the side that continues leaves the processor. So who
// finds it in a list later owns it, as after park_holding() (sched/park.hpp).
//
// No sleeper is forgotten. To make a held word biased is a release: it looks for sleepers as any does, and wakes one, which
// finds a bias and takes it away. Nobody goes to sleep on a word that is not "held". Who takes a bias away waits, without sleep,
// only while the holder is inside, which is short: nothing of a user runs there (so only what moves by a copy of bytes is
// moved there) but the methods of a policy; and nobody inside waits for a lock of a primitive.
//
// Numbers are never used twice. A processor that retires takes a new one, inside: nobody can be in a section of the old one
// from then on, and who finds an unknown number may take the word. So a lock may outlive a runtime, and a
// processor knows nothing of the locks that are biased to it: they may go at any time.
//
// Cost. Inside: a load and a comparison. Taking it away: a membarrier, so a bias must be worth it: sched/bias_count.hpp.

#include <cstdint>

#include "base/atomic.hpp"
#include "os/lock.hpp"
#include "carry/ownership.hpp"

namespace ums::sched {

class processor;

// The steps that the argument is about. Word: base::atomic or base::atomic_ref.
struct bias_word {
    using states = os::lock_states;

    template <class Word>
    [[nodiscard]] static bool is_biased(const Word& word) noexcept {
        return word.load(base::relaxed) > states::held;  // relaxed: a hint.
    }
    // Inside the processor: whether the section may begin.
    template <class Word>
    [[nodiscard]] static bool is_mine(const Word& word, std::uint32_t bias) noexcept {
        // sync(bias): sees what the one who made it biased did before.
        return word.load(base::acquire) == bias;
    }
    // By who is inside, or has a claim: makes it held, by the caller. False: it is not this one's.
    template <class Word>
    [[nodiscard]] static bool take(Word& word, std::uint32_t bias) noexcept {
        // sync(bias): as above. What was done inside the ownership orders.
        return word.compare_exchange(bias, states::held, base::acq_rel, base::relaxed);
    }
};

struct bias {
    static constexpr std::uint32_t none = ~std::uint32_t{0};  // No lock ever says that.

    // A processor's life. renew(): nobody will use the bias that it had. By who is inside, or nobody can be.
    static void add(processor& p) noexcept;
    static void renew(processor& p) noexcept;
    static void remove(processor& p) noexcept;

    // The calling fiber's processor's, or none.
    static std::uint32_t mine() noexcept;

    // os::lock_states::revoke.
    static std::uint32_t revoke(std::uint32_t& word, std::uint32_t seen) noexcept;
};

}  // namespace ums::sched
