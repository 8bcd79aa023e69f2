// SPDX-License-Identifier: MIT
#include "wait_words.hpp"

#include <fmt/format.h>

#include <cassert>
#include <cstring>

namespace tool::inspect {

namespace {

std::string what(const snapshot& s, const fiber_record& f, descriptors& fds) {
    assert((f.waits_by == nobody || f.waits_by < s.fibers.size()) && "the holder was not read");
    const std::string object = fmt::format("0x{:x}", f.waits_in);
    const auto holder = [&]() -> std::string {
        if (f.waits_by != nobody) return ", held by " + fiber_in_words(s.fibers[f.waits_by]);
        if (f.is_held_by_thread) return ", held by a plain thread";
        return ", which is free now";
    };
    const auto readers = [&] {
        return f.detail != 0
                   ? fmt::format(", held by {} reader{}", f.detail, f.detail == 1 ? "" : "s")
                   : holder();
    };
    const auto descriptor = [&](const char* to) {
        const std::string is = fds.describe(f.waits_in);
        return fmt::format("descriptor {} to {}{}", f.waits_in, to,
                           is.empty() ? "" : " (" + is + ")");
    };
    switch (f.waits) {
        case wait::none:
            return {};
        case wait::mutex:
            return "mutex " + object + holder();
        case wait::shared_mutex:
            return "shared_mutex " + object + " to write" + readers();
        case wait::shared_mutex_shared:
            return "shared_mutex " + object + " to read" + readers();
        case wait::semaphore:
            return "semaphore " + object;
        case wait::condition:
            return "condition variable " + object;
        case wait::send:
            return fmt::format("to send into channel {}, {}", object,
                               f.capacity == 0
                                   ? "unbuffered"
                                   : fmt::format("{} of {} full", f.detail, f.capacity));
        case wait::receive:
            return fmt::format("to receive from channel {}", object);
        case wait::select:
            return fmt::format("select of {} cases", f.waits_in);
        case wait::gate:
            return fmt::format("latch, event or wait group {}, count {}", object, f.detail / 2);
        case wait::barrier:
            return fmt::format("barrier {}, {} missing", object, f.detail);
        case wait::once:
            return "call_once " + object;
        case wait::scope:
            return "children of scope " + object;
        case wait::future:
            return "future " + object;
        case wait::readable:
            return descriptor("become readable");
        case wait::writable:
            return descriptor("become writable");
        case wait::offload:
            return "call on an off-load thread";
        case wait::resolve:
            return "name to be resolved";
        case wait::shortage:
            return "free descriptor number";
        case wait::permit:
            return "carrier for a blocking region";
        case wait::join:
            return "end of " + (f.waits_by != nobody ? fiber_in_words(s.fibers[f.waits_by])
                                                     : std::string{"a fiber"});
        case wait::park:
            return "unpark()";
        case wait::sleep:
            return "sleep";
        case wait::library:
            return "something inside libums";
        case wait::system_call:
            return system_call_name(f.waits_in) + "() in the kernel";
        case wait::page_fault:
            return "page fault in the kernel";
    }
    return {};
}

}  // namespace

std::string fiber_in_words(const fiber_record& f) {
    return f.name.empty() ? fmt::format("fiber {}", f.id)
                          : fmt::format("fiber {} \"{}\"", f.id, printable(f.name));
}

std::string duration_in_words(std::int64_t ns) {
    const double s = static_cast<double>(ns) / 1e9;
    if (s < 0) return "overdue";
    if (s < 0.001) return fmt::format("{:.0f} us", s * 1e6);
    if (s < 1) return fmt::format("{:.0f} ms", s * 1e3);
    if (s < 100) return fmt::format("{:.1f} s", s);
    if (s < 7200) return fmt::format("{:.0f} min", s / 60);
    return fmt::format("{:.0f} h", s / 3600);
}

std::string wait_in_words(const snapshot& s, const fiber_record& f, descriptors& fds) {
    std::string text = what(s, f, fds);
    if (f.deadline != 0 && f.deadline != INT64_MAX) {
        const std::string left =
            s.taken_at != 0
                ? duration_in_words(f.deadline - s.taken_at) + " left"
                : fmt::format("until {:.3f} s of the clock", static_cast<double>(f.deadline) / 1e9);
        text += ", " + left;
    }
    if (f.carrier == nobody) return text;
    if (f.is_handed_off)
        text += text.empty() ? "without a processor" : ", its processor was handed off";
    return text;
}

std::string system_call_name(std::uint64_t number) {
    static constexpr struct {
        std::uint64_t number;
        const char* name;
    } names[] = {
#include "system_call_names.inc"
    };
    for (const auto& one : names)
        if (one.number == number) return one.name;
    return fmt::format("system call {}", number);
}

}  // namespace tool::inspect
