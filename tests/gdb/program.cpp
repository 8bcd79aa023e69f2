// SPDX-License-Identifier: MIT
//
// A program whose fibers are stopped by signals: one waits in a loop for what another does.
#include <atomic>
#include <cstdio>

#include "ums/ums.hpp"

int main() {
    std::atomic<bool> begun{false}, done{false};
    ums::run({.processors = 1, .time_slice_us = 1000}, [&] {
        ums::fiber waits{[&] {
            begun = true;
            while (!done) {
            }
        }};
        while (!begun) ums::this_fiber::yield();
        done = true;
        waits.join();
    });
    std::puts("the end");
}
