// SPDX-License-Identifier: MIT
#pragma once

// windows/mutex.hpp: a mutex with a handle. It is recursive, and reports when its owner ended
// without releasing it.

#include "base/check.hpp"
#include "windows/object.hpp"
#include "windows/thread.hpp"

namespace ums::windows {

// Guarded by the dispatcher's lock.
class mutex final : public object {
public:
    static constexpr kind own_kind = kind::mutex;

    mutex() noexcept : object{own_kind} {}

    bool is_ready(const thread& who) const noexcept override {
        return owner_ == nullptr || owner_ == &who;
    }
    bool take(thread& who) noexcept override {
        UMS_DEBUG_CHECK(is_ready(who), "a mutex was taken that another thread holds");
        if (owner_ == nullptr) {
            owner_ = &who;
            next_ = who.owned;
            who.owned = this;
        }
        ++depth_;
        return std::exchange(was_abandoned_, false);
    }

    // Returns false if the mutex is not the caller's.
    bool release(const thread& who) noexcept {
        if (owner_ != &who) return false;
        UMS_DEBUG_CHECK(depth_ != 0, "a mutex has an owner that does not hold it");
        if (--depth_ == 0) {
            leave();
            changed();
        }
        return true;
    }
    // Its owner has ended without releasing it.
    void abandon() noexcept {
        was_abandoned_ = true;
        depth_ = 0;
        leave();
        changed();
    }

    void vanish() noexcept override {
        if (owner_ != nullptr) leave();
    }

private:
    void leave() noexcept {
        mutex** at = &owner_->owned;
        while (*at != this) {
            UMS_DEBUG_CHECK(*at != nullptr, "a mutex is not among those of its owner");
            at = &(*at)->next_;
        }
        *at = next_;
        owner_ = nullptr;
    }

    thread* owner_ = nullptr;
    mutex* next_ = nullptr;  // The next mutex of the same owner.
    unsigned depth_ = 0;
    bool was_abandoned_ = false;
};

}  // namespace ums::windows
