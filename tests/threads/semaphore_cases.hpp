// SPDX-License-Identifier: MIT

THREAD_CASE(semaphore_try_acquire_in_a_loop) {
    lib::counting_semaphore<> permits{0};
    std::atomic<bool> has_tried{false};
    lib::thread takes{[&] {
        while (!permits.try_acquire()) has_tried = true;
    }};
    spin_until(has_tried);
    permits.release();
    takes.join();
}

THREAD_CASE(semaphore_acquire_while_another_spins) {
    lib::counting_semaphore<> permits{0};
    std::atomic<bool> waits{false}, got{false};
    lib::thread takes{[&] {
        waits = true;
        permits.acquire();
        got = true;
    }};
    spin_until(waits);
    permits.release();
    spin_until(got);
    takes.join();
}

THREAD_CASE(semaphore_release_of_several_lets_as_many_go) {
    lib::counting_semaphore<> permits{0};
    std::atomic<int> got{0};
    auto all = start(4, [&](int) {
        permits.acquire();
        ++got;
        spin_until([&] { return got == 4; });
    });
    permits.release(3);
    spin_until([&] { return got == 3; });
    permits.release();
    join(all);
}

THREAD_CASE(semaphore_at_most_two_are_inside) {
    lib::counting_semaphore<2> permits{2};
    std::atomic<int> inside{0};
    start_and_join(5, [&](int) {
        for (int i = 0; i < 50; ++i) {
            permits.acquire();
            EXPECT_LE(++inside, 2);
            --inside;
            permits.release();
        }
    });
}

THREAD_CASE(semaphore_two_inside_spin_for_each_other) {
    lib::counting_semaphore<2> permits{2};
    spinning_barrier both{2};
    start_and_join(2, [&](int) {
        permits.acquire();
        both.arrive_and_spin();
        permits.release();
    });
}

THREAD_CASE(semaphore_try_acquire_for_gives_up_while_another_spins) {
    lib::counting_semaphore<> permits{0};
    std::atomic<bool> gave_up{false};
    lib::thread tries{[&] {
        EXPECT_FALSE(permits.try_acquire_for(2ms));
        EXPECT_FALSE(permits.try_acquire_until(std::chrono::steady_clock::now() + 2ms));
        gave_up = true;
    }};
    spin_until(gave_up);
    tries.join();
}

THREAD_CASE(semaphore_try_acquire_for_long_gets_it) {
    lib::counting_semaphore<> permits{0};
    std::atomic<bool> waits{false};
    lib::thread takes{[&] {
        waits = true;
        EXPECT_TRUE(permits.try_acquire_for(1h));
    }};
    spin_until(waits);
    permits.release();
    takes.join();
}

THREAD_CASE(binary_semaphore_passes_a_turn_to_and_fro) {
    lib::binary_semaphore ping{0}, pong{0};
    lib::thread answers{[&] {
        for (int i = 0; i < 100; ++i) {
            ping.acquire();
            pong.release();
        }
    }};
    for (int i = 0; i < 100; ++i) {
        ping.release();
        pong.acquire();
    }
    answers.join();
}

THREAD_CASE(binary_semaphore_passes_a_turn_by_loops_of_try_acquire) {
    lib::binary_semaphore ping{0}, pong{0};
    lib::thread answers{[&] {
        for (int i = 0; i < 5; ++i) {
            while (!ping.try_acquire()) {
            }
            pong.release();
        }
    }};
    for (int i = 0; i < 5; ++i) {
        ping.release();
        while (!pong.try_acquire()) {
        }
    }
    answers.join();
}
