// SPDX-License-Identifier: MIT

THREAD_CASE(jthread_destructor_stops_a_spin) {
    std::atomic<bool> runs{false};
    lib::jthread spins{[&](const std::stop_token& stop) {
        runs = true;
        while (!stop.stop_requested()) {
        }
    }};
    spin_until(runs);
}

THREAD_CASE(jthread_destructor_joins) {
    std::atomic<bool> done{false};
    {
        lib::jthread one{[&] { done = true; }};
    }
    EXPECT_TRUE(done);
}

THREAD_CASE(jthread_several_spin_for_their_own_tokens) {
    std::atomic<int> running{0}, stopped{0};
    {
        std::vector<lib::jthread> all;
        for (int i = 0; i < 5; ++i)
            all.emplace_back([&](const std::stop_token& stop) {
                ++running;
                while (!stop.stop_requested()) {
                }
                ++stopped;
            });
        spin_until([&] { return running == 5; });
    }
    EXPECT_EQ(stopped, 5);
}

THREAD_CASE(jthread_request_stop_is_true_once) {
    lib::jthread spins{[](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
        }
    }};
    EXPECT_TRUE(spins.request_stop());
    EXPECT_FALSE(spins.request_stop());
    spins.join();
}

THREAD_CASE(jthread_passes_arguments_after_the_token) {
    std::atomic<int> seen{0};
    lib::jthread one{[&](const std::stop_token&, int number) { seen = number; }, 9};
    spin_until([&] { return seen == 9; });
}

THREAD_CASE(jthread_passes_arguments_without_a_token) {
    std::atomic<int> seen{0};
    lib::jthread one{[&](int number) { seen = number; }, 9};
    spin_until([&] { return seen == 9; });
}

THREAD_CASE(jthread_assignment_stops_and_joins_the_old_one) {
    std::atomic<bool> runs{false}, stopped{false};
    lib::jthread one{[&](const std::stop_token& stop) {
        runs = true;
        while (!stop.stop_requested()) {
        }
        stopped = true;
    }};
    spin_until(runs);
    one = lib::jthread{[] {}};
    EXPECT_TRUE(stopped);
}

THREAD_CASE(jthread_source_stops_it_from_another) {
    lib::jthread spins{[](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
        }
    }};
    auto source = spins.get_stop_source();
    lib::thread stops{[source]() mutable { source.request_stop(); }};
    spins.join();
    stops.join();
    EXPECT_TRUE(spins.get_stop_token().stop_requested());
}

THREAD_CASE(jthread_callback_runs_where_the_stop_is_requested) {
    std::atomic<bool> ready{false}, called{false};
    lib::thread::id where;
    lib::jthread spins{[&](const std::stop_token& stop) {
        const std::stop_callback call{stop, [&] {
                                          where = lib::this_thread::get_id();
                                          called = true;
                                      }};
        ready = true;
        spin_until(called);
    }};
    spin_until(ready);
    spins.request_stop();
    EXPECT_TRUE(called);
    EXPECT_EQ(where, lib::this_thread::get_id());
}

THREAD_CASE(jthread_swaps_its_token_too) {
    lib::jthread a{[](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
        }
    }};
    lib::jthread b;
    swap(a, b);
    EXPECT_FALSE(a.joinable());
    EXPECT_TRUE(b.request_stop());
    b.join();
}

THREAD_CASE(jthread_detached_runs_on_until_it_is_stopped) {
    std::atomic<bool> done{false};
    std::stop_source source;
    {
        lib::jthread one{[&](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
            }
            done = true;
        }};
        source = one.get_stop_source();
        one.detach();
    }
    source.request_stop();
    spin_until(done);
}
