// SPDX-License-Identifier: MIT

THREAD_CASE(once_one_of_many_calls) {
    lib::once_flag flag;
    std::atomic<int> calls{0};
    start_and_join(5, [&](int) {
        lib::call_once(flag, [&] { ++calls; });
        EXPECT_EQ(calls, 1);
    });
}

THREAD_CASE(once_the_others_wait_while_the_call_spins) {
    lib::once_flag flag;
    std::atomic<int> arrived{0};
    std::atomic<bool> done{false};
    start_and_join(4, [&](int) {
        ++arrived;
        lib::call_once(flag, [&] {
            spin_until([&] { return arrived == 4; });
            done = true;
        });
        EXPECT_TRUE(done);
    });
}

THREAD_CASE(once_another_tries_after_an_exception) {
    lib::once_flag flag;
    std::atomic<int> attempts{0}, caught{0}, done{0};
    start_and_join(4, [&](int) {
        try {
            lib::call_once(flag, [&] {
                if (++attempts < 3) throw std::runtime_error{"again"};
                ++done;
            });
        } catch (const std::runtime_error&) {
            ++caught;
        }
    });
    EXPECT_EQ(attempts, 3);
    EXPECT_EQ(caught, 2);
    EXPECT_EQ(done, 1);
}

THREAD_CASE(once_flags_do_not_wait_for_each_other) {
    lib::once_flag a, b;
    std::atomic<bool> in_a{false}, b_done{false};
    lib::thread first{[&] {
        lib::call_once(a, [&] {
            in_a = true;
            spin_until(b_done);
        });
    }};
    spin_until(in_a);
    lib::call_once(b, [&] { b_done = true; });
    first.join();
}

THREAD_CASE(once_passes_its_arguments) {
    lib::once_flag flag;
    std::atomic<int> seen{0};
    lib::thread calls{[&] {
        lib::call_once(
            flag, [&](const std::unique_ptr<int>& p, int n) { seen = *p + n; },
            std::make_unique<int>(4), 5);
    }};
    spin_until([&] { return seen == 9; });
    calls.join();
}
