// SPDX-License-Identifier: MIT
#pragma once

// bench/http/request_ends.hpp: the part of HTTP that the hand-written loops know: a request without
// a body ends with an empty line, and every request gets the same response. It is the least that
// can serve the load, and so a bound for servers that do more.

#include <cstring>
#include <string_view>

namespace bench {

inline constexpr std::string_view response =
    "HTTP/1.1 200 OK\r\nContent-Length: 13\r\nContent-Type: text/plain\r\n\r\nHello, World!";

class request_ends {
public:
    // Returns how many requests end in these bytes, which are the next of the stream.
    std::size_t count(std::string_view bytes) noexcept {
        std::size_t found = 0;
        std::size_t at = 0;
        // An end that began in the bytes before.
        while (matched_ != 0 && at < bytes.size()) found += step(bytes[at++]);
        while (at < bytes.size()) {
            const void* const next =
                memmem(bytes.data() + at, bytes.size() - at, end.data(), end.size());
            if (next == nullptr) break;
            at = static_cast<std::size_t>(static_cast<const char*>(next) - bytes.data()) +
                 end.size();
            ++found;
        }
        // The beginning of an end, which is in the last three bytes if there is one.
        if (bytes.size() > at + end.size()) at = bytes.size() - (end.size() - 1);
        while (at < bytes.size()) found += step(bytes[at++]);
        return found;
    }

private:
    static constexpr std::string_view end = "\r\n\r\n";

    std::size_t step(char byte) noexcept {
        if (byte == end[matched_])
            ++matched_;
        else
            matched_ = byte == end[0] ? 1 : 0;
        if (matched_ < end.size()) return 0;
        matched_ = 0;
        return 1;
    }

    std::size_t matched_ = 0;
};

}  // namespace bench
