// SPDX-License-Identifier: MIT

// One signal for each arm(), though the event runs on: PERF_EVENT_IOC_REFRESH(1) lets it overflow once
// and then disables it. The kernel's count of overflows left cannot be read, and to refresh an event
// that is armed already would leave two. So an event that was armed and has not fired is never
// disabled by us: disarm() gives it a period of decades, arm() a new one, and both leave the count at
// one. due_ says whether it may be one: 1 since the refresh, 0 since the handler took the signal.
//
// No arm is lost. arm() exchanges due_. If it finds 0, it sets the period and refreshes: the event will fire. If
// it finds 1, the event has yet to fire, and does so with the period that arm() sets next, or it has fired and
// is disabled, but its signal has not been taken: the handler will exchange due_ after us, and sees what was
// written before arm(). The exchange comes first: an event that fires between a new period and the exchange would
// be refreshed, and fire twice for one arm.
#include "os/user_interrupt.hpp"

#include <cstdint>
#include <cstring>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>

#include "os/memory.hpp"
#include "os/system.hpp"

namespace ums::os {

namespace {

constexpr std::uint64_t decades = std::uint64_t{1} << 60;

// The address is what our timers send.
constinit char from_timer;

// Which user_interrupt a descriptor belongs to; the handler looks it up. The marker stands for one
// that is gone, whose last signal may still come.
class owners {
public:
    using slot = base::atomic<user_interrupt*>;

    // Null if there is no memory for it.
    slot* make(int fd) noexcept {
        const auto n = static_cast<std::size_t>(fd);
        if (n < per_block) return &first_[n];
        if (n / per_block >= blocks) return nullptr;
        base::atomic<slot*>& block = more_[n / per_block];
        slot* made = block.load(base::acquire);
        if (made == nullptr) {
            void* fresh = map(per_block * sizeof(slot));
            if (fresh == nullptr) return nullptr;
            // sync(interrupt.owners): publishes the zeroed block.
            if (block.compare_exchange(made, static_cast<slot*>(fresh), base::acq_rel,
                                       base::acquire))
                made = static_cast<slot*>(fresh);
            else
                unmap(fresh, per_block * sizeof(slot));
        }
        return &made[n % per_block];
    }
    slot* find(int fd) noexcept {
        if (fd < 0) return nullptr;
        const auto n = static_cast<std::size_t>(fd);
        if (n < per_block) return &first_[n];
        if (n / per_block >= blocks) return nullptr;
        slot* block = more_[n / per_block].load(base::acquire);  // sync(interrupt.owners)
        return block == nullptr ? nullptr : &block[n % per_block];
    }
    static user_interrupt* gone() noexcept {
        return reinterpret_cast<user_interrupt*>(&from_timer);
    }

private:
    static constexpr std::size_t per_block = 4096, blocks = 512;
    slot first_[per_block];
    base::atomic<slot*> more_[blocks];
};

constinit owners all;

// The clock of a thread's user CPU time, as clock_gettime(2) encodes it (CPUCLOCK_VIRT, per thread).
constexpr int user_time_of(int tid) noexcept { return (~tid << 3) | 4 | 1; }

// With PREEMPT_RT the signal of an event is sent by a kernel thread, some time after the interrupt.
bool is_realtime_kernel() noexcept {
    const long fd = system.open_to_read("/sys/kernel/realtime");
    if (fd < 0) return false;
    char text[2] = {};
    const long n = system.read_from_start(static_cast<int>(fd), text, 1);
    system.close_fd(static_cast<int>(fd));
    return n == 1 && text[0] == '1';
}

}  // namespace

user_interrupt::way user_interrupt::best_way() noexcept {
    if (is_realtime_kernel()) return way::timer;
    perf_event_attr wanted{};
    wanted.size = sizeof wanted;
    wanted.type = PERF_TYPE_SOFTWARE;
    wanted.config = PERF_COUNT_SW_CPU_CLOCK;
    wanted.sample_period = decades;
    wanted.disabled = wanted.exclude_kernel = wanted.exclude_hv = 1;
    const long fd = system.perf_event_open(&wanted, static_cast<int>(::syscall(SYS_gettid)), -1);
    if (fd < 0) return way::timer;
    system.close_fd(static_cast<int>(fd));
    return way::perf;
}

long user_interrupt::open_event(int tid, int signal) noexcept {
    perf_event_attr wanted{};
    wanted.size = sizeof wanted;
    wanted.type = PERF_TYPE_SOFTWARE;
    wanted.config = PERF_COUNT_SW_CPU_CLOCK;
    wanted.sample_period = decades;
    wanted.disabled = wanted.exclude_kernel = wanted.exclude_hv = 1;
    const long fd = system.perf_event_open(&wanted, tid, -1);
    if (fd < 0) return fd;
    event_ = static_cast<int>(fd);
    owners::slot* mine = all.make(event_);
    if (mine == nullptr) return -ENOMEM;
    // sync(interrupt.owner): the handler finds the object complete.
    mine->store(this, base::release);
    return system.signal_from(event_, tid, signal);
}

user_interrupt::user_interrupt(int tid, int signal, way how) : how_{how} {
    if (how == way::perf) {
        if (const long error = open_event(tid, signal); error < 0) {
            if (event_ >= 0) system.close_fd(event_);
            throw std::system_error{static_cast<int>(-error), std::generic_category(),
                                    "ums: perf_event_open for a thread's clock"};
        }
    } else if (const long error =
                   system.cpu_timer_create(user_time_of(tid), tid, signal, &from_timer, &timer_);
               error < 0) {
        throw std::system_error{static_cast<int>(-error), std::generic_category(),
                                "ums: timer_create for a thread's user time"};
    }
}

user_interrupt::~user_interrupt() {
    if (how_ == way::timer) {
        system.cpu_timer_delete(timer_);
        return;
    }
    // A signal that was on its way is delivered at the latest when the close returns, unless it is blocked.
    system.close_fd(event_);
    owners::slot* mine = all.find(event_);
    user_interrupt* expected = this;
    // Not a store: the number may have been given to another by now.
    mine->compare_exchange(expected, owners::gone(), base::relaxed,
                           base::relaxed);  // relaxed: a mark.
}

void user_interrupt::arm(nanoseconds after) noexcept {
    if (after < 1) after = 1;
    if (how_ == way::timer) {
        system.cpu_timer_arm(timer_, after);
        return;
    }
    const auto period = static_cast<std::uint64_t>(after);
    // sync(interrupt.due): what was written before an arm is seen by the handler of its signal.
    const bool has_fired = due_.exchange(1, base::acq_rel) == 0;
    system.perf_control(event_, PERF_EVENT_IOC_PERIOD, reinterpret_cast<unsigned long>(&period));
    if (has_fired) system.perf_control(event_, PERF_EVENT_IOC_REFRESH, 1);
}

void user_interrupt::disarm() noexcept {
    if (how_ == way::timer) {
        system.cpu_timer_arm(timer_, 0);
        return;
    }
    const std::uint64_t period = decades;
    system.perf_control(event_, PERF_EVENT_IOC_PERIOD, reinterpret_cast<unsigned long>(&period));
}

void user_interrupt::taken(int code) noexcept {
    // "Hung up" is what the last overflow says. Any other would mean that the kernel has lost count:
    // then the event must not run on.
    if (code != POLL_HUP) system.perf_control(event_, PERF_EVENT_IOC_DISABLE, 0);
    due_.exchange(0, base::acq_rel);  // sync(interrupt.due)
}

bool user_interrupt::take(const siginfo_t& signal) noexcept {
    if (signal.si_code == SI_TIMER) return signal.si_value.sival_ptr == &from_timer;
    if (signal.si_code != POLL_HUP && signal.si_code != POLL_IN) return false;
    owners::slot* at = all.find(signal.si_fd);
    if (at == nullptr) return false;
    user_interrupt* owner = at->load(base::acquire);  // sync(interrupt.owner)
    if (owner == nullptr) return false;
    if (owner != owners::gone()) owner->taken(signal.si_code);
    return true;
}

}  // namespace ums::os
