// SPDX-License-Identifier: MIT

THREAD_CASE(thread_spins_for_a_flag_that_a_new_one_sets) {
    std::atomic<bool> done{false};
    lib::thread sets{[&] { done = true; }};
    spin_until(done);
    sets.join();
}

THREAD_CASE(thread_new_one_spins_for_a_flag_of_its_creator) {
    std::atomic<bool> runs{false}, go{false};
    lib::thread spins{[&] {
        runs = true;
        spin_until(go);
    }};
    spin_until(runs);
    go = true;
    spins.join();
}

THREAD_CASE(thread_join_lets_two_that_spin_for_each_other_end) {
    std::atomic<bool> a{false}, b{false};
    lib::thread first{[&] {
        a = true;
        spin_until(b);
    }};
    lib::thread second{[&] {
        b = true;
        spin_until(a);
    }};
    first.join();
    second.join();
}

THREAD_CASE(thread_spins_for_a_detached_one) {
    std::atomic<bool> go{false}, done{false};
    lib::thread{[&] {
        spin_until(go);
        done = true;
    }}.detach();
    go = true;
    spin_until(done);
}

THREAD_CASE(thread_two_pass_a_turn_to_and_fro) {
    std::atomic<int> turn{0};
    lib::thread other{[&] {
        for (int i = 1; i < 10; i += 2) {
            spin_until([&] { return turn == i; });
            ++turn;
        }
    }};
    for (int i = 0; i < 10; i += 2) {
        spin_until([&] { return turn == i; });
        ++turn;
    }
    other.join();
    EXPECT_EQ(turn, 10);
}

THREAD_CASE(thread_eight_spin_until_all_have_started) {
    spinning_barrier all{8};
    start_and_join(8, [&](int) { all.arrive_and_spin(); });
}

THREAD_CASE(thread_each_spins_for_the_one_started_after_it) {
    std::atomic<int> turn{5};
    start_and_join(6, [&](int i) {
        spin_until([&] { return turn == i; });
        --turn;
    });
    EXPECT_EQ(turn, -1);
}

THREAD_CASE(thread_some_spin_while_others_compute) {
    std::atomic<int> finished{0};
    start_and_join(6, [&](int i) {
        [[maybe_unused]] volatile double sink = 1;
        if (i % 2 == 0)
            for (int k = 0; k < 1'000'000; ++k) sink = 1.0 + k;
        ++finished;
        spin_until([&] { return finished == 6; });
    });
}

THREAD_CASE(thread_one_spins_while_its_creator_joins_another) {
    std::atomic<bool> over{false};
    lib::thread spins{[&] { spin_until(over); }};
    lib::thread short_one{[] {}};
    short_one.join();
    over = true;
    spins.join();
}

THREAD_CASE(thread_each_starts_the_next_and_spins_for_it) {
    struct chain {
        static void run(int depth) {
            if (depth == 0) return;
            std::atomic<bool> done{false};
            lib::thread next{[&] {
                run(depth - 1);
                done = true;
            }};
            spin_until(done);
            next.join();
        }
    };
    chain::run(5);
}

THREAD_CASE(thread_ids_differ_while_all_spin) {
    std::atomic<int> written{0};
    lib::thread::id ids[4];
    start_and_join(4, [&](int i) {
        ids[i] = lib::this_thread::get_id();
        ++written;
        spin_until([&] { return written == 4; });
        for (int k = 0; k < 4; ++k) EXPECT_EQ(ids[i] == ids[k], i == k);
    });
}

THREAD_CASE(thread_id_is_that_of_its_object) {
    std::atomic<bool> known{false};
    lib::thread::id outside;
    lib::thread one{[&] {
        spin_until(known);
        EXPECT_EQ(lib::this_thread::get_id(), outside);
    }};
    outside = one.get_id();
    known = true;
    one.join();
    EXPECT_EQ(one.get_id(), lib::thread::id{});
}

THREAD_CASE(thread_moves_its_arguments_in) {
    std::atomic<int> seen{0};
    lib::thread one{[&](std::unique_ptr<int> number) { seen = *number; }, std::make_unique<int>(7)};
    spin_until([&] { return seen == 7; });
    one.join();
}

THREAD_CASE(thread_calls_a_member_function) {
    struct counter {
        std::atomic<int> n{0};
        void add(int by) { n += by; }
    } one;
    lib::thread adds{&counter::add, &one, 3};
    spin_until([&] { return one.n == 3; });
    adds.join();
}

THREAD_CASE(thread_copies_what_is_not_wrapped_in_a_reference) {
    int original = 1, by_reference = 1;
    lib::thread one{[](int copy, int& reference) {
                        copy = 2;
                        reference = copy;
                    },
                    original, std::ref(by_reference)};
    one.join();
    EXPECT_EQ(original, 1);
    EXPECT_EQ(by_reference, 2);
}

THREAD_CASE(thread_that_was_moved_is_joined_where_it_is) {
    std::atomic<bool> go{false};
    lib::thread from{[&] { spin_until(go); }};
    lib::thread to{std::move(from)};
    EXPECT_FALSE(from.joinable());
    EXPECT_TRUE(to.joinable());
    go = true;
    to.join();
    from = lib::thread{[] {}};
    from.join();
}

THREAD_CASE(thread_objects_swap_while_both_spin) {
    std::atomic<bool> go{false};
    lib::thread a{[&] { spin_until(go); }}, b{[&] { spin_until(go); }};
    const auto was_a = a.get_id(), was_b = b.get_id();
    a.swap(b);
    EXPECT_EQ(a.get_id(), was_b);
    EXPECT_EQ(b.get_id(), was_a);
    swap(a, b);
    EXPECT_EQ(a.get_id(), was_a);
    go = true;
    a.join();
    b.join();
}

THREAD_CASE(thread_that_ended_can_still_be_joined) {
    std::atomic<bool> done{false};
    lib::thread one{[&] { done = true; }};
    spin_until(done);
    EXPECT_TRUE(one.joinable());
    one.join();
    EXPECT_FALSE(one.joinable());
    EXPECT_THROW(one.join(), std::system_error);
    EXPECT_THROW(one.detach(), std::system_error);
}

THREAD_CASE(thread_catches_its_exceptions_while_another_spins) {
    std::atomic<int> caught{0};
    lib::thread spins{[&] { spin_until([&] { return caught == 100; }); }};
    lib::thread throws{[&] {
        for (int i = 0; i < 100; ++i) try {
                throw std::runtime_error{std::to_string(i)};
            } catch (const std::runtime_error& e) {
                caught += e.what() == std::to_string(i);
            }
    }};
    throws.join();
    spins.join();
}

THREAD_CASE(thread_allocates_while_others_spin) {
    std::atomic<bool> over{false};
    auto spinners = start(3, [&](int) { spin_until(over); });
    lib::thread allocates{[&] {
        std::vector<std::string> all;
        for (int i = 0; i < 2000; ++i) all.push_back(std::string(100, 'x'));
        over = all.size() == 2000;
    }};
    join(spinners);
    allocates.join();
}

THREAD_CASE(thread_static_local_is_made_once_while_others_spin_for_it) {
    static std::atomic<int> made{0}, arrived{0};
    made = arrived = 0;
    struct slow {
        slow() {
            ++made;
            spin_until([] { return arrived >= 1; });
        }
    };
    start_and_join(4, [](int) {
        ++arrived;
        static const slow one;
        EXPECT_EQ(made, 1);
    });
}

THREAD_CASE(thread_spin_lock_of_a_flag_excludes) {
    std::atomic_flag taken = ATOMIC_FLAG_INIT;
    int sum = 0;
    start_and_join(4, [&](int) {
        for (int i = 0; i < 1000; ++i) {
            while (taken.test_and_set(std::memory_order_acquire)) {
            }
            ++sum;
            taken.clear(std::memory_order_release);
        }
    });
    EXPECT_EQ(sum, 4000);
}

THREAD_CASE(thread_atomic_wait_and_notify) {
    std::atomic<int> state{0};
    auto waiters = start(3, [&](int) {
        state.wait(0);
        EXPECT_EQ(state, 1);
    });
    state = 1;
    state.notify_all();
    join(waiters);
}

THREAD_CASE(thread_atomic_shared_pointer_is_exchanged_by_all) {
    std::atomic<std::shared_ptr<int>> shared{std::make_shared<int>(0)};
    start_and_join(4, [&](int) {
        for (int i = 0; i < 200; ++i) {
            auto seen = shared.load();
            while (!shared.compare_exchange_weak(seen, std::make_shared<int>(*seen + 1))) {
            }
        }
    });
    EXPECT_EQ(*shared.load(), 800);
}
