// SPDX-License-Identifier: MIT
#pragma once

// windows/event.hpp

#include "base/check.hpp"
#include "windows/object.hpp"

namespace ums::windows {

class event final : public object {
public:
    static constexpr kind own_kind = kind::event;

    event(bool manual, bool set) noexcept : object{own_kind}, is_manual_{manual}, is_set_{set} {}

    // Under the dispatcher's lock:
    bool is_ready(const thread&) const noexcept override { return is_set_; }
    bool take(thread&) noexcept override {
        UMS_DEBUG_CHECK(is_set_, "an event was taken that is not set");
        if (!is_manual_) is_set_ = false;
        return false;
    }
    void set() noexcept {
        is_set_ = true;
        changed();
    }
    void reset() noexcept { is_set_ = false; }

private:
    const bool is_manual_;
    bool is_set_;
};

}  // namespace ums::windows
