// SPDX-License-Identifier: MIT
#pragma once

// windows/semaphore.hpp

#include "base/check.hpp"
#include "windows/object.hpp"

namespace ums::windows {

class semaphore final : public object {
public:
    static constexpr kind own_kind = kind::semaphore;

    semaphore(int initial, int maximum) noexcept
        : object{own_kind}, maximum_{maximum}, count_{initial} {}

    // Under the dispatcher's lock:
    bool is_ready(const thread&) const noexcept override { return count_ > 0; }
    bool take(thread&) noexcept override {
        UMS_DEBUG_CHECK(count_ > 0, "a permit was taken that a semaphore does not have");
        --count_;
        return false;
    }
    // Returns false if the count would exceed the maximum.
    bool release(int n, int* previous) noexcept {
        if (n > maximum_ - count_) return false;
        if (previous != nullptr) *previous = count_;
        count_ += n;
        changed();
        return true;
    }

private:
    const int maximum_;
    int count_;
};

}  // namespace ums::windows
