// SPDX-License-Identifier: MIT
#include "policy_trial.hpp"

#include <fmt/format.h>
#include <ums/ums.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <mutex>
#include <random>
#include <sched.h>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tool {

namespace {

constexpr unsigned fiber_count = 64;

// Parked fibers to feed one policy with. They do not notice what it does to their links and tags.
// Another policy gets others: a fiber keeps what a policy has noted about it.
class parked_fibers {
public:
    explicit parked_fibers(unsigned n) {
        for (unsigned i = 0; i < n; ++i) {
            fibers_.emplace_back(ums::fiber_options{.priority = static_cast<int>(i % 8) - 4,
                                                    .weight = 50 + i % 4 * 50,
                                                    .group = i % 3},
                                 [this] {
                                     while (!end_) ums::this_fiber::park();
                                 });
            number_[fibers_.back().ref().id().value()] = i;
        }
        assert(number_.size() == n && "two fibers that live have one id");
        // They have to wait before their links are used for something else.
        for (int i = 0; i < 3; ++i) ums::this_fiber::yield();
    }
    ~parked_fibers() {
        end_ = true;
        for (auto& f : fibers_) f.ref().unpark();
        for (auto& f : fibers_) f.join();
    }
    ums::fiber_ref operator[](unsigned i) const {
        assert(i < fibers_.size() && "a trial asks for a fiber that it did not make");
        return fibers_[i].ref();
    }
    // Returns the number of the fiber. Throws if it is none of them.
    unsigned number(ums::fiber_ref f) const {
        const auto found = number_.find(f.id().value());
        if (found == number_.end())
            throw broken_rule{"a method returned a fiber that was never handed to ready()"};
        return found->second;
    }

private:
    std::vector<ums::fiber> fibers_;
    std::unordered_map<std::uint64_t, unsigned> number_;
    bool end_ = false;
};

// A policy with its processors, as a cluster has it.
struct trial_cluster {
    explicit trial_cluster(const policy_subject& subject, unsigned processors)
        : order{subject.make()}, active{processors}, made{processors} {
        for (unsigned p = 0; p < processors; ++p) order->attach(p);
    }
    void add() {
        order->attach(active);
        made = std::max(made, ++active);
    }
    void remove() {
        assert(active > 1 && "a trial takes the last processor away");
        order->detach(--active);
    }

    // Returns what processor `p` would run. The scheduler looks at the other processors in any
    // order.
    ums::fiber_ref take(unsigned p, unsigned first_victim = 0) {
        assert(p < active && "a trial runs a processor that was removed");
        if (const ums::fiber_ref f = order->next(p)) return f;
        for (unsigned i = 0; i < made; ++i) {
            const unsigned victim = (first_victim + i) % made;
            if (victim == p) continue;
            if (const ums::fiber_ref f = order->steal(p, victim)) return f;
        }
        return {};
    }

    std::unique_ptr<ums::policy> order;
    unsigned active;
    unsigned made;  // Including those that were removed.
};

// Runs `body` on the first fiber of a runtime with one processor, so nothing else touches the
// parked ones.
void on_a_fiber(const std::function<void()>& body) {
    std::exception_ptr thrown;
    ums::run(ums::options{.processors = 1, .block = ums::block_detection::off}, [&] {
        try {
            body();
        } catch (...) {
            thrown = std::current_exception();
        }
        return 0;
    });
    if (thrown) std::rethrow_exception(thrown);
}

// --- empty() ------------------------------------------------------------------------------------

void check_empty(const trial_cluster& c, bool expected, const char* when) {
    for (unsigned p = 0; p < c.active; ++p)
        if (c.order->empty(p) != expected)
            throw broken_rule{fmt::format("empty({}) is {} {}", p, !expected, when)};
}

void test_empty(const policy_subject& subject) {
    on_a_fiber([&] {
        for (unsigned processors = 1; processors <= 3; ++processors) {
            const parked_fibers all{4};
            trial_cluster c{subject, processors};
            for (unsigned from = 0; from <= processors; ++from)
                for (unsigned by = 0; by < processors; ++by)
                    for (unsigned n = 1; n <= 4; ++n) {
                        check_empty(
                            c, true,
                            "with no fiber in the policy: a processor would search without end");
                        for (unsigned i = 0; i < n; ++i)
                            c.order->ready(all[i],
                                           from == processors ? ums::policy::outside : from);
                        for (unsigned left = n; left != 0; --left) {
                            check_empty(c, false,
                                        "with a fiber in the policy: the processor would go to "
                                        "sleep beside it");
                            if (!c.take(by))
                                throw broken_rule{
                                    fmt::format("processor {} gets a fiber by neither next() nor "
                                                "steal(), and nobody else "
                                                "may be awake",
                                                by)};
                        }
                    }
        }
    });
}

// --- Conservation -------------------------------------------------------------------------------

void test_conservation(const policy_subject& subject) {
    on_a_fiber([&] {
        const parked_fibers all{fiber_count};
        std::vector<bool> queued(fiber_count);
        std::vector<unsigned> outside;
        for (unsigned i = 0; i < fiber_count; ++i) outside.push_back(i);
        std::mt19937_64 random{subject.seed};
        trial_cluster c{subject, 2};
        const auto take = [&](unsigned p) {
            const ums::fiber_ref f = c.take(p, static_cast<unsigned>(random() % c.made));
            if (!f) {
                if (outside.size() != fiber_count)
                    throw broken_rule{
                        fmt::format("a fiber was dropped: processor {} finds none of {}", p,
                                    fiber_count - outside.size())};
                return;
            }
            const unsigned i = all.number(f);
            if (!queued[i]) throw broken_rule{"a fiber was duplicated: it was returned twice"};
            queued[i] = false;
            outside.push_back(i);
        };
        const auto make_ready = [&](unsigned from) {
            if (outside.empty()) return;
            std::swap(outside[random() % outside.size()], outside.back());
            const unsigned i = outside.back();
            outside.pop_back();
            assert(!queued[i] && "the trial itself queues a fiber twice");
            queued[i] = true;
            c.order->ready(all[i], from);
        };
        for (std::uint64_t step = 0; step < subject.steps; ++step) {
            subject.reached(step);
            const auto p = static_cast<unsigned>(random() % c.active);
            switch (random() % 64) {
                case 0:
                    if (c.active < 5) c.add();
                    break;
                case 1:
                    if (c.active > 1) c.remove();
                    break;
                case 2:
                case 3:
                    make_ready(ums::policy::outside);
                    break;
                default:
                    random() % 2 == 0 ? take(p) : make_ready(p);
            }
        }
        while (outside.size() != fiber_count) take(static_cast<unsigned>(random() % c.active));
        check_empty(c, true, "after all fibers were taken");
    });
}

// --- Liveness -----------------------------------------------------------------------------------

// All fibers are ready, and whichever runs yields. On average, each has to run again before the
// others have run this often. A policy that shares time out lets a fiber wait longer after a turn
// that the kernel interrupted in the middle: until each of the others has had as much time, and
// their turns may be interrupted, too. So the time of a wait counts as well as the steps. The
// longest turn of all would say nothing on a busy machine, where one interruption takes a tenth of
// a second.
constexpr std::uint64_t patience = 2000;
constexpr std::int64_t time_patience = 16;

void test_liveness(const policy_subject& subject) {
    on_a_fiber([&] {
        for (unsigned processors = 1; processors <= 2; ++processors) {
            const parked_fibers all{fiber_count};
            trial_cluster c{subject, processors};
            struct turn {
                std::uint64_t step = 0;
                ums::deadline began{}, ended = ums::deadline::clock::now();
                ums::deadline::clock::duration length{}, longest{};
                bool is_ready = true;
            };
            std::vector<turn> last(fiber_count);
            std::vector<ums::fiber_ref> running(processors);
            // Some come from outside, as if a plain thread woke them: no fiber that yields may
            // always come before them.
            for (unsigned i = 0; i < fiber_count; ++i)
                c.order->ready(all[i], i % 8 == 7 ? ums::policy::outside : i % processors);
            auto now = ums::deadline::clock::now();
            bool is_suspicious = false;
            for (std::uint64_t step = 1; step < subject.steps || is_suspicious; ++step) {
                // Past the last step it only waits for a fiber that may have starved.
                if (step < subject.steps) subject.reached(step);
                const auto p = static_cast<unsigned>(step % processors);
                const ums::fiber_ref before = running[p];
                // If the policy returns none in place of one that yields, that one continues.
                const ums::fiber_ref f = before ? c.order->instead_of(before, p) : c.take(p);
                const auto then = std::exchange(now, ums::deadline::clock::now());
                if (f) {
                    if (before) {
                        turn& t = last[all.number(before)];
                        t.step = step;
                        t.ended = now;
                        t.length = now - t.began;
                        t.longest = std::max(t.longest, t.length);
                        t.is_ready = true;
                        c.order->ready(before, p);
                    }
                    turn& t = last[all.number(f)];
                    t.began = then;
                    t.is_ready = false;
                    running[p] = f;
                }
                if (step % 1024 != 0) continue;
                ums::deadline::clock::duration of_all{};
                for (const turn& t : last) of_all += t.longest;
                is_suspicious = false;
                for (const turn& t : last) {
                    // At the end, wait only for fibers whose wait was already suspicious. With a
                    // policy that shares time out there may always be some, and this would never
                    // end.
                    if (step >= subject.steps && t.step + fiber_count * patience > subject.steps)
                        continue;
                    if (!t.is_ready || step - t.step <= fiber_count * patience) continue;
                    is_suspicious = true;
                    if (now - t.ended > (t.length * fiber_count + of_all) * time_patience)
                        throw broken_rule{
                            fmt::format("a fiber starves: it is ready while {} others run more "
                                        "than {} times each",
                                        fiber_count - 1, patience)};
                }
            }
            // As when a cluster ends, it has none of them any more: a library may make all its
            // policies of one.
            for (unsigned p = 0; p < processors; ++p)
                if (running[p]) c.order->left(running[p], p);
            while (c.take(0)) {
            }
        }
    });
}

// --- Concurrency --------------------------------------------------------------------------------

// Holds up the calling thread wherever it is, most often inside a method of the policy, until the
// others took some steps. On a busy machine, or one with a single CPU, threads would hardly ever be
// inside at once: each would finish in one turn of the kernel's. The wait is short, since the
// others may be waiting for a lock that this thread holds. A thread is held up once for each of its
// steps: on a busy machine a hold-up takes longer than `period`, and with one after the other the
// thread would never take a step.
class hold_ups {
public:
    // Interrupts the calling thread every `period`, as long as this object lives. Where the kernel
    // refuses a timer, the threads run as they come.
    hold_ups(std::atomic<std::uint64_t>& steps, std::chrono::nanoseconds period) : all_{steps} {
        struct sigaction action {};
        action.sa_sigaction = [](int, siginfo_t* info, void*) {
            const int error = errno;
            static_cast<hold_ups*>(info->si_value.sival_ptr)->hold_up();
            errno = error;
        };
        action.sa_flags = SA_SIGINFO | SA_RESTART;
        sigevent to_this_thread{};
        to_this_thread.sigev_notify = SIGEV_THREAD_ID;
        to_this_thread.sigev_signo = SIGVTALRM;
        to_this_thread.sigev_value.sival_ptr = this;
        to_this_thread._sigev_un._tid = ::gettid();
        assert(period.count() > 0 && period.count() < 1'000'000'000 &&
               "a period is no part of a second");
        const timespec every{0, static_cast<long>(period.count())};
        const itimerspec times{every, every};
        ::sigaction(SIGVTALRM, &action, nullptr);
        is_there_ = ::timer_create(CLOCK_MONOTONIC, &to_this_thread, &timer_) == 0;
        if (is_there_) ::timer_settime(timer_, 0, &times, nullptr);
    }
    hold_ups(const hold_ups&) = delete;
    ~hold_ups() {
        // A signal that is still pending is handled before this call returns.
        if (is_there_) ::timer_delete(timer_);
    }

    // The calling thread takes a step.
    void step() noexcept {
        all_.fetch_add(1, std::memory_order_relaxed);
        own_.fetch_add(1, std::memory_order_relaxed);
    }

private:
    void hold_up() noexcept {
        const std::uint64_t own = own_.load(std::memory_order_relaxed);
        if (std::exchange(held_up_at_, own) == own) return;
        const std::uint64_t enough = all_.load(std::memory_order_relaxed) + 16;
        for (int i = 0; i < 8 && all_.load(std::memory_order_relaxed) < enough; ++i)
            ::sched_yield();
    }

    std::atomic<std::uint64_t>& all_;    // Steps of all threads.
    std::atomic<std::uint64_t> own_{0};  // Those of this one.
    std::uint64_t held_up_at_ = 0;       // own_ at the last hold-up. The handler's alone.
    timer_t timer_{};
    bool is_there_ = false;
};

// Threads do what processors do, all at the same time. Each fiber's word says whether the policy
// may return it.
void test_concurrency(const policy_subject& subject) {
    on_a_fiber([&] {
        constexpr unsigned processors = 4;
        const parked_fibers all{fiber_count};
        trial_cluster c{subject, processors};
        std::vector<std::atomic<bool>> queued(fiber_count);
        std::atomic<bool> twice{false}, unknown{false};
        std::atomic<std::uint64_t> steps{0};
        std::barrier begin{processors};
        std::vector<std::vector<unsigned>> left(processors);
        const auto work = [&](unsigned p) {
            std::mt19937_64 random{subject.seed * processors + p};
            auto& mine = left[p];
            begin.arrive_and_wait();
            hold_ups some{steps, std::chrono::microseconds{40 + 7 * p}};
            for (unsigned i = p; i < fiber_count; i += processors) mine.push_back(i);
            for (std::uint64_t step = 0; step < subject.steps && !twice && !unknown; ++step) {
                some.step();
                subject.reached(step);
                if (!mine.empty() && random() % 2 == 0) {
                    const unsigned i = mine.back();
                    mine.pop_back();
                    queued[i].store(true, std::memory_order_relaxed);
                    c.order->ready(all[i], random() % 8 == 0 ? ums::policy::outside : p);
                } else if (const ums::fiber_ref f =
                               c.take(p, static_cast<unsigned>(random() % processors))) {
                    unsigned i = 0;
                    try {
                        i = all.number(f);
                    } catch (const broken_rule&) {
                        unknown = true;
                        break;
                    }
                    if (!queued[i].exchange(false, std::memory_order_relaxed)) {
                        twice = true;
                        break;
                    }
                    mine.push_back(i);
                } else {
                    static_cast<void>(c.order->empty(p));
                }
            }
        };
        {
            std::vector<std::jthread> threads;
            for (unsigned p = 0; p < processors; ++p) threads.emplace_back(work, p);
        }
        constexpr const char* unsafe = "not safe when processors call at once";
        if (twice) throw broken_rule{fmt::format("{}: a fiber was returned twice", unsafe)};
        if (unknown)
            throw broken_rule{fmt::format("{}: it returned what is no fiber of its own", unsafe)};
        std::size_t back = 0;
        for (const auto& mine : left) back += mine.size();
        while (const ums::fiber_ref f = c.take(0)) {
            if (!queued[all.number(f)].exchange(false))
                throw broken_rule{fmt::format("{}: a fiber was returned twice", unsafe)};
            ++back;
        }
        if (back != fiber_count)
            throw broken_rule{fmt::format("{}: {} of {} fibers were lost", unsafe,
                                          fiber_count - back, fiber_count)};
    });
}

// --- In a cluster -------------------------------------------------------------------------------

// A fiber that is lost between two calls of the scheduler shows here, as one that never runs.
void test_cluster(const policy_subject& subject) {
    ums::run(ums::options{.processors = 1}, [&] {
        ums::cluster c{ums::cluster_options{.processors = 2, .make_policy = subject.make}};
        // Its holders are of any priority, so it has them raised.
        ums::mutex lock;
        std::atomic<std::uint64_t> ran{0};
        std::uint64_t wanted = 0;
        for (std::uint64_t round = 0; round < std::max<std::uint64_t>(subject.steps / 2000, 10);
             ++round) {
            subject.reached(0);
            std::vector<ums::fiber> all;
            for (int i = 0; i < 20; ++i)
                all.emplace_back(ums::fiber_options{.cluster = &c, .priority = i % 8 - 4}, [&, i] {
                    for (int k = 0; k < i; ++k) ums::this_fiber::yield();
                    ums::this_fiber::park();
                    {
                        const std::lock_guard hold{lock};
                        ums::this_fiber::yield();
                    }
                    if (i % 4 == 0) ums::this_fiber::migrate(ums::cluster::standard());
                    if (i % 4 == 1) ums::this_fiber::migrate(c, 0);
                    ++ran;
                });
            for (auto& f : all) f.ref().unpark();
            if (round % 4 == 1) c.add_processor();
            if (round % 4 == 3) c.remove_processor();
            for (auto& f : all) f.join();
            wanted += all.size();
        }
        if (ran != wanted) throw broken_rule{"a fiber did not run, or ran twice"};
        return 0;
    });
}

constexpr policy_trial all_trials[] = {
    {"empty", "a method does not return", &test_empty},
    {"conservation", "a method does not return, or a fiber was dropped", &test_conservation},
    {"liveness", "a method does not return, or a fiber starves", &test_liveness},
    {"concurrency", "not safe when processors call at once: a method does not return",
     &test_concurrency},
    {"cluster", "a fiber is lost from sight: it is ready, and no processor runs it", &test_cluster},
};

}  // namespace

std::span<const policy_trial> policy_trials() { return all_trials; }

}  // namespace tool
