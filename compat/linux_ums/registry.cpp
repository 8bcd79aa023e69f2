// SPDX-License-Identifier: MIT
#include "linux_ums/registry.hpp"

#include "base/check.hpp"
#include "linux_ums/body.hpp"

namespace ums::linux_names {

namespace {

std::uint32_t lock_of_all = 0;

void leave(list& l, worker& w) {
    UMS_DEBUG_CHECK(w.ticket != 0 && l.ready != 0, "a worker left a list that it is not in");
    UMS_DEBUG_CHECK((w.before != nullptr ? w.before->after : l.first) == &w &&
                        (w.after != nullptr ? w.after->before : l.last) == &w,
                    "the links of a list's ready workers are broken");
    (w.before != nullptr ? w.before->after : l.first) = w.after;
    (w.after != nullptr ? w.after->before : l.last) = w.before;
    w.before = w.after = nullptr;
    w.ticket = 0;
    --l.ready;
}

// The list has one worker less. release_ums() waits for the last one, and so do the scheduler
// threads that entered after it.
void has_one_less(list& l) {
    UMS_DEBUG_CHECK(l.left != 0, "a list lost more workers than it had");
    if (--l.left != 0) return;
    all().ended.notify_all();
    l.became_ready.notify_all();
}

}  // namespace

registry& all() {
    static auto* const made = new registry;  // Never destroyed: threads may outlive main().
    return *made;
}

void locked::lock() noexcept {
    UMS_DEBUG_CHECK(!is_held_, "the lock of all was taken twice");
    ums_critical_enter();
    compat::lock_word(lock_of_all);
    is_held_ = true;
}
void locked::unlock() noexcept {
    UMS_DEBUG_CHECK(is_held_, "the lock of all was released twice");
    is_held_ = false;
    compat::unlock_word(lock_of_all);
    ums_critical_leave();
}

handle* registry::find_handle(int number) {
    const auto at = handles.find(number);
    return at != handles.end() && !at->second->is_closing ? at->second.get() : nullptr;
}
list* registry::find_list(ums_pid_t number) {
    const auto at = lists.find(number);
    return at != lists.end() && !at->second->owner->is_closing ? at->second.get() : nullptr;
}
worker* registry::find_worker(ums_pid_t number) {
    const auto at = workers.find(number);
    return at != workers.end() ? &at->second : nullptr;
}

void make_ready(worker& w, list& in) {
    UMS_DEBUG_CHECK(w.ticket == 0, "a worker became ready that is ready already");
    if (w.from != &in) {
        if (w.from != nullptr) has_one_less(*w.from);
        ++in.left;
        w.from = &in;
        w.shown.completion_list_id = in.shown.id;
    }
    w.is = worker::state::ready;
    w.ticket = all().next_ticket++;
    w.before = in.last;
    w.after = nullptr;
    (in.last != nullptr ? in.last->after : in.first) = &w;
    in.last = &w;
    ++in.ready;
    in.became_ready.notify(1);
}

void take(worker& w) {
    leave(*w.from, w);
    w.is = worker::state::running;
}

void end(worker& w) {
    UMS_DEBUG_CHECK(w.ticket == 0, "a worker ended that a list still has");
    UMS_DEBUG_CHECK(w.adder->left != 0, "a handle lost more workers than it added");
    if (--w.adder->left == 0) all().ended.notify_all();
    has_one_less(*w.from);
    all().workers.erase(w.shown.pid);
}

void collect(list& l) {
    ums_context_t next = 0;
    if (ums_completion_list_dequeue(l.items, 0, &next) != 0) return;
    for (ums_context_t one = next; one != 0; one = next) {
        next = ums_context_next(one);
        unsigned char has_ended = 0;
        ums_context_query(one, UMS_INFORMATION_TERMINATED, &has_ended, 1, nullptr);
        void* data = nullptr;
        ums_context_query(one, UMS_INFORMATION_USER_CONTEXT, &data, sizeof data, nullptr);
        UMS_DEBUG_CHECK(data != nullptr, "a context came that no body has");
        auto& b = *static_cast<body*>(data);
        worker* const w = b.runs;
        if (has_ended != 0) {
            [[maybe_unused]] const int were = all().ending.fetch_sub(1);
            UMS_DEBUG_CHECK(were > 0, "more threads were collected than have ended");
            if (w != nullptr) end(*w);
            bodies().bury(b);
        } else if (w != nullptr) {
            make_ready(*w, l);
        } else {
            bodies().add_idle(b);
        }
    }
}

void watch(list& l) {
    // Called by whichever thread queues an item, so it takes no lock.
    const auto notify = [](void* of) {
        static_cast<list*>(of)->became_ready.notify(1);
        // A thread that ended counted itself before it was queued. There may be no scheduler left
        // to collect it; then release_ums() does.
        if (all().ending.load() != 0) all().ended.notify_all();
    };
    ums_completion_list_set_notify(l.items, notify, &l);
}

}  // namespace ums::linux_names
