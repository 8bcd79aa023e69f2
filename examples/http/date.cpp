// SPDX-License-Identifier: MIT
#include "date.hpp"

#include <cstring>

namespace http {

std::string date_text(std::time_t t) {
    // Not strftime(): its names follow the locale.
    static constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                             "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    std::tm parts{};
    gmtime_r(&t, &parts);
    std::string text = days[parts.tm_wday];
    const auto two = [&text](int n) {
        text += static_cast<char>('0' + n / 10 % 10);
        text += static_cast<char>('0' + n % 10);
    };
    text += ", ";
    two(parts.tm_mday);
    text += ' ';
    text += months[parts.tm_mon];
    text += ' ';
    two((parts.tm_year + 1900) / 100);
    two(parts.tm_year % 100);
    text += ' ';
    two(parts.tm_hour);
    text += ':';
    two(parts.tm_min);
    text += ':';
    two(parts.tm_sec);
    return text += " GMT";
}

std::time_t parse_date(std::string_view text) {
    // The one form that is made today; comparing the whole shows that nothing else came.
    static constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    if (text.size() != 29) return -1;
    const auto number = [text](std::size_t at, std::size_t digits) {
        int n = 0;
        for (std::size_t i = at; i < at + digits; ++i) {
            if (text[i] < '0' || text[i] > '9') return -1;
            n = n * 10 + (text[i] - '0');
        }
        return n;
    };
    const std::size_t month = months.find(text.substr(8, 3));
    if (month == std::string_view::npos || month % 3 != 0) return -1;
    std::tm parts{};
    parts.tm_mday = number(5, 2);
    parts.tm_mon = static_cast<int>(month / 3);
    parts.tm_year = number(12, 4) - 1900;
    parts.tm_hour = number(17, 2);
    parts.tm_min = number(20, 2);
    parts.tm_sec = number(23, 2);
    const std::time_t t = timegm(&parts);
    return date_text(t) == text ? t : -1;
}

const char* date_line::text_of(std::time_t second) {
    slot& s = slots_[static_cast<std::size_t>(second) % slots];
    // sync(date): the text was written before its second.
    if (s.second.load(std::memory_order_acquire) != second) {
        const std::lock_guard held{lock_};
        // relaxed: written under the lock.
        if (s.second.load(std::memory_order_relaxed) != second) {
            const std::string lines = std::string{before} + "Date: " + date_text(second) + "\r\n";
            std::memcpy(s.text, lines.data(), bytes);
            s.second.store(second, std::memory_order_release);  // sync(date)
        }
    }
    return s.text;
}

}  // namespace http
