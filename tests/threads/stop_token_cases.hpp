// SPDX-License-Identifier: MIT

THREAD_CASE(stop_token_is_polled_in_a_loop) {
    std::stop_source source;
    std::atomic<bool> runs{false};
    lib::thread polls{[&, token = source.get_token()] {
        runs = true;
        while (!token.stop_requested()) {
        }
    }};
    spin_until(runs);
    source.request_stop();
    polls.join();
}

THREAD_CASE(stop_source_one_of_many_requests_wins) {
    std::stop_source source;
    std::atomic<int> won{0};
    start_and_join(4, [&](int) { won += source.request_stop(); });
    EXPECT_EQ(won, 1);
}

THREAD_CASE(stop_source_is_copied_and_dropped_by_all) {
    std::stop_source source;
    start_and_join(4, [&](int) {
        for (int i = 0; i < 500; ++i) {
            const std::stop_source copy = source;
            const std::stop_token token = copy.get_token();
            EXPECT_TRUE(token.stop_possible());
        }
    });
}

// A lock that spins guards libstdc++'s list of callbacks.
THREAD_CASE(stop_callback_is_added_and_removed_by_all) {
    std::stop_source source;
    std::atomic<int> called{0};
    start_and_join(4, [&](int) {
        for (int i = 0; i < 500; ++i)
            const std::stop_callback call{source.get_token(), [&] { ++called; }};
    });
    EXPECT_EQ(called, 0);
}

THREAD_CASE(stop_callback_is_called_once_each) {
    std::stop_source source;
    std::atomic<int> ready{0}, called{0};
    auto all = start(4, [&](int) {
        const std::stop_callback call{source.get_token(), [&] { ++called; }};
        ++ready;
        spin_until([&] { return called == 4; });
    });
    spin_until([&] { return ready == 4; });
    source.request_stop();
    join(all);
    EXPECT_EQ(called, 4);
}

THREAD_CASE(stop_callback_runs_at_once_after_the_stop) {
    std::stop_source source;
    lib::thread stops{[&] { source.request_stop(); }};
    spin_until([&] { return source.stop_requested(); });
    bool called = false;
    const std::stop_callback call{source.get_token(), [&] { called = true; }};
    EXPECT_TRUE(called);
    stops.join();
}

// std's own destructor waits for the call by a semaphore that may spin.
THREAD_CASE(stop_callback_destructor_waits_for_a_call_that_spins) {
    std::stop_source source;
    std::atomic<bool> is_called{false}, go{false}, is_destroyed{false};
    auto call =
        std::make_unique<std::stop_callback<std::function<void()>>>(source.get_token(), [&] {
            is_called = true;
            spin_until(go);
            EXPECT_FALSE(is_destroyed);
        });
    lib::thread stops{[&] { source.request_stop(); }};
    spin_until(is_called);
    lib::thread destroys{[&] {
        call.reset();
        is_destroyed = true;
    }};
    go = true;
    destroys.join();
    stops.join();
}

THREAD_CASE(stop_callback_may_destroy_itself) {
    std::stop_source source;
    std::unique_ptr<std::stop_callback<std::function<void()>>> call;
    std::atomic<bool> done{false};
    call = std::make_unique<std::stop_callback<std::function<void()>>>(source.get_token(), [&] {
        // What the callback captured ends with it.
        std::atomic<bool>& says = done;
        call.reset();
        says = true;
    });
    lib::thread stops{[&] { source.request_stop(); }};
    spin_until(done);
    stops.join();
}

THREAD_CASE(stop_token_outlives_its_source) {
    std::stop_token token;
    {
        std::stop_source source;
        token = source.get_token();
        lib::thread stops{[&] { source.request_stop(); }};
        while (!token.stop_requested()) {
        }
        stops.join();
    }
    EXPECT_TRUE(token.stop_requested());
}
