// SPDX-License-Identifier: MIT
#pragma once

// capi/channel.hpp: a channel of elements whose size is known only when it is made.
//
// The mechanism moves an element by a function that is not told its size, so an element carries its
// size: what lies in the channel, and what a sender shows it, is the size and then the bytes.

#include <cstddef>
#include <cstring>

#include "capi/call.hpp"
#include "ums/impl/channel.hpp"

namespace ums::capi {

inline constexpr std::size_t element_head = sizeof(std::size_t);

// What a sender passes to the mechanism.
struct packed_element {
    packed_element(const void* element, std::size_t size) noexcept : bytes{size} {
        std::memcpy(data, element, size);
    }
    std::size_t bytes;
    std::byte data[UMS_CHANNEL_ELEMENT_MAX];  // For the channel only `bytes` of these exist.
};
static_assert(offsetof(packed_element, data) == element_head);

// What a receiver passes to the mechanism.
struct element_sink {
    void* out;
};

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

    const std::size_t element_bytes;
    const ums::impl::element_type type;
    ums::impl::channel_state state;
};
