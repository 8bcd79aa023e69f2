// SPDX-License-Identifier: MIT
#pragma once

// os/signal/signal_stack.hpp: an alternate signal stack for the calling thread, for as long as it
// lives.

#include <cstddef>

namespace ums::os {

class signal_stack {
public:
    signal_stack() noexcept;
    ~signal_stack();
    signal_stack(const signal_stack&) = delete;
    signal_stack& operator=(const signal_stack&) = delete;

private:
    static constexpr std::size_t bytes_ = 128 * 1024;  // Room for a backtrace.
    void* at_;
};

}  // namespace ums::os
