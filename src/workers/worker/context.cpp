// SPDX-License-Identifier: MIT
#include "workers/worker/context.hpp"

#include <cerrno>
#include <cstring>

#include "runtime/root.hpp"

extern "C" [[gnu::visibility("hidden")]] const ums::rt::root ums_scheduling_root;

namespace ums::scheduling {

// A reference to it, so that the linker puts it into every program with workers.
[[gnu::used]] static const rt::root* const description = &ums_scheduling_root;

constinit context_table contexts;
constinit thread_local context* current = nullptr;

int create_context(context*& made) noexcept {
    made = contexts.take();
    if (made == nullptr) return -ENOMEM;
    made->state.reset();
    // relaxed, both: published by its handle.
    made->control.store(0, base::relaxed);
    made->user_data.store(nullptr, base::relaxed);
    made->scheduler.set(nullptr);
    made->thread.set(nullptr);
    made->list.set(0);
    made->tid.set(0);
    made->partner.set(0);
    made->switches.set(0);
    made->count.yields.set(0);
    made->count.syscalls.set(0);
    made->count.faults.set(0);
    made->count.running_ns.set(0);
    made->count.executed_at.set(0);
    made->count.switch_ns.set(0);
    made->count.measured.set(0);
    contexts.publish(*made);
    return 0;
}

int destroy_context(handle h) noexcept {
    context* c = contexts.find(h);
    if (c == nullptr) return -EBADF;
    if (is_scheduler(c)) return -EBUSY;
    for (const std::uint32_t gone : {std::uint32_t{none}, std::uint32_t{terminated}}) {
        std::uint32_t seen = gone;
        // From here on no worker can be made for this context. sync(ums.state): sees that its
        // thread no longer uses it.
        if (!c->state.change(seen, blocked, base::acquire)) continue;
        if (!contexts.withdraw(*c, h)) {
            // relaxed: nothing was written.
            c->state.set(gone, base::relaxed);
            return -EBADF;
        }
        contexts.give(*c);
        return 0;
    }
    return -EBUSY;
}

namespace {

bool is_suspended(const context& c) noexcept {
    // relaxed: the answer may be out of date as soon as it is given.
    return (c.control.load(base::relaxed) & ~killed) != 0;
}
bool is_terminated(const context& c) noexcept { return (c.state.see() & state_mask) == terminated; }

}  // namespace

int query_context(handle h, int what, void* buffer, std::size_t bytes,
                  std::size_t* length) noexcept {
    const context* c = contexts.find(h);
    if (c == nullptr) return -EBADF;
    void* pointer = nullptr;
    unsigned char flag = 0;
    const void* from = &flag;
    std::size_t size = 1;
    switch (what) {
        case UMS_INFORMATION_USER_CONTEXT:
            // sync(ums.user): sees what the pointer points to.
            pointer = c->user_data.load(base::acquire);
            from = &pointer;
            size = sizeof pointer;
            break;
        case UMS_INFORMATION_SUSPENDED:
            flag = is_suspended(*c);
            break;
        case UMS_INFORMATION_TERMINATED:
            flag = is_terminated(*c);
            break;
        default:
            return -EINVAL;
    }
    if (!contexts.still_has(*c, h)) return -EBADF;
    if (length != nullptr) *length = size;
    if (bytes != size) return -EMSGSIZE;
    if (buffer == nullptr) return -EFAULT;
    std::memcpy(buffer, from, size);
    return 0;
}

int set_context(handle h, int what, const void* buffer, std::size_t bytes) noexcept {
    if (contexts.find(h) == nullptr) return -EBADF;
    if (what != UMS_INFORMATION_USER_CONTEXT) return -EINVAL;
    void* pointer = nullptr;
    if (bytes != sizeof pointer) return -EMSGSIZE;
    if (buffer == nullptr) return -EFAULT;
    std::memcpy(&pointer, buffer, sizeof pointer);
    // sync(ums.user): publishes what the pointer points to.
    const auto store = [pointer](context& c) { c.user_data.store(pointer, base::release); };
    return contexts.with(h, store) ? 0 : -EBADF;
}

}  // namespace ums::scheduling
