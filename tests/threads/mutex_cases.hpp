// SPDX-License-Identifier: MIT

template <class Mutex>
struct mutex_programs {
    static void excludes() {
        Mutex m;
        int sum = 0;
        start_and_join(4, [&](int) {
            for (int i = 0; i < 1000; ++i) {
                m.lock();
                ++sum;
                m.unlock();
            }
        });
        EXPECT_EQ(sum, 4000);
    }
    static void excludes_try_lock_in_a_loop() {
        Mutex m;
        int sum = 0;
        start_and_join(3, [&](int) {
            for (int i = 0; i < 200; ++i) {
                while (!m.try_lock()) {
                }
                ++sum;
                m.unlock();
            }
        });
        EXPECT_EQ(sum, 600);
    }
    // The holder spins too, until the other thread has tried.
    static void try_lock_in_a_loop_gets_it_in_the_end() {
        Mutex m;
        std::atomic<bool> has_tried{false};
        m.lock();
        lib::thread tries{[&] {
            while (!m.try_lock()) has_tried = true;
            m.unlock();
        }};
        spin_until(has_tried);
        m.unlock();
        tries.join();
    }
    static void holder_spins_while_another_waits() {
        Mutex m;
        std::atomic<bool> waits{false}, is_held{false}, go{false};
        lib::thread holds{[&] {
            m.lock();
            is_held = true;
            spin_until(go);
            m.unlock();
        }};
        spin_until(is_held);
        lib::thread locks{[&] {
            waits = true;
            m.lock();
            EXPECT_TRUE(go);
            m.unlock();
        }};
        spin_until(waits);
        go = true;
        holds.join();
        locks.join();
    }
    static void waiters_spin_inside_one_after_the_other() {
        Mutex m;
        std::atomic<int> inside{0};
        spinning_barrier all{4};
        start_and_join(4, [&](int) {
            all.arrive_and_spin();
            m.lock();
            EXPECT_EQ(++inside, 1);
            volatile int spent = 0;
            while (spent < 100'000) spent = spent + 1;
            --inside;
            m.unlock();
        });
    }
};

template <class Mutex>
struct timed_mutex_programs {
    static void try_lock_for_gives_up_while_the_holder_spins() {
        Mutex m;
        std::atomic<bool> gave_up{false};
        m.lock();
        lib::thread tries{[&] {
            EXPECT_FALSE(m.try_lock_for(2ms));
            gave_up = true;
        }};
        spin_until(gave_up);
        m.unlock();
        tries.join();
    }
    static void try_lock_until_gives_up_while_the_holder_spins() {
        Mutex m;
        std::atomic<bool> gave_up{false};
        m.lock();
        lib::thread tries{[&] {
            EXPECT_FALSE(m.try_lock_until(std::chrono::steady_clock::now() + 2ms));
            EXPECT_FALSE(m.try_lock_until(std::chrono::system_clock::now() + 2ms));
            gave_up = true;
        }};
        spin_until(gave_up);
        m.unlock();
        tries.join();
    }
    static void try_lock_for_nothing_in_a_loop_gets_it() {
        Mutex m;
        std::atomic<bool> has_tried{false};
        m.lock();
        lib::thread tries{[&] {
            while (!m.try_lock_for(0ms)) has_tried = true;
            m.unlock();
        }};
        spin_until(has_tried);
        m.unlock();
        tries.join();
    }
    static void try_lock_for_long_gets_it_from_a_spinning_holder() {
        Mutex m;
        std::atomic<bool> waits{false};
        m.lock();
        lib::thread tries{[&] {
            waits = true;
            EXPECT_TRUE(m.try_lock_for(1h));
            m.unlock();
        }};
        spin_until(waits);
        m.unlock();
        tries.join();
    }
};

template <class Mutex>
struct recursive_mutex_programs {
    static void others_get_it_after_the_last_unlock() {
        Mutex m;
        std::atomic<int> failed{0};
        m.lock();
        m.lock();
        EXPECT_TRUE(m.try_lock());
        lib::thread tries{[&] {
            while (!m.try_lock()) ++failed;
            m.unlock();
        }};
        for (int depth = 3; depth > 0; --depth) {
            // The other thread tries at each depth.
            const int before = failed;
            spin_until([&] { return failed > before; });
            m.unlock();
        }
        tries.join();
    }
    static void recursion_excludes() {
        Mutex m;
        int sum = 0;
        start_and_join(3, [&](int) {
            for (int i = 0; i < 300; ++i) {
                const std::lock_guard outer{m};
                const std::lock_guard inner{m};
                ++sum;
            }
        });
        EXPECT_EQ(sum, 900);
    }
};

template <class Mutex>
struct shared_mutex_programs {
    static void readers_spin_for_each_other_inside() {
        Mutex m;
        spinning_barrier all{4};
        start_and_join(4, [&](int) {
            m.lock_shared();
            all.arrive_and_spin();
            m.unlock_shared();
        });
    }
    static void try_lock_in_a_loop_waits_for_all_readers() {
        Mutex m;
        std::atomic<bool> has_tried{false};
        m.lock_shared();
        EXPECT_TRUE(m.try_lock_shared());
        lib::thread writes{[&] {
            while (!m.try_lock()) has_tried = true;
            m.unlock();
        }};
        spin_until(has_tried);
        m.unlock_shared();
        has_tried = false;
        spin_until(has_tried);
        m.unlock_shared();
        writes.join();
    }
    static void try_lock_shared_in_a_loop_waits_for_the_writer() {
        Mutex m;
        std::atomic<int> readers_that_tried{0};
        m.lock();
        auto readers = start(3, [&](int) {
            bool is_first = true;
            while (!m.try_lock_shared()) {
                if (is_first) ++readers_that_tried;
                is_first = false;
            }
            m.unlock_shared();
        });
        spin_until([&] { return readers_that_tried == 3; });
        m.unlock();
        join(readers);
    }
    static void a_waiting_writer_gets_in_between_readers() {
        Mutex m;
        std::atomic<bool> has_written{false};
        auto readers = start(3, [&](int) {
            while (!has_written) {
                m.lock_shared();
                m.unlock_shared();
            }
        });
        m.lock();
        has_written = true;
        m.unlock();
        join(readers);
    }
    static void writers_exclude_readers() {
        Mutex m;
        int a = 0, b = 0;
        start_and_join(4, [&](int i) {
            for (int k = 0; k < 500; ++k) {
                if (i % 2 == 0) {
                    const std::lock_guard writes{m};
                    ++a;
                    ++b;
                } else {
                    const std::shared_lock reads{m};
                    EXPECT_EQ(a, b);
                }
            }
        });
        EXPECT_EQ(a, 1000);
    }
};

THREAD_CASE(mutex_excludes) { mutex_programs<lib::mutex>::excludes(); }
THREAD_CASE(mutex_excludes_try_lock_in_a_loop) {
    mutex_programs<lib::mutex>::excludes_try_lock_in_a_loop();
}
THREAD_CASE(mutex_try_lock_in_a_loop_gets_it_in_the_end) {
    mutex_programs<lib::mutex>::try_lock_in_a_loop_gets_it_in_the_end();
}
THREAD_CASE(mutex_holder_spins_while_another_waits) {
    mutex_programs<lib::mutex>::holder_spins_while_another_waits();
}
THREAD_CASE(mutex_waiters_spin_inside_one_after_the_other) {
    mutex_programs<lib::mutex>::waiters_spin_inside_one_after_the_other();
}

THREAD_CASE(timed_mutex_excludes) { mutex_programs<lib::timed_mutex>::excludes(); }
THREAD_CASE(timed_mutex_excludes_try_lock_in_a_loop) {
    mutex_programs<lib::timed_mutex>::excludes_try_lock_in_a_loop();
}
THREAD_CASE(timed_mutex_try_lock_in_a_loop_gets_it_in_the_end) {
    mutex_programs<lib::timed_mutex>::try_lock_in_a_loop_gets_it_in_the_end();
}
THREAD_CASE(timed_mutex_holder_spins_while_another_waits) {
    mutex_programs<lib::timed_mutex>::holder_spins_while_another_waits();
}
THREAD_CASE(timed_mutex_try_lock_for_gives_up_while_the_holder_spins) {
    timed_mutex_programs<lib::timed_mutex>::try_lock_for_gives_up_while_the_holder_spins();
}
THREAD_CASE(timed_mutex_try_lock_until_gives_up_while_the_holder_spins) {
    timed_mutex_programs<lib::timed_mutex>::try_lock_until_gives_up_while_the_holder_spins();
}
THREAD_CASE(timed_mutex_try_lock_for_nothing_in_a_loop_gets_it) {
    timed_mutex_programs<lib::timed_mutex>::try_lock_for_nothing_in_a_loop_gets_it();
}
THREAD_CASE(timed_mutex_try_lock_for_long_gets_it_from_a_spinning_holder) {
    timed_mutex_programs<lib::timed_mutex>::try_lock_for_long_gets_it_from_a_spinning_holder();
}

THREAD_CASE(recursive_mutex_excludes) { mutex_programs<lib::recursive_mutex>::excludes(); }
THREAD_CASE(recursive_mutex_excludes_try_lock_in_a_loop) {
    mutex_programs<lib::recursive_mutex>::excludes_try_lock_in_a_loop();
}
THREAD_CASE(recursive_mutex_try_lock_in_a_loop_gets_it_in_the_end) {
    mutex_programs<lib::recursive_mutex>::try_lock_in_a_loop_gets_it_in_the_end();
}
THREAD_CASE(recursive_mutex_holder_spins_while_another_waits) {
    mutex_programs<lib::recursive_mutex>::holder_spins_while_another_waits();
}
THREAD_CASE(recursive_mutex_others_get_it_after_the_last_unlock) {
    recursive_mutex_programs<lib::recursive_mutex>::others_get_it_after_the_last_unlock();
}
THREAD_CASE(recursive_mutex_recursion_excludes) {
    recursive_mutex_programs<lib::recursive_mutex>::recursion_excludes();
}

THREAD_CASE(recursive_timed_mutex_excludes) {
    mutex_programs<lib::recursive_timed_mutex>::excludes();
}
THREAD_CASE(recursive_timed_mutex_try_lock_in_a_loop_gets_it_in_the_end) {
    mutex_programs<lib::recursive_timed_mutex>::try_lock_in_a_loop_gets_it_in_the_end();
}
THREAD_CASE(recursive_timed_mutex_holder_spins_while_another_waits) {
    mutex_programs<lib::recursive_timed_mutex>::holder_spins_while_another_waits();
}
THREAD_CASE(recursive_timed_mutex_others_get_it_after_the_last_unlock) {
    recursive_mutex_programs<lib::recursive_timed_mutex>::others_get_it_after_the_last_unlock();
}
THREAD_CASE(recursive_timed_mutex_try_lock_for_gives_up_while_the_holder_spins) {
    timed_mutex_programs<
        lib::recursive_timed_mutex>::try_lock_for_gives_up_while_the_holder_spins();
}
THREAD_CASE(recursive_timed_mutex_try_lock_until_gives_up_while_the_holder_spins) {
    timed_mutex_programs<
        lib::recursive_timed_mutex>::try_lock_until_gives_up_while_the_holder_spins();
}
THREAD_CASE(recursive_timed_mutex_try_lock_for_nothing_in_a_loop_gets_it) {
    timed_mutex_programs<lib::recursive_timed_mutex>::try_lock_for_nothing_in_a_loop_gets_it();
}

THREAD_CASE(shared_mutex_excludes) { mutex_programs<lib::shared_mutex>::excludes(); }
THREAD_CASE(shared_mutex_try_lock_in_a_loop_gets_it_in_the_end) {
    mutex_programs<lib::shared_mutex>::try_lock_in_a_loop_gets_it_in_the_end();
}
THREAD_CASE(shared_mutex_holder_spins_while_another_waits) {
    mutex_programs<lib::shared_mutex>::holder_spins_while_another_waits();
}
THREAD_CASE(shared_mutex_readers_spin_for_each_other_inside) {
    shared_mutex_programs<lib::shared_mutex>::readers_spin_for_each_other_inside();
}
THREAD_CASE(shared_mutex_try_lock_in_a_loop_waits_for_all_readers) {
    shared_mutex_programs<lib::shared_mutex>::try_lock_in_a_loop_waits_for_all_readers();
}
THREAD_CASE(shared_mutex_try_lock_shared_in_a_loop_waits_for_the_writer) {
    shared_mutex_programs<lib::shared_mutex>::try_lock_shared_in_a_loop_waits_for_the_writer();
}
THREAD_CASE(shared_mutex_writers_exclude_readers) {
    shared_mutex_programs<lib::shared_mutex>::writers_exclude_readers();
}

THREAD_CASE(shared_timed_mutex_excludes) { mutex_programs<lib::shared_timed_mutex>::excludes(); }
THREAD_CASE(shared_timed_mutex_try_lock_in_a_loop_gets_it_in_the_end) {
    mutex_programs<lib::shared_timed_mutex>::try_lock_in_a_loop_gets_it_in_the_end();
}
THREAD_CASE(shared_timed_mutex_readers_spin_for_each_other_inside) {
    shared_mutex_programs<lib::shared_timed_mutex>::readers_spin_for_each_other_inside();
}
THREAD_CASE(shared_timed_mutex_try_lock_in_a_loop_waits_for_all_readers) {
    shared_mutex_programs<lib::shared_timed_mutex>::try_lock_in_a_loop_waits_for_all_readers();
}
THREAD_CASE(shared_timed_mutex_try_lock_shared_in_a_loop_waits_for_the_writer) {
    shared_mutex_programs<
        lib::shared_timed_mutex>::try_lock_shared_in_a_loop_waits_for_the_writer();
}
THREAD_CASE(shared_timed_mutex_writers_exclude_readers) {
    shared_mutex_programs<lib::shared_timed_mutex>::writers_exclude_readers();
}
THREAD_CASE(shared_timed_mutex_try_lock_for_gives_up_while_the_holder_spins) {
    timed_mutex_programs<lib::shared_timed_mutex>::try_lock_for_gives_up_while_the_holder_spins();
}
THREAD_CASE(shared_timed_mutex_try_lock_for_nothing_in_a_loop_gets_it) {
    timed_mutex_programs<lib::shared_timed_mutex>::try_lock_for_nothing_in_a_loop_gets_it();
}
THREAD_CASE(shared_timed_mutex_try_lock_shared_for_gives_up_while_the_writer_spins) {
    lib::shared_timed_mutex m;
    std::atomic<bool> gave_up{false};
    m.lock();
    lib::thread reads{[&] {
        EXPECT_FALSE(m.try_lock_shared_for(2ms));
        EXPECT_FALSE(m.try_lock_shared_until(std::chrono::steady_clock::now() + 2ms));
        gave_up = true;
    }};
    spin_until(gave_up);
    m.unlock();
    reads.join();
}
THREAD_CASE(shared_timed_mutex_try_lock_shared_for_long_gets_it_from_a_spinning_writer) {
    lib::shared_timed_mutex m;
    std::atomic<bool> waits{false};
    m.lock();
    lib::thread reads{[&] {
        waits = true;
        EXPECT_TRUE(m.try_lock_shared_for(1h));
        m.unlock_shared();
    }};
    spin_until(waits);
    m.unlock();
    reads.join();
}
