// SPDX-License-Identifier: MIT
#pragma once

// sched/record/describe.hpp: a fiber's name in messages: fiber 17 "name". Async-signal-safe.

namespace ums::sched {

struct fiber;

void describe(const fiber& f, char* buffer, unsigned long size) noexcept;

// Describes the caller: a fiber, a carrier's loop, or a plain thread.
void describe_caller(char* buffer, unsigned long size) noexcept;

}  // namespace ums::sched
