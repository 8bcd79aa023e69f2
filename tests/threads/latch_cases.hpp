// SPDX-License-Identifier: MIT

THREAD_CASE(latch_try_wait_in_a_loop) {
    lib::latch open{1};
    std::atomic<bool> has_tried{false};
    lib::thread tries{[&] {
        while (!open.try_wait()) has_tried = true;
    }};
    spin_until(has_tried);
    open.count_down();
    tries.join();
}

THREAD_CASE(latch_wait_while_others_spin) {
    lib::latch open{3};
    std::atomic<int> go{0};
    auto all = start(3, [&](int i) {
        spin_until([&] { return go >= i; });
        ++go;
        open.count_down();
    });
    open.wait();
    join(all);
    EXPECT_EQ(go, 3);
}

THREAD_CASE(latch_arrive_and_wait_of_all) {
    lib::latch start_line{5};
    std::atomic<int> arrived{0};
    start_and_join(5, [&](int) {
        ++arrived;
        start_line.arrive_and_wait();
        EXPECT_EQ(arrived, 5);
    });
}

THREAD_CASE(latch_opens_for_many) {
    lib::latch open{1};
    std::atomic<int> passed{0};
    auto all = start(5, [&](int) {
        open.wait();
        ++passed;
    });
    open.count_down();
    spin_until([&] { return passed == 5; });
    join(all);
}

THREAD_CASE(latch_counts_down_by_several) {
    lib::latch open{6};
    lib::thread counts{[&] { open.count_down(4); }};
    open.count_down(2);
    while (!open.try_wait()) {
    }
    counts.join();
}

THREAD_CASE(latch_of_zero_is_open) {
    lib::latch open{0};
    EXPECT_TRUE(open.try_wait());
    open.wait();
}
