// SPDX-License-Identifier: MIT
#pragma once

// linux_ums/side_stack.hpp: a function that runs on a stack of its own beside the thread's, by turns with its caller.
//
// A scheduler's procedure is called anew each time, and its frames are discarded. The entry function that loops and
// calls execute_ums_thread() keeps its frames here.

#include <cstddef>

#include "arch/context.hpp"
#include "arch/sanitizer.hpp"

namespace ums::linux_ums {

class side_stack {
public:
    // False: no memory.
    [[nodiscard]] bool make(void (*function)(void*), void* argument) noexcept;
    ~side_stack();
    side_stack() = default;
    side_stack(const side_stack&) = delete;
    side_stack& operator=(const side_stack&) = delete;

    // By the caller: goes on with the function, until it calls give_back(). It never returns.
    void go_on() noexcept;
    // By the function.
    void give_back() noexcept;

private:
    static void run(void* carrier, void* handover, void* self) noexcept;

    void (*function_)(void*) = nullptr;
    void* argument_ = nullptr;
    char* mapping_ = nullptr;
    unsigned valgrind_id_ = 0;
    arch::context inside_{}, outside_{};
    arch::stack_shadow inside_shadow_, outside_shadow_;
    arch::race_context inside_race_, outside_race_;
};

}  // namespace ums::linux_ums
