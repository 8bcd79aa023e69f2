// SPDX-License-Identifier: MIT
//
// The text of sync/mutex and sync/wait_list in every execution that C++20 allows, up to a bound: it
// excludes, a section sees what the one before it wrote, no waiter is left asleep, and the last
// holder may destroy the mutex.

#include <array>
#include <iostream>
#include <map>
#include <new>
#include <stop_token>
#include <string>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

#include "internal/exclusion_model.hpp"
#include "internal/modelled/mutants.hpp"
#include "support/scale.hpp"
#include "ums/deadline.hpp"
#include "ums/options.hpp"

namespace ums::modelled {

using tso::model;

struct alignas(8) parkable {
    enum class reason : std::uint8_t { wake, deadline, stop };
    bool is_fiber = true;
    modelled_base::atomic<std::uint32_t> token;
};

// A strand. Its waits are on its stack, and what these say lies in the same cells each time:
// otherwise states that differ would look alike.
struct fiber : parkable {
    std::array<model::cell, 16> cells;
    model::cell has_ended = model::running().make(0);
    std::size_t used = 0;
    fiber() {
        for (model::cell& one : cells) one = model::running().make(0);
    }
    static fiber* here() {
        model& m = model::running();
        return m.is_on_strand() ? static_cast<fiber*>(m.slot()) : nullptr;
    }
};

inline parkable& this_parkable() { return *fiber::here(); }
inline bool may_look_again() { return false; }

enum class park_kind { internal };
enum class wait_kind { mutex };

struct lock_wait {
    template <class... T>
    explicit lock_wait(const T&...) {}
};

inline parkable::reason park(park_kind, os::nanoseconds until = os::never,
                             const std::stop_token* = nullptr) {
    auto& token = this_parkable().token;
    while (token.exchange(0, base::acquire) == 0)
        if (!modelled_os::futex_wait(token, 0, until)) return parkable::reason::deadline;
    return parkable::reason::wake;
}
inline void wake(parkable& who) {
    model& m = model::running();
    m.step("wakes");
    // A plain thread would be gone, with what is woken here.
    if (m.at(static_cast<fiber&>(who).has_ended) != 0) m.fail("woken after its end");
    if (who.token.exchange(1, base::acq_rel) != 0) m.fail("woken twice");
    modelled_os::futex_wake(who.token.address());
}

struct cluster {
    static std::uint32_t forks() { return 0; }
};

// No cluster has priorities.
struct lender {
    parkable* who = nullptr;
};
struct urgency {
    struct section {
        section() noexcept {}
        ~section() {}
    };
    static bool counts() { return false; }
    static int of(const parkable&) { return 0; }
    static void begin(lender&, parkable&) {}
    static fiber* end(lender&) { return nullptr; }
    static void lend(lender&, fiber&) {}
    static void take_back(lender&) {}
    static void settle(fiber*) {}
    static void settle_lent(const lender&) {}
    static void settle_less(fiber*) {}
};

}  // namespace ums::modelled

namespace ums::modelled_sync {

// A variable that a lock guards: the model checks it, and counts it as memory.
template <class T>
class kept {
    using model = tso::model;

public:
    kept(T v) noexcept {
        modelled::fiber* const f = modelled::fiber::here();
        at_ = f != nullptr ? f->cells[f->used++] : model::running().make(0);
        *this = v;
    }
    kept(const kept&) = delete;
    ~kept() {
        is_there_ = 0;
        if (modelled::fiber* const f = modelled::fiber::here()) --f->used;
    }
    T get() const noexcept {
        model& m = model::running();
        if (is_there_ != there) m.fail("a waiter is used that is gone");
        m.touch(at_, "a variable that is read");
        m.note(m.at(at_));
        if constexpr (std::is_pointer_v<T>)
            return reinterpret_cast<T>(m.at(at_));
        else
            return static_cast<T>(m.at(at_));
    }
    operator T() const noexcept { return get(); }
    T operator->() const noexcept { return get(); }
    kept& operator=(T v) noexcept {
        if (is_there_ != there) model::running().fail("a waiter is used that is gone");
        model::running().touch(at_, "a variable that is written");
        if constexpr (std::is_pointer_v<T>)
            model::running().at(at_) = reinterpret_cast<model::value>(v);
        else
            model::running().at(at_) = static_cast<model::value>(v);
        return *this;
    }
    kept& operator=(const kept& other) noexcept { return *this = other.get(); }
    void operator++() noexcept { *this = static_cast<T>(get() + 1); }
    void operator--() noexcept { *this = static_cast<T>(get() - 1); }

private:
    static constexpr unsigned there = 0x5eed;
    volatile unsigned is_there_ = there;  // Lies on a stack that others may still name.
    model::cell at_;
};

// Whether the mutex is there: what uses it later goes wrong.
inline bool is_gone = false;
inline void use() {
    if (is_gone) tso::model::running().fail("a mutex is used that is gone");
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
        modelled_sync::use();
        const T v = of_.load(o, at);
        modelled_sync::use();
        return v;
    }
    void store(T v, std::memory_order o, const place& at = place::current()) noexcept {
        modelled_sync::use();
        of_.store(v, o, at);
    }
    bool compare_exchange(T& e, T d, std::memory_order s, std::memory_order f,
                          const place& at = place::current()) noexcept {
        modelled_sync::use();
        return of_.compare_exchange(e, d, s, f, at);
    }
    T fetch_and(T v, std::memory_order o, const place& at = place::current()) noexcept {
        modelled_sync::use();
        return of_.fetch_and(v, o, at);
    }
};

}  // namespace ums::modelled_base

// What the text sees of os/.
namespace ums::modelled_mutexes {

using modelled_os::lock;
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
        modelled_sync::use();
        lock_.acquire();
        holds_ = true;
    }
    void unlock() noexcept {
        modelled_sync::use();
        holds_ = false;
        lock_.release();
    }

private:
    modelled_os::lock& lock_;
    bool holds_ = false;
};

}  // namespace ums::modelled_mutexes

namespace ums::modelled_impl {

using modelled_sync::kept;

struct waiter;

struct wait_list {
    modelled_os::lock lock;
    kept<waiter*> first{nullptr};
};
struct mutex_state {
    modelled_base::atomic<std::uintptr_t> owner;
    wait_list waiters;
    kept<std::int32_t> until_look{0};
};

enum class handover : bool { barging, fair };

template <handover>
struct mutex_calls {
    static void lock(mutex_state& m);
    static bool try_lock(mutex_state& m) noexcept;
    static bool lock_until(mutex_state& m, deadline limit);
    static bool lock_or_stop(mutex_state& m, deadline limit, const std::stop_token& stop);
    static void unlock(mutex_state& m) noexcept;
};

bool unlock_alone(mutex_state& m, modelled::parkable& me) noexcept;
bool is_held_by_caller(const mutex_state& m) noexcept;
[[noreturn]] void throw_too_deep();

// Fewer than in the library.
inline constexpr unsigned overtakes_most = 2;

}  // namespace ums::modelled_impl

#define base modelled_base
#define os modelled_mutexes
#define sched modelled
#define sync modelled_sync
#define impl modelled_impl
#include "sync/mutex.cpp"
#include "sync/wait_list.cpp"
#undef base
#undef os
#undef sched
#undef sync
#undef impl

namespace {

using ums::modelled_impl::handover;
using ums::modelled_impl::mutex_calls;
using ums::tso::model;

struct program {
    int strands = 2, each = 1;
    int more = 0;  // Rounds of the first strand.
    bool is_fair = false;
    int timed = 0;  // So many of the strands wait for a time only, which may pass.
    ums::os::nanoseconds tick = 0;
    bool last_destroys = false;
    unsigned preemptions = 3;
    bool histories = true;  // Otherwise x86-TSO.
};

struct machine : ums::tso::guarded_number {
    ums::modelled_impl::mutex_state mutex;
    ums::modelled_base::atomic<ums::os::nanoseconds> clock;
    std::array<ums::modelled::fiber, 3> fibers;
    model::cell left = model::running().make(0);  // How many strands have not finished.
};

template <handover kind>
void run(machine& s, const program& p, int rounds, bool is_timed) {
    using calls = mutex_calls<kind>;
    model& m = model::running();
    for (int i = 0; i < rounds; ++i) {
        if (!is_timed)
            calls::lock(s.mutex);
        else if (!calls::lock_until(s.mutex, ums::deadline{std::chrono::hours{1}}))
            break;
        s.section();
        // The last holder is the one that finds the others gone.
        const bool is_last = p.last_destroys && i + 1 == rounds && --m.at(s.left) == 0;
        calls::unlock(s.mutex);
        if (is_last) ums::modelled_sync::is_gone = true;
    }
}

model::report explore(const program& p, model& m) {
    m.histories = p.histories;
    m.checks_orders = true;
    m.abandons = true;
    m.preemptions = p.preemptions;
    m.timeouts = p.timed > 0 ? 1 : 0;
    ums::modelled_mutexes::tick = p.tick;
    return m.explore([&p](model& of) {
        // At one address in every execution, because words hold addresses. Not destroyed, because
        // its words disappeared with the execution.
        alignas(machine) static char room[sizeof(machine)];
        machine& s = *new (room) machine;
        ums::modelled_mutexes::clock = &s.clock;
        ums::modelled_sync::is_gone = false;
        of.at(s.left) = static_cast<model::value>(p.strands);
        for (int t = 0; t < p.strands; ++t)
            of.strand("strand " + std::to_string(t), [&s, &p, t] {
                model::running().slot() = &s.fibers[static_cast<std::size_t>(t)];
                const bool is_timed = t < p.timed;
                const int rounds = p.each + (t == 0 ? p.more : 0);
                p.is_fair ? run<handover::fair>(s, p, rounds, is_timed)
                          : run<handover::barging>(s, p, rounds, is_timed);
                const model::cell ended = s.fibers[static_cast<std::size_t>(t)].has_ended;
                model::running().at(ended) = 1;
            });
        of.at_rest([&s, &of, &p]() -> std::string {
            for (int t = 0; t < p.strands; ++t)
                if (const auto n = static_cast<std::size_t>(t);
                    !of.is_done(n) && !of.sleeps_for_a_time(n))
                    return "one sleeps for ever";
            if (of.at(s.mutex.owner.cell()) != 0) return "the word is not clean";
            return s.verdict(of);
        });
    });
}

void is_correct(const program& p) {
    model m;
    const auto r = explore(p, m);
    EXPECT_EQ(r.error, "");
    std::cout << r.states << " states, " << r.executions << " executions\n";
}

// Small ones first: they find most of what is wrong.
const std::vector<program> programs{
    {},
    {.is_fair = true},
    {.last_destroys = true},
    {.timed = 1, .preemptions = 2},
    {.is_fair = true, .timed = 1, .preemptions = 2},
    {.strands = 3, .preemptions = 0},
    {.more = 2, .preemptions = 1},
    {.each = 3, .preemptions = 2, .histories = false},
    {.each = 3, .tick = 1'000'000, .preemptions = 2, .histories = false},
    {.each = 2, .timed = 1, .preemptions = 2, .histories = false},
    {.strands = 3, .preemptions = 2, .histories = false},
    {.strands = 3, .is_fair = true, .preemptions = 2, .histories = false},
    {.strands = 3, .timed = 1, .preemptions = 2, .histories = false},
    {.strands = 3, .is_fair = true, .timed = 1, .preemptions = 2, .histories = false},
    {.strands = 3, .tick = 1'000'000, .last_destroys = true, .preemptions = 2, .histories = false},
    {.each = 2, .preemptions = 2},
    {.each = 2, .tick = 1'000'000, .preemptions = 1},
};

// Returns what goes wrong in the first program in which something does.
std::string wrong(const ums::tso::site* weakened, std::size_t last) {
    for (std::size_t i = 0; i < last; ++i) {
        model m;
        m.weakened = weakened;
        if (auto error = explore(programs[i], m).error; !error.empty()) return error;
    }
    return {};
}

TEST(mutex_model_test, excludes_and_leaves_no_waiter_asleep) {
    const std::size_t most = under_asan || under_tsan ? 2 : programs.size();
    for (std::size_t i = 0; i < most; ++i) is_correct(programs[i]);
}

// The next holder has been woken since, or takes the list's lock.
constexpr std::string_view covered = "give: store release";

TEST(mutex_model_test, its_orders_are_needed) {
    if (under_asan || under_tsan) GTEST_SKIP() << "the search goes through the same states";
    std::map<std::string, ums::tso::site> sites;
    for (std::size_t i = 0; i < 5; ++i) {
        model m;
        m.sites = &sites;
        EXPECT_EQ(explore(programs[i], m).error, "");
    }
    unsigned looked_at = 0;
    for (const auto& [key, site] : sites) {
        if (std::string_view{site.file}.find("sync/mutex.cpp") == std::string_view::npos) continue;
        ++looked_at;
        EXPECT_EQ(wrong(&site, programs.size()).empty(), site.name() == covered) << site.name();
    }
    EXPECT_EQ(looked_at, 5U);  // The other accesses are relaxed.
}

constexpr ums::tso::replaced_text mutants[] = {
#include "mutex_model_test.inc"
};

TEST(mutex_model_test, finds_each_mutant) {
    if (under_asan || under_tsan) GTEST_SKIP() << "the search goes through the same states";
    for (const auto& one : mutants) {
        EXPECT_TRUE(one.is_there) << one.name << ": the text that it replaces has changed";
        ums::tso::mutant = static_cast<int>(&one - mutants) + 1;
        const std::string found = wrong(nullptr, programs.size() - 2);
        EXPECT_NE(found, "") << one.name;
        std::cout << one.name << ": " << found.substr(0, found.find('\n')) << '\n';
    }
    ums::tso::mutant = 0;
}

}  // namespace
