// SPDX-License-Identifier: MIT
#include "runtime/openmetrics.hpp"

#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <utility>

#include "base/assert.hpp"

namespace ums::rt {

namespace {

using number = unsigned long long;

// A time as text. printf() would write the decimal point of the program's locale.
struct seconds {
    char text[32];
    explicit seconds(std::uint64_t ns) noexcept {
        const auto [end, error] =
            std::to_chars(text, text + sizeof text - 1, static_cast<double>(ns) * 1e-9,
                          std::chars_format::general, 12);
        UMS_ASSERT(error == std::errc{}, "a number of metrics is too long");
        *end = 0;
    }
};

}  // namespace

void openmetrics::line(const char* format, ...) {
    char one[256];
    va_list values;
    va_start(values, format);
    const int n = std::vsnprintf(one, sizeof one, format, values);
    va_end(values);
    UMS_ASSERT(n >= 0 && n < static_cast<int>(sizeof one), "a line of metrics is too long");
    text_.append(one, static_cast<std::size_t>(n));
}

void openmetrics::head(const char* name, const char* type, const char* unit, const char* help) {
    line("# TYPE %s %s\n", name, type);
    if (unit != nullptr) line("# UNIT %s %s\n", name, unit);
    line("# HELP %s %s\n", name, help);
}

void openmetrics::counter(const char* name, const char* help, std::uint64_t value) {
    counter_head(name, help);
    line("%s_total %llu\n", name, static_cast<number>(value));
}

void openmetrics::counter_sample(const char* name, const char* label, const char* of,
                                 std::uint64_t value) {
    line("%s_total{%s=\"%s\"} %llu\n", name, label, of, static_cast<number>(value));
}

void openmetrics::gauge(const char* name, const char* help, std::uint64_t value, const char* unit) {
    head(name, "gauge", unit, help);
    line("%s %llu\n", name, static_cast<number>(value));
}

void openmetrics::info(const char* name, const char* help, const char* label, const char* value) {
    head(name, "info", nullptr, help);
    line("%s_info{%s=\"%s\"} 1\n", name, label, value);
}

void openmetrics::bucket(const char* name, std::uint64_t limit_ns, std::uint64_t so_far) {
    line("%s_bucket{le=\"%s\"} %llu\n", name, seconds{limit_ns}.text, static_cast<number>(so_far));
}

void openmetrics::finish_times(const char* name, std::uint64_t count, std::uint64_t sum_ns) {
    line("%s_bucket{le=\"+Inf\"} %llu\n", name, static_cast<number>(count));
    line("%s_count %llu\n", name, static_cast<number>(count));
    line("%s_sum %s\n", name, seconds{sum_ns}.text);
}

std::string openmetrics::end() && {
    text_ += "# EOF\n";
    return std::move(text_);
}

}  // namespace ums::rt
