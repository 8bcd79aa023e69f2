// SPDX-License-Identifier: MIT
#include "windows/thread_ids.hpp"

#include <unordered_map>

#include "base/check.hpp"
#include "windows/thread.hpp"

namespace ums::windows {
namespace {

// Guarded by the dispatcher's lock. Never destroyed: threads may end after everything else.
std::unordered_map<std::uint32_t, thread*>& ids() {
    static auto* const all = new std::unordered_map<std::uint32_t, thread*>;
    return *all;
}

}  // namespace

void note_thread(std::uint32_t id, thread& t) noexcept {
    UMS_DEBUG_CHECK(id != 0, "a thread was noted before it had an id");
    const guard hold{dispatcher};
    ids()[id] = &t;
}

void forget_thread(std::uint32_t id, const thread& t) noexcept {
    const auto found = ids().find(id);
    if (found != ids().end() && found->second == &t) ids().erase(found);
}

ref<thread> find_thread(std::uint32_t id) noexcept {
    const guard hold{dispatcher};
    const auto found = ids().find(id);
    if (found == ids().end()) return {};
    found->second->share();
    return ref<thread>{found->second};
}

}  // namespace ums::windows
