// SPDX-License-Identifier: MIT
//
// The text of sync/shared_mutex and sync/wait_list in every execution that C++20 allows, up to a
// bound: a writer is alone, a section sees what the ones before it wrote, no waiter is left asleep,
// and the last holder may destroy the object.

#include <array>
#include <string>
#include <string_view>
#include <system_error>

#include <gtest/gtest.h>

#include "internal/modelled/sync_surroundings.hpp"

namespace ums::modelled_impl {

struct shared_mutex_state {
    modelled_base::atomic<std::uintptr_t> holder;
    wait_list waiters;
};

struct shared_mutex_calls {
    static void lock(shared_mutex_state& m);
    static bool try_lock(shared_mutex_state& m) noexcept;
    static bool lock_until(shared_mutex_state& m, deadline limit);
    static bool lock_or_stop(shared_mutex_state& m, deadline limit, const std::stop_token& stop);
    static void lock_shared(shared_mutex_state& m);
    static bool try_lock_shared(shared_mutex_state& m) noexcept;
    static bool lock_shared_until(shared_mutex_state& m, deadline limit);
    static bool lock_shared_or_stop(shared_mutex_state& m, deadline limit,
                                    const std::stop_token& stop);
    static void unlock(shared_mutex_state& m) noexcept;
    static void unlock_shared(shared_mutex_state& m) noexcept;
    static bool is_writer(const shared_mutex_state& m) noexcept;
    static bool is_read(const shared_mutex_state& m) noexcept;
};

}  // namespace ums::modelled_impl

#define base modelled_base
#define os modelled_waits
#define sched modelled
#define sync modelled_sync
#define impl modelled_impl
#include "sync/shared_mutex.cpp"
#include "sync/wait_list.cpp"
#undef base
#undef os
#undef sched
#undef sync
#undef impl

namespace {

using calls = ums::modelled_impl::shared_mutex_calls;
using ums::tso::model;
constexpr auto relaxed = ums::base::relaxed;

struct machine {
    ums::modelled_impl::shared_mutex_state mutex;
    std::array<ums::modelled::fiber, 4> fibers;
    ums::modelled_base::atomic<unsigned> number;  // Guarded by the mutex.
    // Written by the readers, each its own; the next writer touches all.
    std::array<ums::tso::kept<unsigned>, 4> notes;
    // For the proof.
    model::cell writers = model::running().make(0), readers = model::running().make(0);
    model::cell sections = model::running().make(0), left = model::running().make(0);

    void write() {
        model& m = model::running();
        if (++m.at(writers) != 1 || m.at(readers) != 0) m.fail("a writer is not alone");
        m.step("inside");
        number.store(number.load(relaxed) + 1, relaxed);
        for (auto& one : notes) one = 0;
        --m.at(writers);
        ++m.at(sections);
    }
    void read(std::size_t n) {
        model& m = model::running();
        ++m.at(readers);
        if (m.at(writers) != 0) m.fail("a reader is in with a writer");
        const auto sections_before = static_cast<unsigned>(m.at(sections));
        if (number.load(relaxed) != sections_before) m.fail("a reader sees an old value");
        notes[n] = 1;
        --m.at(readers);
    }
};

// Each letter is a strand: w writes, r reads; a capital one waits for a time only, which may pass;
// h reads and stays.
struct shape {
    std::string_view strands;
    int each = 1;
    bool last_destroys = false;
};

void run(machine& s, const shape& p, std::size_t n) {
    const char kind = p.strands[n];
    const bool writes = kind == 'w' || kind == 'W';
    constexpr ums::deadline soon{std::chrono::hours{1}};
    for (int i = 0; i < p.each; ++i) {
        bool is_in = true;
        if (kind == 'w') calls::lock(s.mutex);
        if (kind == 'r' || kind == 'h') calls::lock_shared(s.mutex);
        if (kind == 'W') is_in = calls::lock_until(s.mutex, soon);
        if (kind == 'R') is_in = calls::lock_shared_until(s.mutex, soon);
        if (!is_in) break;
        writes ? s.write() : s.read(n);
        if (kind == 'h') return;
        const bool is_last = i + 1 == p.each && --model::running().at(s.left) == 0;
        writes ? calls::unlock(s.mutex) : calls::unlock_shared(s.mutex);
        if (is_last && p.last_destroys) ums::modelled_sync::is_gone = true;
    }
}

ums::tso::program with(std::string_view strands, unsigned preemptions, int each = 1,
                       bool last_destroys = false) {
    const shape p{strands, each, last_destroys};
    const auto build = [p](model& of) {
        auto& s = ums::tso::remade<machine>();
        of.at(s.left) = p.strands.size();
        for (std::size_t n = 0; n < p.strands.size(); ++n)
            ums::tso::add_fiber(of, std::string{p.strands[n]} + std::to_string(n), s.fibers[n],
                                [&s, p, n] { run(s, p, n); });
        of.at_rest([&s, &of, p]() -> std::string {
            // Where one stays, a writer waits for ever, and so may readers behind it.
            const bool stays = p.strands.find('h') != std::string_view::npos;
            for (std::size_t n = 0; stays && n < p.strands.size(); ++n)
                if ((p.strands[n] == 'w' || p.strands[n] == 'W') && !of.is_done(n)) return "";
            if (ums::tso::sleeps_for_ever(of, p.strands.size())) return "one sleeps for ever";
            if (!stays && of.at(s.mutex.holder.cell()) != 0) return "the word is not clean";
            return of.at(s.number.cell()) == of.at(s.sections) ? "" : "an addition was lost";
        });
    };
    const bool has_limits = strands.find_first_of("WR") != std::string_view::npos;
    return {.name = strands.data(),
            .build = build,
            .timeouts = has_limits ? 1u : 0u,
            .preemptions = preemptions,
            .histories = true,
            .stack_cells = 16};
}

ums::tso::mutation_test all() {
    return {{with("ww", 3), with("wr", 3), with("rr", 3), with("wr", 3, 1, true), with("Ww", 3),
             with("Wr", 3), with("Rw", 3), with("wrr", 2), with("wwr", 2), with("rWr", 2),
             with("wWr", 2), with("wr", 3, 2), with("hWr", 1), with("whWr", 0), with("rwrr", 0)},
            {
#include "shared_mutex_model_test.inc"
            },
            {{"who_leaves_does_not_look_whether_others_read",
              "needs a reader that leaves, a writer that gives up, a reader behind it and another "
              "waiter: four strands and three preemptions"}},
            {"sync/shared_mutex.cpp"}};
}

TEST(shared_mutex_model_test, a_writer_is_alone_and_no_waiter_left_asleep) {
    all().text_is_correct();
}
TEST(shared_mutex_model_test, finds_each_mutant) { all().finds_each_mutant(); }
TEST(shared_mutex_model_test, its_orders_are_needed) { all().finds_each_order(); }

}  // namespace
