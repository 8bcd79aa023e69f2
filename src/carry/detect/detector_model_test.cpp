// SPDX-License-Identifier: MIT
//
// The text of carry/detect/watch_list, monitor_detector, sentinels and sentinel, run under every
// execution that x86-TSO allows, and those that C++20 does, up to a bound: no observer looks at a
// load that has been removed, and no thread sleeps for ever.
#include <algorithm>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <sched.h>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "internal/modelled/mutants.hpp"
#include "internal/modelled/surroundings.hpp"
#include "os/lock.hpp"
#include "os/thread/alarm.hpp"
#include "os/thread/slice.hpp"

namespace ums::modelled_os {

// An alarm that is set may come at once, because nobody knows how long an instruction takes. The
// kernel's lock orders those that set it or call it off.
class alarm {
public:
    void begin() noexcept { timer_ = 1; }
    void end() noexcept {}
    void leave_behind() noexcept {}
    void sleep() noexcept {
        while (is_due_.exchange(0, modelled_base::acquire) == 0) futex_wait(is_due_, 0);
    }
    void ring() noexcept { set(1); }
    void set(os::nanoseconds in) noexcept {
        if (in == too_late) return;
        if (has_one_user) static_cast<void>(static_cast<int>(timer_));
        is_due_.exchange(1, modelled_base::acq_rel);
        futex_wake(is_due_.address());
    }
    void call_off() noexcept { is_due_.exchange(0, modelled_base::acq_rel); }

    // What is set for this time does not come.
    static inline os::nanoseconds too_late = -1;
    bool has_one_user = true;  // Then it is checked that begin() is ordered before what that does.

private:
    tso::checked<int> timer_{0};
    modelled_base::atomic<std::uint32_t> is_due_;
};

}  // namespace ums::modelled_os

#define base modelled_base
#define os modelled_os
#define carry modelled_carry
namespace ums::carry {
class sentinel;
static sentinel* the_sentinel = nullptr;
}  // namespace ums::carry
#include "carry/detect/monitor_detector.hpp"
#include "carry/detect/sentinel.hpp"
// Includes their functions, too:
#include "carry/detect/monitor_detector.cpp"
#include "carry/detect/sentinel.cpp"
#include "carry/detect/sentinels.cpp"
#include "carry/detect/watch_list.cpp"

namespace ums::carry {

bool report_if_blocked(load&, os::thread_states&, os::nanoseconds, bool, int) noexcept {
    return false;
}

namespace {

using tso::model;

struct subject final : load {
    [[nodiscard]] int tid() const noexcept override { return 1; }
    [[nodiscard]] int cpu() const noexcept override { return 0; }
    [[nodiscard]] bool is_of_interest() const noexcept override {
        return interesting.load(base::relaxed) != 0 || other.load(base::relaxed) != 0;
    }
    [[nodiscard]] std::uint64_t activity() const noexcept override { return 1; }
    bool on_block(const notice&) noexcept override { return false; }

    // By its owner, and by another that stands for further loads.
    base::atomic<std::uint32_t> interesting, other;
    // Touched by its owner, and by each observer.
    model::cell content[2] = {model::running().make(0), model::running().make(0)};
};

// Lies at one address in every execution, because some words hold pointers. Not destroyed, because
// its words disappeared with the execution.
template <class T>
T& remade() {
    alignas(T) static char room[sizeof(T)];
    return *new (room) T;
}

struct listed {
    watch_list list;
    watch_list::observer observers[2] = {watch_list::observer{list}, watch_list::observer{list}};
    subject one;
    model::cell done = model::running().make(0);

    void touch(unsigned i) { model::running().touch(one.content[i], "a load is looked at"); }
    void observe(unsigned i) {
        observers[i].each([this, i](load&) noexcept {
            if (model::running().at(done) != 0)
                model::running().fail("a load is looked at that is gone");
            touch(i);
            model::running().step("looks");
            if (model::running().at(done) != 0)
                model::running().fail("a load is gone while it is looked at");
            touch(i);
            return true;
        });
    }
    void remove() {
        list.remove(one);
        model::running().at(done) = 1;
        touch(0);
        touch(1);
    }
};

void removal(model& m, unsigned observers) {
    auto& l = remade<listed>();
    l.list.add(l.one);
    for (unsigned i = 0; i < observers; ++i)
        m.strand("observer " + std::to_string(i), [&l, i] { l.observe(i); });
    m.strand("remover", [&l] { l.remove(); });
}

// A detector whose threads are strands.
struct sampled {
    monitor_detector detector;
    subject one;

    // Each short run may call its alarm off, however fast they follow each other.
    sampled() {
        monitor_detector::longest = 0;
        os::alarm::too_late = -1;
    }
    void sample() {
        detector.alarm_.begin();
        detector.has_begun_.store(1, base::release);
        base::full_fence();
        while (detector.may_sleep() && detector.ends_.load(base::relaxed) == 0)
            static_cast<void>(detector.sleep());
    }
};

// A load that is of interest for a moment only, and one that stays so.
void short_runs(model& m, int times) {
    auto& s = remade<sampled>();
    s.detector.all_.add(s.one);
    s.detector.alarm_.has_one_user = false;
    m.strand("sampler", [&s] { s.sample(); });
    m.strand("carrier", [&s, times] {
        for (int i = 0; i < times; ++i) {
            s.one.interesting.store(1, base::relaxed);
            const std::uint64_t look = s.detector.nudge(true);
            s.one.interesting.store(0, base::relaxed);
            if (look != 0) s.detector.call_off(look);
        }
    });
    m.strand("other", [&s] {
        s.one.other.store(1, base::relaxed);
        s.detector.nudge(true);
    });
}

struct posted {
    watch_list list;
    os::thread_states states;
    base::atomic<std::uint32_t> sleepers;
    sentinels all{list, states, sleepers};
    sentinel here;
    std::optional<sentinels::agent> agent;
    subject one;

    posted() {
        agent.emplace(all);
        the_sentinel = &here;
    }
    void make_interesting() {
        one.interesting.store(1, base::relaxed);
        list.add(one);
    }
    // The strands, in this order: what the agent does, what its sentinel does, what the others do.
    void strands(model& m, std::function<void()> others) {
        m.strand("agent", [this] { agent->run(); });
        m.strand("sentinel", [this] { here.run(); });
        m.strand("others", std::move(others));
        m.at_rest([this, &m] { return verdict(m); });
    }
    void end() {
        all.ends_.store(1, base::seq_cst);
        agent->end();
    }
    std::string verdict(model& m) {
        const bool ends = all.ends_.load(base::relaxed) != 0;
        const std::uint32_t word = here.word.load(base::relaxed),
                            duty = here.duty_.load(base::relaxed);
        if (!m.is_done(2)) return "the others do not end";
        if (ends) return m.is_done(0) ? "" : "an agent does not end";
        if (word == sentinel::called) return "an agent sleeps that was called";
        if (sleepers.load(base::relaxed) != (word == sentinel::asleep))
            return "a sleeper is not counted, or one that does not sleep";
        if (m.is_done(1)) return "";  // It had its turns, and gets no more CPU time.
        if (duty == sentinel::watches) return "a sentinel sleeps that shall watch";
        return word == sentinel::watching ? "a sentinel rests that shall watch" : "";
    }
};

std::vector<tso::program> programs() {
    return {
        {.name = "remove", .build = [](model& m) { removal(m, 1); }},
        {.name = "remove_from_two", .build = [](model& m) { removal(m, 2); }, .preemptions = 2},
        {.name = "add",
         .build =
             [](model& m) {
                 auto& l = remade<listed>();
                 m.strand("observer", [&l] { l.observe(0); });
                 m.strand("adder", [&l] {
                     l.touch(0);
                     l.list.add(l.one);
                 });
             }},
        {.name = "sleep",
         .build =
             [](model& m) {
                 auto& s = remade<sampled>();
                 s.detector.all_.add(s.one);
                 m.strand("sampler", [&s] { s.sample(); });
                 m.strand("carrier", [&s] {
                     s.one.interesting.store(1, base::relaxed);
                     s.detector.nudge(true);
                 });
             }},
        {.name = "quick",
         .build =
             [](model& m) {
                 auto& s = remade<sampled>();
                 s.detector.all_.add(s.one);
                 s.detector.is_quick_.store(1, base::relaxed);
                 m.strand("sampler", [&s] { s.sample(); });
                 m.strand("carrier", [&s] {
                     s.one.interesting.store(1, base::relaxed);
                     s.detector.nudge(true);
                 });
             }},
        {.name = "call_off", .build = [](model& m) { short_runs(m, 1); }, .preemptions = 3},
        {.name = "call_off_twice", .build = [](model& m) { short_runs(m, 2); }, .preemptions = 1},
        {.name = "hurry",
         .build =
             [](model& m) {
                 auto& s = remade<sampled>();
                 s.detector.all_.add(s.one);
                 os::alarm::too_late = monitor_detector::longest;
                 m.strand("sampler", [&s] { s.sample(); });
                 m.strand("carrier", [&s] {
                     s.one.interesting.store(1, base::relaxed);
                     const std::uint64_t look = s.detector.nudge(true);
                     if (look != 0) s.detector.hurry(look);
                 });
             },
         .preemptions = 3},
        {.name = "stop",
         .build =
             [](model& m) {
                 auto& s = remade<sampled>();
                 m.strand("sampler", [&s] { s.sample(); });
                 m.strand("stopper", [&s] { s.detector.stop(); });
             }},
        {.name = "agent",
         .build =
             [](model& m) {
                 auto& p = remade<posted>();
                 p.make_interesting();
                 p.strands(m, [&p] {
                     p.agent->guard(0);
                     p.end();
                 });
             },
         .preemptions = 2},
        {.name = "idle_agent",
         .build =
             [](model& m) {
                 auto& p = remade<posted>();
                 p.strands(m, [&p] {
                     p.agent->guard(0);
                     p.agent->wake();
                     p.agent->let_sleep();
                     p.end();
                 });
             },
         .preemptions = 2},
        {.name = "dormant_agent",
         .build =
             [](model& m) {
                 auto& p = remade<posted>();
                 p.agent->in_vain_ = sentinels::most_in_vain;
                 p.strands(m, [&p] {
                     p.agent->guard(0);
                     p.end();
                 });
             },
         .preemptions = 2},
        {.name = "watching_agent",
         .build =
             [](model& m) {
                 auto& p = remade<posted>();
                 p.make_interesting();
                 p.strands(m, [&p] { p.agent->guard(0); });
             },
         .preemptions = 2},
        {.name = "woken_agent",
         .build =
             [](model& m) {
                 auto& p = remade<posted>();
                 p.strands(m, [&p] {
                     p.agent->guard(0);
                     p.agent->wake();
                 });
             },
         .preemptions = 2},
    };
}

}  // namespace

}  // namespace ums::carry
#undef base
#undef os
#undef carry

namespace {

// Orders that the model is too weak to check, because it is that of x86.
constexpr const char* loads_in_order = "orders words that x86 stores and loads in order";
constexpr const char* is_a_fence = "a read-modify-write is a fence on x86, whatever its order";
// That neither machine checks.
constexpr const char* raises = "a stop that raises a sentinel is not modelled";
constexpr const char* only_wakes = "the other store to the word publishes; this one only wakes";
constexpr const char* chunks = "a chunk that is being made is not modelled";
constexpr const char* has_fence = "a fence has published the alarm; it is for ThreadSanitizer";
constexpr const char* looks_again = "the sampler sleeps again, and looks after a heavy fence";
constexpr const char* no_later_store = "the machine reads no store that is executed later";
constexpr const char* stores_in_order = "the machine executes the stores of a word in their order";

ums::tso::mutation_test all() {
    return {ums::modelled_carry::programs(),
            {
#include "detector_model_test.inc"
            },
            {
                {"a_sentinel_calls_a_sleeper",
                 "only a stop takes the word from `watching` otherwise, and then the agent ends"},
                {"monitor_detector::sleep: store release", has_fence},
                {"monitor_detector::sleep: load acquire", loads_in_order},
                {"monitor_detector::sleep: compare_exchange acquire", is_a_fence},
                {"monitor_detector::sleep: compare_exchange acquire on failure", loads_in_order},
                {"sentinel::arm: compare_exchange release", loads_in_order},
                {"sentinel::run: load acquire", loads_in_order},
                {"sentinel::run: store release", raises},
                {"sentinel::run: compare_exchange release", loads_in_order},
                {"sentinels::agent::wait_for_call: load acquire", loads_in_order},
                {"sentinels::agent::end: store release", only_wakes},
                {"sentinels::agent::run: store seq_cst",
                 "the word is stored after it, which is a fence on x86"},
                {"sentinels::agent::ends: load seq_cst", loads_in_order},
                {"sentinels::agent::watch: load seq_cst", loads_in_order},
                {"sentinels::agent::call: exchange seq_cst", is_a_fence},
                {"watch_list::observer::unpin: load seq_cst", loads_in_order},
                {"watch_list::observer::unpin: fetch_add release", is_a_fence},
                {"watch_list::remove: store seq_cst", "the addition after it is a fence on x86"},
                {"watch_list::remove: fetch_add seq_cst", is_a_fence},
                {"watch_list::remove: load acquire", loads_in_order},
                {"watch_list::observer::each: load acquire", chunks},
            }};
}

// The same in C++20's memory, where a load may read an old value.
ums::tso::mutation_test in_histories() {
    std::vector<ums::tso::program> programs = ums::modelled_carry::programs();
    for (ums::tso::program& p : programs) {
        p.histories = true;
        p.preemptions = std::min(p.preemptions, 3u);
        // Of three strands one of which works twice there are too many otherwise.
        if (std::string_view{p.name}.starts_with("call_off")) --p.preemptions;
    }
    return {
        programs,
        {
#include "detector_model_test.inc"
        },
        {{"monitor_detector::leave_sleep: compare_exchange acq_rel to acquire", looks_again},
         {"monitor_detector::see_to_sampler: compare_exchange acq_rel to acquire", looks_again},
         {"monitor_detector::sleep: compare_exchange acquire to relaxed", looks_again},
         {"monitor_detector::sleep: compare_exchange acquire on failure to relaxed", looks_again},
         {"monitor_detector::sleep: store release to relaxed", has_fence},
         {"monitor_detector::sleep: load acquire to relaxed", looks_again},
         {"sentinel::run: store release to relaxed", raises},
         {"sentinels::agent::end: store release to relaxed", only_wakes},
         {"sentinels::agent::call: exchange seq_cst to acq_rel", stores_in_order},
         {"sentinels::agent::watch_on: store seq_cst to release", stores_in_order},
         {"sentinels::agent::sleep: store seq_cst to release", stores_in_order},
         {"watch_list::observer::unpin: fetch_add release to relaxed", no_later_store},
         {"watch_list::remove: load acquire to relaxed", no_later_store},
         {"watch_list::observer::each: load acquire to relaxed", chunks}}};
}

TEST(detector_model_test, nobody_looks_at_what_is_gone_or_sleeps_for_ever) {
    all().text_is_correct();
}
TEST(detector_model_test, finds_each_mutant) { all().finds_each_mutant(); }
TEST(detector_model_test, finds_each_order) { all().finds_each_order(); }

TEST(detector_model_test, nobody_does_in_histories) { in_histories().text_is_correct(); }
TEST(detector_model_test, finds_each_order_in_histories) { in_histories().finds_each_order(); }

}  // namespace
