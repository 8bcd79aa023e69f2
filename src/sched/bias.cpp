// SPDX-License-Identifier: MIT
#include "sched/bias.hpp"

#include <sched.h>

#include "base/chain.hpp"
#include "os/lock.hpp"
#include "sched/carrier.hpp"
#include "sched/fiber.hpp"
#include "sched/processor.hpp"

namespace ums::sched {

namespace {

// Guards the list, and each processor's number against who looks it up.
os::lock all_lock{os::lock_rank::leaf};
processor* all = nullptr;
std::uint32_t last_number = os::lock_states::held;

enum class outcome { taken, not_its, later };

// By a carrier, which may be inside its processor already: in a policy's method.
UMS_ALWAYS_INLINE bool take_from_self(base::atomic_ref<std::uint32_t> word,
                                      std::uint32_t seen) noexcept {
    carrier* c = this_carrier();
    if (c == nullptr) return false;
    if (c->own.is_inside())
        return c->proc.get() != nullptr && c->proc.get()->bias() == seen &&
               bias_word::take(word, seen);
    processor* p = c->running.get() != nullptr ? c->enter() : nullptr;
    if (p == nullptr) return false;
    const bool is_taken = p->bias() == seen && bias_word::take(word, seen);
    c->leave(c->running.get()->race);
    return is_taken;
}

// By a claim on who holds the processor of that number.
outcome take_by_claim(base::atomic_ref<std::uint32_t> word, std::uint32_t seen, processor* p,
                      base::atomic<carrier*>* holder_of) noexcept {
    // Retired, or gone: nobody is inside with this number.
    if (p == nullptr) return bias_word::take(word, seen) ? outcome::taken : outcome::not_its;
    // sync(holder): sees the carrier.
    carrier* holder = holder_of->load(base::acquire);
    if (holder == nullptr || !holder->own.try_claim()) return outcome::later;
    outcome result = outcome::later;
    // relaxed: the claim orders it: only who has one moves the processor on.
    if (holder_of->load(base::relaxed) == holder)
        result = bias_word::take(word, seen) ? outcome::taken : outcome::not_its;
    holder->own.unclaim();
    return result;
}

}  // namespace

void bias::add(processor& p) noexcept {
    // relaxed: before there is a bias.
    os::lock_states::revoke.store(&revoke, base::relaxed);
    const os::lock_guard guard{all_lock};
    p.bias_.set(last_number == none - 1 ? none : ++last_number);
    base::chain::push_front(all, p, &processor::next_biased_);
}

void bias::renew(processor& p) noexcept {
    const os::lock_guard guard{all_lock};
    p.bias_.set(last_number == none - 1 ? none : ++last_number);
}

void bias::remove(processor& p) noexcept {
    const os::lock_guard guard{all_lock};
    base::chain::remove(all, p, &processor::next_biased_);
}

std::uint32_t bias::mine() noexcept {
    const carrier* c = this_carrier();
    if (c == nullptr || c->running.get() == nullptr) return none;
    // A hint, outside: it may have been taken away meanwhile.
    const processor* p = c->proc.get();
    return p != nullptr ? p->bias() : none;
}

std::uint32_t bias::revoke(std::uint32_t& at, std::uint32_t seen) noexcept {
    const base::atomic_ref<std::uint32_t> word{at};
    if (take_from_self(word, seen)) {
        // sync(bias): in the fiber's own order, whatever it did inside.
        static_cast<void>(word.load(base::acquire));
        return seen;
    }
    for (int tries = 0;; ++tries) {
        {
            const os::lock_guard guard{all_lock};
            processor* p = all;
            while (p != nullptr && p->bias_.get() != seen) p = p->next_biased_;
            const outcome got = take_by_claim(word, seen, p, p != nullptr ? &p->holder_ : nullptr);
            if (got == outcome::taken) return os::lock_states::free;
            if (got == outcome::not_its) return os::lock_states::held;
        }
        // Its holder is inside, or a thief is: both are short, but the kernel may have preempted them.
        if (tries < 10)
            base::spin_pause();
        else
            ::sched_yield();
        if (word.load(base::relaxed) != seen) return os::lock_states::held;
    }
}

}  // namespace ums::sched
