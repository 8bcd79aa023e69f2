// SPDX-License-Identifier: MIT
#include "sched/report/crash.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <unistd.h>

#include "base/atomic.hpp"
#include "mem/overflow.hpp"
#include "os/io_calls.hpp"
#include "os/stay_loaded.hpp"
#include "sched/record/describe.hpp"
#include "sched/record/trace.hpp"
#include "sched/run/here.hpp"

namespace ums::sched {

namespace {

// How many signals are still mentioned. A program that handles many does not want a line for each.
constinit base::atomic<int> mentions_left{16};
std::terminate_handler before = nullptr;
bool is_installed = false;

void write_text(const char* text, int n) noexcept {
    os::io_call(SYS_write, STDERR_FILENO, text, n);
}

// A frame that is larger than the guard jumps over it.
void report_far_below(const fiber& f, const void* sp) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(sp);
    const auto bottom = reinterpret_cast<std::uintptr_t>(f.bottom());
    constexpr std::uintptr_t credible = std::uintptr_t{1} << 30;
    if (at == 0 || at >= bottom || bottom - at > credible) return;
    char text[240];
    write_text(text, std::snprintf(text, sizeof text,
                                   "ums: its stack pointer is %zu bytes below its stack, which has "
                                   "%zu (fiber_options::stack_bytes gives it more; "
                                   "-fstack-clash-protection finds such an overflow at once)\n",
                                   static_cast<std::size_t>(bottom - at), f.usable_bytes()));
}

void report(const char* what, const void* sp = nullptr) noexcept {
    const here at;
    const mem::crash_report one{at.self != nullptr};
    if (!one.is_first()) return;
    const fiber& f = *at.self;
    char who[320], maker[40] = "a plain thread", text[480];
    describe(f, who, sizeof who);
    if (f.spawner != 0)
        std::snprintf(maker, sizeof maker, "fiber %lu", static_cast<unsigned long>(f.spawner));
    write_text(text, std::snprintf(text, sizeof text, "ums: %s in %s, which %s has made\n", what,
                                   who, maker));
    report_far_below(f, sp);
    one.write_calls(reinterpret_cast<const void*>(f.run), f.spawned_at);
    dump_trace();
}

void name_signal(int number, char (&into)[40]) noexcept {
    const char* const name = ::sigabbrev_np(number);
    std::snprintf(into, sizeof into, "SIG%s", name != nullptr ? name : "?");
}

[[noreturn]] void on_terminate() {
    report("std::terminate()");
    if (before != nullptr) before();
    std::abort();
}

}  // namespace

void report_signal(int number, const void* sp) noexcept {
    char what[40];
    name_signal(number, what);
    report(what, sp);
}

void mention_signal(int number) noexcept {
    const here at;
    // relaxed: only a count.
    if (at.self == nullptr || mentions_left.load(base::relaxed) <= 0 ||
        mentions_left.fetch_sub(1, base::relaxed) <= 0)
        return;
    char what[40], who[320], text[480];
    name_signal(number, what);
    describe(*at.self, who, sizeof who);
    write_text(text,
               std::snprintf(text, sizeof text,
                             "ums: %s in %s; the program's handler is called next\n", what, who));
}

void report_terminate() noexcept {
    if (is_installed) return;
    is_installed = true;
    before = std::set_terminate(&on_terminate);
}

void stop_reporting_terminate() noexcept {
    if (!is_installed) return;
    // The one above may call ours, or put it back.
    if (std::get_terminate() != &on_terminate) return os::stay_loaded();
    std::set_terminate(before);
    is_installed = false;
}

}  // namespace ums::sched
