// SPDX-License-Identifier: MIT
#pragma once

// sched/lock/bias.hpp: a primitive's lock that is biased to a processor.
//
// Code running on a processor has it to itself (carry/ownership.hpp), and pays two plain stores and
// a load for that; a wait or a wake-up, which ends most operations of a channel, pays them anyway.
// So a lock's word (os/lock.hpp) may say, instead of "free" or "held", "belongs to processor number
// n". Then code that is inside that processor may use what the lock guards, and no other code may.
// To all others the word is held.
//
//   inside: enter() the processor;            elsewhere: acquire(), which fails, as it is not free;
//     load the word: this processor's           claim the processor's holder (a heavy fence);
//     ... section, perhaps a switch ...         the word: from the bias to held, by
//   leave()                                     compare-and-swap;
//                                               unclaim; now the lock is the caller's, as usual
//
// Exclusion is that of the ownership. Only code that is inside a processor, or holds a claim on its
// holder, changes the word from that processor's bias, so what was read there stays true from
// enter() to leave(). Only the holder of the lock changes the word to a bias, with a release store
// in place of the one that would free it; inside, the load acquires that. It does not matter
// whether the storing thread works on that processor, or on any. So a bias survives when its
// processor moves to another carrier (a hand-off): it names the processor, and by the ownership,
// code working on that processor has seen everything that was done there before.
//
// A fiber that parks inside (inside::park()) releases the lock at the switch, because the side that
// continues leaves the processor. So a waker that finds the fiber in a list later owns it, as after
// park_holding() (sched/run/park.hpp).
//
// No sleeper is forgotten: making a held word biased is a release. It looks for sleepers as any
// release does, and wakes one, which finds a bias and takes it away. No thread goes to sleep on a
// word that is not "held". A thread that takes a bias away waits, without sleep, only while the
// holder is inside, which is short: no code of a user's runs there except the methods of a policy
// (so values are moved there only if a copy of bytes moves them), and no code inside waits for a
// lock of a primitive.
//
// Numbers are never used twice. A processor that retires takes a new number, inside: from then on
// no code can be in a section of the old one, and a thread that finds an unknown number may take
// the word. So a lock may outlive a runtime, and a processor knows nothing of the locks that are
// biased to it: they may be destroyed at any time.
//
// Cost: inside, a load and a comparison. Taking a bias away costs a membarrier, so a bias must be
// worth it: see sched/lock/bias_count.hpp.

#include <cstdint>

#include "base/atomic.hpp"
#include "carry/ownership.hpp"
#include "os/lock.hpp"

namespace ums::sched {

class processor;

// The steps that the argument is about. Word is base::atomic or base::atomic_ref.
struct bias_word {
    using states = os::lock_states;

    template <class Word>
    [[nodiscard]] static bool is_biased(const Word& word) noexcept {
        return word.load(base::relaxed) > states::held;  // relaxed: a hint.
    }
    // Call inside the processor: returns whether the section may begin.
    template <class Word>
    [[nodiscard]] static bool is_mine(const Word& word, std::uint32_t bias) noexcept {
        // sync(bias): sees what the thread that made it biased did before.
        return word.load(base::acquire) == bias;
    }
    // Makes the word held by the caller, who must be inside or hold a claim. Returns false if the
    // bias is not this one.
    template <class Word>
    [[nodiscard]] static bool take(Word& word, std::uint32_t bias) noexcept {
        // sync(bias): as above. The ownership orders what was done inside.
        return word.compare_exchange(bias, states::held, base::acq_rel, base::relaxed);
    }
};

struct bias {
    static constexpr std::uint32_t none = ~std::uint32_t{0};  // No lock ever says that.

    // A processor's life. After renew(), the bias that it had is never used again. The caller must
    // be inside, or no code may be able to be.
    static void add(processor& p) noexcept;
    static void renew(processor& p) noexcept;
    static void remove(processor& p) noexcept;
    // In the child of a fork(): no processor is there, so whoever finds a bias may take it.
    static void leave_behind() noexcept;

    // The bias of the calling fiber's processor, or none.
    static std::uint32_t mine() noexcept;

    // The function for os::lock_states::revoke.
    static std::uint32_t revoke(std::uint32_t& at, std::uint32_t seen) noexcept;
};

}  // namespace ums::sched
