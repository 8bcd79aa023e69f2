// SPDX-License-Identifier: MIT
#include "date.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

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

namespace {

// Turns an obsolete form into today's; turns what is no date into another text that is no date.
std::string modern(std::string_view text) {
    std::string made;
    const auto add = [&made](auto... parts) { (made.append(parts), ...); };
    if (text.size() == 24 && text[7] == ' ' && text[10] == ' ' && text[19] == ' ') {
        const std::string_view day = text.substr(8, 2);
        add(text.substr(0, 3), ", ", day[0] == ' ' ? "0" : day.substr(0, 1), day.substr(1), " ",
            text.substr(4, 3), " ", text.substr(20), " ", text.substr(11, 8), " GMT");
        return text[3] == ' ' ? made : "";
    }
    const std::size_t comma = text.find(',');
    if (comma == std::string_view::npos || text.size() != comma + 24) return "";
    const std::string_view name = text.substr(0, comma), rest = text.substr(comma);
    static constexpr std::string_view names[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                 "Thursday", "Friday", "Saturday"};
    if (std::find(std::begin(names), std::end(names), name) == std::end(names) || rest[4] != '-' ||
        rest[8] != '-')
        return "";
    // Means a year with two digits that is not more than 50 years from now.
    const std::time_t now = date_line::now();
    std::tm parts{};
    gmtime_r(&now, &parts);
    const int last = parts.tm_year + 1900 + 50;
    const std::string_view year = rest.substr(9, 2);
    const bool is_later = year > std::to_string(last % 100 + 100).substr(1);
    add(name.substr(0, 3), rest.substr(0, 4), " ", rest.substr(5, 3), " ",
        std::to_string(last / 100 - (is_later ? 1 : 0)), year, rest.substr(11));
    return made;
}

}  // namespace

std::time_t parse_date(std::string_view text) {
    if (!text.empty() && text.size() != 29) {
        const std::string made = modern(text);
        return made.size() == 29 ? parse_date(made) : -1;
    }
    // Comparing the whole text shows that there is nothing else in it.
    static constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    if (text.size() != 29) return -1;
    // A leap second counts as the second before it.
    if (text.substr(17, 8) == "23:59:60")
        return parse_date(std::string{text}.replace(17, 8, "23:59:59"));
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
