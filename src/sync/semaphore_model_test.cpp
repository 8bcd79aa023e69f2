// SPDX-License-Identifier: MIT
//
// The text of sync/semaphore and sync/wait_list in every execution that C++20 allows, up to a
// bound: no permit is lost or there twice, a permit brings what came before its release(), no
// waiter is left asleep, and a waiter that was woken may destroy the semaphore.

#include <array>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "internal/modelled/sync_surroundings.hpp"

namespace ums::modelled_impl {

struct semaphore_state {
    modelled_base::atomic<std::uintptr_t> word;
    wait_list waiters;
};

struct semaphore_calls {
    static void acquire(semaphore_state& s) noexcept;
    static bool try_acquire(semaphore_state& s) noexcept;
    static bool acquire_until(semaphore_state& s, deadline limit);
    static bool acquire_or_stop(semaphore_state& s, const std::stop_token& stop,
                                deadline limit = deadline::max());
    static std::ptrdiff_t permits(const semaphore_state& s) noexcept;
    static void release(semaphore_state& s, std::ptrdiff_t n, std::ptrdiff_t most) noexcept;
    static void release_if_none(semaphore_state& s) noexcept;
};

[[noreturn]] inline void misuse(const char* what) {
    tso::model::running().fail(what);
    std::abort();
}

}  // namespace ums::modelled_impl

#define base modelled_base
#define os modelled_waits
#define sched modelled
#define sync modelled_sync
#define impl modelled_impl
#include "sync/semaphore.cpp"
#include "sync/wait_list.cpp"
#undef base
#undef os
#undef sched
#undef sync
#undef impl

namespace {

using calls = ums::modelled_impl::semaphore_calls;
using ums::base::relaxed;
using ums::tso::model;

struct machine {
    ums::modelled_impl::semaphore_state semaphore;
    std::array<ums::modelled::fiber, 4> fibers;
    std::array<ums::modelled_base::atomic<unsigned>, 4> gifts;  // Of those that release.
    // For the proof.
    model::cell taken = model::running().make(0), released = model::running().make(0);
};

// Each letter is a strand: a acquires; A within a time, which may pass; D acquires and destroys. A
// digit releases so many permits, d one twice, r one if there is none.
void run(machine& s, std::string_view strands, std::size_t n) {
    model& m = model::running();
    const char kind = strands[n];
    if (kind == 'r') {
        s.gifts[n].store(1, relaxed);
        return calls::release_if_none(s.semaphore);
    }
    if (kind == 'd' || (kind >= '0' && kind <= '9')) {
        const int permits = kind == 'd' ? 1 : kind - '0';
        for (int i = 0; i < (kind == 'd' ? 2 : 1); ++i) {
            s.gifts[n].store(1, relaxed);
            m.at(s.released) += static_cast<model::value>(permits);
            calls::release(s.semaphore, permits, 100);
        }
        return;
    }
    if (kind == 'A') {
        if (!calls::acquire_until(s.semaphore, ums::deadline{std::chrono::hours{1}})) return;
    } else {
        calls::acquire(s.semaphore);
    }
    ++m.at(s.taken);
    // Of two that release, the other may be late.
    const std::size_t first = strands.find_first_of("0123456789dr");
    if (first == strands.size() - 1 && s.gifts[first].load(relaxed) != 1)
        m.fail("what came before the release is not seen");
    if (kind == 'D') ums::modelled_sync::is_gone = true;
}

ums::tso::program with(std::string_view strands, unsigned preemptions) {
    const auto build = [strands](model& of) {
        auto& s = ums::tso::remade<machine>();
        for (std::size_t n = 0; n < strands.size(); ++n)
            ums::tso::add_fiber(of, std::string{strands[n]} + std::to_string(n), s.fibers[n],
                                [&s, strands, n] { run(s, strands, n); });
        of.at_rest([&s, &of, strands]() -> std::string {
            for (std::size_t n = 0; n < strands.size(); ++n)
                if (strands[n] == 'A' && !of.is_done(n) && !of.sleeps_for_a_time(n))
                    return "one that has given up sleeps";
            const model::value word = of.at(s.semaphore.word.cell());
            const model::value left = (word & 1) != 0 ? 0 : word / 2;
            if (left != 0 && ums::tso::sleeps_for_ever(of, strands.size()))
                return "one sleeps for ever";
            const model::value there = of.at(s.taken) + left;
            if (strands.find('r') != std::string_view::npos)
                return there == 1 || there == 2 ? "" : "a permit was lost";
            return there == of.at(s.released) ? "" : "a permit was lost";
        });
    };
    const bool has_limits = strands.find('A') != std::string_view::npos;
    return {.name = strands.data(),
            .build = build,
            .timeouts = has_limits ? 1u : 0u,
            .preemptions = preemptions,
            .histories = true,
            .stack_cells = 16};
}

ums::tso::mutation_test all() {
    return {{with("a1", 3), with("A1", 3), with("D1", 3), with("a2", 3), with("ar", 3),
             with("Aa", 3), with("aa2", 2), with("aA2", 2), with("Aa1", 2), with("AA1", 2),
             with("arr", 2), with("aAd", 1), with("aa11", 1), with("aAa2", 1)},
            {
#include "semaphore_model_test.inc"
            },
            {},
            {"sync/semaphore.cpp"}};
}

TEST(semaphore_model_test, no_permit_is_lost) { all().text_is_correct(); }
TEST(semaphore_model_test, finds_each_mutant) { all().finds_each_mutant(); }
TEST(semaphore_model_test, its_orders_are_needed) { all().finds_each_order(); }

}  // namespace
