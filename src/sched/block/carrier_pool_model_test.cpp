// SPDX-License-Identifier: MIT
//
// The spares of sched/block/carrier_pool and carry/turn in every execution that C++20 allows, up to
// a bound: no carrier stays blocked with its processor beside a spare, none that was refused a
// permit beside a free one, each processor has one holder, and the end of the pool finds all.

#include <array>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "internal/modelled/sync_surroundings.hpp"

namespace ums::modelled_waits {

using modelled_os::futex_wait;
using modelled_os::futex_wake;

}  // namespace ums::modelled_waits

// Chains of links that the model checks.
namespace ums::base::chain {

template <class T>
void push_front(tso::kept<T*>& first, T& item, tso::kept<T*> T::*link) noexcept {
    item.*link = first.get();
    first = &item;
}
template <class T>
void push_back(tso::kept<T*>& first, T& item, tso::kept<T*> T::*link) noexcept {
    tso::kept<T*>* at = &first;
    while (at->get() != nullptr) at = &(at->get()->*link);
    item.*link = nullptr;
    *at = &item;
}
template <class T>
T* pop_front(tso::kept<T*>& first, tso::kept<T*> T::*link) noexcept {
    T* const item = first;
    if (item != nullptr) first = (item->*link).get();
    return item;
}
template <class T>
bool try_remove(tso::kept<T*>& first, T& item, tso::kept<T*> T::*link) noexcept {
    for (tso::kept<T*>* at = &first; at->get() != nullptr; at = &(at->get()->*link)) {
        if (at->get() != &item) continue;
        *at = (item.*link).get();
        return true;
    }
    return false;
}

}  // namespace ums::base::chain

#define base modelled_base
#define os modelled_waits
#define sched modelled
#define carry modelled_carry
#include "carry/turn.hpp"

namespace ums::carry {

struct maker {
    template <class Pool>
    static void ask(Pool& pool) noexcept {
        pool.asked.fetch_or(1, base::relaxed);
    }
    template <class Pool>
    static void forget(const Pool&) noexcept {}
};

}  // namespace ums::carry

namespace ums::sched {

using carry::turn_word;

struct carrier {
    turn_word turn;
    // One more than the number of its processor, or 0.
    struct {
        [[nodiscard]] const void* get() const noexcept {
            return word.load(base::relaxed) != 0 ? this : nullptr;
        }
        base::atomic<unsigned> word;
    } proc;
    struct {
        struct {
            [[nodiscard]] bool get() const noexcept { return false; }
            void set(bool) noexcept {}
        } stands_by;
    } keeping;
    struct {
        [[nodiscard]] int get() const noexcept { return 0; }
    } cpu;
    struct {
        [[nodiscard]] bool is_started() const noexcept { return is_there; }
        void join() noexcept {
            model::running().await_clear(runs.cell(), ~0ull);
            static_cast<void>(runs.load(base::acquire));
        }
        base::atomic<std::uint32_t> runs;
        bool is_there = false;
    } thread;
    [[nodiscard]] std::uint64_t activity() const noexcept { return 0; }

    kept<carrier*> next{nullptr}, next_wanting{nullptr};
    carrier* next_made = nullptr;
    kept<bool> is_wanting{false};
    bool is_adopted = false;
    bool has_no_permit = false;  // It blocks unmarked, so that its processor's move needs one.
    // What the last holder of its processor did.
    kept<unsigned> seen{0};
};

struct permits {
    [[nodiscard]] bool try_take(unsigned most) noexcept {
        const os::lock_guard guard{lock};
        if (used.get() >= most) return false;
        used.add(1);
        return true;
    }
    bool give() noexcept {
        const os::lock_guard guard{lock};
        used.add(~0u);
        return false;
    }
    [[nodiscard]] bool any_free(unsigned most) noexcept {
        const os::lock_guard guard{lock};
        return used.get() < most;
    }
    os::lock lock;
    kept<unsigned> used{0};
};

struct carrier_pool {
    static constexpr os::nanoseconds linger = 1;

    carrier* take_spare(carrier* blocked, int cpu = -1) noexcept;
    void replenish() noexcept;
    void put_back(carrier& spare) noexcept;
    void run(carrier& spare) noexcept;
    bool serve_wanting(carrier& self) noexcept;
    void serve_refused() noexcept;
    bool wait_for_processor(carrier& self) noexcept;
    void push_wanting(carrier& c) noexcept;
    carrier* pop_wanting() noexcept;
    carrier* pop_spare(int cpu) noexcept;
    void stop() noexcept;
    void give_permit() noexcept;
    carrier* stopped_or_refuse(carrier& c) noexcept;
    void look_again_at_refused() noexcept;
    // Others have models of their own.
    carrier* pop_stopped() noexcept { return nullptr; }
    [[nodiscard]] unsigned bound() const noexcept { return 4; }
    [[nodiscard]] unsigned most_permits() const noexcept { return 1; }
    [[nodiscard]] bool lacks_spare() const noexcept {
        return !stopping_ && counters_.now < bound() &&
               (wanting_count_ > counters_.spare || counters_.spare == 0);
    }

    os::lock lock_;
    carrier* all_ = nullptr;
    kept<carrier*> spares_{nullptr}, unused_{nullptr}, ended_{nullptr}, wanting_{nullptr};
    kept<unsigned> wanting_count_{0};
    kept<std::uint64_t> wants_{0};
    kept<bool> stopping_{false}, looks_at_refused_{false};
    struct {
        kept<unsigned> now{0}, spare{0}, ended{0}, hand_offs{0}, refused{0};
    } counters_;
    permits permits_;
    struct {
        void clear() noexcept {}
    } stopped_list_;
    base::atomic<unsigned> asked;
};

// sched/block/hand_off.cpp has the claim, which only one thread gets.
struct hand_off {
    static bool take_over(carrier& blocked, carrier& spare, std::uint64_t) noexcept {
        if (blocked.has_no_permit && !the_pool->permits_.try_take(1)) {
            static_cast<void>(the_pool->stopped_or_refuse(blocked));
            the_pool->look_again_at_refused();
            return false;
        }
        return moves(blocked, spare);
    }
    static bool moves(carrier& from, carrier& to) noexcept {
        if (from.proc.word.exchange(0, base::acq_rel) == 0) return false;
        to.proc.word.store(1, base::relaxed);
        to.seen = 1;
        return true;
    }
    static inline carrier_pool* the_pool = nullptr;
};

#include "sched/block/carrier_pool.cpp"

}  // namespace ums::sched

#undef base
#undef os
#undef sched
#undef carry

namespace {

using ums::modelled::carrier;
using ums::modelled::turn_word;
using ums::tso::model;
namespace base = ums::base;

struct machine {
    ums::modelled::carrier_pool pool;
    std::array<carrier, 3> carriers;
    std::array<ums::modelled::fiber, 3> fibers;

    machine() { ums::modelled::hand_off::the_pool = &pool; }

    // A spare, until it has a processor or ends.
    void waits(carrier& self) {
        while (pool.wait_for_processor(self)) {
            if (self.proc.word.load(base::relaxed) == 0) continue;  // It was put back.
            if (self.seen != 1) model::running().fail("what its processor did before is not seen");
            return;
        }
        if (self.proc.word.load(base::relaxed) != 0) model::running().fail("one ends that has one");
    }
    // Each letter is a strand: s is a spare, S one that ends after a time; b blocks, r so without a
    // permit, R while there is none; g gives one; e ends the pool.
    void run(char kind, carrier& self) {
        switch (kind) {
            case 's':
            case 'S':
                waits(self);
                self.thread.runs.store(0, base::release);
                break;
            case 'b':
                if (carrier* const spare = pool.take_spare(&self); spare != nullptr) {
                    if (!ums::modelled::hand_off::moves(self, *spare))
                        model::running().fail("it has lost its processor");
                    pool.run(*spare);
                }
                pool.replenish();
                break;
            case 'r':
            case 'R':
                static_cast<void>(pool.stopped_or_refuse(self));
                pool.look_again_at_refused();
                break;
            case 'g':
                pool.give_permit();
                break;
            case 'e':
                pool.stop();
                break;
        }
    }
    [[nodiscard]] std::string verdict(model& of, std::string_view strands) {
        std::size_t sleeping = 0;
        unsigned holders = 0, blocked = 0, listed = 0;
        for (std::size_t n = 0; n < strands.size(); ++n) {
            const char kind = strands[n];
            const bool has_one = carriers[n].proc.word.load(base::relaxed) != 0;
            holders += has_one ? 1 : 0;
            if (kind == 's' || kind == 'S') {
                if (!of.is_done(n)) ++sleeping;
            } else if (!of.is_done(n)) {
                return "one waits for ever";
            }
            if (kind != 'b' && kind != 'r' && kind != 'R') continue;
            ++blocked;
            const bool may_move = kind == 'b' || pool.permits_.used.get() == 0;
            if (!has_one || !may_move) continue;
            if (pool.spares_.get() != nullptr) return "one keeps its processor beside a spare";
            if (pool.asked.load(base::relaxed) == 0) return "nobody makes a spare";
        }
        for (carrier* c = pool.spares_; c != nullptr; c = c->next) ++listed;
        if (sleeping != listed) return "one sleeps that is in no list";
        if (pool.counters_.spare.get() != listed) return "the pool has lost count";
        return holders == blocked ? "" : "a processor was lost";
    }
};

ums::tso::program with(std::string_view strands, unsigned preemptions) {
    const auto build = [strands](model& of) {
        auto& s = ums::tso::remade<machine>();
        for (std::size_t n = 0; n < strands.size(); ++n) {
            const char kind = strands[n];
            carrier& c = s.carriers[n];
            if (kind == 's' || kind == 'S') {
                c.next_made = s.pool.all_;
                s.pool.all_ = &c;
                c.thread.is_there = true;
                c.thread.runs.store(1, base::relaxed);
            }
            c.has_no_permit = kind == 'r' || kind == 'R';
            c.proc.word.store(kind == 'b' || c.has_no_permit ? 1 : 0, base::relaxed);
            if (kind == 'g' || kind == 'R') s.pool.permits_.used = 1;
            // As a new thread, or one that has lost its processor.
            if (kind != 'g' && kind != 'e') c.turn.set(turn_word::holds);
            ums::tso::add_fiber(of, std::string{kind} + std::to_string(n), s.fibers[n],
                                [&s, &c, kind] { s.run(kind, c); });
        }
        of.at_rest([&s, &of, strands] { return s.verdict(of, strands); });
    };
    const bool has_limits = strands.find('S') != std::string_view::npos;
    return {.name = strands.data(),
            .build = build,
            .timeouts = has_limits ? 1u : 0u,
            .preemptions = preemptions,
            .histories = true};
}

ums::tso::mutation_test all() {
    return {
        {with("sb", 3), with("Sb", 3), with("se", 3), with("Se", 3), with("sr", 3), with("sbb", 2),
         with("ssb", 2), with("SSb", 2), with("srg", 2), with("sRb", 2), with("sse", 2)},
        {
#include "carrier_pool_model_test.inc"
        },
        {}};
}

TEST(carrier_pool_model_test, no_blocked_carrier_is_forgotten) { all().text_is_correct(); }
TEST(carrier_pool_model_test, finds_each_mutant) { all().finds_each_mutant(); }
TEST(carrier_pool_model_test, its_orders_are_needed) { all().finds_each_order(); }

}  // namespace
