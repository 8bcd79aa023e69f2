// SPDX-License-Identifier: MIT
#pragma once

// support/fragile.hpp: a value whose move fails now and then.

#include <atomic>
#include <stdexcept>

// Counts its instances. Every third move throws std::runtime_error and leaves the value where it
// was; a value that was moved from is -1.
struct fragile {
    static inline std::atomic<int> alive = 0;
    int number;
    explicit fragile(int n) : number{n} { ++alive; }
    fragile(fragile&& other) : number{other.number} {
        static std::atomic<unsigned> moves = 0;
        if (++moves % 3 == 0) throw std::runtime_error{"move"};
        other.number = -1;
        ++alive;
    }
    fragile& operator=(fragile&&) = delete;
    ~fragile() { --alive; }
};
