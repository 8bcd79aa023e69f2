// SPDX-License-Identifier: MIT
//
// promise, future, shared_future, packaged_task, async.

THREAD_CASE(future_wait_for_nothing_in_a_loop) {
    lib::promise<int> promise;
    auto result = promise.get_future();
    std::atomic<bool> is_polled{false};
    lib::thread sets{[&] {
        spin_until(is_polled);
        promise.set_value(5);
    }};
    while (result.wait_for(0s) != std::future_status::ready) is_polled = true;
    EXPECT_EQ(result.get(), 5);
    sets.join();
}

THREAD_CASE(future_get_waits_while_the_promiser_spins) {
    lib::promise<std::string> promise;
    auto result = promise.get_future();
    std::atomic<bool> waits{false};
    lib::thread gets{[&] {
        waits = true;
        EXPECT_EQ(result.get(), "value");
    }};
    spin_until(waits);
    promise.set_value("value");
    gets.join();
}

THREAD_CASE(future_rethrows) {
    lib::promise<int> promise;
    auto result = promise.get_future();
    lib::thread fails{
        [&] { promise.set_exception(std::make_exception_ptr(std::runtime_error{"no"})); }};
    EXPECT_THROW(result.get(), std::runtime_error);
    fails.join();
}

THREAD_CASE(future_of_a_broken_promise) {
    lib::future<int> result;
    std::atomic<bool> has_future{false};
    lib::thread breaks{[&] {
        lib::promise<int> promise;
        result = promise.get_future();
        has_future = true;
    }};
    spin_until(has_future);
    EXPECT_THROW(result.get(), std::future_error);
    breaks.join();
}

THREAD_CASE(future_of_nothing_and_of_a_reference) {
    int target = 0;
    lib::promise<void> first;
    lib::promise<int&> second;
    auto nothing = first.get_future();
    auto reference = second.get_future();
    lib::thread sets{[&] {
        second.set_value(target);
        first.set_value();
    }};
    nothing.get();
    EXPECT_EQ(&reference.get(), &target);
    sets.join();
}

THREAD_CASE(future_wait_for_times_out_while_another_spins) {
    lib::promise<int> promise;
    auto result = promise.get_future();
    std::atomic<bool> timed_out{false};
    lib::thread waits{[&] {
        EXPECT_EQ(result.wait_for(2ms), std::future_status::timeout);
        EXPECT_EQ(result.wait_until(std::chrono::steady_clock::now() + 2ms),
                  std::future_status::timeout);
        timed_out = true;
    }};
    spin_until(timed_out);
    waits.join();
}

THREAD_CASE(shared_future_wakes_many_that_spin_afterwards) {
    lib::promise<int> promise;
    const lib::shared_future<int> result = promise.get_future().share();
    spinning_barrier all{4};
    auto waiters = start(4, [&, result](int) {
        EXPECT_EQ(result.get(), 3);
        all.arrive_and_spin();
    });
    promise.set_value(3);
    join(waiters);
}

THREAD_CASE(promise_sets_its_value_when_the_thread_has_ended) {
    lib::promise<int> promise;
    auto result = promise.get_future();
    lib::thread sets{[&] { promise.set_value_at_thread_exit(6); }};
    EXPECT_EQ(result.get(), 6);
    sets.join();
}

THREAD_CASE(promise_is_kept_once) {
    lib::promise<int> promise;
    std::atomic<int> refused{0};
    start_and_join(3, [&](int i) {
        try {
            promise.set_value(i);
        } catch (const std::future_error&) {
            ++refused;
        }
    });
    EXPECT_EQ(refused, 2);
}

THREAD_CASE(packaged_task_runs_on_another_thread) {
    lib::packaged_task<int(int)> task{[](int n) { return n * 2; }};
    auto result = task.get_future();
    lib::thread runs{std::move(task), 21};
    while (result.wait_for(0s) != std::future_status::ready) {
    }
    EXPECT_EQ(result.get(), 42);
    runs.join();
}

THREAD_CASE(packaged_task_passes_its_exception_on) {
    lib::packaged_task<void()> task{[] { throw std::runtime_error{"no"}; }};
    auto result = task.get_future();
    lib::thread runs{std::move(task)};
    EXPECT_THROW(result.get(), std::runtime_error);
    runs.join();
}

THREAD_CASE(packaged_task_is_reset_and_run_again) {
    int calls = 0;
    lib::packaged_task<int()> task{[&] { return ++calls; }};
    auto first = task.get_future();
    lib::thread runs{[&] {
        task();
        task.reset();
        task();
    }};
    EXPECT_EQ(first.get(), 1);
    runs.join();
    EXPECT_EQ(task.get_future().get(), 2);
}

THREAD_CASE(async_starts_one_that_spins_for_its_caller) {
    std::atomic<bool> go{false};
    auto result = lib::async(std::launch::async, [&] {
        spin_until(go);
        return 1;
    });
    go = true;
    EXPECT_EQ(result.get(), 1);
}

THREAD_CASE(async_several_spin_for_each_other) {
    spinning_barrier all{4};
    std::vector<lib::future<int>> results;
    for (int i = 0; i < 4; ++i)
        results.push_back(lib::async(std::launch::async, [&all, i] {
            all.arrive_and_spin();
            return i;
        }));
    for (int i = 0; i < 4; ++i) EXPECT_EQ(results[static_cast<unsigned>(i)].get(), i);
}

THREAD_CASE(async_is_polled_until_it_is_ready) {
    auto result = lib::async(std::launch::async, [] { return 2; });
    while (result.wait_for(0s) != std::future_status::ready) {
    }
    EXPECT_EQ(result.get(), 2);
}

THREAD_CASE(async_deferred_runs_where_it_is_asked_for) {
    auto result = lib::async(std::launch::deferred, [] { return lib::this_thread::get_id(); });
    EXPECT_EQ(result.wait_for(0s), std::future_status::deferred);
    EXPECT_EQ(result.get(), lib::this_thread::get_id());
}

THREAD_CASE(async_destructor_of_its_future_waits) {
    std::atomic<bool> go{false}, done{false};
    lib::thread starts{[&] {
        {
            auto result = lib::async(std::launch::async, [&] {
                spin_until(go);
                done = true;
            });
        }
        EXPECT_TRUE(done);
    }};
    go = true;
    starts.join();
}

THREAD_CASE(async_passes_its_exception_on) {
    auto result = lib::async(std::launch::async, []() -> int { throw std::runtime_error{"no"}; });
    EXPECT_THROW(result.get(), std::runtime_error);
}
