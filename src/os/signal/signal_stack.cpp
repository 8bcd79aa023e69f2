// SPDX-License-Identifier: MIT
#include "os/signal/signal_stack.hpp"

#include <signal.h>

#include "os/memory.hpp"

namespace ums::os {

signal_stack::signal_stack() noexcept : at_{nullptr} {
    stack_t current{};
    sigaltstack(nullptr, &current);
    // A sanitizer's runtime may have given the thread a stack: that one will do.
    if ((current.ss_flags & SS_DISABLE) == 0) return;
    at_ = map(bytes_);
    if (at_ == nullptr) return;  // Without a stack, an overflow ends the program without a report.
    stack_t ours{};
    ours.ss_sp = at_;
    ours.ss_size = bytes_;
    sigaltstack(&ours, nullptr);
}

signal_stack::~signal_stack() {
    if (at_ == nullptr) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
    unmap(at_, bytes_);
}

}  // namespace ums::os
