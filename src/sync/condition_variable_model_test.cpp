// SPDX-License-Identifier: MIT
//
// The text of sync/condition_variable and sync/wait_list in every execution that C++20 allows, up
// to a bound: no notify is lost, none comes twice, and the object may be destroyed once its waiters
// have been notified. Without biased lists.

#include <array>
#include <mutex>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "internal/modelled/sync_surroundings.hpp"
#include "os/lock.hpp"

namespace ums::modelled {

inline void resume_held(parkable&) {}
struct bias {
    static std::uint32_t mine() { return 0; }
};
struct bias_count {
    template <class... T>
    static bool note(T&...) {
        return false;
    }
};

}  // namespace ums::modelled

namespace ums::modelled_waits {

using os::lock_states;

// The lock of the object, as opposed to a waiter's.
inline const lock* of_object = nullptr;

struct lock_word {
    static void acquire(lock& l) noexcept {
        l.acquire();
        use(l);
    }
    static void release(lock& l) noexcept {
        l.release();
        use(l);
    }
    static bool try_acquire(lock& l) noexcept {
        const bool done = l.try_acquire();
        use(l);
        return done;
    }
    static void use(const lock& l) noexcept {
        if (&l == of_object) modelled_sync::use();
    }
};

}  // namespace ums::modelled_waits

namespace ums::modelled_impl {

using word = modelled_base::atomic_ref<std::uintptr_t>;

struct mutex {
    modelled_os::lock is_held;
    void lock() noexcept { is_held.acquire(); }
    void unlock() noexcept { is_held.release(); }
};
struct condition_state {
    modelled_base::atomic<std::uintptr_t> head;
    wait_list waiters;
    unsigned count = 0;
};
struct foreign_lock {
    void* lock;
    void (*unlock)(void*);
};
struct condition_calls {
    static void notify_one(condition_state& c) noexcept;
    static void notify_all(condition_state& c) noexcept;
    static bool wait(condition_state& c, const std::unique_lock<mutex>& held, deadline limit,
                     const std::stop_token* stop) noexcept;
    static bool wait(condition_state& c, foreign_lock held, deadline limit,
                     const std::stop_token* stop) noexcept;
};

// A strand's own word, of which its wait begins.
inline modelled_base::atomic<std::uint32_t>& reset(modelled_base::atomic<std::uint32_t>& of) {
    of.store(0, base::relaxed);
    return of;
}

}  // namespace ums::modelled_impl

#define base modelled_base
#define os modelled_waits
#define sched modelled
#define sync modelled_sync
#define impl modelled_impl
#include "sync/wait_list.cpp"

namespace ums::impl {

using namespace sync;
using os::lock_word;

#include "sync/condition_variable.cpp"

}  // namespace ums::impl
#undef base
#undef os
#undef sched
#undef sync
#undef impl

namespace {

using calls = ums::modelled_impl::condition_calls;
using ums::tso::model;

struct machine {
    ums::modelled_impl::condition_state condition;
    ums::modelled_impl::mutex mutex;
    ums::tso::kept<int> items{0};  // Guarded by the mutex.
    ums::tso::fixed<int> gift{0};  // Of the only strand that notifies at any time.
    bool has_gift = false;
    std::array<ums::modelled::fiber, 3> fibers;
    // For the proof: how many waits are over.
    model::cell over = model::running().make(0);

    machine() { ums::modelled_waits::of_object = &condition.waiters.lock; }

    // Returns whether it was notified, or need not wait.
    bool waits(bool is_timed, bool is_foreign) {
        const ums::deadline limit =
            is_timed ? ums::deadline{std::chrono::hours{1}} : ums::deadline::max();
        std::unique_lock held{mutex};
        if (items != 0) return true;
        if (!is_foreign) return calls::wait(condition, held, limit, nullptr);
        held.release();
        return calls::wait(condition, {&mutex, &unlock}, limit, nullptr);
    }
    // The same with a lock that no other uses, at any time.
    void waits_alone() {
        calls::wait(condition, {nullptr, &unlock}, ums::deadline::max(), nullptr);
        if (has_gift && gift != 1) model::running().fail("what came before the notify is not seen");
    }
    // A lock of its own choice, which may park: a wake-up would end that.
    static void unlock(void* m) {
        model& of = model::running();
        const model::cell sleeps_in_it = static_cast<ums::modelled::fiber*>(of.slot())->has_ended;
        of.at(sleeps_in_it) = 1;
        if (m != nullptr) static_cast<ums::modelled_impl::mutex*>(m)->unlock();
        of.step("unlocks");
        of.at(sleeps_in_it) = 0;
    }
    void notifies(char kind) {
        if (has_gift) {
            gift = 1;
        } else if (kind != 'n' && kind != 'N') {
            mutex.lock();
            items = 1;
            mutex.unlock();
        }
        kind == '1' || kind == 'n' ? calls::notify_one(condition) : calls::notify_all(condition);
        if (kind == 'A') ums::modelled_sync::is_gone = true;
    }
};

// Each letter is a strand: w waits, W for a time only, which may pass; f and F so with a lock of
// their own choice, g with one that no other uses, x so twice. 1 and a: notifies one, or all; A:
// and destroys; n and N: notifies one, or all, at any time.
ums::tso::program with(std::string_view strands, unsigned preemptions) {
    const auto build = [strands](model& of) {
        auto& s = ums::tso::remade<machine>();
        // The others have the mutex, or several that notify.
        s.has_gift = strands.find_first_not_of("gnN") == std::string_view::npos;
        for (std::size_t n = 0; n < strands.size(); ++n) {
            const char kind = strands[n];
            ums::tso::add_fiber(of, std::string{kind} + std::to_string(n), s.fibers[n], [&s, kind] {
                const bool is_foreign = kind == 'f' || kind == 'F';
                const bool is_timed = kind == 'W' || kind == 'F';
                if (kind == 'g' || kind == 'x')
                    for (int i = 0; i < (kind == 'x' ? 2 : 1); ++i) s.waits_alone();
                else if (!is_foreign && !is_timed && kind != 'w')
                    return s.notifies(kind);
                else if (!s.waits(is_timed, is_foreign) && !is_timed)
                    model::running().fail("a wait without a limit gave up");
                ++model::running().at(s.over);
            });
        }
        of.at_rest([&s, &of, strands]() -> std::string {
            const std::size_t waiters = strands.find_first_of("1aAnN");
            // One notify is there for one of two, and one at any time may be too early.
            const std::size_t left = strands.find_first_of("nN") != std::string_view::npos ? waiters
                                     : strands.find('1') != std::string_view::npos ? waiters - 1
                                                                                   : 0;
            if (ums::tso::sleeps_for_ever(of, strands.size()) && of.at(s.over) + left < waiters)
                return "one sleeps for ever";
            if (of.at(s.condition.head.cell()) != 0 && of.at(s.over) == waiters)
                return "the head names one that has gone";
            return "";
        });
    };
    const bool has_limits = strands.find_first_of("WF") != std::string_view::npos;
    return {.name = strands.data(),
            .build = build,
            .timeouts = has_limits ? 1u : 0u,
            .preemptions = preemptions,
            .histories = true,
            .stack_cells = 16};
}

ums::tso::mutation_test all() {
    return {{with("w1", 3),  with("wA", 3),  with("W1", 3),  with("WA", 3),  with("f1", 3),
             with("fA", 3),  with("FA", 3),  with("wwA", 2), with("wWA", 2), with("WwA", 2),
             with("WWA", 2), with("WW1", 2), with("wW1", 2), with("wFA", 2), with("ww1", 2),
             with("wn", 3),  with("gn", 3),  with("Wn", 3),  with("gN", 3),  with("ggn", 2),
             with("ggN", 2), with("gWn", 2), with("xnn", 2)},
            {
#include "condition_variable_model_test.inc"
            },
            {},
            {"sync/condition_variable.cpp"}};
}

TEST(condition_variable_model_test, no_notify_is_lost) { all().text_is_correct(); }
TEST(condition_variable_model_test, finds_each_mutant) { all().finds_each_mutant(); }
TEST(condition_variable_model_test, its_orders_are_needed) { all().finds_each_order(); }

}  // namespace
