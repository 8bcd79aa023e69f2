// SPDX-License-Identifier: MIT
#include "mem/overflow.hpp"

#include <cstdio>
#include <new>
#include <signal.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/atomic.hpp"
#include "os/io_calls.hpp"
#include "os/source_lines.hpp"
#include "os/stay_loaded.hpp"

namespace ums::mem {

namespace {

struct handled {
    int number;
    struct sigaction before;
};

handled signals[] = {{SIGSEGV, {}}, {SIGBUS, {}}, {SIGILL, {}}, {SIGFPE, {}}, {SIGABRT, {}}};
last_words words;
describe_stack_fn describe_stack = nullptr;
bool installed = false;

// The thread that writes the report of a crash; 0: none has yet; all_said: one did.
constexpr int all_said = -1;
constinit base::atomic<int> reporter{0};

void write_text(const char* text, int n) noexcept {
    os::io_call(SYS_write, STDERR_FILENO, text, n);
}

void report(const located& at, const crash_report& by) noexcept {
    char who[320] = "a free stack";
    const stack_head* head = at.in->head(at.index);
    const void* made_at = nullptr;
    if (describe_stack != nullptr) made_at = describe_stack(*head, who, sizeof who);
    char text[480];
    write_text(text, std::snprintf(text, sizeof text,
                                   "ums: stack overflow in %s: its stack has %zu bytes "
                                   "(fiber_options::stack_bytes gives it more)\n",
                                   who, at.in->usable()));
    by.write_calls(nullptr, made_at);
}

bool is_ignoring(const struct sigaction& a) noexcept {
    return (a.sa_flags & SA_SIGINFO) == 0 && a.sa_handler == SIG_IGN;
}
bool is_default(const struct sigaction& a) noexcept {
    return is_ignoring(a) || ((a.sa_flags & SA_SIGINFO) == 0 && a.sa_handler == SIG_DFL);
}

// Calls the program's handler as the kernel would.
void call(const handled& h, siginfo_t* info, void* context) noexcept {
    const struct sigaction& its = h.before;
    if ((its.sa_flags & SA_RESETHAND) != 0) {
        struct sigaction next {};
        next.sa_handler = SIG_DFL;
        sigaction(h.number, &next, nullptr);
    }
    sigset_t ours;
    pthread_sigmask(SIG_BLOCK, &its.sa_mask, &ours);
    if ((its.sa_flags & SA_NODEFER) != 0 && sigismember(&its.sa_mask, h.number) == 0) {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, h.number);
        pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
    }
    if ((its.sa_flags & SA_SIGINFO) != 0)
        its.sa_sigaction(h.number, info, context);
    else
        its.sa_handler(h.number);
    pthread_sigmask(SIG_SETMASK, &ours, nullptr);
}

const void* stack_pointer(const void* context) noexcept {
    return reinterpret_cast<const void*>(
        static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RSP]);
}

void handle(int number, siginfo_t* info, void* context) noexcept {
    located at{};
    const bool is_fault = number == SIGSEGV || number == SIGBUS;
    const bool ours = is_fault && info->si_code > 0 && locate(info->si_addr, at) && at.in_guard;
    if (ours) {
        if (const crash_report one{true}; one.is_first()) {
            report(at, one);
            if (words.dump != nullptr) words.dump();
        }
        // Returning into the fault with the default action gives the same death and the same core
        // dump.
        struct sigaction fatal {};
        fatal.sa_handler = SIG_DFL;
        sigaction(number, &fatal, nullptr);
        return;
    }
    // A signal that another process has sent says nothing about the fiber it finds.
    const bool is_own =
        info->si_code > 0 || (info->si_code == SI_TKILL && info->si_pid == ::getpid());
    for (const handled& h : signals) {
        if (h.number != number) continue;
        // A fault cannot be ignored; a signal that was sent can.
        const bool is_ignored = info->si_code <= 0 && is_ignoring(h.before);
        if (is_own && !is_ignored) {
            if (!is_default(h.before) && words.mention != nullptr)
                words.mention(number);
            else if (is_default(h.before) && words.report != nullptr)
                words.report(number,
                             is_fault && info->si_code > 0 ? stack_pointer(context) : nullptr);
        }
        if (is_default(h.before)) {
            // A fault comes again; a signal that was sent is sent again.
            sigaction(number, &h.before, nullptr);
            if (info->si_code <= 0) raise(number);
        } else {
            call(h, info, context);
        }
    }
}

}  // namespace

crash_report::crash_report(bool has_words) noexcept {
    const int self = ::gettid();
    int seen = 0;
    // relaxed: it hands nothing on, and the writes to standard error are system calls.
    if (has_words)
        is_first_ = reporter.compare_exchange(seen, self, base::relaxed, base::relaxed);
    else
        seen = reporter.load(base::relaxed);
    if (is_first_) return;
    // This thread cannot wait to be woken, because the one that writes may have crashed in the
    // allocator, or in a lock. So it looks again from time to time. The program is about to die, so
    // its time is worth nothing.
    constexpr timespec a_moment{0, 10'000'000};
    for (int n = 0; n < 1'000 && seen != 0 && seen != self && seen != all_said; ++n) {
        ::nanosleep(&a_moment, nullptr);
        seen = reporter.load(base::relaxed);
    }
}

crash_report::~crash_report() {
    if (is_first_) reporter.store(all_said, base::relaxed);  // relaxed: as above.
}

// The unwinder walks from the handler through the signal frame onto the fiber's stack.
void crash_report::write_calls(const void* start, const void* made_at) const noexcept {
    // Static: the signal's stack is small. There is one report.
    alignas(os::source_lines) static char room[sizeof(os::source_lines)];
    static os::call_list calls;
    auto& lines = *new (room) os::source_lines{
        [](void*, const char* text, std::size_t n) { write_text(text, static_cast<int>(n)); },
        nullptr};
    const auto begin = reinterpret_cast<std::uintptr_t>(start);
    const std::uintptr_t spawn = reinterpret_cast<std::uintptr_t>(made_at) - 1;  // The call.
    calls.add_own();
    lines.want(calls);
    if (start != nullptr) lines.want(begin);
    if (made_at != nullptr) lines.want(spawn);
    const auto write_all = [&] {
        lines.write(calls, "  ");
        if (start != nullptr) lines.write(begin, "start function\n  ");
        if (made_at != nullptr) lines.write(spawn, "spawned at\n  ");
        lines.write_commands();
    };
    const bool is_at_risk = os::source_lines::is_at_risk();
    if (is_at_risk) write_all();
    if (lines.look_up_at_risk() || !is_at_risk) write_all();
}

void install_overflow_report(describe_stack_fn describe, const last_words& more) noexcept {
    describe_stack = describe;
    words = more;
    if (installed) return;
    installed = true;
    // The first walk may load what it needs, which must not happen in a signal handler.
    os::call_list calls;
    calls.add_own();
    for (handled& h : signals) {
        struct sigaction ours {};
        ours.sa_sigaction = &handle;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigemptyset(&ours.sa_mask);
        sigaction(h.number, &ours, &h.before);
    }
}

void remove_overflow_report() noexcept {
    if (!installed) return;
    for (const handled& h : signals) {
        struct sigaction current {};
        sigaction(h.number, nullptr, &current);
        // If another handler was installed on top of ours, it still passes faults on to us, so stay
        // installed. It may also put ours back, as a second copy of this library does.
        if ((current.sa_flags & SA_SIGINFO) == 0 || current.sa_sigaction != &handle)
            return os::stay_loaded();
    }
    for (const handled& h : signals) sigaction(h.number, &h.before, nullptr);
    installed = false;
}

}  // namespace ums::mem
