// SPDX-License-Identifier: MIT
// variants: monitor clang
//
// Workers that block through known calls, are suspended, terminated, and end in other ways.

#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "support/conservation.hpp"
#include "support/no_detection.hpp"
#include "support/round_robin.hpp"
#include "support/scale.hpp"
#include "ums/channel.hpp"
#include "ums/event.hpp"
#include "ums/mutex.hpp"
#include "ums/semaphore.hpp"

namespace {

class blocking_test : public conserving_test {
protected:
    // Runs until nothing of what was queued is left; for a test's single decisions.
    static ums_context_t one(ums_completion_list_t list, std::int64_t deadline = UMS_NEVER) {
        ums_context_t c = 0;
        EXPECT_EQ(ums_completion_list_dequeue(list, deadline, &c), 0);
        return c;
    }
};

struct pipe_ends {
    int ends[2];
    pipe_ends() { must(::pipe(ends)); }
    ~pipe_ends() {
        ::close(ends[0]);
        ::close(ends[1]);
    }
    void put() { must(::write(ends[1], "x", 1) == 1 ? 0 : -errno); }
    void get() {
        char c;
        must(::read(ends[0], &c, 1) == 1 ? 0 : -errno);
    }
};

TEST_F(blocking_test, a_read_of_an_empty_pipe_is_told_and_the_worker_comes_back) {
    completion_list list;
    pipe_ends pipe;
    const pid_t scheduler_tid = ::gettid();
    bool read_done = false;
    test_worker w{list, [&] {
                      errno = 77;
                      ums_worker_blocking_enter();
                      EXPECT_EQ(::gettid(), ums_thread_id());  // At home.
                      pipe.get();
                      ums_worker_blocking_leave();
                      EXPECT_EQ(errno, 77);
                      read_done = true;
                      ums_worker_yield(nullptr);
                  }};
    std::vector<int> reasons;
    schedule(list, [&](ums_reason_t reason, std::uintptr_t payload, void* parameter) {
        EXPECT_EQ(::gettid(), scheduler_tid);
        reasons.push_back(reason);
        switch (reasons.size()) {
            case 1:
                ums_worker_execute(one(list));
                break;
            case 2:
                EXPECT_EQ(payload, 1u);
                EXPECT_EQ(parameter, nullptr);
                EXPECT_FALSE(read_done);
                EXPECT_EQ(one(list, 0), 0u);
                pipe.put();
                ums_worker_execute(one(list));
                break;
            case 3:
                EXPECT_TRUE(read_done);
                EXPECT_EQ(payload, w.context());
                ums_worker_execute(payload);
                break;
            case 4:
                EXPECT_TRUE(is_terminated(one(list)));
                return;
            default:
                break;
        }
        ADD_FAILURE() << "not executed, at decision " << reasons.size();
    });
    EXPECT_EQ(reasons, (std::vector<int>{UMS_REASON_STARTUP, UMS_REASON_BLOCKED, UMS_REASON_YIELD,
                                         UMS_REASON_BLOCKED}));
}

TEST_F(blocking_test, nothing_is_told_of_blocking_in_a_critical_region) {
    completion_list list;
    test_worker w{list, [&] {
                      ums_critical_enter();
                      EXPECT_EQ(ums_worker_yield(nullptr), -EPERM);
                      ums_worker_blocking_enter();
                      ums_worker_blocking_leave();
                      ums_critical_enter();
                      ums_critical_leave();
                      EXPECT_EQ(ums_worker_yield(nullptr), -EPERM);
                      ums_critical_leave();
                      EXPECT_EQ(ums_worker_yield(nullptr), 0);
                  }};
    round_robin s{list, 1};
    s.run();
    EXPECT_EQ(s.blocked, 1);
    EXPECT_EQ(s.yields, 1);
}

TEST_F(blocking_test, nested_blocking_is_told_once) {
    completion_list list;
    test_worker w{list, [&] {
                      ums_worker_blocking_enter();
                      ums_worker_blocking_enter();
                      ums_worker_blocking_leave();
                      EXPECT_EQ(ums_worker_yield(nullptr), -EPERM) << "a yield at home";
                      ums_worker_blocking_leave();
                  }};
    round_robin s{list, 1};
    s.run();
    EXPECT_EQ(s.blocked, 2);
}

TEST_F(blocking_test, waits_in_the_librarys_own_primitives_are_told) {
    completion_list list;
    ums::mutex lock;
    ums::binary_semaphore permit{0};
    ums::channel<int> numbers{1};
    ums::manual_reset_event done, never;
    std::vector<std::unique_ptr<test_worker>> workers;
    const auto add = [&](auto run) { workers.push_back(std::make_unique<test_worker>(list, run)); };
    int had = 0;
    lock.lock();
    add([&] {
        const std::lock_guard hold{lock};
        ++had;
    });
    add([&] { permit.acquire(), ++had; });
    add([&] { had += numbers.receive().value_or(0); });
    add([&] { done.wait(), ++had; });
    round_robin s{list, static_cast<int>(workers.size())};
    int told = 0;
    schedule(list, [&](ums_reason_t reason, std::uintptr_t payload, void*) {
        if (reason == UMS_REASON_BLOCKED && ++told == 4) {
            EXPECT_EQ(payload, 1u);
            EXPECT_EQ(had, 0);
            lock.unlock();
            permit.release();
            EXPECT_EQ(numbers.send(1), ums::channel_status::ok);
            done.set();
        }
        s.decide(reason, payload);
    });
    EXPECT_EQ(had, 4);
    EXPECT_EQ(told, 8);

    test_worker timed{list, [&] { EXPECT_FALSE(never.wait_for(std::chrono::milliseconds{5})); }};
    round_robin again{list, 1};
    again.run();
    EXPECT_EQ(again.blocked, 2);
}

TEST_F(blocking_test, an_unblocked_worker_goes_to_the_list_of_the_scheduler_that_executed_it_last) {
    completion_list first, second;
    test_worker w{first, [] {
                      ums_worker_yield(nullptr);
                      ums_worker_blocking_enter();
                      ums_worker_blocking_leave();
                  }};
    ums_context_t yielded = 0;
    schedule(first, [&](ums_reason_t reason, std::uintptr_t payload, void*) {
        if (reason == UMS_REASON_STARTUP) ums_worker_execute(one(first));
        yielded = payload;
    });
    EXPECT_EQ(yielded, w.context());
    schedule(second, [&](ums_reason_t reason, std::uintptr_t, void*) {
        if (reason == UMS_REASON_STARTUP) ums_worker_execute(yielded);
    });
    EXPECT_EQ(one(second), w.context());
    EXPECT_EQ(one(first, 0), 0u);
    schedule(first, [&](ums_reason_t reason, std::uintptr_t, void*) {
        if (reason == UMS_REASON_STARTUP) ums_worker_execute(w.context());
    });
    EXPECT_EQ(one(first), w.context());
    EXPECT_TRUE(is_terminated(w.context()));
}

TEST_F(blocking_test,
       a_worker_whose_schedulers_list_is_gone_comes_back_to_the_list_it_was_made_for) {
    completion_list made_for;
    std::binary_semaphore go{0};
    test_worker w{made_for, [&] {
                      ums_worker_blocking_enter();
                      go.acquire();
                      ums_worker_blocking_leave();
                  }};
    const ums_context_t c = one(made_for);
    {
        completion_list used;
        schedule(used, [&](ums_reason_t reason, std::uintptr_t, void*) {
            if (reason == UMS_REASON_STARTUP) ums_worker_execute(c);
        });
    }
    go.release();
    EXPECT_EQ(one(made_for), c);
    round_robin s{made_for, 1};
    s.ready.push_back(c);
    s.run();
}

TEST_F(blocking_test, created_suspended_it_is_queued_by_the_resume) {
    completion_list list;
    ums_worker_options_t options = UMS_WORKER_OPTIONS_INIT;
    options.suspended = true;
    bool ran = false;
    test_worker w{list, [&] { ran = true; }, options};
    EXPECT_TRUE(is_suspended(w.context()));
    EXPECT_EQ(one(list, 0), 0u);
    EXPECT_EQ(one(list, 0), 0u);
    unsigned before = 0;
    EXPECT_EQ(ums_worker_suspend(w.worker(), &before), 0);
    EXPECT_EQ(before, 1u);
    EXPECT_EQ(ums_worker_resume(w.worker(), &before), 0);
    EXPECT_EQ(before, 2u);
    EXPECT_EQ(one(list, 0), 0u);
    EXPECT_EQ(ums_worker_resume(w.worker(), &before), 0);
    EXPECT_EQ(before, 1u);
    EXPECT_EQ(ums_worker_resume(w.worker(), &before), -EINVAL);
    EXPECT_FALSE(is_suspended(w.context()));
    round_robin s{list, 1};
    s.run();
    EXPECT_TRUE(ran);
    EXPECT_EQ(ums_worker_suspend(w.worker(), nullptr), -ESRCH);
    EXPECT_EQ(ums_worker_resume(w.worker(), nullptr), -ESRCH);
}

TEST_F(blocking_test, a_suspended_worker_is_not_executed_and_stays_owned) {
    completion_list list;
    test_worker w{list, [] {}};
    schedule(list, [&](ums_reason_t reason, std::uintptr_t, void*) {
        if (reason != UMS_REASON_STARTUP) return;
        const ums_context_t c = one(list);
        EXPECT_EQ(ums_worker_suspend(w.worker(), nullptr), 0);
        EXPECT_EQ(ums_worker_execute(c), -EACCES);
        EXPECT_EQ(ums_worker_resume(w.worker(), nullptr), 0);
        EXPECT_EQ(one(list, 0), 0u) << "an owned worker is not queued by a resume";
        ums_worker_execute(c);
        ADD_FAILURE();
    });
    EXPECT_EQ(one(list), w.context());
}

TEST_F(blocking_test, a_worker_that_suspends_itself_blocks_until_it_is_resumed) {
    completion_list list;
    int step = 0;
    test_worker w{list, [&] {
                      step = 1;
                      EXPECT_EQ(ums_worker_suspend(ums_worker_current(), nullptr), 0);
                      step = 2;
                  }};
    schedule(list, [&](ums_reason_t reason, std::uintptr_t payload, void*) {
        if (reason == UMS_REASON_STARTUP) ums_worker_execute(one(list));
        EXPECT_EQ(reason, UMS_REASON_BLOCKED);
        EXPECT_EQ(payload, 1u);
        if (step == 2) return;
        EXPECT_EQ(step, 1);
        EXPECT_EQ(one(list, 0), 0u);
        EXPECT_EQ(ums_worker_resume(w.worker(), nullptr), 0);
        ums_worker_execute(one(list));
        ADD_FAILURE();
    });
    EXPECT_EQ(step, 2);
    EXPECT_EQ(one(list), w.context());
}

// --- Ways to end ---

thread_local std::atomic<int>* destroyed_at = nullptr;
struct at_thread_end {
    ~at_thread_end() {
        if (destroyed_at != nullptr) destroyed_at->store(::gettid());
    }
};
thread_local at_thread_end last_words;

TEST_F(blocking_test, thread_locals_are_destroyed_on_the_workers_own_thread) {
    completion_list list;
    std::atomic<int> where = 0;
    int tid = 0;
    test_worker w{list, [&] {
                      (void)&last_words;
                      destroyed_at = &where;
                      EXPECT_NE(&last_words, nullptr);
                  }};
    tid = ums_worker_tid(w.worker());
    round_robin s{list, 1};
    s.run();
    w.join();
    EXPECT_EQ(where.load(), tid);
}

struct ends {
    int calls = 0;
    std::intptr_t code = 0;
    static void told(void* self, std::intptr_t code) {
        ++static_cast<ends*>(self)->calls;
        static_cast<ends*>(self)->code = code;
    }
    ums_worker_options_t options() {
        ums_worker_options_t o = UMS_WORKER_OPTIONS_INIT;
        o.ended = &told;
        o.ended_argument = this;
        return o;
    }
};

TEST_F(blocking_test, exit_ends_a_worker_from_any_depth_with_its_code) {
    completion_list list;
    for (const bool blocks : {false, true}) {
        ends e;
        bool came_back = false;
        test_worker w{list,
                      [&] {
                          if (blocks) ums_worker_blocking_enter();
                          ums_worker_exit(7);
                          came_back = true;
                      },
                      e.options()};
        EXPECT_EQ(ums_worker_exit_code(w.worker(), nullptr), -EBUSY);
        round_robin s{list, 1};
        s.run();
        std::intptr_t code = 0;
        EXPECT_EQ(ums_worker_exit_code(w.worker(), &code), 0);
        EXPECT_EQ(code, 7);
        EXPECT_EQ(e.calls, 1);
        EXPECT_EQ(e.code, 7);
        EXPECT_EQ(w.join(), 7);
        EXPECT_FALSE(came_back);
    }
}

TEST_F(blocking_test, pthread_exit_unwinds_and_its_result_is_the_exit_code) {
    completion_list list;
    bool unwound = false;
    test_worker w{list, [&] {
                      struct guard {
                          bool& flag;
                          ~guard() { flag = true; }
                      } g{unwound};
                      ums_worker_yield(nullptr);
                      pthread_exit(reinterpret_cast<void*>(9));
                  }};
    round_robin s{list, 1};
    s.run();
    EXPECT_EQ(w.join(), 9);
    EXPECT_TRUE(unwound);
}

TEST_F(blocking_test, a_worker_that_does_not_run_is_terminated_at_once) {
    completion_list list;
    for (int where = 0; where < 4; ++where) {
        ends e;
        ums_worker_options_t options = e.options();
        options.suspended = where == 0;
        bool ran = false, finished = false;
        test_worker w{list,
                      [&] {
                          ran = true;
                          ums_worker_yield(nullptr);
                          finished = true;
                      },
                      options};
        ums_context_t c = 0;
        if (where == 2) c = one(list);
        if (where == 3)
            schedule(list, [&](ums_reason_t reason, std::uintptr_t payload, void*) {
                if (reason == UMS_REASON_STARTUP) ums_worker_execute(one(list));
                c = payload;
            });
        EXPECT_EQ(ums_worker_terminate(w.worker(), 5), 0);
        EXPECT_EQ(w.join(), 5) << where;
        EXPECT_EQ(one(list), w.context());
        EXPECT_TRUE(is_terminated(w.context()));
        EXPECT_EQ(ran, where == 3);
        EXPECT_FALSE(finished);
        EXPECT_EQ(e.calls, 1);
        EXPECT_EQ(one(list, 0), 0u);
    }
}

TEST_F(blocking_test, a_running_worker_is_terminated_when_it_yields_or_its_call_returns) {
    completion_list list;
    for (const bool blocks : {false, true}) {
        std::binary_semaphore runs{0}, go{0};
        bool finished = false;
        test_worker w{list, [&] {
                          if (blocks) ums_worker_blocking_enter();
                          runs.release();
                          go.acquire();
                          if (blocks) ums_worker_blocking_leave();
                          ums_worker_yield(nullptr);
                          finished = true;
                      }};
        std::thread killer{[&] {
            runs.acquire();
            EXPECT_EQ(ums_worker_terminate(w.worker(), 3), 0);
            go.release();
        }};
        schedule(list, [&](ums_reason_t reason, std::uintptr_t payload, void*) {
            if (reason == UMS_REASON_STARTUP) ums_worker_execute(one(list));
            if (reason == UMS_REASON_YIELD) {
                const int failed = ums_worker_execute(payload);
                EXPECT_TRUE(failed == -ESRCH || failed == -EBUSY) << failed;
            }
        });
        killer.join();
        EXPECT_EQ(w.join(), 3);
        EXPECT_EQ(one(list), w.context());
        EXPECT_FALSE(finished);
    }
}

TEST_F(blocking_test, an_end_that_is_ordered_during_a_yield_is_not_lost) {
    const int rounds = scaled(600, 50);
    completion_list list;
    for (int round = 0; round < rounds; ++round) {
        std::atomic<bool> is_ordered = false, is_over = false;
        std::atomic<int> yields = 0;
        test_worker w{list, [] {
                          for (;;) ums_worker_yield(nullptr);
                      }};
        std::thread killer{[&] {
            while (yields < 50) std::this_thread::yield();
            for (volatile int i = 0; i < round % 97;) i = i + 1;
            is_ordered = true;
            EXPECT_EQ(ums_worker_terminate(w.worker(), 6), 0);
            is_over = true;
        }};
        int still_owned = 0;
        schedule(list, [&](ums_reason_t reason, std::uintptr_t payload, void*) {
            const ums_context_t c = reason == UMS_REASON_YIELD ? payload : one(list);
            if (is_terminated(c) && reason != UMS_REASON_YIELD) return;
            ++yields;
            if (reason == UMS_REASON_YIELD && is_ordered) {
                while (!is_over) std::this_thread::yield();
                // By now both have looked: the caller that ordered the end, and the worker that
                // came back from its yield.
                ums_context_stats_t its = UMS_CONTEXT_STATS_INIT;
                EXPECT_EQ(ums_context_get_stats(c, &its), 0);
                still_owned += its.state == UMS_WORKER_OWNED;
            }
            EXPECT_EQ(ums_worker_execute(c), -ESRCH);
            EXPECT_EQ(one(list), c);
        });
        killer.join();
        EXPECT_EQ(still_owned, 0) << "round " << round;
        EXPECT_EQ(w.join(), 6);
        EXPECT_TRUE(is_terminated(w.context()));
    }
}

TEST_F(blocking_test, a_worker_that_is_just_ending_is_no_longer_terminated_or_suspended) {
    completion_list list;
    struct {
        std::binary_semaphore is_told{0}, go{0};
        std::intptr_t code = 0;
    } end;
    ums_worker_options_t options = UMS_WORKER_OPTIONS_INIT;
    options.ended = [](void* of, std::intptr_t code) {
        auto& e = *static_cast<decltype(end)*>(of);
        e.code = code;
        e.is_told.release();
        e.go.acquire();
    };
    options.ended_argument = &end;
    test_worker w{list, [] { return 3; }, options};
    std::thread late{[&] {
        end.is_told.acquire();
        EXPECT_EQ(ums_worker_terminate(w.worker(), 5), -ESRCH);
        EXPECT_EQ(ums_worker_suspend(w.worker(), nullptr), -ESRCH);
        EXPECT_EQ(ums_worker_resume(w.worker(), nullptr), -ESRCH);
        end.go.release();
    }};
    round_robin s{list, 1};
    s.run();
    late.join();
    EXPECT_EQ(w.join(), 3);
    EXPECT_EQ(end.code, 3);
}

TEST_F(blocking_test, workers_that_end_by_themselves_are_terminated_and_suspended_meanwhile) {
    completion_list list;
    const int rounds = scaled(300, 50);
    ums_context_t context = 0;
    must(ums_context_create(&context));
    ums_worker_options_t options = UMS_WORKER_OPTIONS_INIT;
    options.list = list;
    options.context = context;
    std::atomic<ums_worker_t> current{0};
    std::atomic<bool> is_over = false;
    // The order may also come too late, when the context has its next worker.
    std::thread other{[&] {
        while (!is_over) {
            const ums_worker_t w = current;
            if (ums_worker_suspend(w, nullptr) == 0) ums_worker_resume(w, nullptr);
        }
    }};
    for (int round = 0; round < rounds; ++round) {
        ums_worker_t w = 0;
        must(ums_worker_create(
            &w, &options, [](void*) -> std::intptr_t { return 1; }, nullptr));
        current = w;
        std::thread killer{[w] {
            while (ums_worker_terminate(w, 1) == 0) {
            }
        }};
        while (!is_terminated(one(list)))
            schedule(list, [&](ums_reason_t reason, std::uintptr_t, void*) {
                if (reason != UMS_REASON_STARTUP) return;
                int failed = 0;
                while ((failed = ums_worker_execute(context)) == -EACCES) {
                }
                EXPECT_EQ(failed, -ESRCH);
            });
        killer.join();
        std::intptr_t code = 0;
        EXPECT_EQ(ums_worker_join(w, &code), 0);
        EXPECT_EQ(code, 1);
        // The worker is queued once more if it ended between being dequeued and being looked at.
        (void)one(list, 0);
    }
    is_over = true;
    other.join();
    EXPECT_EQ(ums_context_destroy(context), 0);
}

TEST_F(blocking_test, whoever_executes_a_terminated_worker_is_told_while_it_still_ends) {
    completion_list list;
    std::binary_semaphore go{0};
    ums_worker_options_t options = UMS_WORKER_OPTIONS_INIT;
    options.ended = [](void* wait, std::intptr_t) {
        static_cast<std::binary_semaphore*>(wait)->acquire();
    };
    options.ended_argument = &go;
    test_worker w{list, [] {}, options};
    const ums_context_t c = one(list);
    EXPECT_EQ(ums_worker_terminate(w.worker(), 5), 0);
    schedule(list, [&](ums_reason_t, std::uintptr_t, void*) {
        EXPECT_EQ(ums_worker_execute(c), -ESRCH);
        go.release();
    });
    EXPECT_EQ(w.join(), 5);
    EXPECT_EQ(one(list), c);
}

TEST_F(blocking_test, a_worker_that_is_terminated_while_it_joins_takes_the_handle_with_it) {
    completion_list list;
    ums_worker_options_t options = UMS_WORKER_OPTIONS_INIT;
    options.list = list;
    options.suspended = true;
    ums_worker_t joined = 0;
    must(ums_worker_create(
        &joined, &options, [](void*) -> std::intptr_t { return 4; }, nullptr));
    const ums_context_t context = ums_worker_context(joined);
    bool came_back = false;
    test_worker joins{list, [&] {
                          ums_worker_join(joined, nullptr);
                          came_back = true;
                      }};
    round_robin s{list, 2};
    schedule(list, [&](ums_reason_t reason, std::uintptr_t payload, void*) {
        if (reason == UMS_REASON_BLOCKED && s.blocked == 0) {
            EXPECT_EQ(ums_worker_terminate(joins.worker(), 5), 0);
            EXPECT_EQ(ums_worker_resume(joined, nullptr), 0);
        }
        s.decide(reason, payload);
    });
    EXPECT_EQ(joins.join(), 5);
    EXPECT_FALSE(came_back);
    EXPECT_EQ(ums_worker_exit_code(joined, nullptr), -EBADF);
    EXPECT_EQ(ums_context_destroy(context), 0);
}

TEST_F(blocking_test, pthread_exit_in_the_procedure_ends_the_schedulers_thread) {
    completion_list list;
    test_worker w{list, [] { ums_worker_yield(nullptr); }};
    pthread_t thread;
    must(pthread_create(
        &thread, nullptr,
        [](void* p) -> void* {
            auto& l = *static_cast<completion_list*>(p);
            schedule(l, [&](ums_reason_t reason, std::uintptr_t, void*) {
                if (reason == UMS_REASON_STARTUP) ums_worker_execute(one(l));
                pthread_exit(&l);
            });
            ADD_FAILURE();
            return nullptr;
        },
        &list));
    void* result = nullptr;
    pthread_join(thread, &result);
    EXPECT_EQ(result, &list);
    round_robin s{list, 1};
    s.ready.push_back(w.context());
    s.run();
}

TEST_F(blocking_test, the_procedure_can_be_left_from_its_middle) {
    completion_list list;
    int calls = 0;
    for (int i = 0; i < 3; ++i)
        schedule(list, [&](ums_reason_t, std::uintptr_t, void*) {
            ++calls;
            ums_scheduler_exit();
            ADD_FAILURE();
        });
    EXPECT_EQ(calls, 3);
    EXPECT_EQ(ums_scheduler_exit(), -EPERM);
}

}  // namespace
