// SPDX-License-Identifier: MIT
#pragma once

// windows/thread_ids.hpp: the running threads by their ids, for OpenThread().

#include <cstdint>

#include "windows/object.hpp"

namespace ums::windows {

// Call once the thread has an id; not under the dispatcher's lock.
void note_thread(std::uint32_t id, thread& t) noexcept;
// Call at the thread's end, under the lock. Does nothing if the id is another thread's.
void forget_thread(std::uint32_t id, const thread& t) noexcept;
// Returns a reference, or none.
ref<thread> find_thread(std::uint32_t id) noexcept;

}  // namespace ums::windows
