// SPDX-License-Identifier: MIT
#pragma once

// capi/channel.hpp: a channel of elements whose size is known only when it is made. An element is
// bytes: the mechanism copies it from and to the caller's memory.

#include <cstddef>

#include "capi/call.hpp"
#include "ums/impl/channel.hpp"

namespace ums::capi {

inline int error_of(channel_status status) noexcept {
    switch (status) {
        case channel_status::ok:
            return 0;
        case channel_status::closed:
            return -EPIPE;
        case channel_status::deadline_passed:
            return -ETIMEDOUT;
        case channel_status::stopped:
            return -ECANCELED;
        case channel_status::empty:
        case channel_status::full:
            break;
    }
    return -EAGAIN;
}

}  // namespace ums::capi

struct ums_channel {
    ums_channel(std::size_t bytes, std::size_t capacity);
    ~ums_channel();
    ums_channel(const ums_channel&) = delete;
    ums_channel& operator=(const ums_channel&) = delete;

    const ums::impl::element_type type;
    ums::impl::channel_state state;
};
