// SPDX-License-Identifier: MIT
#include "io/engine/engine.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <utility>

#include "base/assert.hpp"
#include "io/away/offload.hpp"
#include "io/engine/event_set.hpp"
#include "io/wait/descriptor.hpp"
#include "io/wait/shortage.hpp"
#include "os/io_calls.hpp"
#include "os/lock.hpp"
#include "os/own_number.hpp"
#include "os/say.hpp"
#include "os/visitors.hpp"
#include "sched/run/carrier.hpp"

namespace ums::io {

namespace {

constinit base::atomic<engine*> the_engine;

// Held while an engine is made or given up.
constinit os::lock engine_lock{os::lock_rank::change};
// Guarded by engine_lock:
constinit bool runs = false;

// The plain threads that use the engine.
constinit os::visitors users;

constexpr std::uint64_t bell_data = ~std::uint64_t{0};
constexpr epoll_event on_bell{EPOLLIN | EPOLLET, {.u64 = bell_data}};
constexpr int wait_batch = 256;

// Names the calls, of which the kernel, or a filter, refuses one that the engine cannot do without.
void say_refused(const char* calls, long error) noexcept {
    os::say(
        "the kernel refuses a call that libums waits for descriptors with (one of %s: %s), perhaps "
        "because of a seccomp filter",
        calls, ::strerrordesc_np(static_cast<int>(-error)));
}

// The program has closed a number of the engine's, or put another file there; the caller ends the
// program. Rejected: to make the engine anew, because nothing could wake a processor that waits in
// the kernel for what had the number.
void say_lost(int epoll, int bell) noexcept {
    os::say(
        "the program has closed or replaced descriptor %d and %d, which libums has for epoll: let "
        "close_range(), closefrom() and dup2() leave it alone, or call them before the first wait",
        epoll, bell);
}

}  // namespace

constinit base::atomic<std::uint32_t> engine::count_;
constinit base::atomic<const char*> engine_in_use;

std::unique_ptr<engine> engine::make(long& error) noexcept {
    const long epoll = os::out_of_the_way(os::io_call(SYS_epoll_create1, EPOLL_CLOEXEC));
    if (epoll < 0) return error = epoll, nullptr;
    const long bell = os::out_of_the_way(os::io_call(SYS_eventfd2, 1, EFD_CLOEXEC | EFD_NONBLOCK));
    if (bell < 0) {
        os::io_call(SYS_close, epoll);
        return error = bell, nullptr;
    }
    std::unique_ptr<epoll_event[]> polled{new (std::nothrow) epoll_event[wait_batch]};
    std::unique_ptr<engine> made;
    if (polled != nullptr)
        made.reset(new (std::nothrow)
                       engine{static_cast<int>(epoll), static_cast<int>(bell), std::move(polled)});
    if (made == nullptr) {
        os::io_call(SYS_close, epoll);
        os::io_call(SYS_close, bell);
        return error = -ENOMEM, nullptr;
    }
    epoll_event on = on_bell;
    error = os::io_call(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, bell, &on);
    if (error < 0) made.reset();
    return made;
}

engine::engine(int epoll, int bell, std::unique_ptr<epoll_event[]> polled) noexcept
    : epoll_{epoll}, bell_{bell}, polled_{std::move(polled)} {}

// The numbers may have other files by now.
engine::~engine() {
    for (const int own : {epoll_, bell_})
        if (os::is_anonymous(own)) os::io_call(SYS_close, own);
}

// The waiter inside may wait for ever in what was the set: only the set could tell it.
void engine::end_if_lost(long error) const noexcept {
    const bool is_refused = os::is_refused(error);  // Or the bell's number has a file on a disk.
    if (error != -EBADF && error != -EINVAL && error != -ENOENT && !is_refused) return;
    if (is_refused && os::is_anonymous(epoll_) && os::is_anonymous(bell_))
        say_refused("epoll_ctl, epoll_pwait", error);
    else
        say_lost(epoll_, bell_);
    std::abort();
}

long engine::add(int fd, std::uint32_t generation) noexcept {
    UMS_DEBUG_ASSERT(fd >= 0 && fd != epoll_ && fd != bell_,
                     "the engine was to watch an error number, or itself");
    const long error = event_set::watch(epoll_, fd, generation);
    if (error == 0) added_.fetch_add(1, base::relaxed);    // relaxed: a hint.
    if (error == -EBADF || error == -EINVAL) interrupt();  // Is it the set that is lost?
    return error;
}

void engine::remove(int fd) noexcept {
    epoll_event none{};
    os::io_call(SYS_epoll_ctl, epoll_, EPOLL_CTL_DEL, fd, &none);
    [[maybe_unused]] const std::uint32_t were = added_.fetch_sub(1, base::relaxed);
    UMS_DEBUG_ASSERT(were != 0, "the engine lost more descriptors than it was given");
}

long engine::arm(int fd, std::uint32_t generation, bool in, bool out, bool& is_new) noexcept {
    const long error = event_set::arm(epoll_, fd, generation, in, out, is_new);
    if (error == -EBADF || error == -EINVAL) interrupt();  // As above.
    return error;
}

void engine::disarm(int fd) noexcept { event_set::disarm(epoll_, fd); }

sched::fiber* engine::deliver(const epoll_event* events, long count) noexcept {
    fiber_list woken;
    // With thousands of connections none of this is in the cache, so it is prefetched.
    constexpr long ahead = 8;
    const auto warm = [=](long i, auto how) {
        if (i >= count || events[i].data.u64 == bell_data) return;
        const descriptor* const d = descriptor::find(event_set::number_in(events[i].data.u64));
        UMS_DEBUG_ASSERT(d != nullptr, "an event came of a number that nothing waits for");
        how(*d, events[i].events);
    };
    const auto first = [](const descriptor& d, std::uint32_t) { d.warm(); };
    const auto then = [](const descriptor& d, std::uint32_t e) {
        d.warm_waiter((e & EPOLLIN) != 0);
    };
    for (long i = 0; i < 2 * ahead; ++i) warm(i, first);
    for (long i = 0; i < ahead; ++i) warm(i, then);
    for (long i = 0; i < count; ++i) {
        warm(i + 2 * ahead, first);
        warm(i + ahead, then);
        const std::uint64_t data = events[i].data.u64;
        if (data != bell_data) event_set::deliver(events[i], woken);
    }
    return woken.first;
}

sched::fiber* engine::wait(os::nanoseconds limit) noexcept {
    epoll_event events[wait_batch];
    os::nanoseconds left = limit;
    if (limit != os::never) left = std::max(limit - os::now(), 0l);
    long n = 0;
    if (has_pwait2_) {
        const timespec t{left / 1'000'000'000, left % 1'000'000'000};
        n = os::io_call(SYS_epoll_pwait2, epoll_, events, wait_batch,
                        limit == os::never ? nullptr : &t, nullptr, 8);
        // Valgrind knows only the older one, and so do the filters of older containers.
        if (os::is_refused(n)) has_pwait2_ = false;
    }
    if (!has_pwait2_) {
        const long ms =
            limit == os::never ? -1 : std::min((left + 999'999) / 1'000'000, long{INT_MAX});
        n = os::io_call(SYS_epoll_pwait, epoll_, events, wait_batch, ms, nullptr, 8);
    }
    end_if_lost(n);
    return deliver(events, n);
}

sched::fiber* engine::poll() noexcept {
    epoll_event* const events = polled_.get();
    const long n = os::io_call(SYS_epoll_pwait, epoll_, events, wait_batch, 0, nullptr, 8);
    end_if_lost(n);
    return deliver(events, n);
}

void engine::interrupt() noexcept {
    // Not by a write, which would go to the program's file if the number had one. This fails if
    // either number is not what it was.
    epoll_event on = on_bell;
    end_if_lost(os::io_call(SYS_epoll_ctl, epoll_, EPOLL_CTL_MOD, bell_, &on));
}

// --- The one engine ---

engine* current_engine() noexcept {
    return the_engine.load(base::seq_cst);  // sync(io.engine): sees the engine. See stop().
}

engine* obtain_engine(long& error) noexcept {
    error = 0;
    if (engine* e = current_engine()) return e;
    const os::lock_guard guard{engine_lock};
    if (!runs) return nullptr;
    if (engine* e = the_engine.load(base::relaxed)) return e;
    engine* made = engine::make(error).release();
    if (made == nullptr) {
        static constinit bool has_said = false;
        if (os::is_refused(error) && !std::exchange(has_said, true))
            say_refused("epoll_create1, epoll_ctl, eventfd", error);
        return nullptr;
    }
    // sync(io.engine): publishes the engine. seq_cst: pairs with descriptor::wait().
    the_engine.store(made, base::seq_cst);
    engine_in_use.store("epoll", base::relaxed);  // relaxed: a constant.
    sched::driver::set_source(made);
    return made;
}

void start() noexcept {
    {
        const os::lock_guard guard{engine_lock};
        UMS_DEBUG_ASSERT(!runs && the_engine.load(base::relaxed) == nullptr,
                         "a runtime began to run with the engine of another");
        runs = true;
    }
    offload_pool::start();
}

void stop() noexcept {
    engine* gone;
    {
        const os::lock_guard guard{engine_lock};
        UMS_DEBUG_ASSERT(runs, "the engine was stopped twice");
        runs = false;
        engine_in_use.store(nullptr, base::relaxed);  // relaxed: as above.
        sched::driver::set_source(nullptr);
        // seq_cst: a user that is not seen below, and a waiter that the sweep does not find, see
        // this store.
        gone = the_engine.exchange(nullptr, base::seq_cst);
    }
    if (gone != nullptr) {
        users.wait_for_all();
        descriptor::forget_all();
        delete gone;
    }
    offload_pool::stop();
}

void leave_engine_behind() noexcept {
    engine::waiting_once::leave_all_behind();
    descriptor::leave_all_behind();
    engine_in_use.store(nullptr, base::relaxed);  // relaxed, both: there is one thread.
    the_engine.store(nullptr, base::relaxed);
}

// The engine's descriptors are the parent's, too. Closing ours takes nothing out of its set; asking
// it to forget a descriptor would.
void leave_behind() {
    offload_pool::leave_behind();
    engine_lock.leave_behind();
    users.leave_behind();
    sched::driver::leave_behind();
    shortage::leave_behind();
    engine* const parents = the_engine.load(base::relaxed);  // relaxed: as above.
    leave_engine_behind();
    delete parents;
    leave_signals_behind();
}

engine_use::engine_use() noexcept : is_counted_{sched::this_carrier() == nullptr} {
    if (is_counted_) users.come();  // Before the engine is read.
}

engine_use::~engine_use() {
    if (is_counted_) users.go();
}

}  // namespace ums::io
