// SPDX-License-Identifier: MIT
#include "chrome.hpp"

#include <cassert>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tool::tracing {

namespace {

// The format's threads: processors first, then fibers.
constexpr std::uint64_t first_fiber = 1'000'000;

std::string json_text(std::string_view text) {
    return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}
double us(std::int64_t ns) { return static_cast<double>(ns) / 1000; }

}  // namespace

chrome_file::chrome_file(std::FILE* into, int process, const std::string& name)
    : file_{into}, process_{process} {
    assert(file_ != nullptr && "a trace has no file to go to");
    fmt::print(file_,
               "[{{\"ph\":\"M\",\"pid\":{},\"name\":\"process_name\",\"args\":{{\"name\":{}}}}}",
               process_, json_text(name));
}

chrome_file::~chrome_file() { std::fputs("]\n", file_); }

void chrome_file::processor(std::uint32_t track, std::string_view name) {
    fmt::print(file_,
               ",\n{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"thread_name\",\"args\":{{"
               "\"name\":{}}}}}",
               process_, track, json_text(name));
}

void chrome_file::fiber(std::uint64_t id, std::string_view name, std::string_view start) {
    fibers_[id] = name.empty() ? fmt::format("fiber {}", id) : fmt::format("fiber {} {}", id, name);
    fmt::print(file_,
               ",\n{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"thread_name\",\"args\":{{"
               "\"name\":{},\"start\":{}}}}}",
               process_, first_fiber + id, json_text(fibers_[id]), json_text(start));
}

void chrome_file::add(const span& s) {
    assert(s.begin <= s.end && "a span ends before it begins");
    assert(fibers_.contains(s.fiber) && "a span is told of a fiber that was not told of");
    const std::string_view name =
        s.does == fiber_does::waits ? s.waits_for : std::string_view{name_of(s.does)};
    const auto slice = [&](std::uint64_t track, std::string_view text) {
        fmt::print(
            file_,
            ",\n{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"name\":{}}}",
            process_, track, us(s.begin), us(s.end - s.begin), json_text(text));
    };
    slice(first_fiber + s.fiber, name);
    if (s.does == fiber_does::runs) slice(s.track, fibers_[s.fiber]);
    if (s.woken_by != 0)
        fmt::print(file_,
                   ",\n{{\"ph\":\"f\",\"bp\":\"e\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"id\":{},"
                   "\"cat\":\"wake\",\"name\":\"wake\"}}",
                   process_, first_fiber + s.fiber, us(s.begin), s.woken_by);
}

void chrome_file::add(const moment& m) {
    assert((m.fiber == 0 || fibers_.contains(m.fiber)) && "a moment is of a fiber not told of");
    const std::uint64_t track = m.fiber != 0 ? first_fiber + m.fiber : m.track;
    fmt::print(file_,
               ",\n{{\"ph\":\"i\",\"s\":\"t\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"name\":{}}}",
               process_, track, us(m.at), json_text(m.text));
    if (m.wakes != 0)
        fmt::print(file_,
                   ",\n{{\"ph\":\"s\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"id\":{},\"cat\":"
                   "\"wake\",\"name\":\"wake\"}}",
                   process_, track, us(m.at), m.wakes);
}

}  // namespace tool::tracing
