// SPDX-License-Identifier: MIT
//
// lock_guard, unique_lock, shared_lock, scoped_lock, lock(), try_lock().

THREAD_CASE(lock_guard_unlocks_when_an_exception_leaves) {
    lib::mutex m;
    try {
        const std::lock_guard guard{m};
        throw 1;
    } catch (int) {
    }
    std::atomic<bool> done{false};
    lib::thread locks{[&] {
        const std::lock_guard guard{m};
        done = true;
    }};
    spin_until(done);
    locks.join();
}

THREAD_CASE(lock_guard_adopts) {
    lib::mutex m;
    std::atomic<bool> has_tried{false};
    lib::thread tries;
    {
        m.lock();
        const std::lock_guard guard{m, std::adopt_lock};
        tries = lib::thread{[&] {
            while (!m.try_lock()) has_tried = true;
            m.unlock();
        }};
        spin_until(has_tried);
    }
    tries.join();
}

THREAD_CASE(unique_lock_tries_in_a_loop) {
    lib::mutex m;
    std::atomic<bool> has_tried{false};
    std::unique_lock held{m};
    lib::thread tries{[&] {
        for (;;) {
            const std::unique_lock mine{m, std::try_to_lock};
            if (mine) return;
            has_tried = true;
        }
    }};
    spin_until(has_tried);
    held.unlock();
    tries.join();
}

THREAD_CASE(unique_lock_deferred_is_locked_later) {
    lib::mutex m;
    std::atomic<bool> is_free{false};
    std::unique_lock held{m};
    lib::thread waits{[&] {
        std::unique_lock mine{m, std::defer_lock};
        EXPECT_FALSE(mine.owns_lock());
        spin_until(is_free);
        mine.lock();
        EXPECT_TRUE(mine.owns_lock());
        EXPECT_THROW(mine.lock(), std::system_error);
    }};
    held.unlock();
    is_free = true;
    waits.join();
}

THREAD_CASE(unique_lock_with_a_time_limit_in_a_loop) {
    lib::timed_mutex m;
    std::atomic<bool> has_tried{false};
    std::unique_lock held{m};
    lib::thread tries{[&] {
        for (;;) {
            const std::unique_lock mine{m, 1ms};
            if (mine) return;
            has_tried = true;
        }
    }};
    spin_until(has_tried);
    held.unlock();
    tries.join();
}

THREAD_CASE(unique_lock_moves_out_of_a_function) {
    lib::mutex m;
    auto locked = [&] { return std::unique_lock{m}; };
    std::atomic<bool> has_tried{false};
    std::unique_lock held = locked();
    lib::thread tries{[&] {
        while (!m.try_lock()) has_tried = true;
        m.unlock();
    }};
    spin_until(has_tried);
    std::unique_lock<lib::mutex> other;
    swap(held, other);
    EXPECT_FALSE(held.owns_lock());
    other.unlock();
    EXPECT_EQ(other.release(), &m);
    tries.join();
}

THREAD_CASE(shared_lock_is_held_by_many_that_spin) {
    lib::shared_mutex m;
    spinning_barrier all{3};
    start_and_join(3, [&](int) {
        const std::shared_lock reads{m};
        all.arrive_and_spin();
    });
}

THREAD_CASE(shared_lock_tries_in_a_loop) {
    lib::shared_mutex m;
    std::atomic<bool> has_tried{false};
    std::unique_lock writes{m};
    lib::thread reads{[&] {
        for (;;) {
            const std::shared_lock mine{m, std::try_to_lock};
            if (mine.owns_lock()) return;
            has_tried = true;
        }
    }};
    spin_until(has_tried);
    writes.unlock();
    reads.join();
}

THREAD_CASE(scoped_lock_of_two_in_both_orders) {
    lib::mutex a, b;
    int sum = 0;
    start_and_join(4, [&](int i) {
        for (int k = 0; k < 200; ++k) {
            if (i % 2 == 0) {
                const std::scoped_lock both{a, b};
                ++sum;
            } else {
                const std::scoped_lock both{b, a};
                ++sum;
            }
        }
    });
    EXPECT_EQ(sum, 800);
}

THREAD_CASE(scoped_lock_of_different_kinds) {
    lib::mutex a;
    lib::recursive_mutex b;
    lib::shared_mutex c;
    int sum = 0;
    start_and_join(3, [&](int) {
        for (int k = 0; k < 100; ++k) {
            const std::scoped_lock all{a, b, c};
            ++sum;
        }
    });
    EXPECT_EQ(sum, 300);
}

THREAD_CASE(lock_waits_for_all_while_their_holders_spin) {
    lib::mutex a, b;
    std::atomic<int> is_held{0};
    std::atomic<bool> waits{false};
    auto holders = start(2, [&](int i) {
        lib::mutex& mine = i == 0 ? a : b;
        const std::lock_guard guard{mine};
        ++is_held;
        spin_until(waits);
    });
    spin_until([&] { return is_held == 2; });
    waits = true;
    std::lock(a, b);
    a.unlock();
    b.unlock();
    join(holders);
}

THREAD_CASE(try_lock_of_two_in_a_loop) {
    lib::mutex a, b;
    std::atomic<bool> has_tried{false};
    b.lock();
    lib::thread tries{[&] {
        while (std::try_lock(a, b) != -1) has_tried = true;
        a.unlock();
        b.unlock();
    }};
    spin_until(has_tried);
    b.unlock();
    tries.join();
}
