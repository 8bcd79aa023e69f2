// SPDX-License-Identifier: MIT
#pragma once

// internal/tso_model.hpp: tries every execution of a small concurrent program on x86-TSO. For
// tests.
//
// The memory model is that of Sewell, Sarkar, Owens, Zappa Nardelli, Myreen, "x86-TSO: a rigorous
// and usable programmer's model" (CACM 2010): each strand of the program has a first-in-first-out
// buffer of stores, which it reads itself; the oldest store goes to memory at any later time; a
// read-modify-write or a fence waits until the buffer is empty. membarrier(2) empties the buffers
// of the other strands, one after the other, at any time between its call and its return.
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
// How it works: strands are contexts of their own on one kernel thread. Each stops before every
// access that another could notice; then the model chooses which strand continues, or whose oldest
// store becomes visible. The search is depth first, and each execution is replayed from the start.
// A strand is deterministic, so what it has read so far is all there is to its local state: states
// that agree in memory, buffers and what every strand has read are searched once. That makes the
// search exhaustive and finite.
//
// A bounded spin loop (load, spin_pause(), load again) is not unrolled: after a pause the strand
// either continues when the value has changed, or makes all its remaining rounds at once. Any
// execution of the loop sees the same values as one of these, as long as there are fewer changes
// than rounds.
//
// Orders: x86 gives every load and store more than `relaxed`, so values alone do not show that an
// `acquire` or a `release` is needed. Clocks do: every strand has a vector of them, a release
// attaches it to the stored value, and an acquire joins it. What only one strand may touch at a
// time (tso::plain, tso::model::touch()) must be ordered by them, and every write of a base::owned
// after the one before. Any order of any access can be weakened by name (model::weaken).
//
// Histories: with model::histories the machine is not TSO but C++20's, as far as it says what a
// load may read: each location keeps its stores, and a load reads any that is not older than what
// its strand has seen. What a strand has seen is a view: for each location the oldest store that it
// may still read. Releases attach views to stores, acquires join them (as with the clocks); so do
// read-modify-writes along a release sequence, and fences. A sequentially consistent access is no
// fence: it is ordered with such accesses to the same location, and with fences. This is the view
// machine of Kang, Hur, Lahav, Vafeiadis, Dreyer, "A promising semantics for relaxed-memory
// concurrency" (POPL 2017) without promises, with the fences and accesses of C++20 (P0668).
// membarrier is P1202's: the heavy fence is ordered with the light fences (compiler_fence()) of
// others, and with nothing between them. What it does not show: a load that reads a store which
// comes later in another strand's program order (load buffering), and stores to one location in
// another order than they were executed in (2+2W).
//
// Interrupts: interruptible() gives a strand a signal's handler, which may run once, before any
// step of the strand.
//
// Time: a sleep with a limit may end by it, `timeouts` times in an execution.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <pthread.h>
#include <source_location>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "arch/context.hpp"
#include "arch/sanitizer.hpp"
#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/chain.hpp"
#include "os/clock.hpp"
#include "os/cpu/membarrier.hpp"
#include "os/futex.hpp"
#include "os/lock_rank.hpp"
#include "os/no_stop.hpp"

namespace ums::tso {

// When each strand last released something that this clock knows.
struct clocks {
    static constexpr std::size_t most_strands = 8;
    std::array<std::uint16_t, most_strands> at{};

    void join(const clocks& other) {
        for (std::size_t i = 0; i < most_strands; ++i) at[i] = std::max(at[i], other.at[i]);
    }
};

// An access in the text under test.
struct site {
    std::string function, what;  // What: "load acquire", "compare_exchange release".
    bool is_failure = false;     // The order that a compare_exchange has if it fails.
    unsigned line = 0, column = 0;
    const char* file = "";
    std::memory_order order{};

    [[nodiscard]] std::string name() const {
        return function + ": " + what + (is_failure ? " on failure" : "");
    }
};

class model {
public:
    using cell = unsigned;
    using value = std::uint64_t;
    using place_in_text = std::source_location;

    struct report {
        std::uint64_t states = 0;
        std::uint64_t executions = 0;
        bool is_cut = false;  // The search stopped after most_executions.
        // Empty: no execution went wrong. Otherwise what did, and the steps that led to it.
        std::string error;
    };

    // Leaves this out of the modelled machine, to see that the search finds what it is needed for.
    bool without_heavy_fence = false;
    bool without_full_fence = false;
    // The real lock is released by a plain store, which may stay in the buffer for a while. Unless
    // this is set, the release empties the buffer, which makes fewer states. So set it if the proof
    // depends on what a strand does after it released a lock.
    bool releases_locks_by_stores = false;

    // How often in an execution a limit may end a sleep.
    unsigned timeouts = 0;
    // How often in an execution the model may leave a strand that could continue for another; a
    // bound makes the search smaller.
    unsigned preemptions = ~0u;
    // Strands that do not end are left where they are, because they own nothing.
    bool abandons = false;
    // So many plain variables may lie on a strand's stack at a time (internal/modelled/kept.hpp).
    unsigned stack_cells = 0;
    // The search gives up after this many executions, and says so; 0: never.
    std::uint64_t most_executions = 0;

    // The machine with histories of stores, instead of TSO. Set before build().
    bool histories = false;
    // Whether clocks are kept: there are more states, and orders count.
    bool checks_orders = false;
    // The access whose order is weakened, or null.
    const site* weakened = nullptr;
    std::memory_order weakened_to = std::memory_order_relaxed;
    // Where the accesses that were made with more than `relaxed` are collected, or null.
    std::map<std::string, site>* sites = nullptr;

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
    static bool is_running() { return the_model != nullptr; }

    // Searches every execution of the program. build() describes it anew each time: it makes
    // modelled atomics and calls strand() and at_rest().
    report explore(const std::function<void(model&)>& build) {
        report_ = {};
        seen_.clear();
        choices_.clear();
        do {
            ++report_.executions;
            execute(build);
            if (most_executions != 0 && report_.executions >= most_executions &&
                report_.error.empty()) {
                report_.is_cut = true;
                break;
            }
        } while (report_.error.empty() && next_choices());
        report_.states = seen_.size();
        return report_;
    }

    // --- For build() ---
    void strand(std::string name, std::function<void()> run) {
        if (used_ == pool_.size()) pool_.push_back(std::make_unique<one>());
        one& s = *pool_[used_];
        s.number = static_cast<unsigned>(used_++);
        s.start(std::move(name), std::move(run));
        for (unsigned i = 0; i < stack_cells; ++i) s.cells.push_back(make(0));
    }
    // `check` is called when no strand can continue. It returns what is wrong with that, or "".
    // Without it, a strand that has not returned is a deadlock.
    void at_rest(std::function<std::string()> check) { at_rest_ = std::move(check); }

    // Whether the strand that was made as the nth has returned. Call it at rest.
    [[nodiscard]] bool is_done(std::size_t n) const { return pool_[n]->next.kind == op::done; }
    [[nodiscard]] bool are_all_done() const {
        return std::all_of(pool_.begin(), pool_.begin() + static_cast<std::ptrdiff_t>(used_),
                           [](const auto& s) { return s->next.kind == op::done; });
    }
    // It sleeps, and would continue by itself if there were more `timeouts`.
    [[nodiscard]] bool sleeps_for_a_time(std::size_t n) const {
        return pool_[n]->next.kind == op::asleep_for;
    }

    // --- For strands ---
    // The search has seen this state before: endless strands return.
    [[nodiscard]] bool is_over() const { return is_draining_; }

    void fail(const std::string& what) {
        if (is_draining_ || !report_.error.empty()) return;
        report_.error = what + "\n" + trace();
        if (abandons && current_ != nullptr) pause({.kind = op::done, .what = "failed"});
    }
    // What the strand has read so far no longer matters: `local` is all it knows. This makes fewer
    // states.
    void forget(value local) {
        current_->forget_spin();
        current_->history = mix(~value{0}, local);
    }
    // The strand has read this by at().
    void note(value v) {
        if (current_ != nullptr) current_->history = mix(current_->history, v);
    }
    // Does not continue until the execution is over.
    void stay() { pause({.kind = op::asleep, .what = "blocked"}); }
    // A signal's handler, which may run before any step of the calling strand, `times` times; never
    // inside itself, nor in a sleep.
    void interruptible(std::function<void()> handler, unsigned times) {
        current_->handler = std::move(handler);
        current_->interrupts = times;
        step("can be interrupted");
    }
    // Cancels a call of the handler that has not happened yet.
    void uninterruptible() { current_->interrupts = 0; }
    // os::thread_slot() of the strand.
    [[nodiscard]] void*& slot() { return current_->slot; }
    [[nodiscard]] bool is_on_strand() const { return current_ != nullptr; }

    // A plain access to a variable that only one strand may touch at a time; or, if it does not
    // write, to one that stays as it is once it was written.
    void touch(cell c, const char* what, bool writes = true) {
        if (current_ == nullptr || !checks_orders) return;
        if (!has(c)) return fail(gone);
        last_write& w = written_[c];
        if (w.strand != ~0u && current_->known.at[w.strand] < w.when)
            return fail(std::string{"not ordered: "} + what);
        if (!writes) return;
        w = {current_->number, current_->known.at[current_->number]};
    }

    // Lets other strands continue here.
    void step(const char* what) { pause({.kind = op::plain, .what = what}); }

    cell make(value initial) {
        memory_.push_back(initial);
        released_.push_back({});
        written_.push_back({});
        if (histories) stores_.push_back({{initial, {}, {}}});
        return static_cast<cell>(memory_.size() - 1);
    }
    // One of the calling strand's own, the same each time: what lies on its stack makes no new
    // ones, or states that differ would look alike. Given back in the opposite order.
    cell take_cell() {
        one& self = *current_;
        if (self.cells_used == self.cells.size()) base::fatal("a model needs more stack_cells");
        return self.cells[self.cells_used++];
    }
    void give_cell_back() { --current_->cells_used; }
    [[nodiscard]] bool has(cell c) const { return c < memory_.size(); }
    // The present value in memory: for at_rest(), and for variables of the proof that no strand's
    // decision depends on. This is not a step.
    [[nodiscard]] value& at(cell c) { return memory_[c]; }

    value load(cell c, std::memory_order order = std::memory_order_relaxed) {
        if (current_ == nullptr) return memory_[c];
        one& self = *current_;
        back_ = 0;
        const bool looks_again = self.is_exhausting && self.spins_on == c;
        if (!looks_again) {
            self.is_exhausting = false;
            pause({.kind = op::reads,
                   .what = "load",
                   .at = c,
                   .is_sc = order == std::memory_order_seq_cst});
        }
        self.waits_for_change = false;
        self.spins_on = c;
        if (histories)
            return self.saw(read(c, looks_again ? self.cur.of(c) : newest(c) - back_, order));
        for (auto i = self.buffer.rbegin(); i != self.buffer.rend(); ++i)
            if (i->at == c) return self.saw(i->v);
        see(c, order);
        return self.saw(memory_[c]);
    }
    void store(cell c, value v, std::memory_order order = std::memory_order_relaxed) {
        if (current_ == nullptr) return begin_with(c, v);
        if (!has(c)) return fail(gone);
        current_->forget_spin();
        if (histories) {
            pause({.kind = op::plain, .what = "store", .at = c});
            return append(c, v, order, {}, {});
        }
        // No other strand notices, so this is not a step.
        current_->buffer.push_back({c, v, published(order)});
    }
    // `change` takes the old value and returns the new one; `is_done` says whether that is an
    // access of the first order, or a load of the second.
    template <class F>
    value modify(cell c, F change, std::memory_order order = std::memory_order_relaxed) {
        return modify(
            c, change, [](value) { return true; }, order, order, "modify");
    }
    template <class F, class D>
    value modify(cell c, F change, D is_done, std::memory_order order, std::memory_order failure,
                 const char* what) {
        if (current_ == nullptr) {
            const value old = memory_[c];
            begin_with(c, change(old));
            return old;
        }
        current_->forget_spin();
        back_ = 0;
        pause({.kind = op::locked,
               .what = what,
               .at = c,
               .is_sc = failure == std::memory_order_seq_cst,
               .may_fail = std::string_view{what} == "compare_exchange"});
        if (histories) {
            unsigned seen = newest(c) - back_;
            // It succeeds with the newest only.
            if (is_done(stores_[c][seen].v)) seen = newest(c);
            const bool done = is_done(stores_[c][seen].v);
            const value old = current_->saw(read(c, seen, done ? order : failure));
            const stored before = stores_[c][seen];
            if (done) append(c, change(old), order, before.seen_by, before.released);
            return old;
        }
        const value old = current_->saw(memory_[c]);
        const bool done = is_done(old);
        see(c, done ? order : failure);
        if (done) released_[c].join(published(order));
        memory_[c] = change(old);
        return old;
    }
    // For a sequentially consistent store, which replaces what was released before it.
    void forget_released(cell c) { released_[c] = {}; }
    void release_now(cell c) {
        if (current_ != nullptr) released_[c] = published(std::memory_order_seq_cst);
    }

    void acquire_lock(cell c) {
        if (current_ == nullptr) return begin_with(c, 1);
        current_->forget_spin();
        pause({.kind = op::locks, .what = "lock", .at = c});
        if (histories) {
            read(c, newest(c), std::memory_order_acquire);
            const stored before = stores_[c].back();
            return append(c, 1, std::memory_order_relaxed, before.seen_by, before.released);
        }
        memory_[c] = 1;
        current_->known.join(released_[c]);
    }
    void full_fence() {
        if (current_ == nullptr || without_full_fence) return;
        current_->forget_spin();
        pause({.kind = op::locked, .what = "fence"});
        fence(*current_);
        sc_fence(*current_);
    }
    void light_fence() {
        if (current_ == nullptr || !histories) return;
        one& self = *current_;
        self.cur.join(self.pending);
        self.known.join(self.pending_clocks);
        self.light = self.cur;
        self.light_clocks = self.known;
        ++self.known.at[self.number];
    }
    void heavy_fence() {
        if (current_ == nullptr) return;
        current_->forget_spin();
        pause({.kind = op::locked, .what = "heavy fence"});
        if (without_heavy_fence) {  // A full fence of the caller's own.
            if (histories) fence(*current_);
            return sc_fence(*current_);
        }
        fence(*current_);
        sc_fence(*current_);
        for (std::size_t i = 0; i < used_; ++i) {
            if (pool_[i].get() == current_) continue;
            pause({.kind = op::plain, .what = "barrier elsewhere"});
            if (histories) {
                one &self = *current_, &other = *pool_[i];
                const bool has_ended = other.next.kind == op::done;
                self.cur.join(has_ended ? other.cur : other.light);
                self.known.join(has_ended ? other.known : other.light_clocks);
                other.pending.join(self.cur);
                other.pending_clocks.join(self.known);
                ++self.known.at[self.number];
                continue;
            }
            while (!pool_[i]->buffer.empty()) flush(*pool_[i]);
            fence(*pool_[i]);
        }
        sc_fence(*current_);
    }
    void spin_pause() {
        if (current_ == nullptr) return;
        one& self = *current_;
        if (self.is_exhausting) return;
        pause({.kind = op::spins, .what = "spin"});
        self.history = mix(self.history, choice_);
        self.is_exhausting = choice_ == 1;
        self.waits_for_change = choice_ == 0;
    }
    // Waits until the bits are clear: the equivalent of a loop of looks and sched_yield().
    void await_clear(cell c, value bits) {
        current_->forget_spin();
        pause({.kind = op::awaits, .what = "awaits", .at = c, .bits = bits});
        if (histories) read(c, newest(c), std::memory_order_relaxed);
    }
    // Returns false if the limit has passed.
    bool futex_wait(cell c, value expected, bool has_limit = false) {
        current_->forget_spin();
        pause({.kind = op::locked, .what = "futex_wait", .at = c});
        if (histories) read(c, newest(c), std::memory_order_relaxed);
        if (memory_[c] != expected) {
            current_->saw(1);
            return true;
        }
        current_->saw(2);
        pause({.kind = has_limit ? op::asleep_for : op::asleep, .what = "woken", .at = c});
        current_->saw(choice_);
        return choice_ == 0;
    }
    void futex_wake(cell c, int waiters = __INT_MAX__) {
        current_->forget_spin();
        pause({.kind = op::locked, .what = "futex_wake", .at = c});
        for (std::size_t i = 0; i < used_ && waiters > 0; ++i) {
            op& of = pool_[i]->next;
            if ((of.kind != op::asleep && of.kind != op::asleep_for) || of.at != c) continue;
            of.kind = op::plain;
            --waiters;
        }
    }

    // The order that an access of the text uses: its own, unless it is the weakened one.
    std::memory_order order_of(std::memory_order own, const place_in_text& at, const char* what,
                               bool is_failure) {
        if (own == std::memory_order_relaxed || current_ == nullptr) return own;
        if (sites != nullptr) note(own, at, what, is_failure);
        const site* w = weakened;
        if (w == nullptr || w->line != at.line() || w->column != at.column() ||
            w->is_failure != is_failure || std::strcmp(w->file, at.file_name()) != 0)
            return own;
        return weakened_to;
    }

private:
    struct op {
        enum kinds : unsigned char {
            plain,
            reads,
            locked,
            locks,
            spins,
            awaits,
            asleep,
            asleep_for,
            done
        } kind = done;
        const char* what = "";
        cell at = ~0u;
        value bits = 0;
        bool is_sc = false, may_fail = false;
    };
    // For each location the oldest store that may still be read.
    struct view {
        std::vector<std::uint16_t> at;

        [[nodiscard]] unsigned of(cell c) const { return c < at.size() ? at[c] : 0; }
        void raise(cell c, unsigned to) {
            if (c >= at.size()) at.resize(c + 1);
            at[c] = std::max(at[c], static_cast<std::uint16_t>(to));
        }
        void join(const view& other) {
            if (other.at.size() > at.size()) at.resize(other.at.size());
            for (std::size_t i = 0; i < other.at.size(); ++i) at[i] = std::max(at[i], other.at[i]);
        }
    };
    struct stored {
        value v;
        view seen_by;  // What an acquire of this value sees.
        clocks released;
    };
    struct place {
        arch::context context;
        arch::stack_shadow shadow;
        arch::race_context race;
    };
    struct pending_store {
        cell at;
        value v;
        clocks released;
    };
    struct last_write {
        unsigned strand = ~0u;
        unsigned when = 0;
    };

    struct one {
        model::place place;
        std::unique_ptr<char[]> stack = std::make_unique<char[]>(stack_bytes);
        std::string name;
        std::function<void()> run;
        op next;
        std::deque<pending_store> buffer;
        std::uint64_t history = 0;  // A hash of all it has read.
        cell spins_on = ~0u;
        value last_seen = 0;
        bool is_exhausting = false, waits_for_change = false;
        unsigned number = 0;
        // What the strand knows; what its relaxed stores publish, since its last fence; what its
        // relaxed loads saw, until the next fence.
        clocks known, fenced, unfenced;
        // The same for histories, and: at its last light fence; for its next one.
        view cur, rel, acq, light, pending;
        clocks light_clocks, pending_clocks;
        std::function<void()> handler;
        unsigned interrupts = 0;
        bool is_in_handler = false;
        void* slot = nullptr;
        std::vector<cell> cells;
        std::size_t cells_used = 0;

        one() {
            place.race.create("strand");
            arch::set_bounds(place.shadow, stack.get(), stack_bytes);
            begin();
        }
        void begin() {
            arch::unpoison(stack.get(), stack_bytes);
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
            known = fenced = unfenced = light_clocks = pending_clocks = {};
            cur = rel = acq = light = pending = {};
            known.at[number] = 1;
            handler = nullptr;
            interrupts = 0;
            is_in_handler = false;
            slot = nullptr;
            cells.clear();
            cells_used = 0;
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

    static constexpr const char* gone = "a word is used that is gone";
    static constexpr std::size_t stack_bytes = 64 * 1024;
    static constexpr std::size_t most_steps = 10'000;

    static std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
        h = (h ^ v) + 0x9e3779b97f4a7c15u;
        h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
        h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
        return h ^ (h >> 31);
    }

    // Hashes many words, four at a time: the search spends most of its time here.
    template <class T>
    static std::uint64_t mix_all(std::uint64_t h, const std::vector<T>& all) {
        static_assert(sizeof(T) % sizeof(std::uint64_t) == 0);
        const char* at = reinterpret_cast<const char*>(all.data());
        const std::size_t words = all.size() * sizeof(T) / sizeof(std::uint64_t);
        std::uint64_t lanes[4] = {h, 1, 2, 3};
        for (std::size_t i = 0; i < words; ++i) {
            std::uint64_t word;
            std::memcpy(&word, at + i * sizeof word, sizeof word);
            std::uint64_t& lane = lanes[i % 4];
            lane = (lane ^ word) * 0x9e3779b97f4a7c15u;
            lane ^= lane >> 29;
        }
        for (const std::uint64_t lane : lanes) h = mix(h, lane);
        return h;
    }
    static std::uint64_t mix(std::uint64_t h, const clocks& c) {
        std::uint64_t words[2];
        static_assert(sizeof words == sizeof c.at);
        std::memcpy(words, c.at.data(), sizeof words);
        return (words[0] | words[1]) == 0 ? h + 1 : mix(mix(h, words[0]), words[1]);
    }

    // --- Contexts ---
    void strand_main(one& self) {
        for (;;) {
            self.run();
            self.forget_spin();
            pause({.kind = op::done, .what = "end"});
        }
    }
    void pause(op next) {
        if (next.at != ~0u && !has(next.at)) fail(gone);
        one& self = *current_;
        for (;;) {
            self.next = next;
            current_ = nullptr;
            change_place(self.place, main_);
            if (!is_interrupt_) return;
            is_interrupt_ = false;
            next = self.next;  // The strand may have been woken before.
            --self.interrupts;
            self.is_in_handler = true;
            self.history = mix(self.history, 7);
            const auto kept = std::make_pair(self.spins_on, self.last_seen);
            const bool exhausts = std::exchange(self.is_exhausting, false),
                       waits = std::exchange(self.waits_for_change, false);
            self.handler();
            std::tie(self.spins_on, self.last_seen) = kept;
            self.is_exhausting = exhausts;
            self.waits_for_change = waits;
            self.history = mix(self.history, 8);
            self.is_in_handler = false;
        }
    }

    // --- Clocks ---
    static bool acquires(std::memory_order o) {
        return o == std::memory_order_acquire || o == std::memory_order_acq_rel ||
               o == std::memory_order_seq_cst;
    }
    static bool releases(std::memory_order o) {
        return o == std::memory_order_release || o == std::memory_order_acq_rel ||
               o == std::memory_order_seq_cst;
    }
    void see(cell c, std::memory_order order) {
        if (checks_orders)
            (acquires(order) ? current_->known : current_->unfenced).join(released_[c]);
    }
    clocks published(std::memory_order order) {
        one& self = *current_;
        if (!checks_orders) return {};
        if (!releases(order)) return self.fenced;
        const clocks all = self.known;
        ++self.known.at[self.number];
        return all;
    }
    void fence(one& of) {
        if (!checks_orders) return;
        of.known.join(of.unfenced);
        of.fenced = of.known;
        ++of.known.at[of.number];
    }

    // --- Histories ---
    // Outside the strands.
    void begin_with(cell c, value v) {
        memory_[c] = v;
        if (histories) stores_[c].back().v = v;
    }
    [[nodiscard]] unsigned newest(cell c) const {
        return static_cast<unsigned>(stores_[c].size() - 1);
    }
    [[nodiscard]] unsigned oldest(const one& s, const op& of) const {
        const unsigned own = s.cur.of(of.at);
        return of.is_sc ? std::max({own, sc_accesses_.of(of.at), sc_fences_.of(of.at)}) : own;
    }
    value read(cell c, unsigned index, std::memory_order order) {
        one& self = *current_;
        const stored& from = stores_[c][index];
        self.cur.raise(c, index);
        (acquires(order) ? self.cur : self.acq).join(from.seen_by);
        if (checks_orders) (acquires(order) ? self.known : self.unfenced).join(from.released);
        if (order == std::memory_order_seq_cst) sc_accesses_.raise(c, index);
        return from.v;
    }
    // `before` is what the value has from the one that a read-modify-write replaces.
    void append(cell c, value v, std::memory_order order, const view& before,
                const clocks& released) {
        one& self = *current_;
        const auto index = static_cast<unsigned>(stores_[c].size());
        self.cur.raise(c, index);
        stored made{v, releases(order) ? self.cur : self.rel, published(order)};
        made.seen_by.raise(c, index);
        made.seen_by.join(before);
        made.released.join(released);
        stores_[c].push_back(std::move(made));
        if (order == std::memory_order_seq_cst) sc_accesses_.raise(c, index);
        memory_[c] = v;
    }
    void sc_fence(one& of) {
        if (!histories) return;
        of.cur.join(of.acq);
        of.cur.join(sc_fences_);
        of.cur.join(sc_accesses_);
        sc_fences_ = of.cur;
        of.rel = of.cur;
    }
    // Stores that nobody can read any more do not count, so that loops close.
    [[nodiscard]] std::uint64_t state_of_histories(std::uint64_t h) const {
        std::vector<std::uint16_t> base(stores_.size());
        for (cell c = 0; c < stores_.size(); ++c) {
            unsigned least = newest(c);
            for (unsigned i = 0; i < used_; ++i)
                if (pool_[i]->next.kind != op::done) least = std::min(least, pool_[i]->cur.of(c));
            base[c] = static_cast<std::uint16_t>(least);
        }
        const auto add = [&](const view& v) {
            for (cell c = 0; c < v.at.size(); ++c)
                if (v.at[c] > base[c]) h = mix(h, std::uint64_t{c} << 16 | (v.at[c] - base[c]));
            h = mix(h, 0);
        };
        for (cell c = 0; c < stores_.size(); ++c) {
            for (unsigned i = base[c]; i <= newest(c); ++i) {
                h = mix(h, stores_[c][i].v);
                add(stores_[c][i].seen_by);
                if (checks_orders) h = mix(h, stores_[c][i].released);
            }
            h = mix(h, c);
        }
        add(sc_accesses_);
        add(sc_fences_);
        for (unsigned i = 0; i < used_; ++i) {
            const one& s = *pool_[i];
            for (const view* v : {&s.cur, &s.rel, &s.acq, &s.light, &s.pending}) add(*v);
            if (checks_orders) h = mix(mix(h, s.light_clocks), s.pending_clocks);
        }
        return h;
    }

    void note(std::memory_order order, const place_in_text& at, const char* what, bool is_failure) {
        const char* const names[] = {"relaxed", "consume", "acquire",
                                     "release", "acq_rel", "seq_cst"};
        // The test's own accesses are not part of the text.
        if (std::strstr(at.file_name(), "internal/") != nullptr ||
            std::strstr(at.file_name(), "_test.cpp") != nullptr)
            return;
        site s{at.function_name(),
               std::string{what} + " " + names[static_cast<int>(order)],
               is_failure,
               at.line(),
               at.column(),
               at.file_name(),
               order};
        // "bool ums::modelled::ownership::try_claim()" becomes "ownership::try_claim".
        s.function.resize(std::min(s.function.size(), s.function.find('(')));
        s.function.erase(0, s.function.find_last_of(' ') + 1);
        if (const auto from = s.function.find("modelled"); from != s.function.npos)
            s.function.erase(0, s.function.find("::", from) + 2);
        if (const auto from = s.function.find("{anonymous}::"); from != s.function.npos)
            s.function.erase(from, 13);
        if (const auto from = s.function.find("(anonymous namespace)::"); from != s.function.npos)
            s.function.erase(from, 23);
        const std::string line = std::to_string(at.line()), column = std::to_string(at.column());
        sites->emplace(std::string{at.file_name()} + std::string(6 - line.size(), ' ') + line +
                           std::string(6 - column.size(), ' ') + column + (is_failure ? "f" : ""),
                       s);
    }
    void resume(one& s) {
        current_ = &s;
        s.history = mix(s.history, 0);  // This is a step, even if it reads nothing.
        change_place(main_, s.place);
    }
    UMS_ALWAYS_INLINE static void change_place(place& from, place& to) {
        arch::start_switch(from.shadow, to.shadow);
        to.race.enter();
        arch::switch_context(from.context, to.context, nullptr, nullptr);
        arch::finish_switch(from.shadow);
    }

    // --- One execution ---
    struct move {
        unsigned strand;
        enum kinds : unsigned char { goes, exhausts, flushes, times_out, is_interrupted } kind;
        unsigned back = 0;  // Which store it reads: 0 is the newest.
    };

    [[nodiscard]] value visible(const one& s, cell c) const {
        for (auto i = s.buffer.rbegin(); i != s.buffer.rend(); ++i)
            if (i->at == c) return i->v;
        return memory_[c];
    }
    void flush(one& s) {
        memory_[s.buffer.front().at] = s.buffer.front().v;
        released_[s.buffer.front().at] = s.buffer.front().released;
        s.buffer.pop_front();
    }
    [[nodiscard]] bool is_enabled(const one& s) const {
        switch (s.next.kind) {
            case op::plain:
            case op::spins:
                return true;
            case op::reads:
                if (!(s.waits_for_change && s.spins_on == s.next.at)) return true;
                if (!histories) return visible(s, s.next.at) != s.last_seen;
                for (unsigned i = oldest(s, s.next); i <= newest(s.next.at); ++i)
                    if (stores_[s.next.at][i].v != s.last_seen) return true;
                return false;
            case op::locked:
                return true;  // The strand's stores become visible first: see make().
            case op::locks:
                return visible(s, s.next.at) == 0;  // Its own release may be in its buffer.
            case op::awaits:
                return (memory_[s.next.at] & s.next.bits) == 0;
            case op::asleep:
            case op::asleep_for:
            case op::done:
                return false;
        }
        return false;
    }
    void list_moves() {
        moves_.clear();
        // The strand that went last continues, unless another may be chosen in its place.
        const bool only_last =
            preempted_ >= preemptions && last_ < used_ && is_enabled(*pool_[last_]);
        for (unsigned i = 0; i < used_; ++i) {
            one& s = *pool_[i];
            if (is_flush_noticed(i)) moves_.push_back({i, move::flushes});
            if (only_last && i != last_) continue;
            if (is_enabled(s)) {
                list_ways_to_go(s, i);
                if (s.next.kind == op::spins) moves_.push_back({i, move::exhausts});
            }
            if (s.next.kind == op::asleep_for && timed_out_ < timeouts)
                moves_.push_back({i, move::times_out});
            if (s.interrupts != 0 && !s.is_in_handler && s.next.kind != op::asleep &&
                s.next.kind != op::asleep_for && s.next.kind != op::done)
                moves_.push_back({i, move::is_interrupted});
        }
    }
    void list_ways_to_go(const one& s, unsigned i) {
        const op& next = s.next;
        const bool is_load = next.kind == op::reads;
        const bool chooses = histories && (is_load || (next.kind == op::locked && next.may_fail));
        const unsigned ways = chooses ? newest(next.at) - oldest(s, next) : 0;
        const bool waits = is_load && s.waits_for_change && s.spins_on == next.at;
        for (unsigned back = 0; back <= ways; ++back)
            if (!waits || !histories || stores_[next.at][newest(next.at) - back].v != s.last_seen)
                moves_.push_back({i, move::goes, back});
    }
    // Whether another strand is about to see one of the strand's stores, or to store to the same
    // place. Only then does it matter when a store becomes visible.
    [[nodiscard]] bool is_flush_noticed(unsigned i) const {
        for (const pending_store& p : pool_[i]->buffer)
            for (unsigned k = 0; k < used_; ++k) {
                if (k == i) continue;
                const one& other = *pool_[k];
                if (other.next.at == p.at && other.next.kind != op::done) return true;
                for (const pending_store& q : other.buffer)
                    if (q.at == p.at) return true;
            }
        return false;
    }
    void make(const move& m) {
        one& s = *pool_[m.strand];
        if (m.kind == move::flushes) return flush(s);
        if ((s.next.kind == op::locked || s.next.kind == op::locks) && m.kind == move::goes)
            while (!s.buffer.empty()) flush(s);
        if (last_ < used_ && m.strand != last_ && is_enabled(*pool_[last_]) && preemptions != ~0u)
            ++preempted_;
        last_ = m.strand;
        choice_ = m.kind == move::exhausts || m.kind == move::times_out;
        timed_out_ += m.kind == move::times_out;
        is_interrupt_ = m.kind == move::is_interrupted;
        back_ = m.back;
        resume(s);
    }
    [[nodiscard]] std::uint64_t state() const {
        std::uint64_t h = timed_out_;
        if (preemptions != ~0u) h = mix(mix(h, preempted_), last_);
        h = mix_all(h, memory_);
        if (histories) h = state_of_histories(h);
        if (checks_orders) h = mix_all(mix_all(h, released_), written_);
        for (unsigned i = 0; i < used_; ++i) {
            const one& s = *pool_[i];
            h = mix(h, s.history);
            h = mix(h, static_cast<std::uint64_t>(s.next.kind) << 32 | s.next.at);
            h = mix(h, reinterpret_cast<std::uintptr_t>(s.next.what));
            h = mix(h, s.waits_for_change ? 1 : 2);
            if (checks_orders) h = mix(mix(mix(h, s.known), s.fenced), s.unfenced);
            h = mix(h, s.interrupts << 1 | (s.is_in_handler ? 1 : 0));
            for (const pending_store& p : s.buffer)
                h = mix(mix(h, p.at), p.v), h = checks_orders ? mix(h, p.released) : h;
            h = mix(h, s.buffer.size());
        }
        return h;
    }

    void execute(const std::function<void(model&)>& build) {
        memory_.clear();
        released_.clear();
        written_.clear();
        stores_.clear();
        sc_accesses_ = sc_fences_ = {};
        timed_out_ = preempted_ = 0;
        last_ = ~0u;
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
                // If there is no choice, there is nothing to search again.
                if (moves_.size() > 1 && !seen_.insert(state()).second) break;
                if (depth == most_steps) {
                    fail("does not end");
                    break;
                }
                choices_.push_back({0, static_cast<unsigned>(moves_.size())});
            }
            const move m = moves_[choices_[depth++].taken];
            trace_.push_back({m, pool_[m.strand]->next, pool_[m.strand]->last_seen});
            make(m);
        }
        drain();
    }

    void rest() {
        for (unsigned i = 0; i < used_; ++i)
            while (!pool_[i]->buffer.empty()) flush(*pool_[i]);
        bool is_stuck = false;
        for (unsigned i = 0; i < used_; ++i) {
            const one& s = *pool_[i];
            // The strand would have continued with what it saw: that is another execution.
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
        if (abandons) {
            for (unsigned i = 0; i < used_; ++i) pool_[i]->begin();
            return;
        }
        is_draining_ = true;
        for (unsigned turn = 0, idle = 0; idle <= used_; ++turn) {
            one& s = *pool_[turn % used_];
            // What it stored may be what another strand waits for.
            for (; !s.buffer.empty(); idle = 0) flush(s);
            if (s.next.kind == op::asleep || s.next.kind == op::asleep_for ||
                s.next.kind == op::reads)
                s.next.kind = op::plain;
            if (is_enabled(s)) {
                choice_ = 1;
                back_ = 0;
                resume(s);
                idle = 0;
            } else {
                ++idle;
            }
        }
        is_draining_ = false;
    }

    // The next branch of the search. Returns false when all are done.
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
            else if (t.m.kind == move::times_out)
                text += "the limit of its sleep passes";
            else if (t.m.kind == move::is_interrupted)
                text += "is interrupted";
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
    std::vector<clocks> released_;     // One for each value in memory.
    std::vector<last_write> written_;  // The last write by touch().
    // With histories: the stores of each location, in the order in which they were executed; the
    // newest that a sequentially consistent access has read or made; what all such fences saw.
    std::vector<std::vector<stored>> stores_;
    view sc_accesses_, sc_fences_;
    std::vector<move> moves_;
    std::vector<chosen> choices_;
    std::vector<traced> trace_;
    std::unordered_set<std::uint64_t> seen_;
    std::function<std::string()> at_rest_;
    value choice_ = 0;
    unsigned back_ = 0;
    bool is_interrupt_ = false;
    unsigned timed_out_ = 0, preempted_ = 0, last_ = ~0u;
    bool is_draining_ = false;
    report report_;
};

// A plain variable; the model checks that only one strand touches it at a time.
template <class T>
class checked {
public:
    checked(T initial) noexcept : value_{initial} {}
    operator T() const noexcept {
        model::running().touch(at_, "a variable that is read");
        return value_;
    }
    checked& operator=(T v) noexcept {
        model::running().touch(at_, "a variable that is written");
        value_ = v;
        return *this;
    }

private:
    model::cell at_ = model::running().make(0);
    T value_;
};

}  // namespace ums::tso

// In the text, a failed assertion is an execution that goes wrong.
#undef UMS_ASSERT
#define UMS_ASSERT(expression, message) \
    ((expression) ? (void)0 : ums::tso::model::running().fail(message))

// What the library's text sees instead of ums::base.
namespace ums::modelled_base {

namespace chain = base::chain;
using base::fatal;
using base::fifo;

using base::acq_rel;
using base::acquire;
using base::cache_line;
using base::relaxed;
using base::release;
using base::seq_cst;

// On TSO every load acquires and every store releases; a sequentially consistent store is an
// exchange.
template <class T>
class atomic {
    using place = std::source_location;
    using model = tso::model;

public:
    atomic() noexcept : atomic{T{}} {}
    explicit atomic(T initial) noexcept
        : at_{model::is_running() ? model::running().make(wide(initial)) : ~0u} {}
    atomic(const atomic&) = delete;
    atomic& operator=(const atomic&) = delete;

    T load(std::memory_order order, const place& at = place::current()) const noexcept {
        model& m = model::running();
        return narrow(m.load(at_, m.order_of(order, at, "load", false)));
    }
    void store(T v, std::memory_order own, const place& at = place::current()) noexcept {
        model& m = model::running();
        const std::memory_order order = m.order_of(own, at, "store", false);
        if (order != seq_cst || m.histories) return m.store(at_, wide(v), order);
        m.modify(
            at_, [v, &m, this](auto) { return m.forget_released(at_), wide(v); }, relaxed);
        m.release_now(at_);
    }
    T exchange(T v, std::memory_order order, const place& at = place::current()) noexcept {
        return change([v](T) { return v; }, order, at, "exchange");
    }
    bool compare_exchange(T& expected, T desired, std::memory_order success,
                          std::memory_order failure, const place& at = place::current()) noexcept {
        model& m = model::running();
        const auto wanted = wide(expected);
        const auto old = m.modify(
            at_, [=](auto now) { return now == wanted ? wide(desired) : now; },
            [=](auto now) { return now == wanted; },
            m.order_of(success, at, "compare_exchange", false),
            m.order_of(failure, at, "compare_exchange", true), "compare_exchange");
        expected = narrow(old);
        return old == wanted;
    }
    T fetch_add(T n, std::memory_order order, const place& at = place::current()) noexcept {
        return change([n](T v) { return v + n; }, order, at, "fetch_add");
    }
    T fetch_sub(T n, std::memory_order order, const place& at = place::current()) noexcept {
        return change([n](T v) { return v - n; }, order, at, "fetch_sub");
    }
    T fetch_or(T n, std::memory_order order, const place& at = place::current()) noexcept {
        return change([n](T v) { return v | n; }, order, at, "fetch_or");
    }
    T fetch_and(T n, std::memory_order order, const place& at = place::current()) noexcept {
        return change([n](T v) { return v & n; }, order, at, "fetch_and");
    }

    const void* address() const noexcept { return this; }
    [[nodiscard]] tso::model::cell cell() const noexcept { return at_; }

private:
    static model::value wide(T v) noexcept {
        if constexpr (std::is_pointer_v<T>)
            return reinterpret_cast<model::value>(v);
        else
            return static_cast<model::value>(v);
    }
    static T narrow(model::value v) noexcept {
        if constexpr (std::is_pointer_v<T>)
            return reinterpret_cast<T>(v);
        else
            return static_cast<T>(v);
    }
    template <class F>
    T change(F f, std::memory_order own, const place& at, const char* what) noexcept {
        model& m = model::running();
        const std::memory_order order = m.order_of(own, at, what, false);
        return narrow(m.modify(
            at_, [f](auto v) { return wide(static_cast<T>(f(narrow(v)))); },
            [](auto) { return true; }, order, order, what));
    }

    model::cell at_;
};

// Every write comes after the one before it.
template <class T>
class owned {
public:
    owned() noexcept = default;
    explicit owned(T initial) noexcept : value_{initial} {}
    T get() const noexcept { return value_.load(relaxed); }
    void set(T v) noexcept {
        tso::model::running().touch(value_.cell(), "two write a base::owned");
        value_.store(v, relaxed);
    }
    void add(T n) noexcept { set(static_cast<T>(get() + n)); }
    void publish(T v) noexcept { value_.store(v, release); }
    T take() const noexcept { return value_.load(acquire); }

private:
    atomic<T> value_;
};

inline void compiler_fence() noexcept { tso::model::running().light_fence(); }
inline void full_fence() noexcept { tso::model::running().full_fence(); }
inline void spin_pause() noexcept { tso::model::running().spin_pause(); }

}  // namespace ums::modelled_base

// And instead of ums::os.
namespace ums::modelled_os {

inline void heavy_fence() noexcept { tso::model::running().heavy_fence(); }

using os::nanoseconds;
using os::never;
inline nanoseconds now() noexcept { return 0; }

inline bool futex_wait(const modelled_base::atomic<std::uint32_t>& word, std::uint32_t expected,
                       nanoseconds limit = never) noexcept {
    return tso::model::running().futex_wait(word.cell(), expected, limit != never);
}
inline void futex_wake(const void* word, int waiters = 1) noexcept {
    tso::model::running().futex_wake(
        static_cast<const modelled_base::atomic<std::uint32_t>*>(word)->cell(), waiters);
}

using os::lock_rank;

class lock {
public:
    lock() noexcept = default;
    explicit lock(lock_rank) noexcept {}
    // While it is held, no strand is stopped.
    void acquire() noexcept {
        count(1);
        tso::model::running().acquire_lock(word_.cell());
    }
    bool try_acquire() noexcept {
        std::uint32_t seen = 0;
        const bool done = word_.compare_exchange(seen, 1, base::acquire, base::relaxed);
        if (done) count(1);
        return done;
    }
    [[nodiscard]] std::uint32_t look(std::memory_order order) const noexcept {
        return word_.load(order);
    }
    void await_free() const noexcept { tso::model::running().await_clear(word_.cell(), ~0ull); }
    void release() noexcept {
        tso::model& m = tso::model::running();
        if (m.releases_locks_by_stores)
            word_.store(0, base::release);
        else
            m.modify(
                word_.cell(), [](auto) { return 0; }, base::release);
        count(~0u);
    }

private:
    static void count(std::uint32_t by) noexcept {
        tso::model& m = tso::model::running();
        if (!m.is_on_strand()) return;
        if (auto* here = static_cast<os::slot_head*>(m.slot())) here->no_stops.add(by);
    }

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
