// SPDX-License-Identifier: MIT
//
// The handler sets the signal's flag, then rings the eventfd of the object that has it; wait() empties the eventfd, then
// takes the flags. So a signal that comes after the flags were looked at rings again.

#include "ums/signals.hpp"

#include <cerrno>
#include <sched.h>
#include <sys/eventfd.h>

#include "base/atomic.hpp"
#include "os/errno.hpp"
#include "os/io_calls.hpp"
#include "os/lock.hpp"
#include "ums/io.hpp"

namespace ums {

namespace {

constexpr int most = 65;

struct slot {
    base::atomic<bool> came;
    base::atomic<int> bell{-1};
};
constinit slot slots[most];
constinit base::atomic<int> in_handlers;
constinit os::lock slots_lock;  // Between constructors and destructors.

void note(int number) noexcept {
    in_handlers.fetch_add(1, base::seq_cst);
    slot& s = slots[number];
    s.came.store(true, base::seq_cst);  // Before the bell.
    const std::uint64_t one = 1;
    os::io_call(SYS_write, s.bell.load(base::seq_cst), &one, sizeof one);
    in_handlers.fetch_sub(1, base::seq_cst);
}

}  // namespace

signal_events::signal_events(std::span<const int> numbers) {
    taken_.reserve(numbers.size());
    const long fd = os::io_call(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) impl::throw_error(static_cast<int>(-fd));
    fd_ = static_cast<int>(fd);
    int error = 0;
    {
        const os::lock_guard guard{slots_lock};
        for (const int number : numbers) {
            if (number <= 0 || number >= most) {
                error = EINVAL;
                break;
            }
            taken t{number, {}, slots[number].bell.exchange(fd_, base::seq_cst)};
            struct sigaction handler {};
            handler.sa_handler = &note;
            handler.sa_flags = SA_RESTART;
            if (::sigaction(number, &handler, &t.before) != 0) {
                slots[number].bell.store(t.fd_before, base::seq_cst);
                error = EINVAL;
                break;
            }
            taken_.push_back(t);
        }
    }
    if (error == 0) return;
    put_back();
    impl::throw_error(error);
}

signal_events::~signal_events() { put_back(); }

void signal_events::put_back() noexcept {
    {
        const os::lock_guard guard{slots_lock};
        for (std::size_t i = taken_.size(); i-- != 0;) {
            const taken& t = taken_[i];
            ::sigaction(t.number, &t.before, nullptr);
            slots[t.number].bell.store(t.fd_before, base::seq_cst);
            slots[t.number].came.store(false, base::seq_cst);
        }
    }
    // A handler on another thread may have this number in its hand, which must not go to another file. It
    // makes one system call that does not wait.
    while (in_handlers.load(base::seq_cst) != 0) ::sched_yield();
    io::close(fd_);
}

result<int> signal_events::wait(const limits& l) {
    for (;;) {
        for (const taken& t : taken_)
            if (slots[t.number].came.exchange(false, base::seq_cst)) return t.number;
        std::uint64_t rings = 0;
        const auto n = io::read(fd_, &rings, sizeof rings, l);
        if (!n) return result<int>::failure(n.error().value());
    }
}

}  // namespace ums
