// SPDX-License-Identifier: MIT
#pragma once

// internal/modelled/sync_surroundings.hpp: what the text of src/sync sees of the layers below it,
// in a model: strands that park, a wait list, and words that say when they are used too late.
//
// Include it before the text, with `base` renamed to modelled_base, `os` to modelled_waits, `sched`
// to modelled, `sync` to modelled_sync and `impl` to modelled_impl. A strand's slot() is its fiber.

#include <cstdint>
#include <stop_token>
#include <string>

#include "internal/exclusion_model.hpp"
#include "internal/modelled/kept.hpp"
#include "internal/modelled/mutants.hpp"
#include "ums/deadline.hpp"
#include "ums/options.hpp"

namespace ums::modelled {

using tso::kept;
using tso::model;

struct alignas(8) parkable {
    enum class reason : std::uint8_t { wake, deadline, stop };
    bool is_fiber = true;
    kept<bool> is_held{false};
    modelled_base::atomic<std::uint32_t> token;
};

// A strand, with what a text's waiter keeps on its stack and others may use late.
struct fiber : os::slot_head, parkable {
    modelled_os::lock lock;
    modelled_base::atomic<std::uint32_t> phase;
    model::cell has_ended = model::running().make(0);
    bool is_there = false;  // It is a strand of the program.
};

inline parkable& this_parkable() { return *static_cast<fiber*>(model::running().slot()); }
inline bool may_look_again() { return false; }

enum class park_kind { internal };
enum class wait_kind { mutex, shared_mutex, shared_mutex_shared, condition, semaphore, permit };

struct lock_wait {
    template <class... T>
    explicit lock_wait(const T&...) {}
};
using wait = lock_wait;

inline parkable::reason park(park_kind, os::nanoseconds until, const std::stop_token*) {
    auto& token = this_parkable().token;
    while (token.exchange(0, base::acquire) == 0)
        if (!modelled_os::futex_wait(token, 0, until)) return parkable::reason::deadline;
    return parkable::reason::wake;
}
inline void park(park_kind kind) { static_cast<void>(park(kind, os::never, nullptr)); }
inline void wake(parkable& who) {
    model& m = model::running();
    m.step("wakes");
    // A plain thread would be gone, with what is woken here.
    if (m.at(static_cast<fiber&>(who).has_ended) != 0) m.fail("woken after its end");
    if (who.token.exchange(1, base::acq_rel) != 0) m.fail("woken twice");
    modelled_os::futex_wake(who.token.address());
}

}  // namespace ums::modelled

namespace ums::modelled_sync {

using tso::kept;

// Whether the object of the program is there: what uses it later goes wrong. Call use() after the
// use, with which it is one step.
inline bool is_gone = false;
inline void use() {
    if (is_gone) tso::model::running().fail("an object is used that is gone");
}

}  // namespace ums::modelled_sync

namespace ums::modelled_base {

template <class T>
class atomic_ref {
    using place = std::source_location;
    atomic<T>& of_;

public:
    explicit atomic_ref(atomic<T>& of) noexcept : of_{of} {}
    T load(std::memory_order o, const place& at = place::current()) const noexcept {
        const T v = of_.load(o, at);
        modelled_sync::use();
        return v;
    }
    void store(T v, std::memory_order o, const place& at = place::current()) const noexcept {
        of_.store(v, o, at);
        modelled_sync::use();
    }
    bool compare_exchange(T& e, T d, std::memory_order s, std::memory_order f,
                          const place& at = place::current()) const noexcept {
        const bool done = of_.compare_exchange(e, d, s, f, at);
        modelled_sync::use();
        return done;
    }
    T fetch_and(T v, std::memory_order o, const place& at = place::current()) const noexcept {
        const T before = of_.fetch_and(v, o, at);
        modelled_sync::use();
        return before;
    }
    T fetch_add(T v, std::memory_order o, const place& at = place::current()) const noexcept {
        const T before = of_.fetch_add(v, o, at);
        modelled_sync::use();
        return before;
    }
};

}  // namespace ums::modelled_base

// What the text sees of os/.
namespace ums::modelled_waits {

using modelled_os::lock;
using modelled_os::lock_guard;
using modelled_os::lock_rank;
using modelled_os::nanoseconds;
using modelled_os::never;
using os::to_nanoseconds;

inline int usable_cpus() { return 2; }

// The clock, which goes on by `tick` at each look.
inline modelled_base::atomic<nanoseconds>* clock = nullptr;
inline nanoseconds tick = 0;
inline nanoseconds now() noexcept { return tick == 0 ? 0 : clock->fetch_add(tick, base::relaxed); }

class word_guard {
public:
    explicit word_guard(modelled_os::lock& of) noexcept : lock_{of} { lock(); }
    ~word_guard() {
        if (holds_) unlock();
    }
    word_guard(const word_guard&) = delete;
    word_guard& operator=(const word_guard&) = delete;
    void lock() noexcept {
        lock_.acquire();
        modelled_sync::use();
        holds_ = true;
    }
    void unlock() noexcept {
        holds_ = false;
        lock_.release();
        modelled_sync::use();
    }

private:
    modelled_os::lock& lock_;
    bool holds_ = false;
};

}  // namespace ums::modelled_waits

namespace ums::modelled_impl {

using tso::kept;

struct waiter;

struct wait_list {
    modelled_os::lock lock;
    kept<waiter*> first{nullptr};
    unsigned spare = 0;
};

}  // namespace ums::modelled_impl

namespace ums::tso {

// The machine of a program, whose strands are `fibers`. It lies at one address in every execution,
// because words hold addresses, and is not destroyed, because its words disappeared with the
// execution.
template <class Machine>
Machine& remade() {
    alignas(Machine) static char room[sizeof(Machine)];
    modelled_sync::is_gone = false;
    return *new (room) Machine;
}

// A strand of the program that is this fiber.
template <class F>
void add_fiber(model& of, const std::string& name, modelled::fiber& self, F body) {
    self.is_there = true;
    of.strand(name, [&self, body] {
        model::running().slot() = &self;
        body();
        model::running().at(self.has_ended) = 1;
    });
}

// Whether one of the first n strands waits although no other will wake it.
inline bool sleeps_for_ever(const model& of, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
        if (!of.is_done(i) && !of.sleeps_for_a_time(i)) return true;
    return false;
}

}  // namespace ums::tso
