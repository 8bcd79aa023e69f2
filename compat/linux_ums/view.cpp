// SPDX-License-Identifier: MIT
#include "linux_ums/view.hpp"

#include "base/check.hpp"

namespace ums::linux_names {

void view::unlink(item& i) {
    (i.before != nullptr ? i.before->after : first_) = i.after;
    (i.after != nullptr ? i.after->before : last_) = i.before;
    // The program's copy of the item still leads on to the next one.
    if (i.before != nullptr) i.before->shown.next = i.shown.next;
}

void view::append(const worker& w) {
    item& made = items_[w.shown.pid];
    UMS_DEBUG_CHECK(last_ == nullptr || last_->ticket < w.ticket,
                    "a view was given workers out of the order in which they became ready");
    if (made.ticket != 0) unlink(made);  // From an earlier readiness.
    made = {w.shown, w.ticket, last_, nullptr};
    made.shown.next = nullptr;
    if (last_ != nullptr) last_->shown.next = &made.shown;
    (last_ != nullptr ? last_->after : first_) = &made;
    last_ = &made;
}

void view::leave_out(ums_pid_t pid) {
    const auto at = items_.find(pid);
    if (at == items_.end()) return;
    unlink(at->second);
    left_out_.push_back(items_.extract(at));
}

completion_list_data* view::refresh(const list& of) {
    left_out_.clear();
    if (items_.size() > 2 * of.ready + 64) {
        items_.clear();
        first_ = last_ = nullptr;
        seen_ = 0;
    }
    while (first_ != nullptr) {
        const ums_pid_t pid = first_->shown.pid;
        const worker* const w = all().find_worker(pid);
        if (w != nullptr && w->ticket == first_->ticket) break;
        unlink(*first_);
        items_.erase(pid);
    }
    const worker* next = of.last;
    if (next != nullptr && next->ticket > seen_) {
        while (next->before != nullptr && next->before->ticket > seen_) next = next->before;
        for (seen_ = of.last->ticket; next != nullptr; next = next->after) append(*next);
    }
    shown_ = {of.shown.id, first_ != nullptr ? &first_->shown : nullptr,
              static_cast<int>(items_.size())};
    return first_ != nullptr ? &shown_ : nullptr;
}

}  // namespace ums::linux_names
