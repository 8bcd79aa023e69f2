// SPDX-License-Identifier: MIT
#pragma once

// internal/tso_model.hpp: tries every execution of a small concurrent program on x86-TSO. For tests.
//
// The memory model is that of Sewell, Sarkar, Owens, Zappa Nardelli, Myreen, "x86-TSO: a rigorous and
// usable programmer's model" (CACM 2010): each strand of the program has a first-in-first-out buffer of
// stores, which it reads itself; the oldest store goes to memory at any later time; a
// read-modify-write or a fence waits until the buffer is empty. membarrier(2) empties the buffers of
// the other strands, one after the other, at any time between its call and its return.
//
// The code under test is the library's own text, compiled a second time against modelled_base and
// modelled_os (below) instead of base and os:
//
//   #define base modelled_base
//   #define os modelled_os
//   #define sched modelled
//   #include "carry/ownership.hpp"
//   #include "carry/ownership.cpp"
//
// How. Strands are contexts of their own on one kernel thread. Each stops before every access that
// others could notice; then the model chooses who goes on, or whose oldest store becomes visible. The
// search is depth first, each execution is replayed from the start. A strand is deterministic, so what it has
// read so far is all there is to its local state: states that agree in memory, buffers and what
// every strand has read are searched once. That makes the search exhaustive and finite.
//
// A bounded spin loop (load, spin_pause(), load again) is not unrolled: after a pause the strand either
// goes on when the value has changed, or makes all its remaining rounds at once. Any execution of the
// loop sees the same values as one of these, as long as there are fewer changes than rounds.

#include <pthread.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "arch/context.hpp"
#include "arch/sanitizer.hpp"
#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/chain.hpp"
#include "os/futex.hpp"
#include "os/lock.hpp"
#include "os/membarrier.hpp"

namespace ums::tso {

class model {
public:
    using cell = unsigned;
    using value = std::uint64_t;

    struct report {
        std::uint64_t states = 0;
        std::uint64_t executions = 0;
        std::string error;  // Empty: no execution went wrong. Else what did, and the steps to it.
    };

    // What is left out of the modelled machine, to see that the search finds what it is needed for.
    bool without_heavy_fence = false;
    bool without_full_fence = false;

    model() {
        main_.race.adopt_current();
#if defined(UMS_ASAN)
        pthread_attr_t attributes;
        void* bottom = nullptr;
        std::size_t bytes = 0;
        pthread_getattr_np(pthread_self(), &attributes);
        pthread_attr_getstack(&attributes, &bottom, &bytes);
        pthread_attr_destroy(&attributes);
        arch::set_bounds(main_.shadow, bottom, bytes);
#endif
        the_model = this;
    }
    ~model() {
        the_model = nullptr;
        for (auto& s : pool_) s->place.race.destroy();
    }
    model(const model&) = delete;
    model& operator=(const model&) = delete;

    static model& running() { return *the_model; }

    // Searches every execution of the program that build() describes anew each time: it makes modelled
    // atomics and calls strand() and at_rest().
    report explore(const std::function<void(model&)>& build) {
        report_ = {};
        seen_.clear();
        choices_.clear();
        do {
            ++report_.executions;
            execute(build);
        } while (report_.error.empty() && next_choices());
        report_.states = seen_.size();
        return report_;
    }

    // --- for build() ---
    void strand(std::string name, std::function<void()> run) {
        if (used_ == pool_.size()) pool_.push_back(std::make_unique<one>());
        one& s = *pool_[used_++];
        s.start(std::move(name), std::move(run));
    }
    // Called when no strand can go on. Returns what is wrong with that, or "". Without it a strand that
    // has not returned is a deadlock.
    void at_rest(std::function<std::string()> check) { at_rest_ = std::move(check); }

    // --- for strands ---
    // The search has seen this state before: endless strands return.
    [[nodiscard]] bool is_over() const { return is_draining_; }

    void fail(const std::string& what) {
        if (is_draining_ || !report_.error.empty()) return;
        report_.error = what + "\n" + trace();
    }
    // What the strand has read so far no longer matters: `local` is all it knows. Makes for fewer states.
    void forget(value local) {
        current_->forget_spin();
        current_->history = mix(~value{0}, local);
    }
    // Never goes on, until the execution is over.
    void block() { pause({.kind = op::asleep, .what = "blocked"}); }
    // Lets others go on here.
    void step(const char* what) { pause({.kind = op::plain, .what = what}); }

    cell make(value initial) {
        memory_.push_back(initial);
        return static_cast<cell>(memory_.size() - 1);
    }
    // What is in memory now: for at_rest(), and for variables of the proof that no strand's decision
    // depends on. No step.
    [[nodiscard]] value& at(cell c) { return memory_[c]; }

    value load(cell c) {
        if (current_ == nullptr) return memory_[c];
        one& self = *current_;
        if (!(self.is_exhausting && self.spins_on == c)) {
            self.is_exhausting = false;
            pause({.kind = op::reads, .what = "load", .at = c});
        }
        self.waits_for_change = false;
        self.spins_on = c;
        return self.saw(visible(self, c));
    }
    void store(cell c, value v) {
        if (current_ == nullptr) {
            memory_[c] = v;
            return;
        }
        current_->forget_spin();
        current_->buffer.push_back({c, v});  // Nobody else notices: no step.
    }
    // `change` takes the old value and returns the new one.
    template <class F>
    value modify(cell c, F change) {
        if (current_ == nullptr) {
            const value old = memory_[c];
            memory_[c] = change(old);
            return old;
        }
        current_->forget_spin();
        pause({.kind = op::locked, .what = "modify", .at = c});
        const value old = current_->saw(memory_[c]);
        memory_[c] = change(old);
        return old;
    }
    void acquire_lock(cell c) {
        current_->forget_spin();
        pause({.kind = op::locks, .what = "lock", .at = c});
        memory_[c] = 1;
    }
    void full_fence() {
        if (current_ == nullptr || without_full_fence) return;
        current_->forget_spin();
        pause({.kind = op::locked, .what = "fence"});
    }
    void heavy_fence() {
        if (current_ == nullptr) return;
        current_->forget_spin();
        pause({.kind = op::locked, .what = "heavy fence"});
        if (without_heavy_fence) return;
        for (std::size_t i = 0; i < used_; ++i) {
            if (pool_[i].get() == current_) continue;
            pause({.kind = op::plain, .what = "barrier elsewhere"});
            while (!pool_[i]->buffer.empty()) flush(*pool_[i]);
        }
    }
    void spin_pause() {
        one& self = *current_;
        if (self.is_exhausting) return;
        pause({.kind = op::spins, .what = "spin"});
        self.history = mix(self.history, choice_);
        self.is_exhausting = choice_ == 1;
        self.waits_for_change = choice_ == 0;
    }
    void futex_wait(cell c, value expected) {
        current_->forget_spin();
        pause({.kind = op::locked, .what = "futex_wait", .at = c});
        if (memory_[c] != expected) {
            current_->saw(1);
            return;
        }
        current_->saw(2);
        pause({.kind = op::asleep, .what = "woken", .at = c});
    }
    void futex_wake(cell c) {
        current_->forget_spin();
        pause({.kind = op::locked, .what = "futex_wake", .at = c});
        for (std::size_t i = 0; i < used_; ++i)
            if (pool_[i]->next.kind == op::asleep && pool_[i]->next.at == c)
                pool_[i]->next.kind = op::plain;
    }

private:
    struct op {
        enum kinds : unsigned char { plain, reads, locked, locks, spins, asleep, done } kind = done;
        const char* what = "";
        cell at = ~0u;
    };
    struct place {
        arch::context context;
        arch::stack_shadow shadow;
        arch::race_context race;
    };
    struct pending_store {
        cell at;
        value v;
    };

    struct one {
        model::place place;
        std::unique_ptr<char[]> stack = std::make_unique<char[]>(stack_bytes);
        std::string name;
        std::function<void()> run;
        op next;
        std::deque<pending_store> buffer;
        std::uint64_t history = 0;  // Of all it has read.
        cell spins_on = ~0u;
        value last_seen = 0;
        bool is_exhausting = false, waits_for_change = false;

        one() {
            place.race.create("strand");
            arch::set_bounds(place.shadow, stack.get(), stack_bytes);
            auto top =
                reinterpret_cast<std::uintptr_t>(stack.get() + stack_bytes) & ~std::uintptr_t{15};
            arch::make_context(place.context, reinterpret_cast<void*>(top), &enter, this);
        }
        void start(std::string called, std::function<void()> function) {
            name = std::move(called);
            run = std::move(function);
            next = {.kind = op::plain, .what = "start"};
            buffer.clear();
            history = 0;
            forget_spin();
        }
        void forget_spin() {
            spins_on = ~0u;
            last_seen = 0;
            is_exhausting = waits_for_change = false;
        }
        value saw(value v) {
            history = mix(history, v);
            last_seen = v;
            return v;
        }
        static void enter(void*, void*, void* self) {
            arch::finish_switch(static_cast<one*>(self)->place.shadow);
            the_model->strand_main(*static_cast<one*>(self));
        }
    };

    static constexpr std::size_t stack_bytes = 64 * 1024;

    static std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
        h = (h ^ v) + 0x9e3779b97f4a7c15u;
        h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
        h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
        return h ^ (h >> 31);
    }

    // --- contexts ---
    void strand_main(one& self) {
        for (;;) {
            self.run();
            self.forget_spin();
            pause({.kind = op::done, .what = "end"});
        }
    }
    void pause(op next) {
        one& self = *current_;
        self.next = next;
        current_ = nullptr;
        change_place(self.place, main_);
    }
    void resume(one& s) {
        current_ = &s;
        s.history = mix(s.history, 0);  // A step, also if it reads nothing.
        change_place(main_, s.place);
    }
    UMS_ALWAYS_INLINE static void change_place(place& from, place& to) {
        arch::start_switch(from.shadow, to.shadow);
        to.race.enter();
        arch::switch_context(from.context, to.context, nullptr, nullptr);
        arch::finish_switch(from.shadow);
    }

    // --- one execution ---
    struct move {
        unsigned strand;
        enum kinds : unsigned char { goes, exhausts, flushes } kind;
    };

    [[nodiscard]] value visible(const one& s, cell c) const {
        for (auto i = s.buffer.rbegin(); i != s.buffer.rend(); ++i)
            if (i->at == c) return i->v;
        return memory_[c];
    }
    void flush(one& s) {
        memory_[s.buffer.front().at] = s.buffer.front().v;
        s.buffer.pop_front();
    }
    [[nodiscard]] bool is_enabled(const one& s) const {
        switch (s.next.kind) {
            case op::plain:
            case op::spins:
                return true;
            case op::reads:
                return !(s.waits_for_change && s.spins_on == s.next.at &&
                         visible(s, s.next.at) == s.last_seen);
            case op::locked:
                return s.buffer.empty();
            case op::locks:
                return s.buffer.empty() && memory_[s.next.at] == 0;
            case op::asleep:
            case op::done:
                return false;
        }
        return false;
    }
    void list_moves() {
        moves_.clear();
        for (unsigned i = 0; i < used_; ++i) {
            one& s = *pool_[i];
            if (is_enabled(s)) {
                moves_.push_back({i, move::goes});
                if (s.next.kind == op::spins) moves_.push_back({i, move::exhausts});
            }
            if (!s.buffer.empty()) moves_.push_back({i, move::flushes});
        }
    }
    void make(const move& m) {
        one& s = *pool_[m.strand];
        if (m.kind == move::flushes) return flush(s);
        choice_ = m.kind == move::exhausts;
        resume(s);
    }
    [[nodiscard]] std::uint64_t state() const {
        std::uint64_t h = 0;
        for (const value v : memory_) h = mix(h, v);
        for (unsigned i = 0; i < used_; ++i) {
            const one& s = *pool_[i];
            h = mix(h, s.history);
            h = mix(h, static_cast<std::uint64_t>(s.next.kind) << 32 | s.next.at);
            h = mix(h, reinterpret_cast<std::uintptr_t>(s.next.what));
            h = mix(h, s.waits_for_change ? 1 : 2);
            for (const pending_store& p : s.buffer) h = mix(mix(h, p.at), p.v);
            h = mix(h, s.buffer.size());
        }
        return h;
    }

    void execute(const std::function<void(model&)>& build) {
        memory_.clear();
        used_ = 0;
        at_rest_ = nullptr;
        trace_.clear();
        build(*this);
        std::size_t depth = 0;
        while (report_.error.empty()) {
            list_moves();
            if (moves_.empty()) {
                rest();
                break;
            }
            if (depth == choices_.size()) {
                if (!seen_.insert(state()).second) break;
                choices_.push_back({0, static_cast<unsigned>(moves_.size())});
            }
            const move m = moves_[choices_[depth++].taken];
            trace_.push_back({m, pool_[m.strand]->next, pool_[m.strand]->last_seen});
            make(m);
        }
        drain();
    }

    void rest() {
        bool is_stuck = false;
        for (unsigned i = 0; i < used_; ++i) {
            const one& s = *pool_[i];
            // It would have gone on with what it saw: another execution.
            if (s.next.kind == op::reads) return;
            is_stuck |= s.next.kind != op::done;
        }
        std::string wrong;
        if (at_rest_)
            wrong = at_rest_();
        else if (is_stuck)
            wrong = "deadlock";
        if (!wrong.empty()) fail(wrong);
    }

    // Lets all strands return, so that nothing is left on their stacks.
    void drain() {
        is_draining_ = true;
        for (unsigned turn = 0, idle = 0; idle <= used_; ++turn) {
            one& s = *pool_[turn % used_];
            while (!s.buffer.empty()) flush(s);
            if (s.next.kind == op::asleep || s.next.kind == op::reads) s.next.kind = op::plain;
            if (is_enabled(s)) {
                choice_ = 1;
                resume(s);
                idle = 0;
            } else {
                ++idle;
            }
        }
        is_draining_ = false;
    }

    // The next branch of the search. False: all done.
    bool next_choices() {
        while (!choices_.empty()) {
            if (++choices_.back().taken < choices_.back().of) return true;
            choices_.pop_back();
        }
        return false;
    }

    [[nodiscard]] std::string trace() const {
        std::string text;
        for (const traced& t : trace_) {
            const one& s = *pool_[t.m.strand];
            text += "  " + s.name + ": ";
            if (t.m.kind == move::flushes)
                text += "its oldest store becomes visible";
            else
                text +=
                    t.next.what + (t.next.at != ~0u ? " [" + std::to_string(t.next.at) + "]" : "");
            text += "\n";
        }
        return text;
    }

    struct chosen {
        unsigned taken, of;
    };
    struct traced {
        move m;
        op next;
        value seen;
    };

    static inline model* the_model = nullptr;

    place main_;
    std::vector<std::unique_ptr<one>> pool_;
    std::size_t used_ = 0;
    one* current_ = nullptr;
    std::vector<value> memory_;
    std::vector<move> moves_;
    std::vector<chosen> choices_;
    std::vector<traced> trace_;
    std::unordered_set<std::uint64_t> seen_;
    std::function<std::string()> at_rest_;
    value choice_ = 0;
    bool is_draining_ = false;
    report report_;
};

}  // namespace ums::tso

// What the library's text sees instead of ums::base.
namespace ums::modelled_base {

namespace chain = base::chain;

using base::acq_rel;
using base::acquire;
using base::cache_line;
using base::relaxed;
using base::release;
using base::seq_cst;

// On TSO every load acquires and every store releases; a sequentially consistent store is an exchange.
template <class T>
class atomic {
public:
    atomic() noexcept : atomic{T{}} {}
    explicit atomic(T initial) noexcept : at_{tso::model::running().make(wide(initial))} {}
    atomic(const atomic&) = delete;
    atomic& operator=(const atomic&) = delete;

    T load(std::memory_order) const noexcept { return narrow(tso::model::running().load(at_)); }
    void store(T v, std::memory_order order) noexcept {
        if (order == seq_cst)
            exchange(v, order);
        else
            tso::model::running().store(at_, wide(v));
    }
    T exchange(T v, std::memory_order) noexcept {
        return narrow(tso::model::running().modify(at_, [v](auto) { return wide(v); }));
    }
    bool compare_exchange(T& expected, T desired, std::memory_order, std::memory_order) noexcept {
        const auto wanted = wide(expected);
        const auto old = tso::model::running().modify(
            at_, [=](auto now) { return now == wanted ? wide(desired) : now; });
        expected = narrow(old);
        return old == wanted;
    }
    T fetch_add(T n, std::memory_order) noexcept {
        return change([n](T v) { return v + n; });
    }
    T fetch_sub(T n, std::memory_order) noexcept {
        return change([n](T v) { return v - n; });
    }
    T fetch_or(T n, std::memory_order) noexcept {
        return change([n](T v) { return v | n; });
    }
    T fetch_and(T n, std::memory_order) noexcept {
        return change([n](T v) { return v & n; });
    }

    const void* address() const noexcept { return this; }
    [[nodiscard]] tso::model::cell cell() const noexcept { return at_; }

private:
    static tso::model::value wide(T v) noexcept { return static_cast<tso::model::value>(v); }
    static T narrow(tso::model::value v) noexcept { return static_cast<T>(v); }
    template <class F>
    T change(F f) noexcept {
        return narrow(tso::model::running().modify(
            at_, [f](auto v) { return wide(static_cast<T>(f(narrow(v)))); }));
    }

    tso::model::cell at_;
};

template <class T>
class owned {
public:
    owned() noexcept = default;
    explicit owned(T initial) noexcept : value_{initial} {}
    T get() const noexcept { return value_.load(relaxed); }
    void set(T v) noexcept { value_.store(v, relaxed); }

private:
    atomic<T> value_;
};

inline void compiler_fence() noexcept {}
inline void full_fence() noexcept { tso::model::running().full_fence(); }
inline void spin_pause() noexcept { tso::model::running().spin_pause(); }

}  // namespace ums::modelled_base

// And instead of ums::os.
namespace ums::modelled_os {

inline void heavy_fence() noexcept { tso::model::running().heavy_fence(); }

inline void futex_wait(const modelled_base::atomic<std::uint32_t>& word,
                       std::uint32_t expected) noexcept {
    tso::model::running().futex_wait(word.cell(), expected);
}
inline void futex_wake(const void* word) noexcept {
    tso::model::running().futex_wake(
        static_cast<const modelled_base::atomic<std::uint32_t>*>(word)->cell());
}

using os::lock_rank;

class lock {
public:
    explicit lock(lock_rank) noexcept {}
    void acquire() noexcept { tso::model::running().acquire_lock(word_.cell()); }
    void release() noexcept { word_.exchange(0, base::release); }

private:
    modelled_base::atomic<std::uint32_t> word_;
};

class lock_guard {
public:
    explicit lock_guard(lock& l) noexcept : lock_{l} { lock_.acquire(); }
    ~lock_guard() { lock_.release(); }
    lock_guard(const lock_guard&) = delete;
    lock_guard& operator=(const lock_guard&) = delete;

private:
    lock& lock_;
};

}  // namespace ums::modelled_os
