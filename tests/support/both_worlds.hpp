// SPDX-License-Identifier: MIT
#pragma once

// support/both_worlds.hpp: the same test on a fiber and on a plain kernel thread.

#include <utility>
#include <vector>

#include "support/plain_thread.hpp"
#include "ums/fiber.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

// Runs the body twice; a runtime runs both times.
template <class F>
void on_a_fiber_and_on_a_thread(F body) {
    ums::run({.processors = 2}, body);
    ums::runtime started{{.processors = 2}};
    body();
}

// Waits for what another fiber or thread is certain to make true.
template <class Condition>
void yield_until(Condition is_true) {
    while (!is_true()) ums::this_fiber::yield();
}

// Fibers and threads that all run the same body with numbers from zero on, threads first.
template <class F>
void on_threads_and_fibers(int threads, int fibers, F body) {
    std::vector<plain_thread> plain;
    std::vector<ums::fiber> all;
    for (int i = 0; i < threads; ++i) plain.emplace_back([&body, i] { body(i); });
    for (int i = threads; i < threads + fibers; ++i) all.emplace_back(body, i);
    for (ums::fiber& f : all) f.join();
    for (plain_thread& t : plain) t.join();
}
