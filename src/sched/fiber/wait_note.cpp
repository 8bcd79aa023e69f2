// SPDX-License-Identifier: MIT
#include "sched/fiber/wait_note.hpp"

#include <unistd.h>

#include "os/lock.hpp"
#include "sched/fiber/fiber.hpp"

namespace ums::sched {

namespace {

constinit os::lock list_lock;
// Guarded by list_lock:
constinit std::uint64_t last_serial = 0;

}  // namespace

constinit thread_wait* thread_waits = nullptr;  // Guarded by list_lock.

void thread_wait::begin() noexcept {
    thread = ::gettid();
    const os::lock_guard guard{list_lock};
    serial = ++last_serial;
    next = thread_waits;
    if (next != nullptr) next->previous = this;
    thread_waits = this;
}

void thread_wait::end() noexcept {
    const os::lock_guard guard{list_lock};
    (previous != nullptr ? previous->next : thread_waits) = next;
    if (next != nullptr) next->previous = previous;
}

void leave_thread_waits_behind() noexcept {
    list_lock.leave_behind();
    thread_waits = nullptr;
}

void for_each_thread_wait(void (*each)(const thread_wait& w, void* context), void* context) {
    const os::lock_guard guard{list_lock};
    for (const thread_wait* w = thread_waits; w != nullptr; w = w->next) each(*w, context);
}

waits_for::waits_for(parkable& self, const std::uintptr_t& owner, bool is_endless) noexcept {
    if (!is_endless) return;
    if (!self.is_fiber) {
        thread_.who = &self;
        thread_.owner = &owner;
        thread_.begin();
        return;
    }
    note_ = &static_cast<fiber&>(self).waits;
    // relaxed: the fiber itself is the only writer, and the count publishes it.
    note_->owner.store(&owner, base::relaxed);
    // sync(wait_note): publishes the address of the owner word, and that the waiter holds its
    // locks.
    note_->count.store(note_->count.load(base::relaxed) + 1, base::release);
}

waits_for::~waits_for() {
    if (note_ == nullptr) {
        if (thread_.who != nullptr) thread_.end();
        return;
    }
    // relaxed: a thread that sees an unlock() that comes after this sees the count, too.
    note_->count.store(note_->count.load(base::relaxed) + 1, base::relaxed);
    // sync(wait_note): a thread that sees that the address is gone sees the new count.
    note_->owner.store(nullptr, base::release);
}

}  // namespace ums::sched
