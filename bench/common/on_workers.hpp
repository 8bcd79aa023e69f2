// SPDX-License-Identifier: MIT
#pragma once

// bench/common/on_workers.hpp: a workload on workers of the UMS API, on one scheduler thread for
// each processor, which execute them in turn.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ums/ums_scheduling.h>

#include "clock.hpp"

namespace bench {

namespace workers {

inline void check(int failed) {
    if (failed != 0)
        throw std::runtime_error{"a call of the UMS API failed: " + std::to_string(-failed)};
}

struct job {
    std::function<void()> body;
    // 0: it runs, or the scheduler was told of its block.
    std::atomic<std::uint64_t> blocks_since_ns{0};
};

// The caller's job, in a worker.
inline job& own_job() {
    void* own = nullptr;
    check(ums_context_query(ums_context_current(), UMS_INFORMATION_USER_CONTEXT, &own, sizeof own,
                            nullptr));
    return *static_cast<job*>(own);
}

// How long the schedulers took to hear of a block, of those that a job noted in blocks_since_ns.
inline std::vector<std::uint64_t> told_ns;

// One thread. Its workers take turns; workers that come back go to the end.
class scheduler {
public:
    scheduler() {
        told_ns_.reserve(1'000'000);
        check(ums_completion_list_create(&list_));
        thread_ = std::thread{[this] {
            ums_scheduler_options_t options = UMS_SCHEDULER_OPTIONS_INIT;
            options.list = list_;
            options.procedure = &decide;
            options.parameter = this;
            check(ums_scheduler_enter(&options));
        }};
    }
    ~scheduler() {
        last_ = &last_job_;
        ums_worker_join(add(last_job_), nullptr);
        thread_.join();
        told_ns.insert(told_ns.end(), told_ns_.begin(), told_ns_.end());
        ums_completion_list_destroy(list_);
    }
    scheduler(const scheduler&) = delete;
    scheduler& operator=(const scheduler&) = delete;

    ums_worker_t add(job& what) {
        ums_worker_options_t options = UMS_WORKER_OPTIONS_INIT;
        options.list = list_;
        options.stack_bytes = 256 * 1024;
        options.suspended = true;  // Until its context leads to the job.
        ums_worker_t made = 0;
        check(ums_worker_create(
            &made, &options,
            [](void* of) -> std::intptr_t {
                if (auto& mine = *static_cast<job*>(of); mine.body) mine.body();
                return 0;
            },
            &what));
        void* const own = &what;
        check(ums_context_set(ums_worker_context(made), UMS_INFORMATION_USER_CONTEXT, &own,
                              sizeof own));
        check(ums_worker_resume(made, nullptr));
        return made;
    }

private:
    struct ready {
        ums_context_t context;
        job* of;
    };

    // A deadline of 0 does not wait.
    void take(std::int64_t deadline) {
        ums_context_t c = 0;
        check(ums_completion_list_dequeue(list_, deadline, &c));
        while (c != 0) {
            const ums_context_t next = ums_context_next(c);
            void* of = nullptr;
            unsigned char has_ended = 0;
            check(ums_context_query(c, UMS_INFORMATION_USER_CONTEXT, &of, sizeof of, nullptr));
            check(ums_context_query(c, UMS_INFORMATION_TERMINATED, &has_ended, 1, nullptr));
            if (has_ended == 0) {
                add_ready({c, static_cast<job*>(of)});
            } else {
                is_over_ = is_over_ || of == last_;
                check(ums_context_destroy(c));
            }
            c = next;
        }
    }

    // Does not use the heap, whose lock may be held by a worker that does not run.
    void add_ready(ready one) { ring_[end_++ % ring_.size()] = one; }

    void note_block() {
        if (running_.of == nullptr) return;
        const std::uint64_t since = running_.of->blocks_since_ns.exchange(0);
        if (since != 0 && told_ns_.size() < told_ns_.capacity())
            told_ns_.push_back(now_ns() - std::max(since, executed_ns_));
    }

    static void decide(ums_reason_t reason, std::uintptr_t payload, void* parameter) {
        static thread_local scheduler* own = nullptr;
        if (reason == UMS_REASON_STARTUP) own = static_cast<scheduler*>(parameter);
        scheduler& s = *own;
        if (reason == UMS_REASON_BLOCKED) s.note_block();
        if (reason == UMS_REASON_YIELD) s.add_ready({payload, s.running_.of});
        for (;;) {
            s.take(0);
            while (s.first_ == s.end_ && !s.is_over_) s.take(UMS_NEVER);
            if (s.first_ == s.end_) return;
            s.running_ = s.ring_[s.first_++ % s.ring_.size()];
            s.executed_ns_ = now_ns();
            int failed = 0;
            do failed = ums_worker_execute(s.running_.context);
            while (failed == -EAGAIN);
            check(failed);
        }
    }

    ums_completion_list_t list_ = 0;
    std::vector<ready> ring_{std::size_t{1} << 14};  // More than a peer has workers.
    std::size_t first_ = 0, end_ = 0;
    ready running_{0, nullptr};
    std::uint64_t executed_ns_ = 0;
    job last_job_;
    std::atomic<job*> last_{nullptr};
    bool is_over_ = false;
    std::vector<std::uint64_t> told_ns_;
    std::thread thread_;
};

inline std::vector<std::unique_ptr<scheduler>> schedulers;
// A scheduler looks at the job of the last worker it executed, even after that was joined.
inline std::vector<std::unique_ptr<job>> jobs;

}  // namespace workers

struct on_workers {
    // Like std::thread: runs the body, then is joined.
    class runner {
    public:
        template <class Body>
        explicit runner(Body body) {
            auto& mine = *workers::jobs.emplace_back(std::make_unique<workers::job>());
            mine.body = std::move(body);
            auto& all = workers::schedulers;
            worker_ = all[workers::jobs.size() % all.size()]->add(mine);
        }
        void join() { workers::check(ums_worker_join(worker_, nullptr)); }

    private:
        ums_worker_t worker_ = 0;
    };

    static void yield() { workers::check(ums_worker_yield(nullptr)); }
    static void sleep_ns(std::uint64_t ns) {
        ums_worker_blocking_enter();
        std::this_thread::sleep_for(std::chrono::nanoseconds{ns});
        ums_worker_blocking_leave();
    }

    template <class Body>
    static void run(std::uint64_t processors, Body body) {
        for (std::uint64_t i = 0; i < processors; ++i)
            workers::schedulers.push_back(std::make_unique<workers::scheduler>());
        body();
        workers::schedulers.clear();
    }
};

}  // namespace bench
