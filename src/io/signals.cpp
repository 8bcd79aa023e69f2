// SPDX-License-Identifier: MIT
//
// The handler notes the signal in the object that owns the number, then rings that object's
// eventfd. wait() empties the eventfd, then takes one of the noted signals. If it leaves another,
// it rings again: there may be other waiters, whose ring it took.

#include "ums/signals.hpp"

#include <bit>
#include <cerrno>
#include <memory>
#include <sched.h>
#include <sys/eventfd.h>
#include <utility>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "base/chain.hpp"
#include "io/engine/engine.hpp"
#include "io/wait/descriptor.hpp"
#include "os/errno.hpp"
#include "os/io_calls.hpp"
#include "os/lock.hpp"
#include "os/own_number.hpp"
#include "os/signal/interrupt_signal.hpp"
#include "ums/io.hpp"

namespace ums {

namespace {

constexpr int most = 65;

// The owner of each signal number.
constinit base::atomic<signal_events*> owners[most];
constinit base::atomic<int> in_handlers;
constinit os::lock owners_lock;  // Held by constructors and destructors, against each other.

// The eventfd of each object, for a fork(). Guarded by owners_lock.
struct bell {
    int fd = -1;
    bell* next = nullptr;
};
constinit bell* bells = nullptr;

void forget_bell(int fd) noexcept {
    bell** at = &bells;
    while ((*at)->fd != fd) at = &(*at)->next;
    delete std::exchange(*at, (*at)->next);
}

constexpr std::uint64_t bit_of(int number) noexcept { return std::uint64_t{1} << (number - 1); }

void ring(int bell) noexcept {
    const std::uint64_t one = 1;
    // The number may have a file of the program's by now.
    if (os::is_anonymous(bell)) os::io_call(SYS_write, bell, &one, sizeof one);
}

}  // namespace

// No handler is at work: the only thread is in fork(). An eventfd is the parent's, too, and each
// would take the other's rings, so the objects get others, under the same numbers.
void io::leave_signals_behind() noexcept {
    owners_lock.leave_behind();
    in_handlers.store(0, base::relaxed);
    for (const bell* b = bells; b != nullptr; b = b->next) {
        os::io_call(SYS_close, b->fd);  // First: there may be no other number left.
        const long made = os::io_call(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (made < 0 || made == b->fd) continue;
        os::io_call(SYS_dup3, made, b->fd, O_CLOEXEC);
        os::io_call(SYS_close, made);
    }
}

void signal_events::note(int number) noexcept {
    UMS_DEBUG_ASSERT(number > 0 && number < most, "the kernel told of a signal without an owner");
    in_handlers.fetch_add(1, base::seq_cst);
    if (signal_events* const to = owners[number].load(base::seq_cst); to != nullptr) {
        to->came_.fetch_or(bit_of(number));  // This comes before the bell.
        ring(to->fd_);
    }
    in_handlers.fetch_sub(1, base::seq_cst);
}

signal_events::signal_events(std::span<const int> numbers) {
    taken_.reserve(numbers.size());
    auto own = std::make_unique<bell>();
    const long fd = os::out_of_the_way(os::io_call(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (fd < 0) impl::throw_error(static_cast<int>(-fd));
    fd_ = own->fd = static_cast<int>(fd);
    io::descriptor::adopt(fd_, io::descriptor::made_here);
    int error = 0;
    {
        const os::lock_guard guard{owners_lock};
        base::chain::push_front(bells, *own.release(), &bell::next);
        for (const int number : numbers) {
            if (number <= 0 || number >= most) {
                error = EINVAL;
                break;
            }
            taken t{number, {}, owners[number].exchange(this, base::seq_cst)};
            struct sigaction handler {};
            handler.sa_handler = &note;
            handler.sa_flags = SA_RESTART;
            // With a number that libums itself uses, it would be told of signals that nobody sent.
            if (!os::interrupt_signal::put_behind(number, &note, &t.before) &&
                ::sigaction(number, &handler, &t.before) != 0) {
                owners[number].store(t.owner_before, base::seq_cst);
                error = EINVAL;
                break;
            }
            if (t.owner_before != nullptr) t.before = handler;
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
        const os::lock_guard guard{owners_lock};
        for (std::size_t i = taken_.size(); i-- != 0;) {
            const taken& t = taken_[i];
            UMS_ASSERT(owners[t.number].load(base::relaxed) == this,
                       "signal_events for one number are not destroyed in reverse order");
            // Of nested ones, the outermost has taken the number.
            const os::interrupt_signal::behind outer = t.owner_before != nullptr ? &note : nullptr;
            if (!os::interrupt_signal::put_behind(t.number, outer))
                ::sigaction(t.number, &t.before, nullptr);
            owners[t.number].store(t.owner_before, base::seq_cst);
        }
        forget_bell(fd_);
    }
    // A handler on another thread may still be using this object. It makes one system call, which
    // does not wait.
    while (in_handlers.load(base::seq_cst) != 0) ::sched_yield();
    if (os::is_anonymous(fd_))
        io::close(fd_);
    else
        io::forget(fd_);
}

result<int> signal_events::wait(const limits& l) {
    for (;;) {
        std::uint64_t seen = came_.load();
        while (seen != 0) {
            const std::uint64_t left = seen & (seen - 1);
            if (!came_.compare_exchange_strong(seen, left)) continue;
            if (left != 0) ring(fd_);
            return std::countr_zero(seen) + 1;
        }
        std::uint64_t rings = 0;
        const auto n = io::read(fd_, &rings, sizeof rings, l);
        if (!n) return result<int>::failure(n.error().value());
    }
}

}  // namespace ums
