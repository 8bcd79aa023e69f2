// SPDX-License-Identifier: MIT
#pragma once

// limits: what a client may send.

#include <cstddef>
#include <cstdint>

namespace http {

struct limits {
    std::size_t target_bytes = 8 * 1024;   // Longer: 414.
    std::size_t head_bytes = 16 * 1024;    // Request line and headers; longer: 431.
    std::uint64_t body_bytes = 1 << 20;    // Longer: 413.
    std::size_t framing_bytes = 8 * 1024;  // Between two chunks, or in the trailer; if longer: 400.
};

}  // namespace http
