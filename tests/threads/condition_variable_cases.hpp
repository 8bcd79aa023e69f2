// SPDX-License-Identifier: MIT

template <class Condition, class Mutex>
struct condition_programs {
    static void notify_one_wakes_a_waiter() {
        Mutex m;
        Condition changed;
        bool is_set = false;
        std::atomic<bool> woke{false};
        lib::thread waits{[&] {
            std::unique_lock held{m};
            while (!is_set) changed.wait(held);
            woke = true;
        }};
        {
            const std::lock_guard guard{m};
            is_set = true;
        }
        changed.notify_one();
        spin_until(woke);
        waits.join();
    }
    static void notify_all_wakes_all() {
        Mutex m;
        Condition changed;
        bool is_set = false;
        std::atomic<int> waiting{0}, woken{0};
        auto waiters = start(4, [&](int) {
            std::unique_lock held{m};
            ++waiting;
            changed.wait(held, [&] { return is_set; });
            ++woken;
        });
        spin_until([&] { return waiting == 4; });
        {
            // By now all wait: each counted itself under the lock.
            const std::lock_guard guard{m};
            is_set = true;
        }
        changed.notify_all();
        spin_until([&] { return woken == 4; });
        join(waiters);
    }
    static void wait_for_times_out_while_another_spins() {
        Mutex m;
        Condition never;
        std::atomic<bool> timed_out{false};
        lib::thread waits{[&] {
            std::unique_lock held{m};
            EXPECT_FALSE(never.wait_for(held, 2ms, [] { return false; }));
            while (never.wait_for(held, 1ms) != std::cv_status::timeout) {
            }
            timed_out = true;
        }};
        spin_until(timed_out);
        waits.join();
    }
    static void wait_until_is_woken_before_its_time() {
        Mutex m;
        Condition changed;
        bool is_set = false;
        std::atomic<bool> waits{false}, woke{false};
        lib::thread one{[&] {
            std::unique_lock held{m};
            waits = true;
            EXPECT_TRUE(changed.wait_until(held, std::chrono::steady_clock::now() + 1h,
                                           [&] { return is_set; }));
            woke = true;
        }};
        spin_until(waits);
        {
            const std::lock_guard guard{m};
            is_set = true;
        }
        changed.notify_one();
        spin_until(woke);
        one.join();
    }
    // The notifier calls nothing but notify_one(), and so never gives up its turn.
    static void notifier_loops_until_the_waiter_has_seen_it() {
        Mutex m;
        Condition changed;
        std::atomic<bool> seen{false};
        lib::thread waits{[&] {
            std::unique_lock held{m};
            changed.wait(held);
            seen = true;
        }};
        while (!seen) changed.notify_one();
        waits.join();
    }
    static void numbers_pass_through_a_place_for_one() {
        Mutex m;
        Condition changed;
        int place = 0;
        long sum = 0;
        lib::thread consumes{[&] {
            for (int i = 1; i <= 100; ++i) {
                std::unique_lock held{m};
                changed.wait(held, [&] { return place != 0; });
                sum += place;
                place = 0;
                changed.notify_all();
            }
        }};
        for (int i = 1; i <= 100; ++i) {
            std::unique_lock held{m};
            changed.wait(held, [&] { return place == 0; });
            place = i;
            changed.notify_all();
        }
        consumes.join();
        EXPECT_EQ(sum, 5050);
    }
    static void each_wakes_the_next() {
        Mutex m;
        Condition changed;
        int turn = 0;
        start_and_join(5, [&](int i) {
            std::unique_lock held{m};
            changed.wait(held, [&] { return turn == 4 - i; });
            ++turn;
            changed.notify_all();
        });
        EXPECT_EQ(turn, 5);
    }
};

THREAD_CASE(condition_variable_notify_one_wakes_a_waiter) {
    condition_programs<lib::condition_variable, lib::mutex>::notify_one_wakes_a_waiter();
}
THREAD_CASE(condition_variable_notify_all_wakes_all) {
    condition_programs<lib::condition_variable, lib::mutex>::notify_all_wakes_all();
}
THREAD_CASE(condition_variable_wait_for_times_out_while_another_spins) {
    condition_programs<lib::condition_variable,
                       lib::mutex>::wait_for_times_out_while_another_spins();
}
THREAD_CASE(condition_variable_wait_until_is_woken_before_its_time) {
    condition_programs<lib::condition_variable, lib::mutex>::wait_until_is_woken_before_its_time();
}
THREAD_CASE(condition_variable_notifier_loops_until_the_waiter_has_seen_it) {
    condition_programs<lib::condition_variable,
                       lib::mutex>::notifier_loops_until_the_waiter_has_seen_it();
}
THREAD_CASE(condition_variable_numbers_pass_through_a_place_for_one) {
    condition_programs<lib::condition_variable, lib::mutex>::numbers_pass_through_a_place_for_one();
}
THREAD_CASE(condition_variable_each_wakes_the_next) {
    condition_programs<lib::condition_variable, lib::mutex>::each_wakes_the_next();
}
THREAD_CASE(condition_variable_is_notified_when_a_thread_has_ended) {
    lib::mutex m;
    lib::condition_variable ended;
    bool has_ended = false;
    lib::thread one{[&] {
        std::unique_lock held{m};
        has_ended = true;
        lib::notify_all_at_thread_exit(ended, std::move(held));
    }};
    {
        std::unique_lock held{m};
        ended.wait(held, [&] { return has_ended; });
    }
    one.join();
}

THREAD_CASE(condition_variable_any_notify_one_wakes_a_waiter) {
    condition_programs<lib::condition_variable_any, lib::shared_mutex>::notify_one_wakes_a_waiter();
}
THREAD_CASE(condition_variable_any_notify_all_wakes_all) {
    condition_programs<lib::condition_variable_any, lib::recursive_mutex>::notify_all_wakes_all();
}
THREAD_CASE(condition_variable_any_wait_for_times_out_while_another_spins) {
    condition_programs<lib::condition_variable_any,
                       lib::timed_mutex>::wait_for_times_out_while_another_spins();
}
THREAD_CASE(condition_variable_any_wait_until_is_woken_before_its_time) {
    condition_programs<lib::condition_variable_any,
                       lib::mutex>::wait_until_is_woken_before_its_time();
}
THREAD_CASE(condition_variable_any_notifier_loops_until_the_waiter_has_seen_it) {
    condition_programs<lib::condition_variable_any,
                       lib::mutex>::notifier_loops_until_the_waiter_has_seen_it();
}
THREAD_CASE(condition_variable_any_numbers_pass_through_a_place_for_one) {
    condition_programs<lib::condition_variable_any,
                       lib::mutex>::numbers_pass_through_a_place_for_one();
}
THREAD_CASE(condition_variable_any_of_readers_that_spin) {
    lib::shared_mutex m;
    lib::condition_variable_any changed;
    std::atomic<bool> is_set{false};
    std::atomic<int> waiting{0};
    auto readers = start(3, [&](int) {
        std::shared_lock held{m};
        ++waiting;
        changed.wait(held, [&] { return is_set.load(); });
        ++waiting;
        spin_until([&] { return waiting == 6; });
    });
    spin_until([&] { return waiting == 3; });
    {
        const std::lock_guard writes{m};
        is_set = true;
    }
    changed.notify_all();
    join(readers);
}
THREAD_CASE(condition_variable_any_is_ended_by_a_stop) {
    lib::mutex m;
    lib::condition_variable_any never;
    std::atomic<bool> waits{false};
    lib::jthread one{[&](const std::stop_token& stop) {
        std::unique_lock held{m};
        waits = true;
        EXPECT_FALSE(never.wait(held, stop, [] { return false; }));
        EXPECT_TRUE(held.owns_lock());
    }};
    spin_until(waits);
    one.request_stop();
    one.join();
}
THREAD_CASE(condition_variable_any_with_a_stop_times_out_while_another_spins) {
    lib::mutex m;
    lib::condition_variable_any never;
    std::atomic<bool> timed_out{false};
    lib::jthread one{[&](const std::stop_token& stop) {
        std::unique_lock held{m};
        EXPECT_FALSE(never.wait_for(held, stop, 2ms, [] { return false; }));
        timed_out = true;
    }};
    spin_until(timed_out);
}
