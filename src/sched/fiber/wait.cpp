// SPDX-License-Identifier: MIT
#include "sched/fiber/wait.hpp"

#include <unistd.h>

#include "os/lock.hpp"

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

lock_wait::lock_wait(parkable& who, wait_kind kind, const void* lock, const std::uintptr_t& owner,
                     bool is_endless) noexcept
    : wait{who, kind, lock}, is_endless_{is_endless} {
    if (!is_endless) return;
    if (who_ == nullptr) {
        thread_.who = &who;
        thread_.owner = &owner;
        thread_.begin();
        return;
    }
    wait_record& note = who_->waits;
    // relaxed: the fiber itself is the only writer, and the count publishes it.
    note.owner.store(&owner, base::relaxed);
    // sync(wait): publishes the address of the owner word, and that the waiter holds its locks.
    note.count.store(note.count.load(base::relaxed) + 1, base::release);
}

lock_wait::~lock_wait() {
    if (!is_endless_) return;
    if (who_ == nullptr) {
        thread_.end();
        return;
    }
    wait_record& note = who_->waits;
    // relaxed: a thread that sees an unlock() that comes after this sees the count, too.
    note.count.store(note.count.load(base::relaxed) + 1, base::relaxed);
    // sync(wait): a thread that sees that the address is gone sees the new count.
    note.owner.store(nullptr, base::release);
}

}  // namespace ums::sched
