// SPDX-License-Identifier: MIT
//
// The text of sched/run/search and idle_set, with the calls of processor and cluster that wake
// others, in every execution that C++20 allows, up to a bound: when nothing moves any more, no
// fiber waits behind one that computes while a processor is idle, unless the watcher will look; and
// no idle processor sleeps longer than the earliest deadline.

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "internal/modelled/kept.hpp"
#include "internal/modelled/mutants.hpp"
#include "os/lock.hpp"
#include "support/scale.hpp"

namespace ums::modelled_timed {

using modelled_os::futex_wake;
using modelled_os::heavy_fence;
using modelled_os::lock;
using modelled_os::lock_guard;
using modelled_os::lock_rank;
using modelled_os::nanoseconds;
using modelled_os::never;

// A sleep that its limit ends moves the clock to that time.
inline tso::model::cell clock;
inline nanoseconds now() noexcept {
    tso::model& m = tso::model::running();
    const tso::model::value v = m.at(clock);
    m.note(v);
    return static_cast<nanoseconds>(v);
}

struct no_stop {
    ~no_stop() {}
};
struct visitors {};
struct visit {
    explicit visit(visitors&) noexcept {}
    ~visit() {}
};

}  // namespace ums::modelled_timed

namespace ums::modelled {

using tso::kept;
using tso::model;

class cluster;
class processor;

void push_front(kept<processor*>& first, processor& p) noexcept;
void remove(kept<processor*>& first, processor& p) noexcept;

}  // namespace ums::modelled

#define base modelled_base
#define os modelled_timed
#define sched modelled
#include "sched/run/idle_set.hpp"

namespace ums::sched {

struct fiber {
    kept<bool> is_ready;  // For the proof.
    struct {
        processor* only = nullptr;
        [[nodiscard]] processor* get() const noexcept { return only; }
    } pinned_to;
    void pin(processor*) noexcept {}
};

struct access {
    static fiber* fiber_of(fiber* f) noexcept { return f; }
    static fiber* ref(fiber* f) noexcept { return f; }
};
// No program has one.
struct policy {
    static constexpr unsigned outside = ~0u;
    fiber* steal(unsigned, unsigned) noexcept { return nullptr; }
    bool empty(unsigned) const noexcept { return true; }
    void ready(fiber*, unsigned) noexcept {}
};

template <class T>
struct constant {
    T value{};
    [[nodiscard]] T load(std::memory_order) const noexcept { return value; }
};
struct count {
    void add(std::uint64_t) noexcept {}
};

// Of one fiber.
class inbox {
public:
    void push(fiber& f) noexcept { first_.exchange(&f, base::seq_cst); }
    [[nodiscard]] bool empty() const noexcept {
        return !is_used || first_.load(base::seq_cst) == nullptr;
    }
    [[nodiscard]] bool looks_empty() const noexcept {
        return !is_used || first_.load(base::relaxed) == nullptr;
    }
    fiber* take_all() noexcept {
        return looks_empty() ? nullptr : first_.exchange(nullptr, base::acquire);
    }
    bool is_used = false;
    base::atomic<fiber*> first_;
};

// The run-next slot, and a ring of one.
class run_queue {
public:
    void push_next(fiber& f) noexcept {
        fiber* const displaced = run_next.get();
        run_next.set(&f);
        if (displaced != nullptr) push_back(*displaced);
    }
    void push_back(fiber& f) noexcept {
        if (ring.get() != nullptr) model::running().fail("the program is too long");
        ring.set(&f);
    }
    fiber* pop() noexcept {
        for (auto* from : {&run_next, &ring})
            if (fiber* const f = from->get()) {
                from->set(nullptr);
                return f;
            }
        return nullptr;
    }
    std::uint32_t steal(run_queue& victim, std::uint32_t, bool stranded_too) noexcept {
        fiber* f = victim.ring.get();
        if (f != nullptr)
            victim.ring.set(nullptr);
        else if (stranded_too && (f = victim.run_next.get()) != nullptr)
            victim.run_next.set(nullptr);
        if (f == nullptr) return 0;
        push_back(*f);
        return 1;
    }
    [[nodiscard]] bool looks_busy() const noexcept { return ring.get() != nullptr; }
    [[nodiscard]] bool has_run_next() const noexcept { return run_next.get() != nullptr; }

    base::owned<fiber*> run_next, ring;
    base::owned<std::uint64_t> switches;
};

// The lock of a processor, whose holder is always the same.
struct carrier {
    struct {
        // One that fails comes back at once, until the holder has left.
        bool try_claim() noexcept {
            const bool done = word.try_acquire();
            if (!done) word.await_free();
            return done;
        }
        void unclaim() noexcept { word.release(); }
        os::lock word;
    } ownership;
    int race = 0;
    void leave(int) noexcept { ownership.word.release(); }
    bool enter() noexcept { return ownership.word.acquire(), true; }
    std::uint64_t take_look() noexcept { return 0; }
};

// The detector has a model of its own: here it looks at nothing.
struct looks {
    std::uint64_t take_look() noexcept { return 0; }
};
inline looks* this_carrier() noexcept {
    static looks none;
    return &none;
}
struct detection {
    static void rests(std::uint64_t) noexcept {}
    static void keeps_waiting(std::uint64_t) noexcept {}
};

struct timer_queue {
    [[nodiscard]] os::nanoseconds next() const noexcept {
        return is_used ? next_.load(base::relaxed) : os::never;
    }
    bool is_used = false;
    base::atomic<os::nanoseconds> next_{os::never};
    fiber* who = nullptr;
};

enum class trace_event { steal };
struct trace_ring {
    void write(trace_event, int, std::uint32_t, unsigned) noexcept {}
};

struct unused_pages {
    static void have_run() noexcept {}
    static os::nanoseconds look() noexcept { return os::never; }
};

class processor {
public:
    [[nodiscard]] cluster& home() const noexcept { return home_; }
    [[nodiscard]] unsigned index() const noexcept { return index_; }
    [[nodiscard]] std::uint64_t activity() const noexcept { return ready.switches.get(); }
    [[nodiscard]] carrier* holder() noexcept { return &its; }
    [[nodiscard]] bool is_held_by(const carrier&) const noexcept { return true; }
    [[nodiscard]] bool has_policy() const noexcept { return false; }
    [[nodiscard]] bool looks_busy() const noexcept { return ready.looks_busy(); }
    [[nodiscard]] bool looks_stranded() const noexcept {
        return ready.looks_busy() || ready.has_run_next() || !scattered.looks_empty();
    }
    [[nodiscard]] bool has_arrived() const noexcept { return false; }
    [[nodiscard]] os::nanoseconds next_deadline() const noexcept { return timers.next(); }
    // What waits in the ring has waited for long.
    [[nodiscard]] bool has_waited_here() const noexcept { return true; }

    void look_around(bool) noexcept {
        if (timers.next() <= os::now()) take_in(fire(timers, os::now(), 1));
    }
    fiber* pick_counted() noexcept;
    void take_in(fiber* f) noexcept {
        if (f != nullptr) ready.push_back(*f);
    }
    fiber* fire(timer_queue& of, os::nanoseconds, unsigned) noexcept {
        return of.next_.exchange(os::never, base::acq_rel) == os::never ? nullptr : of.who;
    }

    void offer_rest() noexcept;
    void tell_of_long_runs() noexcept;
    void wake_help(bool at_once = false) noexcept;
    void help_wanted(bool at_once) noexcept;
    void wake_one() noexcept;

    // sched/queue/driver.cpp: in its futex.
    void wait(os::nanoseconds limit, bool) noexcept {
        if (state_.exchange(0, base::acquire) != 0) return;
        model& m = model::running();
        m.at(until) = static_cast<model::value>(limit);
        if (!modelled_os::futex_wait(state_, 0, limit) &&
            m.at(os::clock) < static_cast<model::value>(limit))
            m.at(os::clock) = static_cast<model::value>(limit);
        state_.exchange(0, base::acquire);
    }
    void notify() noexcept {
        if (state_.exchange(1, base::acq_rel) == 0) os::futex_wake(state_.address());
    }

    run_queue ready;
    timer_queue timers;
    inbox pinned, scattered;
    base::owned<bool> is_idle;
    kept<processor*> next_idle{nullptr};
    struct {
        constant<bool> is_asked, is_done;
    } retirement;
    base::atomic<bool> runs_long;
    kept<std::uint64_t> watched{0};
    struct {
        unsigned below(unsigned) noexcept { return 0; }
    } random;
    struct {
        count steals, stolen, idles, wakes_sent;
    } counters;
    trace_ring* trace = nullptr;
    bool begins_long_ = false;
    bool asymmetric_ = true;
    carrier its;
    base::atomic<std::uint32_t> state_;
    // For the proof: the limit of its sleep; how much of its program has run.
    model::cell until = model::running().make(0), position = model::running().make(0);

    processor(cluster& home, unsigned index) noexcept : home_{home}, index_{index} {}
    cluster& home_;
    unsigned index_;
};

class cluster {
public:
    [[nodiscard]] unsigned active() const noexcept { return processors; }
    [[nodiscard]] unsigned size() const noexcept { return processors; }
    [[nodiscard]] processor& at(unsigned i) const noexcept { return *all[i]; }
    [[nodiscard]] bool is_paused() const noexcept { return false; }
    [[nodiscard]] bool is_left_behind() const noexcept { return false; }
    [[nodiscard]] bool pins() const noexcept { return false; }
    [[nodiscard]] int distance(processor&, processor&) const noexcept { return 3; }
    [[nodiscard]] os::nanoseconds spin() const noexcept { return 0; }
    [[nodiscard]] sched::policy* policy() const noexcept { return nullptr; }
    void end_process_if_over() const noexcept {}
    struct {
        void rest(processor&) noexcept {}
    } pausing;
    [[nodiscard]] auto& pauses() noexcept { return pausing; }
    [[nodiscard]] bool looks_busy(const processor& besides) const noexcept {
        for (unsigned i = 0; i < processors; ++i)
            if (all[i] != &besides && all[i]->looks_busy()) return true;
        return false;
    }
    [[nodiscard]] bool needs_watcher() const noexcept {
        return !is_lazy || running_long.load(base::relaxed) != 0;
    }
    [[nodiscard]] processor& successor() const noexcept { return at(0); }
    void forward(processor&) noexcept {}
    void wake(processor& p) noexcept {
        if (idle.claim(p)) p.notify();
    }
    void make_ready_from_outside(fiber& f) noexcept;
    void wake_for_work() noexcept;

    struct {
        [[nodiscard]] bool has_stopped() const noexcept { return false; }
        [[nodiscard]] bool any_away() const noexcept { return false; }
    } carriers;
    idle_set idle;
    inbox shared_inbox;
    base::atomic<std::uint32_t> running_long;
    base::atomic<processor*> watcher;
    base::atomic<os::nanoseconds> watch_until{os::never};
    enum : std::uint32_t { off, rests, samples, asked };
    base::atomic<std::uint32_t> watching;
    struct {
        [[nodiscard]] os::nanoseconds get() const noexcept { return word.load(base::relaxed); }
        void set(os::nanoseconds v) noexcept { word.store(v, base::relaxed); }
        base::atomic<os::nanoseconds> word;
    } sample_period;
    base::owned<os::nanoseconds> sampled_at;

    struct {
        bool scatter = false;
    } setup_;
    sched::policy* policy_ = nullptr;
    os::visitors visitors_;
    bool is_lazy = false;
    unsigned processors = 0;
    processor* all[3] = {};
};

struct here {
    [[nodiscard]] const processor* at() const noexcept { return nullptr; }
};

inline void push_front(kept<processor*>& first, processor& p) noexcept {
    p.next_idle = first;
    first = &p;
}
inline void remove(kept<processor*>& first, processor& p) noexcept {
    kept<processor*>* at = &first;
    while (at->get() != &p) at = &at->get()->next_idle;
    *at = p.next_idle;
}

inline fiber* processor::pick_counted() noexcept {
    fiber* const f = ready.pop();
    if (f != nullptr) return f;
    take_in(pinned.take_all());
    take_in(scattered.take_all());
    take_in(home_.shared_inbox.take_all());
    return ready.pop();
}

}  // namespace ums::sched

#include "sched/run/idle_set.cpp"
#include "sched/run/search.cpp"
#include "sched/run/search.hpp"

namespace ums::sched {

#include "sched/run/cluster.cpp"
#include "sched/run/cluster.hpp"
#include "sched/run/processor.cpp"

}  // namespace ums::sched

#undef base
#undef os
#undef sched

namespace {

using ums::modelled::cluster;
using ums::modelled::fiber;
using ums::modelled::processor;
using ums::modelled::search;
using ums::tso::model;
namespace base = ums::base;
namespace os = ums::modelled_timed;

constexpr os::nanoseconds begin = 1'000'000, sleep = 200'000;

struct machine {
    cluster home;
    std::array<processor, 3> processors{processor{home, 0}, processor{home, 1}, processor{home, 2}};
    std::array<fiber, 5> fibers;
    model::cell made = model::running().make(0);

    // Everything lies at the same place in each execution. It is not destroyed, because its words
    // disappeared with the execution.
    static machine& remade() {
        alignas(machine) static std::byte room[sizeof(machine)];
        os::clock = model::running().make(begin);
        return *new (room) machine;
    }

    fiber& make() {
        model& m = model::running();
        m.note(m.at(made));
        fiber& f = fibers[m.at(made)++];
        f.is_ready = true;
        return f;
    }
    // A strand that is a processor, which runs a fiber. When the program is over, that one computes
    // for ever.
    void run(processor& p, std::string_view program) {
        model& m = model::running();
        for (const char what : program) {
            ++m.at(p.position);
            switch (what) {
                case 'n':  // It makes another ready, in the run-next slot.
                case 'b':  // The same, in the ring, as new work.
                    p.its.enter();
                    what == 'n' ? p.ready.push_next(make()) : p.ready.push_back(make());
                    p.its.leave(0);
                    p.wake_help(what == 'b');
                    break;
                case 'e':  // It ends.
                    p.its.enter();
                    run_next(p);
                    p.its.leave(0);
                    break;
                case 'l':  // Its runs are long.
                    p.begins_long_ = search::set_runs_long(p, true);
                    p.tell_of_long_runs();
                    break;
                case 't':  // A sleeper there.
                    p.timers.next_.store(os::now() + sleep, base::relaxed);
                    search::tell_watcher(p, begin + sleep);
                    break;
            }
        }
    }
    void add_other(model& of, char what) {
        switch (what) {
            case 'o':
                home.shared_inbox.is_used = true;
                of.strand("outside", [this] { home.make_ready_from_outside(make()); });
                break;
            case 's':
                home.setup_.scatter = true;
                for (processor& p : processors) p.scattered.is_used = true;
                of.strand("outside", [this] { home.make_ready_from_outside(make()); });
                break;
            case 'p':
                home.at(1).pinned.is_used = true;
                fibers.back().pinned_to.only = &home.at(1);
                fibers.back().is_ready = true;
                of.strand("outside", [this] { home.make_ready_from_outside(fibers.back()); });
                break;
            case 'd':
                of.strand("detector", [this] {
                    if (search::set_runs_long(processors[0], true)) search::ask_watcher(home);
                });
                break;
        }
    }
    void run_next(processor& p) {
        p.ready.switches.add(1);
        fiber* f = p.pick_counted();
        if (f == nullptr) f = search::find(p, p.its);
        if (!f->is_ready) model::running().fail("a fiber runs twice");
        f->is_ready = false;
    }

    // What is wrong when nothing moves any more. The first strands are the processors that have a
    // program.
    [[nodiscard]] std::string verdict(model& of, std::size_t strands) {
        std::array<bool, 3> sleeps{};
        bool any_sleeps = false, sleeps_all = true;
        for (unsigned i = 0, n = 0; i < home.size(); ++i) {
            if (!has_program[i]) continue;
            sleeps[i] = !of.is_done(n);
            any_sleeps |= sleeps[i];
            sleeps_all &= sleeps[i];
            ends_at[i] = of.sleeps_for_a_time(n++) ? of.at(processors[i].until) : never;
        }
        for (std::size_t n = 0; n < strands; ++n)
            if (n >= programs && !of.is_done(n)) return "one waits for ever";
        if (!any_sleeps) return "";
        if (!home.shared_inbox.looks_empty()) return "what came from outside is left";
        // All but those that compute for ever sleep. What rests looks for nothing else then, see
        // unused_pages::look().
        if (programs == home.size() && sleeps_all && home.needs_watcher() &&
            home.watching.load(base::relaxed) == cluster::rests)
            return "one rests and is not told that nothing runs";
        const processor* const watcher = home.watcher.load(base::relaxed);
        const bool looks = watcher != nullptr && ends_at[watcher->index()] != never;
        for (unsigned i = 0; i < home.size(); ++i) {
            processor& p = processors[i];
            if (sleeps[i] && p.looks_stranded()) return "one sleeps beside its own";
            if (p.looks_stranded() && !looks && home.needs_watcher()) return "a fiber is stranded";
            if (p.looks_stranded() && is_filled) return "one that is stuck is left";
            const auto due = static_cast<model::value>(p.timers.next());
            if (due == never || !home.needs_watcher()) continue;
            if (std::none_of(ends_at.begin(), ends_at.end(), [due](auto e) { return e <= due; }))
                return "one sleeps longer than a deadline";
        }
        return "";
    }

    static constexpr auto never = static_cast<model::value>(os::never);
    std::array<bool, 3> has_program{};
    std::array<model::value, 3> ends_at{never, never, never};
    std::size_t programs = 0;
    bool is_filled = false;
};

struct options {
    unsigned timeouts = 1, preemptions = 3;
    bool is_lazy = false;    // The cluster has a watcher only where runs are long.
    bool is_filled = false;  // Where the first processor computes, one waits from the beginning.
};

// A processor for each: letters are what it does (machine::run()), "-" one that computes. Behind a
// space what others do: o makes one ready from outside, s one for the first processor that others
// may take, p one for the second that is pinned; d finds that the first one's runs are long.
ums::tso::program with(const char* name, options how = {}) {
    const auto build = [name, how](model& of) {
        machine& s = machine::remade();
        std::size_t strands = 0;
        bool are_others = false;
        std::string_view left = name;
        s.home.is_lazy = how.is_lazy;
        while (!left.empty()) {
            const std::string_view one = left.substr(0, left.find_first_of(", "));
            left.remove_prefix(one.size());
            const char separator = left.empty() ? ',' : left.front();
            if (!left.empty()) left.remove_prefix(1);
            if (are_others) {
                for (const char what : one) s.add_other(of, what);
                strands += one.size();
                break;
            }
            processor& p = s.processors[s.home.processors];
            s.home.all[s.home.processors++] = &p;
            p.timers.is_used = std::string_view{name}.find('t') != std::string_view::npos;
            if (one != "-") {
                s.has_program[p.index()] = true;
                of.strand("processor " + std::to_string(p.index()),
                          [&s, &p, one] { s.run(p, one); });
                ++strands;
                ++s.programs;
            }
            are_others = separator == ' ';
        }
        s.is_filled = how.is_filled;
        if (how.is_filled) s.processors[0].ready.push_next(s.make());
        of.at_rest([&s, &of, strands] { return s.verdict(of, strands); });
    };
    return {.name = name,
            .build = build,
            .timeouts = how.timeouts,
            .preemptions = how.preemptions,
            .histories = true};
}

std::vector<ums::tso::program> programs() {
    return {
        with("b,e", {.preemptions = 2}),
        with("e,e"),
        with("-,e", {.is_filled = true}),
        with("-,e d", {.is_lazy = true, .is_filled = true}),
        with("-,e s"),
        with("n,e"),
        with("nen,e", {.preemptions = 2}),
        with("ln,e", {.preemptions = 2, .is_lazy = true}),
        with("t,e"),
        with("lt,e", {.preemptions = 2, .is_lazy = true}),
        with("en,e o", {.preemptions = 1}),
        with("e,en p", {.preemptions = 0}),
        with("e,et p", {.preemptions = 0}),
        with("tn,e,e", {.timeouts = 2, .preemptions = 0}),
        with("n,e,e", {.preemptions = 1}),
    };
}

constexpr const char* only_more_wake_ups = "it looks again, and is told each time";
constexpr const char* twice = "one that leaves names another, and one that finds work does";
constexpr const char* four = "needs a fourth strand";

ums::tso::mutation_test all() {
    return {programs(),
            {
#include "watcher_model_test.inc"
            },
            {{"it_rests_although_it_was_asked", only_more_wake_ups},
             {"the_watcher_does_not_say_that_it_looks_again", only_more_wake_ups},
             {"the_watcher_does_not_tell_what_it_waits_for", only_more_wake_ups},
             {"it_looks_at_the_deadlines_once", "one added meanwhile is told: none was waited for"},
             {"the_watcher_does_not_tell_when_it_waits_for_nothing", twice},
             {"the_watcher_names_no_successor", twice},
             {"the_last_searcher_makes_no_watcher", twice},
             {"one_that_finds_no_watcher_looking_does_not_ask",
              "what waits is seen by itself, and what comes asks"},
             {"the_last_searcher_asks_nobody", four},
             {"search::alert_watcher: load seq_cst to acquire", four},
             {"search::ask_watcher: compare_exchange acquire to relaxed",
              "needs a watcher that begins to rest meanwhile, and a third preemption"}},
            {"sched/run/search.cpp", "sched/run/processor.cpp", "sched/run/cluster.cpp"}};
}

TEST(watcher_model_test, no_fiber_is_stranded) { all().text_is_correct(); }
TEST(watcher_model_test, finds_each_mutant) { all().finds_each_mutant(); }
TEST(watcher_model_test, its_orders_are_needed) { all().finds_each_order(); }

}  // namespace
