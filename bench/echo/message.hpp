// SPDX-License-Identifier: MIT
#pragma once

// bench/echo/message.hpp: what the load of echo sends: messages of 64 bytes.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace bench {

struct echo_dialogue {
    static constexpr std::string_view message =
        "a message of sixty-four bytes which the server has to send back\n";
    static_assert(message.size() == 64);

    static void batch(std::uint64_t n, std::string& out) {
        while (n-- > 0) out += message;
    }
    static std::size_t response_bytes() { return message.size(); }
    static bool check(std::string_view first, std::string_view last) {
        const auto n = std::min(first.size(), message.size());
        return first.substr(0, n) == message.substr(0, n) &&
               (last.size() < message.size() || last.ends_with(message));
    }
};

}  // namespace bench
