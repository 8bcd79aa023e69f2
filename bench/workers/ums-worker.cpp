// SPDX-License-Identifier: MIT

// workers: N workers of the UMS API on one scheduler thread for each processor, each of which
// yields M times. A round-robin scheduler, as in the published comparison. After each yield a
// worker checks that its thread_local variable, its errno and its pthread_self() are its own.

#include <cerrno>
#include <pthread.h>
#include <stdexcept>
#include <thread>
#include <vector>

#include <ums/ums_scheduling.h>

#include "../common/peer.hpp"
#include "../common/race.hpp"

namespace {

thread_local std::uint64_t own = 0;

void check(int failed) {
    if (failed != 0)
        throw std::runtime_error{"a call of the UMS API failed: " + std::to_string(-failed)};
}

void yield() { (void)ums_worker_yield(nullptr); }

// What the C library answers now. Its headers let the compiler ask only once.
[[gnu::noinline]] pthread_t this_thread() {
    asm volatile("");
    return pthread_self();
}
[[gnu::noinline]] int& this_errno() {
    asm volatile("");
    return errno;
}

struct job {
    bench::race* race;
    std::uint64_t yields;
    int id;
    bool opens;  // This one opens the race instead.
    std::uint64_t wrong = 0;
};

std::intptr_t work(void* argument) {
    auto& mine = *static_cast<job*>(argument);
    if (mine.opens) {
        mine.race->open(yield);
        return 0;
    }
    const pthread_t self = this_thread();
    mine.race->start(yield);
    const std::uint64_t yields = mine.yields;
    const int id = mine.id;
    std::uint64_t wrong = 0;
    for (std::uint64_t y = 0; y < yields; ++y) {
        own = y;
        this_errno() = id;
        yield();
        wrong += own != y || this_errno() != id || !pthread_equal(self, this_thread());
    }
    mine.wrong = wrong;
    mine.race->finish();
    return 0;
}

// For one thread. Contexts that can run, in a ring with room for all.
struct scheduler {
    ums_completion_list_t list = 0;
    std::vector<ums_context_t> ring;
    std::size_t mask = 0, first = 0, end = 0, left = 0;

    std::size_t count() const { return end - first; }
    void add(ums_context_t c) { ring[end++ & mask] = c; }
    ums_context_t take() { return ring[first++ & mask]; }
};

thread_local scheduler* mine = nullptr;

void wait_for_workers(scheduler& s) {
    ums_context_t c = 0;
    check(ums_completion_list_dequeue(s.list, UMS_NEVER, &c));
    while (c != 0) {
        const ums_context_t next = ums_context_next(c);
        unsigned char ended = 0;
        check(ums_context_query(c, UMS_INFORMATION_TERMINATED, &ended, 1, nullptr));
        if (ended != 0) {
            --s.left;
            check(ums_context_destroy(c));
        } else {
            s.add(c);
        }
        c = next;
    }
}

void decide(ums_reason_t reason, std::uintptr_t payload, void* parameter) {
    if (reason == UMS_REASON_STARTUP) {
        mine = static_cast<scheduler*>(parameter);
        // Waits for all of them first, because workers that wait for the start yield for ever.
        while (mine->count() < mine->left) wait_for_workers(*mine);
    }
    scheduler& s = *mine;
    if (reason == UMS_REASON_YIELD) s.add(payload);
    for (;;) {
        while (s.count() != 0) check(ums_worker_execute(s.take()));
        if (s.left == 0) return;
        wait_for_workers(s);
    }
}

bench::tally lap(std::uint64_t processors, std::uint64_t fibers, std::uint64_t yields) {
    bench::race race{fibers};
    std::vector<scheduler> schedulers(processors);
    std::vector<job> jobs(fibers + 1, job{&race, yields, 0, false});
    std::vector<ums_worker_t> workers(jobs.size());
    jobs.back().opens = true;
    for (scheduler& s : schedulers) {
        std::size_t room = 2;
        while (room < jobs.size()) room *= 2;
        s.ring.resize(room);
        s.mask = room - 1;
        check(ums_completion_list_create(&s.list));
    }
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        scheduler& s = schedulers[i % processors];
        ums_worker_options_t options = UMS_WORKER_OPTIONS_INIT;
        options.list = s.list;
        jobs[i].id = static_cast<int>(i) + 1;
        check(ums_worker_create(&workers[i], &options, &work, &jobs[i]));
        ++s.left;
    }
    std::vector<std::thread> threads;
    for (scheduler& s : schedulers)
        threads.emplace_back([&s] {
            ums_scheduler_options_t options = UMS_SCHEDULER_OPTIONS_INIT;
            options.list = s.list;
            options.procedure = &decide;
            options.parameter = &s;
            check(ums_scheduler_enter(&options));
        });
    for (std::thread& t : threads) t.join();
    for (const ums_worker_t w : workers) check(ums_worker_join(w, nullptr));
    for (const scheduler& s : schedulers) check(ums_completion_list_destroy(s.list));
    for (const job& j : jobs)
        if (j.wrong != 0)
            throw std::runtime_error{"a worker did not find its own thread_local variables"};
    return {fibers * yields, race.ns()};
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto fibers = in.number("fibers", 10);
        const auto yields = in.number("yields", 1000);
        const auto min_ms = in.number("min_ms", 30, 0);
        in.word("measure", {"time"});
        in.done();
        const bench::tally sum =
            bench::repeat(min_ms, [&] { return lap(processors, fibers, yields); });
        out.add("ops", sum.ops).add("ns", sum.ns);
    });
}
