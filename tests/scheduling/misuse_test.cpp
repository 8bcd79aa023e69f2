// SPDX-License-Identifier: MIT
// variants: monitor clang
//
// Completion lists, information and events; and every wrong use gets the error that is documented.

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <memory>
#include <poll.h>
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
#include "ums/run.hpp"

namespace {

class misuse_test : public conserving_test {};

// Numbers that name nothing.
std::vector<std::uint64_t> garbage(std::uint64_t gone) {
    return {0,
            1,
            0x1234,
            ~std::uint64_t{0},
            gone,
            gone + 1,
            gone ^ (std::uint64_t{1} << 40),
            reinterpret_cast<std::uintptr_t>(&gone)};
}

intptr_t no_work(void*) { return 0; }

ums_worker_options_t options_for(ums_completion_list_t list, ums_context_t context = 0) {
    ums_worker_options_t o = UMS_WORKER_OPTIONS_INIT;
    o.list = list;
    o.context = context;
    return o;
}

TEST_F(misuse_test, unknown_handles_are_refused_by_every_function) {
    ums_context_t context = 0;
    ASSERT_EQ(ums_context_create(&context), 0);
    ASSERT_EQ(ums_context_destroy(context), 0);
    ums_completion_list_t list = 0;
    ASSERT_EQ(ums_completion_list_create(&list), 0);
    ASSERT_EQ(ums_completion_list_destroy(list), 0);
    completion_list live;
    for (const std::uint64_t seed : {context, list}) {
        for (const std::uint64_t h : garbage(seed)) {
            if (h == live) continue;
            ums_context_t c = 0;
            int fd = -1;
            char byte = 0;
            ums_context_stats_t stats = UMS_CONTEXT_STATS_INIT;
            EXPECT_EQ(ums_completion_list_destroy(h), -EBADF);
            EXPECT_EQ(ums_completion_list_dequeue(h, 0, &c), -EBADF);
            EXPECT_EQ(ums_completion_list_dequeue(h, UMS_NEVER, &c), -EBADF);
            EXPECT_EQ(ums_completion_list_set_notify(
                          h, [](void*) {}, nullptr),
                      -EBADF);
            EXPECT_EQ(ums_completion_list_event(h, &fd), -EBADF);
            EXPECT_EQ(ums_context_next(h), 0u);
            EXPECT_EQ(ums_context_destroy(h), -EBADF);
            EXPECT_EQ(ums_context_query(h, UMS_INFORMATION_SUSPENDED, &byte, 1, nullptr), -EBADF);
            EXPECT_EQ(ums_context_set(h, UMS_INFORMATION_USER_CONTEXT, &c, sizeof c), -EBADF);
            EXPECT_EQ(ums_context_get_stats(h, &stats), -EBADF);
            EXPECT_EQ(ums_worker_join(h, nullptr), -EBADF);
            EXPECT_EQ(ums_worker_detach(h), -EBADF);
            EXPECT_EQ(ums_worker_exit_code(h, nullptr), -EBADF);
            EXPECT_EQ(ums_worker_context(h), 0u);
            EXPECT_EQ(ums_worker_tid(h), 0);
            EXPECT_EQ(ums_worker_suspend(h, nullptr), -EBADF);
            EXPECT_EQ(ums_worker_resume(h, nullptr), -EBADF);
            EXPECT_EQ(ums_worker_terminate(h, 0), -EBADF);
            EXPECT_EQ(ums_worker_execute(h), -EPERM) << "by no scheduler";
            ums_worker_t made = 0;
            const ums_worker_options_t with_list = options_for(h);
            EXPECT_EQ(ums_worker_create(&made, &with_list, &no_work, nullptr),
                      h == 0 ? -EINVAL : -EBADF);
            if (h != 0) {
                const ums_worker_options_t with_context = options_for(live, h);
                EXPECT_EQ(ums_worker_create(&made, &with_context, &no_work, nullptr), -EBADF);
            }
            ums_scheduler_options_t enter = UMS_SCHEDULER_OPTIONS_INIT;
            enter.list = h;
            enter.procedure = [](ums_reason_t, std::uintptr_t, void*) { ADD_FAILURE(); };
            EXPECT_EQ(ums_scheduler_enter(&enter), -EBADF);
            schedule(live, [h](ums_reason_t, std::uintptr_t, void*) {
                EXPECT_EQ(ums_worker_execute(h), -EBADF);
            });
        }
    }
}

TEST_F(misuse_test, calls_of_a_worker_by_others_are_refused_or_do_nothing) {
    EXPECT_EQ(ums_worker_yield(nullptr), -EPERM);
    EXPECT_EQ(ums_worker_exit(1), -EPERM);
    EXPECT_EQ(ums_scheduler_exit(), -EPERM);
    ums_worker_blocking_enter();
    ums_worker_blocking_leave();
    ums_critical_enter();
    ums_critical_leave();
    completion_list list;
    schedule(list, [](ums_reason_t, std::uintptr_t, void*) {
        EXPECT_EQ(ums_worker_yield(nullptr), -EPERM);
        EXPECT_EQ(ums_worker_exit(1), -EPERM);
        ums_worker_blocking_enter();
        ums_worker_blocking_leave();
        ums_critical_enter();
        ums_critical_leave();
    });
}

TEST_F(misuse_test, entering_wrongly_is_refused) {
    completion_list list;
    EXPECT_EQ(ums_scheduler_enter(nullptr), -EINVAL);
    ums_scheduler_options_t o = UMS_SCHEDULER_OPTIONS_INIT;
    o.list = list;
    EXPECT_EQ(ums_scheduler_enter(&o), -EINVAL) << "no procedure";
    o.procedure = [](ums_reason_t, std::uintptr_t, void*) {};
    o.size = 7;
    EXPECT_EQ(ums_scheduler_enter(&o), -EINVAL);
    o.size = sizeof o;
    static ums_scheduler_options_t again;
    again = o;
    test_worker w{list, [] { EXPECT_EQ(ums_scheduler_enter(&again), -EPERM); }};
    round_robin s{list, 1};
    schedule(list, [&](ums_reason_t reason, std::uintptr_t payload, void*) {
        EXPECT_EQ(ums_scheduler_enter(&again), -EPERM);
        s.decide(reason, payload);
    });
    ums::run([&] { EXPECT_EQ(ums_scheduler_enter(&o), -EPERM) << "on a fiber"; });
}

TEST_F(misuse_test, a_worker_that_is_not_owned_is_not_executed) {
    completion_list list, other;
    std::binary_semaphore runs{0}, go{0};
    test_worker w{list, [&] {
                      runs.release();
                      go.acquire();
                  }};
    ums_context_t unused = 0, own = 0;
    ASSERT_EQ(ums_context_create(&unused), 0);
    std::thread elsewhere{[&] {
        schedule(other, [&](ums_reason_t, std::uintptr_t, void*) {
            own = ums_context_current();
            EXPECT_EQ(ums_worker_execute(own), -ESRCH) << "a scheduler's own context";
            EXPECT_EQ(ums_worker_execute(unused), -ESRCH) << "never had a worker";
            runs.acquire();
            EXPECT_EQ(ums_worker_execute(w.context()), -EBUSY) << "runs";
            go.release();
        });
    }};
    schedule(list, [&](ums_reason_t reason, std::uintptr_t, void*) {
        ums_context_t c = 0;
        if (reason == UMS_REASON_STARTUP) {
            // It is on the list, or not yet there: no scheduler holds it.
            EXPECT_EQ(ums_worker_execute(w.context()), -EBUSY);
            EXPECT_EQ(ums_completion_list_dequeue(list, UMS_NEVER, &c), 0);
            ums_worker_execute(c);
            ADD_FAILURE();
        }
        EXPECT_EQ(ums_completion_list_dequeue(list, UMS_NEVER, &c), 0);
        EXPECT_EQ(ums_worker_execute(c), -ESRCH) << "ended";
    });
    elsewhere.join();
    EXPECT_EQ(ums_context_destroy(unused), 0);
    EXPECT_EQ(ums_context_destroy(own), -EBADF);
}

TEST_F(misuse_test, a_worker_is_not_made_of_wrong_options) {
    completion_list list;
    ums_worker_t made = 0;
    ums_worker_options_t o = options_for(list);
    EXPECT_EQ(ums_worker_create(&made, nullptr, &no_work, nullptr), -EINVAL);
    EXPECT_EQ(ums_worker_create(&made, &o, nullptr, nullptr), -EINVAL);
    o.size = 3;
    EXPECT_EQ(ums_worker_create(&made, &o, &no_work, nullptr), -EINVAL);
    o = options_for(list);
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{32767}, (std::size_t{1} << 30) + 1}) {
        o.stack_bytes = bytes;
        EXPECT_EQ(ums_worker_create(&made, &o, &no_work, nullptr), -EINVAL);
    }
    struct {
        ums_worker_options_t options;
        char later[8];
    } newer = {options_for(list), {0, 0, 1}};
    newer.options.size = sizeof newer;
    EXPECT_EQ(ums_worker_create(&made, &newer.options, &no_work, nullptr), -E2BIG);
}

TEST_F(misuse_test, one_context_is_not_for_two_live_workers) {
    completion_list list;
    ums_context_t context = 0;
    ASSERT_EQ(ums_context_create(&context), 0);
    const ums_worker_options_t o = options_for(list, context);
    ums_worker_t first = 0, second = 0;
    ASSERT_EQ(ums_worker_create(&first, &o, &no_work, nullptr), 0);
    EXPECT_EQ(ums_worker_create(&second, &o, &no_work, nullptr), -EBUSY);
    EXPECT_EQ(ums_context_destroy(context), -EBUSY) << "live";
    EXPECT_EQ(ums_completion_list_destroy(list), -EBUSY) << "in use";
    round_robin{list, 1}.run();
    EXPECT_EQ(ums_worker_join(first, nullptr), 0);
    EXPECT_EQ(ums_worker_join(first, nullptr), -EBADF);
    ASSERT_EQ(ums_worker_create(&second, &o, &no_work, nullptr), 0) << "the first has ended";
    round_robin{list, 1}.run();
    EXPECT_EQ(ums_worker_join(second, nullptr), 0);
    EXPECT_EQ(ums_context_destroy(context), 0);
    EXPECT_EQ(ums_context_destroy(context), -EBADF);
}

// Makes and destroys contexts all the time; the number of the current one can be asked for.
class short_lived_contexts {
public:
    // Calls look(context) before each is destroyed.
    template <class Look>
    explicit short_lived_contexts(Look look)
        : thread_{[this, look] {
              while (!ends_) make_one(look);
          }} {}
    ~short_lived_contexts() {
        ends_ = true;
        thread_.join();
    }
    [[nodiscard]] ums_context_t one() const {
        while (shown_ == 0) std::this_thread::yield();
        return shown_;
    }

private:
    template <class Look>
    void make_one(Look look) {
        ums_context_t c = 0;
        ASSERT_EQ(ums_context_create(&c), 0);
        shown_ = c;
        look(c);
        int error = 0;
        while ((error = ums_context_destroy(c)) == -EBUSY) std::this_thread::yield();
        ASSERT_EQ(error, 0);
    }

    std::atomic<ums_context_t> shown_ = 0;
    std::atomic<bool> ends_ = false;
    std::thread thread_;
};

TEST_F(misuse_test, a_worker_gets_the_context_that_was_asked_for_or_none) {
    completion_list list;
    const short_lived_contexts contexts{[](ums_context_t) {}};
    int made = 0, refused = 0;
    for (int i = 0; i < scaled(100'000, 2000) || made == 0; ++i) {
        auto o = options_for(list, contexts.one());
        o.suspended = true;
        o.stack_bytes = 32768;
        ums_worker_t w = 0;
        const int error = ums_worker_create(&w, &o, &no_work, nullptr);
        if (error != 0) {
            ASSERT_TRUE(error == -EBADF || error == -EBUSY) << error;
            ++refused;
            continue;
        }
        ++made;
        EXPECT_EQ(ums_worker_context(w), o.context);
        ASSERT_EQ(ums_worker_terminate(w, 0), 0);
        ASSERT_EQ(ums_worker_join(w, nullptr), 0);
        ums_context_t first = 0;
        ASSERT_EQ(ums_completion_list_dequeue(list, 0, &first), 0);
    }
    EXPECT_GT(refused, 0);
}

TEST_F(misuse_test, user_data_goes_to_the_context_it_was_meant_for_or_to_none) {
    std::atomic<int> looks = 0;
    const auto data_of = [](ums_context_t c) { return reinterpret_cast<void*>(c); };
    const short_lived_contexts contexts{[&](ums_context_t c) {
        void* seen = nullptr;
        ASSERT_EQ(ums_context_query(c, UMS_INFORMATION_USER_CONTEXT, &seen, sizeof seen, nullptr),
                  0);
        ASSERT_TRUE(seen == nullptr || seen == data_of(c));
        ++looks;
    }};
    while (looks < scaled(1'000'000, 2000)) {
        const ums_context_t c = contexts.one();
        void* data = data_of(c);
        const int error = ums_context_set(c, UMS_INFORMATION_USER_CONTEXT, &data, sizeof data);
        ASSERT_TRUE(error == 0 || error == -EBADF) << error;
        const int read =
            ums_context_query(c, UMS_INFORMATION_USER_CONTEXT, &data, sizeof data, nullptr);
        ASSERT_TRUE(read == -EBADF || data == nullptr || data == data_of(c));
    }
}

TEST_F(misuse_test, an_ended_context_is_destroyed_once_it_is_off_its_list) {
    completion_list list;
    const ums_worker_options_t o = options_for(list);
    ums_worker_t w = 0;
    ASSERT_EQ(ums_worker_create(&w, &o, &no_work, nullptr), 0);
    const ums_context_t c = ums_worker_context(w);
    schedule(list, [&](ums_reason_t reason, std::uintptr_t, void*) {
        ums_context_t next = 0;
        if (reason != UMS_REASON_STARTUP) return;
        EXPECT_EQ(ums_completion_list_dequeue(list, UMS_NEVER, &next), 0);
        ums_worker_execute(next);
    });
    EXPECT_EQ(ums_worker_join(w, nullptr), 0);
    EXPECT_EQ(ums_context_destroy(c), -EBUSY);
    EXPECT_EQ(ums_completion_list_destroy(list), -EBUSY) << "not empty";
    ums_context_t ended = 0;
    EXPECT_EQ(ums_completion_list_dequeue(list, 0, &ended), 0);
    EXPECT_EQ(ended, c);
    EXPECT_EQ(ums_context_destroy(c), 0);
}

TEST_F(misuse_test, a_worker_does_not_join_itself_and_is_joined_once) {
    completion_list list;
    int failed = 0;
    test_worker w{list, [&] { failed = ums_worker_join(ums_worker_current(), nullptr); }};
    round_robin{list, 1}.run();
    EXPECT_EQ(failed, -EDEADLK);
}

TEST_F(misuse_test, a_worker_joins_another_and_its_scheduler_goes_on) {
    completion_list list;
    test_worker a{list, [] {
                      ums_worker_yield(nullptr);
                      return 3;
                  }};
    std::intptr_t code = 0;
    const ums_worker_options_t o = options_for(list);
    ums_worker_t other = 0;
    ASSERT_EQ(ums_worker_create(
                  &other, &o,
                  [](void*) -> intptr_t {
                      ums_worker_yield(nullptr);
                      return 8;
                  },
                  nullptr),
              0);
    const ums_context_t c = ums_worker_context(other);
    test_worker b{list, [&] { EXPECT_EQ(ums_worker_join(other, &code), 0); }};
    round_robin{list, 3}.run();
    EXPECT_EQ(code, 8);
    EXPECT_EQ(ums_context_destroy(c), 0);
}

TEST_F(misuse_test, a_detached_worker_ends_alone) {
    completion_list list;
    const ums_worker_options_t o = options_for(list);
    ums_worker_t w = 0;
    ASSERT_EQ(ums_worker_create(&w, &o, &no_work, nullptr), 0);
    const ums_context_t c = ums_worker_context(w);
    const int tid = ums_worker_tid(w);
    EXPECT_EQ(ums_worker_detach(w), 0);
    EXPECT_EQ(ums_worker_detach(w), -EBADF);
    EXPECT_EQ(ums_worker_join(w, nullptr), -EBADF);
    round_robin{list, 1}.run();
    EXPECT_EQ(ums_context_destroy(c), 0);
    while (::tgkill(::getpid(), tid, 0) == 0) std::this_thread::yield();  // The thread ends alone.
}

TEST_F(misuse_test, information_of_the_wrong_kind_or_size_is_refused) {
    ums_context_t c = 0;
    ASSERT_EQ(ums_context_create(&c), 0);
    char buffer[16];
    std::size_t length = 0;
    const std::vector<int> wrong{UMS_INFORMATION_INVALID,        UMS_INFORMATION_PRIORITY,
                                 UMS_INFORMATION_AFFINITY,       UMS_INFORMATION_TEB,
                                 UMS_INFORMATION_TERMINATED + 1, -1};
    for (const int what : wrong) {
        EXPECT_EQ(ums_context_query(c, what, buffer, 8, nullptr), -EINVAL);
        EXPECT_EQ(ums_context_set(c, what, buffer, 8), -EINVAL);
    }
    EXPECT_EQ(ums_context_query(c, UMS_INFORMATION_USER_CONTEXT, buffer, 4, &length), -EMSGSIZE);
    EXPECT_EQ(length, sizeof(void*));
    EXPECT_EQ(ums_context_query(c, UMS_INFORMATION_USER_CONTEXT, nullptr, 8, nullptr), -EFAULT);
    EXPECT_EQ(ums_context_query(c, UMS_INFORMATION_SUSPENDED, buffer, 4, &length), -EMSGSIZE);
    EXPECT_EQ(length, 1u);
    EXPECT_EQ(ums_context_set(c, UMS_INFORMATION_USER_CONTEXT, buffer, 4), -EMSGSIZE);
    EXPECT_EQ(ums_context_set(c, UMS_INFORMATION_USER_CONTEXT, nullptr, 8), -EFAULT);
    EXPECT_EQ(ums_context_set(c, UMS_INFORMATION_SUSPENDED, buffer, 1), -EINVAL);
    EXPECT_EQ(ums_context_set(c, UMS_INFORMATION_TERMINATED, buffer, 1), -EINVAL);
    void* data = &c;
    EXPECT_EQ(ums_context_query(c, UMS_INFORMATION_USER_CONTEXT, &data, sizeof data, nullptr), 0);
    EXPECT_EQ(data, nullptr);
    data = &c;
    EXPECT_EQ(ums_context_set(c, UMS_INFORMATION_USER_CONTEXT, &data, sizeof data), 0);
    data = nullptr;
    EXPECT_EQ(ums_context_query(c, UMS_INFORMATION_USER_CONTEXT, &data, sizeof data, &length), 0);
    EXPECT_EQ(data, &c);
    EXPECT_FALSE(is_terminated(c));
    EXPECT_FALSE(is_suspended(c));
    ums_context_stats_t stats = {};
    EXPECT_EQ(ums_context_get_stats(c, &stats), -EINVAL);
    ums_scheduling_stats_t totals = {};
    EXPECT_EQ(ums_scheduling_get_stats(&totals), -EINVAL);
    EXPECT_EQ(ums_context_destroy(c), 0);
}

// --- Completion lists ---

TEST_F(misuse_test, dequeue_tries_waits_for_a_time_or_for_ever) {
    completion_list list;
    ums_context_t c = 1;
    EXPECT_EQ(ums_completion_list_dequeue(list, 0, &c), 0);
    EXPECT_EQ(c, 0u);
    const auto before = std::chrono::steady_clock::now();
    c = 1;
    EXPECT_EQ(ums_completion_list_dequeue(list, ums_deadline_after(50'000'000), &c), -ETIMEDOUT);
    EXPECT_EQ(c, 0u);
    EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds{50});
    test_worker w{list, [] {}};
    EXPECT_EQ(ums_completion_list_dequeue(list, UMS_NEVER, &c), 0);
    EXPECT_EQ(c, w.context());
    round_robin s{list, 1};
    s.ready.push_back(c);
    s.run();
}

TEST_F(misuse_test, of_two_consumers_that_wait_each_worker_goes_to_one) {
    completion_list list;
    constexpr int n = 200;
    std::atomic<int> got = 0;
    std::vector<ums_context_t> found[2];
    std::thread consumers[2];
    for (int i = 0; i < 2; ++i)
        consumers[i] = std::thread{[&, i] {
            while (got.load() < n) {
                ums_context_t c = 0;
                const int failed =
                    ums_completion_list_dequeue(list, ums_deadline_after(20'000'000), &c);
                EXPECT_TRUE(failed == 0 || failed == -ETIMEDOUT);
                for (; c != 0; c = ums_context_next(c)) {
                    found[i].push_back(c);
                    ++got;
                }
            }
        }};
    std::vector<std::unique_ptr<test_worker>> workers;
    for (int i = 0; i < n; ++i) workers.push_back(std::make_unique<test_worker>(list, [] {}));
    for (std::thread& c : consumers) c.join();
    EXPECT_EQ(got.load(), n);
    round_robin s{list, n};
    for (const auto& batch : found) s.ready.insert(s.ready.end(), batch.begin(), batch.end());
    s.run();
}

TEST_F(misuse_test, the_event_is_readable_once_the_list_is_not_empty) {
    int fd = -1, second = -1;
    {
        completion_list list;
        ASSERT_EQ(ums_completion_list_event(list, &fd), 0);
        ASSERT_EQ(ums_completion_list_event(list, &second), 0);
        EXPECT_NE(fd, second);
        EXPECT_EQ(::fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        pollfd p{fd, POLLIN, 0};
        EXPECT_EQ(::poll(&p, 1, 0), 0);
        test_worker w{list, [] {}};
        EXPECT_EQ(::poll(&p, 1, -1), 1);
        std::uint64_t count = 0;
        EXPECT_EQ(::read(second, &count, sizeof count), 8);
        EXPECT_EQ(::read(fd, &count, sizeof count), -1);
        EXPECT_EQ(errno, EAGAIN);
        round_robin s{list, 1};
        s.run();
        EXPECT_EQ(::poll(&p, 1, -1), 1) << "its end was a change, too";
        ::close(second);
        second = -1;
        ASSERT_EQ(ums_completion_list_event(list, &second), 0);
    }
    ::close(second);  // It is closed after the list.
    ::close(fd);
}

TEST_F(misuse_test, notify_is_called_when_the_list_becomes_not_empty) {
    completion_list list;
    static std::counting_semaphore<> calls{0};
    const auto count = [](void* p) { static_cast<std::counting_semaphore<>*>(p)->release(); };
    ASSERT_EQ(ums_completion_list_set_notify(list, count, &calls), 0);
    EXPECT_EQ(ums_completion_list_set_notify(list, count, &calls), -EBUSY);
    EXPECT_FALSE(calls.try_acquire());
    test_worker w{list, [] {
                      ums_worker_blocking_enter();
                      ums_worker_blocking_leave();
                  }};
    calls.acquire();
    ASSERT_EQ(ums_completion_list_set_notify(list, nullptr, nullptr), 0);
    ASSERT_EQ(ums_completion_list_set_notify(list, count, &calls), 0);
    EXPECT_TRUE(calls.try_acquire()) << "it was not empty";
    round_robin s{list, 1};
    s.run();
    EXPECT_EQ(s.blocked, 2);
    calls.acquire();
    calls.acquire();
    EXPECT_FALSE(calls.try_acquire());
}

TEST_F(misuse_test, the_mode_is_said_with_its_reason) {
    EXPECT_STREQ(ums_scheduling_mode(), "fsgsbase: in user mode, by WRFSBASE");
}

TEST_F(misuse_test, the_detector_is_said_with_its_reason) {
    const std::string said = ums_scheduling_detector();
    const char* asked = std::getenv("UMS_BLOCK");
    const std::string wanted = asked != nullptr ? asked : "";
    if (wanted == "off")
        EXPECT_EQ(said, "off: asked for");
    else
        EXPECT_EQ(said, wanted.empty() ? "monitor: the best there is" : "monitor: asked for");
}

}  // namespace
