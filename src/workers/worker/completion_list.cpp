// SPDX-License-Identifier: MIT
//
// Why no wake-up is lost: a consumer counts itself as a waiter, reads the sequence, looks at the
// list, and sleeps only while the sequence is what it read. A producer pushes. If the list was
// empty, it then executes a full fence and reads the count of waiters; if that is not zero, it
// changes the sequence and wakes one waiter. The consumer has a full fence between counting itself
// and looking at the list. So either the consumer sees the push, or the producer sees the consumer.
// In the second case the change of the sequence either comes before the consumer reads it, and so
// before it looks at the list, or ends its sleep. One wake-up for each change from empty is enough,
// because a consumer takes the whole list. The same argument holds for is_watched and the look at
// the list at the end of set_notify() and make_event().
//
// Why no consumer sleeps at a list that is gone: the end of a list withdraws the handle, then
// changes the sequence and wakes all waiters. A consumer that counted itself too late to be seen
// reads the sequence before it looks at the handle. Either it finds the handle withdrawn, or the
// sequence that it read is the one before the end, and its sleep ends.

#include "workers/worker/completion_list.hpp"

#include <cerrno>
#include <utility>

#include "arch/sanitizer.hpp"
#include "base/assert.hpp"
#include "os/futex.hpp"
#include "os/own_number.hpp"
#include "os/system.hpp"

namespace ums::scheduling {

constinit list_table lists;

namespace {

// Stands in for the head of a list that is gone.
context* closed() noexcept { return reinterpret_cast<context*>(1); }

// Requires: the list's lock is held.
void tell(completion_list& list) noexcept {
    if (list.notify != nullptr) list.notify(list.argument);
    if (list.event >= 0) os::system.event_raise(list.event);
}

void became_ready(completion_list& list) noexcept {
    base::full_fence();
    if (list.waiters.load(base::relaxed) != 0) {  // relaxed: the fence above orders.
        // relaxed: the consumer that is woken looks at the list, which orders.
        list.sequence.fetch_add(1, base::relaxed);
        os::futex_wake(list.sequence.address());
    }
    if (list.is_watched.load(base::relaxed)) {  // relaxed: the fence above orders.
        const os::lock_guard hold{list.lock};
        tell(list);
    }
}

bool is_ready(const completion_list& list) noexcept {
    // relaxed: the consumer that takes the workers acquires them.
    context* first = list.head.load(base::relaxed);
    return first != nullptr && first != closed();
}

// Takes the worker off the list: from queued to owned; a worker that is ending keeps its state.
void own(context& c) noexcept {
    std::uint32_t seen = c.state.look();
    for (;;) {
        std::uint32_t next = seen & ~std::uint32_t{listed};
        if ((seen & state_mask) == queued) next = (next & ~std::uint32_t{state_mask}) | owned;
        // sync(ums.state): passes what happened before the worker was queued on to the scheduler
        // that executes it.
        if (c.state.change(seen, next, base::acq_rel)) return;
    }
}

class waiter {
public:
    explicit waiter(completion_list& list) noexcept : list_{list} {
        list_.waiters.fetch_add(1, base::relaxed);  // relaxed: the fence below orders.
        base::full_fence();
    }
    ~waiter() { list_.waiters.fetch_sub(1, base::relaxed); }  // relaxed: as above.
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;

private:
    completion_list& list_;
};

}  // namespace

int create_list(handle& made) noexcept {
    completion_list* list = lists.take();
    if (list == nullptr) return -ENOMEM;
    list->head.store(nullptr, base::relaxed);  // relaxed: published by its handle.
    made = lists.publish(*list);
    return 0;
}

int destroy_list(handle h) noexcept {
    completion_list* list = lists.find(h);
    if (list == nullptr) return -EBADF;
    int event = -1;
    {
        const os::lock_guard hold{list->lock};
        if (list->self.load(base::relaxed) != h) return -EBADF;  // relaxed: changed under the lock.
        // relaxed: a consumer that comes later finds no list.
        if (list->users.load(base::relaxed) != 0 || list->waiters.load(base::relaxed) != 0)
            return -EBUSY;
        context* empty = nullptr;
        // relaxed: nothing is taken over from the list.
        if (!list->head.compare_exchange(empty, closed(), base::relaxed, base::relaxed))
            return -EBUSY;
        lists.withdraw(*list, h);
        list->sequence.fetch_add(1, base::release);  // sync(ums.list): see above.
        list->notify = nullptr;
        list->is_watched.store(false, base::relaxed);  // relaxed: no thread pushes any more.
        event = std::exchange(list->event, -1);
    }
    os::futex_wake(list->sequence.address(), 0x7fffffff);
    if (event >= 0 && os::is_anonymous(event)) os::system.close_fd(event);
    lists.give(*list);
    return 0;
}

completion_list* use_list(handle h) noexcept {
    completion_list* list = lists.find(h);
    if (list == nullptr) return nullptr;
    const os::lock_guard hold{list->lock};
    if (list->self.load(base::relaxed) != h) return nullptr;  // relaxed: changed under the lock.
    list->users.fetch_add(1, base::relaxed);                  // relaxed: under the lock.
    return list;
}

void leave_list(completion_list& list) noexcept {
    // relaxed: the count only refuses calls.
    const std::uint32_t users = list.users.fetch_sub(1, base::relaxed);
    UMS_ASSERT(users != 0, "a completion list is left by more than use it");
}

bool push(completion_list& list, context& c) noexcept {
    arch::happens_before(&c);
    context* seen = list.head.load(base::relaxed);
    do {
        if (seen == closed()) return false;
        c.next_listed = seen;
        // sync(ums.list): publishes the worker to the consumer that takes the batch.
    } while (!list.head.compare_exchange(seen, &c, base::release, base::relaxed));
    if (seen == nullptr) became_ready(list);
    return true;
}

context* take_batch(completion_list& list) noexcept {
    context* at = list.head.load(base::relaxed);
    do {
        if (at == nullptr || at == closed()) return nullptr;
        // sync(ums.list): sees the workers as they were pushed.
    } while (!list.head.compare_exchange(at, nullptr, base::acquire, base::relaxed));
    context* first = nullptr;
    while (at != nullptr) {  // The last worker pushed comes first, so reverse the batch.
        context* next = at->next_listed;
        arch::happens_after(at);
        at->next_in_batch.set(first);
        first = at;
        own(*at);
        at = next;
    }
    return first;
}

int dequeue(handle h, os::nanoseconds until, context*& first) noexcept {
    first = nullptr;
    completion_list* list = lists.find(h);
    if (list == nullptr) return -EBADF;
    first = take_batch(*list);
    if (first != nullptr || until == 0) return 0;
    const waiter counted{*list};
    // sync(ums.list): if this is the sequence after the end, sees that the handle was withdrawn.
    const std::uint32_t seen = list->sequence.load(base::acquire);
    for (;;) {
        // This comes before the look at the list, which therefore sees a change that comes in
        // between. sync(ums.list): as above.
        const bool has_changed = list->sequence.load(base::acquire) != seen;
        if (list->self.load(base::relaxed) != h) return -EBADF;  // relaxed: the argument above.
        first = take_batch(*list);
        // If it is null, another consumer took everything.
        if (first != nullptr || has_changed) return 0;
        if (!os::futex_wait(list->sequence, seen, until)) {
            first = take_batch(*list);
            return first != nullptr ? 0 : -ETIMEDOUT;
        }
    }
}

int set_notify(handle h, void (*notify)(void*), void* argument) noexcept {
    completion_list* list = lists.find(h);
    if (list == nullptr) return -EBADF;
    const os::lock_guard hold{list->lock};
    if (list->self.load(base::relaxed) != h) return -EBADF;  // relaxed: changed under the lock.
    if (notify != nullptr && list->notify != nullptr) return -EBUSY;
    list->notify = notify;
    list->argument = argument;
    // relaxed: the fence orders.
    list->is_watched.store(notify != nullptr || list->event >= 0, base::relaxed);
    base::full_fence();
    if (notify != nullptr && is_ready(*list)) notify(argument);
    return 0;
}

int make_event(handle h, int& fd) noexcept {
    completion_list* list = lists.find(h);
    if (list == nullptr) return -EBADF;
    const os::lock_guard hold{list->lock};
    if (list->self.load(base::relaxed) != h) return -EBADF;  // relaxed: changed under the lock.
    const bool is_first = list->event < 0;
    if (is_first) {
        const long made = os::system.event_make();
        if (made < 0) return static_cast<int>(made);
        list->event = static_cast<int>(made);
    }
    const long copy = os::system.duplicate(list->event);
    if (copy < 0) {
        if (is_first) os::system.close_fd(std::exchange(list->event, -1));
        return static_cast<int>(copy);
    }
    fd = static_cast<int>(copy);
    list->is_watched.store(true, base::relaxed);  // relaxed: the fence orders.
    base::full_fence();
    if (is_first && is_ready(*list)) os::system.event_raise(list->event);
    return 0;
}

}  // namespace ums::scheduling
