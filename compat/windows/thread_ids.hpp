// SPDX-License-Identifier: MIT
#pragma once

// windows/thread_ids.hpp: the running threads by their ids, for OpenThread().

#include <cstdint>

#include "windows/object.hpp"

namespace ums::windows {

// From the time it has an id; not under the dispatcher's lock.
void note_thread(std::uint32_t id, thread& t) noexcept;
// At its end; under the lock. Nothing, if the id is another's.
void forget_thread(std::uint32_t id, const thread& t) noexcept;
// A reference, or none.
ref<thread> find_thread(std::uint32_t id) noexcept;

}  // namespace ums::windows
