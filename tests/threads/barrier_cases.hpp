// SPDX-License-Identifier: MIT

THREAD_CASE(barrier_all_meet_in_each_phase) {
    constexpr int n = 4, phases = 20;
    lib::barrier<> meet{n};
    std::atomic<int> arrived{0};
    start_and_join(n, [&](int) {
        for (int i = 1; i <= phases; ++i) {
            ++arrived;
            meet.arrive_and_wait();
            EXPECT_GE(arrived, n * i);
        }
    });
}

THREAD_CASE(barrier_completion_runs_once_a_phase) {
    std::atomic<int> completed{0};
    auto complete = [&]() noexcept { ++completed; };
    lib::barrier<decltype(complete)> meet{3, complete};
    start_and_join(3, [&](int) {
        for (int i = 1; i <= 10; ++i) {
            meet.arrive_and_wait();
            EXPECT_GE(completed, i);
        }
    });
    EXPECT_EQ(completed, 10);
}

THREAD_CASE(barrier_one_arrives_and_spins_before_it_waits) {
    lib::barrier<> meet{2};
    std::atomic<bool> other_has_arrived{false};
    lib::thread other{[&] {
        auto token = meet.arrive();
        other_has_arrived = true;
        meet.wait(std::move(token));
    }};
    spin_until(other_has_arrived);
    meet.arrive_and_wait();
    other.join();
}

THREAD_CASE(barrier_waits_for_one_that_spins) {
    lib::barrier<> meet{3};
    std::atomic<int> near{0};
    start_and_join(3, [&](int i) {
        ++near;
        if (i == 0) spin_until([&] { return near == 3; });
        meet.arrive_and_wait();
    });
}

THREAD_CASE(barrier_one_that_drops_out_is_not_waited_for) {
    lib::barrier<> meet{3};
    start_and_join(3, [&](int i) {
        if (i == 0) return meet.arrive_and_drop();
        for (int k = 0; k < 5; ++k) meet.arrive_and_wait();
    });
}

THREAD_CASE(barrier_completion_sees_what_all_wrote) {
    int parts[3]{};
    std::atomic<int> sum{0};
    auto add = [&]() noexcept { sum = parts[0] + parts[1] + parts[2]; };
    lib::barrier<decltype(add)> meet{3, add};
    start_and_join(3, [&](int i) {
        parts[i] = i + 1;
        meet.arrive_and_wait();
        EXPECT_EQ(sum, 6);
        spin_until([&] { return sum == 6; });
    });
}
