// SPDX-License-Identifier: MIT

THREAD_CASE(this_thread_yield_lets_one_that_spins_see_a_flag) {
    std::atomic<bool> a{false}, b{false};
    lib::thread other{[&] {
        a = true;
        spin_until(b);
    }};
    while (!a) lib::this_thread::yield();
    b = true;
    other.join();
}

THREAD_CASE(this_thread_sleeps_while_another_spins) {
    std::atomic<bool> awake{false};
    lib::thread sleeps{[&] {
        const auto start_time = std::chrono::steady_clock::now();
        lib::this_thread::sleep_for(2ms);
        EXPECT_GE(std::chrono::steady_clock::now() - start_time, 2ms);
        awake = true;
    }};
    spin_until(awake);
    sleeps.join();
}

THREAD_CASE(this_thread_sleeps_until_a_time_while_another_spins) {
    std::atomic<bool> awake{false};
    lib::thread sleeps{[&] {
        const auto until = std::chrono::system_clock::now() + 2ms;
        lib::this_thread::sleep_until(until);
        EXPECT_GE(std::chrono::system_clock::now(), until);
        awake = true;
    }};
    spin_until(awake);
    sleeps.join();
}

THREAD_CASE(this_thread_sleepers_wake_among_spinners) {
    std::atomic<int> awake{0};
    start_and_join(6, [&](int i) {
        if (i % 2 == 0) {
            lib::this_thread::sleep_for(1ms);
            ++awake;
        } else {
            spin_until([&] { return awake == 3; });
        }
    });
}

THREAD_CASE(this_thread_sleep_of_the_kernel_lets_others_spin) {
    std::atomic<bool> awake{false};
    lib::thread sleeps{[&] {
        std::this_thread::sleep_for(2ms);
        awake = true;
    }};
    spin_until(awake);
    sleeps.join();
}

THREAD_CASE(this_thread_yields_of_the_kernel_until_a_flag) {
    std::atomic<bool> done{false};
    lib::thread sets{[&] { done = true; }};
    while (!done) std::this_thread::yield();
    sets.join();
}

THREAD_CASE(this_thread_id_stays_the_same_across_spins_and_yields) {
    spinning_barrier all{3};
    start_and_join(3, [&](int) {
        const auto mine = lib::this_thread::get_id();
        all.arrive_and_spin();
        EXPECT_EQ(lib::this_thread::get_id(), mine);
        lib::this_thread::yield();
        EXPECT_EQ(lib::this_thread::get_id(), mine);
    });
}
