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
// Reads that form, or the two obsolete ones: "Sunday, 06-Nov-94 08:49:37 GMT" and "Sun Nov  6
// 08:49:37 1994". Returns -1 for what is no date.
std::time_t parse_date(std::string_view text);

// The lines with which every answer of 200 begins, up to the Date. They are made once a second for
// all connections.
class date_line {
public:
    static constexpr std::string_view before = "HTTP/1.1 200 OK\r\nServer: ums\r\n";
    static constexpr std::size_t date_bytes = 37;  // "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
    static constexpr std::size_t bytes = before.size() + date_bytes;

    static std::time_t now() noexcept {
        timespec t{};
        clock_gettime(CLOCK_REALTIME_COARSE, &t);
        return t.tv_sec;
    }
    // Appends the lines of that second, which is now.
    void append_200(std::string& out, std::time_t second) { out.append(text_of(second), bytes); }
    void append_date(std::string& out, std::time_t second) {
        out.append(text_of(second) + before.size(), date_bytes);
    }

private:
    // A second's lines stay in their slot for as many seconds as there are slots: long enough for a
    // session that copies them.
    struct slot {
        std::atomic<std::time_t> second = 0;
        char text[bytes];
    };
    static constexpr unsigned slots = 64;

    const char* text_of(std::time_t second);

    std::array<slot, slots> slots_;
    ums::mutex lock_;  // Held by the session that fills a slot.
};

}  // namespace http
