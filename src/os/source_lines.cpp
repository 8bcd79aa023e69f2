// SPDX-License-Identifier: MIT
#include "os/source_lines.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include "os/clock.hpp"

namespace ums::os {

namespace {

constexpr std::int64_t time_most_ns = 3'000'000'000;
// Far beyond the deepest recursion that fits into a stack.
constexpr unsigned frames_most = 1'000'000;

struct walk {
    call_list* into;
    unsigned frames = 0;
    bool has_met_signal = false;
};

_Unwind_Reason_Code step(_Unwind_Context* at, void* data) {
    walk& w = *static_cast<walk*>(data);
    int is_exact = 0;
    const std::uintptr_t ip = _Unwind_GetIPInfo(at, &is_exact);
    if (ip == 0 || ++w.frames > frames_most) return _URC_END_OF_STACK;
    if (is_exact != 0 && !w.has_met_signal) {  // So far it was the handler.
        w.has_met_signal = true;
        w.into->clear();
    }
    // What follows a call may belong to the next line, or function.
    return w.into->add(is_exact != 0 ? ip : ip - 1) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

// ThreadSanitizer takes every clone(2) for a fork, and ends the program.
#if defined(__SANITIZE_THREAD__)
constexpr bool may_start_a_helper = false;
#elif defined(__has_feature)
constexpr bool may_start_a_helper = !__has_feature(thread_sanitizer);
#else
constexpr bool may_start_a_helper = true;
#endif

bool find_tool(char (&path)[512]) noexcept {
    if (!may_start_a_helper) return false;
    // A program with more rights than its user starts nothing that the user's variables name.
    if (::getauxval(AT_SECURE) != 0) return false;
    const char* folders = std::getenv("PATH");
    if (folders == nullptr) folders = "/usr/bin:/bin";
    for (const char* const name : {"addr2line", "llvm-addr2line"})
        for (const char* at = folders; *at != 0;) {
            const char* const end = ::strchrnul(at, ':');
            const int n =
                std::snprintf(path, sizeof path, "%.*s/%s", static_cast<int>(end - at), at, name);
            if (*at == '/' && n > 0 && static_cast<std::size_t>(n) < sizeof path &&
                ::access(path, X_OK) == 0)
                return true;
            at = *end != 0 ? end + 1 : end;
        }
    return false;
}

struct helper {
    const char* const* words;
    int out, nowhere;
};

// Runs in the memory of the program, which stands still meanwhile, on a stack of its own. So it
// leaves nothing behind there: no word of a sanitizer's, and none of the C library's.
__attribute__((no_sanitize("address", "thread", "undefined"))) int begin(void* data) {
    const helper& h = *static_cast<const helper*>(data);
    ::syscall(SYS_dup3, h.nowhere, 0, 0);
    ::syscall(SYS_dup3, h.out, 1, 0);
    ::syscall(SYS_dup3, h.nowhere, 2, 0);
    ::syscall(SYS_close_range, 3, ~0u, 0);
    // Not the program's variables: they may preload a library, or ask the network for files.
    static constexpr const char* variables[] = {"LC_ALL=C", nullptr};
    ::syscall(SYS_execve, h.words[0], h.words, variables);
    ::syscall(SYS_exit_group, 127);
    __builtin_unreachable();
}

}  // namespace

bool call_list::push(std::uintptr_t at) noexcept {
    if (size_ == most) return false;
    all_[size_++] = {at, 0, 0};
    return true;
}

bool call_list::add(std::uintptr_t at) noexcept {
    if (period_ != 0) {
        const unsigned begin = size_ - period_;
        if (all_[begin + matched_].at == at) {
            if (++matched_ == period_) {
                matched_ = 0;
                ++all_[size_ - 1].again;
            }
            return true;
        }
        // It ends in the middle of a turn.
        period_ = 0;
        for (unsigned i = 0; i < matched_; ++i)
            if (!push(all_[begin + i].at)) return false;
    }
    if (!push(at)) return false;
    // Functions that call each other in turns are seldom more.
    constexpr unsigned periods = 4;
    for (unsigned p = 1; p <= periods && start_ + 2 * p <= size_; ++p) {
        unsigned same = 0;
        while (same < p && all_[size_ - 1 - same].at == all_[size_ - 1 - same - p].at) ++same;
        if (same < p) continue;
        size_ -= p;
        all_[size_ - 1].again = 1;
        all_[size_ - 1].of = p;
        start_ = size_;
        period_ = p;
        matched_ = 0;
        break;
    }
    return true;
}

void call_list::add_own() noexcept {
    walk w{this};
    _Unwind_Backtrace(&step, &w);
}

source_lines::source_lines(put_fn put, void* to) noexcept : put_{put}, to_{to} {
    const ssize_t n = ::readlink("/proc/self/exe", program_, sizeof program_ - 1);
    program_[n > 0 ? n : 0] = 0;
}

void source_lines::print(const char* format, ...) noexcept {
    char text[1024];
    va_list values;
    va_start(values, format);
    const int n = std::vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (n > 0) put_(to_, text, std::min(static_cast<std::size_t>(n), sizeof text - 1));
}

const source_lines::place* source_lines::find(std::uintptr_t at) const noexcept {
    for (unsigned i = 0; i < count_; ++i)
        if (all_[i].at == at) return &all_[i];
    return nullptr;
}

void source_lines::want(std::uintptr_t at) noexcept {
    if (count_ == most || find(at) != nullptr) return;
    place& p = all_[count_++];
    p = {at, 0, nullptr, 0, nullptr, nullptr, 0};
    Dl_info info{};
    link_map* module = nullptr;
    if (::dladdr1(reinterpret_cast<const void*>(at), &info, reinterpret_cast<void**>(&module),
                  RTLD_DL_LINKMAP) == 0)
        return;
    p.function = info.dli_sname;
    p.function_at = reinterpret_cast<std::uintptr_t>(info.dli_saddr);
    if (module == nullptr) return;
    p.base = module->l_addr;
    // The program itself has no name there; what it was called as may be relative.
    p.file = module->l_name != nullptr && module->l_name[0] != 0 ? module->l_name : program_;
}

void source_lines::want(const call_list& calls) noexcept {
    for (unsigned i = 0; i < calls.size(); ++i) want(calls[i].at);
}

std::size_t source_lines::run(const char* const* words, std::int64_t until) noexcept {
    int out[2];
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nowhere < 0) return used_;
    if (::pipe2(out, O_CLOEXEC) != 0) {
        ::close(nowhere);
        return used_;
    }
    // No handler of the program may run in the helper, while that has the program's memory.
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    helper h{words, out[1], nowhere};
    const int pid = ::clone(&begin, stack_ + sizeof stack_, CLONE_VM | CLONE_VFORK, &h);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::close(out[1]);
    ::close(nowhere);
    std::size_t end = used_;
    bool is_whole = false;
    while (pid > 0 && end < sizeof out_) {
        const std::int64_t left = (until - now()) / 1'000'000;
        pollfd ready{out[0], POLLIN, 0};
        const int n = left > 0 ? ::poll(&ready, 1, static_cast<int>(left)) : 0;
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        const ssize_t got = ::read(out[0], out_ + end, sizeof out_ - end);
        if (got < 0 && errno == EINTR) continue;
        is_whole = got == 0;
        if (got <= 0) break;
        end += static_cast<std::size_t>(got);
    }
    ::close(out[0]);
    if (pid > 0) {
        if (!is_whole) ::kill(pid, SIGKILL);
        while (::waitpid(pid, nullptr, __WALL) < 0 && errno == EINTR) continue;
    }
    return is_whole ? end : used_;
}

// A line of the helper's begins with the address, and those of inlined calls follow it.
void source_lines::look_up_file(const char* tool, const char* file, std::int64_t until) noexcept {
    char numbers[most][20];
    char own[64];
    const char* words[5 + most + 1] = {tool, "-aCfip", "-e", file};
    // The file that was started, whatever its path names by now.
    if (file == program_) {
        std::snprintf(own, sizeof own, "/proc/%d/exe", ::getpid());
        words[3] = own;
    }
    unsigned n = 4;
    for (unsigned i = 0; i < count_; ++i) {
        if (all_[i].file == nullptr || std::strcmp(all_[i].file, file) != 0) continue;
        std::snprintf(numbers[i], sizeof numbers[i], "%#lx",
                      static_cast<unsigned long>(all_[i].at - all_[i].base));
        words[n++] = numbers[i];
    }
    words[n] = nullptr;
    const std::size_t end = run(words, until);
    const char* at = out_ + used_;
    const char* const last = out_ + end;
    for (unsigned i = 0; i < count_ && at != last; ++i) {
        place& p = all_[i];
        if (p.file == nullptr || std::strcmp(p.file, file) != 0) continue;
        const auto* text =
            static_cast<const char*>(::memmem(at, static_cast<std::size_t>(last - at), ": ", 2));
        if (text == nullptr) break;
        text += 2;
        const auto* next = static_cast<const char*>(
            ::memmem(text, static_cast<std::size_t>(last - text), "\n0x", 3));
        at = next != nullptr ? next + 1 : last;
        p.text = text;
        p.text_bytes = static_cast<unsigned>(at - text);
    }
    used_ = end;
}

bool source_lines::is_at_risk() noexcept { return ::prctl(PR_GET_SECCOMP) != 0; }

void source_lines::look_up() noexcept {
    if (!is_at_risk()) look_up_at_risk();
}

bool source_lines::look_up_at_risk() noexcept {
    char tool[512];
    if (!find_tool(tool)) return false;
    const std::int64_t until = now() + time_most_ns;
    for (unsigned i = 0; i < count_; ++i) {
        const char* const file = all_[i].file;
        bool is_new = file != nullptr && (file == program_ || file[0] == '/');
        for (unsigned j = 0; j < i && is_new; ++j)
            is_new = all_[j].file == nullptr || std::strcmp(all_[j].file, file) != 0;
        if (is_new) look_up_file(tool, file, until);
    }
    return used_ != 0;
}

void source_lines::write(std::uintptr_t at, const char* before) noexcept {
    const place* const p = find(at);
    print("%s%#lx", before, static_cast<unsigned long>(at));
    const bool is_known = p != nullptr && p->text != nullptr && p->text_bytes > 2 &&
                          std::strncmp(p->text, "??", 2) != 0;
    if (is_known) {
        const auto* const no_line =
            static_cast<const char*>(::memmem(p->text, p->text_bytes, " at ??", 6));
        put_(to_, " ", 1);
        put_(to_, p->text,
             no_line != nullptr ? static_cast<std::size_t>(no_line - p->text) : p->text_bytes);
        if (no_line == nullptr) return;
    } else if (p != nullptr && p->function != nullptr) {
        print(" %s+%#lx", p->function, static_cast<unsigned long>(at - p->function_at));
    }
    if (p != nullptr && p->file != nullptr)
        print(" (%s+%#lx)", p->file, static_cast<unsigned long>(at - p->base));
    put_(to_, "\n", 1);
}

void source_lines::write(const call_list& calls, const char* indent) noexcept {
    for (unsigned i = 0; i < calls.size(); ++i) {
        char before[32];
        std::snprintf(before, sizeof before, "%s#%u ", indent, i);
        write(calls[i].at, before);
        if (calls[i].again == 0) continue;
        if (calls[i].of == 1)
            print("%s.. the call above %u times more\n", indent, calls[i].again);
        else
            print("%s.. the %u calls above %u times more\n", indent, calls[i].of, calls[i].again);
    }
}

void source_lines::write_commands() noexcept {
    for (unsigned i = 0; i < count_; ++i) {
        const char* const file = all_[i].file;
        bool is_new = file != nullptr && file[0] == '/' && all_[i].text == nullptr;
        for (unsigned j = 0; j < i && is_new; ++j)
            is_new = all_[j].file == nullptr || all_[j].text != nullptr ||
                     std::strcmp(all_[j].file, file) != 0;
        if (!is_new) continue;
        print("source lines: addr2line -Cfipe '%s'", file);
        for (unsigned j = i; j < count_; ++j)
            if (all_[j].file != nullptr && all_[j].text == nullptr &&
                std::strcmp(all_[j].file, file) == 0)
                print(" %#lx", static_cast<unsigned long>(all_[j].at - all_[j].base));
        put_(to_, "\n", 1);
    }
}

}  // namespace ums::os
