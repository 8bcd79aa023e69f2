// SPDX-License-Identifier: MIT
#pragma once

// date: HTTP's form of a time, and the Date header, which changes once a second.

#include <array>
#include <atomic>
#include <ctime>
#include <mutex>
#include <string>
#include <string_view>

#include <ums/mutex.hpp>

namespace http {

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string date_text(std::time_t t);
// -1 for what is no such date.
std::time_t parse_date(std::string_view text);

// The Date header of now, made once a second for all connections.
class date_line {
public:
    static constexpr std::size_t bytes = 37;  // "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"

    void append_to(std::string& out);

private:
    // A second's line stays in its slot for as many seconds as there are slots: long enough for whoever
    // copies it.
    struct slot {
        std::atomic<std::time_t> second = 0;
        char text[bytes];
    };
    static constexpr unsigned slots = 64;

    std::array<slot, slots> slots_;
    ums::mutex lock_;  // Of whoever fills a slot.
};

}  // namespace http
