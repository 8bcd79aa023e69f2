// SPDX-License-Identifier: MIT
#include "sync/wait_list.hpp"

namespace ums::sync {

void push_back(wait_list& list, waiter& w) noexcept {
    UMS_DEBUG_ASSERT(!w.is_queued, "a waiter was queued twice");
    w.is_queued = true;
    if (list.first == nullptr) {
        list.first = w.next = w.previous = &w;
        return;
    }
    waiter* last = list.first->previous;
    w.previous = last;
    w.next = list.first;
    last->next = &w;
    list.first->previous = &w;
}

void push_front(wait_list& list, waiter& w) noexcept {
    push_back(list, w);
    list.first = &w;
}

void remove(wait_list& list, waiter& w) noexcept {
    UMS_DEBUG_ASSERT(w.is_queued, "a waiter was removed that is not queued");
    w.is_queued = false;
    if (w.next == &w) {
        list.first = nullptr;
        return;
    }
    w.next->previous = w.previous;
    w.previous->next = w.next;
    if (list.first == &w) list.first = w.next;
}

waiter* pop(wait_list& list) noexcept {
    waiter* w = list.first;
    if (w != nullptr) remove(list, *w);
    return w;
}

waiter* pop_all(wait_list& list) noexcept {
    waiter* const all = list.first;
    if (all == nullptr) return nullptr;
    list.first = nullptr;
    all->previous->next = nullptr;
    for (waiter* w = all; w != nullptr; w = w->next) w->is_queued = false;
    return all;
}

reason park_on(list_guard& guard, waiter& w, nanoseconds until,
               const std::stop_token* stop) noexcept {
    guard.unlock();
    if (until == os::never && stop == nullptr) {
        sched::park(sched::park_kind::internal);
        return reason::wake;
    }
    const reason why = sched::park(sched::park_kind::internal, until, stop);
    if (why == reason::wake) return why;
    guard.lock();
    if (w.is_queued) {
        remove(guard.list(), w);
        return why;
    }
    guard.unlock();
    sched::park(sched::park_kind::internal);  // The wake() is on its way.
    return reason::wake;
}

void wake_all(waiter* list) noexcept {
    while (list != nullptr) {
        waiter* next = list->next;
        sched::wake(*list->who);
        list = next;
    }
}

}  // namespace ums::sync
