// SPDX-License-Identifier: MIT
#include "sched/lock/bias.hpp"

#include <sched.h>

#include "base/assert.hpp"
#include "base/chain.hpp"
#include "os/lock.hpp"
#include "sched/run/carrier.hpp"
#include "sched/run/here.hpp"
#include "sched/run/processor.hpp"

namespace ums::sched {

namespace {

// Guards the list, and each processor's number against threads that look it up.
os::lock all_lock{os::lock_rank::leaf};
processor* all = nullptr;
std::uint32_t last_number = os::lock_states::held;

enum class outcome { taken, not_its, later };

// For a carrier, which may already be inside its processor, in a policy's method.
UMS_ALWAYS_INLINE bool take_from_self(base::atomic_ref<std::uint32_t> word,
                                      std::uint32_t seen) noexcept {
    const here at;
    if (at.on == nullptr) return false;
    if (at.on->ownership.is_inside())
        return at.at() != nullptr && at.at()->bias_number.get() == seen &&
               bias_word::take(word, seen);
    processor* p = at.self != nullptr ? at.enter() : nullptr;
    if (p == nullptr) return false;
    const bool is_taken = p->bias_number.get() == seen && bias_word::take(word, seen);
    at.leave();
    return is_taken;
}

// Takes the bias under a claim on the holder of the processor with that number.
outcome take_by_claim(base::atomic_ref<std::uint32_t> word, std::uint32_t seen,
                      processor* p) noexcept {
    // The processor has retired, or is gone: no code is inside with this number.
    if (p == nullptr) return bias_word::take(word, seen) ? outcome::taken : outcome::not_its;
    carrier* holder = p->holder();
    if (holder == nullptr || !holder->ownership.try_claim()) return outcome::later;
    outcome result = outcome::later;
    if (p->is_held_by(*holder))
        result = bias_word::take(word, seen) ? outcome::taken : outcome::not_its;
    holder->ownership.unclaim();
    return result;
}

}  // namespace

void bias::add(processor& p) noexcept {
    // relaxed: this comes before there is any bias.
    os::lock_states::revoke.store(&revoke, base::relaxed);
    const os::lock_guard guard{all_lock};
    p.bias_number.set(last_number == none - 1 ? none : ++last_number);
    base::chain::push_front(all, p, &processor::next_biased);
}

void bias::renew(processor& p) noexcept {
    const os::lock_guard guard{all_lock};
    p.bias_number.set(last_number == none - 1 ? none : ++last_number);
}

void bias::remove(processor& p) noexcept {
    const os::lock_guard guard{all_lock};
    UMS_ASSERT(all != nullptr, "a processor ends that is in no list of processors");
    base::chain::remove(all, p, &processor::next_biased);
}

void bias::leave_behind() noexcept {
    all_lock.leave_behind();
    all = nullptr;
}

std::uint32_t bias::mine() noexcept {
    const here at;
    if (at.self == nullptr) return none;
    // A hint, read outside: the processor may have been taken away meanwhile.
    const processor* p = at.at();
    return p != nullptr ? p->bias_number.get() : none;
}

std::uint32_t bias::revoke(std::uint32_t& at, std::uint32_t seen) noexcept {
    const base::atomic_ref<std::uint32_t> word{at};
    if (take_from_self(word, seen)) {
        // sync(bias): orders the fiber's own accesses, whatever it did inside.
        static_cast<void>(word.load(base::acquire));
        return seen;
    }
    for (int tries = 0;; ++tries) {
        {
            const os::lock_guard guard{all_lock};
            processor* p = all;
            while (p != nullptr && p->bias_number.get() != seen) p = p->next_biased;
            const outcome got = take_by_claim(word, seen, p);
            if (got == outcome::taken) return os::lock_states::free;
            if (got == outcome::not_its) return os::lock_states::held;
        }
        // Either its holder is inside, or a thief is. Both are short, but the kernel may have
        // preempted them.
        if (tries < 10)
            base::spin_pause();
        else
            ::sched_yield();
        if (word.load(base::relaxed) != seen) return os::lock_states::held;
    }
}

}  // namespace ums::sched
